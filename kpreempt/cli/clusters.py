"""The cluster that a command reads: merged snapshots or a live one, with progress and warnings on the way.

``--context a,b`` selects several clusters.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import msgspec

from kpreempt.cli.terminal import Progress, complain
from kpreempt.errors import InputError, KpreemptError, UsageError
from kpreempt.library.reading import Listener, LoadedCluster, Source, read_cluster
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.snapshot.collect import NOTHING_MORE, Needs
from kpreempt.snapshot.kinds import parse_kinds

if TYPE_CHECKING:
    from kpreempt.cli.requests import ClusterRequest
    from kpreempt.library.options import Request
    from kpreempt.snapshot.live.connection import Connection
    from kpreempt.snapshot.live.flags import ConnectionFlags


class _OnTerminal(Progress, Listener):
    """Shows progress on a terminal, and prints all warnings."""

    def report(self, message: str, hint: str = "") -> None:
        """Print a line on standard error."""
        complain(message, hint)


def live_connection(paths: Sequence[str], flags: ConnectionFlags) -> Connection | None:
    """Connect to the live cluster if there are no ``paths`` of snapshots; otherwise return ``None``.

    Raises ``UsageError`` if flags of both kinds are given, and whatever ``connect`` raises.
    """
    if not paths:
        from kpreempt.snapshot.live.connection import connect

        return connect(flags, os.environ)
    if given := flags.as_arguments():
        raise UsageError(f"--snapshot and {given[0]} cannot be used together: use a snapshot or a live cluster")
    return None


def default_namespace(live: Connection | None) -> str:
    """The default namespace of a command: the kubeconfig's for a ``live`` cluster."""
    return live.namespace if live else DEFAULT_NAMESPACE


def reading_in(live: Connection | None, namespaces: Collection[str]) -> Connection | None:
    """The connection with the namespace to read if others may not be read: that of the request, if it is about one."""
    about = {each for each in namespaces if each}
    return msgspec.structs.replace(live, namespace=about.pop()) if live is not None and len(about) == 1 else live


def snapshot_source(request: ClusterRequest, phases: Phases = NO_PHASES) -> Source:
    """Build the source that a request's options select; progress goes to standard error."""
    return Source(
        paths=request.snapshots,
        at=request.at,
        skip_bad_objects=request.skip_bad_objects,
        assume_none=parse_kinds(request.assume_none, "--assume-none"),
        input_limits=request.input_limits,
        phases=phases,
        listener=_OnTerminal,
        stdin=standard_input,
    )


def load_cluster(source: Source, needs: Needs = NOTHING_MORE) -> LoadedCluster:
    """Load the cluster from the source; it is kept until the process ends."""
    loaded = read_cluster(source, needs)
    if gc.isenabled():
        # Garbage collections can skip these records.
        gc.freeze()
    return loaded


# The request fields that name inputs, with the options that set them.
_INPUTS = {
    "file": "FILE",
    "files": "-f",
    "base": "--base",
    "batch": "--batch",
    "snapshots": "--snapshot",
    "additions": "--with",
    "node_changes": "--add-node",
    "before": "--before",
    "events": "--events",
    "event": "--event",
}


def single_use_of_stdin(request: Request) -> None:
    """Raise ``UsageError`` if ``-`` is used for two options, or twice for one."""
    users: list[str] = []
    for field, option in _INPUTS.items():
        given = getattr(request, field, None) or ()
        paths = [given] if isinstance(given, str) else getattr(given, "files", given)
        users += [option for path in paths if path == "-"]
    if len(users) > 1:
        raise UsageError(f"standard input is used twice: for {users[0]} and {users[1]}")


def standard_input() -> BinaryIO:
    """Return standard input as a byte stream. Raises ``InputError`` if it is closed."""
    if sys.stdin is None:
        raise InputError("closed", source="standard input")
    return sys.stdin.buffer


Answer = TypeVar("Answer")
Item = TypeVar("Item")


def contexts_of(flags: ConnectionFlags) -> list[str]:
    """List the contexts of ``--context a,b``; empty for a single context, even if its name contains commas.

    Raises ``UsageError`` for an empty or repeated name, and ``InputError`` for a kubeconfig that cannot be read.
    """
    if "," not in flags.context:
        return []
    from kpreempt.snapshot.live.kubeconfig import read_kubeconfig

    if flags.context in read_kubeconfig(flags, os.environ).contexts:
        return []
    names = [each.strip() for each in flags.context.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise UsageError(f"--context {flags.context}: a context is empty or repeated", hint="--context a,b")
    return names


def answers_of(
    contexts: list[str],
    flags: ConnectionFlags,
    ask: Callable[[ConnectionFlags], Answer],
    make: Callable[..., Item],
) -> list[Item]:
    """Make an item for each context, with its ``answer`` or ``error``; a failing cluster does not affect the others."""
    items: list[Item] = []
    for context in contexts:
        try:
            items.append(make(context=context, answer=ask(msgspec.structs.replace(flags, context=context)), error=""))
        except KpreemptError as error:
            items.append(make(context=context, answer=None, error=error.message))
    return items
