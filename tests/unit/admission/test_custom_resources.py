# ruff: noqa: E501 - tables of manifests read better in rows
"""What the API server rejects of custom resources, by the schemas in their definitions."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.admission.custom_resources import definition_of, is_custom, problems_of_custom
from kpreempt.admission.validation.values import dns_label
from kpreempt.snapshot.documents import parse_document

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: %s
  names: {kind: Thing, plural: things}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: %s, status: {type: object, required: [a]}}}}
      subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    - {name: v0, served: false, storage: false}
"""


def definition(spec: str, scope: str = "Namespaced") -> dict[str, Any]:
    return parse_document(DEFINITION % (scope, spec), "test")


def thing(rest: str, version: str = "v1") -> dict[str, Any]:
    return parse_document(f"apiVersion: example.com/{version}\nkind: Thing\nmetadata: {{name: a}}\n{rest}", "test")


def found(schema: str, spec: str, old: str | None = None, minor: int | None = 33) -> list[str]:
    before = None if old is None else thing(f"spec: {old}")
    return [str(each) for each in problems_of_custom(thing(f"spec: {spec}"), definition(schema), before, minor)]


def one(schema: str) -> str:
    """The schema of a spec with one field."""
    return f"{{type: object, properties: {{a: {schema}}}}}"


