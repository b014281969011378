"""Amounts of resources with Volcano's arithmetic.

Follows ``pkg/scheduler/api/resource_info.go`` and ``pkg/scheduler/api/helpers/helpers.go`` of Volcano v1.8.0. CPU and
scalars are in thousandths, memory is in bytes, all as 64-bit floats as upstream, because shares and limits are computed
from them. Whether a resource has a map of scalars at all (``None`` or not) changes the result of several operations.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from enum import Enum

from kpreempt.model.pod import Pod, ResourceList
from kpreempt.schedulers.kube.framework.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_scalar_resource

# Smaller amounts count as nothing, and a smaller difference as equality.
EPSILON = 0.1
# The amount that stands for no limit.
UNLIMITED = 1.7976931348623157e308
# Counted by a separate plugin, not as scalars.
DEVICES = frozenset(
    {"volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores"},
)


class Missing(Enum):
    """The value of a scalar on the side that does not name it."""

    ZERO = 0.0
    INFINITY = -1.0


# The panic message of a nil dereference.
NIL = "runtime error: invalid memory address or nil pointer dereference"


class SchedulerPanicError(Exception):
    """The real scheduler panics here; the message is upstream's. ``on`` is the object it panics on, if known."""

    def __init__(self, message: str, on: str = "") -> None:
        super().__init__(message)
        self.on = on


