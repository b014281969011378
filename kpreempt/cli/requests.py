"""The requests of all commands: their options and help texts, from which Typer's signatures and the help are built.

Requests that the library shares are declared in ``kpreempt.library.requests``; a command adds its input and output
options. Every start loads this module, so it imports nothing of a command except its request.
"""

from collections.abc import Mapping, Sequence
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
    from kpreempt.analysis.nodes.changes import NodeEdit
    from kpreempt.cli.extensions import Extensions
    from kpreempt.snapshot.archives import InputLimits
    from kpreempt.snapshot.live.flags import ConnectionFlags

_Text = str | None
_Texts = list[str] | None

# Options that several requests share.


def _help_of_formats(request: type[Request]) -> str:
    """List the answer's formats from the table of answers."""
    from kpreempt.report.answers import format_names

    first, *others, last = format_names(request.answer)
    words = f"{', '.join([f'{first} (default)', *others])} or {last}"
    if not hasattr(request, "outputs"):
        return f"Output format: {words}. Also jsonpath=TEMPLATE and custom-columns=HEADER:PATH,..., as in kubectl."
    return (
        f"Output format, optionally =FILE: {words}. Repeatable. "
        "Also jsonpath=TEMPLATE and custom-columns=HEADER:PATH,..., as in kubectl."
    )


OUTPUTS = Option(("-o", "--output"), _help_of_formats, "FORMAT[=FILE]", OUTPUT, is_everyday=True)
_FORMAT = OUTPUTS._replace(metavar="FORMAT")
_FILES = Option(
    ("-f", "--filename"),
    "Manifest of a pod or of an object with a pod template: a file or URL, or - for standard input. Repeatable.",
    "FILE",
    THE_POD,
    is_everyday=True,
)
_KUSTOMIZE = Option(("-k", "--kustomize"), "Directory to build with kubectl kustomize. Repeatable.", "DIR", THE_POD)
_SELECT = Option(
    ("--select",), "Use only this object of the manifest. Repeatable.", "KIND/NAME", THE_POD, families=(KUBE, VOLCANO)
)
_SNAPSHOT = Option(
    ("--snapshot",),
    "Output of kubectl get, kubectl cluster-info dump, kwokctl or kpreempt record: a file, directory or archive, or - "
    "for standard input. Repeatable; all are merged. Default: the cluster of the current context.",
    "PATH",
    THE_CLUSTER,
    is_everyday=True,
)
_SKIP_BAD_OBJECTS = Option(
    ("--skip-bad-objects",),
    "Skip unreadable objects and files instead of failing; they are listed in the output.",
    panel=THE_CLUSTER,
)
_MAX_UNPACKED = Option(
    ("--max-unpacked",), "Maximum total decompressed input size (default: 1Gi).", "SIZE", THE_CLUSTER
)
_NOW = Option(
    ("--now",), "Use TIME as the current time (RFC 3339). Default: the snapshot's time, or now.", "TIME", THE_CLUSTER
)
_WITHOUT = Option(
    ("--without",),
    "Remove this object from the cluster first. Repeatable.",
    "KIND/[NS/]NAME",
    WHAT_IF,
    is_everyday=True,
)
_WITH = Option(
    ("--with",), "Add the objects in FILE to the cluster first. Repeatable.", "FILE", WHAT_IF, is_everyday=True
)
_DIFFERENCES = "(default: auto, the cluster's own version). To see the differences, run kpreempt algorithms."
_VERSIONS = "|".join(("auto", *LEGACY_ROWS, KUBE_RANGE))
_ALL_NAMESPACES = Option(
    ("-A", "--all-namespaces"), "Include all namespaces (the default).", panel=THE_POD, is_everyday=True
)
_ALGORITHM = Option(("--algorithm",), f"Scheduler version {_DIFFERENCES}", _VERSIONS, SCHEDULER, is_everyday=True)
# For commands that also support Volcano.
WITH_VOLCANO = _ALGORITHM._replace(help=f"Scheduler {_DIFFERENCES}", metavar=f"{_VERSIONS}|{VOLCANO_ALGORITHM}")
# For commands that also support Kueue.
_WITH_KUEUE = WITH_VOLCANO._replace(metavar=f"auto|kube-VERSION|{VOLCANO_ALGORITHM}|{KUEUE_ALGORITHM}")
_ALGORITHMS = Option(
    ("--algorithms",),
    f"Schedulers to compare, such as auto,{DEFAULT_ALGORITHM}; the first is the reference.",
    "NAME,NAME,...",
    SCHEDULER,
    is_everyday=True,
)
_SCHEDULER_CONFIG = Option(
    ("--scheduler-config",),
    "FILE with the KubeSchedulerConfiguration, or eks for the default configuration of Amazon EKS.",
    "FILE",
    SCHEDULER,
)
_FEATURE_GATES = Option(
    ("--feature-gates",), "Feature gates of the scheduler. Repeatable.", "GATE=true,...", SCHEDULER, families=(KUBE,)
)
_ACTIONS = Option(
    ("--actions",),
    "Volcano actions to run, in order (default: those in the scheduler configuration). "
    "Choices: enqueue, allocate, backfill, preempt, reclaim (volcano-1.8).",
    "NAME,NAME,...",
    VOLCANO_PANEL,
    families=(VOLCANO,),
)
_SESSIONS = RUNS._replace(
    help="Run N more sessions with different random choices (volcano-1.8; default 0).",
    panel=VOLCANO_PANEL,
    min=0,
    families=(VOLCANO,),
)
_SEED_OF_SESSIONS = SEED._replace(help="Random seed for --runs (default 0).", panel=VOLCANO_PANEL)
_STRICT = Option(
    ("--strict",), "Exit 1 if the answer depends on anything that is not modeled.", panel=GATE, is_everyday=True
)
_VERBOSE = Option(("-v", "--verbose"), "Print the full output.", is_everyday=True)
_COLOR = Option(
    ("--color",),
    "When to use color: always, never or auto (default), which uses it on a terminal unless NO_COLOR is set.",
    "WHEN",
)
_QUIET = Option(("-q", "--quiet"), "Do not report what was written.")
_JOBS = Option(("--jobs",), "Number of worker processes. Default: number of CPUs.", "N", min=1)
_PROFILE_JSON = Option(("--profile-json",), "Write a timing profile (seconds per phase, peak memory) to FILE.", "FILE")
_DURATION = Option(
    ("--for",),
    "Stop after this time, such as 10m or 8h. Default: when interrupted (Ctrl-C).",
    "TIME",
    RECORDING,
    is_everyday=True,
)
_TO = Option(("--to",), "Directory to record into; created if missing.", "DIR", OUTPUT, is_everyday=True)
_REDACT = Option(
    ("--redact",),
    "Replace names, labels, images and other identifying values; decisions stay the same.",
    is_everyday=True,
)
_REDACT_MAP = Option(
    ("--redact-map",), "Write the original name behind each replacement to FILE. Keep it private.", "FILE"
)
CONFIG = Option(
    ("--config",),
    "Rules file. Default: kpreempt.toml in this directory or in a parent directory within the repository.",
    "FILE",
    GATE,
    is_everyday=True,
)
_KUBECONFIG = Option(("--kubeconfig",), "Kubeconfig file. Default: $KUBECONFIG, or ~/.kube/config.", "FILE", CONNECTION)


