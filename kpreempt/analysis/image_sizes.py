"""How precise image sizes must be so that every pod of a cluster gets the same scores on every node.

Exact sizes would identify public images. ``ImageLocality`` only distinguishes about ten mebibytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kpreempt.model.cluster import REDACTED_AT, ClusterSnapshot
from kpreempt.model.node import ContainerImage
from kpreempt.model.pod import Pod
from kpreempt.scheduler_table import RELEASES
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.interface import Handle
from kpreempt.schedulers.kube.plugins.image_locality import (
    ImageLocality,
    normalized_image_name,
    scaled_size,
    score_of,
)
from kpreempt.schedulers.kube.versions import behavior

# The maximum number of hidden low bits of a size: 4 MiB, while a point of a score is ten or more.
_MAX_BITS = 22
# Normalized image names of a pod, and the number of images over which the score is averaged.
_ImageSet = tuple[tuple[str, ...], int]


class _Image(msgspec.Struct):
    """An image by name: its size, unless nodes disagree, and a bit for each node that has it."""

    size: int | None
    nodes: int


class ImageSizes:
    """The precision of image sizes that the scores of a cluster's pods require."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        """Read all pods and nodes."""
        self._num_nodes = len(cluster.nodes)
        wishes = _image_sets(cluster)
        self._names = frozenset(name for names, _ in wishes for name in names)
        self._images = _images(cluster, self._names)
        self._hidden_bits = {
            # Volcano's scores may cover other nodes in each session, so keep exact sizes.
            image.size: 0 if cluster.pod_groups or cluster.queues else _MAX_BITS
            for image in self._images.values()
            if image.size is not None
        }
        for names, counted in wishes:
            self._reveal_for(names, counted)

    def rounded(self, images: Iterable[ContainerImage]) -> list[ContainerImage]:
        """A node's images that pods of the cluster use, with sizes as precise as needed."""
        images_kept = []
        for image in images:
            names = [name for name in image.names if name in self._names]
            if not names:
                continue
            lower, upper = image.size_bytes, image.size_bytes_up_to
            if not upper and all(self._images[name].size is not None for name in names):
                lower, upper = self._range(image.size_bytes)
            images_kept.append(ContainerImage(names, lower, upper if upper > lower else 0))
        return images_kept

    def _range(self, size: int) -> tuple[int, int]:
        bits = self._hidden_bits[size]
        lower = size >> bits << bits
        return lower, lower + (1 << bits) - 1

    def _reveal_for(self, names: tuple[str, ...], counted: int) -> None:
        """Reveal as much of the sizes of a pod's images as its scores depend on."""
        present = [(name, image) for name in names if (image := self._images.get(name)) is not None]
        if any(image.size is None for _, image in present):
            self._hidden_bits |= {image.size: 0 for _, image in present if image.size is not None}
            return
        for found in _together(dict(present), (1 << self._num_nodes) - 1):
            # An image counts as often as the pod names it.
            rated = [(image.size or 0, image.nodes.bit_count()) for name, image in present if name in found]
            while self._score(rated, counted, 0) != self._score(rated, counted, 1):
                hidden = max(self._hidden_bits[size] for size, _ in rated)
                self._hidden_bits |= {size: hidden - 1 for size, _ in rated if self._hidden_bits[size] == hidden}

    def _score(self, rated: Iterable[tuple[int, int]], counted: int, end: int) -> int:
        """The score if all sizes are at one end of their range."""
        sizes = (scaled_size(self._range(size)[end], nodes, self._num_nodes) for size, nodes in rated)
        return score_of(sum(sizes), counted)


class NamedImages:
    """Images on nodes that pods use, with exact sizes; pods may be added."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def add(self, cluster: ClusterSnapshot) -> None:
        """Add the images of more pods."""
        self._names.update(name for names, _ in _image_sets(cluster) for name in names)

    def of(self, images: Iterable[ContainerImage]) -> list[ContainerImage]:
        """A node's images without those that no pod uses."""
        found = ((image, [name for name in image.names if name in self._names]) for image in images)
        return [msgspec.structs.replace(image, names=names) for image, names in found if names]


def _image_sets(cluster: ClusterSnapshot) -> set[_ImageSet]:
    """The image sets of all pods, as counted by any version."""
    state = ClusterState(ClusterSnapshot(), behavior(), now=REDACTED_AT, scheduler_names=frozenset())
    raters = [ImageLocality({}, Handle(state, behavior(version))) for version in RELEASES]
    return {
        (tuple(sorted(map(normalized_image_name, rater.images_of(pod)))), rater.num_counted(pod))
        for pod in {_all_images(pod): pod for pod in cluster.pods}.values()
        for rater in raters
    }


def _all_images(pod: Pod) -> tuple[tuple[str, ...], ...]:
    """The images of a pod, by purpose."""
    spec = pod.spec
    return (
        tuple([each.image for each in spec.containers]),
        tuple([each.image for each in spec.init_containers]),
        tuple([each.image.reference for each in spec.volumes if each.image is not None]),
    )


def _images(cluster: ClusterSnapshot, names: frozenset[str]) -> dict[str, _Image]:
    images: dict[str, _Image] = {}
    for index, node in enumerate(cluster.nodes):
        for image in node.status.images:
            size = image.size_bytes if image.size_bytes > 0 and not image.size_bytes_up_to else None
            for name in image.names:
                if name in names:
                    known = images.setdefault(name, _Image(size, 0))
                    known.nodes |= 1 << index
                    known.size = size if size == known.size else None
    return images


def _together(images: dict[str, _Image], nodes: int) -> Iterator[frozenset[str]]:
    """The combinations of images that occur together on a node, each once, except the empty one."""
    groups: dict[frozenset[str], int] = {frozenset(): nodes}
    for name, image in images.items():
        split: dict[frozenset[str], int] = {}
        for found, on_nodes in groups.items():
            if with_image := on_nodes & image.nodes:
                split[found | {name}] = with_image
            if without_image := on_nodes & ~image.nodes:
                split[found] = without_image
        groups = split
    yield from (found for found in groups if found)
