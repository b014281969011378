"""Sweeps: queries about many clusters with several schedulers, run by Dask and written as a Parquet dataset."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kpreempt.errors import UsageError


def imported(name: str) -> Any:
    """Import a module of a package in the extra ``fleet``, which is often not installed.

    Raises ``UsageError`` without it.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = (error.name or name).partition(".")[0]
        raise UsageError(
            f"kpreempt sweep needs {missing}, which is not installed", hint="pip install 'kpreempt[fleet]'"
        ) from None
