"""The questions that every entry point puts to a cluster, with their options: commands, programs, sweeps, assistants.

A command adds how it reads and writes (``kpreempt.cli.requests``). Fields that are no options hold what an entry point
has made of its input: pods of manifests, or a change.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from kpreempt.library.options import (
    KUBE,
    LADDER,
    ONE,
    OUTPUT,
    SIMULATION,
    THE_CHANGE,
    THE_DRAIN,
    THE_POD,
    WHAT_IF,
    Option,
    Request,
)
from kpreempt.scheduler_table import LATEST_VERSION

if TYPE_CHECKING:
    from datetime import datetime

    from kpreempt.analysis.check.rollout.records import ManifestDocument
    from kpreempt.analysis.compare.upgrade import Versions
    from kpreempt.analysis.kueue.objects import KueueSettings
    from kpreempt.analysis.verification import Judgment
    from kpreempt.analysis.volcano.sessions import Volcano, VolcanoManifest
    from kpreempt.analysis.workload_pods import PodTemplate
    from kpreempt.library.gate.settings import GateSettings
    from kpreempt.library.reading import LoadedCluster
    from kpreempt.library.schedulers import SchedulerFactory
    from kpreempt.model.kueue import Workload
    from kpreempt.model.pod import Pod
    from kpreempt.schedulers.kueue import KueueConfiguration
    from kpreempt.schedulers.volcano import VolcanoConfiguration
    from kpreempt.snapshot.archives import InputLimits
    from kpreempt.snapshot.manifest import ManifestObject
    from kpreempt.verdict.plugins import AvailablePlugin

_Text = str | None

# A simulation takes from a few milliseconds to a second: more would never end.
MAX_RUNS = 10_000

NAMESPACE = Option(("-n", "--namespace"), "Only pods of this namespace.", "NS", THE_POD, in_tools=True, in_plans=ONE)
SELECTOR = Option(
    ("-l", "--selector"),
    "Only pods with these labels: app=web,tier!=db",
    "SELECTOR",
    THE_POD,
    in_tools=True,
    in_plans=ONE,
)
# Assistants and plans name one pod, and so do commands; without a manifest.
POD = Option(help="A pod that is in the cluster, in -n NS.", metavar="[pod/]NAME", in_tools=True, in_plans=LADDER)
RUNS = Option(("--runs",), metavar="N", panel=SIMULATION, max=MAX_RUNS, in_tools=True, max_in_tools=20, in_plans=ONE)
SEED = Option(("--seed",), "What chance starts from.", "NUMBER", SIMULATION, in_plans=ONE)


class Explain(Request):
    """Where pods land: one of the cluster, a workload of it, or those of ``templates``."""

    answered_by = "explain:explain"
    pod: Annotated[
        _Text,
        POD._replace(
            metavar="[KIND/]NAME",
            help="A pod or a workload that is in the cluster: web-1, deploy/web, or NS/NAME of a pod.",
        ),
    ] = None
    name: Annotated[_Text, Option(metavar="[NAME]", help="Its name, where the first word is its kind.")] = None
    namespace: Annotated[_Text, NAMESPACE._replace(help="Where the pod is, or is to be created.")] = None
    priority: Annotated[
        int | None,
        Option(
            ("--priority",),
            "What if the pod had this priority.",
            "NUMBER",
            WHAT_IF,
            families=(KUBE,),
            in_tools=True,
            in_plans=LADDER,
        ),
    ] = None
    priority_class: Annotated[
        _Text,
        Option(
            ("--priority-class",),
            "What if it had this priority class.",
            "NAME",
            WHAT_IF,
            families=(KUBE,),
            in_tools=True,
            in_plans=LADDER,
        ),
    ] = None
    preemption_policy: Annotated[
        _Text, Option(("--preemption-policy",), "PreemptLowerPriority or Never.", "POLICY", WHAT_IF, families=(KUBE,))
    ] = None
    settings: Annotated[
        list[str],
        Option(
            ("--set",),
            "What if a field were different: spec.containers[0].resources.requests.cpu=1500m. Repeatable.",
            "PATH=VALUE",
            WHAT_IF,
            families=(KUBE,),
        ),
    ] = []
    replicas: Annotated[
        int | None,
        Option(
            ("--replicas",),
            "N of this pod, one after another; of a workload in the cluster N in addition to what it has.",
            "N",
            THE_POD,
            min=1,
            families=(KUBE,),
            in_tools=True,
            max_in_tools=1_000,
            in_plans=LADDER,
        ),
    ] = None
    node: Annotated[
        _Text,
        Option(
            ("--node",),
            "Tell this node's whole story, and what would make it the chosen one.",
            "NAME",
            OUTPUT,
            families=(KUBE,),
            in_tools=True,
        ),
    ] = None
    capacity: Annotated[
        bool,
        Option(
            ("--capacity",),
            "How many more of this pod fit, and on which nodes, without evicting anybody.",
            panel=OUTPUT,
            families=(KUBE,),
            in_plans=ONE,
        ),
    ] = False
    aftermath: Annotated[
        bool,
        Option(
            ("--aftermath",),
            "What follows: when it starts, what comes in its victims' place, and whom that displaces.",
            panel=OUTPUT,
            families=(KUBE,),
        ),
    ] = False
    templates: "Sequence[PodTemplate]" = ()
    records_steps: bool = True


class Selected(Request):
    """Something about all pods, or those of a namespace with these labels."""

    namespace: Annotated[_Text, NAMESPACE] = None
    selector: Annotated[_Text, SELECTOR] = None


class Pending(Selected):
    """What becomes of each pending pod, on its own, in the order in which the queue would try them."""

    answered_by = "questions:pending"
    # How long smallest changes are sought for all pods together; without it they are not.
    seconds_of_search: float | None = None


class Budgets(Selected):
    """What is wrong with PodDisruptionBudgets, and which pods would violate them."""

    answered_by = "questions:budgets"
    namespace: Annotated[_Text, NAMESPACE._replace(help="Only budgets of this namespace.")] = None


class AtRisk(Selected):
    """Which running pods would be evicted, and by which pods."""

    answered_by = "questions:at_risk"
    limit: Annotated[
        int,
        Option(
            ("--limit",),
            "Show at most so many pods, the most threatened first.",
            "NUMBER",
            OUTPUT,
            min=1,
            in_tools=True,
            max_in_tools=1_000,
        ),
    ] = 10


class Simulated(Request):
    """What happens to the cluster, to which the rules of a gate are put."""

    seed: Annotated[int, SEED] = 0
    runs: Annotated[
        int | None,
        RUNS._replace(
            min=1,
            help="Run it N times with other draws; the worst counts. By default once where nothing is drawn, every "
            "choice where these are few, else up to 20 times.",
        ),
    ] = None
    worst_case: Annotated[
        bool,
        Option(
            ("--worst-case",),
            "Simulate every choice that chance leaves; the worst counts.",
            panel=SIMULATION,
            in_plans=ONE,
        ),
    ] = False
    max_runs: Annotated[
        int,
        Option(
            ("--max-runs",),
            "With --worst-case: at most so many; more leave it uncertain.",
            "N",
            SIMULATION,
            min=1,
            max=MAX_RUNS,
            in_plans=ONE,
        ),
    ] = 100
    rules: "GateSettings | None" = None

    @property
    def worst_of(self) -> int:
        """How many simulations look at every choice; none where chance draws."""
        return self.max_runs if self.worst_case else 0


class Check(Simulated):
    """What a change does to the cluster: ``change``, and ``before`` as the manifests were."""

    answered_by = "check:check"
    delete: Annotated[
        list[str],
        Option(
            ("--delete",),
            "Object to delete as well. What goes with it must be listed, too. Repeatable.",
            "KIND/[NS/]NAME",
            THE_CHANGE,
            in_tools=True,
            in_plans=ONE,
        ),
    ] = []
    namespace: Annotated[_Text, NAMESPACE._replace(help="Where objects go that do not say it.", panel=THE_CHANGE)] = (
        None
    )
    prune: Annotated[
        bool,
        Option(
            ("--prune",), "Delete the objects that only the base has, as a pruning deployment does.", panel=THE_CHANGE
        ),
    ] = False
    create_namespace: Annotated[
        bool,
        Option(
            ("--create-namespace",),
            "Make namespaces first that the change needs and the cluster has not, as helm install does.",
            panel=THE_CHANGE,
            in_plans=ONE,
        ),
    ] = False
    applied_by: Annotated[
        _Text,
        Option(
            ("--applied-by",),
            "Tool that applies the change: kubectl, helm or argocd. Hooks and waves count only for the tool that"
            " reads their annotations.  [kubectl]",
            "TOOL",
            THE_CHANGE,
            in_tools=True,
            in_plans=ONE,
        ),
    ] = None
    autoscaled: Annotated[
        str,
        Option(
            ("--autoscaled",),
            "What a HorizontalPodAutoscaler scales is simulated at its current size, or at its max.",
            "SIZE",
            SIMULATION,
            in_plans=ONE,
        ),
    ] = "current"
    job_duration: Annotated[
        _Text,
        Option(
            ("--job-duration",),
            "How long each pod of a Job without activeDeadlineSeconds runs until it ends, or never.  [10m]",
            "TIME",
            SIMULATION,
            in_plans=ONE,
        ),
    ] = None
    change: "Sequence[ManifestDocument]" = ()
    before: "Sequence[ManifestDocument]" = ()


class Drain(Simulated):
    """What becomes of nodes that are drained, and of their pods."""

    answered_by = "drain:drain"
    nodes: Annotated[
        list[str], Option(metavar="NODE...", help="The nodes to drain, in this order.", in_tools=True, in_plans=ONE)
    ] = []
    selector: Annotated[
        _Text, SELECTOR._replace(help="The nodes with these labels, by name: pool=a.", panel=THE_DRAIN, in_plans=LADDER)
    ] = None
    pool: Annotated[
        _Text, Option(("--pool",), "The nodes with this label.", "LABEL=VALUE", THE_DRAIN, in_plans=LADDER)
    ] = None
    force: Annotated[
        bool,
        Option(
            ("--force",),
            "As kubectl drain: also pods that no controller makes again.",
            panel=THE_DRAIN,
            in_tools=True,
            in_plans=ONE,
        ),
    ] = False
    ignore_daemonsets: Annotated[
        bool,
        Option(
            ("--ignore-daemonsets",),
            "As kubectl drain: leave pods of DaemonSets alone.",
            panel=THE_DRAIN,
            in_tools=True,
            in_plans=ONE,
        ),
    ] = False
    delete_emptydir_data: Annotated[
        bool,
        Option(
            ("--delete-emptydir-data",),
            "As kubectl drain: also pods with an emptyDir, whose data goes.",
            panel=THE_DRAIN,
            in_tools=True,
            in_plans=ONE,
        ),
    ] = False
    disable_eviction: Annotated[
        bool,
        Option(
            ("--disable-eviction",),
            "As kubectl drain: delete pods; no budget is asked.",
            panel=THE_DRAIN,
            in_tools=True,
            in_plans=ONE,
        ),
    ] = False
    grace_period: Annotated[
        int, Option(("--grace-period",), "Time for each pod to stop; negative: its own.", "SECONDS", THE_DRAIN)
    ] = -1
    pod_selector: Annotated[
        str,
        Option(
            ("--pod-selector",), "As kubectl drain: only pods with these labels.", "SELECTOR", THE_DRAIN, in_plans=ONE
        ),
    ] = ""
    skip_wait_for_delete_timeout: Annotated[
        int,
        Option(
            ("--skip-wait-for-delete-timeout",),
            "As kubectl drain: pass over pods told to go longer ago than that; 0: none.",
            "SECONDS",
            THE_DRAIN,
        ),
    ] = 0
    timeout: Annotated[
        str, Option(("--timeout",), "As kubectl drain: give a node up after so long; 0s: never.", "TIME", THE_DRAIN)
    ] = "0s"
    chunk_size: Annotated[
        int, Option(("--chunk-size",), "As kubectl drain; how pods are listed changes nothing here.", "N", THE_DRAIN)
    ] = 500
    one_by_one: Annotated[
        bool,
        Option(
            ("--one-by-one",),
            "An upgrade: each node is cordoned, drained and replaced by an empty one in turn.",
            panel=THE_DRAIN,
            in_tools=True,
            in_plans=ONE,
        ),
    ] = False
    max_unavailable: Annotated[
        int | None,
        Option(
            ("--max-unavailable",),
            "An upgrade in which so many are drained side by side.",
            "N",
            THE_DRAIN,
            min=1,
            in_tools=True,
            in_plans=ONE,
        ),
    ] = None
    surge: Annotated[
        int | None,
        Option(
            ("--surge",),
            "So many new nodes like the old come before these are drained.",
            "N",
            THE_DRAIN,
            min=1,
            in_tools=True,
            max_in_tools=1_000,
            in_plans=LADDER,
        ),
    ] = None
    best_order: Annotated[
        bool,
        Option(
            ("--best-order",),
            "An upgrade in the order of nodes that displaces least; a greedy search.",
            panel=THE_DRAIN,
        ),
    ] = False
    kubelet_version: Annotated[
        _Text,
        Option(
            ("--kubelet-version",),
            f"The new nodes run this kubelet: v{LATEST_VERSION}.0.",
            "VERSION",
            THE_DRAIN,
            in_plans=LADDER,
        ),
    ] = None
    remove: Annotated[
        bool,
        Option(
            ("--remove",),
            "Which of the nodes can go, as Cluster Autoscaler and Karpenter may move pods, with nobody left pending.",
            panel=THE_DRAIN,
            in_tools=True,
            in_plans=ONE,
        ),
    ] = False


class Compare(Request):
    """Where several schedulers put the same pods: one of the cluster, those of ``templates``, or every pending one."""

    answered_by = "comparisons:compare"
    pod: Annotated[_Text, POD] = None
    namespace: Annotated[_Text, NAMESPACE._replace(help="Where the pod is; of pending pods, only those there.")] = None
    templates: "Sequence[PodTemplate]" = ()
    # By the name that the answer has for each, the first to compare with.
    schedulers: "Mapping[str, SchedulerFactory]" = {}
    # Instead of these: a pod that is admitted already, and how its cluster is prepared for each scheduler.
    admitted: "Pod | None" = None
    is_queued: bool = True
    prepare: "Callable[..., Any] | None" = None


class Upgrade(Compare):
    """What an upgrade changes for one pod, or for every pending one and what templates and workloads add to these."""

    answered_by = "comparisons:upgrade"
    workloads: bool = False
    # The algorithm to start from, which may be ``auto``, and what makes the versions from the one that it means on.
    base: str = "auto"
    versions_from: "Callable[[str], Versions]"


class Decide(Request):
    """The verdict on a pod that is admitted already, in a cluster that is prepared for its scheduler."""

    answered_by = "explain:decide"
    admitted: "Pod"
    prepared: Any


class Queue(Request):
    """The scheduling queue in its order, and after each event of ``records``."""

    answered_by = "queue:queue"
    records: "Sequence[ManifestObject]" = ()


class WhoEvicted(Request):
    """Which pod preempted a pod, and why in the cluster before, which ``read_before`` reads given the preemptors."""

    answered_by = "recordings:who_evicted"
    pod: Annotated[str, POD._replace(metavar="[pod/]POD", help="The pod that was preempted; it may be gone.")]
    namespace: Annotated[_Text, NAMESPACE._replace(help="Where the pod is, or was.")] = None
    read_before: "Callable[[Sequence[str]], LoadedCluster | None] | None" = None


class Plugins(Request):
    """The plugins that would run, and which others are ``installed``."""

    answered_by = "questions:plugins"
    installed: "Sequence[AvailablePlugin]" = ()


class History(Request):
    """What happened to a pod, a node or a budget in a ``recording``."""

    answered_by = "recordings:history"
    subject: Annotated[
        str, Option(metavar="[KIND/]NAME", help="A pod, node/NAME or pdb/NAME; it may be gone. Without a KIND a pod.")
    ]
    namespace: Annotated[_Text, NAMESPACE._replace(help="Where it is, or was (default: default).")] = None
    recording: str


class Verify(Request):
    """Whether each decision of a ``recording`` is the predicted one.

    ``is_configured`` says that the real scheduler's configuration is known. ``file_difference`` writes a difference to
    a file and adds its name. ``report_progress`` gets the number of decisions so far.
    """

    answered_by = "recordings:verify"
    recording: str
    input_limits: "InputLimits"
    is_configured: bool
    file_difference: "Callable[[Judgment], Judgment]"
    report_progress: Callable[[int], None]


class VolcanoSession(Request):
    """A whole session of Volcano's scheduler, in which its controllers have seen every pod."""

    answered_by = "volcano:session"
    volcano: "Volcano"


