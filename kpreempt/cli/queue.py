"""``kpreempt queue``: the scheduling queue, in its order, and what would move its pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from kpreempt.cli.connection_options import connects
from kpreempt.cli.options import (
    AnswerOutputs,
    CallExtenders,
    Colour,
    FeatureGates,
    Jobs,
    Now,
    Plugins,
    ProfileJson,
    SchedulerConfig,
    SkipBadObjects,
    Snapshots,
    Strict,
    Verbose,
)
from kpreempt.schedulers.kube.versions import NEWEST_ALGORITHM

if TYPE_CHECKING:
    from kpreempt.snapshot.live.flags import ConnectionFlags


@connects
def queue(
    *,
    connection: ConnectionFlags,
    algorithm: Annotated[
        str, Option(metavar=f"kube-1.8|kube-1.13|{NEWEST_ALGORITHM}", help="The queue of this scheduler.")
    ] = NEWEST_ALGORITHM,
    snapshot: Snapshots = None,
    events: Annotated[
        str | None,
        Option(metavar="FILE", help="Play these events, JSON lines or YAML, and show the queue after each."),
    ] = None,
    scheduler_config: SchedulerConfig = None,
    feature_gates: FeatureGates = None,
    plugin: Plugins = None,
    call_extenders: CallExtenders = False,
    output: AnswerOutputs = None,
    verbose: Verbose = False,
    color: Colour = "auto",
    strict: Strict = False,
    skip_bad_objects: SkipBadObjects = False,
    now: Now = None,
    jobs: Jobs = None,
    profile_json: ProfileJson = None,
) -> int:
    """Show the scheduling queue: which pod is tried next, where the others wait, and what would move each.

    With --events, and neither --snapshot nor an option that names a live cluster, the cluster is empty at first. An
    event: {"time": "+5s", "event": "addPod", "pod": {...}}. The time is one of a clock, or counts from the event
    before. The others are updatePod, deletePod, bindPod, addNode, updateNode, deleteNode, changeObject, wait, and what
    the scheduler does: pop, unschedulable, nominate, clearNomination, moveAll, activate.
    """
    from kpreempt.cli.extensions import Extensions
    from kpreempt.cli.queue_run import QueueRequest, run_queue

    return run_queue(
        QueueRequest(
            algorithm=algorithm,
            snapshots=snapshot or [],
            connection=connection,
            events=events,
            namespace=None,
            scheduler_config=scheduler_config,
            feature_gates=feature_gates or [],
            extensions=Extensions(tuple(plugin or ()), call_extenders),
            outputs=output or [],
            verbose=verbose,
            colour=color,
            strict=strict,
            skip_bad_objects=skip_bad_objects,
            now=now,
            jobs=jobs,
            profile_json=profile_json,
        )
    )
