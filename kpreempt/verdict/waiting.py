"""Why a pod is still pending: what the scheduler waits for, or what keeps a pod that has a node from running."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kpreempt.verdict.base import Record


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
    it. ``differences`` are what a new pod like it would have instead.
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
