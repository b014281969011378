"""What the scheduler then does, in order (``framework/preemption/executor.go`` and ``schedule_one.go``, v1.36.3).

Preemption is asynchronous: the nomination is recorded at once and the victims are deleted meanwhile, the last one after
all others. Without the gate SchedulerAsyncPreemption victims are deleted first, and lower nominations cleared after
them. Where several nodes tie, the effects are those on the one that the message names, or on the first. An uncertain
verdict has none.
"""

from __future__ import annotations

import msgspec

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.interface import PostFilterResult
from kpreempt.verdict import Effect, Outcome, Verdict, Victim

# The API server's limit for the text of an event (k8s.io/api events: NoteLengthLimit).
NOTE_LENGTH_LIMIT = 1024
_TRUNCATED = " ..."


def effects_of(verdict: Verdict, pod: Pod, cluster: ClusterState, result: PostFilterResult | None) -> Verdict:
    """The verdict with its ``effects``."""
    if verdict.outcome == Outcome.UNCERTAIN:
        return verdict
    if verdict.outcome == Outcome.LANDS:
        effects = [Effect("bind", _pod_target(pod.key), f"node {verdict.lands_on[0]}")]
        return msgspec.structs.replace(verdict, effects=effects)
    effects = []
    effects += [
        Effect(action, f"resourceclaim {key}")
        for action, keys in (("deallocate", verdict.deallocated_claims), ("deleteClaim", verdict.deleted_claims))
        for key in keys
    ]
    if verdict.nominated_nodes:
        node = _node_of(verdict, result)
        effects += _preemption_effects(verdict.victims[node], node, pod, cluster)
    effects.append(Effect("event", _pod_target(pod.key), f"Warning FailedScheduling: {event_note(verdict.message)}"))
    effects.append(Effect("setCondition", _pod_target(pod.key), f"PodScheduled=False Unschedulable: {verdict.message}"))
    effects += _nomination_effects(verdict, pod, result)
    return msgspec.structs.replace(verdict, effects=effects)


def _node_of(verdict: Verdict, result: PostFilterResult | None) -> str:
    """The node that stands for all that tie: the one that the message names, where it names one."""
    told = result.told_node if result is not None else ""
    return told if told in verdict.nominated_nodes else verdict.nominated_nodes[0]


def _nomination_effects(verdict: Verdict, pod: Pod, result: PostFilterResult | None) -> list[Effect]:
    target = _pod_target(pod.key)
    if verdict.nominated_nodes:
        return [Effect("nominate", target, f"status.nominatedNodeName={_node_of(verdict, result)}")]
    nominated = pod.status.nominated_node_name
    if not nominated:
        return []
    if result is not None and result.nominated_node_names is not None:
        return [Effect("clearNomination", target, f"status.nominatedNodeName={nominated} is cleared")]
    return [Effect("keepNomination", target, f"status.nominatedNodeName={nominated} stays")]


def _preemption_effects(victims: list[Victim], node: str, pod: Pod, cluster: ClusterState) -> list[Effect]:
    behaviour = cluster.behaviour
    to_delete = [victim for victim in victims if behaviour.deletes_terminating_victims or not victim.terminating]
    cleared = [
        Effect("clearNomination", _pod_target(info.key), f"status.nominatedNodeName={node} is cleared")
        for info in cluster.nominated_pods.get(node, ())
        if info.priority < pod.priority
    ]
    if not to_delete:
        return [] if behaviour.scheduler_async_preemption else cleared
    effects = cleared if behaviour.scheduler_async_preemption else []
    uid = pod.metadata.uid or "(its UID)"
    scheduler = pod.spec.scheduler_name
    for victim in to_delete:
        target = _pod_target(victim.pod)
        condition = f"{scheduler}: preempting to accommodate a higher priority pod"
        if behaviour.pod_disruption_conditions:
            told = f"DisruptionTarget=True PreemptionByScheduler: {condition}"
            effects.append(Effect("setCondition", target, told))
        effects += [
            Effect("delete", target, f"grace period {victim.grace_period_seconds} s"),
            Effect("event", target, f"Normal Preempted: Preempted by pod {uid} on node {node}"),
        ]
    return effects if behaviour.scheduler_async_preemption else effects + cleared


def event_note(message: str) -> str:
    """The message as an event carries it, cut at 1,024 bytes."""
    encoded = message.encode()
    if len(encoded) <= NOTE_LENGTH_LIMIT:
        return message
    return encoded[: NOTE_LENGTH_LIMIT - len(_TRUNCATED)].decode(errors="ignore") + _TRUNCATED


def _pod_target(key: str) -> str:
    return f"pod {key}"
