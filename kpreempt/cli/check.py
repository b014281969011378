"""``kpreempt check``: whether a change may go to a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from kpreempt.cli.connection_options import connects
from kpreempt.cli.gate_options import GateFlags, gated
from kpreempt.cli.options import (
    AnyAlgorithm,
    CallExtenders,
    Colour,
    FeatureGates,
    Jobs,
    Now,
    Plugins,
    PolicyConfig,
    ProfileJson,
    SchedulerConfig,
    SkipBadObjects,
    Snapshots,
    Verbose,
)

if TYPE_CHECKING:
    from kpreempt.snapshot.live.flags import ConnectionFlags

Texts = list[str] | None


@gated
@connects
def check(
    *,
    connection: ConnectionFlags,
    file: Annotated[
        Texts,
        Option(
            "-f",
            "--filename",
            metavar="PATH",
            help="Manifests that are to be applied: file, directory, or - for what Helm or Kustomize writes. "
            "Repeatable.",
        ),
    ] = None,
    delete: Annotated[
        Texts, Option(metavar="KIND/[NS/]NAME", help="What is to be deleted as well. Repeatable.")
    ] = None,
    snapshot: Snapshots = None,
    namespace: Annotated[
        str | None, Option("-n", "--namespace", metavar="NS", help="Where objects go that do not say it.")
    ] = None,
    base: Annotated[
        Texts, Option(metavar="PATH", help="The manifests as they were: what they bring about anyway does not count.")
    ] = None,
    prune: Annotated[bool, Option("--prune", help="Objects that only the base has are deleted.")] = False,
    algorithm: AnyAlgorithm = None,
    scheduler_config: SchedulerConfig = None,
    policy_config: PolicyConfig = None,
    feature_gates: FeatureGates = None,
    plugin: Plugins = None,
    call_extenders: CallExtenders = False,
    seed: Annotated[int, Option(metavar="NUMBER", help="What chance starts from.")] = 0,
    runs: Annotated[
        int | None,
        Option(
            metavar="N",
            min=1,
            help="Play it N times with other draws; the worst counts. By default once where nothing is drawn, every "
            "choice where these are few, else up to 20 times.",
        ),
    ] = None,
    worst_case: Annotated[
        bool, Option("--worst-case", help="Play every choice that chance leaves; the worst counts.")
    ] = False,
    max_plays: Annotated[
        int, Option(metavar="N", min=1, help="With --worst-case: at most so many; more leave it uncertain.")
    ] = 100,
    gate: GateFlags,
    output: Annotated[
        Texts,
        Option(
            "-o",
            "--output",
            metavar="FORMAT[=FILE]",
            help="text (default), json, yaml, jsonl, name, markdown, html, junit, sarif, github or gitlab, into FILE "
            "if given. Repeatable.",
        ),
    ] = None,
    verbose: Verbose = False,
    color: Colour = "auto",
    skip_bad_objects: SkipBadObjects = False,
    now: Now = None,
    jobs: Jobs = None,
    profile_json: ProfileJson = None,
) -> int:
    """Play a rollout against the cluster, and fail where it would hurt.

    The manifests are held against the cluster: what is new, changed, scaled or deleted. Controllers and scheduler are
    played until nothing more happens, victims and their replacements included. Then the rules are put to it, from
    options or kpreempt.toml; what could not be evaluated fails, too, unless it is waived.

    Exit codes: 0 all rules hold, 1 one does not, 2 wrong usage, 3 input unreadable.
    """
    from kpreempt.cli.check_run import CheckRequest, run_check
    from kpreempt.cli.extensions import Extensions

    return run_check(
        CheckRequest(
            snapshots=snapshot or [],
            connection=connection,
            namespace=namespace,
            files=file or [],
            deletions=delete or [],
            base=base or [],
            prune=prune,
            algorithm=algorithm,
            scheduler_config=scheduler_config,
            policy_config=policy_config,
            feature_gates=feature_gates or [],
            extensions=Extensions(tuple(plugin or ()), call_extenders),
            seed=seed,
            runs=runs,
            worst_case=worst_case,
            max_plays=max_plays,
            gate=gate,
            outputs=output or [],
            verbose=verbose,
            colour=color,
            skip_bad_objects=skip_bad_objects,
            now=now,
            jobs=jobs,
            profile_json=profile_json,
        )
    )
