"""Facts that differ between versions of kube-scheduler; no other module compares versions.

Feature gates (``gates.py``), plugins (``plugin_table.py``) and ungated changes (``changes.py``) have version bounds.
All other modules read a ``Behavior``, which has the facts that hold in a version under the gates that are set.

A version is either a release (``1.34.1``) or a minor version, which stands for one of its releases (``RELEASES`` in
``kpreempt/scheduler_table.py``).

Gate settings are parsed and rejected as in ``featuregate/feature_gate.go`` (component-base v0.36.3).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

from kpreempt.errors import UsageError
from kpreempt.scheduler_table import DEFAULT_VERSION, PREFIX, RELEASES
from kpreempt.schedulers.kube.changes import CHANGES
from kpreempt.schedulers.kube.gates import DEPENDENCIES, IRRELEVANT, LOCKED, MODELED, UNMODELED

# Releases of unmodeled minor versions, and the minor version whose scheduler they share.
ALIKE = {"1.38.0-alpha.0": "1.37"}


class Behavior(NamedTuple):
    """Facts that hold in a version: the modeled gates, by their names in snake case, then ``CHANGES``.

    ``version`` is for display; decisions depend on the facts. A removed gate keeps its last value.
    """

    version: str
    capitalizes_owners_of_claims: bool
    csi_migration_portworx: bool
    dra_admin_access: bool
    dra_consumable_capacity: bool
    dra_device_binding_conditions: bool
    dra_device_taint_rules: bool
    dra_device_taints: bool
    dra_extended_resource: bool
    dra_fractional_capacity_range: bool
    dra_partitionable_devices: bool
    dra_prioritized_list: bool
    dra_resource_claim_device_status: bool
    dynamic_resource_allocation: bool
    in_place_pod_level_resources_vertical_scaling: bool
    in_place_pod_vertical_scaling: bool
    job_managed_by: bool
    job_success_policy: bool
    match_label_keys_in_pod_affinity: bool
    match_label_keys_in_pod_topology_spread: bool
    match_label_keys_in_pod_topology_spread_selector_merge: bool
    max_unavailable_stateful_set: bool
    min_domains_in_pod_topology_spread: bool
    node_declared_features: bool
    node_inclusion_policy_in_pod_topology_spread: bool
    pod_disruption_conditions: bool
    pod_level_resources: bool
    pod_level_resources_fix_defaulting: bool
    pod_topology_labels_admission: bool
    scheduler_async_preemption: bool
    scheduler_pop_from_backoff_q: bool
    scheduler_queueing_hints: bool
    sidecar_containers: bool
    storage_capacity_scoring: bool
    taint_toleration_comparison_operators: bool
    volume_attributes_class: bool
    volume_capacity_priority: bool
    volume_limit_scaling: bool

    adds_sidecars_to_scored_requests: bool
    allocates_from_incomplete_pools: bool
    backs_off_by_attempts: bool
    checks_strategies_strictly: bool
    compares_attributes_of_all_devices: bool
    compares_resizes_by_pod: bool
    continues_after_a_rejection: bool
    counts_image_volumes: bool
    counts_image_volumes_in_threshold: bool
    counts_images_of_init_containers: bool
    counts_pods_for_empty_selectors: bool
    counts_ports_of_sidecars: bool
    counts_replaced_daemon_pods: bool
    counts_restarts_of_sidecars: bool
    counts_spread_by_constraint: bool
    counts_volume_attachments: bool
    deletes_terminating_victims: bool
    dry_runs_absent_nodes: bool
    forbidden_evictions_have_reason: bool
    eviction_rejections_have_reason: bool
    eviction_rejects_unreadable_store_option: bool
    explains_absent_nodes: bool
    finds_shared_counters_everywhere: bool
    finds_zones_under_stable_labels: bool
    follows_actuated_resources_alone: bool
    follows_allocated_resources_alone: bool
    clamps_grace_end: bool
    has_placement_points: bool
    has_pod_group_points: bool
    has_volume_capacity_priority: bool
    infers_user_namespaces_on_host_network: bool
    keeps_jobs_until_their_pods_end: bool
    keeps_namespace_selectors: bool
    keeps_nominated_pods_complete: bool
    reserves_gated_pods: bool
    leaves_unlisted_resources_to_devices: bool
    leaves_alternatives_of_all_devices: bool
    lists_missing_features: bool
    migrates_disks_by_annotation: bool
    migrates_portworx_by_annotation: bool
    names_untolerated_taint: bool
    needs_no_consent_of_csi_drivers: bool
    patches_status_of_preemptor: bool
    names_queue_sort_twice: bool
    scores_fit_by_complete_pods: bool
    reads_resize_from_status: bool
    reads_start_times_once: bool
    reads_volume_limits_of_allocatable: bool
    rejects_in_tree_volume_limits: bool
    rejects_pods_for_missing_limited_claims: bool
    rejects_pods_for_zone_claims: bool
    rejects_sidecars_before_filters: bool
    restricts_to_hosts_of_volumes: bool
    rounds_requests_by_container: bool
    rules_out_conflicting_plugins: bool
    rules_out_requests_above_allocatable: bool
    scores_change_of_balance: bool
    searches_one_node_without_scores: bool
    skips_balance_without_requests: bool
    skips_idle_scores: bool
    sorts_conflicting_plugins: bool
    sorts_pools_of_devices: bool
    sorts_victims_again: bool
    stops_at_violated_budget: bool
    takes_args_of_dynamic_resources: bool
    takes_binding_timeout: bool
    taints_all_devices_without_selector: bool
    reports_all_node_changes: bool
    reports_claims_to_deallocate: bool
    reports_devices_of_errors: bool
    reports_omitted_nodes: bool
    reports_preemption: bool
    reports_queue_sort_mismatch: bool
    reports_read_write_once_pod_by_name: bool
    reports_selectors_as_json: bool
    reports_utilization_values: bool
    reports_volume_node_affinity_conflict: bool
    reports_failed_constraints: bool
    retries_spread_pods_after_other_pods: bool
    updates_unavailable_pods_first: bool
    waits_for_min_ready_seconds: bool


class Gate(NamedTuple):
    """A feature gate in one version; ``stage`` is ``alpha``, ``beta``, ``GA``, ``deprecated`` or ``locked``."""

    stage: str
    default: bool


# Words of a field name that are upper case in the gate's name.
_ACRONYMS = {"csi": "CSI", "dra": "DRA"}
# The fact that each modeled gate sets, by the gate's name.
GATE_FIELDS: Mapping[str, str] = {
    "".join(_ACRONYMS.get(word, word.capitalize()) for word in field.split("_")): field
    for field in Behavior._fields[1:]
    if field not in CHANGES
}


def behavior(version: str = DEFAULT_VERSION, gates: Mapping[str, bool] | None = None) -> Behavior:
    """Return the facts of a version with ``gates`` (registered name to value) set; only modeled gates count.

    ``behavior_with`` checks whether the scheduler accepts the settings.
    """
    usual = _usual(version)
    settings: dict[str, Any] = {
        GATE_FIELDS[name]: value for name, value in (gates or {}).items() if name in GATE_FIELDS
    }
    return usual._replace(**settings) if settings else usual


def modeled_gates(facts: Behavior) -> dict[str, bool]:
    """Return the modeled gates that exist in the version, with their values."""
    known = gates_of(facts.version, MODELED)
    return {name: getattr(facts, field) for name, field in GATE_FIELDS.items() if name in known}


def known_gates(version: str = DEFAULT_VERSION) -> dict[str, Gate]:
    """Return all gates that can be set in the version."""
    tables = (MODELED, UNMODELED, *IRRELEVANT.values(), LOCKED)
    return {name: gate for table in tables for name, gate in gates_of(version, table).items()}


@cache
def gates_of(version: str, table: str) -> Mapping[str, Gate]:
    """Return the gates in a table of ``gates.py`` that exist in the version."""
    return {name: gate for name, gate, is_deleted in _gates(version, table) if not is_deleted}


@cache
def needed_gates(version: str = DEFAULT_VERSION) -> Mapping[str, tuple[str, ...]]:
    """Return the gates that require other gates, in name order, with those other gates; empty before 1.35."""
    needed: dict[str, tuple[str, ...]] = {}
    for head, names in _rows(DEPENDENCIES):
        first, *others = head.split()
        since, hyphen, until = first.partition("-")
        if not hyphen:
            since, others = "", [first, *others]
        if holds(version, since or _DEPENDENCIES_SINCE, until):
            needed |= {name: tuple(others) for name in names}
    return dict(sorted(needed.items()))


# Before 1.35, gates could be set without their dependencies.
_DEPENDENCIES_SINCE = "1.35"


class ModeledVersion(NamedTuple):
    """The algorithm used for a release, and how close it is.

    The match is ``exact``, or the release belongs to an unmodeled minor version that is known to decide like this one
    (``alike``), or this is the ``nearest older`` version or, if there is none, the ``nearest newer`` one.
    """

    algorithm: str
    fit: Literal["exact", "alike", "nearest older", "nearest newer"]


def modeled_version(server: str) -> ModeledVersion | None:
    """Find the algorithm for a server's version (``v1.33.5-eks-abc``: ``kube-1.33.5``); ``None`` if it is invalid.

    Without a patch level, and for a patch level that is not released yet (``v1.36.0-alpha.1``), the minor version is
    used.
    """
    found = _SERVER.match(server.strip())
    if found is None:
        return None
    minor, patch = f"{int(found[1])}.{int(found[2])}", found[3]
    if minor in RELEASES:
        is_release = patch is not None and not found[4]
        return ModeledVersion(f"{PREFIX}{minor}.{int(patch)}" if is_release else f"{PREFIX}{minor}", "exact")
    text = server.strip().removeprefix("v")
    for release, modeled_release in ALIKE.items():
        # Ignore vendor suffixes.
        if text == release or text.startswith((f"{release}-", f"{release}+")):
            return ModeledVersion(f"{PREFIX}{modeled_release}", "alike")
    older = [each for each in RELEASES if _number(each) < _number(minor)]
    if older:
        return ModeledVersion(f"{PREFIX}{older[-1]}", "nearest older")
    return ModeledVersion(f"{PREFIX}{next(iter(RELEASES))}", "nearest newer")


def number_of_server(server: str) -> tuple[int, ...] | None:
    """Return the two or three numbers of a server's or kubelet's version; ``None`` if it is not a Kubernetes version.

    Virtual nodes report the version of whatever runs in their place (``kwok-v0.7.0``, ``v0.3.1``).
    """
    found = _SERVER.match(server.strip())
    if found is None or int(found[1]) < 1:
        return None
    return tuple(int(each) for each in found.groups()[:3] if each is not None)


def minor_of_server(server: str) -> int | None:
    """Return the minor version of a server (``v1.33.5``: 33); ``None`` unless it is a version 1 of Kubernetes."""
    number = number_of_server(server)
    return number[1] if number and number[0] == 1 else None


def version_of(algorithm: str) -> str | None:
    """Return the version in an algorithm's name (``1.34`` or ``1.34.1``); ``None`` for another scheduler."""
    found = _ALGORITHM.fullmatch(algorithm)
    return found[1] if found is not None and found[2] in RELEASES else None


