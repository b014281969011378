"""Resource requests of pods.

Follows ``k8s.io/component-helpers`` v0.36.3 ``resource/helpers.go`` (``PodRequests``) and ``k8s.io/kubernetes`` v1.36.3
``pkg/scheduler/framework/types.go`` (``Resource``). Sums are exact, in 1e-9 units, and rounded up once at the end.

The sum of a pod's containers, and how an in-place resize counts, follow ``k8s.io/component-helpers`` v0.37.1
``resource/helpers.go`` (``AggregateContainerRequests``) and its predecessors: v0.36.3, v0.32.13, and
``pkg/api/v1/resource/helpers.go`` of ``k8s.io/kubernetes`` v1.31.14.

What running pods use is computed once for all pods with the same requests. It follows ``CalculateResource`` in
``pkg/scheduler/framework/types.go`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from enum import Enum, auto
from functools import cache, partial
from typing import NamedTuple

from kpreempt.model.pod import RESIZE_PENDING, Container, ContainerStatus, Pod, ResourceList, ResourceRequirements
from kpreempt.model.quantity import NANO_PER_MILLI, NANO_PER_UNIT, ceil_milli, ceil_units
from kpreempt.schedulers.kube.versions import Behavior

# Exact amounts in 1e-9 units, by resource.
NanoRequests = dict[str, int]


class Resizes(Enum):
    """The source that counts in addition to the spec while a running pod is being resized.

    It is a container's allocation, its cgroups (the resources in its status), the larger of both per container, or the
    larger of their totals.
    """

    BY_ALLOCATION = auto()
    BY_CGROUPS = auto()
    BY_CONTAINER = auto()
    BY_POD = auto()


def is_resize_infeasible(pod: Pod) -> bool:
    """Return whether the kubelet has permanently rejected an in-place resize."""
    pending = next((each for each in pod.status.conditions if each.type == RESIZE_PENDING), None)
    return pending is not None and pending.reason == "Infeasible"


def is_sidecar(container: Container) -> bool:
    """Return whether an init container keeps running alongside the containers."""
    return container.restart_policy == "Always"


# What one container requests, as a new dictionary.
_Own = Callable[[Container], NanoRequests]


def _spec_of(container: Container) -> NanoRequests:
    return {name: amount.nano for name, amount in container.resources.requests.items()}


def own_requests(pod: Pod, use_status: bool, resizes: Resizes) -> _Own:
    """Return what each container requests, if a resize is resolved per container."""
    if not use_status:
        return _spec_of
    statuses = _statuses_of(pod)
    inits = {id(each) for each in pod.spec.init_containers}
    is_of_old = resizes in (Resizes.BY_ALLOCATION, Resizes.BY_CGROUPS)
    is_infeasible = pod.status.resize == "Infeasible" if is_of_old else is_resize_infeasible(pod)

    def own(container: Container) -> NanoRequests:
        follows = id(container) not in inits or (is_sidecar(container) and not is_of_old)
        status = statuses.get(container.name) if follows else None
        if status is None or (status.resources is None and resizes is not Resizes.BY_ALLOCATION):
            return _spec_of(container)
        given = []
        if status.resources is not None and resizes is not Resizes.BY_ALLOCATION:
            given.append(status.resources.requests)
        if resizes is not Resizes.BY_CGROUPS:
            given.append(status.allocated_resources)
        return largest(given, _spec_of(container), is_infeasible)

    return own


def container_requests(
    pod: Pod, use_status: bool, resizes: Resizes, pod_level_status: bool, non_missing: Mapping[str, int] | None
) -> NanoRequests:
    """Return the sum of the containers' requests; ``non_missing`` is the default for missing requests.

    With ``use_status``, a resize counts as ``resizes`` says; with ``pod_level_status``, the pod-level status takes
    precedence over the containers'.
    """
    if not use_status or resizes is not Resizes.BY_POD:
        return _summed(pod, own_requests(pod, use_status, resizes), non_missing)
    infeasible = is_resize_infeasible(pod)
    totals = [] if infeasible else [_summed(pod, _spec_of, non_missing)]
    whole = pod.status.resources
    if pod_level_status and pod.status.allocated_resources and whole is not None and whole.requests:
        totals += [nano(pod.status.allocated_resources), nano(whole.requests)]
    else:
        statuses = _statuses_of(pod)

        def allocated(container: Container) -> NanoRequests:
            status = statuses.get(container.name)
            if status is not None and status.allocated_resources:
                return nano(status.allocated_resources)
            return {} if infeasible else _spec_of(container)

        def actuated(container: Container) -> NanoRequests:
            status = statuses.get(container.name)
            if status is not None and status.resources is not None and status.resources.requests:
                return nano(status.resources.requests)
            return allocated(container)

        totals += [_summed(pod, allocated, non_missing), _summed(pod, actuated, non_missing)]
    requests: NanoRequests = {}
    for total in totals:
        raise_to(requests, total)
    return requests


def _summed(pod: Pod, own: _Own, non_missing: Mapping[str, int] | None) -> NanoRequests:
    """Return what the containers need together, or what one step of starting them needs if that is more."""

    def needed(container: Container) -> NanoRequests:
        needs = own(container)
        for name, amount in (non_missing or {}).items():
            needs.setdefault(name, amount)
        return needs

    total: NanoRequests = {}
    for container in pod.spec.containers:
        add(total, needed(container))
    sidecars: NanoRequests = {}
    while_starting: NanoRequests = {}
    for container in pod.spec.init_containers:
        needs = needed(container)
        if is_sidecar(container):
            add(total, needs)
            add(sidecars, needs)
            needs = sidecars
        else:
            add(needs, sidecars)
        raise_to(while_starting, needs)
    raise_to(total, while_starting)
    return total


def largest(given: Iterable[ResourceList], spec: NanoRequests, infeasible: bool) -> NanoRequests:
    """Return the largest of the given amounts and the spec; without the spec if the resize is infeasible."""
    result = {} if infeasible else spec
    for amounts in given:
        raise_to(result, nano(amounts))
    return result


def _statuses_of(pod: Pod) -> dict[str, ContainerStatus]:
    return {status.name: status for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)}


def nano(amounts: ResourceList) -> NanoRequests:
    """Return the exact amounts."""
    return {name: amount.nano for name, amount in amounts.items()}


def add(total: NanoRequests, more: NanoRequests) -> None:
    """Add ``more`` to ``total``."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def raise_to(total: NanoRequests, least: NanoRequests) -> None:
    """Raise ``total`` to ``least`` for each resource."""
    for name, amount in least.items():
        if name not in total or amount > total[name]:
            total[name] = amount


CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGE_PAGES_PREFIX = "hugepages-"
NATIVE_PREFIX = "kubernetes.io/"
ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"

# What a container without requests counts as when nodes are scored.
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
        """Convert a resource list, such as a node's allocatable."""
        return cls._of({name: each.milli_value if name == CPU else each.value for name, each in quantities.items()})

    @classmethod
    def from_nano(cls, requests: NanoRequests) -> Resource:
        """Convert exact requests, each rounded up."""
        return cls._of({name: ceil_milli(each) if name == CPU else ceil_units(each) for name, each in requests.items()})

    @classmethod
    def _of(cls, amounts: Mapping[str, int]) -> Resource:
        """Create from amounts in milli-CPU, bytes and units."""
        resource = cls()
        for name, amount in amounts.items():
            if name == CPU:
                resource.milli_cpu = amount
            elif name == MEMORY:
                resource.memory = amount
            elif name == EPHEMERAL_STORAGE:
                resource.ephemeral_storage = amount
            elif name == PODS:
                resource.allowed_pod_number = amount
            elif is_scalar_resource(name):
                resource.scalar[name] = amount
        return resource

    def amount(self, name: str) -> int:
        """Return the amount of a resource in milli-CPU, bytes or units."""
        if name == CPU:
            return self.milli_cpu
        if name == MEMORY:
            return self.memory
        if name == EPHEMERAL_STORAGE:
            return self.ephemeral_storage
        return self.allowed_pod_number if name == PODS else self.scalar.get(name, 0)

    def add(self, other: Resource, sign: int = 1) -> None:
        """Add ``other`` (``sign`` 1) or subtract it (``sign`` -1)."""
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


