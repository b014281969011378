"""Whether a node that came, changed or left may help a pod that a plugin refused, one function for each plugin.

Follows ``isSchedulableAfterNodeChange`` of the plugins under ``pkg/scheduler/framework/plugins`` of v1.36.3. ``old`` is
missing for a node that came, ``new`` for one that left.
"""

from __future__ import annotations

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.taints import find_untolerated_taint
from kpreempt.schedulers.queues.requests import requests_of
from kpreempt.schedulers.queues.v1_36.pod_hints import affinity_terms, anti_affinity_terms, spread_constraints

_SCHEDULING_EFFECTS = frozenset(("NoSchedule", "NoExecute"))


def is_opened(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """NodeUnschedulable: the node is open, and was not before."""
    return new is not None and not new.spec.unschedulable and (old is None or old.spec.unschedulable)


def is_tolerated_now(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """TaintToleration: the pod tolerates the node's taints, and did not before."""
    return new is not None and _is_tolerated(pod, new) and (old is None or not _is_tolerated(pod, old))


def is_selected_now(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """NodeAffinity: the pod's selector and affinity match the node, and did not before."""
    if new is None or not pod.spec.selects(new.name, new.labels):
        return False
    return old is None or not pod.spec.selects(old.name, old.labels)


def has_more_room(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """NodeResourcesFit: the pod would fit on the node alone, and there is more than before of what it asks for."""
    if new is None:
        return False
    requests = {name: amount for name, amount in requests_of(pod).items() if amount}
    after = _allocatable(new)
    if after.get("pods", 0) <= 0 or any(after.get(name, 0) < amount for name, amount in requests.items()):
        return False
    if old is None:
        return True
    before = _allocatable(old)
    return any(after.get(name, 0) > before.get(name, 0) for name in ("pods", *requests))


def changes_spread(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """PodTopologySpread: the node joins, leaves or changes a domain, or has other taints."""
    keys = [each.topology_key for each in spread_constraints(pod)]
    was_in = old is not None and all(key in old.labels for key in keys)
    is_in = new is not None and all(key in new.labels for key in keys)
    if old is None or new is None:
        return was_in or is_in
    if was_in != is_in:
        return True
    return is_in and (old.spec.taints != new.spec.taints or any(old.labels[key] != new.labels[key] for key in keys))


def changes_topology(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """InterPodAffinity: the node comes into a domain of the pod's affinity, or leaves one of its anti-affinity."""
    if new is None:
        return False
    return any(_enters(term, old, new) for term in affinity_terms(pod)) or any(
        _leaves(term, old, new) for term in anti_affinity_terms(pod)
    )


def declares_otherwise(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """NodeDeclaredFeatures: the node declares other features than before."""
    return new is not None and (old is None or old.status.declared_features != new.status.declared_features)


def _enters(term: PodAffinityTerm, old: Node | None, new: Node) -> bool:
    value = new.labels.get(term.topology_key)
    return value is not None and (old is None or old.labels.get(term.topology_key) != value)


def _leaves(term: PodAffinityTerm, old: Node | None, new: Node) -> bool:
    if old is None:
        return True
    before = old.labels.get(term.topology_key)
    return before is not None and new.labels.get(term.topology_key) != before


def _is_tolerated(pod: Pod, node: Node) -> bool:
    return find_untolerated_taint(node.spec.taints, pod.spec.tolerations, _SCHEDULING_EFFECTS) is None


def _allocatable(node: Node) -> dict[str, int]:
    return {name: amount.nano for name, amount in node.status.allocatable.items()}
