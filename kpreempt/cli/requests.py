"""What each command is asked: its options, of which Typer's signature and the help are made, and its help text.

A question that programs ask, too, is declared in ``kpreempt.library.requests``; a command adds how it reads and writes.
This module is loaded at every start: nothing of a command is imported here but its request.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Context

from kpreempt.errors import UsageError
from kpreempt.library.options import (
    CONNECTION,
    GATE,
    KUBE,
    OUTPUT,
    QUERIES,
    RECORDING,
    SCHEDULER,
    THE_CLUSTER,
    THE_POD,
    VOLCANO,
    VOLCANO_PANEL,
    WHAT_IF,
    WORKERS,
    Group,
    Option,
    Request,
)
from kpreempt.library.requests import (
    NAMESPACE,
    RUNS,
    SEED,
    SELECTOR,
    AtRisk,
    Budgets,
    Compare,
    Explain,
    History,
    Pending,
    Plugins,
    Queue,
    Verify,
    WhoEvicted,
)
from kpreempt.scheduler_table import DEFAULT_ALGORITHM, KUBE_RANGE, LEGACY_ROWS
from kpreempt.scheduler_table import KUEUE as KUEUE_ALGORITHM
from kpreempt.scheduler_table import VOLCANO as VOLCANO_ALGORITHM

if TYPE_CHECKING:
    from kpreempt.cli.extensions import Extensions
    from kpreempt.snapshot.archives import InputLimits
    from kpreempt.snapshot.live.flags import ConnectionFlags

_Text = str | None
_Texts = list[str] | None

# Options that several requests have.


def _help_of_formats(request: type[Request]) -> str:
    """The formats of the answer, by the table of answers."""
    from kpreempt.report.answers import format_names

    first, *others, last = format_names(request.answer)
    words = f"{', '.join([f'{first} (default)', *others])} or {last}"
    if not hasattr(request, "outputs"):
        return f"{words}; jsonpath=TEMPLATE and custom-columns=HEADER:PATH,..., too."
    return (
        f"{words}, into FILE if given. Repeatable. "
        "Or, as kubectl has them, jsonpath=TEMPLATE and custom-columns=HEADER:PATH,..."
    )


OUTPUTS = Option(("-o", "--output"), _help_of_formats, "FORMAT[=FILE]", OUTPUT)
_FORMAT = OUTPUTS._replace(metavar="FORMAT")
_FILES = Option(
    ("-f", "--filename"), "A manifest, file or URL: a pod or anything with a pod template. Repeatable.", "FILE", THE_POD
)
_KUSTOMIZE = Option(("-k", "--kustomize"), "What kubectl kustomize DIR builds. Repeatable.", "DIR", THE_POD)
_SELECT = Option(
    ("--select",), "Of the manifest, only this one. Repeatable.", "KIND/NAME", THE_POD, families=(KUBE, VOLCANO)
)
_SNAPSHOT = Option(
    ("--snapshot",),
    "What kubectl get, cluster-info dump, kwokctl or kpreempt record wrote: file, directory or archive, - for standard "
    "input. Repeatable; all are merged.",
    "PATH",
    THE_CLUSTER,
)
_SKIP_BAD_OBJECTS = Option(
    ("--skip-bad-objects",), "Skip unreadable objects and files instead of failing, and list them.", panel=THE_CLUSTER
)
_MAX_UNPACKED = Option(
    ("--max-unpacked",), "How much all inputs together may unpack to: 4Gi.  [1Gi]", "SIZE", THE_CLUSTER
)
_NOW = Option(("--now",), "Count ages up to this time (2026-11-21T03:12:00Z), not the clock's.", "TIME", THE_CLUSTER)
WITHOUT = Option(("--without",), "What if this were not in the cluster. Repeatable.", "KIND/[NS/]NAME", WHAT_IF)
WITH = Option(("--with",), "What if these objects were in the cluster, too. Repeatable.", "FILE", WHAT_IF)
_DIFFERENCES = "(default: auto, that of the cluster's own version); kpreempt algorithms says how they differ."
_VERSIONS = "|".join(("auto", *LEGACY_ROWS, KUBE_RANGE))
_ALGORITHM = Option(("--algorithm",), f"Which version's scheduler decides {_DIFFERENCES}", _VERSIONS, SCHEDULER)
# For commands that ask Volcano, too.
WITH_VOLCANO = _ALGORITHM._replace(
    help=f"Which scheduler decides {_DIFFERENCES}", metavar=f"{_VERSIONS}|{VOLCANO_ALGORITHM}"
)
# For commands that ask Kueue, too.
_WITH_KUEUE = WITH_VOLCANO._replace(metavar=f"auto|kube-VERSION|{VOLCANO_ALGORITHM}|{KUEUE_ALGORITHM}")
_ALGORITHMS = Option(
    ("--algorithms",), f"Two or more, the first to compare with: auto,{DEFAULT_ALGORITHM}", "NAME,NAME,...", SCHEDULER
)
_SCHEDULER_CONFIG = Option(
    ("--scheduler-config",), "The scheduler has this KubeSchedulerConfiguration: FILE, or eks.", "FILE", SCHEDULER
)
_FEATURE_GATES = Option(
    ("--feature-gates",), "These feature gates are set so. Repeatable.", "GATE=true,...", SCHEDULER, families=(KUBE,)
)
_ACTIONS = Option(
    ("--actions",),
    "What if Volcano's actions were these: enqueue,allocate,backfill,preempt,reclaim (volcano-1.8).",
    "NAME,NAME,...",
    VOLCANO_PANEL,
    families=(VOLCANO,),
)
_SESSIONS = RUNS._replace(
    help="Run N sessions with chance drawn anew (volcano-1.8).", panel=VOLCANO_PANEL, min=0, families=(VOLCANO,)
)
_SEED_OF_SESSIONS = SEED._replace(help="What the draws of --runs start from (default: 0).", panel=VOLCANO_PANEL)
_STRICT = Option(("--strict",), "Exit 1 where the answer rests on something that is not modelled.", panel=GATE)
_VERBOSE = Option(("-v", "--verbose"), "List everything, however long.")
_COLOR = Option(("--color",), "auto (a terminal, and NO_COLOR is not set), always or never.", "WHEN")
_QUIET = Option(("-q", "--quiet"), "Do not say what was written.")
_JOBS = Option(("--jobs",), "Work on so many cores where that pays. Default: all there are.", "N", min=1)
_PROFILE_JSON = Option(("--profile-json",), "Write where the time goes to FILE: seconds by phase, memory.", "FILE")
_DURATION = Option(("--for",), "End after this time: 10m, 8h.  [until Ctrl-C]", "TIME", RECORDING)
_TO = Option(("--to",), "The folder to record into; it is made where it is not there.", "DIR", OUTPUT)
_REDACT = Option(("--redact",), "Replace names, labels, images and the like; verdicts stay the same otherwise.")
_REDACT_MAP = Option(("--redact-map",), "Write which name became which to FILE, for your eyes only.", "FILE")
CONFIG = Option(
    ("--config",),
    "The rules' file, not the kpreempt.toml of this folder or of one above it in the repository.",
    "FILE",
    GATE,
)
_KUBECONFIG = Option(("--kubeconfig",), "The kubeconfig, not $KUBECONFIG.", "FILE", CONNECTION)


# Options that make one value.


class Kustomization(str):
    """A folder with a kustomization, among the paths of manifests."""

    __slots__ = ()

    @property
    def source(self) -> str:
        """What messages call it."""
        return f"kubectl kustomize {self!s}"


def manifest_options(**said: Any) -> Group:
    """``-f`` and ``-k``, which make one list of paths; those of ``-k`` are each a ``Kustomization``."""
    files = _FILES._replace(**said)
    kustomize = _KUSTOMIZE._replace(panel=files.panel)
    return Group({"files": Annotated[_Texts, files], "kustomizations": Annotated[_Texts, kustomize]}, _manifests)


def _manifests(given: dict[str, Any]) -> list[str]:
    return [*(given["files"] or ()), *map(Kustomization, given["kustomizations"] or ())]


MANIFESTS = manifest_options()


class NodeChanges(NamedTuple):
    """Nodes that come and go before the question is asked, as the options have them."""

    added: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def files(self) -> list[str]:
        """The files that nodes to be added are read from."""
        if not self.added:
            return []
        from kpreempt.analysis.nodes.changes import is_file

        names = [text.rpartition("=")[0] or text for text in self.added]
        return [name for name in names if is_file(name)]


CHANGING_NODES = Group(
    {
        "add_nodes": Annotated[
            _Texts,
            Option(
                ("--add-node",),
                "What if there were N more nodes (default: 1) like node LIKE, or like the Node of a FILE. Repeatable.",
                "LIKE[=N]",
                WHAT_IF,
            ),
        ],
        "add_pools": Annotated[
            _Texts,
            Option(
                ("--add-pool",),
                "What if there were N more nodes of this NodePool of Karpenter's. Repeatable.",
                "NODEPOOL[=N]",
                WHAT_IF,
            ),
        ],
        "remove_nodes": Annotated[
            _Texts,
            Option(("--remove-node",), "What if this node were gone, with its pods. Repeatable.", "NODE", WHAT_IF),
        ],
    },
    lambda given: NodeChanges(*(tuple(values or ()) for values in given.values())),
)


def _extensions(given: dict[str, Any]) -> "Extensions":
    from kpreempt.cli.extensions import Extensions

    return Extensions(tuple(given["plugin"] or ()), given["call_extenders"])


_EXTENSIONS = Group(
    {
        "plugin": Annotated[
            _Texts,
            Option(
                ("--plugin",),
                "A plugin of your own: MODULE:CLASS, FILE.py:CLASS or the NAME of one that is installed. It runs "
                "where --scheduler-config enables it, and without a configuration after the default ones. Repeatable.",
                "MODULE:CLASS",
                SCHEDULER,
                families=(KUBE,),
            ),
        ],
        "call_extenders": Annotated[
            bool,
            Option(
                ("--call-extenders",),
                "Ask the extenders of the configuration, over HTTP. Without it none is.",
                panel=SCHEDULER,
                families=(KUBE,),
            ),
        ],
    },
    _extensions,
)


def _input_limits(given: dict[str, Any]) -> "InputLimits":
    from kpreempt.snapshot.archives import MAX_UNPACKED, InputLimits, parse_size

    size = parse_size(given["max_unpacked"]) if given["max_unpacked"] is not None else MAX_UNPACKED
    return InputLimits(size, follows_links=given["follow_links"])


_INPUT_LIMITS = Group(
    {
        "follow_links": Annotated[
            bool,
            Option(
                ("--follow-links",),
                "In folders: follow links that lead out of them, which is refused.",
                panel=THE_CLUSTER,
            ),
        ],
        "max_unpacked": Annotated[_Text, _MAX_UNPACKED],
    },
    _input_limits,
)


def _connection(given: dict[str, Any]) -> "ConnectionFlags":
    from kpreempt.snapshot.live.flags import ConnectionFlags

    # What TAB may keep says nothing about the connection.
    values = {name: value for name, value in given.items() if value and name != "no_cache"}
    if "as_groups" in values:
        values["as_groups"] = tuple(values["as_groups"])
    return ConnectionFlags(**values)


# kubectl's, by their names in ``ConnectionFlags``.
_CONNECTION = Group(
    {
        "kubeconfig": Annotated[_Text, _KUBECONFIG],
        "context": Annotated[
            _Text,
            Option(
                ("--context",),
                "The context of the kubeconfig; several for pending and budgets: a,b.",
                "NAME",
                CONNECTION,
            ),
        ],
        "cluster": Annotated[_Text, Option(("--cluster",), "The cluster of the kubeconfig.", "NAME", CONNECTION)],
        "user": Annotated[_Text, Option(("--user",), "The user of the kubeconfig.", "NAME", CONNECTION)],
        "server": Annotated[_Text, Option(("-s", "--server"), "Address of the API server.", "URL", CONNECTION)],
        "token": Annotated[_Text, Option(("--token",), "Bearer token for the API server.", "TOKEN", CONNECTION)],
        "certificate_authority": Annotated[
            _Text, Option(("--certificate-authority",), "Certificate of the server's authority.", "FILE", CONNECTION)
        ],
        "insecure_skip_tls_verify": Annotated[
            bool,
            Option(
                ("--insecure-skip-tls-verify",), "Do not check the server's certificate: insecure.", panel=CONNECTION
            ),
        ],
        "tls_server_name": Annotated[
            _Text, Option(("--tls-server-name",), "The name that the server's certificate is for.", "NAME", CONNECTION)
        ],
        "as_user": Annotated[_Text, Option(("--as",), "User or service account to impersonate.", "USER", CONNECTION)],
        "as_groups": Annotated[
            _Texts, Option(("--as-group",), "Group to impersonate. Repeatable.", "GROUP", CONNECTION)
        ],
        "as_uid": Annotated[_Text, Option(("--as-uid",), "UID to impersonate.", "UID", CONNECTION)],
        "request_timeout": Annotated[
            _Text,
            Option(("--request-timeout",), "For one request: 30s, 2m; 0 is without end.  [1m]", "TIME", CONNECTION),
        ],
        "no_cache": Annotated[
            bool,
            Option(
                ("--no-cache",),
                "When TAB is pressed: keep no names in the cache. KPREEMPT_NO_CACHE=1 does, too.",
                panel=CONNECTION,
            ),
        ],
    },
    _connection,
)


# What commands about a cluster have in common.


class ClusterRequest(Request):
    """What is asked of a cluster, in snapshots or at the end of a connection."""

    snapshots: Annotated[list[str], _SNAPSHOT] = []
    at: Annotated[
        _Text,
        Option(
            ("--at",),
            "Of a recording (kpreempt record), the cluster at this time, or just before the scheduler decided on "
            "pod/NAMESPACE/NAME.  [its end]",
            "TIME",
            THE_CLUSTER,
        ),
    ] = None
    now: Annotated[_Text, _NOW] = None
    skip_bad_objects: Annotated[bool, _SKIP_BAD_OBJECTS] = False
    assume_none: Annotated[
        list[str],
        Option(
            ("--assume-none",),
            "The cluster has no object of this kind, although the snapshot doesn't say so: pdb, quota, hpa. "
            "Repeatable.",
            "KIND",
            THE_CLUSTER,
        ),
    ] = []
    input_limits: Annotated["InputLimits", _INPUT_LIMITS]
    connection: Annotated["ConnectionFlags", _CONNECTION]


class AnswerRequest(ClusterRequest):
    """What is asked of a scheduler and a cluster, and answered in one or several formats."""

    # Offered by commands with what-ifs.
    node_changes = NodeChanges()
    additions: Any = ()
    without: Any = ()
    cordons: Any = ()
    uncordons: Any = ()
    budgets: Any = ()

    namespace: Annotated[_Text, NAMESPACE] = None
    all_namespaces: Annotated[bool, Option(("-A", "--all-namespaces"), "Pods of all namespaces.", panel=THE_POD)] = (
        False
    )
    selector: Annotated[_Text, SELECTOR] = None
    algorithm: Annotated[_Text, _ALGORITHM] = None
    scheduler_config: Annotated[_Text, _SCHEDULER_CONFIG] = None
    policy_config: Annotated[
        _Text,
        Option(
            ("--policy-config",),
            "The scheduler has this Policy file; for kube-1.8, kube-1.13 and kube-1.18.",
            "FILE",
            SCHEDULER,
            families=(KUBE,),
        ),
    ] = None
    feature_gates: Annotated[list[str], _FEATURE_GATES] = []
    extensions: Annotated["Extensions", _EXTENSIONS]
    outputs: Annotated[list[str], OUTPUTS] = []
    verbose: Annotated[bool, _VERBOSE] = False
    color: Annotated[str, _COLOR] = "auto"
    strict: Annotated[bool, _STRICT] = False
    jobs: Annotated[int | None, _JOBS] = None
    profile_json: Annotated[_Text, _PROFILE_JSON] = None

    # Whether a file, or a reader that is no terminal, gets the report.
    reports_to_log = False

    @property
    def shows_all(self) -> bool:
        """Whether everything is wanted, however long."""
        return bool(self.verbose)

    @property
    def extent(self) -> str:
        """How much the answer is to tell, as ``Extent`` of reports has it."""
        return "report" if self.verbose else "screen"


# The commands, in the order of the help.


class ExplainRequest(Explain, AnswerRequest, without=["all_namespaces", "selector", "jobs"]):
    """Say where a pod lands, or whom it preempts to land, or why it is unschedulable.

    The pod is a manifest (-f), one that is in the cluster (NAME), or made from --cpu, --memory and --resource. Of a
    workload all pods are put to the scheduler, one after the other: of a manifest as new ones, of one in the cluster
    (deploy/NAME) those that are not on a node yet, or one more where all are, or with --replicas so many more. With
    --algorithm volcano-1.8 the manifest may be a Volcano Job, and the question is what becomes of the whole gang. With
    --algorithm kueue-0.19 it is a Workload, or a Job or Pod with a queue: whether Kueue admits it, whom it preempts for
    that, and whether its pods then land.
    """

    answer = "Verdict"
    files: Annotated[list[str], MANIFESTS] = []
    select: Annotated[list[str], _SELECT] = []
    cpu: Annotated[
        _Text,
        Option(
            ("--cpu",), "Without a manifest: CPU that the pod requests.", "QUANTITY", THE_POD, families=(KUBE, VOLCANO)
        ),
    ] = None
    memory: Annotated[
        _Text,
        Option(
            ("--memory",), "Without a manifest: memory that it requests.", "QUANTITY", THE_POD, families=(KUBE, VOLCANO)
        ),
    ] = None
    resources: Annotated[
        list[str],
        Option(
            ("--resource",),
            "Without a manifest: another resource. Repeatable.",
            "NAME=QUANTITY",
            THE_POD,
            families=(KUBE, VOLCANO),
        ),
    ] = []
    without: Annotated[list[str], WITHOUT] = []
    additions: Annotated[list[str], WITH] = []
    cordons: Annotated[
        list[str], Option(("--cordon",), "What if this node were cordoned. Repeatable.", "NODE", WHAT_IF)
    ] = []
    uncordons: Annotated[
        list[str], Option(("--uncordon",), "What if it were open to pods again. Repeatable.", "NODE", WHAT_IF)
    ] = []
    node_changes: Annotated[NodeChanges, CHANGING_NODES]
    budgets: Annotated[
        list[str],
        Option(
            ("--budget",),
            "What if a budget allowed so many disruptions. Repeatable.",
            "NS/NAME=ALLOWED",
            WHAT_IF,
            families=(KUBE,),
        ),
    ] = []
    algorithm: Annotated[_Text, _WITH_KUEUE] = None
    scheduler_config: Annotated[
        _Text,
        _SCHEDULER_CONFIG._replace(
            help="What if the scheduler had this KubeSchedulerConfiguration, or Volcano's own configuration."
        ),
    ] = None
    feature_gates: Annotated[
        list[str], _FEATURE_GATES._replace(help="What if these feature gates were set so. Repeatable.")
    ] = []
    actions: Annotated[_Text, _ACTIONS] = None
    runs: Annotated[int, _SESSIONS] = 0
    seed: Annotated[int, _SEED_OF_SESSIONS] = 0
    verbose: Annotated[
        int, _VERBOSE._replace(help="Every section of the answer; -v -v: every node and every step.", counts=True)
    ] = 0  # type: ignore[assignment] # counted here alone
    brief: Annotated[bool, Option(("--brief",), "One line, for a chat.", families=(KUBE,))] = False
    exit_code: Annotated[
        bool,
        Option(
            ("--exit-code",),
            "Exit 0 lands, 10 by preemption, 11 violating budgets, 12 unschedulable, 13 uncertain; of several pods the "
            "highest.",
            panel=GATE,
        ),
    ] = False

    @property
    def shows_all(self) -> bool:
        """Whether every node and every step is wanted; what other families do has but one shorter form."""
        from kpreempt.cli.families import family_of

        return bool(self.verbose > (family_of(self.algorithm).name == KUBE))

    @property
    def extent(self) -> str:
        """One screen, where no more and no less is asked for."""
        return "line" if self.brief else super().extent


class PendingRequest(Pending, AnswerRequest):
    """List pending pods: which land now, which preempt whom, what keeps the others pending.

    Pods of all namespaces, unless -n says otherwise: there is one queue for all. They are in the order in which the
    scheduler would try them, and each is judged alone, as if it came next. One screen; -v has every pod in full, and
    -o wide the nodes by reason and the smallest change with which an unschedulable pod would land.

    With --algorithm kueue-0.19 it lists the Workloads that wait for quota, in the order in which Kueue decides about
    them: what becomes of each with all the others queued, and whom it preempts.
    """

    answer = "PendingPods"
    node_changes: Annotated[NodeChanges, CHANGING_NODES]
    algorithm: Annotated[_Text, _WITH_KUEUE] = None
    watch: Annotated[bool, Option(("-w", "--watch"), "Look again and again, until Ctrl-C.", families=(KUBE,))] = False
    interval: Annotated[float, Option(("--interval",), "How long to wait between looks, with -w.", "SECONDS")] = 5.0


class QueueRequest(Queue, AnswerRequest, without=["namespace", "all_namespaces", "selector", "policy_config"]):
    """Show the scheduling queue: which pod is tried next, where the others wait, and what would move each.

    One screen; -v has every pod with the events that would move it, and with --events the queue after each.

    With --events, and neither --snapshot nor an option that names a live cluster, the cluster is empty at first. An
    event: {"time": "+5s", "event": "addPod", "pod": {...}}. The time is one of a clock, or counts from the event
    before. The others are updatePod, deletePod, bindPod, addNode, updateNode, deleteNode, changeObject, wait, and what
    the scheduler does: pop, unschedulable, nominate, clearNomination, moveAll, activate.
    """

    answer = "SchedulingQueueState"
    events: Annotated[
        _Text,
        Option(
            ("--events",), "Apply these events, JSON lines or YAML, and show the queue after each.", "FILE", THE_CLUSTER
        ),
    ] = None
    algorithm: Annotated[
        _Text,
        _ALGORITHM._replace(
            help="The queue of this scheduler (default: auto, that of the cluster's own version).",
            metavar="|".join(("auto", *(name for name, row in LEGACY_ROWS.items() if row.has_queue), KUBE_RANGE)),
        ),
    ] = None


class WhoEvictedRequest(
    WhoEvicted, AnswerRequest, without=["all_namespaces", "selector", "policy_config", "verbose", "strict", "jobs"]
):
    """Say which pod preempted a pod, and where the preemptor is now.

    The scheduler says it in an event, which the API server keeps for an hour by default. So the snapshot needs
    events: kubectl get nodes,pods,events -A -o yaml. With a snapshot from before (--before) the eviction
    is reconstructed: whether the preemptor preempts this pod there, and why. A recording has both, also when events
    and victim are long gone.

    With --algorithm kueue-0.19 it is about a Workload, whose conditions and events say for whom Kueue preempted it.
    """

    answer = "PreemptionsOfPod"
    before: Annotated[
        list[str],
        Option(
            ("--before",),
            "A snapshot from before: explain the preemptor there. Repeatable; all are merged.",
            "PATH",
            THE_CLUSTER,
            families=(KUBE,),
        ),
    ] = []
    algorithm: Annotated[_Text, _WITH_KUEUE] = None
    scheduler_config: Annotated[_Text, _SCHEDULER_CONFIG._replace(families=(KUBE,))] = None


class AtRiskRequest(AtRisk, AnswerRequest, without=["jobs"]):
    """Say which pending pods would preempt running ones, and the lowest priority of a new pod that would.

    Found by running the scheduler's decision: on each pending pod, and on new pods of typical size, of the running
    pod's own size, and of that and all that is free beside it, at each priority that makes a difference. One screen; -v
    has every threat, the budgets and the whole order of preemption.

    With --algorithm kueue-0.19 it is about Workloads with quota: which Workloads that wait would preempt them, by which
    rule, and what of their quota is borrowed, so that others may reclaim it.
    """

    answer = "PodsAtRisk"
    namespace: Annotated[_Text, NAMESPACE._replace(help="Pods of this namespace (default: default).")] = None
    algorithm: Annotated[_Text, _WITH_KUEUE] = None


class BudgetsRequest(Budgets, AnswerRequest):
    """Audit PodDisruptionBudgets: which block drains, protect nothing, or are violated, and by which pod.

    Budgets of all namespaces, unless -n says otherwise; with -l those that protect such pods. The scheduler prefers
    victims whose budgets allow it, and takes others where nothing else helps: every pending pod is tried for that, and
    of budgets that allow no disruption the lowest priority of a new pod is sought that would. One screen; -v has each
    finding with its fix, these priorities, and every budget.
    """

    answer = "BudgetAudit"
    fail_on: Annotated[
        _Text, Option(("--fail-on",), "Exit 1 if a finding is as severe as this, or more.", "error|warning|note", GATE)
    ] = None


class VolcanoRequest(
    AnswerRequest,
    without=[
        *("namespace", "all_namespaces", "selector", "algorithm", "policy_config", "feature_gates", "extensions"),
        "jobs",
    ],
):
    """Run a whole session of Volcano 1.8: what is enqueued, allocated, pipelined and evicted, by which action, and why.

    The shares of queues and jobs before and after, every node that was tried, which plugin of which tier rejected which
    victim, whether each statement was committed or discarded, the conditions of PodGroups and pods, and where Volcano
    would panic.

    Where Volcano chooses at random, this takes the first by name; --runs N runs N more sessions with every such choice
    drawn anew, and counts the outcomes.
    """

    answer = "SessionAnswer"
    additions: Annotated[list[str], WITH] = []
    without: Annotated[list[str], WITHOUT] = []
    node_changes: Annotated[NodeChanges, CHANGING_NODES]
    scheduler_config: Annotated[
        _Text,
        _SCHEDULER_CONFIG._replace(
            help="Volcano's configuration, or the ConfigMap that holds it; configmap/[NS/]NAME is one of the live "
            "cluster. Default: that of Volcano 1.8."
        ),
    ] = None
    actions: Annotated[_Text, _ACTIONS] = None
    runs: Annotated[int, _SESSIONS] = 0
    seed: Annotated[int, _SEED_OF_SESSIONS] = 0

    @property
    def algorithm_named(self) -> str:
        """Volcano's, always."""
        return VOLCANO_ALGORITHM


