"""Reports every pending pod in queue order: why it is pending, and what would happen to it.

Also: remedies for unschedulable pods, within a time limit; the changes of pending pods between two reports; and how
many new nodes, of which kinds, would fit all waiting pods together without evictions.

Each pod is assigned to the smallest kind of node that fits it. The number of nodes per kind is found by placing the
pods on new nodes only, one after another; then all pods of the queue are placed in the whole cluster with these nodes,
which verifies the result. The work is bounded by counts rather than time, so that the same cluster gives the same
answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
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
from kpreempt.analysis.evictions.workloads import PastPreemptions
from kpreempt.analysis.explain.pods import described, summed_up
from kpreempt.analysis.explain.remedies import RemediesFound, Situation, find_remedies
from kpreempt.analysis.nodes.copies import (
    Added,
    Copier,
    Kind,
    NewNodes,
    informational_assumptions,
    informational_kind,
    with_nodes,
)
from kpreempt.analysis.pending.on_nodes import NodeReports
from kpreempt.analysis.pending.resizes import pending_resizes
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
from kpreempt.analysis.queue.order import FailedAttempts, queue_time, rejection_of
from kpreempt.analysis.queue.serving import Draws, Server, with_reasons
from kpreempt.analysis.queue.waiting import queue_of, queue_positions, waiting_pods
from kpreempt.analysis.unread import unread_events
from kpreempt.analysis.workload.placing import CHOICES, Placing
from kpreempt.model.cluster import ClusterSnapshot, KindState, is_partial, lacks_all_nodes, may_lack_nodes, state_of
from kpreempt.model.meta import controller_name
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.assumptions import claims_of
from kpreempt.schedulers.kube.framework.resources import pod_requests, requests_in_units
from kpreempt.verdict import Assumption, ClusterSummary, Outcome, Verdict
from kpreempt.verdict.details import VolumeConflict
from kpreempt.verdict.pending import (
    SHOWN_STATES,
    MoreNodes,
    NodesOfKind,
    PendingChange,
    PendingChangeKind,
    PendingChanges,
    PendingGroup,
    PendingPod,
    PendingPods,
)
from kpreempt.verdict.rejections import RejectedNodes, rejected_nodes
from kpreempt.verdict.served import InTurn, ServedQueue, TurnOutcome
from kpreempt.verdict.unread import unread_of
from kpreempt.verdict.waiting import PendingState


class Decided(msgspec.Struct, frozen=True):
    """A pending pod with its verdict and state; ``position`` is its position in the queue, if it is queued."""

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
    draws: Draws,
) -> PendingPods:
    """Report on each selected pending pod, in queue order.

    Each verdict covers the pod alone, against the current cluster. With ``draws``, the whole queue is served as well,
    which shows what becomes of each pod in its turn. Pods that are not selected keep their positions in the queue.
    ``namespace`` is the namespace of the query, if it has one. ``spread`` evaluates several pods in parallel. With
    ``has_time``, which says whether there is time for another search, it searches for remedies of unschedulable pods.
    With ``seeks_nodes``, it searches for new nodes that would fit all waiting pods. Raises ``PluginFailedError`` if a
    plugin cannot order the pods.
    """
    cluster, scheduler, phases, at = context.cluster, context.scheduler, context.phases, context.time
    attempts = FailedAttempts(cluster.events)
    pending = pending_pods(cluster)
    selected = [pod for pod in pending if is_selected(pod)]
    reports = NodeReports(cluster)
    on_nodes = reports.pending()
    skipped = Counter(pod.metadata.namespace for pod in (*pending, *on_nodes) if not is_selected(pod))
    with phases.phase("prepare"):
        prepared = scheduler.prepare(cluster, now=at)

    def read(verdict: Verdict) -> Verdict:
        if is_partial(cluster) and verdict.outcome is Outcome.UNCERTAIN:
            # What the scheduler says about the other nodes, or about none, is not known.
            missing = "not all nodes are" if may_lack_nodes(cluster) else "not all pods are"
            missing = "no node is" if lacks_all_nodes(cluster) else missing
            verdict = replace(verdict, message="", reason=f"{missing} in the input")
        # Rejections and remedies need the filter results of every node.
        return verdict if verdict.outcome.stays_pending else _as_read(verdict)

    decided = decide_pending(selected, scheduler, prepared, spread=spread, phases=phases, read=read)
    verdicts = {id(pod): verdict for pod, verdict in decided}
    nominated = {pod.status.nominated_node_name for pod in selected} - {""}
    known = PendingContext(pods_by_node(cluster.pods, nominated), attempts, scheduler.scheduler_names, at, max_backoff)
    situations = {id(pod): situation_of(pod, verdicts[id(pod)], known) for pod in selected}
    waiting = waiting_pods(
        cluster,
        scheduler,
        lambda: prepared,
        at,
        known={pod.key: verdicts[id(pod)] for pod in selected},
        spread=spread,
        phases=phases,
    )
    positions = queue_positions(queue_of(scheduler, waiting, at, scheduler.queue_rules(lambda: prepared, phases)))
    if state_of(cluster, "Pod") is KindState.UNREADABLE:
        # Pods that could not be read are in the same queue.
        positions = {}
    placed = [
        Decided(
            pod,
            verdicts[id(pod)],
            situations[id(pod)],
            positions.get(pod.key) if is_in_queue(situations[id(pod)].state) else None,
        )
        for pod in selected
    ]
    verdict_assumptions = (assumption for each in placed for assumption in each.verdict.assumptions)
    unread = [
        *unread_events(cluster),
        *unread_of(cluster, ["Pod"]),
        *other_node_counts(selected, cluster, at),
    ]
    placed.sort(key=_place)
    # Without all nodes and pods, what becomes of the queue is unknown.
    is_known = not is_partial(cluster)
    served = ServedQueue(is_complete=False)
    served_assumptions: Sequence[Assumption] = ()
    if is_known:
        with phases.phase("queue"):
            served, served_assumptions = Server(context, prepared, waiting, draws).serve(spread=spread)
    rejections, past = _rejections(verdicts.values()), PastPreemptions(cluster)
    items = [
        replace(
            _item(each, attempts, served, rejections.get(id(each.verdict.filter), [])),
            replaces=past.replaced_by(each.pod),
        )
        for each in placed
    ]
    turns = {item.pod: item.in_turn for item in items if item.in_turn is not None}
    if has_time is not None:
        with phases.phase("remedies"):
            items = _with_remedies(items, placed, context, prepared, has_time, spread)
    new_nodes = None
    if seeks_nodes and is_known:
        # Queued pods, except those whose nominated node is being freed for them; those that land in their turn need no
        # node.
        queue = [
            (each.pod, not is_quietly_scheduled(served.in_turn.get(each.pod.key)))
            for each in placed
            if each.position is not None
            and each.situation.state not in SHOWN_STATES
            and (each.verdict.outcome.stays_pending or each.verdict.outcome.finds_node)
        ]
        num_omitted = len(positions) - sum(each.position is not None for each in placed)
        with phases.phase("remedies"):
            within = timed_by_part(scheduler, phases)
            new_nodes = more_nodes(cluster, within, prepared, queue, now=at, num_omitted=num_omitted)
    counted = placed[0].verdict.cluster if placed else ClusterSummary(nodes=len(cluster.nodes))
    if lacks_all_nodes(cluster):
        counted = summed_up(cluster, context.now)
    return PendingPods(
        algorithm=scheduler.algorithm,
        at=at,
        cluster=described(counted, cluster, context.now),
        in_queue=len(positions),
        namespace=namespace,
        has_namespace=_has_namespace(cluster, namespace),
        other_namespaces=dict(skipped.most_common()),
        groups=_groups(items),
        items=items,
        preemptions=past.between([each.pod for each in placed], least=2),
        on_nodes=[reports.why(pod) for pod in on_nodes if is_selected(pod)],
        resizes=pending_resizes(filter(is_selected, cluster.pods), cluster, scheduler, at),
        more_nodes=new_nodes if new_nodes is not None else msgspec.UNSET,
        served=replace(served, in_turn={**served.in_turn, **turns}),
        assumptions=list(dict.fromkeys([*context.assumptions, *unread, *verdict_assumptions, *served_assumptions])),
    )


def _place(decided: Decided) -> tuple[bool, int, int]:
    """Sort key: queue positions, then pods that are not in the queue, by priority."""
    return decided.position is None, decided.position or 0, -decided.pod.priority


def _as_read(verdict: Verdict) -> Verdict:
    """The verdict with only those node details that the report uses."""
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
    """Whether the namespace exists; ``None`` if there is none in the query, or namespaces were not read."""
    if not namespace:
        return None
    if any(pod.metadata.namespace == namespace for pod in cluster.pods):
        return True
    known = {each.metadata.name for each in cluster.namespaces}
    return namespace in known if known else None


def _rejections(verdicts: Iterable[Verdict]) -> dict[int, list[RejectedNodes]]:
    """The nodes that reject pods that stay pending, by the identity of what filters say; equal pods share that."""
    shown = (each for each in verdicts if each.outcome.stays_pending and each.pre_filter is None)
    return {number: rejected_nodes(each) for number, each in {id(each.filter): each for each in shown}.items()}


def _item(
    decided: Decided, attempts: FailedAttempts, served: ServedQueue, rejections: list[RejectedNodes]
) -> PendingPod:
    pod, verdict, situation = decided.pod, decided.verdict, decided.situation
    rejection = rejection_of(pod)
    time = queue_time(pod, attempts)
    scheduler_message = rejection.message if rejection else ""
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
        in_turn=with_reasons(turn, verdict) if (turn := served.in_turn.get(pod.key)) is not None else None,
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
        rejections=rejections,
        claims=_claims(pod, verdict),
        message=verdict.message,
        scheduler_message=scheduler_message,
        agreement=compare_messages(scheduler_message, verdict.message),
    )


def is_quietly_scheduled(turn: InTurn | None) -> bool:
    """Whether a pod is scheduled in its turn, whatever chance decides, and nothing is evicted for it."""
    return turn is not None and turn.outcome is TurnOutcome.SCHEDULED and not turn.may_evict


def _with_remedies(
    items: Sequence[PendingPod],
    placed: Sequence[Decided],
    context: AnalysisContext,
    prepared: Any,
    has_time: Callable[[], bool],
    spread: Spread,
) -> list[PendingPod]:
    """Add remedies to the unschedulable pods.

    Pods that are equivalent for the scheduler share a search. Pods get none if ``has_time`` is false when it is their
    turn.
    """
    cluster, scheduler = context.cluster, timed_by_part(context.scheduler, context.phases)
    decided = [
        (each.pod, each.verdict)
        for each in placed
        if each.verdict.outcome.stays_pending and each.situation.state not in SHOWN_STATES and cluster.nodes
    ]
    keys = [equivalence_key_for(scheduler, pod) for pod, _ in decided]
    distinct = dict(zip(reversed(keys), reversed(decided), strict=True))

    def search(each: tuple[Pod, Verdict]) -> RemediesFound | None:
        pod, verdict = each
        if not has_time():
            return None
        # Tolerations that admission added to an existing pod are part of it.
        stated = len(pod.spec.tolerations)
        return find_remedies(scheduler, Situation(cluster, prepared, pod, verdict), stated, now=context.time)

    # Search in queue order, so that pods at the front are searched first.
    ordered = {key: distinct[key] for key in dict.fromkeys(keys)}
    by_key = dict(zip(ordered, spread(ordered.values(), search), strict=True))
    answers = {pod.key: each for key, (pod, _) in zip(keys, decided, strict=True) if (each := by_key[key]) is not None}
    return [
        msgspec.structs.replace(item, remedies=each.remedies, remedy_search=each.search, causes=each.causes)
        if (each := answers.get(item.pod)) is not None
        else item
        for item in items
    ]


def _claims(pod: Pod, verdict: Verdict) -> list[str]:
    """The claims named in rejections, and resource claims, whose devices may be missing."""
    volumes: list[str] = []
    if any(volume.persistent_volume_claim or volume.ephemeral for volume in pod.spec.volumes):
        statuses = [*([verdict.pre_filter] if verdict.pre_filter else []), *verdict.filter.values()]
        volumes = [each.detail.claim for each in statuses if isinstance(each.detail, VolumeConflict)]
    names = dict.fromkeys(name for claims in volumes for name in claims.split(", ") if name)
    found = [f"PersistentVolumeClaim {name if '/' in name else f'{pod.metadata.namespace}/{name}'}" for name in names]
    return found + [f"ResourceClaim {pod.metadata.namespace}/{name}" for name in claims_of(pod)]


def _cause(verdict: Verdict, situation: WaitingState, pod: Pod) -> str:
    """The text by which pods are grouped: the state, or the reasons of the nodes without counts."""
    if situation.state == PendingState.GATED:
        return ", ".join(sorted(gate.name for gate in pod.spec.scheduling_gates))
    if situation.state == PendingState.NO_SCHEDULER:
        return pod.spec.scheduler_name
    if situation.state == PendingState.HELD and verdict.held_by:
        return f"{verdict.held_by}: {verdict.reason}"
    if situation.state in SHOWN_STATES:
        return verdict.reason
    if verdict.pre_filter is not None:
        return verdict.reason or verdict.pre_filter.message
    if verdict.outcome.stays_pending and verdict.reason:
        # A scheduler error; the message of older schedulers contains it.
        is_included = verdict.message in verdict.reason or "ends in an error: " in verdict.reason
        return verdict.reason if is_included else f"{verdict.reason}: {verdict.message}"
    if verdict.outcome.finds_node:
        return cause_of(verdict.message)
    if verdict.outcome is Outcome.UNCERTAIN and not verdict.message and (rejection := rejection_of(pod)) is not None:
        # What the scheduler last said is all that is known.
        return cause_of(rejection.message)
    _, preemption = causes_in(verdict.message)
    own = [part for part in preemption if part.startswith("not eligible")]
    return ", ".join([cause_of(verdict.message) or verdict.reason, *own])


def _groups(items: Sequence[PendingPod]) -> list[PendingGroup]:
    members: dict[tuple[str, Outcome, PendingState | None, bool], list[str]] = {}
    for item in items:
        state = item.state if item.state in SHOWN_STATES else None
        key = (item.cause, item.outcome, state, item.permanently_unschedulable and state is None)
        members.setdefault(key, []).append(item.pod)
    return [
        PendingGroup(cause, outcome, state, pods, is_permanent)
        for (cause, outcome, state, is_permanent), pods in members.items()
    ]


def changes_since(before: PendingPods, now: PendingPods, cluster: ClusterSnapshot) -> PendingChanges:
    """The changes since ``before``: pods that were scheduled or deleted, new pods, and other expected outcomes.

    ``cluster`` is that of ``now``; it shows where pods are that are no longer pending.
    """
    earlier = {item.pod: item for item in before.items}
    present = {item.pod: item for item in now.items}
    removed = earlier.keys() - present.keys()
    found = {pod.key: pod for pod in cluster.pods if pod.key in removed} if removed else {}
    changes = []
    for name in earlier:
        if name not in removed:
            continue
        pod = found.get(name)
        if pod is not None and pod.spec.node_name:
            changes.append(PendingChange(name, PendingChangeKind.LANDED, node=pod.spec.node_name))
        elif pod is None or pod.is_terminal:
            changes.append(PendingChange(name, PendingChangeKind.REMOVED))
    changes += [PendingChange(name, PendingChangeKind.NEW) for name in present if name not in earlier]
    for name, item in present.items():
        old = earlier.get(name)
        if old is not None and _outcome_key(old) != _outcome_key(item):
            changes.append(PendingChange(name, PendingChangeKind.CHANGED, outcome=old.outcome, state=old.state))
    return PendingChanges(before.at, changes)


def _outcome_key(item: PendingPod) -> tuple[object, ...]:
    """What counts as a change for a reader; the next retry, or the node on which a pod fits, does not."""
    if item.state in SHOWN_STATES:
        return (item.state, item.nominated_node_name)
    return (item.outcome, *(item.nodes if item.victims else ()))


# The budget of verification: nodes examined, once for each pod that is placed.
_MAX_EVALUATIONS = 100_000
_MAX_PODS = 400
_MAX_NODES = 100
# How often nodes are added if the whole cluster needs more of them than new nodes alone.
_ROUNDS = 3
_BY_CHANCE = (
    "the scheduler picks one of several equal nodes at random; only the first and the last choice were simulated"
)
_FIRST_BY_CHANCE = "the scheduler picks one of several equal nodes at random; only the first was simulated"


def more_nodes(
    cluster: ClusterSnapshot,
    scheduler: Scheduler,
    prepared: Any,
    queue: Sequence[tuple[Pod, bool]],
    *,
    now: datetime,
    num_omitted: int = 0,
) -> MoreNodes | None:
    """Find the new nodes for the pods of a queue; ``queue`` says whether each pod needs capacity, in queue order.

    ``prepared`` is the prepared cluster. ``num_omitted`` is the number of queued pods that the query does not include.
    Returns ``None`` if no pod is waiting for capacity.
    """
    waiting = [pod for pod, needs_capacity in queue if needs_capacity]
    if not waiting or not cluster.nodes:
        return None
    if scheduler.decisions_depend_on_pod_identity:
        return MoreNodes(not_searched="not supported with extenders, or with plugins that depend on pod identity")
    if len(queue) > _MAX_PODS or len(queue) * len(cluster.nodes) > _MAX_EVALUATIONS:
        return MoreNodes(
            not_searched=f"too many pods and nodes to place all {len(queue):,} together; the FIX section says for each"
            " kind of pod whether a new node helps"
        )
    found = _Search(cluster, scheduler, prepared, [pod for pod, _ in queue], now=now).run(waiting)
    if num_omitted and found.nodes:
        others = f"other pending pods ({num_omitted:,}) do not use this capacity"
        found = replace(found, assumed=[*found.assumed, others])
    return found


class _Search:
    def __init__(
        self, cluster: ClusterSnapshot, scheduler: Scheduler, prepared: Any, queue: Sequence[Pod], *, now: datetime
    ) -> None:
        self._cluster, self._scheduler, self._prepared = cluster, scheduler, prepared
        self._queue, self._now = queue, now
        waiting = {tuple(sorted(requests_in_units(pod_requests(pod)).items())) for pod in queue}
        self._new = NewNodes(cluster, scheduler, now=now, requests=map(dict, waiting))
        self._evaluations_left = _MAX_EVALUATIONS

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
                    return replace(answer, not_searched=f"needs more than {_MAX_NODES} nodes like {kind.like.name}")
                counts.append(number + extra[kind.like.name])
            kinds = [kind for kind, _ in groups]
            copier = Copier(self._cluster, now=self._now)
            added = sum((copier.like(kind.like, n) for kind, n in zip(kinds, counts, strict=True)), Added())
            unplaced_in_cluster, chance = self._unplaced_pods(added, set(unplaced))
            if unplaced_in_cluster is None:
                break
            if not unplaced_in_cluster:
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
                extra[kind.like.name] += not unplaced_in_cluster.isdisjoint(pod.key for pod in pods)
            missing |= unplaced_in_cluster
        return replace(answer, not_searched="new nodes alone do not place all pods; the FIX section has other changes")

    def _by_kind(self, waiting: Sequence[Pod]) -> tuple[list[tuple[Kind, list[Pod]]], list[str]]:
        """The pods for each kind of node, the smallest that could take them; and the pods for which there is none."""
        turns: dict[bytes, Iterator[Kind]] = {}
        groups: dict[str, tuple[Kind, list[Pod]]] = {}
        unplaced = []
        for pod in waiting:
            key = equivalence_key_for(self._scheduler, pod)
            if key not in turns:
                # Use the smallest kind that fits the pod. If the pod has spread constraints, alternate between all
                # kinds of that size.
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
        """The number of empty nodes of the kind that the pods need; ``None`` if there would be too many."""
        too_few, number = 0, 1
        while (placed := self._placed(kind, number, pods)) < len(pods):
            if number == _MAX_NODES:
                return None
            each_holds = max(placed // number, 1)
            missing = -(-(len(pods) - placed) // each_holds)
            too_few, number = number, min(number + missing, _MAX_NODES)
        while number - too_few > 1:
            middle = (too_few + number) // 2
            if self._placed(kind, middle, pods) == len(pods):
                number = middle
            else:
                too_few = middle
        return number

    def _placed(self, kind: Kind, number: int, pods: Sequence[Pod]) -> int:
        """The number of these pods that fit on ``number`` new nodes alone."""
        new_nodes_only = self._new.only_new(Copier(self._cluster, now=self._now).like(kind.like, number))
        prepared = self._scheduler.prepare(new_nodes_only, now=self._now, expects_equivalent_pods=True)
        placing = Placing(new_nodes_only, self._scheduler, prepared, self._now).place(pods)
        return sum(each.branch is not None and not each.victims for each in placing)

    def _unplaced_pods(self, added: Added, unplaced: Container[str]) -> tuple[set[str] | None, str]:
        """The pods that do not fit in the whole cluster, except ``unplaced`` ones, and a note about random choices.

        Follows the first and the last of equal choices, as far as the budget allows. Returns ``None`` if the order of
        volumes decides, or if the budget is exhausted.
        """
        cluster = with_nodes(self._cluster, added)
        queue = [pod for pod in self._queue if pod.key not in unplaced]
        by_chance = False
        not_placed: set[str] = set()
        for choose in CHOICES:
            self._evaluations_left -= len(queue) * len(cluster.nodes)
            if self._evaluations_left < 0:
                return (not_placed, _FIRST_BY_CHANCE) if by_chance else (None, "")
            prepared = self._scheduler.prepare(
                cluster, now=self._now, before=self._prepared, expects_equivalent_pods=True
            )
            for placed in Placing(cluster, self._scheduler, prepared, self._now, choose).place(queue):
                if placed.verdict is not None and placed.verdict.volume_choices is not None:
                    return None, ""
                by_chance = by_chance or placed.is_open
                if placed.branch is None or placed.victims:
                    not_placed.add(placed.pod.key)
            if not_placed or not by_chance:
                break
        return not_placed, _BY_CHANCE if by_chance else ""
