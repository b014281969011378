"""Checks that the predicates and filters of several versions are made of; each version says what a refusal means.

``algorithm/predicates/predicates.go`` of v1.8.15 and v1.13.12; the plugins of v1.18.19 that took its place.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.labels import format_requirement
from kpreempt.model.pod import ContainerPort, Pod
from kpreempt.model.taints import Taint, find_untolerated_taint
from kpreempt.schedulers.legacy.base.node_info import NodeInfo, PortKey
from kpreempt.schedulers.legacy.base.resources import PODS, Amounts, names_to_compare, shortfalls
from kpreempt.verdict import Code, Detail, Status
from kpreempt.verdict.details import (
    InsufficientResources,
    NodeAffinityMismatch,
    PortConflict,
    Shortfall,
    UntoleratedTaint,
)

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (the address that pods ask for, not one to bind to)
DEFAULT_PROTOCOL = "TCP"
UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
_EFFECTS_THAT_REPEL = frozenset(("NoSchedule", "NoExecute"))

PASSES = Status(Code.NONE)


def refusal(*reasons: str, detail: Detail | None = None, code: Code = Code.NONE) -> Status:
    """The status of a node that is refused."""
    return Status(code, list(reasons), detail=detail)


def insufficient_resources(
    request: Amounts, node_info: NodeInfo, always: Iterable[str] = (), ignored: frozenset[str] = frozenset()
) -> InsufficientResources | None:
    """What the node has too little of, the number of pods first, or ``None``; see ``names_to_compare``."""
    names = names_to_compare(request, always, ignored)
    short = shortfalls(request, node_info.requested, node_info.allocatable, names)
    count = len(node_info.pods)
    if count + 1 > node_info.allowed_pods:
        short.insert(0, Shortfall(PODS, 1, count, node_info.allowed_pods, exceeds_node=node_info.allowed_pods < 1))
    return InsufficientResources(short, count) if short else None


def untolerated_taint(pod: Pod, node_info: NodeInfo) -> UntoleratedTaint | None:
    """The first taint that keeps the pod off the node, or ``None``."""
    taint = find_untolerated_taint(node_info.node.spec.taints, pod.spec.tolerations, _EFFECTS_THAT_REPEL)
    return UntoleratedTaint(taint.key, taint.value, taint.effect) if taint else None


def tolerates_unschedulable(pod: Pod) -> bool:
    """Whether the pod tolerates the taint that goes with ``spec.unschedulable``."""
    taint = Taint(UNSCHEDULABLE_TAINT, effect="NoSchedule")
    return any(toleration.tolerates(taint) for toleration in pod.spec.tolerations)


def selector_mismatch(pod: Pod, node_info: NodeInfo) -> NodeAffinityMismatch | None:
    """What of the pod's node selector, or else of its required node affinity, the node lacks, or ``None``."""
    if pod.spec.selects(node_info.name, node_info.labels):
        return None
    selector = pod.spec.node_selector
    unmet = [f"{key}={value}" for key, value in sorted(selector.items()) if node_info.labels.get(key) != value]
    if unmet:
        return NodeAffinityMismatch("nodeSelector", unmet)
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    terms = required.node_selector_terms if required else []
    return NodeAffinityMismatch(
        "nodeAffinity",
        [
            ",".join(
                format_requirement(each.key, each.operator, each.values)
                for each in (*term.match_expressions, *term.match_fields)
            )
            for term in terms
        ],
    )


def host_ports(pod: Pod) -> list[ContainerPort]:
    """The host ports of the pod's containers, init containers left out."""
    return [port for container in pod.spec.containers for port in container.ports if port.host_port > 0]


def addressed_ports(pod: Pod) -> list[PortKey]:
    """The pod's host ports by address, protocol and number (1.13 and 1.18)."""
    return [_port_key(port) for port in host_ports(pod)]


def port_conflict(pod: Pod, node_info: NodeInfo) -> PortConflict | None:
    """The pod's first host port that is taken: 0.0.0.0 conflicts with any address (1.13 and 1.18), or ``None``."""
    for address, protocol, number in addressed_ports(pod):
        for used in node_info.used_ports:
            is_same_port = used[1:] == (protocol, number)
            if is_same_port and (address == used[0] or ANY_ADDRESS in (address, used[0])):
                holders = [info.key for info in node_info.pods if used in info.ports]
                return PortConflict(number, protocol, address, holders)
    return None


def _port_key(port: ContainerPort) -> PortKey:
    return port.host_ip or ANY_ADDRESS, port.protocol or DEFAULT_PROTOCOL, port.host_port


def term_selects(owner: Pod, term: PodAffinityTerm, pod: Pod) -> bool:
    """Whether a pod affinity term of ``owner`` selects ``pod``, topology aside.

    A term without namespaces means its owner's. Namespace selectors came later and are passed over.
    """
    namespaces = term.namespaces or (owner.metadata.namespace,)
    selector = term.label_selector
    return (
        pod.metadata.namespace in namespaces
        and selector is not None
        and selector.is_valid()
        and selector.matches(pod.metadata.labels)
    )