class BatchRequest(ClusterRequest):
    """Answer many scenarios, one JSON line each, in order.

    A line in: {"name": ..., "objects": [...], "pod": {...}}, and optionally "algorithm", "config" (a
    KubeSchedulerConfiguration as text), "featureGates" and "queued" (true: pending pods wait in the scheduler's queue,
    so that nominated ones keep their room). All objects are taken as they are stored: the API's own defaults are filled
    in, the priority of a class and the status of a budget where it is not stated, and nothing else. With --snapshot, or
    an option that names a live cluster (--context, --kubeconfig, ...), that cluster is read once, and each line's
    objects are laid over it.

    With "algorithm": "volcano-1.8" the answer is a whole session, "conf" is Volcano's configuration as text (empty: the
    default one), and the pod may be left out.

    With "algorithm": "kueue-0.19" the answer is what Kueue's scheduler does from "now" on, in at most "cycles" cycles
    with its controllers played in between. "workload" is the key of the one Workload that is queued, or "all", and
    "config" has the manager's fairSharing, featureGates and quotaCheckStrategy. There is no pod.

    A line out: {"name": ..., "verdict": {...}}, or {"name": ..., "error": {"message": ...}} for a bad one; the others
    are answered, and the exit code is 3.
    """

    file: Annotated[str, Option(metavar="FILE", help="Scenarios as JSON lines; - is standard input.")] = "-"
    extensions: Annotated["Extensions", _EXTENSIONS]
    outputs: Annotated[list[str], OUTPUTS._replace(metavar="jsonl[=FILE]", help="Write to FILE, whole or not.")] = []
    strict: Annotated[bool, _STRICT] = False
    jobs: Annotated[int | None, _JOBS] = None
    profile_json: Annotated[_Text, _PROFILE_JSON] = None


