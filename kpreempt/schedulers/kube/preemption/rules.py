"""What a preemption leaves to the plugin that runs it: who may go, who goes first, and which node is best.

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
from kpreempt.schedulers.kube.versions import Behaviour
from kpreempt.verdict import SUCCESS, Code, Eligibility, Status

REASON_NEVER = "not eligible due to preemptionPolicy=Never."
REASON_TERMINATING = "not eligible due to a terminating pod on the nominated node."
REASON_NO_VICTIMS = "No preemption victims found for incoming pod"
MIN_CANDIDATE_NODES_PERCENTAGE = 10
MIN_CANDIDATE_NODES_ABSOLUTE = 100


class CandidateScore(NamedTuple):
    """A rule of the choice between candidates: a name for the report, and the score of a node, the higher the better.

    A later rule counts only between nodes that are equal under those before it.
    """

    name: str
    score: Callable[[str], int]


class PreemptionRules(Plugin):
    """The hooks of a preemption; what is not overridden is as in DefaultPreemption.

    Nodes and pods that a hook is given can be looked at only.
    """

    def eligibility(self, state: CycleState, pod: Pod, filtered: NodeToStatus) -> Eligibility:
        """Whether the pod may preempt.

        Not with ``preemptionPolicy: Never``, and not while victims of its earlier preemption are still on their way
        out of its nominated node, unless that node has become hopeless.
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
        """Whether ``victim`` may go for ``pod``: if its priority is lower and it ``is_eligible_pod``.

        One that is overridden is asked of the pods of a node one after the other, the least important first; those
        that may go are off the node then, and out of ``state``. Where priority no longer decides here, the room that
        is freed is not safe: a nomination keeps it from pods of lower priority only. A ``PluginError`` that this hook,
        ``is_eligible_pod`` or ``check_fit`` raises is the end of this node only: it is no candidate.
        """
        return victim.priority < pod.priority and self.is_eligible_pod(pod, victim, node_info)

    def is_eligible_pod(self, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
        """Whether ``victim``, whose priority is lower than that of ``pod``, may go for it: yes."""
        return True

    def is_more_important(self, one: PodInfo, other: PodInfo) -> bool:
        """Whether ``one`` is put back before ``other``: by priority, then by the earlier start."""
        reads_once = self.handle.behavior.reads_start_times_once
        return is_more_important(one, other, self.handle.cluster.now, reads_starts_once=reads_once)

    def no_victims_message(self, pod: Pod, node_info: NodeInfo) -> str:
        """What is said of a node from which no pod may go."""
        return REASON_NO_VICTIMS

    def check_fit(self, state: CycleState, pod: Pod, node_info: NodeInfo, put_back: PodInfo | None) -> Status:
        """What the plugin itself says to the pod on a node that the filters let pass in a dry run: Success.

        It is asked when all that may go are gone (``put_back`` is ``None``), where a refusal rules the node out, and
        after each pod that is put back, where a refusal makes that pod a victim.
        """
        return SUCCESS

    def ordered_score_functions(self, candidates: Mapping[str, CandidateVictims]) -> Sequence[CandidateScore]:
        """The rules of the choice; none for the usual ones (``schedulers/choice.py``)."""
        return ()

    def num_candidates(self, num_nodes: int) -> int:
        """How many candidates are enough, of so many nodes where evictions may help: 10 %, and 100 at least."""
        return num_candidates(num_nodes, MIN_CANDIDATE_NODES_PERCENTAGE, MIN_CANDIDATE_NODES_ABSOLUTE)

    def overrides(self, hook: str) -> bool:
        """Whether the plugin has a hook of its own."""
        return getattr(type(self), hook) is not getattr(PreemptionRules, hook)

    @property
    def chooses_victims(self) -> bool:
        """Whether a node may have other victims, or be refused in other words, than by DefaultPreemption."""
        hooks = ("may_evict", "is_eligible_pod", "is_more_important", "check_fit", "no_victims_message")
        return any(map(self.overrides, hooks))


def criteria_of(scores: object) -> tuple[Criterion, ...]:
    """The rules of a plugin. Raises ``PluginError`` where they are none, and so do their functions."""
    if isinstance(scores, str) or not isinstance(scores, Sequence):
        raise PluginError(f"ordered_score_functions gave {shown(scores)}, not a list of rules")
    return tuple(_criterion_of(of_type(CandidateScore, each, "ordered_score_functions")) for each in scores)


def _criterion_of(rule: CandidateScore) -> Criterion:
    name = readable(of_type(str, rule.name, "ordered_score_functions: the name of a rule"))

    def score(node: str, _: CandidateVictims) -> int:
        return integer(rule.score(node), f"score function {name}")

    return Criterion(name, score, score)


def is_awaited(pod: Pod, behavior: Behaviour) -> bool:
    """Whether the pod is on its way out by a preemption; without conditions that tell it, for any reason."""
    if pod.metadata.deletion_timestamp is None or not behavior.pod_disruption_conditions:
        return pod.metadata.deletion_timestamp is not None
    # The first such condition tells whether a scheduler preempted it.
    told = next((each for each in pod.status.conditions if each.type == "DisruptionTarget"), None)
    return told is not None and told.status == "True" and told.reason == "PreemptionByScheduler"
