"""Pods grouped by the node that they are on, made anew or from those of a list that was much the same.

So is how many pods with which labels are on which nodes. A selector is put to each set of labels that there is, and not
to each pod: replicas share theirs.
"""

from __future__ import annotations

import operator
from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.node_info import NodeInfo

if TYPE_CHECKING:
    from kpreempt.schedulers.interface import PodChanges


class NominatedTo(NamedTuple):
    """The place of pods for which a node keeps room."""

    node: str


# The name of a node, the room that is kept on one, or that a pod takes no room at all.
Place = str | NominatedTo
NOWHERE: Place = ""

PlaceOf = Callable[[Pod], Place]

_STRETCH = 512
# So far ahead both lists are searched for the pod with which they go on alike.
_NEAR = 32


def add_by_place(groups: dict[Place, list[Pod]], pods: Iterable[Pod], place_of: PlaceOf) -> None:
    """Put every pod that has a place into the group of that place, in the order of ``pods``."""
    for pod in pods:
        place = place_of(pod)
        if place != NOWHERE:
            group = groups.get(place)
            if group is None:
                groups[place] = [pod]
            else:
                group.append(pod)


def regrouped(
    groups: Mapping[Place, list[Pod]], pods: Sequence[Pod], now: Sequence[Pod], place_of: PlaceOf
) -> dict[Place, list[Pod]]:
    """The groups of the list ``now`` that are other ones, given those of ``pods``. None is changed.

    Only pods that are not the same objects in both lists are looked at: in a simulation a few of many pods change from
    a decision to the next.
    """
    start, old, new = _differences(pods, now)
    gone: dict[Place, list[Pod]] = {}
    come: dict[Place, list[Pod]] = {}
    add_by_place(gone, old, place_of)
    add_by_place(come, new, place_of)
    after: dict[Place, list[Pod]] = {}
    for place in gone.keys() | come.keys():
        leaving = set(map(id, gone.get(place, ())))
        after[place] = [pod for pod in groups.get(place, ()) if id(pod) not in leaving]
    _insert(after, come, now, start)
    # An equal pod is not enough: the next time it is looked for as the object that is in the list.
    return {place: group for place, group in after.items() if not _are_same(group, groups.get(place, ()))}


def moved(groups: Mapping[Place, list[Pod]], changes: PodChanges, place_of: PlaceOf) -> dict[Place, list[Pod]]:
    """The same as ``regrouped``, where the changes are known."""
    gone: dict[Place, list[Pod]] = {}
    come: dict[Place, list[Pod]] = {}
    add_by_place(gone, (old for old, new in changes.pods if old is not None and old is not new), place_of)
    add_by_place(come, (new for old, new in changes.pods if new is not None and old is not new), place_of)
    changed = {}
    for place in gone.keys() | come.keys():
        leaving = set(map(id, gone.get(place, ())))
        group = changed[place] = [pod for pod in groups.get(place, ()) if id(pod) not in leaving]
        for pod in come.get(place, ()):
            insort(group, pod, key=lambda each: changes.rank[each.key])
    return changed


def _insert(groups: dict[Place, list[Pod]], come: Mapping[Place, list[Pod]], now: Sequence[Pod], start: int) -> None:
    """Put those that come into their groups, in the order of ``now``, where all of them are behind the ``start``."""
    places = {id(pod): place for place in come for pod in (*groups[place], *come[place])}
    behind: dict[Place, list[Pod]] = {place: [] for place in come}
    tail = now[start:]
    for pod in compress(tail, map(places.__contains__, map(id, tail))):
        behind[places[id(pod)]].append(pod)
    for place, pods in behind.items():
        known = set(map(id, pods))
        groups[place] = [*(pod for pod in groups[place] if id(pod) not in known), *pods]


def _differences(old: Sequence[Pod], new: Sequence[Pod]) -> tuple[int, list[Pod], list[Pod]]:
    """Where two lists first differ, and what leaves and comes; a pod that may have moved does both."""
    first = at = there = _common(old, new, 0, 0)
    gone: list[Pod] = []
    come: list[Pod] = []
    while at < len(old) or there < len(new):
        skipped, added = _until_same(old, new, at, there)
        gone += old[at : at + skipped]
        come += new[there : there + added]
        at, there = at + skipped, there + added
        same = _common(old, new, at, there)
        at, there = at + same, there + same
    return first, gone, come


