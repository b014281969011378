"""Feature gates of kube-scheduler 1.36.3 that change a verdict, with their defaults."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kpreempt.errors import UsageError


class FeatureGates(msgspec.Struct, frozen=True, kw_only=True):
    """Gates by their name in snake case."""

    in_place_pod_vertical_scaling: bool = True
    in_place_pod_level_resources_vertical_scaling: bool = True
    pod_level_resources: bool = True
    sidecar_containers: bool = True
    dynamic_resource_allocation: bool = True
    dra_extended_resource: bool = True
    node_declared_features: bool = True
    scheduler_async_preemption: bool = True
    match_label_keys_in_pod_topology_spread: bool = True
    node_inclusion_policy_in_pod_topology_spread: bool = True
    taint_toleration_comparison_operators: bool = False
    storage_capacity_scoring: bool = False
    volume_limit_scaling: bool = False
    gang_scheduling: bool = False
    volume_attributes_class: bool = True


# Gates whose name does not follow from the field's by joining capitalised words.
_NAMES = {
    "dra_extended_resource": "DRAExtendedResource",
}


def gate_names() -> dict[str, str]:
    """The gates that are modelled: registered name to field."""
    return {
        _NAMES.get(field, "".join(word.capitalize() for word in field.split("_"))): field
        for field in FeatureGates.__struct_fields__
    }


def feature_gates(settings: Mapping[str, bool]) -> tuple[FeatureGates, list[str]]:
    """The default gates with ``settings`` (registered name to value) applied.

    Returns the gates and the names that are not modelled here. ``AllAlpha`` and ``AllBeta`` are refused, because they
    set gates that are not modelled.
    """
    names = gate_names()
    for group in ("AllAlpha", "AllBeta"):
        if group in settings:
            raise UsageError(f"--feature-gates: {group} is not supported; name the gates one by one")
    known = {names[name]: value for name, value in settings.items() if name in names}
    unknown = sorted(name for name in settings if name not in names)
    return FeatureGates(**known), unknown
