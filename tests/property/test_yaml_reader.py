# ruff: noqa: E501 - tables of odd texts read better in rows
"""Law: YAML accepted by the fast reader is read exactly as by PyYAML with kubectl's scalars."""

from __future__ import annotations

import io
import json
from typing import Any

import msgspec
import yaml
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from kpreempt.errors import InputError
from kpreempt.snapshot.manifest import read_manifest
from kpreempt.snapshot.yaml_fast import FastReader
from kpreempt.snapshot.yaml_reference import YamlError, load_documents

ODD_SCALARS = st.sampled_from(
    [
        *["yes", "n", "Off", "~", "Null", "0o17", "010", "0x1F", "1_000", "1e3", "+1", ".5", "1.", "-0", "12:30", "<<"],
        *["2026-11-21", "6e4", "6d4", "0b1", "0_xe8", "1e_+1", "inf", "-.inf", "nan", "100m", "10.0.0.1", "a:b", "a: b"],
        *["x#y", "x #y", "- x", "-x", "--x=y", "?", "!x", "&x", "*x", "@x", "`x", "%x", "|", ">", "'", '"', "=", "{", "["],
        *["", " lead", "trail ", "a\nb", "a\n\nb\n", "\n\na", "a\tb", "\ta", "\u00e9", "\u2028", "\x85", "\ufeff", "a'b", 'a"b'],
        *["a\\b", "word " * 30, "line of words that is folded\n" * 4, "{}", "[]", '{"a": 1}', "null", "true", "1", "1.5"],
    ]
)  # fmt: skip
TEXTS = ODD_SCALARS | st.text(alphabet="ab01 :#-_.'\"\\\n\t{}[],&*!|>%@é", max_size=12)
SCALARS = TEXTS | st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(-1e6, 1e6, width=32)
KEYS = st.sampled_from(["a", "b", "name", "f:x", ".", "x/y", "yes", "1", "a b", "true", "'", ""]) | TEXTS
VALUES = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=4) | st.dictionaries(KEYS, below, max_size=4), max_leaves=20
)
STYLES = st.fixed_dictionaries(
    {
        "default_style": st.sampled_from([None, None, None, "'", '"', "|", ">"]),
        "default_flow_style": st.sampled_from([False, False, None, True]),
        "width": st.sampled_from([20, 80, 10_000]),
        "indent": st.sampled_from([2, 4]),
        "allow_unicode": st.booleans(),
    }
)
PIECES = [
    "a",
    "foo bar",
    '"x"',
    "'y z'",
    "1",
    "true",
    "{}",
    "[]",
    "'open",
    "close'",
    "|",
    ">-",
    "&a",
    "*a",
    "k: v",
    "# c",
]
LINES = st.builds(
    lambda indentation, dashes, key, value: " " * indentation + "- " * dashes + key + value,
    st.integers(0, 6),
    st.integers(0, 2),
    st.sampled_from(["", "a:", "b:", "c:", "f:x:", "yes:", "'q':", "1:"]),
    st.just("") | (ODD_SCALARS | st.sampled_from(PIECES)).map(lambda value: f" {value}"),
)


def equal(one: object, other: object) -> bool:
    """Equality in which 1, 1.0 and True differ, and the order of keys counts."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return one == other


def assert_reads_alike(text: str) -> bool:
    """Return whether the fast reader accepted the text, which it then must read like the reference."""
    json = FastReader().read_plain(text.encode())
    if json is None:
        return False
    try:
        documents = [document for _, document in load_documents(text)]
    except YamlError as error:
        raise AssertionError(f"the reference refuses it: {error.problem}") from error
    assert equal([msgspec.json.decode(json)], documents)
    return True


@given(VALUES, STYLES)
@settings(max_examples=300, deadline=None)
def test_what_a_dumper_writes_is_read_alike(value: object, style: dict[str, Any]) -> None:
    text = yaml.safe_dump(value, **style)
    assume("\n..." not in text and text.endswith("\n"))
    assert_reads_alike(text)


@given(st.lists(LINES, min_size=1, max_size=6).map(lambda lines: "\n".join(lines) + "\n"))
@example(".:\n  f:x:\n  - []\n   a: true\n")
@example('  - c:\n    - "q"\n      - .:\n')
@example("a:\n- b: []\n  c: 0X7E.\n")
@example("a: |\n  \tq\n")
@example("'inf': a\n")
@settings(max_examples=600, deadline=None)
def test_handwritten_lines_are_read_the_same(text: str) -> None:
    assume("---" not in text)
    assert_reads_alike(text)


@given(st.text(alphabet="0123456789abcefxXoObBeEpP+-._n:iT", min_size=1, max_size=8))
@settings(max_examples=600, deadline=None)
def test_numbers_are_read_the_same(text: str) -> None:
    assert_reads_alike(f"a: {text}\n- b\n" if text.endswith(":") else f"a: {text}\nb:\n- {text}\n")


@given(st.lists(st.dictionaries(KEYS.filter(bool), VALUES, max_size=3), min_size=1, max_size=6), STYLES, st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_items_of_a_list_are_what_they_are_in_one_piece(
    items: list[dict[str, Any]], style: dict[str, Any], data: st.DataObject
) -> None:
    """Read one by one, by either reader, as with the whole document by the reference."""
    objects = [{"kind": "A", **item} for item in items if "kind" not in item]
    text = yaml.safe_dump({"apiVersion": "v1", "items": objects, "kind": "List"}, **style)
    if data.draw(st.booleans()):
        text = text.replace("\n", "\r\n") if "\r" not in text else text
    try:
        expected = [document["items"] for _, document in load_documents(text)]
    except YamlError:
        assume(False)
    read = [each.document for each in read_manifest("-", stdin=io.BytesIO(text.encode()))] if objects else []
    assert equal([read], expected)


@given(VALUES)
@settings(max_examples=100, deadline=None)
def test_json_is_read_as_json(value: object) -> None:
    document = {"kind": "A", "value": value}
    (read,) = read_manifest("-", stdin=io.BytesIO(json.dumps(document).encode()))
    assert equal(read.document, document)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@settings(max_examples=300, deadline=None)
def test_no_bytes_end_in_anything_but_objects_or_one_line(content: bytes) -> None:
    try:
        read_manifest("-", stdin=io.BytesIO(content))
    except InputError as error:
        assert error.message.startswith("standard input")


def test_the_fast_reader_takes_what_kubectl_writes() -> None:
    text = (
        'apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:\n    config: |\n      {"a": 1}\n        # no comment\n'
        '  creationTimestamp: "2026-11-21T09:48:47Z"\n  labels:\n    app: 6d4cf56db6\n    on: "true"\n'.replace(
            "on:", "is-on:"
        )
        + '  managedFields:\n  - fieldsV1:\n      f:metadata:\n        .: {}\n        \'k:{"type":"Ready"}\': {}\n'
        "  uid: 0b82769f-00a2-4bcd-9f00-0666b7c95471\nspec:\n  containers:\n  - args:\n    - --v=2\n    - -x\n    env: []\n"
        "    resources:\n      limits:\n        cpu: 500m\n        memory: 1Gi\n  priority: -10\n  tolerations:\n"
        "  - operator: Exists\nstatus:\n  conditions:\n  - message: 'containers with unready status: [a]\n      and b'\n"
        '    reason: x\n    status: "False"\n  - message: a long text that is folded\n      here\n  podIP: 10.0.0.1\n'
    )
    assert assert_reads_alike(text)
