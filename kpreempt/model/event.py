"""Events about scheduling, in the forms of both APIs that serve them, and who reported them.

Node autoscalers report about pods and nodes: Cluster Autoscaler of ``kubernetes/autoscaler`` 1.36
(``processors/status/eventing_scale_up_processor.go``, ``core/scaleup/orchestrator``, ``clusterstate``), and Karpenter
of ``sigs.k8s.io/karpenter`` v1.9 (``pkg/events``, ``pkg/controllers/provisioning/scheduling/events.go``).
"""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum

import msgspec

from kpreempt.model.meta import ObjectMeta, Time

PREEMPTED = "Preempted"
FAILED_SCHEDULING = "FailedScheduling"
# Controllers could not create a pod or a claim, and a Deployment not its ReplicaSet (pkg/controller, v1.36.3).
FAILED_CREATE = "FailedCreate"
FAILED_REPLICA_SET = "ReplicaSetCreateError"
FAILED_CREATION = frozenset((FAILED_CREATE, FAILED_REPLICA_SET))
# The scheduler's message in the events of victims (``analysis/preempted_by.py`` explains its forms).
PREEMPTED_TEXT = re.compile(
    r"[Pp]reempted by (?:(?P<type>pod|podgroup) (?P<uid>[\w.-]{1,253})|(?P<anonymous>a pod)"
    r"|(?P<namespace>[\w.-]{1,253})/(?P<name>[\w.-]{1,253})|(?P<bare_uid>[\w.-]{1,253}))"
    r" on node (?P<node>[\w.-]{1,253}?)(?: \(in kube-scheduler memory\)\.)?"
)
# The start of its message about a pod that fits nowhere, with the number of nodes.
_NODES_COUNTED = re.compile(r"\d{1,9}/(\d{1,9}) nodes are available:")
# The reports of kubelets and of the attach/detach controller on a pod that does not start (``pkg/kubelet/events`` and
# ``pkg/controller/volume/events`` of v1.36.3).
KUBELET_REASONS = frozenset(
    (
        "ErrImageNeverPull",
        "Failed",
        "FailedAttachVolume",
        "FailedCreatePodSandBox",
        "FailedMapVolume",
        "FailedMount",
        "FailedPrepareDynamicResources",
        "InspectFailed",
        "NetworkNotReady",
    )
)
KILLING, SUCCESSFUL_DELETE = "Killing", "SuccessfulDelete"
OUT_OF = "OutOf"
# The reasons with which a kubelet rejects a pod, except those that start with ``OUT_OF`` and name a resource
# (``pkg/kubelet/kubelet.go``, ``admissionRejectionReasons``, and the plugins of ``AdmissionCheck``, v1.36.3).
REJECTION_REASONS = frozenset(
    (
        "AppArmor",
        "EmptyPodSharedPoolError",
        "InitContainerRestartPolicyForbidden",
        "InvalidNodeInfo",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "NodeShutdown",
        "PodFeatureUnsupported",
        "PodLevelResourcesNotSupported",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "SMTAlignmentError",
        "SupplementalGroupsPolicyNotSupported",
        "SysctlForbidden",
        "TaintToleration",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
        "UnexpectedPredicateFailureType",
        "UnknownReason",
        "VolumeAttachmentLimitExceeded",
    )
)
# Other events about the end of pods, of kubelets, controllers and programs that evict pods (``model/terminations.py``).
EVICTION_REASONS = frozenset(
    (
        "DeviceTaintManagerEviction",
        "Disrupted",
        "DisruptionTerminating",
        "Evicted",
        "EvictedByVPA",
        "NodeControllerEviction",
        "NodeNotReady",
        "NodeNotSchedulable",
        "Preempting",
        "RemovingNode",
        "ScaleDown",
        "SystemOOM",
        "TaintManagerEviction",
        KILLING,
        SUCCESSFUL_DELETE,
    )
)
# Events of these reasons are not warnings, or not always.
_OTHERS = frozenset((PREEMPTED,))


class Autoscaler(StrEnum):
    """A program that adds and removes nodes."""

    CLUSTER_AUTOSCALER = "ClusterAutoscaler"
    KARPENTER = "Karpenter"


