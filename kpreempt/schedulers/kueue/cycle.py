"""One scheduling cycle: heads are nominated, and dealt with in their turn (``schedule`` of Kueue v0.19.2)."""

from __future__ import annotations

from kpreempt.schedulers.kueue import configuration as gates
from kpreempt.schedulers.kueue.admissibility import NAMESPACE_MESSAGE, resource_problem
from kpreempt.schedulers.kueue.assignment import WAITING_FOR_QUOTA, Mode
from kpreempt.schedulers.kueue.chance import Chance
from kpreempt.schedulers.kueue.cluster_queues import Queue
from kpreempt.schedulers.kueue.entries import SKIPPED, Entry, turns
from kpreempt.schedulers.kueue.nomination import Nominator
from kpreempt.schedulers.kueue.outcomes import Outcomes
from kpreempt.schedulers.kueue.pending import (
    FAILED_AFTER_NOMINATION,
    NAMESPACE_MISMATCH,
    NO_FIT,
    PENDING_PREEMPTION,
    PREEMPTION_NO_CANDIDATES,
)
from kpreempt.schedulers.kueue.quota import Amounts
from kpreempt.schedulers.kueue.records import described
from kpreempt.schedulers.kueue.state import State
from kpreempt.schedulers.kueue.workloads import Info

MISCONFIGURED = "Misconfigured"
PENDING_EVALUATION = "PendingEvaluation"
WAITING_FOR_PREEMPTED = "WaitingForPreemptedWorkloads"
OVERLAPS = "Workload has overlapping preemption targets with another workload"
NO_LONGER_FITS = "Workload no longer fits after processing another workload"
_WILL_FIT = f"{OVERLAPS}, but will fit after these preemptions complete"


