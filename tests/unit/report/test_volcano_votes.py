"""How the votes of tiers are reported, including plugins that undo the votes of others."""

from __future__ import annotations

import pytest

from kpreempt.report.blocks import text_of
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano.attempts import votes_on
from kpreempt.verdict.volcano import NodeAttempt, NodeOutcome, VictimRejection, Vote, VoteEffect

A, B = "ml/a", "ml/b"


def vote(tier: int, plugin: str, victims: list[str], effect: VoteEffect, left: list[str]) -> Vote:
    refused = [VictimRejection(task, f"{plugin} says no") for task in (A, B) if task not in victims]
    return Vote(tier=tier, plugin=plugin, victims=victims, rejected=refused, effect=effect, remaining=left)


def reported(votes: list[Vote], deciding_tier: int, victims: list[str]) -> str:
    tried = NodeAttempt(
        node="n1",
        outcome=NodeOutcome.NOT_ENOUGH,
        candidates=[A, B],
        votes=votes,
        deciding_tier=deciding_tier,
        victims=victims,
    )
    return "\n".join(text_of(node.words) for node in votes_on(tried, home="ml/job", options=RenderOptions()))


FIRST, KEPT, EMPTIED = VoteEffect.FIRST, VoteEffect.INTERSECTED, VoteEffect.EMPTIED


@pytest.mark.parametrize(
    ("votes", "tier", "victims", "lines"),
    [
        pytest.param(
            [vote(1, "priority", [A, B], FIRST, [A, B]), vote(1, "gang", [A, B], KEPT, [A, B])],
            1,
            [A, B],
            ["tier 1: priority and gang select all"],
            id="plugins that agree stand in a line, and nothing needs to be combined",
        ),
        pytest.param(
            [vote(1, "priority", [A], FIRST, [A]), vote(1, "gang", [A, B], KEPT, [A])],
            1,
            [A],
            ["tier 1: priority selects a, but not b: priority says no", "tier 1: gang selects all; victims left: a"],
            id="a later plugin cannot add to the list",
        ),
        pytest.param(
            [vote(1, "priority", [], EMPTIED, []), vote(2, "drf", [A], FIRST, [A])],
            2,
            [A],
            [
                "tier 1: priority selects no victims: priority says no",
                "tier 2: drf selects a, but not b: drf says no",
                "→ priority ends tier 1 without victims; tier 2 alone decides: a",
            ],
            id="a first tier that names nobody leaves all to the second",
        ),
        pytest.param(
            [
                vote(1, "priority", [A, B], FIRST, [A, B]),
                vote(1, "gang", [], EMPTIED, []),
                vote(2, "drf", [A, B], KEPT, []),
            ],
            0,
            [],
            [
                "tier 2: drf selects all; victims left: none",
                "→ gang clears the list and ends tier 1; once emptied, the list stays empty",
            ],
            id="a list that was cleared stays empty",
        ),
        pytest.param(
            [vote(1, "gang", [], EMPTIED, []), vote(2, "drf", [], EMPTIED, [])],
            0,
            [],
            ["→ no tier selects victims"],
            id="no tier names a victim",
        ),
        pytest.param([], 0, [], ["no plugin selects victims"], id="no plugin decides"),
    ],
)
def test_votes_are_reported_with_how_they_combine(
    votes: list[Vote], tier: int, victims: list[str], lines: list[str]
) -> None:
    text = reported(votes, tier, victims)
    missing = [line for line in lines if line not in text]
    assert missing == [], text
    assert ("→" in text) == any(line.startswith("→") for line in lines)
