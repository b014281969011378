"""Run cycles, with the controllers simulated in between, until nothing changes; and evaluate single Workloads.

The evaluation of single Workloads shows which Workloads could preempt them, and how much of their quota is borrowed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from kpreempt.schedulers.kueue.chance import MAX_PATHS, Chance, all_branches
from kpreempt.schedulers.kueue.cluster_queues import (
    ADMITTED,
    EVICTED,
    NEVER,
    PREEMPTED,
    QUOTA_RESERVED,
    REQUEUED,
    Cond,
    Info,
    milliseconds,
)
from kpreempt.schedulers.kueue.cycle import Cycle, reported_node, share_text
from kpreempt.schedulers.kueue.nomination import Entry
from kpreempt.schedulers.kueue.objects import KueueConfiguration, KueueObjects
from kpreempt.schedulers.kueue.quota import FlavorResource, Node, Requests, amount_text, in_order
from kpreempt.schedulers.kueue.state import State
from kpreempt.schedulers.kueue.topology import PODS

_SECOND = 1000
_IDLE_CYCLES = 2
_MAX_WORKLOADS = 40_000

Json = dict[str, Any]


class Outcomes(NamedTuple):
    """Possible outcomes: the likely cycles, the number of different outcomes, and whether all were found.

    ``alternatives`` are the cycles of the other outcomes. If one ``is_cut``, more would happen after its last cycle.
    """

    cycles: list[Json]
    alternatives: list[list[Json]]
    are_all: bool
    is_cut: bool = False


def infos_of(objects: KueueObjects, config: KueueConfiguration) -> list[Info]:
    """Prepare the Workloads for any number of runs."""
    return [Info(each, config) for each in objects.workloads]


def run_cycles(
    objects: KueueObjects,
    config: KueueConfiguration,
    *,
    now: datetime,
    cycles: int,
    only: Collection[str] = (),
    heads: int | None = None,
    infos: Sequence[Info] | None = None,
) -> Outcomes:
    """Run Kueue's scheduler for up to ``cycles`` cycles, and return each as plain data.

    ``only`` are the keys of the Workloads that are queued (default: all that wait). The run ends when no heads are
    left, or after two cycles without an admission or an eviction. With ``heads`` it continues until a state repeats,
    and starts no cycle after that many decisions. ``infos`` are the prepared Workloads from ``infos_of``, for callers
    that run several times. Every sequence of random choices is followed, up to a limit.
    """
    # The time of a run grows with the number of Workloads.
    most = max(1, min(MAX_PATHS, _MAX_WORKLOADS // max(1, len(objects.workloads))))
    runs: list[Run] = []
    workloads = infos if infos is not None else infos_of(objects, config)

    def one_branch(chance: Chance) -> list[Json]:
        runs.append(Run(objects, workloads, config, now=now, only=only, chance=chance))
        return runs[-1].cycles(cycles, heads)

    ways, are_all = all_branches(one_branch, most)
    ends: dict[str, list[Json]] = {}
    for cycles_of_branch in ways:
        # Outcomes differ if other Workloads are admitted or preempted in any cycle.
        end = repr(
            [
                (sorted(each["admissions"].items()), each["requeued"], each["conditions"], each["heap"])
                for each in cycles_of_branch
            ]
        )
        ends.setdefault(end, cycles_of_branch)
    first, *others = ends.values()
    return Outcomes(first, others, are_all, any(each.is_cut for each in runs))


class Run:
    """Consecutive cycles, one second apart."""

    def __init__(
        self,
        objects: KueueObjects,
        infos: Iterable[Info],
        config: KueueConfiguration,
        *,
        now: datetime,
        only: Collection[str] = (),
        chance: Chance | None = None,
    ) -> None:
        self._chance = chance or Chance()
        self.now = milliseconds(now)
        self.state = State(objects, map(Info.copy, infos), config, self.now, only)
        self.number = 0
        self._seen: set[str] = set()
        # Whether more would happen after the requested cycles.
        self.is_cut = False

    def cycles(self, most: int, heads: int | None = None) -> list[Json]:
        """Run up to ``most`` cycles, and start none after ``heads`` decisions."""
        evidence_of_cycles: list[Json] = []
        idle = decided = 0
        while idle < _IDLE_CYCLES:
            self.is_cut = len(evidence_of_cycles) >= most or (heads is not None and decided >= heads)
            if self.is_cut:
                break
            cycle, evidence = self.run_cycle()
            evidence_of_cycles.append(evidence)
            decided += len(evidence["heads"])
            # No active ClusterQueue has a Workload left to decide on.
            if not any(self.state.pending[name].heap for name in self.state.active):
                break
            idle = 0 if cycle.outcomes.admitted or evidence["requeued"] else idle + 1
            if heads is not None:
                idle = _IDLE_CYCLES if self._returns(is_idle=idle > 0) else 0
        if evidence_of_cycles:
            evidence_of_cycles[-1]["after"] = self._tree()
        return evidence_of_cycles

    def _returns(self, *, is_idle: bool) -> bool:
        """Return whether the state equals that after an earlier cycle, without admissions or evictions since."""
        if not is_idle:
            self._seen.clear()
        now = repr(
            [
                (
                    name,
                    pending.preemptor,
                    sorted(
                        (key, "" if info.memory is None else repr(info.memory.next_flavor))
                        for key, info in pending.heap.items()
                    ),
                )
                for name, pending in self.state.pending.items()
                if pending.heap
            ]
        )
        returns_later = now in self._seen
        self._seen.add(now)
        return returns_later

    def run_cycle(self) -> tuple[Cycle, Json]:
        """Run one cycle and the controllers after it."""
        self.number += 1
        cycle = Cycle(self.state, self.number, self.now, self._chance)
        heads = cycle.heads()
        waiting = {name: each.in_order() for name, each in self.state.pending.items()}
        order = {name: [info.key for info in infos] for name, infos in waiting.items() if infos}
        evidence = {"before": self._tree(), "queueOrder": order}
        cycle.run(heads)
        evidence |= self._evidence(cycle, heads)
        self.state.restore()
        cycle.outcomes.apply()
        self.now += _SECOND
        evidence["requeued"] = self._run_controllers(cycle)
        return cycle, evidence

    def _tree(self) -> list[Json]:
        """Describe ClusterQueues with the keys of their Workloads, then cohorts, by name."""
        evidence_of_cycles = [
            {**reported_node(each.node), "workloads": sorted(each.workloads)}
            for each in sorted(self.state.active.values(), key=lambda each: each.node.name)
        ]
        cohorts = sorted(self.state.cohorts.values(), key=lambda each: each.name)
        return [*evidence_of_cycles, *map(reported_node, cohorts)]

    def _evidence(self, cycle: Cycle, heads: list[Entry]) -> Json:
        outcomes, pending = cycle.outcomes, sorted(self.state.pending.items())
        return {
            "cycle": self.number,
            "heads": [each.info.key for each in heads],
            "inactive": {
                name: each.inactive_because for name, each in self.state.queues.items() if each.inactive_because
            },
            "entries": [
                {
                    **_head(each),
                    "nominated": each.nominated,
                    "final": each.final,
                    **({"tournament": shares} if (shares := _tournament(each)) else {}),
                }
                for each in cycle.entries
            ],
            "inadmissible": [_head(each) for each in cycle.inadmissible],
            "skippedPreemptions": dict(cycle.skipped_preemptions),
            "events": [each._asdict() for each in sorted(outcomes.events)],
            "conditions": {
                key: [
                    {"type": kind, "status": each.status, "reason": each.reason, "message": each.message}
                    for kind, each in sorted(conditions.items())
                ]
                for key, conditions in sorted(outcomes.conditions.items())
            },
            "admissions": outcomes.admissions,
            "heap": {name: sorted(each.heap) for name, each in pending if each.heap},
            "inadmissibleLeft": {name: sorted(each.parked) for name, each in pending if each.parked},
        }

    def _run_controllers(self, cycle: Cycle) -> list[str]:
        """Dequeue admitted Workloads, and requeue evicted ones immediately."""
        for info, queue, _ in cycle.outcomes.admitted:
            self.state.pending[queue.name].forget(info.key)
            self.state.add_admitted(queue, info)
        # Workloads evicted before the run release their quota in the first cycle.
        queues = self.state.queues
        touched = {info.cluster_queue for info in cycle.outcomes.evicted} if self.number > 1 else queues.keys()
        of_touched = (queue.workloads.values() for name, queue in queues.items() if name in touched)
        released = [info for workloads in of_touched for info in workloads if info.is_evicted]
        roots: list[Node] = []
        for info in released:
            queue = self.state.queues[info.cluster_queue]
            self.state.remove_admitted(queue, info)
            evicted = info.conditions[EVICTED]
            info.conditions[QUOTA_RESERVED] = Cond("False", "Pending", evicted.message, self.now)
            info.conditions[ADMITTED] = Cond("False", "NoReservation", "The workload has no reservation", self.now)
            info.conditions[REQUEUED] = Cond("True", PREEMPTED, evicted.message, self.now)
            info.release_quota()
            info.memory = None
            if queue.node.root not in roots:
                roots.append(queue.node.root)
            self.state.queue(info, self.now)
        for name, queue in self.state.queues.items():
            if queue.node.root in roots:
                self.state.pending[name].retry(partial(self.state.namespace_matches, queue), self.now)
        return sorted(info.key for info in released)


def _head(entry: Entry) -> Json:
    return {
        "workload": entry.info.key,
        "clusterQueue": entry.queue.name,
        "isPreemptor": entry.is_preemptor,
        # Flavors are fixed while an entry is nominated again; they are free again now.
        "recomputed": False,
        "decidedAnew": entry.is_recomputed,
        "status": entry.status,
        "requeueReason": entry.requeue_reason,
        "quotaReservedReason": entry.quota_reason,
        "message": entry.message,
    }


def _tournament(entry: Entry) -> list[Json]:
    return [
        {"cohort": cohort, "workload": workload, "share": share_text(share.weighted)}
        for cohort, workload, share in entry.tournament
    ]


class PreemptionTarget(NamedTuple):
    """The Workload that is preempted, the reason, and whether that holds for every random choice."""

    target: str
    reason: str
    is_certain: bool


class RequestedQuota(NamedTuple):
    """What a Workload requests of a flavor's resource, and the quota of its ClusterQueue for that.

    ``available`` is negative if usage exceeds quota, and ``potential`` would be available if nothing were used.
    """

    requested: int
    nominal: int
    available: int
    potential: int
    lower: tuple[int, ...]


class SnapshotQueue:
    """The current ClusterQueues, on which Workloads are evaluated one at a time, each as the only head."""

    def __init__(self, objects: KueueObjects, infos: Iterable[Info], config: KueueConfiguration, now: datetime) -> None:
        """``infos`` are the Workloads of the ``objects``."""
        self._now = milliseconds(now)
        self._state = State(objects, map(Info.copy, infos), config, self._now, ())
        self._known_reclaimers: dict[tuple[Node, FlavorResource], list[str]] = {}

    @property
    def active(self) -> Collection[str]:
        """The names of the active ClusterQueues."""
        return self._state.active.keys()

    def waiting(self) -> list[str]:
        """The Workloads that wait in active ClusterQueues, by priority and then by creation."""
        pending = [info for name in self._state.active for info in self._state.pending[name].in_order()]
        return [each.key for each in sorted(pending, key=lambda each: (-each.effective_priority, each.queued_since))]

    def aims(self, key: str) -> list[PreemptionTarget]:
        """Return the Workloads that a waiting Workload preempts in a cycle in which it is the only head."""
        ways, are_all = all_branches(lambda chance: self._targets(key, chance))
        found = dict.fromkeys(each for way in ways for each in way)
        return [PreemptionTarget(*each, are_all and all(each in way for way in ways)) for each in found]

    def _targets(self, key: str, chance: Chance) -> list[tuple[str, str]]:
        state = self._state
        info = state.infos[key]
        queue = state.queues[state.queue_names[info.namespace, info.workload.spec.queue_name]]
        info.memory = None
        cycle = Cycle(state, 1, self._now, chance)
        entry = Entry(info, queue, False)
        cycle.run([entry])
        state.restore()
        return [(each.info.key, each.reason) for each in entry.targets]

    def quota_of(self, key: str, flavor: str) -> dict[str, RequestedQuota]:
        """Return the quota of a flavor for what a waiting Workload requests, by resource.

        CPU is in thousandths of a core, everything else in whole units. ``lower`` are amounts that Workloads of lower
        priority use in the same tree, the lowest priority first.
        """
        info = self._state.infos[key]
        queue = self._state.queues[self._state.queue_names[info.namespace, info.workload.spec.queue_name]]
        totals: Requests = {}
        for each in info.requests:
            for resource, amount in each.requests.items():
                totals[resource] = totals.get(resource, 0) + amount
            if queue.group_of(PODS) is not None:
                totals[PODS] = totals.get(PODS, 0) + each.count
        nodes = [queue.node] if queue.node.parent is None else [*queue.node.root.all_queues()]
        others = [
            other
            for node in nodes
            if (found := self._state.queues.get(node.name)) is not None
            for other in found.workloads.values()
            if other.effective_priority < info.effective_priority
        ]
        others.sort(key=lambda each: each.effective_priority)
        return {
            resource: RequestedQuota(
                totals[resource],
                queue.node.quotas[fr].nominal,
                queue.node.available(fr),
                queue.node.potential(fr),
                tuple(each.usage[fr] for each in others if each.usage.get(fr, 0) > 0),
            )
            for resource in in_order(totals)
            if (fr := (flavor, resource)) in queue.node.quotas
        }

    def loans(self, key: str) -> list[tuple[str, str, list[str]]]:
        """Return the borrowed flavors of a Workload, the amounts, and the ClusterQueues that may reclaim them at once.

        Those have unused quota and a policy that allows reclaiming it.
        """
        info = self._state.infos[key]
        queue = self._state.queues.get(info.cluster_queue)
        if queue is None or queue.node.parent is None:
            return []
        found = []
        for fr in sorted(info.usage):
            over = queue.node.usage.get(fr, 0) - queue.node.quota(fr).nominal
            if over > 0:
                flavor, resource = fr
                reclaimers = [name for name in self._reclaimers(queue.node.root, fr) if name != queue.name]
                found.append((f"{flavor}/{resource}", amount_text(resource, over), reclaimers))
        return found

    def _reclaimers(self, root: Node, fr: FlavorResource) -> list[str]:
        """Return the ClusterQueues of a tree with unused quota that they may reclaim from others."""
        if (root, fr) not in self._known_reclaimers:
            active = self._state.active
            owners = (node for node in root.all_queues() if node.quota(fr).nominal > node.usage.get(fr, 0))
            queues = filter(None, (active.get(node.name) for node in owners))
            able = (each.name for each in queues if each.preemption.reclaim_within_cohort != NEVER)
            self._known_reclaimers[root, fr] = sorted(able)
        return self._known_reclaimers[root, fr]