# Groups of options that form one value.


class Kustomization(str):
    """A directory with a kustomization, among the paths of manifests."""

    __slots__ = ()

    @property
    def source(self) -> str:
        """The name used in messages."""
        return f"kubectl kustomize {self!s}"


def manifest_options(**changes: Any) -> Group:
    """``-f`` and ``-k``, which form one list of paths; each path given with ``-k`` is a ``Kustomization``."""
    files = _FILES._replace(**changes)
    kustomize = _KUSTOMIZE._replace(panel=files.panel)
    return Group({"files": Annotated[_Texts, files], "kustomizations": Annotated[_Texts, kustomize]}, _manifests)


def _manifests(given: dict[str, Any]) -> list[str]:
    return [*(given["files"] or ()), *map(Kustomization, given["kustomizations"] or ())]


MANIFESTS = manifest_options()


class NodeChanges(NamedTuple):
    """Nodes to add, remove and then edit before the request is answered, as given by the options."""

    added: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    edits: "Sequence[NodeEdit]" = ()

    @property
    def adds_or_removes(self) -> bool:
        """Whether nodes are added or removed."""
        return bool(self.added or self.pools or self.removed)

    @property
    def files(self) -> list[str]:
        """The files from which nodes to add are read."""
        if not self.added:
            return []
        from kpreempt.analysis.nodes.changes import is_file

        names = [text.rpartition("=")[0] or text for text in self.added]
        return [name for name in names if is_file(name)]


# The options that edit nodes, by the parameters of ``node_edits``.
_NODE_EDITS = {
    "cordons": Annotated[_Texts, Option(("--cordon",), "Cordon this node first. Repeatable.", "NODE", WHAT_IF)],
    "uncordons": Annotated[_Texts, Option(("--uncordon",), "Uncordon this node first. Repeatable.", "NODE", WHAT_IF)],
    "node_labels": Annotated[
        _Texts,
        Option(
            ("--label-node",),
            "Set a label of a node first, as with kubectl label; NODE=KEY- removes it. Repeatable.",
            "NODE=KEY=VALUE",
            WHAT_IF,
        ),
    ],
    "node_taints": Annotated[
        _Texts,
        Option(
            ("--taint-node",),
            "Set a taint of a node first, as with kubectl taint; NODE=KEY:EFFECT- or NODE=KEY- removes it. Repeatable.",
            "NODE=KEY=VALUE:EFFECT",
            WHAT_IF,
        ),
    ],
    "node_settings": Annotated[
        _Texts,
        Option(
            ("--set-node",),
            "Set status.allocatable.RESOURCE or spec.unschedulable of a node first; NODE:PATH- removes it. Repeatable.",
            "NODE:PATH=VALUE",
            WHAT_IF,
        ),
    ],
}


def _node_changes(given: dict[str, Any]) -> NodeChanges:
    added, pools, removed = (tuple(given[name] or ()) for name in ("add_nodes", "add_pools", "remove_nodes"))
    edits: Sequence[NodeEdit] = ()
    if texts := {name: given[name] for name in _NODE_EDITS if given[name]}:
        from kpreempt.analysis.nodes.edits import node_edits

        edits = node_edits(**texts)
    return NodeChanges(added, pools, removed, edits)


_CHANGING_NODES = Group(
    {
        "add_nodes": Annotated[
            _Texts,
            Option(
                ("--add-node",),
                "Add N nodes (default 1) like the node LIKE, or like the Node in a FILE. Repeatable.",
                "LIKE[=N]",
                WHAT_IF,
                is_everyday=True,
            ),
        ],
        "add_pools": Annotated[
            _Texts,
            Option(
                ("--add-pool",),
                "Add N nodes (default 1) of this Karpenter NodePool. Repeatable.",
                "NODEPOOL[=N]",
                WHAT_IF,
            ),
        ],
        "remove_nodes": Annotated[
            _Texts,
            Option(
                ("--remove-node",),
                "Remove this node and its pods first. Repeatable.",
                "NODE",
                WHAT_IF,
                is_everyday=True,
            ),
        ],
        **_NODE_EDITS,
    },
    _node_changes,
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
                "Out-of-tree plugin: MODULE:CLASS, FILE.py:CLASS or the NAME of an installed plugin. It runs at the "
                "extension points at which the scheduler's configuration enables it; without a configuration, it runs "
                "after the default plugins. Repeatable.",
                "MODULE:CLASS",
                SCHEDULER,
                families=(KUBE,),
            ),
        ],
        "call_extenders": Annotated[
            bool,
            Option(
                ("--call-extenders",),
                "Call the configured HTTP scheduler extenders. Off by default.",
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
                "Follow symlinks that point outside the given directory (rejected by default).",
                panel=THE_CLUSTER,
            ),
        ],
        "max_unpacked": Annotated[_Text, _MAX_UNPACKED],
    },
    _input_limits,
)


def _connection(given: dict[str, Any]) -> "ConnectionFlags":
    from kpreempt.snapshot.live.flags import ConnectionFlags

    # The completion cache has nothing to do with the connection.
    values = {name: value for name, value in given.items() if value and name != "no_cache"}
    if "as_groups" in values:
        values["as_groups"] = tuple(values["as_groups"])
    return ConnectionFlags(**values)


def _help_of_context(request: type[Request]) -> str:
    """Offer several contexts if the command answers for each of them."""
    several = ", or several, such as a,b" if getattr(request, "accepts_contexts", False) else ""
    return f"Kubeconfig context{several} (default: the current context)."


