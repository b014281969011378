"""Reports on one node: all its filters, its rank, and what would make it the chosen node.

Every change is tried: first on the node alone, which is cheap, and if the node then fits the pod, by a full verdict,
which verifies it. Pairs of changes are tried only if no single change works. Proposals are in the order of
``ChangeKind``: what the pod requests, tolerates, requires, outranks, and last its environment. Requests that are
lowered by more than half come after the pod's requirements.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.explain.change_search import (
    Search,
    Situation,
    Trial,
    candidate_on,
    is_preemptor,
    rejections_of,
)
from kpreempt.analysis.explain.single_edits import Edit
from kpreempt.verdict import ChangeKind, NodeReport, Outcome, Proposal, ProposalSearch, Status, Verdict
from kpreempt.verdict.details import InsufficientResources

# On larger clusters only the priority is searched, unless the query names a node.
MAX_NODES_SEARCHED = 3000
_NEAREST = 5
_LIMIT_WITH_FAILING_EXTENDER = 4
_UNANSWERED = (Outcome.NOT_SCHEDULED, Outcome.UNCERTAIN)

_MAX_SAMPLED = 12
_MAX_PER_KIND = 3

_MAX_PROPOSALS = 6
# On more nodes, recording the steps of every candidate takes too long for each tried change.
_MAX_NODES_WITH_STEPS = 1000
_ANSWERS = (Outcome.LANDS, Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)


def explain_node(
    scheduler: Scheduler, situation: Situation, node_name: str, stated: int, *, now: datetime
) -> NodeReport:
    """The report on a node, given the verdict. Raises ``KeyError`` for an unknown node."""
    verdict = situation.verdict
    evaluation = scheduler.describe_node(situation.prepared, situation.pod, node_name)
    is_chosen = node_name in destinations(verdict)
    found = ProposalsFound([], ProposalSearch([node_name]))
    if not is_chosen and verdict.outcome not in _UNANSWERED:
        failing = _failing_extender(verdict)
        limit = _limit(situation, most=60)
        if failing:
            found = ProposalsFound([], ProposalSearch([node_name], is_complete=False, failing_extender=failing))
        else:
            found = _propose(scheduler, situation, [node_name], stated, now=now, limit=limit, is_anywhere=False)
    score = verdict.scores.get(node_name)
    # The criterion of candidate selection that eliminated the node.
    rounds = verdict.selection.rounds if verdict.selection else []
    eliminated = next((each for each in rounds if node_name in each.values and node_name not in each.survivors), None)
    return NodeReport(
        node=node_name,
        evaluation=evaluation,
        is_chosen=is_chosen,
        rank=None if score is None else 1 + sum(other > score for other in verdict.scores.values()),
        eliminated_at=eliminated.criterion if eliminated else "",
        value=eliminated.values[node_name] if eliminated else None,
        best=eliminated.values[eliminated.survivors[0]] if eliminated else None,
        proposals=found.proposals,
        search=found.search,
    )


def propose(scheduler: Scheduler, situation: Situation, stated: int, *, now: datetime) -> ProposalsFound:
    """Changes that let an unschedulable pod be scheduled, searched on the closest nodes.

    On very large clusters only the lowest priority is searched, and nothing if an extender fails, which no change can
    fix.
    """
    if failing := _failing_extender(situation.verdict):
        return ProposalsFound([], ProposalSearch(is_complete=False, failing_extender=failing))
    is_skipped = len(situation.cluster.nodes) > MAX_NODES_SEARCHED
    names = [] if is_skipped else nearest_nodes(scheduler, situation, _NEAREST)
    limit = _limit(situation, most=40)
    found = _propose(scheduler, situation, names, stated, now=now, limit=limit, is_anywhere=True)
    if not is_skipped:
        return found
    return ProposalsFound(found.proposals, msgspec.structs.replace(found.search, is_skipped=True, is_complete=False))


def _failing_extender(verdict: Verdict) -> str:
    """The extender whose filter call failed, so that no node passes."""
    calls = [call for call in verdict.extender_calls if call.error and not call.ignored and call.verb == "filter"]
    return calls[-1].extender if calls and verdict.outcome.stays_pending else ""


def _limit(situation: Situation, *, most: int) -> int:
    """The limit of expensive steps in a search, which is lower if each takes longer.

    Extenders are called again for each verdict. If one fails, each call may take until its timeout.
    """
    if any(call.error for call in situation.verdict.extender_calls):
        return _LIMIT_WITH_FAILING_EXTENDER
    return min(most, max(8, 10_000 // len(situation.cluster.nodes)))


def nearest_nodes(scheduler: Scheduler, situation: Situation, most: int) -> list[str]:
    """Up to ``most`` nodes, by the number of rejections without lower-priority pods, then by the missing amount.

    One node is enough for each kind of rejection, and only a few are evaluated closely.
    """
    may_evict = is_preemptor(situation.pod)
    ranked = []
    for order, name in enumerate(_sample(situation.verdict)):
        evaluation = scheduler.describe_node(situation.prepared, situation.pod, name)
        rejections = rejections_of(evaluation, may_evict=may_evict)
        ranked.append((len(rejections), sum(map(_distance, rejections)), order, name))
    return [name for *_, name in sorted(ranked)[:most]]


def _sample(verdict: Verdict) -> list[str]:
    """For each kind of rejection, the few nodes that lack the least, with different details."""
    kinds: dict[tuple[str, str], dict[object, tuple[float, str]]] = {}
    for name, before in verdict.filter.items():
        after = verdict.dry_run.get(name)
        # For a node without lower-priority pods, the dry run adds nothing.
        status = after if after is not None and after.plugin else before
        nodes_by_detail = kinds.setdefault((status.plugin, status.message), {})
        nodes_by_detail.setdefault(repr(status.detail), (_distance(status), name))
    picked = [sorted(nodes_by_detail.values())[:_MAX_PER_KIND] for nodes_by_detail in kinds.values()]
    rounds = [sorted(each[number] for each in picked if number < len(each)) for number in range(_MAX_PER_KIND)]
    return [name for each in rounds for _, name in each][:_MAX_SAMPLED]


def _distance(status: Status) -> float:
    """The largest missing share of a request; 1 if the rejection is not about amounts."""
    detail = status.detail
    if not isinstance(detail, InsufficientResources) or not detail.shortfalls:
        return 1.0
    return max(each.missing_share for each in detail.shortfalls)


class ProposalsFound(msgspec.Struct, frozen=True):
    """Proposals, the least intrusive first, and the extent of the search."""

    proposals: list[Proposal]
    search: ProposalSearch


def destinations(verdict: Verdict) -> list[str]:
    """The nodes (several if they tie) on which the pod ends up, now or after evictions."""
    return verdict.nominated_nodes or verdict.lands_on


def _propose(
    scheduler: Scheduler,
    situation: Situation,
    node_names: Sequence[str],
    stated: int,
    *,
    now: datetime,
    limit: int,
    is_anywhere: bool,
) -> ProposalsFound:
    """Changes that let an unschedulable pod be scheduled on one of these nodes.

    If not ``is_anywhere``, changes that bring the pod to the given node, alone or tied with others. ``limit`` is the
    total number of verdicts and of changed clusters to prepare.
    """

    def goal(verdict: Verdict) -> bool:
        # The pod gets a node, regardless of the order of equal volumes.
        is_certain = verdict.volume_choices is None or not verdict.volume_choices.uncertain
        is_on_node = is_anywhere or node_names[0] in destinations(verdict)
        return is_certain and verdict.outcome in _ANSWERS and is_on_node

    with_steps = not is_anywhere and len(situation.cluster.nodes) <= _MAX_NODES_WITH_STEPS
    search = Search(scheduler, goal, now=now, limit=limit, with_steps=with_steps)
    found: list[tuple[tuple[int, int, float], Proposal]] = []
    trials: dict[str, list[Trial]] = {}
    nodes = {node.name: node for node in situation.cluster.nodes}
    if is_anywhere and (raised_to := search.lowest_priority(situation)) is not None:
        edit, verdict = raised_to
        found.append(((1, *edit.weight), _proposal(destinations(verdict)[0], [edit], verdict, stated)))
    for name in node_names:
        trials[name] = []
        for edit, verdict in search.try_singles(situation, nodes[name], trials[name]):
            found.append(((1, *edit.weight), _proposal(name, [edit], verdict, stated)))
    for name in node_names if not found else ():
        for pair, with_pair in search.try_pairs(situation.pod, nodes[name], trials[name]):
            edits, verdict = search.min_priority(situation, pair, with_pair) if is_anywhere else (pair, with_pair)
            found.append(((2, *max(edit.weight for edit in edits)), _proposal(name, edits, verdict, stated)))
    proposals: dict[object, Proposal] = {}
    for _, proposal in sorted(found, key=lambda each: each[0]):
        # Equivalent proposals have the same changes, or only differ in the amount of the same resource.
        key: tuple[object, ...] = tuple(proposal.options)
        if all(change.kind in (ChangeKind.REQUEST, ChangeKind.PRIORITY) for change in proposal.changes):
            key = tuple(sorted((change.kind, change.subject) for change in proposal.changes))
        proposals.setdefault(key, proposal)
    return ProposalsFound(
        list(proposals.values())[:_MAX_PROPOSALS],
        ProposalSearch(
            list(node_names),
            search.verdicts,
            is_complete=not search.gave_up,
            extender_calls=search.extender_calls or msgspec.UNSET,
        ),
    )


def _proposal(node_name: str, edits: Sequence[Edit], verdict: Verdict, stated: int) -> Proposal:
    nodes = destinations(verdict)
    shown_node = node_name if node_name in nodes else nodes[0]
    candidate = candidate_on(verdict, shown_node) if verdict.nominated_nodes else None
    return Proposal(
        node=node_name,
        changes=[change for edit in edits for change in edit.changes],
        options=[option for edit in edits for option in edit.options(stated)],
        outcome=verdict.outcome,
        nodes=nodes,
        victims=candidate.victims if candidate else [],
        num_pdb_violations=candidate.num_pdb_violations if candidate else 0,
    )
