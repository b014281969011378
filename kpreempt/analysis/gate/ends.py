"""The rules about how it ends: who waits, what is stranded, whether it comes to an end, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from kpreempt.analysis.gate.assumptions import rule_about
from kpreempt.analysis.gate.attribution import Attribution, namespace_of
from kpreempt.analysis.gate.facts import Facts
from kpreempt.analysis.gate.measures import CLUSTER, Measure, Part, Tally, tallied
from kpreempt.analysis.gate.rules import GateRules
from kpreempt.analysis.gate.victims import Victims
from kpreempt.gate_rules import RuleId
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import Change, ChangeKind
from kpreempt.verdict.play import Play, PlayEnd, StepKind, StrandedKind, Waiting
from kpreempt.verdict.unread import LIST

# What asks for pods that were not there before.
_ASKS_FOR_PODS = frozenset({ChangeKind.CREATED, ChangeKind.ROLLED, ChangeKind.SCALED})


def unscheduled(play: Play, changes: Sequence[Change], attribution: Attribution, rules: GateRules) -> Iterator[Measure]:
    """The workloads of which a new pod has no node in the end, or of which not all comes about that is asked for."""
    asking = {change.object for change in changes if change.kind in _ASKS_FOR_PODS}
    waiting: dict[str, list[Waiting]] = {}
    for each in play.waiting:
        workload = _workload(each, attribution)
        # A pod that came with the play and took nobody's place is one that the change brings.
        is_new = not each.waited_before and (workload in asking or not each.was_running)
        if is_new:
            waiting.setdefault(workload, []).append(each)
    missing = {
        each.workload: max((each.wanted_after or 0) - each.ready_after, each.pending_after, 1)
        for each in play.workloads
        if each.is_changed and not each.is_done and each.workload in asking
    }
    since, everyone = _waiting_since(play), _by_workload(play.waiting, attribution)
    refused = {each.workload: each.message for each in play.refused if each.left}
    for workload in {**waiting, **missing}:
        pods = waiting.get(workload, [])
        messages = [each.message for each in (*pods, *everyone.get(workload, [])) if each.message]
        messages += filter(None, [refused.get(workload, "")])
        part = Part(
            change=attribution.change_of(workload),
            amount=len(pods) or missing[workload],
            pods=[each.pod for each in pods],
        )
        yield Measure(
            rule=RuleId.REQUIRE_SCHEDULABLE,
            subject=workload,
            parts=[part],
            group=rules.group_of(RuleId.REQUIRE_SCHEDULABLE, namespace_of(workload), workload),
            since=min((since.get(each.pod, 0.0) for each in pods), default=play.seconds),
            detail=messages[0] if messages else "",
        )


def pending(play: Play, attribution: Attribution, rules: GateRules, victims: Victims) -> Iterator[Measure]:
    """The workloads of which pods ran, had to go, and have no node in the end."""
    behind = {
        victim.replacement: victims.changes[index]
        for index, victim in enumerate(play.displaced)
        if victim.replacement and not victim.lands_on
    }
    since = _waiting_since(play)
    for workload, own in _by_workload([each for each in play.waiting if each.was_running], attribution).items():
        tally = Tally()
        for each in own:
            tally.add(behind.get(each.pod, ""), each.pod)
        yield Measure(
            rule=RuleId.MAX_PENDING,
            subject=workload,
            parts=tally.parts(),
            group=rules.group_of(RuleId.MAX_PENDING, namespace_of(workload), workload),
            since=min(since.get(each.pod, 0.0) for each in own),
            detail=next((each.message for each in own if each.message), ""),
        )


def stranded(play: Play, attribution: Attribution, rules: GateRules, victims: Victims) -> Iterator[Measure]:
    """What is left without something that it needs, if only for a while; pods count under their workload."""
    behind = {victim.pod: victims.changes[index] for index, victim in enumerate(play.displaced)}
    tallies: dict[tuple[str, StrandedKind], Tally] = {}
    since: dict[tuple[str, StrandedKind], float] = {}
    for each in play.stranded:
        is_service = each.kind is StrandedKind.SERVICE
        subject = f"Service {each.subject}" if is_service else attribution.workload_of(each.subject)
        causes = sorted({behind[pod] for pod in each.missing if behind.get(pod)})
        key = (subject, each.kind)
        tallies.setdefault(key, Tally()).add(causes[0] if causes else "", each.subject)
        since[key] = min(since.get(key, each.since), each.since)
    for (subject, kind), tally in tallies.items():
        yield Measure(
            rule=RuleId.MAX_STRANDED,
            subject=subject,
            aspect=kind,
            parts=tally.parts(),
            group=rules.group_of(RuleId.MAX_STRANDED, namespace_of(subject), subject),
            since=since[subject, kind],
        )


def deletions(changes: Sequence[Change], rules: GateRules) -> Iterator[Measure]:
    """The workloads that run, or are meant to, and go along with something that is deleted."""
    for each in changes:
        if not each.deleted_with or not (each.pods or (each.replicas_before and not each.object.startswith("Job "))):
            continue
        yield Measure(
            rule=RuleId.MAX_DELETIONS,
            subject=each.object,
            parts=[Part(change=each.deleted_with, amount=1, pods=each.pods)],
            group=rules.group_of(RuleId.MAX_DELETIONS, namespace_of(each.object), each.object),
        )


def refusals(play: Play, attribution: Attribution, rules: GateRules) -> Iterator[Measure]:
    """The workloads of which ResourceQuotas refuse pods, if only for a while."""
    for each in play.refused:
        part = Part(change=attribution.change_of(each.workload), amount=each.pods)
        yield Measure(
            rule=RuleId.QUOTA_REFUSALS,
            subject=each.workload,
            aspect=each.quota,
            parts=[part],
            group=rules.group_of(RuleId.QUOTA_REFUSALS, namespace_of(each.workload), each.workload),
            since=each.since,
            detail=each.message,
        )


def loops(play: Play, attribution: Attribution, rules: GateRules, victims: Victims) -> Iterator[Measure]:
    """The workloads whose pods displace one another without end."""
    if play.end is not PlayEnd.LOOP:
        return
    tallies = tallied((victims.workloads[index], victims.changes[index], victim.pod) for index, victim in victims)
    for workload in dict.fromkeys(play.loop or [CLUSTER]):
        tally = tallies.get(workload)
        changes = [part.change for part in tally.parts()] if tally else [attribution.change_of(workload)]
        # How often each pod goes is a matter of when the loop is noticed.
        parts = [Part(change=change, amount=1) for change in changes]
        yield Measure(
            rule=RuleId.FORBID_LOOPS,
            subject=workload,
            parts=parts,
            group=rules.group_of(RuleId.FORBID_LOOPS, namespace_of(workload), workload),
            since=play.seconds,
        )


def snapshot_age(facts: Facts) -> Iterator[Measure]:
    """How old the snapshot is; one that does not say is too old. A live cluster has no age."""
    if facts.is_live:
        return
    age = facts.snapshot_age
    yield Measure(
        rule=RuleId.MAX_SNAPSHOT_AGE,
        subject=CLUSTER,
        parts=[Part(amount=0 if age is None else max(0, ceil(age)))],
        is_broken=age is None,
        aspect="unknown" if age is None else "",
        detail="the snapshot does not say when it was taken" if age is None else "",
    )


def not_known(play: Play, attribution: Attribution, facts: Facts) -> Iterator[Measure]:
    """What is not known and could change the answer, by what it is about."""
    found: dict[tuple[RuleId, str, str], list[Assumption]] = {}
    for each in dict.fromkeys(facts.assumptions):
        rule = rule_about(each)
        if rule is not None:
            found.setdefault((rule, _subject(each, attribution), each.field), []).append(each)
    for (rule, subject, field), own in found.items():
        pods = sorted({each.subject.removeprefix("Pod ") for each in own if each.subject.startswith("Pod ")})
        messages = sorted({each.message for each in own})
        yield Measure(
            rule=rule,
            subject=subject,
            aspect=field,
            parts=[Part(change=attribution.change_of(subject), amount=len(own), pods=pods)],
            detail=f"{field}: {messages[0]}" if field not in ("", LIST) else messages[0],
        )
    if play.end is PlayEnd.BROKEN_OFF:
        yield Measure(
            rule=RuleId.OUTCOME_UNCERTAIN,
            subject=CLUSTER,
            aspect="broken off",
            parts=[Part(amount=1)],
            since=play.seconds,
            detail="it was broken off before it came to an end",
        )


def _subject(assumption: Assumption, attribution: Attribution) -> str:
    """What is assumed about; a pod counts under its workload, since its own name may be another one in the next run."""
    kind, _, name = assumption.subject.partition(" ")
    return attribution.workload_of(name) if kind == "Pod" and name else assumption.subject or CLUSTER


def _workload(waiting: Waiting, attribution: Attribution) -> str:
    return waiting.workload or attribution.workload_of(waiting.pod)


def _by_workload(waiting: Sequence[Waiting], attribution: Attribution) -> dict[str, list[Waiting]]:
    found: dict[str, list[Waiting]] = {}
    for each in waiting:
        found.setdefault(_workload(each, attribution), []).append(each)
    return found


def _waiting_since(play: Play) -> dict[str, float]:
    """When each pod was first found to have no node."""
    since: dict[str, float] = {}
    for step in play.steps:
        if step.kind is StepKind.WAITS:
            since.setdefault(step.pod, step.at)
    return since
