"""Every pending pod, in the queue's order: why it is still pending, and what becomes of it.

Also the smallest changes with which unschedulable pods would be scheduled, as far as there is time, what became of
pending pods between two looks, and how many new nodes, and of which kinds, would place all pods that wait, together and
without an eviction.

Each pod is for the smallest kind that could take it. How many nodes of a kind its pods need is found by placing them on
new nodes alone, one after the other; then all pods of the queue are placed in the whole cluster with these nodes, which
proves it. What it takes is bounded by counts, not by the clock, so that the same cluster has the same answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import cycle
from typing import Any

import msgspec
from msgspec.structs import replace

from kpreempt.analysis.algorithms import (
    AnalysisContext,
    Scheduler,
    Spread,
    decide_pending,
    equivalence_key_for,
    one_by_one,
    pending_pods,
    pods_by_node,
    timed_by_part,
)
from kpreempt.analysis.explain.change_search import Situation
from kpreempt.analysis.explain.node_report import Found, propose
from kpreempt.analysis.explain.pods import described
from kpreempt.analysis.nodes.copies import (
    Added,
    Copier,
    Kind,
    NewNodes,
    informational_assumptions,
    informational_kind,
    with_nodes,
)
from kpreempt.analysis.pending.states import (
    DEFAULT_MAX_BACKOFF,
    PendingContext,
    WaitingState,
    cause_of,
    causes_in,
    compare_messages,
    counts_in,
    is_in_queue,
    other_node_counts,
    situation_of,
)
from kpreempt.analysis.queue.order import FailedAttempts, in_queue_order, queue_time, rejection_of
from kpreempt.analysis.unread import unread_events
from kpreempt.analysis.workload.answer import CHOICES, Placing
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_name
from kpreempt.model.pod import Pod
from kpreempt.schedulers.interface import QueueRules
from kpreempt.schedulers.kube.assumptions import claims_of
from kpreempt.verdict import ClusterSummary, Outcome, Verdict
from kpreempt.verdict.details import VolumeConflict
from kpreempt.verdict.pending import (
    TELLING_STATES,
    MoreNodes,
    NodesOfKind,
    PendingChange,
    PendingChangeKind,
    PendingChanges,
    PendingGroup,
    PendingPod,
    PendingPods,
    PendingState,
)
from kpreempt.verdict.unread import unread_of

_EVICTING = (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)


class Decided(msgspec.Struct, frozen=True):
    """A pending pod with its verdict and state; ``position`` is its place in the queue, if it is in it."""

    pod: Pod
    verdict: Verdict
    situation: WaitingState
    position: int | None


def explain_pending(
    context: AnalysisContext,
    *,
    is_selected: Callable[[Pod], bool] = lambda _: True,
    namespace: str = "",
    max_backoff: timedelta = DEFAULT_MAX_BACKOFF,
    spread: Spread = one_by_one,
    has_time: Callable[[], bool] | None = None,
    seeks_nodes: bool = False,
) -> PendingPods:
    """What is to say of each pending pod that is asked about, in the order in which the queue would try them.

    Each verdict is on the pod alone, against the cluster as it is. Pods that are not asked about keep their places in
    the queue. ``namespace`` is the one that the question is about, if it is one. ``spread`` does the work for several
    pods. With ``has_time``, which says whether there is time for one more search, the smallest changes are sought with
    which unschedulable pods would land. Where it ``seeks_nodes``, so are new nodes that would place all pods which wait
    for room. Raises ``PluginFailedError`` where a plugin cannot order the pods.
    """
    cluster, scheduler, phases, at = context.cluster, context.scheduler, context.phases, context.time
    attempts = FailedAttempts(cluster.events)
    pending = pending_pods(cluster)
    asked = [pod for pod in pending if is_selected(pod)]
    others = Counter(pod.metadata.namespace for pod in pending if not is_selected(pod))
    with phases.phase("prepare"):
        prepared = scheduler.prepare(cluster, now=at)
    # Proposals go by what is told of every node.
    keeps = () if has_time is None else (Outcome.UNSCHEDULABLE,)

    def read(verdict: Verdict) -> Verdict:
        return verdict if verdict.outcome in keeps else _as_read(verdict)

    decided = decide_pending(asked, scheduler, prepared, spread=spread, phases=phases, read=read)
    verdicts = {id(pod): verdict for pod, verdict in decided}
    nominated = {pod.status.nominated_node_name for pod in asked} - {""}
    known = PendingContext(pods_by_node(cluster.pods, nominated), attempts, scheduler.scheduler_names, at, max_backoff)
    situations = {id(pod): situation_of(pod, verdicts[id(pod)], known) for pod in asked}
    rules = scheduler.queue_rules(lambda: prepared, phases)
    positions = queue_positions(cluster, scheduler, attempts, rules)
    placed = [
        Decided(
            pod,
            verdicts[id(pod)],
            situations[id(pod)],
            positions.get(pod.key) if is_in_queue(situations[id(pod)].state) else None,
        )
        for pod in in_queue_order(asked, attempts, rules.is_before)
    ]
    own = (assumption for each in placed for assumption in each.verdict.assumptions)
    unread = [*unread_events(cluster), *unread_of(cluster, ["Pod"]), *other_node_counts(asked, len(cluster.nodes), at)]
    placed.sort(key=lambda each: each.position is None)
    items = [_item(each, attempts) for each in placed]
    if has_time is not None:
        with phases.phase("proposals"):
            items = _with_proposals(items, placed, context, prepared, has_time, spread)
    more = None
    if seeks_nodes:
        # Those in the queue that are not on their way to a node which is being made free for them.
        queue = [
            (each.pod, each.verdict.outcome)
            for each in placed
            if each.position is not None
            and each.situation.state not in TELLING_STATES
            and each.verdict.outcome in (Outcome.LANDS, Outcome.UNSCHEDULABLE, *_EVICTING)
        ]
        beside = len(positions) - sum(each.position is not None for each in placed)
        with phases.phase("proposals"):
            within = timed_by_part(scheduler, phases)
            more = more_nodes(cluster, within, prepared, queue, now=at, num_omitted=beside)
    counted = placed[0].verdict.cluster if placed else ClusterSummary(nodes=len(cluster.nodes))
    return PendingPods(
        algorithm=scheduler.algorithm,
        at=at,
        cluster=described(counted, cluster, context.now),
        in_queue=len(positions),
        namespace=namespace,
        has_namespace=_has_namespace(cluster, namespace),
        other_namespaces=dict(others.most_common()),
        groups=_groups(items),
        items=items,
        more_nodes=more if more is not None else msgspec.UNSET,
        assumptions=list(dict.fromkeys([*context.assumptions, *unread, *own])),
    )


def _as_read(verdict: Verdict) -> Verdict:
    """The verdict with no more about single nodes than the answer has of them."""
    return msgspec.structs.replace(
        verdict,
        filter={name: status for name, status in verdict.filter.items() if isinstance(status.detail, VolumeConflict)},
        feasible_nodes=[],
        potential_nodes=[],
        dry_run={},
        candidates=[each for each in verdict.candidates if each.node in verdict.nominated_nodes],
        selection=None,
    )


def _has_namespace(cluster: ClusterSnapshot, namespace: str) -> bool | None:
    """Whether there is such a namespace; ``None`` where none was asked about, or none was read and no pod is in it."""
    if not namespace:
        return None
    if any(pod.metadata.namespace == namespace for pod in cluster.pods):
        return True
    known = {each.metadata.name for each in cluster.namespaces}
    return namespace in known if known else None


def queue_positions(
    cluster: ClusterSnapshot, scheduler: Scheduler, attempts: FailedAttempts, rules: QueueRules
) -> dict[str, int]:
    """The place of every pod that waits in this scheduler's queue, by ``namespace/name``, from 1.

    ``rules`` are those of its queue. Raises ``PluginFailedError`` where its plugin cannot order the pods.
    """
    queued = [
        pod
        for pod in pending_pods(cluster)
        if pod.metadata.deletion_timestamp is None
        and not pod.spec.scheduling_gates
        and pod.spec.scheduler_name in scheduler.scheduler_names
        and not (rules.blocked_pods is not None and rules.blocked_pods(pod))
    ]
    ordered = in_queue_order(queued, attempts, rules.is_before)
    return {pod.key: place for place, pod in enumerate(ordered, start=1)}


def _item(decided: Decided, attempts: FailedAttempts) -> PendingPod:
    pod, verdict, situation = decided.pod, decided.verdict, decided.situation
    rejection = rejection_of(pod)
    time = queue_time(pod, attempts)
    theirs = rejection.message if rejection else ""
    return PendingPod(
        pod=pod.key,
        priority=pod.priority,
        priority_class_name=pod.spec.priority_class_name,
        owner=controller_name(pod.metadata),
        requests=verdict.pod.requests,
        created=pod.metadata.creation_timestamp,
        position=decided.position,
        queue_time=time.time,
        queue_time_source=time.source,
        state=situation.state,
        since=situation.since,
        until=situation.until,
        last_attempt=attempts.last_of(pod),
        gates=[gate.name for gate in pod.spec.scheduling_gates],
        held_by=verdict.held_by if situation.state == PendingState.HELD else "",
        scheduler_name=pod.spec.scheduler_name,
        nominated_node_name=pod.status.nominated_node_name,
        waiting_for=list(situation.waiting_for),
        cause=_cause(verdict, situation, pod),
        outcome=verdict.outcome,
        permanently_unschedulable=verdict.permanently_unschedulable,
        reason=verdict.reason,
        nodes=verdict.nominated_nodes or verdict.lands_on or verdict.chosen_nodes,
        victims=verdict.victims,
        alternatives=verdict.alternatives,
        num_pdb_violations=max(
            (each.num_pdb_violations for each in verdict.candidates if each.node in verdict.nominated_nodes), default=0
        ),
        reasons=counts_in(verdict.message),
        claims=_claims(pod, verdict),
        message=verdict.message,
        scheduler_message=theirs,
        agreement=compare_messages(theirs, verdict.message),
    )


def _with_proposals(
    items: Sequence[PendingPod],
    placed: Sequence[Decided],
    context: AnalysisContext,
    prepared: Any,
    has_time: Callable[[], bool],
    spread: Spread,
) -> list[PendingPod]:
    """The items, those of unschedulable pods with what would let them land.

    Pods that the scheduler cannot tell apart share a search. Of pods whose turn comes once ``has_time`` denies it there
    is nothing.
    """
    cluster, scheduler = context.cluster, timed_by_part(context.scheduler, context.phases)
    decided = [
        (each.pod, each.verdict)
        for each in placed
        if each.verdict.outcome == Outcome.UNSCHEDULABLE
        and each.situation.state not in TELLING_STATES
        and cluster.nodes
    ]
    keys = [equivalence_key_for(scheduler, pod) for pod, _ in decided]
    distinct = dict(zip(reversed(keys), reversed(decided), strict=True))

    def search(each: tuple[Pod, Verdict]) -> Found | None:
        pod, verdict = each
        if not has_time():
            return None
        # What admission added to a pod of the cluster is part of it.
        stated = len(pod.spec.tolerations)
        return propose(scheduler, Situation(cluster, prepared, pod, verdict), stated, now=context.time)

    # In the order of the queue: whose turn comes first is sought first.
    ordered = {key: distinct[key] for key in dict.fromkeys(keys)}
    by_key = dict(zip(ordered, spread(ordered.values(), search), strict=True))
    found = {pod.key: each for key, (pod, _) in zip(keys, decided, strict=True) if (each := by_key[key]) is not None}
    return [
        msgspec.structs.replace(item, proposals=found[item.pod].proposals, proposal_search=found[item.pod].search)
        if item.pod in found
        else item
        for item in items
    ]


def _claims(pod: Pod, verdict: Verdict) -> list[str]:
    """The claims that refusals name, and resource claims, whose devices may not be there."""
    volumes: list[str] = []
    if any(volume.persistent_volume_claim or volume.ephemeral for volume in pod.spec.volumes):
        statuses = [*([verdict.pre_filter] if verdict.pre_filter else []), *verdict.filter.values()]
        volumes = [each.detail.claim for each in statuses if isinstance(each.detail, VolumeConflict)]
    names = dict.fromkeys(name for claims in volumes for name in claims.split(", ") if name)
    told = [f"PersistentVolumeClaim {name if '/' in name else f'{pod.metadata.namespace}/{name}'}" for name in names]
    return told + [f"ResourceClaim {pod.metadata.namespace}/{name}" for name in claims_of(pod)]


def _cause(verdict: Verdict, situation: WaitingState, pod: Pod) -> str:
    """What puts pods together: a state that says it all, or the reasons of the nodes without their numbers."""
    if situation.state == PendingState.GATED:
        return ", ".join(sorted(gate.name for gate in pod.spec.scheduling_gates))
    if situation.state == PendingState.NO_SCHEDULER:
        return pod.spec.scheduler_name
    if situation.state == PendingState.HELD and verdict.held_by:
        return f"{verdict.held_by}: {verdict.reason}"
    if situation.state in TELLING_STATES:
        return verdict.reason
    if verdict.pre_filter is not None:
        return verdict.reason or verdict.pre_filter.message
    if verdict.outcome == Outcome.UNSCHEDULABLE and verdict.reason:
        # An error of the scheduler; that of an old one is in its message.
        is_reported = verdict.message in verdict.reason or "ends in an error: " in verdict.reason
        return verdict.reason if is_reported else f"{verdict.reason}: {verdict.message}"
    if verdict.outcome == Outcome.LANDS or verdict.outcome in _EVICTING:
        return cause_of(verdict.message)
    _, preemption = causes_in(verdict.message)
    own = [part for part in preemption if part.startswith("not eligible")]
    return ", ".join([cause_of(verdict.message) or verdict.reason, *own])


def _groups(items: Sequence[PendingPod]) -> list[PendingGroup]:
    members: dict[tuple[str, Outcome, PendingState | None, bool], list[str]] = {}
    for item in items:
        state = item.state if item.state in TELLING_STATES else None
        key = (item.cause, item.outcome, state, item.permanently_unschedulable and state is None)
        members.setdefault(key, []).append(item.pod)
    return [
        PendingGroup(cause, outcome, state, pods, for_good)
        for (cause, outcome, state, for_good), pods in members.items()
    ]


def changes_since(before: PendingPods, now: PendingPods, cluster: ClusterSnapshot) -> PendingChanges:
    """Those since ``before``: pods that landed or went, then new ones, then those of which something else is expected.

    ``cluster`` is the one that ``now`` is about: it tells where pods are that wait no longer.
    """
    earlier = {item.pod: item for item in before.items}
    present = {item.pod: item for item in now.items}
    left = earlier.keys() - present.keys()
    found = {pod.key: pod for pod in cluster.pods if pod.key in left} if left else {}
    changes = []
    for name in earlier:
        if name not in left:
            continue
        pod = found.get(name)
        if pod is not None and pod.spec.node_name:
            changes.append(PendingChange(name, PendingChangeKind.LANDED, node=pod.spec.node_name))
        elif pod is None or pod.is_terminal:
            changes.append(PendingChange(name, PendingChangeKind.REMOVED))
    changes += [PendingChange(name, PendingChangeKind.NEW) for name in present if name not in earlier]
    for name, item in present.items():
        old = earlier.get(name)
        if old is not None and _outcome_of(old) != _outcome_of(item):
            changes.append(PendingChange(name, PendingChangeKind.CHANGED, outcome=old.outcome, state=old.state))
    return PendingChanges(before.at, changes)


def _outcome_of(item: PendingPod) -> tuple[object, ...]:
    """What a reader takes for something else; when a pod is tried again, or on which node it fits, is not."""
    if item.state in TELLING_STATES:
        return (item.state, item.nominated_node_name)
    return (item.outcome, *(item.nodes if item.victims else ()))


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
    num_omitted: int = 0,
) -> MoreNodes | None:
    """What is found for the pods of a queue, in its order, with what becomes of each as things are.

    ``prepared`` is the cluster as the scheduler has made it ready. ``num_omitted`` are in the queue besides, and nobody
    asked about them. ``None`` where none waits for room.
    """
    waiting = [pod for pod, outcome in queue if outcome is not Outcome.LANDS]
    if not waiting or not cluster.nodes:
        return None
    if scheduler.decisions_depend_on_pod_identity:
        return MoreNodes(not_searched="not with extenders, or plugins that tell pods apart")
    if len(queue) > _MOST_PODS or len(queue) * len(cluster.nodes) > _MOST_LOOKS:
        return MoreNodes(not_searched=f"not for {len(queue):,} pods on {len(cluster.nodes):,} nodes")
    found = _Search(cluster, scheduler, prepared, [pod for pod, _ in queue], now=now).run(waiting)
    if num_omitted and found.nodes:
        beside = f"pending pods that were not asked about ({num_omitted:,}) take none of this room"
        found = replace(found, assumed=[*found.assumed, beside])
    return found


class _Search:
    def __init__(
        self, cluster: ClusterSnapshot, scheduler: Scheduler, prepared: Any, queue: Sequence[Pod], *, now: datetime
    ) -> None:
        self._cluster, self._scheduler, self._prepared = cluster, scheduler, prepared
        self._queue, self._now = queue, now
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
                    return replace(answer, not_searched=f"more than {_MOST_NODES} nodes like {kind.like.name}")
                counts.append(number + extra[kind.like.name])
            kinds = [kind for kind, _ in groups]
            copier = Copier(self._cluster, now=self._now)
            added = sum((copier.like(kind.like, n) for kind, n in zip(kinds, counts, strict=True)), Added())
            left, chance = self._left(added, set(unplaced))
            if left is None:
                break
            if not left:
                placed = [pod.key for pod in self._queue if pod.key in missing and pod.key not in unplaced]
                assumed = [*informational_assumptions(added.assumptions), *([chance] if chance else [])]
                pairs = list(zip(kinds, counts, strict=True))
                return replace(
                    answer,
                    nodes=[NodesOfKind(informational_kind(kind), number) for kind, number in pairs],
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
        return replace(answer, not_searched="new nodes alone do not place them all without an eviction")

    def _by_kind(self, waiting: Sequence[Pod]) -> tuple[list[tuple[Kind, list[Pod]]], list[str]]:
        """The pods for each kind, the smallest that could take them; and those for which there is none."""
        turns: dict[bytes, Iterator[Kind]] = {}
        groups: dict[str, tuple[Kind, list[Pod]]] = {}
        unplaced = []
        for pod in waiting:
            key = equivalence_key_for(self._scheduler, pod)
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
