"""Simulates ``kubectl drain``, and the cluster around it until nothing more can happen.

Follows ``k8s.io/kubectl`` v0.36.3 ``pkg/cmd/drain/drain.go`` and ``pkg/drain/drain.go``: node by node, pod by pod, with
retries. Differences: a terminated pod is noticed at once rather than up to a second later; client-side rate limits are
ignored; and a rejected eviction is only retried at those of its five-second intervals before which something changed. A
plain drain works on its nodes one after another, an upgrade on several at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from math import ceil, inf
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import timed_by_part
from kpreempt.analysis.check.simulations import Simulated, SimulationContext
from kpreempt.analysis.nodes.changes import cordoned_node
from kpreempt.analysis.nodes.copies import Added, Copier, with_nodes
from kpreempt.analysis.simulation.client import Client, Controller
from kpreempt.analysis.simulation.cluster import is_failing, owner_key
from kpreempt.analysis.simulation.engine import Limits, SimulationStart, simulate
from kpreempt.analysis.simulation.runs import DecisionTrace
from kpreempt.analysis.simulation.scheduling import Pace
from kpreempt.eviction.kubectl_drain import (
    DEADLINE,
    Choice,
    DrainOptions,
    choose_pods,
    not_evicted,
    still_there,
    timed_out,
)
from kpreempt.eviction.records import CREATED, TOO_MANY_REQUESTS, Answer
from kpreempt.eviction.selectors import Requirement, parse_selector
from kpreempt.eviction.subresource import is_of_terminating_namespace
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption
from kpreempt.verdict.drain import DrainedNode

# kubectl retries an eviction after this time if its budget allows no disruptions.
RETRY_SECONDS = 5.0
_NOT_FOUND = 404
# Times are sums of seconds and fractions, so comparisons need a tolerance.
_EPSILON = 1e-6


class DrainBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that are cordoned together, then drained one after another, or in parallel if ``is_parallel``.

    ``surge_nodes`` are new nodes that exist before the drain; ``replacements`` are added when the drained nodes are
    deleted, if ``are_deleted``. Otherwise the drained nodes remain, cordoned.
    """

    nodes: Sequence[str]
    is_parallel: bool = False
    surge_nodes: Sequence[Added] = ()
    replacements: Sequence[Added] = ()
    are_deleted: bool = False

    @property
    def new_nodes(self) -> list[Added]:
        """All new nodes."""
        return [*self.surge_nodes, *self.replacements]


class RejectedAttempt(msgspec.Struct, frozen=True):
    """The last rejected eviction of a pod: its time in seconds, and the state of the cluster at that time."""

    pod: Pod
    answer: Answer
    at: float
    changes: object

    def next_at(self, client: Client) -> float | None:
        """When it is retried, if anything has changed since."""
        if client.cluster.changes == self.changes:
            return None
        wait = self.answer.details.retry_after_seconds if self.answer.details is not None else 0
        step = wait or RETRY_SECONDS
        return self.at + step * max(ceil((client.cluster.at - self.at) / step - _EPSILON), 1)


class NodeWork:
    """The drain of one node: its pods, evictions and rejections, and how it ends.

    ``began`` and ``ended`` are in seconds; ``errors`` are kubectl's, which make the drain of the node fail.
    """

    def __init__(self, node: str) -> None:
        self.node = node
        self.began: float | None = None
        self.ended: float | None = None
        self.choice = Choice([], {}, {})
        self.evicted: list[Pod] = []
        self.rejected: dict[str, RejectedAttempt] = {}
        self.first_rejected: dict[str, float] = {}
        self.going: dict[str, Pod] = {}
        self.errors: list[str] = []
        self.failed: dict[str, tuple[Pod, Answer]] = {}
        # The number of ignored pods: DaemonSet pods and static pods.
        self.stays = 0
        self.deadline = inf

    @property
    def is_busy(self) -> bool:
        """Whether it has started and not ended."""
        return self.began is not None and self.ended is None

    @property
    def is_drained(self) -> bool:
        """Whether it ended without an error."""
        return self.ended is not None and not self.errors

    def due(self, client: Client) -> float | None:
        """When there is something to do."""
        if any(not client.cluster.is_running(pod) for pod in self.going.values()) or not (self.going or self.rejected):
            return client.cluster.at
        times = [at for each in self.rejected.values() if (at := each.next_at(client)) is not None]
        if self.deadline < inf:
            times.append(max(self.deadline, client.cluster.at))
        return min(times) if times else None


