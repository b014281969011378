"""The smallest changes that would make one node the chosen one, or a pod land that never does.

Every change is tried: first on the node alone, which is cheap, and where the node then takes the pod, by a whole
verdict, which proves it. Single changes come first; pairs of them only where no single one does. The order of the
proposals is that of ``ChangeKind``: what a pod asks for, what it puts up with, what it insists on, whom it outranks,
and last what would have to be different around it. Requests that are cut by more than half come after what it insists
on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.choice_edits import candidate_on, choice_ladders, lower_further
from kpreempt.analysis.edits import Edit, Stated, edit_cluster, edit_pod
from kpreempt.analysis.ladders import Ladder, Scene, allow_preemption, raise_priority, remove_pods
from kpreempt.analysis.remedies import remedies_for
from kpreempt.errors import KpreemptError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.verdict import ChangeKind, NodeEvaluation, Outcome, Proposal, ProposalSearch, Status, Verdict

_MAX_PROPOSALS = 6
_MAX_LOWERINGS = 8
_MAX_FIRST_CHANGES = 8
_EVALUATIONS_PER_STEP = 8
# On more nodes the steps of every candidate take too long to record for each change that is tried.
_MAX_NODES_WITH_STEPS = 1000
_LEAVING_OUT_OTHERS = (ChangeKind.CORDON, ChangeKind.PIN)
_ANSWERS = (Outcome.LANDS, Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)

Goal = Callable[[Verdict], bool]


class Situation(msgspec.Struct, frozen=True):
    """A pod before a cluster that the scheduler has prepared, and the verdict on it."""

    cluster: ClusterSnapshot
    prepared: Any
    pod: Pod
    verdict: Verdict


class Found(msgspec.Struct, frozen=True):
    """Proposals, the least intrusive first, and how far the search went."""

    proposals: list[Proposal]
    search: ProposalSearch


class _Trial(msgspec.Struct, frozen=True):
    """Edits that were tried and did not bring the answer, and what they brought instead."""

    edits: list[Edit]
    situation: Situation
    evaluation: NodeEvaluation
    num_refusals: int


def propose_for_node(
    scheduler: Scheduler, situation: Situation, node_name: str, stated: Stated, *, now: datetime, limit: int
) -> Found:
    """Changes with which the pod ends on the node, alone or as one of several that tie.

    ``limit`` is how many verdicts may be asked for and changed clusters prepared, together.
    """

    def is_reached(verdict: Verdict) -> bool:
        return _is_answer(verdict) and node_name in destinations(verdict)

    return _propose(scheduler, situation, [node_name], stated, is_reached, now=now, limit=limit, wants_steps=True)


def propose_anywhere(
    scheduler: Scheduler, situation: Situation, node_names: Sequence[str], stated: Stated, *, now: datetime, limit: int
) -> Found:
    """Changes with which a pod lands that never does, sought on these nodes in turn.

    ``limit`` is that of ``propose_for_node``, for all nodes together.
    """

    def is_reached(verdict: Verdict) -> bool:
        return _is_answer(verdict)

    return _propose(scheduler, situation, node_names, stated, is_reached, now=now, limit=limit, wants_steps=False)


def _is_answer(verdict: Verdict) -> bool:
    """Whether the pod comes to a node, whatever the order of equal volumes."""
    is_certain = verdict.volume_choices is None or not verdict.volume_choices.uncertain
    return is_certain and verdict.outcome in _ANSWERS


def destinations(verdict: Verdict) -> list[str]:
    """The nodes, one or several that tie, that the pod ends on now or after evictions."""
    return verdict.nominated_nodes or verdict.lands_on


def refusals_of(evaluation: NodeEvaluation, *, may_evict: bool) -> list[Status]:
    """What stands in the way on the node: with its lower-priority pods gone where they may be evicted."""
    if evaluation.pre_filter is not None:
        return [evaluation.pre_filter]
    statuses = evaluation.without_lower if may_evict and evaluation.lower_priority_pods else evaluation.filters
    return [status for status in statuses if not status.is_success]


def _propose(
    scheduler: Scheduler,
    situation: Situation,
    node_names: Sequence[str],
    stated: Stated,
    goal: Goal,
    *,
    now: datetime,
    limit: int,
    wants_steps: bool,
) -> Found:
    wants_steps = wants_steps and len(situation.cluster.nodes) <= _MAX_NODES_WITH_STEPS
    search = _Search(scheduler, goal, now=now, limit=limit, wants_steps=wants_steps)
    found: list[tuple[tuple[int, int, float], Proposal]] = []
    trials: dict[str, list[_Trial]] = {}
    nodes = {node.name: node for node in situation.cluster.nodes}
    for name in node_names:
        trials[name] = []
        for edit, verdict in search.try_singles(situation, nodes[name], trials[name]):
            found.append(((1, *edit.weight), _proposal(name, [edit], verdict, stated)))
    for name in node_names if not found else ():
        for edits, verdict in search.try_pairs(situation.pod, nodes[name], trials[name]):
            weight = max(edit.weight for edit in edits)
            found.append(((2, *weight), _proposal(name, edits, verdict, stated)))
    proposals: dict[object, Proposal] = {}
    for _, proposal in sorted(found, key=lambda each: each[0]):
        proposals.setdefault(_likeness(proposal), proposal)
    return Found(
        list(proposals.values())[:_MAX_PROPOSALS],
        ProposalSearch(
            list(node_names),
            search.verdicts,
            is_complete=not search.gave_up,
            extender_calls=search.extender_calls or msgspec.UNSET,
        ),
    )


class _Search:
    """Tries edits until the answer is reached, and counts what that takes."""

    def __init__(self, scheduler: Scheduler, goal: Goal, *, now: datetime, limit: int, wants_steps: bool) -> None:
        self._scheduler = scheduler
        self._goal = goal
        self._now = now
        self._limit = limit
        self._wants_steps = wants_steps
        self._costly_steps = 0
        self._tried: set[tuple[str, ...]] = set()
        self.verdicts = 0
        self.extender_calls = 0
        self.gave_up = False

    def try_singles(self, start: Situation, node: Node, failed: list[_Trial]) -> Iterator[tuple[Edit, Verdict]]:
        """Each single change that reaches the goal, with its verdict; what fails is added to ``failed``."""
        evaluation = self._scheduler.tell_node(start.prepared, start.pod, node.name)
        for ladder in self._ladders(start, node, evaluation):
            reached = self._climb(ladder, start, node, [], failed)
            if reached is not None:
                yield reached
            if self.gave_up:
                return

    def try_pairs(self, pod: Pod, node: Node, failed: Sequence[_Trial]) -> Iterator[tuple[list[Edit], Verdict]]:
        """Pairs of changes that reach the goal, one for each two kinds.

        Of failed single changes those come first that bring the node nearest to taking the pod.
        """
        nearest = sorted(failed, key=lambda trial: (trial.num_refusals, trial.edits[0].weight))
        known: set[frozenset[ChangeKind]] = set()
        for trial in nearest[:_MAX_FIRST_CHANGES]:
            for ladder in self._ladders(trial.situation, node, trial.evaluation):
                if {change.kind for change in ladder[0].changes} & {change.kind for change in trial.edits[0].changes}:
                    continue
                reached = self._climb(ladder, trial.situation, node, trial.edits, [])
                if reached is not None:
                    pair = sorted([trial.edits[0], reached[0]], key=lambda edit: edit.weight)
                    kinds = frozenset(change.kind for edit in pair for change in edit.changes)
                    if kinds not in known:
                        known.add(kinds)
                        yield pair, reached[1]
                if self.gave_up or len(known) >= _MAX_PROPOSALS:
                    return

    def _ladders(self, situation: Situation, node: Node, evaluation: NodeEvaluation) -> list[Ladder]:
        """The ladders to climb from here, the one with the least first step first."""
        scene = Scene(situation.pod, situation.cluster, _same(situation.cluster, node))
        verdict = situation.verdict
        may_evict = _may_evict(situation, node.name)
        needed = refusals_of(evaluation, may_evict=may_evict)
        ladders = remedies_for(scene, needed)
        if evaluation.nominated_pods:
            ladders.append(remove_pods(scene, evaluation.nominated_pods))
        if may_evict or evaluation.nominated_pods:
            ladders.append(raise_priority(scene, evaluation.nominated_pods))
        if evaluation.without_lower and not any(name != node.name for name in verdict.feasible_nodes):
            ladders.append(allow_preemption(situation.pod))
        if may_evict:
            # Without evictions the pod may land where it would lose the choice of whom to evict.
            ladders += remedies_for(scene, refusals_of(evaluation, may_evict=False))
        if not needed or not refusals_of(evaluation, may_evict=is_preemptor(situation.pod)):
            ladders += choice_ladders(scene, verdict)
        return sorted((ladder for ladder in ladders if ladder), key=lambda ladder: ladder[0].weight)

    def _climb(
        self, ladder: Ladder, start: Situation, node: Node, before: list[Edit], failed: list[_Trial]
    ) -> tuple[Edit, Verdict] | None:
        """The first edit of the ladder that reaches the goal. Requests are lowered further while that can matter."""
        for first in ladder:
            edit: Edit | None = first
            for _ in range(_MAX_LOWERINGS):
                if edit is None:
                    break
                trial = self._try(edit, start, node, before)
                if trial is None:
                    break
                verdict = trial.situation.verdict
                if trial.num_refusals == 0 and self._goal(verdict):
                    return edit, verdict
                failed.append(trial)
                candidate = candidate_on(verdict, node.name) if trial.num_refusals == 0 else None
                is_request = all(change.kind == ChangeKind.REQUEST for change in edit.changes)
                edit = lower_further(start.pod, edit, candidate) if candidate and is_request else None
        return None

    def _try(self, edit: Edit, start: Situation, node: Node, before: list[Edit]) -> _Trial | None:
        """What the edit brings; a verdict is only asked for where the node could take the pod."""
        if self._costly_steps >= self._limit or len(self._tried) >= _EVALUATIONS_PER_STEP * self._limit:
            self.gave_up = True
            return None
        key = (node.name, *sorted(option for each in (*before, edit) for option in each.options(Stated(0))))
        if key in self._tried:
            return None
        self._tried.add(key)
        try:
            pod = edit_pod(start.pod, edit)
            cluster = edit_cluster(start.cluster, edit)
        except KpreemptError:
            return None
        prepared = start.prepared
        if edit.is_of_cluster:
            self._costly_steps += 1
            prepared = self._scheduler.prepare(cluster, now=self._now)
        changed = Situation(cluster, prepared, pod, start.verdict)
        evaluation = self._scheduler.tell_node(prepared, pod, node.name)
        # The pod evicts where it fits nowhere, which is so once its other nodes are out.
        is_alone = any(change.kind in _LEAVING_OUT_OTHERS for change in edit.changes) and is_preemptor(pod)
        refusals = refusals_of(evaluation, may_evict=is_alone or _may_evict(changed, node.name))
        if not refusals:
            self.verdicts += 1
            self._costly_steps += 1
            verdict = self._scheduler.decide(prepared, pod, records_steps=self._wants_steps)
            self.extender_calls += len(verdict.extender_calls)
            changed = msgspec.structs.replace(changed, verdict=verdict)
        return _Trial([*before, edit], changed, evaluation, len(refusals))


def _may_evict(situation: Situation, node_name: str) -> bool:
    """Whether evictions can bring the pod to the node: not while it fits elsewhere as things are."""
    return is_preemptor(situation.pod) and not any(name != node_name for name in situation.verdict.feasible_nodes)


def is_preemptor(pod: Pod) -> bool:
    """Whether the pod's preemption policy lets it evict."""
    return pod.spec.preemption_policy != "Never"


