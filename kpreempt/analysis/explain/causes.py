"""Facts behind the rejections of a pod that are not on the nodes that reject it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kpreempt.analysis.explain.candidates import REPELLING, similar_to, values_of
from kpreempt.analysis.nodes.copies import HOST_NAME
from kpreempt.analysis.remedies.excluded import is_device
from kpreempt.model.affinity import NodeSelectorTerm
from kpreempt.model.cluster import REDACTED_AT, ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, ResourceList
from kpreempt.model.storage import SELECTED_NODE_ANNOTATION
from kpreempt.model.taints import find_untolerated_taint
from kpreempt.schedulers.kube.framework.resources import pod_requests, requests_in_units
from kpreempt.verdict import Verdict
from kpreempt.verdict.details import (
    InsufficientResources,
    NodeAffinityMismatch,
    SpreadConflict,
    VolumeConflict,
)
from kpreempt.verdict.remedies import Cause, CauseKind

_MOST_NAMED = 5
_CONTAINERS = "containers"
# Capacity that is not allocatable is worth mentioning from this share on.
_LARGE_SHARE = 0.1


def causes_of(cluster: ClusterSnapshot, pod: Pod, verdict: Verdict) -> list[Cause]:
    """The facts, the most specific first."""
    details = [status.detail for status in verdict.filter.values()]
    found = [
        *_gone_nodes(cluster, details),
        *_missing_resources(cluster, details),
        *_too_large(cluster, pod),
        *_missing_labels(cluster, pod, details),
    ]
    return [*found, *_empty_domains(cluster, pod, details), *_parts(cluster, pod, verdict)]


def _gone_nodes(cluster: ClusterSnapshot, details: Sequence[object]) -> Iterator[Cause]:
    """Claims and volumes that are tied to nodes that do not exist."""
    names = {node.name for node in cluster.nodes}
    hostnames = {node.labels.get(HOST_NAME, node.name) for node in cluster.nodes}
    claims = {each.key: each for each in cluster.persistent_volume_claims}
    volumes = {each.metadata.name: each for each in cluster.persistent_volumes}
    seen = set()
    for detail in details:
        if not isinstance(detail, VolumeConflict) or (detail.claim, detail.volume) in seen:
            continue
        seen.add((detail.claim, detail.volume))
        claim, volume = claims.get(detail.claim), volumes.get(detail.volume)
        selected = claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION, "") if claim is not None else ""
        if selected and selected not in names and volume is None:
            yield Cause(CauseKind.NODE_GONE, f"PersistentVolumeClaim {detail.claim}", nodes=[selected])
        affinity = volume.spec.node_affinity if volume is not None else None
        terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else []
        hosts = [
            value
            for term in terms
            for each in term.match_expressions
            if each.key == HOST_NAME and each.operator == "In"
            for value in each.values
        ]
        if hosts and hostnames.isdisjoint(hosts):
            yield Cause(CauseKind.NODE_GONE, f"PersistentVolume {detail.volume}", nodes=hosts)


def _missing_resources(cluster: ClusterSnapshot, details: Sequence[object]) -> Iterator[Cause]:
    """Devices that no node offers, and nodes that have some which are not allocatable."""
    short = [each for detail in details if isinstance(detail, InsufficientResources) for each in detail.shortfalls]
    for resource in dict.fromkeys(each.resource for each in short if is_device(each.resource)):
        offers = [_amount(node.status.allocatable, resource) for node in cluster.nodes]
        capacity = {
            node.name: amount
            for node in cluster.nodes
            if (amount := _amount(node.status.capacity, resource)) > _amount(node.status.allocatable, resource)
        }
        if not any(offers) or capacity:
            yield Cause(
                CauseKind.NO_SUCH_RESOURCE,
                resource,
                nodes=[*capacity][:_MOST_NAMED],
                amounts=dict([*capacity.items()][:_MOST_NAMED]),
            )


def _too_large(cluster: ClusterSnapshot, pod: Pod) -> Iterator[Cause]:
    """Requests that are larger than any node."""
    for resource, requested in requests_in_units(pod_requests(pod)).items():
        largest = max((_amount(node.status.allocatable, resource) for node in cluster.nodes), default=0)
        if 0 < largest < requested:
            yield Cause(CauseKind.TOO_LARGE, resource, amounts={"requested": requested, "largest": largest})


def _missing_labels(cluster: ClusterSnapshot, pod: Pod, details: Sequence[object]) -> Iterator[Cause]:
    """Required values of labels that no node has, with the values that nodes have."""
    if not any(isinstance(detail, NodeAffinityMismatch) for detail in details):
        return
    required = [(key, [value]) for key, value in pod.spec.node_selector.items()]
    rules = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms: Sequence[NodeSelectorTerm] = rules.required.node_selector_terms if rules and rules.required else []
    required += [
        (each.key, list(each.values)) for term in terms for each in term.match_expressions if each.operator == "In"
    ]
    keys = list(dict.fromkeys(key for node in cluster.nodes for key in node.labels))
    # Tokens are not spelled like the names that they replace.
    is_redacted = cluster.taken_at == REDACTED_AT
    for key, wanted in required:
        values = values_of(cluster.nodes, key)
        if any(value in values for value in wanted):
            continue
        text = f"{key}={wanted[0]}" if len(wanted) == 1 else f"{key} in ({', '.join(wanted)})"
        shown = dict(sorted(values.items(), key=lambda item: -len(item[1]))[:_MOST_NAMED])
        near: dict[str, list[str]] = (
            {each: [] for each in similar_to(key, keys)} if not values and not is_redacted else {}
        )
        yield Cause(CauseKind.NO_SUCH_LABEL, text, resource=key, values=shown or near)


def _empty_domains(cluster: ClusterSnapshot, pod: Pod, details: Sequence[object]) -> Iterator[Cause]:
    """The domains with the fewest pods of a spread constraint, if the pod tolerates no node there."""
    conflicts = [each for each in details if isinstance(each, SpreadConflict) and each.topology_value]
    for key in dict.fromkeys(each.topology_key for each in conflicts):
        conflict = next(each for each in conflicts if each.topology_key == key)
        fewest = {value for value, number in conflict.counts.items() if number == conflict.minimum}
        nodes = [node for node in cluster.nodes if node.labels.get(key) in fewest]
        if nodes and all(_repels(node, pod) for node in nodes):
            yield Cause(CauseKind.EMPTY_DOMAIN, key, nodes=[node.name for node in nodes][:_MOST_NAMED])


def _repels(node: Node, pod: Pod) -> bool:
    return node.spec.unschedulable or (
        find_untolerated_taint(node.spec.taints, pod.spec.tolerations, REPELLING) is not None
    )


def _parts(cluster: ClusterSnapshot, pod: Pod, verdict: Verdict) -> Iterator[Cause]:
    """What a request consists of that is not the sum of the containers, and what of a node is reserved."""
    short: dict[str, str] = {}
    for node, status in verdict.filter.items():
        if isinstance(status.detail, InsufficientResources):
            for each in status.detail.shortfalls:
                short.setdefault(each.resource, node)
    nodes = {node.name: node for node in cluster.nodes}
    total = requests_in_units(pod_requests(pod))
    for resource, name in short.items():
        parts = _parts_of(pod, resource)
        if parts.keys() != {_CONTAINERS} and sum(parts.values()) == total.get(resource, 0):
            yield Cause(CauseKind.PARTS, resource, amounts={**parts, "total": total[resource]})
        of_node = nodes[name].status
        allocatable, capacity = (_amount(each, resource) for each in (of_node.allocatable, of_node.capacity))
        if not is_device(resource) and capacity - allocatable > _LARGE_SHARE * capacity:
            amounts = {"allocatable": allocatable, "capacity": capacity}
            yield Cause(CauseKind.RESERVED, resource, nodes=[name], amounts=amounts)


def _parts_of(pod: Pod, resource: str) -> dict[str, int]:
    """The containers, or an init container that needs more than all of them, and the overhead."""
    init = {
        each.name: _amount(each.resources.requests, resource)
        for each in pod.spec.init_containers
        if each.restart_policy != "Always"
    }
    largest = max(init, key=lambda name: init[name], default="")
    parts = {_CONTAINERS: sum(_amount(each.resources.requests, resource) for each in pod.spec.containers)}
    if largest and init[largest] > parts[_CONTAINERS]:
        parts = {f"init container {largest}": init[largest]}
    overhead = _amount(pod.spec.overhead, resource)
    return {**parts, "overhead": overhead} if overhead else parts


def _amount(amounts: ResourceList, resource: str) -> int:
    amount = amounts.get(resource)
    return requests_in_units({resource: amount.nano}).get(resource, 0) if amount is not None else 0
