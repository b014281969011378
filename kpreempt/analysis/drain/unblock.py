"""Determines why evictions are permanently rejected, and the smallest changes that unblock them.

The reason names the PDB that rejects them, and why it cannot allow another disruption. Each remedy is verified by
simulating the drain with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from kpreempt.analysis.check.rollout.kinds import CLUSTER_KINDS
from kpreempt.analysis.drain.kubectl import RejectedEviction, SimulatedDrain
from kpreempt.analysis.nodes.copies import Copier, with_nodes
from kpreempt.analysis.simulation.cluster import Workloads, is_serving
from kpreempt.controllers.actions import SyncError
from kpreempt.controllers.disruption import (
    Candidates,
    Scales,
    disruptions_allowed,
    failed_status,
    sync_budget,
)
from kpreempt.controllers.replacement import replacement_of
from kpreempt.eviction.records import TOO_MANY_REQUESTS
from kpreempt.eviction.subresource import is_of_terminating_namespace
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of, replace_in
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kpreempt.verdict.drain import BlockedEviction, BlockReason, DrainRemedy, DrainRemedyAction

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BUDGET = "PodDisruptionBudget"
# Limits of the search for remedies: the number of simulations, and their decisions times nodes in total.
_MAX_TRIALS = 16
_MIN_TRIALS = 2
_MAX_DECISIONS = 2_000_000
_SHOWN = 2
_OPTIONS = {
    "DaemonSet-managed Pods": "--ignore-daemonsets",
    "Pods with local storage": "--delete-emptydir-data",
    "Pods that declare no controller": "--force",
}
_SIZED = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")


class Changed(msgspec.Struct, frozen=True):
    """A change, the cluster with it, and the pods to create first."""

    unblock: DrainRemedy
    cluster: ClusterSnapshot
    arriving: Sequence[Pod] = ()


# Drains a changed cluster, after creating some pods, with an additional option of kubectl if not empty.
Simulate = Callable[[ClusterSnapshot, Sequence[Pod], str], SimulatedDrain]


class DrainVariant(msgspec.Struct, frozen=True):
    """How to simulate the drain again: the function, the time, and the names of nodes that are added later."""

    simulate: Simulate
    now: datetime
    future_names: Sequence[str] = ()


def with_remedies(
    blocked: Sequence[BlockedEviction], cluster: ClusterSnapshot, shown: SimulatedDrain, variant: DrainVariant
) -> tuple[list[BlockedEviction], int]:
    """Add remedies to the blocked evictions; also returns the number of evictions that could not be examined."""
    decisions = max(shown.decisions * len(cluster.nodes), 1)
    trials_left = max(_MIN_TRIALS, min(_MAX_TRIALS, _MAX_DECISIONS // decisions))
    known: dict[object, list[DrainRemedy]] = {}
    found, untried = [], 0
    for each in blocked:
        key = (each.reason, *each.budgets) if each.budgets else (each.reason, each.message.partition(":")[0])
        if key not in known:
            remedies: list[DrainRemedy] = []
            for changed in _candidates(each, cluster, variant):
                if len(remedies) == _SHOWN:
                    break
                if not trials_left:
                    untried += 1
                    break
                trials_left -= 1
                option = changed.unblock.target if changed.unblock.action is DrainRemedyAction.OPTION else ""
                drain = variant.simulate(changed.cluster, changed.arriving, option)
                if _helps(each, drain):
                    pending = sum(each.was_running for each in drain.simulation.pending)
                    remedies.append(
                        msgspec.structs.replace(changed.unblock, finishes=drain.is_drained, pending_after=pending)
                    )
            # The number of pods pending afterwards matters more than the size of the change.
            known[key] = sorted(remedies, key=lambda unblock: unblock.pending_after)
        found.append(msgspec.structs.replace(each, remedies=known[key]))
    return found, untried


def _helps(blocked: BlockedEviction, drain: SimulatedDrain) -> bool:
    """Whether the pods are no longer blocked, and their node's drain starts."""
    pods = set(blocked.pods)
    refused = {each.pod.key for each in drain.rejected_evictions}
    refused |= {
        pod for _, _, unchosen in drain.unchosen if blocked.reason is BlockReason.OPTION_REQUIRED for pod in unchosen
    }
    work = next(each for each in drain.works if each.node == blocked.node)
    if work.began is None or pods & refused:
        return False
    # If another option is also missing, no pod is evicted yet.
    return blocked.reason is BlockReason.OPTION_REQUIRED or not pods & set(work.remaining)


