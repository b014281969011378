"""Answering ``kpreempt who-preempted``."""

from __future__ import annotations

from kpreempt.analysis.preemption_before import reconstruct
from kpreempt.analysis.subject import pod_name
from kpreempt.analysis.who_preempted import who_preempted
from kpreempt.cli.answering import AnswerRequest, understand
from kpreempt.cli.clusters import live_connection, load_cluster, single_use_of_stdin, usual_namespace
from kpreempt.cli.profile import Stopwatch


class WhoPreemptedRequest(AnswerRequest, frozen=True, kw_only=True):
    """What the options of ``kpreempt who-preempted`` ask for."""

    pod: str
    before: list[str]


def run_who_preempted(request: WhoPreemptedRequest) -> int:
    """Answer the request, and return the exit code."""
    stopwatch = Stopwatch()
    name = pod_name(request.pod)
    single_use_of_stdin({"--snapshot": request.snapshots, "--before": request.before})
    asked = understand(request)
    now = asked.now()
    live = live_connection(request.snapshots, request.connection)
    namespace = request.namespace or usual_namespace(live)
    cluster = asked.load(live, stopwatch, asked.wanted).cluster
    answer = who_preempted(cluster, namespace, name)
    if request.before:
        earlier = load_cluster(
            request.before, skip_bad_objects=request.skip_bad_objects, phases=stopwatch, wanted=asked.wanted
        )
        # What plugins miss in a dump is part of the answer.
        assumptions = earlier.assumptions if asked.wanted else ()
        answer = reconstruct(
            answer, cluster, earlier.cluster, asked.scheduler.scheduler, now=now, assumptions=assumptions
        )
    asked.write_once(answer, asked.time_of(cluster, now), stopwatch)
    return 0
