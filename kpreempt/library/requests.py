"""The requests that commands, programs, sweeps and assistants share, with their options.

A command adds its input and output options (``kpreempt.cli.requests``). Fields that are not options hold input that the
entry point has already parsed: pods from manifests, or a change.
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

    from kpreempt.analysis.check.rollout.records import ManifestDocument, ServerDecisions
    from kpreempt.analysis.compare.upgrade import Versions
    from kpreempt.analysis.kueue.objects import KueueSettings
    from kpreempt.analysis.verification import Judgment
    from kpreempt.analysis.volcano.sessions import Volcano, VolcanoManifest
    from kpreempt.analysis.workload_pods import PodTemplate
    from kpreempt.library.gate.settings import GateSettings
    from kpreempt.library.reading import LoadedCluster
    from kpreempt.library.schedulers import SchedulerFactory
    from kpreempt.model.audit import AuditLog
    from kpreempt.model.kueue import Workload
    from kpreempt.model.pod import Pod
    from kpreempt.schedulers.kueue import KueueConfiguration
    from kpreempt.schedulers.volcano import VolcanoConfiguration
    from kpreempt.snapshot.archives import InputLimits
    from kpreempt.snapshot.manifest import ManifestObject
    from kpreempt.verdict.plugins import AvailablePlugin

_Text = str | None

# A simulation takes from a few milliseconds to a second; more than this would take hours.
MAX_RUNS = 10_000

NAMESPACE = Option(
    ("-n", "--namespace"),
    "Include only pods in this namespace (default: all namespaces).",
    "NS",
    THE_POD,
    in_tools=True,
    in_plans=ONE,
    is_everyday=True,
)
_OF_NAMED = NAMESPACE._replace(
    help="Namespace (default: all; of several pods with this name, the one in the context's namespace)."
)
SELECTOR = Option(
    ("-l", "--selector"),
    "Include only pods that match this label selector, such as app=web,tier!=db.",
    "SELECTOR",
    THE_POD,
    in_tools=True,
    in_plans=ONE,
    is_everyday=True,
)
# Commands, assistants and plans name one pod in the cluster, unless they have a manifest.
POD = Option(help="Name of a pod in the cluster.", metavar="[pod/]NAME", in_tools=True, in_plans=LADDER)
RUNS = Option(("--runs",), metavar="N", panel=SIMULATION, max=MAX_RUNS, in_tools=True, max_in_tools=20, in_plans=ONE)
SEED = Option(("--seed",), "Random seed (default 0).", "NUMBER", SIMULATION, in_plans=ONE)


class Explain(Request):
    """Where pods land: one in the cluster, those of a workload in it, or those of ``templates``."""

    answered_by = "explain:explain"
    pod: Annotated[
        _Text,
        POD._replace(
            metavar="[KIND/]NAME",
            help="Pod or workload in the cluster: web-1, deploy/web, or NS/NAME for a pod.",
        ),
    ] = None
    name: Annotated[_Text, Option(metavar="NAME", help="Name, if the first argument is a kind.")] = None
    namespace: Annotated[_Text, _OF_NAMED] = None
    priority: Annotated[
        int | None,
        Option(
            ("--priority",),
            "Use this priority for the pod.",
            "NUMBER",
            WHAT_IF,
            families=(KUBE,),
            in_tools=True,
            in_plans=LADDER,
            is_everyday=True,
        ),
    ] = None
    priority_class: Annotated[
        _Text,
        Option(
            ("--priority-class",),
            "Use this PriorityClass for the pod.",
            "NAME",
            WHAT_IF,
            families=(KUBE,),
            in_tools=True,
            in_plans=LADDER,
        ),
    ] = None
    preemption_policy: Annotated[
        _Text,
        Option(
            ("--preemption-policy",),
            "Use this preemption policy for the pod: PreemptLowerPriority or Never.",
            "POLICY",
            WHAT_IF,
            families=(KUBE,),
        ),
    ] = None
    settings: Annotated[
        list[str],
        Option(
            ("--set",),
            "Set a field of the pod, such as spec.containers[0].resources.requests.cpu=1500m. Repeatable.",
            "PATH=VALUE",
            WHAT_IF,
            families=(KUBE,),
            is_everyday=True,
        ),
    ] = []
    replicas: Annotated[
        int | None,
        Option(
            ("--replicas",),
            "Schedule N replicas of the pod in turn; for a workload in the cluster, N additional replicas.",
            "N",
            THE_POD,
            min=1,
            families=(KUBE,),
            in_tools=True,
            max_in_tools=1_000,
            in_plans=LADDER,
            is_everyday=True,
        ),
    ] = None
    node: Annotated[
        _Text,
        Option(
            ("--node",),
            "Explain NAME in full: every filter, the dry run, and the changes that would select it.",
            "NAME",
            OUTPUT,
            families=(KUBE,),
            in_tools=True,
            is_everyday=True,
        ),
    ] = None
    capacity: Annotated[
        bool,
        Option(
            ("--capacity",),
            "Show how many more replicas fit without preemption, and on which nodes.",
            panel=OUTPUT,
            families=(KUBE,),
            in_plans=ONE,
            is_everyday=True,
        ),
    ] = False
    aftermath: Annotated[
        bool,
        Option(
            ("--aftermath",),
            "Simulate what happens next: replacements for the victims, and the pods those displace in turn.",
            panel=OUTPUT,
            families=(KUBE,),
            is_everyday=True,
        ),
    ] = False
    templates: "Sequence[PodTemplate]" = ()
    records_steps: bool = True


class Selected(Request):
    """A request about all pods, or those that a namespace and a label selector select."""

    namespace: Annotated[_Text, NAMESPACE] = None
    selector: Annotated[_Text, SELECTOR] = None


class Pending(Selected):
    """What happens to the pending pods when the whole queue is served, and to each on its own."""

    answered_by = "handlers:pending"
    # Time limit for finding remedies, for all pods together; a search that is running then is completed. ``None`` skips
    # the search.
    seconds_of_search: float | None = 5.0


class Budgets(Selected):
    """Problems with PodDisruptionBudgets, and which pods would violate them."""

    answered_by = "handlers:budgets"
    namespace: Annotated[
        _Text, NAMESPACE._replace(help="Include only budgets in this namespace (default: all namespaces).")
    ] = None
    selector: Annotated[
        _Text,
        SELECTOR._replace(
            help="Include only budgets that protect pods matching this label selector, such as app=web,tier!=db."
        ),
    ] = None


class AtRisk(Selected):
    """Which running pods would be preempted, and by which pods."""

    answered_by = "handlers:at_risk"
    limit: Annotated[
        int,
        Option(
            ("--limit",),
            "Maximum number of pods to show, the most threatened first (default 10).",
            "NUMBER",
            OUTPUT,
            min=1,
            in_tools=True,
            max_in_tools=1_000,
            is_everyday=True,
        ),
    ] = 10


class Simulated(Request):
    """A simulation of the cluster whose result is checked against the rules of a gate."""

    seed: Annotated[int, SEED] = 0
    runs: Annotated[
        int | None,
        RUNS._replace(
            min=1,
            help="Number of simulation runs; the worst result counts. Default: 1 if deterministic, every outcome if "
            "few, otherwise up to 20.",
        ),
    ] = None
    worst_case: Annotated[
        bool,
        Option(
            ("--worst-case",),
            "Simulate every possible random choice; the worst result counts.",
            panel=SIMULATION,
            in_plans=ONE,
        ),
    ] = False
    max_runs: Annotated[
        int,
        Option(
            ("--max-runs",),
            "Maximum number of runs with --worst-case (default 100); if more are needed, the result is uncertain.",
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
        """The maximum number of simulations that try every choice; 0 if choices are sampled."""
        return self.max_runs if self.worst_case else 0


class Check(Simulated):
    """What a ``change`` does to the cluster; ``before`` holds the previous manifests."""

    answered_by = "check:check"
    delete: Annotated[
        list[str],
        Option(
            ("--delete",),
            "Also delete this object. Repeat the option for every object that is deleted with it.",
            "KIND/[NS/]NAME",
            THE_CHANGE,
            in_tools=True,
            in_plans=ONE,
            is_everyday=True,
        ),
    ] = []
    namespace: Annotated[
        _Text,
        NAMESPACE._replace(
            help="Namespace for objects without one (default: the context's, or default).", panel=THE_CHANGE
        ),
    ] = None
    prune: Annotated[
        bool,
        Option(
            ("--prune",),
            "Delete objects that are in --base but not in the manifests.",
            panel=THE_CHANGE,
            is_everyday=True,
        ),
    ] = False
    create_namespace: Annotated[
        bool,
        Option(
            ("--create-namespace",),
            "Create missing namespaces first, like helm install --create-namespace.",
            panel=THE_CHANGE,
            in_plans=ONE,
        ),
    ] = False
    applied_by: Annotated[
        _Text,
        Option(
            ("--applied-by",),
            "Tool that applies the change: kubectl (default), helm or argocd. It determines which hooks and waves "
            "apply.",
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
            "Replicas to assume for workloads with a HorizontalPodAutoscaler: current (default) or max.",
            "SIZE",
            SIMULATION,
            in_plans=ONE,
        ),
    ] = "current"
    job_duration: Annotated[
        _Text,
        Option(
            ("--job-duration",),
            "Assumed run time of each pod of a Job without activeDeadlineSeconds (default: 10m); 'never' if the pods "
            "never end.",
            "TIME",
            SIMULATION,
            in_plans=ONE,
        ),
    ] = None
    server_dry_run: Annotated[
        bool,
        Option(
            ("--server-dry-run",),
            "Also send each object to the live API server in a dry run, which stores nothing. Only for trusted "
            "manifests, because admission webhooks see them.",
            panel=THE_CHANGE,
        ),
    ] = False
    change: "Sequence[ManifestDocument]" = ()
    before: "Sequence[ManifestDocument]" = ()
    # With server_dry_run.
    decisions: "ServerDecisions | None" = None


class Drain(Simulated):
    """What happens to nodes that are drained and to their pods."""

    answered_by = "drain:drain"
    nodes: Annotated[
        list[str], Option(metavar="NODE", help="Nodes to drain, in this order.", in_tools=True, in_plans=ONE)
    ] = []
    selector: Annotated[
        _Text,
        SELECTOR._replace(
            help="Drain the nodes that match this label selector, such as pool=a, in order of name.",
            panel=THE_DRAIN,
            in_plans=LADDER,
        ),
    ] = None
    pool: Annotated[
        _Text,
        Option(
            ("--pool",), "Drain the nodes with this label.", "LABEL=VALUE", THE_DRAIN, in_plans=LADDER, is_everyday=True
        ),
    ] = None
    force: Annotated[
        bool,
        Option(
            ("--force",),
            "As in kubectl drain: also evict pods without a controller.",
            panel=THE_DRAIN,
            in_tools=True,
            in_plans=ONE,
            is_everyday=True,
        ),
    ] = False
    ignore_daemonsets: Annotated[
        bool,
        Option(
            ("--ignore-daemonsets",),
            "As in kubectl drain: ignore pods managed by DaemonSets.",
            panel=THE_DRAIN,
            in_tools=True,
            in_plans=ONE,
            is_everyday=True,
        ),
    ] = False
    delete_emptydir_data: Annotated[
        bool,
        Option(
            ("--delete-emptydir-data",),
            "As in kubectl drain: also evict pods with an emptyDir, whose data is lost.",
            panel=THE_DRAIN,
            in_tools=True,
            in_plans=ONE,
            is_everyday=True,
        ),
    ] = False
    disable_eviction: Annotated[
        bool,
        Option(
            ("--disable-eviction",),
            "As in kubectl drain: delete pods without checking PodDisruptionBudgets.",
            panel=THE_DRAIN,
            in_tools=True,
            in_plans=ONE,
        ),
    ] = False
    grace_period: Annotated[
        int,
        Option(
            ("--grace-period",),
            "As in kubectl drain: time for each pod to terminate; if negative, the pod's own grace period.",
            "SECONDS",
            THE_DRAIN,
        ),
    ] = -1
    pod_selector: Annotated[
        str,
        Option(
            ("--pod-selector",),
            "As in kubectl drain: evict only pods that match this label selector.",
            "SELECTOR",
            THE_DRAIN,
            in_plans=ONE,
        ),
    ] = ""
    skip_wait_for_delete_timeout: Annotated[
        int,
        Option(
            ("--skip-wait-for-delete-timeout",),
            "As in kubectl drain: skip pods that have been terminating for longer than N seconds (0: none).",
            "N",
            THE_DRAIN,
        ),
    ] = 0
    timeout: Annotated[
        str, Option(("--timeout",), "As in kubectl drain: give up on a node after TIME (0s: never).", "TIME", THE_DRAIN)
    ] = "0s"
    chunk_size: Annotated[
        int, Option(("--chunk-size",), "Accepted for compatibility with kubectl drain; has no effect.", "N", THE_DRAIN)
    ] = 500
    one_by_one: Annotated[
        bool,
        Option(
            ("--one-by-one",),
            "Simulate an upgrade: cordon, drain and replace one node after another.",
            panel=THE_DRAIN,
            in_tools=True,
            in_plans=ONE,
        ),
    ] = False
    max_unavailable: Annotated[
        int | None,
        Option(
            ("--max-unavailable",),
            "Drain up to N nodes in parallel.",
            "N",
            THE_DRAIN,
            min=1,
            in_tools=True,
            in_plans=ONE,
            is_everyday=True,
        ),
    ] = None
    surge: Annotated[
        int | None,
        Option(
            ("--surge",),
            "Add N replacement nodes before draining.",
            "N",
            THE_DRAIN,
            min=1,
            in_tools=True,
            max_in_tools=1_000,
            in_plans=LADDER,
            is_everyday=True,
        ),
    ] = None
    best_order: Annotated[
        bool,
        Option(
            ("--best-order",),
            "Simulate an upgrade in the node order that displaces the fewest pods, found by greedy search.",
            panel=THE_DRAIN,
        ),
    ] = False
    kubelet_version: Annotated[
        _Text,
        Option(
            ("--kubelet-version",),
            f"Kubelet version of the new nodes, such as v{LATEST_VERSION}.0.",
            "VERSION",
            THE_DRAIN,
            in_plans=LADDER,
        ),
    ] = None
    remove: Annotated[
        bool,
        Option(
            ("--remove",),
            "Show which nodes Cluster Autoscaler and Karpenter could remove without leaving a pod pending.",
            panel=THE_DRAIN,
            in_tools=True,
            in_plans=ONE,
            is_everyday=True,
        ),
    ] = False


class Compare(Request):
    """Where several schedulers place the same pods: one in the cluster, those of ``templates``, or all pending ones."""

    answered_by = "comparisons:compare"
    pod: Annotated[_Text, POD] = None
    namespace: Annotated[_Text, _OF_NAMED] = None
    templates: "Sequence[PodTemplate]" = ()
    # By their names in the answer; the first is the reference.
    schedulers: "Mapping[str, SchedulerFactory]" = {}
    # Instead of templates: a pod that is already admitted, and a function that prepares its cluster for each scheduler.
    admitted: "Pod | None" = None
    is_queued: bool = True
    prepare: "Callable[..., Any] | None" = None


class Upgrade(Compare):
    """What an upgrade changes for one pod, or for every pending pod and those of templates and workloads."""

    answered_by = "comparisons:upgrade"
    workloads: bool = False
    # The algorithm to upgrade from, which may be ``auto``, and a function that lists the versions from there on.
    base: str = "auto"
    versions_from: "Callable[[str], Versions]"


class Decide(Request):
    """The verdict on a pod that is already admitted, in a cluster that is prepared for its scheduler."""

    answered_by = "explain:decide"
    admitted: "Pod"
    prepared: Any


class Queue(Request):
    """The scheduling queue in order, and after each event of ``records``."""

    answered_by = "queue:queue"
    records: "Sequence[ManifestObject]" = ()


class WhoEvicted(Request):
    """What ended a pod, or pods; ``read_before`` reads the earlier cluster, given the preemptors.

    ``audit`` is the API server's audit log.
    """

    answered_by = "recordings:who_evicted"
    pod: Annotated[
        _Text,
        POD._replace(
            metavar="[KIND/]NAME",
            help="Pod, which may no longer exist, or workload: web-1, NS/web-1 or deploy/web. Default: all pods.",
        ),
    ] = None
    name: Annotated[_Text, Option(metavar="NAME", help="Name, if the first argument is a kind.")] = None
    namespace: Annotated[_Text, _OF_NAMED] = None
    read_before: "Callable[[Sequence[str]], LoadedCluster | None] | None" = None
    audit: "AuditLog | None" = None


class Plugins(Request):
    """The plugins that would run, and others that are ``installed``."""

    answered_by = "handlers:plugins"
    installed: "Sequence[AvailablePlugin]" = ()


class History(Request):
    """What happened to a pod, a node or a budget in a ``recording``."""

    answered_by = "recordings:history"
    subject: Annotated[str, Option(metavar="[KIND/]NAME", help="Pod, node/NAME or pdb/NAME; it may no longer exist.")]
    namespace: Annotated[_Text, _OF_NAMED] = None
    recording: str


class Verify(Request):
    """Whether each decision in a ``recording`` matches the prediction.

    ``is_configured`` means that the real scheduler's configuration is known. ``file_difference`` writes a difference to
    a file and adds the file's name. ``report_progress`` gets the number of decisions so far, and of
    all that were found.
    """

    answered_by = "recordings:verify"
    recording: str
    input_limits: "InputLimits"
    is_configured: bool
    file_difference: "Callable[[Judgment], Judgment]"
    report_progress: Callable[[int, int], None]


class VolcanoSession(Request):
    """A full session of Volcano's scheduler, after its controllers have seen every pod."""

    answered_by = "volcano:session"
    volcano: "Volcano"


