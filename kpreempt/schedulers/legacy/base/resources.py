"""Amounts of resources as the old caches count them: milli-CPU, bytes, and whole units of everything else.

Each container's request is rounded up on its own, then added (``Resource.Add``, ``pkg/scheduler/cache/node_info.go``
of v1.13.12; the same in v1.8.15 and v1.18.19).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kpreempt.model.pod import Pod, ResourceList
from kpreempt.verdict.details import Shortfall

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGE_PAGES_PREFIX = "hugepages-"
NATIVE_PREFIX = "kubernetes.io/"

# By resource name. A name that is missing counts as 0.
Amounts = dict[str, int]
# Whether a scheduler counts a resource of that name, besides CPU, memory, ephemeral storage and pods.
IsCounted = Callable[[str], bool]

_ALWAYS_COUNTED = (CPU, MEMORY, EPHEMERAL_STORAGE)


def amounts_of(quantities: ResourceList, is_counted: IsCounted) -> Amounts:
    """The amounts of a resource list; ``pods`` and resources that are not counted are left out."""
    return {
        name: amount.milli_value if name == CPU else amount.value
        for name, amount in quantities.items()
        if name in _ALWAYS_COUNTED or (name != PODS and is_counted(name))
    }


def sum_of_containers(pod: Pod, is_counted: IsCounted) -> Amounts:
    """What all containers ask for together, init containers left out."""
    total: Amounts = {}
    for container in pod.spec.containers:
        add(total, amounts_of(container.resources.requests, is_counted))
    return total


def largest_request(pod: Pod, is_counted: IsCounted) -> Amounts:
    """What a pod needs to start: all containers, or an init container that asks for more (``GetResourceRequest``)."""
    total = sum_of_containers(pod, is_counted)
    for container in pod.spec.init_containers:
        for name, amount in amounts_of(container.resources.requests, is_counted).items():
            if amount > total.get(name, 0):
                total[name] = amount
    return total


def add(total: Amounts, more: Amounts, sign: int = 1) -> None:
    """Add ``more`` (``sign`` 1) or take it away (``sign`` -1)."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + sign * amount


def is_native(name: str) -> bool:
    """Whether a name belongs to Kubernetes itself: no prefix, or one in ``kubernetes.io/``."""
    return "/" not in name or NATIVE_PREFIX in name


def shortfalls(request: Amounts, used: Amounts, allocatable: Amounts, names: Iterable[str]) -> list[Shortfall]:
    """Those of the resources ``names`` of which there is too little, in their order."""
    return [
        Shortfall(
            resource=name,
            requested=request.get(name, 0),
            used=used.get(name, 0),
            allocatable=allocatable.get(name, 0),
            exceeds_node=request.get(name, 0) > allocatable.get(name, 0),
        )
        for name in names
        if allocatable.get(name, 0) < request.get(name, 0) + used.get(name, 0)
    ]


def names_to_compare(request: Amounts, more: Iterable[str] = (), ignored: frozenset[str] = frozenset()) -> list[str]:
    """CPU, memory, ephemeral storage and ``more``, asked for or not, then what else is; nothing for no request at all.

    An over-committed node so refuses a pod that asks for something else only, be that ``ignored`` or not.
    """
    always = (*_ALWAYS_COUNTED, *more)
    others = [name for name in request if name not in always]
    return [*always, *(name for name in others if name not in ignored)] if others or any(request.values()) else []
