"""``kpreempt pending``: every pending pod, why it is still pending, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from kpreempt.cli.connection_options import connects
from kpreempt.cli.options import (
    Algorithm,
    AllNamespaces,
    AnswerOutputs,
    CallExtenders,
    Colour,
    FeatureGates,
    Jobs,
    Now,
    Plugins,
    PolicyConfig,
    ProfileJson,
    SchedulerConfig,
    Selector,
    SkipBadObjects,
    Snapshots,
    Strict,
    Verbose,
)

if TYPE_CHECKING:
    from kpreempt.snapshot.live.flags import ConnectionFlags


@connects
def pending(
    *,
    connection: ConnectionFlags,
    snapshot: Snapshots = None,
    namespace: Annotated[
        str | None, Option("-n", "--namespace", metavar="NS", help="Only pods of this namespace.")
    ] = None,
    all_namespaces: AllNamespaces = False,
    selector: Selector = None,
    watch: Annotated[bool, Option("-w", "--watch", help="Look again and again, until Ctrl-C.")] = False,
    interval: Annotated[float, Option(metavar="SECONDS", help="How long to wait between looks, with -w.")] = 5.0,
    algorithm: Algorithm = None,
    scheduler_config: SchedulerConfig = None,
    policy_config: PolicyConfig = None,
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
    """List every pending pod: why it is still pending, whom it would evict, whether it can land at all.

    Pods of all namespaces, unless -n says otherwise: there is one queue for all. They are in the order in which the
    scheduler would try them, by cause, and each is judged alone, as if it came next.
    """
    from kpreempt.cli.extensions import Extensions
    from kpreempt.cli.pending_run import PendingRequest, run_pending

    return run_pending(
        PendingRequest(
            snapshots=snapshot or [],
            connection=connection,
            namespace=namespace,
            all_namespaces=all_namespaces,
            selector=selector,
            watch=watch,
            interval=interval,
            algorithm=algorithm,
            scheduler_config=scheduler_config,
            policy_config=policy_config,
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
