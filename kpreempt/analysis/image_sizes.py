"""How exactly the sizes of images have to be known for every pod of a cluster to score on every node as it does.

What identifies a public image is its size to the byte. ``ImageLocality`` rates to about ten mebibytes.
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

# Of how many bits at the end a size is not told at the most: of 4 MiB, where a point of a score is worth ten and more.
_MOST_BITS = 22
# Images by their names, as a pod has them, and of how many of these the most is rated.
_Wish = tuple[tuple[str, ...], int]


class _Image(msgspec.Struct):
    """An image by one of its names: its size, unless nodes disagree, and a bit for each node that has it."""

    size: int | None
    nodes: int


class ImageSizes:
    """What of the images on a cluster's nodes has to stay for the scores of its pods."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        """Look through all pods and nodes."""
        self._num_nodes = len(cluster.nodes)
        wishes = _wishes(cluster)
        self._wanted = frozenset(name for names, _ in wishes for name in names)
        self._images = _images(cluster, self._wanted)
        self._hidden_bits = {
            # Volcano's scores are over other nodes from session to session: what it may score stays as it is.
            image.size: 0 if cluster.pod_groups or cluster.queues else _MOST_BITS
            for image in self._images.values()
            if image.size is not None
        }
        for names, counted in wishes:
            self._hide_less_for(names, counted)

    def rounded(self, images: Iterable[ContainerImage]) -> list[ContainerImage]:
        """A node's images, as far as a pod of the cluster names them, with sizes as exact as needed."""
        kept = []
        for image in images:
            names = [name for name in image.names if name in self._wanted]
            if not names:
                continue
            least, up_to = image.size_bytes, image.size_bytes_up_to
            if not up_to and all(self._images[name].size is not None for name in names):
                least, up_to = self._range(image.size_bytes)
            kept.append(ContainerImage(names, least, up_to if up_to > least else 0))
        return kept

    def _range(self, size: int) -> tuple[int, int]:
        bits = self._hidden_bits[size]
        least = size >> bits << bits
        return least, least + (1 << bits) - 1

    def _hide_less_for(self, names: tuple[str, ...], counted: int) -> None:
        """Tell as much of the sizes of a pod's images as its scores hang on."""
        present = [(name, image) for name in names if (image := self._images.get(name)) is not None]
        if any(image.size is None for _, image in present):
            self._hidden_bits |= {image.size: 0 for _, image in present if image.size is not None}
            return
        for found in _together(dict(present), (1 << self._num_nodes) - 1):
            # An image counts as often as the pod names it.
            rated = [(image.size or 0, image.nodes.bit_count()) for name, image in present if name in found]
            while self._score(rated, counted, 0) != self._score(rated, counted, 1):
                most = max(self._hidden_bits[size] for size, _ in rated)
                self._hidden_bits |= {size: most - 1 for size, _ in rated if self._hidden_bits[size] == most}

    def _score(self, rated: Iterable[tuple[int, int]], counted: int, end: int) -> int:
        """The score where all sizes are at one end of what they may be."""
        sizes = (scaled_size(self._range(size)[end], nodes, self._num_nodes) for size, nodes in rated)
        return score_of(sum(sizes), counted)


class NamedImages:
    """Images on nodes, as far as pods name them, which may come and go; with sizes that are exact."""

    def __init__(self) -> None:
        self._wanted: set[str] = set()

    def add(self, cluster: ClusterSnapshot) -> None:
        """More pods."""
        self._wanted.update(name for names, _ in _wishes(cluster) for name in names)

    def of(self, images: Iterable[ContainerImage]) -> list[ContainerImage]:
        """A node's images without those that no pod names."""
        found = ((image, [name for name in image.names if name in self._wanted]) for image in images)
        return [msgspec.structs.replace(image, names=names) for image, names in found if names]


def _wishes(cluster: ClusterSnapshot) -> set[_Wish]:
    """What pods want of images, as any version counts it."""
    state = ClusterState(ClusterSnapshot(), behavior(), now=REDACTED_AT, scheduler_names=frozenset())
    raters = [ImageLocality({}, Handle(state, behavior(version))) for version in RELEASES]
    return {
        (tuple(sorted(map(normalized_image_name, rater.images_of(pod)))), rater.num_counted(pod))
        for pod in {_all_images(pod): pod for pod in cluster.pods}.values()
        for rater in raters
    }


def _all_images(pod: Pod) -> tuple[tuple[str, ...], ...]:
    """The images of a pod, by what they are for."""
    spec = pod.spec
    return (
        tuple([each.image for each in spec.containers]),
        tuple([each.image for each in spec.init_containers]),
        tuple([each.image.reference for each in spec.volumes if each.image is not None]),
    )


def _images(cluster: ClusterSnapshot, wanted: frozenset[str]) -> dict[str, _Image]:
    images: dict[str, _Image] = {}
    for index, node in enumerate(cluster.nodes):
        for image in node.status.images:
            size = image.size_bytes if image.size_bytes > 0 and not image.size_bytes_up_to else None
            for name in image.names:
                if name in wanted:
                    known = images.setdefault(name, _Image(size, 0))
                    known.nodes |= 1 << index
                    known.size = size if size == known.size else None
    return images


def _together(images: dict[str, _Image], nodes: int) -> Iterator[frozenset[str]]:
    """Which of the images are together on a node, each set once; but for none."""
    groups: dict[frozenset[str], int] = {frozenset(): nodes}
    for name, image in images.items():
        split: dict[frozenset[str], int] = {}
        for found, where in groups.items():
            if having := where & image.nodes:
                split[found | {name}] = having
            if lacking := where & ~image.nodes:
                split[found] = lacking
        groups = split
    yield from (found for found in groups if found)
