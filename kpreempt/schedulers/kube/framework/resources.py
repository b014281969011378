"""How much a pod asks for.

Follows ``k8s.io/component-helpers`` v0.36.3 ``resource/helpers.go`` (``PodRequests``) and ``k8s.io/kubernetes`` v1.36.3
``pkg/scheduler/framework/types.go`` (``Resource``). Sums are exact, in 1e-9 units, and rounded up once at the end.
"""

from __future__ import annotations

from collections.abc import Mapping

from kpreempt.model.pod import Pod, ResourceList
from kpreempt.model.quantity import NANO_PER_MILLI, NANO_PER_UNIT, ceil_milli, ceil_units
from kpreempt.schedulers.kube.framework.container_requests import (
    NanoRequests,
    Resizes,
    add,
    container_requests,
    is_resize_infeasible,
    is_sidecar,
    largest,
    nano,
    own_requests,
)

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGE_PAGES_PREFIX = "hugepages-"
NATIVE_PREFIX = "kubernetes.io/"
ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"

# What a container without requests counts for when nodes are scored.
DEFAULT_CPU_MILLI = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024

NON_MISSING_REQUESTS: NanoRequests = {
    CPU: DEFAULT_CPU_MILLI * NANO_PER_MILLI,
    MEMORY: DEFAULT_MEMORY_BYTES * NANO_PER_UNIT,
}


class Resource:
    """Amounts as the scheduler counts them: milli-CPU, bytes, number of pods, and whole units of everything else."""

    __slots__ = ("allowed_pod_number", "ephemeral_storage", "memory", "milli_cpu", "scalar")

    def __init__(self) -> None:
        self.milli_cpu = 0
        self.memory = 0
        self.ephemeral_storage = 0
        self.allowed_pod_number = 0
        self.scalar: dict[str, int] = {}

    @classmethod
    def from_quantities(cls, quantities: ResourceList) -> Resource:
        """Amounts of a resource list, such as a node's allocatable."""
        resource = cls()
        for name, amount in quantities.items():
            if name == CPU:
                resource.milli_cpu = amount.milli_value
            elif name == MEMORY:
                resource.memory = amount.value
            elif name == EPHEMERAL_STORAGE:
                resource.ephemeral_storage = amount.value
            elif name == PODS:
                resource.allowed_pod_number = amount.value
            elif is_scalar_resource(name):
                resource.scalar[name] = amount.value
        return resource

    @classmethod
    def from_nano(cls, requests: NanoRequests) -> Resource:
        """Amounts of exact requests, each rounded up."""
        resource = cls()
        for name, amount in requests.items():
            if name == CPU:
                resource.milli_cpu = ceil_milli(amount)
            elif name == MEMORY:
                resource.memory = ceil_units(amount)
            elif name == EPHEMERAL_STORAGE:
                resource.ephemeral_storage = ceil_units(amount)
            elif name == PODS:
                resource.allowed_pod_number = ceil_units(amount)
            elif is_scalar_resource(name):
                resource.scalar[name] = ceil_units(amount)
        return resource

    def amount(self, name: str) -> int:
        """How much there is of a resource: milli-CPU, bytes or units."""
        if name == CPU:
            return self.milli_cpu
        if name == MEMORY:
            return self.memory
        if name == EPHEMERAL_STORAGE:
            return self.ephemeral_storage
        return self.allowed_pod_number if name == PODS else self.scalar.get(name, 0)

    def add(self, other: Resource, sign: int = 1) -> None:
        """Add ``other`` (``sign`` 1) or take it away (``sign`` -1)."""
        self.milli_cpu += sign * other.milli_cpu
        self.memory += sign * other.memory
        self.ephemeral_storage += sign * other.ephemeral_storage
        for name, amount in other.scalar.items():
            self.scalar[name] = self.scalar.get(name, 0) + sign * amount

    def clone(self) -> Resource:
        copy = Resource()
        copy.milli_cpu = self.milli_cpu
        copy.memory = self.memory
        copy.ephemeral_storage = self.ephemeral_storage
        copy.allowed_pod_number = self.allowed_pod_number
        copy.scalar = dict(self.scalar)
        return copy


def is_native_resource(name: str) -> bool:
    """Whether the resource belongs to Kubernetes itself: no prefix, or one in ``kubernetes.io/``."""
    return "/" not in name or NATIVE_PREFIX in name


def is_extended_resource(name: str) -> bool:
    """Whether upstream's ``IsExtendedResourceName`` holds: a qualified name that is not native."""
    return not is_native_resource(name) and not name.startswith("requests.") and len(name) <= _MAX_EXTENDED_NAME


# "requests." and the name must be a qualified name: a prefix of up to 253 characters, a slash, a name of up to 63.
_MAX_EXTENDED_NAME = 253 + 1 + 63 - len("requests.")


