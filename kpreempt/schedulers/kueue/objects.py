"""The input of Kueue's scheduler: its configuration with feature gates, and its objects, decoded.

Before a Workload is queued, Kueue adds the overhead of the runtime class and the defaults of limit ranges, and uses
limits for missing requests (``AdjustResources`` in ``pkg/workload/resources.go``, v0.19.2). A Workload with quota keeps
its values. Gates follow ``pkg/features``, v0.19.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.frozen import NO_ENTRIES
from kpreempt.model.kueue import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    PodSet,
    ResourceFlavor,
    Topology,
    Workload,
)
from kpreempt.model.meta import grouped, replace_in
from kpreempt.model.pod import Container, PodSpec, ResourceList, ResourceRequirements
from kpreempt.model.workloads import LimitRange


class KueueObjects(msgspec.Struct, frozen=True):
    """What Kueue's scheduler reads: its own objects, and the cluster with nodes, pods, namespaces and limit ranges."""

    cluster: ClusterSnapshot
    cluster_queues: list[ClusterQueue]
    cohorts: list[Cohort]
    local_queues: list[LocalQueue]
    flavors: list[ResourceFlavor]
    topologies: list[Topology]
    checks: list[AdmissionCheck]
    workloads: list[Workload]


def adjusted(objects: KueueObjects) -> KueueObjects:
    """Return the objects with the Workloads adjusted as Kueue does."""
    overheads = {
        each.metadata.name: each.overhead.pod_fixed for each in objects.cluster.runtime_classes if each.overhead
    }
    ranges = grouped(objects.cluster.limit_ranges, lambda each: each.metadata.namespace)
    workloads = []
    for workload in objects.workloads:
        own_ranges, before = ranges.get(workload.metadata.namespace, []), workload.spec.pod_sets
        pod_sets = [_adjusted_pod_set(each, overheads, own_ranges) for each in before]
        if any(new is not old for new, old in zip(pod_sets, before, strict=True)):
            workload = replace_in(workload, "spec", pod_sets=pod_sets)  # noqa: PLW2901
        workloads.append(workload)
    return msgspec.structs.replace(objects, workloads=workloads)


def _adjusted_pod_set(pod_set: PodSet, overheads: dict[str, ResourceList], ranges: list[LimitRange]) -> PodSet:
    spec = pod_set.template.spec
    changed: dict[str, object] = {}
    if spec.runtime_class_name in overheads and not spec.overhead:
        changed["overhead"] = overheads[spec.runtime_class_name]
    for field in ("containers", "init_containers"):
        before: list[Container] = getattr(spec, field)
        filled = [(each, _filled(each.resources, ranges, "Container")) for each in before]
        after = [
            each if resources is each.resources else msgspec.structs.replace(each, resources=resources)
            for each, resources in filled
        ]
        if any(new is not old for new, old in zip(after, before, strict=True)):
            changed[field] = after
    if spec.resources is not None and (whole := _filled(spec.resources, ranges, "Pod")) is not spec.resources:
        changed["resources"] = whole
    if not changed:
        return pod_set
    new: PodSpec = msgspec.structs.replace(spec, **changed)
    return msgspec.structs.replace(pod_set, template=msgspec.structs.replace(pod_set.template, spec=new))


def _filled(resources: ResourceRequirements, ranges: list[LimitRange], kind: str) -> ResourceRequirements:
    limits, requests = dict(resources.limits), dict(resources.requests)
    for each in ranges:
        for item in each.spec.limits:
            if item.type == kind:
                limits = {**item.default, **limits}
                requests = {**item.default_request, **requests}
    requests = {**limits, **requests}
    if len(limits) == len(resources.limits) and len(requests) == len(resources.requests):
        return resources
    return msgspec.structs.replace(resources, limits=limits, requests=requests)


