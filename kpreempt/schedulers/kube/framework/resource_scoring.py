"""Scores that depend on how full a node is or would be.

Follows ``plugins/noderesources/resource_allocation.go`` of v1.36.3 and the strategies next to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kpreempt.model.pod import Container, Pod
from kpreempt.model.quantity import ceil_milli, ceil_units, wrap_int64
from kpreempt.schedulers.kube.framework.arg_types import invalid, required
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    NON_MISSING_REQUESTS,
    is_scalar_resource,
    pod_requests,
)

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.bulk.node_amounts import Amounts
    from kpreempt.schedulers.kube.bulk.pod_table import Integers

MAX_UTILIZATION = 100
# Scores of a configured shape range up to 10.
MAX_CUSTOM_PRIORITY_SCORE = 10


class ResourceWeight(NamedTuple):
    """A resource that counts, and its weight."""

    name: str
    weight: int


class Usage(NamedTuple):
    """One resource on one node: requested including the pod, allocated now, allocatable. All 0 if it does not count."""

    requested: int
    allocated: int
    allocatable: int


# Maps each resource's usage to a score of 0 to 100.
UsageScore = Callable[[Sequence[Usage]], int]


# How many devices provide a resource on a node, and how many of them are in use.
CountDevices = Callable[[str, NodeInfo], tuple[int, int]]


class ResourceScorer:
    """Collects the usage of the configured resources and passes it to a scoring function.

    With ``use_requested``, pods count with their actual requests; otherwise containers without requests count as 100m
    and 200Mi. With ``rounds_by_container``, the incoming pod counts as in older versions: each container's request is
    rounded up on its own, and overhead counts in whole units, even for CPU: an overhead of 250m adds one thousandth of
    a core.
    """

    def __init__(
        self,
        weights: list[ResourceWeight],
        score: UsageScore,
        *,
        counts_pod_level: bool,
        use_requested: bool,
        rounds_by_container: bool = False,
        devices: CountDevices | None = None,
    ) -> None:
        """``devices`` counts those that provide a resource on a node that does not offer it itself."""
        self._devices = devices
        self.weights = weights
        self.usage_score = score
        self._counts_pod_level = counts_pod_level
        self._use_requested = use_requested
        self._rounds_by_container = rounds_by_container

    def requests_of(self, pod: Pod) -> list[int]:
        """Return the pod's requests in the order of the resources: milli-CPU, otherwise units."""
        if self._rounds_by_container:
            return [self._rounded_request(pod, name) for name, _ in self.weights]
        requests = pod_requests(
            pod,
            pod_level=self._counts_pod_level,
            non_missing=None if self._use_requested else NON_MISSING_REQUESTS,
        )
        return [_rounded(name, requests.get(name, 0)) for name, _ in self.weights]

    def _rounded_request(self, pod: Pod, name: str) -> int:
        missing = 0 if self._use_requested else NON_MISSING_REQUESTS.get(name, 0)

        def of(container: Container) -> int:
            amount = container.resources.requests.get(name)
            return _rounded(name, missing if amount is None else amount.nano)

        request = max([sum(map(of, pod.spec.containers)), *map(of, pod.spec.init_containers)])
        overhead = pod.spec.overhead.get(name)
        return request if overhead is None else request + overhead.value

    def score(self, requests: list[int], node_info: NodeInfo) -> int:
        """Return the node's score for a pod with ``requests``."""
        usages = []
        for (name, _), request in zip(self.weights, requests, strict=True):
            allocatable, allocated = 0, 0
            if request or not is_scalar_resource(name):
                allocatable, allocated = self.on_node(name, node_info)
            usages.append(Usage(allocated + request, allocated, allocatable) if allocatable else Usage(0, 0, 0))
        return self.usage_score(usages)

    def on_node(self, name: str, node_info: NodeInfo) -> tuple[int, int]:
        """Return the allocatable and the allocated amount of a resource on a node."""
        total, used = node_info.allocatable, node_info.requested
        if name == CPU:
            return total.milli_cpu, used.milli_cpu if self._use_requested else node_info.non_zero_milli_cpu
        if name == MEMORY:
            return total.memory, used.memory if self._use_requested else node_info.non_zero_memory
        if name == EPHEMERAL_STORAGE:
            return total.ephemeral_storage, used.ephemeral_storage
        if self._devices is not None and not total.scalar.get(name):
            served = self._devices(name, node_info)
            if served[0]:
                return served
        return total.scalar.get(name, 0), used.scalar.get(name, 0)

    def in_columns(self, name: str, amounts: Amounts) -> tuple[Integers, Integers]:
        """Return the same for CPU or memory, of many nodes."""
        if name == CPU:
            used = amounts.used_milli_cpu if self._use_requested else amounts.non_zero_milli_cpu
            return amounts.milli_cpu, used
        return amounts.memory, amounts.used_memory if self._use_requested else amounts.non_zero_memory


def allocation_scorer(args: Mapping[str, object]) -> tuple[UsageScore, list[ResourceWeight]]:
    """Return the scoring function and resources of NodeResourcesFit's ``scoringStrategy``."""
    strategy = args.get("scoringStrategy")
    assert isinstance(strategy, Mapping)
    weights = resource_weights(strategy.get("resources"))
    kind = strategy.get("type")
    if kind == "MostAllocated":
        return WeightedMean(weights, most_allocated), weights
    if kind == "RequestedToCapacityRatio":
        ratio = strategy.get("requestedToCapacityRatio")
        points = ratio.get("shape") if isinstance(ratio, Mapping) else None
        assert isinstance(points, list)
        scale = MAX_NODE_SCORE // MAX_CUSTOM_PRIORITY_SCORE
        return requested_to_capacity_ratio(
            weights, [(int(point.get("utilization") or 0), int(point.get("score") or 0) * scale) for point in points]
        ), weights
    return WeightedMean(weights, least_allocated), weights