class SweepRequest(Request):
    """Put many questions to many clusters, with Dask, and write the answers as a Parquet dataset.

    Each cluster is read once and asked every question of the plan, by each scheduler. A cluster that cannot be read is
    a row of failures, and the others go on; a partition of the dataset is whole or not there. A worker that dies is
    replaced. sweep report DIR makes a page of a dataset.

    Exit codes: 0 all is answered, 3 there are failures (they are rows), 1 with --strict where an answer may come out
    otherwise. Needs pip install 'kpreempt[fleet]'.
    """

    answer = "Sweep"
    words: Annotated[
        list[str] | None,
        Option(metavar="[PLAN | report DIR]", help="The plan's file (TOML), or the dataset to report on."),
    ] = None
    files: Annotated[
        list[str], _FILES._replace(help="Ask where the pods of this manifest land. Repeatable.", panel=QUERIES)
    ] = []
    priorities: Annotated[
        _Text, Option(("--priorities",), "Ask about -f with each of these priorities.", "N,...", QUERIES)
    ] = None
    query: Annotated[list[str], Option(("--query",), "Ask this, too. Repeatable.", "pending|budgets", QUERIES)] = []
    snapshots: Annotated[
        list[str],
        Option(
            ("--snapshots",),
            "Clusters: each match is one, as --snapshot takes it; s3:// and others by fsspec. Repeatable.",
            "PATH|URL|GLOB",
            THE_CLUSTER,
        ),
    ] = []
    contexts: Annotated[_Text, Option(("--contexts",), "Live clusters, by context.", "NAME,...", THE_CLUSTER)] = None
    kubeconfig: Annotated[_Text, _KUBECONFIG] = None
    max_unpacked: Annotated[_Text, _MAX_UNPACKED._replace(help="How much one snapshot may unpack to: 4Gi.  [1Gi]")] = (
        None
    )
    now: Annotated[_Text, _NOW] = None
    skip_bad_objects: Annotated[bool, _SKIP_BAD_OBJECTS] = False
    algorithms: Annotated[
        _Text,
        _ALGORITHMS._replace(
            metavar=f"auto,{DEFAULT_ALGORITHM},...", help="The schedulers that decide, each anew.  [auto]"
        ),
    ] = None
    to: Annotated[_Text, _TO._replace(help="The dataset's folder; it is made.")] = None
    resume: Annotated[bool, Option(("--resume",), "Do only what is missing in --to, and what failed.")] = False
    scheduler: Annotated[
        _Text, Option(("--scheduler",), "Work at this Dask cluster, and not here.", "tcp://HOST:PORT", WORKERS)
    ] = None
    workers: Annotated[
        int | None,
        Option(("--workers",), "So many processes here. Default: what cores and memory allow.", "N", WORKERS, min=1),
    ] = None
    worker_memory: Annotated[
        _Text, Option(("--worker-memory",), "What each of them may take: 2Gi.", "SIZE", WORKERS)
    ] = None
    outputs: Annotated[list[str], OUTPUTS] = []
    verbose: Annotated[bool, _VERBOSE] = False
    quiet: Annotated[bool, _QUIET._replace(help="No line for each cluster.")] = False
    color: Annotated[str, _COLOR] = "auto"
    strict: Annotated[bool, _STRICT] = False


