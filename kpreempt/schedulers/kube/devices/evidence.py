"""Why a node has no devices for a pod's claims, for reports: what is requested, and which claims have it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kpreempt.model.affinity import NodeSelector
from kpreempt.model.devices import DeviceId, ResourceClaim
from kpreempt.schedulers.kube.devices.allocator import Allocator, Attempt
from kpreempt.schedulers.kube.devices.capacity import devices_in_use, results_of
from kpreempt.schedulers.kube.devices.pools import Pool, PoolDevice
from kpreempt.schedulers.kube.devices.search import (
    AllocationError,
    SearchLimitError,
    Wish,
    is_selected,
    tolerates_taints,
)
from kpreempt.schedulers.kube.devices.selectors import HiddenSelectorError, SelectorError, Selectors
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.verdict.details import ClaimUnavailable, DeviceHolder, InsufficientDevices, RejectingSelector

_MAX_HOLDERS = 20
_MAX_VALUES = 5
_PODS = "pods"


def shortage(
    allocator: Allocator, claims: Sequence[ResourceClaim], attempt: Attempt, node_info: NodeInfo, priority: int
) -> InsufficientDevices:
    """Return the first request that cannot be satisfied on the node together with the ones before it.

    ``priority`` is the pod's: only pods of lower priority might be evicted.
    """
    claim_at, request_at = attempt.reached
    key, wishes = attempt.wishes[claim_at].key, attempt.wishes[claim_at].requests[request_at]
    matching = _matching(allocator, key, wishes, attempt.pools, node_info)
    lower = {info.key for info in node_info.pods if info.priority < priority}
    held: dict[DeviceId, list[_Holder]] = {}
    for each in {device.id for device in matching}:
        for claim in allocator.devices.holders.get(each, ()):
            pods = users_of(claim)
            held.setdefault(each, []).append(_Holder(each, claim, pods, bool(pods) and lower.issuperset(pods)))
    taken = [device for device in matching if device.id in allocator.in_use.devices]
    of_lower = [device for device in taken if held.get(device.id) and all(each.is_lower for each in held[device.id])]
    tainted = [
        device
        for device in matching
        if device not in taken and allocator.rules.taints and not any(tolerates_taints(each, device) for each in wishes)
    ]
    holders = [each for device in taken for each in held.get(device.id, ())]
    first = wishes[0]
    available = [device for pool in attempt.pools if not pool.invalid for device in pool.devices]
    are_too_few = not first.alternative and len(matching) < max(first.number, 1)
    return InsufficientDevices(
        claim=key,
        request=first.name,
        device_class=first.device_class.metadata.name,
        alternatives=len(wishes) if first.alternative else 0,
        requested=0 if first.devices is not None else first.number,
        matching=len(matching),
        allocated=len(taken),
        allocated_to_lower=len(of_lower),
        tainted=len(tainted),
        holders=[
            DeviceHolder("/".join(each.device), each.claim.key, list(each.pods), each.is_lower)
            for each in holders[:_MAX_HOLDERS]
        ],
        updating=[str(pool) for pool in attempt.pools if pool.is_incomplete],
        invalid=[f"{pool}: {pool.invalid}" for pool in attempt.pools if pool.invalid],
        fits_without_lower=bool(lower) and _fits_without(allocator, claims, node_info, lower),
        published=len(available) if are_too_few else None,
        rejecting=_rejecting(allocator.devices.selectors, first, available) if are_too_few else [],
    )


def _rejecting(selectors: Selectors, wish: Wish, devices: Iterable[PoolDevice]) -> list[RejectingSelector]:
    """Return the selectors that reject devices, each with those that match all selectors before it."""
    left = list(devices)
    found = []
    of_class, of_request = wish.device_class.spec.selectors, wish.request.selectors
    for index, selector in enumerate((*of_class, *of_request)):
        try:
            rejected = [device for device in left if not selectors.select([selector], device)]
        except (SelectorError, HiddenSelectorError):
            break
        if not rejected:
            continue
        left = [device for device in left if device not in rejected]
        expression = selector.cel.expression if selector.cel is not None else ""
        values: dict[str, Counter[str]] = {}
        for name in selectors.attributes_of(expression):
            for device in rejected:
                value = _value_of(device, *name)
                values.setdefault("/".join(name), Counter())[value] += 1
        shown = {name: dict(each.most_common(_MAX_VALUES)) for name, each in values.items()}
        found.append(RejectingSelector(expression, len(rejected), index < len(of_class), shown))
    return found


def _value_of(device: PoolDevice, domain: str, name: str) -> str:
    """Return the value of an attribute as text; empty if the device does not have it."""
    attributes = device.device.attributes
    attribute = attributes.get(f"{domain}/{name}")
    if attribute is None and domain == device.slice.driver:
        attribute = attributes.get(name)
    typed = attribute.typed if attribute is not None else None
    return "" if typed is None else str(typed[1]).lower() if typed[0] == "bool" else str(typed[1])


def _matching(
    allocator: Allocator, claim: str, wishes: Sequence[Wish], pools: Sequence[Pool], node_info: NodeInfo
) -> list[PoolDevice]:
    """Return the node's devices that match the request or one of its alternatives."""
    selectors, rules = allocator.devices.selectors, allocator.rules

    def is_meant(wish: Wish, device: PoolDevice) -> bool:
        try:
            return is_selected(wish, device, node_info.node, selectors, claim, rules)
        except (AllocationError, HiddenSelectorError):
            # The search did not reach this device, or its selector is unknown.
            return False

    devices = (device for pool in pools if not pool.invalid for device in pool.devices)
    return [device for device in devices if any(is_meant(wish, device) for wish in wishes)]