class Gate(StrEnum):
    """The feature gates that affect decisions."""

    FLAVOR_FUNGIBILITY = "FlavorFungibility"
    KEEP_SCAN_PROGRESS = "FlavorFungibilityPreserveScanProgress"
    PREEMPT_WITHIN_NOMINAL = "FairSharingPreemptWithinNominal"
    PRIORITIZE_NON_BORROWING = "FairSharingPrioritizeNonBorrowing"
    PRIORITY_SORTING = "PrioritySortingWithinCohort"
    PARTIAL_ADMISSION = "PartialAdmission"
    TOPOLOGY = "TopologyAwareScheduling"
    TOPOLOGY_RECOMPUTE = "TASRecomputeAssignmentWithinSchedulingCycle"
    TOPOLOGY_MIXED = "TASProfileMixed"
    EQUIVALENCE = "SchedulingEquivalenceHashing"
    OBSERVABILITY = "UnadmittedWorkloadsObservability"
    TIMESTAMP_BUFFER = "SchedulerTimestampPreemptionBuffer"
    PRIORITIZE_PREEMPTORS = "PrioritizePreemptorWorkloads"
    PRIORITY_BOOST = "PriorityBoost"
    OVERLAP_RECOMPUTE = "RecomputeAssignmentUponPreemptionTargetsOverlap"
    ADMISSION_GATED_BY = "AdmissionGatedBy"
    RECLAIMABLE_PODS = "ReclaimablePods"
    QUOTA_CHECK_STRATEGY = "QuotaCheckStrategy"


GATES: Mapping[str, bool] = MappingProxyType(
    {
        Gate.FLAVOR_FUNGIBILITY: True,
        Gate.KEEP_SCAN_PROGRESS: True,
        Gate.PREEMPT_WITHIN_NOMINAL: True,
        Gate.PRIORITIZE_NON_BORROWING: True,
        Gate.PRIORITY_SORTING: True,
        Gate.PARTIAL_ADMISSION: True,
        Gate.TOPOLOGY: True,
        Gate.TOPOLOGY_RECOMPUTE: True,
        Gate.TOPOLOGY_MIXED: True,
        Gate.EQUIVALENCE: True,
        Gate.OBSERVABILITY: False,
        Gate.TIMESTAMP_BUFFER: False,
        Gate.PRIORITIZE_PREEMPTORS: False,
        Gate.PRIORITY_BOOST: False,
        Gate.OVERLAP_RECOMPUTE: False,
        Gate.ADMISSION_GATED_BY: True,
        Gate.RECLAIMABLE_PODS: True,
        Gate.QUOTA_CHECK_STRATEGY: True,
    }
)

FINAL_SHARE = "LessThanOrEqualToFinalShare"
INITIAL_SHARE = "LessThanInitialShare"
DEFAULT_STRATEGIES = (FINAL_SHARE, INITIAL_SHARE)


class FairSharingConfiguration(msgspec.Struct, frozen=True, rename="camel"):
    """Fair sharing settings. Their presence enables fair sharing, even if they are empty."""

    preemption_strategies: tuple[str, ...] = ()

    @property
    def strategies(self) -> tuple[str, ...]:
        """The strategies in order."""
        return self.preemption_strategies or DEFAULT_STRATEGIES


class KueueConfiguration(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of the manager's configuration that affect decisions."""

    fair_sharing: FairSharingConfiguration | None = None
    feature_gates: dict[str, bool] = NO_ENTRIES
    quota_check_strategy: str = ""
    requeuing_timestamp: str = "Eviction"
    exclude_resource_prefixes: tuple[str, ...] = ()

    def has(self, gate: str) -> bool:
        """Return whether a feature gate is on."""
        return self.feature_gates.get(gate, GATES[gate])

    @property
    def ignores_undeclared(self) -> bool:
        """Return whether resources without quota are ignored."""
        return self.has(Gate.QUOTA_CHECK_STRATEGY) and self.quota_check_strategy == "IgnoreUndeclared"
