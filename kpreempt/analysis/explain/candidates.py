"""Changes that may let a pod run on a node that rejects it, from the facts of each rejection.

Each rejection has alternatives, in the order in which an expert would try them. Whether one helps is decided by a
verdict, so an alternative is only a guess. Pods are never removed: those of controllers return, and others are lost.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from typing import Any

from kpreempt.analysis.explain.single_edits import (
    Edit,
    EditContext,
    EditOptions,
    FieldPath,
    appended_toleration,
    dropping,
    lower_requests,
)
from kpreempt.analysis.nodes.changes import NodeEdit, NodeField, uncordon
from kpreempt.analysis.remedies.excluded import (
    CORDON_TAINT,
    has_control_plane,
    is_device,
    is_of_control_plane,
    is_set_by_autoscaler,
    is_set_by_controller,
)
from kpreempt.analysis.what_if import Assignment, Overrides, format_path
from kpreempt.model.affinity import NodeSelectorTerm
from kpreempt.model.cluster import REDACTED_AT
from kpreempt.model.labels import format_requirement
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.storage import SELECTED_NODE_ANNOTATION
from kpreempt.model.taints import Taint, find_untolerated_taint
from kpreempt.model.workloads import TEMPLATE_HASH_LABEL
from kpreempt.schedulers.kube.framework.resources import pod_requests, requests_in_units
from kpreempt.verdict import Change, ChangeKind, NodeEvaluation, Status
from kpreempt.verdict.details import (
    AffinityConflict,
    InsufficientResources,
    NodeAffinityMismatch,
    PortConflict,
    Shortfall,
    SpreadConflict,
    UntoleratedTaint,
    VolumeConflict,
)
from kpreempt.verdict.remedies import ObjectEdit, RemedyStage

# The effects of taints that keep pods away.
REPELLING = frozenset({"NoSchedule", "NoExecute"})
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
# A pod whose request is cut by more than this share is another pod.
MAX_CUT = 0.5
# How similar a label's value or key must be to be taken for a misspelling.
_SIMILAR = 0.6
_MAX_SIMILAR = 3
# The number of combinations for a node, and of rejections that are combined.
_MAX_COMBINATIONS = 8
_MAX_REJECTIONS = 3


def combinations_for(
    context: EditContext, evaluation: NodeEvaluation, *, may_evict: bool = False
) -> Iterator[list[Edit]]:
    """The combinations of changes that address every rejection by the node; none if there is a rejection without one.

    The node's filters are evaluated independently, so each rejection needs its own change. With ``may_evict``, they are
    evaluated without the node's lower-priority pods.
    """
    rejections = rejections_of(evaluation, may_evict=may_evict)
    if not 0 < len(rejections) <= _MAX_REJECTIONS:
        return
    alternatives = []
    for status in rejections:
        found = _ALTERNATIVES.get(type(status.detail))
        if found is not None:
            alternatives.append(found(context, status.detail))
        else:
            # Old schedulers do not say why they reject a node that is not usable.
            alternatives.append([_uncordon(context.node)] if context.node.spec.unschedulable else [])
    for combination in islice(product(*alternatives), _MAX_COMBINATIONS):
        # Several plugins reject a cordoned node.
        yield list({repr(each.changes): each for each in combination}.values())


def rejections_of(evaluation: NodeEvaluation, *, may_evict: bool = False) -> list[Status]:
    """What prevents the pod from running on the node; with ``may_evict``, without its lower-priority pods."""
    if evaluation.pre_filter is not None:
        return [evaluation.pre_filter]
    statuses = evaluation.without_lower if may_evict and evaluation.lower_priority_pods else evaluation.filters
    return [status for status in statuses if not status.is_success]


def _for_shortage(context: EditContext, detail: InsufficientResources) -> EditOptions:
    """Make devices allocatable that the node has, or lower the requests to what is free."""
    return [*_unhealthy_devices(context.node, detail.shortfalls), *_lowered(context.pod, detail.shortfalls)]


def _unhealthy_devices(node: Node, shortfalls: Sequence[Shortfall]) -> EditOptions:
    """Devices of the node's capacity that are not allocatable, because their driver reports them as unhealthy."""
    capacity = requests_in_units({name: amount.nano for name, amount in node.status.capacity.items()})
    short = [each.resource for each in shortfalls]
    names = [
        each.resource
        for each in shortfalls
        if is_device(each.resource) and capacity.get(each.resource, 0) > each.allocatable
    ]
    if not names or names != short:
        return []
    return [
        Edit(
            stage=RemedyStage.REPAIR,
            changes=[Change(ChangeKind.REPAIR, subject=f"Node {node.name}", field=name) for name in names],
            nodes=[NodeEdit(node.name, NodeField.ALLOCATABLE, name, str(node.status.capacity[name])) for name in names],
        )
    ]


