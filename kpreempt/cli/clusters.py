"""The cluster that a command asks about: snapshots read and merged, with what is said about them on the way."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Collection, Container, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO

from kpreempt.cli.terminal import Progress, complain
from kpreempt.errors import InputError, UsageError
from kpreempt.library.reading import LoadedCluster, Source, read_cluster_of
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.model.wanted import NOTHING_WANTED, Wanted
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.snapshot import Keeps
from kpreempt.snapshot.archives import Intake
from kpreempt.snapshot.collect import Needs
from kpreempt.snapshot.kinds import kinds_named

if TYPE_CHECKING:
    from kpreempt.snapshot.live.connection import Connection
    from kpreempt.snapshot.live.flags import ConnectionFlags


class _OnTerminal(Progress):
    """Tells a terminal how far the reading is, and everybody what is said on the way."""

    def tell(self, message: str, hint: str = "") -> None:
        """A line on standard error."""
        complain(message, hint)


def live_connection(paths: Sequence[str], flags: ConnectionFlags) -> Connection | None:
    """The connection to the live cluster that is meant where there are no ``paths`` of snapshots, else ``None``.

    Raises ``UsageError`` where flags of both kinds are given, and what ``connect`` raises.
    """
    if not paths:
        from kpreempt.snapshot.live.connection import connect

        return connect(flags, os.environ)
    if given := flags.given():
        raise UsageError(f"--snapshot and {given[0]} exclude each other: the cluster is a dump or a live one")
    return None


def usual_namespace(live: Connection | None) -> str:
    """That of names without one: what the kubeconfig says for a ``live`` cluster."""
    return live.namespace if live else DEFAULT_NAMESPACE


def load_cluster(
    paths: Sequence[str],
    additions: Sequence[str] = (),
    *,
    live: Connection | None = None,
    with_events: bool = False,
    skip_bad_objects: bool = False,
    assume_none: Collection[str] = (),
    phases: Phases = NO_PHASES,
    keeps: Keeps | None = None,
    compared: Collection[str] = (),
    wanted: Wanted = NOTHING_WANTED,
    completes: bool = True,
    unneeded: Container[str] = (),
    intake: Intake | None = None,
    at: str | None = None,
) -> LoadedCluster:
    """``read_cluster_of``, where standard error is told how far it is, and which objects are set aside."""
    source = Source(
        skip_bad_objects=skip_bad_objects,
        assume_none=kinds_named(assume_none, "--assume-none"),
        intake=intake,
        phases=phases,
        listener=_OnTerminal,
        stdin=standard_input,
    )
    loaded = read_cluster_of(
        source,
        paths,
        additions,
        live=live,
        needs=Needs(keeps=keeps, wanted=wanted, with_events=with_events, compared=compared, unneeded=unneeded),
        completes=completes,
        at=at,
    )
    if gc.isenabled():
        # The records stay until the end of the process: collections need not look at them.
        gc.freeze()
    return loaded


def single_use_of_stdin(paths: Mapping[str, Sequence[str]]) -> None:
    """Raise ``UsageError`` where ``-`` is among the paths of two options, or twice among those of one."""
    users = [option for option, given in paths.items() for path in given if path == "-"]
    if len(users) > 1:
        raise UsageError(f"standard input is given twice: for {users[0]} and {users[1]}")


def standard_input() -> BinaryIO:
    """Standard input as bytes. Raises ``InputError`` where it is closed."""
    if sys.stdin is None:
        raise InputError("it is closed", source="standard input")
    return sys.stdin.buffer
