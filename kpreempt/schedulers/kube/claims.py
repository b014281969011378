"""Where devices make an answer uncertain: fields that are not modelled, and what no object of the cluster shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kpreempt.model.devices import ResourceSlice
from kpreempt.model.pod import Pod
from kpreempt.model.quantity import quantity_text
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.plugins.dynamic_resources import pod_devices
from kpreempt.verdict import AllocatedDevice, Assumption, AssumptionKind

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.devices.pod_devices import PodDevices
    from kpreempt.schedulers.kube.devices.search import Allocated

_UNREAD = "a field of {} is not modelled, and may decide which devices are allocated"


def claims_of(pod: Pod) -> list[str]:
    """The pod's claims by name; one that is made from a template, and not yet known, by its reference in the pod."""
    generated = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    return [claim.resource_claim_name or generated.get(claim.name) or claim.name for claim in pod.spec.resource_claims]


def devices_on(nodes: Iterable[str], state: CycleState) -> dict[str, list[AllocatedDevice]]:
    """The devices that were found for the pod on these nodes, after a cycle with this state."""
    claims = pod_devices(state)
    if claims is None or not claims.found:
        return {}
    known = {node: claims.found[node] for node in nodes if node in claims.found}
    return {
        node: [
            _told(claim.key, each)
            for claim, devices in zip(found.claims, found.devices, strict=True)
            for each in devices
        ]
        for node, found in known.items()
    }


def _told(claim: str, found: Allocated) -> AllocatedDevice:
    driver, pool, device = found.device.id
    consumed = {name: quantity_text(amount) for name, amount in found.consumed.items()}
    return AllocatedDevice(claim, found.request, driver, pool, device, found.is_share, consumed)


def claim_assumptions(pod: Pod, state: CycleState, cluster: ClusterState) -> list[Assumption]:
    """What is assumed about the devices of a pod, after its cycle; only what is told leaves the outcome certain."""
    claims = pod_devices(state)
    if claims is None or not claims.claims:
        return []
    return [*_about_search(claims, pod), *_about_order(claims, pod, cluster), *_about_fields(claims, cluster)]


def _about_search(claims: PodDevices, pod: Pod) -> Iterator[Assumption]:
    if claims.is_hidden:
        yield Assumption(
            f"Pod {pod.key}", "spec.resourceClaims", "what selects its devices is redacted, and which these are unknown"
        )
    elif claims.given_up:
        yield Assumption(
            f"Node {claims.given_up}",
            "ResourceSlices",
            "the search for devices was given up after many combinations; a scheduler may find some in its 10 s",
        )
    if len(claims.rivals) > 1:
        yield Assumption(
            f"Pod {pod.key}",
            "spec.resourceClaims",
            f"which of {', '.join(claims.rivals)} is deallocated is left to chance",
            AssumptionKind.TOLD,
        )


def _about_order(claims: PodDevices, pod: Pod, cluster: ClusterState) -> Iterator[Assumption]:
    """What the order of pools decides up to 1.35, which is that of a Go map."""
    if cluster.behaviour.sorts_pools_of_devices or claims.allocator is None:
        return
    subject = f"Pod {pod.key}"
    yield Assumption(
        subject,
        "spec.resourceClaims",
        "where several pools have such devices, which of them are taken is left to chance",
        AssumptionKind.TOLD,
    )
    if names := [each.name for each in cluster.node_infos if claims.fails_by_order(each)]:
        more = f" (and {len(names) - 1:,} more)" if len(names) > 1 else ""
        message = "whether the search for devices comes to one on which it ends in an error is left to chance"
        yield Assumption(f"Node {names[0]}{more}", "ResourceSlices", message)
    if cluster.behaviour.allocates_from_incomplete_pools and cluster.behaviour.dra_consumable_capacity:
        message = "with DRAConsumableCapacity, 1.34 holds amounts against another device too, which is not modelled"
        yield Assumption(subject, "spec.resourceClaims", message)
    if cluster.behaviour.allocates_from_incomplete_pools and any(
        pool.invalid for node in cluster.node_infos for pool in cluster.devices.slices.pools_of(node.node)
    ):
        message = "some pool is invalid: whether the search comes to it, and ends in an error, is left to chance"
        yield Assumption("ResourceSlices", "", message)


def _about_fields(claims: PodDevices, cluster: ClusterState) -> Iterator[Assumption]:
    for claim in claims.claims:
        for field in claim.unread_fields:
            yield Assumption(f"ResourceClaim {claim.key}", field, _UNREAD.format(f"claim {claim.key}"))
    if claims.allocator is None:
        return
    for device_class in cluster.cluster.device_classes:
        for field in device_class.unread_fields:
            yield Assumption(f"DeviceClass {device_class.metadata.name}", field, _UNREAD.format("a device class"))
    slices = cluster.cluster.resource_slices
    for field, found in _unread_of_slices(slices).items():
        more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
        yield Assumption(f"ResourceSlice {found[0]}{more}", field, _UNREAD.format("slices"))
    if not cluster.behaviour.finds_shared_counters_everywhere and (shared := _shared_pool_name(slices)):
        yield Assumption(
            f"ResourceSlice {shared}",
            "spec.pool.name",
            "pools of several drivers have this name, whose shared counters are mixed up in an order that is not known",
        )


def _unread_of_slices(slices: Iterable[ResourceSlice]) -> dict[str, list[str]]:
    """The slices that have something that is not modelled, by its field."""
    found: dict[str, list[str]] = {}
    for each in slices:
        fields = list(each.unread_fields)
        if each.spec.skip_node_operations:
            fields.append("spec.skipNodeOperations")
        for device in each.spec.devices:
            if device.node_allocatable_resources or device.node_allocatable_resource_mappings:
                fields.append("spec.devices[].nodeAllocatableResources")
            if any(attribute.typed is None for attribute in device.attributes.values()):
                fields.append("spec.devices[].attributes")
        for field in dict.fromkeys(fields):
            found.setdefault(field, []).append(each.metadata.name)
    return found


def _shared_pool_name(slices: Iterable[ResourceSlice]) -> str:
    """A slice with counters whose pool has the name of another driver's with counters."""
    drivers: dict[str, str] = {}
    for each in slices:
        if each.spec.shared_counters:
            pool, driver = each.spec.pool.name, each.spec.driver
            if drivers.setdefault(pool, driver) != driver:
                return each.metadata.name
    return ""