class McpRequest(ClusterRequest):
    """Serve assistants on call: questions and answers by the Model Context Protocol on standard input and output.

    Its tools are explain, pending, budgets, at_risk, check, drain, compare and cluster; their answers are the documents
    of -o json, cut to the size that the caller names. Nothing is changed, and no file, address or program is reachable
    through it but the cluster of these options. A snapshot is read once, a live cluster for each question.

    Needs pip install 'kpreempt[mcp]'.
    """

    algorithm: Annotated[_Text, _ALGORITHM] = None
    scheduler_config: Annotated[
        _Text, _SCHEDULER_CONFIG._replace(help="The scheduler has this KubeSchedulerConfiguration.")
    ] = None


class RulesRequest(Request):
    """List the rules that kpreempt check puts to a change, or explain one.

    Each with its default, what it counts for, and what it asks for. A rule that is named is told with an example that
    breaks it, and how that is mended. Rules of your own, in kpreempt.toml, come last.
    """

    answer = "GateRuleList"
    name: Annotated[_Text, Option(metavar="[NAME]", help="A rule, to be explained with an example.")] = None
    config: Annotated[_Text, CONFIG._replace(help="The rules' file, not the kpreempt.toml that check would find.")] = (
        None
    )
    output: Annotated[str, _FORMAT] = "text"


