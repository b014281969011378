"""YAML documents of fixtures, parsed once: PyYAML takes a tenth of a second for the example cluster."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import yaml


def read_documents(path: Path) -> list[dict[str, Any]]:
    """The nonempty documents of a file. Each call returns independent copies."""
    documents: list[dict[str, Any]] = pickle.loads(_pickled(path))
    return documents


def objects_of(path: Path) -> list[dict[str, Any]]:
    """The Kubernetes objects of a file, including those in lists."""
    return [item for each in read_documents(path) for item in each.get("items", [each])]


@cache
def _pickled(path: Path) -> bytes:
    return pickle.dumps([each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each])
