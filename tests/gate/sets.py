"""The sets of ``fixtures/gate``: workloads as they are published, the clusters they run in, and changes to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]

CLUSTERS = Path(__file__).resolve().parents[2] / "fixtures" / "gate"
_SETS = CLUSTERS / "sets"
SETS = tuple(sorted(path.name for path in _SETS.iterdir()))
# Where they are applied with a namespace of the command line's; it is there already.
NAMESPACES = {"shop": "shop"}
_HOOKS = ("helm.sh/hook", "argocd.argoproj.io/hook")


def files_of(name: str) -> dict[str, str]:
    """The texts of a set's files, by their path inside it."""
    folder = _SETS / name
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def documents_of(name: str) -> list[Object]:
    """All objects of a set, in the order of its files; the items of lists one by one."""
    found: list[Object] = []
    for path, text in files_of(name).items():
        if path.endswith((".yaml", ".yml")):
            for document in yaml.safe_load_all(text):
                if document:
                    found += document["items"] if document["kind"] == "List" else [document]
    return found


def is_hook(document: Object) -> bool:
    """Whether it runs only while somebody installs, upgrades or tests."""
    annotations = document["metadata"].get("annotations") or {}
    return any(name in annotations for name in _HOOKS)
