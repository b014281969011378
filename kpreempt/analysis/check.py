"""Whether a change may go to a cluster: it is played, and the rules of a gate are put to what happens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec

from kpreempt.analysis.algorithms import VOLCANO, Scheduler
from kpreempt.analysis.explain import described, version_assumptions
from kpreempt.analysis.gate import Excuses, Facts, GateRules, PodFacts, evaluate, measured, passes
from kpreempt.analysis.pending_verdicts import Spread, one_by_one
from kpreempt.analysis.play.scheduling import Choose
from kpreempt.analysis.play.workloads import Workloads
from kpreempt.analysis.questions import Decode
from kpreempt.analysis.rollout.records import Plan
from kpreempt.analysis.rollout.rehearsal import Rehearsal, Rehearsed, badness, share_of, shares
from kpreempt.analysis.rollout.room import changed_nodes, spare
from kpreempt.analysis.unread import unread_of_changed
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.queues import QUEUE_ALGORITHMS
from kpreempt.verdict import Assumption, AssumptionKind, ClusterSummary
from kpreempt.verdict.check import Check, GateFinding, RuleResult
from kpreempt.verdict.records import SETTING_NOT_MODELLED


class CheckQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: the plan of the change, and the rules.

    ``base`` is the plan of the manifests as they were before: what comes of it without the change does not count.
    ``runs`` plays are drawn by chance, from ``seed`` on; with ``worst_of`` instead that many with all choices that
    there are. ``assumptions`` are those of the input; ``is_live``: the cluster was read a moment ago.
    """

    cluster: ClusterSnapshot
    plan: Plan
    rules: GateRules
    excuses: Excuses
    base: Plan | None = None
    seed: int = 0
    runs: int = 1
    worst_of: int = 0
    assumptions: Sequence[Assumption] = ()
    is_live: bool = False


class _Judged(msgspec.Struct, frozen=True):
    rehearsed: Rehearsed
    results: list[RuleResult]
    findings: list[GateFinding]

    @property
    def rank(self) -> tuple[int, ...]:
        """The greater the worse."""
        return (sum(each.failures for each in self.results), *badness(self.rehearsed.play))


def check_rollout(
    question: CheckQuestion,
    scheduler: Scheduler,
    decode: Decode,
    *,
    now: datetime,
    at: datetime,
    chances: Callable[[int], Choose],
    spread: Spread = one_by_one,
    phases: Phases = NO_PHASES,
) -> Check:
    """The answer; ``chances`` makes what draws, by a seed.

    ``at`` is the time of the snapshot, whose age counts to ``now``.
    Raises ``InputError`` and ``NotFoundError`` for what the API server would refuse.
    """

    def rehearsal(plan: Plan) -> Rehearsal:
        return Rehearsal(plan, scheduler, decode, now=at, chances=chances, phases=phases)

    summary = described(_counted(question.cluster), question.cluster, now)
    # Gates are for controllers, too, which may have much to do where nothing is scheduled.
    gates = [each for each in scheduler.assumptions if each.message == SETTING_NOT_MODELLED]
    general = [*question.assumptions, *gates, *_of_the_way(question, scheduler.algorithm), *_of_changed(question)]

    def facts(rehearsed: Rehearsed, plan: Plan, more: Iterable[Assumption] = ()) -> Facts:
        return _facts(rehearsed, [*general, *plan.assumptions, *rehearsed.assumptions, *more], question, summary)

    excuses = question.excuses
    if question.base is not None:
        first = rehearsal(question.base).by_chance(question.seed)
        there = measured(first.play, question.base.changes, facts(first, question.base), question.rules)
        excuses = msgspec.structs.replace(excuses, base=there)
    if question.worst_of:
        played, is_all = rehearsal(question.plan).every(question.worst_of)
    else:
        played, is_all = list(rehearsal(question.plan).several(question.seed, question.runs, spread)), False
        is_all = not played[0].play.draws
    more = [] if is_all or not question.worst_of else [_not_all(len(played))]
    judged = []
    for each in played:
        known = facts(each, question.plan, more)
        results, findings = evaluate(each.play, question.plan.changes, known, question.rules, excuses)
        judged.append(_Judged(each, results, findings))
    worst = max(judged, key=lambda each: (each.rank, -each.rehearsed.seed))
    outcomes = shares([share_of(each.rehearsed, fails=not passes(each.results)) for each in judged])
    shown = worst.rehearsed
    assumptions = dict.fromkeys([*general, *question.plan.assumptions, *shown.assumptions, *more])
    return Check(
        passed=passes(worst.results),
        algorithm=scheduler.algorithm,
        cluster=summary,
        at=at,
        changes=question.plan.changes,
        rules=worst.results,
        findings=worst.findings,
        play=shown.play,
        seed=shown.seed,
        runs=len(played),
        outcomes=outcomes if len(played) > 1 else [],
        explored_all=is_all,
        nodes=changed_nodes(shown.before, shown.after),
        spare=spare(shown.after),
        assumptions=list(assumptions),
    )


def _counted(cluster: ClusterSnapshot) -> ClusterSummary:
    return ClusterSummary(nodes=len(cluster.nodes), pods=sum(not pod.is_terminal for pod in cluster.pods))


def _facts(
    rehearsed: Rehearsed, assumptions: list[Assumption], question: CheckQuestion, summary: ClusterSummary
) -> Facts:
    victims = {each.pod for each in rehearsed.play.displaced}
    pods = {
        pod.key: PodFacts(labels=pod.metadata.labels, priority_class=pod.spec.priority_class_name)
        for cluster in (rehearsed.after, rehearsed.before)
        for pod in cluster.pods
        if pod.key in victims
    }
    return Facts(
        pods=pods,
        workloads=Workloads(rehearsed.after).above,
        assumptions=list(dict.fromkeys(assumptions)),
        snapshot_age=summary.age_seconds,
        is_live=question.is_live,
    )


def _of_the_way(question: CheckQuestion, algorithm: str) -> list[Assumption]:
    """What is assumed because of how it is played."""
    found = version_assumptions(question.cluster.version, algorithm)
    if algorithm == VOLCANO:
        message = "sessions are played for one pod after the other; a real one decides about all of them at once"
        found.append(Assumption("scheduler", VOLCANO, message, AssumptionKind.UNCERTAIN))
    elif algorithm not in QUEUE_ALGORITHMS:
        message = f"the queue of {algorithm} is not modelled; pods are tried in the order of that of today"
        found.append(Assumption("scheduler", "queue", message, AssumptionKind.UNCERTAIN))
    return found


def _of_changed(question: CheckQuestion) -> list[Assumption]:
    """That objects as they are now could not be read of kinds that the change has; they count as new."""
    kinds = dict.fromkeys(each.object.partition(" ")[0] for each in question.plan.changes)
    return unread_of_changed(question.cluster, kinds)


def _not_all(plays: int) -> Assumption:
    message = f"chance leaves more than the {plays:,} plays that were looked at; a worse one may be among the others"
    return Assumption("play", "draws", message, AssumptionKind.UNCERTAIN)
