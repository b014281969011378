"""What Kueue's scheduler reads of the manager's configuration, and its feature gates (``pkg/features``, v0.19.2)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from kpreempt.model.frozen import NO_ENTRIES

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
        FLAVOR_FUNGIBILITY: True,
        KEEP_SCAN_PROGRESS: True,
        PREEMPT_WITHIN_NOMINAL: True,
        PRIORITIZE_NON_BORROWING: True,
        PRIORITY_SORTING: True,
        PARTIAL_ADMISSION: True,
        TOPOLOGY: True,
        TOPOLOGY_RECOMPUTE: True,
        TOPOLOGY_MIXED: True,
        EQUIVALENCE: True,
        OBSERVABILITY: False,
        TIMESTAMP_BUFFER: False,
        PRIORITIZE_PREEMPTORS: False,
        PRIORITY_BOOST: False,
        OVERLAP_RECOMPUTE: False,
        ADMISSION_GATED_BY: True,
        RECLAIMABLE_PODS: True,
        QUOTA_CHECK_STRATEGY: True,
    }
)

FINAL_SHARE = "LessThanOrEqualToFinalShare"
INITIAL_SHARE = "LessThanInitialShare"
DEFAULT_STRATEGIES = (FINAL_SHARE, INITIAL_SHARE)


class FairSharingConfiguration(msgspec.Struct, frozen=True, rename="camel"):
    """Fair sharing is on where this is there, even if it is empty."""

    preemption_strategies: tuple[str, ...] = ()

    @property
    def strategies(self) -> tuple[str, ...]:
        """The strategies in their order."""
        return self.preemption_strategies or DEFAULT_STRATEGIES


class KueueConfiguration(msgspec.Struct, frozen=True, rename="camel"):
    """What of the manager's configuration decides."""

    fair_sharing: FairSharingConfiguration | None = None
    feature_gates: dict[str, bool] = NO_ENTRIES
    quota_check_strategy: str = ""
    requeuing_timestamp: str = "Eviction"
    exclude_resource_prefixes: tuple[str, ...] = ()

    def has(self, gate: str) -> bool:
        """Whether a feature gate is on."""
        return self.feature_gates.get(gate, GATES[gate])

    @property
    def ignores_undeclared(self) -> bool:
        """Whether resources without quota are left out of account."""
        return self.has(QUOTA_CHECK_STRATEGY) and self.quota_check_strategy == "IgnoreUndeclared"
