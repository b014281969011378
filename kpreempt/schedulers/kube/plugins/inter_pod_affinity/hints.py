"""Which changes may help a pod that pod affinity refused (``plugins/interpodaffinity/plugin.go``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.events import Action, has_place, is_same, on_node, on_pod


def changes_affinity(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """Whether a pod came that the affinity wants, or one left that an anti-affinity refused."""
    if old is not None and new is not None and is_same(new, pod):
        return True
    if any(each is not None and not has_place(each) for each in (old, new)):
        return False
    wanted, refused = _affinity_terms(pod), _anti_affinity_terms(pod)
    if old is not None and new is not None:
        return (not _match_all(pod, wanted, old) and _match_all(pod, wanted, new)) or (
            _match_all(pod, refused, old) and not _match_all(pod, refused, new)
        )
    if new is not None:
        return _match_all(pod, wanted, new)
    return old is not None and (_match_all(pod, refused, old) or _match_all(old, _anti_affinity_terms(old), pod))


def changes_topology(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """Whether the node comes into a domain of the pod's affinity, or leaves one of its anti-affinity."""
    if new is None:
        return False
    return any(_enters(term, old, new) for term in _affinity_terms(pod)) or any(
        _leaves(term, old, new) for term in _anti_affinity_terms(pod)
    )


def wants(pod: Pod, other: Pod) -> bool | None:
    """Whether a required affinity term of the pod is about the other; ``None`` where labels of namespaces say it."""
    terms = [
        term
        for term in _affinity_terms(pod)
        if term.label_selector is not None and term.label_selector.matches(other.metadata.labels)
    ]
    if any(_matches(pod, term, other) for term in terms):
        return True
    return None if any(term.namespace_selector is not None for term in terms) else False


def _affinity_terms(pod: Pod) -> Sequence[PodAffinityTerm]:
    """The pod's required affinity terms."""
    affinity = pod.spec.affinity
    return affinity.pod_affinity.required if affinity and affinity.pod_affinity else ()


def _anti_affinity_terms(pod: Pod) -> Sequence[PodAffinityTerm]:
    """The pod's required anti-affinity terms."""
    affinity = pod.spec.affinity
    return affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else ()


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


def _enters(term: PodAffinityTerm, old: Node | None, new: Node) -> bool:
    value = new.labels.get(term.topology_key)
    return value is not None and (old is None or old.labels.get(term.topology_key) != value)


def _leaves(term: PodAffinityTerm, old: Node | None, new: Node) -> bool:
    if old is None:
        return True
    before = old.labels.get(term.topology_key)
    return before is not None and new.labels.get(term.topology_key) != before


HINTS = (
    on_pod(Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE, changes_affinity),
    on_node(Action.ADD | Action.UPDATE_NODE_LABEL, changes_topology),
)
