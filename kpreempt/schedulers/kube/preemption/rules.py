"""Hooks of a preemption: which pods may be evicted, in which order, and which node is best.

Follows ``Interface`` of ``framework/preemption/preemption.go`` and the functions that ``DefaultPreemption`` lets a
build replace (``plugins/defaultpreemption/default_preemption.go``), both v1.36.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kpreempt.model.pod import Pod
from kpreempt.schedulers.choice import CandidateVictims, Criterion
from kpreempt.schedulers.kube.framework.answers import integer, of_type, readable, shown
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import NodeToStatus, Plugin, PluginError
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.preemption.importance import is_more_important
from kpreempt.schedulers.kube.preemption.odds import num_candidates
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict import SUCCESS, Code, Eligibility, Status

REASON_NEVER = "not eligible due to preemptionPolicy=Never."
REASON_TERMINATING = "not eligible due to a terminating pod on the nominated node."
REASON_NO_VICTIMS = "No preemption victims found for incoming pod"
MIN_CANDIDATE_NODES_PERCENTAGE = 10
MIN_CANDIDATE_NODES_ABSOLUTE = 100


class CandidateScore(NamedTuple):
    """A rule of the choice between candidates: a name for the report, and a node's score; higher is better.

    A later rule only decides between nodes that are equal under the earlier ones.
    """

    name: str
    score: Callable[[str], int]


class PreemptionRules(Plugin):
    """The hooks of a preemption; hooks that are not overridden behave as in DefaultPreemption.

    Nodes and pods passed to a hook are read-only.
    """

    def eligibility(self, state: CycleState, pod: Pod, filtered: NodeToStatus) -> Eligibility:
        """Return whether the pod may preempt.

        It may not with ``preemptionPolicy: Never``, or while victims of its earlier preemption are still terminating on
        its nominated node, unless that node has become unresolvable.
        """
        if pod.spec.preemption_policy == "Never":
            return Eligibility(False, REASON_NEVER)
        nominated = pod.status.nominated_node_name
        if not nominated or filtered.get(nominated).code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return Eligibility(True)
        node_info = self.handle.cluster.by_name.get(nominated)
        if node_info is not None and any(
            is_awaited(info.pod, self.handle.behavior) and self.may_evict(state, pod, info, node_info)
            for info in node_info.pods
        ):
            return Eligibility(False, REASON_TERMINATING)
        return Eligibility(True)

    def may_evict(self, state: CycleState, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
        """Return whether ``victim`` may be evicted: if its priority is lower and ``is_eligible_pod`` allows it.

        An override is called for the pods of a node one after the other, the least important first; evictable pods are
        then already removed from the node and from ``state``. If priority no longer decides here, the freed resources
        are not safe: a nomination protects them only from pods of lower priority. A ``PluginError`` raised by this
        hook, ``is_eligible_pod`` or ``check_fit`` affects only this node: it is not a candidate.
        """
        return victim.priority < pod.priority and self.is_eligible_pod(pod, victim, node_info)

    def is_eligible_pod(self, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
        """Return whether ``victim``, a pod of lower priority than ``pod``, may be evicted; true by default."""
        return True

    def is_more_important(self, one: PodInfo, other: PodInfo) -> bool:
        """Return whether ``one`` is reprieved before ``other``: by priority, then by earlier start."""
        reads_once = self.handle.behavior.reads_start_times_once
        return is_more_important(one, other, self.handle.cluster.now, reads_starts_once=reads_once)

    def no_victims_message(self, pod: Pod, node_info: NodeInfo) -> str:
        """Return the reason for a node without evictable pods."""
        return REASON_NO_VICTIMS

    def check_fit(self, state: CycleState, pod: Pod, node_info: NodeInfo, put_back: PodInfo | None) -> Status:
        """Return the plugin's status on a node that passes the filters in a dry run; Success by default.

        It is called when all evictable pods are removed (``put_back`` is ``None``), where a rejection rules the node
        out, and after each pod is put back, where a rejection makes that pod a victim.
        """
        return SUCCESS

    def ordered_score_functions(self, candidates: Mapping[str, CandidateVictims]) -> Sequence[CandidateScore]:
        """Return the rules of the choice; empty for the default rules (``schedulers/choice.py``)."""
        return ()

    def num_candidates(self, num_nodes: int) -> int:
        """Return how many candidates are enough if evictions may help on ``num_nodes`` nodes: 10%, at least 100."""
        return num_candidates(num_nodes, MIN_CANDIDATE_NODES_PERCENTAGE, MIN_CANDIDATE_NODES_ABSOLUTE)

    def overrides(self, hook: str) -> bool:
        """Return whether the plugin overrides a hook."""
        return getattr(type(self), hook) is not getattr(PreemptionRules, hook)

    @property
    def chooses_victims(self) -> bool:
        """Whether a node may have other victims, or another rejection reason, than with DefaultPreemption."""
        hooks = ("may_evict", "is_eligible_pod", "is_more_important", "check_fit", "no_victims_message")
        return any(map(self.overrides, hooks))


def criteria_of(scores: object) -> tuple[Criterion, ...]:
    """Return a plugin's rules. Raises ``PluginError``, as do their functions, if they are invalid."""
    if isinstance(scores, str) or not isinstance(scores, Sequence):
        raise PluginError(f"ordered_score_functions returned {shown(scores)}, not a list of rules")
    return tuple(_criterion_of(of_type(CandidateScore, each, "ordered_score_functions")) for each in scores)


def _criterion_of(rule: CandidateScore) -> Criterion:
    name = readable(of_type(str, rule.name, "ordered_score_functions: the name of a rule"))

    def score(node: str, _: CandidateVictims) -> int:
        return integer(rule.score(node), f"score function {name}")

    return Criterion(name, score, score)


def is_awaited(pod: Pod, behavior: Behavior) -> bool:
    """Return whether the pod is terminating because of a preemption; without conditions, for any reason."""
    if pod.metadata.deletion_timestamp is None or not behavior.pod_disruption_conditions:
        return pod.metadata.deletion_timestamp is not None
    # The first such condition shows whether a scheduler preempted it.
    condition = next((each for each in pod.status.conditions if each.type == "DisruptionTarget"), None)
    return condition is not None and condition.status == "True" and condition.reason == "PreemptionByScheduler"
