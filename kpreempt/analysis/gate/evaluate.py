"""Puts the rules to a play, and says what each finding counts for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import NamedTuple

import msgspec

from kpreempt.analysis.gate.attribution import Attribution
from kpreempt.analysis.gate.baseline import Baseline
from kpreempt.analysis.gate.ends import (
    deletions,
    loops,
    not_known,
    pending,
    refusals,
    snapshot_age,
    stranded,
    unscheduled,
)
from kpreempt.analysis.gate.facts import Facts
from kpreempt.analysis.gate.measures import Measure, Part
from kpreempt.analysis.gate.rules import GateRules
from kpreempt.analysis.gate.victims import (
    Victims,
    all_victims,
    cascades,
    forbidden_victims,
    lost_pods,
    victims_by_workload,
    violations,
)
from kpreempt.analysis.gate.waivers import Waiver
from kpreempt.gate_rules import RuleId
from kpreempt.verdict.check import Change, GateFinding, GateStanding, RuleResult
from kpreempt.verdict.play import Play

_ORDER = {rule: index for index, rule in enumerate(RuleId)}


class Excuses(msgspec.Struct, frozen=True, kw_only=True):
    """What lets findings pass: waivers, the baseline, and ``base``, which is what there is without the change.

    ``base`` is what ``measured`` says of the play of the manifests before. ``today`` decides what is over.
    """

    today: date
    waivers: Sequence[Waiver] = ()
    baseline: Baseline = Baseline()
    base: Mapping[str, int] = {}


class _Excuse(NamedTuple):
    """Why something does not count, and who says so."""

    standing: GateStanding
    reason: str = ""
    by: str = ""
    expires: str = ""


class _Judged(NamedTuple):
    """A finding, how much of it counts, and what excuses the rest of one that fails."""

    finding: GateFinding
    left: int
    excuse: _Excuse | None


def evaluate(
    play: Play, changes: Sequence[Change], facts: Facts, rules: GateRules, excuses: Excuses
) -> tuple[list[RuleResult], list[GateFinding]]:
    """Every rule with how it fares, and what breaks one, by rule and subject.

    What is excused does not count: where the rest of a sum is within its limit, it is no finding.
    """
    written = {change.object: change for change in changes}
    pools: dict[object, list[Measure]] = {}
    amounts: dict[RuleId, int] = {}
    for measure in _measures(play, changes, facts, rules):
        key: object = (measure.rule, measure.group) if measure.rule.row.is_pooled else len(pools)
        pools.setdefault(key, []).append(measure)
    findings: list[GateFinding] = []
    for pool in pools.values():
        rule = pool[0].rule
        amounts[rule] = max(amounts.get(rule, 0), sum(measure.amount for measure in pool))
        findings += _broken(pool, rules, excuses, written)
    findings = _worst_chains(findings)
    findings.sort(key=lambda each: (_ORDER[each.rule], each.subject, each.change, each.fingerprint))
    return [_result(rule, rules, amounts.get(rule, 0), findings) for rule in RuleId], findings


def passes(results: Iterable[RuleResult]) -> bool:
    """Whether the gate is open."""
    return not any(each.failures for each in results)


def measured(play: Play, changes: Sequence[Change], facts: Facts, rules: GateRules) -> dict[str, int]:
    """What there is in a play, whether or not it is within the limits: the largest amount by fingerprint.

    Each change has its own part in it. Of a play of other manifests, this is the ``base`` that excuses as much. What is
    not known, or too old to be told, is no less so for being there before, and is left out.
    """
    found: dict[str, int] = {}
    for measure in _measures(play, changes, facts, rules):
        if measure.rule.row.about_input:
            continue
        for part in measure.parts:
            fingerprint = measure.part_fingerprint(part)
            found[fingerprint] = max(part.amount, found.get(fingerprint, 0))
    return found


def _measures(play: Play, changes: Sequence[Change], facts: Facts, rules: GateRules) -> list[Measure]:
    attribution = Attribution(play, changes, facts)
    victims = Victims(play, attribution)
    found = [
        *violations(victims, rules),
        *all_victims(victims, rules),
        *victims_by_workload(victims, rules),
        *forbidden_victims(victims, rules, facts),
        *unscheduled(play, changes, attribution, rules),
        *cascades(victims, rules),
        *pending(play, attribution, rules, victims),
        *stranded(play, attribution, rules, victims),
        *lost_pods(victims, rules),
        *deletions(changes, rules),
        *refusals(play, attribution, rules),
        *loops(play, attribution, rules, victims),
        *snapshot_age(facts),
        *not_known(play, attribution, facts),
    ]
    return [measure for measure in found if measure.amount or measure.is_broken]


def _broken(
    pool: Sequence[Measure], rules: GateRules, excuses: Excuses, written: Mapping[str, Change]
) -> list[GateFinding]:
    """The findings about measures that share a limit."""
    limit = rules.limit_of(pool[0].rule, pool[0].group)
    if limit is None:
        return []
    is_broken = any(measure.is_broken for measure in pool)
    if sum(measure.amount for measure in pool) <= limit and not is_broken:
        return []
    judged = [_judged(measure, limit, excuses, written) for measure in pool]
    if not is_broken and sum(each.left for each in judged) <= limit:
        # What is left is allowed: nobody needs to hear of it, but of what is excused beside it.
        excused = [each for each in judged if each.finding.standing is not GateStanding.FAILS or each.excuse]
        return [_excused(each) for each in excused]
    return [each.finding for each in judged]


def _excused(judged: _Judged) -> GateFinding:
    """The finding with the standing that its excused part has."""
    return _with(judged.finding, judged.excuse) if judged.excuse else judged.finding


def _judged(measure: Measure, limit: int, excuses: Excuses, written: Mapping[str, Change]) -> _Judged:
    """The finding about a measure, with its standing; where only some of its changes are excused, the others count."""
    objections: list[str] = []
    found = [_excuse(measure, part, excuses, objections) for part in measure.parts]
    left = [part for part, excuse in zip(measure.parts, found, strict=True) if excuse is None]
    partial = _together([excuse for excuse in found if excuse is not None])
    whole = partial if not left else _accepted(measure, excuses, objections)
    # The change that has the largest part in what counts.
    main = max(left or measure.parts, key=lambda part: (part.amount, bool(part.change)))
    change = written.get(main.change)
    finding = GateFinding(
        rule=measure.rule,
        subject=measure.subject,
        amount=measure.amount,
        limit=limit,
        pods=measure.pods,
        chain=measure.chain,
        change=main.change,
        source=change.source if change else "",
        line=change.line if change else 0,
        origin=change.origin if change else "",
        since=measure.since,
        detail="; ".join(filter(None, (measure.detail, *dict.fromkeys(objections)))),
        fingerprint=measure.fingerprint,
    )
    if whole is not None:
        return _Judged(_with(finding, whole), 0, None)
    return _Judged(finding, sum(part.amount for part in left), partial)


def _with(finding: GateFinding, excuse: _Excuse) -> GateFinding:
    return msgspec.structs.replace(
        finding, standing=excuse.standing, reason=excuse.reason, by=excuse.by, expires=excuse.expires
    )


def _excuse(measure: Measure, part: Part, excuses: Excuses, objections: list[str]) -> _Excuse | None:
    """Why what one change brings about does not count, if so: a waiver, or it is there without the change, too."""
    waiver = _waiver(measure, part.change, excuses, objections)
    if waiver is not None:
        expires = waiver.expires.isoformat() if waiver.expires is not None else ""
        return _Excuse(GateStanding.WAIVED, waiver.reason, waiver.by, expires)
    if part.amount <= excuses.base.get(measure.part_fingerprint(part), -1):
        return _Excuse(GateStanding.NOT_NEW, by="--base")
    return None


def _together(excuses: Sequence[_Excuse]) -> _Excuse | None:
    """Several excuses as one, which is a waiver where one of them is."""
    if not excuses:
        return None
    standings = {excuse.standing for excuse in excuses}
    return _Excuse(
        GateStanding.WAIVED if GateStanding.WAIVED in standings else GateStanding.NOT_NEW,
        "; ".join(dict.fromkeys(excuse.reason for excuse in excuses if excuse.reason)),
        ", ".join(dict.fromkeys(excuse.by for excuse in excuses)),
        min((excuse.expires for excuse in excuses if excuse.expires), default=""),
    )


def _waiver(measure: Measure, change: str, excuses: Excuses, objections: list[str]) -> Waiver | None:
    """The first waiver of what a change brings about that counts; without any, ``objections`` get why none does."""
    asked = [
        (waiver, waiver.objection(excuses.today))
        for waiver in excuses.waivers
        if waiver.change in ("", change) and waiver.is_about(measure.rule, measure.subject)
    ]
    counts = next((waiver for waiver, objection in asked if not objection), None)
    if counts is None:
        objections += sorted(objection for _, objection in asked)
    return counts


def _accepted(measure: Measure, excuses: Excuses, objections: list[str]) -> _Excuse | None:
    """The baseline's entry for all of it, if it has one; adds why it does not count to ``objections``."""
    entry = excuses.baseline.entry(measure.fingerprint)
    if entry is None:
        return None
    expires = entry.expires.isoformat()
    if excuses.today > entry.expires:
        objections.append(f"accepted until {expires}, which is over")
        return None
    if measure.amount > entry.amount:
        objections.append(f"accepted as long as it is not more than {entry.amount}")
        return None
    return _Excuse(GateStanding.ACCEPTED, entry.reason, "--baseline", expires)


def _worst_chains(findings: Sequence[GateFinding]) -> list[GateFinding]:
    """One chain for each change: of several that overrides set other limits for, one that fails, and the longest."""
    best: dict[str, GateFinding] = {}
    for each in findings:
        if each.rule is RuleId.MAX_CASCADE_DEPTH:
            known = best.get(each.fingerprint)
            if known is None or _weight(each) > _weight(known):
                best[each.fingerprint] = each
    others = [each for each in findings if each.rule is not RuleId.MAX_CASCADE_DEPTH]
    return [*others, *best.values()]


def _weight(finding: GateFinding) -> tuple[bool, int]:
    return finding.standing is GateStanding.FAILS, finding.amount


def _result(rule: RuleId, rules: GateRules, amount: int, findings: Sequence[GateFinding]) -> RuleResult:
    own = [each.standing for each in findings if each.rule is rule]
    return RuleResult(
        rule=rule,
        is_on=rules.is_on(rule),
        limit=rules.general(rule) if rule.row.has_limit else None,
        amount=amount,
        failures=own.count(GateStanding.FAILS),
        waived=own.count(GateStanding.WAIVED),
        accepted=own.count(GateStanding.ACCEPTED),
        not_new=own.count(GateStanding.NOT_NEW),
    )
