"""Where devices make an answer uncertain: fields that are not modelled, and what no object of the cluster shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kpreempt.model.devices import ResourceSlice
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.plugins.dynamic_resources import ClaimState, claim_state
from kpreempt.verdict import Assumption, AssumptionKind

_UNREAD = "it is not modelled, and may decide which devices are allocated"


def claims_of(pod: Pod) -> list[str]:
    """The pod's claims by name; one that is made from a template, and not yet known, by its reference in the pod."""
    generated = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    return [claim.resource_claim_name or generated.get(claim.name) or claim.name for claim in pod.spec.resource_claims]


def claim_assumptions(pod: Pod, state: CycleState, cluster: ClusterState) -> list[Assumption]:
    """What is assumed about the devices of a pod, after its cycle; only what is told leaves the outcome certain."""
    claims = claim_state(state)
    if claims is None or not claims.claims:
        return []
    return [*_about_search(claims, pod), *_about_fields(claims, cluster)]


def _about_search(claims: ClaimState, pod: Pod) -> Iterator[Assumption]:
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


def _about_fields(claims: ClaimState, cluster: ClusterState) -> Iterator[Assumption]:
    for claim in claims.claims:
        for field in claim.unread_fields:
            yield Assumption(f"ResourceClaim {claim.key}", field, _UNREAD)
    if claims.allocator is None:
        return
    for device_class in cluster.cluster.device_classes:
        for field in device_class.unread_fields:
            yield Assumption(f"DeviceClass {device_class.metadata.name}", field, _UNREAD)
    slices = cluster.cluster.resource_slices
    for field, found in _unread_of_slices(slices).items():
        more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
        yield Assumption(f"ResourceSlice {found[0]}{more}", field, _UNREAD)
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