class VolcanoScenario(Request):
    """A session on exactly these objects, to which an ``admitted`` pod may be added."""

    answered_by = "volcano:scenario"
    configuration: "VolcanoConfiguration"
    admitted: "Pod | None" = None


class ExplainJobs(Request):
    """What becomes of jobs that are submitted to Volcano: those of a ``manifest``, or a pod of the cluster."""

    answered_by = "volcano:explain_jobs"
    pod: str
    manifest: "VolcanoManifest"
    volcano: "Volcano"


class NamedWorkloads(Request):
    """Something about Workloads: the one of a name, or those of ``manifests``, each with its objects."""

    workload: str = ""
    manifests: "Sequence[Sequence[ManifestObject]]" = ()


class ExplainWorkloads(NamedWorkloads):
    """What becomes of Workloads that are submitted to Kueue, with the ``settings`` of its manager."""

    answered_by = "kueue:explain_workloads"
    settings: "KueueSettings"


class PendingWorkloads(Request):
    """What becomes of each Workload that waits for quota, if it ``is_selected``."""

    answered_by = "kueue:pending_workloads"
    settings: "KueueSettings"
    is_selected: "Callable[[Workload], bool]"


class WorkloadsAtRisk(PendingWorkloads):
    """Which selected Workloads would be preempted, and by which others; at most ``limit`` of them."""

    answered_by = "kueue:workloads_at_risk"
    limit: int


class WhoEvictedWorkload(Request):
    """For which other Workload Kueue preempted one."""

    answered_by = "kueue:who_evicted_workload"
    workload: str


class CompareWorkloads(NamedWorkloads):
    """What becomes of Workloads with each of several settings, by the name that the answer has for these.

    Without a name and manifests they are those that wait and are selected.
    """

    answered_by = "kueue:compare_workloads"
    compared: "Mapping[str, KueueSettings]"
    is_selected: "Callable[[Workload], bool]"


class KueueScenario(Request):
    """What Kueue's scheduler does in at most so many ``cycles``, with ``only`` these Workloads if there are any."""

    answered_by = "kueue:scenario"
    config: "KueueConfiguration"
    cycles: int
    only: Sequence[str]
    starts: "datetime"
    source: str
