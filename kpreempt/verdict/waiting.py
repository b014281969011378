"""Why a pod is still pending: what the scheduler waits for, or what keeps a pod that has a node from running.

Also what the scheduler's message says, and what else is known about a pod if the input has no nodes.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.verdict.base import Record, SparseRecord
from kpreempt.verdict.workload import MissingPods, PreemptionsBetween, Replacement


class PendingState(StrEnum):
    """Why a pod is still pending.

    ``Held``: by a plugin other than scheduling gates. ``Nominated``: preemption still helps on the nominated node, but
    none of the pod's victims there is terminating. ``StaleNomination``: preemption there no longer helps.
    ``BackingOff``: the pod was attempted moments ago, and is in backoff. ``WaitsForChange``: the pod was attempted, and
    is not attempted again until something changes. ``FitsNow``: the pod was attempted, and would land if it were
    attempted now.
    """

    BEING_DELETED = "BeingDeleted"
    NO_SCHEDULER = "NoScheduler"
    GATED = "Gated"
    HELD = "Held"
    WAITS_FOR_VICTIMS = "WaitsForVictims"
    NOMINATED = "Nominated"
    STALE_NOMINATION = "StaleNomination"
    NEVER_ATTEMPTED = "NeverAttempted"
    BACKING_OFF = "BackingOff"
    FITS_NOW = "FitsNow"
    WAITS_FOR_CHANGE = "WaitsForChange"


class TerminatingPod(Record, frozen=True):
    """A terminating pod.

    ``since`` is when its deletion started, ``until`` when its grace period ends. ``finalizers`` keep the object even
    after that. ``is_preempted``: a scheduler evicted it; the scheduler does not wait for other pods.
    """

    pod: str
    priority: int
    since: datetime | None = None
    until: datetime | None = None
    finalizers: list[str] = []
    is_preempted: bool = True


class OnNodeCause(StrEnum):
    """What a pod that has a node waits for.

    ``NodeMissing``: the cluster has no such node. ``NodeNotReady``: its kubelet starts nothing. ``UnboundClaim``: a
    volume claim is missing or not bound. ``Volume``: a volume is not attached or mounted. ``Sandbox``: the sandbox or
    network of the pod is not created. ``Image``: an image is not pulled. ``Container``: a container cannot be
    created or started. ``InitContainer``: an init container is running. ``FailingContainer``: a container fails, and is
    restarted. ``Starting``: the kubelet is starting it, and nothing says what it waits for. ``NotAccepted``: no kubelet
    has reported on it.
    """

    TERMINATING = "Terminating"
    NODE_MISSING = "NodeMissing"
    NODE_NOT_READY = "NodeNotReady"
    UNBOUND_CLAIM = "UnboundClaim"
    VOLUME = "Volume"
    SANDBOX = "Sandbox"
    IMAGE = "Image"
    CONTAINER = "Container"
    INIT_CONTAINER = "InitContainer"
    FAILING_CONTAINER = "FailingContainer"
    STARTING = "Starting"
    NOT_ACCEPTED = "NotAccepted"


class ClaimState(StrEnum):
    """Why a volume claim keeps a pod from starting.

    ``NoNodeSelected``: it is bound when the scheduler picks a node for its pod, and no scheduler has.
    """

    MISSING = "Missing"
    LOST = "Lost"
    NO_NODE_SELECTED = "NoNodeSelected"
    UNBOUND = "Unbound"


class PendingOnNode(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A pod in phase Pending that has a node.

    ``status`` is its status in the output of ``kubectl get pods``. ``since`` is when the pod got into this state, if
    known. ``container`` is the container that keeps it pending, ``image`` its image. ``reason`` and ``message`` are the
    reported ones, verbatim; ``reported`` is the time of the last event that says so. ``claim`` is ``namespace/name`` of
    a claim that is not bound. ``has_events`` says whether the input has events at all. ``at`` is the time of the input,
    if the answer does not have it.
    """

    pod: str
    node: str
    owner: str = ""
    created: datetime | None = None
    status: str = ""
    cause: OnNodeCause
    since: datetime | None = None
    container: str = ""
    is_init_container: bool = False
    image: str = ""
    exit_code: int | None = None
    restarts: int = 0
    reason: str = ""
    message: str = ""
    reported: datetime | None = None
    claim: str = ""
    claim_state: ClaimState | None = None
    storage_class: str = ""
    finalizers: list[str] = []
    has_events: bool = False
    at: datetime | None = None


