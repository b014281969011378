"""Validation of the plugins' arguments (``apis/config/validation/validation_pluginargs.go``, v1.36.3).

Each function takes the path of the arguments and the arguments with their defaults, and returns what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kpreempt.model.durations import SECOND, format_duration
from kpreempt.model.labels import parse_int64
from kpreempt.schedulers.kube.configuration.field_errors import (
    child,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kpreempt.schedulers.kube.framework.label_names import label_key_problems, label_value_problems
from kpreempt.schedulers.kube.versions import Behaviour

Args = Mapping[str, Any]

_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_MAX_CUSTOM_SCORE = 10


def validate_args(path: str, name: str, args: Args, behaviour: Behaviour) -> list[str]:
    """What is wrong with a plugin's arguments when a configuration is loaded."""
    if name == "VolumeBinding":
        return _volume_binding(path, args, behaviour)
    validate = _VALIDATORS.get(name)
    return validate(path, args) if validate else []


def _default_preemption(path: str, args: Args) -> list[str]:
    percentage, absolute = args["minCandidateNodesPercentage"], args["minCandidateNodesAbsolute"]
    percentage_path = child(path, "minCandidateNodesPercentage")
    absolute_path = child(path, "minCandidateNodesAbsolute")
    problems = []
    if not 0 <= percentage <= 100:
        problems.append(invalid(percentage_path, percentage, "not in valid range [0, 100]"))
    if absolute < 0:
        problems.append(invalid(absolute_path, absolute, "not in valid range [0, inf)"))
    if percentage == 0 and absolute == 0:
        same = "cannot be zero at the same time as"
        problems.append(invalid(percentage_path, 0, f"{same} minCandidateNodesAbsolute"))
        problems.append(invalid(absolute_path, 0, f"{same} minCandidateNodesPercentage"))
    return problems


def _inter_pod_affinity(path: str, args: Args) -> list[str]:
    weight = args["hardPodAffinityWeight"]
    if 0 <= weight <= 100:
        return []
    return [invalid(child(path, "hardPodAffinityWeight"), weight, "not in valid range [0, 100]")]


def _node_affinity(path: str, args: Args) -> list[str]:
    affinity = args.get("addedAffinity", {})
    path = child(path, "addedAffinity")
    required_path = child(path, "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")
    preferred_path = child(path, "preferredDuringSchedulingIgnoredDuringExecution")
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    problems = [
        problem for index, term in enumerate(terms) for problem in _node_term(f"{required_path}[{index}]", term)
    ]
    for index, preferred in enumerate(affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])):
        if preferred.get("weight"):
            problems += _node_term(f"{preferred_path}[{index}]", preferred.get("preference", {}))
    return problems


def _node_term(path: str, term: Args) -> list[str]:
    problems = []
    for index, requirement in enumerate(term.get("matchExpressions", [])):
        problems += _node_expression(f"{path}.matchExpressions[{index}]", requirement)
    for index, requirement in enumerate(term.get("matchFields", [])):
        where = f"{path}.matchFields[{index}]"
        values = requirement.get("values")
        operator = requirement.get("operator", "")
        if operator not in _FIELD_OPERATORS:
            problems.append(unsupported(child(where, "operator"), operator, _FIELD_OPERATORS))
        elif len(values or ()) != 1:
            problems.append(invalid(child(where, "values"), values, "must have one element"))
    return problems


def _node_expression(path: str, requirement: Args) -> list[str]:
    operator, key = requirement.get("operator", ""), requirement.get("key", "")
    if operator not in _NODE_OPERATORS:
        return [unsupported(child(path, "operator"), operator, _NODE_OPERATORS)]
    given = requirement.get("values")
    values: list[str] = given or []
    values_path = child(path, "values")
    key_problems = label_key_problems(key)
    problems = [invalid(child(path, "key"), key, "; ".join(key_problems))] if key_problems else []
    if operator in ("In", "NotIn") and not values:
        problems.append(invalid(values_path, given, "for 'in', 'notin' operators, values set can't be empty"))
    if operator in ("Exists", "DoesNotExist") and values:
        problems.append(invalid(values_path, given, "values set must be empty for exists and does not exist"))
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            problems.append(invalid(values_path, given, "for 'Gt', 'Lt' operators, exactly one value is required"))
        problems += [
            invalid(f"{values_path}[{index}]", value, "for 'Gt', 'Lt' operators, the value must be an integer")
            for index, value in enumerate(values)
            if parse_int64(value) is None
        ]
    for index, value in enumerate(values):
        if value_problems := label_value_problems(value):
            problems.append(invalid(f"{values_path}[{index}][{key}]", value, "; ".join(value_problems)))
    return problems


def _balanced_allocation(path: str, args: Args) -> list[str]:
    problems = []
    seen: set[str] = set()
    for index, resource in enumerate(args["resources"]):
        where = f"{child(path, 'resources')}[{index}]"
        if resource["name"] in seen:
            problems.append(duplicate(child(where, "name"), resource["name"]))
        seen.add(resource["name"])
        if resource["weight"] != 1:
            problems.append(invalid(child(where, "weight"), resource["weight"], "must be 1"))
    return problems


