"""What controllers have in common: pods as they see them, what they do next, what stops them, and facts of a version.

A caller carries actions out in their order, and then asks again. Amounts that are a number or a percentage of another
number follow ``k8s.io/apimachinery`` v0.36.3 ``pkg/util/intstr/intstr.go`` (``GetScaledValueFromIntOrPercent``). Which
pods are active, ready and available follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/controller_utils.go``,
``pkg/api/v1/pod/util.go`` and ``pkg/apis/core/helper/helpers.go`` (``GetDeletionCostFromPodAnnotations``).

The facts have the names that ``kpreempt/schedulers/kube/versions.py`` gives them; what each stands for says
``changes.py`` there. ``kpreempt/analysis/algorithms.py`` hands them on. The defaults are those of Kubernetes 1.36.
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
from kpreempt.model.workloads import TEMPLATE_HASH_LABEL

# Why a pod is deleted: its owner is too big, has another template by now, or another pod is in its place; it has
# finished; its node is none of its owner's; its Job has finished, or is suspended.
DeletionReason = Literal["scale-down", "update", "duplicate", "finished", "misplaced", "job-finished", "job-suspended"]


class CreatePods(msgspec.Struct, frozen=True, omit_defaults=True):
    """``count`` pods are made, all alike. Of those with an identity there is one: a name, a node or an index.

    ``name`` is that of a StatefulSet's pod, ``node_name`` where a DaemonSet's has to go, ``index`` the completion that
    a Job's pod works on. ``revision`` names the template, where the controller chooses between two.
    """

    count: int = 1
    name: str = ""
    node_name: str = ""
    index: int | None = None
    revision: str = ""


class DeletePod(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod is asked to end; it is gone after its grace period and without finalizers."""

    name: str
    reason: DeletionReason


