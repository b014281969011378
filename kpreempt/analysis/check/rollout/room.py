"""How much room nodes have before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kpreempt.analysis.hypothetical_pods import RequestsOfMany, allocatable_of
from kpreempt.analysis.simulation.workloads import Workloads
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.verdict.check import NodeRoom

_PODS = "pods"


def changed_nodes(before: ClusterSnapshot, after: ClusterSnapshot) -> list[NodeRoom]:
    """The nodes whose pods are others than before, in the order of the cluster."""
    old, new = _by_node(before), _by_node(after)
    names, requests = Workloads(after), RequestsOfMany()
    found = []
    for node in after.nodes:
        there, here = old.get(node.name, []), new.get(node.name, [])
        if {pod.metadata.uid or pod.key for pod in there} == {pod.metadata.uid or pod.key for pod in here}:
            continue
        found.append(
            NodeRoom(
                node=node.name,
                allocatable=allocatable_of(node),
                before=_used(there, requests),
                after=_used(here, requests),
                pods_before=_workloads(there, names),
                pods_after=_workloads(here, names),
            )
        )
    return found


def spare(cluster: ClusterSnapshot) -> dict[str, int]:
    """What nodes that take pods have left together, by resource; a node that is too full counts as full."""
    total: Counter[str] = Counter()
    pods, requests = _by_node(cluster), RequestsOfMany()
    for node in cluster.nodes:
        if not node.spec.unschedulable:
            used = _used(pods.get(node.name, []), requests)
            total.update({name: max(amount - used.get(name, 0), 0) for name, amount in allocatable_of(node).items()})
    return dict(sorted(total.items()))


def _used(pods: Iterable[Pod], requests: RequestsOfMany) -> dict[str, int]:
    total: Counter[str] = Counter()
    for pod in pods:
        total.update(requests.of(pod))
        total[_PODS] += 1
    return dict(sorted(total.items()))


def _workloads(pods: Iterable[Pod], names: Workloads) -> dict[str, int]:
    counts = Counter(names.of(pod) for pod in pods)
    return {name: counts[name] for name in sorted(counts, key=lambda each: (-counts[each], each))}


def _by_node(cluster: ClusterSnapshot) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = {}
    for pod in cluster.pods:
        if pod.spec.node_name and not pod.is_terminal:
            found.setdefault(pod.spec.node_name, []).append(pod)
    return found
