# ruff: noqa: E501 - tables of odd texts read better in rows
"""Manifests keep everything as plain data, and typed records come from plain data with one clear error."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from kpreempt.errors import InputError, UsageError
from kpreempt.model.quantity import quantity
from kpreempt.snapshot.decode import decode_object
from kpreempt.snapshot.documents import parse_yaml_value
from kpreempt.snapshot.manifest import ManifestObject, read_manifest

DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  x: {unknown: [1, yes]}\n"
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"x": {"unknown": [1, True]}},
}


def test_a_manifest_keeps_what_no_record_has(tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    text = f"# web\n---\n{DEPLOYMENT}---\n{DEPLOYMENT}"
    path.write_text(text)
    places = [(3, "", text.encode()), (10, "", text.encode())]
    assert read_manifest(str(path)) == [ManifestObject(str(path), line, WEB, *more) for line, *more in places]


def test_a_manifest_from_standard_input_says_so() -> None:
    read = read_manifest("-", stdin=io.BytesIO(DEPLOYMENT.encode()))
    assert read == [ManifestObject("standard input", 1, WEB, text=DEPLOYMENT.encode())]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param('{"kind": "List",\n"items": [\n{"kind": "A"},\n{"kind": "A"}\n]}', [3, 4], id="a List in JSON"),
        pytest.param("kind: List\nitems:\n- kind: A\n- kind: B\n", [3, 4], id="a plain List in YAML"),
        pytest.param(
            "# x\nitems:\n- kind: A\n# b\n- {kind: B}\nkind: List\n", [3, 5], id="a List in YAML with comments"
        ),
        pytest.param("kind: List\nitems: [{kind: A},\n {kind: B}]\n", [2, 3], id="a List in YAML in flow style"),
        pytest.param('{"kind": "A"}\n{"kind": "B"}\n', [1, 2], id="JSON lines"),
        pytest.param('{"kind": "A"}\n---\nkind: B\n', [1, 3], id="JSON, then YAML"),
    ],
)
def test_the_line_of_every_object_is_known(text: str, lines: list[int]) -> None:
    assert [each.line for each in read_manifest("-", stdin=io.BytesIO(text.encode()))] == lines


HELM = (
    "---\n# Source: shop/templates/a.yaml\napiVersion: v1\nkind: A\n"
    "---\n# Source: shop/templates/b.yaml\n# a comment\n\nkind: B\nx: {flow: yes}\n"
)


@pytest.mark.parametrize(
    ("text", "origins"),
    [
        pytest.param(HELM, [("shop/templates/a.yaml", 3), ("shop/templates/b.yaml", 9)], id="before each document"),
        pytest.param(
            HELM.replace("\n", "\r\n"),
            [("shop/templates/a.yaml", 3), ("shop/templates/b.yaml", 9)],
            id="with the line ends of Windows",
        ),
        pytest.param("# Source: a.yaml\n---\nkind: A\n", [("a.yaml", 3)], id="before the mark"),
        pytest.param(
            "---\nkind: A\n# Source: a.yaml\nx: 1\n---\nkind: B\n", [("a.yaml", 2), ("", 6)], id="within the document"
        ),
        pytest.param(
            "# Source: a.yaml\n# only a comment\n---\n# Source: b.yaml\nkind: B\n",
            [("b.yaml", 5)],
            id="that of a document without anything is not the next one's",
        ),
        pytest.param(
            "--- # first\n# Source: a.yaml\nkind: A\n--- # second\nkind: B\n",
            [("a.yaml", 3), ("", 5)],
            id="marks with something behind them",
        ),
        pytest.param(
            "# Source: a.yaml\nkind: List\nitems:\n- kind: A\n- kind: B\n",
            [("a.yaml", 4), ("a.yaml", 5)],
            id="for all items of a list",
        ),
        pytest.param("kind: A\nx: |\n  # Source: no.yaml\n", [("", 1)], id="but not in a text"),
        pytest.param('{"kind": "A", "x": "# Source: no.yaml"}', [("", 1)], id="and not in JSON"),
    ],
)
def test_the_file_that_a_comment_names_is_where_an_object_is_from(text: str, origins: list[tuple[str, int]]) -> None:
    found = read_manifest("-", stdin=io.BytesIO(text.encode()))
    assert [(each.origin, each.line) for each in found] == origins


def test_items_of_a_typed_list_get_its_kind() -> None:
    (item,) = read_manifest("-", stdin=io.BytesIO(b"apiVersion: v1\nkind: PodList\nitems:\n- metadata:\n    name: a\n"))
    assert item.document == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}


def test_plain_data_becomes_a_record_and_stays_as_it_is() -> None:
    document: dict[str, Any] = {"metadata": {"name": "a", "labels": None}, "spec": {"overhead": {"cpu": 1.5}}}
    pod = decode_object("Pod", document)
    assert pod.spec.overhead == {"cpu": quantity("1500m")}
    assert document == {"metadata": {"name": "a", "labels": None}, "spec": {"overhead": {"cpu": 1.5}}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"metadata": []}, "web.yaml:7: Pod: metadata: expected an object, got a list"),
        ({"metadata": {"generateName": "a-"}, "spec": {"priority": 1.5}}, "web.yaml:7: Pod a-: spec.priority: expected an integer, got 1.5"),
        ({"spec": {"nodeSelector": {"a.b/c": 1}}}, 'web.yaml:7: Pod: spec.nodeSelector["a.b/c"]: expected a string, got 1'),
        ({"spec": {"hostNetwork": "yes"}}, 'web.yaml:7: Pod: spec.hostNetwork: expected true or false, got "yes"'),
        (["not", "an", "object"], "web.yaml:7: Pod: expected an object, got a list"),
    ],
    ids=["metadata", "number", "label", "boolean", "no object"],
)  # fmt: skip
def test_plain_data_of_the_wrong_type_is_one_clear_error(document: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        decode_object("Pod", document, source="web.yaml", line=7)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1500m", "1500m"),
        ("2", 2),
        ('"2"', "2"),
        ("1.5", 1.5),
        ("true", True),
        ("no", False),
        ("", None),
        ("null", None),
        ("[a, 1]", ["a", 1]),
        ("{a: {b: c}}", {"a": {"b": "c"}}),
        ("a=b:c", "a=b:c"),
        ("2026-11-21", "2026-11-21"),
    ],
)
def test_a_value_means_what_it_means_in_a_manifest(text: str, value: object) -> None:
    assert parse_yaml_value(text) == value


@pytest.mark.parametrize("text", ["[a", "a: b: c", "--- a\n--- b"])
def test_a_value_that_is_none_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse_yaml_value(text)
