"""What a verdict tells of equal pods, spelt out."""

from __future__ import annotations

from itertools import combinations, product

from kpreempt.verdict import PossibleOutcome, Verdict

# A node, the victims there, and how many of them violate a budget.
Told = tuple[str, frozenset[str], int]


def told_outcomes(verdict: Verdict) -> set[Told]:
    """Every outcome of a preemption that the verdict tells of; none where there is no preemption."""
    return {told for outcome in verdict.possible_outcomes for told in told_of(outcome)}


def told_of(outcome: PossibleOutcome) -> set[Told]:
    """An outcome with each choice made in every way."""
    chosen = product(*(combinations(choice.pods, choice.count) for choice in outcome.choices))
    return {
        (
            outcome.node,
            frozenset([*outcome.victims, *(pod for pods in each for pod in pods)]),
            outcome.num_pdb_violations,
        )
        for each in chosen
    }
