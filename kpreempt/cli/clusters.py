"""The cluster that a command asks about: snapshots read and merged, with what is said about them on the way."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import BinaryIO

import msgspec

from kpreempt.admission import fill_budget_statuses
from kpreempt.cli.process import complain
from kpreempt.cli.terminal import Progress
from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.snapshot import load_snapshot
from kpreempt.verdict import Assumption


class LoadedCluster(msgspec.Struct, frozen=True):
    """A cluster, and what is assumed about it."""

    cluster: ClusterSnapshot
    assumptions: list[Assumption]


def load_cluster(paths: Sequence[str], *, skip_bad_objects: bool) -> LoadedCluster:
    """Read and merge ``paths`` (``-`` is standard input). Objects that are set aside are listed on standard error.

    Budgets without a status get the one that the disruption controller would compute. Raises ``InputError``.
    """
    progress = Progress()
    try:
        loaded = load_snapshot(paths, stdin=standard_input(), skip_bad_objects=skip_bad_objects, progress=progress)
    finally:
        progress.close()
    assumptions = [_set_aside(error) for error in loaded.set_aside]
    cluster, budget_assumptions = fill_budget_statuses(loaded.cluster)
    return LoadedCluster(cluster, [*assumptions, *budget_assumptions])


def standard_input() -> BinaryIO:
    """Standard input as bytes. Raises ``InputError`` where it is closed."""
    if sys.stdin is None:
        raise InputError("it is closed", source="standard input")
    return sys.stdin.buffer


def _set_aside(error: InputError) -> Assumption:
    complain(f"set aside: {error.message}", error.hint)
    return Assumption(error.object_name or error.source, error.path, f"set aside, because it is bad: {error.problem}")
