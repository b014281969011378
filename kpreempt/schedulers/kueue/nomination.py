"""Nominate each head as if it were the only one, and order the heads for processing.

Follows Kueue v0.19.2. A nominated head has flavors, preemption targets, or the reduced number of pods with which it
fits (``getAssignments`` in ``pkg/scheduler/scheduler.go``, ``preemption_oracle.go``). Its requests, limits and limit
ranges are validated first (``ValidateAdmissibility`` in ``pkg/workload/resources.go``). The order follows
``makeClassicalIterator`` or ``fair_sharing_iterator.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from kpreempt.model.kueue import PodSet, ResourceFlavor
from kpreempt.model.meta import grouped
from kpreempt.model.pod import ResourceList
from kpreempt.model.workloads import LimitRange
from kpreempt.schedulers.kueue.assigner import Assigner
from kpreempt.schedulers.kueue.assignment import Assignment, Mode, Possibility
from kpreempt.schedulers.kueue.chance import Chance
from kpreempt.schedulers.kueue.cluster_queues import FlavorMemory, Info, Queue
from kpreempt.schedulers.kueue.objects import Gate, KueueConfiguration
from kpreempt.schedulers.kueue.preemption import Need, Stage, Target, classical_targets, fair_targets
from kpreempt.schedulers.kueue.quota import (
    Amounts,
    FlavorResource,
    Node,
    Requests,
    Share,
    lowest_that_fits,
    pod_requests_of,
    requests_of,
    share_of,
)
from kpreempt.schedulers.kueue.topology import TopologyUsage
from kpreempt.schedulers.kueue.topology_requests import is_explicit, place_all, requests_for, take_placements

Nominated = tuple[Assignment, list[Target]]


class Nominator:
    """Nominates heads, given the current usage of the ClusterQueues."""

    def __init__(self, stage: Stage, flavors: Mapping[str, ResourceFlavor], cycle: int) -> None:
        self._stage, self._flavors, self._cycle = stage, flavors, cycle
        self._config = stage.config

    def nominate(self, info: Info, queue: Queue, only: Mapping[str, Mapping[str, str]] | None = None) -> Nominated:
        """Find flavors and targets. ``only`` are the flavors to try, by pod set and resource."""
        if info.memory is not None and self._is_outdated(info.memory, info, queue):
            info.memory = None
        assigner = Assigner(info, queue, self._flavors, self._config, self._simulate, only)
        whole = assigner.assign()
        found = self._fitting(whole, info, queue)
        may_be_fewer = any(each.min_count is not None and each.count > each.min_count for each in info.pod_sets)
        if found is None and may_be_fewer and self._config.has(Gate.PARTIAL_ADMISSION):
            found = self._with_fewer_pods(assigner, info, queue)
        assignment, targets = found or (whole, [])
        self._assign_preemptor(assignment, info, queue, targets)
        tried = [{name: each.next_flavor for name, each in given.flavors.items()} for given in assignment.pod_sets]
        info.memory = FlavorMemory(tried, queue.generation, self._cycle, info.scheduling_key)
        return assignment, targets

    def _is_outdated(self, memory: FlavorMemory, info: Info, queue: Queue) -> bool:
        if self._config.has(Gate.KEEP_SCAN_PROGRESS):
            if (
                None not in (memory.scheduling_key, info.scheduling_key)
                and memory.scheduling_key != info.scheduling_key
            ):
                return True
            if self._cycle - memory.cycle <= 1:
                return False
        return queue.generation > memory.generation

    def _with_fewer_pods(self, assigner: Assigner, info: Info, queue: Queue) -> Nominated | None:
        """Find the largest number of pods that works, by binary search."""
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
        if assignment.mode is not Mode.PREEMPT:
            return None
        topology = requests_for(assignment, info, queue) if self._config.has(Gate.TOPOLOGY) else {}
        quota = assignment.requests_of(info, ignores_undeclared=self._config.ignores_undeclared)
        targets = self._search(Need(info, queue, frozenset(assignment.frs_to_preempt), quota, topology))
        return (assignment, targets) if targets else None

    def _search(self, need: Need) -> list[Target]:
        if self._config.fair_sharing is not None:
            return fair_targets(self._stage, need)
        return classical_targets(self._stage, need)

    def _simulate(self, queue: Queue, info: Info, fr: FlavorResource, amount: int) -> tuple[Possibility, int]:
        """Simulate preemption for one resource, and return how far it would borrow then."""
        targets = self._search(Need(info, queue, frozenset([fr]), {fr: amount}, {}))
        for each in targets:
            self._stage.remove(each.info)
        borrow, _ = lowest_that_fits(queue.node, fr, amount)
        self._stage.restore_all(targets)
        if not targets:
            return Possibility.NO_CANDIDATES, borrow
        is_own = any(each.info.cluster_queue == queue.name for each in targets)
        return Possibility.PREEMPT if is_own else Possibility.RECLAIM, borrow

    def _assign_preemptor(self, assignment: Assignment, info: Info, queue: Queue, targets: Iterable[Target]) -> None:
        """Find domains for the preemptor: with the targets gone or, if there are none, with all Workloads gone."""
        needs_topology = any(map(is_explicit, info.pod_sets)) or queue.is_topology_only
        if not (self._config.has(Gate.TOPOLOGY) and assignment.mode is Mode.PREEMPT and needs_topology):
            return
        topology_requests = requests_for(assignment, info, queue)
        targets = list(targets)
        for each in targets:
            self._stage.remove(each.info)
        placements = place_all(topology_requests, queue, is_empty=not targets)
        self._stage.restore_all(targets)
        take_placements(assignment, info, queue, placements)


NAMESPACE_MESSAGE = "workload namespace doesn't match ClusterQueue selector"
_ABOVE_LIMIT = "requests must not exceed its limits"
_ABOVE_MAX = "requests must not be above the limitRange max"
_BELOW_MIN = "requests must not be below the limitRange min"


def resource_problem(info: Info, ranges: list[LimitRange]) -> str:
    """Describe invalid requests of a Workload; an empty string if they are valid."""
    pod_sets = [(each, f"spec.podSets[{index}].template.spec") for index, each in enumerate(info.pod_sets)]
    found = [each for pod_set, path in pod_sets for each in _above_limits(pod_set, path)]
    if found:
        return f"resources validation failed: {_joined(found)}"
    bounds = _Bounds(ranges)
    found = [each for pod_set, path in pod_sets for each in bounds.broken(pod_set, path)]
    return f"resources didn't satisfy LimitRange constraints: {_joined(found)}" if found else ""


def _joined(problems: list[str]) -> str:
    unique = list(dict.fromkeys(problems))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _problem(path: str, names: Iterable[str], message: str) -> str:
    quoted = ",".join(f'"{name}"' for name in names)
    return f"{path}: Invalid value: [{quoted}]: {message}"


def _greater(amounts: Requests, other: Requests) -> list[str]:
    return sorted(name for name, amount in amounts.items() if name in other and amount > other[name])


def _above_limits(pod_set: PodSet, path: str) -> Iterable[str]:
    spec = pod_set.template.spec
    named = [("initContainers", spec.init_containers), ("containers", spec.containers)]
    parts = [(f"{path}.{kind}[{index}]", each.resources) for kind, some in named for index, each in enumerate(some)]
    for resources_path, resources in [*parts, *([(f"{path}.resources", spec.resources)] if spec.resources else [])]:
        if names := _greater(requests_of(resources.requests), requests_of(resources.limits)):
            yield _problem(resources_path, names, _ABOVE_LIMIT)


class _Bounds:
    """The combined limit ranges of a namespace."""

    def __init__(self, ranges: list[LimitRange]) -> None:
        self._most: dict[str, Requests] = {}
        self._least: dict[str, Requests] = {}
        for each in ranges:
            for item in each.spec.limits:
                _keep(self._most.setdefault(item.type, {}), item.max, min)
                _keep(self._least.setdefault(item.type, {}), item.min, max)

    def broken(self, pod_set: PodSet, path: str) -> Iterable[str]:
        """Return the limits that a pod set violates."""
        spec = pod_set.template.spec
        for kind, some in (("initContainers", spec.init_containers), ("containers", spec.containers)):
            for index, each in enumerate(some):
                requests, limits = requests_of(each.resources.requests), requests_of(each.resources.limits)
                least = _together(requests, limits, min)
                most = _together(requests, limits, max)
                yield from self._check("Container", f"{path}.{kind}[{index}]", least, most)
        total = pod_requests_of(spec)
        yield from self._check("Pod", path, total, total)

    def _check(self, kind: str, path: str, least: Requests, most: Requests) -> Iterable[str]:
        if names := _greater(most, self._most.get(kind, {})):
            yield _problem(path, names, _ABOVE_MAX)
        if names := _greater(self._least.get(kind, {}), least):
            yield _problem(path, names, _BELOW_MIN)


def _keep(known: Requests, found: ResourceList, which: Callable[[int, int], int]) -> None:
    for name, amount in requests_of(found).items():
        known[name] = which(known[name], amount) if name in known else amount


def _together(first: Mapping[str, int], second: Mapping[str, int], which: Callable[[int, int], int]) -> Requests:
    found = {**first, **second}
    for name in first.keys() & second.keys():
        found[name] = which(first[name], second[name])
    return found


ASSUMED = "assumed"
SKIPPED = "skipped"


@dataclass(slots=True, eq=False)
class Entry:
    """A head. ``nominated`` records the decision made before any other head was processed."""

    info: Info
    queue: Queue
    is_preemptor: bool
    assignment: Assignment = field(default_factory=Assignment)
    targets: list[Target] = field(default_factory=list)
    nominated: object = None
    final: object = None
    # The shares that decided the order, by cohort and Workload.
    tournament: list[tuple[str, str, Share]] = field(default_factory=list)
    is_recomputed: bool = False
    status: str = ""
    requeue_reason: str = ""
    quota_reason: str = ""
    message: str = ""
    admission: object = None

    @property
    def quota(self) -> Amounts:
        """The quota that the head takes; nothing if it already has quota."""
        return {} if self.info.has_quota else self.assignment.usage

    @property
    def topology(self) -> TopologyUsage:
        """The domains that the head takes."""
        return self.assignment.topology_usage

    def skip(self, message: str, config: KueueConfiguration) -> None:
        """Leave the head for a later cycle."""
        self.status, self.message = SKIPPED, message
        if not config.has(Gate.KEEP_SCAN_PROGRESS):
            self.info.memory = None


def turns(entries: list[Entry], config: KueueConfiguration, chance: Chance) -> Iterator[Entry]:
    """Yield the heads in processing order. With fair sharing, the order depends on what earlier heads took."""
    if config.fair_sharing is None:
        in_order = sorted(entries, key=lambda each: _classical(each, config))
        for _, equals in groupby(in_order, key=lambda each: _classical(each, config)):
            # The order of equal heads matters only if they share quota or nodes.
            sharing = grouped(equals, lambda each: None if each.queue.topologies else each.queue.node.root)
            for some in sharing.values():
                yield from chance.shuffled(some)
        return
    by_root = grouped(entries, lambda each: each.queue.node.root)
    # Trees are independent of each other; their order is random.
    for root in sorted(by_root, key=lambda node: node.name):
        yield from _Tournament(root, by_root[root], config, chance)


def _classical(entry: Entry, config: KueueConfiguration) -> tuple[bool, bool, int, int, int]:
    info = entry.info
    return (
        not info.has_quota,
        config.has(Gate.PRIORITIZE_PREEMPTORS) and not entry.is_preemptor,
        entry.assignment.borrowing,
        -info.effective_priority if config.has(Gate.PRIORITY_SORTING) else 0,
        info.queued_since,
    )


class _Tournament:
    """The heads of one tree: at each cohort, the head whose side would have the lowest share wins."""

    def __init__(self, root: Node, entries: list[Entry], config: KueueConfiguration, chance: Chance) -> None:
        self._root, self._chance = root, chance
        self._left = {each.queue.node: each for each in entries}
        self._config = config
        self._shares: dict[tuple[Node, Entry], Share] = {}

    def __iter__(self) -> Iterator[Entry]:
        while self._left:
            if not self._root.is_cohort:
                yield self._left.pop(self._root)
                continue
            self._compute()
            winner = self._winner(self._root)
            assert winner is not None
            winner.tournament = sorted(
                ((cohort.name, entry.info.key, share) for (cohort, entry), share in self._shares.items()),
                key=lambda each: each[:2],
            )
            del self._left[winner.queue.node]
            yield winner

    def _compute(self) -> None:
        """Compute the shares from each head up to the root, as if only this head were admitted."""
        self._shares = {}
        for node, entry in self._left.items():
            node.add(entry.quota)
            share = share_of(node)
            for cohort in node.ancestors:
                self._shares[cohort, entry] = share
                share = share_of(cohort)
            node.remove(entry.quota)

    def _winner(self, cohort: Node) -> Entry | None:
        below = (self._winner(child) for child in cohort.cohorts)
        runners = [each for each in (*below, *(self._left.get(node) for node in cohort.queues)) if each is not None]
        if not runners:
            return None
        best = min(self._key(each, cohort) for each in runners)
        return self._chance.pick([each for each in runners if self._key(each, cohort) == best])

    def _key(self, entry: Entry, cohort: Node) -> tuple[bool, bool, tuple[int, float], int, int]:
        config, info, share = self._config, entry.info, self._shares[cohort, entry]
        return (
            config.has(Gate.PRIORITIZE_PREEMPTORS) and not entry.is_preemptor,
            config.has(Gate.PRIORITIZE_NON_BORROWING) and share.borrows(entry.quota),
            share.rank,
            -info.effective_priority if config.has(Gate.PRIORITY_SORTING) else 0,
            info.queued_since,
        )
