"""Validate ResourceQuotas and LimitRanges.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``ValidateResourceQuota``,
``ValidateLimitRange``) and ``pkg/apis/core/helper/helpers.go``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kpreempt.admission.validation.metadata import IMMUTABLE, check_metadata, check_metadata_update
from kpreempt.admission.validation.problems import (
    Document,
    Problem,
    Problems,
    Server,
    duplicate,
    forbidden,
    invalid,
    required,
)
from kpreempt.admission.validation.resource_names import (
    COUNTED_RESOURCES,
    container_resource_name,
    is_extended,
    is_overcommitted,
    is_standard_in_quotas,
    quota_resource_name,
    resource_name,
)
from kpreempt.admission.validation.values import amount, qualified_name
from kpreempt.model.documents import Path, mapping_in
from kpreempt.model.quantity import NANO_PER_MILLI, NANO_PER_UNIT, Quantity

_SPEC: Path = ("spec",)
_LIMITS: Path = ("spec", "limits")

# From this version, quotas can select claims by their class of volume attributes.
_VOLUME_ATTRIBUTES_SCOPE = 33
_COMPUTE = frozenset(
    {"pods", *(f"{kind}{name}" for kind in ("", "requests.", "limits.") for name in ("cpu", "memory"))}
)
# The resources without a domain that can be counted in each scope.
_SCOPES: Mapping[str, Collection[str]] = {
    "BestEffort": {"pods"},
    "CrossNamespacePodAffinity": _COMPUTE,
    "NotBestEffort": _COMPUTE,
    "NotTerminating": _COMPUTE,
    "PriorityClass": _COMPUTE,
    "Terminating": _COMPUTE,
    "VolumeAttributesClass": {"persistentvolumeclaims", "requests.storage"},
}
_WITHOUT_VALUES = frozenset(
    {"BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "Terminating"}
)
_CONFLICTS = ({"BestEffort", "NotBestEffort"}, {"NotTerminating", "Terminating"})

_POD, _CONTAINER, _CLAIM = "Pod", "Container", "PersistentVolumeClaim"
_RANDOM_NAME = "random"
_AMOUNTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
# Fields of which the first may not be greater than the second, in words, and the field to change.
_ORDER = (
    ("min", "max", "min", "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}"),
    ("defaultRequest", "default", "defaultRequest", "default request value {} is greater than default limit value {}"),
    ("min", "default", "default", "min value {} is greater than default value {}"),
    ("default", "max", "default", "default value {} is greater than max value {}"),
)


def check_quota(document: Document, old: Document | None, server: Server) -> Problems:
    """Validate a ResourceQuota; its scopes never change, those of its selector may."""
    if old is None:
        yield from check_metadata(document)
    else:
        yield from check_metadata_update(document, old)
    spec = mapping_in(document, "spec")
    for name, value in (spec.get("hard") or {}).items():
        yield from _hard(name, amount(value), (*_SPEC, "hard", name))
    scopes = spec.get("scopes") or []
    yield from _scopes(scopes, spec, server, (*_SPEC, "scopes"))
    if "scopeSelector" in spec:
        yield from _scope_selector(spec, server, (*_SPEC, "scopeSelector", "matchExpressions"))
    if old is not None and set(scopes) != set(mapping_in(old, "spec").get("scopes") or []):
        yield invalid((*_SPEC, "scopes"), scopes, IMMUTABLE)


def _hard(name: str, value: Quantity, path: Path) -> Problems:
    if problem := quota_resource_name(name):
        yield invalid(path, name, problem)
    if value.nano < 0:
        yield invalid(path, value.text, "must be greater than or equal to 0")
    # Quantities are stored in thousandths, rounded up.
    if (name in COUNTED_RESOURCES or is_extended(name)) and -(-value.nano // NANO_PER_MILLI) % 1000:
        yield invalid(path, value.text, "must be an integer")


def _scopes(scopes: Iterable[str], spec: Document, server: Server, path: Path) -> Problems:
    found = set(scopes)
    for scope in sorted(found):
        yield from _scope(scope, spec, server, path, path)
    if any(found >= pair for pair in _CONFLICTS):
        yield invalid(path, sorted(found), "conflicting scopes")


def _scope(scope: str, spec: Document, server: Server, path: Path, of_name: Path) -> Problems:
    resources = _SCOPES.get(scope)
    if resources is None or (scope == "VolumeAttributesClass" and server.minor < _VOLUME_ATTRIBUTES_SCOPE):
        yield invalid(of_name, scope, "unsupported scope")
        return
    if any(is_standard_in_quotas(name) and name not in resources for name in spec.get("hard") or {}):
        yield invalid(path, scope, "unsupported scope applied to resource")


def _scope_selector(spec: Document, server: Server, path: Path) -> Problems:
    found = set()
    for index, each in enumerate(mapping_in(spec, "scopeSelector").get("matchExpressions") or []):
        at = (*path, index)
        scope, operator, values = each.get("scopeName", ""), each.get("operator", ""), each.get("values") or []
        found.add(scope)
        yield from _scope(scope, spec, server, at, (*at, "scopeName"))
        if scope in _WITHOUT_VALUES and operator != "Exists":
            detail = "must be 'Exists' when scope is any of {}".format(", ".join(sorted(_WITHOUT_VALUES)))
            yield invalid((*at, "operator"), operator, detail)
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield required((*at, "values"), detail)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                yield invalid((*at, "values"), values, detail)
        else:
            yield invalid((*at, "operator"), operator, "not a valid selector operator")
    if any(found >= pair for pair in _CONFLICTS):
        yield invalid(path, sorted(found), "conflicting scopes")


def check_limit_range(document: Document, _: Document | None, __: Server) -> Problems:
    """Validate a LimitRange; updates have the same rules. One without a name gets a random one."""
    metadata = mapping_in(document, "metadata")
    yield from check_metadata({"metadata": {**metadata, "name": metadata.get("name") or _RANDOM_NAME}})
    seen = set()
    for index, limit in enumerate(mapping_in(document, "spec").get("limits") or []):
        path, kind = (*_LIMITS, index), limit.get("type", "")
        yield from _limit_type(kind, (*path, "type"))
        if kind in seen:
            yield duplicate((*path, "type"), kind)
        seen.add(kind)
        yield from _limit(limit, kind, path)


def _limit_type(kind: str, path: Path) -> Problems:
    if problem := qualified_name(kind):
        yield invalid(path, kind, problem)
    elif "/" not in kind and kind not in (_POD, _CONTAINER, _CLAIM):
        yield invalid(path, kind, "must be a standard limit type or fully qualified")


def _limit(limit: Document, kind: str, path: Path) -> Problems:
    name_problem = container_resource_name if kind in (_POD, _CONTAINER) else resource_name
    amounts: dict[str, dict[str, Quantity]] = {}
    for field in _AMOUNTS:
        given = limit.get(field) or {}
        if given and kind == _POD and field in ("default", "defaultRequest"):
            yield forbidden((*path, field), "may not be specified when `type` is 'Pod'")
            given = {}
        for name in given:
            if problem := name_problem(name):
                yield invalid((*path, field, name), name, problem)
        amounts[field] = {name: amount(value) for name, value in given.items()}
    if kind == _CLAIM and "storage" not in amounts["min"].keys() | amounts["max"].keys():
        detail = "either minimum or maximum storage value is required, but neither was provided"
        yield required((*path, "limits"), detail)
    for name in dict.fromkeys(name for values in amounts.values() for name in values):
        of_name = {field: values[name] for field, values in amounts.items() if name in values}
        yield from _order(of_name, name, path)
        if "maxLimitRequestRatio" in of_name:
            yield from _ratio(of_name, (*path, "maxLimitRequestRatio", name))


def _order(amounts: Mapping[str, Quantity], name: str, path: Path) -> Problems:
    def problem(field: str, detail: str) -> Problem:
        return invalid((*path, field, name), amounts[field].text, detail)

    for lower, higher, field, words in _ORDER:
        if lower in amounts and higher in amounts and amounts[lower].nano > amounts[higher].nano:
            yield problem(field, words.format(amounts[lower], amounts[higher]))
    default, request = amounts.get("default"), amounts.get("defaultRequest")
    if default is not None and request is not None and default != request and not is_overcommitted(name):
        detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield problem("defaultRequest", detail)


def _ratio(amounts: Mapping[str, Quantity], path: Path) -> Problems:
    ratio, lowest, highest = (amounts.get(field) for field in ("maxLimitRequestRatio", "min", "max"))
    if ratio is None:
        return
    if ratio.nano < NANO_PER_UNIT:
        yield invalid(path, ratio.text, f"ratio {ratio} is less than 1")
    # Upstream divides floating-point numbers: any ratio is within infinity.
    if lowest is None or highest is None or not lowest.nano:
        return
    limit = highest.milli_value / lowest.milli_value
    if ratio.milli_value / 1000 > limit:
        yield invalid(path, ratio.text, f"ratio {ratio} is greater than max/min = {limit:f}")


VALIDATORS = {"LimitRange": check_limit_range, "ResourceQuota": check_quota}