INVALID = "spec.a: Invalid value: "
REJECTED = {
    "a text for an integer": ("{type: integer}", "{a: '1'}", f'{INVALID}"string": must be of type integer: "string"'),
    "a fraction": ("{type: integer}", "{a: 1.5}", f'{INVALID}"number": must be of type integer: "number"'),
    "a boolean for a number": ("{type: number}", "{a: true}", f'{INVALID}"boolean": must be of type number: "boolean"'),
    "a number for a text": ("{type: string}", "{a: 1}", f'{INVALID}"integer": must be of type string: "integer"'),
    "a list for an object": ("{type: object}", "{a: []}", f'{INVALID}"array": must be of type object: "array"'),
    "null in a list": ("{type: array, items: {type: string}}", "{a: [x, null]}", 'spec.a[1]: Invalid value: "null": must be of type string: "null"'),
    "a boolean for an int or a string": ("{x-kubernetes-int-or-string: true}", "{a: true}", f'{INVALID}"boolean": must be of type integer,string: "boolean"'),
    "a value outside an enum": ("{type: string, enum: [x, w]}", "{a: z}", 'spec.a: Unsupported value: "z": supported values: "w", "x"'),
    "a missing field": ("{type: object, required: [b]}", "{a: {}}", "spec.a.b: Required value"),
    "a text of another form": ("{type: string, pattern: '^[a-z]+$'}", "{a: X}", f"{INVALID}\"X\": should match '^[a-z]+$'"),
    "a text that is too long": ("{type: string, maxLength: 1}", "{a: xy}", "spec.a: Too long: may not be more than 1 bytes"),
    "a text that is too short": ("{type: string, minLength: 2}", "{a: x}", f'{INVALID}"x": should be at least 2 chars long'),
    "a number that is too large": ("{type: integer, maximum: 3}", "{a: 4}", f"{INVALID}4: should be less than or equal to 3"),
    "a number at the limit": ("{type: integer, maximum: 3, exclusiveMaximum: true}", "{a: 3}", f"{INVALID}3: should be less than 3"),
    "a number that is too small": ("{type: number, minimum: 0.5}", "{a: 0.4}", f"{INVALID}0.4: should be greater than or equal to 0.5"),
    "a number at the lower limit": ("{type: number, minimum: 1, exclusiveMinimum: true}", "{a: 1}", f"{INVALID}1: should be greater than 1"),
    "no multiple": ("{type: integer, multipleOf: 5}", "{a: 6}", f"{INVALID}6: should be a multiple of 5"),
    "too many elements": ("{type: array, maxItems: 1, items: {type: integer}}", "{a: [1, 2]}", "spec.a: Too many: 2: must have at most 1 items"),
    "too few elements": ("{type: array, minItems: 1, items: {type: integer}}", "{a: []}", f"{INVALID}0: should have at least 1 items"),
    "too many keys": ("{type: object, maxProperties: 1, additionalProperties: {type: integer}}", "{a: {x: 1, w: 2}}", "spec.a: Too many: 2: must have at most 1 items"),
    "a value of a map": ("{type: object, additionalProperties: {type: integer}}", "{a: {x.w: z}}", 'spec.a[x.w]: Invalid value: "string": must be of type integer: "string"'),
    "none of two": ("{type: object, properties: {x: {type: string}, w: {type: string}}, anyOf: [{required: [x]}, {required: [w]}]}", "{a: {}}", f'{INVALID}"": must validate at least one schema (anyOf)'),
    "both of two": ("{type: object, properties: {x: {type: string}, w: {type: string}}, oneOf: [{required: [x]}, {required: [w]}]}", "{a: {x: b, w: c}}", f'{INVALID}"": must validate one and only one schema (oneOf). Found 2 valid alternatives'),
    "one of all": ("{type: integer, allOf: [{minimum: 1}, {maximum: 2}]}", "{a: 3}", f"{INVALID}3: should be less than or equal to 2"),
    "an excluded one": ("{type: string, not: {enum: [x]}}", "{a: x}", f'{INVALID}"": must not validate the schema (not)'),
    "an unknown field": ("{type: object, properties: {name: {type: string}}}", "{a: {nmae: x}}", "unknown field spec.a.nmae (did you mean name?)"),
    "an unknown field below open ones": ("{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {x: {type: object}}}", "{a: {x: {w: 1}}}", "unknown field spec.a.x.w"),
    "a field of a map of anything": ("{type: object, additionalProperties: true}", "{a: {x: {w: 1}}}", "unknown field spec.a.x.w"),
    "an unknown field in a list": ("{type: array, items: {type: object}}", "{a: [{x: 1}]}", "unknown field spec.a[0].x"),
    "a repeated element of a set": ("{type: array, x-kubernetes-list-type: set, items: {type: string}}", "{a: [x, w, x]}", 'spec.a[2]: Duplicate value: "x"'),
    "a repeated key": ("{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {k: {type: string}}}}", "{a: [{k: x}, {k: x}]}", 'spec.a[1]: Duplicate value: {"k": "x"}'),
    "an embedded object without kind": ("{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}", "{a: {apiVersion: v1}}", "spec.a.kind: Required value"),
    "unknown metadata of an embedded object": ("{type: object, x-kubernetes-embedded-resource: true}", "{a: {apiVersion: v1, kind: Pod, metadata: {label: x}}}", "unknown field spec.a.metadata.label (did you mean labels?)"),
    "an invalid default": ("{type: integer, default: -1, minimum: 0}", "{}", f"{INVALID}-1: should be greater than or equal to 0"),
    "a rule": ("{type: object, properties: {x: {type: integer}}, x-kubernetes-validations: [{rule: self.x > 1, message: too small}]}", "{a: {x: 1}}", f"{INVALID}too small"),
    "a rule without message": ("{type: integer, x-kubernetes-validations: [{rule: self > 1}]}", "{a: 1}", f"{INVALID}failed rule: self > 1"),
    "a rule on a field": ("{type: object, properties: {x: {type: integer}}, x-kubernetes-validations: [{rule: self.x > 1, message: small, fieldPath: .x}]}", "{a: {x: 1}}", "spec.a.x: Invalid value: small"),
}  # fmt: skip


@pytest.mark.parametrize("name", REJECTED)
def test_a_resource_that_does_not_match_its_schema_is_rejected(name: str) -> None:
    schema, spec, expected = REJECTED[name]
    assert found(one(schema), spec) == [expected]


