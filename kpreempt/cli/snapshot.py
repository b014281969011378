"""``kpreempt snapshot``: a cluster into a file, with or without its names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Context, Option

from kpreempt.cli.connection_options import connects
from kpreempt.cli.options import SkipBadObjects, Snapshots

if TYPE_CHECKING:
    from kpreempt.snapshot.live.flags import ConnectionFlags


@connects
def snapshot(
    *,
    invocation: Context,
    connection: ConnectionFlags,
    to: Annotated[
        str,
        Option(
            "--to",
            metavar="FILE",
            help="Where to: FILE.json or FILE.jsonl, also with .gz or .zst; - is standard output.",
            show_default=False,
        ),
    ],
    snapshot: Snapshots = None,
    file: Annotated[
        list[str] | None,
        Option("-f", "--filename", metavar="FILE", help="A manifest whose pods go along as pending. Repeatable."),
    ] = None,
    namespace: Annotated[
        str | None, Option("-n", "--namespace", metavar="NS", help="Where the manifest's pods are to be created.")
    ] = None,
    redact: Annotated[
        bool, Option("--redact", help="Replace names, labels, images and the like; verdicts stay the same otherwise.")
    ] = False,
    redact_map: Annotated[
        str | None,
        Option("--redact-map", metavar="FILE", help="Write which name became which to FILE, for your eyes only."),
    ] = None,
    quiet: Annotated[bool, Option("-q", "--quiet", help="Do not say what was written.")] = False,
    skip_bad_objects: SkipBadObjects = False,
) -> int:
    """Write what the schedulers look at in a cluster to a file that --snapshot reads, whole or not at all.

    Secrets, ConfigMaps, environment values, commands, managed fields and annotations that are not used are never in it.
    """
    from kpreempt.cli.snapshot_run import SnapshotRequest, run_snapshot

    return run_snapshot(
        SnapshotRequest(
            program=invocation.find_root().info_name or "kpreempt",
            to=to,
            snapshots=snapshot or [],
            connection=connection,
            files=file or [],
            namespace=namespace,
            redact=redact,
            redact_map=redact_map,
            quiet=quiet,
            skip_bad_objects=skip_bad_objects,
        )
    )
