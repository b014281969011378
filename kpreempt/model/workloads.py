"""Namespaces, runtime classes, limit ranges, services and the controllers that own pods."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kpreempt.model.event import FAILED_CREATION
from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS, Few, Many
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import AnnotatedMeta, Keyed, ObjectMeta, Time
from kpreempt.model.pod import ResourceList
from kpreempt.model.taints import Toleration

TEMPLATE_HASH_LABEL = "pod-template-hash"


def deployment_name(labels: Mapping[str, str], replica_set: str) -> str:
    """Return the Deployment of a ReplicaSet, by the template hash in its pods' labels; empty if it does not match."""
    ending = f"-{labels.get(TEMPLATE_HASH_LABEL, '')}"
    return replica_set.removesuffix(ending) if len(ending) > 1 and replica_set.endswith(ending) else ""


class NamespaceStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Whether a namespace is being deleted."""

    phase: str = "Active"


class Namespace(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A namespace; namespace selectors match its labels, and an annotation names its Volcano queue."""

    metadata: AnnotatedMeta = AnnotatedMeta()
    status: NamespaceStatus = NamespaceStatus()

    @property
    def is_terminating(self) -> bool:
        """Whether it is being deleted, so that no objects can be created in it."""
        return self.status.phase == "Terminating" or self.metadata.deletion_timestamp is not None


class Overhead(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The resources that running a pod consumes in addition to its containers."""

    pod_fixed: ResourceList = NO_ENTRIES


class RuntimeClassScheduling(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The nodes on which pods of a runtime class can run."""

    node_selector: dict[str, str] = NO_ENTRIES
    tolerations: Few[Toleration] = NO_ITEMS


class RuntimeClass(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A container runtime, with the overhead and placement that admission adds to its pods."""

    metadata: ObjectMeta = ObjectMeta()
    handler: str = ""
    overhead: Overhead | None = None
    scheduling: RuntimeClassScheduling | None = None


class LimitRangeItem(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Defaults and bounds for one type of object."""

    type: str = ""
    default: ResourceList = NO_ENTRIES
    default_request: ResourceList = NO_ENTRIES
    min: ResourceList = NO_ENTRIES
    max: ResourceList = NO_ENTRIES
    max_limit_request_ratio: ResourceList = NO_ENTRIES


class LimitRangeSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The items of a limit range."""

    limits: Few[LimitRangeItem] = NO_ITEMS


class LimitRange(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Defaults for requests and limits in a namespace."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()


class ScopeRequirement(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One expression of the scopes of a quota, as ``PriorityClass In [high]``."""

    scope_name: str = ""
    operator: str = ""
    values: Many[str] = NO_ITEMS


class ScopeSelector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The pods that a quota counts; all expressions must hold."""

    match_expressions: Few[ScopeRequirement] = NO_ITEMS


class ResourceQuotaSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The limits of a quota, and the pods that it counts."""

    hard: ResourceList = NO_ENTRIES
    scopes: Few[str] = NO_ITEMS
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The limits that are in effect, and how much of them is used."""

    hard: ResourceList = NO_ENTRIES
    used: ResourceList = NO_ENTRIES


class ResourceQuota(Keyed, msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Limits for everything in a namespace."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()

    @property
    def limits(self) -> ResourceList:
        """The limits that the API server enforces: the status's, or the spec's if no controller has seen the quota."""
        return self.status.hard or self.spec.hard


class ServiceSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The pods that a service selects."""

    selector: dict[str, str] = NO_ENTRIES


class Service(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A service; default spreading uses its selector."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()

    def selects(self, pod: ObjectMeta) -> bool:
        """Whether it selects a pod; without a selector, it selects nothing."""
        selector = self.spec.selector
        is_near = pod.namespace == self.metadata.namespace
        return is_near and bool(selector) and selector.items() <= pod.labels.items()


class WorkloadCondition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a controller reports about a workload, such as ``ReplicaFailure``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None

    @property
    def explains_missing_pods(self) -> bool:
        """Whether it says why there are fewer pods than desired; dumps keep the message only then."""
        return is_about_missing_pods(self.type, self.reason)


def is_about_missing_pods(condition: str, reason: str) -> bool:
    """Whether a condition of this type and reason says why a workload has fewer pods than desired."""
    return condition in ("ReplicaFailure", "Failed") or reason in FAILED_CREATION


class WorkloadStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What the controller reported last; it had seen the workload's ``observed_generation``.

    ``replicas`` are the pods that are neither finished nor terminating, except for a StatefulSet, which counts all.
    """

    observed_generation: int = 0
    replicas: int = 0
    conditions: Few[WorkloadCondition] = NO_ITEMS


class ReplicationControllerSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A replication controller's selector is a plain map."""

    selector: dict[str, str] = NO_ENTRIES
    replicas: int | None = None


class ReplicationController(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: WorkloadStatus = WorkloadStatus()


class WorkloadSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Selector and size of a workload; ``replicas`` None means one."""

    selector: LabelSelector | None = None
    replicas: int | None = None


class _Workload(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class ReplicaSet(_Workload, frozen=True):
    """A number of equal pods."""


class Ordinals(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The number of a StatefulSet's first pod."""

    start: int = 0


class StatefulSetSpec(WorkloadSpec, frozen=True, rename="camel", omit_defaults=True):
    """An empty ``pod_management_policy`` means ``OrderedReady``: a pod is created once the earlier ones are ready."""

    pod_management_policy: str = ""
    ordinals: Ordinals | None = None


class StatefulSet(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Pods with stable identities, created one after another."""

    metadata: ObjectMeta = ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: WorkloadStatus = WorkloadStatus()


class RollingUpdate(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How many pods a rollout may remove or add at a time, as numbers or percentages; ``None`` means 25%."""

    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class DeploymentStrategy(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How new pods replace old ones; an empty type means ``RollingUpdate``."""

    type: str = ""
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(WorkloadSpec, frozen=True, rename="camel", omit_defaults=True):
    """A workload with a strategy; while it is ``paused``, its rollout is."""

    strategy: DeploymentStrategy | None = None
    paused: bool = False


class Deployment(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """ReplicaSets that replace each other in a rollout."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: WorkloadStatus = WorkloadStatus()


class DaemonSetStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The numbers of nodes that should have a pod, and of those that have one."""

    observed_generation: int = 0
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0


class DaemonSet(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A pod for each node that it selects."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class JobSpec(WorkloadSpec, frozen=True, rename="camel", omit_defaults=True):
    """How many pods a Job runs at a time (``None``: one) and in total, and whether it may.

    ``managed_by`` names the controller that creates its pods, if it is not the Job controller.
    """

    parallelism: int | None = None
    completions: int | None = None
    suspend: bool = False
    managed_by: str = ""


class JobStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The numbers of a Job's pods by result, and whether it has finished."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    start_time: Time | None = None
    conditions: Few[WorkloadCondition] = NO_ITEMS


class Job(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Pods that run to completion."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()
