"""How ``kpreempt pending`` looks: once or again and again, at one cluster or several."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

import msgspec

from kpreempt.analysis.pending.pods import explain_pending
from kpreempt.analysis.pending.states import max_backoff_of
from kpreempt.analysis.pod_selection import PodSelection
from kpreempt.cli.answering import Run
from kpreempt.cli.contexts import answers_of, contexts_of
from kpreempt.cli.pending import PendingRequest
from kpreempt.cli.terminal import EXIT_INPUT, SCREEN_HEIGHT
from kpreempt.cli.watch import Screen, Wait, watch
from kpreempt.cli.workers import Spread
from kpreempt.errors import KpreemptError
from kpreempt.report.answers import PENDING_FORMATS
from kpreempt.snapshot.live.connection import Connection
from kpreempt.snapshot.live.flags import ConnectionFlags
from kpreempt.verdict import PendingPods
from kpreempt.verdict.contexts import PendingPodsOfContext, PendingPodsOfContexts

_WIDE = "wide"
# How long smallest changes are sought for all pods together; a search that is under way then is ended well.
_SECONDS_OF_SEARCH = 5.0


def run_pending(request: PendingRequest, selection: PodSelection, wait: Wait | None) -> int:
    """Answer the request, and return the exit code."""
    run = Run(request, PENDING_FORMATS)
    looks = _Looks(request, run, selection)
    if request.watch:
        screen = Screen(as_blocks=any(not each.path and each.format not in ("text", _WIDE) for each in run.outputs))

        def show_again() -> bool:
            answer = looks.look()
            return run.write(answer, _time_of(answer), to_stdout=screen.show, height=screen.height or SCREEN_HEIGHT)

        watch(show_again, request.interval, fail=screen.fail, **({"wait": wait} if wait else {}))
        return 0
    answer = looks.look()
    run.write_once(answer, _time_of(answer))
    if isinstance(answer, PendingPods):
        return run.exit_code(answer.assumptions)
    assumptions = [each for item in answer.items if item.answer for each in item.answer.assumptions]
    return run.exit_code(assumptions, EXIT_INPUT if any(item.error for item in answer.items) else 0)


class _Looks:
    """Looks at what is pending; the connections are kept until one fails."""

    def __init__(self, request: PendingRequest, run: Run, selection: PodSelection) -> None:
        self._request, self._run, self._selection = request, run, selection
        self._asked = run.read_scheduler()
        self._contexts = contexts_of(request.connection)
        self._is_wide = any(output.format == _WIDE for output in run.outputs)
        # By context, as is the look before.
        self._live: dict[str, Connection | None] = {}
        self._seen: dict[str, PendingPods] = {}

    def look(self) -> PendingPods | PendingPodsOfContexts:
        """What is pending now, in each of several contexts."""
        self._request.intake.restart()
        if self._contexts:
            items = answers_of(self._contexts, self._request.connection, self._look_at, _of_context)
            for each in items:
                if each.error:
                    self._live.pop(each.context, None)
            return PendingPodsOfContexts(items=items)
        try:
            return self._look_at(self._request.connection)
        except KpreemptError:
            # Credentials may have expired; others can be had then.
            self._live.clear()
            raise

    def _look_at(self, flags: ConnectionFlags) -> PendingPods:
        run, selection = self._run, self._selection
        if flags.context not in self._live:
            self._live[flags.context] = run.connect(flags)
        now = run.now()
        loaded = run.load(self._live[flags.context], self._asked.wanted)
        configured = self._asked.on(loaded.cluster)
        answer = explain_pending(
            loaded.cluster,
            configured.scheduler,
            now=now,
            at=run.time_of(loaded.cluster, now),
            is_asked=selection.has,
            namespace=selection.namespace,
            assumptions=[*configured.assumptions, *loaded.assumptions],
            max_backoff=max_backoff_of(configured.configuration),
            spread=Spread(run.stopwatch, self._request.jobs),
            phases=run.stopwatch,
            has_time=_lasting(_SECONDS_OF_SEARCH) if self._is_wide else None,
            seeks_nodes=True,
        )
        if not self._request.watch:
            return answer
        from kpreempt.analysis.pending.pods import changes_since

        if before := self._seen.get(flags.context):
            answer = msgspec.structs.replace(answer, changes=changes_since(before, answer, loaded.cluster))
        self._seen[flags.context] = answer
        return answer


def _of_context(context: str, answer: PendingPods | None, error: str) -> PendingPodsOfContext:
    return PendingPodsOfContext(context=context, answer=answer, error=error)


def _lasting(seconds: float) -> Callable[[], bool]:
    """Whether less than this time has passed since it was first asked."""
    ends: list[float] = []

    def has_time() -> bool:
        if not ends:
            ends.append(time.monotonic() + seconds)
        return time.monotonic() < ends[0]

    return has_time


def _time_of(answer: PendingPods | PendingPodsOfContexts) -> datetime | None:
    """What ages count to; of several answers each has its own."""
    return getattr(answer, "at", None)
