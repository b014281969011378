"""What lets a finding pass: waivers, the baseline, and that it is there without the change, too.

``source_of`` says which rules count for less than by default because of these and of the gate's settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Annotated, NamedTuple

import msgspec

from kpreempt.analysis.check.gate.case import Measure, Part
from kpreempt.analysis.check.gate.rules import GateRules, matches, rule_named
from kpreempt.errors import InputError, UsageError
from kpreempt.gate_rules import RuleId, RuleSeverity
from kpreempt.verdict import API_VERSION
from kpreempt.verdict.check import GateFinding, GateSource, GateStanding

WAIVE = "kpreempt.io/waive"
WAIVE_REASON = "kpreempt.io/waive-reason"
_KIND = "CheckBaseline"
# What JSON holds as a number everywhere.
_LARGEST_AMOUNT = 2**53


class Waiver(msgspec.Struct, frozen=True, kw_only=True):
    """Lets what a rule finds pass: all of it, or what is about a ``subject`` (``*`` is any text).

    With ``change`` (``Deployment shop/api``) only what that object brings about. ``by`` is where it is said,
    ``expires`` the last day on which it counts. Where ``lacks_reason``, or where it ``is_ignored`` because annotations
    waive nothing, it does not count, which a finding then says.
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
        """Whether it names the rule and, if it names any, the subject."""
        return self.rule == rule and (not self.subject or matches(self.subject, subject))

    def objection(self, today: date) -> str:
        """Why it does not count, or an empty text."""
        if self.is_ignored:
            return f"{self.by}: {WAIVE} does not count with --no-annotation-waivers"
        if self.lacks_reason:
            return f"{self.by}: {WAIVE} does not count without {WAIVE_REASON}"
        if self.change and self.rule.row.is_damage:
            return f"{self.by}: {WAIVE} does not waive {self.rule}: only an option or kpreempt.toml does"
        if self.expires is not None and today > self.expires:
            return f"waived by {self.by} until {self.expires.isoformat()}, which is over"
        return ""


def waiver_of_option(text: str, custom: Sequence[RuleId] = ()) -> Waiver:
    """What ``--waive RULE`` or ``--waive RULE=SUBJECT`` says. Raises ``UsageError``."""
    name, equals, subject = text.partition("=")
    rule = rule_named(name.strip(), f"--waive {text}", custom)
    if equals and not subject.strip():
        raise UsageError(f"--waive {text}: the subject is missing", hint=f"--waive {rule}='Deployment shop/*'")
    return Waiver(rule=rule, subject=subject.strip(), by="--waive")


def waivers_of_object(
    name: str, annotations: Mapping[str, str], *, source: str = "", line: int = 0, are_ignored: bool = False
) -> list[Waiver]:
    """The waivers in the annotations of an object of the change (``Deployment shop/api``), for what it brings about.

    Where they ``are_ignored`` they count for nothing, and findings say so.
    Raises ``InputError`` for a rule that does not exist.
    """
    text = annotations.get(WAIVE, "")
    reason = annotations.get(WAIVE_REASON, "").strip()
    by = f"{source}:{line}" if source and line else source or name
    found = []
    for rule in filter(None, (part.strip() for part in text.split(","))):
        try:
            known = rule_named(rule, WAIVE)
        except UsageError as error:
            raise InputError(
                f'there is no rule "{rule}"',
                source=source,
                line=line,
                object_name=name,
                path=f"metadata.annotations[{WAIVE}]",
                hint=error.hint,
            ) from None
        found.append(
            Waiver(rule=known, change=name, reason=reason, by=by, lacks_reason=not reason, is_ignored=are_ignored)
        )
    return found


