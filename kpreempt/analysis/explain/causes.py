"""Facts behind the rejections of a pod that are not on the nodes that reject it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kpreempt.analysis.explain.candidates import REPELLING, similar_to, values_of
from kpreempt.analysis.nodes.copies import HOST_NAME
from kpreempt.analysis.remedies.excluded import is_device
from kpreempt.model.affinity import NodeSelectorTerm
from kpreempt.model.cluster import REDACTED_AT, ClusterSnapshot, may_lack_nodes
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, ResourceList
from kpreempt.model.storage import SELECTED_NODE_ANNOTATION
from kpreempt.model.taints import find_untolerated_taint
from kpreempt.schedulers.kube.framework.resources import pod_requests, requests_in_units
from kpreempt.verdict import Verdict
from kpreempt.verdict.details import (
    AffinityConflict,
    InsufficientDevices,
    InsufficientResources,
    NodeAffinityMismatch,
    SpreadConflict,
    VolumeConflict,
)
from kpreempt.verdict.remedies import Cause, CauseKind

_MOST_NAMED = 5
_CONTAINERS, _SIDECARS = "containers", "sidecars"
# Capacity that is not allocatable is worth mentioning from this share on.
_LARGE_SHARE = 0.1


def causes_of(cluster: ClusterSnapshot, pod: Pod, verdict: Verdict) -> list[Cause]:
    """The facts, the most specific first."""
    details = [status.detail for status in verdict.filter.values()]
    return [
        *(_gone_nodes(cluster, pod, details) if not may_lack_nodes(cluster) else ()),
        *_missing_resources(cluster, details),
        *_too_large(cluster, pod),
        *_missing_labels(cluster, pod, details),
        *_missing_devices(verdict),
        *_empty_domains(cluster, pod, details),
        *_pods_elsewhere(cluster, pod, verdict),
        *_parts(cluster, pod, verdict),
        *_fragmented(verdict),
    ]


def _gone_nodes(cluster: ClusterSnapshot, pod: Pod, details: Sequence[object]) -> Iterator[Cause]:
    """Claims, volumes, and fields of the pod that are tied to nodes that do not exist."""
    names = {node.name for node in cluster.nodes}
    hostnames = {node.labels.get(HOST_NAME, node.name) for node in cluster.nodes}
    nominated = pod.status.nominated_node_name
    if nominated and nominated not in names:
        yield Cause(CauseKind.NODE_GONE, "status.nominatedNodeName", nodes=[nominated])
    wanted = [(key, [value]) for key, value in pod.spec.node_selector.items() if key == HOST_NAME]
    for term in _terms(pod):
        wanted += [(each.key, list(each.values)) for each in term.match_expressions if each.key == HOST_NAME]
        wanted += [(each.key, list(each.values)) for each in term.match_fields]
    for key, values in wanted:
        known = hostnames if key == HOST_NAME else names
        if values and known.isdisjoint(values):
            yield Cause(CauseKind.NODE_GONE, key, nodes=values)
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
    required += [
        (each.key, list(each.values))
        for term in _terms(pod)
        for each in term.match_expressions
        if each.operator == "In"
    ]
    # A node that does not exist is another fact.
    required = [(key, values) for key, values in required if key != HOST_NAME]
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


def _terms(pod: Pod) -> Sequence[NodeSelectorTerm]:
    """The terms of the pod's required node affinity."""
    rules = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return rules.required.node_selector_terms if rules and rules.required else []


def _missing_devices(verdict: Verdict) -> Iterator[Cause]:
    """Claims without any device on the nodes that reject them, and selectors that reject the nodes' devices."""
    details = {
        node: status.detail for node, status in verdict.filter.items() if isinstance(status.detail, InsufficientDevices)
    }
    for claim in dict.fromkeys(each.claim for each in details.values()):
        own = {node: each for node, each in details.items() if each.claim == claim}
        if all(each.published == 0 for each in own.values()):
            yield Cause(CauseKind.NO_DEVICES, claim, resource=next(iter(own.values())).device_class)
        found: dict[tuple[str, str], dict[str, list[str]]] = {}
        for node, each in own.items():
            for selector in each.rejecting:
                owner = each.device_class if selector.is_of_class else ""
                values = found.setdefault((owner, selector.expression), {})
                for name, numbers in selector.values.items():
                    for value in numbers:
                        values.setdefault(f"{name.rpartition('/')[2]}={value}", []).append(node)
        for (owner, expression), values in found.items():
            shown = dict([*values.items()][:_MOST_NAMED])
            yield Cause(CauseKind.SELECTOR, claim, resource=owner, values=shown, selector=expression)


