"""Shared parts of controllers: their view of pods, actions, errors, and differences between versions.

A caller applies actions in order, and then calls again. Amounts that are a number or a percentage follow
``k8s.io/apimachinery`` v0.36.3 ``pkg/util/intstr/intstr.go`` (``GetScaledValueFromIntOrPercent``). Which pods are
active, ready and available follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/controller_utils.go``,
``pkg/api/v1/pod/util.go`` and ``pkg/apis/core/helper/helpers.go`` (``GetDeletionCostFromPodAnnotations``).

The version facts have the names used in ``kpreempt/schedulers/kube/versions.py`` and are explained in ``changes.py``
there; ``kpreempt/analysis/algorithms.py`` passes them on. The defaults are those of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

import msgspec

from kpreempt.errors import KpreemptError
from kpreempt.model.affinity import tied_node_of
from kpreempt.model.labels import parse_int64
from kpreempt.model.pod import TERMINAL_PHASES, Pod, PodCondition
from kpreempt.model.workloads import deployment_name

# Why a pod is deleted: its owner is too big, its template is outdated, or another pod took its place; it has finished;
# its node is not one of its owner's; its Job has finished or is suspended.
DeletionReason = Literal["scale-down", "update", "duplicate", "finished", "misplaced", "job-finished", "job-suspended"]


class CreatePods(msgspec.Struct, frozen=True, omit_defaults=True):
    """Create ``count`` equal pods. Pods with an identity (a name, a node or an index) are created one by one.

    ``name`` is that of a StatefulSet's pod, ``node_name`` the node of a DaemonSet's pod, ``index`` the completion index
    of a Job's pod. ``revision`` names the template if the controller chooses between two.
    """

    count: int = 1
    name: str = ""
    node_name: str = ""
    index: int | None = None
    revision: str = ""


class DeletePod(msgspec.Struct, frozen=True, omit_defaults=True):
    """Delete a pod, which is gone after its grace period and without finalizers."""

    name: str
    reason: DeletionReason


class ReleasePod(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Job removes its finalizer from a pod that it has counted."""

    name: str


