"""What the Job controller looks at, and what a failed pod means to it.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/job/pod_failure_policy.go`` (``matchPodFailurePolicy``) and
``job_controller.go`` (``isPodFailed``).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from kpreempt.controllers.pods import ControlledPod
from kpreempt.controllers.rules import USUAL, ControllerRules

Ending = Literal["", "Complete", "Failed"]
_Intervals = tuple[tuple[int, int], ...]


class FailureRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule of a Job's podFailurePolicy, over conditions (types with their status) or over exit codes.

    ``exit_code_operator`` is empty for a rule over conditions; an empty ``container`` means any.
    """

    action: Literal["FailJob", "FailIndex", "Ignore", "Count"]
    conditions: tuple[tuple[str, str], ...] = ()
    exit_code_operator: Literal["", "In", "NotIn"] = ""
    exit_codes: tuple[int, ...] = ()
    container: str = ""

    def matches(self, pod: ControlledPod) -> bool:
        """Whether the rule is about a pod that failed like this one."""
        if not self.exit_code_operator:
            return any(condition in self.conditions for condition in pod.conditions)
        return any(
            code != 0
            and self.container in ("", name)
            and (code in self.exit_codes) == (self.exit_code_operator == "In")
            for name, code in pod.exit_codes
        )


class JobState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the controller looks at in a Job, and what its status says, which a step hands on to the next.

    ``completions`` is ``None`` for a Job that is done with its first success. ``replaces_failed_only`` is whether its
    podReplacementPolicy is Failed. ``failure_rules`` is ``None`` where there is no podFailurePolicy.

    ``succeeded`` and ``failed`` are the pods counted so far, and ``completed_indexes`` the indexes, from and to.
    ``failures_in_a_row`` since the last success put off the next pods. ``ending`` is how the Job is going to end,
    ``reason`` why, and ``has_ended`` whether it has, with its last pod. ``rules`` are those of the version.
    """

    parallelism: int = 1
    completions: int | None = 1
    is_indexed: bool = False
    is_suspended: bool = False
    backoff_limit: int = 6
    active_deadline_seconds: int | None = None
    replaces_failed_only: bool = False
    failure_rules: tuple[FailureRule, ...] | None = None
    start_time: datetime | None = None
    succeeded: int = 0
    failed: int = 0
    completed_indexes: _Intervals = ()
    failures_in_a_row: int = 0
    last_failure: datetime | None = None
    ending: Ending = ""
    reason: str = ""
    has_ended: bool = False
    rules: ControllerRules = USUAL

    @property
    def waits_for_the_end(self) -> bool:
        """Whether pods are replaced, and counted, only once they have ended, and not already when they were told to."""
        return self.replaces_failed_only or self.failure_rules is not None

    def has_failed(self, pod: ControlledPod) -> bool:
        """Whether ``pod`` counts as failed: by its phase, or because it was deleted before it could end by itself."""
        if pod.phase == "Failed":
            return True
        return not self.waits_for_the_end and pod.is_terminating and pod.phase != "Succeeded"

    def action_on(self, pod: ControlledPod) -> str:
        """The action of the first rule about a failed ``pod``, or an empty text. FailIndex is for limits per index."""
        return next((rule.action for rule in self.failure_rules or () if rule.matches(pod)), "")

    def is_counted(self, pod: ControlledPod) -> bool:
        """Whether a failed ``pod`` counts towards the backoff limit."""
        return self.action_on(pod) != "Ignore"


def total(intervals: _Intervals) -> int:
    """How many indexes there are in ``intervals``."""
    return sum(last - first + 1 for first, last in intervals)


def with_indexes(intervals: _Intervals, indexes: Iterable[int]) -> _Intervals:
    """``intervals`` with some more indexes, in order, and as few as possible."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted([*intervals, *((index, index) for index in indexes)]):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def first_missing(intervals: _Intervals, count: int, end: int) -> list[int]:
    """The first ``count`` indexes below ``end`` that are not in ``intervals``, which are in order."""
    missing: list[int] = []
    start = 0
    for first, last in (*intervals, (end, end)):
        missing.extend(range(start, min(first, end, start + count - len(missing))))
        start = max(start, last + 1)
    return missing
