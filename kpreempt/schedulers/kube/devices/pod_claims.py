"""The claims of a pod, and whether allocated ones can be used on a node.

Follows ``dynamic-resource-allocation`` v0.36.3 ``resourceclaim/resourceclaim.go`` and
``plugins/dynamicresources/dynamicresources.go`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from kpreempt.model.devices import AllocatedDeviceStatus, AllocationResult, DeviceResult, ResourceClaim
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod, PodResourceClaim

REASON_NOT_CREATED = "ResourceClaim not created yet"


class NoClaimError(Exception):
    """A claim of the pod is not there, or is not its own; ``str`` is upstream's text, ``claim`` its key if known."""

    def __init__(self, message: str, claim: str = "") -> None:
        super().__init__(message)
        self.claim = claim


def claim_name_of(pod: Pod, reference: PodResourceClaim) -> str | None:
    """The name of the claim; ``None`` where none is made for it. Raises ``NoClaimError``."""
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    if reference.resource_claim_template_name is None:
        raise NoClaimError(
            f'pod "{pod.key}", spec.resourceClaim "{reference.name}": none of the supported fields are set'
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name
    raise NoClaimError(f'pod "{pod.key}": {REASON_NOT_CREATED}')


def claims_of(pod: Pod, claims: Mapping[str, ResourceClaim], *, kind: str = "Pod") -> list[ResourceClaim]:
    """The pod's claims in its order, from ``claims`` by ``namespace/name``. Raises ``NoClaimError``.

    ``kind`` is what the version calls a pod whose claim was not created for it.
    """
    found = []
    for reference in pod.spec.resource_claims:
        name = claim_name_of(pod, reference)
        if name is None:
            continue
        key = f"{pod.metadata.namespace}/{name}"
        claim = claims.get(key)
        if claim is None:
            raise NoClaimError(f'could not find ResourceClaim "{key}"', key)
        if claim.metadata.deletion_timestamp is not None:
            raise NoClaimError(f'resourceclaim "{name}" is being deleted', key)
        if reference.resource_claim_name is None:
            owner = controller_of(claim.metadata)
            if owner is None or owner.uid != pod.metadata.uid:
                message = f"ResourceClaim {key} was not created for {kind} {pod.key} ({kind} is not owner)"
                raise NoClaimError(message, key)
        found.append(claim)
    return found


def has_failed_to_bind(claim: ResourceClaim, now: datetime, timeout: timedelta) -> bool:
    """Whether the devices of an allocated claim could not be made ready, or not within ``timeout``."""
    allocation = claim.status.allocation
    assert allocation is not None
    is_ready = _is_ready(claim, allocation)
    if is_ready is None:
        return True
    since = allocation.allocation_timestamp
    if is_ready or since is None:
        return False
    return any(each.binding_conditions for each in allocation.devices.results) and since + timeout < now


def _is_ready(claim: ResourceClaim, allocation: AllocationResult) -> bool | None:
    """Whether the drivers have made all devices ready; ``None`` where one failed. The first that is not decides."""
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        status = _status_of(claim, result)
        if status is None:
            return False
        holding = {each.type for each in status.conditions if each.status == "True"}
        if not holding.isdisjoint(result.binding_failure_conditions):
            return None
        if not holding.issuperset(result.binding_conditions):
            return False
    return True


def _status_of(claim: ResourceClaim, result: DeviceResult) -> AllocatedDeviceStatus | None:
    return next((each for each in claim.status.devices if (each.driver, each.pool, each.device) == result.id), None)
