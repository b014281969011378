"""Tables from the OpenAPI documents that a server publishes."""

from __future__ import annotations

from typing import Any

import msgspec

from kpreempt.admission.custom_resources import definition_of, problems_of_custom
from kpreempt.admission.published_types import Published, published
from kpreempt.admission.schema import decoded

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
APPS = {"group": "apps", "version": "v1", "kind": "Deployment"}
THINGS = {"group": "example.com", "version": "v1", "kind": "Thing"}


def reference(name: str) -> dict[str, Any]:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}], "default": {}}


BUILT_IN = {
    "components": {
        "schemas": {
            "io.k8s.api.apps.v1.Deployment": {
                "type": "object",
                "properties": {
                    **{key: {"type": "string"} for key in ("apiVersion", "kind")},
                    "metadata": reference(f"{META}ObjectMeta"),
                    "spec": reference("io.k8s.api.apps.v1.DeploymentSpec"),
                },
                "x-kubernetes-group-version-kind": [APPS],
            },
            "io.k8s.api.apps.v1.DeploymentSpec": {
                "type": "object",
                "required": ["replicas"],
                "properties": {
                    "replicas": {"type": "integer", "format": "int32"},
                    "ports": {"type": "array", "items": {"type": "integer", "format": "int16"}},
                    "extra": {"additionalProperties": reference("io.k8s.api.apps.v1.Opaque")},
                    "since": reference(f"{META}Time"),
                },
            },
            "io.k8s.api.apps.v1.Opaque": {"type": "string"},
            f"{META}ObjectMeta": {"type": "object", "properties": {"name": {"type": "string"}}},
            f"{META}Time": {"type": "string", "format": "date-time"},
        }
    }
}
CUSTOM = {
    "components": {
        "schemas": {
            "com.example.v1.Thing": {
                "type": "object",
                "properties": {
                    "metadata": reference(f"{META}ObjectMeta"),
                    "spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 3}}},
                    "status": {"type": "object", "required": ["phase"]},
                },
                "x-kubernetes-group-version-kind": [THINGS],
            },
            "com.example.v1.ThingList": {"type": "object", "x-kubernetes-group-version-kind": [THINGS]},
        }
    },
    "paths": {
        "/apis/example.com/v1/namespaces/{namespace}/things/{name}": {
            "get": {"x-kubernetes-group-version-kind": THINGS}
        },
        "/apis/example.com/v1/namespaces/{namespace}/things/{name}/status": {
            "get": {"x-kubernetes-group-version-kind": THINGS},
            "parameters": [],
        },
    },
}


def deployment(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}


def test_built_in_types_are_those_of_the_server() -> None:
    types = published([BUILT_IN]).types
    spec = {"replicas": 1.0, "ports": [1, "x"], "extra": {"a": ["opaque"]}, "since": "2020-01-01T00:00:00Z"}
    assert decoded(deployment(spec), 33, types) == (deployment({**spec, "replicas": 1}), [])
    words = [str(each) for each in decoded(deployment({"replicas": "1", "paused": True}), 33, types)[1]]
    assert words == [
        "cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        "unknown field spec.paused",
    ]


def test_kinds_that_were_not_asked_for_are_decoded_by_the_tables() -> None:
    types = published([BUILT_IN]).types
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"nodename": "a"}}
    assert [each.path for each in decoded(pod, 33, types)[1]] == [("spec", "nodename")]


def test_custom_kinds_have_the_schemas_of_their_definitions() -> None:
    (definition,) = published([CUSTOM, BUILT_IN]).definitions
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "b"}, "status": {}}
    assert definition_of(thing, [definition]) is definition
    assert problems_of_custom({**thing, "spec": {"size": 3}}, definition) == []
    problems = problems_of_custom({**thing, "spec": {"size": 4}}, definition)
    assert [str(each) for each in problems] == ["spec.size: Invalid value: 4: should be less than or equal to 3"]


def test_a_kind_without_namespaced_paths_is_of_the_cluster() -> None:
    (definition,) = published([{"components": CUSTOM["components"]}]).definitions
    assert definition["spec"]["scope"] == "Cluster"


def test_what_was_published_can_be_kept() -> None:
    kept = msgspec.json.decode(msgspec.json.encode(published([BUILT_IN, CUSTOM])), type=Published)
    assert [len(kept.definitions), len(decoded(deployment({"paused": 1}), 33, kept.types)[1])] == [1, 1]