class AlgorithmsRequest(Request):
    """List the schedulers that --algorithm can name, and what each does differently.

    The differences are those in preemption: who may be evicted, on which node, and what happens then.
    """

    answer = "Algorithms"
    output: Annotated[str, _FORMAT] = "text"


class PluginsRequest(
    Plugins,
    AnswerRequest,
    without=[
        *("namespace", "all_namespaces", "selector", "policy_config", "verbose", "strict", "now", "jobs"),
        "profile_json",
    ],
):
    """List the plugins that would run, by extension point and in order, where each is from, and the extenders.

    No plugin is started, and no extender called. Of a cluster only the version counts: --snapshot or an option that
    names a live cluster (--context, --kubeconfig, ...) says which; without either it is the newest that is modelled.
    Plugins that are installed, and that no profile enables, are listed, too; docs/writing-plugins.md says how to write
    one.
    """

    answer = "SchedulerPlugins"
    snapshots: Annotated[
        list[str], _SNAPSHOT._replace(help="Those of this cluster's version: a dump's. Repeatable.")
    ] = []


class CompareRequest(Compare, AnswerRequest, without=["all_namespaces", "selector", "policy_config", "jobs"]):
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

    answer = "Comparison"
    algorithms: Annotated[_Text, _ALGORITHMS] = None
    upgrade_to: Annotated[
        _Text,
        Option(("--upgrade-to",), "What an upgrade of the cluster's Kubernetes changes: 1.35", "VERSION", SCHEDULER),
    ] = None
    workloads: Annotated[
        bool, Option(("--workloads",), "With --upgrade-to, also try the next pod of every workload.", panel=THE_POD)
    ] = False
    files: Annotated[list[str], MANIFESTS] = []
    select: Annotated[list[str], _SELECT] = []
    batch: Annotated[
        _Text,
        Option(
            ("--batch",), "Scenarios as JSON lines, as for kpreempt batch.", "FILE", THE_POD, families=(KUBE, VOLCANO)
        ),
    ] = None
    algorithm: Annotated[
        _Text,
        _ALGORITHM._replace(help="With --upgrade-to: not the cluster's own version.", metavar=f"auto|{KUBE_RANGE}"),
    ] = None
    scheduler_config: Annotated[
        _Text, _SCHEDULER_CONFIG._replace(help="With --upgrade-to, both versions have this KubeSchedulerConfiguration.")
    ] = None
    feature_gates: Annotated[
        list[str], _FEATURE_GATES._replace(help="With --upgrade-to, both versions have these gates set. Repeatable.")
    ] = []
    fail_on_difference: Annotated[
        bool, Option(("--fail-on-difference",), "Exit 1 if not all algorithms decide alike, or may not.", panel=GATE)
    ] = False

    @property
    def algorithm_named(self) -> str:
        """Kueue's where it is compared with itself. Raises ``UsageError`` where others are among them."""
        named = {part.strip().partition("@")[0].partition(":")[0] for part in (self.algorithms or "").split(",")} - {""}
        if KUEUE_ALGORITHM not in named or self.upgrade_to is not None:
            return ""
        if len(named) > 1:
            problem = f"{KUEUE_ALGORITHM} decides on whole Workloads, and is compared with itself alone"
            raise UsageError(problem, hint=f"{KUEUE_ALGORITHM},{KUEUE_ALGORITHM}@FILE")
        return KUEUE_ALGORITHM


