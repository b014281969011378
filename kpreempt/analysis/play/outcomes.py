"""What a decision of the scheduler may come out as, where chance has a part in it: the one place that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec

from kpreempt.analysis.winners import Winners, landings_of, winners_of
from kpreempt.verdict import Alternatives, Outcome, PodChoice, Verdict


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which a decision may come out: the node, the pods that have to leave it, and how likely that is.

    Of each of ``choices``, which are equal pods, so many leave as well; nothing says which, and the likely ones are
    named first. ``violated`` are the budgets that each of those that leave breaks, ``None`` where the verdict does not
    say. ``weight`` means something only beside the weights of the other branches.
    """

    node: str
    leaving: Sequence[str] = ()
    choices: Sequence[PodChoice] = ()
    violated: Mapping[str, Sequence[str]] | None = None
    weight: float = 1.0


# Picks one of several branches.
Choose = Callable[[Sequence[Branch]], Branch]


def first_branch(branches: Sequence[Branch]) -> Branch:
    """The first, which is the verdict's own answer."""
    return branches[0]


def branches_of(verdict: Verdict) -> list[Branch]:
    """The branches of a verdict that finds a node: at least one, those of the verdict's own nodes first.

    Whatever else chance decides about a pod that finds a node becomes a branch here; a play then takes each like the
    others.
    """
    if verdict.outcome is Outcome.LANDS:
        return [Branch(node=node, weight=weight) for node, weight in _weighed(landings_of(verdict)).items()]
    if verdict.alternatives is not None:
        return _of_equals(verdict, verdict.alternatives)
    return [_eviction(verdict, node, weight) for node, weight in _weighed(winners_of(verdict)).items()]


def _of_equals(verdict: Verdict, alternatives: Alternatives) -> list[Branch]:
    """What any order of equal pods comes to, the likely order's first.

    How likely the others are nobody knows. Here a node is as likely as by the likely order, which weighs as much as all
    others together, and nodes that win by none but others are together as likely as the least likely of these.
    """
    winners = _weighed(winners_of(verdict))
    likely = {node: {victim.pod for victim in victims} for node, victims in verdict.victims.items()}
    on_node = Counter(each.node for each in alternatives.outcomes)
    others = sum(count for node, count in on_node.items() if node not in winners) or 1
    found: list[tuple[bool, Branch]] = []
    for each in alternatives.outcomes:
        victims = likely.get(each.node, set())
        is_likely = set(each.victims) <= victims and len(victims) == len(each.victims) + sum(
            choice.count for choice in each.choices
        )
        choices = [
            PodChoice(choice.count, sorted(choice.pods, key=lambda pod: pod not in victims)) for choice in each.choices
        ]
        number = on_node[each.node]
        share = 1.0 if number == 1 else 0.5 if is_likely else 0.5 / (number - 1)
        weight = winners[each.node] * share if each.node in winners else min(winners.values()) / others
        found.append((is_likely, Branch(node=each.node, leaving=each.victims, choices=choices, weight=weight)))
    return [branch for _, branch in sorted(found, key=lambda each: (not each[0], -each[1].weight))]


def _eviction(verdict: Verdict, node: str, weight: float) -> Branch:
    if node in verdict.victims:
        going = [victim for victim in verdict.victims[node] if not victim.terminating]
        violated = {victim.pod: [use.budget for use in victim.budgets if use.left < 0] for victim in going}
        return Branch(node=node, leaving=list(violated), violated=violated, weight=weight)
    leaving = next((candidate.victims for candidate in verdict.candidates if candidate.node == node), [])
    return Branch(node=node, leaving=leaving, weight=weight)


def _weighed(winners: Winners) -> dict[str, float]:
    nodes, weights = winners
    return dict(zip(nodes, weights if weights is not None else [1.0] * len(nodes), strict=True))
