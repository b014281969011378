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
# Events of these reasons are warnings; a live cluster lists all warnings once, which is faster than once per reason.
_WARNINGS = frozenset((FAILED_SCHEDULING, *KUBELET_REASONS, *FAILED_CREATION))
# Events of these reasons are not, or not always.
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
# All other events are dropped when a snapshot is read.
RECORDED_REASONS = _WARNINGS | _OTHERS | AUTOSCALER_REASONS
WARNING = "Warning"
_WARNINGS_ONLY = f"type={WARNING}"
# The field selectors with which a live cluster lists and watches events; no event matches two of them.
EVENT_SELECTORS = (_WARNINGS_ONLY, *(f"reason={reason},type!={WARNING}" for reason in sorted(_OTHERS)))
_SOURCE = "source="
# Those that select the other events of autoscalers.
AUTOSCALER_SELECTORS = tuple(f"{_SOURCE}{component},type!={WARNING}" for component in COMPONENTS)


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


class EventSource(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The reporter of an event, in its older form."""

    component: str = ""


class EventSeries(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A repeated event: how often it was seen, and when last."""

    last_observed_time: Time | None = None
    count: int = 0


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
    def text(self) -> str:
        """The message of the event."""
        return self.note or self.message

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

    def matches(self, selector: str) -> bool:
        """Return whether one of ``EVENT_SELECTORS`` selects the event."""
        if selector == _WARNINGS_ONLY:
            return self.type == WARNING
        if selector.startswith(_SOURCE):
            return self.type != WARNING and selector.startswith(f"{_SOURCE}{self.reporter},")
        return self.type != WARNING and selector.startswith(f"reason={self.reason},")


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
