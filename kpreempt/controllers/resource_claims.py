"""ResourceClaims: created for pods, allocated with them, and released after them.

Follows ``pkg/controller/resourceclaim/controller.go`` and, for what the scheduler writes when it binds a pod,
``plugins/dynamicresources/dynamicresources.go`` of v1.36.3. Difference: a claim created from a template is named after
the pod and its reference, without the random suffix.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from kpreempt.model.affinity import METADATA_NAME_FIELD, NodeSelector, NodeSelectorTerm
from kpreempt.model.devices import (
    AllocationResult,
    ConsumerReference,
    Device,
    DeviceAllocationResult,
    DeviceResult,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceSlice,
)
from kpreempt.model.labels import NodeSelectorRequirement
from kpreempt.model.meta import AnnotatedMeta, OwnerReference, controller_of, grouped
from kpreempt.model.pod import Pod
from kpreempt.model.pod import ResourceClaimStatus as ClaimOfPod
from kpreempt.model.quantity import quantity
from kpreempt.verdict import AllocatedDevice

_PODS = "pods"
_replace = msgspec.structs.replace


def with_generated_claims(
    pod: Pod, templates: Iterable[ResourceClaimTemplate], there: Collection[str]
) -> tuple[Pod, list[ResourceClaim]]:
    """Return the pod with the names of the claims created for it, and those of them that are not ``there`` yet.

    A reference to a missing template stays without a claim.
    """
    desired = [each for each in pod.spec.resource_claims if each.resource_claim_template_name is not None]
    known = {each.name for each in pod.status.resource_claim_statuses}
    missing = [each for each in desired if each.name not in known]
    if not missing:
        return pod, []
    namespace = pod.metadata.namespace
    by_name = {each.metadata.name: each for each in templates if each.metadata.namespace == namespace}
    made: list[ResourceClaim] = []
    statuses = list(pod.status.resource_claim_statuses)
    owner = OwnerReference(kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, api_version="v1", controller=True)
    for reference in missing:
        template = by_name.get(reference.resource_claim_template_name or "")
        if template is None:
            continue
        name = f"{pod.metadata.name}-{reference.name}"
        metadata = AnnotatedMeta(name=name, namespace=namespace, owner_references=[owner])
        statuses.append(ClaimOfPod(name=reference.name, resource_claim_name=name))
        claim = ResourceClaim(metadata=metadata, spec=template.spec.spec, unread_fields=template.unread_fields)
        if claim.key not in there:
            made.append(claim)
    return _replace(pod, status=_replace(pod.status, resource_claim_statuses=statuses)), made


def released(claims: list[ResourceClaim], deleted: Iterable[Pod]) -> list[ResourceClaim]:
    """Return the claims once these pods are gone: generated claims are deleted, other unused ones are deallocated.

    If nothing changes, the same list is returned.
    """
    by_key = {pod.key: pod.metadata.uid for pod in deleted}
    if not claims or not by_key:
        return claims
    left = [each for claim in claims if (each := _left(claim, by_key)) is not None]
    if len(left) == len(claims) and all(new is old for new, old in zip(left, claims, strict=True)):
        return claims
    return left


def vacated(claims: list[ResourceClaim], pod: Pod) -> list[ResourceClaim]:
    """Return the claims as if the pod were pending: its own claims are not allocated, others are unchanged."""
    deleted = {pod.key: pod.metadata.uid}
    return [_left(claim, deleted) or _replace(claim, status=ResourceClaimStatus()) for claim in claims]


def _left(claim: ResourceClaim, deleted: Mapping[str, str]) -> ResourceClaim | None:
    namespace = claim.metadata.namespace
    owner = controller_of(claim.metadata)
    if owner is not None and owner.kind == "Pod" and deleted.get(f"{namespace}/{owner.name}") == owner.uid:
        return None
    users = claim.status.reserved_for
    remaining = [
        each for each in users if each.resource != _PODS or deleted.get(f"{namespace}/{each.name}", None) != each.uid
    ]
    if len(remaining) == len(users):
        return claim
    return _replace(
        claim, status=_replace(claim.status, reserved_for=remaining) if remaining else ResourceClaimStatus()
    )


def allocated(
    claims: Sequence[ResourceClaim],
    pod: Pod,
    devices: Sequence[AllocatedDevice],
    node_name: str,
    slices: Iterable[ResourceSlice],
) -> list[ResourceClaim]:
    """Return the claims after the pod was bound: its claims are reserved for it and have these devices allocated.

    A claim for extended resources is created for it.
    """
    found = grouped(devices, lambda each: each.claim)
    generated = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    names = (each.resource_claim_name or generated.get(each.name) for each in pod.spec.resource_claims)
    used = {f"{pod.metadata.namespace}/{name}" for name in names if name}
    pools = {(each.driver, each.pool) for each in devices}
    local = _DeviceReach([each for each in slices if (each.spec.driver, each.spec.pool.name) in pools], node_name)
    user = ConsumerReference(resource=_PODS, name=pod.metadata.name, uid=pod.metadata.uid)
    there = {claim.key for claim in claims}
    owner = OwnerReference(kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, api_version="v1", controller=True)
    made = [
        ResourceClaim(
            metadata=AnnotatedMeta(
                name=f"{pod.metadata.name}-extended-resources",
                namespace=pod.metadata.namespace,
                owner_references=[owner],
            ),
            status=ResourceClaimStatus(_allocation(own, None, local), [user]),
        )
        for key, own in found.items()
        if key not in there
    ]
    return [
        *(_used(claim, found.get(claim.key), user, local) if claim.key in used else claim for claim in claims),
        *made,
    ]


def _used(
    claim: ResourceClaim, devices: Sequence[AllocatedDevice] | None, user: ConsumerReference, places: _DeviceReach
) -> ResourceClaim:
    status = claim.status
    if status.allocation is None and devices is not None:
        status = _replace(status, allocation=_allocation(devices, claim, places))
    if all(each.uid != user.uid or each.name != user.name for each in status.reserved_for):
        status = _replace(status, reserved_for=[*status.reserved_for, user])
    return _replace(claim, status=status)


def _allocation(
    devices: Sequence[AllocatedDevice], claim: ResourceClaim | None, places: _DeviceReach
) -> AllocationResult:
    admin = {
        request.name
        for request in (claim.spec.devices.requests if claim is not None else ())
        if request.exactly is not None and request.exactly.admin_access
    }
    results = [
        DeviceResult(
            request=each.request,
            driver=each.driver,
            pool=each.pool,
            device=each.device,
            admin_access=True if each.request in admin else None,
            share_id=f"{each.claim} {each.request} {number}" if each.is_share else None,
            consumed_capacity={name: quantity(amount) for name, amount in each.consumed.items()},
        )
        for number, each in enumerate(devices)
    ]
    return AllocationResult(DeviceAllocationResult(results), node_selector=places.selector_of(devices))


class _DeviceReach:
    """The nodes from which devices are reachable, for pools that only some nodes can reach."""

    def __init__(self, slices: Sequence[ResourceSlice], node_name: str) -> None:
        self._node_name = node_name
        self._known: dict[tuple[str, str, str], tuple[ResourceSlice, Device]] = {
            (each.spec.driver, each.spec.pool.name, device.name): (each, device)
            for each in sorted(slices, key=lambda each: each.spec.pool.generation)
            for device in each.spec.devices
        }

    def selector_of(self, devices: Sequence[AllocatedDevice]) -> NodeSelector | None:
        """Return the node alone if a device is local to it, otherwise the terms that the devices' slices select."""
        selectors = []
        for each in devices:
            found = self._known.get((each.driver, each.pool, each.device))
            if found is None:
                continue
            record, device = found
            spec = device if record.spec.per_device_node_selection else record.spec
            if spec.node_name or device.binds_to_node:
                field = NodeSelectorRequirement(METADATA_NAME_FIELD, "In", [self._node_name])
                return NodeSelector([NodeSelectorTerm(match_fields=[field])])
            if spec.node_selector is not None:
                selectors += spec.node_selector.node_selector_terms[:1]
        if not selectors:
            return None
        expressions = [each for term in selectors for each in term.match_expressions]
        fields = [each for term in selectors for each in term.match_fields]
        return NodeSelector([NodeSelectorTerm(match_expressions=expressions, match_fields=fields)])
