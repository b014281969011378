"""Hostile expressions end in a value or one clear message, before they take time or memory."""

from __future__ import annotations

import pytest

from kpreempt.cel import CompileError, EvaluationError
from kpreempt.cel.devices import DeviceSelector, DeviceView

DEVICE = DeviceView("gpu.example.com", {"model": {"string": "a" * 64}})
MODEL = 'device.attributes["gpu.example.com"].model'


def _nested(before: str, inner: str, after: str, times: int) -> str:
    return before * times + inner + after * times


def _bound(value: str, double: str, result: str, times: int = 60) -> str:
    """A value, and more and more values that have the one before twice."""
    steps = "".join(f"cel.bind(x{i + 1}, {double.replace('@', f'x{i}')}, " for i in range(times))
    return f"cel.bind(x0, {value}, {steps}{result.replace('@', f'x{times}')}{')' * (times + 1)}"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param(_nested("(", "true", ")", 3000), "nested too deeply", id="parentheses without end"),
        pytest.param(_nested("[", "", "]", 3000), "nested too deeply", id="lists without end"),
        pytest.param(" + ".join(["1"] * 2000) + " > 0", "recursion limit exceeded: 250", id="a sum without end"),
        pytest.param("device" + ".a" * 3000, "recursion limit exceeded: 250", id="names without end"),
        pytest.param(" " * 10241, "may not be more than 10240 bytes", id="a long text"),
        pytest.param("optional.of(1)" + ".optMap(x, x)" * 200, "chained too many times", id="macros that double"),
        pytest.param(f'"x".matches("{"(a{1000})" * 40}")', "invalid matches argument", id="repeats of repeats"),
        pytest.param(f'int("{"1" * 9000}") == 0', "more than 1000 characters", id="a number without end"),
    ],
)
def test_refused(expression: str, message: str) -> None:
    with pytest.raises(CompileError) as refused:
        DeviceSelector(expression)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param(
            "lists.range(1000).map(a, lists.range(1000).map(b, lists.range(1000).map(c, a * b * c))).size() > 0",
            "operation cancelled: actual cost limit exceeded",
            id="loops in loops",
        ),
        pytest.param("lists.range(2000000000).size() > 0", "actual cost limit exceeded", id="a long list"),
        pytest.param("lists.range(100000).distinct().size() > 0", "actual cost limit exceeded", id="quadratic work"),
        pytest.param(_bound('"aaaa"', "@ + @", "@.size() > 0"), "actual cost limit exceeded", id="a text that doubles"),
        pytest.param(_bound("[1]", "@ + @", "@.size() > 0"), "more than 2000000 elements", id="a list that doubles"),
        pytest.param(_bound("[1]", "@ + @", "@ == @", 15), None, id="lists that are large and equal"),
        pytest.param(
            '"a".replace("a", "bbbbbbbbbb")' + '.replace("b", "bbbbbbbbbbbbbbbbbbbb")' * 8 + ".size() > 0",
            "more than 16777216 characters",
            id="replacements that multiply",
        ),
        pytest.param('"%.1000000000f".format([1.0]) == ""', "more than", id="a precision without end"),
        pytest.param(
            'lists.range(40000).map(x, "aaaaaaaaaaaaaaaaaaaaaaaa").join().find("(a?){500}a{500}b") == ""',
            "a regular expression takes too much time",
            id="a search with very many states",
        ),
        pytest.param(
            'cel.bind(s, lists.range(3000).map(x, "0000000000").join(), int(s) == 0)',
            "a number has more than 1000 characters",
            id="a long number",
        ),
        pytest.param(f'{MODEL}.matches("^(a+)+$b")', None, id="a regex that backtracks in other engines"),
        pytest.param(f'{MODEL}.matches("(a|a)*(a|aa)*(x+x+)+y")', None, id="a regex with ambiguous choices"),
        pytest.param("!" * 5000 + "true", None, id="many negations"),
        pytest.param(" || ".join(["false"] * 1000), None, id="a long chain"),
    ],
)
def test_bounded(expression: str, message: str | None) -> None:
    selector = DeviceSelector(expression)
    if message is None:
        assert selector.matches(DEVICE) in (True, False)
        return
    with pytest.raises(EvaluationError) as failed:
        selector.matches(DEVICE)
    assert message in str(failed.value)
