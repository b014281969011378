"""Laws of every report on Volcano, for any result."""

from __future__ import annotations

import re
import unicodedata

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from kpreempt.report import RenderOptions
from kpreempt.report.answers import ANSWER_FORMATS, render_answer
from kpreempt.verdict.volcano import GangAnswer, GangAnswers, SessionAnswer
from tests.property.volcano_strategies import gang_answers, session_answers

ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")
# Text starts at most this many cells from the left.
DEEPEST_INDENT = 24
VolcanoAnswer = SessionAnswer | GangAnswer | GangAnswers

answers = st.one_of(session_answers, gang_answers, st.builds(GangAnswers, items=st.lists(gang_answers, max_size=2)))
options = st.builds(RenderOptions, width=st.sampled_from([1, 40, 80, 120]), verbose=st.booleans())
laws = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@laws
@given(answer=answers, chosen=options)
def test_every_format_renders_any_answer_without_a_character_that_drives_a_terminal(
    answer: VolcanoAnswer, chosen: RenderOptions
) -> None:
    for name in ANSWER_FORMATS:
        rendered = render_answer(answer, name, chosen)
        hidden = {character for character in rendered if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")}
        assert hidden <= {"\n"}, name


@laws
@given(answer=answers, chosen=options)
def test_color_adds_only_escape_sequences(answer: VolcanoAnswer, chosen: RenderOptions) -> None:
    plain = render_answer(answer, "text", chosen)
    coloured = render_answer(answer, "text", msgspec.structs.replace(chosen, color=True))
    assert ESCAPE_SEQUENCE.sub("", coloured) == plain


@laws
@given(answer=answers, chosen=options)
def test_a_line_is_wider_than_the_page_only_for_a_word_that_does_not_fit(
    answer: VolcanoAnswer, chosen: RenderOptions
) -> None:
    for line in render_answer(answer, "text", chosen).splitlines():
        longest = max(map(cell_len, line.split()), default=0)
        assert cell_len(line) <= max(chosen.width, longest + DEEPEST_INDENT), line


@laws
@given(answer=answers)
def test_json_lines_read_back_as_the_answer(answer: VolcanoAnswer) -> None:
    lines = render_answer(answer, "jsonl", RenderOptions()).splitlines()
    items = answer.items if isinstance(answer, GangAnswers) else [answer]
    assert [msgspec.json.decode(line, type=type(item)) for line, item in zip(lines, items, strict=True)] == items
