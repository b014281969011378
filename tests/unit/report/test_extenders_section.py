"""What reports tell of extenders."""

from __future__ import annotations

import pytest

from kpreempt.report import render
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import ExtenderCall, Outcome, PodSummary, Verdict

FILTERED = ExtenderCall("http://x", "filter", asked=2, refused={"n1": "no GPU"})
HOSTILE = ExtenderCall("http://\x1b[31m", "preempt", asked=1, error="<b>`down`\x1b[0m")


def verdict(*calls: ExtenderCall) -> Verdict:
    pod = PodSummary(namespace="shop", name="p")
    return Verdict(algorithm="kube-1.13", outcome=Outcome.NEVER_LANDS, pod=pod, extender_calls=list(calls))


def test_a_line_for_each_call_in_a_section_of_its_own() -> None:
    text = render([verdict(FILTERED, FILTERED)], "text", options=RenderOptions(width=100))
    line = "http://x filter, 2 nodes: refuses n1: no GPU"
    assert f"\n\nEXTENDERS   {line}\n            {line}\n" in text


def test_no_call_no_section() -> None:
    for style in ("text", "markdown", "json"):
        assert "extender" not in render([verdict()], style, options=RenderOptions()).lower()


@pytest.mark.parametrize(("verbose", "lines"), [(False, 8), (True, 20)])
def test_many_calls_are_shown_in_part(verbose: bool, lines: int) -> None:
    text = render([verdict(*[FILTERED] * 20)], "text", options=RenderOptions(width=100, verbose=verbose))
    assert text.count("refuses n1") == lines
    assert ("… and 12 more (--verbose)" in text) is not verbose


def test_markdown_lists_the_calls_and_obeys_nothing_in_them() -> None:
    text = render([verdict(FILTERED, HOSTILE)], "markdown", options=RenderOptions())
    assert "**Extenders:**" in text
    assert "refuses n1: no GPU" in text
    assert "\x1b" not in text
    assert "<b>" not in text


def test_the_document_has_every_call() -> None:
    text = render([verdict(FILTERED)], "json", options=RenderOptions())
    assert '"extenderCalls"' in text
    assert "\x1b" not in render([verdict(HOSTILE)], "json", options=RenderOptions())
