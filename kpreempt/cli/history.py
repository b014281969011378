"""What has happened: for whom a pod was evicted (``kpreempt who-preempted``), and what was recorded (``history``)."""

from __future__ import annotations

import msgspec

from kpreempt.analysis import preempted_by
from kpreempt.analysis.questions import pod_name
from kpreempt.cli.clusters import load_cluster, usual_namespace
from kpreempt.cli.requests import HistoryRequest, WhoPreemptedRequest
from kpreempt.cli.runner import Run
from kpreempt.errors import UsageError
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.snapshot.collect import Needs
from kpreempt.snapshot.recording.chronicle import Subject, history_of
from kpreempt.snapshot.recording.past import time_of_eviction
from kpreempt.snapshot.recording.segments import is_recording


def who_preempted(request: WhoPreemptedRequest) -> int:
    """Answer the request, and return the exit code."""
    name = pod_name(request.pod)
    run = Run(request)
    asked = run.read_scheduler()
    now = run.now()
    live = run.connect()
    namespace = request.namespace or usual_namespace(live)
    recording = next(filter(is_recording, request.snapshots), None)
    at = time_of_eviction(recording, namespace, name) if recording is not None and request.at is None else None
    cluster = run.load(live, Needs(wanted=asked.wanted, with_events=True), at=at).cluster
    answer = preempted_by.who_preempted(cluster, namespace, name)
    preemptors = [each.preemptor.pod for each in answer.preemptions if each.preemptor is not None]
    of_recording = [recording] if recording is not None and preemptors else []
    if before := request.before or of_recording:
        source = msgspec.structs.replace(
            run.source(None), paths=before, at=None if request.before else f"pod/{preemptors[0]}"
        )
        earlier = load_cluster(source, Needs(wanted=asked.wanted))
        # It was decided by the version of that time.
        configured = asked.on(earlier.cluster)
        # What plugins miss in a dump is part of the answer.
        answer = preempted_by.reconstruct(
            answer,
            cluster,
            earlier.cluster,
            configured.scheduler,
            now=now,
            version=configured.assumptions,
            assumptions=earlier.assumptions if asked.wanted else (),
        )
    run.write_once(answer, run.time_of(cluster, now))
    return 0


_KINDS = {
    "Pod": ("pod", "pods", "po"),
    "Node": ("node", "nodes", "no"),
    "PodDisruptionBudget": ("poddisruptionbudget", "poddisruptionbudgets", "pdb"),
}


def history(request: HistoryRequest) -> int:
    """Answer the request, and return the exit code."""
    kind_word, slash, name = request.subject.rpartition("/")
    kind = next((kind for kind, words in _KINDS.items() if kind_word.partition(".")[0].lower() in words), "")
    if slash and not kind:
        raise UsageError(f'"{request.subject[:100]}" is no pod, node or budget', hint="pod/NAME, node/NAME, pdb/NAME")
    if len(request.snapshots) != 1:
        raise UsageError("one recording is needed", hint="--snapshot DIR, of kpreempt record --to DIR")
    kind = kind or "Pod"
    namespace = "" if kind == "Node" else request.namespace or DEFAULT_NAMESPACE
    run = Run(request)
    answer = history_of(request.snapshots[0], Subject(kind, namespace, name))
    run.write_once(answer, answer.ends)
    return 0
