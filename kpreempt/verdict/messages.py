"""What messages about pods say, part by part: the scheduler's about a pod without a node, and those of other programs.

Nothing here is a verdict: a message is all that is known, without the cluster.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.verdict.autoscaling import AutoscalerReport
from kpreempt.verdict.base import Record, SparseRecord
from kpreempt.verdict.records import API_VERSION, Assumption
from kpreempt.verdict.who_evicted import PodTermination
from kpreempt.verdict.workload import FailedCreation


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
    preemption unless ``has_preemption``. ``counted`` is the sum of the ``reasons``: a node counts several times if it
    has several reasons. ``is_cut``: the end of the message is missing. ``plugin`` is the plugin that it names, and
    ``scheduler`` the program, if it is not kube-scheduler. ``since`` and ``until`` limit the versions that have all of
    these wordings.
    """

    message: str
    form: MessageForm
    nodes: int | None = None
    counted: int = 0
    reasons: list[MessageReason] = []
    has_preemption: bool = False
    preemption: list[MessageReason] = []
    is_cut: bool = False
    plugin: str = ""
    scheduler: str = ""
    since: str = ""
    until: str = ""


class EventTopic(StrEnum):
    """What an event is about: whose message it is, or what happened. ``Other`` is not about scheduling."""

    SCHEDULING = "Scheduling"
    OTHER_SCHEDULER = "OtherScheduler"
    SCHEDULED = "Scheduled"
    PREEMPTED = "Preempted"
    AUTOSCALER = "Autoscaler"
    CREATION = "Creation"
    KUBELET = "Kubelet"
    RESIZE = "Resize"
    TERMINATION = "Termination"
    OTHER = "Other"


class ExplainedEvent(SparseRecord, frozen=True, kw_only=True):
    """An event, or a condition or status of a pod (``reason`` is then the condition's), and what it says.

    ``at`` is when it was last seen; pasted text has an age instead, which counts from when kubectl printed it.
    ``times`` is how often it was seen. Only the fields of its ``topic`` are set: ``scheduling`` for a scheduler's
    message, ``preemptor`` or only ``preemptor_uid`` for a preemption, ``node`` for that and for a pod that was
    scheduled, ``autoscaler``, ``creation`` for a failed creation, and ``termination`` for the end of a pod, or its
    rejection by a kubelet.
    """

    topic: EventTopic
    reason: str = ""
    message: str = ""
    reporter: str = ""
    at: datetime | None = None
    age_seconds: int | None = None
    times: int = 1
    scheduling: SchedulerMessage | None = None
    preemptor: str = ""
    preemptor_uid: str = ""
    node: str = ""
    autoscaler: AutoscalerReport | None = None
    creation: FailedCreation | None = None
    termination: PodTermination | None = None


class ExplainedObject(SparseRecord, frozen=True, kw_only=True):
    """An object and its events, the latest first; ``namespace`` and ``name`` are empty if the input lacks them.

    ``node``, ``nominated_node`` and ``priority`` are those of a pod, if it is described. ``other_events`` is the number
    of its events about something else, which are not listed.
    """

    kind: str = ""
    namespace: str = ""
    name: str = ""
    node: str = ""
    nominated_node: str = ""
    priority: int | None = None
    events: list[ExplainedEvent] = []
    other_events: int = 0

    @property
    def key(self) -> str:
        """``namespace/name``, as far as they are known."""
        return "/".join(filter(None, (self.namespace, self.name)))


class ExplainedEvents(Record, frozen=True, kw_only=True):
    """What pasted events say, by object, the one with the latest event first.

    Objects without events about scheduling, or about the end or the creation of pods, are left out; ``other_objects``
    is their number.
    """

    api_version: str = API_VERSION
    kind: str = "ExplainedEvents"
    items: list[ExplainedObject] = []
    other_objects: int = 0
    assumptions: list[Assumption] = []
