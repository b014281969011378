"""``kpreempt queue``: the scheduling queue, in its order, and what would move its pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from kpreempt.cli.options import After, AnswerRequest
from kpreempt.scheduler_table import KUBE_RANGE, LEGACY_ROWS

if TYPE_CHECKING:
    from datetime import datetime

    from kpreempt.cli.answering import Run
    from kpreempt.library.reading import LoadedCluster
    from kpreempt.library.schedulers import ConfiguredScheduler
    from kpreempt.model.wanted import Wanted
    from kpreempt.schedulers.interface import QueueRules
    from kpreempt.schedulers.queues import SchedulingQueue


class QueueRequest(AnswerRequest, without=["namespace", "all_namespaces", "selector", "algorithm", "policy_config"]):
    """What the options of ``kpreempt queue`` ask for."""

    algorithm: Annotated[
        str | None,
        Option(
            metavar="|".join(("auto", *(name for name, row in LEGACY_ROWS.items() if row.has_queue), KUBE_RANGE)),
            help="The queue of this scheduler (default: auto, that of the cluster's own version).",
        ),
    ] = None
    events: Annotated[
        str | None,
        After("snapshots"),
        Option(metavar="FILE", help="Apply these events, JSON lines or YAML, and show the queue after each."),
    ] = None


def queue(request: QueueRequest) -> int:
    """Show the scheduling queue: which pod is tried next, where the others wait, and what would move each.

    One screen; -v has every pod with the events that would move it, and with --events the queue after each.

    With --events, and neither --snapshot nor an option that names a live cluster, the cluster is empty at first. An
    event: {"time": "+5s", "event": "addPod", "pod": {...}}. The time is one of a clock, or counts from the event
    before. The others are updatePod, deletePod, bindPod, addNode, updateNode, deleteNode, changeObject, wait, and what
    the scheduler does: pop, unschedulable, nominate, clearNomination, moveAll, activate.
    """
    from functools import partial

    from kpreempt.analysis.algorithms import is_kube_algorithm
    from kpreempt.analysis.cluster_version import AUTO
    from kpreempt.analysis.queue.state import QueueQuestion, scheduling_queue
    from kpreempt.cli.answering import Run
    from kpreempt.cli.clusters import single_use_of_stdin
    from kpreempt.cli.queue_events import read_events
    from kpreempt.cli.workers import Spread
    from kpreempt.snapshot import object_decoder

    named = request.algorithm or AUTO
    if named != AUTO:
        _check_modelled(named)
    run = Run(request)
    asked = run.read_scheduler()
    single_use_of_stdin({"--snapshot": request.snapshots, "--events": [request.events] if request.events else []})
    now = run.now()
    loaded = _load(request, run, asked.wanted)
    configured = asked.on(loaded.cluster)
    scheduler = configured.scheduler
    algorithm = scheduler.algorithm
    _check_modelled(algorithm)
    at = run.time_of(loaded.cluster, now)
    question = QueueQuestion(
        algorithm=algorithm,
        make=partial(_make, algorithm, configured),
        scheduler_names=scheduler.scheduler_names,
        # No other queue asks which plugins refused a pod.
        scheduler=scheduler if is_kube_algorithm(algorithm) else None,
        at=at,
    )
    answer = scheduling_queue(
        loaded.cluster,
        question,
        # Read after the cluster, whose time is that of a first event which says none.
        read_events(request.events, at, request.intake) if request.events else [],
        object_decoder(scheduler.wanted),
        assumptions=[*configured.assumptions, *loaded.assumptions],
        spread=Spread(run.stopwatch, request.jobs),
        phases=run.stopwatch,
    )
    run.write_once(answer, answer.at)
    return run.exit_code(answer.assumptions)


def _check_modelled(algorithm: str) -> None:
    """Raise ``UsageError`` for an algorithm whose queue is not modelled."""
    from kpreempt.analysis.algorithms import has_queue
    from kpreempt.errors import UsageError
    from kpreempt.scheduler_table import QUEUE_ALGORITHMS

    if not has_queue(algorithm):
        raise UsageError(f"the queue of algorithm {algorithm!r} is not modelled", hint=", ".join(QUEUE_ALGORITHMS))


def _load(request: QueueRequest, run: Run, wanted: Wanted) -> LoadedCluster:
    """The cluster; an empty one where only events are given."""
    from kpreempt.library.reading import LoadedCluster
    from kpreempt.model.cluster import ClusterSnapshot

    if request.events and not request.snapshots and not request.connection.given():
        return LoadedCluster(ClusterSnapshot(), [])
    return run.load(run.connect(), wanted)


def _make(algorithm: str, configured: ConfiguredScheduler, started: datetime, rules: QueueRules) -> SchedulingQueue:
    from kpreempt.analysis.algorithms import queue_for
    from kpreempt.analysis.pending.states import max_backoff_of
    from kpreempt.model.durations import go_seconds

    initial = (configured.configuration or {}).get("podInitialBackoffSeconds")
    seconds = initial if isinstance(initial, int) and initial > 0 else 1
    return queue_for(
        algorithm,
        started,
        feature_gates=configured.feature_gates,
        initial_backoff=go_seconds(seconds),
        max_backoff=max_backoff_of(configured.configuration),
        rules=rules,
    )
