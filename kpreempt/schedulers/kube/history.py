"""Changes between versions of kube-scheduler: one sentence each, and the facts that it sets.

``partly`` applies some of the changes between two versions, which shows the changes that cause a different decision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from kpreempt.scheduler_table import RELEASES
from kpreempt.schedulers.kube.changes import CHANGES
from kpreempt.schedulers.kube.gates import UNMODELED
from kpreempt.schedulers.kube.plugin_table import default_plugins, plugins_in_tree
from kpreempt.schedulers.kube.versions import GATE_FIELDS, Behavior, Gate, behavior, gates_of

_FEATURES = "pkg/features/kube_features.go"
_DEFAULT_PLUGINS = "pkg/scheduler/apis/config/v1/default_plugins.go"
_PLUGINS = "pkg/scheduler/framework/plugins"
_HOLDING = "SchedulingGates"
# The version itself, by which plugins are looked up; the only fact that is not a switch.
_VERSION = "version"

# What the modeled gates do when enabled.
EFFECTS: Mapping[str, str] = {
    "CSIMigrationPortworx": "in-tree Portworx volumes count as CSI volumes",
    "DRAAdminAccess": "claims may request access to devices that are in use",
    "DRAConsumableCapacity": "claims may share a device, each using part of its capacity",
    "DRADeviceBindingConditions": "claims whose devices fail to become ready are unavailable",
    "DRADeviceTaintRules": "rules taint devices",
    "DRADeviceTaints": "tainted devices are only allocated to requests that tolerate the taints",
    "DRAExtendedResource": "devices may provide extended resources on nodes without a device plugin for them",
    "DRAFractionalCapacityRange": "a share of a device's capacity may be fractional",
    "DRAPartitionableDevices": "devices may share counters",
    "DRAPrioritizedList": "a request may have alternatives",
    "DRAResourceClaimDeviceStatus": "devices' binding conditions are reported",
    "DynamicResourceAllocation": "resource claims restrict the nodes that fit a pod",
    "InPlacePodLevelResourcesVerticalScaling": "an in-progress resize of pod-level resources counts",
    "InPlacePodVerticalScaling": "an in-progress resize of a running pod counts",
    "JobManagedBy": "a Job whose managedBy names another controller is left to that controller",
    "JobSuccessPolicy": "a Job may succeed when only some of its pods have succeeded",
    "MatchLabelKeysInPodAffinity": "matchLabelKeys and mismatchLabelKeys in a new pod's affinity take effect",
    "MatchLabelKeysInPodTopologySpread": "matchLabelKeys in spread constraints take effect",
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": "the API server also merges spread constraints'"
    " matchLabelKeys into their selectors",
    "MaxUnavailableStatefulSet": "a StatefulSet's maxUnavailable takes effect",
    "MinDomainsInPodTopologySpread": "minDomains in spread constraints takes effect",
    "NodeDeclaredFeatures": "a pod goes only to nodes that declare the features it needs",
    "NodeInclusionPolicyInPodTopologySpread": "nodeAffinityPolicy and nodeTaintsPolicy of spread constraints apply",
    "PodDisruptionConditions": "victims get the DisruptionTarget condition, and a pod waits only for victims with it",
    "PodLevelResources": "pod-level requests replace the sum of the containers' requests",
    "PodLevelResourcesFixDefaulting": "a new pod's pod-level requests are defaulted after LimitRanges have set its"
    " containers' requests",
    "PodTopologyLabelsAdmission": "a pod gets its node's zone and region labels when it is bound",
    "SchedulerAsyncPreemption": "victims are deleted in the background, after lower-priority nominations are cleared",
    "SchedulerPopFromBackoffQ": "an idle scheduler tries pods that are still backing off",
    "SchedulerQueueingHints": "plugins decide whether an event may help the pods that they rejected",
    "SidecarContainers": "pods with sidecars are scheduled",
    "StorageCapacityScoring": "VolumeBinding scores nodes, preferring those with more free storage",
    "TaintTolerationComparisonOperators": "tolerations may compare numbers (Lt, Gt)",
    "VolumeAttributesClass": "a claim binds only to volumes of its VolumeAttributesClass",
    "VolumeCapacityPriority": "VolumeBinding scores nodes, preferring those whose volumes would be fuller",
    "VolumeLimitScaling": "nodes without a volume's CSI driver are rejected",
}


class Concern(StrEnum):
    """The subject of a change. Only ``DECISIONS`` can change where a pod goes or which pods it evicts.

    ``UNUSUAL`` changes have no effect in a cluster with default settings.
    """

    DECISIONS = "decisions"
    WORDS = "words"
    SCORES_REPORTED = "scores reported"
    QUEUE = "queue"
    EFFECTS = "effects"
    API_SERVER = "API server"
    CONTROLLERS = "controllers"
    CONFIGURATION = "configuration"
    UNUSUAL = "unusual"
    UNMODELED = "not modeled"


# Facts that affect no decision, or none in common clusters, and what they are about.
_CONCERNS: Mapping[Concern, Collection[str]] = {
    Concern.WORDS: {
        "capitalizes_owners_of_claims",
        "explains_absent_nodes",
        "lists_missing_features",
        "names_untolerated_taint",
        "sorts_conflicting_plugins",
        "reports_claims_to_deallocate",
        "reports_devices_of_errors",
        "reports_omitted_nodes",
        "reports_preemption",
        "reports_read_write_once_pod_by_name",
        "reports_selectors_as_json",
        "reports_volume_node_affinity_conflict",
        "reports_failed_constraints",
    },
    Concern.SCORES_REPORTED: {"skips_idle_scores"},
    Concern.QUEUE: {
        "backs_off_by_attempts",
        "scheduler_pop_from_backoff_q",
        "scheduler_queueing_hints",
        "reports_all_node_changes",
        "retries_spread_pods_after_other_pods",
    },
    Concern.EFFECTS: {"deletes_terminating_victims", "patches_status_of_preemptor", "scheduler_async_preemption"},
    Concern.API_SERVER: {
        "forbidden_evictions_have_reason",
        "eviction_rejections_have_reason",
        "eviction_rejects_unreadable_store_option",
        "clamps_grace_end",
        "match_label_keys_in_pod_topology_spread_selector_merge",
        "pod_topology_labels_admission",
    },
    Concern.CONTROLLERS: {
        "counts_replaced_daemon_pods",
        "counts_restarts_of_sidecars",
        "job_managed_by",
        "job_success_policy",
        "keeps_jobs_until_their_pods_end",
        "max_unavailable_stateful_set",
        "updates_unavailable_pods_first",
        "waits_for_min_ready_seconds",
    },
    Concern.CONFIGURATION: {
        "checks_strategies_strictly",
        "has_placement_points",
        "has_pod_group_points",
        "has_volume_capacity_priority",
        "names_queue_sort_twice",
        "rejects_in_tree_volume_limits",
        "takes_args_of_dynamic_resources",
        "takes_binding_timeout",
        "reports_queue_sort_mismatch",
        "reports_utilization_values",
    },
    # These affect decisions, but nothing triggers them by default.
    Concern.UNUSUAL: {
        "allocates_from_incomplete_pools",
        "compares_attributes_of_all_devices",
        "dra_admin_access",
        "dra_consumable_capacity",
        "dra_device_binding_conditions",
        "dra_device_taint_rules",
        "taints_all_devices_without_selector",
        "dra_device_taints",
        "dra_fractional_capacity_range",
        "dra_partitionable_devices",
        "dra_prioritized_list",
        "dra_resource_claim_device_status",
        "continues_after_a_rejection",
        "finds_shared_counters_everywhere",
        "follows_actuated_resources_alone",
        "follows_allocated_resources_alone",
        "infers_user_namespaces_on_host_network",
        "leaves_alternatives_of_all_devices",
        "keeps_nominated_pods_complete",
        "leaves_unlisted_resources_to_devices",
        "needs_no_consent_of_csi_drivers",
        "reads_resize_from_status",
        "scores_fit_by_complete_pods",
        "rejects_pods_for_missing_limited_claims",
        "rejects_sidecars_before_filters",
        "rules_out_conflicting_plugins",
        "searches_one_node_without_scores",
        "sorts_pools_of_devices",
    },
}
_CONCERN_OF = {field: concern for concern, fields in _CONCERNS.items() for field in fields}
# These cannot change a decision; the others are tried when a difference is explained.
_WITHOUT_DECISIONS = frozenset(Concern) - {Concern.DECISIONS, Concern.UNUSUAL}


class DescribedChange(NamedTuple):
    """One change in a sentence, and its upstream source.

    ``name`` is the fact or the gate, in words with hyphens. ``facts`` are the fields of a ``Behavior`` that it sets,
    empty for an unmodeled gate. ``also_in`` lists older releases to which it was backported.
    """

    name: str
    sentence: str
    source: str
    concern: Concern = Concern.DECISIONS
    facts: tuple[str, ...] = ()
    also_in: tuple[str, ...] = ()

    @property
    def decides(self) -> bool:
        """Whether it can change a decision."""
        return self.concern not in _WITHOUT_DECISIONS


def changes_in(minor: str) -> list[DescribedChange]:
    """List what ``minor`` changes compared with the version before it: rules, gate defaults, default plugins.

    Empty for the first of ``RELEASES``. Raises ``ValueError`` for a version that is not in it.
    """
    minors = list(RELEASES)
    place = minors.index(minor)
    return changes_between(behavior(minors[place - 1]), behavior(minor)) if place else []


def changes_between(before: Behavior, after: Behavior) -> list[DescribedChange]:
    """List the differences in a later version, each version with its own gates."""
    return [*_rules(before, after), *_gates(before, after), *_plugins(before, after)]


def known_changes(minor: str) -> list[str]:
    """List the known differences, in sentences, between the oldest modeled version and an older ``minor``.

    Empty if none are known: for newer versions, and for those before the tables begin.
    """
    oldest, number = next(iter(RELEASES)), int(minor.split(".")[1])
    if not _FIRST_MINOR <= number < int(oldest.split(".")[1]):
        return []
    return [each.sentence for each in changes_between(behavior(minor), behavior(oldest)) if each.sentence]


# The first version for which the tables of gates and plugins are complete.
_FIRST_MINOR = 25
_ON = {True: "on", False: "off"}


def partly(before: Behavior, after: Behavior, changes: Collection[DescribedChange]) -> Behavior:
    """Apply some of the changes to the later version to the earlier one, and nothing else."""
    fields = {field for change in changes for field in change.facts}
    return before._replace(**{field: getattr(after, field) for field in fields})


def _rules(before: Behavior, after: Behavior) -> Iterator[DescribedChange]:
    for field, change in CHANGES.items():
        if getattr(before, field) == getattr(after, field):
            continue
        source = change.source if change.source.startswith(("pkg/", "k8s.io/")) else f"{_PLUGINS}/{change.source}"
        sentence = change.added if getattr(after, field) else change.removed
        concern = _CONCERN_OF.get(field, Concern.DECISIONS)
        *also_in, _ = (change.since if getattr(after, field) else change.until).split()
        yield DescribedChange(field.replace("_", "-"), sentence, source, concern, (field,), tuple(also_in))


def _gates(before: Behavior, after: Behavior) -> Iterator[DescribedChange]:
    newly_there = plugins_in_tree(after.version).keys() - plugins_in_tree(before.version).keys()
    was, is_now = (gates_of(each.version, UNMODELED) for each in (before, after))
    for name in sorted({*GATE_FIELDS, *is_now}):
        field = GATE_FIELDS.get(name)
        if field is None:
            if is_now[name].default != was.get(name, Gate("", False)).default:
                sentence = f"{name} is {_ON[is_now[name].default]} by default; its effect is not modeled."
                yield DescribedChange(name, sentence, _FEATURES, Concern.UNMODELED)
        elif getattr(before, field) != getattr(after, field):
            sentence = f"{name} is {_ON[getattr(after, field)]} by default: {EFFECTS[name]}."
            concern = _CONCERN_OF.get(field, Concern.DECISIONS)
            # The gate of a new plugin appears together with the plugin.
            facts = (field, _VERSION) if name in newly_there else (field,)
            yield DescribedChange(field.replace("_", "-"), sentence, _FEATURES, concern, facts)


def _plugins(before: Behavior, after: Behavior) -> Iterator[DescribedChange]:
    then, now = default_plugins(before), default_plugins(after)
    names, later = ([each.name for each in plugins] for plugins in (then, now))
    if former := [name for name in names if name not in later]:
        words = "is no longer a default plugin" if len(former) == 1 else "are no longer default plugins"
        sentence = f"{_listed(former)} {words}: in-tree volumes count only if they are CSI volumes."
        yield DescribedChange("default-plugins", sentence, _DEFAULT_PLUGINS, Concern.DECISIONS, (_VERSION,))
    if removed := sorted(plugins_in_tree(before.version).keys() - plugins_in_tree(after.version).keys()):
        sentence = f"A configuration can no longer name {_listed(removed, 'or')}: the plugin was removed."
        yield DescribedChange("removed-plugins", sentence, _PLUGINS, Concern.CONFIGURATION)
    points = [plugins_in_tree(each.version) for each in (before, after)]
    scoring = [name for name in names if name in later and "score" in points[1][name] - points[0][name]]
    if scoring:
        sentence = f"{_listed(scoring)} {'scores' if len(scoring) == 1 else 'score'} nodes, too."
        yield DescribedChange("scoring-plugins", sentence, _PLUGINS, Concern.SCORES_REPORTED)
    # The position of the first one has no effect: it gates pods before they are tried.
    kept = [name for name in names if name in later and name != _HOLDING]
    if kept != [name for name in later if name in names and name != _HOLDING]:
        sentence = "The default plugins run in a different order, so a node may be rejected for a different reason."
        yield DescribedChange("order-of-plugins", sentence, _DEFAULT_PLUGINS, Concern.WORDS, (_VERSION,))


def _listed(names: list[str], last: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
