"""``kpreempt volcano``: a whole session of Volcano's scheduler."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from kpreempt.cli.options import Additions, After, AnswerRequest, ChangingNodes, Runs, Seed, VolcanoActions, Without


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
    node_changes: ChangingNodes
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
    """Run a whole session of Volcano 1.8: what is enqueued, allocated, pipelined and evicted, by which action, and why.

    The shares of queues and jobs before and after, every node that was tried, which plugin of which tier rejected which
    victim, whether each statement was committed or discarded, the conditions of PodGroups and pods, and where Volcano
    would panic.

    Where Volcano chooses at random, this takes the first by name; --runs N runs N more sessions with every such choice
    drawn anew, and counts the outcomes.
    """
    from kpreempt.analysis.explain.overrides import changed
    from kpreempt.analysis.volcano.sessions import answer_session
    from kpreempt.cli.answering import Run
    from kpreempt.cli.clusters import single_use_of_stdin, usual_namespace
    from kpreempt.cli.volcano_configuration import volcano_for

    run = Run(request)
    single_use_of_stdin(
        {"--snapshot": request.snapshots, "--with": request.additions, "--add-node": request.node_changes.files}
    )
    live = run.connect()
    scheduler = volcano_for(request, run, live)
    loaded = run.load(live, additions=request.additions, with_events=False)
    cluster = changed(loaded.cluster, usual_namespace(live), removed=request.without)
    with run.stopwatch.phase("session"):
        answer = answer_session(cluster, scheduler, loaded.assumptions)
    run.write_once(answer, scheduler.now)
    return run.exit_code(set(answer.session.assumptions))
