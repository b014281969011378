"""The incoming pod with its affinity terms ready to match (``plugins/interpodaffinity/plugin.go``, v1.36.3).

The namespaces that a term's selector picks are looked up once and added to the term, and the selector is dropped. Some
versions drop it on a copy: it stays, and is matched against no labels at all. So a selector that holds for a namespace
without labels (``team notin (a)``, ``!team``) lets a term match pods of every namespace there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TypeVar

from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.affinity_terms import AffinityTerm
from kpreempt.schedulers.kube.framework.label_selectors import selector_error
from kpreempt.schedulers.kube.framework.node_info import PodInfo
from kpreempt.schedulers.kube.versions import Behaviour

# The names of the namespaces that a selector picks.
SelectedNamespaces = Callable[[LabelSelector], frozenset[str]]
_Term = TypeVar("_Term", bound=AffinityTerm)


class IncomingPod:
    """A pod, its required terms with all namespaces that they look at, and the labels of its own namespace."""

    __slots__ = ("affinity_terms", "anti_affinity_terms", "namespace_labels", "pod")

    def __init__(
        self,
        pod_info: PodInfo,
        namespaces: SelectedNamespaces,
        namespace_labels: Mapping[str, str],
        *,
        keeps_selectors: bool,
    ) -> None:
        self.pod = pod_info.pod
        self.affinity_terms = with_selected_namespaces(
            pod_info.required_affinity_terms, namespaces, keeps_selectors=keeps_selectors
        )
        self.anti_affinity_terms = with_selected_namespaces(
            pod_info.required_anti_affinity_terms, namespaces, keeps_selectors=keeps_selectors
        )
        self.namespace_labels = namespace_labels


def with_selected_namespaces(
    terms: Sequence[_Term], namespaces: SelectedNamespaces, *, keeps_selectors: bool
) -> list[_Term]:
    """The terms, each with the namespaces that its selector picks added to those that it names.

    Unless the version ``keeps_selectors``, nothing is left but these names.
    """
    return [_with_selected_namespaces(term, namespaces, keeps_selectors) for term in terms]


def _with_selected_namespaces(term: _Term, namespaces: SelectedNamespaces, keeps_selector: bool) -> _Term:
    selector = term.namespace_selector
    if selector is None or selector.is_empty():
        return term
    merged = copy(term)
    merged.namespaces = term.namespaces | namespaces(selector)
    if not keeps_selector:
        merged.namespace_selector = None
    return merged


def matches_all_terms(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    """Whether there are terms and every one of them selects the pod."""
    return bool(terms) and all(term.matches(pod, None) for term in terms)


def parse_error(pod: Pod, behaviour: Behaviour) -> str | None:
    """What upstream says of a pod with a selector in its terms that cannot be parsed (``PodInfo.Update``)."""
    affinity = pod.spec.affinity
    wanted = affinity.pod_affinity if affinity else None
    refused = affinity.pod_anti_affinity if affinity else None
    groups = {
        "requiredAffinityTerms": wanted.required if wanted else [],
        "requiredAntiAffinityTerms": refused.required if refused else [],
        "preferredAffinityTerms": [each.pod_affinity_term for each in wanted.preferred] if wanted else [],
        "preferredAntiAffinityTerms": [each.pod_affinity_term for each in refused.preferred] if refused else [],
    }
    errors = []
    for group, terms in groups.items():
        selectors = (selector for term in terms for selector in (term.label_selector, term.namespace_selector))
        found = (selector_error(selector, as_json=behaviour.tells_selectors_as_json) for selector in selectors)
        error = next(filter(None, found), None)
        if error is not None:
            errors.append(f"{group}: {error}")
    if not errors:
        return None
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
