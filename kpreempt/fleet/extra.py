"""The packages of the extra ``fleet``, which few installations have."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kpreempt.errors import UsageError


def imported(name: str) -> Any:
    """The module. Raises ``UsageError`` where the extra is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = (error.name or name).partition(".")[0]
        raise UsageError(
            f"kpreempt sweep needs {missing}, which is not installed", hint="pip install 'kpreempt[fleet]'"
        ) from None
