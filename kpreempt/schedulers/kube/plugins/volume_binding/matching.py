"""The existing volume that suits a claim best.

Follows ``FindMatchingVolume`` (``k8s.io/component-helpers`` v0.36.3 ``storage/volume/pv_helpers.go``): a volume that is
prebound to the claim, or else the smallest suitable one that is available. Volumes of one size are in input order;
upstream uses the random order of an index, and ``orders.py`` computes what that can change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterator, Mapping, Sequence
from heapq import merge

import msgspec

from kpreempt.model.labels import LabelIndex
from kpreempt.model.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    is_bound_to,
    requested_storage,
    storage_capacity,
)
from kpreempt.schedulers.kube.framework.csi_translation import is_reachable, required_nodes
from kpreempt.schedulers.kube.framework.interface import PluginError
from kpreempt.schedulers.kube.framework.label_selectors import selector_error
from kpreempt.schedulers.kube.versions import Behavior

_FILESYSTEM = "Filesystem"


class ClassVolumes:
    """The volumes of one storage class, indexed so that suitable ones are found without checking all of them."""

    def __init__(self, volumes: Sequence[PersistentVolume]) -> None:
        self._kept: dict[tuple[str, str], list[PersistentVolume]] = {}
        # By what must be equal, smallest first, with their sizes; volumes of one size in input order.
        self._groups: dict[tuple[str, str], tuple[list[PersistentVolume], list[int]]] = {}
        self._found: dict[tuple[object, ...], VolumesByReach] = {}
        self._indexes: dict[tuple[str, str], LabelIndex] = {}
        groups: dict[tuple[str, str], list[PersistentVolume]] = {}
        for volume in volumes:
            reference = volume.spec.claim_ref
            if reference is not None:
                self._kept.setdefault((reference.namespace, reference.name), []).append(volume)
            elif volume.status.phase == "Available" and volume.metadata.deletion_timestamp is None:
                group = _mode_of(volume.spec.volume_mode), volume.spec.volume_attributes_class_name or ""
                groups.setdefault(group, []).append(volume)
        for group, among in groups.items():
            ordered = sorted(among, key=lambda volume: storage_capacity(volume).nano)
            self._groups[group] = ordered, [storage_capacity(volume).nano for volume in ordered]

    def prebound(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Return the volumes prebound to the claim, in input order."""
        there = self._kept.get((claim.metadata.namespace, claim.metadata.name), ())
        return [volume for volume in there if is_bound_to(volume, claim)]

    def available(self, claim: PersistentVolumeClaim, attributes_class: str) -> VolumesByReach:
        """Return the volumes that are not prebound and suit the claim, smallest first."""
        modes, least, selector = claim.spec.access_modes, requested_storage(claim).nano, claim.spec.selector
        group = _mode_of(claim.spec.volume_mode), attributes_class
        key = (*group, frozenset(modes), least, msgspec.json.encode(selector))
        if key not in self._found:
            volumes, sizes = self._groups.get(group, ([], []))
            start = bisect_left(sizes, least)
            if selector is None:
                large = volumes[start:]
            else:
                if group not in self._indexes:
                    self._indexes[group] = LabelIndex(volume.metadata.labels for volume in volumes)
                large = [volumes[each] for each in self._indexes[group].matching(selector) if each >= start]
            requested = set(modes)
            self._found[key] = VolumesByReach([each for each in large if requested.issubset(each.spec.access_modes)])
        return self._found[key]


