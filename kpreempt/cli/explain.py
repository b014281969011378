"""``kpreempt explain``: where pods land, whom they evict, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from kpreempt.cli.connection_options import connects
from kpreempt.cli.options import (
    AnyAlgorithm,
    CallExtenders,
    Colour,
    Now,
    Outputs,
    Plugins,
    PolicyConfig,
    ProfileJson,
    Runs,
    Seed,
    SkipBadObjects,
    Snapshots,
    Strict,
    VolcanoActions,
)

if TYPE_CHECKING:
    from kpreempt.snapshot.live.flags import ConnectionFlags

Texts = list[str] | None
Text = str | None


@connects
def explain(
    *,
    connection: ConnectionFlags,
    pod: Annotated[Text, Argument(metavar="[pod/]NAME", help="A pod that is in the cluster, in -n NS.")] = None,
    file: Annotated[
        Texts, Option("-f", "--filename", metavar="FILE", help="A manifest: a pod or anything with a pod template.")
    ] = None,
    select: Annotated[Texts, Option(metavar="KIND/NAME", help="Of the manifest, only this one. Repeatable.")] = None,
    snapshot: Snapshots = None,
    namespace: Annotated[
        Text, Option("-n", "--namespace", metavar="NS", help="Where the pod is, or is to be created.")
    ] = None,
    cpu: Annotated[Text, Option(metavar="QUANTITY", help="Without a manifest: CPU that the pod requests.")] = None,
    memory: Annotated[Text, Option(metavar="QUANTITY", help="Without a manifest: memory that it requests.")] = None,
    resource: Annotated[
        Texts, Option(metavar="NAME=QUANTITY", help="Without a manifest: another resource. Repeatable.")
    ] = None,
    priority: Annotated[int | None, Option(metavar="NUMBER", help="What if the pod had this priority.")] = None,
    priority_class: Annotated[Text, Option(metavar="NAME", help="What if it had this priority class.")] = None,
    preemption_policy: Annotated[Text, Option(metavar="POLICY", help="PreemptLowerPriority or Never.")] = None,
    set_: Annotated[
        Texts,
        Option(
            "--set",
            metavar="PATH=VALUE",
            help="What if a field were different: spec.containers[0].resources.requests.cpu=1500m. Repeatable.",
        ),
    ] = None,
    without: Annotated[
        Texts, Option(metavar="KIND/[NS/]NAME", help="What if this were not in the cluster. Repeatable.")
    ] = None,
    with_: Annotated[
        Texts, Option("--with", metavar="FILE", help="What if these objects were in the cluster, too. Repeatable.")
    ] = None,
    cordon: Annotated[Texts, Option(metavar="NODE", help="What if this node were cordoned. Repeatable.")] = None,
    uncordon: Annotated[Texts, Option(metavar="NODE", help="What if it were open to pods again. Repeatable.")] = None,
    budget: Annotated[
        Texts, Option(metavar="NS/NAME=ALLOWED", help="What if a budget allowed so many disruptions. Repeatable.")
    ] = None,
    algorithm: AnyAlgorithm = None,
    scheduler_config: Annotated[
        Text,
        Option(
            metavar="FILE",
            help="What if the scheduler had this KubeSchedulerConfiguration, or Volcano's own configuration.",
        ),
    ] = None,
    actions: VolcanoActions = None,
    runs: Runs = 0,
    seed: Seed = 0,
    policy_config: PolicyConfig = None,
    feature_gates: Annotated[
        Texts, Option(metavar="GATE=true,...", help="What if these feature gates were set so. Repeatable.")
    ] = None,
    plugin: Plugins = None,
    call_extenders: CallExtenders = False,
    node: Annotated[
        Text, Option(metavar="NAME", help="Tell this node's whole story, and what would make it the chosen one.")
    ] = None,
    aftermath: Annotated[
        bool,
        Option(
            "--aftermath", help="Play on: when it starts, what comes in its victims' place, and whom that displaces."
        ),
    ] = False,
    output: Outputs = None,
    verbose: Annotated[bool, Option("-v", "--verbose", help="Show every node and every step.")] = False,
    color: Colour = "auto",
    exit_code: Annotated[
        bool,
        Option(
            "--exit-code",
            help="Exit 0 lands, 10 by preemption, 11 violating budgets, 12 unschedulable, 13 uncertain; "
            "of several pods the highest.",
        ),
    ] = False,
    strict: Strict = False,
    skip_bad_objects: SkipBadObjects = False,
    now: Now = None,
    profile_json: ProfileJson = None,
) -> int:
    """Say where a pod lands, or whom it evicts to land, or why it lands nowhere.

    The pod is a manifest (-f), one that is in the cluster (NAME), or made from --cpu, --memory and --resource. With
    --algorithm volcano-1.8 the manifest may be a Volcano Job, and the question is what becomes of the whole gang.
    """
    from kpreempt.cli.explain_run import ExplainRequest, run_explain
    from kpreempt.cli.extensions import Extensions

    return run_explain(
        ExplainRequest(
            pod=pod,
            files=file or [],
            select=select or [],
            snapshots=snapshot or [],
            connection=connection,
            namespace=namespace,
            cpu=cpu,
            memory=memory,
            resources=resource or [],
            priority=priority,
            priority_class=priority_class,
            preemption_policy=preemption_policy,
            settings=set_ or [],
            without=without or [],
            additions=with_ or [],
            cordons=cordon or [],
            uncordons=uncordon or [],
            budgets=budget or [],
            algorithm=algorithm,
            actions=actions,
            runs=runs,
            seed=seed,
            scheduler_config=scheduler_config,
            policy_config=policy_config,
            feature_gates=feature_gates or [],
            extensions=Extensions(tuple(plugin or ()), call_extenders),
            node=node or "",
            aftermath=aftermath,
            outputs=output or [],
            verbose=verbose,
            colour=color,
            exit_code=exit_code,
            strict=strict,
            skip_bad_objects=skip_bad_objects,
            now=now,
            profile_json=profile_json,
        )
    )
