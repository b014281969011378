"""The state of Kueue's manager: ClusterQueues with their admitted Workloads, and queues of pending ones.

The queues determine which Workload is next, which are inadmissible, and what makes these active again; they follow
``pkg/cache/queue/cluster_queue.go`` and ``inadmissible_workloads.go`` of Kueue v0.19.2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from kpreempt.model.kueue import ResourceFlavor
from kpreempt.model.meta import grouped
from kpreempt.schedulers.kueue.chance import Chance
from kpreempt.schedulers.kueue.cluster_queues import REQUEUED, Info, Queue, milliseconds
from kpreempt.schedulers.kueue.objects import Gate, KueueConfiguration, KueueObjects
from kpreempt.schedulers.kueue.preemption import Stage
from kpreempt.schedulers.kueue.quota import Amounts, Node, quotas_of, weight_of
from kpreempt.schedulers.kueue.topology import FlavorTopology, subtract_other_pods

_HAS_CYCLE = "HasCycle"


class State:
    """The state that is carried from cycle to cycle."""

    def __init__(
        self, objects: KueueObjects, infos: Iterable[Info], config: KueueConfiguration, now: int, only: Collection[str]
    ) -> None:
        """``infos`` are the Workloads; ``only`` the keys of those that are queued (default: all that wait)."""
        self.config = config
        self._only = only
        self._saved_usage: list[tuple[Node, Amounts]] = []
        self.flavors: dict[str, ResourceFlavor] = {each.name: each for each in objects.flavors}
        self.labels = {each.metadata.name: each.metadata.labels for each in objects.cluster.namespaces}
        self.limit_ranges = grouped(objects.cluster.limit_ranges, lambda each: each.metadata.namespace)
        self.topologies = _topologies(objects, config)
        self.cohorts: dict[str, Node] = {}
        self.queues: dict[str, Queue] = {each.name: Queue(each) for each in objects.cluster_queues}
        self._make_tree(objects)
        checks = {each.metadata.name: each for each in objects.checks}
        for queue in sorted(self.queues.values(), key=lambda each: each.name):
            queue.settle_activity(self.flavors, checks, self.topologies, has_topologies=self.config.has(Gate.TOPOLOGY))
            if queue.node.parent is not None:
                children = queue.node.parent.inactive if queue.inactive_because else queue.node.parent.queues
                children.append(queue.node)
        self.active = {name: each for name, each in self.queues.items() if not each.inactive_because}
        self._nodes = [*self.cohorts.values(), *(each.node for each in self.queues.values())]
        for node in self._nodes:
            if node.parent is None:
                node.settle()
        self.infos = {each.key: each for each in infos}
        self.pending = {name: PendingQueue(name, is_strict=each.is_strict) for name, each in self.queues.items()}
        self.queue_names = {
            (each.metadata.namespace, each.metadata.name): each.spec.cluster_queue
            for each in objects.local_queues
            if each.spec.stop_policy == "None"
        }
        for info in self.infos.values():
            counts = info.has_quota and not info.is_finished and info.workload.spec.active
            if counts and info.cluster_queue in self.queues:
                self.add_admitted(self.queues[info.cluster_queue], info)
            else:
                self.queue(info, now)
        for node in self._nodes:
            if node.parent is None:
                node.settle()

    def queue(self, info: Info, now: int) -> None:
        """Queue a Workload if it is admissible."""
        name = self.queue_names.get((info.namespace, info.workload.spec.queue_name), "")
        if info.is_admissible and (not self._only or info.key in self._only) and name in self.pending:
            self.pending[name].enter(info, now)

    def namespace_matches(self, queue: Queue, info: Info) -> bool:
        """Return whether a ClusterQueue selects a Workload's namespace."""
        selector = queue.record.spec.namespace_selector
        return selector is not None and selector.matches(self.labels.get(info.namespace, {}))

    def stage(self, now: int, chance: Chance) -> Stage:
        """Return the ClusterQueues for a cycle, which changes their usage until ``restore``."""
        self._saved_usage = [(node, node.usage) for node in self._nodes]
        for node, usage in self._saved_usage:
            node.usage = dict(usage)
        for topology in self.topologies.values():
            for leaf in topology.leaves.values():
                leaf.usage = {}
        if self.topologies:
            for queue in self.queues.values():
                for info in queue.workloads.values():
                    for flavor, pods in info.topology_usage.items():
                        own = self.topologies.get(flavor)
                        if own is None:
                            continue
                        # Flavors that select the same nodes share the usage of their domains.
                        sharing = [each for each in self.topologies.values() if each.has_nodes]
                        for each in sharing if own.has_nodes else (own,):
                            for domain_pods in pods:
                                each.use(domain_pods)
        return Stage(self.active, self.config, now, chance)

    def restore(self) -> None:
        """Restore the usage from before the cycle."""
        for node, usage in self._saved_usage:
            node.usage = usage

    def add_admitted(self, queue: Queue, info: Info) -> None:
        """Add a Workload that has quota of a ClusterQueue."""
        queue.add_admitted(info)
        queue.node.add(info.usage)

    def remove_admitted(self, queue: Queue, info: Info) -> None:
        """Remove a Workload that had quota of a ClusterQueue."""
        queue.remove_admitted(info)
        queue.node.remove(info.usage)
        queue.generation += 1

    def _make_tree(self, objects: KueueObjects) -> None:
        specs = {each.metadata.name: each for each in objects.cohorts}
        for each in objects.cohorts:
            spec = each.spec
            self.cohorts[each.metadata.name] = Node(
                each.metadata.name, quotas_of(spec.resource_groups), weight_of(spec.fair_sharing), is_cohort=True
            )
        parents = {name: each.parent for name, each in specs.items()}
        for name in [*parents.values(), *(each.cohort for each in objects.cluster_queues)]:
            if name and name not in self.cohorts:
                self.cohorts[name] = Node(name, {}, 0.0 if name not in specs else 1.0, is_cohort=True)
        cyclic = _in_cycles(parents)
        for name, parent in sorted(parents.items()):
            if parent and name not in cyclic:
                self.cohorts[name].parent = self.cohorts[parent]
                self.cohorts[parent].cohorts.append(self.cohorts[name])
        for queue in sorted(self.queues.values(), key=lambda each: each.name):
            parent = queue.record.cohort
            if parent in cyclic:
                queue.inactive_because = _HAS_CYCLE
            elif parent:
                queue.node.parent = self.cohorts[parent]
        for name in cyclic:
            del self.cohorts[name]


