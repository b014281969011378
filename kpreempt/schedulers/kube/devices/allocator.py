"""Finds devices for a pod's claims on each node (``structured/internal/incubating`` of v0.36.3).

Results about the slices of a cluster are cached for all pods and nodes, including the taints that rules put on devices
(``dynamic-resource-allocation`` v0.36.3 ``resourceslice/tracker/tracker.go``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.devices import (
    ALL_DEVICES,
    EXACT_COUNT,
    MAX_RESULTS,
    Device,
    DeviceClass,
    DeviceId,
    DeviceRequest,
    DeviceSubRequest,
    DeviceTaintRule,
    DeviceTaintSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from kpreempt.model.node import Node
from kpreempt.schedulers.kube.devices.capacity import (
    InUse,
    UnrepresentableError,
    devices_in_use,
    has_capacity,
    results_of,
)
from kpreempt.schedulers.kube.devices.pools import Pool, PoolDevice, PoolId, Slices
from kpreempt.schedulers.kube.devices.rules import AllocatorRules, allocator_rules
from kpreempt.schedulers.kube.devices.search import (
    Allocated,
    AllocationError,
    ClaimWishes,
    Counters,
    Search,
    Steps,
    Wish,
    constraint_of,
    is_selected,
)
from kpreempt.schedulers.kube.devices.selectors import Selectors
from kpreempt.schedulers.kube.versions import Behavior

INVALID_POOLS = "invalid resource pools were encountered"
NOT_ALLOCATED = "cannot allocate all claims"


class Devices:
    """The devices of a cluster and their allocations. Immutable."""

    def __init__(self, cluster: ClusterSnapshot, behavior: Behavior) -> None:
        self.rules = allocator_rules(behavior)
        tainting = cluster.device_taint_rules if behavior.dra_device_taint_rules else []
        needs_selector = not behavior.taints_all_devices_without_selector
        slices: Iterable[ResourceSlice] = cluster.resource_slices
        if tainting:
            slices = with_taints(slices, tainting, needs_selector=needs_selector)
        self.slices = Slices(slices, self.rules.pools)
        self.selectors = Selectors(names_devices=self.rules.names_devices)
        self.classes: Mapping[str, DeviceClass] = {each.metadata.name: each for each in cluster.device_classes}
        self.claims = cluster.resource_claims
        self.in_use: InUse = devices_in_use(cluster.resource_claims, shares=self.rules.shares)

    @cached_property
    def holders(self) -> Mapping[DeviceId, Sequence[ResourceClaim]]:
        """The claims that have each device."""
        found: dict[DeviceId, list[ResourceClaim]] = {}
        for claim in self.claims:
            for result in results_of(claim):
                if not result.admin_access:
                    found.setdefault(result.id, []).append(claim)
        return found


class Attempt(NamedTuple):
    """The result of a device search: the devices found for each claim, or why there are none.

    ``reached`` has the indices of the claim and the request at which the search got stuck; ``pools`` are the ones that
    the node can access.
    """

    found: Sequence[Sequence[Allocated]] | None
    wishes: Sequence[ClaimWishes]
    pools: Sequence[Pool]
    reason: str = ""
    reached: tuple[int, int] = (0, 0)


class Allocator:
    """Finds devices for one pod, in the state of the cluster at the start of its scheduling cycle."""

    def __init__(self, devices: Devices, in_use: InUse | None = None, steps: Steps | None = None) -> None:
        """``in_use`` replaces what all claims have; ``steps`` are shared with another allocator."""
        self.devices = devices
        self.rules: AllocatorRules = devices.rules
        self.in_use = devices.in_use if in_use is None else in_use
        self.steps = steps or Steps()
        self._available: dict[PoolId, dict[tuple[str, str], int]] = {}

    def allocate(self, node: Node, claims: Sequence[ResourceClaim]) -> Attempt:
        """Find devices for ``claims`` on the node.

        Raises ``AllocationError`` if a claim or a class is invalid, and ``SearchLimitError``.
        """
        pools = self.devices.slices.pools_of(node)
        wishes = [self._wishes_of(claim, node, pools) for claim in claims]
        search = Search(
            node,
            pools,
            wishes,
            self.in_use,
            self.devices.selectors,
            self.rules,
            Counters(self.in_use, self._available),
            self.steps,
        )
        if search.run():
            return Attempt(search.found, wishes, pools)
        is_invalid = any(pool.invalid for pool in pools) and not self.rules.fails_at_invalid_pools
        return Attempt(None, wishes, pools, INVALID_POOLS if is_invalid else NOT_ALLOCATED, search.reached)

    def fails_by_order(self, node: Node, claims: Sequence[ResourceClaim]) -> bool:
        """Return whether the order of the node's pools decides if the search ends with an error, or with which one.

        It does if a selector fails on a device that the search may not reach, unless all devices have to be checked
        first.
        """
        pools = self.devices.slices.pools_of(node)
        if len(pools) < 2:
            return False
        devices = [device for pool in pools for device in pool.devices]
        try:
            wishes = [self._wishes_of(claim, node, pools) for claim in claims]
        except AllocationError:
            # All devices are checked before the search.
            return False
        for claim in wishes:
            for wish in (wish for alternatives in claim.requests for wish in alternatives):
                if wish.devices is not None and claim.constraints:
                    return True
                try:
                    for device in devices:
                        is_selected(wish, device, node, self.devices.selectors, claim.key, self.rules)
                except AllocationError:
                    return True
        return False

    def _wishes_of(self, claim: ResourceClaim, node: Node, pools: Sequence[Pool]) -> ClaimWishes:
        """Return the claim's requests, with everything that can be computed before the search."""
        requests: list[list[Wish]] = []
        least = 0
        for request in claim.spec.devices.requests:
            key = f"claim {claim.key}, request {request.name}"
            stated: Sequence[ExactDeviceRequest | DeviceSubRequest] = request.first_available
            if stated and not self.rules.alternatives:
                raise AllocationError(f"{key}: has subrequests, but the DRAPrioritizedList feature is disabled")
            if self.rules.rejects_capacity:
                _reject_capacity(claim.key, request, names_alternatives=self.rules.names_alternatives)
            if not stated:
                stated = [request.exactly or ExactDeviceRequest()]
            wishes = [self._wish(claim, request.name, each, node, pools) for each in stated]
            requests.append(wishes)
            fewest = min(wish.number for wish in wishes)
            if self.rules.reports_limit_by_request and fewest > MAX_RESULTS - least:
                raise AllocationError(
                    f"{key}: adding {fewest} devices exceeds the claim limit of {MAX_RESULTS}, with {least} already"
                    " accounted for"
                )
            least += fewest
        if least > MAX_RESULTS:
            raise AllocationError(
                f"claim {claim.key}: number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
            )
        constraints = []
        for index, constrained in enumerate(claim.spec.devices.constraints):
            constraint = constraint_of(constrained, compares_all=self.rules.compares_all)
            if constraint is None or (constrained.match_attribute is None and not self.rules.knows_distinct):
                raise AllocationError(
                    f"claim {claim.key}, constraint #{index}: empty constraint (unsupported constraint type?)"
                )
            constraints.append(constraint)
        return ClaimWishes(claim.key, requests, constraints)

    def _wish(
        self,
        claim: ResourceClaim,
        name: str,
        request: ExactDeviceRequest | DeviceSubRequest,
        node: Node,
        pools: Sequence[Pool],
    ) -> Wish:
        alternative = request.name if isinstance(request, DeviceSubRequest) else ""
        key = f"claim {claim.key}, request {alternative or name}"
        for index, selector in enumerate(request.selectors):
            if selector.cel is None:
                raise AllocationError(f"{key}, selector #{index}: CEL expression empty (unsupported selector type?)")
        if request.derived_attributes and self.rules.names_devices:
            raise AllocationError(f"{key}: cannot handle request with derived attributes, the feature is disabled")
        if request.admin_access is not None and not self.rules.admin_access:
            raise AllocationError(f"{key}: admin access is requested, but the feature is disabled")
        class_name = request.device_class_name
        if not class_name:
            raise AllocationError(f"{key}: missing device class name (unsupported request type?)")
        device_class = self.devices.classes.get(class_name)
        if device_class is None:
            raise AllocationError(
                f"{key}: could not retrieve device class {class_name}:"
                f' deviceclass.resource.k8s.io "{class_name}" not found'
            )
        wish = Wish(request, name, alternative, device_class, request.count)
        if request.allocation_mode == EXACT_COUNT:
            return wish
        if request.allocation_mode != ALL_DEVICES:
            raise AllocationError(f"{key}: unsupported count mode {request.allocation_mode}")
        # All devices that the request matches, allocated or not.
        devices: list[tuple[Pool, PoolDevice]] = []
        for pool in pools:
            if pool.is_incomplete or pool.invalid:
                problem = "being updated" if pool.is_incomplete else "invalid"
                raise AllocationError(f"{key}: asks for all devices, but resource pool {pool} is currently {problem}")
            for device in pool.devices:
                selectors, rules = self.devices.selectors, self.rules
                if is_selected(wish, device, node, selectors, claim.key, rules) and self._can_hold(wish, device, key):
                    devices.append((pool, device))
        return wish._replace(number=len(devices), devices=devices)

    def _can_hold(self, wish: Wish, device: PoolDevice, key: str) -> bool:
        """Return whether the device has the capacity; up to 1.36, in addition to what others have allocated."""
        if not self.rules.shares:
            return True
        consumed = {} if self.rules.counts_every_share else self.in_use.consumed.get(device.id, {})
        try:
            return has_capacity(wish.request.capacity, device.device, consumed, fractions=self.rules.fractions)
        except UnrepresentableError as error:
            raise AllocationError(f"{key}: checking capacity for device {device.device.name}: {error}") from None


