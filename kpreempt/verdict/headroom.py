"""What becomes of placeholders in a simulation: pods that only keep room free, and that are meant to be evicted."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from kpreempt.verdict.base import SparseRecord
from kpreempt.verdict.simulation import Displaced, Simulation


class HeadroomUse(SparseRecord, frozen=True, kw_only=True):
    """Placeholders of a ``workload`` that are ``evicted``; ``pending`` of its pods have no node at the end."""

    workload: str
    evicted: int
    pending: int = 0


def without_headroom(simulation: Simulation, workloads: Collection[str]) -> Simulation:
    """The simulation without what becomes of placeholders; what they evict or violate stays."""
    if not workloads:
        return simulation
    used = set(map(id, _used(simulation.displaced, workloads)))
    return msgspec.structs.replace(
        simulation,
        displaced=[each for each in simulation.displaced if id(each) not in used],
        pending=[each for each in simulation.pending if each.workload not in workloads],
        workloads=[each for each in simulation.workloads if each.workload not in workloads],
    )


def headroom_used(simulation: Simulation, workloads: Collection[str]) -> list[HeadroomUse]:
    """The placeholders that are evicted, by workload."""
    used = [each.workload for each in _used(simulation.displaced, workloads)]
    return [
        HeadroomUse(
            workload=name,
            evicted=used.count(name),
            pending=sum(each.workload == name and each.was_running for each in simulation.pending),
        )
        for name in dict.fromkeys(used)
    ]


def _used(displaced: Sequence[Displaced], workloads: Collection[str]) -> list[Displaced]:
    """The placeholders that are evicted without violating a budget, and whose replacements evict no other pod."""
    following = [each.depth for each in displaced[1:]] + [0]
    return (
        [
            each
            for each, depth in zip(displaced, following, strict=True)
            if each.workload in workloads and not each.violated and depth <= each.depth
        ]
        if displaced
        else []
    )
