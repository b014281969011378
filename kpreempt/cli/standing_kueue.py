"""Answering ``at-risk`` and ``who-preempted`` with ``--algorithm kueue-0.19``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpreempt.analysis.kueue.threats import who_preempted_workload, workloads_at_risk
from kpreempt.cli.answering import Run
from kpreempt.cli.explain_kueue import workload_named
from kpreempt.cli.kueue_ground import read_ground, refuse_options, refuse_options_of_pods, select_workloads

if TYPE_CHECKING:
    from kpreempt.cli.at_risk import AtRiskRequest
    from kpreempt.cli.who_preempted import WhoPreemptedRequest


def run_workloads_at_risk(request: AtRiskRequest) -> int:
    """Answer the request, and return the exit code."""
    refuse_options_of_pods(request)
    is_asked = select_workloads(request)
    run = Run(request)
    ground = read_ground(run)
    everywhere = request.namespace or request.all_namespaces
    with run.stopwatch.phase("session"):
        answer = workloads_at_risk(
            ground.objects,
            ground.config,
            now=ground.now,
            is_asked=lambda each: is_asked(each) and bool(everywhere or each.metadata.namespace == ground.namespace),
            limit=request.limit,
            assumptions=ground.assumptions,
        )
    run.write_once(answer, ground.now)
    return run.exit_code(answer.assumptions)


def run_who_preempted_workload(request: WhoPreemptedRequest) -> int:
    """Answer the request, and return the exit code."""
    refuse_options_of_pods(request)
    refuse_options({"--before": request.before, "--scheduler-config": request.scheduler_config})
    run = Run(request)
    ground = read_ground(run, reads_configuration=False, with_events=True)
    answer = who_preempted_workload(workload_named(request.pod, ground), ground.objects)
    run.write_once(answer, ground.now)
    return 0
