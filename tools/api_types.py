"""Writes ``kpreempt/admission/api_types.json``: the kinds of the Kubernetes API and their fields, version by version.

``python tools/api_types.py`` reads the OpenAPI documents (``api/openapi-spec/v3``) that each version of the Go module
``k8s.io/kubernetes`` carries, and downloads the modules it does not find in Go's module cache. These documents leave
out enums, which are read from the Go file that they are generated from. It needs Go, and is run by hand when a version
is added to ``VERSIONS``; the same versions produce the same bytes. Descriptions are left out.

The file holds ``minors`` (the first and the last minor version of Kubernetes 1 that it covers), ``kinds`` (``apps/v1
Deployment`` to the name of its type) and, by type: ``types`` (its fields), ``required`` (fields that clients always
send), ``enums`` (fields, or the elements of lists, with the values that they may have) and ``list_keys`` (lists, with
the fields that identify an element).

The type of a field is a scalar (``string``, ``bytes``, ``int32``, ``int64``, ``number``, ``boolean``, ``quantity``,
``int-or-string``, ``time``, ``micro-time``), ``any`` for a value that the API server does not look into, or the name of
a type; ``[]`` before it means a list, ``{}`` a map with free keys. ``33-``, ``-30`` or ``33-35`` are the minor versions
that have a kind, a field, a requirement or a value, if that isn't every version that has its type; they follow a type
after a space.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kpreempt.admission.published_types import Definitions, fields_of, kinds_of, reachable, short, type_of

TARGET = Path(__file__).parent.parent / "kpreempt" / "admission" / "api_types.json"
VERSIONS = {
    29: "v1.29.14",
    30: "v1.30.14",
    31: "v1.31.14",
    32: "v1.32.13",
    33: "v1.33.13",
    34: "v1.34.4",
    35: "v1.35.4",
    36: "v1.36.3",
    37: "v1.37.1",
    38: "v1.38.0-beta.0",
}
# The start of a function for a type, a field in it, and its enum or that of its elements.
_ENUM_PARTS = re.compile(
    r"^func schema_(?:k8sio_api|pkg_apis)_(?P<type>\w+)\(ref |"
    r'^\t{5}"(?P<field>[^"]+)": \{$|'
    r"^\t+Enum: +\[\]interface\{\}\{(?P<enum>.*)\},$",
    re.MULTILINE,
)

# What each minor version says.
ByMinor = dict[int, str]


def main() -> int:
    """Write the file."""
    versions = {minor: definitions_of(version) for minor, version in VERSIONS.items()}
    kinds: dict[str, ByMinor] = {}
    for minor, definitions in versions.items():
        for kind, name in kinds_of(definitions):
            kinds.setdefault(kind, {})[minor] = short(name)
    names = {minor: set(reachable(definitions)) for minor, definitions in versions.items()}
    presence: dict[str, list[int]] = {}
    for minor in versions:
        for name in names[minor]:
            presence.setdefault(short(name), []).append(minor)

    def section(entries: Callable[[str, Mapping[str, Any]], Iterable[tuple[str, str]]]) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, ByMinor]] = {}
        for minor, definitions in versions.items():
            for name in names[minor]:
                for key, value in entries(name, definitions[name]):
                    found.setdefault(short(name), {}).setdefault(key, {})[minor] = value
        return {
            name: {key: within(by_minor, presence[name]) for key, by_minor in sorted(own.items())}
            for name, own in sorted(found.items())
        }

    table: dict[str, Any] = {
        "minors": [min(versions), max(versions)],
        "kinds": {kind: within(by_minor, list(versions)) for kind, by_minor in sorted(kinds.items())},
        # Some types have no fields.
        "types": {name: {} for name in sorted(presence)}
        | section(lambda _, definition: ((key, type_of(each)) for key, each in fields_of(definition))),
        "required": section(lambda _, definition: ((key, "") for key in definition.get("required", ()))),
        "enums": enums_of_all(presence),
        "list_keys": section(
            lambda _, definition: (
                (key, ",".join(keys))
                for key, each in fields_of(definition)
                if (keys := each.get("x-kubernetes-list-map-keys"))
            )
        ),
    }
    TARGET.write_text(as_lines(table), encoding="utf-8")
    sys.stderr.write(f"{TARGET}: {len(kinds)} kinds, {len(presence)} types, {TARGET.stat().st_size:,} bytes\n")
    return 0


def definitions_of(version: str) -> Definitions:
    """The types in the OpenAPI documents of a version. Raises if Go cannot get its module."""
    definitions: Definitions = {}
    for path in sorted((module_of(version) / "api" / "openapi-spec" / "v3").glob("*.json")):
        definitions |= json.loads(path.read_bytes()).get("components", {}).get("schemas", {})
    return definitions


def module_of(version: str) -> Path:
    """The directory of a version of Kubernetes. Raises if Go cannot get it."""
    module = f"k8s.io/kubernetes@{version}"
    # It fails for a version that needs a newer Go, even though it downloads the module.
    subprocess.run(["go", "mod", "download", module], check=False, stderr=subprocess.DEVNULL)  # noqa: S607 - by hand
    cache = subprocess.run(["go", "env", "GOMODCACHE"], check=True, capture_output=True, text=True)  # noqa: S607
    return Path(cache.stdout.strip(), module)


def enums_of_all(presence: Mapping[str, list[int]]) -> dict[str, dict[str, dict[str, str]]]:
    """The enums of the types that the minor versions in ``presence`` have: their values by type and field."""
    found: dict[str, dict[str, dict[str, ByMinor]]] = {}
    for minor, version in VERSIONS.items():
        for name, field, values in enums_of(version):
            if minor in presence.get(name, ()):
                own = found.setdefault(name, {}).setdefault(field, {})
                for value in values:
                    own.setdefault(value, {})[minor] = ""
    return {
        name: {
            # 1.34 has no enum for ``reinvocationPolicy``, which has the same values before and after.
            field: {value: within(by, presence[name], may_have_gaps=True) for value, by in sorted(values.items())}
            for field, values in sorted(own.items())
        }
        for name, own in sorted(found.items())
    }


def enums_of(version: str) -> Iterator[tuple[str, str, list[str]]]:
    """The short names of types, their fields that are enums, and the values of these."""
    path = module_of(version) / "pkg" / "generated" / "openapi" / "zz_generated.openapi.go"
    name = field = ""
    for match in _ENUM_PARTS.finditer(path.read_text(encoding="utf-8")):
        if match["type"]:
            name, field = match["type"].replace("_", "."), ""
        elif match["field"]:
            field = match["field"]
        else:
            yield name, field, json.loads(f"[{match['enum']}]")


def within(by_minor: ByMinor, minors: list[int], *, may_have_gaps: bool = False) -> str:
    """The newest of the values, with the minor versions that have it if those aren't all of ``minors``."""
    have = sorted(by_minor)
    assert may_have_gaps or have == list(range(have[0], have[-1] + 1)), f"it was gone in between: {by_minor}"
    first = "" if have[0] == minors[0] else str(have[0])
    last = "" if have[-1] == minors[-1] else str(have[-1])
    return f"{by_minor[have[-1]]} {first}-{last}".strip() if first or last else by_minor[have[-1]]


def as_lines(table: Mapping[str, Any]) -> str:
    """JSON with a line for each kind and type, for readable diffs."""
    parts = [f'"minors":{json.dumps(table["minors"])}']
    for key in list(table)[1:]:
        lines = (f"{json.dumps(name)}:{json.dumps(each, separators=(',', ':'))}" for name, each in table[key].items())
        parts.append(f'"{key}":{{\n' + ",\n".join(lines) + "\n}")
    return "{" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    raise SystemExit(main())
