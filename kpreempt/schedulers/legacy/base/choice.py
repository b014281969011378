"""The choice between candidates (``pickOneNodeForPreemption``, ``core/generic_scheduler.go``) by a version's rules.

What is left equal at the end comes in the order of a Go map, which is any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kpreempt.schedulers.choice import FEWEST_VICTIMS, CandidateVictims, Criterion, select_nodes
from kpreempt.schedulers.legacy.base.victims import Victims
from kpreempt.verdict import Selection


def choose(candidates: Mapping[str, Victims], criteria: Sequence[Criterion]) -> Selection:
    """Play the rules; a candidate without victims wins at once."""
    if any(not victims.pods for victims in candidates.values()):
        criteria = [FEWEST_VICTIMS]
    victims_of = {
        node: CandidateVictims([info.pod for info in victims.pods], victims.num_violations)
        for node, victims in candidates.items()
    }
    return select_nodes(victims_of, criteria)
