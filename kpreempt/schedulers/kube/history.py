"""What changed from one version of kube-scheduler to another: each change in a sentence, with the facts that it sets.

With ``partly`` a version takes over some of the changes to another, which tells what decides where the two differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from kpreempt.scheduler_table import RELEASES
from kpreempt.schedulers.kube.changes import CHANGES
from kpreempt.schedulers.kube.gates import NOT_MODELLED
from kpreempt.schedulers.kube.plugin_table import default_plugins, plugins_in_tree
from kpreempt.schedulers.kube.versions import GATE_FIELDS, Behaviour, Gate, behavior, gates_of

_FEATURES = "pkg/features/kube_features.go"
_DEFAULT_PLUGINS = "pkg/scheduler/apis/config/v1/default_plugins.go"
_PLUGINS = "pkg/scheduler/framework/plugins"
_HOLDING = "SchedulingGates"
# The version itself, by which plugins are looked up: the one fact that is no switch.
_VERSION = "version"

# What the gates that are modelled do where they are on.
EFFECTS: Mapping[str, str] = {
    "CSIMigrationPortworx": "in-tree volumes of Portworx count as CSI volumes",
    "DRAAdminAccess": "claims may ask for access to devices that are in use",
    "DRAConsumableCapacity": "claims may share a device, each with a part of its capacity",
    "DRADeviceBindingConditions": "claims whose devices cannot be made ready are unavailable",
    "DRADeviceTaintRules": "rules taint devices",
    "DRADeviceTaints": "devices with taints go to requests that tolerate them",
    "DRAExtendedResource": "devices may serve extended resources on nodes that do not offer them",
    "DRAFractionalCapacityRange": "a share of a device's capacity may be a fraction",
    "DRAPartitionableDevices": "devices may share counters",
    "DRAPrioritizedList": "a request may have alternatives",
    "DRAResourceClaimDeviceStatus": "the binding conditions of devices are known",
    "DynamicResourceAllocation": "resource claims decide where a pod fits",
    "InPlacePodLevelResourcesVerticalScaling": "a resize of a pod's own resources counts while it is under way",
    "InPlacePodVerticalScaling": "a resize of a running pod counts while it is under way",
    "JobManagedBy": "a Job whose managedBy names another controller is left to it",
    "JobSuccessPolicy": "a Job may succeed by a part of its pods",
    "MatchLabelKeysInPodAffinity": "matchLabelKeys and mismatchLabelKeys of a new pod's affinity count",
    "MatchLabelKeysInPodTopologySpread": "matchLabelKeys of spread constraints count",
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": "the API server writes matchLabelKeys of spread constraints into"
    " their selectors, too",
    "MaxUnavailableStatefulSet": "maxUnavailable of a StatefulSet counts",
    "MinDomainsInPodTopologySpread": "minDomains of spread constraints counts",
    "NodeDeclaredFeatures": "a pod goes only to nodes that declare the features it needs",
    "NodeInclusionPolicyInPodTopologySpread": "nodeAffinityPolicy and nodeTaintsPolicy of spread constraints count",
    "PodDisruptionConditions": "victims get the condition DisruptionTarget, and a pod waits for such victims alone",
    "PodLevelResources": "requests of a pod as a whole take the place of its containers'",
    "PodLevelResourcesFixDefaulting": "requests of a new pod as a whole are completed once LimitRanges have given its"
    " containers theirs",
    "PodTopologyLabelsAdmission": "a pod gets the labels of its node's zone and region when it is bound",
    "SchedulerAsyncPreemption": "victims are deleted in the background, and lower nominations cleared before",
    "SchedulerPopFromBackoffQ": "a scheduler with nothing to do takes pods that back off",
    "SchedulerQueueingHints": "plugins are asked whether an event helps the pods that they refused",
    "SidecarContainers": "pods with sidecars are scheduled",
    "StorageCapacityScoring": "VolumeBinding rates nodes, those with more storage left higher",
    "TaintTolerationComparisonOperators": "tolerations may compare numbers (Lt, Gt)",
    "VolumeAttributesClass": "a claim binds only to volumes of its VolumeAttributesClass",
    "VolumeCapacityPriority": "VolumeBinding rates nodes, those whose volumes would be fuller higher",
    "VolumeLimitScaling": "nodes without a volume's CSI driver are refused",
}


class Concern(StrEnum):
    """What a change is about. All but ``DECISIONS`` leave where a pod goes, and whom it evicts, as they were.

    ``UNUSUAL`` is what nothing brings about in a cluster without settings of its own.
    """

    DECISIONS = "decisions"
    WORDS = "words"
    SCORES_TOLD = "scores told"
    QUEUE = "queue"
    EFFECTS = "effects"
    API_SERVER = "API server"
    CONTROLLERS = "controllers"
    CONFIGURATION = "configuration"
    UNUSUAL = "unusual"
    NOT_MODELLED = "not modelled"


# What the facts are about that no decision hangs on, or none in usual clusters.
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
    Concern.SCORES_TOLD: {"skips_idle_scores"},
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
        "eviction_refuses_unreadable_store_option",
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
        "refuses_in_tree_volume_limits",
        "takes_args_of_dynamic_resources",
        "takes_binding_timeout",
        "reports_queue_sort_mismatch",
        "reports_utilization_values",
    },
    # They decide, but by default nothing comes to them.
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
        "refuses_pods_for_missing_limited_claims",
        "refuses_sidecars_before_filters",
        "rules_out_conflicting_plugins",
        "searches_one_node_without_scores",
        "sorts_pools_of_devices",
    },
}
_CONCERN_OF = {field: concern for concern, fields in _CONCERNS.items() for field in fields}
# With these a decision cannot be another; the others are tried where one is to be explained.
_WITHOUT_DECISIONS = frozenset(Concern) - {Concern.DECISIONS, Concern.UNUSUAL}


class DescribedChange(NamedTuple):
    """One change in a sentence, and where it is seen.

    ``name`` is that of the fact or the gate, in words with hyphens. ``facts`` are the fields of a ``Behaviour`` that
    it sets; none for a gate of which nothing is modelled. ``also_in`` are older releases to which it was carried back.
    """

    name: str
    sentence: str
    source: str
    concern: Concern = Concern.DECISIONS
    facts: tuple[str, ...] = ()
    also_in: tuple[str, ...] = ()

    @property
    def decides(self) -> bool:
        """Whether a decision may be another with it."""
        return self.concern not in _WITHOUT_DECISIONS


def changes_in(minor: str) -> list[DescribedChange]:
    """What is otherwise in ``minor`` than in the version before it: rules, gates' defaults, default plugins.

    Nothing for the first of ``RELEASES``; raises ``ValueError`` for one that is not among them.
    """
    minors = list(RELEASES)
    place = minors.index(minor)
    return changes_between(behavior(minors[place - 1]), behavior(minor)) if place else []


def changes_between(before: Behaviour, after: Behaviour) -> list[DescribedChange]:
    """What is otherwise in a later version, with the gates that are set in each."""
    return [*_rules(before, after), *_gates(before, after), *_plugins(before, after)]


def known_changes(minor: str) -> list[str]:
    """What is known to be otherwise in the oldest modelled version than in ``minor``, which is older, in sentences.

    Nothing where nothing is known: for newer versions, and for those from before the tables begin.
    """
    oldest, number = next(iter(RELEASES)), int(minor.split(".")[1])
    if not _FIRST_MINOR <= number < int(oldest.split(".")[1]):
        return []
    return [each.sentence for each in changes_between(behavior(minor), behavior(oldest)) if each.sentence]


# The version from which on the tables of gates and plugins are whole.
_FIRST_MINOR = 25
_ON = {True: "on", False: "off"}


def partly(before: Behaviour, after: Behaviour, changes: Collection[DescribedChange]) -> Behaviour:
    """The earlier version with some of the changes to the later one, and nothing else of it."""
    fields = {field for change in changes for field in change.facts}
    return before._replace(**{field: getattr(after, field) for field in fields})


def _rules(before: Behaviour, after: Behaviour) -> Iterator[DescribedChange]:
    for field, change in CHANGES.items():
        if getattr(before, field) == getattr(after, field):
            continue
        source = change.source if change.source.startswith(("pkg/", "k8s.io/")) else f"{_PLUGINS}/{change.source}"
        sentence = change.came if getattr(after, field) else change.went
        concern = _CONCERN_OF.get(field, Concern.DECISIONS)
        *also_in, _ = (change.since if getattr(after, field) else change.until).split()
        yield DescribedChange(field.replace("_", "-"), sentence, source, concern, (field,), tuple(also_in))


def _gates(before: Behaviour, after: Behaviour) -> Iterator[DescribedChange]:
    newly_there = plugins_in_tree(after.version).keys() - plugins_in_tree(before.version).keys()
    was, is_now = (gates_of(each.version, NOT_MODELLED) for each in (before, after))
    for name in sorted({*GATE_FIELDS, *is_now}):
        field = GATE_FIELDS.get(name)
        if field is None:
            if is_now[name].default != was.get(name, Gate("", False)).default:
                sentence = f"{name} is {_ON[is_now[name].default]} by default; what it does is not modelled."
                yield DescribedChange(name, sentence, _FEATURES, Concern.NOT_MODELLED)
        elif getattr(before, field) != getattr(after, field):
            sentence = f"{name} is {_ON[getattr(after, field)]} by default: {EFFECTS[name]}."
            concern = _CONCERN_OF.get(field, Concern.DECISIONS)
            # The gate of a plugin that there was not before goes with the plugin.
            facts = (field, _VERSION) if name in newly_there else (field,)
            yield DescribedChange(field.replace("_", "-"), sentence, _FEATURES, concern, facts)


def _plugins(before: Behaviour, after: Behaviour) -> Iterator[DescribedChange]:
    then, now = default_plugins(before), default_plugins(after)
    names, later = ([each.name for each in plugins] for plugins in (then, now))
    if gone := [name for name in names if name not in later]:
        words = "is no default plugin" if len(gone) == 1 else "are no default plugins"
        sentence = f"{_listed(gone)} {words} any more: in-tree volumes count only where they are CSI volumes."
        yield DescribedChange("default-plugins", sentence, _DEFAULT_PLUGINS, Concern.DECISIONS, (_VERSION,))
    if removed := sorted(plugins_in_tree(before.version).keys() - plugins_in_tree(after.version).keys()):
        sentence = f"A configuration cannot name {_listed(removed, 'or')} any more: there is no such plugin."
        yield DescribedChange("removed-plugins", sentence, _PLUGINS, Concern.CONFIGURATION)
    points = [plugins_in_tree(each.version) for each in (before, after)]
    rating = [name for name in names if name in later and "score" in points[1][name] - points[0][name]]
    if rating:
        sentence = f"{_listed(rating)} {'rates' if len(rating) == 1 else 'rate'} nodes, too."
        yield DescribedChange("rating-plugins", sentence, _PLUGINS, Concern.SCORES_TOLD)
    # The place of the first has no effect: it holds pods back before they are tried.
    kept = [name for name in names if name in later and name != _HOLDING]
    if kept != [name for name in later if name in names and name != _HOLDING]:
        sentence = "The default plugins run in another order, so that a node may be refused for another reason."
        yield DescribedChange("order-of-plugins", sentence, _DEFAULT_PLUGINS, Concern.WORDS, (_VERSION,))


def _listed(names: list[str], last: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
