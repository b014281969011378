"""Every pending pod, in the queue's order: why it is still pending, and what becomes of it.

Also the smallest changes with which unschedulable pods would be scheduled, as far as there is time, and what became of
pending pods between two looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import AnalysisContext, Scheduler, timed_by_part
from kpreempt.analysis.explain.change_search import Situation
from kpreempt.analysis.explain.node_story import Found, propose
from kpreempt.analysis.explain.pods import described
from kpreempt.analysis.explain.single_edits import Stated
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
from kpreempt.analysis.pending.verdicts import Spread, decide_pending, likeness_to, one_by_one, pending_pods
from kpreempt.analysis.queue.order import FailedAttempts, in_queue_order, queue_time, refusal_of
from kpreempt.analysis.unread import unread_events
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_name
from kpreempt.model.pod import Pod
from kpreempt.schedulers.interface import QueueRules
from kpreempt.schedulers.kube.assumptions import claims_of
from kpreempt.verdict import ClusterSummary, Outcome, Verdict
from kpreempt.verdict.details import VolumeConflict
from kpreempt.verdict.pending import (
    TELLING_STATES,
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
    is_asked: Callable[[Pod], bool] = lambda _: True,
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
    asked = [pod for pod in pending if is_asked(pod)]
    others = Counter(pod.metadata.namespace for pod in pending if not is_asked(pod))
    with phases.phase("prepare"):
        prepared = scheduler.prepare(cluster, now=at)
    # Proposals go by what is told of every node.
    read = _as_read if has_time is None else _unless_refused
    decided = decide_pending(asked, scheduler, prepared, spread=spread, phases=phases, read=read)
    verdicts = {id(pod): verdict for pod, verdict in decided}
    known = PendingContext(_pods_on(cluster, asked), attempts, scheduler.scheduler_names, at, max_backoff)
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
        for pod in in_queue_order(asked, attempts, rules.comes_first)
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
        from kpreempt.analysis.pending.more_nodes import more_nodes  # noqa: PLC0415 - only where pods wait

        queue = [(each.pod, each.verdict.outcome) for each in placed if _waits_for_room(each)]
        beside = len(positions) - sum(each.position is not None for each in placed)
        with phases.phase("proposals"):
            within = timed_by_part(scheduler, phases)
            more = more_nodes(cluster, within, prepared, queue, now=at, num_others=beside)
    return PendingPods(
        algorithm=scheduler.algorithm,
        at=at,
        cluster=_summary(cluster, [each.verdict for each in placed], context.now),
        in_queue=len(positions),
        namespace=namespace,
        has_namespace=_has_namespace(cluster, namespace),
        not_asked=dict(others.most_common()),
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


def _unless_refused(verdict: Verdict) -> Verdict:
    return verdict if verdict.outcome == Outcome.NEVER_LANDS else _as_read(verdict)


def _waits_for_room(decided: Decided) -> bool:
    """Whether the pod is in the queue, and not on its way to a node that is being made free for it."""
    is_open = decided.verdict.outcome in (Outcome.LANDS, Outcome.NEVER_LANDS, *_EVICTING)
    return decided.position is not None and decided.situation.state not in TELLING_STATES and is_open


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
        and not (rules.held_back is not None and rules.held_back(pod))
    ]
    ordered = in_queue_order(queued, attempts, rules.comes_first)
    return {pod.key: place for place, pod in enumerate(ordered, start=1)}


def _item(decided: Decided, attempts: FailedAttempts) -> PendingPod:
    pod, verdict, situation = decided.pod, decided.verdict, decided.situation
    refusal = refusal_of(pod)
    time = queue_time(pod, attempts)
    theirs = refusal.message if refusal else ""
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
        last_tried=attempts.last_of(pod),
        gates=[gate.name for gate in pod.spec.scheduling_gates],
        held_by=verdict.held_by if situation.state == PendingState.HELD else "",
        scheduler_name=pod.spec.scheduler_name,
        nominated_node_name=pod.status.nominated_node_name,
        waiting_for=list(situation.waiting_for),
        cause=_cause(verdict, situation, pod),
        outcome=verdict.outcome,
        refused_for_good=verdict.refused_for_good,
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
    """The items, those of unschedulable pods with what would let them land."""
    cluster = context.cluster
    unschedulable = [
        (each.pod, each.verdict)
        for each in placed
        if each.verdict.outcome == Outcome.NEVER_LANDS and each.situation.state not in TELLING_STATES and cluster.nodes
    ]
    found = proposals_for(
        unschedulable,
        timed_by_part(context.scheduler, context.phases),
        cluster,
        prepared,
        now=context.time,
        has_time=has_time,
        spread=spread,
    )
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
    if verdict.outcome == Outcome.NEVER_LANDS and verdict.reason:
        # An error of the scheduler; that of an old one is in its message.
        is_told = verdict.message in verdict.reason or "ends in an error: " in verdict.reason
        return verdict.reason if is_told else f"{verdict.reason}: {verdict.message}"
    if verdict.outcome == Outcome.LANDS or verdict.outcome in _EVICTING:
        return cause_of(verdict.message)
    _, preemption = causes_in(verdict.message)
    own = [part for part in preemption if part.startswith("not eligible")]
    return ", ".join([cause_of(verdict.message) or verdict.reason, *own])


def _groups(items: Sequence[PendingPod]) -> list[PendingGroup]:
    members: dict[tuple[str, Outcome, PendingState | None, bool], list[str]] = {}
    for item in items:
        state = item.state if item.state in TELLING_STATES else None
        key = (item.cause, item.outcome, state, item.refused_for_good and state is None)
        members.setdefault(key, []).append(item.pod)
    return [
        PendingGroup(cause, outcome, state, pods, for_good)
        for (cause, outcome, state, for_good), pods in members.items()
    ]


def _pods_on(cluster: ClusterSnapshot, pending: Sequence[Pod]) -> dict[str, list[Pod]]:
    """The pods of the nodes that pending ones are nominated to."""
    nodes: dict[str, list[Pod]] = {
        pod.status.nominated_node_name: [] for pod in pending if pod.status.nominated_node_name
    }
    if nodes:
        for pod in cluster.pods:
            if pod.spec.node_name in nodes and not pod.is_terminal:
                nodes[pod.spec.node_name].append(pod)
    return nodes


def _summary(cluster: ClusterSnapshot, verdicts: Sequence[Verdict], now: datetime) -> ClusterSummary:
    counted = verdicts[0].cluster if verdicts else ClusterSummary(nodes=len(cluster.nodes))
    return described(counted, cluster, now)


def proposals_for(
    decided: Sequence[tuple[Pod, Verdict]],
    scheduler: Scheduler,
    cluster: ClusterSnapshot,
    prepared: Any,
    *,
    now: datetime,
    has_time: Callable[[], bool],
    spread: Spread,
) -> dict[str, Found]:
    """What was found, by ``namespace/name``; pods that the scheduler cannot tell apart share a search.

    Of pods whose turn comes once ``has_time`` denies it there is nothing.
    """
    keys = [likeness_to(scheduler, pod) for pod, _ in decided]
    distinct = dict(zip(reversed(keys), reversed(decided), strict=True))

    def search(each: tuple[Pod, Verdict]) -> Found | None:
        pod, verdict = each
        if not has_time():
            return None
        # What admission added to a pod of the cluster is part of it.
        stated = Stated(len(pod.spec.tolerations))
        return propose(scheduler, Situation(cluster, prepared, pod, verdict), stated, now=now)

    # In the order of the queue: whose turn comes first is sought first.
    ordered = {key: distinct[key] for key in dict.fromkeys(keys)}
    found = dict(zip(ordered, spread(ordered.values(), search), strict=True))
    return {pod.key: each for key, (pod, _) in zip(keys, decided, strict=True) if (each := found[key]) is not None}


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
            changes.append(PendingChange(name, PendingChangeKind.GONE))
    changes += [PendingChange(name, PendingChangeKind.NEW) for name in present if name not in earlier]
    for name, item in present.items():
        old = earlier.get(name)
        if old is not None and _fate(old) != _fate(item):
            changes.append(PendingChange(name, PendingChangeKind.CHANGED, outcome=old.outcome, state=old.state))
    return PendingChanges(before.at, changes)


def _fate(item: PendingPod) -> tuple[object, ...]:
    """What a reader takes for something else; when a pod is tried again, or on which node it fits, is not."""
    if item.state in TELLING_STATES:
        return (item.state, item.nominated_node_name)
    return (item.outcome, *(item.nodes if item.victims else ()))
