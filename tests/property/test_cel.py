"""Laws of CEL: any text of an expression results in a value, or in one of two errors."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from kpreempt.cel import CompileError, EvaluationError
from kpreempt.cel.devices import DeviceSelector, DeviceView
from kpreempt.cel.functions import FUNCTIONS
from kpreempt.cel.regex import RegexError, compile_regex

DEVICE = DeviceView(
    "gpu.example.com",
    {"model": {"string": "a100"}, "index": {"int": 1}, "version": {"version": "1.2.3"}},
    {"memory": {"value": "80Gi"}},
)
_MACROS = "all exists exists_one map filter transformList transformMap sortBy optMap has cel.bind x y k"
_SIGNS = "( ) [ ] { } . .? [? , ? : + - * / % ! && || < <= == != > >= in true false null"
_WORDS = [
    *sorted(FUNCTIONS),
    *_MACROS.split(),
    *_SIGNS.split(),
    *('"a"', "'b'", 'b"c"', "r'\\d'", "1", "2u", "1.5", "-1", "9223372036854775807", '"1Gi"', '"1.2.3"', '"["'),
    *("device", "device.driver", 'device.attributes["gpu.example.com"]', "device.capacity", "[1, 2]", '{"a": 1}'),
]


def _decide(expression: str) -> None:
    try:
        selector = DeviceSelector(expression)
    except CompileError as error:
        assert str(error)
        return
    try:
        assert selector.matches(DEVICE) in (True, False)
    except EvaluationError as error:
        assert str(error)
    assert selector.cost >= 0


@given(st.lists(st.sampled_from(_WORDS), max_size=30).map(" ".join))
def test_words_in_any_order_end_in_a_value_or_an_error(expression: str) -> None:
    _decide(expression)


@given(st.text(max_size=80))
def test_any_text_ends_in_a_value_or_an_error(expression: str) -> None:
    _decide(expression)


_ARGUMENTS = st.sampled_from(
    [
        *("1", "1u", "1.5", "true", "null", '"a"', 'b"a"', "[1, 2]", '{"a": 1}', "int", "optional.of(1)", "-1", "[]"),
        *('quantity("1")', 'semver("1.2.3")', 'ip("::1")', 'cidr("::/1")', 'url("/a")', "format.uuid()"),
        *("timestamp(0)", 'duration("1s")', '""', '"1.2.3.4"', 'device.attributes["gpu.example.com"].index'),
    ]
)


@given(st.sampled_from(sorted(FUNCTIONS)), st.lists(_ARGUMENTS, max_size=4))
def test_every_function_takes_any_arguments_or_says_what_it_does_not_take(function: str, values: list[str]) -> None:
    dynamic = [f"dyn({value})" for value in values]
    _decide(f"[dyn({function}({', '.join(dynamic)}))] == []")
    if dynamic:
        _decide(f"[dyn({dynamic[0]}.{function}({', '.join(dynamic[1:])}))] == []")


# If Python's own engine has the same semantics.
_PIECES = st.sampled_from([*"abc", ".", "[ab]", "[^a]", "(a|b)", "(ab|a)", "^", "(?:ab)", "x"])
_PATTERNS = st.lists(st.tuples(_PIECES, st.sampled_from(["", "", "*", "+?", "{1,2}"])), max_size=5).map(
    lambda parts: "".join(piece + ("" if piece == "^" else count) for piece, count in parts)
)


@given(_PATTERNS, st.text("abcx", max_size=12))
def test_a_search_finds_what_pythons_engine_finds(pattern: str, text: str) -> None:
    expected = re.search(pattern, text)
    assert compile_regex(pattern).find(text) == (expected.span() if expected else None)


@given(st.text("ab(){}[]|*+?^$\\.-,1dpLQE:i", max_size=20), st.text("ab1", max_size=20))
def test_any_pattern_compiles_or_is_rejected(pattern: str, text: str) -> None:
    try:
        regex = compile_regex(pattern)
    except RegexError as error:
        assert str(error).startswith("error parsing regexp: ")
        return
    found = regex.find(text)
    assert (found is not None) is regex.matches(text)