class KubectlDrain:
    """Drains nodes batch by batch; ``order`` arranges the pods of a node for eviction.

    ``daemon_sets`` are the namespaces and names of existing DaemonSets. Before pods are evicted, while the first nodes
    are cordoned, the ``rollouts`` are done and the ``awaited`` pods become ready. An upgrade that ``goes_on`` passes
    over nodes that it cannot drain.
    """

    def __init__(
        self,
        batches: Sequence[DrainBatch],
        options: DrainOptions,
        selector: Collection[Requirement],
        daemon_sets: Collection[tuple[str, str]],
        order: Callable[[Sequence[Pod]], list[Pod]] = list,
        rollouts: Sequence[Controller] = (),
        awaited: Collection[str] = (),
        *,
        goes_on: bool = False,
    ) -> None:
        self._batches = [(batch, [NodeWork(node) for node in batch.nodes]) for batch in batches]
        self._options, self._selector, self._daemon_sets, self._order = options, selector, daemon_sets, order
        self._now = 0
        self._is_begun = False
        self._is_prepared = False
        self._rollouts, self._awaited, self._goes_on = rollouts, awaited, goes_on

    @property
    def works(self) -> list[NodeWork]:
        """The nodes, in the order in which they are drained."""
        return [work for _, works in self._batches for work in works]

    def state(self) -> object:
        """The progress of the drain."""
        return self._now, tuple(
            (work.node, len(work.evicted), len(work.rejected), len(work.going)) for work in self._busy()
        )

    def due(self, client: Client) -> float | None:
        """The time of the next action in seconds, if nothing else happens before."""
        if self._now == len(self._batches):
            return None
        if self._is_begun and self._is_waiting(client):
            return None
        if not self._is_begun or not self._busy():
            return client.cluster.at
        times = [at for work in self._busy() if (at := work.due(client)) is not None]
        return min(times) if times else None

    def act(self, client: Client) -> None:
        """Do what is due: start a batch or node, evict pods, retry evictions, and notice terminated pods."""
        while self._now < len(self._batches):
            batch, works = self._batches[self._now]
            if not self._is_begun:
                self._is_begun = True
                nodes = cordoned(client.cluster.snapshot.nodes, batch.nodes)
                if batch.surge_nodes or nodes != list(client.cluster.snapshot.nodes):
                    self._add_nodes(nodes, batch.surge_nodes, client)
            if self._is_waiting(client):
                return
            for work in self._busy():
                self._continue(work, client)
            waiting = [work for work in works if work.began is None]
            if waiting and (batch.is_parallel or not self._busy()):
                for work in waiting if batch.is_parallel else waiting[:1]:
                    self._begin_node(work, client)
                continue
            are_deleted = batch.are_deleted and all(work.is_drained for work in works)
            if self._busy() or (batch.are_deleted and not are_deleted and not self._goes_on):
                # A node that is not empty is never deleted.
                if not self._busy():
                    self._now = len(self._batches)
                return
            self._now += 1
            self._is_begun = False
            if are_deleted:
                names = set(batch.nodes)
                remaining = [each for each in client.cluster.snapshot.nodes if each.name not in names]
                self._add_nodes(remaining, batch.replacements, client)

    def _is_waiting(self, client: Client) -> bool:
        """Whether something has to happen before the first pod is evicted."""
        if not self._is_prepared:
            is_rolled_out = all(each.is_done(client) for each in self._rollouts)
            self._is_prepared = is_rolled_out and all(key in client.cluster.ready for key in self._awaited)
        return not self._is_prepared

    @staticmethod
    def _add_nodes(existing: Sequence[Node], new: Sequence[Added], client: Client) -> None:
        """Add new nodes, with the pods that run on them, to the existing nodes."""
        client.set_nodes([*existing, *(node for each in new for node in each.nodes)])
        for each in new:
            client.place_bound(each.pods)

    def _busy(self) -> list[NodeWork]:
        if self._now == len(self._batches):
            return []
        return [work for work in self._batches[self._now][1] if work.is_busy]

    def _begin_node(self, work: NodeWork, client: Client) -> None:
        work.began = client.cluster.at
        options = self._options
        if options.timeout:
            work.deadline = client.cluster.at + options.timeout
        pods = client.cluster.pods_on(work.node)
        choice = choose_pods(pods, work.node, options, self._selector, self._daemon_sets, client.cluster.now)
        work.choice = choice
        selected = [each for each in pods if all(part.matches(each.metadata.labels) for part in self._selector)]
        work.stays = len(selected) - len(choice.pods) - sum(map(len, choice.errors.values()))
        if choice.errors:
            work.errors = choice.shown_errors()
            work.ended = client.cluster.at
            return
        for pod in self._order(choice.pods):
            if options.disable_eviction:
                client.kill(pod.key, options.grace, work.node)
                self._accepted(work, pod)
            else:
                self._evict(work, pod, client)
        self._remove_terminated(work, client)

    def _continue(self, work: NodeWork, client: Client) -> None:
        """Retry due evictions, and notice terminated pods."""
        self._remove_terminated(work, client)
        for last in list(work.rejected.values()):
            at = last.next_at(client)
            if at is not None and at <= client.cluster.at + _EPSILON:
                self._evict(work, last.pod, client)
        self._remove_terminated(work, client)
        if work.ended is None and client.cluster.at >= work.deadline:
            # The timeout of the node has expired.
            reason = timed_out(self._options.timeout)
            work.errors += [not_evicted(each.pod, reason) for each in work.rejected.values()]
            if self._options.disable_eviction:
                work.errors += [DEADLINE] if work.going else []
            else:
                work.errors += [still_there(pod, DEADLINE) for pod in work.going.values()]
            work.ended = client.cluster.at

    def _evict(self, work: NodeWork, pod: Pod, client: Client) -> None:
        key = pod.key
        answer = client.evict(key, self._options.grace, work.node)
        work.rejected.pop(key, None)
        if answer.status == CREATED:
            self._accepted(work, pod)
        elif answer.status == TOO_MANY_REQUESTS:
            self._refused(work, pod, answer, client)
        elif is_of_terminating_namespace(answer):
            if pod.metadata.deletion_timestamp is not None:
                work.going[key] = pod
            else:
                self._refused(work, pod, answer, client)
        elif answer.status != _NOT_FOUND:
            work.failed[key] = (pod, answer)
            work.errors.append(not_evicted(pod, answer.message))

    def _refused(self, work: NodeWork, pod: Pod, answer: Answer, client: Client) -> None:
        work.first_rejected.setdefault(pod.key, client.cluster.at)
        work.rejected[pod.key] = RejectedAttempt(pod, answer, client.cluster.at, client.cluster.changes)

    def _accepted(self, work: NodeWork, pod: Pod) -> None:
        work.evicted.append(pod)
        work.going[pod.key] = pod

    def _remove_terminated(self, work: NodeWork, client: Client) -> None:
        for key, pod in list(work.going.items()):
            if not client.cluster.is_running(pod):
                del work.going[key]
        if not work.going and not work.rejected and work.ended is None:
            work.ended = client.cluster.at


