"""Selectors of a command line, and the words in which Kubernetes refuses one."""

from __future__ import annotations

import pytest

from kpreempt.eviction.selectors import SelectorError, parse_selector, problem_of
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement

LABELS = {"app": "web", "tier": "front", "in": "yes"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier!=back", True),
        ("app!=web", False),
        ("other!=web", True),
        ("app in (web, db)", True),
        ("app notin (web)", False),
        ("other notin (web)", True),
        ("app,!other", True),
        ("!app", False),
        ("in in (yes)", True),
        ("app=", False),
        ("app in ()", False),
        ("app in (,web)", True),
    ],
)
def test_a_selector_matches_as_it_does_for_kubernetes(text: str, matches: bool) -> None:
    assert all(part.matches(LABELS) for part in parse_selector(text)) is matches


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("app in", "unable to parse requirement: found '' expected: '('"),
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
        ("app=web,", "found '', expected: identifier after ','"),
        ("app web", "unable to parse requirement: found 'web', expected: in, notin, =, ==, !=, gt, lt"),
        ("app in (web", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("app=web)", "found ')', expected: ',' or 'end of string'"),
        (
            "app>x",
            'unable to parse requirement: values[0]: Invalid value: "x": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        ("/x=y", 'unable to parse requirement: <nil>: Invalid value: "/x": prefix part must be non-empty'),
    ],
)
def test_a_broken_selector_is_refused_in_kubernetes_words(text: str, words: str) -> None:
    with pytest.raises(SelectorError) as refused:
        parse_selector(text)
    assert str(refused.value) == words


def test_a_budget_whose_selector_lists_no_values_has_a_problem() -> None:
    selector = LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="In")])
    assert problem_of(selector) == "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
