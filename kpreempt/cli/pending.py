"""``kpreempt pending``: every pending pod, why it is still pending, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from kpreempt.cli.options import After, AnswerRequest, PageOutputs

if TYPE_CHECKING:
    from datetime import datetime

    from kpreempt.cli.watch import Wait
    from kpreempt.snapshot.live.connection import Connection
    from kpreempt.snapshot.live.flags import ConnectionFlags
    from kpreempt.verdict import PendingPods
    from kpreempt.verdict.contexts import PendingPodsOfContext, PendingPodsOfContexts


class PendingRequest(AnswerRequest):
    """What the options of ``kpreempt pending`` ask for."""

    watch: Annotated[bool, After("selector"), Option("-w", "--watch", help="Look again and again, until Ctrl-C.")] = (
        False
    )
    outputs: PageOutputs = []
    interval: Annotated[float, Option(metavar="SECONDS", help="How long to wait between looks, with -w.")] = 5.0


def pending(request: PendingRequest, *, wait: Wait | None = None) -> int:
    """List every pending pod: why it is still pending, whom it would evict, whether it can land at all.

    Pods of all namespaces, unless -n says otherwise: there is one queue for all. They are in the order in which the
    scheduler would try them, by cause, and each is judged alone, as if it came next.
    """
    from kpreempt.analysis.pending.pods import explain_pending
    from kpreempt.analysis.pending.states import max_backoff_of
    from kpreempt.cli.answering import Run, select_pods
    from kpreempt.cli.contexts import answers_of, contexts_of
    from kpreempt.cli.terminal import EXIT_INPUT
    from kpreempt.cli.watch import begin_page, watch
    from kpreempt.cli.workers import Spread
    from kpreempt.errors import KpreemptError
    from kpreempt.report.answers import PAGE_FORMATS
    from kpreempt.verdict import PendingPods
    from kpreempt.verdict.contexts import PendingPodsOfContexts

    selection = select_pods(request)
    _check(request)
    run = Run(request, PAGE_FORMATS)
    asked = run.read_scheduler()
    contexts = contexts_of(request.connection)
    # By context, kept until a look fails.
    live: dict[str, Connection | None] = {}

    def look_at(flags: ConnectionFlags) -> PendingPods:
        """What is pending now in a cluster."""
        if flags.context not in live:
            live[flags.context] = run.connect(flags)
        now = run.now()
        loaded = run.load(live[flags.context], asked.wanted)
        configured = asked.on(loaded.cluster)
        return explain_pending(
            loaded.cluster,
            configured.scheduler,
            now=now,
            at=run.time_of(loaded.cluster, now),
            is_asked=selection.has,
            namespace=selection.namespace,
            assumptions=[*configured.assumptions, *loaded.assumptions],
            max_backoff=max_backoff_of(configured.configuration),
            spread=Spread(run.stopwatch, request.jobs),
            phases=run.stopwatch,
        )

    def look() -> PendingPods | PendingPodsOfContexts:
        """What is pending now, in each of several contexts."""
        if not contexts:
            return look_at(request.connection)
        items = answers_of(contexts, request.connection, look_at, _of_context)
        for each in items:
            if each.error:
                live.pop(each.context, None)
        return PendingPodsOfContexts(items=items)

    def show_again(is_first: bool) -> bool:
        """Look, and show it on a page of its own. False where nobody reads."""
        try:
            answer = look()
        except KpreemptError:
            # Credentials may have expired; others can be had then.
            live.clear()
            raise
        return begin_page(is_first=is_first) and run.write(answer, _time_of(answer))

    if request.watch:
        watch(show_again, request.interval, **({"wait": wait} if wait else {}))
        return 0
    answer = look()
    run.write_once(answer, _time_of(answer))
    if isinstance(answer, PendingPods):
        return run.exit_code(answer.assumptions)
    assumptions = [each for item in answer.items if item.answer for each in item.answer.assumptions]
    return run.exit_code(assumptions, EXIT_INPUT if any(item.error for item in answer.items) else 0)


def _of_context(context: str, answer: PendingPods | None, error: str) -> PendingPodsOfContext:
    from kpreempt.verdict.contexts import PendingPodsOfContext

    return PendingPodsOfContext(context=context, answer=answer, error=error)


def _time_of(answer: PendingPods | PendingPodsOfContexts) -> datetime | None:
    """What ages count to; of several answers each has its own."""
    return getattr(answer, "at", None)


def _check(request: PendingRequest) -> None:
    """Raise ``UsageError`` where the options contradict each other."""
    from kpreempt.cli.clusters import single_use_of_stdin
    from kpreempt.errors import UsageError

    single_use_of_stdin({"--snapshot": request.snapshots})
    if not request.watch:
        return
    if "-" in request.snapshots:
        raise UsageError("-w reads the snapshot again and again, and standard input can be read once only")
    if not request.interval > 0:
        raise UsageError(f"--interval {request.interval:g}: expected a number of seconds above 0", hint="--interval 5")
    for option, is_given in (("--strict", request.strict), ("--profile-json", request.profile_json is not None)):
        if is_given:
            raise UsageError(f"{option} is for one answer, and -w gives many")