class ReleasePod(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Job takes its finalizer off a pod that it has counted."""

    name: str


class CreateReplicaSet(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Deployment makes a ReplicaSet of its present template, with ``replicas`` pods.

    ``desired_replicas`` and ``max_replicas`` are what the controller notes on it: the Deployment's size, without and
    with the surge.
    """

    replicas: int
    desired_replicas: int
    max_replicas: int


class ScaleReplicaSet(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Deployment gives one of its ReplicaSets ``replicas`` pods, and notes its own size on it, as above."""

    name: str
    replicas: int
    desired_replicas: int
    max_replicas: int


Action = CreatePods | DeletePod | ReleasePod | CreateReplicaSet | ScaleReplicaSet


class SyncError(KpreemptError):
    """A controller cannot go on with an object, and upstream's would try again and again; the message says why.

    ``controllers_words`` is what the controller itself would say, where that is known, and else the message. Where it
    depends on the order of a Go map, ``any_of`` has all that it may say.
    """

    def __init__(self, message: str, *, controllers_words: str = "", any_of: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.controllers_words = controllers_words or message
        self.any_of = any_of


# A sign and the digits of an int64; longer texts are numbers that upstream cannot read, or zeros in a row.
_LONGEST_NUMBER = 20
_MOST_SHOWN = 40


def scaled_value(amount: int | str, total: int, *, round_up: bool) -> int:
    """``amount`` itself where it is a number, or that percentage of ``total``, rounded to a whole number.

    Raises ``SyncError`` for a text that is no percentage.
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
        shown = amount if len(amount) <= _MOST_SHOWN else f"{amount[:_MOST_SHOWN]}…"
        raise SyncError(
            f'"{shown}" is not a percentage',
            controllers_words=f"invalid value for IntOrString: {problem}",
        )
    return -(-percent * total // 100) if round_up else percent * total // 100


class ControllerRules(NamedTuple):
    """What the controllers of one version do otherwise than those of another."""

    counts_replaced_daemon_pods: bool = True
    counts_restarts_of_sidecars: bool = True
    job_managed_by: bool = True
    job_success_policy: bool = True
    keeps_jobs_until_their_pods_end: bool = True
    max_unavailable_stateful_set: bool = False
    pod_topology_labels_admission: bool = True
    updates_unavailable_pods_first: bool = False
    waits_for_min_ready_seconds: bool = True


USUAL = ControllerRules()


REVISION_LABEL = "controller-revision-hash"
COMPLETION_INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
JOB_FINALIZER = "batch.kubernetes.io/job-tracking"
_MOST_DIGITS = 19
_LONGEST_COST = 11
_SECOND = timedelta(seconds=1)


class ControlledPod(msgspec.Struct, frozen=True, omit_defaults=True):
    """What controllers look at in a pod. Empty texts and ``None`` are what is not known or not there.

    ``ready_since`` is when the condition Ready last became what it is. ``tied_to`` is the one node that a DaemonSet's
    pod asks for. ``revision`` names the template that it was made from. ``index`` is a Job's completion index, and
    ``is_tracked`` whether the Job's finalizer is on it: without, the Job has counted the pod already. ``conditions``
    are types with their status, ``exit_codes`` the containers that have ended with the codes that they ended with, and
    ``finished_at`` is when the last of them did.
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
        """Whether its phase is Succeeded or Failed."""
        return self.phase in TERMINAL_PHASES

    @property
    def is_active(self) -> bool:
        """Whether it has neither finished nor been told to end."""
        return not self.has_finished and not self.is_terminating

    @property
    def target_node(self) -> str:
        """The node that it is on, or has to go to."""
        return self.node_name or self.tied_to

    def is_available(self, min_ready_seconds: int, now: datetime) -> bool:
        """Whether it has been ready for so long."""
        if not self.is_ready or min_ready_seconds == 0:
            return self.is_ready
        return self.ready_since is not None and (now - self.ready_since) // _SECOND >= min_ready_seconds


def controlled_pod(pod: Pod, rules: ControllerRules = USUAL) -> ControlledPod:
    """``pod`` as the controllers of a version see it."""
    ready = ready_condition(pod)
    # How often the container that did so most often began anew, and the sidecar that did.
    status = pod.status
    sidecars = {each.name for each in pod.spec.init_containers if each.restart_policy == "Always"}
    restarts = max((each.restart_count for each in status.container_statuses), default=0)
    of_sidecars = (each.restart_count for each in status.init_container_statuses if each.name in sidecars)
    text = pod.metadata.labels.get(COMPLETION_INDEX_LABEL, "")
    index = parse_int64(text) if len(text) <= _MOST_DIGITS else None
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
    """The condition Ready, of which the first counts."""
    return next((condition for condition in pod.status.conditions if condition.type == "Ready"), None)


def is_ready(pod: Pod) -> bool:
    """Whether its condition Ready is there and true."""
    ready = ready_condition(pod)
    return ready is not None and ready.status == "True"


def deployment_told_of(pod: Pod, replica_set: str) -> str:
    """The Deployment that names its ReplicaSets so, by the hash that the pod bears; empty where it is none such."""
    ending = f"-{pod.metadata.labels.get(TEMPLATE_HASH_LABEL, '')}"
    return replica_set.removesuffix(ending) if len(ending) > 1 and replica_set.endswith(ending) else ""


def tied_node(pod: Pod) -> str:
    """The node that required affinity asks for by name, as a DaemonSet's pod does; else an empty text."""
    return tied_node_of(pod.spec.affinity)


def active_pods(pods: Iterable[ControlledPod]) -> list[ControlledPod]:
    """Those that count as a replica: neither finished nor told to end."""
    return [pod for pod in pods if pod.is_active]


def deletion_cost(annotation: str) -> int:
    """What ``controller.kubernetes.io/pod-deletion-cost`` says: an int32 without plus and leading zeros, or else 0."""
    if len(annotation) > _LONGEST_COST or not (annotation == "0" or annotation[:1] in tuple("-123456789")):
        return 0
    cost = parse_int64(annotation)
    return cost if cost is not None and -(2**31) <= cost < 2**31 else 0


def _finished_at(pod: Pod, ready: PodCondition | None) -> datetime | None:
    """When it ended, as a Job reckons it; the model knows nothing of its containers' ends."""
    if ready is not None and ready.status == "False" and ready.last_transition_time is not None:
        return ready.last_transition_time
    deleted = pod.metadata.deletion_timestamp
    if deleted is None:
        return pod.metadata.creation_timestamp
    try:
        return deleted - timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)
    except OverflowError:
        return deleted
