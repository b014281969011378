"""``kpreempt compare``: several schedulers side by side."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from kpreempt.cli.options import After, AnswerRequest, Manifests, PageOutputs, Pod, Select
from kpreempt.scheduler_table import DEFAULT_ALGORITHM, KUBE_RANGE


class CompareRequest(
    AnswerRequest,
    without=["all_namespaces", "selector", "policy_config", "jobs"],
):
    """What the options of ``kpreempt compare`` ask for."""

    pod: Pod = None
    algorithms: Annotated[
        str | None,
        Option(metavar="NAME,NAME,...", help=f"Two or more, the first to compare with: auto,{DEFAULT_ALGORITHM}"),
    ] = None
    upgrade_to: Annotated[
        str | None,
        Option("--upgrade-to", metavar="VERSION", help="What an upgrade of the cluster's Kubernetes changes: 1.35"),
    ] = None
    workloads: Annotated[
        bool, Option("--workloads", help="With --upgrade-to, also try the next pod of every workload.")
    ] = False
    files: Manifests = []
    select: Select = []
    batch: Annotated[str | None, Option(metavar="FILE", help="Scenarios as JSON lines, as for kpreempt batch.")] = None
    namespace: Annotated[
        str | None,
        Option("-n", "--namespace", metavar="NS", help="Where the pod is; of pending pods, only those there."),
    ] = None
    algorithm: Annotated[
        str | None,
        Option(
            "--algorithm",
            metavar=f"auto|{KUBE_RANGE}",
            help="With --upgrade-to: not the cluster's own version.",
        ),
    ] = None
    scheduler_config: Annotated[
        str | None,
        Option(metavar="FILE", help="With --upgrade-to, both versions have this KubeSchedulerConfiguration."),
    ] = None
    feature_gates: Annotated[
        list[str],
        Option(metavar="GATE=true,...", help="With --upgrade-to, both versions have these gates set. Repeatable."),
    ] = []
    outputs: PageOutputs = []
    fail_on_difference: Annotated[
        bool,
        After("colour"),
        Option("--fail-on-difference", help="Exit 1 if not all algorithms decide alike, or may not."),
    ] = False


def compare(request: CompareRequest) -> int:
    """Say where several algorithms would put the same pods, whom each evicts, and at which step they differ.

    The pods are one of the cluster (NAME), those of a manifest (-f), those of scenarios (--batch), or else every pod
    that is pending. Each is judged alone, as if it came next. One screen; -v has every pod and every step that differs.

    Alike: the pod lands, preempts or stays pending with each of them, on the same nodes, with the same victims. An
    algorithm may have a configuration and feature gates of its own, so that one can be compared with itself:
    kube-1.36,kube-1.36@FILE,kube-1.36:GATE=false. The name auto is the version that the cluster has.

    With kueue-0.19,kueue-0.19@FILE they are Workloads: one of the cluster, those of a manifest, or else all that wait.
    A file has another configuration of Kueue's manager, ClusterQueues and cohorts with other quotas, or both.

    With --upgrade-to it is the cluster's own version and a newer one: which pending pods, pods of a manifest and next
    pods of workloads (--workloads) would then land elsewhere, evict others or land no longer, and which change of
    Kubernetes does it.
    """
    if request.upgrade_to is not None:
        from kpreempt.cli.compare_upgrade import run_upgrade

        return run_upgrade(request)
    from kpreempt.cli.compare_run import run_compare

    return run_compare(request)
