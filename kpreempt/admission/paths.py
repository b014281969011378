"""Paths of fields in an object, as the API server writes them."""

from __future__ import annotations

import re

# Keys and indices from the root of the object.
Path = tuple[str | int, ...]

LONGEST_NAME = 80
_PLAIN_KEY = re.compile(r"[\w-]+")


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
