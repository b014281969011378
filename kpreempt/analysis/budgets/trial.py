"""Proves remedies for findings about PodDisruptionBudgets (PDBs).

With the edits of a remedy, and once the disruption controller has computed the statuses, the finding must be gone, no
finding of the same or a higher severity may be new, no PDB may allow fewer disruptions than before, now and with all
pods ready, and no pod may lose its last PDB. If evictions are rejected because of the finding, the API server must also
accept the eviction of one of the pods once all pods are ready; of each of them, if they had several PDBs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec

from kpreempt.admission import fill_budget_statuses
from kpreempt.analysis.budgets.findings import MinimumSizes, audit_specs, unprotected_workloads
from kpreempt.analysis.budgets.protection import Protection, Workloads
from kpreempt.analysis.check.rollout.autoscalers import Autoscaler
from kpreempt.analysis.check.rollout.kinds import CLUSTER_KINDS
from kpreempt.analysis.pod_selection import PodSelection
from kpreempt.analysis.remedies.edits import edited
from kpreempt.analysis.remedies.search import Candidate
from kpreempt.controllers.actions import is_ready
from kpreempt.controllers.replacement import is_replaced, replacement_of
from kpreempt.eviction.records import ACCEPTED, StoredBudget
from kpreempt.eviction.subresource import answer_eviction
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of, replace_in
from kpreempt.model.pod import Pod, PodCondition
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.verdict.budgets import Finding, FindingId, Severity
from kpreempt.verdict.remedies import ChangeKind, ObjectEdit, Remedy

_BUDGET = "PodDisruptionBudget"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEVER = frozenset({FindingId.NEVER_ALLOWS, FindingId.MIN_AVAILABLE_ABOVE_PODS})
# Findings because of which the API server rejects evictions.
_BLOCKING = NEVER | {
    FindingId.OVERLAP,
    FindingId.NO_SCALE,
    FindingId.INVALID_AMOUNT,
    FindingId.UNMANAGED_PODS,
    FindingId.ALLOWS_NONE_NOW,
}
# The most pods that a workload is assumed to lack.
_MOST_MISSING = 1000


class Trial:
    """Tries remedies for one finding in the part of a cluster that matters for it."""

    def __init__(
        self,
        cluster: ClusterSnapshot,
        finding: Finding,
        minimum_sizes: MinimumSizes,
        autoscalers: Mapping[str, Autoscaler],
    ) -> None:
        """``autoscalers`` are by workload; ``minimum_sizes`` are the minimums that they set."""
        self._cluster, self._finding, self._minimum_sizes = cluster, finding, minimum_sizes
        self._scalers = {each.name: (workload, each) for workload, each in autoscalers.items()}
        self._before = _State(cluster, minimum_sizes)

    def proven(self, candidate: Candidate) -> tuple[Remedy, Sequence[PodDisruptionBudget]] | None:
        """The candidate as a remedy, and the PDBs with it; ``None`` if it does not help or makes something worse."""
        after = self._after(candidate)
        remedy = self._remedy(candidate, after)
        return (remedy, after.budgets) if remedy is not None else None

    def _remedy(self, candidate: Candidate, after: _State) -> Remedy | None:
        if any(each.field.endswith("unhealthyPodEvictionPolicy") for each in candidate.changes):
            # It only affects pods that are not ready: the others still cannot be evicted.
            pods = self._finding.pods
            is_of_use = any(after.accepts(pod) and not self._before.accepts(pod) for pod in pods)
            return candidate.remedy(solves=False) if is_of_use and not self._is_worse(after) else None
        if self._is_still_there(after) or self._is_worse(after) or self._is_weaker(candidate, after):
            return None
        return candidate.remedy() if self._lets_pods_go(after) else None

    def _after(self, candidate: Candidate) -> _State:
        cluster, sizes = edited(self._cluster, candidate.edits), {**self._minimum_sizes}
        names = {each.object for each in candidate.edits}
        scaled = [each for each in candidate.edits if "replicas" in (each.patch.get("spec") or {})]
        for edit in (each for each in candidate.edits if each.object in self._scalers):
            workload, scaler = self._scalers[edit.object]
            sizes[scaler.target] = edit.patch["spec"]["minReplicas"]
            scaled.append(ObjectEdit(workload, {"spec": {"replicas": sizes[scaler.target]}}))
        cluster = _scaled(cluster, scaled)
        is_repaired = any(each.kind in (ChangeKind.REPAIR, ChangeKind.PLACE) for each in candidate.changes)
        if is_repaired:
            unready = {*self._finding.pods}
            pods = [_running(each) if each.metadata.name in unready else each for each in cluster.pods]
            cluster = msgspec.structs.replace(cluster, pods=pods)
        budgets = [
            msgspec.structs.replace(each, status=None)
            if scaled or is_repaired or f"{_BUDGET} {each.key}" in names
            else each
            for each in cluster.pod_disruption_budgets
        ]
        filled, _ = fill_budget_statuses(msgspec.structs.replace(cluster, pod_disruption_budgets=budgets))
        return _State(filled, sizes)

    def _is_still_there(self, after: _State) -> bool:
        kinds = NEVER if self._finding.id in NEVER else {self._finding.id}
        return any((kind, self._finding.subject) in after.findings for kind in kinds)

    def _is_worse(self, after: _State) -> bool:
        before = self._before
        for key, severity in after.findings.items():
            old = before.findings.get(key)
            if (
                old != severity
                and severity.rank <= self._finding.severity.rank
                and (old is None or severity.rank < old.rank)
            ):
                return True
        is_less = any(
            after.allowed[key] < allowed or after.allowed_if_ready[key] < before.allowed_if_ready[key]
            for key, allowed in before.allowed.items()
            if key in after.allowed
        )
        return is_less or not before.selected_by.keys() <= after.selected_by.keys() or self._is_emptied(after)

    def _is_emptied(self, after: _State) -> bool:
        """Whether a PDB that selected pods no longer selects any, though it still exists."""
        old, new = ({key for keys in each.selected_by.values() for key in keys} for each in (self._before, after))
        return not old & after.allowed.keys() <= new

    def _is_weaker(self, candidate: Candidate, after: _State) -> bool:
        """Whether the deletion of one of several PDBs leaves the pods with one that allows more than the strictest."""
        if not any(each.deletes for each in candidate.edits):
            return False
        # A PDB that never allows a disruption protects nothing: it has to be changed anyway.
        strictest = {
            key: max(min(self._before.allowed_if_ready[each] for each in budgets), 1)
            for key, budgets in self._before.selected_by.items()
        }
        return any(
            min(after.allowed_if_ready[each] for each in budgets) > strictest[key]
            for key, budgets in after.selected_by.items()
        )

    def _lets_pods_go(self, after: _State) -> bool:
        """Whether pods can be evicted if the finding is about that."""
        finding = self._finding
        if finding.id not in _BLOCKING:
            return True
        if finding.id is FindingId.OVERLAP:
            return all(map(after.if_ready.accepts, finding.pods))
        own = f"{finding.namespace}/{finding.subject.partition(' ')[2]}"
        pods = [key.partition("/")[2] for key, budgets in after.selected_by.items() if own in budgets]
        return not pods or any(after.if_ready.accepts(pod) for pod in pods if after.if_ready.has(pod))


class _State:
    """A cluster, whose PDBs have a status, as seen by the audit and by the API server."""

    def __init__(self, cluster: ClusterSnapshot, minimum_sizes: MinimumSizes) -> None:
        self._cluster, self._minimum_sizes = cluster, minimum_sizes

    @property
    def budgets(self) -> Sequence[PodDisruptionBudget]:
        """The PDBs."""
        return self._cluster.pod_disruption_budgets

    @cached_property
    def findings(self) -> dict[tuple[FindingId, str], Severity]:
        """The severity of each finding, by kind and subject."""
        cluster = self._cluster
        found = [each for item in audit_specs(cluster, self._minimum_sizes) for each in item.findings]
        found += unprotected_workloads(cluster, self._protection, Workloads(cluster), PodSelection())
        return {(each.id, each.subject): each.severity for each in found}

    @cached_property
    def allowed(self) -> dict[str, int]:
        """The disruptions that each PDB allows once its controller has computed its status."""
        return {each.key: each.allowed for each in _synced(self._cluster).pod_disruption_budgets}

    @cached_property
    def allowed_if_ready(self) -> dict[str, int]:
        """The same if all pods were ready."""
        return self.if_ready.allowed

    @cached_property
    def if_ready(self) -> _State:
        """The cluster when all desired pods exist and are ready."""
        return _State(_synced(_ready(self._cluster)), self._minimum_sizes)

    @cached_property
    def selected_by(self) -> dict[str, list[str]]:
        """The PDBs of each pod that has one."""
        found = {pod.key: [each.key for each in self._protection.budgets_of(pod.key)] for pod in self._cluster.pods}
        return {key: budgets for key, budgets in found.items() if budgets}

    @cached_property
    def _protection(self) -> Protection:
        return Protection(self._cluster)

    @cached_property
    def _pods(self) -> dict[str, Pod]:
        return {pod.metadata.name: pod for pod in self._cluster.pods}

    def has(self, name: str) -> bool:
        """Whether the pod exists."""
        return name in self._pods

    def accepts(self, name: str) -> bool:
        """Whether the API server accepts the eviction of the pod; one that was replaced is not evicted."""
        pod = self._pods.get(name)
        budgets = map(StoredBudget, self._protection.budgets_of(pod.key) if pod is not None else ())
        return pod is None or answer_eviction(name, pod, budgets, _EPOCH) == ACCEPTED


def one_more(pod: Pod, index: int) -> Pod | None:
    """One more pod of the workload that the pod belongs to, pending; ``None`` if no controller creates it."""
    owner = controller_of(pod.metadata)
    new = replacement_of(pod, suffix=f"new{index}", uid=f"new{index}", now=_EPOCH)
    if new is None or owner is None or owner.kind != "StatefulSet":
        return new
    return replace_in(new, "metadata", name=f"{owner.name}-{index}")


def _running(pod: Pod) -> Pod:
    others = [each for each in pod.status.conditions if each.type != "Ready"]
    return replace_in(pod, "status", phase="Running", conditions=[*others, PodCondition("Ready", "True")])


def _synced(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """The cluster after the disruption controller has computed every status."""
    budgets: list[PodDisruptionBudget] = [
        msgspec.structs.replace(each, status=None) for each in cluster.pod_disruption_budgets
    ]
    filled, _ = fill_budget_statuses(msgspec.structs.replace(cluster, pod_disruption_budgets=budgets))
    return filled


def _ready(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """The cluster when its workloads have all their pods, and every pod is ready."""
    staying = [_running(pod) for pod in cluster.pods if pod.metadata.deletion_timestamp is None]
    known = {pod.key for pod in staying}
    workloads = Workloads(cluster)
    # Pods of DaemonSets and Jobs are replaced, too.
    staying += [
        _running(replace_in(pod, "metadata", deletion_timestamp=None))
        for pod in cluster.pods
        if pod.key not in known and is_replaced(pod) and workloads.of(pod).replicas is None
    ]
    missing: dict[str, int] = {}
    example: dict[str, Pod] = {}
    for pod in cluster.pods:
        workload = workloads.of(pod)
        if workload.replicas is not None:
            missing[workload.name] = missing.get(workload.name, workload.replicas) - (pod.key in known)
            example[workload.name] = pod
    for name, number in missing.items():
        new = [one_more(example[name], index) for index in range(1000, 1000 + min(number, _MOST_MISSING))]
        staying += [_running(pod) for pod in new if pod is not None]
    return msgspec.structs.replace(cluster, pods=staying)


def _replicas(workload: Any) -> int:
    return 1 if workload.spec.replicas is None else int(workload.spec.replicas)


def _scaled(cluster: ClusterSnapshot, edits: Sequence[ObjectEdit]) -> ClusterSnapshot:
    """The cluster after controllers created the pods of enlarged workloads.

    A new pod becomes ready if the existing pods of its workload are ready.
    """
    for edit in edits:
        kind, _, key = edit.object.partition(" ")
        size = edit.patch["spec"]["replicas"]
        field = CLUSTER_KINDS[kind].field
        resized = [
            replace_in(each, "spec", replicas=max(size, _replicas(each)))
            if f"{each.metadata.namespace}/{each.metadata.name}" == key
            else each
            for each in getattr(cluster, field)
        ]
        cluster = msgspec.structs.replace(cluster, **{field: resized})
        workloads = Workloads(cluster)
        name = f"{kind} {key.partition('/')[2]}"
        pods = [pod for pod in cluster.pods if workloads.of(pod).name == name]
        staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        new = [one_more(pods[0], index) for index in range(len(staying), size)] if pods else []
        if all(map(is_ready, staying)):
            new = [_running(pod) for pod in new if pod is not None]
        cluster = msgspec.structs.replace(cluster, pods=[*cluster.pods, *(pod for pod in new if pod is not None)])
    return cluster
