"""Regular expressions, as Go has them."""

from __future__ import annotations

import pytest

from kpreempt.cel.regex import RegexError, compile_regex


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        pytest.param("a|ab", "ab", ["a"], id="the first alternative, not the longest"),
        pytest.param("a*?", "aa", ["", "", ""], id="lazy"),
        pytest.param("a*", "baab", ["", "aa", ""], id="no empty match right after another"),
        pytest.param("(?i)k", "kK\u212a", ["k", "K", "\u212a"], id="all cases of a letter"),
        pytest.param(r"\s+", "a\v b", [" "], id="a vertical tab is no space"),
        pytest.param("$", "a\n", [""], id="the end is the end of the text"),
        pytest.param("(?m)^.$", "a\nb", ["a", "b"], id="lines"),
        pytest.param(r"\bfoo\b", "foo foobar", ["foo"], id="words"),
        pytest.param("(|a)*", "aa", ["", "", ""], id="a loop over what may be empty"),
        pytest.param("[^a-c]{2,3}", "abxyzc", ["xyz"], id="counts"),
        pytest.param(r"\pL+", "日本1", ["日本"], id="a category of Unicode"),
        pytest.param(r"\Qa.b\E+", "a.bb axb", ["a.bb"], id="quoted text"),
        pytest.param("(?U)a+", "aaa", ["a", "a", "a"], id="ungreedy"),
        pytest.param("b.*c|abc", "abcbc", ["abc", "bc"], id="the leftmost match wins"),
    ],
)
def test_finds(pattern: str, text: str, found: list[str]) -> None:
    assert compile_regex(pattern).find_all(text) == found
    assert compile_regex(pattern).matches(text)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "missing closing ): `(`"),
        (")", "unexpected ): `)`"),
        ("[a", "missing closing ]: `[a`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(a{100}){11}", "invalid repeat count: `{11}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        ("\\", "trailing backslash at end of expression: ``"),
        (r"\p{Greek}", r"Unicode scripts are not supported: `\p{Greek}`"),
    ],
)
def test_refuses(pattern: str, message: str) -> None:
    with pytest.raises(RegexError) as refused:
        compile_regex(pattern)
    assert str(refused.value) == f"error parsing regexp: {message}"