def is_extended_resource(name: str) -> bool:
    """Return whether upstream's ``IsExtendedResourceName`` is true: a qualified name that is not native."""
    # A name without a prefix, or with one in ``kubernetes.io/``, belongs to Kubernetes itself.
    is_native = "/" not in name or NATIVE_PREFIX in name
    return not is_native and not name.startswith("requests.") and len(name) <= _MAX_EXTENDED_NAME


# "requests." and the name must be a qualified name: a prefix of up to 253 characters, a slash, a name of up to 63.
_MAX_EXTENDED_NAME = 253 + 1 + 63 - len("requests.")


def is_scalar_resource(name: str) -> bool:
    """Return whether the scheduler counts the resource, other than CPU, memory, ephemeral storage and pods."""
    return (
        is_extended_resource(name)
        or name.startswith(HUGE_PAGES_PREFIX)
        or NATIVE_PREFIX in name
        or name.startswith(ATTACHABLE_VOLUMES_PREFIX)
    )


def is_supported_pod_level(name: str) -> bool:
    """Return whether a resource may be requested at the pod level."""
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX)


def has_pod_level_requests(pod: Pod) -> bool:
    """Return whether the pod has pod-level requests that count."""
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
    """Return the pod's requests in 1e-9 units by resource.

    With ``use_status``, resources allocated to running containers also count (in-place resize), as ``resizes`` says;
    the pod to be scheduled has none yet. With ``pod_level``, pod-level requests replace the containers'; with
    ``pod_level_status``, they follow a resize, too. ``non_missing`` is the default for requests that a container does
    not set.
    """
    requests = container_requests(pod, use_status, resizes, pod_level_status, non_missing)
    resources = pod.spec.resources
    if pod_level and resources is not None and has_pod_level_requests(pod):
        requested = nano(resources.requests)
        if use_status and pod_level_status and pod.status.resources is not None:
            given = [pod.status.resources.requests, pod.status.allocated_resources]
            requested = largest(given, requested, is_resize_infeasible(pod))
        # Older versions only looked up resources that the spec names.
        for name in requested if resizes is Resizes.BY_POD else resources.requests:
            if is_supported_pod_level(name):
                requests[name] = requested.get(name, 0)
    for name, amount in pod.spec.overhead.items():
        requests[name] = requests.get(name, 0) + amount.nano
    return requests


def requests_in_units(requests: NanoRequests) -> dict[str, int]:
    """Return requests in milli-CPU, bytes and units, rounded up, by name."""
    return {name: ceil_milli(each) if name == CPU else ceil_units(each) for name, each in sorted(requests.items())}


