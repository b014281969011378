"""``kpreempt.toml``: the rules of a gate, as stored in a repository."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kpreempt.analysis.check.gate import (
    VARIABLES,
    CustomRule,
    ForbiddenVictims,
    Override,
    Waiver,
    find_rule,
    parse_severity,
)
from kpreempt.analysis.check.rollout.controller_inputs import MAX_SECONDS
from kpreempt.analysis.check.rollout.hooks import Applier
from kpreempt.analysis.pod_selection import parse_selector
from kpreempt.errors import InputError, UsageError, nearest
from kpreempt.gate_rules import OptionType, RuleId, RuleSeverity
from kpreempt.model.durations import SECOND, parse_duration
from kpreempt.snapshot.kinds import parse_kinds

if TYPE_CHECKING:
    from kpreempt.cel.documents import Rule

CONFIG_NAME = "kpreempt.toml"
OFF = "off"
JOB_DURATION = "job-duration"
APPLIED_BY = "applied-by"
ASSUME_NONE = "assume-none"
EXPENDABLE = "expendable"
# Below the largest integer in the answer's JSON, with a wide margin.
LARGEST_LIMIT = 2**31 - 1
_SHOWN = 40
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
# In the order in which an error lists them.
_LIMITS = tuple(
    rule
    for takes in (OptionType.NUMBER, OptionType.SWITCH, OptionType.TIME)
    for rule in RuleId
    if rule.row.takes is takes
)
_OVERRIDABLE = tuple(rule for rule in RuleId if rule.row.is_overridable)
_LISTS = ("override", "forbid-victims", "waive", "rule")
_RULE_KEYS = ("name", "expression", "message", "severity")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


class GateConfig(msgspec.Struct, frozen=True):
    """The content of a rules file: limits (``None`` is off), overrides, forbidden victims, waivers and severities.

    ``rules`` are custom rules. The cluster has no objects of the kinds in ``assume_none``. Pods of Jobs run for
    ``job_seconds``, and ``applied_by`` is the tool that applies changes; both are ``None`` if not set. The
    pods of ``expendable`` workloads are placeholders.
    """

    limits: Mapping[RuleId, int | None] = {}
    overrides: list[Override] = []
    forbidden: list[ForbiddenVictims] = []
    waivers: list[Waiver] = []
    severities: Mapping[RuleId, RuleSeverity] = {}
    rules: list[CustomRule] = []
    job_seconds: int | None = None
    applied_by: Applier | None = None
    assume_none: frozenset[str] = frozenset()
    expendable: Sequence[str] = ()


def find_config(folder: Path) -> tuple[Path, str] | None:
    """Find the ``kpreempt.toml`` of a directory: its own, or the nearest in a parent directory within the repository.

    Also returns its name for messages, relative to the directory. Raises ``InputError`` if a directory cannot be read.
    """
    above = [folder, *folder.parents]
    try:
        root = next((index for index, each in enumerate(above) if (each / ".git").exists()), 0)
        for index, each in enumerate(above[: root + 1]):
            if (each / CONFIG_NAME).is_file():
                return each / CONFIG_NAME, "../" * index + CONFIG_NAME
    except OSError as error:
        raise InputError(f"cannot search for it: {error.strerror or error}", source=CONFIG_NAME) from None
    return None


def parse_toml(content: bytes, source: str) -> dict[str, Any]:
    """Parse the text of a TOML file. Raises ``InputError``."""
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise InputError("not UTF-8", source=source) from None
    except RecursionError:
        raise InputError("invalid TOML: nested too deeply", source=source) from None
    except ValueError as error:
        # A number with thousands of digits raises another error, without a position.
        problem = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "a number is too long"
        raise InputError(f"invalid TOML: {problem[:1].lower()}{problem[1:]}", source=source) from None


def parse_config(content: bytes, source: str) -> GateConfig:
    """Parse the rules in the text of a file. Raises ``InputError`` with ``source``, the key, and the allowed values."""
    document = _Table(parse_toml(content, source), source, "")
    document.allow(("check",))
    table = document.table("check")
    table.allow((*_LIMITS, *_LISTS, "severity", JOB_DURATION, APPLIED_BY, ASSUME_NONE, EXPENDABLE))
    rules = _rules(table)
    custom = [each.rule for each in rules]
    if JOB_DURATION not in table:
        job_seconds = None
    else:
        value = table.value(JOB_DURATION)
        seconds = job_seconds_in(value) if isinstance(value, str) else None
        if seconds is None:
            raise table.bad(JOB_DURATION, f'{_shown(value)} is not a time from "1s" to "168h", or "never"')
        job_seconds = seconds
    tool = table.value(APPLIED_BY) if APPLIED_BY in table else None
    if tool is not None and tool not in [*Applier]:
        raise table.bad(APPLIED_BY, f"{_shown(tool)} is not a known tool", ", ".join(Applier))
    kinds = table.value(ASSUME_NONE) if ASSUME_NONE in table else []
    if not isinstance(kinds, list) or not all(isinstance(each, str) for each in kinds):
        raise table.bad(ASSUME_NONE, f"{_shown(kinds)} is not an array of kinds", '["pdb", "quota"]')
    try:
        assume_none = parse_kinds(kinds, ASSUME_NONE)
    except UsageError as error:
        raise table.bad(ASSUME_NONE, error.message.removeprefix(f"{ASSUME_NONE} "), error.hint) from None
    expendable = table.value(EXPENDABLE) if EXPENDABLE in table else []
    if not isinstance(expendable, list) or not all(isinstance(each, str) for each in expendable):
        raise table.bad(
            EXPENDABLE, f"{_shown(expendable)} is not an array of workloads", '["Deployment headroom/filler"]'
        )
    return GateConfig(
        limits=dict(_limits(table, _LIMITS)),
        overrides=[_override(each) for each in table.tables("override")],
        forbidden=[_forbidden(each) for each in table.tables("forbid-victims")],
        waivers=[_waiver(each, custom) for each in table.tables("waive")],
        severities=dict(_severities(table.table("severity"))),
        rules=rules,
        job_seconds=job_seconds,
        applied_by=Applier(tool) if tool is not None else None,
        assume_none=assume_none,
        expendable=expendable,
    )


class _Table:
    """A table of the file that knows its own path."""

    def __init__(self, content: Mapping[str, Any], source: str, path: str) -> None:
        self._content = content
        self.source = source
        self._path = path

    def __contains__(self, key: str) -> bool:
        return key in self._content

    def allow(self, keys: Collection[str]) -> None:
        """Raise ``InputError`` for any other key."""
        for key in self._content:
            if key not in keys:
                raise self.bad(key, "unknown key", nearest(key, keys))

    def bad(self, key: str, problem: str, hint: str = "") -> InputError:
        """Build the error about a key, or about the table itself if ``key`` is empty."""
        path = ".".join(filter(None, (self._path, _short(key))))
        return InputError(problem, source=self.source, path=path, hint=hint)

    def value(self, key: str) -> Any:
        """Return the value of a key."""
        return self._content[key]

    def table(self, key: str) -> _Table:
        """Return the table of that name, or an empty one."""
        content = self._content.get(key, {})
        if not isinstance(content, dict):
            raise self.bad(key, f"{_shown(content)} is not a table", f"[{key}]")
        return _Table(content, self.source, ".".join(filter(None, (self._path, key))))

    def tables(self, key: str) -> Iterator[_Table]:
        """Yield the tables of an array, in order."""
        content = self._content.get(key, [])
        path = ".".join(filter(None, (self._path, key)))
        if not isinstance(content, list) or not all(isinstance(each, dict) for each in content):
            raise self.bad(key, f"{_shown(content)} is not an array of tables", f"[[{path}]]")
        for index, each in enumerate(content):
            yield _Table(each, self.source, f"{path}[{index}]")

    def text(self, key: str) -> str:
        """Return the string at a key, or an empty one if missing. Raises ``InputError`` for an explicitly empty one."""
        if key not in self:
            return ""
        content = self._content[key]
        if not isinstance(content, str) or not content.strip():
            raise self.bad(key, f"{_shown(content)} is not a string" if content != "" else "must not be empty")
        return content.strip()


def _limits(table: _Table, rules: Collection[RuleId]) -> Iterator[tuple[RuleId, int | None]]:
    """Yield the limits in a table."""
    for rule in rules:
        if rule in table:
            yield rule, _limit(table, rule)


def _limit(table: _Table, rule: RuleId) -> int | None:
    value = table.value(rule)
    if rule.row.takes is OptionType.SWITCH:
        if not isinstance(value, bool):
            raise table.bad(rule, f"{_shown(value)} is not true or false")
        return 0 if value else None
    if value == OFF:
        return None
    if rule.row.takes is OptionType.TIME:
        seconds = seconds_in(value) if isinstance(value, str) else None
        if seconds is None:
            raise table.bad(rule, f'{_shown(value)} is not a time such as "30m" or "12h", or "{OFF}"')
        return seconds
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_LIMIT:
        raise table.bad(rule, f'{_shown(value)} is not a number from 0 to {LARGEST_LIMIT}, or "{OFF}"')
    return value


def _severities(table: _Table) -> Iterator[tuple[RuleId, RuleSeverity]]:
    """Yield the severities that the table sets."""
    table.allow(tuple(RuleId))
    for rule in RuleId:
        if rule in table:
            try:
                yield rule, parse_severity(rule, _short(table.text(rule)), "")
            except UsageError as error:
                raise table.bad(rule, error.message.removeprefix(": "), error.hint) from None


def _rules(table: _Table) -> list[CustomRule]:
    """Parse the custom rules, in order."""
    found: list[CustomRule] = []
    for each in table.tables("rule"):
        rule = _rule(each)
        if rule.rule in [*RuleId, *(other.rule for other in found)]:
            raise each.bad("name", f"a rule {_shown(str(rule.rule))} already exists")
        found.append(rule)
    return found


def _rule(table: _Table) -> CustomRule:
    table.allow(_RULE_KEYS)
    for key in ("name", "expression", "message"):
        if not table.text(key):
            raise table.bad(key, "missing")
    name, expression = table.text("name"), table.text("expression")
    if not _NAME.fullmatch(name):
        raise table.bad("name", f"{_shown(name)} may only have lowercase letters, digits and dashes", "no-spot-nodes")
    try:
        # Any severity is allowed for a custom rule.
        severity = parse_severity(RuleId.MAX_VICTIMS, _short(table.text("severity") or RuleSeverity.ERROR), "")
    except UsageError as error:
        raise table.bad("severity", error.message.removeprefix(": "), error.hint) from None
    return CustomRule(
        rule=RuleId.of_expression(name, expression, severity),
        expression=_compiled(table, expression),
        message=table.text("message"),
    )


def _compiled(table: _Table, expression: str) -> Rule:
    from kpreempt.cel import CompileError
    from kpreempt.cel.documents import compile_rule

    try:
        return compile_rule(expression, VARIABLES)
    except CompileError as error:
        raise table.bad("expression", f"invalid expression: {str(error).partition(chr(10))[0]}") from None


def _override(table: _Table) -> Override:
    table.allow(("namespace", "workload", *_OVERRIDABLE))
    namespace, workload = table.text("namespace"), table.text("workload")
    limits = dict(_limits(table, _OVERRIDABLE))
    if not namespace and not workload:
        raise table.bad("", "needs a namespace or a workload", 'workload = "Deployment shop/api"')
    if not limits:
        raise table.bad("", "must set a limit", ", ".join(_OVERRIDABLE))
    if workload and RuleId.MAX_PDB_VIOLATIONS in limits:
        raise table.bad(
            RuleId.MAX_PDB_VIOLATIONS,
            "PodDisruptionBudgets belong to a namespace, not to a workload",
            'namespace = "shop"',
        )
    return Override(namespace=namespace, workload=workload, limits=limits)


def _forbidden(table: _Table) -> ForbiddenVictims:
    keys = ("namespace", "label", "priority-class")
    table.allow(keys)
    label, namespace = table.text("label"), table.text("namespace")
    try:
        selector = parse_selector(label) if label else None
    except UsageError as error:
        raise table.bad("label", f"{_shown(label)} is not a label selector", error.hint) from None
    found = ForbiddenVictims(
        namespace=namespace,
        selector=selector,
        priority_class=table.text("priority-class"),
    )
    if not found.name:
        raise table.bad("", "must select pods that must not be victims", ", ".join(keys))
    return found


def _waiver(table: _Table, custom: Sequence[RuleId]) -> Waiver:
    table.allow(("rule", "subject", "reason", "expires"))
    name, reason = table.text("rule"), table.text("reason")
    if not name:
        raise table.bad("rule", "missing", ", ".join([*RuleId, *custom]))
    try:
        rule = find_rule(name, "", custom)
    except UsageError as error:
        raise table.bad("rule", f"unknown rule {_shown(name)}", error.hint) from None
    if not reason:
        raise table.bad("reason", "missing: why is the rule waived?")
    expires = None
    if "expires" in table:
        value = table.value("expires")
        if isinstance(value, str):
            expires = date_in(value)
        elif isinstance(value, date) and not isinstance(value, datetime):
            expires = value
        if expires is None:
            raise table.bad("expires", f"{_shown(value)} is not a date such as 2026-12-31")
    return Waiver(rule=rule, subject=table.text("subject"), reason=reason, by=table.source, expires=expires)


def seconds_in(text: str) -> int | None:
    """Return the whole seconds of a duration such as ``1h30m``, rounded down, or ``None`` if it is invalid."""
    nanoseconds = parse_duration(text)
    if nanoseconds is None or not 0 <= nanoseconds <= LARGEST_LIMIT * SECOND:
        return None
    return nanoseconds // SECOND


def job_seconds_in(text: str) -> int | None:
    """Return how long a pod of a Job runs, in whole seconds, at most a week; 0 means forever, ``None`` is invalid."""
    if text == "never":
        return 0
    seconds = seconds_in(text)
    return seconds if seconds is not None and 0 < seconds <= MAX_SECONDS else None


def date_in(text: str) -> date | None:
    """Parse a date such as ``2026-12-31``, or return ``None``."""
    try:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def _shown(value: object) -> str:
    """Return a value as written in the file, shortened."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, int) and abs(value) > LARGEST_LIMIT:
        return "a number that large"
    return _short(f'"{value}"' if isinstance(value, str) else str(value))


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
