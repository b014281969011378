"""The same objects in any spelling that kubectl's decoder accepts are the same for every input."""

from __future__ import annotations

import copy
import gzip
import io
import json
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import yaml
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.load import Loaded, cluster_from_json, load_snapshot
from kpreempt.snapshot.manifest import read_manifest

Document = dict[str, Any]

POD: Document = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-1", "namespace": "shop", "labels": {"app": "web", "on": "yes", "é": "ü"}},
    "spec": {
        "hostNetwork": True,
        "priority": 420,
        "containers": [
            {
                "name": "main",
                "args": ["a\n---\nkind: Nothing\n", "# no comment", "{{ not a template", "%", "..."],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            }
        ],
    },
}
BUDGET: Document = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
}


def block(document: Document) -> str:
    return yaml.safe_dump(document, allow_unicode=True)


def top_keys(spell: Callable[[str], str]) -> Callable[[Document], str]:
    """A YAML writer that spells each top-level key in a different way."""

    def write(document: Document) -> str:
        lines = block(document).splitlines(keepends=True)
        return "".join(
            spell(line.partition(":")[0]) + line[line.index(":") :] if line[:1].isalpha() else line for line in lines
        )

    return write


def explicit_keys(document: Document) -> str:
    return "".join(f"? {key}\n: {json.dumps(value)}\n" for key, value in document.items())


def with_anchor(document: Document) -> str:
    return block(document).replace("metadata:\n", "metadata: &metadata\n", 1) + "x-again: *metadata\n"


def with_old_scalars(document: Document) -> str:
    """Booleans and octal numbers as in YAML 1.1, which readers treat differently."""
    return block(document).replace("hostNetwork: true", "hostNetwork: on").replace("priority: 420", "priority: 0644")


def tagged(document: Document) -> str:
    return f"!!map\n{block(document)}".replace("kind: ", "kind: !!str ", 1)


def indented(document: Document) -> str:
    return "".join(f"       {line}" for line in block(document).splitlines(keepends=True))


def escaped_json(document: Document) -> str:
    return json.dumps(document).replace('"apiVersion"', '"api\\u0056ersion"').replace('"kind"', '"k\\u0069nd"')


WRITERS: dict[str, Callable[[Document], str]] = {
    "block": block,
    "flow": lambda each: yaml.safe_dump(each, default_flow_style=True, allow_unicode=True, width=2**20),
    "folded flow": lambda each: yaml.safe_dump(each, default_flow_style=True),
    "quoted": lambda each: yaml.safe_dump(each, default_style='"'),
    "single-quoted keys": top_keys("'{}'".format),
    "escaped keys": top_keys(lambda key: f'"\\x{ord(key[0]):02x}{key[1:]}"'),
    "blank before the colon": top_keys("{} ".format),
    "explicit keys": explicit_keys,
    "anchor": with_anchor,
    "YAML 1.1": with_old_scalars,
    "tags": tagged,
    "deep indentation": indented,
    "JSON": lambda each: json.dumps(each) + "\n",
    "indented JSON": lambda each: json.dumps(each, indent=4, ensure_ascii=False) + "\n",
    "JSON, kind last": lambda each: json.dumps(dict(reversed(each.items()))) + "\n",
    "JSON with escapes": lambda each: escaped_json(each) + "\n",
    "JSON after a comment": lambda each: f"# c\n{json.dumps(each)}\n",
    "JSON before a comment": lambda each: f"{json.dumps(each)}\n# c\n",
    "JSON with a comma too many": lambda each: json.dumps(each)[:-1] + ",}\n",
    "long comments first": lambda each: f"# {'x' * 77}\n" * 900 + block(each),
    "blank lines first": lambda each: "\n \n\n" + block(each),
}


def documents(separator: str) -> Callable[[list[str]], str]:
    return lambda texts: "".join(separator + text for text in texts)


JOINERS: dict[str, Callable[[list[str]], str]] = {
    "marks": documents("---\n"),
    "marks between": "---\n".join,
    "marks with blanks": documents("---  \t\n"),
    "marks with comments": documents("--- # Source: a.yaml\n"),
    "empty documents": documents("---\n---\n# nothing\n---\n"),
    "end marks": lambda texts: "".join(f"---\n{text}...\n" for text in texts),
    "directives": lambda texts: "".join(f"%YAML 1.1\n---\n{text}...\n" for text in texts),
    "byte order marks": lambda texts: "---\n".join(f"\ufeff{text}" for text in texts),
    "anchored documents": lambda texts: "".join(f"--- &root{at}\n{text}" for at, text in enumerate(texts)),
}


def listed(kind: str) -> Callable[[Sequence[Document]], str]:
    def write(objects: Sequence[Document]) -> str:
        return block({"apiVersion": "v1", "items": list(objects), "kind": kind})

    return write


