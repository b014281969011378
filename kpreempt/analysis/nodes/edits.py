"""Edits of nodes, written as for ``kubectl label`` and ``kubectl taint``, and what follows from them.

Edits overwrite what a node has, as with ``--overwrite``. The syntax and the checks follow ``k8s.io/kubectl`` v0.36.3
``pkg/cmd/label`` and ``pkg/cmd/taint``, and ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation``
(``ValidateNodeUpdate``). Unlike ``kubectl label``, removing a label that the node does not have is an error.

A NoExecute taint evicts the pods that do not tolerate it (``pkg/controller/tainteviction``), and the controller of a
DaemonSet deletes its pods from nodes that it no longer selects. Both happen at once here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import combinations

import msgspec

from kpreempt.admission.validation.container_resources import amount_problem
from kpreempt.admission.validation.resource_names import resource_name
from kpreempt.admission.validation.values import label_value, qualified_name
from kpreempt.analysis.evictions.clients import evicting_taints
from kpreempt.analysis.nodes.changes import (
    TRUE,
    NodeEdit,
    NodeField,
    changed,
    check_node,
    cordon,
    edited_node,
    is_file,
    numbered_name,
    recreations,
    uncordon,
    without_pods,
)
from kpreempt.analysis.nodes.copies import Copier, DaemonPods, may_run
from kpreempt.analysis.remedies.excluded import CORDON_TAINT, is_set_by_controller
from kpreempt.errors import NotFoundError, UsageError, listed, nearest
from kpreempt.files import name_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import DEFAULT_NAMESPACE, grouped
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.quantity import quantity
from kpreempt.model.taints import TAINT_EFFECTS, Taint
from kpreempt.verdict import Assumption, AssumptionKind

_LABEL, _TAINT, _SETTING = "--label-node", "--taint-node", "--set-node"
_EXAMPLES = {
    _LABEL: "--label-node node-a=zone=b, or --label-node node-a=zone- to remove it",
    _TAINT: "--taint-node node-a=dedicated=gpu:NoSchedule, or --taint-node node-a=dedicated:NoSchedule- to remove it",
    _SETTING: "--set-node node-a:status.allocatable.cpu=8, or --set-node node-a:spec.unschedulable=true",
}
_ALLOCATABLE = f"{NodeField.ALLOCATABLE}."
# Where other fields belong; everything else has no effect on a simulation.
_ELSEWHERE = {
    "metadata.labels": f"use {_LABEL}",
    "spec.taints": f"use {_TAINT}",
    "metadata.name": "the name of a node cannot be changed; --add-node adds another node like it",
    "status.conditions": f"conditions have no effect on the scheduler, only the taints that they cause: use {_TAINT}",
    "status.capacity": "the scheduler reads only status.allocatable",
}
_RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage")
_EVICTED = ("evicted by its new taints", "of DaemonSets or static, which do not run there anymore")
_DESELECTED = ("deleted, because their DaemonSets no longer select the node", "of DaemonSets")


def node_edits(
    *,
    cordons: Iterable[str] = (),
    uncordons: Iterable[str] = (),
    node_labels: Iterable[str] = (),
    node_taints: Iterable[str] = (),
    node_settings: Iterable[str] = (),
) -> list[NodeEdit]:
    """Parse the values of the options that edit nodes. Raises ``UsageError``, also for edits that contradict."""
    found = [
        *map(cordon, cordons),
        *map(uncordon, uncordons),
        *map(_label, node_labels),
        *map(_taint, node_taints),
        *map(_setting, node_settings),
    ]
    by_subject = grouped(dict.fromkeys(found), lambda each: (each.node, each.field, each.key))
    for first, second in (pair for same in by_subject.values() for pair in combinations(same, 2)):
        is_removed = None in (first.value, second.value) and _removes_all(first, second)
        if first.effect == second.effect or is_removed:
            raise UsageError(f"{_typed(first)} and {_typed(second)} contradict each other")
    return found


def _removes_all(first: NodeEdit, second: NodeEdit) -> bool:
    """Whether one of two edits removes a taint with every effect."""
    return any(each.value is None and not each.effect for each in (first, second))


def _typed(edit: NodeEdit) -> str:
    return edit.argument.replace("=", " ", 1)


def _split(option: str, text: str, separator: str) -> tuple[str, str]:
    node, found, rest = text.partition(separator)
    node = node.removeprefix("node/")
    if not found or not node or not rest.strip("-"):
        raise _malformed(option, text)
    return node, rest


def _pair(option: str, text: str, rest: str) -> tuple[str, str | None]:
    """Split ``KEY=VALUE``; the value of ``KEY-``, which removes it, is ``None``."""
    key, equals, value = rest.partition("=")
    if equals:
        return key, value
    if not rest.endswith("-"):
        raise _malformed(option, text)
    return rest[:-1], None


def _malformed(option: str, text: str) -> UsageError:
    form = {_LABEL: "NODE=KEY=VALUE or NODE=KEY-", _TAINT: "NODE=KEY=VALUE:EFFECT, NODE=KEY:EFFECT- or NODE=KEY-"}
    expected = form.get(option, "NODE:PATH=VALUE or NODE:PATH-")
    return UsageError(f'{option} "{text}": expected {expected}', hint=_EXAMPLES[option])


def _check(option: str, text: str, what: str, problem: str) -> None:
    if problem:
        raise UsageError(f'{option} "{text}": invalid {what}: {problem}', hint=_EXAMPLES[option])


def _label(text: str) -> NodeEdit:
    node, rest = _split(_LABEL, text, "=")
    key, value = _pair(_LABEL, text, rest)
    _check(_LABEL, text, f'label key "{key}"', qualified_name(key))
    _check(_LABEL, text, f'label value "{value}"', label_value(value or ""))
    return NodeEdit(node, NodeField.LABELS, key, value)


def _taint(text: str) -> NodeEdit:
    node, rest = _split(_TAINT, text, "=")
    is_removed = rest.endswith("-")
    pair, colon, effect = rest.removesuffix("-").partition(":")
    key, _, value = pair.partition("=")
    if not is_removed and not colon:
        raise UsageError(
            f'{_TAINT} "{text}": a taint needs an effect: {", ".join(TAINT_EFFECTS)}', hint=_EXAMPLES[_TAINT]
        )
    _check(_TAINT, text, f'taint key "{key}"', qualified_name(key))
    _check(_TAINT, text, f'taint value "{value}"', label_value(value))
    known = next((each for each in TAINT_EFFECTS if each == effect), None)
    if colon and known is None:
        raise UsageError(f'{_TAINT} "{text}": "{effect}" is not a taint effect', hint=nearest(effect, TAINT_EFFECTS))
    if key == CORDON_TAINT:
        option = "--uncordon" if is_removed else "--cordon"
        raise UsageError(f'{_TAINT} "{text}": this taint is part of a cordon', hint=f"{option} {node}")
    return NodeEdit(node, NodeField.TAINTS, key, None if is_removed else value, known or "")


def _setting(text: str) -> NodeEdit:
    node, rest = _split(_SETTING, text, ":")
    path, value = _pair(_SETTING, text, rest)
    if path == NodeField.UNSCHEDULABLE:
        if value not in (None, TRUE, "false"):
            raise UsageError(f'{_SETTING} "{text}": expected true or false')
        return cordon(node) if value == TRUE else uncordon(node)
    if not path.startswith(_ALLOCATABLE):
        raise _unknown_path(text, path)
    resource = path.removeprefix(_ALLOCATABLE).replace("\\", "")
    if problem := resource_name(resource):
        problem = f'{_SETTING} "{text}": invalid resource "{resource}": {problem}'
        raise UsageError(problem, hint=nearest(resource, _RESOURCES))
    if value is None:
        return NodeEdit(node, NodeField.ALLOCATABLE, resource)
    try:
        amount = quantity(value)
    except ValueError as error:
        raise UsageError(f'{_SETTING} "{text}": {error}', hint=_EXAMPLES[_SETTING]) from None
    is_fraction = resource == "pods" and amount.milli_value % 1000
    _check(
        _SETTING, text, f'amount "{value}"', "must be an integer" if is_fraction else amount_problem(resource, amount)
    )
    return NodeEdit(node, NodeField.ALLOCATABLE, resource, value)


def _unknown_path(text: str, path: str) -> UsageError:
    accepted = f"{NodeField.UNSCHEDULABLE}, {_ALLOCATABLE}RESOURCE"
    for field, advice in _ELSEWHERE.items():
        if path == field or path.startswith((f"{field}.", f"{field}[")):
            return UsageError(f'{_SETTING} "{text}": {advice}', hint=f"{_SETTING} accepts {accepted}")
    if path == NodeField.ALLOCATABLE or path in _RESOURCES or "/" in path:
        resource = path if path != NodeField.ALLOCATABLE else "cpu"
        return UsageError(
            f'{_SETTING} "{text}": expected NODE:{_ALLOCATABLE}RESOURCE', hint=f"{_ALLOCATABLE}{resource}"
        )
    problem = f'{_SETTING} "{text}": "{path}" cannot be changed here: it is unknown what that would affect'
    return UsageError(problem, hint=f"accepted: {accepted}; labels and taints: {_LABEL}, {_TAINT}")


def with_changes(
    cluster: ClusterSnapshot,
    namespace: str = "",
    *,
    default: str = DEFAULT_NAMESPACE,
    removed: Sequence[str] = (),
    edits: Sequence[NodeEdit] = (),
    budgets: Sequence[str] = (),
    now: datetime,
) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster with the requested changes, as by ``changed``, and the assumptions, which list the changes as well.

    Removed pods are recreated by their controllers. Raises the errors of ``changed`` and ``with_edits``.
    """
    after = changed(cluster, namespace, default=default, removed=removed, budgets=budgets, now=now)
    assumptions = [_what_if(target, "", "removed") for target in removed]
    old = {each.key: each.status for each in cluster.pod_disruption_budgets}
    for key, _, number in (text.rpartition("=") for text in budgets):
        allowed = status.disruptions_allowed if (status := old[key]) is not None else 0
        message = f"allows {int(number):,} disruptions instead of {allowed:,}"
        assumptions.append(_what_if(f"PodDisruptionBudget {key}", "status.disruptionsAllowed", message))
    assumptions += recreations(cluster, after)
    after, of_edits = with_edits(after, edits, now)
    return after, [*assumptions, *of_edits]


