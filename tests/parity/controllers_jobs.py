"""Jobs: the pods they create, delete and count, and how they finish."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any, Literal

import msgspec

from kpreempt.controllers.actions import (
    COMPLETION_INDEX_LABEL,
    JOB_FINALIZER,
    ControlledPod,
    CreatePods,
    DeletePod,
    ReleasePod,
    controlled_pod,
)
from kpreempt.controllers.job import Ending, FailureRule, JobState, JobStep, reconcile_job, total, with_indexes
from kpreempt.model.pod import Pod
from tests.parity.controllers_states import (
    Compared,
    Object,
    State,
    chance,
    metadata,
    ready_condition,
    seconds_ago,
    text_of,
)
from tests.parity.reference import Answer

NAME = "job"
# The condition of a Job that is going to finish, and its reason here.
ENDING_CONDITIONS: dict[Ending, str] = {"Failed": "FailureTarget", "Complete": "SuccessCriteriaMet"}
DRAWN_REASON = "Drawn"


def draw_job(random: Random, now: datetime) -> State:
    """A Job with running, finished and terminating pods, some of them already counted."""
    job = _job(random, now)
    drawn = [_pod(random, now, number, job.is_indexed) for number in range(random.choice([0, 1, 2, 3, 4, 6]))]
    pods, views = [pod for pod, _ in drawn], [view for _, view in drawn]
    request = {
        "controller": "Job",
        "now": text_of(now),
        "job": _object(job),
        "pods": pods,
        "failuresInARow": job.failures_in_a_row,
        "lastFailure": None if job.last_failure is None else text_of(job.last_failure),
    }
    return State(request, lambda answer: _compare(answer, reconcile_job(job, views, now)))


def _compare(answer: Answer, step: JobStep) -> Compared:
    words = sorted({type(action).__name__ for action in step.actions}) or ["nothing"]
    outcome = "+".join([*([step.job.ending] if step.job.ending else []), *words])
    ours = _ours(step)
    real = _real(answer["answer"])
    if step.retry_after is not None:
        # Upstream syncs at other times, too.
        ours["waits"] = True
        real["waits"] = step.retry_after.total_seconds() in answer["answer"]["after"]
    return Compared(real, ours, outcome)


def _real(answer: Object) -> dict[str, object]:
    status = answer["status"]
    reasons = {each["type"]: each["reason"] for each in status.get("conditions", []) if each["status"] == "True"}
    none: Ending = ""
    ending = next((ending for ending, condition in ENDING_CONDITIONS.items() if condition in reasons), none)
    return {
        "created": sorted(answer["created"]),
        "deleted": sorted(answer["deleted"]),
        # Upstream may remove the finalizer from a pod twice.
        "released": sorted(set(answer["released"])),
        "succeeded": status.get("succeeded", 0),
        "failed": status.get("failed", 0),
        "ending": ending,
        "reason": reasons[ENDING_CONDITIONS[ending]] if ending else "",
        "has ended": bool(reasons.keys() & {"Failed", "Complete"}),
    }


def _ours(step: JobStep) -> dict[str, object]:
    created: list[str] = []
    for action in step.actions:
        if isinstance(action, CreatePods):
            created += ["" if action.index is None else str(action.index)] * action.count
    return {
        "created": sorted(created),
        "deleted": sorted(action.name for action in step.actions if isinstance(action, DeletePod)),
        "released": sorted(action.name for action in step.actions if isinstance(action, ReleasePod)),
        "succeeded": step.job.succeeded,
        "failed": step.job.failed,
        "ending": step.job.ending,
        "reason": step.job.reason,
        "has ended": step.job.has_ended,
    }


def _job(random: Random, now: datetime) -> JobState:
    completions = random.choice([None, 0, 1, 2, 3, 5, 8])
    is_indexed = completions is not None and chance(random, 0.45)
    rules = _rules(random) if chance(random, 0.35) else None
    done: list[int] = []
    if is_indexed and completions:
        done = random.sample(range(completions), min(random.choice([0, 0, 1, 2]), completions))
    intervals = with_indexes((), done)
    endings: list[Ending] = ["Failed", "Complete"]
    ending = random.choice(endings) if chance(random, 0.1) else ""
    row = random.choice([0, 0, 0, 1, 2, 7])
    an_hour, half_a_minute = now - timedelta(hours=1), now - timedelta(seconds=30)
    return JobState(
        parallelism=random.randint(0, 4),
        completions=completions,
        is_indexed=is_indexed,
        is_suspended=chance(random, 0.1),
        backoff_limit=random.choice([0, 1, 2, 6, 6, 6]),
        active_deadline_seconds=random.choice([*[None] * 6, 30, 10000]),
        # A podFailurePolicy requires this.
        replaces_failed_only=rules is not None or chance(random, 0.25),
        failure_rules=rules,
        start_time=random.choice([None, an_hour, an_hour, half_a_minute]),
        succeeded=total(intervals) if is_indexed else random.choice([0, 0, 0, 1, 2]),
        failed=random.choice([0, 0, 1, 2]),
        completed_indexes=intervals,
        failures_in_a_row=row,
        last_failure=seconds_ago(random, now, 0, 5, 10, 15, 1000) if row else None,
        ending=ending,
        reason=DRAWN_REASON if ending else "",
    )


def _rules(random: Random) -> tuple[FailureRule, ...]:
    return tuple(_rule(random) for _ in range(random.randint(0, 3)))


def _rule(random: Random) -> FailureRule:
    actions: list[Literal["FailJob", "Ignore", "Count"]] = ["FailJob", "Ignore", "Count"]
    action = random.choice(actions)
    if chance(random, 0.6):
        return FailureRule(action, conditions=(random.choice([("DisruptionTarget", "True"), ("Odd", "False")]),))
    operators: list[Literal["In", "NotIn"]] = ["In", "NotIn"]
    return FailureRule(
        action,
        exit_code_operator=random.choice(operators),
        exit_codes=random.choice([(1,), (42, 143)]),
        container=random.choice(["", "main", "other"]),
    )


def _object(job: JobState) -> Object:
    labels = {"app": NAME}
    pod = {"restartPolicy": "Never", "containers": [{"name": "main"}]}
    spec: dict[str, Any] = {
        "parallelism": job.parallelism,
        "completions": job.completions,
        "completionMode": "Indexed" if job.is_indexed else "NonIndexed",
        "suspend": job.is_suspended,
        "backoffLimit": job.backoff_limit,
        "activeDeadlineSeconds": job.active_deadline_seconds,
        "podReplacementPolicy": "Failed" if job.replaces_failed_only else "TerminatingOrFailed",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    if job.failure_rules is not None:
        spec["podFailurePolicy"] = {"rules": [_rule_object(rule) for rule in job.failure_rules]}
    status = {
        "succeeded": job.succeeded,
        "failed": job.failed,
        "completedIndexes": ",".join(_interval(*interval) for interval in job.completed_indexes),
        "startTime": None if job.start_time is None else text_of(job.start_time),
    }
    if job.ending:
        condition = {"type": ENDING_CONDITIONS[job.ending], "status": "True", "reason": DRAWN_REASON}
        status["conditions"] = [condition]
    return {"metadata": metadata(NAME), "spec": spec, "status": status}


def _rule_object(rule: FailureRule) -> Object:
    if not rule.exit_code_operator:
        conditions = [{"type": type_, "status": status} for type_, status in rule.conditions]
        return {"action": rule.action, "onPodConditions": conditions}
    codes: Object = {"operator": rule.exit_code_operator, "values": list(rule.exit_codes)}
    if rule.container:
        codes["containerName"] = rule.container
    return {"action": rule.action, "onExitCodes": codes}


def _interval(first: int, last: int) -> str:
    """As upstream writes it: two adjacent indexes are listed."""
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def _pod(random: Random, now: datetime, number: int, is_indexed: bool) -> tuple[Object, ControlledPod]:
    phase = random.choice(["Running", "Running", "Running", "Pending", "Succeeded", "Failed"])
    is_terminating = chance(random, 0.2)
    # A pod that is neither finished nor terminating usually has its finalizer.
    is_under_way = phase in ("Running", "Pending") and not is_terminating
    is_tracked = chance(random, 0.98 if is_under_way else 0.8)
    created = now - timedelta(hours=random.randint(1, 3), seconds=number)
    pod: Object = {
        "metadata": metadata(f"p{number}", labels={"app": NAME}, creationTimestamp=text_of(created)),
        "spec": {"nodeName": "" if phase == "Pending" else "n"},
        "status": {
            "phase": phase,
            "conditions": [
                ready_condition(phase == "Running" and chance(random, 0.8), seconds_ago(random, now, 3, 60, 3600))
            ],
        },
    }
    if chance(random, 0.35):
        pod["status"]["conditions"].append({"type": "DisruptionTarget", "status": "True"})
    if is_tracked:
        pod["metadata"]["finalizers"] = [JOB_FINALIZER]
    if is_indexed and chance(random, 0.95):
        index = {COMPLETION_INDEX_LABEL: str(random.choice([0, 1, 2, 3, 4, 9]))}
        pod["metadata"]["annotations"] = index
        pod["metadata"]["labels"] |= index
    if is_terminating:
        pod["metadata"]["deletionTimestamp"] = text_of(seconds_ago(random, now, 0, 20))
        pod["metadata"]["deletionGracePeriodSeconds"] = random.choice([0, 30])
    view = controlled_pod(msgspec.convert(pod, Pod))
    if phase == "Failed" and chance(random, 0.6):
        # The model does not keep this.
        container, code = random.choice(["main", "other"]), random.choice([1, 42, 143, 0])
        finished = seconds_ago(random, now, 1, 5, 100)
        ended = {"terminated": {"exitCode": code, "finishedAt": text_of(finished)}}
        pod["status"]["containerStatuses"] = [{"name": container, "state": ended}]
        view = msgspec.structs.replace(view, exit_codes=((container, code),), finished_at=finished)
    return pod, view