class SuitableVolumes:
    """The volumes that suit one claim on any node: those prebound to it, and the others, smallest first."""

    __slots__ = ("_available", "prebound")

    def __init__(self, claim: PersistentVolumeClaim, volumes: ClassVolumes, behavior: Behavior) -> None:
        """Choose among the volumes of the claim's storage class.

        Raises ``PluginError`` if the claim cannot be matched at all.
        """
        if not behavior.volume_attributes_class and claim.spec.volume_attributes_class_name:
            raise PluginError(
                f"unsupported volumeAttributesClassName is set on claim {claim.key} "
                "when the feature-gate VolumeAttributesClass is disabled"
            )
        error = selector_error(claim.spec.selector, as_json=behavior.reports_selectors_as_json)
        if error is not None:
            raise PluginError(f"error creating internal label selector for claim: {claim.key}: {error}")
        attributes = (claim.spec.volume_attributes_class_name or "") if behavior.volume_attributes_class else ""
        self.prebound = [each for each in volumes.prebound(claim) if _suits(each, claim, attributes)]
        self._available = volumes.available(claim, attributes)

    def on_node(self, node_labels: Mapping[str, str], excluded: Container[str]) -> PersistentVolume | None:
        """Return the best volume accessible from the node, without the excluded names; ``None`` if there is none.

        A volume that is prebound to the claim is the only choice.
        """
        for volume in self.prebound:
            if volume.metadata.name not in excluded:
                return volume if is_reachable(required_nodes(volume), node_labels) else None
        reachable = self._available.reachable(node_labels)
        return next((volume for volume in reachable if volume.metadata.name not in excluded), None)

    def equals_of(
        self, volume: PersistentVolume, node_labels: Mapping[str, str], excluded: Container[str]
    ) -> list[PersistentVolume]:
        """Return the volumes that ``on_node`` might have returned instead of ``volume``, in another order."""
        if volume in self.prebound:
            return [each for each in self.prebound if each.metadata.name not in excluded]
        size = storage_capacity(volume).nano
        return [
            each
            for each in self._available.reachable(node_labels)
            if storage_capacity(each).nano == size and each.metadata.name not in excluded
        ]

    @property
    def available(self) -> Sequence[PersistentVolume]:
        """The volumes that are not prebound to a claim, smallest first."""
        return self._available.volumes

    @property
    def number(self) -> int:
        """The number of suitable volumes, including those that some nodes cannot access."""
        return len(self.prebound) + len(self._available.volumes)


class VolumesByReach:
    """Volumes in a given order, indexed so that those accessible from a node are found without checking all of them.

    Local volumes are numerous, and each is accessible from one node. A volume whose only term requires one of some
    values of a label is indexed under these values; the selector still decides.
    """

    __slots__ = ("_by_label", "_others", "volumes")

    def __init__(self, volumes: Sequence[PersistentVolume]) -> None:
        self.volumes = volumes
        self._by_label: dict[str, dict[str, list[int]]] = {}
        self._others: list[int] = []
        for index, volume in enumerate(volumes):
            # A requirement of certain values of a label, without which no node can access the volume.
            selector = required_nodes(volume)
            if selector is None or len(selector.node_selector_terms) != 1:
                requirement = None
            else:
                expressions = selector.node_selector_terms[0].match_expressions
                requirement = next((each for each in expressions if each.operator == "In"), None)
            if requirement is None:
                self._others.append(index)
                continue
            by_value = self._by_label.setdefault(requirement.key, {})
            for value in set(requirement.values):
                by_value.setdefault(value, []).append(index)

    def reachable(self, node_labels: Mapping[str, str]) -> Iterator[PersistentVolume]:
        """Yield the volumes that a node with these labels can access, in order."""
        found = [by_value.get(node_labels.get(key, ""), []) for key, by_value in self._by_label.items()]
        for index in merge(self._others, *found):
            if is_reachable(required_nodes(self.volumes[index]), node_labels):
                yield self.volumes[index]


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim, attributes_class: str) -> bool:
    """Return whether the volume meets what even a prebound one must: size, mode and attributes class."""
    return (
        storage_capacity(volume).nano >= requested_storage(claim).nano
        and _mode_of(volume.spec.volume_mode) == _mode_of(claim.spec.volume_mode)
        and (volume.spec.volume_attributes_class_name or "") == attributes_class
        and volume.metadata.deletion_timestamp is None
    )


def _mode_of(stated: str | None) -> str:
    return stated or _FILESYSTEM
