"""Elastic quotas: guaranteed and maximum amounts of a namespace, and its usage.

Follows ``pkg/capacityscheduling/elasticquota.go`` of ``kubernetes-sigs/scheduler-plugins`` v0.34.7. Used by
``capacity_scheduling``, which lists the differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kpreempt.plugins import SUCCESS, ObjectKind, PluginError, Pod, Quantity, Resource, Status, unschedulable

ELASTIC_QUOTA = ObjectKind("ElasticQuota", "scheduling.x-k8s.io", "v1alpha1")
NOTHING = Resource()

_ALWAYS_COUNTED = ("cpu", "memory", "ephemeral-storage")


class Quota(NamedTuple):
    """An ElasticQuota: ``namespace/name``, the guaranteed amount, and the maximum (``None``: unlimited)."""

    key: str
    min: Resource
    max: Resource | None


class Usage:
    """The usage of namespaces with a quota. ``total`` is their sum, ``guaranteed`` the sum of all ``min``.

    ``Resource`` values are replaced, never changed, so copies for many nodes are cheap.
    """

    __slots__ = ("guaranteed", "quotas", "total", "used")

    def __init__(
        self, quotas: Mapping[str, Quota], used: dict[str, Resource], total: Resource, guaranteed: Resource
    ) -> None:
        self.quotas = quotas
        self.used = used
        self.total = total
        self.guaranteed = guaranteed

    def clone(self) -> Usage:
        """Return an independent copy, as required by ``CycleState.clone``."""
        return Usage(self.quotas, dict(self.used), self.total, self.guaranteed)

    def count(self, pod: Pod, sign: int) -> None:
        """Add a pod (1) or remove it (-1).

        The framework never adds a pod twice, or removes one that is not there.
        """
        used = self.used.get(pod.metadata.namespace)
        if used is not None:
            request = request_of(pod)
            self.used[pod.metadata.namespace] = plus(used, request, sign)
            self.total = plus(self.total, request, sign)

    def is_over_min(self, namespace: str, requested: Resource | None = None) -> bool:
        """Return whether a namespace exceeds its guaranteed amount, or would with these requests."""
        guaranteed, used = self.quotas[namespace].min, self.used[namespace]
        if requested is None:
            return bool(exceeded(guaranteed, used, unnamed=0))
        return bool(exceeded(guaranteed, requested, used, unnamed=0))

    def rejection(
        self, namespace: str, requested: Resource, requested_by_all: Resource, reasons: tuple[str, str]
    ) -> Status:
        """Return success, or a rejection if ``max`` of the namespace or the sum of all ``min`` is exceeded."""
        quota = self.quotas[namespace]
        if quota.max is not None and (name := exceeded(quota.max, requested, self.used[namespace])):
            facts = _facts(name, used=self.used[namespace], requested=requested, max=quota.max)
            return unschedulable(reasons[0], f"ElasticQuota {quota.key}", **facts)
        if name := exceeded(self.guaranteed, plus(self.total, requested_by_all), unnamed=0):
            facts = _facts(name, used=self.total, requested=requested_by_all, min=self.guaranteed)
            return unschedulable(reasons[1], "all ElasticQuotas together", **facts)
        return SUCCESS


def usage_of(documents: Iterable[Mapping[str, Any]], pods: Iterable[Pod]) -> Usage:
    """Read the quotas, and count the active pods on nodes. Raises ``PluginError`` for an invalid quota."""
    quotas: dict[str, Quota] = {}
    for document in documents:
        namespace, quota = quota_of(document)
        quotas.setdefault(namespace, quota)
    used = {namespace: Resource() for namespace in quotas}
    for pod in pods:
        if pod.metadata.namespace in used and pod.spec.node_name and not pod.is_terminal:
            used[pod.metadata.namespace].add(request_of(pod))
    total, guaranteed = Resource(), Resource()
    for namespace, quota in quotas.items():
        total.add(used[namespace])
        guaranteed.add(quota.min)
    return Usage(quotas, used, total, guaranteed)


def request_of(pod: Pod) -> Resource:
    """Return the request as upstream counts it: containers, or an init container if larger, plus overhead."""
    request = Resource()
    for container in pod.spec.containers:
        request.add(Resource.from_quantities(container.resources.requests))
    for container in pod.spec.init_containers:
        most = Resource.from_quantities(container.resources.requests)
        request.milli_cpu = max(request.milli_cpu, most.milli_cpu)
        request.memory = max(request.memory, most.memory)
        request.ephemeral_storage = max(request.ephemeral_storage, most.ephemeral_storage)
        for name, amount in most.scalar.items():
            request.scalar[name] = max(request.scalar.get(name, 0), amount)
    request.add(Resource.from_quantities(pod.spec.overhead))
    return request


def plus(one: Resource, other: Resource, sign: int = 1) -> Resource:
    """Return the sum or, with ``sign`` -1, the difference as a new resource."""
    result = one.clone()
    result.add(other, sign)
    return result


def exceeded(limit: Resource, requested: Resource, used: Resource = NOTHING, *, unnamed: int | None = None) -> str:
    """Return the first resource of which ``requested`` plus ``used`` exceed ``limit``, or an empty string.

    In addition to CPU, memory and ephemeral storage, only requested resources are checked; ``unnamed`` is the limit of
    a requested resource that ``limit`` does not name (``None``: unlimited).
    """
    for name in _ALWAYS_COUNTED:
        if requested.amount(name) + used.amount(name) > limit.amount(name):
            return name
    for name, amount in requested.scalar.items():
        at_most = limit.scalar.get(name, unnamed)
        if at_most is not None and amount + used.scalar.get(name, 0) > at_most:
            return name
    return ""


def _facts(name: str, **amounts: Resource) -> dict[str, Any]:
    """Return a resource name, and amounts of it in manifest notation."""
    unit = "m" if name == "cpu" else ""
    return {"resource": name, **{what: f"{amount.amount(name)}{unit}" for what, amount in amounts.items()}}


def quota_of(document: Mapping[str, Any]) -> tuple[str, Quota]:
    """Return namespace and quota of an object; raise ``PluginError`` if it is invalid."""
    metadata = document["metadata"]
    namespace = metadata["namespace"]
    key = f"{namespace}/{metadata['name']}"
    spec = document.get("spec")
    spec = {} if spec is None else spec
    if not isinstance(spec, Mapping):
        raise PluginError(f"ElasticQuota {key}: spec is not an object")
    return namespace, Quota(key, _amounts(key, spec, "min") or Resource(), _amounts(key, spec, "max"))


def _amounts(key: str, spec: Mapping[str, Any], field: str) -> Resource | None:
    """Return the amounts in ``min`` or ``max``, or ``None`` if the field is missing."""
    amounts = spec.get(field)
    if amounts is None:
        return None
    if not isinstance(amounts, Mapping):
        raise PluginError(f"ElasticQuota {key}: spec.{field} is not an object")
    quantities = {}
    for name, amount in amounts.items():
        if isinstance(amount, bool) or not isinstance(amount, str | int | float):
            raise PluginError(f"ElasticQuota {key}: spec.{field}.{name} is not a quantity")
        try:
            quantities[name] = Quantity(str(amount))
        except ValueError as error:
            raise PluginError(f"ElasticQuota {key}: spec.{field}.{name}: {error}") from None
    return Resource.from_quantities(quantities)
