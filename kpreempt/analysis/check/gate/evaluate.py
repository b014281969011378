"""Evaluates the rules for one or more possible simulations, and decides which findings count.

Custom rules are expressions that are evaluated on the output of ``-o json``, as ``result``. A finding is suppressed by
a waiver, by the baseline, or if it also occurs without the change; ``source_of`` lists the rules that these and the
gate's settings relax.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

import msgspec

from kpreempt.analysis.check.gate.measures import MEASURES, EvaluationContext, Facts, Measure, Part
from kpreempt.analysis.check.gate.rules import GateRules, find_rule, matches
from kpreempt.errors import InputError, UsageError
from kpreempt.gate_rules import CLUSTER, RuleId, RuleSeverity
from kpreempt.model.meta import grouped
from kpreempt.verdict import API_VERSION
from kpreempt.verdict.check import Change, Check, FindingStatus, GateFinding, GateSource, RuleResult
from kpreempt.verdict.simulation import Simulation

if TYPE_CHECKING:
    from kpreempt.cel.documents import Rule


# The variables of custom rules.
VARIABLES = ("result",)
SomeCheck = TypeVar("SomeCheck", bound=Check)
_Kind = TypeVar("_Kind")
_ORDER = {rule: index for index, rule in enumerate(RuleId)}


class EvaluatedRun(msgspec.Struct, frozen=True):
    """The results and findings of one run, and its likelihood relative to the other runs."""

    results: Sequence[RuleResult]
    findings: Sequence[GateFinding]
    likelihood: float = 1.0


class _Counted(NamedTuple):
    """A finding, the amount of it that counts, and what suppresses the rest of one that fails."""

    finding: GateFinding
    remaining: int
    suppression: Suppression | None


def evaluate(
    simulation: Simulation, changes: Sequence[Change], facts: Facts, rules: GateRules, suppressions: Suppressions
) -> tuple[list[RuleResult], list[GateFinding]]:
    """The result of every rule, and the findings by rule and subject.

    Suppressed amounts do not count: if the rest of a sum is within its limit, there is no finding.
    """
    written = {change.object: change for change in changes}
    pools: dict[object, list[Measure]] = {}
    amounts: dict[RuleId, int] = {}
    for measure in _measures(simulation, changes, facts, rules):
        key: object = (measure.rule, measure.group) if measure.rule.row.is_pooled else len(pools)
        pools.setdefault(key, []).append(measure)
    findings: list[GateFinding] = []
    for pool in pools.values():
        rule = pool[0].rule
        amounts[rule] = max(amounts.get(rule, 0), sum(measure.amount for measure in pool))
        findings += _violated(pool, rules, suppressions, written)
    critical = {each.fingerprint for pool in pools.values() for each in pool if each.is_critical}
    findings = [_by_severity(each, rules, critical) for each in _worst_chains(findings)]
    findings.sort(key=lambda each: (_ORDER[each.rule], each.subject, each.change, each.fingerprint))
    return [_result(rule, rules, amounts.get(rule, 0), findings) for rule in rules.requested], findings


def _by_severity(finding: GateFinding, rules: GateRules, critical: Collection[str]) -> GateFinding:
    """Return the finding as is if it fails the gate, else as a warning.

    It fails if its rule has severity ``error``, or if it is ``critical`` and the user did not set a severity.
    """
    if finding.fingerprint in critical and finding.rule not in rules.severities:
        return finding
    if finding.status is not FindingStatus.FAILS or rules.severity_of(finding.rule) is RuleSeverity.ERROR:
        return finding
    return msgspec.structs.replace(finding, status=FindingStatus.WARNS)


def passes(results: Iterable[RuleResult]) -> bool:
    """Whether the gate passes."""
    return not any(each.failures for each in results)


def measured(
    simulation: Simulation,
    changes: Sequence[Change],
    facts: Facts,
    rules: GateRules,
    *,
    is_about_input: bool = False,
) -> dict[str, int]:
    """The largest amount by fingerprint, whether or not it is within the limits.

    Each change counts separately. For a simulation without the change, this is the ``base`` that suppresses up to the
    same amounts. Rules about the input are left out unless only these are requested, because an existing gap does not
    excuse a new one; so are rules about what the change itself removes or weakens, which are measured against the
    cluster.
    """
    found: dict[str, int] = {}
    for measure in _measures(simulation, changes, facts, rules):
        if measure.rule.row.about_input is not is_about_input or measure.rule.row.is_damage:
            continue
        for part in measure.parts:
            fingerprint = measure.fingerprint_of([part.change])
            found[fingerprint] = max(part.amount, found.get(fingerprint, 0))
    return found


def _measures(simulation: Simulation, changes: Sequence[Change], facts: Facts, rules: GateRules) -> list[Measure]:
    case = EvaluationContext(simulation, changes, facts, rules)
    enabled = set(rules.requested)
    found = (each for measure in MEASURES for each in measure(case) if each.rule in enabled)
    return [each for each in found if each.amount or each.is_broken]


def _violated(
    pool: Sequence[Measure], rules: GateRules, suppressions: Suppressions, written: Mapping[str, Change]
) -> list[GateFinding]:
    """The findings for measures that share a limit."""
    limit = rules.limit_of(pool[0].rule, pool[0].group)
    if limit is None:
        return []
    is_broken = any(measure.is_broken for measure in pool)
    if sum(measure.amount for measure in pool) <= limit and not is_broken:
        return []
    counted = [_finding_of(measure, limit, suppressions, written) for measure in pool]
    if not is_broken and sum(each.remaining for each in counted) <= limit:
        # The rest is within the limit, so report only what is suppressed.
        suppressed = [each for each in counted if each.finding.status is not FindingStatus.FAILS or each.suppression]
        return [_with(each.finding, each.suppression) if each.suppression else each.finding for each in suppressed]
    return [each.finding for each in counted]


def _finding_of(measure: Measure, limit: int, suppressions: Suppressions, written: Mapping[str, Change]) -> _Counted:
    """The finding for a measure, with its status; if only some of its changes are suppressed, the others count."""
    objections: list[str] = []
    found = [suppression_of(measure, part, suppressions, objections) for part in measure.parts]
    remaining = [part for part, suppression in zip(measure.parts, found, strict=True) if suppression is None]
    partial = shared_suppressions([suppression for suppression in found if suppression is not None])
    whole = partial if not remaining else accepted(measure, suppressions, objections)
    # The change with the largest amount that counts.
    main = max(remaining or measure.parts, key=lambda part: (part.amount, bool(part.change)))
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
        fix=measure.fix,
        fingerprint=measure.fingerprint,
    )
    if whole is not None:
        return _Counted(_with(finding, whole), 0, None)
    return _Counted(finding, sum(part.amount for part in remaining), partial)


def _with(finding: GateFinding, suppression: Suppression) -> GateFinding:
    return msgspec.structs.replace(
        finding, status=suppression.status, reason=suppression.reason, by=suppression.by, expires=suppression.expires
    )


def _worst_chains(findings: Sequence[GateFinding]) -> list[GateFinding]:
    """Keep one chain per change: if overrides set different limits, prefer one that fails, then the longest."""
    chains = grouped(
        (each for each in findings if each.rule is RuleId.MAX_CASCADE_DEPTH), lambda each: each.fingerprint
    )
    others = [each for each in findings if each.rule is not RuleId.MAX_CASCADE_DEPTH]
    return [
        *others,
        *(max(own, key=lambda each: (each.status is FindingStatus.FAILS, each.amount)) for own in chains.values()),
    ]


def _result(rule: RuleId, rules: GateRules, amount: int, findings: Sequence[GateFinding]) -> RuleResult:
    return RuleResult(
        rule=rule,
        is_on=rules.is_on(rule),
        is_evaluated=True,
        limit=rules.general(rule) if rule.row.has_limit else None,
        amount=amount,
        severity=rules.severity_of(rule),
        **_counts(findings, rule),
    )


def _counts(findings: Sequence[GateFinding], rule: RuleId) -> dict[str, int]:
    """The number of findings with each status, by field of ``RuleResult``."""
    own = [each.status for each in findings if each.rule == rule]
    return {
        "failures": own.count(FindingStatus.FAILS),
        "warnings": own.count(FindingStatus.WARNS),
        "waived": own.count(FindingStatus.WAIVED),
        "accepted": own.count(FindingStatus.ACCEPTED),
        "not_new": own.count(FindingStatus.NOT_NEW),
    }


def aggregate(simulations: Sequence[EvaluatedRun], shown: int) -> tuple[list[RuleResult], list[GateFinding]]:
    """Combine the results of all simulations; each finding has the number of simulations that have it.

    If several simulations have the same finding, the worst one counts; simulation ``shown`` wins a tie.
    """
    if len(simulations) == 1:
        return list(simulations[0].results), list(simulations[0].findings)
    found: dict[str, list[tuple[int, GateFinding]]] = {}
    # The simulation that is shown comes first so that it wins ties.
    for index in (shown, *(each for each in range(len(simulations)) if each != shown)):
        for finding in simulations[index].findings:
            found.setdefault(finding.fingerprint, []).append((index, finding))
    whole = sum(simulation.likelihood for simulation in simulations)
    findings = []
    for own in found.values():
        _, worst = max(own, key=lambda each: (each[1].status.counts, each[1].amount))
        alike = {index for index, finding in own if finding.status is worst.status}
        share = sum(simulations[index].likelihood for index in alike) / whole
        findings.append(msgspec.structs.replace(worst, in_runs=len(alike), of_runs=len(simulations), share=share))
    order = [result.rule for result in simulations[shown].results]
    findings.sort(key=lambda each: (order.index(each.rule), each.subject, each.change, each.fingerprint))
    results = [
        msgspec.structs.replace(
            first,
            amount=max(simulation.results[index].amount for simulation in simulations),
            **_counts(findings, first.rule),
        )
        for index, first in enumerate(simulations[0].results)
    ]
    return results, findings


def minimum(simulations: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The amounts that occur in every simulation, as minima: a merely possible amount suppresses nothing."""
    found: dict[str, int] | None = None
    for simulation in simulations:
        if found is None:
            found = dict(simulation)
        found = {key: min(amount, simulation[key]) for key, amount in found.items() if key in simulation}
    return found or {}


