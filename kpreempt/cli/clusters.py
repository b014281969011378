"""The cluster that a command asks about: snapshots read and merged, with what is said about them on the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Container, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from kpreempt.admission import complete_cluster
from kpreempt.cli.terminal import Progress, complain
from kpreempt.errors import InputError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.model.wanted import NOTHING_WANTED, Wanted
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.snapshot import Keeps, Loaded, load_snapshot, merge_clusters
from kpreempt.snapshot.archives import Intake
from kpreempt.verdict import Assumption, AssumptionKind

if TYPE_CHECKING:
    from kpreempt.snapshot.live import Connection, Reading
    from kpreempt.snapshot.live.flags import ConnectionFlags


class LoadedCluster(msgspec.Struct, frozen=True):
    """A cluster, and what is assumed about it; ``documents`` are the plain objects that were asked for.

    ``wanted`` is what was read for plugins.
    """

    cluster: ClusterSnapshot
    assumptions: list[Assumption]
    documents: list[dict[str, Any]] = []
    wanted: Wanted = NOTHING_WANTED


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
    phases: Phases = NO_PHASES,
    keeps: Keeps | None = None,
    compared: Collection[str] = (),
    wanted: Wanted = NOTHING_WANTED,
    completes: bool = True,
    unneeded: Container[str] = (),
    intake: Intake | None = None,
    at: str | None = None,
) -> LoadedCluster:
    """Read and merge ``paths`` (``-`` is standard input), or the ``live`` cluster, and lay ``additions`` over it.

    A live cluster's events are read only ``with_events``, and kinds without records where they are ``compared``, by
    name; those of a dump are there anyway, as are kinds that the question does not need (``unneeded``, by name).
    ``keeps`` is told the kind and the record of each object, and says whether its document is wanted. What plugins
    have ``wanted`` is in the cluster.
    ``intake`` bounds what the inputs unpack to. ``at`` is the moment of recordings among ``paths``.

    Objects that are set aside are listed on standard error. The cluster is as an API server and its controllers would
    have it (``complete_cluster``), unless ``completes`` is false. Raises ``InputError``.
    """
    loaded: Loaded | Reading
    if live is None:
        loaded = _load(
            paths, phases, skip_bad_objects=skip_bad_objects, keeps=keeps, wanted=wanted, intake=intake, at=at
        )
    else:
        if at is not None:
            raise UsageError("--at: a live cluster is as it is now", hint="--snapshot DIR, of kpreempt record --to DIR")
        loaded = _read(
            live,
            phases,
            with_events=with_events,
            skip_bad_objects=skip_bad_objects,
            keeps=keeps,
            compared=compared,
            wanted=wanted,
            unneeded=unneeded,
        )
    cluster, set_aside, said = loaded.cluster, loaded.set_aside, loaded.assumptions
    documents = loaded.documents
    created: set[str] = set()
    if additions:
        added = _load(additions, phases, skip_bad_objects=skip_bad_objects, keeps=keeps, wanted=wanted, intake=intake)
        documents = [*documents, *added.documents]
        cluster = merge_clusters(cluster, added.cluster)
        created = {pod.key for pod in added.cluster.pods}
        set_aside, said = [*set_aside, *added.set_aside], [*said, *added.assumptions]
    completed: list[Assumption] = []
    if completes:
        with phases.phase("admission"):
            cluster, completed = complete_cluster(cluster, created=created)
    return LoadedCluster(cluster, [*said, *map(_set_aside, set_aside), *completed], documents, wanted)


def _load(
    paths: Sequence[str],
    phases: Phases,
    *,
    skip_bad_objects: bool,
    keeps: Keeps | None,
    wanted: Wanted,
    intake: Intake | None,
    at: str | None = None,
) -> Loaded:
    progress = Progress()
    try:
        stdin = standard_input() if "-" in paths else None
        loaded = load_snapshot(
            paths,
            stdin=stdin,
            skip_bad_objects=skip_bad_objects,
            progress=progress,
            phases=phases,
            keeps=keeps,
            wanted=wanted,
            intake=intake,
            at=at,
        )
    finally:
        progress.close()
    reader = sys.modules.get("kpreempt.snapshot.yaml_fast")
    if reader is not None and not reader.IS_INSTALLED:
        complain("rapidyaml is not installed: YAML is read by PyYAML, which takes longer")
    return loaded


def _read(
    live: Connection,
    phases: Phases,
    *,
    with_events: bool,
    skip_bad_objects: bool,
    keeps: Keeps | None,
    compared: Collection[str],
    wanted: Wanted,
    unneeded: Container[str],
) -> Reading:
    from kpreempt.snapshot.live import Api, read_cluster

    progress, api = Progress(), Api(live)
    taken_at = datetime.now(UTC).replace(microsecond=0)
    try:
        return read_cluster(
            api,
            taken_at=taken_at,
            with_events=with_events,
            skip_bad_objects=skip_bad_objects,
            progress=progress,
            phases=phases,
            keeps=keeps,
            compared=compared,
            wanted=wanted,
            unneeded=unneeded,
        )
    finally:
        progress.close()
        api.close()


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


def _set_aside(error: InputError) -> Assumption:
    complain(f"set aside: {error.message}", error.hint)
    message = f"set aside, because it is bad: {error.problem}"
    return Assumption(error.object_name or error.source, error.path, message, AssumptionKind.SET_ASIDE)