def _pods_elsewhere(cluster: ClusterSnapshot, pod: Pod, verdict: Verdict) -> Iterator[Cause]:
    """Pods on other nodes because of which nodes reject the pod; evicting pods of the node itself can't help there."""
    domains: dict[str, _Domain] = {}
    for node, status in verdict.filter.items():
        detail = status.detail
        if isinstance(detail, AffinityConflict) and detail.rule != "affinity" and detail.topology_value:
            domain = domains.setdefault(f"{detail.topology_key}={detail.topology_value}", _Domain(is_spread=False))
            domain.nodes.append(node)
            domain.holders.update(detail.holders)
        elif isinstance(detail, SpreadConflict) and detail.topology_value and detail.topology_key != HOST_NAME:
            domain = domains.setdefault(f"{detail.topology_key}={detail.topology_value}", _Domain(is_spread=True))
            domain.nodes.append(node)
    if not domains:
        return
    labels = {node.name: node.labels for node in cluster.nodes}
    wanted = set().union(*(domain.holders for domain in domains.values()))
    constraints = [each for each in pod.spec.topology_spread_constraints if each.label_selector is not None]
    for other in cluster.pods:
        node = other.spec.node_name
        if not node or node not in labels or other.is_terminal:
            continue
        if other.key in wanted:
            for domain in domains.values():
                if other.key in domain.holders:
                    domain.found[other.key] = node
        for constraint in constraints if other.metadata.namespace == pod.metadata.namespace else ():
            name = f"{constraint.topology_key}={labels[node].get(constraint.topology_key)}"
            matches = constraint.label_selector is not None and constraint.label_selector.matches(other.metadata.labels)
            if matches and name in domains and domains[name].is_spread:
                domains[name].found[other.key] = node
    for name, domain in domains.items():
        if domain.found and any({*domain.found.values()} - {node} for node in domain.nodes):
            yield Cause(
                CauseKind.OTHER_NODE,
                name,
                pods=[*domain.found][:_MOST_NAMED],
                nodes=[*domain.found.values()][:_MOST_NAMED],
                amounts={"pods": len(domain.found)},
            )


class _Domain:
    """The nodes of a domain that reject the pod, and the pods there because of which they do, with their nodes."""

    def __init__(self, *, is_spread: bool) -> None:
        self.is_spread = is_spread
        self.nodes: list[str] = []
        self.holders: set[str] = set()
        self.found: dict[str, str] = {}


def _fragmented(verdict: Verdict) -> Iterator[Cause]:
    """Devices of which enough is free on several nodes together, each of which has enough, but not on one."""
    free: dict[str, dict[str, int]] = {}
    requested: dict[str, int] = {}
    for node, status in verdict.filter.items():
        if isinstance(status.detail, InsufficientResources):
            for each in status.detail.shortfalls:
                if each.requested <= each.allocatable:
                    free.setdefault(each.resource, {})[node] = max(each.allocatable - each.used, 0)
                    requested[each.resource] = each.requested
    for resource, amounts in free.items():
        total, node = sum(amounts.values()), max(amounts, key=lambda node: amounts[node])
        if is_device(resource) and amounts[node] < requested[resource] <= total:
            numbers = {"free": total, "most": amounts[node], "requested": requested[resource]}
            yield Cause(CauseKind.FRAGMENTED, resource, nodes=[node], amounts=numbers)


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
    """The containers and sidecars, or an init container that needs more than all of them, and the overhead."""
    parts = {_CONTAINERS: sum(_amount(each.resources.requests, resource) for each in pod.spec.containers)}
    sidecars = 0
    largest: dict[str, int] = {}
    for each in pod.spec.init_containers:
        amount = _amount(each.resources.requests, resource)
        if each.restart_policy == "Always":
            sidecars += amount
        elif amount + sidecars > sum(largest.values()):
            # The sidecars that start before it already run.
            largest = {f"init container {each.name}": amount, **({_SIDECARS: sidecars} if sidecars else {})}
    if sidecars:
        parts[_SIDECARS] = sidecars
    if sum(largest.values()) > sum(parts.values()):
        parts = largest
    overhead = _amount(pod.spec.overhead, resource)
    return {**parts, "overhead": overhead} if overhead else parts


def _amount(amounts: ResourceList, resource: str) -> int:
    amount = amounts.get(resource)
    return requests_in_units({resource: amount.nano}).get(resource, 0) if amount is not None else 0
