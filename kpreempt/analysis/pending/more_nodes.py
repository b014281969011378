"""How many new nodes, and of which kinds, would place all pods that wait, together and without an eviction.

Each pod is for the smallest kind that could take it. How many nodes of a kind its pods need is found by placing them on
new nodes alone, one after the other; then all pods of the queue are placed in the whole cluster with these nodes, which
proves it. What it takes is bounded by counts, not by the clock, so that the same cluster has the same answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from datetime import datetime
from itertools import cycle
from typing import Any

from msgspec.structs import replace

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.nodes.copies import Added, Copier, Kind, NewNodes, told_assumptions, told_kind, with_nodes
from kpreempt.analysis.pending.verdicts import likeness_to
from kpreempt.analysis.workload.answer import CHOICES, Placing
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.verdict import Outcome
from kpreempt.verdict.pending import MoreNodes, NodesOfKind

# How many nodes proofs may look at, once for each pod that they place.
_MOST_LOOKS = 100_000
_MOST_PODS = 400
_MOST_NODES = 100
# How often nodes are added where the whole cluster takes more of them than new nodes alone.
_ROUNDS = 3
_BY_CHANCE = "of equal nodes the scheduler picks one at random; the first and the last choice were followed throughout"
_FIRST_BY_CHANCE = "of equal nodes the scheduler picks one at random; the first was followed throughout"


def more_nodes(
    cluster: ClusterSnapshot,
    scheduler: Scheduler,
    prepared: Any,
    queue: Sequence[tuple[Pod, Outcome]],
    *,
    now: datetime,
    num_others: int = 0,
) -> MoreNodes | None:
    """What is found for the pods of a queue, in its order, with what becomes of each as things are.

    ``prepared`` is the cluster as the scheduler has made it ready. ``num_others`` are in the queue besides, and nobody
    asked about them. ``None`` where none waits for room.
    """
    waiting = [pod for pod, outcome in queue if outcome is not Outcome.LANDS]
    if not waiting or not cluster.nodes:
        return None
    if scheduler.tells_pods_apart:
        return MoreNodes(not_sought="not with extenders, or plugins that tell pods apart")
    if len(queue) > _MOST_PODS or len(queue) * len(cluster.nodes) > _MOST_LOOKS:
        return MoreNodes(not_sought=f"not for {len(queue):,} pods on {len(cluster.nodes):,} nodes")
    search = _Search(cluster, scheduler, prepared, [pod for pod, _ in queue], now=now)
    found = search.run(waiting)
    if num_others and found.nodes:
        beside = f"pending pods that were not asked about ({num_others:,}) take none of this room"
        found = replace(found, assumed=[*found.assumed, beside])
    return found


class _Search:
    def __init__(
        self, cluster: ClusterSnapshot, scheduler: Scheduler, prepared: Any, queue: Sequence[Pod], *, now: datetime
    ) -> None:
        self._cluster = cluster
        self._scheduler = scheduler
        self._prepared = prepared
        self._queue = queue
        self._now = now
        self._new = NewNodes(cluster, scheduler, now=now)
        self._looks = _MOST_LOOKS

    def run(self, waiting: Sequence[Pod]) -> MoreNodes:
        answer = MoreNodes(num_kinds=self._new.num_kinds, untried=self._new.untried)
        missing = {pod.key for pod in waiting}
        extra: Counter[str] = Counter()
        for _ in range(_ROUNDS):
            groups, unplaced = self._by_kind([pod for pod in self._queue if pod.key in missing])
            if not groups:
                return replace(answer, unplaced=unplaced)
            counts = []
            for kind, pods in groups:
                number = self._needed(kind, pods)
                if number is None:
                    return replace(answer, not_sought=f"more than {_MOST_NODES} nodes like {kind.like.name}")
                counts.append(number + extra[kind.like.name])
            kinds = [kind for kind, _ in groups]
            added = self._added(kinds, counts)
            left, chance = self._left(added, set(unplaced))
            if left is None:
                break
            if not left:
                placed = [pod.key for pod in self._queue if pod.key in missing and pod.key not in unplaced]
                assumed = [*told_assumptions(added.assumptions), *([chance] if chance else [])]
                pairs = list(zip(kinds, counts, strict=True))
                return replace(
                    answer,
                    nodes=[NodesOfKind(told_kind(kind), number) for kind, number in pairs],
                    pods=placed,
                    unplaced=unplaced,
                    options=[
                        f"--add-node={kind.like.name}{f'={number}' if number > 1 else ''}" for kind, number in pairs
                    ],
                    assumed=assumed,
                )
            for kind, pods in groups:
                extra[kind.like.name] += not left.isdisjoint(pod.key for pod in pods)
            missing |= left
        return replace(answer, not_sought="new nodes alone do not place them all without an eviction")

    def _by_kind(self, waiting: Sequence[Pod]) -> tuple[list[tuple[Kind, list[Pod]]], list[str]]:
        """The pods for each kind, the smallest that could take them; and those for which there is none."""
        turns: dict[bytes, Iterator[Kind]] = {}
        groups: dict[str, tuple[Kind, list[Pod]]] = {}
        unplaced = []
        for pod in waiting:
            key = likeness_to(self._scheduler, pod)
            if key not in turns:
                # The smallest kind that could take the pod; for one that is to be spread all that are as small, in
                # turn.
                kinds = [sample.kind for sample in self._new.taking(pod)]
                if not pod.spec.topology_spread_constraints:
                    smallest_for = kinds[:1]
                else:
                    smallest_for = [kind for kind in kinds if kind.allocatable == kinds[0].allocatable]
                turns[key] = cycle(smallest_for)
            kind = next(turns[key], None)
            if kind is None:
                unplaced.append(pod.key)
            else:
                groups.setdefault(kind.like.name, (kind, []))[1].append(pod)
        return list(groups.values()), unplaced

    def _needed(self, kind: Kind, pods: Sequence[Pod]) -> int | None:
        """How many nodes of the kind the pods need that have nothing else; ``None`` for too many."""
        too_few, number = 0, 1
        while (placed := self._placed(kind, number, pods)) < len(pods):
            if number == _MOST_NODES:
                return None
            each_holds = max(placed // number, 1)
            missing = -(-(len(pods) - placed) // each_holds)
            too_few, number = number, min(number + missing, _MOST_NODES)
        while number - too_few > 1:
            middle = (too_few + number) // 2
            if self._placed(kind, middle, pods) == len(pods):
                number = middle
            else:
                too_few = middle
        return number

    def _placed(self, kind: Kind, number: int, pods: Sequence[Pod]) -> int:
        """How many of the pods find room on so many new nodes alone."""
        alone = self._new.alone(Copier(self._cluster, now=self._now).like(kind.like, number))
        prepared = self._scheduler.prepare(alone, now=self._now, expects_alike=True)
        placing = Placing(alone, self._scheduler, prepared, self._now).place(pods)
        return sum(each.branch is not None and not each.victims for each in placing)

    def _added(self, kinds: Sequence[Kind], counts: Sequence[int]) -> Added:
        copier = Copier(self._cluster, now=self._now)
        return sum((copier.like(kind.like, n) for kind, n in zip(kinds, counts, strict=True)), Added())

    def _left(self, added: Added, unplaced: Container[str]) -> tuple[set[str] | None, str]:
        """Which pods find no room in the whole cluster, but for those that are not to be placed.

        Beside them what is said of chance: the first and the last of equal choices are followed as far as the bound
        allows. ``None`` where the order of volumes decides, or the bound is reached.
        """
        cluster = with_nodes(self._cluster, added)
        queue = [pod for pod in self._queue if pod.key not in unplaced]
        by_chance = False
        left: set[str] = set()
        for choose in CHOICES:
            self._looks -= len(queue) * len(cluster.nodes)
            if self._looks < 0:
                return (left, _FIRST_BY_CHANCE) if by_chance else (None, "")
            prepared = self._scheduler.prepare(cluster, now=self._now, before=self._prepared, expects_alike=True)
            for placed in Placing(cluster, self._scheduler, prepared, self._now, choose).place(queue):
                if placed.verdict is not None and placed.verdict.volume_choices is not None:
                    return None, ""
                by_chance = by_chance or placed.is_open
                if placed.branch is None or placed.victims:
                    left.add(placed.pod.key)
            if left or not by_chance:
                break
        return left, _BY_CHANCE if by_chance else ""
