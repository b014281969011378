"""Waiting for what a control plane does in its own time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 30
_SECONDS_BETWEEN_LOOKS = 0.05


def until(look: Callable[[], T | None], what: str) -> T:
    """What ``look`` finds, as soon as it finds something. Raises ``AssertionError`` where it takes too long."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    raise AssertionError(f"{what}: not within {PATIENCE_SECONDS} s")