class CompletionRequest(Request):
    """Print the script that completes commands, options and names of the live cluster when TAB is pressed.

    bash: source <(kpreempt completion bash), in ~/.bashrc. zsh: the same in ~/.zshrc, after compinit. fish: kpreempt
    completion fish > ~/.config/fish/completions/kpreempt.fish. kubectl asks the program kubectl_complete-kpreempt,
    which is installed with kpreempt; its script is for those who have a single file, and belongs beside it.
    """

    shell: Annotated[str, Option(metavar="bash|zsh|fish|kubectl", help="Which script.")]


class SnapshotRequest(ClusterRequest, without=["now"]):
    """Write what the schedulers look at in a cluster to a file that --snapshot reads, whole or not at all.

    Secrets, ConfigMaps, environment values, commands, managed fields and annotations that are not used are never in it.
    """

    invocation: Annotated[Context, Option()]
    files: Annotated[list[str], _FILES._replace(help="A manifest whose pods go along as pending. Repeatable.")] = []
    namespace: Annotated[_Text, NAMESPACE._replace(help="Where the manifest's pods are to be created.")] = None
    to: Annotated[
        str,
        _TO._replace(
            metavar="FILE", help="Where to: FILE.json or FILE.jsonl, also with .gz or .zst; - is standard output."
        ),
    ]
    redact: Annotated[bool, _REDACT] = False
    redact_map: Annotated[_Text, _REDACT_MAP] = None
    quiet: Annotated[bool, _QUIET] = False

    @property
    def program(self) -> str:
        """What its user calls kpreempt."""
        return self.invocation.find_root().info_name or "kpreempt"