class CustomRule(msgspec.Struct, frozen=True, kw_only=True):
    """A custom rule: the ``expression`` that must be true, and the ``message`` of the finding if it is not."""

    rule: RuleId
    expression: Rule
    message: str


def with_custom_rules(
    check: SomeCheck, custom: Sequence[CustomRule], rules: GateRules, suppressions: Suppressions
) -> SomeCheck:
    """Evaluate custom rules on the result, after the built-in rules, so ``result`` includes their findings.

    Each rule is evaluated once, on the result of all runs. An expression that cannot be evaluated is a finding.
    """
    if not custom:
        return check
    # Evaluate the JSON output, which omits fields that have their default.
    broken = list(_custom_measures(custom, msgspec.json.decode(msgspec.json.encode(check)), rules))
    findings = [
        msgspec.structs.replace(_by_severity(each, rules, ()), in_runs=check.runs, of_runs=check.runs)
        for measure in broken
        for each in _violated([measure], rules, suppressions, {})
    ]
    results = [
        _result(each.rule, rules, sum(measure.rule == each.rule for measure in broken), findings) for each in custom
    ]
    fails = not passes(results)
    return msgspec.structs.replace(
        check,
        passed=check.passed and not fails,
        rules=[*check.rules, *results],
        findings=[*check.findings, *findings],
        failing_runs=check.runs if fails else check.failing_runs,
        failing_share=1.0 if fails else check.failing_share,
    )


