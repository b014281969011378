"""``kpreempt explain``: where pods land, whom they evict, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from kpreempt.cli.options import (
    Additions,
    After,
    AnswerRequest,
    AnyQueueingAlgorithm,
    ChangingNodes,
    Manifests,
    Runs,
    Seed,
    Select,
    VolcanoActions,
    Without,
)

if TYPE_CHECKING:
    from kpreempt.report.options import RenderOptions

_Text = str | None


class ExplainRequest(AnswerRequest, without=["all_namespaces", "selector", "jobs"]):
    """What the options of ``kpreempt explain`` ask for."""

    pod: Annotated[
        _Text,
        Argument(
            metavar="[KIND/]NAME",
            help="A pod or a workload that is in the cluster: web-1, deploy/web, or NS/NAME of a pod.",
        ),
    ] = None
    name: Annotated[_Text, Argument(metavar="[NAME]", help="Its name, where the first word is its kind.")] = None
    files: Manifests = []
    select: Select = []
    namespace: Annotated[
        _Text, Option("-n", "--namespace", metavar="NS", help="Where the pod is, or is to be created.")
    ] = None
    cpu: Annotated[_Text, Option(metavar="QUANTITY", help="Without a manifest: CPU that the pod requests.")] = None
    memory: Annotated[_Text, Option(metavar="QUANTITY", help="Without a manifest: memory that it requests.")] = None
    resources: Annotated[
        list[str],
        Option("--resource", metavar="NAME=QUANTITY", help="Without a manifest: another resource. Repeatable."),
    ] = []
    priority: Annotated[int | None, Option(metavar="NUMBER", help="What if the pod had this priority.")] = None
    priority_class: Annotated[_Text, Option(metavar="NAME", help="What if it had this priority class.")] = None
    preemption_policy: Annotated[_Text, Option(metavar="POLICY", help="PreemptLowerPriority or Never.")] = None
    settings: Annotated[
        list[str],
        Option(
            "--set",
            metavar="PATH=VALUE",
            help="What if a field were different: spec.containers[0].resources.requests.cpu=1500m. Repeatable.",
        ),
    ] = []
    without: Without = []
    additions: Additions = []
    cordons: Annotated[
        list[str], Option("--cordon", metavar="NODE", help="What if this node were cordoned. Repeatable.")
    ] = []
    uncordons: Annotated[
        list[str], Option("--uncordon", metavar="NODE", help="What if it were open to pods again. Repeatable.")
    ] = []
    node_changes: ChangingNodes
    budgets: Annotated[
        list[str],
        Option("--budget", metavar="NS/NAME=ALLOWED", help="What if a budget allowed so many disruptions. Repeatable."),
    ] = []
    algorithm: AnyQueueingAlgorithm = None
    scheduler_config: Annotated[
        _Text,
        Option(
            metavar="FILE",
            help="What if the scheduler had this KubeSchedulerConfiguration, or Volcano's own configuration.",
        ),
    ] = None
    actions: VolcanoActions = None
    runs: Runs = 0
    seed: Seed = 0
    feature_gates: Annotated[
        list[str], Option(metavar="GATE=true,...", help="What if these feature gates were set so. Repeatable.")
    ] = []
    replicas: Annotated[
        int | None,
        After("resources"),
        Option(
            "--replicas",
            metavar="N",
            min=1,
            help="N of this pod, one after another; of a workload in the cluster N in addition to what it has.",
        ),
    ] = None
    node: Annotated[
        _Text,
        After("extensions"),
        Option(metavar="NAME", help="Tell this node's whole story, and what would make it the chosen one."),
    ] = None
    capacity: Annotated[
        bool,
        Option("--capacity", help="How many more of this pod fit, and on which nodes, without evicting anybody."),
    ] = False
    aftermath: Annotated[
        bool,
        Option(
            "--aftermath",
            help="What follows: when it starts, what comes in its victims' place, and whom that displaces.",
        ),
    ] = False
    outputs: Annotated[
        list[str],
        Option(
            "-o",
            "--output",
            metavar="FORMAT[=FILE]",
            help="text (default), json, yaml, jsonl, name, wide, markdown or html, into FILE if given. Repeatable. "
            "Or, as kubectl has them, jsonpath=TEMPLATE and custom-columns=HEADER:PATH,...",
        ),
    ] = []
    verbose: Annotated[
        int,
        Option("-v", "--verbose", count=True, help="Every section of the answer; -v -v: every node and every step."),
    ] = 0  # type: ignore[assignment] # counted here alone
    brief: Annotated[bool, Option("--brief", help="One line, for a chat.")] = False
    exit_code: Annotated[
        bool,
        After("colour"),
        Option(
            "--exit-code",
            help="Exit 0 lands, 10 by preemption, 11 violating budgets, 12 unschedulable, 13 uncertain; "
            "of several pods the highest.",
        ),
    ] = False

    @property
    def shows_all(self) -> bool:
        """Whether every node and every step is wanted; what Volcano does has but one shorter form."""
        from kpreempt.scheduler_table import KUEUE, VOLCANO

        return self.verbose > (self.algorithm not in (VOLCANO, KUEUE))

    def lengthened(self, options: RenderOptions) -> RenderOptions:
        """One screen, where no more and no less is asked for."""
        import msgspec

        from kpreempt.report.options import Extent

        extent = Extent.LINE if self.brief else Extent.REPORT if self.verbose else Extent.SCREEN
        return msgspec.structs.replace(options, verbose=self.shows_all, extent=extent)


def explain(request: ExplainRequest) -> int:
    """Say where a pod lands, or whom it preempts to land, or why it is unschedulable.

    The pod is a manifest (-f), one that is in the cluster (NAME), or made from --cpu, --memory and --resource. Of a
    workload all pods are put to the scheduler, one after the other: of a manifest as new ones, of one in the cluster
    (deploy/NAME) those that are not on a node yet, or one more where all are, or with --replicas so many more. With
    --algorithm volcano-1.8 the manifest may be a Volcano Job, and the question is what becomes of the whole gang. With
    --algorithm kueue-0.19 it is a Workload, or a Job or Pod with a queue: whether Kueue admits it, whom it preempts for
    that, and whether its pods then land.
    """
    from kpreempt.cli.explain_run import run_explain

    return run_explain(request)
