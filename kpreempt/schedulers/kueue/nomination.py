"""What a head would get, if it were the only one: flavors, whom it preempts, or with how few pods it does.

Follows ``getAssignments`` in ``pkg/scheduler/scheduler.go`` and ``preemption_oracle.go`` of Kueue v0.19.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kpreempt.model.kueue import ResourceFlavor
from kpreempt.schedulers.kueue import configuration as gates
from kpreempt.schedulers.kueue.amounts import FlavorResource
from kpreempt.schedulers.kueue.assigner import Assigner
from kpreempt.schedulers.kueue.assignment import Assignment, Mode, Possibility
from kpreempt.schedulers.kueue.classical import classical_targets
from kpreempt.schedulers.kueue.cluster_queues import Queue
from kpreempt.schedulers.kueue.fair import fair_targets
from kpreempt.schedulers.kueue.flavor_checks import is_explicit
from kpreempt.schedulers.kueue.preemption import Need, Stage, Target
from kpreempt.schedulers.kueue.quota import lowest_that_fits
from kpreempt.schedulers.kueue.topology_requests import place_all, requests_for, take_placements
from kpreempt.schedulers.kueue.workloads import FlavorMemory, Info

Nominated = tuple[Assignment, list[Target]]


class Nominator:
    """Nominates heads, on the ClusterQueues as they stand."""

    def __init__(self, stage: Stage, flavors: Mapping[str, ResourceFlavor], cycle: int) -> None:
        self._stage = stage
        self._flavors = flavors
        self._cycle = cycle
        self._config = stage.config

    def nominate(self, info: Info, queue: Queue, only: Mapping[str, Mapping[str, str]] | None = None) -> Nominated:
        """Flavors and targets. ``only`` are the flavors to try, by pod set and resource."""
        if info.memory is not None and self._is_outdated(info.memory, info, queue):
            info.memory = None
        assigner = Assigner(info, queue, self._flavors, self._config, self._simulate, only)
        assignment, targets = self._whole_or_less(assigner, info, queue)
        self._place_preemptor(assignment, info, queue, targets)
        tried = [{name: each.tried for name, each in given.flavors.items()} for given in assignment.pod_sets]
        info.memory = FlavorMemory(tried, queue.generation, self._cycle, info.shape)
        return assignment, targets

    def _is_outdated(self, memory: FlavorMemory, info: Info, queue: Queue) -> bool:
        if self._config.has(gates.KEEP_SCAN_PROGRESS):
            if None not in (memory.shape, info.shape) and memory.shape != info.shape:
                return True
            if self._cycle - memory.cycle <= 1:
                return False
        return queue.generation > memory.generation

    def _whole_or_less(self, assigner: Assigner, info: Info, queue: Queue) -> Nominated:
        whole = assigner.assign()
        if whole.mode is Mode.FIT:
            return whole, []
        if whole.mode is Mode.PREEMPT and (targets := self._targets(info, queue, whole)):
            return whole, targets
        if self._config.has(gates.PARTIAL_ADMISSION) and info.can_be_partial:
            found = self._with_fewer_pods(assigner, info, queue)
            if found is not None:
                return found
        return whole, []

    def _with_fewer_pods(self, assigner: Assigner, info: Info, queue: Queue) -> Nominated | None:
        """The most pods with which it works, as far as halving finds them."""
        full = [each.count for each in info.pod_sets]
        spare = [each.count - (each.count if each.min_count is None else each.min_count) for each in info.pod_sets]
        total = sum(spare)
        if total == 0:
            return None
        found: Nominated | None = None
        found_at = 0
        low, high = 0, total + 1
        while low < high:
            middle = (low + high) // 2
            counts = [count - each * middle // total for count, each in zip(full, spare, strict=True)]
            tried = self._fitting(assigner.assign(counts), info, queue)
            if tried is None:
                low = middle + 1
            else:
                found, found_at, high = tried, middle, middle
        return found if low == found_at else None

    def _fitting(self, assignment: Assignment, info: Info, queue: Queue) -> Nominated | None:
        if assignment.mode is Mode.FIT:
            return assignment, []
        if assignment.mode is Mode.PREEMPT and (targets := self._targets(info, queue, assignment)):
            return assignment, targets
        return None

    def _targets(self, info: Info, queue: Queue, assignment: Assignment) -> list[Target]:
        topology = requests_for(assignment, info, queue) if self._config.has(gates.TOPOLOGY) else {}
        quota = assignment.requests_of(info, ignores_undeclared=self._config.ignores_undeclared)
        return self._search(Need(info, queue, frozenset(assignment.frs_to_preempt), quota, topology))

    def _search(self, need: Need) -> list[Target]:
        if self._config.fair_sharing is not None:
            return fair_targets(self._stage, need)
        return classical_targets(self._stage, need)

    def _simulate(self, queue: Queue, info: Info, fr: FlavorResource, amount: int) -> tuple[Possibility, int]:
        """What preemption would do for one resource alone, and how far it would borrow then."""
        targets = self._search(Need(info, queue, frozenset([fr]), {fr: amount}, {}))
        for each in targets:
            self._stage.remove(each.info)
        borrow, _ = lowest_that_fits(queue.node, fr, amount)
        self._stage.restore_all(targets)
        if not targets:
            return Possibility.NO_CANDIDATES, borrow
        is_own = any(each.info.cluster_queue == queue.name for each in targets)
        return Possibility.PREEMPT if is_own else Possibility.RECLAIM, borrow

    def _place_preemptor(self, assignment: Assignment, info: Info, queue: Queue, targets: Iterable[Target]) -> None:
        """The domains that are kept for who preempts: with the targets gone, or without targets with all gone."""
        is_asked = any(map(is_explicit, info.pod_sets)) or queue.is_topology_only
        if not (self._config.has(gates.TOPOLOGY) and assignment.mode is Mode.PREEMPT and is_asked):
            return
        asked = requests_for(assignment, info, queue)
        targets = list(targets)
        for each in targets:
            self._stage.remove(each.info)
        placements = place_all(asked, queue, is_empty=not targets)
        self._stage.restore_all(targets)
        take_placements(assignment, info, queue, placements)
