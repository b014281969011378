"""How long pods of a change run that end by themselves: those of Jobs, and hooks.

Nothing says how long a Job takes. Its deadline bounds it, and is taken for all its pods, one round of them after the
other; without one they run for as long as the option says, or for a time that is guessed.
"""

from __future__ import annotations

import msgspec

from kpreempt.analysis.check.rollout.controller_inputs import number, part
from kpreempt.analysis.check.rollout.records import Plan, PlannedWorkload
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.simulation.cluster import OwnerKey
from kpreempt.analysis.simulation.stages import RunTime
from kpreempt.verdict import Assumption, AssumptionKind

USUAL_SECONDS = 600
# A deadline beyond this says nothing of how long a Job runs.
LONGEST_SECONDS = 7 * 24 * 3600
DEADLINE = "spec.activeDeadlineSeconds"


class RunTimes(msgspec.Struct, frozen=True):
    """The run times, by what manages the pods, and what is assumed by them."""

    run_times: dict[OwnerKey, RunTime]
    assumptions: list[Assumption]


def endings_of(plan: Plan) -> RunTimes:
    """Of all Jobs of a change that run, and of plain pods that are hooks. The Jobs of CronJobs run on."""
    never = plan.job_seconds == 0
    usual = plan.job_seconds or USUAL_SECONDS
    run_times: dict[OwnerKey, RunTime] = {}
    assumptions = []
    for workload in plan.workloads:
        if workload.kind != "Job" or workload.after is None or workload.change.object.startswith("CronJob "):
            continue
        deadline = _of_deadline(workload)
        if deadline is None and never:
            continue
        seconds = usual if deadline is None else deadline
        is_guess = deadline is None and plan.job_seconds is None
        run_times[workload.namespace, workload.kind, workload.name] = RunTime(seconds, is_guess)
        why = "by --job-duration" if deadline is None else "by its deadline"
        message = f"each of its pods is taken to end well after {_told(seconds)}, {why}"
        assumptions.append(Assumption(workload.change.object, DEADLINE, message, AssumptionKind.TOLD))
    for template in plan.pods:
        name = f"Pod {template.namespace}/{template.name}"
        if name in plan.order.hooks:
            run_times[template.namespace, "Pod", template.name] = RunTime(usual)
            message = f"a hook, taken to end well after {_told(usual)}, by --job-duration"
            assumptions.append(Assumption(name, DEADLINE, message, AssumptionKind.TOLD))
    return RunTimes(run_times, assumptions)


def seconds_in_all(plan: Plan) -> float:
    """How long all of them may take, one after the other."""
    run_times = endings_of(plan).run_times
    rounds = {(each.namespace, each.kind, each.name): _rounds(each.after) for each in plan.workloads if each.after}
    return sum(each.seconds * rounds.get(key, 1) for key, each in run_times.items())


def _of_deadline(workload: PlannedWorkload) -> float | None:
    deadline = part(workload.after, "spec", "activeDeadlineSeconds")
    if not isinstance(deadline, int) or isinstance(deadline, bool) or not 0 < deadline <= LONGEST_SECONDS:
        return None
    return deadline / _rounds(workload.after)


def _rounds(job: Document | None) -> int:
    """How many times as many pods as run side by side are needed."""
    if not isinstance(part(job, "spec", "completions"), int):
        return 1
    return max(-(-number(job, "spec", "completions") // max(number(job, "spec", "parallelism", default=1), 1)), 1)


def _told(seconds: float) -> str:
    """``10m``, ``1h30m``, ``20s``."""
    hours, rest = divmod(max(int(seconds), 1), 3600)
    minutes, rest = divmod(rest, 60)
    return "".join(f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number)
