"""``kpreempt who-preempted``: for whom a pod was evicted, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from kpreempt.cli.connection_options import connects
from kpreempt.cli.options import (
    AnswerOutputs,
    CallExtenders,
    Colour,
    FeatureGates,
    Now,
    Plugins,
    ProfileJson,
    SchedulerConfig,
    SkipBadObjects,
    Snapshots,
)

if TYPE_CHECKING:
    from kpreempt.snapshot.live.flags import ConnectionFlags


@connects
def who_preempted(
    *,
    connection: ConnectionFlags,
    pod: Annotated[str, Argument(metavar="[pod/]POD", help="The pod that was evicted; it may be gone.")],
    snapshot: Snapshots = None,
    namespace: Annotated[
        str | None, Option("-n", "--namespace", metavar="NS", help="Where the pod is, or was.")
    ] = None,
    before: Annotated[
        list[str] | None,
        Option(metavar="PATH", help="A snapshot from before: explain the preemptor there. Repeatable; all are merged."),
    ] = None,
    scheduler_config: SchedulerConfig = None,
    feature_gates: FeatureGates = None,
    plugin: Plugins = None,
    call_extenders: CallExtenders = False,
    output: AnswerOutputs = None,
    color: Colour = "auto",
    skip_bad_objects: SkipBadObjects = False,
    now: Now = None,
    profile_json: ProfileJson = None,
) -> int:
    """Say for whom a pod was evicted, and where that one is now.

    The scheduler tells it in an event, which the API server keeps for an hour unless it is told otherwise. So the
    snapshot needs events: kubectl get nodes,pods,events -A -o yaml. With a snapshot from before (--before) the eviction
    is reconstructed: whether the preemptor evicts this pod there, and why.
    """
    from kpreempt.cli.extensions import Extensions
    from kpreempt.cli.who_preempted_run import WhoPreemptedRequest, run_who_preempted

    return run_who_preempted(
        WhoPreemptedRequest(
            pod=pod,
            snapshots=snapshot or [],
            connection=connection,
            namespace=namespace,
            before=before or [],
            scheduler_config=scheduler_config,
            feature_gates=feature_gates or [],
            extensions=Extensions(tuple(plugin or ()), call_extenders),
            outputs=output or [],
            colour=color,
            skip_bad_objects=skip_bad_objects,
            now=now,
            profile_json=profile_json,
        )
    )
