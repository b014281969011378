"""``kpreempt budgets``: what is wrong with PodDisruptionBudgets, and who would break them."""

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
def budgets(
    *,
    connection: ConnectionFlags,
    snapshot: Snapshots = None,
    namespace: Annotated[
        str | None, Option("-n", "--namespace", metavar="NS", help="Only budgets of this namespace.")
    ] = None,
    all_namespaces: AllNamespaces = False,
    selector: Selector = None,
    algorithm: Algorithm = None,
    scheduler_config: SchedulerConfig = None,
    policy_config: PolicyConfig = None,
    feature_gates: FeatureGates = None,
    plugin: Plugins = None,
    call_extenders: CallExtenders = False,
    output: AnswerOutputs = None,
    verbose: Verbose = False,
    color: Colour = "auto",
    fail_on: Annotated[
        str | None,
        Option(metavar="error|warning|note", help="Exit 1 where a finding is as bad as this, or worse."),
    ] = None,
    strict: Strict = False,
    skip_bad_objects: SkipBadObjects = False,
    now: Now = None,
    jobs: Jobs = None,
    profile_json: ProfileJson = None,
) -> int:
    """Audit PodDisruptionBudgets: which block drains, protect nothing, or break, and for which pod.

    Budgets of all namespaces, unless -n says otherwise; with -l those that protect such pods. The scheduler prefers
    victims whose budgets allow it, and takes others where nothing else helps: every pending pod is asked whether it
    would, and for budgets that allow nothing it is sought from which priority on a new pod would.
    """
    from kpreempt.cli.budgets_run import BudgetsRequest, run_budgets
    from kpreempt.cli.extensions import Extensions

    return run_budgets(
        BudgetsRequest(
            snapshots=snapshot or [],
            connection=connection,
            namespace=namespace,
            all_namespaces=all_namespaces,
            selector=selector,
            algorithm=algorithm,
            scheduler_config=scheduler_config,
            policy_config=policy_config,
            feature_gates=feature_gates or [],
            extensions=Extensions(tuple(plugin or ()), call_extenders),
            outputs=output or [],
            verbose=verbose,
            colour=color,
            fail_on=fail_on,
            strict=strict,
            skip_bad_objects=skip_bad_objects,
            now=now,
            jobs=jobs,
            profile_json=profile_json,
        )
    )