def minor_version_of(algorithm: str) -> int:
    """Return the minor version of the cluster that an algorithm belongs to; for other schedulers, the default one."""
    return number_of(version_of(algorithm) or DEFAULT_VERSION)[1]


def decide_equally(one: str, other: str) -> bool:
    """Return whether two releases of one minor version have the same rules with default gates."""
    return minor_of(one) == minor_of(other) and _usual(one)._replace(version=other) == _usual(other)


def number_of(version: str) -> tuple[int, ...]:
    """Return a version as a sortable tuple; a minor version is the release that it stands for."""
    return _number(RELEASES.get(version, version))


def minor_of(version: str) -> str:
    """Return the minor version that a version belongs to."""
    return ".".join(version.split(".")[:2])


# A suffix is either a vendor's (``-eks-1a2b``, ``+k3s1``) or marks a pre-release.
_SERVER = re.compile(r"v?(\d+)\.(\d+)\+?(?:\.(\d+))?(-(?:alpha|beta|rc)\b)?")
_ALGORITHM = re.compile(r"kube-((1\.(?:0|[1-9]\d*))(?:\.(?:0|[1-9]\d*))?)")


@cache
def _usual(version: str) -> Behavior:
    defaults = {name: gate.default for name, gate, _ in _gates(version, MODELED)}
    gates = {field: defaults.get(name, False) for name, field in GATE_FIELDS.items()}
    changes = {field: holds(version, each.since, each.until) for field, each in CHANGES.items()}
    return Behavior(version, **gates, **changes)


