"""Feature gates of kube-scheduler 1.36.3: the ones that are modelled, and how settings are read and refused.

Setting follows ``featuregate/feature_gate.go`` of ``k8s.io/component-base`` v0.36.3.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kpreempt.errors import UsageError
from kpreempt.schedulers.kube.framework.known_gates import (
    ALPHA,
    BETA_OFF,
    BETA_ON,
    DEFAULTS,
    DEPENDENCIES,
    LOCKED_OFF,
    LOCKED_ON,
)

_OPTION = "--feature-gates"
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


class FeatureGates(msgspec.Struct, frozen=True, kw_only=True):
    """The gates that change a verdict here, by their name in snake case."""

    in_place_pod_vertical_scaling: bool = True
    in_place_pod_level_resources_vertical_scaling: bool = True
    pod_level_resources: bool = True
    sidecar_containers: bool = True
    dynamic_resource_allocation: bool = True
    dra_extended_resource: bool = True
    node_declared_features: bool = True
    match_label_keys_in_pod_topology_spread: bool = True
    node_inclusion_policy_in_pod_topology_spread: bool = True
    taint_toleration_comparison_operators: bool = False
    storage_capacity_scoring: bool = False
    volume_limit_scaling: bool = False
    volume_attributes_class: bool = True
    # These count for the queue and for controllers (``schedulers/settings.py``).
    scheduler_pop_from_backoff_q: bool = True
    max_unavailable_stateful_set: bool = False


# Gates whose name does not follow from the field's by joining capitalised words.
_NAMES = {
    "dra_extended_resource": "DRAExtendedResource",
}

# Gates that decisions or what comes of them may depend on, and that are not modelled. Together with those that are,
# those that cannot be set and ``irrelevant_gates.py`` these are all that there are.
NOT_MODELLED = frozenset(
    (
        "ContainerRestartRules",
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRADeviceTaintRules",
        "DRADeviceTaints",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
        "DRASchedulerFilterTimeout",
        "DRAWorkloadResourceClaims",
        "GangScheduling",
        "GenericWorkload",
        "MatchLabelKeysInPodTopologySpreadSelectorMerge",
        "MutablePodResourcesForSuspendedJobs",
        "MutableSchedulingDirectivesForSuspendedJobs",
        "NominatedNodeNameForExpectation",
        "PodDeletionCost",
        "PodTopologyLabelsAdmission",
        "RestartAllContainersOnContainerExits",
        "SchedulerAsyncAPICalls",
        "SchedulerAsyncPreemption",
        "StatefulSetSemanticRevisionComparison",
        "TopologyAwareWorkloadScheduling",
        "UserNamespacesHostNetworkSupport",
        "WorkloadAwarePreemption",
        "WorkloadWithJob",
    )
)


def gate_names() -> dict[str, str]:
    """The gates that are modelled: registered name to field."""
    return {
        _NAMES.get(field, "".join(word.capitalize() for word in field.split("_"))): field
        for field in FeatureGates.__struct_fields__
    }


def parse_feature_gates(text: str) -> dict[str, bool]:
    """The settings in a text like ``A=true,B=false``, as the scheduler's option takes it.

    Raises ``UsageError`` for a part that is not ``NAME=BOOL``. Whether there are such gates is seen when they are set.
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


def feature_gates(settings: Mapping[str, bool]) -> tuple[FeatureGates, list[str]]:
    """The default gates with ``settings`` (registered name to value) applied.

    Returns the gates, and the names of those that the scheduler's decisions depend on and that are set to something
    else than what is modelled here. Raises ``UsageError`` where the scheduler would refuse the settings.
    """
    values = _applied(settings)
    names = gate_names()
    gates = FeatureGates(**{field: values[name] for name, field in names.items()})
    return gates, sorted(name for name in NOT_MODELLED if values[name] != DEFAULTS[name])


def _applied(settings: Mapping[str, bool]) -> dict[str, bool]:
    """All gates' values."""
    unknown = sorted(name for name in settings if name not in DEFAULTS and name not in ("AllAlpha", "AllBeta"))
    if unknown:
        raise UsageError(f"{_OPTION}: unrecognized feature gate: {unknown[0]}", hint=_similar(unknown[0]))
    values = dict(DEFAULTS)
    if "AllAlpha" in settings:
        values |= dict.fromkeys(ALPHA, settings["AllAlpha"])
    if "AllBeta" in settings:
        values |= dict.fromkeys(BETA_ON | BETA_OFF, settings["AllBeta"])
    values |= {name: value for name, value in settings.items() if name in values}
    locked = [
        f"cannot set feature gate {name} to {str(value).lower()}, feature is locked to {str(not value).lower()}"
        for name, value in sorted(settings.items())
        if name in (LOCKED_OFF if value else LOCKED_ON)
    ]
    problems = locked or [
        f"{name} is enabled, but depends on features that are disabled: [{' '.join(disabled)}]"
        for name, needed in DEPENDENCIES.items()
        if values[name] and (disabled := [other for other in needed if not values[other]])
    ]
    if problems:
        raise UsageError(f"{_OPTION}: {problems[0] if len(problems) == 1 else '[' + ', '.join(problems) + ']'}")
    return values


def _similar(name: str) -> str:
    """A gate that differs in the letters' case only, if there is one."""
    return next((known for known in DEFAULTS if known.lower() == name.lower()), "")
