"""How well the storage that a pod would take fills what is there, with the gate StorageCapacityScoring.

Follows ``Score`` (``plugins/volumebinding/volume_binding.go``) and ``scorer.go`` beside it, v1.36.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE, PluginArgs
from kpreempt.schedulers.kube.framework.resource_scoring import (
    MAX_CUSTOM_PRIORITY_SCORE,
    MAX_UTILIZATION,
    piecewise_linear,
)
from kpreempt.schedulers.kube.framework.volumes import requested_storage, storage_capacity
from kpreempt.schedulers.kube.plugins.volume_binding.binder import PodVolumes

# Points of a piecewise linear function: utilization in percent, score of 0 to 100.
Shape = Sequence[tuple[int, int]]

DEFAULT_SHAPE: Shape = ((0, MAX_NODE_SCORE), (MAX_UTILIZATION, 0))


class StorageUse(NamedTuple):
    """What the pod asks for of one storage class, and what there is, in bytes."""

    requested: int
    capacity: int


def shape_of(args: PluginArgs) -> Shape:
    """The configured shape, whose scores go up to 10, or the default one, which favours empty storage."""
    points = args.get("shape")
    if not isinstance(points, Sequence) or not points:
        return DEFAULT_SHAPE
    scale = MAX_NODE_SCORE // MAX_CUSTOM_PRIORITY_SCORE
    return [(int(point.get("utilization") or 0), int(point.get("score") or 0) * scale) for point in points]


def storage_use(volumes: PodVolumes) -> dict[str, StorageUse]:
    """By storage class: what existing volumes the pod would take, or else what would be made for it.

    Several volumes of one class are made from the same pool, so its capacity counts once; existing ones add up.
    """
    use: dict[str, StorageUse] = {}
    for claim, volume in volumes.bindings:
        name = volume.spec.storage_class_name
        requested, capacity = use.get(name, (0, 0))
        use[name] = StorageUse(requested + requested_storage(claim).value, capacity + storage_capacity(volume).value)
    if volumes.bindings:
        return use
    for claim, pool in volumes.provisions:
        if pool is None:
            continue
        # Upstream dereferences the field without looking, and dies where only the old annotation names the class.
        name = claim.spec.storage_class_name or ""
        requested, _ = use.get(name, (0, 0))
        capacity = pool.capacity.value if pool.capacity is not None else 0
        use[name] = StorageUse(requested + requested_storage(claim).value, capacity)
    return use


def score(shape: Shape, use: Mapping[str, StorageUse]) -> int:
    """The mean of the classes' scores, 0 without any."""
    if not use:
        return 0
    points = list(shape)
    total = sum(piecewise_linear(points, _utilization(each)) for each in use.values())
    # Go's math.Round: halves away from zero.
    return math.floor(total / len(use) + 0.5)


def _utilization(use: StorageUse) -> int:
    if use.capacity == 0 or use.requested > use.capacity:
        return MAX_UTILIZATION
    return use.requested * MAX_UTILIZATION // use.capacity
