"""Elastic quotas: what a namespace is guaranteed and allowed, what it uses, and where that is more.

Follows ``pkg/capacityscheduling/elasticquota.go`` of ``kubernetes-sigs/scheduler-plugins`` v0.34.7. Used by
``capacity_scheduling``, which says where it departs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kpreempt.plugins import SUCCESS, ObjectKind, PluginError, Pod, Quantity, Resource, Status, unschedulable

ELASTIC_QUOTA = ObjectKind("ElasticQuota", "scheduling.x-k8s.io", "v1alpha1")
NOTHING = Resource()

_ALWAYS_COUNTED = ("cpu", "memory", "ephemeral-storage")


class Quota(NamedTuple):
    """An ElasticQuota: ``namespace/name``, what is guaranteed, and how much there may be (``None``: no end)."""

    key: str
    min: Resource
    max: Resource | None


class Usage:
    """What the namespaces with a quota use. ``total`` is their sum, ``guaranteed`` that of all ``min``.

    No ``Resource`` in here is changed, only replaced, so that copies for many nodes cost little.
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
        """An independent copy, as ``CycleState.clone`` asks for."""
        return Usage(self.quotas, dict(self.used), self.total, self.guaranteed)

    def count(self, pod: Pod, sign: int) -> None:
        """Count a pod that came (1), or that went (-1).

        The framework adds none that is there already, and removes none that is not: so nobody is counted twice.
        """
        used = self.used.get(pod.metadata.namespace)
        if used is not None:
            request = request_of(pod)
            self.used[pod.metadata.namespace] = plus(used, request, sign)
            self.total = plus(self.total, request, sign)

    def is_over_min(self, namespace: str, asked: Resource | None = None) -> bool:
        """Whether a namespace uses more than it is guaranteed, or would with what is asked for."""
        guaranteed, used = self.quotas[namespace].min, self.used[namespace]
        if asked is None:
            return bool(exceeded(guaranteed, used, unnamed=0))
        return bool(exceeded(guaranteed, asked, used, unnamed=0))

    def refusal(self, namespace: str, asked: Resource, asked_of_all: Resource, reasons: tuple[str, str]) -> Status:
        """Success, or that ``max`` of the namespace is exceeded, or by all together the sum of ``min``."""
        quota = self.quotas[namespace]
        if quota.max is not None and (name := exceeded(quota.max, asked, self.used[namespace])):
            facts = _facts(name, used=self.used[namespace], asked=asked, max=quota.max)
            return unschedulable(reasons[0], f"ElasticQuota {quota.key}", **facts)
        if name := exceeded(self.guaranteed, plus(self.total, asked_of_all), unnamed=0):
            facts = _facts(name, used=self.total, asked=asked_of_all, min=self.guaranteed)
            return unschedulable(reasons[1], "all ElasticQuotas together", **facts)
        return SUCCESS


def usage_of(documents: Iterable[Mapping[str, Any]], pods: Iterable[Pod]) -> Usage:
    """The quotas, and what the pods with a node use that have not finished. Raises ``PluginError`` for a bad quota."""
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
    """What upstream counts for a pod: its containers, or an init container where that is more, and the overhead."""
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
    """The sum, or with ``sign`` -1 the difference, as a record of its own."""
    result = one.clone()
    result.add(other, sign)
    return result


def exceeded(limit: Resource, asked: Resource, used: Resource = NOTHING, *, unnamed: int | None = None) -> str:
    """The first resource of which ``asked`` and ``used`` together are more than ``limit``; empty where there is none.

    Of others than CPU, memory and ephemeral storage those count that are asked for; ``unnamed`` is the limit of such a
    one that ``limit`` does not name (``None``: there is none).
    """
    for name in _ALWAYS_COUNTED:
        if asked.amount(name) + used.amount(name) > limit.amount(name):
            return name
    for name, amount in asked.scalar.items():
        at_most = limit.scalar.get(name, unnamed)
        if at_most is not None and amount + used.scalar.get(name, 0) > at_most:
            return name
    return ""


def _facts(name: str, **amounts: Resource) -> dict[str, Any]:
    """A resource, and amounts of it as they are written in manifests."""
    unit = "m" if name == "cpu" else ""
    return {"resource": name, **{what: f"{amount.amount(name)}{unit}" for what, amount in amounts.items()}}


def quota_of(document: Mapping[str, Any]) -> tuple[str, Quota]:
    """The namespace and the quota of an object; raises ``PluginError`` where it is none."""
    metadata = document["metadata"]
    namespace = metadata["namespace"]
    key = f"{namespace}/{metadata['name']}"
    spec = document.get("spec")
    spec = {} if spec is None else spec
    if not isinstance(spec, Mapping):
        raise PluginError(f"ElasticQuota {key}: spec is not an object")
    return namespace, Quota(key, _amounts(key, spec, "min") or Resource(), _amounts(key, spec, "max"))


def _amounts(key: str, spec: Mapping[str, Any], field: str) -> Resource | None:
    """The amounts in ``min`` or ``max``, or ``None`` where there is no such field."""
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