def cordoned(nodes: Iterable[Node], names: Collection[str]) -> list[Node]:
    """The nodes, with the named ones cordoned; nodes that were already cordoned are returned unchanged."""
    return [cordoned_node(each) if each.name in names else each for each in nodes]


class Upgrade(msgspec.Struct, frozen=True, kw_only=True):
    """How nodes are replaced: ``max_unavailable`` nodes at a time, ``surge`` of them after their replacement exists.

    Other replacements are added when the old node is deleted: an empty copy that accepts pods. ``kubelet_version`` is
    that of the new nodes, if set.
    """

    max_unavailable: int = 1
    surge: int = 0
    kubelet_version: str = ""


def plain_drain(nodes: Sequence[str]) -> list[DrainBatch]:
    """Cordon all nodes first, then drain them one after another."""
    return [DrainBatch(nodes=list(nodes))]


class UpgradePlan(msgspec.Struct, frozen=True):
    """The batches of an upgrade, the cluster with the objects of nodes to come, and the resulting assumptions."""

    cluster: ClusterSnapshot
    batches: list[DrainBatch]
    assumptions: list[Assumption] = []


def upgraded(cluster: ClusterSnapshot, nodes: Sequence[str], upgrade: Upgrade, *, now: datetime) -> UpgradePlan:
    """Plan the upgrade of these nodes of the cluster, in this order; new nodes are created at ``now`` or later."""
    by_name = {each.name: each for each in cluster.nodes}
    copier = Copier(cluster, now=now)
    additions = Added()
    batches: list[DrainBatch] = []
    for own in _batches(nodes, max(upgrade.max_unavailable, upgrade.surge, 1)):
        made = [_with_kubelet(copier.like(by_name[name], 1), upgrade.kubelet_version) for name in own]
        for each in made:
            additions += each
        batches.append(_batch_of(own, made, upgrade.surge))
    # Objects that belong to a node that does not exist yet have no effect.
    known = with_nodes(cluster, msgspec.structs.replace(additions, nodes=[], pods=[]))
    return UpgradePlan(known, batches, list(dict.fromkeys(additions.assumptions)))


