# ruff: noqa: E501 - tables read better in rows
"""Custom resources of a change are checked with the schemas in definitions: of the change, or of the cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kpreempt.analysis.check.rollout.apply import LAST_APPLIED
from kpreempt.analysis.check.rollout.cluster_documents import LiveDocuments, NeededObjects
from kpreempt.analysis.check.rollout.plan import ManifestDocument
from kpreempt.analysis.check.rollout.records import ApplyOptions
from kpreempt.analysis.check.rollout.review import Review
from kpreempt.model.meta import AnnotatedMeta
from kpreempt.model.workloads import Namespace
from tests.unit.analysis.rollout.changes import cluster_of

Document = dict[str, Any]


def definition(spec: Document, group: str = "example.com") -> Document:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "names": {"kind": "Thing"}, "scope": "Namespaced", "versions": [version]},
    }


def thing(spec: Any, **annotations: str) -> Document:
    metadata = {"name": "a", "namespace": "shop", "annotations": annotations}
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "spec": spec}


def found(given: Document, live: list[Document], change: list[Document]) -> list[str]:
    review = Review(cluster_of(), LiveDocuments(live), ApplyOptions(namespace="shop", minor=33), change)
    return [str(each) for each in review.problems(given)]


INTEGER = definition({"size": {"type": "integer"}})
TEXT = definition({"size": {"type": "string"}})


@pytest.mark.parametrize(
    ("live", "change", "problems"),
    [
        pytest.param([INTEGER], [], [], id="the cluster's definition"),
        pytest.param([TEXT], [], ['spec.size: Invalid value: "integer": must be of type string: "integer"'], id="it does not match"),
        pytest.param([TEXT], [INTEGER], [], id="the change's definition precedes"),
        pytest.param([], [definition({}, "example.org")], [], id="no definition"),
    ],
)  # fmt: skip
def test_the_definition_is_the_schema(live: list[Document], change: list[Document], problems: list[str]) -> None:
    assert found(thing({"size": 1}), live, change) == problems


def test_a_resource_without_a_definition_is_known_to_be_one() -> None:
    review = Review(cluster_of(), LiveDocuments([INTEGER]), ApplyOptions(namespace="shop", minor=33))
    assert not review.is_without_schema(thing({}))
    assert review.is_without_schema({**thing({}), "kind": "Other"})
    assert not review.is_without_schema({"apiVersion": "v1", "kind": "Thing"})


def test_an_update_is_merged_with_the_cluster_s_resource_whose_lists_are_replaced() -> None:
    schema = {
        "gone": {"type": "integer"},
        "kept": {"type": "integer"},
        "list": {
            "type": "array",
            "maxItems": 1,
            "items": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
        "empty": {"type": "object", "properties": {"x": {"type": "integer"}}, "maxProperties": 0},
    }
    rule = {"rule": "has(self.kept) && !has(self.gone)"}
    crd = definition({"all": {"type": "object", "properties": schema, "x-kubernetes-validations": [rule]}})
    before = {"all": {"gone": 1, "list": [{"name": "a"}]}}
    live = thing({"all": {**before["all"], "kept": 1}}, **{LAST_APPLIED: json.dumps(thing(before))})
    given = thing({"all": {"list": [{"name": "b"}], "empty": {"x": None}}})
    assert found(given, [crd, live], []) == []
    assert found(given, [crd], []) == ["spec.all: Invalid value: failed rule: has(self.kept) && !has(self.gone)"]


def test_the_definitions_of_the_groups_of_the_change_are_needed() -> None:
    needed = NeededObjects([ManifestDocument(thing({}), "", 0)], "shop")
    kept = [
        (kind, name)
        for kind in ("CustomResourceDefinition", "PublishedTypes", "Secret")
        for name in ("things.example.com", "things.example.org")
        if needed.is_needed(kind, Namespace(metadata=AnnotatedMeta(name=name)))
    ]
    assert kept == [
        ("CustomResourceDefinition", "things.example.com"),
        ("PublishedTypes", "things.example.com"),
        ("PublishedTypes", "things.example.org"),
    ]
    assert needed.api_versions == ["example.com/v1"]
