"""What the containers of a pod ask for together, and how a resize of a running one counts.

Follows ``k8s.io/component-helpers`` v0.37.1 ``resource/helpers.go`` (``AggregateContainerRequests``), and what came
before it: that of v0.36.3 and v0.32.13, and ``pkg/api/v1/resource/helpers.go`` of ``k8s.io/kubernetes`` v1.31.14.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto

from kpreempt.model.pod import Container, ContainerStatus, Pod, ResourceList

# Exact amounts in 1e-9 units, by resource.
NanoRequests = dict[str, int]


class Resizes(Enum):
    """Whose word counts beside the spec where a running pod is being resized.

    A container's allocation alone, its cgroups alone (what its status has under resources), the larger of both by
    container, or the larger of their totals.
    """

    BY_ALLOCATION = auto()
    BY_CGROUPS = auto()
    BY_CONTAINER = auto()
    BY_POD = auto()


def is_resize_infeasible(pod: Pod) -> bool:
    """Whether the kubelet has refused an in-place resize for good."""
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def is_sidecar(container: Container) -> bool:
    """Whether an init container goes on running beside the containers."""
    return container.restart_policy == "Always"


# What one container asks for, as a new dictionary.
_Own = Callable[[Container], NanoRequests]


def _spec_of(container: Container) -> NanoRequests:
    return {name: amount.nano for name, amount in container.resources.requests.items()}


def own_requests(pod: Pod, use_status: bool, resizes: Resizes) -> _Own:
    """What each container asks for, where that is settled container by container."""
    if not use_status:
        return _spec_of
    statuses = _statuses_of(pod)
    inits = {id(each) for each in pod.spec.init_containers}

    def by_allocation(container: Container) -> NanoRequests:
        status = None if id(container) in inits else statuses.get(container.name)
        if status is None:
            return _spec_of(container)
        return largest([status.allocated_resources], _spec_of(container), pod.status.resize == "Infeasible")

    def by_cgroups(container: Container) -> NanoRequests:
        status = None if id(container) in inits else statuses.get(container.name)
        if status is None or status.resources is None:
            return _spec_of(container)
        return largest([status.resources.requests], _spec_of(container), pod.status.resize == "Infeasible")

    def by_container(container: Container) -> NanoRequests:
        status = statuses.get(container.name) if id(container) not in inits or is_sidecar(container) else None
        if status is None or status.resources is None:
            return _spec_of(container)
        given = [status.resources.requests, status.allocated_resources]
        return largest(given, _spec_of(container), is_resize_infeasible(pod))

    ways = {Resizes.BY_ALLOCATION: by_allocation, Resizes.BY_CGROUPS: by_cgroups}
    return ways.get(resizes, by_container)


def container_requests(
    pod: Pod, use_status: bool, resizes: Resizes, pod_level_status: bool, non_missing: Mapping[str, int] | None
) -> NanoRequests:
    """What the containers ask for together; ``non_missing`` stands in for what a container does not ask for.

    With ``use_status`` a resize counts as ``resizes`` says; ``pod_level_status`` lets what the status says of the pod
    as a whole go before what it says of containers.
    """
    if not use_status or resizes is not Resizes.BY_POD:
        return _summed(pod, own_requests(pod, use_status, resizes), non_missing)
    infeasible = is_resize_infeasible(pod)
    totals = [] if infeasible else [_summed(pod, _spec_of, non_missing)]
    whole = pod.status.resources
    if pod_level_status and pod.status.allocated_resources and whole is not None and whole.requests:
        totals += [nano(pod.status.allocated_resources), nano(whole.requests)]
    else:
        statuses = _statuses_of(pod)

        def allocated(container: Container) -> NanoRequests:
            status = statuses.get(container.name)
            if status is not None and status.allocated_resources:
                return nano(status.allocated_resources)
            return {} if infeasible else _spec_of(container)

        def actuated(container: Container) -> NanoRequests:
            status = statuses.get(container.name)
            if status is not None and status.resources is not None and status.resources.requests:
                return nano(status.resources.requests)
            return allocated(container)

        totals += [_summed(pod, allocated, non_missing), _summed(pod, actuated, non_missing)]
    requests: NanoRequests = {}
    for total in totals:
        raise_to(requests, total)
    return requests


def _summed(pod: Pod, own: _Own, non_missing: Mapping[str, int] | None) -> NanoRequests:
    """What the containers need together, or one step of starting them where that is more."""

    def needed(container: Container) -> NanoRequests:
        needs = own(container)
        for name, amount in (non_missing or {}).items():
            needs.setdefault(name, amount)
        return needs

    total: NanoRequests = {}
    for container in pod.spec.containers:
        add(total, needed(container))
    sidecars: NanoRequests = {}
    while_starting: NanoRequests = {}
    for container in pod.spec.init_containers:
        needs = needed(container)
        if is_sidecar(container):
            add(total, needs)
            add(sidecars, needs)
            needs = sidecars
        else:
            add(needs, sidecars)
        raise_to(while_starting, needs)
    raise_to(total, while_starting)
    return total


def largest(given: Iterable[ResourceList], spec: NanoRequests, infeasible: bool) -> NanoRequests:
    """The largest of what is given and the spec; without that where the resize is infeasible."""
    result = {} if infeasible else spec
    for amounts in given:
        raise_to(result, nano(amounts))
    return result


def _statuses_of(pod: Pod) -> dict[str, ContainerStatus]:
    return {status.name: status for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)}


def nano(amounts: ResourceList) -> NanoRequests:
    """The amounts, exactly."""
    return {name: amount.nano for name, amount in amounts.items()}


def add(total: NanoRequests, more: NanoRequests) -> None:
    """Add ``more`` to ``total``."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def raise_to(total: NanoRequests, least: NanoRequests) -> None:
    """Raise ``total`` where ``least`` has more."""
    for name, amount in least.items():
        if name not in total or amount > total[name]:
            total[name] = amount