class _Holder:
    """A claim that has a device, and its pods; ``is_lower`` means that all of these might be evicted."""

    __slots__ = ("claim", "device", "is_lower", "pods")

    def __init__(self, device: DeviceId, claim: ResourceClaim, pods: Sequence[str], is_lower: bool) -> None:
        self.device = device
        self.claim = claim
        self.pods = pods
        self.is_lower = is_lower


def users_of(claim: ResourceClaim) -> list[str]:
    """Return the pods for which the claim is reserved, as ``namespace/name``."""
    return [f"{claim.metadata.namespace}/{each.name}" for each in claim.status.reserved_for if each.resource == _PODS]


def _fits_without(allocator: Allocator, claims: Sequence[ResourceClaim], node_info: NodeInfo, lower: set[str]) -> bool:
    """Return whether there would be devices if those of lower-priority pods on the node were free."""
    devices = allocator.devices
    kept = []
    for claim in devices.claims:
        users = users_of(claim)
        is_complete = bool(users) and len(users) == len(claim.status.reserved_for)
        if not is_complete or not lower.issuperset(users):
            kept.append(claim)
    if len(kept) == len(devices.claims):
        return False
    in_use = devices_in_use(kept, shares=devices.rules.shares)
    try:
        return Allocator(devices, in_use, allocator.steps).allocate(node_info.node, claims).found is not None
    except (AllocationError, SearchLimitError, HiddenSelectorError):
        return False


def unavailable(claims: Iterable[ResourceClaim], node_info: NodeInfo) -> ClaimUnavailable:
    """Return the first of the allocated ``claims`` that the node cannot use."""
    claim = next(iter(claims))
    allocation = claim.status.allocation
    selector = allocation.node_selector if allocation is not None else None
    is_out_of_reach = selector is not None and not selector.matches(node_info.name, node_info.node.labels)
    return ClaimUnavailable(
        claim=claim.key,
        devices=["/".join(each.id) for each in results_of(claim)][:_MAX_HOLDERS],
        reachable_from=_terms(selector) if selector is not None and is_out_of_reach else [],
    )


def _terms(selector: NodeSelector) -> list[str]:
    return [
        " and ".join(
            f"{each.key} {each.operator} {', '.join(each.values)}".rstrip()
            for each in (*term.match_fields, *term.match_expressions)
        )
        for term in selector.node_selector_terms
    ]
