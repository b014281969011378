"""Indexes of selectors and label sets find the same as matching each selector with each label set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kpreempt.model.labels import LabelIndex, LabelSelector, LabelSelectorRequirement, SelectorIndex

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from(["x", "y", "z", ""])
LABELS = st.dictionaries(KEYS, VALUES, max_size=3)
REQUIREMENTS = st.builds(
    LabelSelectorRequirement,
    KEYS,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(VALUES, max_size=3),
)
SELECTORS = st.builds(LabelSelector, LABELS, st.lists(REQUIREMENTS, max_size=3))


@given(st.lists(LABELS, max_size=10).map(lambda few: few * 30), st.lists(SELECTORS, max_size=5))
def test_a_label_index_finds_what_each_selector_matches(
    labels: list[dict[str, str]], selectors: list[LabelSelector]
) -> None:
    index = LabelIndex(labels)
    for selector in selectors:
        assert index.matching(selector) == [at for at, each in enumerate(labels) if selector.matches(each)]


@given(st.lists(LABELS, max_size=5), st.lists(SELECTORS, max_size=8).map(lambda few: few * 2))
def test_a_selector_index_finds_what_matches_each_label_set(
    labels: list[dict[str, str]], selectors: list[LabelSelector]
) -> None:
    index = SelectorIndex(selectors)
    for each in [*labels, *labels]:
        assert index.matching(each) == [at for at, selector in enumerate(selectors) if selector.matches(each)]
