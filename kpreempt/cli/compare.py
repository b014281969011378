"""``kpreempt compare``: several schedulers side by side."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from kpreempt.cli.options import After, AnswerRequest, Manifests, PageOutputs, Pod, Select
from kpreempt.schedulers.kube.versions import NEWEST_ALGORITHM


class CompareRequest(
    AnswerRequest,
    without=["all_namespaces", "selector", "algorithm", "scheduler_config", "policy_config", "feature_gates", "jobs"],
):
    """What the options of ``kpreempt compare`` ask for."""

    pod: Pod = None
    algorithms: Annotated[
        str | None,
        Option(metavar="NAME,NAME,...", help=f"Two or more, the first to compare with: kube-1.13,{NEWEST_ALGORITHM}"),
    ] = None
    files: Manifests = []
    select: Select = []
    batch: Annotated[str | None, Option(metavar="FILE", help="Scenarios as JSON lines, as for kpreempt batch.")] = None
    namespace: Annotated[
        str | None,
        Option("-n", "--namespace", metavar="NS", help="Where the pod is; of pending pods, only those there."),
    ] = None
    outputs: PageOutputs = []
    fail_on_difference: Annotated[
        bool,
        After("colour"),
        Option("--fail-on-difference", help="Exit 1 where not all algorithms decide the same."),
    ] = False


def compare(request: CompareRequest) -> int:
    """Say where several algorithms would put the same pods, whom each evicts, and at which step they part.

    The pods are one of the cluster (NAME), those of a manifest (-f), those of scenarios (--batch), or else every pod
    that is pending. Each is judged alone, as if it came next.

    The same: the pod lands, evicts or lands nowhere with each of them, on the same nodes, with the same victims. An
    algorithm may have a configuration and feature gates of its own, so that one can be compared with itself:
    kube-1.36,kube-1.36@FILE,kube-1.36:GATE=false.
    """
    from kpreempt.cli.compare_run import run_compare

    return run_compare(request)