class Resource:
    """An amount of each resource. Operations change it in place if Volcano's do."""

    __slots__ = ("cpu", "max_tasks", "memory", "scalars")

    def __init__(
        self, cpu: float = 0.0, memory: float = 0.0, scalars: dict[str, float] | None = None, max_tasks: int = 0
    ) -> None:
        self.cpu = cpu
        self.memory = memory
        self.scalars = scalars
        # The number of pods; no operation counts it.
        self.max_tasks = max_tasks

    @classmethod
    def from_quantities(cls, quantities: ResourceList) -> Resource:
        """Convert a resource list; object counts and names that Kubernetes does not count are dropped."""
        made = cls()
        for name, amount in quantities.items():
            if name == CPU:
                made.cpu += float(amount.milli_value)
            elif name == MEMORY:
                made.memory += float(amount.value)
            elif name == PODS:
                made.max_tasks += amount.value
            elif is_counted(name):
                made.add_scalar(name, float(amount.milli_value))
        return made

    def __repr__(self) -> str:
        scalars = "".join(f", {name} {amount:.2f}" for name, amount in sorted((self.scalars or {}).items()))
        return f"cpu {self.cpu:.2f}, memory {self.memory:.2f}{scalars}"

    def clone(self) -> Resource:
        return Resource(self.cpu, self.memory, None if self.scalars is None else dict(self.scalars), self.max_tasks)

    def is_same(self, other: Resource) -> bool:
        """Return whether both are exactly equal; missing and empty scalar maps differ (``reflect.DeepEqual``)."""
        return (
            self.cpu == other.cpu
            and self.memory == other.memory
            and self.max_tasks == other.max_tasks
            and self.scalars == other.scalars
        )

    def names(self) -> list[str]:
        """Return the resources with a nonzero amount: CPU, memory, then scalars by name."""
        found = [name for name, amount in ((CPU, self.cpu), (MEMORY, self.memory)) if amount >= EPSILON]
        return found + sorted(name for name, amount in (self.scalars or {}).items() if amount >= EPSILON)

    def get(self, name: str) -> float:
        """Return the amount of a resource, 0 if it is not named."""
        if name == CPU:
            return self.cpu
        if name == MEMORY:
            return self.memory
        return (self.scalars or {}).get(name, 0.0)

    def is_empty(self) -> bool:
        """Return whether all amounts are zero."""
        return not self.names()

    def add(self, other: Resource) -> Resource:
        """Add ``other``; return this amount."""
        self.cpu += other.cpu
        self.memory += other.memory
        for name, amount in (other.scalars or {}).items():
            self.add_scalar(name, amount)
        return self

    def add_scalar(self, name: str, amount: float) -> None:
        if self.scalars is None:
            self.scalars = {}
        self.scalars[name] = self.scalars.get(name, 0.0) + amount

    def sub(self, other: Resource, on: str = "") -> Resource:
        """Subtract ``other``; raise ``SchedulerPanicError`` if this amount is smaller. ``on`` names the object."""
        if not other.less_equal(self, Missing.ZERO):
            raise SchedulerPanicError(f"resource is not sufficient to do operation: <{self}> sub <{other}>", on)
        return self.sub_unchecked(other)

    def sub_unchecked(self, other: Resource) -> Resource:
        """Subtract ``other``, which may give negative amounts. Scalars are unchanged if this has no map of them."""
        self.cpu -= other.cpu
        self.memory -= other.memory
        if self.scalars is not None:
            for name, amount in (other.scalars or {}).items():
                self.scalars[name] = self.scalars.get(name, 0.0) - amount
        return self

    def multiply(self, ratio: float) -> Resource:
        """Multiply every amount; return this amount."""
        self.cpu *= ratio
        self.memory *= ratio
        if self.scalars is not None:
            self.scalars = {name: amount * ratio for name, amount in self.scalars.items()}
        return self

    def raise_to(self, other: Resource) -> None:
        """Raise every amount to that of ``other`` if it is larger (``SetMaxResource``)."""
        self.cpu = max(self.cpu, other.cpu)
        self.memory = max(self.memory, other.memory)
        if not other.scalars:
            return
        if self.scalars is None:
            self.scalars = dict(other.scalars)
            return
        for name, amount in other.scalars.items():
            if name not in self.scalars or amount > self.scalars[name]:
                self.scalars[name] = amount

    def less(self, other: Resource, missing: Missing) -> bool:
        """Return whether every amount is less, without tolerance."""
        return self._all(other, missing, operator.lt)

    def less_equal(self, other: Resource, missing: Missing) -> bool:
        """Return whether every amount is less or almost equal."""
        return self._all(other, missing, _is_less_equal)

    def _all(self, other: Resource, missing: Missing, holds: Callable[[float, float], bool]) -> bool:
        if not (holds(self.cpu, other.cpu) and holds(self.memory, other.memory)):
            return False
        mine, theirs = self.scalars or {}, other.scalars or {}
        if missing is Missing.INFINITY and any(name not in mine for name in theirs):
            return False
        # A loop instead of all(), because this runs for every task and node.
        for name, amount in mine.items():
            if not ((name not in theirs and missing is Missing.INFINITY) or holds(amount, theirs.get(name, 0.0))):
                return False
        return True

    def exceeding(self, other: Resource) -> list[str]:
        """Return the resources in which this exceeds ``other``: CPU, memory, then scalars by name.

        Upstream takes scalars in map order (``LessEqualWithResourcesName`` with ``Zero``).
        """
        names = [] if _is_less_equal(self.cpu, other.cpu) else [CPU]
        if not _is_less_equal(self.memory, other.memory):
            names.append(MEMORY)
        theirs = other.scalars or {}
        return names + sorted(
            name for name, amount in (self.scalars or {}).items() if not _is_less_equal(amount, theirs.get(name, 0.0))
        )

    def less_partly(self, other: Resource, missing: Missing) -> bool:
        """Return whether any amount is less, without tolerance."""
        return self._any(other, missing, operator.lt)

    def less_equal_partly(self, other: Resource, missing: Missing) -> bool:
        """Return whether any amount is less or almost equal."""
        return self._any(other, missing, _is_less_equal)

    def _any(self, other: Resource, missing: Missing, holds: Callable[[float, float], bool]) -> bool:
        if holds(self.cpu, other.cpu) or holds(self.memory, other.memory):
            return True
        mine, theirs = self.scalars or {}, other.scalars or {}
        if missing is Missing.ZERO and any(name not in mine for name in theirs):
            return True
        return any(
            (name not in theirs and missing is Missing.INFINITY) or holds(amount, theirs.get(name, 0.0))
            for name, amount in mine.items()
        )

    def equals(self, other: Resource) -> bool:
        """Return whether the amounts named here are almost equal to those of ``other``."""
        pairs = ((self.get(name), other.get(name)) for name in (CPU, MEMORY, *(self.scalars or ())))
        return all(mine == theirs or abs(mine - theirs) < EPSILON for mine, theirs in pairs)

    def difference(self, other: Resource, missing: Missing) -> tuple[Resource, Resource]:
        """Return how much more and how much less this has of each resource; -1 means no limit."""
        mine, theirs = dict(self.scalars or {}), dict(other.scalars or {})
        for name in mine:
            theirs.setdefault(name, missing.value)
        for name in theirs:
            mine.setdefault(name, missing.value)
        more, less = Resource(scalars={}), Resource(scalars={})
        more.cpu, less.cpu = max(self.cpu - other.cpu, 0.0), max(other.cpu - self.cpu, 0.0)
        more.memory, less.memory = max(self.memory - other.memory, 0.0), max(other.memory - self.memory, 0.0)
        assert more.scalars is not None and less.scalars is not None
        for name, amount in mine.items():
            their = theirs[name]
            if amount == Missing.INFINITY.value:
                more.scalars[name] = amount
            elif their == Missing.INFINITY.value:
                less.scalars[name] = their
            elif amount > their:
                more.scalars[name] = amount - their
            else:
                less.scalars[name] = their - amount
        return more, less

    def lower_to(self, other: Resource, missing: Missing) -> Resource:
        """Lower every amount to that of ``other`` if it is smaller (``MinDimensionResource``)."""
        self.cpu = min(self.cpu, other.cpu)
        self.memory = min(self.memory, other.memory)
        if self.scalars is None:
            return self
        theirs = other.scalars or {}
        for name, amount in self.scalars.items():
            if name in theirs:
                self.scalars[name] = min(amount, theirs[name])
            elif missing is Missing.ZERO:
                self.scalars[name] = 0.0
        return self


