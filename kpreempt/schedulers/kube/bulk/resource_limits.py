"""NodeResourcesFit as limits: requests and the number of pods against what is allocatable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from kpreempt.schedulers.kube.bulk.limits import Excess, Limit, PluginLimits
from kpreempt.schedulers.kube.bulk.pod_table import Integers, PodTable
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.framework.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resource
from kpreempt.verdict import Status
from kpreempt.verdict.details import Shortfall


class Fit(Protocol):
    """What the limits need of the plugin."""

    name: str

    def is_ignored(self, name: str) -> bool:
        """Whether the configuration leaves the resource out of account."""
        ...

    def may_be_backed_by_devices(self, name: str) -> bool:
        """Whether a device class stands for the resource on nodes that do not offer it themselves."""
        ...

    def refusal(self, shortfalls: list[Shortfall], num_pods: int) -> Status:
        """The status of a node on which these resources are short."""
        ...


class _Check(NamedTuple):
    resource: str
    wanted: int
    allocatable: Integers


def resource_limits(
    plugin: Fit, requested: Resource, table: PodTable, nodes: Sequence[NodeInfo]
) -> PluginLimits | None:
    """One limit per resource; ``None`` where a device class may stand for one of them."""
    names = [CPU, MEMORY, EPHEMERAL_STORAGE, *sorted(requested.scalar)]
    wanted = {name: requested.amount(name) for name in names if requested.amount(name) > 0}
    if any(plugin.may_be_backed_by_devices(name) for name in wanted):
        return None
    position = table.cluster.position
    asked = np.array([position[node_info.name] for node_info in nodes], dtype=np.int64)
    checks = [_Check(PODS, 1, table.allocatable(PODS)[asked])]
    checks += [
        _Check(name, amount, table.allocatable(name)[asked])
        for name, amount in wanted.items()
        if not plugin.is_ignored(name)
    ]
    limits = [_limit(check, table, asked) for check in checks]
    # Plain integers, because single values of a column are slow to come by.
    offered: list[list[int]] = [check.allocatable.tolist() for check in checks]

    def refuse(excess: Excess) -> Status:
        return plugin.refusal(
            [
                Shortfall(
                    check.resource,
                    check.wanted,
                    used,
                    of_nodes[excess.node],
                    exceeds_node=check.resource != PODS and check.wanted > of_nodes[excess.node],
                )
                for check, of_nodes, used, is_short in zip(checks, offered, excess.sums, excess.exceeded, strict=True)
                if is_short
            ],
            excess.num_pods,
        )

    def adds(info: PodInfo) -> list[int]:
        return [1 if check.resource == PODS else info.resource.amount(check.resource) for check in checks]

    return PluginLimits(plugin.name, limits, refuse, tells_detail=True, adds=adds)


def _limit(check: _Check, table: PodTable, asked: Integers) -> Limit:
    amounts = np.ones(len(table.pods), dtype=np.int64) if check.resource == PODS else table.resource(check.resource)
    return Limit(table.total(amounts)[asked], check.allocatable - check.wanted, amounts)
