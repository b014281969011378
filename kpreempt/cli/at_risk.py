"""``kpreempt at-risk``: which running pods would be evicted, and for whom."""

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
def at_risk(
    *,
    connection: ConnectionFlags,
    snapshot: Snapshots = None,
    namespace: Annotated[
        str | None, Option("-n", "--namespace", metavar="NS", help="Pods of this namespace (default: default).")
    ] = None,
    all_namespaces: AllNamespaces = False,
    selector: Selector = None,
    limit: Annotated[int, Option(metavar="NUMBER", min=1, help="Show at most so many pods, at the highest risk.")] = 10,
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
    profile_json: ProfileJson = None,
) -> int:
    """Say which pending pods would evict running ones, and from which priority on a new pod would.

    Everything is found by running the scheduler's decision: on each pending pod, and on new pods of typical size, of
    the running pod's own size and of all the room that it would leave, at each priority that makes a difference.
    """
    from kpreempt.cli.at_risk_run import AtRiskRequest, run_at_risk
    from kpreempt.cli.extensions import Extensions

    return run_at_risk(
        AtRiskRequest(
            snapshots=snapshot or [],
            connection=connection,
            namespace=namespace,
            all_namespaces=all_namespaces,
            selector=selector,
            limit=limit,
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
            profile_json=profile_json,
        )
    )
