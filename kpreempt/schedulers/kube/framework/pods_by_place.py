"""Pods grouped by the node that they are on, made anew or from those of a list that was much the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from kpreempt.model.pod import Pod

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

    Only where the lists differ, from the first difference to the last, and on the shorter side of that are pods looked
    at: in a play one of many pods changes from a decision to the next.
    """
    start = _common_start(pods, now)
    end = _common_end(pods, now, start)
    gone: dict[Place, list[Pod]] = {}
    come: dict[Place, list[Pod]] = {}
    add_by_place(gone, pods[start : len(pods) - end], place_of)
    add_by_place(come, now[start : len(now) - end], place_of)
    changed = dict(groups)
    if not gone and not come:
        return changed
    is_short = start <= end
    counts = Counter(map(place_of, pods[:start] if is_short else pods[len(pods) - end :]))
    for place in gone.keys() | come.keys():
        group, leaving = groups.get(place, []), len(gone.get(place, ()))
        head = counts[place] if is_short else len(group) - leaving - counts[place]
        after = [*group[:head], *come.get(place, ()), *group[head + leaving :]]
        # Lists compare the same object as equal without a look at it.
        if after != group:
            changed[place] = after
    return changed


def _common_start(one: Sequence[Pod], other: Sequence[Pod]) -> int:
    """How many pods at the start are the same."""
    most = min(len(one), len(other))
    start = 0
    while start < most and one[start : start + _STRETCH] == other[start : start + _STRETCH]:
        start += _STRETCH
    while start < most and one[start] == other[start]:
        start += 1
    return min(start, most)


def _common_end(one: Sequence[Pod], other: Sequence[Pod], start: int) -> int:
    """How many pods at the end are the same, of those behind the first ``start``."""
    most = min(len(one), len(other)) - start
    end = 0
    while end + _STRETCH <= most and (
        one[len(one) - end - _STRETCH : len(one) - end] == other[len(other) - end - _STRETCH : len(other) - end]
    ):
        end += _STRETCH
    while end < most and one[len(one) - end - 1] == other[len(other) - end - 1]:
        end += 1
    return end
