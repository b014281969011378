"""Validate the resource requirements of containers and pods.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/validation/validation.go`` (``validateResourceRequirements``,
``validatePodResources``) and ``pkg/apis/core/helper/helpers.go``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kpreempt.admission.validation.pod_parts import ALWAYS, elements
from kpreempt.admission.validation.problems import (
    Document,
    Problem,
    Problems,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    unsupported,
)
from kpreempt.admission.validation.resource_names import (
    HUGE_PAGES,
    container_resource_name,
    is_extended,
    is_overcommitted,
    resource_name,
)
from kpreempt.admission.validation.values import amount, dns_label
from kpreempt.model.documents import Path
from kpreempt.model.quantity import Quantity, quantity, quantity_text

_COMPUTE = frozenset({"cpu", "memory"})
_NONE: frozenset[str] = frozenset()
_Amounts = Mapping[str, Quantity]


def check_requirements(resources: Document, path: Path, claims: Collection[str] = _NONE) -> Problems:
    """Validate the resources of a container; ``claims`` are the names of the pod's resource claims."""
    limits, requests = _amounts(resources, "limits"), _amounts(resources, "requests")
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name in amounts:
            if problem := container_resource_name(name):
                yield invalid((*path, field, name), name, problem)
    yield from _check_amounts(limits, requests, path)
    yield from _claims(resources, claims, path)


def _amounts(resources: Document, field: str) -> dict[str, Quantity]:
    return {name: amount(value) for name, value in (resources.get(field) or {}).items()}


def _check_amounts(limits: _Amounts, requests: _Amounts, path: Path) -> Problems:
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            if problem := amount_problem(name, value):
                yield invalid((*path, field, name), str(value), problem)
    for name, value in requests.items():
        yield from _check_request(name, value, limits.get(name), path)
    names = limits.keys() | requests.keys()
    if any(name.startswith(HUGE_PAGES) for name in names) and not names & _COMPUTE:
        yield forbidden(path, "HugePages require cpu or memory")


def amount_problem(name: str, value: Quantity) -> str:
    """Check the amount of a resource."""
    if value.nano < 0:
        return "must be greater than or equal to 0"
    if is_extended(name) and value.milli_value % 1000:
        return "must be an integer"
    if name.startswith(HUGE_PAGES) and not _is_whole_pages(name, value):
        return f"{value} is not positive integer multiple of {name}"
    return ""


def _is_whole_pages(name: str, value: Quantity) -> bool:
    try:
        size = quantity(name.removeprefix(HUGE_PAGES))
    except ValueError:
        return False
    return size.nano > 0 and size.milli_value % 1000 == 0 and size.value != 0 and value.value % size.value == 0


def _check_request(name: str, request: Quantity, limit: Quantity | None, path: Path) -> Problems:
    at = (*path, "requests", name)
    if limit is None:
        if not is_overcommitted(name):
            yield required((*path, "limits"), "Limit must be set for non overcommitable resources")
    elif not is_overcommitted(name) and request != limit:
        yield invalid(at, str(request), f"must be equal to {name} limit of {limit}")
    elif request.nano > limit.nano:
        yield invalid(at, str(request), f"must be less than or equal to {name} limit of {limit}")


def _claims(resources: Document, known: Collection[str], path: Path) -> Problems:
    seen: set[str] = set()
    for claim, at in elements(resources, "claims", path):
        name, request = claim.get("name"), claim.get("request")
        if not name:
            yield required(at)
            continue
        if request and (problem := dns_label(request)):
            yield invalid((*at, "request"), request, problem)
        key = f"{name}/{request}" if request else name
        if name in seen or key in seen or (not request and any(each.startswith(f"{name}/") for each in seen)):
            yield duplicate(at, key)
        seen.add(key)
        if name not in known:
            names = f": {', '.join(sorted(known))}" if known else " which is empty"
            message = f"{not_found(at, name).message}: must be one of the names in pod.spec.resourceClaims{names}"
            yield Problem(at, message)


def check_pod_resources(spec: Document, path: Path, *, is_pod: bool) -> Problems:
    """Validate the resources of a pod, and that those of its containers are within them."""
    resources = spec.get("resources")
    if resources is None:
        return
    at = (*path, "resources")
    if (spec.get("os") or {}).get("name") == "windows":
        yield forbidden(at, "may not be set for a windows pod")
        return
    if resources.get("claims"):
        yield forbidden((*at, "claims"), "claims may not be set for Resources at pod-level")
    limits, requests = _amounts(resources, "limits"), _amounts(resources, "requests")
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name in amounts:
            yield from _pod_resource_name(name, (*at, field, name))
    total = _total(spec, "requests")
    if is_pod and limits:
        # The API server sets missing requests of a pod to the sum of its containers' requests.
        requests = {**{name: total[name] for name in _COMPUTE & total.keys()}, **requests}
    yield from _check_amounts(limits, requests, at)
    yield from _covers(requests, total, (*at, "requests"), "aggregate container requests")
    pages = {name: value for name, value in _total(spec, "limits").items() if name.startswith(HUGE_PAGES)}
    yield from _covers(limits, pages, (*at, "limits"), "aggregate container limits")
    yield from _limits_of_containers(spec, limits, path)


def _pod_resource_name(name: str, path: Path) -> Problems:
    if problem := resource_name(name):
        yield invalid(path, name, problem)
    elif name not in _COMPUTE and not name.startswith(HUGE_PAGES):
        yield unsupported(path, name, {*_COMPUTE, HUGE_PAGES})


def _covers(amounts: _Amounts, total: _Amounts, path: Path, of_what: str) -> Problems:
    for name, value in total.items():
        if name in amounts and value.nano > amounts[name].nano:
            yield invalid((*path, name), str(amounts[name]), f"must be greater than or equal to {of_what} of {value}")


def _limits_of_containers(spec: Document, limits: _Amounts, path: Path) -> Problems:
    for container, at in elements(spec, "containers", path):
        for name, value in _amounts(container.get("resources") or {}, "limits").items():
            if name in limits and value.nano > limits[name].nano:
                where = (*at, "resources", "limits", name)
                yield invalid(where, str(value), f"must be less than or equal to pod limits of {limits[name]}")


def _total(spec: Document, field: str) -> dict[str, Quantity]:
    """Add up what the containers need: sidecars too, and other init containers only while they run."""
    total: dict[str, int] = {}
    for container, _ in elements(spec, "containers", ()):
        _add(total, container, field)
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container, _ in elements(spec, "initContainers", ()):
        needs = dict(sidecars)
        _add(needs, container, field)
        if container.get("restartPolicy") == ALWAYS:
            _add(total, container, field)
            sidecars = needs
        peak = _higher(peak, needs)
    return {name: quantity(quantity_text(nano)) for name, nano in _higher(total, peak).items()}


def _add(total: dict[str, int], container: Document, field: str) -> None:
    for name, value in _amounts(container.get("resources") or {}, field).items():
        total[name] = total.get(name, 0) + value.nano


def _higher(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    both = {**first, **second}
    return {name: max(first.get(name, nano), second.get(name, nano)) for name, nano in both.items()}