def _same(cluster: ClusterSnapshot, node: Node) -> Node:
    """The node as it is in ``cluster``."""
    return next(each for each in cluster.nodes if each.name == node.name)


def _proposal(node_name: str, edits: Sequence[Edit], verdict: Verdict, stated: Stated) -> Proposal:
    nodes = destinations(verdict)
    where = node_name if node_name in nodes else nodes[0]
    candidate = candidate_on(verdict, where) if verdict.nominated_nodes else None
    return Proposal(
        node=node_name,
        changes=[change for edit in edits for change in edit.changes],
        options=[option for edit in edits for option in edit.options(stated)],
        outcome=verdict.outcome,
        nodes=nodes,
        victims=candidate.victims if candidate else [],
        num_pdb_violations=candidate.num_pdb_violations if candidate else 0,
    )


def _likeness(proposal: Proposal) -> tuple[object, ...]:
    """Equal for proposals of which one is as good as the other: the same changes, or less of the same resource."""
    amounts = (ChangeKind.REQUEST, ChangeKind.PRIORITY)
    if all(change.kind in amounts for change in proposal.changes):
        return tuple(sorted((change.kind, change.subject) for change in proposal.changes))
    return tuple(proposal.options)


__all__ = ["Found", "Situation", "destinations", "propose_anywhere", "propose_for_node", "refusals_of"]
