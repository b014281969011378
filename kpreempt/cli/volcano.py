"""``kpreempt volcano``: a whole session of Volcano's scheduler."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from kpreempt.cli.options import Additions, After, AnswerRequest, Runs, Seed, VolcanoActions, Without


class VolcanoRequest(
    AnswerRequest,
    without=[
        "namespace",
        "all_namespaces",
        "selector",
        "algorithm",
        "policy_config",
        "feature_gates",
        "extensions",
        "jobs",
    ],
):
    """What the options of ``kpreempt volcano`` ask for."""

    additions: Annotated[Additions, After("snapshots")] = []
    without: Without = []
    scheduler_config: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Volcano's configuration, or the ConfigMap that holds it; configmap/[NS/]NAME is one of the live "
            "cluster. Default: that of Volcano 1.8.",
        ),
    ] = None
    actions: VolcanoActions = None
    runs: Runs = 0
    seed: Seed = 0


def volcano(request: VolcanoRequest) -> int:
    """Play a whole session of Volcano 1.8: who is let in, placed and evicted by which action, and why.

    The shares of queues and jobs before and after, every node that was tried, which plugin of which tier vetoed which
    victim, what each statement did and why it was thrown away, what users then see on PodGroups and pods, and where
    the real scheduler would panic.

    What the real one leaves to chance goes by name here; --runs N plays N sessions with all of it drawn at random, and
    says how often each end came up.
    """
    from kpreempt.analysis.cluster_overrides import changed
    from kpreempt.analysis.volcano import play
    from kpreempt.cli.answering import Run
    from kpreempt.cli.clusters import single_use_of_stdin, usual_namespace
    from kpreempt.cli.volcano_configuration import volcano_for

    run = Run(request)
    single_use_of_stdin({"--snapshot": request.snapshots, "--with": request.additions})
    live = run.connect()
    scheduler = volcano_for(request, run, live)
    loaded = run.load(live, additions=request.additions, with_events=False)
    cluster = changed(loaded.cluster, usual_namespace(live), removed=request.without)
    with run.stopwatch.phase("session"):
        answer = play(cluster, scheduler, loaded.assumptions)
    run.write_once(answer, scheduler.now)
    return run.exit_code(set(answer.session.assumptions))
