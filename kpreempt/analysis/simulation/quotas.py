"""The ResourceQuotas of a simulation: what they let be made, what they refuse, and when there is room again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from kpreempt.admission.resource_quotas import Amounts, QuotaCounts, changed, covers, refusal, usage_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import ResourceQuota
from kpreempt.verdict.simulation import Refusal


class _Refused(NamedTuple):
    """The first refusal of a workload's pods by one quota."""

    message: str
    since: float


class Quotas:
    """What each quota has used, as pods come and go; what their controller does takes no time here.

    A namespace ``has_room`` again once a pod is gone from it, so that whoever was refused may try again.
    """

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._counts = QuotaCounts(cluster.pods)
        # Of those that were asked about a pod so far.
        self._used: dict[int, Amounts] = {}
        self._quotas: dict[str, list[tuple[int, ResourceQuota]]] = {}
        for index, quota in enumerate(cluster.resource_quotas):
            self._quotas.setdefault(quota.metadata.namespace, []).append((index, quota))
        self.has_room: set[str] = set()
        self.refusals = 0
        self._first: dict[tuple[str, str], _Refused] = {}
        self._now: Counter[tuple[str, str]] = Counter()
        self._most: dict[tuple[str, str], int] = {}

    def begin(self) -> None:
        """Somebody begins to make pods: how many are refused together counts from here."""
        self._now.clear()

    def ask(self, pod: Pod) -> tuple[ResourceQuota | None, str]:
        """The quota that does not let the pod be created, with the API server's words, or nothing."""
        own = self._of(pod)
        usage = usage_of(pod) if own else {}
        for index, quota in own:
            message = refusal(quota, self._used[index], pod, usage)
            if message:
                return quota, message
        return None, ""

    def refuse(self, workload: str, quota: ResourceQuota, message: str, at: float) -> bool:
        """Note that a pod is refused; whether this is the first of that workload."""
        self.refusals += 1
        key = (workload, quota.key)
        self._now[key] += 1
        self._most[key] = max(self._most.get(key, 0), self._now[key])
        is_first = key not in self._first
        self._first.setdefault(key, _Refused(message, at))
        return is_first

    def join(self, pod: Pod) -> None:
        """A pod is made."""
        self._count(pod, 1)

    def part(self, pod: Pod) -> None:
        """A pod is gone."""
        if self._count(pod, -1):
            self.has_room.add(pod.metadata.namespace)

    def change(self, old: Pod, new: Pod) -> None:
        """A pod has ended."""
        self._count(new, 1)
        self.part(old)

    def told(self, left: dict[str, int]) -> list[Refusal]:
        """What was refused, of whom, and by what; ``left`` are the pods that workloads lack in the end."""
        return [
            Refusal(
                workload=workload,
                quota=quota,
                message=first.message,
                pods=self._most[workload, quota],
                since=first.since,
                left=left.get(workload, 0),
            )
            for (workload, quota), first in self._first.items()
        ]

    def _of(self, pod: Pod) -> Sequence[tuple[int, ResourceQuota]]:
        there = self._quotas.get(pod.metadata.namespace, ())
        own = [(index, quota) for index, quota in there if covers(quota, pod)]
        for index, quota in own:
            if index not in self._used:
                self._used[index] = self._counts.used_of(quota)
        return own

    def _count(self, pod: Pod, by: int) -> bool:
        """Whether any quota counts it."""
        own = self._of(pod)
        usage = usage_of(pod) if own else {}
        for index, _ in own:
            self._used[index] = changed(self._used[index], usage, by)
        return bool(own)
