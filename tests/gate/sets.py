"""The sets of ``fixtures/gate``: published workloads, the clusters they run in, and changes to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.documents import objects_of

Object = dict[str, Any]

CLUSTERS = Path(__file__).resolve().parents[2] / "fixtures" / "gate"
_SETS = CLUSTERS / "sets"
SETS = tuple(sorted(path.name for path in _SETS.iterdir()))
# They are applied with a namespace on the command line, which already exists.
NAMESPACES = {"shop": "shop"}
_HOOKS = ("helm.sh/hook", "argocd.argoproj.io/hook")


def files_of(name: str) -> dict[str, str]:
    """The texts of a set's files, by path."""
    folder = _SETS / name
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def documents_of(name: str) -> list[Object]:
    """All objects of a set, in file order, with lists expanded."""
    paths = sorted(path for path in (_SETS / name).rglob("*") if path.suffix in (".yaml", ".yml"))
    return [item for path in paths for item in objects_of(path)]


def is_hook(document: Object) -> bool:
    """Whether it only runs during an install, an upgrade or a test."""
    annotations = document["metadata"].get("annotations") or {}
    return any(name in annotations for name in _HOOKS)