# kubectl's options, by their names in ``ConnectionFlags``.
_CONNECTION = Group(
    {
        "kubeconfig": Annotated[_Text, _KUBECONFIG],
        "context": Annotated[
            _Text,
            Option(
                ("--context",),
                _help_of_context,
                "NAME",
                CONNECTION,
                is_everyday=True,
            ),
        ],
        "cluster": Annotated[
            _Text, Option(("--cluster",), "Kubeconfig cluster (default: the context's cluster).", "NAME", CONNECTION)
        ],
        "user": Annotated[
            _Text, Option(("--user",), "Kubeconfig user (default: the context's user).", "NAME", CONNECTION)
        ],
        "server": Annotated[_Text, Option(("-s", "--server"), "Address of the API server.", "URL", CONNECTION)],
        "token": Annotated[_Text, Option(("--token",), "Bearer token for the API server.", "TOKEN", CONNECTION)],
        "certificate_authority": Annotated[
            _Text,
            Option(
                ("--certificate-authority",),
                "Certificate authority file used to verify the server.",
                "FILE",
                CONNECTION,
            ),
        ],
        "insecure_skip_tls_verify": Annotated[
            bool,
            Option(
                ("--insecure-skip-tls-verify",), "Do not verify the server's certificate (insecure).", panel=CONNECTION
            ),
        ],
        "tls_server_name": Annotated[
            _Text,
            Option(("--tls-server-name",), "Server name to expect in the server's certificate.", "NAME", CONNECTION),
        ],
        "as_user": Annotated[_Text, Option(("--as",), "User or service account to impersonate.", "USER", CONNECTION)],
        "as_groups": Annotated[
            _Texts, Option(("--as-group",), "Group to impersonate. Repeatable.", "GROUP", CONNECTION)
        ],
        "as_uid": Annotated[_Text, Option(("--as-uid",), "UID to impersonate.", "UID", CONNECTION)],
        "request_timeout": Annotated[
            _Text,
            Option(
                ("--request-timeout",),
                "Timeout for a single request, such as 30s; 0 disables it (default: 1m).",
                "TIME",
                CONNECTION,
            ),
        ],
        "no_cache": Annotated[
            bool,
            Option(
                ("--no-cache",),
                "Do not cache names for shell completion. Same as KPREEMPT_NO_CACHE=1.",
                panel=CONNECTION,
            ),
        ],
    },
    _connection,
)


# The options that all commands about a cluster share.


class ClusterRequest(Request):
    """A request about a cluster, read from snapshots or over a connection."""

    # Whether --context accepts several contexts, each with its own answer.
    accepts_contexts = False

    snapshots: Annotated[list[str], _SNAPSHOT] = []
    at: Annotated[
        _Text,
        Option(
            ("--at",),
            "With a recording, use the cluster state at TIME, or just before pod/NS/NAME was scheduled. Default: the "
            "end of the recording.",
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
            "If the snapshot has no objects of this kind, such as pdb, quota or hpa, assume that the cluster has none. "
            "Repeatable.",
            "KIND",
            THE_CLUSTER,
        ),
    ] = []
    input_limits: Annotated["InputLimits", _INPUT_LIMITS]
    connection: Annotated["ConnectionFlags", _CONNECTION]


