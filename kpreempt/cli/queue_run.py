"""Answering ``kpreempt queue``."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from kpreempt.analysis.algorithms import DEFAULT_ALGORITHM, QUEUE_ALGORITHMS, queue_for
from kpreempt.analysis.pending_states import max_backoff_of
from kpreempt.analysis.queue_state import QueueQuestion, scheduling_queue
from kpreempt.cli.answering import AnswerRequest, Asked, understand
from kpreempt.cli.clusters import LoadedCluster, live_connection, single_use_of_stdin
from kpreempt.cli.profile import Stopwatch
from kpreempt.cli.queue_events import read_events
from kpreempt.cli.schedulers import ConfiguredScheduler
from kpreempt.cli.strictness import strict_exit_code
from kpreempt.cli.workers import Spread
from kpreempt.errors import UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.queue_rules import QueueRules
from kpreempt.schedulers.queues import SchedulingQueue
from kpreempt.snapshot import object_decoder


class QueueRequest(AnswerRequest, frozen=True, kw_only=True):
    """What the options of ``kpreempt queue`` ask for."""

    events: str | None
    strict: bool
    jobs: int | None


def run_queue(request: QueueRequest) -> int:
    """Answer the request, and return the exit code."""
    stopwatch = Stopwatch()
    algorithm = request.algorithm or DEFAULT_ALGORITHM
    if algorithm not in QUEUE_ALGORITHMS:
        raise UsageError(f"the queue of algorithm {algorithm!r} is not modelled", hint=", ".join(QUEUE_ALGORITHMS))
    asked = understand(request)
    single_use_of_stdin({"--snapshot": request.snapshots, "--events": [request.events] if request.events else []})
    now = asked.now()
    loaded = _load(request, asked, stopwatch)
    at = asked.time_of(loaded.cluster, now)
    scheduler = asked.scheduler.scheduler
    question = QueueQuestion(
        algorithm=algorithm,
        make=partial(_make, algorithm, asked.scheduler),
        scheduler_names=scheduler.scheduler_names,
        # No other queue asks which plugins refused a pod.
        scheduler=scheduler if algorithm == DEFAULT_ALGORITHM else None,
        at=at,
    )
    answer = scheduling_queue(
        loaded.cluster,
        question,
        # Read after the cluster, whose time is that of a first event which says none.
        read_events(request.events, at) if request.events else [],
        object_decoder(asked.wanted),
        assumptions=loaded.assumptions,
        spread=Spread(stopwatch, request.jobs),
        phases=stopwatch,
    )
    asked.write_once(answer, answer.at, stopwatch)
    return strict_exit_code(answer.assumptions, is_strict=request.strict)


def _load(request: QueueRequest, asked: Asked, stopwatch: Stopwatch) -> LoadedCluster:
    """The cluster; an empty one where only events are given."""
    if request.events and not request.snapshots and not request.connection.given():
        return LoadedCluster(ClusterSnapshot(), [])
    return asked.load(live_connection(request.snapshots, request.connection), stopwatch, asked.wanted)


def _make(algorithm: str, configured: ConfiguredScheduler, started: datetime, rules: QueueRules) -> SchedulingQueue:
    initial = (configured.configuration or {}).get("podInitialBackoffSeconds")
    seconds = initial if isinstance(initial, int) and initial > 0 else 1
    return queue_for(
        algorithm,
        started,
        feature_gates=configured.feature_gates,
        initial_backoff=timedelta(seconds=seconds),
        max_backoff=max_backoff_of(configured.configuration),
        rules=rules,
    )
