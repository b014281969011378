"""Answering ``kpreempt queue``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from kpreempt.analysis.pending_states import max_backoff_of
from kpreempt.analysis.queue_state import QueueQuestion, scheduling_queue
from kpreempt.cli.answering import AnswerRequest, Asked, understand
from kpreempt.cli.clusters import LoadedCluster, live_connection, single_use_of_stdin
from kpreempt.cli.process import EXIT_GATE
from kpreempt.cli.profile import Stopwatch
from kpreempt.cli.queue_events import read_events
from kpreempt.cli.strictness import rests_on
from kpreempt.cli.workers import Spread
from kpreempt.errors import UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import DEFAULT_SCHEDULER_NAME
from kpreempt.schedulers.kube import parse_feature_gates
from kpreempt.schedulers.queues import QUEUE_ALGORITHMS, queue_for
from kpreempt.snapshot import decode_object

# The only queue that knows plugins, gates of today and a configuration.
_MODERN = "kube-1.36"
_LEGACY_GATES = ("PodPriority",)
_LEGACY_NAMES = frozenset((DEFAULT_SCHEDULER_NAME,))


class QueueRequest(AnswerRequest, frozen=True, kw_only=True):
    """What the options of ``kpreempt queue`` ask for."""

    algorithm: str
    events: str | None
    strict: bool
    jobs: int | None


def run_queue(request: QueueRequest) -> int:
    """Answer the request, and return the exit code."""
    stopwatch = Stopwatch()
    gates = _gates(request)
    is_modern = request.algorithm == _MODERN
    asked = understand(request if is_modern else msgspec.structs.replace(request, feature_gates=[]))
    single_use_of_stdin({"--snapshot": request.snapshots, "--events": [request.events] if request.events else []})
    now = asked.now()
    loaded = _load(request, asked, stopwatch)
    at = asked.time_of(loaded.cluster, now)
    # Read after the cluster, whose time is that of the first event which says none.
    events = read_events(request.events, at) if request.events else []
    configuration = asked.scheduler.configuration
    question = QueueQuestion(
        algorithm=request.algorithm,
        make=partial(_make, request.algorithm, gates, configuration),
        scheduler_names=asked.scheduler.scheduler.scheduler_names
        if is_modern
        else frozenset((DEFAULT_SCHEDULER_NAME,)),
        scheduler=asked.scheduler.scheduler if is_modern else None,
        at=at,
        now=now,
    )
    answer = scheduling_queue(
        loaded.cluster,
        question,
        events,
        decode_object,
        assumptions=loaded.assumptions,
        spread=Spread(stopwatch, request.jobs),
        phases=stopwatch,
    )
    asked.write_once(answer, answer.at, stopwatch)
    return EXIT_GATE if request.strict and rests_on(answer.assumptions) else 0


def _gates(request: QueueRequest) -> dict[str, bool]:
    """The feature gates that are set. Raises ``UsageError`` for what the algorithm does not know."""
    if request.algorithm not in QUEUE_ALGORITHMS:
        problem = f"the queue of algorithm {request.algorithm!r} is not modelled"
        raise UsageError(problem, hint=", ".join(QUEUE_ALGORITHMS))
    gates = {name: value for text in request.feature_gates for name, value in parse_feature_gates(text).items()}
    if request.algorithm == _MODERN:
        return gates
    if request.scheduler_config:
        raise UsageError(f"--scheduler-config is for {_MODERN}; the queue of {request.algorithm} has no configuration")
    unknown = [name for name in gates if name not in _LEGACY_GATES]
    if unknown:
        problem = f"--feature-gates: {unknown[0]} changes nothing about the queue of {request.algorithm}"
        raise UsageError(problem, hint=", ".join(_LEGACY_GATES))
    return gates


def _load(request: QueueRequest, asked: Asked, stopwatch: Stopwatch) -> LoadedCluster:
    """The cluster; an empty one where only events are given."""
    if request.events and not request.snapshots and not request.connection.given():
        return LoadedCluster(ClusterSnapshot(), [])
    return asked.load(live_connection(request.snapshots, request.connection), stopwatch)


def _make(algorithm: str, gates: Mapping[str, bool], configuration: Mapping[str, Any] | None, started: datetime) -> Any:
    initial = (configuration or {}).get("podInitialBackoffSeconds")
    seconds = initial if isinstance(initial, int) and initial > 0 else 1
    return queue_for(
        algorithm,
        started,
        feature_gates=gates,
        initial_backoff=timedelta(seconds=seconds),
        max_backoff=max_backoff_of(configuration),
    )
