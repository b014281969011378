"""What an old scheduler then does, in order (``scheduler.go``, ``preempt`` and ``scheduleOne``).

Victims are deleted at once, also those that are on their way out already. Where several nodes tie, the effects are
those on the first of them. An uncertain verdict has none.
"""

from __future__ import annotations

import msgspec

from kpreempt.model.pod import Pod
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.version import Version, Words
from kpreempt.verdict import Effect, Outcome, Verdict, Victim

_CUT = " ..."


def with_effects(verdict: Verdict, pod: Pod, version: Version, cluster: Cluster) -> Verdict:
    """The verdict with its ``effects``."""
    if verdict.outcome == Outcome.UNCERTAIN:
        return verdict
    if verdict.outcome == Outcome.LANDS:
        return msgspec.structs.replace(
            verdict, effects=[Effect("bind", _target(pod.key), f"node {verdict.lands_on[0]}")]
        )
    failure = [
        Effect("event", _target(pod.key), f"Warning FailedScheduling: {_cut(verdict.message, version.words)}"),
        Effect("setCondition", _target(pod.key), f"PodScheduled=False Unschedulable: {verdict.message}"),
    ]
    preemption = _preemption(verdict, pod, version, cluster)
    effects = [*failure, *preemption] if version.words.reports_failure_first else [*preemption, *failure]
    return msgspec.structs.replace(verdict, effects=effects)


def _preemption(verdict: Verdict, pod: Pod, version: Version, cluster: Cluster) -> list[Effect]:
    words = version.words
    effects = []
    if verdict.nominated_nodes:
        node = verdict.nominated_nodes[0]
        effects.append(Effect("nominate", _target(pod.key), f"{words.nomination}={node}"))
        waiting = {info.key for info in cluster.by_name[node].pods if version.is_waiting(info.pod)}
        for victim in verdict.victims[node]:
            effects += _eviction(victim, node, pod, words, is_waiting=victim.pod in waiting)
    nominated = version.nominated_node(pod)
    for key in verdict.nominations_to_clear:
        # The pod itself is to lose its nomination also where it has none.
        if key != pod.key or nominated:
            effects.append(Effect("clearNomination", _target(key), f"{words.nomination} is cleared"))
    if nominated and not verdict.nominated_nodes and pod.key not in verdict.nominations_to_clear:
        effects.append(Effect("keepNomination", _target(pod.key), f"{words.nomination}={nominated} stays"))
    return effects


def _eviction(victim: Victim, node: str, pod: Pod, words: Words, *, is_waiting: bool) -> list[Effect]:
    target = _target(victim.pod)
    return [
        Effect("delete", target, f"grace period {victim.grace_period_seconds} s"),
        *([Effect("rejectWaiting", target, "preempted")] if is_waiting else []),
        Effect("event", target, f"Normal Preempted: {words.preempted.format(pod=pod.key, node=node)}"),
    ]


def _cut(message: str, words: Words) -> str:
    """The message as an event carries it."""
    encoded = message.encode()
    if words.event_limit is None or len(encoded) <= words.event_limit:
        return message
    return encoded[: words.event_limit - len(_CUT)].decode(errors="ignore") + _CUT


def _target(key: str) -> str:
    return f"pod {key}"
