"""Many clusters, many queries, several schedulers: the grid of them, worked at by Dask, as a Parquet dataset."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kpreempt.errors import UsageError


def imported(name: str) -> Any:
    """A module of a package of the extra ``fleet``, which few installations have. Raises ``UsageError`` without it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = (error.name or name).partition(".")[0]
        raise UsageError(
            f"kpreempt sweep needs {missing}, which is not installed", hint="pip install 'kpreempt[fleet]'"
        ) from None
