"""Whether a Workload may be looked at: its namespace, its requests and limits, and limit ranges.

Follows ``ValidateAdmissibility`` in ``pkg/workload/resources.go`` of Kueue v0.19.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kpreempt.model.kueue import PodSet
from kpreempt.model.pod import ResourceList
from kpreempt.model.workloads import LimitRange
from kpreempt.schedulers.kueue.amounts import Requests, pod_requests_of, requests_of
from kpreempt.schedulers.kueue.workloads import Info

NAMESPACE_MESSAGE = "workload namespace doesn't match ClusterQueue selector"
_ABOVE_LIMIT = "requests must not exceed its limits"
_ABOVE_MAX = "requests must not be above the limitRange max"
_BELOW_MIN = "requests must not be below the limitRange min"


def resource_problem(info: Info, ranges: list[LimitRange]) -> str:
    """What is wrong with what a Workload asks for; an empty text for nothing."""
    found = [each for index, pod_set in enumerate(info.pod_sets) for each in _above_limits(pod_set, _path(index))]
    if found:
        return f"resources validation failed: {_joined(found)}"
    bounds = _Bounds(ranges)
    found = [each for index, pod_set in enumerate(info.pod_sets) for each in bounds.broken(pod_set, _path(index))]
    return f"resources didn't satisfy LimitRange constraints: {_joined(found)}" if found else ""


def _path(index: int) -> str:
    return f"spec.podSets[{index}].template.spec"


def _joined(problems: list[str]) -> str:
    unique = list(dict.fromkeys(problems))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _problem(path: str, names: Iterable[str], message: str) -> str:
    quoted = ",".join(f'"{name}"' for name in names)
    return f"{path}: Invalid value: [{quoted}]: {message}"


def _greater(amounts: Requests, other: Requests) -> list[str]:
    return sorted(name for name, amount in amounts.items() if name in other and amount > other[name])


def _above_limits(pod_set: PodSet, path: str) -> Iterable[str]:
    spec = pod_set.template.spec
    named = [("initContainers", spec.init_containers), ("containers", spec.containers)]
    parts = [(f"{path}.{kind}[{index}]", each.resources) for kind, some in named for index, each in enumerate(some)]
    for where, resources in [*parts, *([(f"{path}.resources", spec.resources)] if spec.resources else [])]:
        if names := _greater(requests_of(resources.requests), requests_of(resources.limits)):
            yield _problem(where, names, _ABOVE_LIMIT)


class _Bounds:
    """Limit ranges of a namespace, taken together."""

    def __init__(self, ranges: list[LimitRange]) -> None:
        self._most: dict[str, Requests] = {}
        self._least: dict[str, Requests] = {}
        for each in ranges:
            for item in each.spec.limits:
                _keep(self._most.setdefault(item.type, {}), item.max, min)
                _keep(self._least.setdefault(item.type, {}), item.min, max)

    def broken(self, pod_set: PodSet, path: str) -> Iterable[str]:
        """What a pod set breaks."""
        spec = pod_set.template.spec
        for kind, some in (("initContainers", spec.init_containers), ("containers", spec.containers)):
            for index, each in enumerate(some):
                requests, limits = requests_of(each.resources.requests), requests_of(each.resources.limits)
                least = _together(requests, limits, min)
                most = _together(requests, limits, max)
                yield from self._check("Container", f"{path}.{kind}[{index}]", least, most)
        total = pod_requests_of(spec)
        yield from self._check("Pod", path, total, total)

    def _check(self, kind: str, path: str, least: Requests, most: Requests) -> Iterable[str]:
        if names := _greater(most, self._most.get(kind, {})):
            yield _problem(path, names, _ABOVE_MAX)
        if names := _greater(self._least.get(kind, {}), least):
            yield _problem(path, names, _BELOW_MIN)


def _keep(known: Requests, found: ResourceList, which: Callable[[int, int], int]) -> None:
    for name, amount in requests_of(found).items():
        known[name] = which(known[name], amount) if name in known else amount


def _together(first: Mapping[str, int], second: Mapping[str, int], which: Callable[[int, int], int]) -> Requests:
    found = {**first, **second}
    for name in first.keys() & second.keys():
        found[name] = which(first[name], second[name])
    return found