def _in_cycles(parents: dict[str, str]) -> set[str]:
    """Return the cohorts that are part of or below a cycle of parents."""
    found: set[str] = set()
    for name in parents:
        seen = [name]
        above = parents.get(name, "")
        while above and above not in seen:
            seen.append(above)
            above = parents.get(above, "")
        if above:
            found.update(seen)
    return found


def _topologies(objects: KueueObjects, config: KueueConfiguration) -> dict[str, FlavorTopology]:
    """Return the topology of each flavor that has one."""
    if not config.has(Gate.TOPOLOGY):
        return {}
    levels = {each.metadata.name: [level.node_label for level in each.spec.levels] for each in objects.topologies}
    found = {
        each.name: FlavorTopology(each.spec.topology_name, levels[each.spec.topology_name], each, objects.cluster.nodes)
        for each in objects.flavors
        if each.spec.topology_name in levels
    }
    subtract_other_pods(found.values(), objects.cluster)
    return found


FAILED_AFTER_NOMINATION = "FailedAfterNomination"
NAMESPACE_MISMATCH = "NamespaceMismatch"
PENDING_PREEMPTION = "PendingPreemption"
NO_FIT = "NoFit"
PREEMPTION_NO_CANDIDATES = "PreemptionNoCandidates"

_AT_ONCE = frozenset({FAILED_AFTER_NOMINATION, PENDING_PREEMPTION})
_ALIKE = frozenset({NO_FIT, PREEMPTION_NO_CANDIDATES})


class PendingQueue:
    """The Workloads that wait for a ClusterQueue."""

    def __init__(self, name: str, *, is_strict: bool) -> None:
        self.name = name
        self.is_strict = is_strict
        self.heap: dict[str, Info] = {}
        self.parked: dict[str, Info] = {}
        self.in_flight: Info | None = None
        # The Workload that is preempting others; with BestEffortFIFO it stays first.
        self.preemptor = ""
        self._parked_shapes: set[str] = set()

    def order_of(self, info: Info) -> tuple[bool, int, int, str]:
        """Sort key of the queue."""
        is_sticky = not self.is_strict and info.key == self.preemptor
        return not is_sticky, -info.effective_priority, info.queued_since, info.uid

    def enter(self, info: Info, now: int) -> None:
        """Add a Workload that is new or returns."""
        self.parked.pop(info.key, None)
        is_known = not self.is_strict and info.scheduling_key is not None and info.scheduling_key in self._parked_shapes
        if info.key not in self.heap and (is_known or not _is_due(info, now)):
            self.parked[info.key] = info
        else:
            self.heap[info.key] = info

    def pop(self) -> Info | None:
        """Remove and return the head, which is decided on now."""
        self.in_flight = None
        if self.heap:
            self.in_flight = min(self.heap.values(), key=self.order_of)
            del self.heap[self.in_flight.key]
        return self.in_flight

    def forget(self, key: str) -> None:
        """Remove a Workload that no longer waits."""
        self.heap.pop(key, None)
        self.parked.pop(key, None)
        if self.in_flight is not None and self.in_flight.key == key:
            self.in_flight = None
        if self.preemptor == key:
            self.preemptor = ""

    def requeue(self, info: Info, reason: str, now: int) -> None:
        """Put back a head that was not admitted."""
        if reason == PENDING_PREEMPTION:
            self.preemptor = info.key
        self.in_flight = None
        at_once = reason != NAMESPACE_MISMATCH if self.is_strict else reason in _AT_ONCE
        has_pending = info.memory is not None and info.memory.has_pending
        if _is_due(info, now) and (at_once or has_pending):
            self.heap[info.key] = info
            return
        self.parked[info.key] = info
        shape = info.scheduling_key
        if reason in _ALIKE and shape is not None and not self.is_strict:
            self._parked_shapes.add(shape)
            for key in [key for key, each in self.heap.items() if each.scheduling_key == shape]:
                self.parked[key] = self.heap.pop(key)

    def retry(self, may_return: Callable[[Info], bool], now: int) -> None:
        """Make inadmissible Workloads active again, except those in backoff or with a namespace that does not match."""
        self._parked_shapes.clear()
        for key in [key for key, each in self.parked.items() if may_return(each) and _is_due(each, now)]:
            self.heap[key] = self.parked.pop(key)

    def in_order(self) -> list[Info]:
        """Return all waiting Workloads, including the one in flight."""
        flying = [] if self.in_flight is None else [self.in_flight]
        return sorted([*self.heap.values(), *self.parked.values(), *flying], key=self.order_of)


def _is_due(info: Info, now: int) -> bool:
    """Return whether a Workload's backoff is over."""
    requeued = info.conditions.get(REQUEUED)
    if requeued is not None and requeued.status == "False":
        return False
    state = info.workload.status.requeue_state
    return state is None or state.requeue_at is None or now >= milliseconds(state.requeue_at)
