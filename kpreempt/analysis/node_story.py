"""How one node fares: all its filters, its place in the choice, and what would make it the chosen one."""

from __future__ import annotations

from datetime import datetime

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.change_search import Situation
from kpreempt.analysis.edits import Stated
from kpreempt.analysis.nearest_nodes import nearest_nodes
from kpreempt.analysis.smallest_change import Found, destinations, propose_anywhere, propose_for_node
from kpreempt.verdict import NodeStory, Outcome, ProposalSearch, TieBreakRound, Verdict

# More nodes than this are not searched for proposals, other than a priority, unless one of them is asked about.
MAX_NODES_SEARCHED = 3000
_NEAREST = 5
_WITH_A_FAILING_EXTENDER = 4
_UNANSWERED = (Outcome.NOT_SCHEDULED, Outcome.UNCERTAIN)


def tell_story(
    scheduler: Scheduler, situation: Situation, node_name: str, stated: Stated, *, now: datetime
) -> NodeStory:
    """The story of a node of the cluster, in the light of the verdict. Raises ``KeyError`` for an unknown node."""
    verdict = situation.verdict
    evaluation = scheduler.tell_node(situation.prepared, situation.pod, node_name)
    is_chosen = node_name in destinations(verdict)
    found = Found([], ProposalSearch([node_name]))
    if not is_chosen and verdict.outcome not in _UNANSWERED:
        failing = _failing_extender(verdict)
        limit = _limit(situation, most=60)
        if failing:
            found = Found([], ProposalSearch([node_name], is_complete=False, failing_extender=failing))
        else:
            found = propose_for_node(scheduler, situation, node_name, stated, now=now, limit=limit)
    lost = _lost_at(verdict, node_name)
    return NodeStory(
        node=node_name,
        evaluation=evaluation,
        is_chosen=is_chosen,
        rank=_rank(verdict, node_name),
        lost_at=lost.criterion if lost else "",
        value=lost.values[node_name] if lost else None,
        best=lost.values[lost.survivors[0]] if lost else None,
        proposals=found.proposals,
        search=found.search,
    )


def propose(scheduler: Scheduler, situation: Situation, stated: Stated, *, now: datetime) -> Found:
    """Changes with which a pod lands that never does, sought on the nearest nodes.

    On very big clusters only the least priority is, and nothing where an extender fails, which no change mends.
    """
    if failing := _failing_extender(situation.verdict):
        return Found([], ProposalSearch(is_complete=False, failing_extender=failing))
    if len(situation.cluster.nodes) > MAX_NODES_SEARCHED:
        found = propose_anywhere(scheduler, situation, [], stated, now=now, limit=_limit(situation, most=40))
        search = msgspec.structs.replace(found.search, is_skipped=True, is_complete=False)
        return Found(found.proposals, search)
    names = nearest_nodes(scheduler, situation, _NEAREST)
    return propose_anywhere(scheduler, situation, names, stated, now=now, limit=_limit(situation, most=40))


def _failing_extender(verdict: Verdict) -> str:
    """The extender that lets no node pass, for it fails; one that fails about victims alone may not be asked then."""
    calls = [call for call in verdict.extender_calls if call.error and not call.ignored and call.verb == "filter"]
    return calls[-1].extender if calls and verdict.outcome == Outcome.NEVER_LANDS else ""


def _limit(situation: Situation, *, most: int) -> int:
    """How many costly steps a search may take: fewer where each takes longer.

    Extenders are asked again for every verdict. Where one fails, each may last as long as it is waited for.
    """
    if any(call.error for call in situation.verdict.extender_calls):
        return _WITH_A_FAILING_EXTENDER
    return min(most, max(8, 10_000 // len(situation.cluster.nodes)))


def _rank(verdict: Verdict, node_name: str) -> int | None:
    score = verdict.scores.get(node_name)
    return None if score is None else 1 + sum(other > score for other in verdict.scores.values())


def _lost_at(verdict: Verdict, node_name: str) -> TieBreakRound | None:
    """The rule of the choice between candidates that put the node out."""
    rounds = verdict.selection.rounds if verdict.selection else []
    return next((each for each in rounds if node_name in each.values and node_name not in each.survivors), None)
