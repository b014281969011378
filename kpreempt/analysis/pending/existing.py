"""What keeps one existing pod pending, for the explanation of that pod: the same states that ``pending`` reports.

Asynchronous preemption follows ``pkg/scheduler/framework/preemption/executor.go`` of v1.36.3: if the last victim is
gone before the preemptor is back in the queue, no event moves it, and it stays with the unschedulable pods until
``flushUnschedulableEntitiesLeftover``.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from kpreempt.analysis.algorithms import AnalysisContext, pods_by_node
from kpreempt.analysis.pending.admission_today import differences_today
from kpreempt.analysis.pending.on_nodes import NodeReports, is_pending_on_node
from kpreempt.analysis.pending.resizes import pending_resizes
from kpreempt.analysis.pending.states import DEFAULT_MAX_BACKOFF, PendingContext, compare_messages, situation_of
from kpreempt.analysis.queue.order import FailedAttempts, rejection_of
from kpreempt.model.event import PREEMPTED
from kpreempt.model.pod import Pod
from kpreempt.verdict import Outcome, Verdict
from kpreempt.verdict.pending import Agreement
from kpreempt.verdict.waiting import OnNodeCause, StillPending
from kpreempt.verdict.workload import PreemptionsBetween

# What is known about a pod that does not exist yet.
_BLOCKS_NEW_PODS = (OnNodeCause.UNBOUND_CLAIM, OnNodeCause.NODE_MISSING, OnNodeCause.NODE_NOT_READY)


def with_reasons(
    verdict: Verdict, pod: Pod, context: AnalysisContext, max_backoff: timedelta = DEFAULT_MAX_BACKOFF
) -> Verdict:
    """The verdict on an existing pod, with the reason why it is pending, if it is."""
    if is_pending_on_node(pod):
        on_node = msgspec.structs.replace(NodeReports(context.cluster).why(pod), at=context.time)
        return msgspec.structs.replace(verdict, on_node=on_node)
    if pod.spec.node_name or pod.is_terminal:
        resizes = pending_resizes([pod], context.cluster, context.scheduler, context.time)
        return msgspec.structs.replace(verdict, resize=resizes[0]) if resizes else verdict
    return msgspec.structs.replace(verdict, still_pending=_still_pending(verdict, pod, context, max_backoff))


def with_past_preemptions(verdict: Verdict, context: AnalysisContext) -> Verdict:
    """The verdict on a workload of the cluster, with the preempted pods that its pending pods replace."""
    cluster, workload = context.cluster, verdict.workload
    if workload is None or all(event.reason != PREEMPTED for event in cluster.events):
        return verdict
    from kpreempt.analysis.evictions.workloads import PastPreemptions  # noqa: PLC0415 - rarely needed

    past = PastPreemptions(cluster)
    pods = past.pods_of(workload.workload)
    waiting = [pod for pod in pods if not pod.spec.node_name and not pod.is_terminal]
    changed = msgspec.structs.replace(
        workload,
        at=context.time,
        replaces={pod.key: each for pod in waiting if (each := past.replaced_by(pod)) is not None},
        preemptions=past.between(pods, least=2),
    )
    return msgspec.structs.replace(verdict, workload=changed)


def with_blocked_start(verdict: Verdict, pod: Pod, context: AnalysisContext) -> Verdict:
    """The verdict on a new pod whose manifest names its node, with what will keep it from starting there, if known."""
    found = NodeReports(context.cluster).why(pod)
    if found.cause not in _BLOCKS_NEW_PODS:
        return verdict
    return msgspec.structs.replace(verdict, on_node=msgspec.structs.replace(found, at=context.time))


def _still_pending(verdict: Verdict, pod: Pod, context: AnalysisContext, max_backoff: timedelta) -> StillPending:
    """Why a pod without a node is still pending."""
    cluster, scheduler, at = context.cluster, context.scheduler, context.time
    attempts = FailedAttempts(cluster.events)
    nominated = pod.status.nominated_node_name
    pods_on = pods_by_node(cluster.pods, [nominated] if nominated else [])
    situation = situation_of(
        pod, verdict, PendingContext(pods_on, attempts, scheduler.scheduler_names, at, max_backoff)
    )
    rejection = rejection_of(pod)
    condition = rejection.message if rejection is not None else ""
    replaces, preemptions = None, list[PreemptionsBetween]()
    if any(event.reason == PREEMPTED for event in cluster.events):
        from kpreempt.analysis.evictions.workloads import PastPreemptions  # noqa: PLC0415 - rarely needed

        others = [each for each in cluster.pods if each.key != pod.key]
        past = PastPreemptions(msgspec.structs.replace(cluster, pods=[*others, pod]))
        replaces, preemptions = past.replaced_by(pod), past.between([pod])
    # A pod that fits has no message to compare the condition with.
    differs = compare_messages(condition, verdict.message) is Agreement.DIFFERENT
    return StillPending(
        state=situation.state,
        at=at,
        created=pod.metadata.creation_timestamp,
        since=situation.since,
        until=situation.until,
        last_attempt=attempts.last_of(pod),
        gates=[gate.name for gate in pod.spec.scheduling_gates],
        scheduler_name=pod.spec.scheduler_name,
        nominated_node=nominated,
        waiting_for=list(situation.waiting_for),
        preempts_asynchronously=bool(nominated) and scheduler.settings.facts.get("scheduler_async_preemption") is True,
        condition=condition,
        differences=differences_today(pod, cluster),
        replaces=replaces,
        preemptions=preemptions,
        is_outdated=bool(condition) and (differs or verdict.outcome is Outcome.LANDS),
    )