def _candidates(blocked: BlockedEviction, cluster: ClusterSnapshot, variant: DrainVariant) -> Iterator[Changed]:
    """The changes that may help, the smallest first."""
    reason = blocked.reason
    if reason is BlockReason.OPTION_REQUIRED:
        for text, option in _OPTIONS.items():
            if text in blocked.message:
                yield Changed(DrainRemedy(action=DrainRemedyAction.OPTION, target=option), cluster)
        return
    budgets = [each for each in cluster.pod_disruption_budgets if each.key in blocked.budgets]
    if reason is BlockReason.MULTIPLE_BUDGETS:
        for each in budgets:
            remaining = [other for other in cluster.pod_disruption_budgets if other.key != each.key]
            unblock = DrainRemedy(action=DrainRemedyAction.DELETE, target=f"{_BUDGET} {each.key}")
            yield Changed(unblock, msgspec.structs.replace(cluster, pod_disruption_budgets=remaining))
    if len(budgets) != 1:
        return
    budget = budgets[0]
    pods = {pod.key: pod for pod in cluster.pods}
    if reason is BlockReason.PODS_PENDING:
        node = next(each for each in cluster.nodes if each.name == blocked.node)
        added = Copier(cluster, now=variant.now, taken=variant.future_names).like(node, 1)
        yield Changed(
            DrainRemedy(action=DrainRemedyAction.ADD_NODE, target=f"Node {blocked.node}"), with_nodes(cluster, added)
        )
    if reason is BlockReason.PODS_NOT_READY and set(blocked.pods) <= set(blocked.unready):
        yield _with_spec(cluster, budget, "unhealthyPodEvictionPolicy", "AlwaysAllow")
    if reason is BlockReason.SINGLE_REPLICA:
        yield from _scaled(cluster, pods.get(blocked.pods[0]))
    yield from _loosened(cluster, budget, blocked)
    if reason is BlockReason.NEVER_ALLOWS:
        yield from _scaled(cluster, pods.get(blocked.pods[0]))


def _loosened(cluster: ClusterSnapshot, budget: PodDisruptionBudget, blocked: BlockedEviction) -> Iterator[Changed]:
    """Let the budget allow one disruption more than the number of missing pods."""
    if blocked.reason is BlockReason.NO_SCALE:
        yield _with_spec(cluster, budget, "minAvailable", max(blocked.current_healthy - 1, 0))
        return
    missing = max(blocked.expected_pods - blocked.current_healthy, 0)
    is_number = isinstance(budget.spec.min_available, int) and budget.spec.max_unavailable is None
    if is_number and blocked.current_healthy > 1:
        yield _with_spec(cluster, budget, "minAvailable", blocked.current_healthy - 1)
    yield _with_spec(cluster, budget, "maxUnavailable", missing + 1)


def _with_spec(cluster: ClusterSnapshot, budget: PodDisruptionBudget, field: str, value: int | str) -> Changed:
    spec = budget.spec
    if field == "unhealthyPodEvictionPolicy":
        spec = msgspec.structs.replace(spec, unhealthy_pod_eviction_policy=str(value))
    else:
        spec = PodDisruptionBudgetSpec(
            selector=spec.selector,
            min_available=value if field == "minAvailable" else None,
            max_unavailable=value if field == "maxUnavailable" else None,
            unhealthy_pod_eviction_policy=spec.unhealthy_pod_eviction_policy,
        )
    unblock = DrainRemedy(action=DrainRemedyAction.SET, target=f"{_BUDGET} {budget.key}", field=field, value=value)
    return Changed(unblock, _with_budgets(cluster, [msgspec.structs.replace(budget, spec=spec)]))


