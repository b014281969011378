"""The story of one node, and the changes that would bring another answer, as a reader finds them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kpreempt.report import RenderOptions, render
from kpreempt.verdict import (
    Change,
    ChangeKind,
    NodeEvaluation,
    NodeReport,
    Outcome,
    PodSummary,
    Proposal,
    ProposalSearch,
    Verdict,
)

GIB = 2**30


def proposal(*changes: Change, **more: Any) -> Proposal:
    return msgspec.convert(
        {"node": "a", "changes": changes, "options": ["--set=x=1"], "outcome": "Lands", "nodes": ["a"], **more},
        Proposal,
    )


def never(*proposals: Proposal, **search: Any) -> Verdict:
    return Verdict(
        algorithm="kube-1.36",
        outcome=Outcome.UNSCHEDULABLE,
        pod=PodSummary("shop", "api"),
        proposals=list(proposals),
        proposal_search=ProposalSearch(["a"], **search),
    )


def section(verdict: Verdict, **options: Any) -> str:
    """What stands under CHANGES, on one line."""
    text = render([verdict], "text", options=RenderOptions(width=120, **options))
    return " ".join(text.partition("CHANGES")[2].split())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            Change(ChangeKind.REQUEST, "cpu", 2000, 1800), "request 1.8 cpu instead of 2", id="a smaller request"
        ),
        pytest.param(
            Change(ChangeKind.REQUEST, "memory", 2 * GIB, GIB), "request 1Gi memory instead of 2Gi", id="of memory"
        ),
        pytest.param(
            Change(ChangeKind.REQUEST, "example.com/gpu", 1, 0),
            "request no example.com/gpu instead of 1",
            id="no request at all",
        ),
        pytest.param(
            Change(ChangeKind.MAX_SKEW, "app=api over zone", 1, 3),
            "allow a skew of 3 instead of 1 for app=api over zone",
            id="a larger skew",
        ),
        pytest.param(
            Change(ChangeKind.PRIORITY, before=1000, after=2001),
            "raise the pod's priority from 1,000 to 2,001",
            id="a higher priority",
        ),
        pytest.param(
            Change(ChangeKind.BUDGET, "shop/web", 0, 2),
            "let budget shop/web allow 2 disruptions instead of 0",
            id="a larger budget",
        ),
        pytest.param(Change(ChangeKind.WITHOUT_POD, "shop/dns"), "remove pod shop/dns", id="a pod less"),
        pytest.param(Change(ChangeKind.UNCORDON, "node-a"), "uncordon node-a", id="an open node"),
    ],
)
def test_each_change_is_said_in_words_at_the_top_and_in_its_section(change: Change, words: str) -> None:
    verdict = never(proposal(change))
    assert f"Smallest change: {words}." in render([verdict], "text", options=RenderOptions(width=1000))
    assert f"{words}: lands on a; nothing is evicted --set=x=1" in section(verdict)


def test_every_kind_of_change_has_words_of_its_own() -> None:
    said = {section(never(proposal(Change(kind, "it", 1, 2)))) for kind in ChangeKind}
    assert len(said) == len(ChangeKind)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param({}, "lands on a; nothing is evicted", id="it lands"),
        pytest.param({"nodes": ["a", "b"]}, "lands on a or b; nothing is evicted", id="it lands on a tie"),
        pytest.param(
            {"outcome": "Preempts", "victims": ["shop/x"]},
            "preempts shop/x on a; no budget is violated",
            id="it preempts",
        ),
        pytest.param(
            {"outcome": "PreemptsViolatingBudgets", "victims": ["shop/x"], "numPDBViolations": 1},
            "preempts shop/x on a; 1 budget violation",
            id="it violates a budget",
        ),
        pytest.param(
            {"outcome": "Preempts", "victims": ["shop/x"], "nodes": ["b", "a"]},
            "preempts pods on b or a (on a: shop/x); no budget is violated",
            id="it preempts from one of several",
        ),
    ],
)
def test_each_change_says_what_it_brings(answer: dict[str, Any], words: str) -> None:
    change = Change(ChangeKind.UNCORDON, "a")
    assert words in section(never(proposal(change, **answer)))


@pytest.mark.parametrize(
    ("search", "words"),
    [
        pytest.param({}, "none found (tried single changes and pairs)", id="nothing helps"),
        pytest.param(
            {"verdicts": 40, "is_complete": False}, "none found; the search stopped after 40 verdicts", id="it gave up"
        ),
        pytest.param({"is_skipped": True, "is_complete": False}, "--node NAME searches them for one", id="too big"),
    ],
)
def test_where_nothing_is_proposed_the_report_says_why(search: dict[str, Any], words: str) -> None:
    assert words in section(never(**search))


def test_a_search_that_gave_up_says_so_below_what_it_found() -> None:
    found = proposal(Change(ChangeKind.UNCORDON, "a"))
    assert "the search stopped after 8 verdicts" in section(never(found, verdicts=8, is_complete=False))


def test_options_never_break_at_a_space_so_that_they_can_be_copied() -> None:
    path = "--set=spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]=null"
    found = proposal(Change(ChangeKind.POD_ANTI_AFFINITY, "app=api"), options=[path, "--without=pod/shop/a b"])
    text = render([never(found)], "text", options=RenderOptions(width=40))
    assert "--set='spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]=null'\n" in text
    markdown = render([never(found)], "markdown", options=RenderOptions())
    assert "--without='pod/shop/a b'" in markdown


def test_only_a_few_proposals_are_shown_unless_all_are_requested() -> None:
    verdict = never(*(proposal(Change(ChangeKind.WITHOUT_POD, f"shop/p{index}")) for index in range(6)))
    assert "… and 2 more changes (-v -v)" in section(verdict)
    assert "6. remove pod shop/p5" in section(verdict, verbose=True)


def test_changes_that_only_help_together_are_said_to() -> None:
    both = proposal(Change(ChangeKind.UNCORDON, "a"), Change(ChangeKind.WITHOUT_POD, "shop/x"))
    words = "no single change is enough; with this change, the pod lands: uncordon a, and remove pod shop/x"
    assert words in section(never(both))


def test_a_story_of_a_node_that_lost_by_score_gives_its_rank() -> None:
    verdict = Verdict(
        algorithm="kube-1.36",
        outcome=Outcome.LANDS,
        pod=PodSummary("shop", "api"),
        scores={"a": 300, "b": 500, "c": 400},
        feasible_nodes=["a", "b", "c"],
        chosen_nodes=["b"],
        lands_on=["b"],
        node_report=NodeReport("a", NodeEvaluation(), rank=3),
    )
    text = render([verdict], "text", options=RenderOptions())
    assert "NODE          a fits and ranks 3 of 3: score 300 (best: 500)" in text