def is_counted(name: str) -> bool:
    """Return whether Volcano counts a resource other than CPU, memory and pods."""
    if name == EPHEMERAL_STORAGE:
        return True
    return not name.startswith("count/") and is_scalar_resource(name) and name not in DEVICES


def smaller(left: Resource, right: Resource) -> Resource:
    """Return the smaller of each amount; scalars only if both have a map of them (``helpers.Min``)."""
    made = Resource(min(left.cpu, right.cpu), min(left.memory, right.memory))
    if left.scalars is not None and right.scalars is not None:
        made.scalars = {name: min(amount, right.scalars.get(name, 0.0)) for name, amount in left.scalars.items()}
    return made


def larger(left: Resource, right: Resource) -> Resource:
    """Return the larger of each amount; scalars that are not positive are dropped (``helpers.Max``)."""
    made = Resource(max(left.cpu, right.cpu), max(left.memory, right.memory))
    if left.scalars is None and right.scalars is None:
        return made
    made.scalars = {name: amount for name, amount in (left.scalars or {}).items() if amount > 0}
    for name, amount in (right.scalars or {}).items():
        if amount > 0:
            made.scalars[name] = max(amount, made.scalars.get(name, 0.0))
    return made


def share_of(part: float, whole: float) -> float:
    """Return ``part / whole``; if ``whole`` is 0, return 0 for nothing and 1 for anything (``helpers.Share``)."""
    if whole == 0:
        return 0.0 if part == 0 else 1.0
    return part / whole


def request_of(pod: Pod) -> Resource:
    """Return the request of a pod: its containers and overhead, or an init container if that is larger.

    Sidecars count as init containers (``pkg/scheduler/api/pod_info.go``, ``GetPodResourceRequest``).
    """
    total = Resource()
    for container in pod.spec.containers:
        total.add(Resource.from_quantities(container.resources.requests))
    if pod.spec.overhead:
        total.add(Resource.from_quantities(pod.spec.overhead))
    for container in pod.spec.init_containers:
        total.raise_to(Resource.from_quantities(container.resources.requests))
    return total


def _is_less_equal(left: float, right: float) -> bool:
    return left < right or abs(left - right) < EPSILON
