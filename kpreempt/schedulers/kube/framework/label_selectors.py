"""Narrowed label selectors, and errors of selectors that cannot be parsed.

The messages are those of ``k8s.io/apimachinery`` v0.36.3 (``pkg/labels/selector.go``). The API server rejects such
selectors; in a manifest that was never applied, they make the scheduler give up on the pod.

Also pod affinity terms ready to match (``k8s.io/kube-scheduler`` v0.36.3 ``framework/types.go``, ``AffinityTerm``);
problems of label keys and values (``pkg/api/validate/content/kube.go``, apimachinery v0.36.3); and the selector of a
pod's peers for default spreading (``plugins/helper/spread.go``, v1.36.3), which combines the services that match the
pod with the controller that owns it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from kpreempt.model.affinity import PodAffinityTerm, WeightedPodAffinityTerm
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import ReplicaSet, ReplicationController, Service, StatefulSet


def narrowed(selector: LabelSelector, labels: Mapping[str, str]) -> LabelSelector:
    """Return a selector for objects that ``selector`` selects and that also have ``labels``."""
    # Two values for the same key never match together, but both must be kept.
    contradictions = [
        LabelSelectorRequirement(key, "In", [value])
        for key, value in labels.items()
        if selector.match_labels.get(key, value) != value
    ]
    return LabelSelector(
        match_labels={**labels, **selector.match_labels},
        match_expressions=[*selector.match_expressions, *contradictions],
    )


def selector_error(selector: LabelSelector | None, *, as_json: bool = True) -> str | None:
    """Return the message with which ``LabelSelectorAsSelector`` rejects the selector, or ``None`` if it is valid.

    Values are formatted as JSON, or in older versions as Go prints them.
    """
    if selector is None or selector.is_valid():
        return None

    def quote(value: object) -> str:
        if as_json or not isinstance(value, list | None):
            return _json(value)
        return "[]string(nil)" if value is None else f"[]string{{{', '.join(map(_json, value))}}}"

    equalities = (LabelSelectorRequirement(key, "In", [value]) for key, value in selector.match_labels.items())
    for requirement in (*equalities, *selector.match_expressions):
        problems = list(dict.fromkeys(_problems(requirement, quote)))
        if problems:
            return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return None


def _problems(requirement: LabelSelectorRequirement, quote: Callable[[object], str]) -> list[str]:
    """List everything wrong with one expression, in upstream's order."""

    def invalid(path: str, value: object, problem: str) -> str:
        return f"{path}: Invalid value: {quote(value)}: {problem}"

    key, values = requirement.key, requirement.values
    problems = []
    about_key = label_key_problems(key)
    if about_key:
        problems.append(invalid("key", key, "; ".join(about_key)))
    if requirement.operator in ("In", "NotIn"):
        if not values:
            problems.append(invalid("values", None, "for 'in', 'notin' operators, values set can't be empty"))
    elif values:
        problems.append(invalid("values", values, "values set must be empty for exists and does not exist"))
    for index, value in enumerate(values):
        about_value = label_value_problems(value)
        if about_value:
            problems.append(invalid(f"values[{index}][{key}]", value, "; ".join(about_value)))
    return problems


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class AffinityTerm:
    """A term of one pod, with the namespaces that it applies to.

    If ``selector`` is None, it matches no pod; if ``namespace_selector`` is None, it matches no namespace.
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
        """Return whether the term selects ``pod``, whose namespace has ``namespace_labels`` (None: unknown)."""
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
    """Return required terms; as upstream, none at all if one of them has an invalid selector."""
    return [AffinityTerm(pod, term) for term in terms] if all(map(_is_valid, terms)) else []


def weighted_affinity_terms(pod: Pod, terms: list[WeightedPodAffinityTerm]) -> list[WeightedAffinityTerm]:
    """Return preferred terms; as upstream, none at all if one of them has an invalid selector."""
    is_valid = all(_is_valid(term.pod_affinity_term) for term in terms)
    return [WeightedAffinityTerm(pod, term) for term in terms] if is_valid else []


def _is_valid(term: PodAffinityTerm) -> bool:
    return all(selector is None or selector.is_valid() for selector in (term.label_selector, term.namespace_selector))


_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_KEY}')"
)
_VALUE = f"({_KEY})?"
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    f" '{_VALUE}')"
)
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_MAX_NAME = 63
_MAX_SUBDOMAIN = 253
_EMPTY = "must be non-empty"


def label_key_problems(key: str) -> list[str]:
    """List problems of a qualified name like ``example.com/name``; empty for a valid one."""
    *prefixes, name = key.split("/")
    if len(prefixes) > 1:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_KEY_RULE} {optional}"]
    problems = []
    for prefix in prefixes:
        if not prefix:
            problems.append(f"prefix part {_EMPTY}")
            continue
        if len(prefix.encode()) > _MAX_SUBDOMAIN:
            problems.append(f"prefix part {_too_long(_MAX_SUBDOMAIN)}")
        if not re.fullmatch(_SUBDOMAIN, prefix):
            problems.append(f"prefix part {_SUBDOMAIN_RULE}")
    if not name:
        problems.append(f"name part {_EMPTY}")
    elif len(name.encode()) > _MAX_NAME:
        problems.append(f"name part {_too_long(_MAX_NAME)}")
    if not re.fullmatch(_KEY, name):
        problems.append(f"name part {_KEY_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """List problems of a label value; empty for a valid one."""
    problems = [_too_long(_MAX_NAME)] if len(value.encode()) > _MAX_NAME else []
    return problems if re.fullmatch(_VALUE, value) else [*problems, _VALUE_RULE]


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def default_selector(pod: Pod, cluster: ClusterSnapshot) -> LabelSelector:
    """Return the selector that combines the pod's services and controller; empty if there are none."""
    labels: dict[str, str] = {}
    for service in services_of(pod, cluster.services):
        labels |= service.spec.selector
    owner = controller_of(pod.metadata)
    controllers: Mapping[tuple[str, str], Sequence[ReplicationController | ReplicaSet | StatefulSet]] = {
        ("v1", "ReplicationController"): cluster.replication_controllers,
        ("apps/v1", "ReplicaSet"): cluster.replica_sets,
        ("apps/v1", "StatefulSet"): cluster.stateful_sets,
    }
    there = controllers.get((owner.api_version, owner.kind), ()) if owner is not None else ()
    for each in there:
        if owner is not None and (each.metadata.name, each.metadata.namespace) == (owner.name, pod.metadata.namespace):
            selector = each.spec.selector
            if isinstance(selector, dict):
                return LabelSelector(match_labels=labels | selector)
            # As upstream, skip a controller's selector that cannot be parsed.
            if selector is not None and selector_error(selector) is None:
                return narrowed(selector, labels)
            break
    return LabelSelector(match_labels=labels)


def services_of(pod: Pod, services: list[Service]) -> list[Service]:
    """Return the services of the pod's namespace that select it; a service without a selector selects nothing."""
    return [service for service in services if service.selects(pod.metadata)]
