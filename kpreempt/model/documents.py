"""Objects as plain data: their parts, and the paths of their fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# Keys and indices from the root of the object.
Path = tuple[str | int, ...]

LONGEST_NAME = 80
_PLAIN_KEY = re.compile(r"[\w-]+")


def mapping_in(parent: Any, *path: str) -> dict[str, Any]:
    """Return the mapping at a path below ``parent``, or a new empty one."""
    for key in path:
        value = parent.get(key) if isinstance(parent, dict) else None
        parent = value if isinstance(value, dict) else {}
    return parent  # type: ignore[no-any-return] # with a path, it is a mapping


def mappings_in(parent: Mapping[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """Yield the mappings in a list below ``parent``; anything else is skipped."""
    value = parent.get(key)
    yield from (each for each in (value if isinstance(value, list) else []) if isinstance(each, dict))


def group_of(document: Mapping[str, Any]) -> str:
    """Return the API group of an object; empty for the core group."""
    api_version = document.get("apiVersion")
    return api_version.rpartition("/")[0] if isinstance(api_version, str) else ""


def path_text(path: Path) -> str:
    """Format as ``spec.containers[0].resuorces``; other keys are in brackets: ``limits[nvidia.com/gpu]``."""
    text = ""
    for part in path:
        is_plain = isinstance(part, str) and _PLAIN_KEY.fullmatch(part)
        name = shortened(str(part))
        text += f".{name}" if is_plain else f"[{name}]"
    return text.removeprefix(".")


def shortened(name: str) -> str:
    """Cut a long name."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
