"""Which Namespaces the API server rejects."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.admission.validation import Server
from kpreempt.admission.validation.namespaces import check_namespace


def found(name: str, finalizers: list[str], old: dict[str, Any] | None = None) -> list[str]:
    document = {"metadata": {"name": name}, "spec": {"finalizers": finalizers}}
    return [str(each) for each in check_namespace(document, old, Server(36))]


def test_valid_namespaces() -> None:
    assert found("prod", ["kubernetes", "example.com/a"]) == []


@pytest.mark.parametrize(
    ("name", "finalizers", "problem"),
    [
        ("a.b", [], 'metadata.name: Invalid value: "a.b": a lowercase RFC 1123 label'),
        ("a", ["b"], 'spec.finalizers[0]: Invalid value: "b": name is neither a standard finalizer name'),
        ("a", ["/"], 'spec.finalizers: Invalid value: "/": prefix part must be non-empty'),
    ],
)
def test_rejected_namespaces(name: str, finalizers: list[str], problem: str) -> None:
    assert [each.startswith(problem) for each in found(name, finalizers)] == [True]


def test_finalizers_of_an_update_have_no_effect() -> None:
    assert found("a", ["b"], {"metadata": {"name": "a"}, "spec": {}}) == []