class VolcanoScenario(Request):
    """A session on exactly these objects, optionally with an ``admitted`` pod."""

    answered_by = "volcano:scenario"
    configuration: "VolcanoConfiguration"
    admitted: "Pod | None" = None


class ExplainJobs(Request):
    """What happens to jobs that are submitted to Volcano: those of a ``manifest``, or a pod in the cluster."""

    answered_by = "volcano:explain_jobs"
    pod: str
    namespace: str | None
    manifest: "VolcanoManifest"
    volcano: "Volcano"


class NamedWorkloads(Request):
    """A request about Workloads: the one named ``workload``, or those of ``manifests``, each with its objects.

    The named one may be in any namespace, unless there is a ``namespace``.
    """

    workload: str = ""
    namespace: str | None = None
    manifests: "Sequence[Sequence[ManifestObject]]" = ()


class ExplainWorkloads(NamedWorkloads):
    """What happens to Workloads that are submitted to Kueue, with the ``settings`` of its manager."""

    answered_by = "kueue:explain_workloads"
    settings: "KueueSettings"


class PendingWorkloads(Request):
    """What happens to each Workload that waits for quota and ``is_selected``."""

    answered_by = "kueue:pending_workloads"
    settings: "KueueSettings"
    is_selected: "Callable[[Workload], bool]"


class WorkloadsAtRisk(PendingWorkloads):
    """Which selected Workloads would be preempted, and by which others; at most ``limit`` of them."""

    answered_by = "kueue:workloads_at_risk"
    limit: int


class WhoEvictedWorkload(Request):
    """For which Workload Kueue preempted another one."""

    answered_by = "kueue:who_evicted_workload"
    workload: str
    namespace: str | None


class CompareWorkloads(NamedWorkloads):
    """What happens to Workloads under each of several settings, by their names in the answer.

    Without ``workload`` and ``manifests``, the request covers all waiting Workloads that are selected.
    """

    answered_by = "kueue:compare_workloads"
    compared: "Mapping[str, KueueSettings]"
    is_selected: "Callable[[Workload], bool]"


class KueueScenario(Request):
    """What Kueue's scheduler does in at most ``cycles`` cycles, with ``only`` these Workloads if there are any."""

    answered_by = "kueue:scenario"
    config: "KueueConfiguration"
    cycles: int
    only: Sequence[str]
    starts: "datetime"
    source: str
