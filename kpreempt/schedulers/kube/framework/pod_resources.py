"""What running pods occupy, computed once for all pods that ask for the same.

Follows ``CalculateResource`` in ``pkg/scheduler/framework/types.go`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from typing import NamedTuple

from kpreempt.model.pod import Pod, ResourceList, ResourceRequirements
from kpreempt.model.quantity import ceil_milli, ceil_units
from kpreempt.schedulers.kube.framework.container_requests import Resizes, is_resize_infeasible
from kpreempt.schedulers.kube.framework.resources import (
    CPU,
    MEMORY,
    Resource,
    non_zero_requests,
    non_zero_requests_without_sidecars,
    pod_requests,
)
from kpreempt.schedulers.kube.versions import Behaviour


class PodResource(NamedTuple):
    """What a running pod occupies, and with how much of CPU and memory it counts in scores. Not to be changed."""

    resource: Resource
    non_zero_milli_cpu: int
    non_zero_memory: int


class ResourceCalculator:
    """Computes what running pods occupy, once for all pods that ask for the same."""

    # Enough for any real cluster; forgotten when full, so that a long batch of many clusters stays small.
    _MOST_KEPT = 65536

    def __init__(
        self, *, use_status: bool, pod_level: bool, pod_level_status: bool, resizes: Resizes, adds_sidecars: bool
    ) -> None:
        self._use_status = use_status
        self._pod_level = pod_level
        self._pod_level_status = pod_level_status
        self._resizes = resizes
        self._adds_sidecars = adds_sidecars
        self._known: dict[Hashable, PodResource] = {}

    def of(self, pod: Pod) -> PodResource:
        """What ``pod`` occupies on its node."""
        key = _requests_key(pod)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= self._MOST_KEPT:
                self._known.clear()
            known = self._known[key] = self._compute(pod)
        return known

    def _compute(self, pod: Pod) -> PodResource:
        use_status, pod_level, pod_level_status = self._use_status, self._pod_level, self._pod_level_status
        resizes = self._resizes
        requests = pod_requests(
            pod, use_status=use_status, pod_level=pod_level, pod_level_status=pod_level_status, resizes=resizes
        )
        if not self._adds_sidecars:
            counted = non_zero_requests_without_sidecars(pod, use_status=use_status, resizes=resizes)
            return PodResource(Resource.from_nano(requests), *counted)
        non_zero = non_zero_requests(
            pod,
            requests,
            use_status=use_status,
            pod_level=pod_level,
            pod_level_status=pod_level_status,
            resizes=resizes,
        )
        return PodResource(
            Resource.from_nano(requests), ceil_milli(non_zero.get(CPU, 0)), ceil_units(non_zero.get(MEMORY, 0))
        )


def resource_calculator(behaviour: Behaviour) -> ResourceCalculator:
    """The calculator for what holds, shared by all clusters."""
    return _calculator(
        behaviour.in_place_pod_vertical_scaling,
        behaviour.pod_level_resources,
        behaviour.in_place_pod_level_resources_vertical_scaling,
        _resizes(behaviour),
        behaviour.adds_sidecars_to_scored_requests,
    )


def _resizes(behaviour: Behaviour) -> Resizes:
    if behaviour.follows_allocated_resources_alone:
        return Resizes.BY_ALLOCATION
    if behaviour.follows_actuated_resources_alone:
        return Resizes.BY_CGROUPS
    return Resizes.BY_POD if behaviour.compares_resizes_by_pod else Resizes.BY_CONTAINER


@cache
def _calculator(
    use_status: bool, pod_level: bool, pod_level_status: bool, resizes: Resizes, adds_sidecars: bool
) -> ResourceCalculator:
    return ResourceCalculator(
        use_status=use_status,
        pod_level=pod_level,
        pod_level_status=pod_level_status,
        resizes=resizes,
        adds_sidecars=adds_sidecars,
    )


def has_only_containers(pod: Pod) -> bool:
    """Whether the resources of its containers alone decide what the pod occupies, as with by far the most pods."""
    spec, status = pod.spec, pod.status
    return not (
        spec.init_containers
        or spec.overhead
        or spec.resources
        or status.container_statuses
        or status.init_container_statuses
    )


def _requests_key(pod: Pod) -> Hashable:
    """Equal for pods whose requests are computed from the same values."""
    spec, status = pod.spec, pod.status
    if len(spec.containers) == 1 and has_only_containers(pod):
        requests = spec.containers[0].resources.requests
        return (*requests, *[amount.nano for amount in requests.values()])
    return (
        tuple((each.name, _amounts(each.resources)) for each in spec.containers),
        tuple((each.name, each.restart_policy, _amounts(each.resources)) for each in spec.init_containers),
        _list_key(spec.overhead),
        _amounts(spec.resources),
        tuple(
            (each.name, each.resources is None, _amounts(each.resources), _list_key(each.allocated_resources))
            for each in (*status.container_statuses, *status.init_container_statuses)
        ),
        status.resources is None,
        _amounts(status.resources),
        _list_key(status.allocated_resources),
        is_resize_infeasible(pod),
        status.resize,
    )


def _amounts(resources: ResourceRequirements | None) -> Hashable:
    return _list_key(resources.requests) if resources else ()


def _list_key(amounts: ResourceList) -> Hashable:
    return tuple((name, amount.nano) for name, amount in amounts.items())