def _gates(version: str, table: str) -> Iterator[tuple[str, Gate, bool]]:
    """Yield all gates introduced up to the version, and whether they have been removed."""
    for history, names in _rows(table):
        gate, is_deleted = None, False
        for entry in history.split(", "):
            since, stage, *value = entry.split()
            if not holds(version, since):
                break
            is_deleted = stage == "gone"
            gate = gate if is_deleted else Gate(stage, value == ["on"])
        if gate is not None:
            yield from ((name, gate, is_deleted) for name in names)


def _rows(table: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the text before the colon of each row and the names after it; a row may continue on the next line."""
    head, *rest = table.split(":")
    for part in rest:
        names, _, following = part.rpartition("\n")
        yield head.strip(), names.split()
        head = following


def holds(version: str, since: str, until: str = "") -> bool:
    """Return whether ``since`` <= version < ``until``; an empty text is no bound."""
    return (not since or _has_reached(version, since)) and (not until or not _has_reached(version, until))


@cache
def _has_reached(version: str, bound: str) -> bool:
    """Return whether a version is at or after a bound; a bound with several versions is a backported change."""
    number = number_of(version)
    bounds = [_number(each) for each in bound.split()]
    return number >= bounds[-1] or any(number[:2] == each[:2] and number >= each for each in bounds)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


# The model covers the versions in which it is on by default; earlier ones allocated devices differently.
_DEVICES = "DynamicResourceAllocation"
_OF_DEVICES = frozenset(name for name in GATE_FIELDS if name.startswith("DRA"))
_OPTION = "--feature-gates"
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))
# Settings for all gates of one stage.
_ALL = {"AllAlpha": "alpha", "AllBeta": "beta"}


def parse_feature_gates(text: str) -> dict[str, bool]:
    """Parse a text like ``A=true,B=false``, as the scheduler's option does.

    Raises ``UsageError`` for a part that is not ``NAME=BOOL``. Whether the gates exist is checked when they are set.
    """
    settings: dict[str, bool] = {}
    for part in text.split(","):
        if not part:
            continue
        name, separator, value = (piece.strip() for piece in part.partition("="))
        if not separator:
            raise UsageError(f"{_OPTION}: missing bool value for {name}", hint=f"{name}=true")
        if value not in _TRUE | _FALSE:
            reason = f'strconv.ParseBool: parsing "{value}": invalid syntax'
            raise UsageError(f"{_OPTION}: invalid value of {name}={value}, err: {reason}", hint="true, false")
        settings[name] = value in _TRUE
    return settings


def behavior_with(settings: Mapping[str, bool], version: str = DEFAULT_VERSION) -> tuple[Behavior, list[str]]:
    """Apply ``settings`` (registered name to value) to the version's gates, and return the resulting facts.

    The second result lists gates that affect scheduling decisions and are set to a value that is not modeled. Raises
    ``UsageError`` if the scheduler would reject the settings.
    """
    if not settings:
        return behavior(version), []
    known = known_gates(version)
    values = _applied(settings, known, needed_gates(version))
    # Gates that may affect decisions and are not modeled.
    locked_later = {name: gate for name, gate in gates_of(version, LOCKED).items() if gate.stage != "locked"}
    other_gates = {**gates_of(version, UNMODELED), **locked_later}
    unmodeled = {name for name, gate in other_gates.items() if values[name] != gate.default}
    unmodeled |= {name for name in _OF_DEVICES & known.keys() if values[name] and known[name].stage == "alpha"}
    if values.get(_DEVICES) and not known[_DEVICES].default:
        unmodeled.add(_DEVICES)
    return behavior(version, values), sorted(unmodeled)


def _applied(
    settings: Mapping[str, bool], gates: Mapping[str, Gate], dependencies: Mapping[str, tuple[str, ...]]
) -> dict[str, bool]:
    unknown = sorted(name for name in settings if name not in gates and name not in _ALL)
    if unknown:
        # A gate whose name differs only in case, if any.
        similar = next((name for name in gates if name.lower() == unknown[0].lower()), "")
        raise UsageError(f"{_OPTION}: unrecognized feature gate: {unknown[0]}", hint=similar)
    values = {name: gate.default for name, gate in gates.items()}
    for all_of, stage in _ALL.items():
        if all_of in settings:
            values |= {name: settings[all_of] for name, gate in gates.items() if gate.stage == stage}
    values |= {name: value for name, value in settings.items() if name in values}
    locked = [
        f"cannot set feature gate {name} to {str(value).lower()}, feature is locked to {str(not value).lower()}"
        for name, value in sorted(settings.items())
        if name in gates and gates[name] == ("locked", not value)
    ]
    problems = locked or [
        f"{name} is enabled, but depends on features that are disabled: [{' '.join(disabled)}]"
        for name, needed in dependencies.items()
        if values.get(name) and (disabled := [other for other in needed if not values.get(other)])
    ]
    if problems:
        raise UsageError(f"{_OPTION}: {problems[0] if len(problems) == 1 else '[' + ', '.join(problems) + ']'}")
    return values
