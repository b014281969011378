"""The nodes on which a DaemonSet gets a pod.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/daemon/daemon_controller.go`` (``nodeShouldRunDaemonPod``): the
controller creates a pod for a node if the pod's node selector and affinity match and it tolerates the node's taints.
Resources, ports and volumes are left to the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kpreempt.admission.records import DEFAULT_RULES, ApiServerRules
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.taints import find_untolerated_taint

if TYPE_CHECKING:
    from kpreempt.controllers.daemon_set import DaemonNode
    from kpreempt.verdict.workload import ExcludedNode

_REPELLING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
_EXPELLING_EFFECTS = frozenset({"NoExecute"})


def daemon_node_names(pod: Pod, nodes: Iterable[Node], rules: ApiServerRules = DEFAULT_RULES) -> list[str]:
    """Return the names of nodes for which the controller would create ``pod``, in order.

    ``pod`` is the DaemonSet's pod with the controller's tolerations, not yet bound to a node.
    """
    return [node.name for node in nodes if _is_for(pod, node, rules, _REPELLING_EFFECTS)]


def daemon_nodes(pod: Pod, nodes: Iterable[Node], rules: ApiServerRules = DEFAULT_RULES) -> list[DaemonNode]:
    """Return all nodes, with whether the controller would create ``pod`` there, and whether a running one may stay."""
    from kpreempt.controllers.daemon_set import DaemonNode  # noqa: PLC0415 - only simulations of DaemonSets need it

    return [
        DaemonNode(
            name=node.name,
            should_run=_is_for(pod, node, rules, _REPELLING_EFFECTS),
            may_stay=_is_for(pod, node, rules, _EXPELLING_EFFECTS),
        )
        for node in nodes
    ]


def excluded_nodes(pod: Pod, nodes: Iterable[Node], rules: ApiServerRules = DEFAULT_RULES) -> list[ExcludedNode]:
    """Return the nodes for which the controller would not create ``pod``, and why; ``pod`` is as above."""
    from kpreempt.verdict.workload import ExcludedNode  # noqa: PLC0415 - only answers about DaemonSets need it

    compares = rules.taint_toleration_comparison_operators
    found = []
    for node in nodes:
        if _is_for(pod, node, rules, _REPELLING_EFFECTS):
            continue
        taint = None
        if pod.spec.selects(node.name, node.labels):
            taint = find_untolerated_taint(
                node.spec.taints, pod.spec.tolerations, _REPELLING_EFFECTS, compares_numbers=compares
            )
        text = f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}" if taint is not None else ""
        stays = _is_for(pod, node, rules, _EXPELLING_EFFECTS)
        found.append(ExcludedNode(node=node.name, taint=text, stays=stays))
    return found


def _is_for(pod: Pod, node: Node, rules: ApiServerRules, effects: frozenset[str]) -> bool:
    """Return whether the pod selects the node, and tolerates its taints with these effects."""
    if pod.spec.node_name not in ("", node.name) or not pod.spec.selects(node.name, node.labels):
        return False
    compares = rules.taint_toleration_comparison_operators
    taint = find_untolerated_taint(node.spec.taints, pod.spec.tolerations, effects, compares_numbers=compares)
    return taint is None