def resource_weights(resources: object) -> list[ResourceWeight]:
    """Return the resources in a plugin's arguments; a missing weight is 1."""
    assert isinstance(resources, list)
    return [ResourceWeight(str(spec["name"]), int(spec.get("weight") or 1)) for spec in resources]


def weighted_resources(resources: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Return the resources in a plugin's arguments with loading's defaults: CPU and memory if there are none."""
    given = resources or ({"name": CPU}, {"name": MEMORY})
    return [{"name": "", **resource, "weight": resource.get("weight") or 1} for resource in given]


class WeightedMean:
    """The weighted mean of each resource's score."""

    def __init__(self, weights: Sequence[ResourceWeight], rate: Callable[[int, int], int]) -> None:
        self.rate = rate
        self._weights = weights

    def __call__(self, usages: Sequence[Usage]) -> int:
        """Return the mean over the resources that count; 0 if none does."""
        total = weight_sum = 0
        for (_, weight), usage in zip(self._weights, usages, strict=True):
            if usage.allocatable:
                total += self.rate(usage.requested, usage.allocatable) * weight
                weight_sum += weight
        return total // weight_sum if weight_sum else 0


def least_allocated(requested: int, capacity: int) -> int:
    """Return the share that stays free, 0 to 100."""
    return 0 if requested > capacity else _share_of(capacity - requested, capacity)


def most_allocated(requested: int, capacity: int) -> int:
    """Return the share that is used, 0 to 100."""
    return _share_of(min(requested, capacity), capacity)


def requested_to_capacity_ratio(weights: list[ResourceWeight], shape: list[tuple[int, int]]) -> UsageScore:
    """Return the weighted mean of a piecewise linear function of the used share; scores of 0 do not count."""

    def score(usages: Sequence[Usage]) -> int:
        total = weight_sum = 0
        for (_, weight), usage in zip(weights, usages, strict=True):
            if not usage.allocatable:
                continue
            is_over = usage.requested > usage.allocatable
            utilization = MAX_UTILIZATION if is_over else _share_of(usage.requested, usage.allocatable)
            rating = piecewise_linear(shape, utilization)
            if rating > 0:
                total += rating * weight
                weight_sum += weight
        # Go's math.Round: halves away from zero.
        return math.floor(total / weight_sum + 0.5) if weight_sum else 0

    return score


def _share_of(part: int, whole: int) -> int:
    """Return ``part`` in percent of ``whole`` as Go computes it: with 64-bit overflow and division toward zero."""
    product = wrap_int64(part * MAX_UTILIZATION)
    return product // whole if product >= 0 else -(-product // whole)


def piecewise_linear(shape: list[tuple[int, int]], utilization: int) -> int:
    """Interpolate ``shape`` at ``utilization``, flat beyond its ends, truncated as in Go's division."""
    for index, (end, value) in enumerate(shape):
        if utilization <= end:
            if index == 0:
                return value
            start, start_value = shape[index - 1]
            rise = (value - start_value) * (utilization - start)
            return start_value + (abs(rise) // (end - start)) * (1 if rise >= 0 else -1)
    return shape[-1][1]


def balanced_allocation(usages: Sequence[Usage]) -> int:
    """Return how much the pod improves the balance between resources: 50 to 100, about 75 for no change."""
    counted = [usage for usage in usages if usage.allocatable]
    with_pod = balance([usage.requested / usage.allocatable for usage in counted])
    without_pod = balance([usage.allocated / usage.allocatable for usage in counted])
    half = MAX_NODE_SCORE // 2
    return half + int((half + with_pod - without_pod) / 2)


def balance_afterwards(usages: Sequence[Usage]) -> int:
    """Return how evenly the resources would be used, regardless of the current balance: the score before 1.36."""
    return balance([usage.requested / usage.allocatable for usage in usages if usage.allocatable])


def balance(fractions: list[float]) -> int:
    """Return 100 if all shares are equal, minus their standard deviation."""
    shares = [min(fraction, 1.0) for fraction in fractions]
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        total = 0.0
        for share in shares:
            total += share
        mean = total / len(shares)
        squares = 0.0
        for share in shares:
            squares += (share - mean) * (share - mean)
        deviation = math.sqrt(squares / len(shares))
    return int((1 - deviation) * MAX_NODE_SCORE)


def _rounded(name: str, nano: int) -> int:
    """Convert an exact amount of a resource to the unit that counts: milli-CPU, otherwise units."""
    return ceil_milli(nano) if name == CPU else ceil_units(nano)


def shape_problems(path: str, shape: Sequence[Mapping[str, Any]], *, names_utilization: bool = False) -> list[str]:
    """List what is wrong with a configured shape at ``path``; older versions' messages name what must be sorted."""
    if not shape:
        return [required(path, "at least one point must be specified")]
    points = [(point.get("utilization", 0), point.get("score", 0)) for point in shape]
    problems = []
    for index in range(1, len(points)):
        if points[index - 1][0] >= points[index][0]:
            location = f"{path}[{index}].utilization"
            what = "utilization values" if names_utilization else "values"
            problems.append(invalid(location, points[index][0], f"{what} must be sorted in increasing order"))
            break
    for index, (utilization, score) in enumerate(points):
        if not 0 <= utilization <= 100:
            problems.append(invalid(f"{path}[{index}].utilization", utilization, "not in valid range [0, 100]"))
        if not 0 <= score <= MAX_CUSTOM_PRIORITY_SCORE:
            detail = f"not in valid range [0, {MAX_CUSTOM_PRIORITY_SCORE}]"
            problems.append(invalid(f"{path}[{index}].score", score, detail))
    return problems
