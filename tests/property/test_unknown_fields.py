"""Law: an unknown key in any struct of a valid manifest is found, with its path and line, and nothing else is."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Iterator
from pathlib import Path as File
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kpreempt.admission.schema import api_types, decoded, fields_of
from kpreempt.errors import InputError
from kpreempt.model.documents import Path
from kpreempt.snapshot.field_lines import line_of_field
from kpreempt.snapshot.manifest import read_manifest

FIXTURES = File(__file__).parents[2] / "fixtures"
# One has an unknown field on purpose.
_FOLDERS = ("gate/sets", "check", "demo", "workloads", "volumes", "drain", "budgets", "on-call", "versions")


def _manifests() -> list[dict[str, Any]]:
    files = [path for folder in _FOLDERS for path in sorted((FIXTURES / folder).rglob("*.yaml"))]
    found: list[dict[str, Any]] = []
    for path in files:
        try:
            found += [each.document for each in read_manifest(str(path)) if _kind(each.document) in api_types().kinds]
        except InputError:
            continue
    return found


def _kind(document: dict[str, Any]) -> str:
    return f"{document.get('apiVersion')} {document.get('kind')}"


MANIFESTS = _manifests()


def _structs(value: Any, type_name: str, path: Path = ()) -> Iterator[Path]:
    """The paths of all structs in a value."""
    api = api_types()
    if type_name.startswith("[]"):
        for at, each in enumerate(value):
            yield from _structs(each, type_name[2:], (*path, at))
    elif type_name.startswith("{}"):
        for key, each in value.items():
            yield from _structs(each, type_name[2:], (*path, key))
    elif type_name in api.types and isinstance(value, dict):
        yield path
        for key, each in value.items():
            if each is not None:
                yield from _structs(each, fields_of(api, type_name)[key].type_name, (*path, key))


def test_valid_manifests_are_decoded() -> None:
    assert len(MANIFESTS) > 400
    assert {each["kind"] for each in MANIFESTS} >= {
        "Pod",
        "Deployment",
        "PodDisruptionBudget",
        "Node",
        "Service",
        "CronJob",
    }
    assert [(_kind(each), str(problem)) for each in MANIFESTS for problem in decoded(each)[1]] == []


@settings(deadline=None)
@given(
    document=st.sampled_from(MANIFESTS),
    # The mark makes it a key that no type has, and identifies the line.
    key=st.text(alphabet="abcXYZ-_/. :{'\"\té1", max_size=8).map(lambda text: f"zzmark{text}"),
    value=st.sampled_from([1, None, "x", {}, [{"a": 1}], {"containers": 1}]),
    data=st.data(),
    style=st.sampled_from(["block", "flow", "json"]),
)
def test_an_unknown_key_is_found_at_its_path_and_line(
    document: dict[str, Any], key: str, value: Any, data: st.DataObject, style: str
) -> None:
    type_name = api_types().kinds[_kind(document)].partition(" ")[0]
    path = data.draw(st.sampled_from(list(_structs(document, type_name))))
    changed = copy.deepcopy(document)
    place: Any = changed
    for part in path:
        place = place[part]
    place[key] = value
    (problem,) = decoded(changed)[1]
    assert problem.path == (*path, key)
    assert problem.message.startswith("unknown field ")
    if style == "json":
        text = json.dumps(changed, indent="\t", ensure_ascii=False)
    else:
        text = f"# a comment\n---\n{yaml.safe_dump(changed, default_flow_style=style == 'flow')}"
    (read,) = read_manifest("-", stdin=io.BytesIO(text.encode()))
    marked = [number for number, line in enumerate(text.split("\n"), start=1) if "zzmark" in line]
    assert [line_of_field(read.text, read.line, (*path, key))] == marked
