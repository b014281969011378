"""How full the nodes are that verdicts speak of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kpreempt.analysis.hypothetical_pods import allocatable_of, requests_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.verdict import Verdict
from kpreempt.verdict.story import NodeUse, Occupancy

_PODS = "pods"


def occupancy_of(cluster: ClusterSnapshot, verdicts: Iterable[Verdict]) -> Occupancy:
    """Every node with what its pods request, those that are on their way out included, and the possible victims."""
    at_stake = {
        pod
        for verdict in verdicts
        for candidate in verdict.candidates
        for pod in (*candidate.victims, *(pod for each in candidate.possible for pod in each.pods))
    }
    used: dict[str, Counter[str]] = {}
    nominated: dict[str, list[str]] = {}
    requests = {}
    for pod in cluster.pods:
        if pod.is_terminal:
            continue
        if not pod.spec.node_name:
            if pod.status.nominated_node_name:
                nominated.setdefault(pod.status.nominated_node_name, []).append(pod.key)
            continue
        amounts = {**requests_of(pod), _PODS: 1}
        used.setdefault(pod.spec.node_name, Counter()).update(amounts)
        if pod.key in at_stake:
            requests[pod.key] = amounts
    nodes = {
        node.name: NodeUse(allocatable_of(node), dict(used.get(node.name, {})), nominated.get(node.name, []))
        for node in cluster.nodes
    }
    return Occupancy(nodes, requests)
