"""The result on one screen, for any verdict: its lines, their width, and that it reports truncation."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from kpreempt.report import RenderOptions, render
from kpreempt.report.options import Extent
from kpreempt.verdict import Outcome, Verdict
from tests.batch_lines import as_document
from tests.conformance.cases import FIXTURES, read_lines
from tests.conformance.comparison import batch_answers
from tests.property.verdict_strategies import verdicts

NOW = datetime(2026, 11, 21, tzinfo=UTC)
# A terminal of 24 lines without the command line and the prompt.
LINES = 22
ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")
SUITES = sorted([*FIXTURES.glob("*.jsonl.gz"), *(FIXTURES.parent / "legacy").glob("*.jsonl.gz")])
# Of each suite, every n-th scenario.
STEP = 4
# The lines around the list of several pods.
AROUND_A_LIST = 5
LINES_OF_A_REASON = 3

laws = settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.generate, Phase.reuse],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def screen(verdicts: list[Verdict], width: int = 80, *, color: bool = False) -> list[str]:
    options = RenderOptions(width=width, now=NOW, extent=Extent.SCREEN, color=color)
    return render(verdicts, "text", options=options).splitlines()


@laws
@given(verdict=verdicts(), width=st.sampled_from([60, 80, 120]))
def test_any_verdict_fits_a_terminal_of_24_lines_with_the_prompt(verdict: Verdict, width: int) -> None:
    lines = screen([verdict], width)
    assert len(lines) <= LINES < 24
    assert max(map(cell_len, lines)) <= width


@laws
@given(several=st.lists(verdicts(), min_size=2, max_size=12))
def test_several_pods_take_a_line_each(several: list[Verdict]) -> None:
    lines = screen(several)
    # The reason of a rejection is below the table.
    reasons = sum(each.outcome is Outcome.REJECTED for each in several)
    assert len(lines) <= min(len(several) + AROUND_A_LIST + LINES_OF_A_REASON * reasons, LINES)
    assert max(map(cell_len, lines)) <= 80


@laws
@given(verdict=verdicts())
def test_color_does_not_change_the_text_of_a_screen(verdict: Verdict) -> None:
    coloured = screen([verdict], color=True)
    assert [ESCAPE_SEQUENCE.sub("", line) for line in coloured] == screen([verdict])


@laws
@given(several=st.lists(verdicts(), min_size=1, max_size=3))
def test_the_brief_report_is_one_line(several: list[Verdict]) -> None:
    brief = render(several, "text", options=RenderOptions(now=NOW, extent=Extent.LINE))
    assert brief.count("\n") == len(several)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("suite", SUITES, ids=lambda path: f"{path.parent.name}-{path.name.partition('.jsonl')[0]}")
def test_what_the_real_schedulers_decided_fits_a_screen(suite: Path, tmp_path: Path) -> None:
    answers = batch_answers(list(read_lines(suite))[::STEP], tmp_path)
    assert any("verdict" in answer for answer in answers)
    for answer in answers:
        if "verdict" not in answer:
            continue
        verdict = msgspec.convert(as_document(answer["verdict"]), Verdict)
        for width in (80, 120):
            lines = screen([verdict], width)
            assert len(lines) <= LINES
            assert max(map(cell_len, lines)) <= width
