"""``kpreempt pending``: every pending pod, why it is still pending, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from kpreempt.cli.options import After, AnswerRequest, AnyQueueingAlgorithm, ChangingNodes

if TYPE_CHECKING:
    from kpreempt.cli.watch import Wait


# A day, in seconds.
_LONGEST_INTERVAL = 86_400


class PendingRequest(AnswerRequest):
    """What the options of ``kpreempt pending`` ask for."""

    algorithm: AnyQueueingAlgorithm = None
    watch: Annotated[bool, After("selector"), Option("-w", "--watch", help="Look again and again, until Ctrl-C.")] = (
        False
    )
    node_changes: ChangingNodes
    outputs: Annotated[
        list[str],
        Option(
            "-o",
            "--output",
            metavar="FORMAT[=FILE]",
            help="text (default), json, yaml, jsonl, name, markdown, html or wide, into FILE if given. Repeatable. "
            "wide has the nodes by reason and smallest changes.",
        ),
    ] = []
    interval: Annotated[float, Option(metavar="SECONDS", help="How long to wait between looks, with -w.")] = 5.0


def pending(request: PendingRequest, *, wait: Wait | None = None) -> int:
    """List pending pods: which land now, which preempt whom, what keeps the others pending.

    Pods of all namespaces, unless -n says otherwise: there is one queue for all. They are in the order in which the
    scheduler would try them, and each is judged alone, as if it came next. One screen; -v has every pod in full, and
    -o wide the nodes by reason and the smallest change with which an unschedulable pod would land.

    With --algorithm kueue-0.19 it lists the Workloads that wait for quota, in the order in which Kueue decides about
    them: what becomes of each with all the others queued, and whom it preempts.
    """
    from kpreempt.cli.answering import select_pods
    from kpreempt.scheduler_table import KUEUE

    if request.algorithm == KUEUE:
        from kpreempt.cli.pending_kueue import run_pending_workloads

        return run_pending_workloads(request)
    from kpreempt.cli.pending_run import run_pending

    selection = select_pods(request)
    _check(request)
    return run_pending(request, selection, wait)


def _check(request: PendingRequest) -> None:
    """Raise ``UsageError`` where the options contradict each other."""
    from kpreempt.cli.clusters import single_use_of_stdin
    from kpreempt.errors import UsageError

    files = request.node_changes.files
    single_use_of_stdin({"--snapshot": request.snapshots, "--add-node": files})
    if not request.watch:
        return
    if "-" in [*request.snapshots, *files]:
        raise UsageError("-w reads the snapshot again and again, and standard input can be read once only")
    if not 0 < request.interval <= _LONGEST_INTERVAL:
        problem = f"expected a number of seconds above 0, at most {_LONGEST_INTERVAL:,}"
        raise UsageError(f"--interval {request.interval:g}: {problem}", hint="--interval 5")
    for option, is_given in (("--strict", request.strict), ("--profile-json", request.profile_json is not None)):
        if is_given:
            raise UsageError(f"{option} is for one answer, and -w gives many")
