# ruff: noqa: E501 - a row of the table is one case
"""Each kind of broken or hostile input ends in one line that says where and what, in bounded time and memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from kpreempt.errors import InputError
from kpreempt.snapshot.load import load_snapshot
from kpreempt.snapshot.manifest import read_manifest

POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: api-7f9\n  namespace: shop\n"


def listed(*items: dict[str, Any]) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1).encode()


def pod(**parts: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "api-7f9", "namespace": "shop"}, **parts}


def container(**parts: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", **parts}]}


def tar_of(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def error_of(path: Path, *, as_manifest: bool = False) -> InputError:
    with pytest.raises(InputError) as caught:
        read_manifest(str(path)) if as_manifest else load_snapshot([str(path)])
    assert "\n" not in caught.value.message
    return caught.value


ALIAS_BOMB = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (98 + level, 98 + level, b",".join([b"*%c" % (97 + level)] * 10)) for level in range(9)
)
TEXTS: dict[str, tuple[bytes, str]] = {
    "an empty file": (b"", "contains no objects"),
    "only comments": (b"# nothing\n---\n# here\n", "contains no objects"),
    "NULs": (b"\0" * 4096, "is not text: contains a NUL"),
    "a NUL late in YAML": (b"a: " + b"x" * 2000 + b"\0\n", "1: contains the control character #x00"),
    "an escape sequence in YAML": (b'a: "\x1b[31m"\n', "1: contains the control character #x1b"),
    "JSON that is cut off": (listed(pod())[:-20], "10: ends in the middle of a JSON value"),
    "JSON without a comma": (b'{"kind": "Pod"\n"apiVersion": "v1"}', "2: is not JSON: expected ',' or '}'"),
    "something after the JSON": (b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}\nxx', "2: is not JSON: invalid character"),
    "JSON nested without end": (b'{"kind":"Pod","x":' + b"[" * 200_000, "1: is nested too deeply"),
    "a number of 10,000 digits": (b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"priority":' + b"9" * 10_000 + b"}}", "1: has a number that is too long"),
    "YAML nested without end in brackets": (b"a: " + b"[" * 100_000, "1: is nested too deeply"),
    "YAML nested without end in dashes": (b"- " * 100_000 + b"a\n", "1: is nested too deeply"),
    "YAML nested without end by indentation": (b"".join(b" " * depth + b"a:\n" for depth in range(3000)), "151: is nested too deeply"),
    "aliases that grow without bound": (ALIAS_BOMB, "1: its aliases expand without limit"),
    "an alias that contains itself": (b"a: &a [*a]\n", "1: an alias contains itself"),
    "an alias of nothing": (b"a: *b\n", "1: is not YAML: found undefined alias"),
    "a key that is there twice": (POD.encode() + b"  name: b\n", '6: duplicate key "name"'),
    "a key that is there twice by another spelling": (b"yes: 1\ntrue: 2\n", '2: duplicate key "true"'),
    "a tab for indentation": (b"a:\n\tb: 1\n", "2: is not YAML: found character that cannot start any token"),
    "wrong indentation": (b"kind: Pod\n metadata: x\n", "2: is not YAML: mapping values are not allowed in this context"),
    "a quote that never ends": (b'kind: "Pod\n', "2: is not YAML: found unexpected end of stream"),
    "a list as a key": (b"? [a]\n: b\n", "1: a key is a list or a mapping"),
    "a number that JSON does not have": (POD.encode() + b"spec:\n  priority: .inf\n", "7: .inf is not a valid JSON number"),
    "a template that was not rendered": (POD.replace("api-7f9", "{{ .Values.name }}").encode(), "4: is a template that was not rendered"),
    "a template that begins with an if": (b"{{- if .Values.on }}\n" + POD.encode(), "1: is a template that was not rendered"),
    "a sentence": (b"No resources found\n", '1: expected a Kubernetes object, got "No resources found"'),
    "a JSON list": (b"[1, 2]", "1: expected a Kubernetes object, got a list"),
    "an object that is not of Kubernetes": (b'{"a": 1}', "1: not a Kubernetes object: missing kind"),
    "a kind that is a number": (b'{"kind": 1}', "1: kind: expected a string, got 1"),
    "items that are no list": (b'{"kind": "List", "items": 3}', "1: items: expected a list, got 3"),
    "an item that is null": (b'{"kind": "List", "items": [null]}', "1: expected an object, got null"),
    "an item without a kind": (b'{"kind": "List", "items": [\n{"a": 1}]}', "2: kind: is missing"),
    "Latin-1 in JSON": ('{"kind":"Pod","metadata":{"name":"é"}}'.encode("latin-1"), "1: is not UTF-8"),
    "Latin-1 in YAML": (POD.replace("shop", "é").encode("latin-1"), "5: is not UTF-8"),
    "half a character of UTF-16": (POD.encode("utf-16")[:-1], "begins like UTF-16-LE but is not valid"),
    "a zip archive": (b"PK\x03\x04" + b"\0" * 99, "is a zip archive"),
    "xz": (b"\xfd7zXZ\0\0", "is packed with xz"),
    "bzip2": (b"BZh91AY", "is packed with bzip2"),
    "gzip that is cut off": (gzip.compress(listed(*[pod()] * 50))[:-30], "the gzip data ends early"),
    "gzip with garbage in it": (b"\x1f\x8b\x08\0" + b"garbage" * 30, "the gzip data is damaged"),
    "zstandard that is cut off": (zstandard.compress(listed(*[pod()] * 50))[:-30], "the zstandard data ends early"),
    "zstandard with garbage in it": (b"\x28\xb5\x2f\xfdgarbage", "the zstandard data is damaged"),
    "a tar archive that is cut off": (tar_of("a.json", listed(*[pod()] * 50))[:2000], ":a.json: the tar data ends early"),
    "a tar archive without objects": (tar_of("a.txt", b"hello"), "contains no objects"),
    "a quantity in words": (listed(pod(spec=container(resources={"requests": {"cpu": "2 cores"}}))), '5: Pod shop/api-7f9: spec.containers[0].resources.requests.cpu: "2 cores" is not a quantity'),
    "a quantity that is true": (listed(pod(spec=container(resources={"limits": {"nvidia.com/gpu": True}}))), '5: Pod shop/api-7f9: spec.containers[0].resources.limits["nvidia.com/gpu"]: expected a quantity, got true'),
    "a quantity with a monstrous exponent": (listed(pod(spec={"overhead": {"cpu": "1e999999999"}})), "5: Pod shop/api-7f9: spec.overhead.cpu: has an exponent out of range"),
    "a quantity of a megabyte": (listed(pod(spec={"overhead": {"cpu": "1" * 2**20}})), "5: Pod shop/api-7f9: spec.overhead.cpu: is too long for a quantity"),
    "metadata that is a list": (b'{"kind":"Pod","apiVersion":"v1","metadata":[]}', "1: Pod: metadata: expected an object, got a list"),
    "a text for a number": (listed(pod(spec={"priority": "10"})), '5: Pod shop/api-7f9: spec.priority: expected an integer, got "10"'),
    "a number beyond int32": (listed(pod(spec={"priority": 2**40})), "5: Pod shop/api-7f9: spec.priority: 1099511627776 is out of range (-2147483648 to 2147483647)"),
    "an object for a list": (listed(pod(spec={"containers": {}})), "5: Pod shop/api-7f9: spec.containers: expected a list, got an object"),
    "an unknown operator": (listed(pod(spec={"tolerations": [{"operator": "equals"}]})), '5: Pod shop/api-7f9: spec.tolerations[0].operator: "equals" is not one of Equal, Exists, Gt, Lt'),
    "a label that YAML makes a boolean": (POD.encode() + b"  labels:\n    on-call: yes\n", "1: Pod shop/api-7f9: metadata.labels.on-call: expected a string, got true"),
    "a missing name": (listed({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop"}}), "5: Pod shop: metadata.name: is missing"),
    "a kind that is not UTF-8": (b'{"kind": "Po\xff", "apiVersion": "v1"}', "1: is not UTF-8"),
    "a version that is not UTF-8": (b'\n{"apiVersion": "v\xff", "kind": "Pod"}', "2: is not UTF-8"),
    "a name of a million characters": (listed({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n" * 10**6}}), f"5: Node {'n' * 253}: metadata.name: is 1,000,000 characters long, more than 100,000"),
    "more tolerations than anybody has": (listed(pod(spec={"tolerations": [{"key": "a"}] * 501})), "5: Pod shop/api-7f9: spec.tolerations: has 501 entries, more than 500"),
    "more spread constraints than anybody has": (listed(pod(spec={"topologySpreadConstraints": [{"topologyKey": "a"}] * 101})), "5: Pod shop/api-7f9: spec.topologySpreadConstraints: has 101 entries, more than 100"),
    "more expressions than anybody has": (listed({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "shop"}, "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}] * 101}}}), "5: PodDisruptionBudget shop/b: spec.selector.matchExpressions: has 101 entries, more than 100"),
    "more ports than anybody has": (listed(pod(spec=container(ports=[{"containerPort": 1}] * 5001))), "5: Pod shop/api-7f9: spec.containers[0].ports: has 5,001 entries, more than 5,000"),
    "a time in words": (listed(pod(status={"startTime": "yesterday"})), '5: Pod shop/api-7f9: status.startTime: expected a time such as 2026-11-21T03:12:00Z, got "yesterday"'),
    "a time without an offset": (listed(pod(status={"startTime": "2026-11-21T03:12:00"})), '5: Pod shop/api-7f9: status.startTime: expected a time such as 2026-11-21T03:12:00Z, got "2026-11-21T03:12:00"'),
}  # fmt: skip


@pytest.mark.parametrize(("content", "message"), TEXTS.values(), ids=TEXTS.keys())
def test_broken_text_is_one_clear_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "prod"
    path.write_bytes(content)
    separator = ":" if message[0].isdigit() else "" if message[0] == ":" else ": "
    assert error_of(path).message == f"{path}{separator}{message}"


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        pytest.param(listed(pod(spec=container(resources={"requests": {"cpu": "2 cores"}}))), "2, 2000m", id="cores"),
        pytest.param(
            listed(pod(spec=container(resources={"requests": {"memory": "4 GB"}}))), "4G, 4Gi", id="gigabytes"
        ),
        pytest.param(listed(pod(spec={"priority": "10"})), "10 without quotes", id="a number in quotes"),
        pytest.param(
            listed(pod(spec={"tolerations": [{"effect": "NoSchedul"}]})), "NoSchedule", id="a slip of the pen"
        ),
        pytest.param(listed(pod())[:-20], "the file may have been copied incompletely", id="cut off"),
        pytest.param(POD.replace("shop", "{{ .ns }}").encode(), "use the output of helm template CHART", id="Helm"),
    ],
)
def test_where_advice_is_obvious_it_is_given(tmp_path: Path, content: bytes, hint: str) -> None:
    path = tmp_path / "prod"
    path.write_bytes(content)
    assert error_of(path).hint == hint


@pytest.mark.parametrize("name", ["an empty file", "JSON that is cut off", "a key that is there twice", "a JSON list"])
def test_a_broken_manifest_says_the_same(tmp_path: Path, name: str) -> None:
    path = tmp_path / "prod"
    path.write_bytes(TEXTS[name][0])
    assert error_of(path, as_manifest=True).message == error_of(path).message


def test_a_missing_file_is_named() -> None:
    assert error_of(Path("/nowhere/prod.yaml")).message == "/nowhere/prod.yaml: cannot read: no such file or directory"


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    assert error_of(tmp_path / ("x" * 5000)).problem == "cannot read: file name too long"


def test_a_path_with_a_nul_is_refused() -> None:
    with pytest.raises(InputError, match="is not a path: it holds a NUL"):
        load_snapshot(["prod\0.yaml"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "prod"
    path.write_bytes(listed(pod()))
    path.chmod(0)
    assert error_of(path).message == f"{path}: cannot read: permission denied"


def test_a_folder_without_objects_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert error_of(tmp_path).message == f"{tmp_path}: contains no objects"


def test_packing_within_packing_has_an_end(tmp_path: Path) -> None:
    content = listed(pod())
    for _ in range(9):
        content = gzip.compress(content)
    path = tmp_path / "prod"
    path.write_bytes(content)
    assert error_of(path).problem == "is packed more than 4 times"


def test_two_different_objects_of_one_name_are_an_error_that_names_both_sources(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(listed(pod()))
    second.write_bytes(listed(pod(spec={"priority": 1})))
    with pytest.raises(InputError) as caught:
        load_snapshot([str(first), str(second)])
    assert caught.value.message == (
        f"{second}:5: Pod shop/api-7f9: defined twice, here and in {first}, "
        "with different content and no resourceVersion that shows which is newer"
    )


def test_bad_objects_can_be_set_aside_and_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "prod"
    bad = {**pod(spec={"priority": "high"}), "metadata": {"name": "bad", "namespace": "shop"}}
    path.write_bytes(listed(pod(), bad, {"kind": "Pod", "metadata": {}}))
    loaded = load_snapshot([str(path)], skip_bad_objects=True)
    assert [each.key for each in loaded.cluster.pods] == ["shop/api-7f9"]
    assert [(each.object_name, each.path, each.problem) for each in loaded.skipped_objects] == [
        ("Pod shop/bad", "spec.priority", 'expected an integer, got "high"'),
        ("Pod", "metadata.name", "is missing"),
    ]


def test_a_bad_field_in_a_big_yaml_list_names_the_line_of_its_object(tmp_path: Path) -> None:
    good = "".join(f"- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: p{each}\n" for each in range(30_000))
    path = tmp_path / "prod"
    path.write_text(f"apiVersion: v1\nitems:\n{good}- kind: Pod\n  metadata:\n    name: bad\n  spec: []\nkind: List\n")
    assert error_of(path).message == f"{path}:120003: Pod bad: spec: expected an object, got a list"
