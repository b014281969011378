"""Validate PodDisruptionBudgets.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/policy/validation/validation.go``.
"""

from __future__ import annotations

from kpreempt.admission.validation.metadata import check_label_selector, check_metadata
from kpreempt.admission.validation.problems import Document, Problem, Problems, Server, invalid, unsupported
from kpreempt.admission.validation.values import int_or_percent, path_segment, percentage_of
from kpreempt.model.documents import mapping_in

_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_ALL = 100


def check_budget(document: Document, old: Document | None, _: Server) -> Problems:
    """Validate a PodDisruptionBudget; a selector that was invalid before may stay so."""
    yield from check_metadata(document, name=path_segment, has_own_rules=False)
    spec, path = mapping_in(document, "spec"), ("spec",)
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield invalid(path, spec, "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        if field not in spec:
            continue
        if problem := int_or_percent(spec[field]):
            yield invalid((*path, field), spec[field], problem)
        elif (percentage_of(spec[field]) or 0) > _ALL:
            yield invalid((*path, field), spec[field], "must not be greater than 100%")
    known = set[Problem]() if old is None else set(_of_selector(old))
    yield from (each for each in _of_selector(document) if each not in known)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _POLICIES:
        yield unsupported((*path, "unhealthyPodEvictionPolicy"), policy, _POLICIES)


def _of_selector(document: Document) -> Problems:
    return check_label_selector(mapping_in(document, "spec").get("selector"), ("spec", "selector"))


VALIDATORS = {"PodDisruptionBudget": check_budget}
