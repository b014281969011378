"""``kpreempt at-risk``: which running pods would be evicted, and for whom."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from kpreempt.cli.options import After, AnswerRequest, AnyQueueingAlgorithm


class AtRiskRequest(AnswerRequest, without=["jobs"]):
    """What the options of ``kpreempt at-risk`` ask for."""

    namespace: Annotated[
        str | None, Option("-n", "--namespace", metavar="NS", help="Pods of this namespace (default: default).")
    ] = None
    algorithm: AnyQueueingAlgorithm = None
    limit: Annotated[
        int,
        After("selector"),
        Option(metavar="NUMBER", min=1, help="Show at most so many pods, the most threatened first."),
    ] = 10


def at_risk(request: AtRiskRequest) -> int:
    """Say which pending pods would preempt running ones, and the lowest priority of a new pod that would.

    Found by running the scheduler's decision: on each pending pod, and on new pods of typical size, of the running
    pod's own size, and of that and all that is free beside it, at each priority that makes a difference. One screen; -v
    has every threat, the budgets and the whole order of preemption.

    With --algorithm kueue-0.19 it is about Workloads with quota: which Workloads that wait would preempt them, by which
    rule, and what of their quota is borrowed, so that others may reclaim it.
    """
    from kpreempt.scheduler_table import KUEUE

    if request.algorithm == KUEUE:
        from kpreempt.cli.standing_kueue import run_workloads_at_risk

        return run_workloads_at_risk(request)
    from kpreempt.analysis.at_risk import pods_at_risk
    from kpreempt.cli.answering import Run, select_pods
    from kpreempt.cli.clusters import single_use_of_stdin, usual_namespace

    selection = select_pods(request)
    single_use_of_stdin({"--snapshot": request.snapshots})
    run = Run(request)
    asked = run.read_scheduler()
    now = run.now()
    live = run.connect()
    if not request.namespace and not request.all_namespaces:
        selection = selection._replace(namespace=usual_namespace(live))
    loaded = run.load(live, asked.wanted)
    configured = asked.on(loaded.cluster)
    answer = pods_at_risk(
        loaded.cluster,
        configured.scheduler,
        now=now,
        at=run.time_of(loaded.cluster, now),
        is_asked=selection.has,
        limit=request.limit,
        assumptions=[*configured.assumptions, *loaded.assumptions],
        phases=run.stopwatch,
    )
    run.write_once(answer, now)
    return run.exit_code(answer.assumptions)
