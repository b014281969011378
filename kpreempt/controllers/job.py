"""The pods that a Job creates and deletes next, and when it has finished.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/job/job_controller.go`` (``syncJob``, ``manageJob``,
``trackJobStatusAndRemoveFinalizers``, ``isPodFailed``), ``pod_failure_policy.go`` (``matchPodFailurePolicy``),
``indexed_job_utils.go`` and ``backoff_utils.go``.

A preempted pod gets the condition DisruptionTarget and is terminating. By default it counts as failed at that moment,
is replaced after the backoff (ten seconds for the first failure, in parallel with its grace period), and its exit code
no longer matters. With a podFailurePolicy or podReplacementPolicy Failed it counts once it has ended, and a rule may
ignore it; if it succeeds, it counts as a success.

Omitted: limits per index, success policies, Jobs managed by another controller, and container restarts, which count
toward the backoff limit with restart policy OnFailure. Difference: a pod is counted and released in one step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from kpreempt.controllers.actions import (
    DEFAULT_RULES,
    Action,
    ControlledPod,
    ControllerRules,
    CreatePods,
    DeletePod,
    ReleasePod,
    active_pods,
)
from kpreempt.controllers.deployment import in_deletion_order

BURST = 500
FIRST_BACKOFF = timedelta(seconds=10)
LONGEST_BACKOFF = timedelta(minutes=10)
_SECOND = timedelta(seconds=1)


class JobStep(msgspec.Struct, frozen=True):
    """The actions, the Job with its next status, and the delay until the next action, if known."""

    actions: list[Action]
    job: JobState
    retry_after: timedelta | None = None


def reconcile_job(job: JobState, pods: Sequence[ControlledPod], now: datetime) -> JobStep:
    """Return the controller's next actions for the Job's ``pods``, including finished ones that are not counted yet."""
    if job.has_ended:
        return JobStep(actions=[], job=job)
    start = None if job.is_suspended else job.start_time or now
    return _Sync(msgspec.structs.replace(job, start_time=start), pods, now).step()


class _Sync:
    def __init__(self, job: JobState, pods: Sequence[ControlledPod], now: datetime) -> None:
        self._now = now
        self._pods = pods
        self._active = active_pods(pods)
        self._terminating = [pod for pod in pods if pod.is_terminating and not pod.has_finished]
        countable = [pod for pod in pods if pod.is_tracked and (not job.is_indexed or _is_index(pod.index, job))]
        succeeded = [pod for pod in countable if pod.phase == "Succeeded"]
        failed = [pod for pod in countable if job.has_failed(pod)]
        indexes = with_indexes(job.completed_indexes, (pod.index for pod in succeeded if pod.index is not None))
        # The pods that failed since the last success, including ignored ones, and the time of the last failure.
        failures = [pod.finished_at or pod.created or now for pod in failed]
        row, last = job.failures_in_a_row, job.last_failure
        if succeeded:
            last_success = max(pod.finished_at or pod.created or now for pod in succeeded)
            failures = [time for time in failures if time > last_success]
            row, last = 0, None
        self._job = msgspec.structs.replace(
            job,
            succeeded=total(indexes) if job.is_indexed else job.succeeded + len(succeeded),
            failed=job.failed + sum(job.is_counted(pod) for pod in failed),
            completed_indexes=indexes if job.is_indexed else job.completed_indexes,
            failures_in_a_row=row + len(failures),
            last_failure=max(failures, default=last),
        )

    def step(self) -> JobStep:
        job = self._job
        ending, reason = (job.ending, job.reason) if job.ending else self._failure()
        if ending:
            actions: list[Action] = [DeletePod(pod.name, "job-finished") for pod in self._active]
            return self._end(ending, reason, actions)
        actions, retry_after = self._manage()
        left = len(self._active) + sum(
            action.count if isinstance(action, CreatePods) else -isinstance(action, DeletePod) for action in actions
        )
        enough = job.succeeded > 0 if job.completions is None else job.succeeded >= job.completions
        if enough and left == 0:
            return self._end("Complete", "CompletionsReached", actions)
        ended = (pod for pod in self._pods if pod.is_tracked and (pod.phase == "Succeeded" or job.has_failed(pod)))
        return JobStep([*actions, *(ReleasePod(pod.name) for pod in ended)], job, retry_after)

    def _failure(self) -> tuple[Ending, str]:
        job = self._job
        if any(job.has_failed(pod) and job.action_on(pod) == "FailJob" for pod in self._pods):
            return "Failed", "PodFailurePolicy"
        if job.failed > job.backoff_limit:
            return "Failed", "BackoffLimitExceeded"
        deadline = job.active_deadline_seconds
        if deadline is not None and job.start_time is not None and (self._now - job.start_time) // _SECOND >= deadline:
            return "Failed", "DeadlineExceeded"
        return "", ""

    def _end(self, ending: Ending, reason: str, actions: list[Action]) -> JobStep:
        """Finish the Job: once its terminating pods are gone, or at once."""
        job = self._job
        waits = job.rules.keeps_jobs_until_their_pods_end
        released = {action.name for action in actions if isinstance(action, ReleasePod)}
        tracked = [pod for pod in self._pods if pod.is_tracked and pod.name not in released]
        if ending == "Failed" or not waits:
            # Pods that have not ended count as failed, too; failed ones are already counted.
            lost = [pod for pod in tracked if pod.phase != "Succeeded" and not job.has_failed(pod)]
            failed = sum(job.is_counted(pod) for pod in lost if not job.is_indexed or _is_index(pod.index, job))
            job = msgspec.structs.replace(job, failed=job.failed + failed)
        deleted = any(isinstance(action, DeletePod) for action in actions)
        job = msgspec.structs.replace(
            job, ending=ending, reason=reason, has_ended=not (waits and (self._terminating or deleted))
        )
        return JobStep(actions=[*actions, *(ReleasePod(pod.name) for pod in tracked)], job=job)

    def _manage(self) -> tuple[list[Action], timedelta | None]:
        """Return pods to delete or create, and the delay before creating if there is one."""
        job = self._job
        if job.is_suspended:
            return self._removal(len(self._active), "job-suspended"), None
        if job.completions is not None:
            desired = max(min(job.completions - job.succeeded, job.parallelism), 0)
        else:
            desired = len(self._active) if job.succeeded > 0 else job.parallelism
        going = self._removal(len(self._active) - desired, "scale-down")
        if going:
            return going, None
        count = desired - len(self._active) - (len(self._terminating) if job.waits_for_the_end else 0)
        if count <= 0:
            return [], None
        if job.failures_in_a_row and job.last_failure is not None:
            # The exponent is bounded: far fewer doublings reach the maximum delay.
            wait = min(FIRST_BACKOFF * 2 ** min(job.failures_in_a_row - 1, 10), LONGEST_BACKOFF)
            left = wait - (self._now - job.last_failure)
            if left > timedelta(0):
                return [], left
        count = min(count, BURST)
        if not job.is_indexed:
            return [CreatePods(count=count)], None
        holding = [*self._active, *(self._terminating if job.waits_for_the_end else ())]
        taken = with_indexes(job.completed_indexes, (pod.index for pod in holding if pod.index is not None))
        return [CreatePods(index=index) for index in first_missing(taken, count, job.completions or 0)], None

    def _removal(self, least: int, reason: Literal["scale-down", "job-suspended"]) -> list[Action]:
        """Return at least ``least`` active pods to delete, including those with a wrong or duplicate index."""
        going: list[ControlledPod] = []
        staying = self._active
        if self._job.is_indexed:
            by_index: dict[int, list[ControlledPod]] = {}
            for pod in self._active:
                if pod.index is not None and _is_index(pod.index, self._job):
                    by_index.setdefault(pod.index, []).append(pod)
                else:
                    going.append(pod)
            ordered = [in_deletion_order(by_index[index]) for index in sorted(by_index)]
            going += (pod for same in ordered for pod in same[:-1])
            staying = [same[-1] for same in ordered]
        going += in_deletion_order(staying)[: max(least - len(going), 0)]
        # Their finalizer is removed first, so they are not counted.
        return [
            action
            for pod in (going if reason == "job-suspended" else going[:BURST])
            for action in ((ReleasePod(pod.name),) if pod.is_tracked else ()) + (DeletePod(pod.name, reason),)
        ]


def _is_index(index: int | None, job: JobState) -> bool:
    return index is not None and 0 <= index < (job.completions or 0)


Ending = Literal["", "Complete", "Failed"]
_Intervals = tuple[tuple[int, int], ...]


class FailureRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule of a Job's podFailurePolicy, on conditions (types with their status) or on exit codes.

    ``exit_code_operator`` is empty for a rule on conditions; an empty ``container`` means any.
    """

    action: Literal["FailJob", "FailIndex", "Ignore", "Count"]
    conditions: tuple[tuple[str, str], ...] = ()
    exit_code_operator: Literal["", "In", "NotIn"] = ""
    exit_codes: tuple[int, ...] = ()
    container: str = ""

    def matches(self, pod: ControlledPod) -> bool:
        """Return whether the rule matches a failed pod."""
        if not self.exit_code_operator:
            return any(condition in self.conditions for condition in pod.conditions)
        return any(
            code != 0
            and self.container in ("", name)
            and (code in self.exit_codes) == (self.exit_code_operator == "In")
            for name, code in pod.exit_codes
        )