def _until_same(old: Sequence[Pod], new: Sequence[Pod], at: int, there: int) -> tuple[int, int]:
    """How many pods of each list to pass over until both go on with the same pod; all, where that is not near."""
    left, coming = len(old) - at, len(new) - there
    for steps in range(1, min(_NEAR, max(left, coming)) + 1):
        for skipped, added in ((steps, 0), (steps, steps), (0, steps)):
            if skipped < left and added < coming and old[at + skipped] is new[there + added]:
                return skipped, added
    return left, coming


def _common(one: Sequence[Pod], other: Sequence[Pod], at: int, there: int) -> int:
    """How many pods are the same objects in both lists, from one place of each on."""
    most = min(len(one) - at, len(other) - there)
    same = 0
    while same < most and _are_same(
        one[at + same : at + same + _STRETCH], other[there + same : there + same + _STRETCH]
    ):
        same += _STRETCH
    while same < most and one[at + same] is other[there + same]:
        same += 1
    return min(same, most)


def _are_same(one: Sequence[Pod], other: Sequence[Pod]) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))


# Labels as they stand: those in another order are other ones here, and selected alike.
_Labels = tuple[tuple[str, str], ...]
# Of one namespace: how many pods have the labels, by the node's name; none is 0.
_Counts = dict[_Labels, dict[str, int]]


class PodsByLabels:
    """The pods of nodes by namespace and labels, without those that are being deleted. Never changed."""

    __slots__ = ("_by_namespace",)

    def __init__(self, nodes: Iterable[NodeInfo]) -> None:
        self._by_namespace: dict[str, _Counts] = {}
        for node_info in nodes:
            for namespace, labels in node_info.labels_by_namespace.items():
                counts = self._by_namespace.setdefault(namespace, {})
                for each in labels:
                    on_nodes = counts.setdefault(tuple(each.items()), {})
                    on_nodes[node_info.name] = on_nodes.get(node_info.name, 0) + 1

    def followed(self, changed: Iterable[tuple[str, Sequence[Pod], Sequence[Pod]]]) -> PodsByLabels:
        """The same with other pods on the nodes that ``changed``, given by name with their pods before and now."""
        differences: dict[str, dict[tuple[_Labels, str], int]] = {}
        for name, before, now in changed:
            same = set(map(id, before)) & set(map(id, now))
            for pods, sign in ((before, -1), (now, 1)):
                for pod in pods:
                    metadata = pod.metadata
                    if id(pod) not in same and metadata.deletion_timestamp is None:
                        of_namespace = differences.setdefault(metadata.namespace, {})
                        key = (tuple(metadata.labels.items()), name)
                        of_namespace[key] = of_namespace.get(key, 0) + sign
        following = PodsByLabels(())
        following._by_namespace = dict(self._by_namespace)
        for namespace, of_namespace in differences.items():
            there = {key: by for key, by in of_namespace.items() if by}
            if not there:
                continue
            # What is shared with those before is copied first, once.
            counts = following._by_namespace[namespace] = dict(following._by_namespace.get(namespace, {}))
            other_labels = {labels for labels, _ in there}
            counts |= {labels: dict(counts.get(labels, {})) for labels in other_labels}
            for (labels, node), by in there.items():
                if count := counts[labels].pop(node, 0) + by:
                    counts[labels][node] = count
            for labels in other_labels:
                if not counts[labels]:
                    del counts[labels]
        return following

    def selected(self, namespace: str, selector: LabelSelector) -> dict[str, int]:
        """How many pods of the namespace are selected, by the name of their node; nodes without any are left out."""
        found: dict[str, int] = {}
        for labels, on_nodes in self._by_namespace.get(namespace, {}).items():
            if selector.matches(dict(labels)):
                for node, count in on_nodes.items():
                    found[node] = found.get(node, 0) + count
        return found
