"""In which order a scheduler's cache has the pods of each node, as far as what it has seen tells that.

A pod that is bound is appended to its node's pods, an update takes it out and appends it, and the last one fills the
gap of one that is taken out (``pkg/scheduler/backend/cache/cache.go``, ``pkg/scheduler/framework/types.go``, v1.36.3).
Pods that were there at the beginning stand in an order that nobody knows: a place is known only once a pod was seen to
take it, and no longer where an unknown one may have moved there.

A scheduler assumes a pod to be on its node before the API server knows of it. What happened on the node in between may
then have come after it: where that leads to another order, the places that differ are not known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from kpreempt.snapshot.recording.changes import Order

# So many changes of a node are remembered for pods that are assumed; beyond, nothing is known.
_REMEMBERED = 16
_A_PAIR = 2


class CachedPod(NamedTuple):
    """What counts of a pod: who it is, and where a scheduler's cache has it (empty: in no node's pods).

    One that ``is_waiting`` has no node yet. ``has_failed`` says that its last attempt ended with something else than
    nodes that do not fit, perhaps after it had been assumed somewhere. ``rejection`` is why its scheduler has refused
    it, and one that ``is_gated`` is not tried.
    """

    key: str
    uid: str
    node: str
    is_waiting: bool = False
    has_failed: bool = False
    rejection: str = ""
    is_gated: bool = False

    def is_surely_unassumed(self, before: CachedPod | None) -> bool:
        """Whether its scheduler had it on no node when it was changed from ``before`` to this."""
        return before is None or before.is_gated or (bool(self.rejection) and self.rejection != before.rejection)


class _Pods(NamedTuple):
    """The pods of a node by place; an empty place is one of the unplaced."""

    places: tuple[str, ...] = ()
    unplaced: frozenset[str] = frozenset()

    def appended(self, key: str) -> _Pods:
        return _Pods((*self.places, key), self.unplaced)

    def unknown(self, key: str) -> _Pods:
        return _Pods((*self.places, ""), self.unplaced | {key})

    def removed(self, key: str) -> _Pods:
        *places, last = self.places
        if key in self.unplaced:
            # The last one fills a gap somewhere among the unplaced.
            return _Pods(tuple(places), (self.unplaced - {key}) | ({last} if last else set()))
        at = self.places.index(key)
        if at < len(places):
            places[at] = last
        return _Pods(tuple(places), self.unplaced)

    def joined(self, other: _Pods) -> _Pods:
        """What is the same in both, of the same pods."""
        if self == other:
            return self
        pairs = list(zip(self.places, other.places, strict=True))
        return _Pods(
            tuple(mine if mine == its else "" for mine, its in pairs),
            self.unplaced | {mine for mine, its in pairs if mine and mine != its},
        )

    def without(self, keys: Collection[str]) -> _Pods:
        """The same without knowing where these are."""
        doubted = {key for key in self.places if key and key in keys}
        return _Pods(tuple("" if key in doubted else key for key in self.places), self.unplaced | doubted)

    def forgotten(self) -> _Pods:
        return self.without(self.places)


class _Step(NamedTuple):
    """A change of a node's pods: which one it took out, and which it appended (empty: none).

    It ``is_plain`` unless it binds a pod after others have changed while that one may have been assumed. Where only
    bindings came together, ``together`` are their pods.
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
    """The pods of each node, followed from what a watch tells, in its order."""

    def __init__(self, known: Mapping[str, Order] | None = None) -> None:
        """Begin with what is ``known``; ``put`` then brings all pods that there are."""
        self._nodes = {
            node: _Pods(tuple(order.places), frozenset(order.unplaced))
            for node, order in (known or {}).items()
            if order.is_sound
        }
        self._pods: dict[str, CachedPod] = {}
        # Since when a pod may have been assumed, counted in changes; absent where it may have been at the beginning.
        self._unassumed: dict[str, int] = {}
        self._steps: dict[str, deque[_Step]] = {}
        self._number = 0

    def put(self, pod: CachedPod) -> None:
        """A pod is there at the beginning; its place is the known one, or not known."""
        self._pods[pod.key] = pod
        if pod.node:
            pods = self._nodes.get(pod.node, _NONE)
            if pod.key not in pods.unplaced and pod.key not in pods.places:
                self._nodes[pod.node] = pods.unknown(pod.key)

    def change(self, pod: CachedPod) -> None:
        """A pod was added or updated."""
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
        """A pod is gone."""
        self._number += 1
        pod = self._pods.pop(key, None)
        since = self._unassumed.pop(key, 0)
        if pod is not None and pod.node:
            self._step(pod.node, removed=key)
        elif pod is not None and pod.is_waiting:
            self._doubt(since)

    def forget(self) -> None:
        """Nothing is known of any order: another scheduler goes on, or changes were missed."""
        self._steps.clear()
        self._doubt(0)

    def known(self) -> Iterator[tuple[str, Order]]:
        """The nodes with pods of which any place is known."""
        for node, pods in self._nodes.items():
            if any(pods.places):
                yield node, Order(pods.places, sorted(pods.unplaced))

    def _bind(self, pod: CachedPod, since: int) -> None:
        """A pod has come to its node, and may have been assumed there at any time since then."""
        before = self._nodes.get(pod.node, _NONE)
        later = [step for step in self._steps.get(pod.node, ()) if step.number > since]
        found = before.appended(pod.key)
        together: frozenset[str] = frozenset()
        # One that was on the node before, and left it, cannot have been assumed there all the time.
        was_there = any(pod.key in (step.removed, step.appended) for step in later)
        if not since or len(later) == _REMEMBERED or was_there:
            found = found.forgotten()
        elif all(step.together for step in later):
            together = frozenset({pod.key}).union(*(step.together for step in later))
            # Two leave the order in which they were bound, more may change places while they are moved to the end.
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
        """A pod may have been assumed on any node since then, and forgotten again."""
        for node, steps in self._steps.items():
            if steps[-1].number > since and node in self._nodes:
                self._nodes[node] = self._nodes[node].forgotten()
        if not since:
            # Of what came before the beginning no steps are remembered.
            self._nodes = {node: pods.forgotten() for node, pods in self._nodes.items()}


def _assumed_before(steps: Sequence[_Step], key: str) -> _Pods:
    """The pods after these steps and a binding, where the pod was assumed before them."""
    pods = steps[0].before.appended(key)
    for step in steps:
        pods = step.after(pods)
    return pods.removed(key).appended(key)


_NONE = _Pods()
