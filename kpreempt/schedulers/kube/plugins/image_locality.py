"""ImageLocality prefers nodes that already have the pod's images (``plugins/imagelocality``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kpreempt.model.pod import Container, Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.in_tree import BulkScorePlugin, in_tree
from kpreempt.schedulers.kube.framework.interface import MAX_NODE_SCORE, Handle, PluginArgs
from kpreempt.schedulers.kube.framework.node_info import ImageState, NodeInfo

_MIB = 1024 * 1024
MIN_THRESHOLD_BYTES = 23 * _MIB
MAX_CONTAINER_THRESHOLD_BYTES = 1000 * _MIB


class ImageLocality(BulkScorePlugin):
    """Scores the sizes of the images on a node, scaled by the share of nodes that have them."""

    name = "ImageLocality"
    is_local = True
    scores_images = True

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._cluster = handle.cluster
        self._num_nodes = len(handle.cluster.node_infos)
        self._behavior = handle.behavior

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return 0 below 23 MiB in total, 100 from 1000 MiB per container."""
        return self._rated(pod, node_info, lambda image: image.size)

    def score_of_every_node(self, state: CycleState, pod: Pod) -> int | None:
        """Return the score of a pod whose images are on no node."""
        is_somewhere = any(normalized_image_name(each) in self._cluster.image_names for each in self.images_of(pod))
        return None if is_somewhere else score_of(0, self.num_counted(pod))

    def score_all(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> list[int]:
        """Score one node for all nodes that have the same of the pod's images."""
        names = [*map(normalized_image_name, self.images_of(pod))]
        distinct = set(names)
        known: dict[object, int] = {}
        scores = []
        for node_info in nodes:
            there = node_info.image_states
            key = None
            if there and not distinct.isdisjoint(there):
                key = tuple((each.size, each.num_nodes) if each else None for each in map(there.get, names))
            if key not in known:
                known[key] = self.score(state, pod, node_info)
            scores.append(known[key])
        return scores

    def is_certain(self, pod: Pod, node_info: NodeInfo) -> bool:
        """Return whether the score is the same whatever sizes were rounded to the known ones."""
        return self.score(CycleState(), pod, node_info) == self._rated(pod, node_info, lambda image: image.most)

    def _rated(self, pod: Pod, node_info: NodeInfo, size: Callable[[ImageState], int]) -> int:
        total = 0
        if node_info.image_states:
            states = map(node_info.image_states.get, map(normalized_image_name, self.images_of(pod)))
            total = sum(scaled_size(size(state), state.num_nodes, self._num_nodes) for state in states if state)
        return score_of(total, self.num_counted(pod))

    def num_counted(self, pod: Pod) -> int:
        """Return the number of images on which the upper threshold depends."""
        counted = len(self.containers_of(pod))
        if self._behavior.counts_image_volumes_in_threshold:
            counted += sum(volume.image is not None for volume in pod.spec.volumes)
        return counted

    def containers_of(self, pod: Pod) -> list[Container]:
        """Return the containers whose images count."""
        if not self._behavior.counts_images_of_init_containers:
            return pod.spec.containers
        return [*pod.spec.init_containers, *pod.spec.containers]

    def images_of(self, pod: Pod) -> list[str]:
        """Return the images that count, as the pod names them."""
        names = [container.image for container in self.containers_of(pod)]
        if not self._behavior.counts_image_volumes:
            return names
        return names + [volume.image.reference for volume in pod.spec.volumes if volume.image is not None]


def scaled_size(size: int, num_nodes: int, of_nodes: int) -> int:
    """Return an image's size scaled by the share of nodes that have it: an image on all nodes counts fully."""
    return int(float(size) * (num_nodes / of_nodes))


def score_of(total: int, counted: int) -> int:
    """Return the score for the size of the images on the node, given the number of images."""
    most = MAX_CONTAINER_THRESHOLD_BYTES * counted
    total = MIN_THRESHOLD_BYTES if total < MIN_THRESHOLD_BYTES else min(total, most)
    number, divisor = MAX_NODE_SCORE * (total - MIN_THRESHOLD_BYTES), most - MIN_THRESHOLD_BYTES
    # Go's division: toward zero.
    quotient = abs(number) // abs(divisor)
    return quotient if (number >= 0) == (divisor >= 0) else -quotient


def normalized_image_name(name: str) -> str:
    """Return the name with the tag that a runtime adds if there is none."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


PLUGIN = in_tree(ImageLocality)
