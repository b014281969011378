"""The status that the disruption controller sets on a PodDisruptionBudget.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/disruption/disruption.go`` (``trySync``, ``failSafe``).

The desired number of pods of the owners follows ``getExpectedScale`` and its finders there: a ReplicaSet counts as its
Deployment if it has one; pods without an owner count nothing. Difference: an owner that is not in the input is assumed
to have the size of its pod count, which ``Scale`` records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import cached_property

import msgspec

from kpreempt.controllers.actions import SyncError, is_ready, scaled_value
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelIndex
from kpreempt.model.meta import OwnerReference, Time, controller_of, grouped
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kpreempt.model.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet

# How long a pod counts as disrupted after its eviction was granted, without being deleted.
DELETION_TIMEOUT = timedelta(minutes=2)
_OVER = timedelta.max


class Selected(msgspec.Struct, frozen=True):
    """The pods that a budget selects, and how many of them are ready and not terminating."""

    pods: Sequence[Pod]
    num_healthy: int

    @classmethod
    def among(cls, pods: Sequence[Pod]) -> Selected:
        """Build from these pods."""
        return cls(pods, sum(map(_is_healthy, pods)))


class Candidates:
    """Pods, indexed for the budgets of their namespace."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._pods = grouped(pods, lambda pod: pod.metadata.namespace)
        # Each pod is evaluated once, regardless of how many budgets select it.
        self._indexes: dict[str, tuple[LabelIndex, list[bool]]] = {}

    def of(self, budget: PodDisruptionBudget) -> Selected:
        """Return the pods that the budget selects, in order; an empty selector selects all, a missing one none."""
        selector, namespace = budget.spec.selector, budget.metadata.namespace
        pods = self._pods.get(namespace, [])
        if selector is None:
            return Selected((), 0)
        if namespace not in self._indexes:
            index = LabelIndex(pod.metadata.labels for pod in pods)
            self._indexes[namespace] = index, [_is_healthy(pod) for pod in pods]
        index, are_healthy = self._indexes[namespace]
        matching = index.matching(selector)
        return Selected([pods[each] for each in matching], sum(map(are_healthy.__getitem__, matching)))


class BudgetSync(msgspec.Struct, frozen=True):
    """A budget's new status, and the workloads whose sizes it was computed from, if any."""

    status: PodDisruptionBudgetStatus
    scales: list[Scale]


def sync_budget(budget: PodDisruptionBudget, selected: Selected, scale_of: ScaleOf, now: datetime | None) -> BudgetSync:
    """Return the budget's status with the pods that it selects, as returned by ``Candidates``.

    ``now`` expires granted evictions; without it there are none. Raises ``SyncError`` if the controller would fail: the
    status is then that of ``failed_status``.
    """
    if budget.spec.selector is not None and not budget.spec.selector.is_valid():
        raise SyncError("its selector is invalid")
    spec, scales = budget.spec, list[Scale]()
    expected = 0 if spec.min_available is None else len(selected.pods)
    if needs_scale(spec):
        scales = owner_scales(selected.pods, scale_of)
        expected = sum(scale.replicas for scale in scales)
    desired = desired_healthy(spec, expected)
    granted = _granted_evictions(budget, selected.pods, now)
    healthy = selected.num_healthy
    if granted:
        going = (pod for pod in selected.pods if granted.get(pod.metadata.name, _OVER) < DELETION_TIMEOUT)
        healthy -= sum(map(_is_healthy, going))
    disrupted = {name: budget.status.disrupted_pods[name] for name in granted} if budget.status is not None else {}
    status = PodDisruptionBudgetStatus(
        disruptions_allowed=disruptions_allowed(healthy, desired, expected),
        disrupted_pods=disrupted,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        observed_generation=budget.metadata.generation,
    )
    return BudgetSync(status=status, scales=scales)


def failed_status(budget: PodDisruptionBudget) -> PodDisruptionBudgetStatus:
    """Return the status after a failure: the previous one, but without allowed disruptions."""
    return msgspec.structs.replace(budget.status or PodDisruptionBudgetStatus(), disruptions_allowed=0)


def needs_scale(spec: PodDisruptionBudgetSpec) -> bool:
    """Return whether the controller needs the desired sizes of owners; otherwise it counts the existing pods."""
    return spec.max_unavailable is not None or isinstance(spec.min_available, str)


def desired_healthy(spec: PodDisruptionBudgetSpec, expected: int) -> int:
    """Return how many of the expected pods must stay healthy, percentages rounded up; all for an empty spec.

    Raises ``SyncError`` for a text that is not a percentage.
    """
    if spec.max_unavailable is not None:
        return max(expected - scaled_value(spec.max_unavailable, expected, round_up=True), 0)
    return expected if spec.min_available is None else scaled_value(spec.min_available, expected, round_up=True)


def disruptions_allowed(healthy: int, desired: int, expected: int) -> int:
    """Return the disruptions allowed now: healthy pods above the desired number; 0 if no pods are expected."""
    return max(healthy - desired, 0) if expected > 0 else 0


