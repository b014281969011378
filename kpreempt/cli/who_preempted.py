"""``kpreempt who-preempted``: for whom a pod was evicted, and why."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from kpreempt.cli.options import AnswerRequest, AnyQueueingAlgorithm, PageOutputs


class WhoPreemptedRequest(
    AnswerRequest, without=["all_namespaces", "selector", "policy_config", "verbose", "strict", "jobs"]
):
    """What the options of ``kpreempt who-preempted`` ask for."""

    pod: Annotated[str, Argument(metavar="[pod/]POD", help="The pod that was preempted; it may be gone.")]
    namespace: Annotated[str | None, Option("-n", "--namespace", metavar="NS", help="Where the pod is, or was.")] = None
    algorithm: AnyQueueingAlgorithm = None
    outputs: PageOutputs = []
    before: Annotated[
        list[str],
        Option(metavar="PATH", help="A snapshot from before: explain the preemptor there. Repeatable; all are merged."),
    ] = []


def who_preempted(request: WhoPreemptedRequest) -> int:
    """Say which pod preempted a pod, and where the preemptor is now.

    The scheduler says it in an event, which the API server keeps for an hour by default. So the snapshot needs
    events: kubectl get nodes,pods,events -A -o yaml. With a snapshot from before (--before) the eviction
    is reconstructed: whether the preemptor preempts this pod there, and why. A recording has both, also when events
    and victim are long gone.

    With --algorithm kueue-0.19 it is about a Workload, whose conditions and events say for whom Kueue preempted it.
    """
    from kpreempt.scheduler_table import KUEUE

    if request.algorithm == KUEUE:
        from kpreempt.cli.standing_kueue import run_who_preempted_workload

        return run_who_preempted_workload(request)
    from kpreempt.analysis import preempted_by
    from kpreempt.analysis.subject import pod_name
    from kpreempt.cli.answering import Run
    from kpreempt.cli.clusters import load_cluster, single_use_of_stdin, usual_namespace
    from kpreempt.report.answers import PAGE_FORMATS
    from kpreempt.snapshot.recording.past import time_of_eviction
    from kpreempt.snapshot.recording.segments import is_recording

    name = pod_name(request.pod)
    single_use_of_stdin({"--snapshot": request.snapshots, "--before": request.before})
    run = Run(request, PAGE_FORMATS)
    asked = run.read_scheduler()
    now = run.now()
    live = run.connect()
    namespace = request.namespace or usual_namespace(live)
    recording = next(filter(is_recording, request.snapshots), None)
    at = time_of_eviction(recording, namespace, name) if recording is not None and request.at is None else None
    cluster = run.load(live, asked.wanted, at=at).cluster
    answer = preempted_by.who_preempted(cluster, namespace, name)
    preemptors = [each.preemptor.pod for each in answer.preemptions if each.preemptor is not None]
    of_recording = [recording] if recording is not None and preemptors else []
    if before := request.before or of_recording:
        earlier = load_cluster(
            before,
            at=None if request.before else f"pod/{preemptors[0]}",
            skip_bad_objects=request.skip_bad_objects,
            assume_none=request.assume_none,
            phases=run.stopwatch,
            wanted=asked.wanted,
            intake=request.intake,
        )
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
