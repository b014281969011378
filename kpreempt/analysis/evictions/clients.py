"""Which program or user requested an eviction or a deletion: what it reported, an audit log, and the pod's node.

A program that drains a node leaves a taint on it: Karpenter ``karpenter.sh/disrupted`` (``pkg/apis/v1/taints.go``),
Cluster Autoscaler ``ToBeDeletedByClusterAutoscaler`` (``utils/taints``), ``kubectl drain`` a cordon.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpreempt.model.audit import AuditRequest
from kpreempt.model.event import Event
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.terminations import CLUSTER_AUTOSCALER, DESCHEDULER, DRAIN, KARPENTER, VPA, Termination
from kpreempt.verdict.who_evicted import EvictingTaint, EvictionClient, ObjectChange

_TAINTS = {
    "karpenter.sh/disrupted": KARPENTER,
    "karpenter.sh/disruption": KARPENTER,
    "ToBeDeletedByClusterAutoscaler": CLUSTER_AUTOSCALER,
}
# How the user agents of programs begin.
_AGENTS = (
    ("kubectl", DRAIN),
    ("karpenter", KARPENTER),
    ("cluster-autoscaler", CLUSTER_AUTOSCALER),
    ("descheduler", DESCHEDULER),
    ("vpa-updater", VPA),
    ("updater", VPA),
)
_SERVICE_ACCOUNT = "system:serviceaccount:"
_NO_EXECUTE = "NoExecute"


def client_of(
    texts: Iterable[Termination],
    requests: Sequence[AuditRequest],
    node: Node | None,
    node_events: Iterable[Event],
    cordon: ObjectChange | None,
) -> EvictionClient | None:
    """What requested an eviction through the API; ``None`` if nothing shows it.

    ``texts`` are about the pod, ``requests`` are the accepted ones in an audit log, the first of which counts.
    ``node_events`` are about the pod's node, and ``cordon`` is what cordoned it, if that is known.
    """
    reported = next((each for each in texts if each.client), None)
    if requests:
        found = client_of_request(requests[0])
        detail = reported.detail if reported is not None else ""
        name = reported.client if reported is not None else found.name
        return EvictionClient(name=name, detail=detail, user=found.user, user_agent=found.user_agent)
    if reported is not None:
        return EvictionClient(name=reported.client, detail=reported.detail)
    return _client_at(node, node_events, cordon)


def remover_of(requests: Iterable[AuditRequest], node_events: Iterable[Event]) -> EvictionClient | None:
    """What removed a node: the accepted request in an audit log that deleted it, or else what autoscalers report."""
    deletion = next((each for each in requests if each.is_accepted and each.is_deletion), None)
    return client_of_request(deletion) if deletion is not None else _client_at(None, node_events, None)


def client_of_request(request: AuditRequest) -> EvictionClient:
    """What sent a request."""
    agent = request.user_agent.partition("/")[0].partition(" ")[0].lower()
    name = next((name for start, name in _AGENTS if agent.startswith(start)), "")
    if name == DRAIN and not request.is_eviction:
        name = "kubectl"
    if not name and request.username.startswith(_SERVICE_ACCOUNT):
        name = request.username.rpartition(":")[2]
    return EvictionClient(name=name, user=request.username, user_agent=request.user_agent)


def _client_at(node: Node | None, node_events: Iterable[Event], cordon: ObjectChange | None) -> EvictionClient | None:
    """What the node's taints, its cordon and the events about it point to."""
    for event in node_events:
        text = event.text.strip()
        if event.reason == "DisruptionTerminating":
            reason = text.partition(": ")[2]
            return EvictionClient(name=KARPENTER, detail=reason, is_likely=True, signs=[f"event on the node: {text}"])
        if event.reason == "ScaleDown":
            return EvictionClient(name=CLUSTER_AUTOSCALER, is_likely=True, signs=[f"event on the node: {text}"])
    if node is None:
        return None
    for taint in node.spec.taints:
        if taint.key in _TAINTS:
            return EvictionClient(name=_TAINTS[taint.key], is_likely=True, signs=[f"taint of the node: {taint}"])
    if node.spec.unschedulable:
        if cordon is None:
            # Many programs drain nodes.
            return EvictionClient(name="a drain of the node", is_likely=True, signs=["the node is cordoned"])
        name = next((name for start, name in _AGENTS if cordon.manager.lower().startswith(start)), cordon.manager)
        when = f" at {cordon.at.isoformat().replace('+00:00', 'Z')}" if cordon.at is not None else ""
        return EvictionClient(name=name, is_likely=True, signs=[f"{cordon.manager} cordoned the node{when}"])
    return None


def evicting_taints(pod: Pod, node: Node | None) -> list[EvictingTaint]:
    """The NoExecute taints of the node that evict the pod, at once or after a time, the first to do so first.

    For each taint, the first toleration that matches counts; without a time, it tolerates the taint forever
    (``pkg/controller/tainteviction/taint_eviction.go``, v1.36.3).
    """
    found = []
    for taint in node.spec.taints if node is not None else ():
        if taint.effect != _NO_EXECUTE:
            continue
        toleration = next((each for each in pod.spec.tolerations if each.tolerates(taint, compares_numbers=True)), None)
        if toleration is None:
            found.append(EvictingTaint(taint=str(taint)))
        elif toleration.toleration_seconds is not None:
            found.append(EvictingTaint(taint=str(taint), toleration_seconds=max(0, toleration.toleration_seconds)))
    return sorted(found, key=lambda each: each.toleration_seconds or 0)
