"""Whether a pod that came, changed or left may help a pod that a plugin refused, one function for each plugin.

Follows the queueing hints for pods of the plugins under ``pkg/scheduler/framework/plugins`` of v1.36.3. ``old`` is
missing for a pod that came, ``new`` for one that left. A nominated pod counts as if it had its node.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.pod import Pod, TopologySpreadConstraint
from kpreempt.schedulers.queues.nominated import identity
from kpreempt.schedulers.queues.requests import requests_of

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
    before, after = requests_of(old), requests_of(new)
    return any(amount and before.get(name, 0) > after.get(name, 0) for name, amount in requests_of(pod).items())


def changes_spread(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """PodTopologySpread: a pod that one of the constraints counts came or left, or is counted otherwise now."""
    if any(each is not None and not _is_in_spread(each, pod) for each in (old, new)):
        return False
    constraints = spread_constraints(pod)
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
    wanted, refused = affinity_terms(pod), anti_affinity_terms(pod)
    if old is not None and new is not None:
        return (not _match_all(pod, wanted, old) and _match_all(pod, wanted, new)) or (
            _match_all(pod, refused, old) and not _match_all(pod, refused, new)
        )
    if new is not None:
        return _match_all(pod, wanted, new)
    return old is not None and (_match_all(pod, refused, old) or _match_all(old, anti_affinity_terms(old), pod))


def affinity_terms(pod: Pod) -> Sequence[PodAffinityTerm]:
    """The pod's required affinity terms."""
    affinity = pod.spec.affinity
    return affinity.pod_affinity.required if affinity and affinity.pod_affinity else ()


def anti_affinity_terms(pod: Pod) -> Sequence[PodAffinityTerm]:
    """The pod's required anti-affinity terms."""
    affinity = pod.spec.affinity
    return affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else ()


def spread_constraints(pod: Pod) -> list[TopologySpreadConstraint]:
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
