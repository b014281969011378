"""The possible outcomes of equal pods in a verdict, expanded."""

from __future__ import annotations

from itertools import combinations, product

from kpreempt.verdict import PossibleOutcome, Verdict

# A node, its victims, and the number of PDB violations.
PossibleResult = tuple[str, frozenset[str], int]


def reported_outcomes(verdict: Verdict) -> set[PossibleResult]:
    """Every outcome of a preemption in the verdict; none if there is no preemption."""
    return {reported for outcome in verdict.possible_outcomes for reported in outcome_of(outcome)}


def outcome_of(outcome: PossibleOutcome) -> set[PossibleResult]:
    """An outcome with each choice expanded in every way."""
    chosen = product(*(combinations(choice.pods, choice.count) for choice in outcome.choices))
    return {
        (
            outcome.node,
            frozenset([*outcome.victims, *(pod for pods in each for pod in pods)]),
            outcome.num_pdb_violations,
        )
        for each in chosen
    }
