"""What changed in kube-scheduler without a gate that guards it: when, what is so since then, and where that is seen.

A bound is a version, or several where the change was carried back: from the one of the own minor version on, and from
the last one on, it is reached (``1.30.7 1.31.3 1.32``). ``versions.py`` compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Change(NamedTuple):
    """The versions in which a behaviour holds, the latter excluded; an empty text is no bound.

    ``source`` is a file below ``pkg/scheduler/framework/plugins`` of ``k8s.io/kubernetes``, or says where else.
    ``came`` tells a user what is so from the first on, and ``went`` what is so from the end on.
    """

    since: str
    until: str
    source: str
    came: str = ""
    went: str = ""


_SCHEDULER = "pkg/scheduler"
_PREEMPTION = f"{_SCHEDULER}/framework/preemption/preemption.go"

CHANGES: Mapping[str, Change] = {
    "adds_sidecars_to_scored_requests": Change(
        "1.32",
        "",
        f"{_SCHEDULER}/framework/types.go: calculateResource",
        came="In the score of NodeResourcesFit, sidecars of running pods count on top of their containers.",
    ),
    # Whether slices of a pool are missing counts only where all of its devices are asked for.
    "allocates_from_incomplete_pools": Change(
        "",
        "1.35",
        "k8s.io/dynamic-resource-allocation/structured/internal/experimental/pools_experimental.go: GatherPools",
        went="No device is allocated from a pool of which slices are missing.",
    ),
    "capitalizes_owners_of_claims": Change(
        "1.36",
        "",
        "k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go: IsForPod",
        came="That a resource claim was not created for the pod is said of a “Pod”, and no longer of a “pod”.",
    ),
    # A preemption that hears nothing of a node that PreFilter left out tries it.
    "dry_runs_absent_nodes": Change(
        "",
        "1.29.6 1.30",
        f"{_PREEMPTION}: nodesWherePreemptionMightHelp",
        went="Preemption leaves out nodes that PreFilter has ruled out.",
    ),
    "backs_off_by_attempts": Change(
        "",
        "1.34",
        f"{_SCHEDULER}/backend/queue/backoff_queue.go: calculateBackoffDuration",
        went="A pod backs off by how often it was refused, or by its errors in a row, and not by all its attempts.",
    ),
    "checks_strategies_strictly": Change(
        "1.36",
        "",
        "pkg/scheduler/apis/config/validation/validation_pluginargs.go: ValidateNodeResourcesFitArgs",
        came="requestedToCapacityRatio is refused beside another scoring strategy, and needed for its own.",
    ),
    "compares_attributes_of_all_devices": Change(
        "1.37",
        "",
        "k8s.io/dynamic-resource-allocation/structured/internal/incubating/constraint.go: distinctAttributeConstraint",
        came="distinctAttribute compares all devices of a claim, and not only the last one of each request.",
    ),
    "compares_resizes_by_pod": Change(
        "1.37",
        "",
        "k8s.io/component-helpers/resource/helpers.go: PodRequests",
        came="A pod that is being resized takes the largest of what its spec, its allocation and its cgroups add up to;"
        " containers are not compared one by one.",
    ),
    "continues_after_a_rejection": Change(
        "1.30",
        "",
        f"{_SCHEDULER}/framework/runtime/framework.go: RunPreFilterPlugins",
        came="A PreFilter plugin that answers Unschedulable no longer keeps those after it from running.",
    ),
    "counts_image_volumes": Change(
        "1.36",
        "",
        "imagelocality/image_locality.go: sumImageScores",
        came="ImageLocality counts the images of image volumes, too.",
    ),
    "counts_image_volumes_in_threshold": Change(
        "1.37",
        "",
        "imagelocality/image_locality.go: calculatePriority",
        came="The most that ImageLocality rates grows with each image volume, as with each container.",
    ),
    "counts_images_of_init_containers": Change(
        "1.30",
        "",
        "imagelocality/image_locality.go: sumImageScores",
        came="ImageLocality counts the images of init containers, too.",
    ),
    # A spread constraint's selector that matches everything counted every pod, and now counts none.
    "counts_pods_for_empty_selectors": Change("", "1.27", "podtopologyspread/common.go: countPodsMatchSelector"),
    "counts_ports_of_sidecars": Change(
        "1.33.6 1.34",
        "",
        "k8s.io/kube-scheduler/util: GetHostPorts",
        came="Host ports of sidecars are taken, too.",
    ),
    "counts_replaced_daemon_pods": Change(
        "1.29.10 1.30.6 1.31",
        "",
        "pkg/controller/daemon/update.go: rollingUpdate",
        came="An update of a DaemonSet counts old pods that are unavailable against maxUnavailable, so that it takes"
        " fewer others.",
    ),
    "counts_restarts_of_sidecars": Change(
        "1.32",
        "",
        "pkg/controller/controller_utils.go: compareMaxContainerRestarts",
        came="Of pods too many, of which containers have restarted equally often, the one goes first whose sidecars did"
        " so more often.",
    ),
    "counts_spread_by_constraint": Change(
        "1.33",
        "",
        "podtopologyspread/filtering.go: calPreFilterState",
        came="Each topology spread constraint has its own counts; before, constraints on one topology key shared them.",
    ),
    "counts_volume_attachments": Change(
        "1.32",
        "",
        "nodevolumelimits/csi.go: Filter",
        came="Volumes that are attached to a node without a pod there count against its limit.",
    ),
    "deletes_terminating_victims": Change(
        "",
        "1.35",
        f"{_PREEMPTION}: prepareCandidate",
        went="A victim that is being deleted already is not deleted again.",
    ),
    "forbidden_evictions_have_reason": Change(
        "1.37",
        "",
        "pkg/registry/core/pod/storage/eviction.go: checkAndDecrement",
        came="An eviction that is forbidden for a broken budget says so in a cause.",
    ),
    "eviction_rejections_have_reason": Change(
        "1.35",
        "",
        "pkg/registry/core/pod/storage/eviction.go: checkAndDecrement",
        came="A refused eviction tells why its budget allows none: a failed sync, or its condition.",
    ),
    "eviction_refuses_unreadable_store_option": Change(
        "1.32",
        "",
        "pkg/registry/core/pod/storage/eviction.go: Create",
        came="An eviction must not ask to delete what cannot be read from the store.",
    ),
    "explains_absent_nodes": Change(
        "1.32",
        "",
        f"{_SCHEDULER}/schedule_one.go: findNodesThatFitPod",
        came="Nodes that PreFilter rules out are in the message, with the plugins that did.",
    ),
    # A node lacks a volume's beta label, and has the stable one.
    "finds_zones_under_stable_labels": Change("1.29", "", "volumezone/volume_zone.go: translateToGALabel"),
    "follows_allocated_resources_alone": Change(
        "",
        "1.32",
        "pkg/api/v1/resource/helpers.go: PodRequests",
        went="With InPlacePodVerticalScaling, what a container's status says under resources counts, not what is"
        " allocated.",
    ),
    # Up to 1.36 slices with shared counters count on every node, and pools of two drivers with one name are one.
    "finds_shared_counters_everywhere": Change(
        "1.37",
        "",
        "k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go: GatherPools",
        came="Shared counters of a pool count on a node that reaches only devices of the pool, and the capacity of"
        " shared devices that nobody asked for is not counted twice.",
    ),
    "follows_actuated_resources_alone": Change(
        "1.32",
        "1.33",
        "k8s.io/component-helpers/resource/helpers.go: AggregateContainerRequests",
        came="With InPlacePodVerticalScaling, sidecars' statuses do not count.",
        went="With InPlacePodVerticalScaling, a container's allocation counts beside what its status says, and sidecars"
        " are followed, too.",
    ),
    "clamps_grace_end": Change(
        "1.33",
        "",
        "k8s.io/apiserver/pkg/registry/rest/delete.go: BeforeDelete",
        came="A shorter grace period of a pod that is ending never ends in the past.",
    ),
    "has_placement_points": Change(
        "1.36",
        "",
        "k8s.io/kube-scheduler/config/v1/types.go: Plugins",
        came="A profile may enable plugins at placementGenerate and placementScore.",
    ),
    "has_pod_group_points": Change(
        "1.37",
        "",
        "k8s.io/kube-scheduler/config/v1/types.go: Plugins",
        came="A profile may enable plugins at podGroupPostFilter.",
    ),
    "has_volume_capacity_priority": Change(
        "",
        "1.33",
        "pkg/scheduler/apis/config/validation/validation_pluginargs.go: ValidateVolumeBindingArgs",
        went="The gate VolumeCapacityPriority is replaced by StorageCapacityScoring, which prefers empty storage.",
    ),
    "infers_user_namespaces_on_host_network": Change(
        "1.36",
        "",
        "k8s.io/component-helpers/nodedeclaredfeatures/features/registry.go: AllFeatures",
        came="A pod with a user namespace on the host's network needs a node that declares it.",
    ),
    "keeps_jobs_until_their_pods_end": Change(
        "1.31",
        "",
        "pkg/controller/job/job_controller.go: enactJobFinished",
        came="A Job has ended only once none of its pods is on its way out any more.",
    ),
    # A term's namespace selector is dropped on a copy, and goes on to match namespaces without labels.
    "keeps_namespace_selectors": Change(
        "1.34",
        "1.37",
        "interpodaffinity/plugin.go: mergeAffinityTermNamespacesIfNotEmpty",
        came="A namespaceSelector that holds without labels (NotIn, DoesNotExist) lets a term of the pod match pods of"
        " every namespace.",
        went="A namespaceSelector selects again the namespaces that it matches, and no others.",
    ),
    "reserves_gated_pods": Change(
        "1.37",
        "",
        f"{_SCHEDULER}/backend/queue/nominator.go: addNominatedPodUnlocked",
        came="A nominated pod keeps its room while a plugin's gate holds it back.",
    ),
    "keeps_nominated_pods_complete": Change(
        "",
        "1.31",
        f"{_SCHEDULER}/backend/queue/nominator.go: nominatedPodsForNode",
        went="A nominated pod that is in no queue keeps no room but its place in the number of pods.",
    ),
    # It asks for DRAExtendedResource, which 1.34 has as an alpha gate.
    "leaves_unlisted_resources_to_devices": Change(
        "",
        "1.35",
        "noderesources/fit.go: fitsRequest",
        went="With DRAExtendedResource, a node without huge pages is too small for a pod that requests them.",
    ),
    "leaves_alternatives_of_all_devices": Change(
        "",
        "1.36",
        "k8s.io/dynamic-resource-allocation/structured/internal/stable/allocator_stable.go: allocateOne",
        went="An alternative that wants all devices gets them; before, the search took the first of them and went on"
        " with the first alternative.",
    ),
    "lists_missing_features": Change(
        "",
        "1.36",
        "nodedeclaredfeatures/nodedeclaredfeatures.go: Filter",
        went="With NodeDeclaredFeatures, a refusal does not list the features that the node lacks.",
    ),
    # In-tree volumes are CSI volumes where the node's CSINode lists their plugin, not on every node that has one.
    "migrates_disks_by_annotation": Change("", "1.29", "nodevolumelimits/utils.go: isCSIMigrationOn"),
    "migrates_portworx_by_annotation": Change(
        "",
        "1.36",
        "nodevolumelimits/utils.go: isCSIMigrationOn",
        went="In-tree volumes of Portworx count as CSI volumes on every node that has a CSINode.",
    ),
    "names_untolerated_taint": Change(
        "",
        "1.34.2",
        "tainttoleration/taint_toleration.go: Filter",
        went="The message does not name the taint that a pod does not tolerate.",
    ),
    "needs_no_consent_of_csi_drivers": Change(
        "1.35",
        "1.36",
        "nodevolumelimits/csi.go: checkCSIDriverOnNode",
        came="With VolumeLimitScaling, a node without a volume's CSI driver is refused.",
        went="With VolumeLimitScaling, a node without a CSI driver is refused only where the driver asks for it.",
    ),
    "patches_status_of_preemptor": Change(
        "",
        "1.29.9 1.30.5 1.31.1 1.32",
        f"{_PREEMPTION}: prepareCandidate",
        went="The condition DisruptionTarget is patched onto a victim's own status, not onto the preemptor's.",
    ),
    "names_queue_sort_twice": Change(
        "1.30",
        "1.34",
        "pkg/scheduler/apis/config/validation/validation.go: validateCommonQueueSort",
        came="The error about profiles that sort the queue differently names the field twice.",
        went="The error about profiles that sort the queue differently names the field once.",
    ),
    "scores_fit_by_complete_pods": Change(
        "",
        "1.33",
        "noderesources/resource_allocation.go: calculatePodResourceRequest",
        went="NodeResourcesFit rates nodes by what a pod's containers request, not by what the pod as a whole does.",
    ),
    "reads_resize_from_status": Change(
        "",
        "1.33",
        "k8s.io/component-helpers/resource/helpers.go: AggregateContainerRequests",
        went="Whether a resize is infeasible is told by the condition PodResizePending, not by status.resize.",
    ),
    "reads_start_times_once": Change(
        "1.37",
        "",
        f"{_SCHEDULER}/framework/preemption/types.go: NewPodVictim",
        came="A victim without a start time counts as started when the node's victims are listed, so that of equal"
        " priority it comes after those that have started, in the order of the node.",
    ),
    "reads_volume_limits_of_allocatable": Change(
        "",
        "1.32",
        "nodevolumelimits/csi.go: getVolumeLimits",
        went="Limits of CSI volumes are those of the CSINode alone, whatever the node's allocatable says.",
    ),
    "refuses_in_tree_volume_limits": Change(
        "1.31",
        "",
        "pkg/scheduler/apis/config/validation/validation.go: removedPluginsByVersion",
        came="A configuration that names EBSLimits, GCEPDLimits, AzureDiskLimits or CinderLimits at an extension point"
        " is refused.",
    ),
    # Where a claim does not exist, the pod is refused rather than an error raised.
    "refuses_pods_for_missing_limited_claims": Change(
        "1.30",
        "",
        "nodevolumelimits/csi.go: Filter",
        came="A claim that does not exist is a refusal by NodeVolumeLimits, not an error.",
    ),
    # PreFilter looks at the claims; before, Filter did on each node that is in a zone.
    "refuses_pods_for_zone_claims": Change("1.27", "", "volumezone/volume_zone.go: PreFilter"),
    "refuses_sidecars_before_filters": Change(
        "1.30",
        "",
        "noderesources/fit.go: PreFilter",
        came="Without SidecarContainers, a pod with sidecars is refused as such, and not node by node.",
    ),
    "restricts_to_hosts_of_volumes": Change(
        "",
        "1.29.11 1.30.7 1.31.3 1.32",
        "volumebinding/volume_binding.go: PreFilter",
        went="The hostnames of a local volume are labels to VolumeBinding, not names of nodes.",
    ),
    # Each container's request is rounded up by itself, and overhead counts in whole units, CPU too.
    "rounds_requests_by_container": Change(
        "", "1.27", "noderesources/resource_allocation.go: calculatePodResourceRequest"
    ),
    "rules_out_conflicting_plugins": Change(
        "1.30",
        "",
        f"{_SCHEDULER}/framework/runtime/framework.go: RunPreFilterPlugins",
        came="Where PreFilter plugins leave no node between them, preemption is not tried.",
    ),
    "rules_out_requests_above_allocatable": Change(
        "1.34",
        "",
        "noderesources/fit.go: fitsRequest",
        came="Preemption is not tried on a node that is too small for the pod even without other pods.",
    ),
    "scores_change_of_balance": Change(
        "1.36",
        "",
        "noderesources/balanced_allocation.go: balancedResourceScorer",
        came="NodeResourcesBalancedAllocation rates what the pod changes of the balance, 75 where it changes nothing.",
    ),
    "searches_one_node_without_scores": Change(
        "1.30",
        "",
        f"{_SCHEDULER}/schedule_one.go: findNodesThatPassFilters",
        came="Without plugins that score, the search ends at the first node that fits.",
    ),
    "skips_balance_without_requests": Change(
        "1.33",
        "",
        "noderesources/balanced_allocation.go: PreScore",
        came="NodeResourcesBalancedAllocation does not rate pods without requests.",
    ),
    "skips_idle_scores": Change(
        "1.30",
        "",
        "nodeaffinity/node_affinity.go and volumebinding/volume_binding.go: PreScore",
        came="NodeAffinity and VolumeBinding have no score of 0 where they have nothing to rate.",
    ),
    # Before, pools come in the order of a Go map.
    "sorts_pools_of_devices": Change(
        "1.36",
        "",
        "k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go: sortPoolsByID",
        came="Devices are taken from pools and slices in the order of their names.",
    ),
    "sorts_conflicting_plugins": Change(
        "1.31",
        "",
        f"{_SCHEDULER}/framework/runtime/framework.go: RunPreFilterPlugins",
        came="Plugins that leave no node between them are named in the order of the alphabet.",
    ),
    "sorts_victims_again": Change(
        "1.29.11 1.30.7 1.31.3 1.32",
        "",
        "defaultpreemption/default_preemption.go: SelectVictimsOnNode",
        came="The victims of a node are sorted by importance; before, those that violate a budget came first, and the"
        " rule of the lowest highest priority went by the first.",
    ),
    "stops_at_violated_budget": Change(
        "1.37",
        "",
        f"{_SCHEDULER}/framework/preemption/pdb.go: FilterVictimsWithPDBViolation",
        came="A victim that violates a budget takes nothing from the budgets after it.",
    ),
    "takes_args_of_dynamic_resources": Change(
        "1.34",
        "",
        "k8s.io/kube-scheduler/config/v1/types_pluginargs.go: DynamicResourcesArgs",
        came="DynamicResources takes arguments.",
    ),
    "takes_binding_timeout": Change(
        "1.35",
        "",
        "k8s.io/kube-scheduler/config/v1/types_pluginargs.go: DynamicResourcesArgs",
        came="DynamicResources takes a bindingTimeout.",
    ),
    "taints_all_devices_without_selector": Change(
        "",
        "1.37",
        "k8s.io/dynamic-resource-allocation/resourceslice/tracker/tracker.go: applyPatches",
        went="A DeviceTaintRule without a selector taints no device.",
    ),
    "reports_all_node_changes": Change(
        "1.30",
        "",
        f"{_SCHEDULER}/eventhandlers.go: updateNodeInCache",
        came="The queue is told all that an update of a node changes, annotations included, and not only the first of"
        " it.",
    ),
    "reports_claims_to_deallocate": Change(
        "",
        "1.37",
        "dynamicresources/dynamicresources.go: PostFilter",
        went="DynamicResources no longer says “no new claims to deallocate”.",
    ),
    "reports_devices_of_errors": Change(
        "1.37",
        "",
        "k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go: selectorsMatch",
        came="An error of a device selector names the device, and says how to ask for a key that may be missing.",
    ),
    "reports_omitted_nodes": Change(
        "1.30",
        "1.30.2",
        f"{_SCHEDULER}/schedule_one.go: findNodesThatFitPod",
        came="Nodes that PreFilter rules out have the reason “node is filtered out by the prefilter result”.",
        went="Nodes that PreFilter rules out are not in the message.",
    ),
    "reports_preemption": Change(
        "1.37",
        "",
        f"{_PREEMPTION}: Preempt",
        came="The message of a preemption that succeeds names the node and how many victims there are.",
    ),
    "reports_queue_sort_mismatch": Change(
        "",
        "1.30",
        "pkg/scheduler/apis/config/validation/validation.go: validateCommonQueueSort",
        went="The error about profiles that sort the queue differently says that they must be the same.",
    ),
    "reports_read_write_once_pod_by_name": Change(
        "",
        "1.34",
        "volumerestrictions/volume_restrictions.go: ErrReasonReadWriteOncePodConflict",
        went="A ReadWriteOncePod claim that is in use is told in other words.",
    ),
    "reports_selectors_as_json": Change(
        "1.34",
        "",
        "k8s.io/apimachinery/pkg/util/validation/field/errors.go: ErrorBody",
        came="An invalid selector is quoted as JSON in messages.",
    ),
    "reports_utilization_values": Change(
        "",
        "1.34",
        "pkg/scheduler/apis/config/validation/validation_pluginargs.go: validateFunctionShape",
        went="The error about the order of a shape's points does not say that it is about utilization.",
    ),
    "reports_volume_node_affinity_conflict": Change(
        "",
        "1.33",
        "volumebinding/binder.go: ErrReasonNodeConflict",
        went="A volume out of the node's reach is told as “node(s) didn't match PersistentVolume's node affinity”.",
    ),
    "reports_failed_constraints": Change(
        "1.30",
        "",
        "podtopologyspread/filtering.go: calPreFilterState",
        came="The error of a topology spread constraint says that it came from the pod.",
    ),
    "retries_spread_pods_after_other_pods": Change(
        "1.31",
        "",
        f"{_SCHEDULER}/backend/queue/scheduling_queue.go: getUnschedulablePodsWithCrossTopologyTerm",
        came="Without queueing hints a pod that PodTopologySpread refused is tried again when another of its namespace"
        " gets a node.",
    ),
    "updates_unavailable_pods_first": Change(
        "1.37",
        "",
        "pkg/controller/statefulset/stateful_set_control.go: updateStatefulSetAfterInvariantEstablished",
        came="An update of a Parallel StatefulSet takes pods that are unavailable anyway first, and however many they"
        " are.",
    ),
    "waits_for_min_ready_seconds": Change(
        "1.34",
        "",
        "pkg/controller/statefulset/stateful_set_utils.go: isUnavailable",
        came="An update of a StatefulSet waits until its pods have been ready for minReadySeconds.",
    ),
}
