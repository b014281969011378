"""The PodDisruptionBudgets and ResourceQuotas of a simulation.

Budgets are used up and recover as in the disruption controller, following ``pkg/controller/disruption/disruption.go``
(``updatePdbStatus``) of kube-controller-manager v1.36.3: a budget allows as many disruptions as it has healthy pods
beyond the desired number; pods that are being deleted are not healthy. Counts start from the initial status; the
desired number is recomputed when workloads change.

Quotas determine which pods are rejected, and when there is capacity again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import msgspec

from kpreempt.admission.resource_quotas import Amounts, QuotaCounts, changed, covers, rejection, usage_of
from kpreempt.controllers.actions import SyncError
from kpreempt.controllers.disruption import Scales, Selected, disruptions_allowed, failed_status, sync_budget
from kpreempt.eviction.records import StoredBudget
from kpreempt.eviction.subresource import failed_conditions, with_allowed_condition
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import SelectorIndex
from kpreempt.model.meta import OwnerReference, controller_of, grouped
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetStatus, check_selecting
from kpreempt.model.workloads import ResourceQuota
from kpreempt.verdict.simulation import BudgetMinimum, QuotaRejection


class Budgets:
    """All budgets, with the minimum of disruptions allowed so far; ``ready`` are the pods that are ready at the start.

    If no workload changes (``workloads_change``), their pods are not tracked.
    """

    def __init__(self, cluster: ClusterSnapshot, ready: Collection[str], *, workloads_change: bool = True) -> None:
        budgets = cluster.pod_disruption_budgets
        self._now = list(budgets)
        self._scales = Scales(cluster)
        self._ready = ready
        self._before = [budget.allowed for budget in budgets]
        self._minimum = list(self._before)
        self._violations = [0] * len(budgets)
        self._by_key = grouped(range(len(budgets)), lambda index: budgets[index].key)
        self._by_namespace = grouped(
            (index for index, budget in enumerate(budgets) if budget.spec.selector is not None),
            lambda index: budgets[index].metadata.namespace,
        )
        self._selectors = {
            namespace: SelectorIndex(selector for index in indexes if (selector := budgets[index].spec.selector))
            for namespace, indexes in self._by_namespace.items()
        }
        self._pods: list[dict[str, Pod]] = [{} for _ in budgets]
        self._owners: list[set[tuple[str, str]]] = [set() for _ in budgets]
        self._known: list[set[OwnerReference | None]] = [set() for _ in budgets]
        # Results for the budgets that were checked since their pods' owners changed.
        self._failures: dict[int, SyncError | None] = {}
        if budgets and workloads_change:
            for pod in cluster.pods:
                for index in self._of(pod):
                    self._add(index, pod)

    @property
    def now(self) -> list[PodDisruptionBudget]:
        """The current budgets in a new list, because a cached cluster compares its budgets with the next one."""
        return list(self._now)

    def of(self, pod: Pod) -> list[StoredBudget]:
        """The budgets that select the pod, as the API server stores them.

        Each has the condition set by its controller: whether disruptions are allowed, or why the sync failed.
        """
        found = []
        for index in self._of(pod):
            failure = self._failure(index)
            stored = StoredBudget(self._now[index])
            if failure is None:
                found.append(with_allowed_condition(stored, None))
            else:
                failed = msgspec.structs.replace(stored.budget, status=failed_status(stored.budget))
                found.append(StoredBudget(failed, failed_conditions(StoredBudget(failed), failure, None)))
        return found

    def _failure(self, index: int) -> SyncError | None:
        """Why the controller cannot compute the budget's status, if it cannot."""
        if index not in self._failures:
            budget = self._now[index]
            try:
                sync = sync_budget(
                    budget, Selected.among(list(self._pods[index].values())), self._scales.scale_of, None
                )
                self._failures[index] = None
                if budget.status is not None and budget.status.observed_generation < budget.metadata.generation:
                    # It was just changed, and its controller processes it now.
                    status = msgspec.structs.replace(sync.status, current_healthy=budget.status.current_healthy)
                    self._set(index, status)
            except SyncError as error:
                self._failures[index] = error
        return self._failures[index]

    def join(self, pod: Pod) -> None:
        """Record a new pod; the first one of an owner changes the number of pods that a budget expects."""
        for index in self._of(pod):
            if self._add(index, pod):
                self._recompute(index)

    def part(self, pod: Pod) -> None:
        """Record that a pod is gone."""
        for index in self._of(pod):
            self._pods[index].pop(pod.key, None)
            if self._failures.get(index) is not None:
                del self._failures[index]

    def change(self, pod: Pod, by: int) -> None:
        """Record that a pod became healthy (1) or unhealthy (-1)."""
        for index in self._of(pod):
            status = self._now[index].status
            if status is not None:
                self._set(index, msgspec.structs.replace(status, current_healthy=status.current_healthy + by))

    def recompute_all(self, owners: Iterable[tuple[str, str]], scales: Scales) -> None:
        """Recompute the budgets of resized workloads (kind and name)."""
        self._scales = scales
        self._failures.clear()
        changed_owners = set(owners)
        for index, own_owners in enumerate(self._owners):
            if own_owners & changed_owners:
                self._recompute(index)

    def broken_by(self, pods: Iterable[Pod]) -> dict[str, list[str]]:
        """For each pod, the budgets that do not allow its disruption after those of the pods before it in the list."""
        remaining: dict[int, int] = {}
        found: dict[str, list[str]] = {}
        for pod in pods:
            own = self._of(pod)
            for index in own:
                remaining[index] = remaining.get(index, self._now[index].allowed) - 1
            found[pod.key] = [self._now[index].key for index in own if remaining[index] < 0]
        return found

    def violated(self, keys: Collection[str]) -> None:
        """Record that an eviction violated these budgets."""
        for key in set(keys):
            for index in self._by_key.get(key, ()):
                self._violations[index] += 1

    def lows(self) -> list[BudgetMinimum]:
        """The budgets that changed."""
        return [
            BudgetMinimum(
                budget=budget.key,
                before=before,
                min=minimum,
                after=budget.allowed,
                violations=violations,
            )
            for budget, before, minimum, violations in zip(
                self._now, self._before, self._minimum, self._violations, strict=True
            )
            if minimum != before or violations or budget.allowed != before
        ]

    def _of(self, pod: Pod) -> list[int]:
        """The indexes of the budgets that select the pod."""
        namespace = pod.metadata.namespace
        if namespace not in self._selectors:
            return []
        indexes = self._by_namespace[namespace]
        found = self._selectors[namespace].matching(pod.metadata.labels)
        check_selecting(pod.key, len(found))
        return [indexes[each] for each in found]

    def _add(self, index: int, pod: Pod) -> bool:
        """Track a pod; returns whether it is the first of its owner."""
        self._pods[index][pod.key] = pod
        owner = controller_of(pod.metadata)
        # Another pod of a scalable owner cannot cause a failure.
        if owner not in self._known[index] or self._failures.get(index) is not None:
            self._known[index].add(owner)
            self._failures.pop(index, None)
        if owner is None or (owner.kind, owner.name) in self._owners[index]:
            return False
        self._owners[index].add((owner.kind, owner.name))
        return True

    def _recompute(self, index: int) -> None:
        budget = self._now[index]
        if budget.status is None:
            return
        try:
            sync = sync_budget(budget, Selected.among(list(self._pods[index].values())), self._scales.scale_of, None)
        except SyncError:
            self._set(index, failed_status(budget))
            return
        status = msgspec.structs.replace(
            budget.status, desired_healthy=sync.status.desired_healthy, expected_pods=sync.status.expected_pods
        )
        self._set(index, status)

    def _set(self, index: int, status: PodDisruptionBudgetStatus) -> None:
        allowed = disruptions_allowed(status.current_healthy, status.desired_healthy, status.expected_pods)
        status = msgspec.structs.replace(status, disruptions_allowed=allowed)
        self._now[index] = msgspec.structs.replace(self._now[index], status=status)
        self._minimum[index] = min(self._minimum[index], allowed)


