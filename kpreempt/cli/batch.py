"""``kpreempt batch``: scenarios as JSON lines in, verdicts as JSON lines out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kpreempt.cli.connection_options import connects
from kpreempt.cli.options import (
    CallExtenders,
    Jobs,
    Now,
    Plugins,
    ProfileJson,
    SkipBadObjects,
    Snapshots,
    Strict,
)

if TYPE_CHECKING:
    from kpreempt.snapshot.live.flags import ConnectionFlags


@connects
def batch(
    *,
    connection: ConnectionFlags,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Scenarios as JSON lines; - is standard input.")] = "-",
    snapshot: Snapshots = None,
    plugin: Plugins = None,
    call_extenders: CallExtenders = False,
    output: Annotated[
        list[str] | None, typer.Option("-o", "--output", metavar="jsonl[=FILE]", help="Write to FILE, whole or not.")
    ] = None,
    skip_bad_objects: SkipBadObjects = False,
    strict: Strict = False,
    now: Now = None,
    jobs: Jobs = None,
    profile_json: ProfileJson = None,
) -> int:
    """Answer many scenarios, one JSON line each, in order.

    A line in: {"name": ..., "objects": [...], "pod": {...}}, and optionally "algorithm", "config" (a
    KubeSchedulerConfiguration as text), "featureGates" and "queued" (true: pending pods wait in the scheduler's queue,
    so that nominated ones keep their room). All objects are taken as they are stored: the API's own defaults are filled
    in, the priority of a class and the status of a budget where it is not stated, and nothing else. With --snapshot, or
    an option that names a live cluster (--context, --kubeconfig, ...), that cluster is read once, and each line's
    objects are laid over it.

    With "algorithm": "volcano-1.8" the answer is a whole session, "conf" is Volcano's configuration as text (empty: the
    default one), and the pod may be left out.

    A line out: {"name": ..., "verdict": {...}}, or {"name": ..., "error": {"message": ...}} for a bad one; the others
    are answered, and the exit code is 3.
    """
    from kpreempt.cli.batch_run import BatchRequest, run_batch
    from kpreempt.cli.extensions import Extensions

    return run_batch(
        BatchRequest(
            file=file,
            snapshots=snapshot or [],
            connection=connection,
            extensions=Extensions(tuple(plugin or ()), call_extenders),
            outputs=output or [],
            skip_bad_objects=skip_bad_objects,
            strict=strict,
            now=now,
            jobs=jobs,
            profile_json=profile_json,
        )
    )