class RecordRequest(Request):
    """Record what the schedulers look at in a live cluster, and each change to it, until it is ended.

    The folder is a --snapshot of every command, with --at of any moment since: a time, or just before a pod's
    scheduler decided on it. It holds no more than kpreempt snapshot writes. Requests are GET, to list and to watch.
    """

    to: Annotated[_Text, _TO._replace(panel=RECORDING)] = None
    info: Annotated[
        _Text, Option(("--info",), "Record nothing, and say what the recording in DIR holds.", "DIR", RECORDING)
    ] = None
    source: Annotated[
        _Text,
        Option(
            ("--from",), "With --redact: what is recorded in DIR, in the place of a live cluster.", "DIR", RECORDING
        ),
    ] = None
    duration: Annotated[_Text, _DURATION] = None
    keep: Annotated[str, Option(("--keep",), "Let go of what is older than this.", "TIME", RECORDING)] = "24h"
    max_size: Annotated[
        str, Option(("--max-size",), "Let go of what is oldest, to take no more disk.", "SIZE", RECORDING)
    ] = "2Gi"
    base_every: Annotated[
        str,
        Option(
            ("--base-every",),
            "Write the whole cluster this often, for moments after it to be found fast.",
            "TIME",
            RECORDING,
        ),
    ] = "1h"
    redact: Annotated[
        bool,
        _REDACT._replace(
            help="Write names as tokens and times without dates, as kpreempt snapshot does: at the end, when all names "
            "are known."
        ),
    ] = False
    redact_map: Annotated[
        _Text, _REDACT_MAP._replace(help="With --redact: which token stands for which name. Keep it to yourself.")
    ] = None
    quiet: Annotated[bool, _QUIET._replace(help="Do not say what was recorded.")] = False
    connection: Annotated["ConnectionFlags", _CONNECTION]


_OF_INPUT = ["at", "skip_bad_objects", "assume_none"]
_OF_SCHEDULERS = ["scheduler_config", "policy_config", "feature_gates", "extensions", "jobs", "verbose", "profile_json"]


class HistoryRequest(
    History,
    AnswerRequest,
    without=[
        *(*_OF_INPUT, "intake", "connection"),
        *("all_namespaces", "selector", "algorithm", "strict", "now"),
        *_OF_SCHEDULERS,
    ],
):
    """Tell what happened to a pod, a node or a budget, attempt by attempt, from a recording.

    Of a pod when it was refused and why, nominated, bound, and evicted for whom; of a node what came to it and left it;
    of a budget what it allowed, and which of its pods had to go. Each decision with the command that explains it.
    """

    answer = "History"
    snapshots: Annotated[
        list[str], _SNAPSHOT._replace(metavar="DIR", help="A recording: what kpreempt record --to DIR made.")
    ] = []


class VerifyRequest(
    Verify,
    AnswerRequest,
    without=[
        *("snapshots", *_OF_INPUT, "namespace", "all_namespaces", "selector", "policy_config"),
        *("strict", "now", "jobs"),
    ],
):
    """Hold every decision that the real scheduler took against what is predicted from the state just before it.

    Pods that were bound, nominated with the victims that were evicted for them, or refused with a message, in a
    recording or in a live cluster that is recorded for a while. A decision that is the one of a moment earlier is told
    as a race, with what changed in between, and counts neither for the score nor against it.
    """

    answer = "Verification"
    folder: Annotated[_Text, Option(metavar="[DIR]", help="A recording: what kpreempt record --to DIR made.")] = None
    duration: Annotated[
        _Text, _DURATION._replace(help="Without DIR: record the live cluster for so long, 10m.", panel=THE_CLUSTER)
    ] = None
    fail_below: Annotated[
        float | None,
        Option(
            ("--fail-below",),
            "Exit 1 where the score is below this, or nothing could be compared: 99.5.",
            "PERCENT",
            GATE,
        ),
    ] = None
    differences: Annotated[
        _Text,
        Option(
            ("--differences",),
            "For each difference without an explanation, write a file for kpreempt batch, under other names.",
            "DIR",
        ),
    ] = None


class HelpRequest(Request):
    """Show a command's options and examples, as its --help does."""

    command: Annotated[_Text, Option(metavar="COMMAND", help="Which command.")] = None


class VersionRequest(Request):
    """Show the version of kpreempt, and the versions of the schedulers that it models.

    No cluster is asked.
    """

    answer = "Versions"
    output: Annotated[str, _FORMAT] = "text"