class Quotas:
    """The usage of each quota as pods are created and deleted, without the controller's delay.

    ``has_capacity`` are namespaces in which pods were deleted, so that rejected pods may be retried.
    """

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._counts = QuotaCounts(cluster.pods)
        # Of the quotas that were needed so far.
        self._used: dict[int, Amounts] = {}
        self._quotas = grouped(enumerate(cluster.resource_quotas), lambda each: each[1].metadata.namespace)
        self.has_capacity: set[str] = set()
        self.rejections = 0
        # The first rejection of a workload's pods by a quota, and its time.
        self._first: dict[tuple[str, str], tuple[str, float]] = {}
        self._now: Counter[tuple[str, str]] = Counter()
        self._maximum: dict[tuple[str, str], int] = {}

    def begin(self) -> None:
        """Start counting the pods that are rejected together."""
        self._now.clear()

    def admit(self, pod: Pod) -> tuple[ResourceQuota | None, str]:
        """The quota that rejects the pod, with the API server's message, or nothing."""
        own = self._of(pod)
        usage = usage_of(pod) if own else {}
        for index, quota in own:
            message = rejection(quota, self._used[index], pod, usage)
            if message:
                return quota, message
        return None, ""

    def reject(self, workload: str, quota: ResourceQuota, message: str, at: float) -> bool:
        """Record a rejected pod; returns whether it is the first of that workload."""
        self.rejections += 1
        key = (workload, quota.key)
        self._now[key] += 1
        self._maximum[key] = max(self._maximum.get(key, 0), self._now[key])
        is_first = key not in self._first
        self._first.setdefault(key, (message, at))
        return is_first

    def count(self, pod: Pod, by: int) -> None:
        """Add (1) or remove (-1) a pod in the usage."""
        own = self._of(pod)
        usage = usage_of(pod) if own else {}
        for index, _ in own:
            self._used[index] = changed(self._used[index], usage, by)
        if own and by < 0:
            self.has_capacity.add(pod.metadata.namespace)

    def rejection_records(self, left: dict[str, int]) -> list[QuotaRejection]:
        """The rejections by workload and quota; ``left`` maps workloads to the pods they lack at the end."""
        return [
            QuotaRejection(
                workload=workload,
                quota=quota,
                message=message,
                pods=self._maximum[workload, quota],
                since=since,
                rejected_after=left.get(workload, 0),
            )
            for (workload, quota), (message, since) in self._first.items()
        ]

    def _of(self, pod: Pod) -> Sequence[tuple[int, ResourceQuota]]:
        quotas = self._quotas.get(pod.metadata.namespace, ())
        own = [(index, quota) for index, quota in quotas if covers(quota, pod)]
        for index, quota in own:
            if index not in self._used:
                self._used[index] = self._counts.used_of(quota)
        return own
