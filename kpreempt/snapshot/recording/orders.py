"""Tracks the order in which a scheduler's cache has the pods of each node, as far as watched events determine it.

A pod that is bound is appended to its node's pods, an update removes and appends it, and the last pod fills the gap of
one that is removed (``pkg/scheduler/backend/cache/cache.go``, ``pkg/scheduler/framework/types.go``, v1.36.3). The order
of pods that existed at the beginning is unknown: a position is only known once a pod was seen taking it, and no longer
if an unknown pod may have moved there.

A scheduler assumes a pod on its node before the API server knows about it. Changes on the node in between may then come
after it; if that results in another order, the positions that differ are unknown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from kpreempt.snapshot.recording.changes import Order

# The maximum number of changes per node that are remembered for assumed pods; beyond, nothing is known.
_REMEMBERED = 16
_A_PAIR = 2


class CachedPod(NamedTuple):
    """The relevant data of a pod: its identity, and its node in a scheduler's cache (empty: none).

    A pod that ``is_waiting`` has no node yet. ``has_failed`` means that its last attempt ended with something other
    than unsuitable nodes, perhaps after it was assumed on a node. ``rejection`` is why its scheduler could not schedule
    it; a pod that ``is_gated`` is not tried.
    """

    key: str
    uid: str
    node: str
    is_waiting: bool = False
    has_failed: bool = False
    rejection: str = ""
    is_gated: bool = False

    def is_surely_unassumed(self, before: CachedPod | None) -> bool:
        """Return whether its scheduler had it on no node when it changed from ``before`` to this."""
        return before is None or before.is_gated or (bool(self.rejection) and self.rejection != before.rejection)


class _Pods(NamedTuple):
    """The pods of a node by position; an empty position has one of the unplaced pods."""

    places: tuple[str, ...] = ()
    unplaced: frozenset[str] = frozenset()

    def appended(self, key: str) -> _Pods:
        return _Pods((*self.places, key), self.unplaced)

    def unknown(self, key: str) -> _Pods:
        return _Pods((*self.places, ""), self.unplaced | {key})

    def removed(self, key: str) -> _Pods:
        *places, last = self.places
        if key in self.unplaced:
            # The last pod fills a gap somewhere among the unplaced.
            return _Pods(tuple(places), (self.unplaced - {key}) | ({last} if last else set()))
        at = self.places.index(key)
        if at < len(places):
            places[at] = last
        return _Pods(tuple(places), self.unplaced)

    def joined(self, other: _Pods) -> _Pods:
        """Return what is equal in both; both must have the same pods."""
        if self == other:
            return self
        pairs = list(zip(self.places, other.places, strict=True))
        return _Pods(
            tuple(first if first == second else "" for first, second in pairs),
            self.unplaced | {first for first, second in pairs if first and first != second},
        )

    def without(self, keys: Collection[str]) -> _Pods:
        """Return the same pods with the positions of these unknown."""
        doubted = {key for key in self.places if key and key in keys}
        return _Pods(tuple("" if key in doubted else key for key in self.places), self.unplaced | doubted)

    def forgotten(self) -> _Pods:
        return self.without(self.places)


class _Step(NamedTuple):
    """A change of a node's pods: the pod that it removed, and the one that it appended (empty: none).

    It ``is_plain`` unless it binds a pod after other changes during which the pod may have been assumed. If there were
    only bindings, ``together`` has their pods.
    """

    number: int
    before: _Pods
    removed: str
    appended: str
    is_plain: bool = True
    together: frozenset[str] = frozenset()

    def after(self, pods: _Pods) -> _Pods:
        pods = pods.removed(self.removed) if self.removed else pods
        return pods.appended(self.appended) if self.appended else pods


class NodeOrders:
    """The pods of each node, updated from watch events in order."""

    def __init__(self, known: Mapping[str, Order] | None = None) -> None:
        """Begin with the ``known`` orders; ``add_existing`` then adds all existing pods."""
        self._nodes = {
            node: _Pods(tuple(order.places), frozenset(order.unplaced))
            for node, order in (known or {}).items()
            if order.is_sound
        }
        self._pods: dict[str, CachedPod] = {}
        # The number of changes when a pod may have been assumed first; absent if it may have been at the beginning.
        self._unassumed: dict[str, int] = {}
        self._steps: dict[str, deque[_Step]] = {}
        self._number = 0

    def add_existing(self, pod: CachedPod) -> None:
        """Add a pod that existed at the beginning; its position is the known one, or unknown."""
        self._pods[pod.key] = pod
        if pod.node:
            pods = self._nodes.get(pod.node, _NONE)
            if pod.key not in pods.unplaced and pod.key not in pods.places:
                self._nodes[pod.node] = pods.unknown(pod.key)

    def change(self, pod: CachedPod) -> None:
        """Process a pod that was added or updated."""
        before = self._pods.get(pod.key)
        if before is not None and before.uid != pod.uid:
            self.delete(pod.key)
            before = None
        self._number += 1
        since = self._number if before is None else self._unassumed.get(pod.key, 0)
        if pod.has_failed:
            self._doubt(since)
        if before is not None and before.node:
            self._step(before.node, removed=pod.key, appended=pod.key if before.node == pod.node else "")
        if pod.node and not (before is not None and before.node == pod.node):
            self._bind(pod, since)
        self._pods[pod.key] = pod
        if pod.is_surely_unassumed(before):
            self._unassumed[pod.key] = self._number

    def delete(self, key: str) -> None:
        """Process a pod that was deleted."""
        self._number += 1
        pod = self._pods.pop(key, None)
        since = self._unassumed.pop(key, 0)
        if pod is not None and pod.node:
            self._step(pod.node, removed=key)
        elif pod is not None and pod.is_waiting:
            self._doubt(since)

    def forget(self) -> None:
        """Forget all orders: another scheduler took over, or changes were missed."""
        self._steps.clear()
        self._doubt(0)

    def known(self) -> Iterator[tuple[str, Order]]:
        """Yield the nodes with pods of which any position is known."""
        for node, pods in self._nodes.items():
            if any(pods.places):
                yield node, Order(pods.places, sorted(pods.unplaced))

    def _bind(self, pod: CachedPod, since: int) -> None:
        """Process a pod that was bound, and may have been assumed at any time since ``since``."""
        before = self._nodes.get(pod.node, _NONE)
        later = [step for step in self._steps.get(pod.node, ()) if step.number > since]
        found = before.appended(pod.key)
        together: frozenset[str] = frozenset()
        # A pod that left the node before cannot have been assumed there all the time.
        was_there = any(pod.key in (step.removed, step.appended) for step in later)
        if not since or len(later) == _REMEMBERED or was_there:
            found = found.forgotten()
        elif all(step.together for step in later):
            together = frozenset({pod.key}).union(*(step.together for step in later))
            # Two pods keep the order of their bindings; more may change positions while they are moved to the end.
            found = found if len(together) <= _A_PAIR else found.without(together)
        elif all(step.is_plain for step in later):
            found = reduce(
                _Pods.joined, (_assumed_before(later[index:], pod.key) for index in range(len(later))), found
            )
        else:
            found = found.forgotten()
        self._note(pod.node, "", pod.key, is_plain=not later and bool(since), together=together)
        self._nodes[pod.node] = found

    def _step(self, node: str, *, removed: str, appended: str = "") -> None:
        step = self._note(node, removed, appended)
        self._nodes[node] = step.after(step.before)
        if not self._nodes[node].places:
            del self._nodes[node]

    def _note(
        self, node: str, removed: str, appended: str, *, is_plain: bool = True, together: frozenset[str] = frozenset()
    ) -> _Step:
        step = _Step(self._number, self._nodes.get(node, _NONE), removed, appended, is_plain, together)
        self._steps.setdefault(node, deque(maxlen=_REMEMBERED)).append(step)
        return step

    def _doubt(self, since: int) -> None:
        """Account for a pod that may have been assumed on any node since then, and forgotten again."""
        for node, steps in self._steps.items():
            if steps[-1].number > since and node in self._nodes:
                self._nodes[node] = self._nodes[node].forgotten()
        if not since:
            # No steps are remembered from before the beginning.
            self._nodes = {node: pods.forgotten() for node, pods in self._nodes.items()}


def _assumed_before(steps: Sequence[_Step], key: str) -> _Pods:
    """Return the pods after these steps and a binding whose pod was assumed before them."""
    pods = steps[0].before.appended(key)
    for step in steps:
        pods = step.after(pods)
    return pods.removed(key).appended(key)


_NONE = _Pods()
