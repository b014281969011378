"""What reports tell of extenders."""

from __future__ import annotations

import msgspec
import pytest

from kpreempt.report import render
from kpreempt.report.explain.attached import describe_call
from kpreempt.report.explain.dry_run import describe_rank
from kpreempt.report.options import RenderOptions
from kpreempt.report.quoting import plain
from kpreempt.verdict import (
    Code,
    ExtenderCall,
    NodeEvaluation,
    NodeReport,
    Outcome,
    PodSummary,
    Status,
    Verdict,
)

FILTERED = ExtenderCall("http://x", "filter", nodes_sent=2, rejected={"n1": "no GPU"})
HOSTILE = ExtenderCall("http://\x1b[31m", "preempt", nodes_sent=1, error="<b>`down`\x1b[0m")


def verdict(*calls: ExtenderCall) -> Verdict:
    pod = PodSummary(namespace="shop", name="p")
    return Verdict(algorithm="kube-1.13", outcome=Outcome.UNSCHEDULABLE, pod=pod, extender_calls=list(calls))


def test_a_line_for_each_call_in_a_section_of_its_own() -> None:
    text = render([verdict(FILTERED, FILTERED)], "text", options=RenderOptions(width=100))
    line = "http://x filter, 2 nodes: rejects n1: no GPU"
    assert f"\n\nEXTENDERS     {line}\n              {line}\n" in text


def test_no_call_no_section() -> None:
    for style in ("text", "markdown", "json"):
        assert "extender" not in render([verdict()], style, options=RenderOptions()).lower()


@pytest.mark.parametrize(("verbose", "lines"), [(False, 8), (True, 20)])
def test_many_calls_are_shown_in_part(verbose: bool, lines: int) -> None:
    text = render([verdict(*[FILTERED] * 20)], "text", options=RenderOptions(width=100, verbose=verbose))
    assert text.count("rejects n1") == lines
    assert ("… and 12 more calls (-v -v)" in text) is not verbose


def test_markdown_lists_the_calls_and_obeys_nothing_in_them() -> None:
    text = render([verdict(FILTERED, HOSTILE)], "markdown", options=RenderOptions())
    assert "**Extenders:**" in text
    assert "rejects n1: no GPU" in text
    assert "\x1b" not in text
    assert "<b>" not in text


def test_the_document_has_every_call() -> None:
    text = render([verdict(FILTERED)], "json", options=RenderOptions())
    assert '"extenderCalls"' in text
    assert "\x1b" not in render([verdict(HOSTILE)], "json", options=RenderOptions())


@pytest.mark.parametrize(
    ("call", "reported"),
    [
        pytest.param(ExtenderCall("http://x", "filter", 2), "no change", id="nothing"),
        pytest.param(
            ExtenderCall("http://x", "filter", 2, returns_nodes=True),
            "returns full Node objects, which are scored as if they had no pods",
            id="whole nodes",
        ),
        pytest.param(
            ExtenderCall("http://x", "preempt", 2, violations={"a": 0, "b": -1}),
            "sets the budget violations to 0 on a and -1 on b",
            id="numbers of its own",
        ),
        pytest.param(
            ExtenderCall("http://x", "prioritize", 2, error="EOF", ignored=True),
            "http://x prioritize, 2 nodes: fails: EOF (ignored)",
            id="a failure that is passed over",
        ),
    ],
)
def test_what_a_call_brought(call: ExtenderCall, reported: str) -> None:
    assert plain(describe_call(call)).endswith(reported)


@pytest.mark.parametrize(
    ("call", "status", "reported"),
    [
        pytest.param(
            ExtenderCall("http://x", "filter", rejected={"n": "no GPU"}),
            Status(Code.UNSCHEDULABLE, ["no GPU"], plugin="http://x"),
            "n passes all filters, but extender http://x rejects it: no GPU",
            id="with a reason",
        ),
        pytest.param(
            ExtenderCall("http://x", "filter", rejected={"n": ""}),
            Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [], plugin="http://x"),
            "n passes all filters, but extender http://x rejects it without a reason",
            id="without one",
        ),
        pytest.param(
            ExtenderCall("http://x", "preempt", removed=["n"]),
            Status(Code.UNSCHEDULABLE, ["Insufficient cpu"], plugin="NodeResourcesFit"),
            "n is a candidate, but extender http://x drops it",
            id="a candidate",
        ),
    ],
)
def test_the_story_of_a_node_says_which_extender_puts_it_out(call: ExtenderCall, status: Status, reported: str) -> None:
    story = NodeReport("n", NodeEvaluation(filters=[Status(Code.SUCCESS, plugin="NodeName")]), is_chosen=False)
    outcome_of = msgspec.structs.replace(verdict(call), filter={"n": status}, node_report=story)
    assert plain(describe_rank(story, outcome_of)) == reported
    assert reported in render([outcome_of], "text", options=RenderOptions(width=200))


def test_nodes_that_are_refused_without_a_word_are_said_to_be() -> None:
    refused = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [], plugin="http://x")
    silent = msgspec.structs.replace(verdict(), filter={"n1": refused, "n2": refused})
    text = render([silent], "text", options=RenderOptions(width=100))
    assert "shop/p is unschedulable now: both nodes give no reason" in text
    assert "rejected without a reason  http://x" in text
