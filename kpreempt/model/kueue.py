"""Kueue's objects, with the fields that its scheduler reads.

They match ``sigs.k8s.io/kueue`` v0.19.2 ``apis/kueue/v1beta2``. If ``v1beta1`` has another name for a field, both are
declared, and a property returns the one that is set.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS, Few, Many
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import AnnotatedMeta, Keyed, ObjectMeta, Time
from kpreempt.model.pod import Int32, PodSpec, ResourceList
from kpreempt.model.quantity import Quantity
from kpreempt.model.taints import Taint, Toleration

KUEUE_GROUP = "kueue.x-k8s.io"
# The label with the LocalQueue that should admit an object.
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
# The equivalent label that Kueue sets on pods.
LOCAL_QUEUE_LABEL = "kueue.x-k8s.io/local-queue-name"
# Label of pods of admitted Workloads, whatever the integration (``pkg/constants`` of Kueue v0.19.2).
ADMITTED_LABELS = ("kueue.x-k8s.io/podset", LOCAL_QUEUE_LABEL, "kueue.x-k8s.io/managed", QUEUE_LABEL)
PRIORITY_BOOST = "kueue.x-k8s.io/priority-boost"
ADMISSION_GATED_BY = "kueue.x-k8s.io/admission-gated-by"
ELASTIC = "kueue.x-k8s.io/elastic-job"
JOB_UID_LABEL = "kueue.x-k8s.io/job-uid"

_MAY_STOP_SEARCH = "MayStopSearch"
_V1BETA1_FUNGIBILITY = {"": "", "Borrow": _MAY_STOP_SEARCH, "Preempt": _MAY_STOP_SEARCH}


class ResourceQuota(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The quota of a resource in a flavor. ``None`` means no limit."""

    name: str = ""
    nominal_quota: Quantity = Quantity("0")
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuotas(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A flavor of a resource group, with its quotas."""

    name: str = ""
    resources: Few[ResourceQuota] = NO_ITEMS


class ResourceGroup(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Resources that get the same flavor, and the flavors in the order in which they are tried."""

    covered_resources: Few[str] = NO_ITEMS
    flavors: Few[FlavorQuotas] = NO_ITEMS


class FairSharing(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The weight in fair sharing; ``None`` is 1."""

    weight: Quantity | None = None


class CohortSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The content of a cohort; ``parent`` is v1beta1's name of ``parent_name``."""

    parent_name: str = ""
    parent: str = ""
    resource_groups: Few[ResourceGroup] = NO_ITEMS
    fair_sharing: FairSharing = FairSharing()


class Cohort(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A node of the quota tree that has ClusterQueues and cohorts below it."""

    metadata: AnnotatedMeta = AnnotatedMeta()
    spec: CohortSpec = CohortSpec()

    @property
    def parent(self) -> str:
        """The parent cohort, or an empty string."""
        return self.spec.parent_name or self.spec.parent


class BorrowWithinCohort(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Whether preemption is allowed while borrowing."""

    policy: str = "Never"
    max_priority_threshold: Int32 | None = None


class ClusterQueuePreemption(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which Workloads the Workloads of a ClusterQueue may preempt."""

    within_cluster_queue: str = "Never"
    reclaim_within_cohort: str = "Never"
    borrow_within_cohort: BorrowWithinCohort | None = None

    @property
    def may_borrow(self) -> bool:
        """Whether it may preempt in other ClusterQueues while borrowing."""
        return self.borrow_within_cohort is not None and self.borrow_within_cohort.policy != "Never"


class FlavorFungibility(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which flavor is preferred, and when the search continues."""

    when_can_borrow: str = ""
    when_can_preempt: str = ""
    preference: str = ""

    @property
    def borrow(self) -> str:
        """``MayStopSearch`` or ``TryNextFlavor``."""
        return _V1BETA1_FUNGIBILITY.get(self.when_can_borrow, self.when_can_borrow) or _MAY_STOP_SEARCH

    @property
    def preempt(self) -> str:
        """``MayStopSearch`` or ``TryNextFlavor``."""
        return _V1BETA1_FUNGIBILITY.get(self.when_can_preempt, self.when_can_preempt) or "TryNextFlavor"


class AdmissionCheckRule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A check that applies to some flavors or to all."""

    name: str = ""
    on_flavors: Few[str] = NO_ITEMS


class AdmissionChecksStrategy(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The checks of a ClusterQueue."""

    admission_checks: Few[AdmissionCheckRule] = NO_ITEMS


class ClusterQueueSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The content of a ClusterQueue; ``cohort`` is v1beta1's name of ``cohort_name``."""

    cohort_name: str = ""
    cohort: str = ""
    resource_groups: Few[ResourceGroup] = NO_ITEMS
    queueing_strategy: str = "BestEffortFIFO"
    namespace_selector: LabelSelector | None = None
    flavor_fungibility: FlavorFungibility = FlavorFungibility()
    preemption: ClusterQueuePreemption = ClusterQueuePreemption()
    admission_checks: Few[str] = NO_ITEMS
    admission_checks_strategy: AdmissionChecksStrategy = AdmissionChecksStrategy()
    stop_policy: str = "None"
    fair_sharing: FairSharing = FairSharing()
    admission_scope: dict[str, Any] | None = None
    concurrent_admission_policy: dict[str, Any] | None = None


class ClusterQueue(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Quotas, and a queue of Workloads for them."""

    metadata: AnnotatedMeta = AnnotatedMeta()
    spec: ClusterQueueSpec = ClusterQueueSpec()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def cohort(self) -> str:
        """The cohort of the queue, or an empty string."""
        return self.spec.cohort_name or self.spec.cohort


class LocalQueueSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The ClusterQueue that a LocalQueue belongs to."""

    cluster_queue: str = ""
    stop_policy: str = "None"


class LocalQueue(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A namespace's access to a ClusterQueue."""

    metadata: AnnotatedMeta = AnnotatedMeta()
    spec: LocalQueueSpec = LocalQueueSpec()


class ResourceFlavorSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The nodes that a flavor represents."""

    node_labels: dict[str, str] = NO_ENTRIES
    node_taints: Few[Taint] = NO_ITEMS
    tolerations: Few[Toleration] = NO_ITEMS
    topology_name: str = ""


class ResourceFlavor(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A kind of resource, such as a type of node."""

    metadata: AnnotatedMeta = AnnotatedMeta()
    spec: ResourceFlavorSpec = ResourceFlavorSpec()

    @property
    def name(self) -> str:
        return self.metadata.name


class TopologyLevel(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A level of a topology: the node label that distinguishes its domains."""

    node_label: str = ""


class TopologySpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The levels from highest to lowest."""

    levels: Few[TopologyLevel] = NO_ITEMS


class Topology(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How the nodes of a data center are grouped."""

    metadata: AnnotatedMeta = AnnotatedMeta()
    spec: TopologySpec = TopologySpec()


class Condition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A condition of a status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class AdmissionCheckSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The controller that decides a check."""

    controller_name: str = ""


class AdmissionCheckStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The conditions of a check."""

    conditions: Few[Condition] = NO_ITEMS


class AdmissionCheck(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A check that must be ready before a Workload with quota is admitted."""

    metadata: AnnotatedMeta = AnnotatedMeta()
    spec: AdmissionCheckSpec = AdmissionCheckSpec()
    status: AdmissionCheckStatus = AdmissionCheckStatus()

    @property
    def is_active(self) -> bool:
        return any(each.type == "Active" and each.status == "True" for each in self.status.conditions)


class TopologyRequest(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How close together the pods of a pod set must be."""

    required: str | None = None
    preferred: str | None = None
    unconstrained: bool | None = None
    pod_set_group_name: str | None = None
    pod_set_slice_required_topology: str | None = None
    pod_set_slice_size: Int32 | None = None
    podset_slice_required_topology_constraints: Few[dict[str, Any]] = NO_ITEMS

    @property
    def is_explicit(self) -> bool:
        """Whether it requests topology-aware scheduling."""
        requests = (self.required, self.preferred, self.unconstrained, self.pod_set_slice_required_topology)
        layers = bool(self.podset_slice_required_topology_constraints)
        return layers or any(each is not None for each in (*requests, self.pod_set_slice_size))


class PodTemplate(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The template of a pod set's pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class PodSet(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A set of equal pods."""

    name: str = "main"
    count: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 1
    min_count: Int32 | None = None
    template: PodTemplate = PodTemplate()
    topology_request: TopologyRequest | None = None


class WorkloadSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The content of a Workload."""

    pod_sets: Few[PodSet] = NO_ITEMS
    queue_name: str = ""
    priority: Int32 | None = None
    active: bool = True
    preemption_gates: Few[dict[str, Any]] = NO_ITEMS


class IndividualValues(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One value per domain, without their common prefix and suffix."""

    prefix: str = ""
    suffix: str = ""
    roots: list[str] = NO_ITEMS


class LevelValues(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Names of domains at one level: the same for all, or one for each."""

    universal: str | None = None
    individual: IndividualValues | None = None

    def at(self, index: int) -> str:
        """Return the name of one domain."""
        found = self.individual
        if found is None or index >= len(found.roots):
            return self.universal or ""
        return f"{found.prefix}{found.roots[index]}{found.suffix}"


class PodCounts(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Numbers of pods in domains: the same for all, or one for each."""

    universal: int | None = None
    individual: list[int] = NO_ITEMS

    def at(self, index: int) -> int:
        """Return the number of pods in one domain."""
        return self.individual[index] if index < len(self.individual) else self.universal or 0


class AssignmentSlice(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Some domains of an assignment, level by level."""

    domain_count: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    values_per_level: Few[LevelValues] = NO_ITEMS
    pod_counts: PodCounts = PodCounts()


class AssignedDomain(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A domain with its number of pods, as in v1beta1."""

    values: Few[str] = NO_ITEMS
    count: int = 0


class TopologyAssignment(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The domains to which the pods of a pod set are assigned."""

    levels: Few[str] = NO_ITEMS
    slices: Many[AssignmentSlice] = NO_ITEMS
    domains: list[AssignedDomain] = NO_ITEMS


class PodSetAssignment(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The flavors, resources and topology assigned to a pod set."""

    name: str = "main"
    flavors: dict[str, str] = NO_ENTRIES
    resource_usage: ResourceList = NO_ENTRIES
    count: Int32 | None = None
    topology_assignment: TopologyAssignment | None = None


class Admission(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The assignments of a Workload, and the ClusterQueue that admitted it."""

    cluster_queue: str = ""
    pod_set_assignments: Few[PodSetAssignment] = NO_ITEMS


class AdmissionCheckState(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The state of a Workload's check."""

    name: str = ""
    state: str = ""


class RequeueState(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """When a Workload is requeued."""

    requeue_at: Time | None = None


class ReclaimablePod(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The number of pods of a pod set that need no resources any more."""

    name: str = ""
    count: int = 0


class WorkloadStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Kueue's decisions about a Workload."""

    conditions: Few[Condition] = NO_ITEMS
    admission: Admission | None = None
    admission_checks: Few[AdmissionCheckState] = NO_ITEMS
    requeue_state: RequeueState | None = None
    reclaimable_pods: Few[ReclaimablePod] = NO_ITEMS
    unhealthy_nodes: Few[dict[str, Any]] = NO_ITEMS


class Workload(Keyed, msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Pods that are admitted together."""

    metadata: AnnotatedMeta = AnnotatedMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()
