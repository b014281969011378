"""Validate affinities and topology spread constraints.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``validateAffinity``,
``validateTopologySpreadConstraints``) and ``pkg/registry/core/pod/strategy.go``, which adds label keys to selectors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kpreempt.admission.validation.metadata import check_label_key, check_label_selector
from kpreempt.admission.validation.pod_parts import elements
from kpreempt.admission.validation.problems import (
    Document,
    Problems,
    Server,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kpreempt.admission.validation.values import dns_label, dns_subdomain, label_value
from kpreempt.model.documents import Path, mapping_in

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_MAX_WEIGHT = 100
_WITH_VALUES, _WITHOUT_VALUES, _COMPARING = ("In", "NotIn"), ("Exists", "DoesNotExist"), ("Gt", "Lt")
_NO_OPERATOR = "not a valid selector operator"
_KEYS, _MISMATCH_KEYS = "matchLabelKeys", "mismatchLabelKeys"
# The first versions that add label keys to the selectors of pods: those of affinities and of spread constraints.
_KEYS_IN_AFFINITY, _KEYS_IN_SPREAD = 31, 34
_UNSATISFIABLE = frozenset({"DoNotSchedule", "ScheduleAnyway"})
_NODE_POLICIES = frozenset({"Honor", "Ignore"})


def check_affinity(affinity: Document, server: Server, path: Path, labels: Collection[str]) -> Problems:
    """Validate affinities; ``labels`` are those of a pod, which are added to selectors. A template has none."""
    node = affinity.get("nodeAffinity")
    if node is not None:
        yield from _node_affinity(node, server, (*path, "nodeAffinity"))
    for name in ("podAffinity", "podAntiAffinity"):
        pods, at = mapping_in(affinity, name), (*path, name)
        for term, where in elements(pods, _REQUIRED, at):
            yield from _pod_term(term, server, where, labels)
        for weighted, where in elements(pods, _PREFERRED, at):
            yield from _weight(weighted, where)
            yield from _pod_term(mapping_in(weighted, "podAffinityTerm"), server, (*where, "podAffinityTerm"), labels)


def _node_affinity(affinity: Document, server: Server, path: Path) -> Problems:
    needed = affinity.get(_REQUIRED)
    if needed is not None:
        at = (*path, _REQUIRED)
        if not needed.get("nodeSelectorTerms"):
            yield required((*at, "nodeSelectorTerms"), "must have at least one node selector term")
        for term, where in elements(needed, "nodeSelectorTerms", at):
            yield from _node_term(term, where, has_label_values=server.minor >= 33)
    for preferred, where in elements(affinity, _PREFERRED, path):
        yield from _weight(preferred, where)
        yield from _node_term(mapping_in(preferred, "preference"), (*where, "preference"), has_label_values=False)


def _weight(preferred: Document, path: Path) -> Problems:
    weight = preferred.get("weight", 0)
    if not 1 <= weight <= _MAX_WEIGHT:
        yield invalid((*path, "weight"), weight, f"must be in the range 1-{_MAX_WEIGHT}")


def _node_term(term: Document, path: Path, *, has_label_values: bool) -> Problems:
    for requirement, at in elements(term, "matchExpressions", path):
        yield from _label_requirement(requirement, at)
        for index, value in enumerate(requirement.get("values") or () if has_label_values else ()):
            if problem := label_value(value):
                yield invalid((*at, "values", index), value, problem)
    for requirement, at in elements(term, "matchFields", path):
        yield from _field_requirement(requirement, at)


def _label_requirement(requirement: Document, path: Path) -> Problems:
    operator, values, at = requirement.get("operator", ""), requirement.get("values") or (), (*path, "values")
    if operator in _WITH_VALUES:
        if not values:
            yield required(at, "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _WITHOUT_VALUES:
        if values:
            yield forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in _COMPARING:
        if len(values) != 1:
            yield required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid((*path, "operator"), operator, _NO_OPERATOR)
    yield from check_label_key(requirement.get("key", ""), (*path, "key"))


def _field_requirement(requirement: Document, path: Path) -> Problems:
    operator, key = requirement.get("operator", ""), requirement.get("key", "")
    values, at = requirement.get("values") or (), (*path, "values")
    if operator not in _WITH_VALUES:
        yield invalid((*path, "operator"), operator, _NO_OPERATOR)
    elif len(values) != 1:
        yield required(at, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
    if key != "metadata.name":
        yield invalid((*path, "key"), key, "not a valid field selector key")
        return
    for index, value in enumerate(values):
        if problem := dns_subdomain(value):
            yield invalid((*at, index), value, problem)


def _pod_term(term: Document, server: Server, path: Path, labels: Collection[str]) -> Problems:
    for name in ("labelSelector", "namespaceSelector"):
        yield from check_label_selector(term.get(name), (*path, name))
    for index, namespace in enumerate(term.get("namespaces") or ()):
        if problem := dns_label(namespace):
            yield invalid((*path, "namespaces", index), namespace, problem)
    if server.minor >= _KEYS_IN_AFFINITY:
        yield from _label_keys(term, path, labels)
    key = term.get("topologyKey")
    if not key:
        yield required((*path, "topologyKey"), "can not be empty")
    else:
        yield from check_label_key(key, (*path, "topologyKey"))


def _label_keys(part: Document, path: Path, labels: Collection[str]) -> Problems:
    """Validate the label keys of an affinity or a spread constraint, of which those in ``labels`` join the selector."""
    keys: Mapping[str, Sequence[str]] = {field: part.get(field) or () for field in (_KEYS, _MISMATCH_KEYS)}
    selector = part.get("labelSelector")
    for field, given in keys.items():
        yield from _keys_alone(given, selector, (*path, field))
    added = [each for given in keys.values() for each in given if each in labels]
    repeated = _repeated(selector, added) if selector is not None else set()
    for index, key in enumerate(keys[_KEYS]):
        if key in repeated:
            yield invalid((*path, _KEYS, index), key, f"exists in both {_KEYS} and labelSelector")
        if key in keys[_MISMATCH_KEYS]:
            yield invalid((*path, _KEYS, index), key, f"exists in both {_KEYS} and {_MISMATCH_KEYS}")


def _keys_alone(keys: Sequence[str], selector: Document | None, path: Path) -> Problems:
    if keys and selector is None:
        yield forbidden(path, "must not be specified when labelSelector is not set")
        return
    for index, key in enumerate(keys):
        yield from check_label_key(key, (*path, index))


def _repeated(selector: Document, added: Iterable[str]) -> set[str]:
    """Return the keys that occur again in the expressions of a selector, to whose end ``added`` ones are appended."""
    seen, repeated = set(selector.get("matchLabels") or ()), set()
    for key in [*(each.get("key", "") for each in selector.get("matchExpressions") or ()), *added]:
        if key in seen:
            repeated.add(key)
        seen.add(key)
    return repeated


def check_spread_constraints(spec: Document, server: Server, path: Path, labels: Collection[str]) -> Problems:
    """Validate the topology spread constraints of a spec; ``labels`` as in ``check_affinity``."""
    seen: set[tuple[str, str]] = set()
    for constraint, at in elements(spec, "topologySpreadConstraints", path):
        key, action = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
        yield from _positive(constraint.get("maxSkew", 0), (*at, "maxSkew"))
        if not key:
            yield required((*at, "topologyKey"), "can not be empty")
        if action not in _UNSATISFIABLE:
            yield unsupported((*at, "whenUnsatisfiable"), action, _UNSATISFIABLE)
        if (key, action) in seen:
            yield duplicate(at, f"{{topologyKey, whenUnsatisfiable}}: {{{key}, {action}}}")
        seen.add((key, action))
        yield from _spread_details(constraint, at)
        if server.minor >= _KEYS_IN_SPREAD:
            yield from _label_keys(constraint, at, labels)
        else:
            yield from _old_label_keys(constraint, (*at, _KEYS))
        yield from check_label_selector(constraint.get("labelSelector"), (*at, "labelSelector"))


def _positive(number: int, path: Path) -> Problems:
    if number < 1:
        yield invalid(path, number, "must be greater than zero")


def _spread_details(constraint: Document, path: Path) -> Problems:
    domains, action = constraint.get("minDomains"), constraint.get("whenUnsatisfiable", "")
    if domains is not None:
        yield from _positive(domains, (*path, "minDomains"))
        if action != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            yield invalid((*path, "minDomains"), domains, detail)
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = constraint.get(field)
        if policy is not None and policy not in _NODE_POLICIES:
            yield unsupported((*path, field), policy, _NODE_POLICIES)


def _old_label_keys(constraint: Document, path: Path) -> Problems:
    """Validate the label keys of a spread constraint before 1.34, which may not be in its selector."""
    selector, keys = constraint.get("labelSelector"), constraint.get(_KEYS) or ()
    yield from _keys_alone(keys, selector, path)
    expressions = mapping_in(constraint, "labelSelector").get("matchExpressions") or ()
    known = {*mapping_in(constraint, "labelSelector", "matchLabels"), *(each.get("key") for each in expressions)}
    for index, key in enumerate(keys):
        if key in known:
            yield invalid((*path, index), key, f"exists in both {_KEYS} and labelSelector")
