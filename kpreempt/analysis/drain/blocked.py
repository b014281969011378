"""Why evictions are refused for ever: which budget refuses them, and what keeps it from allowing one more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpreempt.analysis.drain.runs import Refused, SimulatedDrain
from kpreempt.analysis.simulation.cluster import Workloads, is_serving
from kpreempt.controllers.actions import SyncError
from kpreempt.controllers.disruption import Candidates, Scales, Selected, sync_budget
from kpreempt.eviction.records import TOO_MANY_REQUESTS
from kpreempt.eviction.subresource import is_of_terminating_namespace
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kpreempt.verdict.drain import BlockedEviction, BlockReason

_Key = tuple[str, tuple[str, ...], BlockReason, str]


def blocked_evictions(drain: SimulatedDrain) -> list[BlockedEviction]:
    """All that is blocked at the end of a run, by node and budgets, without remedies."""
    found = [*_not_chosen(drain), *_refused(drain), *_late(drain)]
    order = {work.node: index for index, work in enumerate(drain.works)}
    return sorted(found, key=lambda each: (order[each.node], each.since, each.pods))


def _not_chosen(drain: SimulatedDrain) -> Iterable[BlockedEviction]:
    since = {work.node: work.began or 0.0 for work in drain.works}
    for node, text, pods in drain.unchosen:
        yield BlockedEviction(
            node=node, reason=BlockReason.NOT_CHOSEN, pods=pods, message=f"cannot delete {text}", since=since[node]
        )


def _late(drain: SimulatedDrain) -> Iterable[BlockedEviction]:
    by_node: dict[str, list[str]] = {}
    for node, pod in drain.late:
        by_node.setdefault(node, []).append(pod)
    for node, pods in by_node.items():
        yield BlockedEviction(node=node, reason=BlockReason.TIMED_OUT, pods=pods)


def _refused(drain: SimulatedDrain) -> Iterable[BlockedEviction]:
    if not drain.refused_evictions:
        return
    look = _Look(drain)
    groups: dict[_Key, list[Refused]] = {}
    for each in drain.refused_evictions:
        budgets = look.budgets_of(each.pod)
        reason = look.reason(each, budgets)
        key = (each.node, tuple(budget.key for budget in budgets), reason, each.answer.message)
        groups.setdefault(key, []).append(each)
    for (node, _, reason, _), own in groups.items():
        yield look.told(node, reason, own)


class _Look:
    """The cluster in the end, as budgets see it."""

    def __init__(self, drain: SimulatedDrain) -> None:
        self._after = drain.after
        self._candidates = Candidates(drain.after.pods)
        self._scales = Scales(drain.after)
        self._workloads = Workloads(drain.after)
        self._messages = {each.pod: each.message for each in drain.simulation.waiting}

    def budgets_of(self, pod: Pod) -> list[PodDisruptionBudget]:
        return budgets_selecting(self._after, pod)

    def reason(self, refused: Refused, budgets: Sequence[PodDisruptionBudget]) -> BlockReason:
        """Why the pod stays."""
        if is_of_terminating_namespace(refused.answer):
            return BlockReason.TERMINATING
        if len(budgets) > 1:
            return BlockReason.SEVERAL_BUDGETS
        if refused.answer.status != TOO_MANY_REQUESTS or not budgets:
            return BlockReason.OTHER
        budget = budgets[0]
        selected = self._candidates.of(budget)
        if self._fails(budget, selected):
            return BlockReason.NO_SCALE
        status = budget.status or PodDisruptionBudgetStatus()
        to_be = self._to_be(budget, selected.pods)
        if status.desired_healthy >= to_be:
            return BlockReason.SINGLE_REPLICA if to_be == 1 else BlockReason.NEVER_ALLOWS
        if any(map(_is_pending, selected.pods)):
            return BlockReason.NO_ROOM
        if any(map(_is_unready, selected.pods)):
            return BlockReason.NOT_READY
        return BlockReason.TOO_FEW

    def told(self, node: str, reason: BlockReason, own: Sequence[Refused]) -> BlockedEviction:
        """The record of refusals of one kind."""
        budgets = self.budgets_of(own[0].pod)
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
            healthy=status.current_healthy,
            desired=status.desired_healthy,
            expected=self._to_be(budgets[0], selected) if budgets else 0,
            pending=pending,
            pending_message=next((self._messages[key] for key in pending if self._messages.get(key)), ""),
            unready=list(dict.fromkeys(pod.key for pod in selected if _is_unready(pod))),
            since=min(each.since for each in own),
        )

    def _fails(self, budget: PodDisruptionBudget, selected: Selected) -> bool:
        try:
            sync_budget(budget, selected, self._scales.scale_of, None)
        except SyncError:
            return True
        return False

    def _to_be(self, budget: PodDisruptionBudget, pods: Sequence[Pod]) -> int:
        """How many pods there are to be: as many as their owners want, or there are, whichever is more."""
        there = sum(pod.is_active for pod in pods)
        status = budget.status or PodDisruptionBudgetStatus()
        return there if isinstance(budget.spec.min_available, int) else max(status.expected_pods, 0)


def budgets_selecting(cluster: ClusterSnapshot, pod: Pod) -> list[PodDisruptionBudget]:
    """The budgets of the pod's namespace that select it."""
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