def _scaled(cluster: ClusterSnapshot, pod: Pod | None) -> Iterator[Changed]:
    """The pod's workload with one more replica, which is created before the drain starts."""
    owner = controller_of(pod.metadata) if pod is not None else None
    if pod is None or owner is None or owner.kind not in _SIZED:
        return
    namespace, kind, name = pod.metadata.namespace, owner.kind, owner.name
    lists = {}
    target = (kind, name)
    found = _find_owner(cluster, kind, namespace, name)
    if found is None:
        return
    above = controller_of(found.metadata)
    if above is not None:
        deployment = _find_owner(cluster, above.kind, namespace, above.name) if above.kind == "Deployment" else None
        if deployment is None:
            return
        lists["deployments"] = _resized(cluster, "Deployment", deployment)
        target = ("Deployment", above.name)
    lists[CLUSTER_KINDS[kind].field] = _resized(cluster, kind, found)
    size = (1 if found.spec.replicas is None else found.spec.replicas) + 1
    new_pod = replacement_of(pod, suffix="one-more", uid="one-more", now=pod.metadata.creation_timestamp or _EPOCH)
    if new_pod is None:
        return
    if kind == "StatefulSet":
        new_pod = replace_in(new_pod, "metadata", name=f"{name}-{size - 1}")
    scaled_cluster = msgspec.structs.replace(cluster, **lists)
    unblock = DrainRemedy(
        action=DrainRemedyAction.SCALE, target=f"{target[0]} {namespace}/{target[1]}", field="replicas", value=size
    )
    yield Changed(unblock, _with_budgets(scaled_cluster, budgets_selecting(cluster, pod)), [new_pod])


def _find_owner(cluster: ClusterSnapshot, kind: str, namespace: str, name: str) -> Any:
    records = getattr(cluster, CLUSTER_KINDS[kind].field) if kind in _SIZED else []
    return next((each for each in records if (each.metadata.namespace, each.metadata.name) == (namespace, name)), None)


def _resized(cluster: ClusterSnapshot, kind: str, found: Any) -> list[Any]:
    size = (1 if found.spec.replicas is None else found.spec.replicas) + 1
    changed = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, replicas=size))
    return [changed if each is found else each for each in getattr(cluster, CLUSTER_KINDS[kind].field)]


def _with_budgets(cluster: ClusterSnapshot, changed: Sequence[PodDisruptionBudget]) -> ClusterSnapshot:
    """The cluster with the statuses that the controller computes for changed budgets."""
    candidates, scales = Candidates(cluster.pods), Scales(cluster)
    by_key = {}
    for each in changed:
        try:
            status = sync_budget(each, candidates.of(each), scales.scale_of, None).status
            before = each.status
            if before is not None:
                # Pods that were assumed to be ready still count as ready.
                healthy = max(status.current_healthy, before.current_healthy)
                allowed = disruptions_allowed(healthy, status.desired_healthy, status.expected_pods)
                status = msgspec.structs.replace(status, current_healthy=healthy, disruptions_allowed=allowed)
        except SyncError:
            status = failed_status(each)
        by_key[each.key] = msgspec.structs.replace(each, status=status)
    budgets = [by_key.get(each.key, each) for each in cluster.pod_disruption_budgets]
    return msgspec.structs.replace(cluster, pod_disruption_budgets=budgets)


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
        self._workloads = Workloads(drain.after)
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
            workloads=list(dict.fromkeys(self._workloads.of(each.pod) for each in own)),
            message=answer.message,
            cause=causes[0].message if causes else "",
            current_healthy=status.current_healthy,
            desired_healthy=status.desired_healthy,
            expected_pods=self._desired_pods(budgets[0], selected) if budgets else 0,
            pending=pending,
            pending_message=next((self._messages[key] for key in pending if self._messages.get(key)), ""),
            unready=list(dict.fromkeys(pod.key for pod in selected if _is_unready(pod))),
            since=min(each.since for each in own),
        )

    def _desired_pods(self, budget: PodDisruptionBudget, pods: Sequence[Pod]) -> int:
        """The desired pods: the budget's expected pods or, if ``minAvailable`` is a number, the existing pods."""
        existing = sum(pod.is_active for pod in pods)
        status = budget.status or PodDisruptionBudgetStatus()
        return existing if isinstance(budget.spec.min_available, int) else max(status.expected_pods, 0)


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