ACCEPTED = {
    "a whole number": ("{type: integer, enum: [1]}", "{a: 1.0}"),
    "an integer as a number": ("{type: number}", "{a: 1}"),
    "a text for an int or a string": ("{x-kubernetes-int-or-string: true}", "{a: 5%}"),
    "null for a field": ("{type: integer}", "{a: null}"),
    "null for a field with a default": ("{type: integer, default: 3, minimum: 2}", "{a: null}"),
    "null that is permitted": ("{type: integer, nullable: true}", "{a: null}"),
    "a default in a list": ("{type: array, items: {type: integer, default: 3}}", "{a: [null]}"),
    "a default in a required field": ("{type: object, required: [x], properties: {x: {type: object, default: {}}}}", "{a: {}}"),
    "anything": ("{x-kubernetes-preserve-unknown-fields: true}", "{a: [{x: {w: [1]}}]}"),
    "open elements": ("{x-kubernetes-preserve-unknown-fields: true, type: array, items: {type: object}}", "{a: [{x: {w: [1]}}]}"),
    "any value of a map": ("{type: object, additionalProperties: true}", "{a: {x: 1}}"),
    "a limit between integers": ("{type: integer, minimum: 0.5}", "{a: 0}"),
    "a pattern that cannot be compiled": ("{type: string, pattern: '('}", "{a: x}"),
    "true beside 1 in a set": ("{type: array, x-kubernetes-list-type: set, items: {x-kubernetes-preserve-unknown-fields: true}}", "{a: [true, 1]}"),
    "an embedded object": ("{type: object, x-kubernetes-embedded-resource: true}", "{a: {apiVersion: v1, kind: Pod, metadata: {labels: {a: b}, creationTimestamp: null}}}"),
    "a rule": ("{type: integer, x-kubernetes-validations: [{rule: self > 1}]}", "{a: 2}"),
    "a rule on a transition, but no old object": ("{type: integer, x-kubernetes-validations: [{rule: self == oldSelf}]}", "{a: 2}"),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_the_api_server_takes_is_taken(name: str) -> None:
    schema, spec = ACCEPTED[name]
    assert found(one(schema), spec) == []


@pytest.mark.parametrize(
    ("schema", "spec"),
    [
        pytest.param("{type: integer, x-kubernetes-validations: [{rule: self.}]}", "{a: 1}", id="not an expression"),
        pytest.param("{type: object, properties: {x: {type: integer}}, x-kubernetes-validations: [{rule: self.x > 1}]}", "{a: {}}", id="it fails"),
        pytest.param("{type: string, format: byte, x-kubernetes-validations: [{rule: size(self) > 9}]}", "{a: YQ==}", id="a text with a type"),
        pytest.param("{type: object, properties: {namespace: {type: string}}, x-kubernetes-validations: [{rule: has(self.__namespace__)}]}", "{a: {namespace: x}}", id="an escaped name"),
        pytest.param("{type: object, properties: {x: {type: string, nullable: true}}, x-kubernetes-validations: [{rule: '!has(self.x)'}]}", "{a: {x: null}}", id="null"),
    ],
)  # fmt: skip
def test_rules_that_depend_on_types_are_skipped(schema: str, spec: str) -> None:
    skipped: list[str] = []
    assert problems_of_custom(thing(f"spec: {spec}"), definition(one(schema)), skipped=skipped) == []
    assert len(skipped) == 1


IMMUTABLE = one("{type: integer, x-kubernetes-validations: [{rule: self == oldSelf, message: immutable}]}")
SMALL = "{type: object, properties: {a: {type: integer, maximum: 1}, b: {type: integer}, c: {type: array, items: {type: integer, maximum: 1}}}}"


@pytest.mark.parametrize(
    ("schema", "spec", "old", "minor", "problems"),
    [
        pytest.param(IMMUTABLE, "{a: 1}", "{a: 2}", 33, [f"{INVALID}immutable"], id="a transition"),
        pytest.param(IMMUTABLE, "{a: 1}", "{a: 1}", 33, [], id="no transition"),
        pytest.param(SMALL, "{a: 2, b: 1}", "{a: 2}", 33, [], id="an old invalid value"),
        pytest.param(SMALL, "{a: 2, b: 1}", "{a: 2}", 29, [f"{INVALID}2: should be less than or equal to 1"], id="an old one in 1.29"),
        pytest.param(SMALL, "{a: 3}", "{a: 2}", 33, [f"{INVALID}3: should be less than or equal to 1"], id="another invalid value"),
        pytest.param(SMALL, "{c: [0, 2]}", "{c: [2]}", 33, [], id="an old element"),
        pytest.param(SMALL, "{c: [3]}", "{c: [2]}", 33, ["spec.c[0]: Invalid value: 3: should be less than or equal to 1"], id="a new element"),
        pytest.param("{type: array, x-kubernetes-list-type: set, items: {type: integer}}", "[1, 1, 2]", "[1, 1]", 33, [], id="an old duplicate"),
        pytest.param("{type: array, x-kubernetes-list-type: set, items: {type: integer}, x-kubernetes-validations: [{rule: self == oldSelf}]}", "[1, 2]", "[2, 1]", 33, [], id="the order of a set"),
    ],
)  # fmt: skip
def test_updates(schema: str, spec: str, old: str, minor: int, problems: list[str]) -> None:
    assert found(schema, spec, old, minor) == problems


@pytest.mark.parametrize(
    ("replicas", "problems"),
    [
        ("3", []),
        ("-1", ["spec.replicas: Invalid value: -1: should be a non-negative integer"]),
        ("2147483648", ["spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647"]),
        ("x", ['spec.replicas: Invalid value: "x": must be an integer']),
    ],
)
def test_replicas_of_the_subresource_for_scaling(replicas: str, problems: list[str]) -> None:
    schema = "{type: object, properties: {replicas: {x-kubernetes-preserve-unknown-fields: true}}}"
    assert found(schema, f"{{replicas: {replicas}}}") == problems


def test_metadata_is_that_of_all_objects() -> None:
    text = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {%s}\nspec: {}"
    schema = definition("{type: object}")
    problems = [
        [str(each) for each in problems_of_custom(parse_document(text % metadata, "test"), schema)]
        for metadata in (
            "name: a, label: {}",
            "name: a, labels: {a: 1}",
            "name: a, namespace: b_, labels: null",
            "finalizers: [a]",
        )
    ]
    assert problems == [
        ["unknown field metadata.label (did you mean labels?)"],
        ["cannot unmarshal number into Go struct field ObjectMeta.metadata.labels.a of type string"],
        [f'metadata.namespace: Invalid value: "b_": {dns_label("b_")}'],
        ["metadata.name: Required value: name or generateName is required"],
    ]


def test_the_namespace_of_a_resource_of_the_cluster_is_ignored_and_updates_have_a_name() -> None:
    text = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {%s}\nspec: {}"
    given = parse_document(text % "name: a, namespace: b_", "test")
    assert problems_of_custom(given, definition("{type: object}", "Cluster")) == []
    changed = parse_document(text % "name: A_, labels: {a: '?'}", "test")
    paths = [each.path for each in problems_of_custom(changed, definition("{type: object}"), changed)]
    assert paths == [("metadata", "labels", "a")]


def test_the_status_is_kept_and_cannot_be_set() -> None:
    new = {**thing("spec: {}"), "status": {}}
    assert problems_of_custom(new, definition("{type: object}")) == []
    old = {**thing("spec: {}"), "status": {"b": 1}}
    assert problems_of_custom(new, definition("{type: object}"), old) == []


def test_a_version_that_is_not_served_is_unknown() -> None:
    for version in ("v0", "v2"):
        (problem,) = problems_of_custom(thing("", version), definition("{type: object}"))
        assert str(problem) == f'apiVersion: no matches for kind "Thing" in version "example.com/{version}"'


def test_without_a_schema_everything_is_accepted() -> None:
    given = definition("{type: object}")
    given["spec"]["versions"][0]["schema"] = None
    assert problems_of_custom(thing("spec: {a: 1}"), given) == []
    given = definition("{type: object}")
    given["spec"]["preserveUnknownFields"] = True
    assert problems_of_custom(thing("spec: {a: 1}"), given) == []


def test_definitions_are_found_by_group_and_kind() -> None:
    given = definition("{type: object}")
    other = {**given, "spec": {**given["spec"], "group": "example.org"}}
    assert definition_of(thing(""), [other, given]) is given
    assert definition_of(thing(""), [other, {}]) is None


@pytest.mark.parametrize(
    ("version", "expected"), [("example.com/v1", True), ("v1", False), ("apps/v1", False), ("policy/v1beta1", False)]
)
def test_groups_that_are_not_built_in_are_custom(version: str, expected: bool) -> None:
    assert is_custom({"apiVersion": version, "kind": "Thing"}) is expected


def test_values_that_are_nested_too_deeply_are_let_through() -> None:
    value: dict[str, Any] = {}
    for _ in range(2_000):
        value = {"a": value}
    assert (
        problems_of_custom({**thing(""), "spec": value}, definition("{x-kubernetes-preserve-unknown-fields: true}"))
        == []
    )
