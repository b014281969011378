"""The smallest changes that would make one node the chosen one, or a pod land that never does.

Every change is tried: first on the node alone, which is cheap, and where the node then takes the pod, by a whole
verdict, which proves it. Single changes come first; pairs of them only where no single one does. The order of the
proposals is that of ``ChangeKind``: what a pod asks for, what it puts up with, what it insists on, whom it outranks,
and last what would have to be different around it. Requests that are cut by more than half come after what it insists
on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.change_search import Goal, Search, Situation, Trial
from kpreempt.analysis.choice_edits import candidate_on
from kpreempt.analysis.edits import Edit, Stated
from kpreempt.verdict import ChangeKind, Outcome, Proposal, ProposalSearch, Verdict

_MAX_PROPOSALS = 6
# On more nodes the steps of every candidate take too long to record for each change that is tried.
_MAX_NODES_WITH_STEPS = 1000
_ANSWERS = (Outcome.LANDS, Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)


class Found(msgspec.Struct, frozen=True):
    """Proposals, the least intrusive first, and how far the search went."""

    proposals: list[Proposal]
    search: ProposalSearch


def propose_for_node(
    scheduler: Scheduler, situation: Situation, node_name: str, stated: Stated, *, now: datetime, limit: int
) -> Found:
    """Changes with which the pod ends on the node, alone or as one of several that tie.

    ``limit`` is how many verdicts may be asked for and changed clusters prepared, together.
    """

    def is_reached(verdict: Verdict) -> bool:
        return _is_answer(verdict) and node_name in destinations(verdict)

    return _propose(scheduler, situation, [node_name], stated, is_reached, now=now, limit=limit, is_anywhere=False)


def propose_anywhere(
    scheduler: Scheduler, situation: Situation, node_names: Sequence[str], stated: Stated, *, now: datetime, limit: int
) -> Found:
    """Changes with which a pod lands that never does, sought on these nodes in turn.

    ``limit`` is that of ``propose_for_node``, for all nodes together.
    """

    def is_reached(verdict: Verdict) -> bool:
        return _is_answer(verdict)

    return _propose(scheduler, situation, node_names, stated, is_reached, now=now, limit=limit, is_anywhere=True)


def _is_answer(verdict: Verdict) -> bool:
    """Whether the pod comes to a node, whatever the order of equal volumes."""
    is_certain = verdict.volume_choices is None or not verdict.volume_choices.uncertain
    return is_certain and verdict.outcome in _ANSWERS


def destinations(verdict: Verdict) -> list[str]:
    """The nodes, one or several that tie, that the pod ends on now or after evictions."""
    return verdict.nominated_nodes or verdict.lands_on


def _propose(
    scheduler: Scheduler,
    situation: Situation,
    node_names: Sequence[str],
    stated: Stated,
    goal: Goal,
    *,
    now: datetime,
    limit: int,
    is_anywhere: bool,
) -> Found:
    wants_steps = not is_anywhere and len(situation.cluster.nodes) <= _MAX_NODES_WITH_STEPS
    search = Search(scheduler, goal, now=now, limit=limit, wants_steps=wants_steps)
    found: list[tuple[tuple[int, int, float], Proposal]] = []
    trials: dict[str, list[Trial]] = {}
    nodes = {node.name: node for node in situation.cluster.nodes}
    if is_anywhere and (raised_to := search.least_priority(situation)) is not None:
        edit, verdict = raised_to
        found.append(((1, *edit.weight), _proposal(destinations(verdict)[0], [edit], verdict, stated)))
    for name in node_names:
        trials[name] = []
        for edit, verdict in search.try_singles(situation, nodes[name], trials[name]):
            found.append(((1, *edit.weight), _proposal(name, [edit], verdict, stated)))
    for name in node_names if not found else ():
        for pair, with_pair in search.try_pairs(situation.pod, nodes[name], trials[name]):
            edits, verdict = search.at_least_priority(situation, pair, with_pair) if is_anywhere else (pair, with_pair)
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
