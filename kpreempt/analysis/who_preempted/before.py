"""An eviction reconstructed: the preemptor's verdict in a snapshot from before it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.explain.pods import Question, explain_pods
from kpreempt.analysis.subject import pending_again
from kpreempt.analysis.unread import BUDGETS
from kpreempt.analysis.who_preempted.events import Preemptors
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.verdict import (
    Assumption,
    PreemptionsOfPod,
    Reconstruction,
    ReconstructionResult,
    Verdict,
)
from kpreempt.verdict.unread import unread_of


def reconstruct(
    answer: PreemptionsOfPod,
    cluster: ClusterSnapshot,
    before: ClusterSnapshot,
    scheduler: Scheduler,
    *,
    now: datetime,
    version: Iterable[Assumption] = (),
    assumptions: Iterable[Assumption] = (),
) -> PreemptionsOfPod:
    """The answer with each eviction, whose preemptor is known, explained in the snapshot from ``before``.

    A preemptor that is not there yet is laid over it as it is in ``cluster`` now, as if it had just been created.
    ``version`` is assumed of that snapshot's version.
    """
    then, today = Preemptors(before), Preemptors(cluster)
    preemptions = [
        msgspec.structs.replace(
            each,
            reconstruction=_reconstruction(
                answer.victim.pod,
                then.pod(each.preemptor),
                today.pod(each.preemptor),
                before,
                scheduler,
                now=now,
                assumptions=assumptions,
            ),
        )
        if each.preemptor is not None
        else each
        for each in answer.preemptions
    ]
    is_any = any(each.reconstruction is not None for each in preemptions)
    said = [*version, *unread_of(before, [BUDGETS])] if is_any else []
    return msgspec.structs.replace(answer, preemptions=preemptions, assumptions=[*answer.assumptions, *said])


def _reconstruction(
    victim_key: str,
    there: Pod | None,
    today: Pod | None,
    before: ClusterSnapshot,
    scheduler: Scheduler,
    *,
    now: datetime,
    assumptions: Iterable[Assumption],
) -> Reconstruction:
    """``there`` is the preemptor in ``before``, and ``today`` as it is now."""
    taken_at = before.taken_at
    victim = next((pod for pod in before.pods if pod.key == victim_key and pod.spec.node_name), None)
    if victim is None:
        return Reconstruction(result=ReconstructionResult.NO_VICTIM, taken_at=taken_at)
    pod = there or today
    if pod is None:
        return Reconstruction(result=ReconstructionResult.NO_PREEMPTOR, taken_at=taken_at)
    remaining = msgspec.structs.replace(before, pods=[each for each in before.pods if each is not there])
    is_waiting = there is not None and not pod.spec.node_name and not pod.is_terminal
    question = Question(pod=pod if is_waiting else pending_again(pod))
    verdict = explain_pods(remaining, [question], scheduler, now=taken_at or now, assumptions=assumptions)[0]
    return _told(verdict, victim, taken_at, is_laid_over=there is None)


def _told(verdict: Verdict, victim: Pod, taken_at: datetime | None, *, is_laid_over: bool) -> Reconstruction:
    node = victim.spec.node_name
    candidate = next((each for each in verdict.candidates if each.node == node), None)
    victims = candidate.victims if candidate else []
    result = ReconstructionResult.NO_PREEMPTION
    if verdict.nominated_nodes:
        is_confirmed = victim.key in verdict.pods_at_stake.get(node, ())
        result = ReconstructionResult.CONFIRMED if is_confirmed else ReconstructionResult.OTHER_VICTIMS
    return Reconstruction(
        result=result,
        algorithm=verdict.algorithm,
        taken_at=taken_at,
        outcome=verdict.outcome,
        node=node,
        nodes=verdict.nominated_nodes or verdict.lands_on,
        victims=victims,
        step=next((step for step in (candidate.steps if candidate else []) if step.pod == victim.key), None),
        refusal=verdict.filter.get(node),
        is_preemptor_laid_over=is_laid_over,
    )
