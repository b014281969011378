"""Whether a pod or node that came, changed or left may help a pod that a plugin refused; a function for each plugin.

Follows the queueing hints of the plugins under ``pkg/scheduler/framework/plugins`` of v1.36.3. ``old`` is missing for
what came, ``new`` for what left. A nominated pod counts as if it had its node.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, TopologySpreadConstraint
from kpreempt.model.taints import find_untolerated_taint
from kpreempt.schedulers.kube.framework.resources import pod_requests
from kpreempt.schedulers.queues.nominated import identity

_SCHEDULING_EFFECTS = frozenset(("NoSchedule", "NoExecute"))
_ALL_ADDRESSES = ("", "0.0.0.0")  # noqa: S104 - compared, not bound


def is_own(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """SchedulingGates, NodeUnschedulable, TaintToleration: the pod itself was changed."""
    return new is not None and identity(new) == identity(pod)


def never(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """DefaultPreemption: it activates the pod itself when its victims are gone."""
    return False


def is_of_namespace(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """VolumeRestrictions: a pod of another namespace never helps; whether one of its own does is not looked into."""
    return old is not None and old.metadata.namespace == pod.metadata.namespace


def frees_a_port(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """NodePorts: a pod left that held a host port that this one wants."""
    if old is None or not _has_place(old):
        return False
    held = _host_ports(old)
    return any(_collide(wanted, other) for wanted in _host_ports(pod) for other in held)


def frees_resources(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """NodeResourcesFit: a pod left its node, or asks for less there of something that this one wants."""
    if old is None:
        return False
    if new is None:
        return _has_place(old)
    if identity(new) == identity(pod):
        return True
    if not new.spec.node_name:
        return False
    before, after = pod_requests(old), pod_requests(new)
    return any(amount and before.get(name, 0) > after.get(name, 0) for name, amount in pod_requests(pod).items())


def pod_changes_spread(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """PodTopologySpread: a pod that one of the constraints counts came or left, or is counted otherwise now."""
    if any(each is not None and not _is_in_spread(each, pod) for each in (old, new)):
        return False
    constraints = _spread_constraints(pod)
    if old is None or new is None:
        one = old or new
        return one is not None and any(_selects(each, one) for each in constraints)
    if (
        identity(new) == identity(pod)
        and old.spec.tolerations != new.spec.tolerations
        and any(each.node_taints_policy == "Honor" for each in constraints)
    ):
        return True
    return any(_selects(each, old) != _selects(each, new) for each in constraints)


def changes_affinity(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """InterPodAffinity: a pod came that the affinity wants, or one left that an anti-affinity refused."""
    if old is not None and new is not None and identity(new) == identity(pod):
        return True
    if any(each is not None and not _has_place(each) for each in (old, new)):
        return False
    wanted, refused = _affinity_terms(pod), _anti_affinity_terms(pod)
    if old is not None and new is not None:
        return (not _match_all(pod, wanted, old) and _match_all(pod, wanted, new)) or (
            _match_all(pod, refused, old) and not _match_all(pod, refused, new)
        )
    if new is not None:
        return _match_all(pod, wanted, new)
    return old is not None and (_match_all(pod, refused, old) or _match_all(old, _anti_affinity_terms(old), pod))


def _affinity_terms(pod: Pod) -> Sequence[PodAffinityTerm]:
    """The pod's required affinity terms."""
    affinity = pod.spec.affinity
    return affinity.pod_affinity.required if affinity and affinity.pod_affinity else ()


def _anti_affinity_terms(pod: Pod) -> Sequence[PodAffinityTerm]:
    """The pod's required anti-affinity terms."""
    affinity = pod.spec.affinity
    return affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else ()


def _spread_constraints(pod: Pod) -> list[TopologySpreadConstraint]:
    """The pod's own constraints that forbid nodes; those of the scheduler's configuration are not looked at."""
    return [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == "DoNotSchedule"]


def _match_all(owner: Pod, terms: Sequence[PodAffinityTerm], pod: Pod) -> bool:
    return bool(terms) and all(_matches(owner, term, pod) for term in terms)


def _matches(owner: Pod, term: PodAffinityTerm, pod: Pod) -> bool:
    namespaces = term.namespaces
    if not namespaces and term.namespace_selector is None:
        namespaces = [owner.metadata.namespace]
    # Upstream hands the hints no labels of namespaces, so that only a selector that takes all namespaces matches.
    in_namespace = pod.metadata.namespace in namespaces or (
        term.namespace_selector is not None and term.namespace_selector.matches({})
    )
    return in_namespace and term.label_selector is not None and term.label_selector.matches(pod.metadata.labels)


def _selects(constraint: TopologySpreadConstraint, pod: Pod) -> bool:
    return constraint.label_selector is not None and constraint.label_selector.matches(pod.metadata.labels)


def _is_in_spread(pod: Pod, refused: Pod) -> bool:
    if identity(pod) == identity(refused):
        return True
    return _has_place(pod) and pod.metadata.namespace == refused.metadata.namespace


def _has_place(pod: Pod) -> bool:
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def _host_ports(pod: Pod) -> list[tuple[str, str, int]]:
    return [
        (port.host_ip, port.protocol or "TCP", port.host_port)
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        if container in pod.spec.containers or container.restart_policy == "Always"
        for port in container.ports
        if port.host_port > 0
    ]


def _collide(left: tuple[str, str, int], right: tuple[str, str, int]) -> bool:
    if left[1:] != right[1:]:
        return False
    return left[0] in _ALL_ADDRESSES or right[0] in _ALL_ADDRESSES or left[0] == right[0]


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
    requests = {name: amount for name, amount in pod_requests(pod).items() if amount}
    after = _allocatable(new)
    if after.get("pods", 0) <= 0 or any(after.get(name, 0) < amount for name, amount in requests.items()):
        return False
    if old is None:
        return True
    before = _allocatable(old)
    return any(after.get(name, 0) > before.get(name, 0) for name in ("pods", *requests))


def node_changes_spread(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """PodTopologySpread: the node joins, leaves or changes a domain, or has other taints."""
    keys = [each.topology_key for each in _spread_constraints(pod)]
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
    return any(_enters(term, old, new) for term in _affinity_terms(pod)) or any(
        _leaves(term, old, new) for term in _anti_affinity_terms(pod)
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