class CommandRow(NamedTuple):
    """A command: its request and the function that answers it, by module and name, and two examples.

    The examples are on the files that are shipped; ``tests/unit/cli/test_help.py`` runs them.
    """

    request: str
    run: str
    examples: tuple[str, str]


_DEMO = "--snapshot fixtures/demo/cluster.yaml"
_ON_CALL = "--snapshot fixtures/on-call/cluster.yaml"
_OUTAGE = "--snapshot fixtures/check/outage/cluster.yaml"
_DRAIN = "--snapshot fixtures/drain/cluster.yaml"
# In the order of the help.
COMMANDS: Mapping[str, CommandRow] = {
    "explain": CommandRow(
        "requests:ExplainRequest",
        "explain:explain",
        (
            f"explain -f fixtures/demo/api.yaml {_DEMO}",
            "explain deploy/web -n shop --capacity --snapshot fixtures/workloads/cluster.yaml",
        ),
    ),
    "pending": CommandRow(
        "requests:PendingRequest",
        "on_call:pending",
        (f"pending {_ON_CALL}", f"pending -n shop {_ON_CALL} -o custom-columns=POD:.pod,OUTCOME:.outcome"),
    ),
    "queue": CommandRow(
        "requests:QueueRequest",
        "queue:queue",
        (f"queue {_ON_CALL}", "queue --algorithm kube-1.13 --events fixtures/queue/events.yaml"),
    ),
    "who-evicted": CommandRow(
        "requests:WhoEvictedRequest",
        "history:who_evicted",
        (
            f"who-evicted encode-1 -n batch {_ON_CALL}",
            f"who-evicted encode-1 -n batch {_ON_CALL} --before fixtures/on-call/before.yaml",
        ),
    ),
    "at-risk": CommandRow(
        "requests:AtRiskRequest",
        "on_call:at_risk",
        (f"at-risk -n batch {_ON_CALL}", f"at-risk -A --limit 3 {_ON_CALL}"),
    ),
    "check": CommandRow(
        "gate_options:CheckRequest",
        "check:check",
        (
            f"check -f fixtures/check/outage/rollout.yaml {_OUTAGE}",
            f"check -f fixtures/check/outage/rollout.yaml {_OUTAGE} --max-victims 2 -o markdown",
        ),
    ),
    "drain": CommandRow(
        "gate_options:DrainRequest",
        "check:drain",
        (
            f"drain n1 --ignore-daemonsets {_DRAIN}",
            f"drain -l pool=general --ignore-daemonsets {_DRAIN} -o markdown",
        ),
    ),
    "rules": CommandRow("requests:RulesRequest", "about:rules", ("rules", "rules lost-pods")),
    "budgets": CommandRow(
        "requests:BudgetsRequest",
        "on_call:budgets",
        (
            "budgets --snapshot fixtures/budgets/cluster.yaml",
            "budgets -n batch --fail-on error --snapshot fixtures/budgets/cluster.yaml",
        ),
    ),
    "volcano": CommandRow(
        "requests:VolcanoRequest",
        "volcano:volcano",
        (
            "volcano --snapshot fixtures/volcano/vetoed-by-gang.yaml"
            " --scheduler-config fixtures/volcano/vetoed-by-gang.conf",
            "volcano --snapshot fixtures/volcano/either-node.yaml"
            " --scheduler-config fixtures/volcano/either-node.conf --runs 40",
        ),
    ),
    "batch": CommandRow(
        "requests:BatchRequest",
        "batch:batch",
        (
            "batch fixtures/batch/scenarios.jsonl",
            f"batch fixtures/batch/scenarios.jsonl {_DEMO} --jobs 1",
        ),
    ),
    "sweep": CommandRow(
        "requests:SweepRequest",
        "sweep:sweep",
        (
            "sweep fixtures/sweep/sweep.toml --to sweep",
            "sweep --snapshots 'fixtures/*/cluster.yaml' --query pending --query budgets --to sweep",
        ),
    ),
    "mcp": CommandRow(
        "requests:McpRequest",
        "mcp:mcp",
        (
            "mcp --snapshot fixtures/demo/cluster.yaml",
            "mcp --snapshot fixtures/demo/cluster.yaml --algorithm kube-1.29",
        ),
    ),
    "algorithms": CommandRow("requests:AlgorithmsRequest", "about:algorithms", ("algorithms", "algorithms -o name")),
    "plugins": CommandRow("requests:PluginsRequest", "plugins:plugins", ("plugins", "plugins -o name")),
    "compare": CommandRow(
        "requests:CompareRequest",
        "compare:compare",
        (
            "compare --algorithms kube-1.18,kube-1.36 -f fixtures/compare/api.yaml"
            " --snapshot fixtures/compare/cluster.yaml",
            f"compare --algorithms kube-1.13,kube-1.36 {_ON_CALL}",
        ),
    ),
    "completion": CommandRow("requests:CompletionRequest", "about:completion", ("completion bash", "completion fish")),
    "snapshot": CommandRow(
        "requests:SnapshotRequest",
        "snapshot:snapshot",
        (
            f"snapshot {_DEMO} --to cluster.json.gz",
            f"snapshot {_DEMO} --redact --to -",
        ),
    ),
    "record": CommandRow(
        "requests:RecordRequest",
        "record:record",
        (
            "record --info fixtures/recording",
            "explain pod/api -n shop --snapshot fixtures/recording --at pod/shop/api",
        ),
    ),
    "history": CommandRow(
        "requests:HistoryRequest",
        "history:history",
        (
            "history api -n shop --snapshot fixtures/recording",
            "history node/node-a --snapshot fixtures/recording -o jsonl",
        ),
    ),
    "verify": CommandRow(
        "requests:VerifyRequest",
        "verify:verify",
        ("verify fixtures/recording", "verify fixtures/recording -o openmetrics --fail-below 99.5"),
    ),
    "help": CommandRow("requests:HelpRequest", "about:help_command", ("help explain", "help check")),
    "version": CommandRow("requests:VersionRequest", "about:version", ("version", "version -o json")),
}
