"""``kpreempt check``: whether a change may go to a cluster."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from kpreempt.cli.gate_options import Gate, GatedRequest
from kpreempt.cli.options import After, AnyAlgorithm, manifest_options


class CheckRequest(GatedRequest, without=["all_namespaces", "selector", "strict"]):
    """What the options of ``kpreempt check`` ask for."""

    files: Annotated[
        list[str],
        manifest_options(
            "PATH",
            "Manifests that are to be applied: file, directory, URL, or - for what Helm or Kustomize writes. "
            "Repeatable.",
        ),
    ] = []
    deletions: Annotated[
        list[str],
        Option(
            "--delete",
            metavar="KIND/[NS/]NAME",
            help="Object to delete as well. What goes with it must be listed, too. Repeatable.",
        ),
    ] = []
    namespace: Annotated[
        str | None, Option("-n", "--namespace", metavar="NS", help="Where objects go that do not say it.")
    ] = None
    base: Annotated[
        list[str],
        Option(metavar="PATH", help="The manifests as they were: what they bring about anyway does not count."),
    ] = []
    prune: Annotated[
        bool, Option("--prune", help="Delete the objects that only the base has, as a pruning deployment does.")
    ] = False
    autoscaled: Annotated[
        str,
        Option(
            metavar="SIZE",
            help="What a HorizontalPodAutoscaler scales is simulated at its current size, or at its max.",
        ),
    ] = "current"
    job_duration: Annotated[
        str | None,
        Option(
            "--job-duration",
            metavar="TIME",
            help="How long each pod of a Job without activeDeadlineSeconds runs until it ends, or never.  [10m]",
        ),
    ] = None
    create_namespace: Annotated[
        bool,
        Option(
            "--create-namespace",
            help="Make namespaces first that the change needs and the cluster has not, as helm install does.",
        ),
    ] = False
    applied_by: Annotated[
        str | None,
        Option(
            "--applied-by",
            metavar="TOOL",
            help="Tool that applies the change: kubectl, helm or argocd. Hooks and waves count only for the tool that"
            " reads their annotations.  [kubectl]",
        ),
    ] = None
    algorithm: AnyAlgorithm = None
    gate: Annotated[Gate, After("docs_url")]
    compare_with: Annotated[
        str | None,
        Option(
            "--compare-with",
            metavar="FILE",
            help="What a former run wrote with -o json: tell what is new, worse and better since then.",
        ),
    ] = None


def check(request: CheckRequest) -> int:
    """Simulate a rollout against the cluster, and fail where it would hurt.

    The manifests are compared with the cluster: what is new, changed, scaled or deleted. Controllers and scheduler are
    simulated until nothing more happens, victims and their replacements included. Then the rules are checked, from
    options or kpreempt.toml; what could not be evaluated fails, too, unless it is waived. A terminal shows one screen,
    with every finding or how many more there are; -v, a file and a pipe get the report.

    Exit codes: 0 all rules hold, 1 one does not, 2 wrong usage, 3 input unreadable.
    """
    from kpreempt.cli.check_run import run_check

    return run_check(request)
