"""The sets of ``fixtures/gate``: workloads as they are published, the clusters they run in, and changes to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.documents import objects_of

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
    paths = sorted(path for path in (_SETS / name).rglob("*") if path.suffix in (".yaml", ".yml"))
    return [item for path in paths for item in objects_of(path)]


def is_hook(document: Object) -> bool:
    """Whether it runs only while somebody installs, upgrades or tests."""
    annotations = document["metadata"].get("annotations") or {}
    return any(name in annotations for name in _HOOKS)