def is_scalar_resource(name: str) -> bool:
    """Whether the scheduler counts the resource besides CPU, memory, ephemeral storage and pods."""
    return (
        is_extended_resource(name)
        or name.startswith(HUGE_PAGES_PREFIX)
        or NATIVE_PREFIX in name
        or name.startswith(ATTACHABLE_VOLUMES_PREFIX)
    )


def is_supported_pod_level(name: str) -> bool:
    """Whether a resource may be asked for by the pod as a whole."""
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX)


def has_pod_level_requests(pod: Pod) -> bool:
    """Whether the pod as a whole has requests that count."""
    resources = pod.spec.resources
    return resources is not None and any(is_supported_pod_level(name) for name in resources.requests)


def pod_requests(
    pod: Pod,
    *,
    use_status: bool = False,
    pod_level: bool = True,
    pod_level_status: bool = True,
    non_missing: Mapping[str, int] | None = None,
    resizes: Resizes = Resizes.BY_CONTAINER,
) -> NanoRequests:
    """What the pod asks for, in 1e-9 units by resource.

    ``use_status`` counts what running containers were given as well (in-place resize); the pod to be scheduled has
    nothing yet; ``resizes`` says how. ``pod_level`` lets requests of the whole pod replace those of its containers,
    ``pod_level_status`` has them follow a resize too. ``non_missing`` stands in for what a container does not ask for.
    """
    requests = container_requests(pod, use_status, resizes, pod_level_status, non_missing)
    if pod_level and has_pod_level_requests(pod):
        _replace_by_pod_level(requests, pod, use_status and pod_level_status, resizes)
    for name, amount in pod.spec.overhead.items():
        requests[name] = requests.get(name, 0) + amount.nano
    return requests


def requests_in_units(requests: NanoRequests) -> dict[str, int]:
    """Requests in milli-CPU, bytes and units, rounded up, by name."""
    return {name: ceil_milli(each) if name == CPU else ceil_units(each) for name, each in sorted(requests.items())}


def non_zero_requests(
    pod: Pod,
    requests: NanoRequests,
    *,
    use_status: bool,
    pod_level: bool,
    pod_level_status: bool = True,
    resizes: Resizes = Resizes.BY_CONTAINER,
) -> NanoRequests:
    """The requests with which a running pod counts when nodes are scored (``getNonMissingContainerRequests``).

    With requests of the whole pod, only what neither level asks for is filled in.
    """
    if pod_level and has_pod_level_requests(pod):
        non_missing = {name: amount for name, amount in NON_MISSING_REQUESTS.items() if name not in requests}
        if not non_missing:
            return requests
    else:
        non_missing = NON_MISSING_REQUESTS
    return pod_requests(
        pod,
        use_status=use_status,
        pod_level=pod_level,
        pod_level_status=pod_level_status,
        non_missing=non_missing,
        resizes=resizes,
    )


def non_zero_requests_without_sidecars(pod: Pod, *, use_status: bool, resizes: Resizes) -> tuple[int, int]:
    """Milli-CPU and bytes of memory with which a running pod counted in scores of old, as containers were summed up.

    Sidecars are not added to the containers, but only to each other and to the other init containers, as these start.
    What a container or such a step lacks is filled in, and each is rounded up by itself.
    """
    own = own_requests(pod, use_status, resizes)
    running: NanoRequests = {}
    cpu, memory = map(sum, zip((0, 0), *(_filled_in(own(each)) for each in pod.spec.containers), strict=True))
    for container in pod.spec.init_containers:
        step = own(container)
        add(step, running)
        if is_sidecar(container):
            running = step
        step_cpu, step_memory = _filled_in(step)
        cpu, memory = max(cpu, step_cpu), max(memory, step_memory)
    overhead = {name: amount.nano for name, amount in pod.spec.overhead.items()}
    return cpu + ceil_milli(overhead.get(CPU, 0)), memory + ceil_units(overhead.get(MEMORY, 0))


def _filled_in(requests: NanoRequests) -> tuple[int, int]:
    filled = {**NON_MISSING_REQUESTS, **requests}
    return ceil_milli(filled[CPU]), ceil_units(filled[MEMORY])


def _replace_by_pod_level(requests: NanoRequests, pod: Pod, follows_status: bool, resizes: Resizes) -> None:
    resources = pod.spec.resources
    if resources is None:
        return
    wanted = nano(resources.requests)
    if follows_status and pod.status.resources is not None:
        given = [pod.status.resources.requests, pod.status.allocated_resources]
        wanted = largest(given, wanted, is_resize_infeasible(pod))
    # Of old, only what the spec names was looked up there.
    for name in wanted if resizes is Resizes.BY_POD else resources.requests:
        if is_supported_pod_level(name):
            requests[name] = wanted.get(name, 0)
