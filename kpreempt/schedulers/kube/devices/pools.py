"""The device pools that a node can access (``structured/internal/incubating/pools_incubating.go``, v0.36.3).

Outdated slices of a pool do not count. A pool may be incomplete, while its driver is still writing it, or invalid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kpreempt.model.affinity import NodeSelector
from kpreempt.model.devices import CounterSet, Device, DeviceId, ResourceSlice
from kpreempt.model.node import Node

PoolId = tuple[str, str]


class PoolDevice:
    """A device of a slice. Each is created once per cluster, so that results about it can be cached by identity."""

    __slots__ = ("device", "id", "slice")

    def __init__(self, device: Device, slice_: Slice) -> None:
        self.device = device
        self.slice = slice_
        self.id: DeviceId = (*slice_.pool_id, device.name)


class Slice:
    """A slice with its devices."""

    __slots__ = ("devices", "name", "pool_id", "record", "spec", "waits_for_conditions")

    def __init__(self, record: ResourceSlice) -> None:
        self.record = record
        self.name = record.metadata.name
        self.spec = record.spec
        self.pool_id: PoolId = (record.spec.driver, record.spec.pool.name)
        self.devices = [PoolDevice(device, self) for device in record.spec.devices]
        self.waits_for_conditions = any(device.binding_conditions for device in record.spec.devices)

    @property
    def driver(self) -> str:
        return self.pool_id[0]


class Pool(NamedTuple):
    """The part of a pool that a node can access, in the order in which devices are tried.

    ``elsewhere`` are devices of the pool that the node cannot access. If ``invalid`` has a reason, nothing in the pool
    can be allocated. From 1.35 on, neither can anything in one that ``is_incomplete``, which then has no devices.
    """

    id: PoolId
    devices: Sequence[PoolDevice] = ()
    elsewhere: Sequence[PoolDevice] = ()
    counters: Mapping[str, CounterSet] = {}
    is_incomplete: bool = False
    invalid: str = ""

    def __str__(self) -> str:
        return "/".join(self.id)


class PoolRules(NamedTuple):
    """What differs between versions and gates.

    ``partitions`` means that devices may share counters and be on different nodes; with ``finds_counters_everywhere``,
    the slices with counters need not be accessible to the node. ``uses_incomplete`` is the behavior of 1.34: only the
    part that the node can access counts, and an incomplete pool still provides devices.
    """

    partitions: bool = True
    uses_incomplete: bool = False
    rejects_compatibility_groups: bool = False
    finds_counters_everywhere: bool = False


class Slices:
    """All slices of a cluster, by node and by pool."""

    def __init__(self, slices: Iterable[ResourceSlice], rules: PoolRules) -> None:
        self._rules = rules
        self.all = list(map(Slice, slices))
        self._of_node: dict[str, list[Slice]] = {}
        self._shared: list[Slice] = []
        self._of_pool: dict[PoolId, list[Slice]] = {}
        # What nodes can access, which no pod changes; cached if each has its own pools.
        self._reached: dict[str, list[Pool]] = {}
        for each in self.all:
            self._of_pool.setdefault(each.pool_id, []).append(each)
            if rules.partitions or not (each.spec.per_device_node_selection is not None or each.spec.shared_counters):
                is_local = each.spec.node_name and (rules.finds_counters_everywhere or not each.spec.shared_counters)
                (self._of_node.setdefault(each.spec.node_name or "", []) if is_local else self._shared).append(each)

    def pools_of(self, node: Node) -> list[Pool]:
        """Return the pools that the node can access, in the order in which they are tried."""
        if self._shared:
            return self._gathered(node)
        if node.name not in self._reached:
            self._reached[node.name] = self._gathered(node)
        return self._reached[node.name]

    def _gathered(self, node: Node) -> list[Pool]:
        by_pool: dict[PoolId, list[Slice]] = {}
        for each in (*self._of_node.get(node.name, ()), *self._shared):
            if not self._is_relevant(each, node):
                continue
            # Only the slices of the newest generation count.
            known = by_pool.setdefault(each.pool_id, [])
            generation = each.spec.pool.generation
            if known and generation > known[0].spec.pool.generation:
                known.clear()
            if not known or generation == known[0].spec.pool.generation:
                known.append(each)
        first: list[Pool] = []
        last: list[Pool] = []
        for pool_id in sorted(by_pool):
            slices = by_pool[pool_id]
            pool = self._pool(pool_id, slices)
            if pool is not None:
                has_conditions = bool(pool.devices) and any(each.waits_for_conditions for each in slices)
                (last if has_conditions else first).append(pool)
        return first + last

    def _is_relevant(self, slice_: Slice, node: Node) -> bool:
        spec = slice_.spec
        if self._rules.rejects_compatibility_groups and _has_groups(slice_):
            return False
        if spec.shared_counters and not self._rules.finds_counters_everywhere:
            return True
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return reaches(node, spec.node_name, spec.all_nodes, spec.node_selector)
        if spec.per_device_node_selection:
            return any(is_for(node, each.device) for each in slice_.devices)
        return False

    def _pool(self, pool_id: PoolId, slices: list[Slice]) -> Pool | None:
        """Return the pool of the slices that the node can access; ``None`` if they are outdated."""
        pool = slices[0].spec.pool
        whole: list[Slice] = []
        is_complete = len(slices) == pool.resource_slice_count
        if self._rules.uses_incomplete:
            built = self._built(pool_id, sorted(slices, key=lambda each: each.name), whole)
            return built._replace(is_incomplete=not is_complete)
        if not is_complete:
            whole = [each for each in self._of_pool[pool_id] if each.spec.pool.generation == pool.generation]
            if any(each.spec.pool.generation > pool.generation for each in self._of_pool[pool_id]):
                return None
            if self._rules.rejects_compatibility_groups:
                whole = [each for each in whole if not _has_groups(each)]
            if len(whole) != pool.resource_slice_count:
                return Pool(pool_id, is_incomplete=True)
        return self._built(pool_id, sorted(slices, key=lambda each: each.name), whole)

    def _built(self, pool_id: PoolId, slices: list[Slice], whole: list[Slice]) -> Pool:
        names = {each.name for each in slices}
        others = [each for each in whole if each.name not in names]
        with_counters = [each for each in slices if self._rules.partitions and each.spec.shared_counters]
        if self._rules.finds_counters_everywhere and self._rules.partitions:
            with_counters += [each for each in others if each.spec.shared_counters]
            others = [each for each in others if not each.spec.shared_counters]
        devices = [
            device
            for each in slices
            if not (self._rules.partitions and each.spec.shared_counters)
            for device in each.devices
        ]
        problem = _duplicate("device", [device.device.name for device in devices])
        if problem or not self._rules.partitions:
            return Pool(pool_id, devices, invalid=problem)
        sets = [each for slice_ in with_counters for each in slice_.spec.shared_counters]
        counters = {each.name: each for each in sets}
        elsewhere = [device for each in others for device in each.devices]
        problem = (
            _duplicate("counter set", [each.name for each in sets])
            or _missing_counter(counters, devices)
            or _missing_counter(counters, elsewhere)
        )
        return Pool(pool_id, devices, elsewhere, counters, invalid=problem)


def is_for(node: Node, device: Device) -> bool:
    """Return whether a device with its own node selection is accessible from the node."""
    return reaches(node, device.node_name, device.all_nodes, device.node_selector)


def reaches(node: Node, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> bool:
    """Return whether the node is selected: by name, as any node, or by a selector; only the first one set counts."""
    if node_name:
        return node.name == node_name
    return bool(all_nodes) or (selector is not None and selector.matches(node.name, node.labels))


def _has_groups(slice_: Slice) -> bool:
    return any(each.compatibility_groups for device in slice_.devices for each in device.device.consumes_counters)


def _duplicate(what: str, names: Sequence[str]) -> str:
    if len(set(names)) == len(names):
        return ""
    # The first duplicate.
    return f"duplicate {what} name {next(name for at, name in enumerate(names) if name in names[:at])}"


def _missing_counter(counters: Mapping[str, CounterSet], devices: Iterable[PoolDevice]) -> str:
    for each in devices:
        for consumption in each.device.consumes_counters:
            known = counters.get(consumption.counter_set)
            if known is None:
                return f"counter set {consumption.counter_set} not found"
            for name in consumption.counters:
                if name not in known.counters:
                    return f"counter {name} not found in counter set {consumption.counter_set}"
    return ""