class Cycle:
    """A cycle, from the heads that it pops to those that it requeues."""

    def __init__(self, state: State, number: int, now: int, chance: Chance) -> None:
        self.state = state
        self.number = number
        self.now = now
        self.config = state.config
        self.entries: list[Entry] = []
        self.inadmissible: list[Entry] = []
        self.skipped_preemptions: dict[str, int] = {}
        self.stage = state.stage(now, chance)
        self.outcomes = Outcomes(state.config, now)
        self._taken: dict[str, Info] = {}
        self._nominator = Nominator(self.stage, state.flavors, number)

    def heads(self) -> list[Entry]:
        """Pop one Workload of each active ClusterQueue, by their names."""
        found = []
        for name, queue in self.state.active.items():
            pending = self.state.pending[name]
            info = pending.pop()
            if info is not None:
                found.append(Entry(info, queue, pending.preemptor == info.key))
        return sorted(found, key=lambda each: each.info.key)

    def run(self, heads: list[Entry]) -> None:
        """Decide about the heads."""
        nominated = [each for each in heads if self._nominate(each)]
        for entry in turns(nominated, self.config, self.stage.chance):
            self.entries.append(entry)
            self._process(entry)
            entry.final = described(entry.assignment, entry.targets, observes=self.config.has(gates.OBSERVABILITY))
        for entry in (*self.entries, *self.inadmissible):
            if entry.admission is None:
                self._requeue(entry)

    def _nominate(self, entry: Entry) -> bool:
        info, queue = entry.info, entry.queue
        if {"Retry", "Rejected"} & set(info.check_states):
            entry.message, entry.quota_reason = "The workload has failed admission checks", PENDING_EVALUATION
        elif not self.state.namespace_matches(queue, info):
            entry.message, entry.quota_reason = NAMESPACE_MESSAGE, MISCONFIGURED
            entry.requeue_reason = NAMESPACE_MISMATCH
        elif problem := resource_problem(info, self.state.limit_ranges.get(info.namespace, [])):
            entry.message, entry.quota_reason = problem, MISCONFIGURED
        else:
            self._assign(entry)
            entry.nominated = described(entry.assignment, entry.targets, observes=self.config.has(gates.OBSERVABILITY))
            return True
        self.inadmissible.append(entry)
        return False

    def _assign(self, entry: Entry, only: dict[str, dict[str, str]] | None = None) -> None:
        entry.assignment, entry.targets = self._nominator.nominate(entry.info, entry.queue, only)
        entry.message = entry.assignment.message

    def _process(self, entry: Entry) -> None:
        queue = entry.queue
        fits = self._refreshed(entry)
        mode = entry.assignment.mode
        if mode is Mode.NO_FIT:
            entry.requeue_reason, entry.quota_reason = NO_FIT, entry.assignment.no_fit_reason
        elif mode is Mode.PREEMPT and not entry.targets:
            entry.requeue_reason, entry.quota_reason = PREEMPTION_NO_CANDIDATES, WAITING_FOR_QUOTA
            self._reserve(entry)
        elif mode is Mode.DEFERRED_FIT:
            entry.message, entry.quota_reason = _WILL_FIT, WAITING_FOR_PREEMPTED
            entry.requeue_reason, entry.info.memory = PENDING_PREEMPTION, None
            queue.use(entry.quota, entry.topology)
        elif self._overlaps(entry):
            entry.skip(OVERLAPS, self.config)
            entry.quota_reason = WAITING_FOR_QUOTA
            self._count_skipped(queue)
        elif not fits:
            entry.skip(NO_LONGER_FITS, self.config)
            entry.quota_reason = WAITING_FOR_QUOTA
            if mode is Mode.PREEMPT:
                self._count_skipped(queue)
        else:
            self._taken.update((each.info.key, each.info) for each in entry.targets)
            queue.use(entry.quota, entry.topology)
            if mode is Mode.PREEMPT:
                self._preempt(entry)
            else:
                self.outcomes.admit(entry)

    def _preempt(self, entry: Entry) -> None:
        entry.quota_reason = WAITING_FOR_PREEMPTED
        for each in entry.targets:
            self.outcomes.evict(entry, each, self.state.queues[each.info.cluster_queue])
        entry.info.memory = None
        entry.message += f". Pending the preemption of {len(entry.targets)} workload(s)"
        entry.requeue_reason = PENDING_PREEMPTION

    def _count_skipped(self, queue: Queue) -> None:
        self.skipped_preemptions[queue.name] = self.skipped_preemptions.get(queue.name, 0) + 1

    def _overlaps(self, entry: Entry) -> bool:
        return any(each.info.key in self._taken for each in entry.targets)

    def _refreshed(self, entry: Entry) -> bool:
        """Whether the entry still fits; where that may help it is decided about anew, with the same flavors."""
        has_quota, has_room = self._fits(entry)
        anew_for_targets = self._overlaps(entry) and self.config.has(gates.OVERLAP_RECOMPUTE)
        anew_for_room = has_quota and not has_room and self.config.has(gates.TOPOLOGY_RECOMPUTE)
        if not (anew_for_targets or anew_for_room):
            return has_quota and has_room
        entry.is_recomputed = True
        entry.info.memory = None
        only = {each.name: entry.assignment.flavors_of(each.name) for each in entry.assignment.pod_sets}
        with self.stage.without(self._taken.values() if anew_for_targets else ()):
            self._assign(entry, only)
        if anew_for_targets and entry.assignment.mode is Mode.FIT:
            entry.assignment.set_mode(Mode.DEFERRED_FIT)
        return all(self._fits(entry))

    def _fits(self, entry: Entry) -> tuple[bool, bool]:
        """Whether there is quota and, if so, room in the domains, once all targets so far and its own are gone."""
        gone = {**self._taken, **{each.info.key: each.info for each in entry.targets}}.values()
        for each in gone:
            self.stage.remove(each)
        node = entry.queue.node
        has_quota = all(max(0, node.available(fr)) >= amount for fr, amount in entry.quota.items())
        has_room = has_quota and all(
            entry.queue.topologies[flavor].fits(pods) for flavor, pods in entry.topology.items()
        )
        for each in gone:
            self.stage.restore(each)
        return has_quota, has_room

    def _reserve(self, entry: Entry) -> None:
        """Keep quota for who waits without targets, where it could not be had back from others."""
        can_reclaim = entry.queue.preemption.reclaim_within_cohort == "Any"
        is_preemptor = self.config.has(gates.PRIORITIZE_PREEMPTORS) and entry.is_preemptor
        if can_reclaim and not is_preemptor:
            return
        node = entry.queue.node
        kept: Amounts = {}
        for fr, amount in entry.quota.items():
            quota, used = node.quota(fr), node.usage.get(fr, 0)
            if entry.assignment.borrowing == 0:
                kept[fr] = max(0, min(amount, quota.nominal - used))
            elif quota.borrowing_limit is None:
                kept[fr] = amount
            else:
                kept[fr] = min(amount, quota.nominal + quota.borrowing_limit - used)
        entry.queue.use(kept, entry.topology)

    def _requeue(self, entry: Entry) -> None:
        if entry.status == SKIPPED and not entry.requeue_reason:
            entry.requeue_reason = FAILED_AFTER_NOMINATION
        self.state.pending[entry.queue.name].requeue(entry.info, entry.requeue_reason, self.now)
        self.outcomes.leave_pending(entry)
