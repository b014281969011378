"""``kpreempt volcano``: a whole session of Volcano's scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from kpreempt.cli.connection_options import connects
from kpreempt.cli.options import (
    AnswerOutputs,
    Colour,
    Now,
    ProfileJson,
    Runs,
    Seed,
    SkipBadObjects,
    Snapshots,
    Strict,
    Verbose,
    VolcanoActions,
)

if TYPE_CHECKING:
    from kpreempt.snapshot.live.flags import ConnectionFlags


@connects
def volcano(
    *,
    connection: ConnectionFlags,
    snapshot: Snapshots = None,
    with_: Annotated[
        list[str] | None,
        Option("--with", metavar="FILE", help="What if these objects were in the cluster, too. Repeatable."),
    ] = None,
    without: Annotated[
        list[str] | None,
        Option(metavar="KIND/[NS/]NAME", help="What if this were not in the cluster. Repeatable."),
    ] = None,
    scheduler_config: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Volcano's configuration, or the ConfigMap that holds it; configmap/[NS/]NAME is one of the live "
            "cluster. Default: that of Volcano 1.8.",
        ),
    ] = None,
    actions: VolcanoActions = None,
    runs: Runs = 0,
    seed: Seed = 0,
    output: AnswerOutputs = None,
    verbose: Verbose = False,
    color: Colour = "auto",
    strict: Strict = False,
    skip_bad_objects: SkipBadObjects = False,
    now: Now = None,
    profile_json: ProfileJson = None,
) -> int:
    """Play a whole session of Volcano 1.8: who is let in, placed and evicted by which action, and why.

    The shares of queues and jobs before and after, every node that was tried, which plugin of which tier vetoed which
    victim, what each statement did and why it was thrown away, what users then see on PodGroups and pods, and where
    the real scheduler would panic.

    What the real one leaves to chance goes by name here; --runs N plays N sessions with all of it drawn at random, and
    says how often each end came up.
    """
    from kpreempt.cli.volcano_run import VolcanoRequest, run_volcano

    return run_volcano(
        VolcanoRequest(
            snapshots=snapshot or [],
            connection=connection,
            namespace=None,
            scheduler_config=scheduler_config,
            feature_gates=[],
            actions=actions,
            runs=runs,
            seed=seed,
            additions=with_ or [],
            without=without or [],
            outputs=output or [],
            verbose=verbose,
            colour=color,
            strict=strict,
            skip_bad_objects=skip_bad_objects,
            now=now,
            profile_json=profile_json,
        )
    )
