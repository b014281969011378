"""Which PodDisruptionBudgets the API server rejects."""

from __future__ import annotations

import pytest
import yaml

from kpreempt.admission.validation import Server
from kpreempt.admission.validation.budgets import check_budget


def found(spec: str, old: str | None = None) -> list[str]:
    document, before = (
        None if each is None else {"metadata": {"name": "a"}, "spec": yaml.safe_load(f"{{{each}}}")}
        for each in (spec, old)
    )
    assert document is not None
    return [str(each) for each in check_budget(document, before, Server(36))]


@pytest.mark.parametrize(
    "spec",
    ["", "minAvailable: 0", "maxUnavailable: 100%", "minAvailable: '3%', unhealthyPodEvictionPolicy: AlwaysAllow"],
)
def test_valid_budgets(spec: str) -> None:
    assert found(spec) == found(spec, spec) == []


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("minAvailable: 1, maxUnavailable: 1", "spec: Invalid value: "),
        ("minAvailable: -1", "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"),
        ("maxUnavailable: 101%", 'spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%'),
        ("maxUnavailable: half", 'spec.maxUnavailable: Invalid value: "half": a valid percent string'),
        ("selector: {matchLabels: {a: -}}", 'spec.selector.matchLabels.a: Invalid value: "-"'),
        ("unhealthyPodEvictionPolicy: Never", 'spec.unhealthyPodEvictionPolicy: Unsupported value: "Never"'),
    ],
)
def test_rejected_budgets(spec: str, problem: str) -> None:
    assert [each.startswith(problem) for each in found(spec)] == [True]


def test_only_a_selector_that_was_invalid_may_stay_so() -> None:
    selector = "selector: {matchLabels: {a: -}}"
    assert found(selector, selector) == []
    assert len(found(selector, "selector: {}")) == 1


@pytest.mark.parametrize(("name", "count"), [("A_b", 0), ("a/b", 1)])
def test_a_name_may_be_any_segment_of_a_path(name: str, count: int) -> None:
    assert len(list(check_budget({"metadata": {"name": name}, "spec": {}}, None, Server(36)))) == count