class AdmissionDifference(Record, frozen=True, kw_only=True):
    """A field of a pod that admission would set to another value today; an empty value means that it is not set.

    ``source`` is the object that has the value (``PriorityClass high``).
    """

    path: str
    current: str
    today: str
    source: str


class StillPending(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Why an existing pod without a node is still pending, as far as the input shows.

    ``at`` is the time of the input; ``since``, ``until``, ``last_attempt``, ``gates``, ``scheduler_name`` and
    ``waiting_for`` are as in ``PendingPod``. ``nominated_node`` is the node of an earlier preemption.
    ``preempts_asynchronously``: the scheduler deletes victims in the background, and may miss the end of a deletion.
    ``condition`` is the message of the pod's condition; ``is_outdated`` says that the scheduler would no longer report
    it. ``differences`` are what a new pod like it would have instead. ``replaces`` is the preempted pod that it
    replaces, and ``preemptions`` are those by its workload and of its workload's pods, of which the input has events.
    """

    state: PendingState
    at: datetime | None = None
    created: datetime | None = None
    since: datetime | None = None
    until: datetime | None = None
    last_attempt: datetime | None = None
    gates: list[str] = []
    scheduler_name: str = ""
    nominated_node: str = ""
    waiting_for: list[TerminatingPod] = []
    preempts_asynchronously: bool = False
    condition: str = ""
    is_outdated: bool = False
    differences: list[AdmissionDifference] = []
    replaces: Replacement | None = None
    preemptions: list[PreemptionsBetween] = []


class ReasonTopic(StrEnum):
    """What a reason in the scheduler's message is about; ``Other`` is none of kube-scheduler's own plugins.

    The last ones are only in the part about preemption: ``NoVictims`` (no pod of lower priority on the node),
    ``NotHelpful`` (the node rejects the pod whatever runs there), ``Never`` (the pod's preemptionPolicy),
    ``TerminatingVictim`` (on its nominated node), ``NoCandidate`` (extenders rejected all nodes), ``Preempts`` (it
    evicts pods).
    """

    RESOURCE = "InsufficientResource"
    TOO_MANY_PODS = "TooManyPods"
    TAINT = "UntoleratedTaint"
    CORDONED = "Unschedulable"
    NODE_AFFINITY = "NodeAffinity"
    ENFORCED_AFFINITY = "SchedulerEnforcedAffinity"
    NODE_NAME = "NodeName"
    NOT_CONSIDERED = "NotConsidered"
    PORTS = "HostPorts"
    SPREAD = "TopologySpread"
    SPREAD_LABEL = "TopologySpreadMissingLabel"
    POD_AFFINITY = "PodAffinity"
    POD_ANTI_AFFINITY = "PodAntiAffinity"
    EXISTING_ANTI_AFFINITY = "AntiAffinityOfOtherPods"
    ANY_POD_AFFINITY = "PodAffinityOrAntiAffinity"
    VOLUME_AFFINITY = "VolumeNodeAffinity"
    VOLUME_ZONE = "VolumeZone"
    NO_VOLUME = "NoMatchingVolume"
    STORAGE_SPACE = "StorageCapacity"
    VOLUME_LIMIT = "VolumeLimit"
    VOLUME_IN_USE = "VolumeInUse"
    DRIVER_MISSING = "CSIDriverMissing"
    CLAIM_UNBOUND = "ClaimUnbound"
    CLAIM_MISSING = "ClaimNotFound"
    CLAIM_DELETED = "ClaimBeingDeleted"
    CLAIM_LOST = "ClaimLost"
    CLAIM_EPHEMERAL = "EphemeralClaimMissing"
    STORAGE_CLASS = "StorageClassNotFound"
    DEVICES = "Devices"
    DEVICE_CLAIM = "DeviceClaim"
    DEVICE_CLASS = "DeviceClassNotFound"
    FEATURES = "NodeDeclaredFeatures"
    GATES = "SchedulingGates"
    GANG = "PodGroup"
    OTHER = "Other"
    NO_VICTIMS = "NoVictims"
    NOT_HELPFUL = "NotHelpful"
    NEVER = "Never"
    TERMINATING_VICTIM = "TerminatingVictim"
    NO_CANDIDATE = "NoCandidate"
    PREEMPTS = "Preempts"


class MessageForm(StrEnum):
    """The form of a scheduler's message.

    ``NoFit``: it counts nodes by reason. ``NotTried``: the pod was rejected before any node was tried. ``NoNodes``: the
    cluster has no nodes. ``BeingDeleted``: the pod is being deleted. ``Waits``: the pod does not enter the queue yet.
    ``Permit``: a plugin held the pod back after a node was chosen. ``Binding``: a node was chosen, and what follows
    failed. ``PluginError``: a plugin failed. ``OtherScheduler``: it is not a message of kube-scheduler.
    """

    NO_FIT = "NoFit"
    NOT_TRIED = "NotTried"
    NO_NODES = "NoNodes"
    BEING_DELETED = "BeingDeleted"
    WAITS = "Waits"
    PERMIT = "Permit"
    BINDING = "Binding"
    PLUGIN_ERROR = "PluginError"
    OTHER_SCHEDULER = "OtherScheduler"


class MessageReason(SparseRecord, frozen=True, kw_only=True):
    """A reason in a scheduler's message, verbatim in ``text``.

    ``nodes`` is the number of nodes that it counts, ``None`` if it counts none. ``subject`` is what it names: the
    resource, the taint (``key=value``), the claim, the class, the plugin. ``since`` and ``until`` are the first and
    last minor version with this wording, of those from 1.18 to 1.37; empty if it has no limit there.
    """

    text: str
    topic: ReasonTopic
    nodes: int | None = None
    subject: str = ""
    since: str = ""
    until: str = ""


class SchedulerMessage(SparseRecord, frozen=True, kw_only=True):
    """What a scheduler's message says, part by part.

    ``nodes`` is the number of nodes of the cluster that it states, ``None`` if it states none. ``reasons`` are those of
    nodes, the most frequent first; ``preemption`` those for which preemption does not help. It has no part about
    preemption unless ``has_preemption``; ``post_filter`` is what another plugin says in its place. ``counted`` is the
    sum of the ``reasons``: a node counts several times if it has several reasons. ``is_cut``: the end of the message is
    missing. ``plugin`` is the plugin that it names, and ``scheduler`` the program, if it is not kube-scheduler.
    ``since`` and ``until`` limit the versions that have all of these wordings.
    """

    message: str
    form: MessageForm
    nodes: int | None = None
    counted: int = 0
    reasons: list[MessageReason] = []
    has_preemption: bool = False
    preemption: list[MessageReason] = []
    post_filter: str = ""
    is_cut: bool = False
    plugin: str = ""
    scheduler: str = ""
    since: str = ""
    until: str = ""


class QuotaUse(SparseRecord, frozen=True, kw_only=True):
    """A ResourceQuota that applies to the pod (``namespace/name``), with its usage and limits as quantities.

    ``rejects`` is the API server's message if the quota rejects one more pod like it.
    """

    quota: str
    used: dict[str, str]
    hard: dict[str, str]
    rejects: str = ""


class BudgetState(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A PodDisruptionBudget that selects the pod (``namespace/name``), with the numbers of its status."""

    budget: str
    disruptions_allowed: int
    current_healthy: int
    desired_healthy: int
    expected_pods: int


class OwnerState(SparseRecord, frozen=True, kw_only=True):
    """The workload of the pod (``Deployment shop/api``), and its pods that have not finished.

    ``desired`` is the number of pods that it wants, ``None`` if the input does not have the workload. ``on_nodes`` are
    the pods that have a node, and ``ready`` those that are ready.
    """

    workload: str
    desired: int | None = None
    pods: int = 0
    on_nodes: int = 0
    ready: int = 0
    missing_pods: list[MissingPods] = []


class KnownFacts(SparseRecord, frozen=True, kw_only=True):
    """What the input says about a pod, at the time ``at``, without a verdict.

    ``message`` is the scheduler's last message about it, from its condition or from an event; it was first reported at
    ``since`` and last at ``last_attempt``, and ``scheduling`` is what it says. ``quotas`` and ``budgets`` are those
    that apply to it. Of the ``unknown`` kinds, the input does not have all objects. ``has_unknown_priority``: the
    priority of its class could not be read.
    """

    at: datetime | None = None
    message: str = ""
    scheduling: SchedulerMessage | None = None
    since: datetime | None = None
    last_attempt: datetime | None = None
    owner: OwnerState | None = None
    quotas: list[QuotaUse] = []
    budgets: list[BudgetState] = []
    unknown: list[str] = []
    has_unknown_priority: bool = False


class ResizeState(StrEnum):
    """The kubelet's answer: ``Deferred`` (not now, it tries again), or ``Infeasible`` (never on this node)."""

    DEFERRED = "Deferred"
    INFEASIBLE = "Infeasible"


# The feature gate with which the scheduler evicts pods for a deferred resize (alpha in 1.37).
RESIZE_GATE = "InPlacePodVerticalScalingSchedulerPreemption"


class ResizePreemption(StrEnum):
    """Whether the scheduler evicts pods for a deferred resize (KEP-5836).

    ``NotInVersion``: it ignores pods that have a node. ``GateOff``: it does so without a feature gate, which is off by
    default. ``GateOn``: it evicts pods of lower priority on the node if the resize then fits.
    """

    NOT_IN_VERSION = "NotInVersion"
    GATE_OFF = "GateOff"
    GATE_ON = "GateOn"


class ResizeNeed(SparseRecord, frozen=True, kw_only=True):
    """A resource of which the pod wants more than it has, in the units of a verdict.

    ``requested`` is what it wants and ``allocated`` what it has, ``None`` if its status does not say. The node has
    ``allocatable``; its other pods have ``used``, of which ``used_by_lower`` is that of pods with a lower priority.
    ``missing`` is how much more the pod wants than is free for it, at least 0.
    """

    resource: str
    requested: int
    allocated: int | None = None
    allocatable: int = 0
    used: int = 0
    used_by_lower: int = 0
    missing: int = 0

    @property
    def exceeds_node(self) -> bool:
        """Whether it would not fit on the empty node either."""
        return self.requested > self.allocatable


class PendingResize(SparseRecord, frozen=True, kw_only=True):
    """A running pod whose resize is pending at ``at``, with the kubelet's ``message`` and the time of its answer.

    ``needs`` is empty if the node is not in the input. ``fits_without_lower``: the resize would fit if all pods with a
    lower priority left the node, and the pod may preempt.
    """

    pod: str
    node: str
    state: ResizeState
    at: datetime | None = None
    priority: int = 0
    since: datetime | None = None
    message: str = ""
    needs: list[ResizeNeed] = []
    preemption: ResizePreemption = ResizePreemption.NOT_IN_VERSION
    fits_without_lower: bool = False
