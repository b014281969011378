"""What an old scheduler then does, in order (``scheduler.go``, ``preempt`` and ``scheduleOne``).

Victims are deleted at once, also those that are on their way out already. Where several nodes tie, the effects are
those on the first of them. An uncertain verdict has none.
"""

from __future__ import annotations

import msgspec

from kpreempt.model.pod import Pod
from kpreempt.schedulers.legacy.base.version import Version, Words
from kpreempt.verdict import Effect, Outcome, Verdict, Victim

_DEFAULT_GRACE_SECONDS = 30


def with_effects(verdict: Verdict, pod: Pod, version: Version) -> Verdict:
    """The verdict with its ``effects``."""
    if verdict.outcome == Outcome.UNCERTAIN:
        return verdict
    if verdict.outcome == Outcome.LANDS:
        return msgspec.structs.replace(
            verdict, effects=[Effect("bind", _target(pod.key), f"node {verdict.lands_on[0]}")]
        )
    failure = [
        Effect("event", _target(pod.key), f"Warning FailedScheduling: {verdict.message}"),
        Effect("setCondition", _target(pod.key), f"PodScheduled=False Unschedulable: {verdict.message}"),
    ]
    preemption = _preemption(verdict, pod, version)
    effects = [*failure, *preemption] if version.words.reports_failure_first else [*preemption, *failure]
    return msgspec.structs.replace(verdict, effects=effects)


def _preemption(verdict: Verdict, pod: Pod, version: Version) -> list[Effect]:
    words = version.words
    effects = []
    if verdict.nominated_nodes:
        node = verdict.nominated_nodes[0]
        effects.append(Effect("nominate", _target(pod.key), f"{words.nomination}={node}"))
        for victim in verdict.victims[node]:
            effects += _eviction(victim, node, pod, words)
    for key in verdict.nominations_to_clear:
        effects.append(Effect("clearNomination", _target(key), f"{words.nomination} is cleared"))
    nominated = version.nominated_node(pod)
    if nominated and not verdict.nominated_nodes and pod.key not in verdict.nominations_to_clear:
        effects.append(Effect("keepNomination", _target(pod.key), f"{words.nomination}={nominated} stays"))
    return effects


def _eviction(victim: Victim, node: str, pod: Pod, words: Words) -> list[Effect]:
    seconds = victim.grace_period_seconds
    target = _target(victim.pod)
    return [
        Effect("delete", target, f"grace period {_DEFAULT_GRACE_SECONDS if seconds is None else seconds} s"),
        Effect("event", target, f"Normal Preempted: {words.preempted.format(pod=pod.key, node=node)}"),
    ]


def _target(key: str) -> str:
    return f"pod {key}"
