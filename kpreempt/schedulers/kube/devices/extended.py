"""The claim for a pod's extended resources, if devices provide them.

Follows ``plugins/dynamicresources/extendeddynamicresources.go`` (v1.36.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from kpreempt.model.devices import (
    EXACT_COUNT,
    EXTENDED_RESOURCE_CLAIM,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from kpreempt.model.meta import AnnotatedMeta
from kpreempt.model.pod import Container, Pod
from kpreempt.model.quantity import NANO_PER_UNIT
from kpreempt.schedulers.kube.devices.pools import is_for, reaches
from kpreempt.schedulers.kube.devices.selectors import HiddenSelectorError, SelectorError
from kpreempt.schedulers.kube.framework.resources import is_sidecar
from kpreempt.verdict.details import EXTENDED_RESOURCES

if TYPE_CHECKING:
    from kpreempt.model.node import Node
    from kpreempt.schedulers.kube.devices.allocator import Devices


def is_virtual(claim: ResourceClaim) -> bool:
    """Return whether the scheduler would create the claim."""
    return claim.metadata.name == EXTENDED_RESOURCES


def special_claim(pod: Pod, claims: Sequence[ResourceClaim]) -> ResourceClaim:
    """Return the claim for the pod's extended resources that an earlier attempt created or this one would create."""
    for claim in claims:
        if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true" and any(
            owner.controller and owner.name == pod.metadata.name and owner.uid == pod.metadata.uid
            for owner in claim.metadata.owner_references
        ):
            return claim
    return ResourceClaim(metadata=AnnotatedMeta(name=EXTENDED_RESOURCES, namespace=pod.metadata.namespace))


def with_requests(claim: ResourceClaim, requests: Sequence[DeviceRequest]) -> ResourceClaim:
    """Return the claim with these requests."""
    return msgspec.structs.replace(claim, spec=ResourceClaimSpec(devices=DeviceClaim(requests=list(requests))))


def requests_for(pod: Pod, resources: Mapping[str, DeviceClass]) -> list[DeviceRequest]:
    """Return requests for the devices that provide ``resources``, in name order.

    Init containers that finish first reuse the devices of later containers; only the one that needs the most additional
    devices has its own request.
    """
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    found: list[DeviceRequest] = []
    for resource in sorted(resources):
        class_name = resources[resource].metadata.name
        lasting: dict[int, DeviceRequest] = {}
        ending: list[int] = []
        for index, container in enumerate(containers):
            if index < len(pod.spec.init_containers) and not is_sidecar(container):
                ending.append(index)
            elif request := _request(index, container, resource, class_name, 0):
                lasting[index] = request
        largest: DeviceRequest | None = None
        for index in ending:
            later = [each for at, each in lasting.items() if at >= index]
            extra = _request(index, containers[index], resource, class_name, _count(later))
            if extra is not None and (largest is None or _count([extra]) > _count([largest])):
                largest = extra
        found += [*([largest] if largest is not None else []), *lasting.values()]
    return sorted(found, key=lambda each: each.name)


def _request(index: int, container: Container, resource: str, class_name: str, reused: int) -> DeviceRequest | None:
    """Return what the container requests in addition to ``reused`` devices."""
    requests = container.resources.requests
    if resource not in requests:
        return None
    nano = requests[resource].nano
    # An amount that is not an integer counts as none.
    if nano % NANO_PER_UNIT or nano // NANO_PER_UNIT <= reused:
        return None
    name = f"container-{index}-request-{sorted(requests).index(resource)}"
    count = nano // NANO_PER_UNIT - reused
    exactly = ExactDeviceRequest(device_class_name=class_name, allocation_mode=EXACT_COUNT, count=count)
    return DeviceRequest(name=name, exactly=exactly)


def _count(requests: Sequence[DeviceRequest]) -> int:
    return sum(each.exactly.count for each in requests if each.exactly is not None)


def devices_of_class(devices: Devices, device_class: DeviceClass, node: Node) -> tuple[int, int]:
    """Return how many devices of the class the node can access and how many of them are in use, as scores count them.

    All slices count, of any generation; a selector that fails makes both 0
    (``plugins/noderesources/resource_allocation.go``, v1.36.3).
    """
    total = used = 0
    try:
        for each in devices.slices.all:
            spec = each.spec
            is_open = not (spec.node_name or spec.node_selector or spec.per_device_node_selection)
            if not (is_open or spec.per_device_node_selection) and not reaches(
                node, spec.node_name, spec.all_nodes, spec.node_selector
            ):
                continue
            for device in each.devices:
                if spec.per_device_node_selection and not is_for(node, device.device):
                    continue
                if devices.selectors.select(device_class.spec.selectors, device):
                    total += 1
                    used += devices.in_use.is_taken(device.id)
    except (SelectorError, HiddenSelectorError):
        return 0, 0
    return total, used
