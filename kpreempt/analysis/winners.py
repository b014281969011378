"""The nodes that a verdict can end with, where ties and searches that stop early leave it to chance."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.schedulers.kube.preemption.odds import (
    SampledCandidate,
    outcomes_from_a_start,
    outcomes_in_any_order,
)
from kpreempt.verdict import OddsOutcome, SearchOrder, Verdict

# Nodes and how likely each is; without probabilities each is as likely as the others.
Winners = tuple[Sequence[str], Sequence[float] | None]


def winners_of(verdict: Verdict) -> Winners:
    """The nodes that a preemption can end with, those of the best candidates first."""
    nodes = verdict.nominated_nodes
    return _likely(nodes, verdict.odds.outcomes) if verdict.odds is not None else (nodes, None)


def landings_of(verdict: Verdict) -> Winners:
    """The nodes that a pod can land on, those of the best scores first.

    Where not all nodes that fit are scored, and nobody knows which, the search may have started anywhere; scores are
    taken to be what they are among all nodes.
    """
    nodes, sampling = verdict.lands_on or verdict.chosen_nodes, verdict.sampling
    if sampling is None:
        return nodes, None
    scored = {node: SampledCandidate(False, (verdict.scores[node],)) for node in verdict.feasible_nodes}
    if sampling.order is SearchOrder.LIST:
        return _likely(nodes, outcomes_from_a_start(verdict.feasible_nodes, scored, sampling.nodes_to_find))
    return _likely(nodes, outcomes_in_any_order(scored, sampling.nodes_to_find))


def _likely(best: Sequence[str], outcomes: Sequence[OddsOutcome]) -> Winners:
    if len(outcomes) < 2:
        return best, None
    likely = {node: each.probability / len(each.nodes) for each in outcomes for node in each.nodes}
    nodes = list(dict.fromkeys([*(node for node in best if node in likely), *likely]))
    return nodes, [likely[node] for node in nodes]
