"""What differs between versions of kube-scheduler; no other module compares versions.

Dated are its feature gates (``gates.py``), its plugins (``plugin_table.py``), and changes that no gate guards. All
others ask a ``Behaviour`` for the facts that hold in a version, under the gates that are set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from kpreempt.schedulers.kube.gates import DEPENDENCIES, IRRELEVANT, LOCKED, MODELLED, NOT_MODELLED

NEWEST = "1.36"
NEWEST_RELEASE = "v1.36.3"
NEWEST_ALGORITHM = f"kube-{NEWEST}"


class Behaviour(NamedTuple):
    """What holds in a version: the gates that are modelled, by their names in snake case, then ``CHANGES``.

    ``version`` is for names; decisions go by the facts. A gate that is gone stays as it was last.
    """

    version: str
    csi_migration_portworx: bool
    dra_extended_resource: bool
    dynamic_resource_allocation: bool
    in_place_pod_level_resources_vertical_scaling: bool
    in_place_pod_vertical_scaling: bool
    match_label_keys_in_pod_topology_spread: bool
    max_unavailable_stateful_set: bool
    min_domains_in_pod_topology_spread: bool
    node_declared_features: bool
    node_inclusion_policy_in_pod_topology_spread: bool
    pod_level_resources: bool
    scheduler_pop_from_backoff_q: bool
    sidecar_containers: bool
    storage_capacity_scoring: bool
    taint_toleration_comparison_operators: bool
    volume_attributes_class: bool
    volume_limit_scaling: bool

    counts_image_volumes: bool
    counts_images_of_init_containers: bool
    counts_pods_for_empty_selectors: bool
    counts_volume_attachments: bool
    finds_zones_under_stable_labels: bool
    keeps_namespace_selectors: bool
    migrates_volumes_by_annotation: bool
    names_untolerated_taint: bool
    reads_volume_limits_of_allocatable: bool
    refuses_pods_for_missing_limited_claims: bool
    refuses_pods_for_zone_claims: bool
    rounds_requests_by_container: bool
    scores_change_of_balance: bool
    tells_selectors_as_json: bool
    tells_volume_node_affinity_conflict: bool
    tells_where_constraints_fail: bool


class Change(NamedTuple):
    """The versions in which a behaviour holds, the latter excluded, and where that is seen."""

    since: str
    until: str
    source: str


# Changes that no gate guards, seen in ``pkg/scheduler/framework/plugins``. An empty version is no bound.
CHANGES: Mapping[str, Change] = {
    "counts_image_volumes": Change("1.36", "", "imagelocality/image_locality.go: sumImageScores"),
    "counts_images_of_init_containers": Change("1.30", "", "imagelocality/image_locality.go: sumImageScores"),
    # A spread constraint's selector that matches everything counted every pod, and now counts none.
    "counts_pods_for_empty_selectors": Change("", "1.27", "podtopologyspread/common.go: countPodsMatchSelector"),
    "counts_volume_attachments": Change("1.32", "", "nodevolumelimits/csi.go: Filter"),
    # A node lacks a volume's beta label, and has the stable one.
    "finds_zones_under_stable_labels": Change("1.29", "", "volumezone/volume_zone.go: translateToGALabel"),
    # A term's namespace selector is dropped on a copy, and goes on to match namespaces without labels.
    "keeps_namespace_selectors": Change(
        "1.34", "1.37", "interpodaffinity/plugin.go: mergeAffinityTermNamespacesIfNotEmpty"
    ),
    # In-tree volumes are CSI volumes where the node's CSINode lists their plugin, not on every node that has one.
    "migrates_volumes_by_annotation": Change("", "1.36", "nodevolumelimits/utils.go: isCSIMigrationOn"),
    "names_untolerated_taint": Change("", "1.34", "tainttoleration/taint_toleration.go: Filter"),
    "reads_volume_limits_of_allocatable": Change("", "1.32", "nodevolumelimits/csi.go: getVolumeLimits"),
    # Where a claim does not exist, the pod is refused rather than an error raised.
    "refuses_pods_for_missing_limited_claims": Change("1.30", "", "nodevolumelimits/csi.go: Filter"),
    # PreFilter looks at the claims; before, Filter did on each node that is in a zone.
    "refuses_pods_for_zone_claims": Change("1.27", "", "volumezone/volume_zone.go: PreFilter"),
    # Each container's request is rounded up by itself, and overhead counts in whole units, CPU too.
    "rounds_requests_by_container": Change(
        "", "1.27", "noderesources/resource_allocation.go: calculatePodResourceRequest"
    ),
    "scores_change_of_balance": Change("1.36", "", "noderesources/balanced_allocation.go: balancedResourceScorer"),
    "tells_selectors_as_json": Change("1.34", "", "k8s.io/apimachinery/pkg/util/validation/field/errors.go: ErrorBody"),
    "tells_volume_node_affinity_conflict": Change("", "1.33", "volumebinding/binder.go: ErrReasonNodeConflict"),
    "tells_where_constraints_fail": Change("1.30", "", "podtopologyspread/filtering.go: calPreFilterState"),
}


class Gate(NamedTuple):
    """A feature gate in one version: ``stage`` is ``alpha``, ``beta``, ``GA``, ``deprecated`` or ``locked``."""

    stage: str
    default: bool


# Gates whose name does not follow from the field's by joining capitalised words.
_NAMES = {"csi_migration_portworx": "CSIMigrationPortworx", "dra_extended_resource": "DRAExtendedResource"}
_FIELDS = {
    _NAMES.get(field, "".join(word.capitalize() for word in field.split("_"))): field
    for field in Behaviour._fields[1:]
    if field not in CHANGES
}


def behaviour(version: str = NEWEST, gates: Mapping[str, bool] | None = None) -> Behaviour:
    """What holds in the version, with ``gates`` (registered name to value) set; of these only the modelled count.

    Whether the scheduler takes such settings is ``feature_gates.py``'s matter.
    """
    usual = _usual(version)
    settings: dict[str, Any] = {_FIELDS[name]: value for name, value in (gates or {}).items() if name in _FIELDS}
    return usual._replace(**settings) if settings else usual


def modelled_gates(facts: Behaviour) -> dict[str, bool]:
    """The gates that are modelled and that there are in the version, as they are set."""
    known = gates_of(facts.version, MODELLED)
    return {name: getattr(facts, field) for name, field in _FIELDS.items() if name in known}


def known_gates(version: str = NEWEST) -> dict[str, Gate]:
    """All gates that can be named in the version."""
    tables = (MODELLED, NOT_MODELLED, *IRRELEVANT.values(), LOCKED)
    return {name: gate for table in tables for name, gate in gates_of(version, table).items()}


@cache
def gates_of(version: str, table: str) -> Mapping[str, Gate]:
    """The gates of a table of ``gates.py`` that there are in the version."""
    return {name: gate for name, gate, is_gone in _gates(version, table) if not is_gone}


@cache
def needed_gates() -> Mapping[str, tuple[str, ...]]:
    """The gates that need others to be on, in the order of their names, and those others."""
    needed = {name: tuple(others.split()) for others, names in _rows(DEPENDENCIES) for name in names}
    return dict(sorted(needed.items()))


def holds(version: str, since: str, until: str = "") -> bool:
    """Whether the version is one since ``since`` and before ``until``; an empty text is no bound."""
    number = _number(version)
    return (not since or _number(since) <= number) and (not until or number < _number(until))


@cache
def _usual(version: str) -> Behaviour:
    defaults = {name: gate.default for name, gate, _ in _gates(version, MODELLED)}
    gates = {field: defaults.get(name, False) for name, field in _FIELDS.items()}
    changes = {field: holds(version, each.since, each.until) for field, each in CHANGES.items()}
    return Behaviour(version, **gates, **changes)


def _gates(version: str, table: str) -> Iterator[tuple[str, Gate, bool]]:
    """The gates that there have been up to the version, and whether they are gone."""
    for history, names in _rows(table):
        gate, is_gone = None, False
        for entry in history.split(", "):
            since, stage, *value = entry.split()
            if not holds(version, since):
                break
            is_gone = stage == "gone"
            gate = gate if is_gone else Gate(stage, value == ["on"])
        if gate is not None:
            yield from ((name, gate, is_gone) for name in names)


def _rows(table: str) -> Iterator[tuple[str, list[str]]]:
    """What stands before the colon of each row, and the names after it; a row may go on in the next line."""
    head, *rest = table.split(":")
    for part in rest:
        names, _, following = part.rpartition("\n")
        yield head.strip(), names.split()
        head = following


@cache
def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
