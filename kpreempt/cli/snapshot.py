"""``kpreempt snapshot``: a cluster into a file, with or without its names."""

from __future__ import annotations

from typing import Annotated

from typer import Context, Option

from kpreempt.cli.options import After, ClusterRequest


class SnapshotRequest(ClusterRequest):
    """What the options of ``kpreempt snapshot`` ask for."""

    invocation: Context
    to: Annotated[
        str,
        Option(
            "--to",
            metavar="FILE",
            help="Where to: FILE.json or FILE.jsonl, also with .gz or .zst; - is standard output.",
            show_default=False,
        ),
    ]
    files: Annotated[
        list[str],
        After("snapshots"),
        Option("-f", "--filename", metavar="FILE", help="A manifest whose pods go along as pending. Repeatable."),
    ] = []
    namespace: Annotated[
        str | None, Option("-n", "--namespace", metavar="NS", help="Where the manifest's pods are to be created.")
    ] = None
    redact: Annotated[
        bool, Option("--redact", help="Replace names, labels, images and the like; verdicts stay the same otherwise.")
    ] = False
    redact_map: Annotated[
        str | None,
        Option("--redact-map", metavar="FILE", help="Write which name became which to FILE, for your eyes only."),
    ] = None
    quiet: Annotated[bool, Option("-q", "--quiet", help="Do not say what was written.")] = False

    @property
    def program(self) -> str:
        """What its user calls kpreempt."""
        return self.invocation.find_root().info_name or "kpreempt"


def snapshot(request: SnapshotRequest) -> int:
    """Write what the schedulers look at in a cluster to a file that --snapshot reads, whole or not at all.

    Secrets, ConfigMaps, environment values, commands, managed fields and annotations that are not used are never in it.
    """
    from kpreempt.cli.snapshot_run import run_snapshot

    return run_snapshot(request)