def _custom_measures(custom: Sequence[CustomRule], result: object, rules: GateRules) -> Iterable[Measure]:
    from kpreempt.cel import EvaluationError  # noqa: PLC0415 - few gates have custom rules

    for each in custom:
        if not rules.is_on(each.rule):
            continue
        try:
            is_true = each.expression.evaluate({"result": result})
            if is_true and not each.expression.by_chance:
                continue
            detail = f"{each.message} (uncertain: depends on the order of a map)" if is_true else each.message
        except EvaluationError as error:
            detail = f"{each.message} (uncertain: the expression cannot be evaluated: {error})"
        yield Measure(rule=each.rule, subject=CLUSTER, parts=[Part(amount=1)], is_broken=True, detail=detail)


WAIVE = "kpreempt.io/waive"
WAIVE_REASON = "kpreempt.io/waive-reason"
_KIND = "CheckBaseline"
# The largest integer that every JSON parser represents exactly.
_LARGEST_AMOUNT = 2**53


class Waiver(msgspec.Struct, frozen=True, kw_only=True):
    """Suppresses findings of a rule: all of them, or those about a ``subject`` (``*`` matches any text).

    With ``change`` (``Deployment shop/api``), it covers only what that object causes. ``by`` is the source of the
    waiver, ``expires`` its last valid day. It has no effect if it ``lacks_reason``, or if it ``is_ignored`` because
    annotation waivers are disabled; the finding then says so.
    """

    rule: RuleId
    subject: str = ""
    change: str = ""
    reason: str = ""
    by: str = ""
    expires: date | None = None
    lacks_reason: bool = False
    is_ignored: bool = False

    def is_about(self, rule: RuleId, subject: str) -> bool:
        """Whether it names the rule and, if it has a subject, the subject."""
        return self.rule == rule and (not self.subject or matches(self.subject, subject))

    def static_finding(self, today: date) -> str:
        """Why the waiver has no effect, or an empty string."""
        if self.is_ignored:
            return f"{self.by}: {WAIVE} is ignored with --no-annotation-waivers"
        if self.lacks_reason:
            return f"{self.by}: {WAIVE} is ignored without {WAIVE_REASON}"
        if self.change and self.rule.row.is_damage:
            return f"{self.by}: {WAIVE} cannot waive {self.rule}; use --waive or kpreempt.toml"
        if self.expires is not None and today > self.expires:
            return f"waiver of {self.by} expired on {self.expires.isoformat()}"
        return ""


