"""Wait for a control plane."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 30
_SECONDS_BETWEEN_LOOKS = 0.05


def until(look: Callable[[], T | None], what: str) -> T:
    """Return the result of ``look`` as soon as there is one. Raises ``AssertionError`` on a timeout."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    raise AssertionError(f"{what}: not within {PATIENCE_SECONDS} s")
