# ruff: noqa: E501 - texts read better in one piece
"""On which line of a text a field of an object is."""

from __future__ import annotations

import io

import pytest

from kpreempt.snapshot.field_lines import line_of_field
from kpreempt.snapshot.manifest import read_manifest

BLOCK = """\
# a comment
apiVersion: v1
kind: Pod
metadata:
  name: a
spec:
  nodeSelector: {spec: x}
  containers:
  - name: a
  - args: [x, {y: z}]
    resuorces:
      requests: {cpu: 1,
        memroy: 1Gi}
---
kind: Other
spec:
  containers: []
"""
LIST = "apiVersion: v1\nkind: List\nitems:\n- kind: A\n  spec: {x: 1}\n- kind: B\n  metadata: {}\n  spec:\n    x: 1\nmetadata: {}\n"
JSON = '{\n\t"kind": "List",\n\t"items": [\n\t\t{\n\t\t\t"kind": "A"\n\t\t},\n\t\t{\n\t\t\t"kind": "B",\n\t\t\t"spec": {\n\t\t\t\t"x": 1\n\t\t\t}\n\t\t}\n\t]\n}\n'
BAD = ("spec", "containers", 1, "resuorces")


@pytest.mark.parametrize(
    ("text", "at", "path", "line"),
    [
        pytest.param(BLOCK, 0, BAD, 11, id="a key"),
        pytest.param(BLOCK, 0, (*BAD, "requests", "memroy"), 13, id="a key in flow style"),
        pytest.param(BLOCK, 1, ("spec", "containers"), 17, id="the second document"),
        pytest.param(BLOCK.replace("\n", "\r\n"), 0, BAD, 11, id="lines that end as in Windows"),
        pytest.param("\ufeff" + BLOCK, 0, BAD, 11, id="a byte order mark"),
        pytest.param(LIST, 0, ("spec", "x"), 5, id="an item of a list"),
        pytest.param(LIST, 1, ("spec", "x"), 9, id="the last item of a list"),
        pytest.param(JSON, 1, ("spec", "x"), 10, id="JSON with tabs"),
        pytest.param('{"kind": "A"}\n{"kind": "B",\n"x": 1}\n', 1, ("x",), 3, id="JSON after JSON"),
        pytest.param("--- # x\n? \"kind\"\n: A\n? 'x'\n: 1\n", 0, ("x",), 4, id="quoted and explicit keys"),
    ],
)
def test_a_field_is_found_where_it_is_written(text: str, at: int, path: tuple[str | int, ...], line: int) -> None:
    found = read_manifest("-", stdin=io.BytesIO(text.encode()))[at]
    assert line_of_field(found.text, found.line, path) == line


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param("x: &x {y: 1}\nkind: A\nspec: *x\n", ("spec", "y"), id="a key that an alias stands for"),
        pytest.param("kind: A\nspec: {<<: {y: 1}}\n", ("spec", "y"), id="a key that is merged"),
        pytest.param("kind: A\nspec: [1]\n", ("spec", 3), id="an index beyond the list"),
        pytest.param("kind: A\nspec: [1]\n", ("spec", "x"), id="a key of a list"),
        pytest.param("kind: A\nspec: {x\n", ("spec", "y"), id="a text that is not YAML"),
        pytest.param("kind: A\n[a]: b\nspec: 1\n", ("spec", "x"), id="keys that are no texts"),
        pytest.param("kind: A\n", (), id="no path"),
        pytest.param("", ("a",), id="no text"),
    ],
)
def test_a_field_that_is_not_found_has_the_line_of_its_object(text: str, path: tuple[str | int, ...]) -> None:
    assert line_of_field(text.encode(), 1, path) == 1
