from __future__ import annotations

import io

import pytest

from kpreempt.cli import scenarios
from kpreempt.cli.scenarios import decode_scenario, name_of, read_lines
from kpreempt.errors import InputError


def test_blank_lines_are_passed_over_and_numbers_count_them() -> None:
    stream = io.BytesIO(b'\xef\xbb\xbf{"a":1}\n\n  \r\n{"b":2}')
    assert list(read_lines(stream, "s")) == [(1, b'{"a":1}\n'), (4, b'{"b":2}')]


def test_a_line_beyond_the_limit_is_an_error_and_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "MAX_LINE_BYTES", 2**20)
    stream = io.BytesIO(b"x" * (3 * 2**20) + b"\n{}\n")
    (first, error), second = list(read_lines(stream, "s"))
    assert isinstance(error, InputError)
    assert (first, error.message) == (1, "s:1: line longer than 1 MiB")
    assert second == (2, b"{}\n")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param(b"[1]", "expected `object`, got `array`", id="a line that is no object"),
        pytest.param(b'{"name": "a"}', "Object missing required field `pod`", id="no pod"),
        pytest.param(b'{"pod": {}', "not JSON: Expecting ',' delimiter (character 11)", id="a line cut short"),
        pytest.param(b"pod: {}", "not JSON: Expecting value (character 1)", id="YAML instead of JSON"),
        pytest.param(b'{"pod": {}} {}', "not JSON: Extra data (character 13)", id="two documents on a line"),
        pytest.param(b'{"pod": {"a": NaN}}', "NaN is not a number in JSON", id="NaN"),
        pytest.param(b'{"pod": {"a": -Infinity}}', "-Infinity is not a number in JSON", id="infinity"),
        pytest.param(b'{"pod": ' + b"9" * 5000 + b"}", "number too long: 5000 digits", id="a huge number"),
        pytest.param(b'{"pod": {"a": 1, "a": 2}}', "duplicate key 'a' in an object", id="a key that is there twice"),
        pytest.param(b'{"pod": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply", id="deep nesting"),
        pytest.param(b'{"pod": "\xff"}', "not UTF-8 (byte 10)", id="bytes that are no text"),
        pytest.param(
            b'{"pod": {}, "featureGates": {"A": "yes"}}',
            "expected `bool`, got `str` - at `$.featureGates[...]`",
            id="a gate that is no boolean",
        ),
    ],
)
def test_a_bad_line_is_one_message(line: bytes, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        decode_scenario(line, "in.jsonl", 7)
    assert caught.value.message == f"in.jsonl:7: {problem}"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        pytest.param(b'{"name": "a", "pod": NaN', "", id="not JSON"),
        pytest.param(b'{"name": "a"}', "a", id="JSON that lacks the rest"),
        pytest.param(b'{"name": 3}', "", id="a name that is no text"),
    ],
)
def test_the_name_of_a_bad_line_is_kept_where_it_can_be_read(line: bytes, name: str) -> None:
    assert name_of(line) == name
