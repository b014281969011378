"""Names with stars."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.analysis.check.gate.rules import matches


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        pytest.param("shop", "shop", True, id="the same name"),
        pytest.param("shop", "shops", False, id="a longer one is another"),
        pytest.param("*", "", True, id="a star alone is anything"),
        pytest.param("a*a", "a", False, id="one letter is not two"),
        pytest.param("Deployment shop/*", "Deployment shop/api", True, id="all of a namespace"),
        pytest.param("[ab]", "a", False, id="only the star is special"),
    ],
)
def test_stars(pattern: str, text: str, expected: bool) -> None:
    assert matches(pattern, text) is expected


@given(pattern=st.text("ab*", max_size=8), text=st.text("ab", max_size=10))
def test_a_star_is_any_text_and_all_else_itself(pattern: str, text: str) -> None:
    expected = re.fullmatch("(?s)" + ".*".join(map(re.escape, pattern.split("*"))), text)
    assert matches(pattern, text) is (expected is not None)


def test_many_stars_take_no_time() -> None:
    assert not matches("*a" * 5000 + "b", "a" * 10000)
