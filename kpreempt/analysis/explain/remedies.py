"""For each refusal of a node, the edits that may mend it: alternatives, the least change first.

An edit is only a guess here; whether it brings the wanted answer is for a verdict to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kpreempt.analysis.explain.edits import Edit, appended_toleration
from kpreempt.analysis.explain.least_priority import most_requested
from kpreempt.analysis.explain.single_edits import (
    EditContext,
    EditOptions,
    Place,
    dropping,
    lower_requests,
    pods_on,
    remove_pods,
)
from kpreempt.analysis.field_paths import Assignment, format_path
from kpreempt.analysis.what_if import Overrides
from kpreempt.model.affinity import NodeSelectorTerm
from kpreempt.model.labels import format_requirement
from kpreempt.model.node import Node
from kpreempt.model.taints import find_untolerated_taint
from kpreempt.verdict import Change, ChangeKind, Status
from kpreempt.verdict.details import (
    AffinityConflict,
    InsufficientDevices,
    InsufficientResources,
    NodeAffinityMismatch,
    PortConflict,
    SpreadConflict,
    UntoleratedTaint,
    VolumeConflict,
    VolumeLimitExceeded,
)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_REPELLING = frozenset({"NoSchedule", "NoExecute"})
_MOST_REMOVED = 4
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def remedies_for(context: EditContext, refusals: Sequence[Status]) -> list[EditOptions]:
    """Ladders for all these refusals of one node."""
    options: list[EditOptions] = []
    for status in refusals:
        remedy = _REMEDIES.get(type(status.detail))
        if remedy is not None:
            options += remedy(context, status.detail)
    return [options for options in options if options]


def _for_shortage(context: EditContext, detail: InsufficientResources) -> list[EditOptions]:
    """Ask for what is free; where several resources are short, for what is free of each."""
    amounts = {
        each.resource: (each.requested, each.allocatable - each.used)
        for each in detail.shortfalls
        if each.resource != "pods"
    }
    # The pods on the node that may hold as much as is missing of everything, by what all their containers ask for.
    if any(each.exceeds_node for each in detail.shortfalls):
        large_enough = []
    else:
        missing = {each.resource: each.missing for each in detail.shortfalls if each.resource != "pods"}
        large_enough = [
            pod.key
            for pod in pods_on(context)
            if all(most_requested(pod, resource) >= amount for resource, amount in missing.items())
        ]
    options = [remove_pods(context, large_enough)]
    if len(amounts) == len(detail.shortfalls) and (edit := lower_requests(context.pod, amounts)):
        options.insert(0, [edit])
    return options


def _for_devices(context: EditContext, detail: InsufficientDevices) -> list[EditOptions]:
    """Take away as many of the pods that have the devices as devices are missing, at most a few."""
    missing = detail.wanted - (detail.matching - detail.allocated - detail.tainted)
    if detail.wanted > detail.matching - detail.tainted or missing > _MOST_REMOVED:
        return []
    return [remove_pods(context, [pod for holder in detail.holders for pod in holder.pods], max(missing, 1))]


def _for_taint(context: EditContext, _: UntoleratedTaint) -> list[EditOptions]:
    """Tolerate all taints that repel the pod; open a cordoned node."""
    spec = context.node.spec
    taints = [
        taint for taint in spec.taints if find_untolerated_taint([taint], context.pod.spec.tolerations, _REPELLING)
    ]
    wanted = [(taint.key, taint.value, taint.effect, str(taint)) for taint in taints]
    if spec.unschedulable and all(key != _UNSCHEDULABLE for key, *_rest in wanted):
        wanted.append((_UNSCHEDULABLE, "", "NoSchedule", f"{_UNSCHEDULABLE}:NoSchedule"))
    tolerate = Edit(
        changes=[Change(ChangeKind.TOLERATION, subject=text) for _key, _value, _effect, text in wanted],
        overrides=Overrides(
            assignments=[
                Assignment(appended_toleration(number), _toleration(key, value, effect))
                for number, (key, value, effect, _text) in enumerate(wanted)
            ]
        ),
    )
    # To tolerate what stands for a cordon alone would be a trick: the node is open or it is not.
    options = [[tolerate]] if any(key != _UNSCHEDULABLE for key, *_rest in wanted) else []
    if spec.unschedulable or any(key == _UNSCHEDULABLE for key, *_rest in wanted):
        name = context.node.name
        options.append([Edit(changes=[Change(ChangeKind.UNCORDON, subject=name)], uncordoned=name)])
    return options


def _toleration(key: str, value: str, effect: str) -> dict[str, str]:
    match = {"operator": "Equal", "value": value} if value else {"operator": "Exists"}
    return {"key": key, **match, "effect": effect}


def _for_node_affinity(context: EditContext, detail: NodeAffinityMismatch) -> list[EditOptions]:
    """Drop what the node does not have: keys of the selector, or as little as possible of the required terms."""
    spec, node = context.pod.spec, context.node
    if detail.source == "nodeSelector":
        unmet = [key for key, value in spec.node_selector.items() if node.labels.get(key) != value]
        return [
            [
                dropping(
                    ChangeKind.NODE_SELECTOR,
                    {f"{key}={spec.node_selector[key]}": ["spec", "nodeSelector", key] for key in unmet},
                )
            ]
        ]
    rules = spec.affinity.node_affinity if spec.affinity else None
    if detail.source != "nodeAffinity" or rules is None or rules.required is None:
        return []
    if any(term.match_fields for term in rules.required.node_selector_terms):
        # A term over fields is a controller's, which ties its pod to a node.
        return []
    place: Place = ["spec", "affinity", "nodeAffinity", _REQUIRED]
    whole = dropping(ChangeKind.NODE_AFFINITY, {" or ".join(detail.unmet): place})
    return [[*_relaxed_terms(rules.required.node_selector_terms, node, place), whole]]


def _relaxed_terms(terms: Sequence[NodeSelectorTerm], node: Node, place: Place) -> EditOptions:
    """Each term without the expressions that the node does not meet, unless none remains; the fewest first."""
    edits = []
    for index, term in enumerate(terms):
        unmet = [
            number
            for number, expression in enumerate(term.match_expressions)
            if not NodeSelectorTerm(match_expressions=[expression]).matches(node.name, node.labels)
        ]
        if 0 < len(unmet) < len(term.match_expressions):
            path: Place = [*place, "nodeSelectorTerms", index, "matchExpressions"]
            # From the last one on, so that the places of the others stay what they are.
            places = {_in_words(term, number): [*path, number] for number in sorted(unmet, reverse=True)}
            edits.append(dropping(ChangeKind.NODE_AFFINITY, places))
    return sorted(edits, key=lambda edit: len(edit.changes))


def _in_words(term: NodeSelectorTerm, number: int) -> str:
    expression = term.match_expressions[number]
    return format_requirement(expression.key, expression.operator, expression.values)


def _for_port(context: EditContext, detail: PortConflict) -> list[EditOptions]:
    """Do without the host port, or without a pod that holds it."""
    options = [remove_pods(context, detail.holders)]
    if context.pod.spec.host_network:
        return options
    places: dict[str, Place] = {
        f"{port.host_port}/{port.protocol}": ["spec", field, index, "ports", number, "hostPort"]
        for field, containers in (
            ("containers", context.pod.spec.containers),
            ("initContainers", context.pod.spec.init_containers),
        )
        for index, container in enumerate(containers)
        for number, port in enumerate(container.ports)
        if (port.host_port, port.protocol, port.host_ip) == (detail.port, detail.protocol, detail.host_ip)
    }
    return [[dropping(ChangeKind.HOST_PORT, places)], *options] if places else options


def _for_affinity(context: EditContext, detail: AffinityConflict) -> list[EditOptions]:
    """Drop the term that fails, or take away a pod that it refuses or that refuses the pod."""
    if detail.rule == "existingAntiAffinity":
        return [remove_pods(context, detail.holders)]
    affinity = context.pod.spec.affinity
    is_anti = detail.rule != "affinity"
    kind = ChangeKind.POD_ANTI_AFFINITY if is_anti else ChangeKind.POD_AFFINITY
    rules = affinity and (affinity.pod_anti_affinity if is_anti else affinity.pod_affinity)
    terms = rules.required if rules else []
    place: Place = ["spec", "affinity", str(kind), _REQUIRED]
    named = [f"{term.label_selector or 'no pod'} in {term.topology_key}" for term in terms]
    options = [dropping(kind, {name: [*place, index]}) for index, name in enumerate(named)]
    if len(terms) > 1:
        options.append(dropping(kind, {" and ".join(named): place}))
    return [options, remove_pods(context, detail.holders)]


def _for_spread(context: EditContext, detail: SpreadConflict) -> list[EditOptions]:
    """Allow the skew that would come about, drop the constraint, or take away a pod that it counts."""
    constraints = context.pod.spec.topology_spread_constraints
    strict = [index for index, each in enumerate(constraints) if each.when_unsatisfiable == "DoNotSchedule"]
    mine = [index for index in strict if constraints[index].topology_key == detail.topology_key]
    options: list[EditOptions] = []
    for index in mine:
        place: Place = ["spec", "topologySpreadConstraints", index]
        constraint = constraints[index]
        name = f"{constraint.label_selector or 'no pod'} over {constraint.topology_key}"
        if detail.topology_value and detail.skew > constraint.max_skew:
            change = Change(ChangeKind.MAX_SKEW, name, constraint.max_skew, detail.skew)
            wider = Assignment(format_path([*place, "maxSkew"]), detail.skew)
            options.append([Edit(changes=[change], overrides=Overrides(assignments=[wider]))])
        options.append([dropping(ChangeKind.SPREAD, {name: place})])
    selectors = [constraints[index].label_selector for index in mine]
    counted = [
        pod.key
        for pod in context.cluster.pods
        if pod.metadata.namespace == context.pod.metadata.namespace
        and pod.spec.node_name == context.node.name
        and any(selector is not None and selector.matches(pod.metadata.labels) for selector in selectors)
    ]
    return [*options, remove_pods(context, counted)]


def _for_volume(context: EditContext, detail: VolumeConflict) -> list[EditOptions]:
    return [remove_pods(context, detail.holders)]


def _for_volume_limit(context: EditContext, _: VolumeLimitExceeded) -> list[EditOptions]:
    return [remove_pods(context, [pod.key for pod in pods_on(context) if pod.spec.volumes])]


_REMEDIES: dict[type, Callable[[EditContext, Any], list[EditOptions]]] = {
    InsufficientResources: _for_shortage,
    InsufficientDevices: _for_devices,
    UntoleratedTaint: _for_taint,
    NodeAffinityMismatch: _for_node_affinity,
    PortConflict: _for_port,
    AffinityConflict: _for_affinity,
    SpreadConflict: _for_spread,
    VolumeConflict: _for_volume,
    VolumeLimitExceeded: _for_volume_limit,
}
