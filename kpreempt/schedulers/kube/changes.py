"""Changes in kube-scheduler that no feature gate guards: the versions, the new behavior and the upstream source.

A bound is a version, or several if the change was backported: ``1.30.7 1.31.3 1.32`` is reached by each minor version
from its listed patch release on, and by everything from the last version on. ``versions.py`` compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Change(NamedTuple):
    """The versions in which a behavior holds, the last one excluded; an empty text is no bound.

    ``source`` is a file below ``pkg/scheduler/framework/plugins`` of ``k8s.io/kubernetes``, or a path that says where
    else. The two texts say what holds from the first version on, and from the last version on.
    """

    since: str
    until: str
    source: str
    added: str = ""
    removed: str = ""


_SCHEDULER = "pkg/scheduler"
_PREEMPTION = f"{_SCHEDULER}/framework/preemption/preemption.go"

CHANGES: Mapping[str, Change] = {
    "adds_sidecars_to_scored_requests": Change(
        "1.32",
        "",
        f"{_SCHEDULER}/framework/types.go: calculateResource",
        added="In NodeResourcesFit scores, sidecars of running pods count in addition to their containers.",
    ),
    # Missing slices of a pool only matter to a request for all of its devices.
    "allocates_from_incomplete_pools": Change(
        "",
        "1.35",
        "k8s.io/dynamic-resource-allocation/structured/internal/experimental/pools_experimental.go: GatherPools",
        removed="No device is allocated from a pool with missing slices.",
    ),
    "capitalizes_owners_of_claims": Change(
        "1.36",
        "",
        "k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go: IsForPod",
        added="The message that a resource claim was not created for the pod says “Pod” instead of “pod”.",
    ),
    # A preemption that is not informed about a node excluded by PreFilter tries it.
    "dry_runs_absent_nodes": Change(
        "",
        "1.29.6 1.30",
        f"{_PREEMPTION}: nodesWherePreemptionMightHelp",
        removed="Preemption skips nodes that PreFilter excluded.",
    ),
    "backs_off_by_attempts": Change(
        "",
        "1.34",
        f"{_SCHEDULER}/backend/queue/backoff_queue.go: calculateBackoffDuration",
        removed="A pod's backoff depends on its rejections, or on its consecutive errors, not on all its attempts.",
    ),
    "checks_strategies_strictly": Change(
        "1.36",
        "",
        "pkg/scheduler/apis/config/validation/validation_pluginargs.go: ValidateNodeResourcesFitArgs",
        added="requestedToCapacityRatio is rejected with other scoring strategies, and required with its own strategy.",
    ),
    "compares_attributes_of_all_devices": Change(
        "1.37",
        "",
        "k8s.io/dynamic-resource-allocation/structured/internal/incubating/constraint.go: distinctAttributeConstraint",
        added="distinctAttribute compares all devices of a claim, not just the last one of each request.",
    ),
    "compares_resizes_by_pod": Change(
        "1.37",
        "",
        "k8s.io/component-helpers/resource/helpers.go: PodRequests",
        added="A pod that is being resized uses the largest of the totals of its spec, its allocation and its cgroups;"
        " containers are no longer compared one by one.",
    ),
    "continues_after_a_rejection": Change(
        "1.30",
        "",
        f"{_SCHEDULER}/framework/runtime/framework.go: RunPreFilterPlugins",
        added="A PreFilter plugin that answers Unschedulable no longer prevents later plugins from running.",
    ),
    "counts_image_volumes": Change(
        "1.36",
        "",
        "imagelocality/image_locality.go: sumImageScores",
        added="ImageLocality counts the images of image volumes, too.",
    ),
    "counts_image_volumes_in_threshold": Change(
        "1.37",
        "",
        "imagelocality/image_locality.go: calculatePriority",
        added="ImageLocality's upper threshold grows with each image volume, as with each container.",
    ),
    "counts_images_of_init_containers": Change(
        "1.30",
        "",
        "imagelocality/image_locality.go: sumImageScores",
        added="ImageLocality counts the images of init containers, too.",
    ),
    # A spread constraint whose selector matches everything counted every pod, and now counts none.
    "counts_pods_for_empty_selectors": Change("", "1.27", "podtopologyspread/common.go: countPodsMatchSelector"),
    "counts_ports_of_sidecars": Change(
        "1.33.6 1.34",
        "",
        "k8s.io/kube-scheduler/util: GetHostPorts",
        added="Sidecars' host ports are in use, too.",
    ),
    "counts_replaced_daemon_pods": Change(
        "1.29.10 1.30.6 1.31",
        "",
        "pkg/controller/daemon/update.go: rollingUpdate",
        added="A DaemonSet rollout counts unavailable old pods against maxUnavailable, so it deletes fewer available"
        " pods.",
    ),
    "counts_restarts_of_sidecars": Change(
        "1.32",
        "",
        "pkg/controller/controller_utils.go: compareMaxContainerRestarts",
        added="When a controller deletes surplus pods whose containers restarted equally often, the pod whose sidecars"
        " restarted more often is deleted first.",
    ),
    "counts_spread_by_constraint": Change(
        "1.33",
        "",
        "podtopologyspread/filtering.go: calPreFilterState",
        added="Each topology spread constraint has its own counts; before, constraints on one topology key shared"
        " them.",
    ),
    "counts_volume_attachments": Change(
        "1.32",
        "",
        "nodevolumelimits/csi.go: Filter",
        added="Volumes attached to a node that no pod there uses count against its limit.",
    ),
    "deletes_terminating_victims": Change(
        "",
        "1.35",
        f"{_PREEMPTION}: prepareCandidate",
        removed="A victim that is already terminating is not deleted again.",
    ),
    "forbidden_evictions_have_reason": Change(
        "1.37",
        "",
        "pkg/registry/core/pod/storage/eviction.go: checkAndDecrement",
        added="If a broken PodDisruptionBudget rejects an eviction, the response gives that as the cause.",
    ),
    "eviction_rejections_have_reason": Change(
        "1.35",
        "",
        "pkg/registry/core/pod/storage/eviction.go: checkAndDecrement",
        added="A rejected eviction says why its PDB allows no disruptions: a failed sync, or its condition.",
    ),
    "eviction_rejects_unreadable_store_option": Change(
        "1.32",
        "",
        "pkg/registry/core/pod/storage/eviction.go: Create",
        added="An eviction must not request deletion of objects that cannot be read from the store.",
    ),
    "explains_absent_nodes": Change(
        "1.32",
        "",
        f"{_SCHEDULER}/schedule_one.go: findNodesThatFitPod",
        added="The message includes nodes excluded by PreFilter, and the plugins that excluded them.",
    ),
    # This matters for a node that lacks a volume's beta label and has the stable one.
    "finds_zones_under_stable_labels": Change("1.29", "", "volumezone/volume_zone.go: translateToGALabel"),
    "follows_allocated_resources_alone": Change(
        "",
        "1.32",
        "pkg/api/v1/resource/helpers.go: PodRequests",
        removed="With InPlacePodVerticalScaling, the resources in a container's status count, not the allocated ones.",
    ),
    # Up to 1.36, slices with shared counters count on every node, and two drivers' pools with the same name count as
    # one.
    "finds_shared_counters_everywhere": Change(
        "1.37",
        "",
        "k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go: GatherPools",
        added="A pool's shared counters count on a node that can access only the pool's devices, and the capacity of"
        " shared devices that no request uses is not counted twice.",
    ),
    "follows_actuated_resources_alone": Change(
        "1.32",
        "1.33",
        "k8s.io/component-helpers/resource/helpers.go: AggregateContainerRequests",
        added="With InPlacePodVerticalScaling, sidecar statuses do not count.",
        removed="With InPlacePodVerticalScaling, a container's allocation counts in addition to its status, and"
        " sidecars are included.",
    ),
    "clamps_grace_end": Change(
        "1.33",
        "",
        "k8s.io/apiserver/pkg/registry/rest/delete.go: BeforeDelete",
        added="A shortened grace period of a terminating pod never ends in the past.",
    ),
    "has_placement_points": Change(
        "1.36",
        "",
        "k8s.io/kube-scheduler/config/v1/types.go: Plugins",
        added="A profile may enable plugins at placementGenerate and placementScore.",
    ),
    "has_pod_group_points": Change(
        "1.37",
        "",
        "k8s.io/kube-scheduler/config/v1/types.go: Plugins",
        added="A profile may enable plugins at podGroupPostFilter.",
    ),
    "has_volume_capacity_priority": Change(
        "",
        "1.33",
        "pkg/scheduler/apis/config/validation/validation_pluginargs.go: ValidateVolumeBindingArgs",
        removed="StorageCapacityScoring, which prefers empty storage, replaces the VolumeCapacityPriority gate.",
    ),
    "infers_user_namespaces_on_host_network": Change(
        "1.36",
        "",
        "k8s.io/component-helpers/nodedeclaredfeatures/features/registry.go: AllFeatures",
        added="A pod with a user namespace on the host network needs a node that declares support for it.",
    ),
    "keeps_jobs_until_their_pods_end": Change(
        "1.31",
        "",
        "pkg/controller/job/job_controller.go: enactJobFinished",
        added="A Job is finished only when none of its pods is terminating.",
    ),
    # A term's namespace selector is removed on a copy only, so it still matches namespaces without labels.
    "keeps_namespace_selectors": Change(
        "1.34",
        "1.37",
        "interpodaffinity/plugin.go: mergeAffinityTermNamespacesIfNotEmpty",
        added="If a namespaceSelector matches a namespace without labels (NotIn, DoesNotExist), the term matches pods"
        " in every namespace.",
        removed="A namespaceSelector again selects only the namespaces that it matches.",
    ),
    "reserves_gated_pods": Change(
        "1.37",
        "",
        f"{_SCHEDULER}/backend/queue/nominator.go: addNominatedPodUnlocked",
        added="A nominated pod keeps its reservation while a plugin gates it.",
    ),
    "keeps_nominated_pods_complete": Change(
        "",
        "1.31",
        f"{_SCHEDULER}/backend/queue/nominator.go: nominatedPodsForNode",
        removed="A nominated pod that is in no queue reserves no resources, but counts toward the node's number of"
        " pods.",
    ),
    # This requires DRAExtendedResource, which 1.34 has as an alpha gate.
    "leaves_unlisted_resources_to_devices": Change(
        "",
        "1.35",
        "noderesources/fit.go: fitsRequest",
        removed="With DRAExtendedResource, a node without huge pages does not fit a pod that requests them.",
    ),
    "leaves_alternatives_of_all_devices": Change(
        "",
        "1.36",
        "k8s.io/dynamic-resource-allocation/structured/internal/stable/allocator_stable.go: allocateOne",
        removed="An alternative that requests all devices gets them; before, the search took the first one and"
        " continued with the first alternative.",
    ),
    "lists_missing_features": Change(
        "",
        "1.36",
        "nodedeclaredfeatures/nodedeclaredfeatures.go: Filter",
        removed="With NodeDeclaredFeatures, a rejection does not list the features that the node lacks.",
    ),
    # In-tree volumes count as CSI volumes if the node's CSINode lists their plugin, not on every node that has a
    # CSINode.
    "migrates_disks_by_annotation": Change("", "1.29", "nodevolumelimits/utils.go: isCSIMigrationOn"),
    "migrates_portworx_by_annotation": Change(
        "",
        "1.36",
        "nodevolumelimits/utils.go: isCSIMigrationOn",
        removed="In-tree Portworx volumes count as CSI volumes on every node that has a CSINode.",
    ),
    "names_untolerated_taint": Change(
        "",
        "1.34.2",
        "tainttoleration/taint_toleration.go: Filter",
        removed="The message no longer names the untolerated taint.",
    ),
    "needs_no_consent_of_csi_drivers": Change(
        "1.35",
        "1.36",
        "nodevolumelimits/csi.go: checkCSIDriverOnNode",
        added="With VolumeLimitScaling, a node without a volume's CSI driver is rejected.",
        removed="With VolumeLimitScaling, a node without a CSI driver is rejected only if the driver requires it.",
    ),
    "patches_status_of_preemptor": Change(
        "",
        "1.29.9 1.30.5 1.31.1 1.32",
        f"{_PREEMPTION}: prepareCandidate",
        removed="The DisruptionTarget condition is patched onto the victim's own status, not the preemptor's.",
    ),
    "names_queue_sort_twice": Change(
        "1.30",
        "1.34",
        "pkg/scheduler/apis/config/validation/validation.go: validateCommonQueueSort",
        added="The error about profiles with different queue sorts names the field twice.",
        removed="The error about profiles with different queue sorts names the field once.",
    ),
    "scores_fit_by_complete_pods": Change(
        "",
        "1.33",
        "noderesources/resource_allocation.go: calculatePodResourceRequest",
        removed="NodeResourcesFit scores nodes by containers' requests, not by pod-level requests.",
    ),
    "reads_resize_from_status": Change(
        "",
        "1.33",
        "k8s.io/component-helpers/resource/helpers.go: AggregateContainerRequests",
        removed="The PodResizePending condition, not status.resize, shows whether a resize is infeasible.",
    ),
    "reads_start_times_once": Change(
        "1.37",
        "",
        f"{_SCHEDULER}/framework/preemption/types.go: NewPodVictim",
        added="A victim without a start time counts as started when the node's victims are listed, so at equal"
        " priority it sorts after started pods, in the node's order.",
    ),
    "reads_volume_limits_of_allocatable": Change(
        "",
        "1.32",
        "nodevolumelimits/csi.go: getVolumeLimits",
        removed="CSI volume limits come only from the CSINode, not from the node's allocatable resources.",
    ),
    "rejects_in_tree_volume_limits": Change(
        "1.31",
        "",
        "pkg/scheduler/apis/config/validation/validation.go: removedPluginsByVersion",
        added="A configuration that names EBSLimits, GCEPDLimits, AzureDiskLimits or CinderLimits at an extension point"
        " is rejected.",
    ),
    # A missing claim rejects the pod instead of raising an error.
    "rejects_pods_for_missing_limited_claims": Change(
        "1.30",
        "",
        "nodevolumelimits/csi.go: Filter",
        added="For a claim that does not exist, NodeVolumeLimits rejects the pod instead of failing with an error.",
    ),
    # PreFilter looks up the claims; before, Filter did on each node that has a zone.
    "rejects_pods_for_zone_claims": Change("1.27", "", "volumezone/volume_zone.go: PreFilter"),
    "rejects_sidecars_before_filters": Change(
        "1.30",
        "",
        "noderesources/fit.go: PreFilter",
        added="Without SidecarContainers, a pod with sidecars is rejected once, not node by node.",
    ),
    "restricts_to_hosts_of_volumes": Change(
        "",
        "1.29.11 1.30.7 1.31.3 1.32",
        "volumebinding/volume_binding.go: PreFilter",
        removed="VolumeBinding treats the hostnames of a local volume as labels, not as node names.",
    ),
    # Each container's request is rounded up on its own, and overhead counts in whole units, even for CPU.
    "rounds_requests_by_container": Change(
        "", "1.27", "noderesources/resource_allocation.go: calculatePodResourceRequest"
    ),
    "rules_out_conflicting_plugins": Change(
        "1.30",
        "",
        f"{_SCHEDULER}/framework/runtime/framework.go: RunPreFilterPlugins",
        added="If the nodes allowed by PreFilter plugins do not intersect, preemption is not tried.",
    ),
    "rules_out_requests_above_allocatable": Change(
        "1.34",
        "",
        "noderesources/fit.go: fitsRequest",
        added="Preemption is not tried on a node that is too small for the pod even without other pods.",
    ),
    "scores_change_of_balance": Change(
        "1.36",
        "",
        "noderesources/balanced_allocation.go: balancedResourceScorer",
        added="NodeResourcesBalancedAllocation scores how the pod changes the balance; no change scores 75.",
    ),
    "searches_one_node_without_scores": Change(
        "1.30",
        "",
        f"{_SCHEDULER}/schedule_one.go: findNodesThatPassFilters",
        added="Without score plugins, the search ends at the first node that fits.",
    ),
    "skips_balance_without_requests": Change(
        "1.33",
        "",
        "noderesources/balanced_allocation.go: PreScore",
        added="NodeResourcesBalancedAllocation does not score pods without requests.",
    ),
    "skips_idle_scores": Change(
        "1.30",
        "",
        "nodeaffinity/node_affinity.go and volumebinding/volume_binding.go: PreScore",
        added="NodeAffinity and VolumeBinding skip scoring, instead of scoring 0, if they have nothing to score.",
    ),
    # Before, pools were in the order of a Go map.
    "sorts_pools_of_devices": Change(
        "1.36",
        "",
        "k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go: sortPoolsByID",
        added="Devices are allocated from pools and slices in name order.",
    ),
    "sorts_conflicting_plugins": Change(
        "1.31",
        "",
        f"{_SCHEDULER}/framework/runtime/framework.go: RunPreFilterPlugins",
        added="Plugins whose allowed nodes do not intersect are named in alphabetical order.",
    ),
    "sorts_victims_again": Change(
        "1.29.11 1.30.7 1.31.3 1.32",
        "",
        "defaultpreemption/default_preemption.go: SelectVictimsOnNode",
        added="A node's victims are sorted by importance; before, victims that violate a budget came first, and the"
        " rule about the highest victim priority used the first victim.",
    ),
    "stops_at_violated_budget": Change(
        "1.37",
        "",
        f"{_SCHEDULER}/framework/preemption/pdb.go: FilterVictimsWithPDBViolation",
        added="A victim that violates one budget does not decrement its later budgets.",
    ),
    "takes_args_of_dynamic_resources": Change(
        "1.34",
        "",
        "k8s.io/kube-scheduler/config/v1/types_pluginargs.go: DynamicResourcesArgs",
        added="DynamicResources takes arguments.",
    ),
    "takes_binding_timeout": Change(
        "1.35",
        "",
        "k8s.io/kube-scheduler/config/v1/types_pluginargs.go: DynamicResourcesArgs",
        added="DynamicResources takes a bindingTimeout.",
    ),
    "taints_all_devices_without_selector": Change(
        "",
        "1.37",
        "k8s.io/dynamic-resource-allocation/resourceslice/tracker/tracker.go: applyPatches",
        removed="A DeviceTaintRule without a selector taints no device.",
    ),
    "reports_all_node_changes": Change(
        "1.30",
        "",
        f"{_SCHEDULER}/eventhandlers.go: updateNodeInCache",
        added="The queue receives every change in a node update, including annotations, not just the first one.",
    ),
    "reports_claims_to_deallocate": Change(
        "",
        "1.37",
        "dynamicresources/dynamicresources.go: PostFilter",
        removed="DynamicResources no longer reports “no new claims to deallocate”.",
    ),
    "reports_devices_of_errors": Change(
        "1.37",
        "",
        "k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go: selectorsMatch",
        added="A device selector error names the device and explains how to handle a key that may be missing.",
    ),
    "reports_omitted_nodes": Change(
        "1.30",
        "1.30.2",
        f"{_SCHEDULER}/schedule_one.go: findNodesThatFitPod",
        added="Nodes excluded by PreFilter have the reason “node is filtered out by the prefilter result”.",
        removed="The message does not include nodes excluded by PreFilter.",
    ),
    "reports_preemption": Change(
        "1.37",
        "",
        f"{_PREEMPTION}: Preempt",
        added="The message of a successful preemption names the node and the number of victims.",
    ),
    "reports_queue_sort_mismatch": Change(
        "",
        "1.30",
        "pkg/scheduler/apis/config/validation/validation.go: validateCommonQueueSort",
        removed="The error about profiles with different queue sorts says that they must be the same.",
    ),
    "reports_read_write_once_pod_by_name": Change(
        "",
        "1.34",
        "volumerestrictions/volume_restrictions.go: ErrReasonReadWriteOncePodConflict",
        removed="The message about a ReadWriteOncePod claim that is in use is worded differently.",
    ),
    "reports_selectors_as_json": Change(
        "1.34",
        "",
        "k8s.io/apimachinery/pkg/util/validation/field/errors.go: ErrorBody",
        added="An invalid selector is quoted as JSON in messages.",
    ),
    "reports_utilization_values": Change(
        "",
        "1.34",
        "pkg/scheduler/apis/config/validation/validation_pluginargs.go: validateFunctionShape",
        removed="The error about the order of a shape's points does not mention utilization.",
    ),
    "reports_volume_node_affinity_conflict": Change(
        "",
        "1.33",
        "volumebinding/binder.go: ErrReasonNodeConflict",
        removed="The reason for an unreachable volume is “node(s) didn't match PersistentVolume's node affinity”.",
    ),
    "reports_failed_constraints": Change(
        "1.30",
        "",
        "podtopologyspread/filtering.go: calPreFilterState",
        added="The error of a topology spread constraint says that it came from the pod.",
    ),
    "retries_spread_pods_after_other_pods": Change(
        "1.31",
        "",
        f"{_SCHEDULER}/backend/queue/scheduling_queue.go: getUnschedulablePodsWithCrossTopologyTerm",
        added="Without queueing hints, a pod rejected by PodTopologySpread is retried when another pod in its namespace"
        " is assigned to a node.",
    ),
    "updates_unavailable_pods_first": Change(
        "1.37",
        "",
        "pkg/controller/statefulset/stateful_set_control.go: updateStatefulSetAfterInvariantEstablished",
        added="A rollout of a Parallel StatefulSet updates unavailable pods first, regardless of how many there are.",
    ),
    "waits_for_min_ready_seconds": Change(
        "1.34",
        "",
        "pkg/controller/statefulset/stateful_set_utils.go: isUnavailable",
        added="An update of a StatefulSet waits until its pods have been ready for minReadySeconds.",
    ),
}