def _lowered(pod: Pod, shortfalls: Sequence[Shortfall]) -> EditOptions:
    """The requests lowered to what is free; a pod keeps at least one of each device, and half of all else."""
    amounts = {}
    for each in shortfalls:
        free = each.allocatable - each.used
        if each.resource == "pods" or is_cut_too_far(each.resource, each.requested, free):
            return []
        amounts[each.resource] = each.requested, free
    edit = lower_requests(pod, amounts)
    return [edit] if edit is not None else []


def is_cut_too_far(resource: str, before: int, after: int) -> bool:
    """Whether a pod with this request instead is another pod."""
    return after < (1 - MAX_CUT) * before or (is_device(resource) and after < 1)


def _for_taint(context: EditContext, _: UntoleratedTaint) -> EditOptions:
    """Uncordon or repair the node, and tolerate its own taints."""
    spec, name = context.node.spec, context.node.name
    taints = [
        taint for taint in spec.taints if find_untolerated_taint([taint], context.pod.spec.tolerations, REPELLING)
    ]
    if any(map(is_set_by_autoscaler, taints)):
        # The node is about to be removed, or not ready yet.
        return []
    if spec.unschedulable and all(taint.key != CORDON_TAINT for taint in taints):
        taints = [*taints, Taint(key=CORDON_TAINT, effect="NoSchedule")]
    own = [taint for taint in taints if not is_set_by_controller(taint)]
    if any(map(is_of_control_plane, own)) and not all(map(has_control_plane, context.cluster.nodes)):
        return []
    if own and _wastes_devices(context):
        return []
    conditions = [taint for taint in taints if taint not in own and taint.key != CORDON_TAINT]
    changes, stage, edits = [], RemedyStage.REQUESTER, list[NodeEdit]()
    if conditions:
        stage = RemedyStage.REPAIR
        changes += [Change(ChangeKind.REPAIR, subject=f"Node {name}", field=taint.key) for taint in conditions]
        edits += [NodeEdit(name, NodeField.TAINTS, taint.key, effect=taint.effect) for taint in conditions]
    if len(own) + len(conditions) < len(taints):
        stage = RemedyStage.CAPACITY
        changes.append(Change(ChangeKind.UNCORDON, subject=name))
        edits.append(uncordon(name))
    changes += [Change(ChangeKind.TOLERATION, subject=str(taint)) for taint in own]
    tolerations = [
        Assignment(
            appended_toleration(number),
            {
                "key": taint.key,
                **({"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}),
                "effect": taint.effect,
            },
        )
        for number, taint in enumerate(own)
    ]
    overrides = Overrides(assignments=tolerations)
    return [Edit(stage=stage, changes=changes, overrides=overrides, nodes=edits)]


def _wastes_devices(context: EditContext) -> bool:
    """Whether the node has devices of which the pod requests none, so that its taints keep it for other pods."""
    devices = {name for name, amount in context.node.status.allocatable.items() if is_device(name) and amount.nano}
    return bool(devices) and devices.isdisjoint(pod_requests(context.pod))


def _uncordon(node: Node) -> Edit:
    change = Change(ChangeKind.UNCORDON, subject=node.name)
    return Edit(stage=RemedyStage.CAPACITY, changes=[change], nodes=[uncordon(node.name)])


def _for_node_affinity(context: EditContext, detail: NodeAffinityMismatch) -> EditOptions:
    """Correct a misspelled value, or drop selector keys, or as little as possible of the required terms."""
    spec, node = context.pod.spec, context.node
    if detail.source == "nodeSelector":
        unmet = [key for key, value in spec.node_selector.items() if node.labels.get(key) != value]
        places: dict[str, FieldPath] = {
            f"{key}={spec.node_selector[key]}": ["spec", "nodeSelector", key] for key in unmet
        }
        return [*_corrected_selector(context, unmet), dropping(ChangeKind.NODE_SELECTOR, places)]
    rules = spec.affinity.node_affinity if spec.affinity else None
    if detail.source != "nodeAffinity" or rules is None or rules.required is None:
        return []
    if any(term.match_fields for term in rules.required.node_selector_terms):
        # A term with fields was added by a controller to tie the pod to a node.
        return []
    place: FieldPath = ["spec", "affinity", "nodeAffinity", REQUIRED]
    whole = _dropping_all(ChangeKind.NODE_AFFINITY, detail.unmet, place)
    terms = rules.required.node_selector_terms
    return [*_corrected_terms(context, terms, place), *_relaxed_terms(terms, node, place), whole]


def _dropping_all(kind: ChangeKind, names: Sequence[str], place: FieldPath) -> Edit:
    """An edit that removes a field with everything in it, which has these names."""
    overrides = Overrides(assignments=[Assignment(format_path(place), None)])
    changes = [Change(kind, subject=name) for name in names]
    return Edit(stage=RemedyStage.REQUESTER, changes=changes, overrides=overrides)


def values_of(nodes: Sequence[Node], key: str) -> dict[str, list[str]]:
    """The names of the nodes by their value of a label."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        if key in node.labels:
            found.setdefault(node.labels[key], []).append(node.name)
    return found


def _misspelled(context: EditContext, key: str, value: str) -> str:
    """The node's value of the label, if no node has the given value and this is similar to it; else empty."""
    if context.cluster.taken_at == REDACTED_AT:
        # Tokens are not spelled like the names that they replace.
        return ""
    values = values_of(context.cluster.nodes, key)
    own = context.node.labels.get(key, "")
    return own if value not in values and own in similar_to(value, [*values]) else ""


def similar_to(text: str, others: Sequence[str]) -> list[str]:
    """Those of the texts that may be meant, the most similar first."""
    lower = {other: other.lower() for other in others}
    near = difflib.get_close_matches(text.lower(), [*lower.values()], n=_MAX_SIMILAR, cutoff=_SIMILAR)
    return [other for each in near for other, word in lower.items() if word == each]


def _corrected_selector(context: EditContext, unmet: Sequence[str]) -> EditOptions:
    selector = context.pod.spec.node_selector
    values = {key: _misspelled(context, key, selector[key]) for key in unmet}
    if not all(values.values()):
        return []
    changes = [
        Change(ChangeKind.LABEL_VALUE, subject=f"{key}={values[key]} instead of {selector[key]}") for key in unmet
    ]
    assignments = [Assignment(format_path(["spec", "nodeSelector", key]), value) for key, value in values.items()]
    return [Edit(stage=RemedyStage.REPAIR, changes=changes, overrides=Overrides(assignments=assignments))]


def _corrected_terms(context: EditContext, terms: Sequence[NodeSelectorTerm], place: FieldPath) -> EditOptions:
    found = []
    for index, term in enumerate(terms):
        for number, each in enumerate(term.match_expressions):
            if each.operator != "In" or len(each.values) != 1:
                continue
            value = _misspelled(context, each.key, each.values[0])
            if value:
                path = format_path([*place, "nodeSelectorTerms", index, "matchExpressions", number, "values"])
                subject = f"{each.key}={value} instead of {each.values[0]}"
                found.append(
                    Edit(
                        stage=RemedyStage.REPAIR,
                        changes=[Change(ChangeKind.LABEL_VALUE, subject=subject)],
                        overrides=Overrides(assignments=[Assignment(path, [value])]),
                    )
                )
    return found


def _relaxed_terms(terms: Sequence[NodeSelectorTerm], node: Node, place: FieldPath) -> EditOptions:
    """Each term without the expressions that the node does not match, unless none remains; the fewest changes first."""
    edits = []
    for index, term in enumerate(terms):
        unmet = [
            number
            for number, expression in enumerate(term.match_expressions)
            if not NodeSelectorTerm(match_expressions=[expression]).matches(node.name, node.labels)
        ]
        if 0 < len(unmet) < len(term.match_expressions):
            path: FieldPath = [*place, "nodeSelectorTerms", index, "matchExpressions"]
            # In reverse order, so that the indexes of the others remain valid.
            places = {
                format_requirement(each.key, each.operator, each.values): [*path, number]
                for number, each in reversed([*enumerate(term.match_expressions)])
                if number in unmet
            }
            edits.append(dropping(ChangeKind.NODE_AFFINITY, places))
    return sorted(edits, key=lambda edit: len(edit.changes))


def _for_port(context: EditContext, detail: PortConflict) -> EditOptions:
    """Drop the host port."""
    if context.pod.spec.host_network:
        return []
    places: dict[str, FieldPath] = {
        f"{port.host_port}/{port.protocol}": ["spec", field, index, "ports", number, "hostPort"]
        for field, containers in (
            ("containers", context.pod.spec.containers),
            ("initContainers", context.pod.spec.init_containers),
        )
        for index, container in enumerate(containers)
        for number, port in enumerate(container.ports)
        if (port.host_port, port.protocol, port.host_ip) == (detail.port, detail.protocol, detail.host_ip)
    }
    return [dropping(ChangeKind.HOST_PORT, places)] if places else []


def _for_affinity(context: EditContext, detail: AffinityConflict) -> EditOptions:
    """Drop the term that fails."""
    if detail.rule == "existingAntiAffinity":
        return []
    affinity = context.pod.spec.affinity
    is_anti = detail.rule != "affinity"
    kind = ChangeKind.POD_ANTI_AFFINITY if is_anti else ChangeKind.POD_AFFINITY
    rules = affinity and (affinity.pod_anti_affinity if is_anti else affinity.pod_affinity)
    terms = rules.required if rules else []
    place: FieldPath = ["spec", "affinity", str(kind), REQUIRED]
    term_names = [f"{term.label_selector or 'no pod'} in {term.topology_key}" for term in terms]
    options = [dropping(kind, {name: [*place, index]}) for index, name in enumerate(term_names)]
    if len(terms) > 1:
        options.append(_dropping_all(kind, term_names, place))
    return options


def _for_spread(context: EditContext, detail: SpreadConflict) -> EditOptions:
    """Leave out nodes that the pod cannot use, or pods of other revisions; allow the skew, or drop the constraint."""
    constraints = context.pod.spec.topology_spread_constraints
    options: EditOptions = []
    conflicting = [
        (index, each)
        for index, each in enumerate(constraints)
        if each.when_unsatisfiable == "DoNotSchedule" and each.topology_key == detail.topology_key
    ]
    for index, constraint in conflicting:
        place: FieldPath = ["spec", "topologySpreadConstraints", index]
        name = f"{constraint.label_selector or 'no pod'} over {constraint.topology_key}"
        settings: list[tuple[Change, str, Any]] = []
        if constraint.node_taints_policy != "Honor":
            settings.append((Change(ChangeKind.NODE_TAINTS_POLICY, name), "nodeTaintsPolicy", "Honor"))
        is_of_revision = TEMPLATE_HASH_LABEL in context.pod.metadata.labels
        if is_of_revision and TEMPLATE_HASH_LABEL not in constraint.match_label_keys:
            keys = [*constraint.match_label_keys, TEMPLATE_HASH_LABEL]
            settings.append((Change(ChangeKind.MATCH_LABEL_KEYS, name), "matchLabelKeys", keys))
        if detail.topology_value and detail.skew > constraint.max_skew:
            skew = Change(ChangeKind.MAX_SKEW, name, constraint.max_skew, detail.skew)
            settings.append((skew, "maxSkew", detail.skew))
        options += [
            Edit(
                stage=RemedyStage.REQUESTER,
                changes=[change],
                overrides=Overrides(assignments=[Assignment(format_path([*place, field]), value)]),
            )
            for change, field, value in settings
        ]
        options.append(dropping(ChangeKind.SPREAD, {name: place}))
    return options


def _for_volume(context: EditContext, detail: VolumeConflict) -> EditOptions:
    """Remove the annotation that ties an unbound claim to a node that does not exist."""
    claim = next((each for each in context.cluster.persistent_volume_claims if each.key == detail.claim), None)
    selected = claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION, "") if claim is not None else ""
    if not selected or any(node.name == selected for node in context.cluster.nodes):
        return []
    subject = f"PersistentVolumeClaim {detail.claim}"
    annotation = {SELECTED_NODE_ANNOTATION: None}
    return [
        Edit(
            stage=RemedyStage.REPAIR,
            changes=[Change(ChangeKind.SET, subject, field=f"the annotation {SELECTED_NODE_ANNOTATION}")],
            objects=[ObjectEdit(subject, {"metadata": {"annotations": annotation}})],
        )
    ]


_ALTERNATIVES: dict[type, Callable[[EditContext, Any], EditOptions]] = {
    InsufficientResources: _for_shortage,
    UntoleratedTaint: _for_taint,
    NodeAffinityMismatch: _for_node_affinity,
    PortConflict: _for_port,
    AffinityConflict: _for_affinity,
    SpreadConflict: _for_spread,
    VolumeConflict: _for_volume,
}