def in_order(batches: Sequence[DrainBatch], nodes: Sequence[str]) -> list[DrainBatch]:
    """The same upgrade for some of its nodes, in this order."""
    made = {
        name: added
        for batch in batches
        for name, added in zip(batch.nodes, (*batch.surge_nodes, *batch.replacements), strict=True)
    }
    size, surge = len(batches[0].nodes), len(batches[0].surge_nodes)
    return [_batch_of(own, [made[name] for name in own], surge) for own in _batches(nodes, size)]


def _batch_of(nodes: Sequence[str], made: Sequence[Added], surge: int) -> DrainBatch:
    """A batch of nodes with their replacements ``made``."""
    return DrainBatch(
        nodes=nodes, is_parallel=len(nodes) > 1, surge_nodes=made[:surge], replacements=made[surge:], are_deleted=True
    )


def _with_kubelet(added: Added, version: str) -> Added:
    """The nodes with this kubelet version, if one is given."""
    if not version:
        return added
    nodes = [
        msgspec.structs.replace(
            each,
            status=msgspec.structs.replace(
                each.status, node_info=msgspec.structs.replace(each.status.node_info, kubelet_version=version)
            ),
        )
        for each in added.nodes
    ]
    return msgspec.structs.replace(added, nodes=nodes)


def _batches(nodes: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(nodes), size):
        yield list(nodes[start : start + size])


_ATTEMPTS = 100_000
# A drain whose pods take longer than this to terminate is aborted.
_SECONDS = 30 * 24 * 3600.0


class RejectedEviction(msgspec.Struct, frozen=True):
    """A pod that is still rejected at the end: the last response, and the time of the first rejection in seconds."""

    pod: Pod
    node: str
    answer: Answer
    since: float


class SimulatedDrain(Simulated, frozen=True):
    """A simulated drain: its nodes, the evictions rejected until the end, and pods that do not terminate in time."""

    works: Sequence[DrainedNode] = ()
    rejected_evictions: Sequence[RejectedEviction] = ()
    unchosen: Sequence[tuple[str, str, list[str]]] = ()
    late: Sequence[tuple[str, str]] = ()

    @property
    def is_drained(self) -> bool:
        """Whether every node is drained."""
        return all(each.drained for each in self.works)


class DrainPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A drain: the cluster, the nodes in batches, the options, and what happens first.

    Once the nodes are cordoned, ``arriving`` pods are created, and ``rollouts`` makes the controllers of workloads that
    are rolled out. Pods are evicted when all of that is done and ready. An upgrade that ``goes_on`` passes over nodes
    that it cannot drain.
    """

    cluster: ClusterSnapshot
    batches: Sequence[DrainBatch]
    options: DrainOptions
    arriving: Sequence[Pod] = ()
    rollouts: Callable[[], Sequence[Controller]] = tuple
    goes_on: bool = False

    @property
    def is_upgrade(self) -> bool:
        """Whether the nodes are replaced."""
        return any(batch.are_deleted for batch in self.batches)


class DrainRuns:
    """A drain that can be simulated any number of times; ``daemon_sets`` are namespaces and names.

    The cluster is prepared for the scheduler once.
    """

    def __init__(self, plan: DrainPlan, daemon_sets: Collection[tuple[str, str]], context: SimulationContext) -> None:
        self._plan, self._daemon_sets = plan, daemon_sets
        self._selector = parse_selector(plan.options.pod_selector)
        self._scheduler = timed_by_part(context.scheduler, context.phases)
        self._now, self._phases = context.at, context.phases
        owners = {owner for pod in plan.cluster.pods if (owner := owner_key(pod)) and owner[1] == "DaemonSet"}
        self._missing_owners = {each for each in owners if (each[0], each[2]) not in daemon_sets}
        self._failing_owners = {owner for pod in plan.cluster.pods if is_failing(pod) and (owner := owner_key(pod))}
        self._prepared: Any = None

    def __call__(self, seed: int, choices: DecisionTrace, pace: Pace) -> SimulatedDrain:
        """Run one simulation."""
        plan = self._plan
        if self._prepared is None:
            with self._phases.phase("prepare"):
                self._prepared = self._scheduler.prepare(plan.cluster, now=self._now)
        rollouts = plan.rollouts()
        kubectl = KubectlDrain(
            plan.batches,
            plan.options,
            self._selector,
            self._daemon_sets,
            order=pace.in_any_order,
            rollouts=rollouts,
            awaited=[pod.key for pod in plan.arriving],
            goes_on=plan.goes_on,
        )
        start = SimulationStart(
            arriving=plan.arriving,
            missing_owners=self._missing_owners,
            failing_owners=self._failing_owners,
            controllers=rollouts,
            choose=choices.choose,
            pace=pace,
            operator=kubectl,
        )
        with self._phases.phase("simulation"):
            simulation, assumptions, after = simulate(
                pace.in_drawn_order(plan.cluster),
                start,
                self._scheduler,
                now=self._now,
                limits=Limits(attempts=_ATTEMPTS, seconds=_SECONDS),
                prepared=self._prepared if pace.is_at_once else None,
            )
        existing = {pod.metadata.uid or pod.key for pod in after.pods}
        return SimulatedDrain(
            seed=seed,
            simulation=simulation,
            assumptions=assumptions,
            before=plan.cluster,
            after=after,
            works=[_drained_node(work, existing) for work in kubectl.works],
            rejected_evictions=[refused for work in kubectl.works for refused in _refused(work)],
            unchosen=[(work.node, text, pods) for work in kubectl.works for text, pods in work.choice.errors.items()],
            late=[(work.node, key) for work in kubectl.works if work.errors or work.is_busy for key in work.going],
        )


def _drained_node(work: NodeWork, existing: Collection[str]) -> DrainedNode:
    remaining = [*(pod.key for pod in work.choice.pods if (pod.metadata.uid or pod.key) in existing)]
    remaining += [pod for pods in work.choice.errors.values() for pod in pods]
    return DrainedNode(
        node=work.node,
        drained=work.is_drained,
        began=work.began,
        ended=work.ended,
        evicted=len(work.evicted),
        remaining=remaining,
        ignored=work.stays,
        errors=list(work.errors),
        warnings=work.choice.shown_warnings() if not work.choice.errors else [],
    )


def _refused(work: NodeWork) -> list[RejectedEviction]:
    tried = [
        RejectedEviction(each.pod, work.node, each.answer, work.first_rejected.get(key, each.at))
        for key, each in work.rejected.items()
    ]
    return [
        *tried,
        *(RejectedEviction(pod, work.node, answer, work.began or 0.0) for pod, answer in work.failed.values()),
    ]
