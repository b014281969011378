"""``kpreempt who-preempted``: for whom a pod was evicted, and why."""

from __future__ import annotations

import msgspec

from kpreempt.analysis import preempted_by
from kpreempt.analysis.questions import pod_name
from kpreempt.cli.clusters import load_cluster, usual_namespace
from kpreempt.cli.requests import WhoPreemptedRequest
from kpreempt.cli.runner import Run
from kpreempt.snapshot.collect import Needs
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
        assumptions = earlier.assumptions if asked.wanted else ()
        answer = preempted_by.reconstruct(
            answer,
            cluster,
            earlier.cluster,
            configured.scheduler,
            now=now,
            version=configured.assumptions,
            assumptions=assumptions,
        )
    run.write_once(answer, run.time_of(cluster, now))
    return 0
