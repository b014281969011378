"""Answering ``kpreempt pending --algorithm kueue-0.19``: the Workloads that wait for quota."""

from __future__ import annotations

from kpreempt.analysis.kueue.pending import pending_workloads
from kpreempt.cli.answering import Run
from kpreempt.cli.kueue_ground import read_ground, refuse_options, refuse_options_of_pods, select_workloads
from kpreempt.cli.pending import PendingRequest


def run_pending_workloads(request: PendingRequest) -> int:
    """Answer the request, and return the exit code."""
    refuse_options_of_pods(request)
    refuse_options({"-w": request.watch})
    is_asked = select_workloads(request)
    run = Run(request)
    ground = read_ground(run)
    with run.stopwatch.phase("session"):
        answer = pending_workloads(
            ground.objects, ground.config, now=ground.now, is_asked=is_asked, assumptions=ground.assumptions
        )
    run.write_once(answer, ground.now)
    return run.exit_code(answer.assumptions)
