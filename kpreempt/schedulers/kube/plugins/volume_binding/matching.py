"""The existing volume that suits a claim best.

Follows ``FindMatchingVolume`` (``k8s.io/component-helpers`` v0.36.3 ``storage/volume/pv_helpers.go``): a volume that is
bound to the claim beforehand, or else the smallest that is available and suits. Volumes of one size are taken in the
order of the input, where upstream takes them in the random order of an index; ``orders.py`` says what that can change.
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
from kpreempt.schedulers.kube.versions import Behaviour

_FILESYSTEM = "Filesystem"


class ClassVolumes:
    """The volumes of one storage class, so that those which suit a claim are found without a look at all of them."""

    def __init__(self, volumes: Sequence[PersistentVolume]) -> None:
        self._kept: dict[tuple[str, str], list[PersistentVolume]] = {}
        # By what must be equal, smallest first, with their sizes; those of one size in the order of the input.
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
        """Those that are kept for the claim, in the order of the input."""
        there = self._kept.get((claim.metadata.namespace, claim.metadata.name), ())
        return [volume for volume in there if is_bound_to(volume, claim)]

    def available(self, claim: PersistentVolumeClaim, attributes_class: str) -> VolumesByReach:
        """Those that are kept for nobody and suit the claim, smallest first."""
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
    """The volumes that suit one claim, whatever the node: those bound to it beforehand, and others, smallest first."""

    __slots__ = ("_available", "prebound")

    def __init__(self, claim: PersistentVolumeClaim, volumes: ClassVolumes, behavior: Behaviour) -> None:
        """Choose among the volumes of the claim's storage class.

        Raises ``PluginError`` where the claim cannot be matched at all.
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
        """The best volume that the node reaches, without the excluded names; ``None`` where there is none.

        A volume that is bound to the claim beforehand is the only choice.
        """
        for volume in self.prebound:
            if volume.metadata.name not in excluded:
                return volume if is_reachable(required_nodes(volume), node_labels) else None
        reachable = self._available.reachable(node_labels)
        return next((volume for volume in reachable if volume.metadata.name not in excluded), None)

    def equals_of(
        self, volume: PersistentVolume, node_labels: Mapping[str, str], excluded: Container[str]
    ) -> list[PersistentVolume]:
        """Those that ``on_node`` might have given as well as ``volume``, in another order."""
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
        """Those that are bound to no claim beforehand, smallest first."""
        return self._available.volumes

    @property
    def number(self) -> int:
        """How many volumes suit, those that some nodes cannot reach included."""
        return len(self.prebound) + len(self._available.volumes)


class VolumesByReach:
    """Volumes in a given order, from which those within a node's reach are found without a look at all of them.

    Local volumes are many, and each can be reached from one node. A volume whose only term asks for one of some values
    of a label is kept under these values; the selector still decides.
    """

    __slots__ = ("_by_label", "_others", "volumes")

    def __init__(self, volumes: Sequence[PersistentVolume]) -> None:
        self.volumes = volumes
        self._by_label: dict[str, dict[str, list[int]]] = {}
        self._others: list[int] = []
        for index, volume in enumerate(volumes):
            # A requirement of certain values of a label, without which no node reaches the volume.
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
        """The volumes that a node with these labels reaches, in order."""
        found = [by_value.get(node_labels.get(key, ""), []) for key, by_value in self._by_label.items()]
        for index in merge(self._others, *found):
            if is_reachable(required_nodes(self.volumes[index]), node_labels):
                yield self.volumes[index]


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim, attributes_class: str) -> bool:
    """What even a volume that is bound beforehand must fulfil: its size, mode and attributes class."""
    return (
        storage_capacity(volume).nano >= requested_storage(claim).nano
        and _mode_of(volume.spec.volume_mode) == _mode_of(claim.spec.volume_mode)
        and (volume.spec.volume_attributes_class_name or "") == attributes_class
        and volume.metadata.deletion_timestamp is None
    )


def _mode_of(stated: str | None) -> str:
    return stated or _FILESYSTEM