def _granted_evictions(budget: PodDisruptionBudget, pods: Iterable[Pod], now: datetime | None) -> dict[str, timedelta]:
    """Return the granted evictions of pods that are not terminating yet, with their age."""
    granted: dict[str, timedelta] = {}
    if budget.status is None or not budget.status.disrupted_pods or now is None:
        return granted
    times = budget.status.disrupted_pods
    for pod in pods:
        text = times.get(pod.metadata.name)
        if text is None or pod.metadata.deletion_timestamp is not None:
            continue
        try:
            since = now - msgspec.convert(text, Time)
        except msgspec.ValidationError:
            raise SyncError(f"the time in status.disruptedPods of pod {pod.key} is invalid") from None
        # At exactly the deadline a pod is still listed, but counts as healthy.
        if since <= DELETION_TIMEOUT:
            granted[pod.metadata.name] = since
    return granted


def _is_healthy(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and is_ready(pod)


_Workload = ReplicaSet | Deployment | StatefulSet | ReplicationController
_Key = tuple[str, str, str]

# Owners without a size, with the resource that upstream names in its error.
WITHOUT_SCALE = {
    ("apps", "DaemonSet"): "daemonsets.apps",
    ("batch", "Job"): "jobs.batch",
    ("batch", "CronJob"): "cronjobs.batch",
    ("", "Node"): "nodes",
    ("", "Pod"): "pods",
}


class Scale(msgspec.Struct, frozen=True):
    """The desired size of a workload; ``is_guessed`` if it is the number of existing pods."""

    namespace: str
    kind: str
    name: str
    replicas: int
    is_guessed: bool = False


# The workload that an owner in a namespace counts as, or ``None``; raises ``SyncError`` if it has no size.
ScaleOf = Callable[[str, OwnerReference], Scale | None]


def owner_scales(pods: Iterable[Pod], scale_of: ScaleOf) -> list[Scale]:
    """Return each workload that ``pods`` belong to, once, in order.

    Raises ``SyncError`` for a pod whose owner has no size.
    """
    scales: dict[Scale, None] = {}
    seen: set[tuple[str, str, str, str]] = set()
    errors: list[SyncError] = []
    for pod in pods:
        owner = controller_of(pod.metadata)
        if owner is None:
            continue
        key = (pod.metadata.namespace, owner.kind, owner.name, owner.uid)
        if key in seen:
            continue
        try:
            if resource := WITHOUT_SCALE.get((owner.api_version.rpartition("/")[0], owner.kind)):
                raise SyncError(
                    f"pod {pod.key} belongs to {owner.kind} {owner.name}, which has no scale",
                    controllers_words=f"{resource} does not implement the scale subresource",
                )
            scale = scale_of(pod.metadata.namespace, owner)
            if scale is None:
                raise SyncError(f'found no controllers for pod "{pod.metadata.name}"')
            scales[scale] = None
            seen.add(key)
        except SyncError as error:
            errors.append(error)
    if errors:
        # Upstream's pods are unordered; it reports the first that fails.
        messages = tuple(dict.fromkeys(error.controllers_words for error in errors))
        raise SyncError(errors[0].message, controllers_words=messages[0], any_of=messages if len(messages) > 1 else ())
    return list(scales)


class Scales:
    """The sizes of a cluster's workloads."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._cluster = cluster

    def scale_of(self, namespace: str, owner: OwnerReference) -> Scale:
        """Return the workload that ``owner`` counts as: itself, or the Deployment that it belongs to."""
        workload = self._find((namespace, owner.kind, owner.name), owner.uid)
        if workload is None:
            pods = self._pods_by_owner[namespace, owner.kind, owner.name]
            return Scale(namespace, owner.kind, owner.name, pods, is_guessed=True)
        above = controller_of(workload.metadata)
        if owner.kind == "ReplicaSet" and above is not None and above.kind == "Deployment":
            deployment = self._find((namespace, above.kind, above.name), above.uid)
            if deployment is not None:
                return Scale(namespace, above.kind, above.name, _replicas(deployment))
        return Scale(namespace, owner.kind, owner.name, _replicas(workload))

    def _find(self, key: _Key, uid: str) -> _Workload | None:
        workload = self._workloads.get(key)
        return workload if workload is not None and workload.metadata.uid == uid else None

    @cached_property
    def _workloads(self) -> dict[_Key, _Workload]:
        cluster = self._cluster
        kinds: tuple[tuple[str, Iterable[_Workload]], ...] = (
            ("ReplicaSet", cluster.replica_sets),
            ("Deployment", cluster.deployments),
            ("StatefulSet", cluster.stateful_sets),
            ("ReplicationController", cluster.replication_controllers),
        )
        return {(each.metadata.namespace, kind, each.metadata.name): each for kind, group in kinds for each in group}

    @cached_property
    def _pods_by_owner(self) -> Counter[_Key]:
        owners = ((pod.metadata.namespace, controller_of(pod.metadata)) for pod in self._cluster.pods)
        return Counter((namespace, owner.kind, owner.name) for namespace, owner in owners if owner is not None)


def _replicas(workload: _Workload) -> int:
    return 1 if workload.spec.replicas is None else workload.spec.replicas
