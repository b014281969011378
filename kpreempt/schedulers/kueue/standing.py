"""How Workloads with quota stand: who would preempt them, and what of their quota is borrowed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from kpreempt.schedulers.kueue.amounts import FlavorResource, Requests, amount_text, in_order
from kpreempt.schedulers.kueue.chance import Chance, every_way
from kpreempt.schedulers.kueue.cluster_queues import NEVER
from kpreempt.schedulers.kueue.configuration import KueueConfiguration
from kpreempt.schedulers.kueue.cycle import Cycle
from kpreempt.schedulers.kueue.nomination import Entry
from kpreempt.schedulers.kueue.objects import KueueObjects
from kpreempt.schedulers.kueue.quota import Node
from kpreempt.schedulers.kueue.state import State
from kpreempt.schedulers.kueue.topology import PODS
from kpreempt.schedulers.kueue.workloads import Info, milliseconds


class Aim(NamedTuple):
    """Whom a Workload preempts, by which rule, and whether it does whatever chance decides."""

    target: str
    reason: str
    is_certain: bool


class Loan(NamedTuple):
    """What a ClusterQueue borrows of a flavor's resource, and the ClusterQueues that may reclaim it at once.

    Those have quota of their own that is not used, and a policy for it.
    """

    flavor_resource: str
    amount: str
    reclaimers: list[str]


class Shortage(NamedTuple):
    """How much of a flavor's resource a Workload lacks, in thousandths of CPU and units."""

    resource: str
    amount: int


class Standing:
    """The ClusterQueues as they are, on which single Workloads are decided about, each as the only head."""

    def __init__(self, objects: KueueObjects, infos: Iterable[Info], config: KueueConfiguration, now: datetime) -> None:
        """``infos`` are the Workloads of the ``objects``."""
        self._now = milliseconds(now)
        self._state = State(objects, map(Info.copy, infos), config, self._now, ())
        self._known_reclaimers: dict[tuple[Node, FlavorResource], list[str]] = {}

    def waiting(self) -> list[str]:
        """Those that wait in active ClusterQueues, by priority and then as they came."""
        pending = [info for name in self._state.active for info in self._state.pending[name].in_order()]
        return [each.key for each in sorted(pending, key=lambda each: (-each.effective_priority, each.queued_since))]

    def aims(self, key: str) -> list[Aim]:
        """Whom a Workload that waits preempts in the one cycle in which nobody else is head."""
        ways, are_all = every_way(lambda chance: self._targets(key, chance))
        found = dict.fromkeys(each for way in ways for each in way)
        return [Aim(*each, are_all and all(each in way for way in ways)) for each in found]

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

    def shortages(self, key: str, flavor: str) -> list[Shortage]:
        """What a Workload asks for of a flavor beyond what is available to its ClusterQueue now."""
        info = self._state.infos[key]
        queue = self._state.queues[self._state.queue_names[info.namespace, info.workload.spec.queue_name]]
        asked: Requests = {}
        for each in info.requests:
            for resource, amount in each.requests.items():
                asked[resource] = asked.get(resource, 0) + amount
            if queue.group_of(PODS) is not None:
                asked[PODS] = asked.get(PODS, 0) + each.count
        found = []
        for resource in in_order(asked):
            fr = (flavor, resource)
            lacks = asked[resource] - max(0, queue.node.available(fr))
            if fr in queue.node.quotas and lacks > 0:
                found.append(Shortage(resource, lacks))
        return found

    def loans(self, key: str) -> list[Loan]:
        """What of a Workload's flavors its ClusterQueue borrows."""
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
                found.append(Loan(f"{flavor}/{resource}", amount_text(resource, over), reclaimers))
        return found

    def _reclaimers(self, root: Node, fr: FlavorResource) -> list[str]:
        """The ClusterQueues of a tree that have quota left which they may reclaim from others."""
        if (root, fr) not in self._known_reclaimers:
            active = self._state.active
            owners = (node for node in root.all_queues() if node.quota(fr).nominal > node.usage.get(fr, 0))
            queues = filter(None, (active.get(node.name) for node in owners))
            able = (each.name for each in queues if each.preemption.reclaim_within_cohort != NEVER)
            self._known_reclaimers[root, fr] = sorted(able)
        return self._known_reclaimers[root, fr]