class JobState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a Job that the controller reads, and its status, which each step passes to the next.

    ``completions`` is ``None`` for a Job that succeeds with its first success. ``replaces_failed_only`` means that its
    podReplacementPolicy is Failed. ``failure_rules`` is ``None`` without a podFailurePolicy.

    ``succeeded`` and ``failed`` are the pods counted so far, and ``completed_indexes`` the intervals of indexes.
    ``failures_in_a_row`` since the last success delay the next pods. ``ending`` is how the Job is going to finish,
    ``reason`` why, and ``has_ended`` whether it has finished, including its last pod. ``rules`` are those of the
    version.
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
    rules: ControllerRules = DEFAULT_RULES

    @property
    def waits_for_the_end(self) -> bool:
        """Whether pods are replaced and counted only once they have ended, instead of when they are deleted."""
        return self.replaces_failed_only or self.failure_rules is not None

    def has_failed(self, pod: ControlledPod) -> bool:
        """Return whether ``pod`` counts as failed: by its phase, or because it was deleted before it ended."""
        if pod.phase == "Failed":
            return True
        return not self.waits_for_the_end and pod.is_terminating and pod.phase != "Succeeded"

    def action_on(self, pod: ControlledPod) -> str:
        """Return the action of the first rule that matches a failed ``pod``; empty if none does.

        FailIndex is only for per-index limits.
        """
        return next((rule.action for rule in self.failure_rules or () if rule.matches(pod)), "")

    def is_counted(self, pod: ControlledPod) -> bool:
        """Return whether a failed ``pod`` counts toward the backoff limit."""
        return self.action_on(pod) != "Ignore"


def total(intervals: _Intervals) -> int:
    """Return the number of indexes in ``intervals``."""
    return sum(last - first + 1 for first, last in intervals)


def with_indexes(intervals: _Intervals, indexes: Iterable[int]) -> _Intervals:
    """Add indexes to ``intervals``, merging adjacent ones."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted([*intervals, *((index, index) for index in indexes)]):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def first_missing(intervals: _Intervals, count: int, end: int) -> list[int]:
    """Return the first ``count`` indexes below ``end`` that are not in ``intervals``, in order."""
    missing: list[int] = []
    start = 0
    for first, last in (*intervals, (end, end)):
        missing.extend(range(start, min(first, end, start + count - len(missing))))
        start = max(start, last + 1)
    return missing