def waiver_of_option(text: str, custom: Sequence[RuleId] = ()) -> Waiver:
    """Parse ``--waive RULE`` or ``--waive RULE=SUBJECT``. Raises ``UsageError``."""
    name, equals, subject = text.partition("=")
    rule = find_rule(name.strip(), f"--waive {text}", custom)
    if equals and not subject.strip():
        raise UsageError(f"--waive {text}: missing subject", hint=f"--waive {rule}='Deployment shop/*'")
    return Waiver(rule=rule, subject=subject.strip(), by="--waive")


def waivers_of_object(
    name: str, annotations: Mapping[str, str], *, source: str = "", line: int = 0, ignores_waivers: bool = False
) -> list[Waiver]:
    """The waivers in the annotations of an object of the change (``Deployment shop/api``), for what it causes.

    If they ``ignores_waivers``, they have no effect and findings say so. Raises ``InputError`` if a rule is unknown.
    """
    text = annotations.get(WAIVE, "")
    reason = annotations.get(WAIVE_REASON, "").strip()
    by = f"{source}:{line}" if source and line else source or name
    found = []
    for rule in filter(None, (part.strip() for part in text.split(","))):
        try:
            known = find_rule(rule, WAIVE)
        except UsageError as error:
            raise InputError(
                f'unknown rule "{rule}"',
                source=source,
                line=line,
                object_name=name,
                path=f"metadata.annotations[{WAIVE}]",
                hint=error.hint,
            ) from None
        found.append(
            Waiver(rule=known, change=name, reason=reason, by=by, lacks_reason=not reason, is_ignored=ignores_waivers)
        )
    return found


