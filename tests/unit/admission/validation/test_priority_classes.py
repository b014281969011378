"""Which PriorityClasses the API server rejects."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kpreempt.admission.validation import Server
from kpreempt.admission.validation.priority_classes import check_priority_class


def priority_class(text: str) -> dict[str, Any]:
    given = yaml.safe_load(f"{{{text}}}")
    return {"metadata": {"name": given.pop("name", "high")}, **given}


def found(text: str, old: str | None = None) -> list[str]:
    before = None if old is None else priority_class(old)
    return [str(each) for each in check_priority_class(priority_class(text), before, Server(36))]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "value: 1000000000, globalDefault: true",
        "value: -5, preemptionPolicy: Never",
        "name: system-node-critical, value: 2000001000",
    ],
)
def test_valid_classes(text: str) -> None:
    assert found(text) == found(text, text) == []


RESERVED = (
    "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: "
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("value: 1000000001", "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"),
        ("name: system-web", f"{RESERVED}system-web is not a known system priority class"),
        (
            "name: system-cluster-critical",
            f"{RESERVED}value of system-cluster-critical PriorityClass must be 2000000000",
        ),
        ("name: system-cluster-critical, value: 2000000000, globalDefault: true", f"{RESERVED}globalDefault of"),
        ("preemptionPolicy: ''", "preemptionPolicy: Required value"),
        ("preemptionPolicy: Always", 'preemptionPolicy: Unsupported value: "Always"'),
        ("name: A", 'metadata.name: Invalid value: "A"'),
    ],
)
def test_rejected_classes(text: str, problem: str) -> None:
    assert [each.startswith(problem) for each in found(text)] == [True]


def test_only_the_default_changes() -> None:
    assert found("value: 2", "value: 1") == ["value: Forbidden: may not be changed in an update."]
    assert found("preemptionPolicy: Never", "") == ['preemptionPolicy: Invalid value: "Never": field is immutable']
    assert found("globalDefault: true, preemptionPolicy: PreemptLowerPriority", "") == []
