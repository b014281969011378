"""Whether a volume can be made for a claim: by which class, for which nodes, from which capacity.

Follows ``checkVolumeProvisions`` and ``hasEnoughCapacity`` (``plugins/volumebinding/binder.go``, v1.36.3) and
``MatchTopologySelectorTerms`` (``pkg/apis/core/v1/helper/helpers.go``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from kpreempt.model.labels import format_requirement, is_label_key, is_label_value
from kpreempt.model.quantity import Quantity
from kpreempt.model.storage import (
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
)
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.volumes import STORAGE


class CapacityCheck(NamedTuple):
    """Whether there is room, and the pool that has it where pools are tracked."""

    is_sufficient: bool
    pool: CSIStorageCapacity | None


class StorageCapacities:
    """The pools from which CSI drivers make volumes, by storage class."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster

    @cached_property
    def _by_class(self) -> dict[str, list[CSIStorageCapacity]]:
        by_class: dict[str, list[CSIStorageCapacity]] = {}
        for capacity in self._cluster.cluster.csi_storage_capacities:
            by_class.setdefault(capacity.storage_class_name, []).append(capacity)
        return by_class

    def check(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, node_labels: Mapping[str, str]
    ) -> CapacityCheck:
        """Look for a pool within the node's reach that is large enough.

        Drivers that do not publish capacity, and claims without a size, always have room.
        """
        requested = claim.spec.resources.requests.get(STORAGE)
        driver = self._cluster.csi_drivers.get(storage_class.provisioner)
        if requested is None or driver is None or not driver.spec.storage_capacity:
            return CapacityCheck(True, None)
        for pool in self._by_class.get(storage_class.metadata.name, ()):
            limit = largest_volume(pool)
            if limit is not None and limit.value >= requested.value and _is_in_reach(pool, node_labels):
                return CapacityCheck(True, pool)
        return CapacityCheck(False, None)

    def largest_in_reach(self, class_name: str, node_labels: Mapping[str, str]) -> Quantity | None:
        """The largest volume of the class that could be made for the node; ``None`` where no pool is in its reach."""
        limits = [
            limit
            for pool in self._by_class.get(class_name, ())
            if _is_in_reach(pool, node_labels) and (limit := largest_volume(pool)) is not None
        ]
        return max(limits, key=lambda limit: limit.nano, default=None)


def largest_volume(pool: CSIStorageCapacity) -> Quantity | None:
    """The size up to which the pool has room for one volume; ``None`` where it does not say."""
    return pool.maximum_volume_size if pool.maximum_volume_size is not None else pool.capacity


def _is_in_reach(pool: CSIStorageCapacity, node_labels: Mapping[str, str]) -> bool:
    topology = pool.node_topology
    return topology is not None and topology.is_valid() and topology.matches(node_labels)


def admits_node(terms: Sequence[TopologySelectorTerm], node_labels: Mapping[str, str]) -> bool:
    """Whether a storage class's allowed topologies include the node; none at all include every node."""
    return not terms or any(_matches(term, node_labels) for term in terms)


def _matches(term: TopologySelectorTerm, node_labels: Mapping[str, str]) -> bool:
    """An empty term, or one that cannot be a selector, matches no node."""
    expressions = term.match_label_expressions
    return bool(expressions) and all(
        _is_valid(each) and node_labels.get(each.key) in each.values for each in expressions
    )


def _is_valid(requirement: TopologySelectorLabelRequirement) -> bool:
    return is_label_key(requirement.key) and bool(requirement.values) and all(map(is_label_value, requirement.values))


def format_topologies(terms: Sequence[TopologySelectorTerm]) -> str:
    """Allowed topologies in the syntax of ``kubectl -l``, one of which must hold."""
    return " or ".join(
        ",".join(format_requirement(each.key, "In", each.values) for each in term.match_label_expressions)
        for term in terms
    )