class Accepted(msgspec.Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """A finding that is accepted up to ``amount``, through the day on which it ``expires``."""

    rule: str
    subject: str
    change: str = ""
    amount: Annotated[int, msgspec.Meta(ge=0, le=_LARGEST_AMOUNT)]
    reason: str = ""
    expires: date
    fingerprint: str


class Baseline(msgspec.Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """The findings that are accepted."""

    api_version: str = API_VERSION
    kind: str = _KIND
    accepted: list[Accepted] = []

    def entry(self, fingerprint: str) -> Accepted | None:
        """The entry with this fingerprint; if there are several, the one that expires last, then the largest."""
        own = [each for each in self.accepted if each.fingerprint == fingerprint]
        return max(own, key=lambda each: (each.expires, each.amount), default=None)


def decode_json(content: bytes, kind: type[_Kind], source: str) -> _Kind:
    """Decode a record from a file that kpreempt wrote. Raises ``InputError`` with ``source``."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise InputError(f"{problem[:1].lower()}{problem[1:]}", source=source, path=path.strip("`.")) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = str(error).removeprefix("JSON is malformed: ")
        raise InputError(f"invalid JSON: {problem[:1].lower()}{problem[1:]}", source=source) from None


def read_baseline(content: bytes, source: str, custom: Sequence[RuleId] = ()) -> Baseline:
    """Decode a baseline file. Raises ``InputError`` with ``source`` if it is invalid or names an unknown rule."""
    found = decode_json(content, Baseline, source)
    if found.kind != _KIND or found.api_version != API_VERSION:
        raise InputError(
            f"not a baseline: {found.api_version} {found.kind}",
            source=source,
            hint=f"expected {API_VERSION} {_KIND}, as written by --write-baseline",
        )
    for number, each in enumerate(found.accepted):
        try:
            find_rule(each.rule, "", custom)
        except UsageError as error:
            path = f"accepted[{number}].rule"
            raise InputError(error.message.removeprefix(": "), source=source, path=path, hint=error.hint) from None
    return found


def baseline_text(
    findings: Iterable[GateFinding], expires: date, *, reason: str = "", before: Baseline | None = None
) -> str:
    """The content of a baseline that accepts all findings that fail or warn, until ``expires``.

    Findings that ``before`` accepts keep their entry. The same findings give the same text, in any order.
    """
    entries: dict[str, Accepted] = {}
    for each in findings:
        if each.status is FindingStatus.ACCEPTED and before is not None:
            previous = before.entry(each.fingerprint)
            if previous is not None:
                entries[each.fingerprint] = previous
        elif each.status.counts:
            entries[each.fingerprint] = Accepted(
                rule=each.rule,
                subject=each.subject,
                change=each.change,
                amount=each.amount,
                reason=reason,
                expires=expires,
                fingerprint=each.fingerprint,
            )
    accepted = sorted(entries.values(), key=lambda each: (each.rule, each.subject, each.change, each.fingerprint))
    return msgspec.json.format(msgspec.json.encode(Baseline(accepted=accepted)), indent=2).decode() + "\n"


class Suppressions(msgspec.Struct, frozen=True, kw_only=True):
    """What suppresses findings: waivers, the baseline, and ``base``, the findings without the change.

    ``base`` is the result of ``measured`` without the change, or for the old manifests, which ``base_option`` gave.
    ``today`` decides what has expired.
    """

    today: date
    waivers: Sequence[Waiver] = ()
    baseline: Baseline = Baseline()
    base: Mapping[str, int] = {}
    base_option: str = ""


class Suppression(NamedTuple):
    """Why a finding or a part of it is suppressed, and by what."""

    status: FindingStatus
    reason: str = ""
    by: str = ""
    expires: str = ""


def suppression_of(
    measure: Measure, part: Part, suppressions: Suppressions, objections: list[str]
) -> Suppression | None:
    """Why the part of one change does not count: a waiver covers it, or it also occurs without the change.

    The first effective waiver is used. If there is none, the reasons why the others have no effect are added to
    ``objections``.
    """
    candidates = [
        (waiver, waiver.static_finding(suppressions.today))
        for waiver in suppressions.waivers
        if waiver.change in ("", part.change) and waiver.is_about(measure.rule, measure.subject)
    ]
    waiver = next((waiver for waiver, static_finding in candidates if not static_finding), None)
    if waiver is not None:
        expires = waiver.expires.isoformat() if waiver.expires is not None else ""
        return Suppression(FindingStatus.WAIVED, waiver.reason, waiver.by, expires)
    objections += sorted(static_finding for _, static_finding in candidates)
    if part.amount <= suppressions.base.get(measure.fingerprint_of([part.change]), -1):
        return Suppression(FindingStatus.NOT_NEW, by=suppressions.base_option)
    return None


def shared_suppressions(suppressions: Sequence[Suppression]) -> Suppression | None:
    """Combine several suppressions; the result is a waiver if one of them is."""
    if not suppressions:
        return None
    statuses = {suppression.status for suppression in suppressions}
    return Suppression(
        FindingStatus.WAIVED if FindingStatus.WAIVED in statuses else FindingStatus.NOT_NEW,
        "; ".join(dict.fromkeys(suppression.reason for suppression in suppressions if suppression.reason)),
        ", ".join(dict.fromkeys(suppression.by for suppression in suppressions if suppression.by)),
        min((suppression.expires for suppression in suppressions if suppression.expires), default=""),
    )


def accepted(measure: Measure, suppressions: Suppressions, objections: list[str]) -> Suppression | None:
    """The baseline's entry for the whole measure, if any; adds to ``objections`` why an entry has no effect."""
    entry = suppressions.baseline.entry(measure.fingerprint)
    if entry is None:
        return None
    expires = entry.expires.isoformat()
    if suppressions.today > entry.expires:
        objections.append(f"baseline entry expired on {expires}")
        return None
    if measure.amount > entry.amount:
        objections.append(f"baseline accepts up to {entry.amount}")
        return None
    return Suppression(FindingStatus.ACCEPTED, entry.reason, "--baseline", expires)


def source_of(rules: GateRules, suppressions: Suppressions, *, config: str, baseline: str) -> GateSource:
    """The source of the rules, and which rules are off, only warn, are waived or have a raised limit.

    Waivers without effect (expired, or without a reason) are left out.
    """
    limits = list(_limits(rules))
    errors = [rule for rule in rules.requested if rule.row.severity is RuleSeverity.ERROR and rules.is_on(rule)]
    waived = [
        f"{each.rule}{f' ({name})' if (name := ', '.join(filter(None, (each.subject, each.change)))) else ''}"
        for each in suppressions.waivers
        if not each.static_finding(suppressions.today)
    ]
    return GateSource(
        config=config,
        baseline=baseline,
        off=[name for name, rule, limit in limits if limit is None and rule.row.default is not None],
        warn_only=[str(rule) for rule in errors if rules.severity_of(rule) is RuleSeverity.WARN],
        waived=list(dict.fromkeys(waived)),
        raised=[
            f"{name} {limit:,}"
            for name, rule, limit in limits
            if limit is not None and rule.row.default is not None and limit > rule.row.default
        ],
        expendable=list(rules.expendable),
    )


def _limits(rules: GateRules) -> Iterator[tuple[str, RuleId, int | None]]:
    """The limit of each rule, and of each override that differs, with its scope.

    ``forbid-victims`` without protected pods has no limit and is left out.
    """
    for rule in rules.requested:
        if rule is RuleId.FORBID_VICTIMS and not rules.forbidden:
            continue
        general = rules.general(rule)
        yield str(rule), rule, general
        for index, each in enumerate(rules.overrides):
            if rule in each.limits and rules.limit_of(rule, index) != general:
                yield f"{rule} ({each.name})", rule, each.limits[rule]
