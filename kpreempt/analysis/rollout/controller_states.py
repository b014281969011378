"""From workloads as plain data to what their controllers look at."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from kpreempt.analysis.document_reader import Document
from kpreempt.controllers.deployment_records import DeploymentState
from kpreempt.controllers.job_records import FailureRule, JobState
from kpreempt.model.meta import Time

_FAILURE_ACTIONS = ("FailJob", "FailIndex", "Ignore", "Count")


def part(document: Document | None, *path: str) -> Any:
    """What is at a path of a document; ``None`` where there is nothing, or something else on the way."""
    value: Any = document
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def number(document: Document | None, *path: str, default: int = 0) -> int:
    """A number at a path."""
    value = part(document, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def text(document: Document | None, *path: str) -> str:
    """A text at a path."""
    value = part(document, *path)
    return value if isinstance(value, str) else ""


def time(document: Document | None, *path: str) -> datetime | None:
    """A time at a path."""
    try:
        return msgspec.convert(part(document, *path), Time | None)
    except msgspec.ValidationError:
        return None


def deployment_state(document: Document) -> DeploymentState:
    """Of a Deployment with the API's defaults."""
    spec = document["spec"]
    rolling = part(spec, "strategy", "rollingUpdate")
    is_recreate = text(spec, "strategy", "type") == "Recreate"
    return DeploymentState(
        replicas=number(spec, "replicas", default=1),
        strategy="Recreate" if is_recreate else "RollingUpdate",
        max_surge=amount(rolling, "maxSurge", "25%"),
        max_unavailable=amount(rolling, "maxUnavailable", "25%"),
        paused=part(spec, "paused") is True,
    )


def job_state(after: Document, before: Document | None) -> JobState:
    """Of a Job with the API's defaults, and of what its status says of the past."""
    spec, status = after["spec"], part(before, "status")
    completions = part(spec, "completions")
    ending = _ending(status)
    deadline = part(spec, "activeDeadlineSeconds")
    return JobState(
        parallelism=number(spec, "parallelism", default=1),
        completions=completions if isinstance(completions, int) else None,
        is_indexed=text(spec, "completionMode") == "Indexed",
        is_suspended=part(spec, "suspend") is True,
        backoff_limit=number(spec, "backoffLimit", default=6),
        active_deadline_seconds=deadline if isinstance(deadline, int) else None,
        replaces_failed_only=text(spec, "podReplacementPolicy") == "Failed",
        failure_rules=_failure_rules(spec),
        start_time=time(status, "startTime"),
        succeeded=number(status, "succeeded"),
        failed=number(status, "failed"),
        completed_indexes=_intervals(text(status, "completedIndexes")),
        ending="Complete" if ending == "Complete" else "Failed" if ending == "Failed" else "",
        has_ended=bool(ending),
    )


def amount(rolling: Document | None, key: str, default: int | str) -> int | str:
    """An amount of a strategy: a number of pods or a percentage."""
    value = part(rolling, key)
    return value if isinstance(value, (int, str)) and not isinstance(value, bool) else default


def _ending(status: Document | None) -> str:
    conditions = part(status, "conditions")
    for condition in conditions if isinstance(conditions, list) else []:
        if part(condition, "status") == "True" and part(condition, "type") in ("Complete", "Failed"):
            return str(condition["type"])
    return ""


def _failure_rules(spec: Document) -> tuple[FailureRule, ...] | None:
    rules = part(spec, "podFailurePolicy", "rules")
    if not isinstance(rules, list):
        return None
    return tuple(_failure_rule(rule) for rule in rules if text(rule, "action") in _FAILURE_ACTIONS)


def _failure_rule(rule: Document) -> FailureRule:
    codes, conditions = part(rule, "onExitCodes"), part(rule, "onPodConditions")
    values = part(codes, "values")
    return FailureRule(
        action=rule["action"],
        conditions=tuple(
            (text(each, "type"), text(each, "status") or "True")
            for each in (conditions if isinstance(conditions, list) else [])
        ),
        exit_code_operator="" if codes is None else "NotIn" if text(codes, "operator") == "NotIn" else "In",
        exit_codes=tuple(each for each in (values if isinstance(values, list) else []) if isinstance(each, int)),
        container=text(codes, "containerName"),
    )


def _intervals(indexes: str) -> tuple[tuple[int, int], ...]:
    """``1,3-5`` as intervals; what cannot be read is left out."""
    found = []
    for each in indexes.split(",")[:10_000]:
        first, _, last = each.partition("-")
        if first.isascii() and first.isdecimal() and len(each) < 24 and (last or first).isdecimal():
            found.append((int(first), int(last or first)))
    return tuple(found)
