"""Determines which evictions are permanently rejected, and why: the PDB that rejects them, and what it lacks."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.analysis.drain.kubectl import RejectedEviction, SimulatedDrain
from kpreempt.analysis.remedies.owners import Owners
from kpreempt.analysis.simulation.cluster import is_serving
from kpreempt.controllers.actions import SyncError
from kpreempt.controllers.disruption import Candidates, Scales, sync_budget
from kpreempt.eviction.records import TOO_MANY_REQUESTS
from kpreempt.eviction.subresource import is_of_terminating_namespace
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kpreempt.verdict.drain import BlockedEviction, BlockReason

# Custom resources whose controllers treat nodes like those of Kubernetes do: Argo Rollouts, OpenShift and OpenKruise.
_LIKE_DEPLOYMENTS = ("Rollout", "DeploymentConfig", "CloneSet")
_CLOUD_NATIVE_PG = "postgresql.cnpg.io/"
_Key = tuple[str, tuple[str, ...], BlockReason, str]


def blocked_evictions(drain: SimulatedDrain) -> list[BlockedEviction]:
    """The blocked evictions at the end of a run, by node and budgets, without remedies."""
    began = {work.node: work.began or 0.0 for work in drain.works}
    found = [
        BlockedEviction(
            node=node, reason=BlockReason.OPTION_REQUIRED, pods=pods, message=f"cannot delete {text}", since=began[node]
        )
        for node, text, pods in drain.unchosen
    ]
    if drain.rejected_evictions:
        end_state = _EndState(drain)
        groups: dict[_Key, list[RejectedEviction]] = {}
        for each in drain.rejected_evictions:
            budgets = budgets_selecting(drain.after, each.pod)
            key = (
                each.node,
                tuple(budget.key for budget in budgets),
                end_state.reason(each, budgets),
                each.answer.message,
            )
            groups.setdefault(key, []).append(each)
        found += [end_state.record_of(node, reason, own) for (node, _, reason, _), own in groups.items()]
    late: dict[str, list[str]] = {}
    for node, pod in drain.late:
        late.setdefault(node, []).append(pod)
    found += [BlockedEviction(node=node, reason=BlockReason.TIMED_OUT, pods=pods) for node, pods in late.items()]
    order = {work.node: index for index, work in enumerate(drain.works)}
    return sorted(found, key=lambda each: (order[each.node], each.since, each.pods))


class _EndState:
    """The cluster at the end, from the perspective of its PDBs."""

    def __init__(self, drain: SimulatedDrain) -> None:
        self._after = drain.after
        self._candidates = Candidates(drain.after.pods)
        self._scales = Scales(drain.after)
        self._owners = Owners(drain.after)
        self._messages = {each.pod: each.message for each in drain.simulation.pending}

    def reason(self, refused: RejectedEviction, budgets: Sequence[PodDisruptionBudget]) -> BlockReason:
        """Why the pod cannot be evicted."""
        if is_of_terminating_namespace(refused.answer):
            return BlockReason.TERMINATING
        if len(budgets) > 1:
            return BlockReason.MULTIPLE_BUDGETS
        if refused.answer.status != TOO_MANY_REQUESTS or not budgets:
            return BlockReason.OTHER
        budget = budgets[0]
        selected = self._candidates.of(budget)
        try:
            sync_budget(budget, selected, self._scales.scale_of, None)
        except SyncError:
            return BlockReason.NO_SCALE
        status = budget.status or PodDisruptionBudgetStatus()
        desired_pods = self._desired_pods(budget, selected.pods)
        if status.desired_healthy >= desired_pods:
            return BlockReason.SINGLE_REPLICA if desired_pods == 1 else BlockReason.NEVER_ALLOWS
        if any(map(_is_pending, selected.pods)):
            return BlockReason.PODS_PENDING
        if any(map(_is_unready, selected.pods)):
            return BlockReason.PODS_NOT_READY
        return BlockReason.TOO_FEW_PODS

    def record_of(self, node: str, reason: BlockReason, own: Sequence[RejectedEviction]) -> BlockedEviction:
        """The record for rejections of one kind."""
        budgets = budgets_selecting(self._after, own[0].pod)
        answer = own[0].answer
        manager = next(filter(None, (operator_of(self._owners, each.pod) for each in own)), "")
        causes = answer.details.causes if answer.details is not None else ()
        selected = [pod for budget in budgets for pod in self._candidates.of(budget).pods]
        pending = list(dict.fromkeys(pod.key for pod in selected if _is_pending(pod)))
        status = budgets[0].status if budgets else None
        status = status or PodDisruptionBudgetStatus()
        return BlockedEviction(
            node=node,
            reason=reason,
            pods=[each.pod.key for each in own],
            budgets=[budget.key for budget in budgets],
            workloads=list(dict.fromkeys(self._owners.workload_of(each.pod) for each in own)),
            message=answer.message,
            cause=causes[0].message if causes else "",
            current_healthy=status.current_healthy,
            desired_healthy=status.desired_healthy,
            expected_pods=self._desired_pods(budgets[0], selected) if budgets else 0,
            pending=pending,
            pending_message=next((self._messages[key] for key in pending if self._messages.get(key)), ""),
            unready=list(dict.fromkeys(pod.key for pod in selected if _is_unready(pod))),
            since=min(each.since for each in own),
            manager=manager,
            advice=_operator_advice(manager, own[0].pod) if manager else "",
        )

    def _desired_pods(self, budget: PodDisruptionBudget, pods: Sequence[Pod]) -> int:
        """The desired pods: the budget's expected pods or, if ``minAvailable`` is a number, the existing pods."""
        existing = sum(pod.is_active for pod in pods)
        status = budget.status or PodDisruptionBudgetStatus()
        return existing if isinstance(budget.spec.min_available, int) else max(status.expected_pods, 0)


def operator_of(owners: Owners, pod: Pod) -> str:
    """The custom resource whose operator may move the pod when its node is cordoned; empty if there is none."""
    manager = owners.manager_of_pod(pod)
    return "" if manager.partition(" ")[0] in _LIKE_DEPLOYMENTS else manager


def _operator_advice(manager: str, pod: Pod) -> str:
    """How to move a pod of an operator's custom resource: changes to the pod or its budget do not last."""
    owner = controller_of(pod.metadata)
    if owner is not None and owner.api_version.startswith(_CLOUD_NATIVE_PG):
        return (
            "Switch over if the pod is the primary, or set spec.nodeMaintenanceWindow.inProgress: true or"
            f" spec.enablePDB: false in {manager}; its operator reverts changes to its PodDisruptionBudgets."
        )
    return f"Move the pod through {manager}; its operator may revert changes to the pod and its PodDisruptionBudgets."


def budgets_selecting(cluster: ClusterSnapshot, pod: Pod) -> list[PodDisruptionBudget]:
    """The budgets in the pod's namespace that select it."""
    return [
        each
        for each in cluster.pod_disruption_budgets
        if each.metadata.namespace == pod.metadata.namespace
        and each.spec.selector is not None
        and each.spec.selector.is_valid()
        and each.spec.selector.matches(pod.metadata.labels)
    ]


def _is_pending(pod: Pod) -> bool:
    return not pod.spec.node_name and pod.is_active


def _is_unready(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and pod.is_active and not is_serving(pod)