class CreateReplicaSet(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Deployment creates a ReplicaSet of its current template, with ``replicas`` pods.

    ``desired_replicas`` and ``max_replicas`` are the annotations that the controller sets: the Deployment's size,
    without and with the surge.
    """

    replicas: int
    desired_replicas: int
    max_replicas: int


class ScaleReplicaSet(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Deployment scales one of its ReplicaSets to ``replicas`` pods, and updates its annotations."""

    name: str
    replicas: int
    desired_replicas: int
    max_replicas: int


Action = CreatePods | DeletePod | ReleasePod | CreateReplicaSet | ScaleReplicaSet


class SyncError(KpreemptError):
    """A controller cannot proceed with an object, and upstream would retry forever; the message says why.

    ``controllers_words`` is the controller's own message if known, otherwise the message. If it depends on the order of
    a Go map, ``any_of`` has all possible messages.
    """

    def __init__(self, message: str, *, controllers_words: str = "", any_of: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.controllers_words = controllers_words or message
        self.any_of = any_of


# A sign and the digits of an int64; longer texts are unreadable numbers upstream, or have leading zeros.
_LONGEST_NUMBER = 20
_MAX_SHOWN = 40


def scaled_value(amount: int | str, total: int, *, round_up: bool) -> int:
    """Return ``amount`` if it is a number, otherwise that percentage of ``total``, rounded to an integer.

    Raises ``SyncError`` for a text that is not a percentage.
    """
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%")
    percent = parse_int64(digits) if digits != amount and len(digits) <= _LONGEST_NUMBER else None
    if percent is None:
        problem = "invalid type: string is not a percentage"
        if digits != amount:
            why = "value out of range" if digits.lstrip("+-").isdecimal() and digits.isascii() else "invalid syntax"
            problem = f'invalid value "{amount}": strconv.Atoi: parsing "{digits}": {why}'
        shown = amount if len(amount) <= _MAX_SHOWN else f"{amount[:_MAX_SHOWN]}…"
        raise SyncError(
            f'"{shown}" is not a percentage',
            controllers_words=f"invalid value for IntOrString: {problem}",
        )
    return -(-percent * total // 100) if round_up else percent * total // 100


class ControllerRules(NamedTuple):
    """Differences between versions in the behavior of controllers."""

    counts_replaced_daemon_pods: bool = True
    counts_restarts_of_sidecars: bool = True
    job_managed_by: bool = True
    job_success_policy: bool = True
    keeps_jobs_until_their_pods_end: bool = True
    max_unavailable_stateful_set: bool = False
    pod_topology_labels_admission: bool = True
    updates_unavailable_pods_first: bool = False
    waits_for_min_ready_seconds: bool = True


DEFAULT_RULES = ControllerRules()


REVISION_LABEL = "controller-revision-hash"
COMPLETION_INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
JOB_FINALIZER = "batch.kubernetes.io/job-tracking"
_MAX_DIGITS = 19
_LONGEST_COST = 11
_SECOND = timedelta(seconds=1)


class ControlledPod(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a pod that controllers read. Empty strings and ``None`` mean unknown or missing.

    ``ready_since`` is the last transition of the Ready condition. ``tied_to`` is the only node that a DaemonSet's pod
    selects. ``revision`` names the template it was created from. ``index`` is a Job's completion index, and
    ``is_tracked`` whether the Job's finalizer is present: without it, the Job has already counted the pod.
    ``conditions`` are types with their status, ``exit_codes`` the exit codes of terminated containers, and
    ``finished_at`` is when the last of them terminated.
    """

    name: str
    uid: str = ""
    phase: str = "Pending"
    node_name: str = ""
    tied_to: str = ""
    is_ready: bool = False
    ready_since: datetime | None = None
    created: datetime | None = None
    is_terminating: bool = False
    revision: str = ""
    deletion_cost: int = 0
    restarts: int = 0
    sidecar_restarts: int = 0
    index: int | None = None
    is_tracked: bool = False
    exit_codes: tuple[tuple[str, int], ...] = ()
    finished_at: datetime | None = None
    conditions: tuple[tuple[str, str], ...] = ()

    @property
    def has_finished(self) -> bool:
        """Whether the phase is Succeeded or Failed."""
        return self.phase in TERMINAL_PHASES

    @property
    def is_active(self) -> bool:
        """Whether the pod has neither finished nor is terminating."""
        return not self.has_finished and not self.is_terminating

    @property
    def target_node(self) -> str:
        """The node that the pod is on or must go to."""
        return self.node_name or self.tied_to

    def is_available(self, min_ready_seconds: int, now: datetime) -> bool:
        """Return whether the pod has been ready for ``min_ready_seconds``."""
        if not self.is_ready or min_ready_seconds == 0:
            return self.is_ready
        return self.ready_since is not None and (now - self.ready_since) // _SECOND >= min_ready_seconds


def controlled_pod(pod: Pod, rules: ControllerRules = DEFAULT_RULES) -> ControlledPod:
    """Return ``pod`` as the controllers of a version see it."""
    ready = ready_condition(pod)
    # The highest restart count of a container and of a sidecar.
    status = pod.status
    sidecars = {each.name for each in pod.spec.init_containers if each.restart_policy == "Always"}
    restarts = max((each.restart_count for each in status.container_statuses), default=0)
    of_sidecars = (each.restart_count for each in status.init_container_statuses if each.name in sidecars)
    text = pod.metadata.labels.get(COMPLETION_INDEX_LABEL, "")
    index = parse_int64(text) if len(text) <= _MAX_DIGITS else None
    annotations = pod.metadata.annotations
    return ControlledPod(
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        phase=pod.status.phase,
        node_name=pod.spec.node_name,
        tied_to=tied_node(pod),
        is_ready=is_ready(pod),
        ready_since=ready.last_transition_time if ready is not None else None,
        created=pod.metadata.creation_timestamp,
        is_terminating=pod.metadata.deletion_timestamp is not None,
        revision=pod.metadata.labels.get(REVISION_LABEL, ""),
        deletion_cost=deletion_cost(annotations.deletion_cost) if annotations is not None else 0,
        restarts=restarts,
        sidecar_restarts=max(of_sidecars, default=0) if rules.counts_restarts_of_sidecars else 0,
        index=index if index is not None and index >= 0 else None,
        is_tracked=JOB_FINALIZER in pod.metadata.finalizers,
        finished_at=_finished_at(pod, ready),
        conditions=tuple((condition.type, condition.status) for condition in pod.status.conditions),
    )


def ready_condition(pod: Pod) -> PodCondition | None:
    """Return the first Ready condition."""
    return next((condition for condition in pod.status.conditions if condition.type == "Ready"), None)


def is_ready(pod: Pod) -> bool:
    """Return whether the Ready condition is present and true."""
    ready = ready_condition(pod)
    return ready is not None and ready.status == "True"


def deployment_of(pod: Pod, replica_set: str) -> str:
    """Return the Deployment of a ReplicaSet, by the pod's template hash; empty if the name does not match."""
    return deployment_name(pod.metadata.labels, replica_set)


def tied_node(pod: Pod) -> str:
    """Return the node that required affinity names, as in a DaemonSet's pod, or an empty string."""
    return tied_node_of(pod.spec.affinity)


def active_pods(pods: Iterable[ControlledPod]) -> list[ControlledPod]:
    """Return the pods that count as replicas: neither finished nor terminating."""
    return [pod for pod in pods if pod.is_active]


def deletion_cost(annotation: str) -> int:
    """Parse ``controller.kubernetes.io/pod-deletion-cost``: an int32 without plus sign or leading zeros, else 0."""
    if len(annotation) > _LONGEST_COST or not (annotation == "0" or annotation[:1] in tuple("-123456789")):
        return 0
    cost = parse_int64(annotation)
    return cost if cost is not None and -(2**31) <= cost < 2**31 else 0


def _finished_at(pod: Pod, ready: PodCondition | None) -> datetime | None:
    """Return when the pod finished, as a Job computes it; the model does not have container end times."""
    if ready is not None and ready.status == "False" and ready.last_transition_time is not None:
        return ready.last_transition_time
    deleted = pod.metadata.deletion_timestamp
    if deleted is None:
        return pod.metadata.creation_timestamp
    try:
        return deleted - timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)
    except OverflowError:
        return deleted