class Accepted(msgspec.Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """A finding that may be as bad as ``amount``, up to and including the day on which it ``expires``."""

    rule: str
    subject: str
    change: str = ""
    amount: Annotated[int, msgspec.Meta(ge=0, le=_LARGEST_AMOUNT)]
    reason: str = ""
    expires: date
    fingerprint: str


class Baseline(msgspec.Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """All that is accepted."""

    api_version: str = API_VERSION
    kind: str = _KIND
    accepted: list[Accepted] = []

    def entry(self, fingerprint: str) -> Accepted | None:
        """The entry of that fingerprint; of several that which is accepted longest, and then the largest."""
        own = [each for each in self.accepted if each.fingerprint == fingerprint]
        return max(own, key=lambda each: (each.expires, each.amount), default=None)


def read_baseline(content: bytes, source: str, custom: Sequence[RuleId] = ()) -> Baseline:
    """The baseline in a file. Raises ``InputError`` with ``source`` for anything else, and for unknown rules."""
    try:
        found = msgspec.json.decode(content, type=Baseline)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise InputError(_lowered(problem), source=source, path=path.strip("`.")) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = str(error).removeprefix("JSON is malformed: ")
        raise InputError(f"is not JSON: {_lowered(problem)}", source=source) from None
    if found.kind != _KIND or found.api_version != API_VERSION:
        raise InputError(
            f"is no baseline: {found.api_version} {found.kind}",
            source=source,
            hint=f"a file that --write-baseline wrote: {API_VERSION} {_KIND}",
        )
    for number, each in enumerate(found.accepted):
        try:
            rule_named(each.rule, "", custom)
        except UsageError as error:
            path = f"accepted[{number}].rule"
            raise InputError(error.message.removeprefix(": "), source=source, path=path, hint=error.hint) from None
    return found


def baseline_text(
    findings: Iterable[GateFinding], expires: date, *, reason: str = "", before: Baseline | None = None
) -> str:
    """The file that accepts all findings that fail or warn, until ``expires``.

    Those that ``before`` accepts stay as they are in it. Equal findings make the same text, in whatever order.
    """
    entries: dict[str, Accepted] = {}
    for each in findings:
        if each.standing is GateStanding.ACCEPTED and before is not None:
            kept = before.entry(each.fingerprint)
            if kept is not None:
                entries[each.fingerprint] = kept
        elif each.standing.counts:
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


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


class Excuses(msgspec.Struct, frozen=True, kw_only=True):
    """What lets findings pass: waivers, the baseline, and ``base``, which is what there is without the change.

    ``base`` is what ``measured`` says of the simulation of the manifests before. ``today`` decides what is over.
    """

    today: date
    waivers: Sequence[Waiver] = ()
    baseline: Baseline = Baseline()
    base: Mapping[str, int] = {}


class Excuse(NamedTuple):
    """Why something does not count, and who says so."""

    standing: GateStanding
    reason: str = ""
    by: str = ""
    expires: str = ""


def excuse_of(measure: Measure, part: Part, excuses: Excuses, objections: list[str]) -> Excuse | None:
    """Why what one change brings about does not count, if so: a waiver, or it is there without the change, too."""
    waiver = _waiver(measure, part.change, excuses, objections)
    if waiver is not None:
        expires = waiver.expires.isoformat() if waiver.expires is not None else ""
        return Excuse(GateStanding.WAIVED, waiver.reason, waiver.by, expires)
    if part.amount <= excuses.base.get(measure.part_fingerprint(part), -1):
        return Excuse(GateStanding.NOT_NEW, by="--base")
    return None


def excuses_together(excuses: Sequence[Excuse]) -> Excuse | None:
    """Several excuses as one, which is a waiver where one of them is."""
    if not excuses:
        return None
    standings = {excuse.standing for excuse in excuses}
    return Excuse(
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


def accepted(measure: Measure, excuses: Excuses, objections: list[str]) -> Excuse | None:
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
    return Excuse(GateStanding.ACCEPTED, entry.reason, "--baseline", expires)


def source_of(rules: GateRules, excuses: Excuses, *, config: str, baseline: str) -> GateSource:
    """Where the rules are from, and those that are switched off, only warn, are waived or have a higher limit.

    A waiver that does not count, because it is over or without a reason, waives nothing.
    """
    limits = list(_limits(rules))
    errors = [rule for rule in rules.asked if rule.row.severity is RuleSeverity.ERROR and rules.is_on(rule)]
    waived = [
        f"{each.rule}{f' ({name})' if (name := ', '.join(filter(None, (each.subject, each.change)))) else ''}"
        for each in excuses.waivers
        if not each.objection(excuses.today)
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
    )


def _limits(rules: GateRules) -> Iterator[tuple[str, RuleId, int | None]]:
    """The limit of each rule, and of each override that has another one, with what it is for.

    A rule that needs to be told what it is about, and is not, has none to lose.
    """
    for rule in rules.asked:
        if rule is RuleId.FORBID_VICTIMS and not rules.forbidden:
            continue
        general = rules.general(rule)
        yield str(rule), rule, general
        for index, each in enumerate(rules.overrides):
            if rule in each.limits and rules.limit_of(rule, index) != general:
                yield f"{rule} ({each.name})", rule, each.limits[rule]