def requested_nodes(
    *, added: Iterable[str] = (), pools: Iterable[str] = (), removed: Iterable[str] = ()
) -> list[Assumption]:
    """The nodes that are added and removed, as listed in answers; the texts are those of ``with_changed_nodes``."""
    found = []
    for kind, texts in (("Node", added), ("NodePool", pools)):
        for text in texts:
            name, number, _ = numbered_name(text, "", "")
            subject = f"{kind} {name.removeprefix('node/')}" if kind != "Node" or not is_file(name) else name_of(name)
            like = "of it" if kind == "NodePool" or is_file(name) else "like it"
            nodes = "1 node" if number == 1 else f"{number:,} nodes"
            found.append(_what_if(subject, "", f"{nodes} {like} added"))
    return [*found, *(_what_if(f"Node {name.removeprefix('node/')}", "", "removed") for name in removed)]


def with_edits(
    cluster: ClusterSnapshot, edits: Sequence[NodeEdit], now: datetime
) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster with edited nodes and what follows from that, and the assumptions, starting with the edits.

    Raises ``NotFoundError`` for a node, label, taint or resource that does not exist.
    """
    before = {node.name: node for node in cluster.nodes}
    after = dict(before)
    notes, assumptions = list[Assumption](), list[Assumption]()
    for edit in edits:
        if edit.node not in after:
            check_node(cluster, edit.node)
        notes.append(_note(after[edit.node], edit))
        if edit.field is NodeField.TAINTS and is_set_by_controller(Taint(key=edit.key, effect=edit.effect)):
            message = f"a controller sets and removes the taint {edit.key} by itself, as the state of the node requires"
            assumptions.append(Assumption(f"Node {edit.node}", edit.field, message, AssumptionKind.INFORMATIONAL))
        after[edit.node] = edited_node(after[edit.node], edit)
    if not edits:
        return cluster, []
    names = dict.fromkeys(edit.node for edit in edits if edit.field in (NodeField.LABELS, NodeField.TAINTS))
    pods = grouped((pod for pod in cluster.pods if pod.spec.node_name in names), lambda pod: pod.spec.node_name)
    daemon_sets = Copier(cluster, now=now).daemon_sets() if names else {}
    nodes = [after[node.name] for node in cluster.nodes]
    cluster = msgspec.structs.replace(cluster, nodes=nodes, is_what_if=True)
    for name in names:
        own = [pod for pod in pods.get(name, ()) if not pod.is_terminal and pod.metadata.deletion_timestamp is None]
        cluster, consequences = _consequences(cluster, before[name], after[name], own, daemon_sets, now)
        assumptions += consequences
    return cluster, [*notes, *assumptions]


def _what_if(subject: str, field: str, message: str) -> Assumption:
    """A change to the cluster that was requested."""
    return Assumption(subject, field, message, AssumptionKind.WHAT_IF)


def _note(node: Node, edit: NodeEdit) -> Assumption:
    """What the edit changes on the node. Raises ``NotFoundError`` if there is nothing to remove."""
    subject = f"Node {node.name}"
    if edit.field is NodeField.UNSCHEDULABLE:
        is_cordon = edit.value == TRUE
        same = ", as before" if node.spec.unschedulable == is_cordon else ""
        return _what_if(subject, edit.field, f"{'' if is_cordon else 'un'}cordoned{same}")
    noun, old = _current(node, edit)
    if edit.value is None:
        if not old:
            keys = {
                NodeField.LABELS: [*node.labels],
                NodeField.TAINTS: [taint.key for taint in node.spec.taints],
                NodeField.ALLOCATABLE: [*node.status.allocatable],
            }[edit.field]
            effect = f" with effect {edit.effect}" if edit.effect else ""
            problem = f'node "{node.name}" has no {noun} "{edit.key}"{effect}'
            raise NotFoundError(problem, hint=nearest(edit.key, dict.fromkeys(keys)) if keys else "")
        return _what_if(subject, edit.field, f"{noun} {' and '.join(old)} removed")
    new = _words(edit)
    if not old:
        return _what_if(subject, edit.field, f"{noun} {new} added")
    return _what_if(subject, edit.field, f"{noun} {new}{', as before' if old == [new] else f' instead of {old[0]}'}")


def _words(edit: NodeEdit) -> str:
    if edit.field is NodeField.TAINTS:
        return str(Taint(key=edit.key, value=edit.value or "", effect=edit.effect))
    return f"{edit.key}{'=' if edit.field is NodeField.LABELS else ': '}{edit.value}"


def _current(node: Node, edit: NodeEdit) -> tuple[str, list[str]]:
    """What the edit is about, and what the node has of it."""
    if edit.field is NodeField.TAINTS:
        taints = [each for each in node.spec.taints if each.key == edit.key and edit.effect in ("", each.effect)]
        return "taint", [str(each) for each in taints]
    noun, held = ("label", node.labels) if edit.field is NodeField.LABELS else ("resource", node.status.allocatable)
    old = held.get(edit.key)
    return noun, [_words(msgspec.structs.replace(edit, value=str(old)))] if old is not None else []


def _consequences(
    cluster: ClusterSnapshot,
    before: Node,
    after: Node,
    own: Sequence[Pod],
    daemon_sets: Mapping[str, DaemonPods],
    now: datetime,
) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster after taint eviction and the controllers of DaemonSets, as far as their pods show their templates.

    ``own`` are the node's pods. The ``daemon_sets`` are those of the cluster before all edits.
    """
    new = {str(taint) for taint in after.spec.taints if taint not in before.spec.taints}
    seconds = {
        pod.key: [each.toleration_seconds or 0 for each in evicting_taints(pod, after) if each.taint in new]
        for pod in own
    }
    evicted = [pod for pod in own if 0 in seconds[pod.key]]
    cluster, assumptions = without_pods(cluster, after.name, evicted, now, _EVICTED)
    waiting = [f"{key} for {min(times)}s" for key, times in seconds.items() if times and 0 not in times]
    if waiting:
        message = f"not evicted yet, because they tolerate the new taints for a time: {listed(waiting)}"
        assumptions.append(Assumption(f"Node {after.name}", "pods", message, AssumptionKind.INFORMATIONAL))
    deselected = list[Pod]()
    for name, daemon_set in daemon_sets.items():
        pod = daemon_set.by_node.get(after.name)
        message = ""
        if pod is not None and pod in evicted:
            continue
        if daemon_set.newest is None:
            if before.labels != after.labels:
                message = f"has no pod in the cluster, so whether it runs on {after.name} is unknown"
        elif pod is not None and not may_run(pod, after, is_running=True):
            deselected.append(pod)
        elif pod is None and may_run(daemon_set.newest, after):
            if daemon_set.requires_more and before.labels != after.labels:
                message = f"it is unknown whether its node affinity matches {after.name}; assumed that it does not"
            elif not may_run(daemon_set.newest, before):
                message = f"its controller would create a pod on {after.name}, which is not simulated"
        elif pod is not None and daemon_set.requires_more and before.labels != after.labels:
            message = f"it is unknown whether its node affinity still matches {after.name}; its pod stays"
        if message:
            assumptions.append(Assumption(name, "spec.template", message))
    cluster, deleted = without_pods(cluster, after.name, deselected, now, _DESELECTED)
    return cluster, [*assumptions, *deleted]
