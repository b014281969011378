"""Whether a policy, its binding, or a webhook applies to a request.

Follows ``k8s.io/apiserver`` v0.36.3 ``pkg/admission/plugin/policy/matching`` and ``webhook/predicates``. An answer is
``None`` if it depends on something unknown, such as the labels of a namespace that was not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from kpreempt.admission.custom_resources import is_custom
from kpreempt.admission.defaults import NAME_LABEL
from kpreempt.admission.policies.requests import UNKNOWN, Request
from kpreempt.admission.schema import api_types
from kpreempt.admission.validation.problems import Document
from kpreempt.model.documents import mapping_in
from kpreempt.model.labels import LabelSelector, matches_requirement

Labels = Mapping[str, Any]
# Returns the labels of a namespace, or ``None`` if they are unknown.
LabelsOf = Callable[[str], Labels | None]
_ANY = "*"
_EXACT = "Exact"


def matches(constraints: Document, request: Request, labels_of: LabelsOf, rules: str = "resourceRules") -> bool | None:
    """Return whether constraints, or a webhook with its ``rules``, apply to a request."""
    policy = constraints.get("matchPolicy")
    included = constraints.get(rules)
    return _and(
        [
            _in_namespace(constraints.get("namespaceSelector"), request, labels_of),
            _has_labels(constraints.get("objectSelector"), request),
            _not(_by_rules(constraints.get("excludeResourceRules") or [], policy, request)),
            # Policies without rules apply to everything, webhooks to nothing.
            _by_rules(included, policy, request) if included else rules == "resourceRules",
        ]
    )


def _and(answers: Iterable[bool | None]) -> bool | None:
    found = list(answers)
    return False if False in found else None if None in found else True


def _or(answers: Iterable[bool | None]) -> bool | None:
    found = list(answers)
    return True if True in found else None if None in found else False


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def selector_of(value: Any) -> LabelSelector | None:
    """Return the selector, or ``None`` if it is invalid; a missing one selects everything."""
    try:
        found = msgspec.convert(value or {}, LabelSelector)
    except msgspec.ValidationError:
        return None
    return found if found.is_valid() else None


def selects(selector: LabelSelector | None, labels: Labels, *, is_complete: bool = True) -> bool | None:
    """Return whether a selector selects labels, of which others may exist unless they are complete."""
    if selector is None:
        return None

    def is_open(key: str) -> bool:
        return labels.get(key) is UNKNOWN or not (is_complete or key in labels)

    return _and(
        [
            *(None if is_open(key) else labels.get(key) == value for key, value in selector.match_labels.items()),
            *(
                None if is_open(each.key) else matches_requirement(each.key, each.operator, each.values, labels)
                for each in selector.match_expressions
            ),
        ]
    )


def _in_namespace(selector: Any, request: Request, labels_of: LabelsOf) -> bool | None:
    """Cluster-scoped objects are in every namespace; a namespace has its own labels."""
    if not request.namespace:
        return True
    labels = (
        mapping_in(request.document, "metadata", "labels") if request.is_namespace else labels_of(request.namespace)
    )
    name = {NAME_LABEL: request.namespace}
    return selects(selector_of(selector), {**(labels or {}), **name}, is_complete=labels is not None)


def _has_labels(selector: Any, request: Request) -> bool | None:
    """Either the new or the old object has the labels."""
    parsed = selector_of(selector)
    objects = (each for each in (request.document, request.old) if each is not None)
    return _or(selects(parsed, mapping_in(each, "metadata", "labels")) for each in objects)


def _by_rules(rules: Any, policy: Any, request: Request) -> bool | None:
    if not isinstance(rules, list):
        return None
    return _or(_by_rule(each, policy, request) for each in rules)


def _by_rule(rule: Any, policy: Any, request: Request) -> bool | None:
    if not isinstance(rule, dict):
        return None
    names = rule.get("resourceNames")
    return _and(
        [
            _in_scope(rule.get("scope"), request),
            _has(rule.get("operations"), request.operation),
            _has(rule.get("apiGroups"), request.group),
            _or(_is_resource(each, request.resource) for each in _texts(rule.get("resources"))),
            _in_version(rule.get("apiVersions"), policy, request),
            True if not names else None if request.name is UNKNOWN else request.name in names,
        ]
    )


def _in_scope(scope: Any, request: Request) -> bool:
    is_namespaced = bool(request.namespace) and not request.is_namespace
    return (
        scope in (None, _ANY) or (scope == "Namespaced" and is_namespaced) or (scope == "Cluster" and not is_namespaced)
    )


def _texts(value: Any) -> list[Any]:
    """A value that is not a list may match anything."""
    return value if isinstance(value, list) else [_ANY]


def _has(values: Any, value: str) -> bool:
    return any(each in (_ANY, value) for each in _texts(values))


def _is_resource(text: Any, resource: str) -> bool:
    name, _, subresource = str(text).partition("/")
    return name in (_ANY, resource) and subresource in ("", _ANY)


def _in_version(versions: Any, policy: Any, request: Request) -> bool | None:
    """With the default policy, a rule for another version applies if there is one; the object is then converted."""
    if _has(versions, request.version):
        return True
    others = [f"{request.group}/{each} {request.kind}".removeprefix("/") for each in _texts(versions)]
    if policy == _EXACT or not (is_custom(request.document) or any(each in api_types().kinds for each in others)):
        return False
    return None
