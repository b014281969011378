"""Label selectors that are put together, and the words in which upstream refuses one."""

from __future__ import annotations

import pytest

from kpreempt.model.labels import LabelSelector, LabelSelectorOperator, LabelSelectorRequirement
from kpreempt.schedulers.kube.framework.label_selectors import narrowed, selector_error

NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
SUBDOMAIN = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def expression(key: str, operator: LabelSelectorOperator, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=[LabelSelectorRequirement(key, operator, list(values))])


@pytest.mark.parametrize(
    ("selector", "error"),
    [
        pytest.param(None, None, id="no selector"),
        pytest.param(LabelSelector(), None, id="an empty selector"),
        pytest.param(LabelSelector({"example.com/a": ""}), None, id="a prefix and an empty value"),
        pytest.param(
            expression("a", "In"),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="In without values",
        ),
        pytest.param(
            expression("a", "Exists", "x", "y"),
            'values: Invalid value: ["x","y"]: values set must be empty for exists and does not exist',
            id="Exists with values",
        ),
        pytest.param(
            expression("a", "In", "{{.bad}}", "ok"),
            f'values[0][a]: Invalid value: "{{{{.bad}}}}": {VALUE}',
            id="a value with forbidden characters",
        ),
        pytest.param(
            LabelSelector({"a": "0" * 64}),
            f'values[0][a]: Invalid value: "{"0" * 64}": must be no more than 63 bytes',
            id="a value that is too long",
        ),
        pytest.param(
            expression("a b", "In", "-"),
            f'[key: Invalid value: "a b": {NAME}, values[0][a b]: Invalid value: "-": {VALUE}]',
            id="several problems with one expression",
        ),
        pytest.param(
            expression("", "Exists"),
            f'key: Invalid value: "": name part must be non-empty; {NAME}',
            id="an empty key",
        ),
        pytest.param(
            expression("/c", "Exists"), 'key: Invalid value: "/c": prefix part must be non-empty', id="an empty prefix"
        ),
        pytest.param(
            expression("A_b/", "Exists"),
            f'key: Invalid value: "A_b/": {SUBDOMAIN}; name part must be non-empty; {NAME}',
            id="a prefix that is no domain",
        ),
    ],
)
def test_what_is_wrong_with_a_selector(selector: LabelSelector | None, error: str | None) -> None:
    assert selector_error(selector) == error


@pytest.mark.parametrize(
    ("labels", "matches"),
    [
        pytest.param({"app": "web", "version": "2"}, True, id="both hold"),
        pytest.param({"app": "web"}, False, id="the added label is missing"),
        pytest.param({"version": "2"}, False, id="the selector does not hold"),
    ],
)
def test_a_narrowed_selector_wants_both(labels: dict[str, str], matches: bool) -> None:
    selector = narrowed(expression("app", "In", "web", "db"), {"version": "2"})
    assert selector.matches(labels) is matches


def test_narrowing_to_another_value_matches_nothing() -> None:
    selector = narrowed(LabelSelector({"app": "web"}), {"app": "db"})
    assert not selector.matches({"app": "web"})
    assert not selector.matches({"app": "db"})
