"""The cluster as Kueue's manager has it: ClusterQueues with what they admitted, and queues of what waits."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kpreempt.model.kueue import ResourceFlavor
from kpreempt.model.workloads import LimitRange
from kpreempt.schedulers.kueue import configuration as gates
from kpreempt.schedulers.kueue.chance import Chance
from kpreempt.schedulers.kueue.cluster_queues import Queue
from kpreempt.schedulers.kueue.configuration import KueueConfiguration
from kpreempt.schedulers.kueue.objects import KueueObjects
from kpreempt.schedulers.kueue.pending import PendingQueue
from kpreempt.schedulers.kueue.preemption import Stage
from kpreempt.schedulers.kueue.quota import Amounts, Node, quotas_of
from kpreempt.schedulers.kueue.shares import weight_of
from kpreempt.schedulers.kueue.topology import FlavorTopology, subtract_other_pods
from kpreempt.schedulers.kueue.workloads import Info

_HAS_CYCLE = "HasCycle"


class State:
    """What goes on from cycle to cycle."""

    def __init__(
        self, objects: KueueObjects, infos: Iterable[Info], config: KueueConfiguration, now: int, only: Collection[str]
    ) -> None:
        """``infos`` are the Workloads; ``only`` the keys of those that are queued, without any all that wait."""
        self.config = config
        self._only = only
        self._kept: list[tuple[Node, Amounts]] = []
        self.flavors: dict[str, ResourceFlavor] = {each.name: each for each in objects.flavors}
        self.labels = {each.metadata.name: each.metadata.labels for each in objects.cluster.namespaces}
        self.limit_ranges: dict[str, list[LimitRange]] = {}
        for each in objects.cluster.limit_ranges:
            self.limit_ranges.setdefault(each.metadata.namespace, []).append(each)
        self.topologies = _topologies(objects, config)
        self.cohorts: dict[str, Node] = {}
        self.queues: dict[str, Queue] = {each.name: Queue(each) for each in objects.cluster_queues}
        self._make_tree(objects)
        checks = {each.metadata.name: each for each in objects.checks}
        for queue in sorted(self.queues.values(), key=lambda each: each.name):
            queue.settle_activity(self.flavors, checks, self.topologies, has_topologies=self.config.has(gates.TOPOLOGY))
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
                self.let_in(self.queues[info.cluster_queue], info)
            else:
                self.queue(info, now)
        for node in self._nodes:
            if node.parent is None:
                node.settle()

    def queue(self, info: Info, now: int) -> None:
        """Let a Workload wait, if it may."""
        name = self.queue_names.get((info.namespace, info.workload.spec.queue_name), "")
        if info.is_admissible and (not self._only or info.key in self._only) and name in self.pending:
            self.pending[name].enter(info, now)

    def namespace_matches(self, queue: Queue, info: Info) -> bool:
        """Whether a ClusterQueue is for a Workload's namespace."""
        return queue.selects(self.labels.get(info.namespace, {}))

    def stage(self, now: int, chance: Chance) -> Stage:
        """The ClusterQueues for a cycle, which changes their usage until ``restore``."""
        self._kept = [(node, node.usage) for node in self._nodes]
        for node, usage in self._kept:
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
                        # The domains of a flavor of nodes are used in all that have nodes.
                        sharing = [each for each in self.topologies.values() if each.has_nodes]
                        for each in sharing if own.has_nodes else (own,):
                            for one in pods:
                                each.use(one)
        return Stage(self.active, self.config, now, chance)

    def restore(self) -> None:
        """Usage as it was before the cycle."""
        for node, usage in self._kept:
            node.usage = usage

    def let_in(self, queue: Queue, info: Info) -> None:
        """Count a Workload that has quota of a ClusterQueue."""
        queue.let_in(info)
        queue.node.add(info.usage)

    def let_go(self, queue: Queue, info: Info) -> None:
        """Count a Workload no more."""
        queue.let_go(info)
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
        named = [*parents.values(), *(each.cohort for each in objects.cluster_queues)]
        for name in named:
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
    """Cohorts whose way up comes to no end."""
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
    """The topology of each flavor that has one."""
    if not config.has(gates.TOPOLOGY):
        return {}
    levels = {each.metadata.name: [level.node_label for level in each.spec.levels] for each in objects.topologies}
    found = {
        each.name: FlavorTopology(each.spec.topology_name, levels[each.spec.topology_name], each, objects.cluster.nodes)
        for each in objects.flavors
        if each.spec.topology_name in levels
    }
    subtract_other_pods(found.values(), objects.cluster)
    return found
