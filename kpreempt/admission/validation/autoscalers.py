"""Validate HorizontalPodAutoscalers of ``autoscaling/v2`` and ``autoscaling/v1``.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/autoscaling/validation/validation.go``, and
``pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go`` for what an update may keep. Metrics and behavior that
``autoscaling/v1`` has in annotations are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kpreempt.admission.validation.metadata import check_metadata, check_metadata_update
from kpreempt.admission.validation.problems import (
    Document,
    Problem,
    Problems,
    Server,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kpreempt.admission.validation.resource_names import container_resource_name
from kpreempt.admission.validation.values import amount, dns_label, path_segment
from kpreempt.model.documents import Path, mapping_in

# The versions in which gates are on by default, and in which references got rules for their API version.
_SCALE_TO_ZERO = 37
_TOLERANCE = 35
_API_VERSIONS = 34

_V1 = "autoscaling/v1"
_V1_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_LONGEST_PERIOD = 1800
_LONGEST_WINDOW = 3600
_SELECT_POLICIES = ("Disabled", "Max", "Min")
_POLICY_TYPES = ("Percent", "Pods")
_TARGET_TYPES = ("AverageValue", "Utilization", "Value")
# The field of each type of metric, in upstream's order.
_SOURCES = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_NOT_FOR_CPU = frozenset({"External", "Object"})


def check_autoscaler(document: Document, old: Document | None, server: Server) -> Problems:
    """Validate a HorizontalPodAutoscaler; an update may keep an API version that is invalid, and zero replicas."""
    if old is None:
        yield from check_metadata(document)
    else:
        yield from check_metadata_update(document, old)
    spec, before = mapping_in(document, "spec"), mapping_in(old or {}, "spec")
    yield from _replicas(spec, before, server, ("spec",))
    yield from _target(
        mapping_in(spec, "scaleTargetRef"), before.get("scaleTargetRef"), server, ("spec", "scaleTargetRef")
    )
    if document.get("apiVersion") == _V1:
        yield from _v1_metrics(document, ("spec",))
        return
    may_keep = any(map(_has_invalid_version, before.get("metrics") or []))
    checks_version = server.minor >= _API_VERSIONS and not may_keep
    for index, metric in enumerate(spec.get("metrics") or []):
        yield from _metric(metric, checks_version, ("spec", "metrics", index))
    if spec.get("minReplicas") == 0 and not _NOT_FOR_CPU & {each.get("type") for each in spec.get("metrics") or []}:
        yield _without_metrics(("spec", "metrics"))
    has_tolerance = server.minor >= _TOLERANCE or any(
        "tolerance" in rules for rules in mapping_in(before, "behavior").values()
    )
    for field, rules in mapping_in(spec, "behavior").items():
        yield from _scaling_rules(rules, has_tolerance, ("spec", "behavior", field))


def _replicas(spec: Document, old: Document, server: Server, path: Path) -> Problems:
    lowest = 0 if server.minor >= _SCALE_TO_ZERO or old.get("minReplicas") == 0 else 1
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    if least < lowest:
        yield invalid((*path, "minReplicas"), least, f"must be greater than or equal to {lowest}")
    if most < 1:
        yield invalid((*path, "maxReplicas"), most, "must be greater than or equal to 1")
    if most < least:
        yield invalid((*path, "maxReplicas"), most, "must be greater than or equal to `minReplicas`")


def _target(target: Document, old: Document | None, server: Server, path: Path) -> Problems:
    yield from _reference(target, path)
    is_same = old is not None and all(target.get(key, "") == old.get(key, "") for key in ("apiVersion", "kind"))
    if server.minor < _API_VERSIONS or is_same:
        return
    version = target.get("apiVersion", "")
    problem = _version_problem(version)
    if not problem and not version.rpartition("/")[0] and target.get("kind") != "ReplicationController":
        problem = "apiVersion must specify API group"
    if problem:
        yield invalid((*path, "apiVersion"), version, problem)


def _reference(reference: Document, path: Path) -> Problems:
    for field in ("kind", "name"):
        value = reference.get(field) or ""
        if not value:
            yield required((*path, field))
        elif problem := path_segment(value):
            yield invalid((*path, field), value, problem)


def _version_problem(version: str) -> str:
    return f"unexpected GroupVersion string: {version}" if version.count("/") > 1 else ""


def _has_invalid_version(metric: Document) -> bool:
    is_object = metric.get("type") == "Object"
    return is_object and bool(_version_problem(mapping_in(metric, "object", "describedObject").get("apiVersion", "")))


def _without_metrics(path: Path) -> Problem:
    return forbidden(path, "must specify at least one Object or External metric to support scaling to zero replicas")


def _v1_metrics(document: Document, path: Path) -> Problems:
    spec, field = mapping_in(document, "spec"), "targetCPUUtilizationPercentage"
    if spec.get(field, 1) < 1:
        yield invalid((*path, field), spec[field], "must be greater than 0")
    if spec.get("minReplicas") == 0 and _V1_METRICS not in mapping_in(document, "metadata", "annotations"):
        yield _without_metrics(path)


def _metric(metric: Document, checks_version: bool, path: Path) -> Problems:
    kind = metric.get("type", "")
    if kind not in _SOURCES:
        yield unsupported((*path, "type"), kind, _SOURCES)
    present = [field for field in _SOURCES.values() if field in metric]
    expected = _SOURCES.get(kind, "")
    if expected and expected not in present:
        yield required((*path, expected), "must populate information for the given metric source")
    if present:
        field = present[0]
        source, at = mapping_in(metric, field), (*path, field)
        yield from _CHECKS[field](source, at)
        yield from _metric_target(mapping_in(source, "target"), _ALTERNATIVES[field], (*at, "target"))
        version = mapping_in(source, "describedObject").get("apiVersion", "")
        if checks_version and (problem := _version_problem(version)):
            yield invalid((*at, "describedObject", "apiVersion"), version, problem)
    if len(present) > 1:
        for field in present:
            if field != expected:
                yield forbidden((*path, field), "must populate the given metric source only")


def _identifier(source: Document, path: Path) -> Problems:
    name = mapping_in(source, "metric").get("name") or ""
    if not name:
        yield required((*path, "metric", "name"), "must specify a metric name")
    elif problem := path_segment(name):
        yield invalid((*path, "metric", "name"), name, problem)


def _object(source: Document, path: Path) -> Problems:
    yield from _reference(mapping_in(source, "describedObject"), (*path, "describedObject"))
    yield from _identifier(source, path)


def _resource(source: Document, path: Path) -> Problems:
    if not source.get("name"):
        yield required((*path, "name"), "must specify a resource name")


def _container_resource(source: Document, path: Path) -> Problems:
    yield from _resource(source, path)
    name, container = source.get("name"), source.get("container")
    if name and (problem := container_resource_name(name)):
        yield invalid((*path, "name"), name, problem)
    if not container:
        yield required((*path, "container"), "must specify a container")
    elif problem := dns_label(container):
        yield invalid((*path, "container"), container, problem)


_CHECKS: Mapping[str, Callable[[Document, Path], Problems]] = {
    "object": _object,
    "external": _identifier,
    "pods": _identifier,
    "resource": _resource,
    "containerResource": _container_resource,
}
# Fields of a target of which one is required, and whether they exclude each other.
_ALTERNATIVES = {
    "object": (("averageValue", "value"), False),
    "external": (("averageValue", "value"), True),
    "pods": (("averageValue",), False),
    "resource": (("averageUtilization", "averageValue"), True),
    "containerResource": (("averageUtilization", "averageValue"), True),
}


def _metric_target(target: Document, alternatives: tuple[tuple[str, ...], bool], path: Path) -> Problems:
    kind = target.get("type", "")
    if not kind:
        yield required((*path, "type"), "must specify a metric target type")
    elif kind not in _TARGET_TYPES:
        yield invalid((*path, "type"), kind, "must be either Utilization, Value, or AverageValue")
    for field in ("value", "averageValue"):
        if field in target and amount(target[field]).nano <= 0:
            yield invalid((*path, field), target[field], "must be positive")
    if target.get("averageUtilization", 1) < 1:
        yield invalid((*path, "averageUtilization"), target["averageUtilization"], "must be greater than 0")
    fields, is_exclusive = alternatives
    count = sum(field in target for field in fields)
    if not count:
        yield required((*path, fields[0]), f"must set {' or '.join(fields)}")
    if is_exclusive and count > 1:
        yield forbidden((*path, fields[1]), f"may not set both {' and '.join(fields)}")


def _scaling_rules(rules: Document, has_tolerance: bool, path: Path) -> Problems:
    window = rules.get("stabilizationWindowSeconds", 0)
    if window < 0:
        yield invalid((*path, "stabilizationWindowSeconds"), window, "must be greater than or equal to zero")
    if window > _LONGEST_WINDOW:
        detail = f"must be less than or equal to {_LONGEST_WINDOW}"
        yield invalid((*path, "stabilizationWindowSeconds"), window, detail)
    policy = rules.get("selectPolicy", "Max")
    if policy not in _SELECT_POLICIES:
        yield unsupported((*path, "selectPolicy"), policy, _SELECT_POLICIES)
    # Only missing policies have defaults.
    if rules.get("policies") == []:
        yield required((*path, "policies"), "must specify at least one Policy")
    for index, each in enumerate(rules.get("policies") or []):
        yield from _scaling_policy(each, (*path, "policies", index))
    if has_tolerance and amount(rules.get("tolerance", 0)).nano < 0:
        yield invalid((*path, "tolerance"), rules["tolerance"], "must be greater than or equal to 0")


def _scaling_policy(policy: Document, path: Path) -> Problems:
    kind = policy.get("type", "")
    if kind not in _POLICY_TYPES:
        yield unsupported((*path, "type"), kind, _POLICY_TYPES)
    for field in ("value", "periodSeconds"):
        if policy.get(field, 0) <= 0:
            yield invalid((*path, field), policy.get(field, 0), "must be greater than zero")
    if policy.get("periodSeconds", 0) > _LONGEST_PERIOD:
        detail = f"must be less than or equal to {_LONGEST_PERIOD}"
        yield invalid((*path, "periodSeconds"), policy["periodSeconds"], detail)


VALIDATORS = {"HorizontalPodAutoscaler": check_autoscaler}
