"""Pod affinity terms ready to match (``k8s.io/kube-scheduler`` v0.36.3 ``framework/types.go``, ``AffinityTerm``)."""

from __future__ import annotations

from collections.abc import Mapping

from kpreempt.model.affinity import PodAffinityTerm, WeightedPodAffinityTerm
from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod


class AffinityTerm:
    """A term of one pod, with the namespaces that it looks at.

    ``selector`` None matches no pod; ``namespace_selector`` None matches no namespace.
    """

    __slots__ = ("namespace_selector", "namespaces", "selector", "topology_key")

    def __init__(self, pod: Pod, term: PodAffinityTerm) -> None:
        self.namespaces = frozenset(term.namespaces)
        if not self.namespaces and term.namespace_selector is None:
            self.namespaces = frozenset([pod.metadata.namespace])
        self.namespace_selector: LabelSelector | None = term.namespace_selector
        self.selector: LabelSelector | None = term.label_selector
        self.topology_key = term.topology_key

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str] | None) -> bool:
        """Whether the term selects ``pod``, whose namespace has ``namespace_labels`` (None: not known)."""
        if pod.metadata.namespace not in self.namespaces and not (
            self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels or {})
        ):
            return False
        return self.selector is not None and self.selector.matches(pod.metadata.labels)


class WeightedAffinityTerm(AffinityTerm):
    """A preferred term with its weight."""

    __slots__ = ("weight",)

    def __init__(self, pod: Pod, term: WeightedPodAffinityTerm) -> None:
        super().__init__(pod, term.pod_affinity_term)
        self.weight = term.weight


def affinity_terms(pod: Pod, terms: list[PodAffinityTerm]) -> list[AffinityTerm]:
    """Required terms; none at all where one of them has a selector that cannot be built, as upstream."""
    if not all(_is_valid(term) for term in terms):
        return []
    return [AffinityTerm(pod, term) for term in terms]


def weighted_affinity_terms(pod: Pod, terms: list[WeightedPodAffinityTerm]) -> list[WeightedAffinityTerm]:
    """Preferred terms; none at all where one of them has a selector that cannot be built, as upstream."""
    if not all(_is_valid(term.pod_affinity_term) for term in terms):
        return []
    return [WeightedAffinityTerm(pod, term) for term in terms]


def _is_valid(term: PodAffinityTerm) -> bool:
    return all(selector is None or selector.is_valid() for selector in (term.label_selector, term.namespace_selector))
