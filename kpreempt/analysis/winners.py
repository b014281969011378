"""The nodes that a verdict's preemption can end with, where ties and searches that stop early leave it to chance."""

from __future__ import annotations

from kpreempt.verdict import Verdict


def is_sampled(verdict: Verdict) -> bool:
    """Whether the search stops early, and other candidates than the best of all may win."""
    return verdict.odds is not None and len(verdict.odds.outcomes) != 1


def is_one_node(verdict: Verdict) -> bool:
    """Whether chance decides nothing."""
    return len(verdict.nominated_nodes) == 1 and not is_sampled(verdict)


def winners_of(verdict: Verdict) -> tuple[list[str], list[float] | None]:
    """The nodes, those of the best candidates first, and how likely each is.

    Without probabilities each is as likely as the others.
    """
    if verdict.odds is None or len(verdict.odds.outcomes) < 2:
        return verdict.nominated_nodes, None
    likely = {node: each.probability / len(each.nodes) for each in verdict.odds.outcomes for node in each.nodes}
    best = [node for node in verdict.nominated_nodes if node in likely]
    nodes = list(dict.fromkeys([*best, *likely]))
    return nodes, [likely[node] for node in nodes]