def validate_node_resources_fit(path: str, args: Args) -> list[str]:
    """What is wrong with the arguments of NodeResourcesFit; looked at only where the plugin is enabled."""
    problems = [
        invalid(f"{child(path, 'ignoredResources')}[{index}]", name, problem)
        for index, name in enumerate(args.get("ignoredResources", []))
        for problem in label_key_problems(name)
    ]
    for index, group in enumerate(args.get("ignoredResourceGroups", [])):
        where = f"{child(path, 'ignoredResourceGroups')}[{index}]"
        if "/" in group:
            problems.append(invalid(where, group, "resource group name can't contain '/'"))
        problems += [invalid(where, group, problem) for problem in label_key_problems(group)]
    return problems + _scoring_strategy(child(path, "scoringStrategy"), args["scoringStrategy"])


def _scoring_strategy(path: str, strategy: Args) -> list[str]:
    kind, ratio_path = strategy["type"], child(path, "requestedToCapacityRatio")
    problems = [] if kind in _STRATEGIES else [unsupported(child(path, "type"), kind, _STRATEGIES)]
    for index, resource in enumerate(strategy["resources"]):
        name, weight = resource.get("name", ""), resource.get("weight", 0)
        if not 0 < weight <= 100:
            detail = f"resource weight of {name} not in valid range (0, 100]"
            problems.append(invalid(f"{path}.resources[{index}].weight", weight, detail))
    ratio = strategy.get("requestedToCapacityRatio")
    if kind != "RequestedToCapacityRatio":
        if ratio is not None:
            problems.append(forbidden(ratio_path, "must be nil when type is not RequestedToCapacityRatio"))
    elif ratio is None:
        problems.append(required(ratio_path, "must be specified when type is RequestedToCapacityRatio"))
    else:
        problems += _shape(child(ratio_path, "shape"), ratio.get("shape", []))
    return problems


def _shape(path: str, shape: Sequence[Args]) -> list[str]:
    if not shape:
        return [required(path, "at least one point must be specified")]
    points = [(point.get("utilization", 0), point.get("score", 0)) for point in shape]
    problems = []
    for index in range(1, len(points)):
        if points[index - 1][0] >= points[index][0]:
            where = f"{path}[{index}].utilization"
            problems.append(invalid(where, points[index][0], "values must be sorted in increasing order"))
            break
    for index, (utilization, score) in enumerate(points):
        if not 0 <= utilization <= 100:
            problems.append(invalid(f"{path}[{index}].utilization", utilization, "not in valid range [0, 100]"))
        if not 0 <= score <= _MAX_CUSTOM_SCORE:
            detail = f"not in valid range [0, {_MAX_CUSTOM_SCORE}]"
            problems.append(invalid(f"{path}[{index}].score", score, detail))
    return problems


def _topology_spread(path: str, args: Args) -> list[str]:
    kind, constraints = args["defaultingType"], args.get("defaultConstraints", [])
    problems = []
    if kind not in ("System", "List"):
        problems.append(unsupported(child(path, "defaultingType"), kind, ("System", "List")))
    elif kind == "System" and constraints:
        problems.append(invalid(child(path, "defaultingType"), kind, "when .defaultConstraints are not empty"))
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        where = f"{child(path, 'defaultConstraints')}[{index}]"
        problems += _spread_constraint(where, constraint)
        identity = (constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", ""))
        if identity in seen:
            problems.append(duplicate(where, f"{{{identity[0]}, {identity[1]}}}"))
        seen.add(identity)
    return problems


def _spread_constraint(path: str, constraint: Args) -> list[str]:
    max_skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
    action = constraint.get("whenUnsatisfiable", "")
    problems = []
    if max_skew <= 0:
        problems.append(invalid(child(path, "maxSkew"), max_skew, "not in valid range (0, inf)"))
    if key:
        problems += [invalid(child(path, "topologyKey"), key, problem) for problem in label_key_problems(key)]
    else:
        problems.append(required(child(path, "topologyKey"), "can not be empty"))
    if not action:
        problems.append(required(child(path, "whenUnsatisfiable"), "can not be empty"))
    elif action not in _ACTIONS:
        problems.append(unsupported(child(path, "whenUnsatisfiable"), action, _ACTIONS))
    if "labelSelector" in constraint:
        detail = "constraint must not define a selector, as they deduced for each pod"
        problems.append(forbidden(child(path, "labelSelector"), detail))
    return problems


def _volume_binding(path: str, args: Args, behaviour: Behaviour) -> list[str]:
    timeout, shape_path = args["bindTimeoutSeconds"], child(path, "shape")
    problems = []
    if timeout < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        problems.append(invalid(child(path, "bindTimeoutSeconds"), timeout, detail))
    if behaviour.storage_capacity_scoring:
        return problems + _shape(shape_path, args.get("shape", []))
    if "shape" in args:
        shape = [
            {"Utilization": point.get("utilization", 0), "Score": point.get("score", 0)} for point in args["shape"]
        ]
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        problems.append(invalid(shape_path, shape, detail))
    return problems


def _dynamic_resources(path: str, args: Args) -> list[str]:
    problems = []
    filter_timeout, binding_timeout = args.get("filterTimeout"), args.get("bindingTimeout")
    if filter_timeout is not None and filter_timeout < 0:
        shown = format_duration(filter_timeout)
        problems.append(invalid(child(path, "filterTimeout"), shown, "must be zero or positive"))
    if binding_timeout is not None and binding_timeout < SECOND:
        shown = format_duration(binding_timeout)
        problems.append(invalid(child(path, "bindingTimeout"), shown, "must be at least 1 second"))
    return problems


# NodeResourcesFit is not among them: upstream lists it under a name that no plugin has, and validates its arguments
# when the plugin is made.
_VALIDATORS: dict[str, Callable[[str, Args], list[str]]] = {
    "DefaultPreemption": _default_preemption,
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "PodTopologySpread": _topology_spread,
}
