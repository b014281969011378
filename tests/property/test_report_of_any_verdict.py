"""Laws of every report, for any verdict."""

from __future__ import annotations

import json
import re
import unicodedata
from datetime import UTC, datetime
from typing import Any

import jsonschema
import msgspec
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from kpreempt.report import FORMATS, RenderOptions, render
from kpreempt.report.options import Extent
from kpreempt.report.schema import verdict_schema
from kpreempt.verdict import Verdict, VerdictList
from tests.property.verdict_strategies import verdicts

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")
# Text starts at most this many cells from the left.
DEEPEST_INDENT = 24
VALIDATOR = jsonschema.Draft202012Validator(verdict_schema())

options = st.builds(
    RenderOptions,
    width=st.sampled_from([1, 40, 80, 120]),
    verbose=st.booleans(),
    now=st.sampled_from([None, NOW]),
    extent=st.sampled_from(Extent),
)
laws = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@laws
@given(verdict=verdicts(), chosen=options)
def test_every_format_renders_any_verdict_without_a_character_that_drives_a_terminal(
    verdict: Verdict, chosen: RenderOptions
) -> None:
    for name in FORMATS:
        rendered = render([verdict], name, options=chosen)
        hidden = {character for character in rendered if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")}
        assert hidden <= {"\n"}, name


@laws
@given(verdict=verdicts(), chosen=options)
def test_color_adds_only_escape_sequences(verdict: Verdict, chosen: RenderOptions) -> None:
    plain = render([verdict], "text", options=chosen)
    coloured = render([verdict], "text", options=msgspec.structs.replace(chosen, color=True))
    assert ESCAPE_SEQUENCE.sub("", coloured) == plain


@laws
@given(verdict=verdicts(), chosen=options)
def test_json_yaml_and_jsonl_hold_the_same_document_and_give_the_verdict_back(
    verdict: Verdict, chosen: RenderOptions
) -> None:
    as_json = render([verdict], "json", options=chosen)
    document = json.loads(as_json)
    assert json.loads(render([verdict], "jsonl", options=chosen)) == document
    assert _plain(yaml.safe_load(render([verdict], "yaml", options=chosen))) == _plain(document)
    decoded = msgspec.json.decode(as_json, type=Verdict)
    assert msgspec.structs.replace(decoded, api_version=verdict.api_version, kind=verdict.kind) == verdict


@laws
@given(several=st.lists(verdicts(), max_size=3))
def test_the_schema_accepts_every_verdict_and_every_list(several: list[Verdict]) -> None:
    document = json.loads(render(several, "json", options=RenderOptions(as_list=True)))
    VALIDATOR.validate(document)
    assert len(msgspec.convert(document, VerdictList).items) == len(several)
    for verdict in several:
        VALIDATOR.validate(json.loads(render([verdict], "json")))


@laws
@given(verdict=verdicts(), width=st.sampled_from([40, 80, 120]))
def test_a_line_is_wider_than_the_page_only_for_a_name_that_cannot_be_broken(verdict: Verdict, width: int) -> None:
    for line in render([verdict], "text", options=RenderOptions(width=width, now=NOW)).splitlines():
        # A command is not broken, so that it can be copied.
        if cell_len(line) > width and "kubectl " not in line:
            assert max(cell_len(word) for word in line.split(" ")) > width - DEEPEST_INDENT


def _plain(value: Any) -> Any:
    """YAML parses times; the JSON has them as text."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