class AnswerRequest(ClusterRequest):
    """A request about a scheduler and a cluster, answered in one or more formats."""

    # Commands with what-if options offer these.
    node_changes = NodeChanges()
    additions: Any = ()
    without: Any = ()
    budgets: Any = ()

    namespace: Annotated[_Text, NAMESPACE] = None
    all_namespaces: Annotated[bool, _ALL_NAMESPACES] = False
    selector: Annotated[_Text, SELECTOR] = None
    algorithm: Annotated[_Text, _ALGORITHM] = None
    scheduler_config: Annotated[_Text, _SCHEDULER_CONFIG] = None
    policy_config: Annotated[
        _Text,
        Option(
            ("--policy-config",),
            "Scheduler Policy file, for kube-1.8, kube-1.13 and kube-1.18.",
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

    # Whether files and pipes get the report instead of the screen.
    reports_to_log = False

    @property
    def shows_all(self) -> bool:
        """Whether to print everything without shortening."""
        return bool(self.verbose)

    @property
    def extent(self) -> str:
        """How much of the answer to print: a value of the reports' ``Extent``."""
        return "report" if self.verbose else "screen"


class WhatIfRequest(AnswerRequest):
    """A request about a cluster that is changed first."""

    without: Annotated[list[str], _WITHOUT] = []
    additions: Annotated[list[str], _WITH] = []
    node_changes: Annotated[NodeChanges, _CHANGING_NODES]


# The commands, in the order of the help.


class ExplainRequest(Explain, WhatIfRequest, without=["all_namespaces", "selector", "jobs"]):
    """Explain where a pod lands and what it preempts.

    The pod comes from a manifest (-f), from the cluster (NAME), or from --cpu, --memory and --resource. If it is
    unschedulable, the answer shows why each node rejects it. If an event is all that you have, --event explains it.

    For a workload, every replica is scheduled in turn. From a manifest, all replicas are treated as new. For a workload
    in the cluster (deploy/NAME), its unscheduled pods are tried, or one extra replica if all are running. --replicas N
    tries N more.

    With --algorithm volcano-1.8, the manifest may be a Volcano Job; the answer covers the whole gang. With --algorithm
    kueue-0.19, the manifest is a Workload, or a Job or Pod with a queue name; the answer shows whether Kueue admits it,
    which Workloads it preempts, and whether its pods then land.
    """

    answer = "Verdict"
    files: Annotated[list[str], MANIFESTS] = []
    event: Annotated[
        _Text,
        Option(
            ("--event",),
            "Explain this text, without a cluster: a FailedScheduling message, or the output of kubectl describe pod "
            "or kubectl get events; - for standard input. With NAME, only this pod's events.",
            "FILE",
            THE_POD,
            families=(KUBE,),
            is_everyday=True,
        ),
    ] = None
    select: Annotated[list[str], _SELECT] = []
    cpu: Annotated[
        _Text,
        Option(("--cpu",), "CPU request, for a pod without a manifest.", "QUANTITY", THE_POD, families=(KUBE, VOLCANO)),
    ] = None
    memory: Annotated[
        _Text,
        Option(
            ("--memory",),
            "Memory request, for a pod without a manifest.",
            "QUANTITY",
            THE_POD,
            families=(KUBE, VOLCANO),
        ),
    ] = None
    resources: Annotated[
        list[str],
        Option(
            ("--resource",),
            "Request for another resource, for a pod without a manifest. Repeatable.",
            "NAME=QUANTITY",
            THE_POD,
            families=(KUBE, VOLCANO),
        ),
    ] = []
    budgets: Annotated[
        list[str],
        Option(
            ("--budget",),
            "Set the number of disruptions that a PodDisruptionBudget allows. Repeatable.",
            "NS/NAME=ALLOWED",
            WHAT_IF,
            families=(KUBE,),
        ),
    ] = []
    algorithm: Annotated[_Text, _WITH_KUEUE] = None
    scheduler_config: Annotated[
        _Text,
        _SCHEDULER_CONFIG._replace(
            help="FILE with the KubeSchedulerConfiguration, or with the configuration of Volcano or Kueue; eks for the "
            "default configuration of Amazon EKS."
        ),
    ] = None
    feature_gates: Annotated[list[str], _FEATURE_GATES] = []
    actions: Annotated[_Text, _ACTIONS] = None
    runs: Annotated[int, _SESSIONS] = 0
    seed: Annotated[int, _SEED_OF_SESSIONS] = 0
    verbose: Annotated[
        int,
        _VERBOSE._replace(
            help="Print every section of the answer; -v -v also prints every node and step.", counts=True
        ),
    ] = 0  # type: ignore[assignment] # counted here alone
    brief: Annotated[bool, Option(("--brief",), "Print a one-line summary.", families=(KUBE,), is_everyday=True)] = (
        False
    )
    exit_code: Annotated[
        bool,
        Option(
            ("--exit-code",),
            "Report the outcome as the exit code: 0 lands, 10 preempts, 11 violates a PodDisruptionBudget, 12 "
            "unschedulable (or waiting for victims), 13 uncertain. For several pods, the highest code is used.",
            panel=GATE,
            is_everyday=True,
        ),
    ] = False

    @property
    def shows_all(self) -> bool:
        """Whether to print every node and every step; answers of other families have only one shorter form."""
        from kpreempt.cli.families import family_of

        return bool(self.verbose > (family_of(self.algorithm).name == KUBE))

    @property
    def extent(self) -> str:
        """One screen, unless a longer or shorter form is requested."""
        return "line" if self.brief else super().extent


class PendingRequest(Pending, WhatIfRequest):
    """Serve the queue of pending pods: which get scheduled, which preempt pods, which stay pending, and why.

    Covers all namespaces unless -n is given, because they share one queue. Pods are listed in the order in which the
    scheduler would try them, with the outcome in their turn, after the pods before them, and alone, as if they were
    next. The default output fits on one screen; -v prints every pod in full. -o wide also lists the nodes by reason,
    and the first remedy for each unschedulable pod.

    With --algorithm kueue-0.19, lists the Workloads waiting for quota in the order in which Kueue considers them. Each
    is evaluated with all the others in the queue.
    """

    answer = "PendingPods"
    accepts_contexts = True
    algorithm: Annotated[_Text, _WITH_KUEUE] = None
    watch: Annotated[
        bool,
        Option(("-w", "--watch"), "Refresh the list until interrupted (Ctrl-C).", families=(KUBE,), is_everyday=True),
    ] = False
    interval: Annotated[float, Option(("--interval",), "Seconds between refreshes with -w.", "SECONDS")] = 5.0


class QueueRequest(Queue, WhatIfRequest, without=["namespace", "all_namespaces", "selector", "policy_config"]):
    """Show the scheduling queue and what moves each pod.

    Shows which pod is tried next, in which queue the others wait, and which events would move them. The default output
    fits on one screen; -v prints every pod with the events that would move it and, with --events, the queue after each
    event.

    With --events, and without --snapshot or an option that selects a live cluster, the cluster starts empty. An event
    looks like {"time": "+5s", "event": "addPod", "pod": {...}}; the time is absolute, or relative to the previous
    event. Other events are updatePod, deletePod, bindPod, addNode, updateNode, deleteNode, changeObject, wait, and the
    scheduler's own actions: pop, unschedulable, nominate, clearNomination, moveAll, activate.
    """

    answer = "SchedulingQueueState"
    events: Annotated[
        _Text,
        Option(
            ("--events",),
            "Apply the events in FILE (JSON lines or YAML) and show the queue after each event.",
            "FILE",
            THE_CLUSTER,
            is_everyday=True,
        ),
    ] = None
    algorithm: Annotated[
        _Text,
        _ALGORITHM._replace(
            help="Scheduler version whose queue to show (default: auto, the cluster's own version).",
            metavar="|".join(("auto", *(name for name, row in LEGACY_ROWS.items() if row.has_queue), KUBE_RANGE)),
        ),
    ] = None


class WhoEvictedRequest(WhoEvicted, AnswerRequest, without=["selector", "policy_config", "strict", "jobs"]):
    """Show what evicted a pod, or ended it otherwise, and why.

    Names the agent and the cause: preemption by a scheduler (and the preemptor), the kubelet (node pressure, a critical
    pod, a rejection), a NoExecute taint, the Eviction API (kubectl drain, Karpenter, Cluster Autoscaler, descheduler),
    PodGC, the owner, or a client. Also shows what is not an eviction: OOM kills and failed probes. For a workload, a
    namespace or -A, lists what happened to each pod, including pods that are gone.

    Conditions and statuses last as long as the pod, events for an hour by default, so a snapshot must include events:
    kubectl get nodes,pods,events -A -o yaml. A recording works even after the events and the pod are deleted. Only an
    audit log shows which user deleted a pod (--audit-log). With a snapshot from before a preemption (--before), the
    scheduler's decision is reconstructed and explained.

    With --algorithm kueue-0.19, shows which Workload preempted a Workload, based on its conditions and events.
    """

    answer = "EvictionsOfPod"
    before: Annotated[
        list[str],
        Option(
            ("--before",),
            "Snapshot from before the eviction, used to reconstruct the decision. Repeatable; all are merged.",
            "PATH",
            THE_CLUSTER,
            families=(KUBE,),
            is_everyday=True,
        ),
    ] = []
    audit_logs: Annotated[
        list[str],
        Option(
            ("--audit-log",),
            "Audit log of the API server, in JSON lines; it shows which user evicted or deleted a pod. Repeatable.",
            "FILE",
            THE_CLUSTER,
            families=(KUBE,),
            is_everyday=True,
        ),
    ] = []
    algorithm: Annotated[_Text, _WITH_KUEUE] = None
    scheduler_config: Annotated[_Text, _SCHEDULER_CONFIG._replace(families=(KUBE,))] = None


class AtRiskRequest(AtRisk, WhatIfRequest, without=["jobs"]):
    """Show which running pods could be preempted.

    For each running pod, shows the pending pods that would preempt it, and the lowest priority at which a new pod
    would. kpreempt simulates each pending pod, and new pods of three sizes (typical, same as the running pod, and that
    plus the node's free capacity), at every relevant priority. The default output fits on one screen; -v prints every
    threat, the PodDisruptionBudgets and the full eviction order.

    With --algorithm kueue-0.19, covers Workloads that hold quota: which waiting Workloads would preempt them, by which
    rule, and how much of their quota is borrowed and can be reclaimed.
    """

    answer = "PodsAtRisk"
    algorithm: Annotated[_Text, _WITH_KUEUE] = None


class BudgetsRequest(Budgets, WhatIfRequest):
    """Find problems with PodDisruptionBudgets.

    Reports budgets that block drains, budgets that protect nothing, and budgets that a preemption would violate, with
    the preemptor. Covers all namespaces unless -n is given; with -l, only budgets that protect matching pods. The
    scheduler prefers victims whose budgets allow the eviction, but it violates budgets if nothing else helps. Every
    pending pod is therefore simulated. For each budget that allows no disruptions, kpreempt also computes the lowest
    priority at which a new pod would violate it. The default output fits on one screen; -v prints each finding with its
    fix, these priorities, and every budget.
    """

    answer = "BudgetAudit"
    accepts_contexts = True
    fail_on: Annotated[
        _Text,
        Option(
            ("--fail-on",),
            "Exit 1 if any finding has this severity or higher.",
            "error|warning|note",
            GATE,
            is_everyday=True,
        ),
    ] = None


class VolcanoRequest(
    WhatIfRequest,
    without=[
        *("namespace", "all_namespaces", "selector", "algorithm", "policy_config", "feature_gates", "extensions"),
        "jobs",
    ],
):
    """Run one full scheduling session of Volcano 1.8.

    Shows what each action enqueues, allocates, pipelines and evicts, and why: the shares of queues and jobs before and
    after, every node that was tried, which plugin in which tier rejected which victim, whether each statement was
    committed or discarded, the conditions of PodGroups and pods, and whether Volcano would panic.

    If Volcano would choose at random, the first candidate by name is used. --runs N runs N more sessions with random
    choices and counts the outcomes.
    """

    answer = "SessionAnswer"
    scheduler_config: Annotated[
        _Text,
        _SCHEDULER_CONFIG._replace(
            help="FILE with Volcano's configuration or with its ConfigMap, or configmap/[NS/]NAME to read it from the "
            "live cluster. Default: Volcano 1.8's default configuration."
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
    """Evaluate many scenarios, one JSON line each, in order.

    An input line is {"name": ..., "objects": [...], "pod": {...}}, with optional keys "algorithm", "config" (a
    KubeSchedulerConfiguration as text), "featureGates" and "queued" (true: pending pods wait in the scheduler's queue,
    so nominated pods keep their reservation). Objects are used as they are; only API defaults, the priority of a
    PriorityClass and the status of a PodDisruptionBudget are added if missing. With --snapshot, or an option that
    selects a live cluster (--context, --kubeconfig, ...), that cluster is read once and each line's objects are added
    to it.

    With "algorithm": "volcano-1.8", the answer is a full session. "conf" is Volcano's configuration as text (empty: the
    default one), and "pod" is optional.

    With "algorithm": "kueue-0.19", the answer is what Kueue's scheduler does, starting at "now", in up to "cycles"
    cycles with its controllers simulated in between. "workload" is the key of the one Workload to queue, or "all", and
    "config" holds the manager's fairSharing, featureGates and quotaCheckStrategy. There is no "pod".

    An output line is {"name": ..., "verdict": {...}}, or {"name": ..., "error": {"message": ...}} for an invalid input
    line. The other lines are still answered, and the exit code is 3.
    """

    snapshots: Annotated[
        list[str],
        _SNAPSHOT._replace(
            help="Cluster to which each line's objects are added, in any form that explain --snapshot accepts. "
            "Repeatable; all are merged. Default: only the objects of the line."
        ),
    ] = []
    file: Annotated[
        str, Option(metavar="FILE", help="File with scenarios as JSON lines (default: -, standard input).")
    ] = "-"
    extensions: Annotated["Extensions", _EXTENSIONS]
    outputs: Annotated[
        list[str],
        OUTPUTS._replace(
            metavar="jsonl[=FILE]",
            help="Output format; FILE is written atomically (default: jsonl to standard output).",
        ),
    ] = []
    strict: Annotated[bool, _STRICT] = False
    jobs: Annotated[int | None, _JOBS] = None
    profile_json: Annotated[_Text, _PROFILE_JSON] = None


class SweepRequest(Request):
    """Run queries across many clusters with Dask.

    Writes the results as a Parquet dataset. Each cluster is read once, and every query in the plan is run against it
    for each scheduler. An unreadable cluster is recorded as a failure, and the other clusters are still queried.
    Partitions of the dataset are written atomically, and a worker that dies is replaced. sweep report DIR renders a
    dataset as a page.

    Exit codes: 0 all queries were answered, 1 an answer is uncertain (with --strict), 3 some queries failed (recorded
    as rows). Requires pip install 'kpreempt[fleet]'.
    """

    answer = "Sweep"
    words: Annotated[
        list[str] | None,
        Option(metavar="PLAN | report DIR", help="Plan file (TOML), or the dataset to report on."),
    ] = None
    files: Annotated[
        list[str], _FILES._replace(help="Explain where the pods in this manifest land. Repeatable.", panel=QUERIES)
    ] = []
    priorities: Annotated[
        _Text,
        Option(("--priorities",), "Explain the pods given with -f at each of these priorities.", "N,...", QUERIES),
    ] = None
    query: Annotated[
        list[str],
        Option(("--query",), "Also run this query. Repeatable.", "pending|budgets", QUERIES, is_everyday=True),
    ] = []
    snapshots: Annotated[
        list[str],
        Option(
            ("--snapshots",),
            "Snapshots to query, one cluster per match: any form that --snapshot accepts, or a "
            "URL that fsspec can read, such as s3://. Repeatable.",
            "PATH|URL|GLOB",
            THE_CLUSTER,
            is_everyday=True,
        ),
    ] = []
    contexts: Annotated[
        _Text,
        Option(
            ("--contexts",),
            "Kubeconfig contexts of the live clusters to query.",
            "NAME,...",
            THE_CLUSTER,
            is_everyday=True,
        ),
    ] = None
    kubeconfig: Annotated[_Text, _KUBECONFIG] = None
    max_unpacked: Annotated[
        _Text, _MAX_UNPACKED._replace(help="Maximum decompressed size of each snapshot (default: 1Gi).")
    ] = None
    now: Annotated[_Text, _NOW] = None
    skip_bad_objects: Annotated[bool, _SKIP_BAD_OBJECTS] = False
    algorithms: Annotated[
        _Text,
        _ALGORITHMS._replace(
            metavar=f"auto,{DEFAULT_ALGORITHM},...", help="Schedulers to run every query with (default: auto)."
        ),
    ] = None
    to: Annotated[_Text, _TO._replace(help="Directory to write the dataset to; created if missing.")] = None
    resume: Annotated[
        bool,
        Option(
            ("--resume",),
            "Process only clusters that are missing from --to, that failed, or whose snapshot has changed.",
        ),
    ] = False
    scheduler: Annotated[
        _Text, Option(("--scheduler",), "Run on this Dask cluster instead of locally.", "tcp://HOST:PORT", WORKERS)
    ] = None
    workers: Annotated[
        int | None,
        Option(
            ("--workers",),
            "Number of local worker processes. Default: as many as CPUs and memory allow.",
            "N",
            WORKERS,
            min=1,
        ),
    ] = None
    worker_memory: Annotated[
        _Text, Option(("--worker-memory",), "Memory limit of each local worker process, such as 2Gi.", "SIZE", WORKERS)
    ] = None
    outputs: Annotated[list[str], OUTPUTS] = []
    verbose: Annotated[bool, _VERBOSE] = False
    quiet: Annotated[bool, _QUIET._replace(help="Do not print a progress line per cluster.")] = False
    color: Annotated[str, _COLOR] = "auto"
    strict: Annotated[bool, _STRICT] = False


class McpRequest(ClusterRequest):
    """Run an MCP server for AI assistants.

    Serves the Model Context Protocol on stdin and stdout and lets AI assistants query the cluster, read-only. The tools
    are explain, explain_event, pending, budgets, at_risk, who_evicted, check, drain, compare and cluster. They return
    the same documents as -o json, truncated to the size that the caller requests. Clients can access only the cluster
    that these options select, and no other files, addresses or programs. A snapshot is read once; a live cluster is
    read for each call.

    Requires pip install 'kpreempt[mcp]'.
    """

    algorithm: Annotated[_Text, _ALGORITHM] = None
    scheduler_config: Annotated[_Text, _SCHEDULER_CONFIG] = None


class RulesRequest(Request):
    """List the rules of check, or explain one.

    Lists each rule with its default, its severity and what it requires. Given a rule name, prints an example that
    violates the rule, and its fix. Custom rules from kpreempt.toml come last.
    """

    answer = "GateRuleList"
    name: Annotated[_Text, Option(metavar="NAME", help="Rule to explain with an example.")] = None
    config: Annotated[_Text, CONFIG._replace(help="Rules file. Default: the kpreempt.toml that check would use.")] = (
        None
    )
    output: Annotated[str, _FORMAT] = "text"


class AlgorithmsRequest(Request):
    """List the schedulers that --algorithm accepts.

    Shows how they differ in preemption: which pods may be evicted, on which node, and what happens next.
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
    """List the plugins and extenders that would run.

    Lists plugins by extension point, in order, with their source. No plugin is started and no extender is called. Only
    the cluster's version matters: it comes from --snapshot or an option that selects a live cluster (--context,
    --kubeconfig, ...), and defaults to the latest supported version. Installed plugins that no profile enables are
    listed as well. docs/writing-plugins.md explains how to write a plugin.
    """

    answer = "SchedulerPlugins"
    snapshots: Annotated[
        list[str], _SNAPSHOT._replace(help="Snapshot that determines the cluster's version. Repeatable.")
    ] = []


class CompareRequest(Compare, AnswerRequest, without=["all_namespaces", "selector", "policy_config", "jobs"]):
    """Compare how schedulers place the same pods.

    Shows where each scheduler places a pod, which pods it evicts, and at which step the schedulers differ. Compares a
    pod from the cluster (NAME), the pods in a manifest (-f) or in scenarios (--batch), or by default every pending pod.
    Each is evaluated on its own, as if it were next. The default output fits on one screen; -v prints every pod and
    every differing step.

    Two results match if the outcome, node and victims are the same. A scheduler can have its own configuration and
    feature gates, so you can compare it with itself: kube-1.36,kube-1.36@FILE,kube-1.36:GATE=false. auto is the
    cluster's own version.

    With --algorithms kueue-0.19,kueue-0.19@FILE, compares Workloads: one from the cluster, the ones in a manifest, or
    by default all that are waiting. FILE contains ClusterQueues and cohorts with different quotas, another
    configuration for Kueue's manager, or both.

    With --upgrade-to, compares the cluster's version with a newer one: which pods would land on another node, evict
    other pods or no longer land, and which change in Kubernetes is the cause. Covers the pending pods, the pods in a
    manifest (-f), and the next pod of each workload (--workloads).
    """

    answer = "Comparison"
    algorithms: Annotated[_Text, _ALGORITHMS] = None
    upgrade_to: Annotated[
        _Text,
        Option(
            ("--upgrade-to",),
            "Show what changes if the cluster is upgraded to this Kubernetes version, such as 1.35.",
            "VERSION",
            SCHEDULER,
            is_everyday=True,
        ),
    ] = None
    workloads: Annotated[
        bool, Option(("--workloads",), "With --upgrade-to, also compare the next pod of every workload.", panel=THE_POD)
    ] = False
    files: Annotated[list[str], MANIFESTS] = []
    select: Annotated[list[str], _SELECT] = []
    batch: Annotated[
        _Text,
        Option(
            ("--batch",),
            "Compare the scenarios in FILE (JSON lines, as for kpreempt batch).",
            "FILE",
            THE_POD,
            families=(KUBE, VOLCANO),
        ),
    ] = None
    algorithm: Annotated[
        _Text,
        _ALGORITHM._replace(
            help="With --upgrade-to, the version to upgrade from (default: auto, the cluster's own).",
            metavar=f"auto|{KUBE_RANGE}",
        ),
    ] = None
    scheduler_config: Annotated[
        _Text, _SCHEDULER_CONFIG._replace(help="With --upgrade-to, the KubeSchedulerConfiguration of both versions.")
    ] = None
    feature_gates: Annotated[
        list[str], _FEATURE_GATES._replace(help="With --upgrade-to, feature gates of both versions. Repeatable.")
    ] = []
    fail_on_difference: Annotated[
        bool,
        Option(
            ("--fail-on-difference",),
            "Exit 1 if the schedulers decide, or may decide, differently.",
            panel=GATE,
            is_everyday=True,
        ),
    ] = False

    @property
    def algorithm_named(self) -> str:
        """Kueue's, if it is compared with itself. Raises ``UsageError`` if it is compared with others."""
        named = {part.strip().partition("@")[0].partition(":")[0] for part in (self.algorithms or "").split(",")} - {""}
        if KUEUE_ALGORITHM not in named or self.upgrade_to is not None:
            return ""
        if len(named) > 1:
            problem = f"{KUEUE_ALGORITHM} decides on Workloads and can only be compared with itself"
            raise UsageError(problem, hint=f"{KUEUE_ALGORITHM},{KUEUE_ALGORITHM}@FILE")
        return KUEUE_ALGORITHM


class CompletionRequest(Request):
    """Print a shell completion script.

    The script completes commands, options and names from the live cluster or the snapshot. bash: add source <(kpreempt
    completion bash) to ~/.bashrc. zsh: add source <(kpreempt completion zsh) to ~/.zshrc, after compinit. fish: run
    kpreempt completion fish > ~/.config/fish/completions/kpreempt.fish. kubectl kpreempt uses
    kubectl_complete-kpreempt, which is installed with kpreempt. With the single-file build, save the script for kubectl
    under that name in the same directory as kpreempt.
    """

    shell: Annotated[str, Option(metavar="bash|zsh|fish|kubectl", help="Shell (or kubectl) that the script is for.")]


class SnapshotRequest(ClusterRequest, without=["now"]):
    """Write a snapshot of a cluster to a file.

    The file contains everything the schedulers read. Use it with --snapshot. It is written atomically. It never
    contains Secrets, ConfigMaps, environment values, commands, managed fields or unused annotations.
    """

    invocation: Annotated[Context, Option()]
    files: Annotated[list[str], _FILES._replace(help="Manifest whose pods are added as pending pods. Repeatable.")] = []
    namespace: Annotated[_Text, NAMESPACE._replace(help="Namespace for the manifest's pods.")] = None
    to: Annotated[
        str,
        _TO._replace(
            metavar="FILE",
            help="Output file: FILE.json or FILE.jsonl, optionally with .gz or .zst; - for standard output.",
        ),
    ]
    redact: Annotated[bool, _REDACT] = False
    redact_map: Annotated[_Text, _REDACT_MAP] = None
    quiet: Annotated[bool, _QUIET] = False

    @property
    def program(self) -> str:
        """The name by which the user runs kpreempt."""
        return self.invocation.find_root().info_name or "kpreempt"


class RecordRequest(Request):
    """Record a live cluster until interrupted.

    Records everything the schedulers read, and every change to it. Every command accepts the recording as --snapshot;
    --at selects a time, or the state just before a pod was scheduled. For each object, the recording contains only the
    fields that kpreempt snapshot writes. kpreempt sends only list and watch requests.
    """

    to: Annotated[_Text, _TO._replace(panel=RECORDING)] = None
    info: Annotated[
        _Text,
        Option(
            ("--info",), "Show what the recording in DIR contains; record nothing.", "DIR", RECORDING, is_everyday=True
        ),
    ] = None
    source: Annotated[
        _Text,
        Option(
            ("--from",),
            "With --redact, redact the recording in DIR instead of recording a live cluster.",
            "DIR",
            RECORDING,
        ),
    ] = None
    duration: Annotated[_Text, _DURATION] = None
    keep: Annotated[
        str, Option(("--keep",), "Retention: delete data older than TIME.", "TIME", RECORDING, is_everyday=True)
    ] = "24h"
    max_size: Annotated[
        str, Option(("--max-size",), "Maximum size on disk; the oldest data is deleted first.", "SIZE", RECORDING)
    ] = "2Gi"
    base_every: Annotated[
        str,
        Option(
            ("--base-every",),
            "Interval between full copies of the cluster state; a shorter interval speeds up --at.",
            "TIME",
            RECORDING,
        ),
    ] = "1h"
    redact: Annotated[
        bool,
        _REDACT._replace(
            help="When the recording ends, replace names with tokens and dates with relative times, like kpreempt "
            "snapshot --redact."
        ),
    ] = False
    redact_map: Annotated[
        _Text,
        _REDACT_MAP._replace(help="With --redact, write the original name behind each token to FILE. Keep it private."),
    ] = None
    quiet: Annotated[bool, _QUIET._replace(help="Do not report what was recorded.")] = False
    connection: Annotated["ConnectionFlags", _CONNECTION]


_OF_INPUT = ["at", "skip_bad_objects", "assume_none"]
_OF_SCHEDULERS = ["scheduler_config", "policy_config", "feature_gates", "extensions", "jobs", "verbose", "profile_json"]


class HistoryRequest(
    History,
    AnswerRequest,
    without=[
        *(*_OF_INPUT, "input_limits", "connection"),
        *("all_namespaces", "selector", "algorithm", "strict", "now"),
        *_OF_SCHEDULERS,
    ],
):
    """Show the history of a pod, node or budget.

    Reads a recording and lists each scheduling attempt. For a pod: when it was unschedulable (and why), nominated,
    bound or evicted (and for which pod). For a node: which pods were added and removed. For a PodDisruptionBudget: how
    many disruptions it allowed, and which of its pods were evicted. Each decision comes with the command that explains
    it.
    """

    answer = "History"
    snapshots: Annotated[
        list[str], _SNAPSHOT._replace(metavar="DIR", help="Recording made by kpreempt record --to DIR.")
    ] = []


class VerifyRequest(
    Verify,
    AnswerRequest,
    without=[
        *("snapshots", *_OF_INPUT, "namespace", "all_namespaces", "selector", "policy_config"),
        *("strict", "now", "jobs"),
    ],
):
    """Compare real decisions with predictions.

    Compares every real scheduling decision with kpreempt's prediction from the state just before it: pods that were
    bound, pods that were nominated after evicting victims, and pods that were unschedulable, including the scheduler's
    message. The decisions come from a recording, or from a live cluster that is recorded for a while. A decision that
    matches a slightly earlier state is reported as a race, along with what changed in between, and does not count
    toward the score.
    """

    answer = "Verification"
    folder: Annotated[_Text, Option(metavar="DIR", help="Recording made by kpreempt record --to DIR.")] = None
    duration: Annotated[
        _Text,
        _DURATION._replace(help="Without DIR, record the live cluster for this long, such as 10m.", panel=THE_CLUSTER),
    ] = None
    fail_below: Annotated[
        float | None,
        Option(
            ("--fail-below",),
            "Exit 1 if the score is below this percentage, such as 99.5, or if nothing could be compared.",
            "PERCENT",
            GATE,
            is_everyday=True,
        ),
    ] = None
    differences: Annotated[
        _Text,
        Option(
            ("--differences",),
            "Write each unexplained difference to DIR as a redacted file for kpreempt batch.",
            "DIR",
        ),
    ] = None


class HelpRequest(Request):
    """Show help for a command."""

    command: Annotated[_Text, Option(metavar="COMMAND", help="Name of the command.")] = None


class VersionRequest(Request):
    """Show the version of kpreempt.

    Also lists the modeled versions of each scheduler. Does not contact a cluster.
    """

    answer = "Versions"
    output: Annotated[str, _FORMAT] = "text"


# The headings of the list of commands, in order.
GROUPS = (
    ON_CALL := "On call",
    BEFORE_A_CHANGE := "Before a change",
    FLEET := "Fleet",
    SCHEDULERS := "Schedulers",
    DATA := "Data",
    OTHER := "Other",
)


class CommandRow(NamedTuple):
    """A command: its request and the function that answers it, as ``module:name``, and two examples.

    The examples use files in the repository; ``tests/unit/cli/test_help.py`` runs them. The list of commands shows the
    ``summary``, at most 50 characters, below the heading of the ``group``.
    """

    request: str
    run: str
    examples: tuple[str, str]
    group: str
    summary: str


_DEMO = "--snapshot fixtures/demo/cluster.yaml"
_ON_CALL = "--snapshot fixtures/on-call/cluster.yaml"
_OUTAGE = "--snapshot fixtures/check/outage/cluster.yaml"
_DRAIN = "--snapshot fixtures/drain/cluster.yaml"
# In the order of the help text.
COMMANDS: Mapping[str, CommandRow] = {
    "explain": CommandRow(
        "requests:ExplainRequest",
        "explain:explain",
        (
            f"explain -f fixtures/demo/api.yaml {_DEMO}",
            "explain deploy/web -n shop --capacity --snapshot fixtures/workloads/cluster.yaml",
        ),
        ON_CALL,
        "Show where a pod lands and which pods it evicts",
    ),
    "pending": CommandRow(
        "requests:PendingRequest",
        "on_call:pending",
        (f"pending {_ON_CALL}", f"pending -n shop {_ON_CALL} -o custom-columns=POD:.pod,OUTCOME:.outcome"),
        ON_CALL,
        "Show pending pods and what would happen to each",
    ),
    "who-evicted": CommandRow(
        "requests:WhoEvictedRequest",
        "history:who_evicted",
        (
            f"who-evicted encode-1 -n batch {_ON_CALL}",
            f"who-evicted encode-1 -n batch {_ON_CALL} --before fixtures/on-call/before.yaml",
        ),
        ON_CALL,
        "Find out what evicted a pod",
    ),
    "at-risk": CommandRow(
        "requests:AtRiskRequest",
        "on_call:at_risk",
        (f"at-risk -n batch {_ON_CALL}", f"at-risk -A --limit 3 {_ON_CALL}"),
        ON_CALL,
        "List running pods that may be preempted",
    ),
    "queue": CommandRow(
        "requests:QueueRequest",
        "queue:queue",
        (f"queue {_ON_CALL}", "queue --algorithm kube-1.13 --events fixtures/queue/events.yaml"),
        ON_CALL,
        "Show the scheduling queue",
    ),
    "history": CommandRow(
        "requests:HistoryRequest",
        "history:history",
        (
            "history api -n shop --snapshot fixtures/recording",
            "history node/node-a --snapshot fixtures/recording -o jsonl",
        ),
        ON_CALL,
        "Show what happened to a pod, a node or a PDB",
    ),
    "check": CommandRow(
        "gate_options:CheckRequest",
        "check:check",
        (
            f"check -f fixtures/check/outage/rollout.yaml {_OUTAGE}",
            f"check -f fixtures/check/outage/rollout.yaml {_OUTAGE} --max-victims 2 -o markdown",
        ),
        BEFORE_A_CHANGE,
        "Simulate a rollout and check it against rules",
    ),
    "drain": CommandRow(
        "gate_options:DrainRequest",
        "check:drain",
        (
            f"drain n1 --ignore-daemonsets {_DRAIN}",
            f"drain -l pool=general --ignore-daemonsets {_DRAIN} -o markdown",
        ),
        BEFORE_A_CHANGE,
        "Simulate draining, upgrading or removing nodes",
    ),
    "rules": CommandRow(
        "requests:RulesRequest",
        "about:rules",
        ("rules", "rules lost-pods"),
        BEFORE_A_CHANGE,
        "List the rules, or explain one",
    ),
    "compare": CommandRow(
        "requests:CompareRequest",
        "compare:compare",
        (
            "compare --algorithms kube-1.18,kube-1.36 -f fixtures/compare/api.yaml"
            " --snapshot fixtures/compare/cluster.yaml",
            f"compare --algorithms kube-1.13,kube-1.36 {_ON_CALL}",
        ),
        BEFORE_A_CHANGE,
        "Compare schedulers, or preview an upgrade",
    ),
    "budgets": CommandRow(
        "requests:BudgetsRequest",
        "on_call:budgets",
        (
            "budgets --snapshot fixtures/budgets/cluster.yaml",
            "budgets -n batch --fail-on error --snapshot fixtures/budgets/cluster.yaml",
        ),
        FLEET,
        "Audit PodDisruptionBudgets",
    ),
    "sweep": CommandRow(
        "requests:SweepRequest",
        "sweep:sweep",
        (
            "sweep fixtures/sweep/sweep.toml --to sweep",
            "sweep --snapshots 'fixtures/*/cluster.yaml' --query pending --query budgets --to sweep",
        ),
        FLEET,
        "Run queries across many clusters",
    ),
    "algorithms": CommandRow(
        "requests:AlgorithmsRequest",
        "about:algorithms",
        ("algorithms", "algorithms -o name"),
        SCHEDULERS,
        "List the supported schedulers",
    ),
    "plugins": CommandRow(
        "requests:PluginsRequest",
        "plugins:plugins",
        ("plugins", "plugins -o name"),
        SCHEDULERS,
        "List the plugins and extenders that would run",
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
        SCHEDULERS,
        "Run a session of Volcano's scheduler",
    ),
    "verify": CommandRow(
        "requests:VerifyRequest",
        "verify:verify",
        ("verify fixtures/recording", "verify fixtures/recording -o openmetrics --fail-below 99.5"),
        SCHEDULERS,
        "Compare recorded decisions with predictions",
    ),
    "snapshot": CommandRow(
        "requests:SnapshotRequest",
        "snapshot:snapshot",
        (
            f"snapshot {_DEMO} --to cluster.json.gz",
            f"snapshot {_DEMO} --redact --to -",
        ),
        DATA,
        "Save a snapshot of a cluster to a file",
    ),
    "record": CommandRow(
        "requests:RecordRequest",
        "record:record",
        (
            "record --info fixtures/recording",
            "explain pod/api -n shop --snapshot fixtures/recording --at pod/shop/api",
        ),
        DATA,
        "Record a cluster and its changes",
    ),
    "batch": CommandRow(
        "requests:BatchRequest",
        "batch:batch",
        (
            "batch fixtures/batch/scenarios.jsonl",
            f"batch fixtures/batch/scenarios.jsonl {_DEMO} --jobs 1",
        ),
        DATA,
        "Answer scenarios given as JSON lines",
    ),
    "mcp": CommandRow(
        "requests:McpRequest",
        "mcp:mcp",
        (
            "mcp --snapshot fixtures/demo/cluster.yaml",
            "mcp --snapshot fixtures/demo/cluster.yaml --algorithm kube-1.29",
        ),
        DATA,
        "Run an MCP server for AI assistants",
    ),
    "completion": CommandRow(
        "requests:CompletionRequest",
        "about:completion",
        ("completion bash", "completion fish"),
        OTHER,
        "Print a shell completion script",
    ),
    "help": CommandRow(
        "requests:HelpRequest",
        "about:help_command",
        ("help explain", "help check"),
        OTHER,
        "Show help for a command",
    ),
    "version": CommandRow(
        "requests:VersionRequest",
        "about:version",
        ("version", "version -o json"),
        OTHER,
        "Show the versions of kpreempt and its schedulers",
    ),
}