# The components under which they report events; the last one is Karpenter in EKS Auto Mode.
COMPONENTS = {
    "cluster-autoscaler": Autoscaler.CLUSTER_AUTOSCALER,
    "karpenter": Autoscaler.KARPENTER,
    "eks-auto-mode/compute": Autoscaler.KARPENTER,
}
# Reported by autoscalers: about pods, about nodes that are removed, and about other objects.
AUTOSCALER_REASONS = frozenset(
    (
        *("NotTriggerScaleUp", "TriggeredScaleUp", "Nominated"),
        *("ScaleDown", "ScaleDownEmpty", "DisruptionTerminating"),
        *("ScaleUpFailed", "ScaleUpTimedOut", "FailedToScaleUpGroup", "MaxNodesTotalReached", "ClusterUnhealthy"),
        *("NoCompatibleInstanceTypes", "InsufficientCapacityError", "NodeClassNotReady"),
    )
)
# All other events are dropped when a snapshot is read, except the descheduler's, whose reasons are its plugins' names.
RECORDED_REASONS = frozenset(
    (
        *(PREEMPTED, FAILED_SCHEDULING, *KUBELET_REASONS, *FAILED_CREATION),
        *(*REJECTION_REASONS, *EVICTION_REASONS, *AUTOSCALER_REASONS),
    )
)
WARNING = "Warning"
_WARNINGS_ONLY = f"type={WARNING}"
# The events of every pod that starts, or of every change of a workload; they are the most frequent ones.
_ROUTINE = ("Created", "Pulled", "Pulling", "ScalingReplicaSet", "Scheduled", "Started", "SuccessfulCreate")
# The field selectors with which a live cluster lists and watches events; no event matches two of them. All warnings are
# one list, which is faster than one list per reason.
EVENT_SELECTORS = (_WARNINGS_ONLY, *(f"reason={reason},type!={WARNING}" for reason in sorted(_OTHERS)))
_SOURCE = "source="
# Those that select the other events of autoscalers.
AUTOSCALER_SELECTORS = tuple(f"{_SOURCE}{component},type!={WARNING}" for component in COMPONENTS)
# Those for requests about the ends of pods, which many programs report.
EVICTION_SELECTORS = (_WARNINGS_ONLY, ",".join((f"type!={WARNING}", *(f"reason!={each}" for each in _ROUTINE))))
_DESCHEDULER = "sigs.k8s.io.descheduler"


class EventHeader(msgspec.Struct, frozen=True, rename="camel"):
    """What decides whether an event is kept."""

    reason: str = ""
    reporting_component: str = ""
    reporting_controller: str = ""

    @property
    def is_recorded(self) -> bool:
        """Whether the event is kept."""
        reporter = self.reporting_controller or self.reporting_component
        return _is_recorded(self.reason, reporter)


def _is_recorded(reason: str, reporter: str) -> bool:
    is_of_descheduler = reporter.replace("/", ".") == _DESCHEDULER
    return reason in RECORDED_REASONS or reason.startswith(OUT_OF) or is_of_descheduler


class CreationStep(StrEnum):
    """The step of the API server that rejects a new object.

    ``Webhook`` is an admission webhook that denies the request, ``WebhookCall`` one that cannot be called.
    ``Authorization``: the controller may not create the object. ``Other``: the message has no known form.
    """

    SERVICE_ACCOUNT = "ServiceAccount"
    POD_SECURITY = "PodSecurity"
    SECURITY_CONTEXT = "SecurityContextConstraints"
    QUOTA = "ResourceQuota"
    LIMIT_RANGE = "LimitRanger"
    PRIORITY_CLASS = "PriorityClass"
    RUNTIME_CLASS = "RuntimeClass"
    WEBHOOK = "Webhook"
    WEBHOOK_CALL = "WebhookCall"
    POLICY = "ValidatingAdmissionPolicy"
    NAMESPACE = "Namespace"
    VALIDATION = "Validation"
    AUTHORIZATION = "Authorization"
    OTHER = "Other"


def counted_nodes(message: str) -> int:
    """Return the number of nodes that the scheduler's message about a pod counts; 0 if it counts none."""
    counted = _NODES_COUNTED.match(message)
    return int(counted[1]) if counted is not None else 0


class ObjectReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The object that an event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class EventSeries(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A repeated event: how often it was seen, and when last."""

    last_observed_time: Time | None = None
    count: int = 0


class EventSource(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The component that reported an event of ``v1``, on a host if it is a kubelet."""

    component: str = ""
    host: str = ""


class Event(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An event of ``v1`` or ``events.k8s.io/v1``, which have different names for the same fields.

    ``related`` is the pod that caused the event; for a victim's event, the preemptor. ``reporter`` is the component
    that reported it: for a scheduler, the name of the profile, which is the ``schedulerName`` of its pods
    (``pkg/scheduler/profile/profile.go`` of v1.36.3).
    """

    metadata: ObjectMeta = ObjectMeta()
    type: str = ""
    reason: str = ""
    involved_object: ObjectReference = ObjectReference()
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    message: str = ""
    note: str = ""
    event_time: Time | None = None
    last_timestamp: Time | None = None
    deprecated_last_timestamp: Time | None = None
    series: EventSeries | None = None
    source: EventSource = EventSource()
    deprecated_source: EventSource = EventSource()
    reporting_component: str = ""
    reporting_controller: str = ""
    count: int = 0
    deprecated_count: int = 0

    @property
    def reporter(self) -> str:
        """The component that reported the event; empty if it is unknown."""
        return (
            self.reporting_component
            or self.reporting_controller
            or self.source.component
            or self.deprecated_source.component
        )

    @property
    def times_seen(self) -> int:
        """How often the event was seen, at least once."""
        return max(self.count, self.deprecated_count, self.series.count if self.series else 0, 1)

    @property
    def subject(self) -> ObjectReference:
        """The object that the event is about."""
        return self.regarding if self.regarding.name else self.involved_object

    @property
    def host(self) -> str:
        """The node of the kubelet that reported the event; empty for other reporters, or if unknown."""
        return self.source.host or self.deprecated_source.host

    @property
    def text(self) -> str:
        """The message of the event."""
        return self.note or self.message

    @property
    def observed_at(self) -> datetime | None:
        """When the reporter last observed it, in microseconds; ``None`` if it only has seconds."""
        last = self.series.last_observed_time if self.series is not None else None
        return last or self.event_time if self.event_time is not None else None

    @property
    def last_time(self) -> datetime | None:
        """The last known time of the event; ``None`` if it has none."""
        times = (
            self.event_time,
            self.last_timestamp,
            self.deprecated_last_timestamp,
            self.series.last_observed_time if self.series else None,
            self.metadata.creation_timestamp,
        )
        return max((time for time in times if time is not None), default=None)

    @property
    def is_recorded(self) -> bool:
        """Whether the event is kept."""
        return _is_recorded(self.reason, self.reporting_controller or self.reporting_component)

    def matches(self, selector: str) -> bool:
        """Return whether one of the selectors of events selects the event."""
        if selector.startswith(_SOURCE):
            return self.type != WARNING and selector.startswith(f"{_SOURCE}{self.reporter},")
        values = {"type": self.type, "reason": self.reason}
        for term in selector.split(","):
            field, _, value = term.partition("=")
            if (values[field.rstrip("!")] == value) is field.endswith("!"):
                return False
        return True


# Events of pods.
NOT_TRIGGER_SCALE_UP = "NotTriggerScaleUp"
TRIGGERED_SCALE_UP = "TriggeredScaleUp"
NOMINATED = "Nominated"
KARPENTER_FAILED = "Failed to schedule pod, "
# Events of nodes that are being removed; Cluster Autoscaler also reports them on its status, and on pods.
SCALE_DOWN = "ScaleDown"
SCALE_DOWN_EMPTY = "ScaleDownEmpty"
DISRUPTION_TERMINATING = "DisruptionTerminating"
_KARPENTER_REASONS = frozenset(
    (NOMINATED, DISRUPTION_TERMINATING, "NoCompatibleInstanceTypes", "InsufficientCapacityError", "NodeClassNotReady")
)


def autoscaler_of(event: Event) -> Autoscaler | None:
    """Return the autoscaler that reported the event, or ``None`` for an event of another component."""
    if event.reason != FAILED_SCHEDULING and event.reason not in AUTOSCALER_REASONS:
        return None
    if event.reporter:
        return COMPONENTS.get(event.reporter)
    if event.reason == FAILED_SCHEDULING:
        return Autoscaler.KARPENTER if event.text.startswith(KARPENTER_FAILED) else None
    return Autoscaler.KARPENTER if event.reason in _KARPENTER_REASONS else Autoscaler.CLUSTER_AUTOSCALER
