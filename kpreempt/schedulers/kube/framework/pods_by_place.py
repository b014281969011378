"""Pods grouped by the node that they are on, made anew or from those of a list that was much the same."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kpreempt.model.pod import Pod

if TYPE_CHECKING:
    from kpreempt.schedulers.pod_changes import PodChanges

# The name of a node; or that a pod waits for room that is kept for it, or takes no room at all.
Place = str | None
NOMINATED: Place = None
NOWHERE: Place = ""

PlaceOf = Callable[[Pod], Place]

_STRETCH = 512


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
    """The groups of the list ``now``, given those of ``pods``. A group that stays is the same list; none is changed.

    Only pods that are not the same objects in both lists are looked at: in a simulation a few of many pods change from
    a decision to the next.
    """
    start = _common_start(pods, now)
    end = _common_end(pods, now, start)
    old, new = pods[start : len(pods) - end], now[start : len(now) - end]
    changed = dict(groups)
    index_of = dict(zip(map(id, new), range(len(new)), strict=True))
    gone, come = _differences(old, new, index_of, place_of)
    if not gone and not come:
        return changed
    head = set(map(id, pods[:start]))

    def rank(pod: Pod) -> int:
        """Pods before the first difference, then those up to the last in their order, then all others."""
        return -1 if id(pod) in head else index_of.get(id(pod), len(new))

    for place in gone.keys() | come.keys():
        group, leaving = groups.get(place, []), set(map(id, gone.get(place, ())))
        after = [pod for pod in group if id(pod) not in leaving]
        if place in come:
            after = sorted([*after, *come[place]], key=rank)
        # An equal pod is not enough: the next time it is looked for as the object that is in the list.
        if not _are_same(after, group):
            changed[place] = after
    return changed


def moved(groups: Mapping[Place, list[Pod]], changes: PodChanges, place_of: PlaceOf) -> dict[Place, list[Pod]]:
    """The same as ``regrouped``, where the changes are known."""
    gone: dict[Place, list[Pod]] = {}
    come: dict[Place, list[Pod]] = {}
    add_by_place(gone, (old for old, new in changes.pods if old is not None and old is not new), place_of)
    add_by_place(come, (new for old, new in changes.pods if new is not None and old is not new), place_of)
    changed = dict(groups)
    for place in gone.keys() | come.keys():
        leaving = set(map(id, gone.get(place, ())))
        staying = [pod for pod in groups.get(place, ()) if id(pod) not in leaving]
        changed[place] = sorted([*staying, *come.get(place, ())], key=lambda pod: changes.rank[pod.key])
    return changed


def _differences(
    old: Sequence[Pod], new: Sequence[Pod], index_of: Mapping[int, int], place_of: PlaceOf
) -> tuple[dict[Place, list[Pod]], dict[Place, list[Pod]]]:
    """What leaves and what comes, by place; all of it where those that stay are in another order.

    ``index_of`` has the places of ``new`` by the identity of its pods.
    """
    were = dict(zip(map(id, old), old, strict=True))
    staying = list(filter(index_of.__contains__, were))
    gone: dict[Place, list[Pod]] = {}
    come: dict[Place, list[Pod]] = {}
    if staying == list(filter(were.__contains__, index_of)):
        add_by_place(gone, (were[each] for each in were.keys() - index_of.keys()), place_of)
        add_by_place(come, (new[index_of[each]] for each in index_of if each not in were), place_of)
    else:
        add_by_place(gone, old, place_of)
        add_by_place(come, new, place_of)
    return gone, come


def _common_start(one: Sequence[Pod], other: Sequence[Pod]) -> int:
    """How many pods at the start are the same objects."""
    most = min(len(one), len(other))
    start = 0
    while start < most and _are_same(one[start : start + _STRETCH], other[start : start + _STRETCH]):
        start += _STRETCH
    while start < most and one[start] is other[start]:
        start += 1
    return min(start, most)


def _common_end(one: Sequence[Pod], other: Sequence[Pod], start: int) -> int:
    """How many pods at the end are the same objects, of those behind the first ``start``."""
    most = min(len(one), len(other)) - start
    end = 0
    while end + _STRETCH <= most and _are_same(
        one[len(one) - end - _STRETCH : len(one) - end], other[len(other) - end - _STRETCH : len(other) - end]
    ):
        end += _STRETCH
    while end < most and one[len(one) - end - 1] is other[len(other) - end - 1]:
        end += 1
    return end


def _are_same(one: Sequence[Pod], other: Sequence[Pod]) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))