WHOLES: dict[str, Callable[[Sequence[Document]], str]] = {
    "List": listed("List"),
    "a list of another kind": listed("ConfigMap"),
    "List in JSON": lambda objects: json.dumps({"kind": "List", "apiVersion": "v1", "items": list(objects)}),
    "a list of another kind in JSON": lambda objects: json.dumps({"kind": "Deployment", "items": list(objects)}),
    "nested": lambda objects: listed("List")([json.loads(json.dumps({"kind": "Set", "items": list(objects)}))]),
    "JSON lines": lambda objects: "\n".join(map(json.dumps, objects)),
    "JSON values": lambda objects: "".join(json.dumps(each, indent=1) for each in objects),
    "JSON between marks": lambda objects: "\n---\n".join(map(json.dumps, objects)),
    "JSON after marks": lambda objects: "".join(f"---\n{json.dumps(each)}\n" for each in objects),
    "duplicates": lambda objects: "---\n".join(map(block, [*objects, *objects])),
}
ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "UTF-8": str.encode,
    "UTF-8 with a byte order mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16 LE with a byte order mark": lambda text: b"\xff\xfe" + text.encode("utf-16-le"),
    "UTF-16 BE with a byte order mark": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "UTF-16 LE": lambda text: text.encode("utf-16-le"),
    "UTF-16 BE": lambda text: text.encode("utf-16-be"),
    "Windows line ends": lambda text: text.replace("\n", "\r\n").encode(),
    "UTF-16 with Windows line ends": lambda text: b"\xff\xfe" + text.replace("\n", "\r\n").encode("utf-16-le"),
}
PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.compress,
    "packed twice.zst": lambda content: zstandard.compress(gzip.compress(content)),
}


@st.composite
def spellings(draw: st.DrawFn) -> str:
    objects = [POD, BUDGET]
    if draw(st.booleans()):
        return WHOLES[draw(st.sampled_from(sorted(WHOLES)))](objects)
    texts = [WRITERS[draw(st.sampled_from(sorted(WRITERS)))](each) for each in objects]
    join = draw(st.sampled_from(sorted(JOINERS)))
    # An anchor of the whole document needs a separate line for the rest.
    if join == "anchored documents":
        texts = [block(each) for each in objects]
    return JOINERS[join](texts)


@given(
    spellings(),
    st.sampled_from(sorted(ENCODINGS)),
    st.sampled_from(sorted(PACKINGS)),
    st.sampled_from([".yaml", ".yml", ".json"]),
)
@example(JOINERS["byte order marks"]([WRITERS["JSON before a comment"](POD), block(BUDGET)]), "UTF-8", "", ".yaml")
def test_every_spelling_is_the_same_for_every_input(text: str, encoding: str, packing: str, ending: str) -> None:
    if encoding.startswith("UTF-16") and not text[:32].isascii() and encoding in ("UTF-16 LE", "UTF-16 BE"):
        encoding = "UTF-8"
    content = PACKINGS[packing](ENCODINGS[encoding](text))
    expected = cluster_from_json([json.dumps(POD).encode(), json.dumps(BUDGET).encode()], "here")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "deep", f"objects{ending}{packing[-4:]}")
        file.parent.mkdir()
        file.write_bytes(content)
        archive = Path(folder, "dump.tar.gz")
        for path in (str(file), folder):
            assert _objects_of(load_snapshot([path])) == expected
            assert_documents(read_manifest(path))
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(file, "bundle/objects.yaml")
        assert _objects_of(load_snapshot([str(archive)])) == expected
    assert _objects_of(load_snapshot(["-"], stdin=io.BytesIO(content))) == expected
    assert_documents(read_manifest("-", stdin=io.BytesIO(content)))


def _objects_of(loaded: Loaded) -> ClusterSnapshot:
    """The cluster without assumptions on kinds that the input lacks."""
    return msgspec.structs.replace(loaded.cluster, unread={})


def assert_documents(found: Sequence[Any]) -> None:
    seen = [copy.copy(each.document) for each in found]
    for each in seen:
        each.pop("x-again", None)
    assert [each for at, each in enumerate(seen) if each not in seen[:at]] == [POD, BUDGET]


WORDS = (
    *("apiVersion", "kind", "metadata", "items", "spec", "status", "desired", "version", "info", "gitVersion", "name"),
    *("Items", "ObjectMeta", "ListMeta", "TypeMeta", "Spec", "Status", "Containers", "NodeInfo", "selfLink", "labels"),
    *("pods", "nodes", "pvs", "schedulerConfig", "patches", "path", "x-a", "serverVersion", "selector", "Selector"),
    *("VolumeSource", "SecurityContext", "HostNetwork", "securityContext"),
)
TEXTS = ("v1", "List", "Pod", "PodList", "ClusterVersion", "config.openshift.io/v1", "/api/v1/pods", "4.20.1", "a", "")
VALUES = st.recursive(
    st.sampled_from([None, True, 0, 1.5, *TEXTS]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=12,
)
PATHS = (
    *("a.json", "nodes.json", "kustomization.yaml", "config/version.json", "config/pod/shop/a.json", "config/a.json"),
    *("cluster-resources/pods/shop.json", "cluster-resources/nodes.json", "cluster-resources/pods-errors.json"),
    *("cluster-resources/custom-resources/a/b.yaml", "cluster-info/cluster_version.json", "dump", "README.md"),
)


@given(st.dictionaries(st.sampled_from(PATHS), VALUES, min_size=1, max_size=3), st.booleans())
def test_any_value_without_a_kind_is_read_listed_or_one_error(files: dict[str, Any], skips: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for path, value in files.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(value))
        for path in (folder, *(str(Path(folder, each)) for each in files)):
            input_limits = InputLimits()
            input_limits.skipped.skips_bad = skips
            with suppress(InputError):
                load_snapshot([path], skip_bad_objects=skips, input_limits=input_limits)
            with suppress(InputError):
                read_manifest(path, input_limits=input_limits)
