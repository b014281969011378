"""How full nodes would be, as 1.25 scores it (``plugins/noderesources/resource_allocation.go``)."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.pod import Container, Pod
from kpreempt.model.quantity import ceil_milli, ceil_units
from kpreempt.schedulers.kube.framework.resource_scoring import (
    ResourceScorer,
    ResourceWeight,
    Usage,
    UsageScore,
    balance,
    least_allocated,
    most_allocated,
    weighted,
)
from kpreempt.schedulers.kube.framework.resources import CPU, DEFAULT_CPU_MILLI, DEFAULT_MEMORY_BYTES, MEMORY

_DEFAULTS = {CPU: DEFAULT_CPU_MILLI, MEMORY: DEFAULT_MEMORY_BYTES}


class RequestedScorer(ResourceScorer):
    """What the incoming pod asks for is counted as of old.

    Each container's request is rounded up by itself, and a pod's overhead counts in whole units, CPU too: an overhead
    of 250m adds one thousandth of a core. What other pods took of the node is counted in full.
    """

    def __init__(self, weights: list[ResourceWeight], score: UsageScore, *, use_requested: bool) -> None:
        super().__init__(weights, score, counts_pod_level=False, use_requested=use_requested)
        self._defaults = {} if use_requested else _DEFAULTS

    def requests_of(self, pod: Pod) -> list[int]:
        """What the pod asks for, in the order of the resources: milli-CPU, otherwise units."""
        return [self._request(pod, name) for name, _ in self.weights]

    def _request(self, pod: Pod, name: str) -> int:
        request = sum(self._of_container(container, name) for container in pod.spec.containers)
        for container in pod.spec.init_containers:
            request = max(request, self._of_container(container, name))
        overhead = pod.spec.overhead.get(name)
        return request if overhead is None else request + overhead.value

    def _of_container(self, container: Container, name: str) -> int:
        amount = container.resources.requests.get(name)
        if amount is None:
            return self._defaults.get(name, 0)
        return ceil_milli(amount.nano) if name == CPU else ceil_units(amount.nano)


def least_requested() -> RequestedScorer:
    """The share of CPU and memory that stays free."""
    weights = [ResourceWeight(CPU, 50), ResourceWeight(MEMORY, 50)]
    return RequestedScorer(weights, weighted(weights, least_allocated), use_requested=False)


def most_requested() -> RequestedScorer:
    """The share of CPU and memory that is used."""
    weights = [ResourceWeight(CPU, 1), ResourceWeight(MEMORY, 1)]
    return RequestedScorer(weights, weighted(weights, most_allocated), use_requested=False)


def balanced() -> RequestedScorer:
    """How evenly CPU, memory and, where the pod wants any, GPUs would be used."""
    weights = [ResourceWeight(CPU, 1), ResourceWeight(MEMORY, 1), ResourceWeight("nvidia.com/gpu", 1)]
    return RequestedScorer(weights, _balance, use_requested=True)


def _balance(usages: Sequence[Usage]) -> int:
    """100 where all shares are equal."""
    return balance([usage.requested / usage.allocatable for usage in usages if usage.allocatable])