def _reject_capacity(claim: str, request: DeviceRequest, *, names_alternatives: bool) -> None:
    """Reject amounts of capacity without the DRAConsumableCapacity gate."""
    exact = request.exactly
    wanting = [each for each in request.first_available if each.capacity is not None]
    if wanting and names_alternatives:
        whose = f"subrequest {wanting[0].name}"
    elif wanting or (exact is not None and exact.capacity is not None):
        whose = f"request {request.name}"
    else:
        return
    raise AllocationError(
        f"claim {claim}, {whose}: has capacity requests, but the DRAConsumableCapacity feature is disabled"
    )


def with_taints(
    slices: Iterable[ResourceSlice], rules: Sequence[DeviceTaintRule], *, needs_selector: bool
) -> Iterator[ResourceSlice]:
    """Return the slices, with each device's own taints followed by those of all rules that match it.

    A rule without a selector matches all devices, or none if it ``needs_selector``.
    """
    rules = [each for each in rules if each.spec.device_selector is not None] if needs_selector else rules
    for record in slices:
        spec = record.spec
        devices = []
        for device in spec.devices:
            taints = [each.spec.taint for each in rules if _means(each.spec.device_selector, device, record)]
            tainted = msgspec.structs.replace(device, taints=[*device.taints, *taints]) if taints else device
            devices.append(tainted)
        if any(new is not old for new, old in zip(devices, spec.devices, strict=True)):
            yield msgspec.structs.replace(record, spec=msgspec.structs.replace(spec, devices=devices))
        else:
            yield record


def _means(selector: DeviceTaintSelector | None, device: Device, record: ResourceSlice) -> bool:
    if selector is None:
        return True
    pairs = (
        (selector.driver, record.spec.driver),
        (selector.pool, record.spec.pool.name),
        (selector.device, device.name),
    )
    return all(requested in (None, own) for requested, own in pairs)
