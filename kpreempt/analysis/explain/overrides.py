"""What if the cluster were a little different: without an object, with a cordoned node, with a larger budget.

Each function returns a new cluster. Statuses of budgets stay as they were: taking a pod out does not make its budget's
controller run again.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import msgspec

from kpreempt.analysis.unread import BUDGETS
from kpreempt.errors import NotFoundError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.model.node import Node
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kpreempt.model.taints import Taint
from kpreempt.verdict.unread import missing

_UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_KINDS = {
    **dict.fromkeys(("pod", "pods", "po"), "pod"),
    **dict.fromkeys(("node", "nodes", "no"), "node"),
    **dict.fromkeys(("pdb", "pdbs", "poddisruptionbudget", "poddisruptionbudgets"), "pdb"),
    **dict.fromkeys(("resourceclaim", "resourceclaims"), "resourceclaim"),
}
_SHAPES = "pod/NAME, pod/NS/NAME, node/NAME, pdb/NS/NAME, resourceclaim/NS/NAME"
_MAX_INT32 = 2**31 - 1


def changed(
    cluster: ClusterSnapshot,
    namespace: str = "",
    *,
    removed: Iterable[str] = (),
    cordons: Iterable[str] = (),
    uncordons: Iterable[str] = (),
    budgets: Iterable[str] = (),
) -> ClusterSnapshot:
    """The cluster with several changes, in this order: ``without``, ``cordon``, ``uncordon``, ``set_budget``.

    ``namespace`` is for names without one; it may be empty. Raises what these functions raise.
    """
    for target in removed:
        cluster = without(cluster, target, namespace or DEFAULT_NAMESPACE)
    for node_name in cordons:
        cluster = cordon(cluster, node_name)
    for node_name in uncordons:
        cluster = uncordon(cluster, node_name)
    for budget in budgets:
        cluster = set_budget(cluster, budget)
    return cluster


def without(cluster: ClusterSnapshot, target: str, namespace: str = DEFAULT_NAMESPACE) -> ClusterSnapshot:
    """The cluster without one object.

    ``target`` is ``pod/NAME``, ``pod/NS/NAME``, ``NS/NAME`` (a pod), ``node/NAME``, ``pdb/NS/NAME`` or
    ``resourceclaim/NS/NAME``; ``namespace`` is for a name without one. Pods of a node that is taken out stay, on a node
    that does not exist. A pod's claims for devices are given back with it, where nobody else uses them. Raises
    ``UsageError`` for a text of another shape and ``NotFoundError`` for an object that is not there.
    """
    kind, object_namespace, name = _parse_target(target, namespace)
    if kind == "node":
        nodes = [node for node in cluster.nodes if node.name != name]
        if len(nodes) == len(cluster.nodes):
            raise _not_found(cluster, "node", name, (node.name for node in cluster.nodes))
        csi_nodes = [each for each in cluster.csi_nodes if each.metadata.name != name]
        return msgspec.structs.replace(cluster, nodes=nodes, csi_nodes=csi_nodes)
    key = f"{object_namespace}/{name}"
    if kind == "pdb":
        budgets = [budget for budget in cluster.pod_disruption_budgets if budget.key != key]
        if len(budgets) == len(cluster.pod_disruption_budgets):
            raise _not_found(cluster, BUDGETS, key, (each.key for each in cluster.pod_disruption_budgets))
        return msgspec.structs.replace(cluster, pod_disruption_budgets=budgets)
    if kind == "resourceclaim":
        claims = [claim for claim in cluster.resource_claims if claim.key != key]
        if len(claims) == len(cluster.resource_claims):
            raise _not_found(cluster, "ResourceClaim", key, (claim.key for claim in cluster.resource_claims))
        return msgspec.structs.replace(cluster, resource_claims=claims)
    pods = [pod for pod in cluster.pods if pod.key != key]
    if len(pods) == len(cluster.pods):
        raise _not_found(cluster, "pod", key, (pod.key for pod in cluster.pods))
    if cluster.resource_claims:
        from kpreempt.controllers.resource_claims import released  # noqa: PLC0415 - few clusters have devices

        claims = released(cluster.resource_claims, [pod for pod in cluster.pods if pod.key == key])
        cluster = msgspec.structs.replace(cluster, resource_claims=claims)
    return msgspec.structs.replace(cluster, pods=pods)


def cordon(cluster: ClusterSnapshot, node_name: str) -> ClusterSnapshot:
    """The cluster with a node marked unschedulable, and with the taint that the node controller then adds."""
    node_name = node_name.removeprefix("node/")
    check_node(cluster, node_name)
    nodes = [cordoned_node(node) if node.name == node_name else node for node in cluster.nodes]
    return msgspec.structs.replace(cluster, nodes=nodes)


def uncordon(cluster: ClusterSnapshot, node_name: str) -> ClusterSnapshot:
    """The cluster with a node that is open to pods again, without the taint that stands for its being closed."""
    node_name = node_name.removeprefix("node/")
    check_node(cluster, node_name)
    nodes = [uncordoned_node(node) if node.name == node_name else node for node in cluster.nodes]
    return msgspec.structs.replace(cluster, nodes=nodes)


def check_node(cluster: ClusterSnapshot, node_name: str) -> None:
    """Raise ``NotFoundError``, with the names that come near, unless the node is in the cluster."""
    if all(node.name != node_name for node in cluster.nodes):
        raise _not_found(cluster, "node", node_name, (node.name for node in cluster.nodes))


def set_budget(cluster: ClusterSnapshot, text: str) -> ClusterSnapshot:
    """The cluster with a budget that allows another number of disruptions: ``NS/NAME=ALLOWED``.

    Raises ``UsageError`` for a text of another shape and ``NotFoundError`` for an unknown budget.
    """
    key, equals, allowed = text.rpartition("=")
    is_number = allowed.isascii() and allowed.isdecimal() and len(allowed) <= 10 and int(allowed) <= _MAX_INT32
    if not equals or key.count("/") != 1 or not all(key.split("/")) or not is_number:
        raise UsageError(f'"{text}" is not NS/NAME=ALLOWED', hint="shop/web=2")
    budgets = [
        _allowing(budget, int(allowed)) if budget.key == key else budget for budget in cluster.pod_disruption_budgets
    ]
    if all(budget.key != key for budget in budgets):
        raise _not_found(cluster, BUDGETS, key, (each.key for each in cluster.pod_disruption_budgets))
    return msgspec.structs.replace(cluster, pod_disruption_budgets=budgets)


def _parse_target(target: str, namespace: str) -> tuple[str, str, str]:
    """Kind, namespace and name of ``[KIND/][NS/]NAME``."""
    parts = target.split("/")
    if len(parts) > 1 and parts[0].lower() in _KINDS:
        kind, rest = _KINDS[parts[0].lower()], parts[1:]
    else:
        kind, rest = "pod", parts
    most = 1 if kind == "node" else 2
    if not 1 <= len(rest) <= most or not all(rest):
        raise UsageError(f'"{target}" does not name an object', hint=_SHAPES)
    return kind, rest[0] if len(rest) == 2 else namespace, rest[-1]


def cordoned_node(node: Node) -> Node:
    """The node, closed to pods; the very same where it was already."""
    taints = node.spec.taints
    if not any(taint.key == _UNSCHEDULABLE.key and taint.effect == _UNSCHEDULABLE.effect for taint in taints):
        taints = [*taints, _UNSCHEDULABLE]
    elif node.spec.unschedulable:
        return node
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=True, taints=taints))


def uncordoned_node(node: Node) -> Node:
    """The node, open to pods."""
    taints = [taint for taint in node.spec.taints if taint.key != _UNSCHEDULABLE.key]
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=False, taints=taints))


def _allowing(budget: PodDisruptionBudget, allowed: int) -> PodDisruptionBudget:
    status = budget.status or PodDisruptionBudgetStatus()
    return msgspec.structs.replace(budget, status=msgspec.structs.replace(status, disruptions_allowed=allowed))


def _not_found(cluster: ClusterSnapshot, kind: str, name: str, there: Iterable[str]) -> NotFoundError:
    near = difflib.get_close_matches(name, list(there), n=3)
    first, slash, rest = name.partition("/")
    if slash and not near:
        # What stands where a namespace does may be meant as a kind.
        near = [f"{_KINDS[each]}/{rest}" for each in difflib.get_close_matches(first.lower(), _KINDS, n=1)]
    read = {"node": "Node", "pod": "Pod"}.get(kind, kind)
    return NotFoundError(missing(cluster, read, f'{kind} "{name}" in the cluster'), hint=", ".join(near))