def non_zero_requests_without_sidecars(pod: Pod, *, use_status: bool, resizes: Resizes) -> tuple[int, int]:
    """Return the milli-CPU and bytes of memory with which older versions counted a running pod in scores.

    Sidecars are not added to the containers, but only to each other and to the other init containers, in starting
    order. Missing requests of a container or such a step are filled in, and each is rounded up on its own.
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


class PodResource(NamedTuple):
    """What a running pod uses, and the CPU and memory with which it counts in scores. Immutable."""

    resource: Resource
    non_zero_milli_cpu: int
    non_zero_memory: int


class ResourceCalculator:
    """Computes what running pods use, once for all pods with the same requests."""

    # Enough for any real cluster; cleared when full, so that a long batch of many clusters stays small.
    _MAX_CACHED = 65536

    def __init__(
        self, use_status: bool, pod_level: bool, pod_level_status: bool, resizes: Resizes, adds_sidecars: bool
    ) -> None:
        self._requests_of = partial(
            pod_requests,
            use_status=use_status,
            pod_level=pod_level,
            pod_level_status=pod_level_status,
            resizes=resizes,
        )
        self._scored_of_old = partial(non_zero_requests_without_sidecars, use_status=use_status, resizes=resizes)
        self._pod_level = pod_level
        self._adds_sidecars = adds_sidecars
        self._known: dict[Hashable, PodResource] = {}

    def of(self, pod: Pod) -> PodResource:
        """Return what ``pod`` uses on its node."""
        key = _requests_key(pod)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= self._MAX_CACHED:
                self._known.clear()
            known = self._known[key] = self._compute(pod)
        return known

    def _compute(self, pod: Pod) -> PodResource:
        requests = self._requests_of(pod)
        if not self._adds_sidecars:
            return PodResource(Resource.from_nano(requests), *self._scored_of_old(pod))
        # What it counts as when nodes are scored (``getNonMissingContainerRequests``): with pod-level requests, only
        # what neither level requests is filled in.
        fills_all = not (self._pod_level and has_pod_level_requests(pod))
        filled = {name: each for name, each in NON_MISSING_REQUESTS.items() if fills_all or name not in requests}
        scored = self._requests_of(pod, non_missing=filled) if filled else requests
        return PodResource(
            Resource.from_nano(requests), ceil_milli(scored.get(CPU, 0)), ceil_units(scored.get(MEMORY, 0))
        )


def resource_calculator(behavior: Behavior) -> ResourceCalculator:
    """Return the calculator for this behavior, shared by all clusters."""
    if behavior.follows_allocated_resources_alone:
        resizes = Resizes.BY_ALLOCATION
    elif behavior.follows_actuated_resources_alone:
        resizes = Resizes.BY_CGROUPS
    else:
        resizes = Resizes.BY_POD if behavior.compares_resizes_by_pod else Resizes.BY_CONTAINER
    return _calculator(
        behavior.in_place_pod_vertical_scaling,
        behavior.pod_level_resources,
        behavior.in_place_pod_level_resources_vertical_scaling,
        resizes,
        behavior.adds_sidecars_to_scored_requests,
    )


_calculator = cache(ResourceCalculator)


def has_only_containers(pod: Pod) -> bool:
    """Return whether only its containers' resources decide what the pod uses, as for most pods."""
    spec, status = pod.spec, pod.status
    return not (
        spec.init_containers
        or spec.overhead
        or spec.resources
        or status.container_statuses
        or status.init_container_statuses
    )


def _requests_key(pod: Pod) -> Hashable:
    """Return a key that is equal for pods whose requests are computed from the same values."""
    spec, status = pod.spec, pod.status
    if len(spec.containers) == 1 and has_only_containers(pod):
        requests = spec.containers[0].resources.requests
        return (*requests, *[amount.nano for amount in requests.values()])
    return (
        tuple((each.name, _amounts(each.resources)) for each in spec.containers),
        tuple((each.name, each.restart_policy, _amounts(each.resources)) for each in spec.init_containers),
        tuple(nano(spec.overhead).items()),
        _amounts(spec.resources),
        tuple(
            (each.name, each.resources is None, _amounts(each.resources), tuple(nano(each.allocated_resources).items()))
            for each in (*status.container_statuses, *status.init_container_statuses)
        ),
        status.resources is None,
        _amounts(status.resources),
        tuple(nano(status.allocated_resources).items()),
        is_resize_infeasible(pod),
        status.resize,
    )


def _amounts(resources: ResourceRequirements | None) -> Hashable:
    return tuple(nano(resources.requests).items()) if resources else ()
