"""The limits of a gate, their overrides per namespace or workload, and the pods that must not be victims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kpreempt.errors import UsageError, nearest
from kpreempt.gate_rules import OptionType, RuleId, RuleSeverity
from kpreempt.model.labels import LabelSelector


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """Limits that apply only to a namespace or a workload (``Deployment shop/api``); ``*`` matches any text.

    If both are set, both must match. ``limits`` lists the rules it replaces; ``None`` turns a rule off. What must match
    depends on the rule: the victim, the pending pod, or the budget (which has a namespace but no workload).
    """

    namespace: str = ""
    workload: str = ""
    limits: Mapping[RuleId, int | None] = {}

    @property
    def name(self) -> str:
        """The scope of the override as text that stays the same between runs."""
        parts = (f"namespace {self.namespace}" if self.namespace else "", self.workload)
        return ", ".join(part for part in parts if part)

    def covers(self, namespace: str, workload: str) -> bool:
        """Whether the override applies to this namespace and workload."""
        is_in_namespace = not self.namespace or matches(self.namespace, namespace)
        return is_in_namespace and (not self.workload or matches(self.workload, workload))


class ForbiddenVictims(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that must not be victims: pods that match every field that is set. ``*`` in names matches any text."""

    namespace: str = ""
    selector: LabelSelector | None = None
    priority_class: str = ""

    @property
    def name(self) -> str:
        """A short description of the pods it protects."""
        parts = [f"namespace {self.namespace}"] if self.namespace else []
        parts += [f"label {self.selector}"] if self.selector is not None else []
        parts += [f"priority class {self.priority_class}"] if self.priority_class else []
        return ", ".join(parts)


class GateRules(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of all rules (``None``: off) and the overrides; the last override that matches wins.

    The limit of a rule that is either kept or violated is 0. A rule that is in neither ``limits`` nor ``severities``
    has its default. With ``report_only``, violations are warnings at most. ``command`` is the command that evaluates
    the rules. ``expendable`` are workloads whose pods count as placeholders; ``*`` matches any text.
    """

    limits: Mapping[RuleId, int | None] = {}
    overrides: Sequence[Override] = ()
    forbidden: Sequence[ForbiddenVictims] = ()
    severities: Mapping[RuleId, RuleSeverity] = {}
    report_only: bool = False
    command: str = "check"
    expendable: Sequence[str] = ()

    @property
    def requested(self) -> list[RuleId]:
        """The rules that the command evaluates, in order."""
        return [rule for rule in RuleId if self.command in rule.row.commands]

    def severity_of(self, rule: RuleId) -> RuleSeverity:
        """The severity of the rule."""
        found = self.severities.get(rule, rule.row.severity)
        return RuleSeverity.WARN if self.report_only and found is RuleSeverity.ERROR else found

    def general(self, rule: RuleId) -> int | None:
        """The limit if no override matches, or ``None``."""
        is_off = self.severity_of(rule) is RuleSeverity.OFF
        if is_off or (rule is RuleId.FORBID_VICTIMS and not self.forbidden):
            return None
        return self.limits.get(rule, rule.row.default)

    def group_of(self, rule: RuleId, namespace: str, workload: str) -> int:
        """The index of the override for this namespace and workload, or -1."""
        for index in range(len(self.overrides) - 1, -1, -1):
            if rule in self.overrides[index].limits and self.overrides[index].covers(namespace, workload):
                return index
        return -1

    def limit_of(self, rule: RuleId, group: int) -> int | None:
        """The limit in a group (see ``group_of``), or ``None`` if the rule is off."""
        if group < 0 or self.severity_of(rule) is RuleSeverity.OFF:
            return self.general(rule)
        return self.overrides[group].limits[rule]

    def is_on(self, rule: RuleId) -> bool:
        """Whether the rule can fail for any subject."""
        groups = (index for index, each in enumerate(self.overrides) if rule in each.limits)
        return any(self.limit_of(rule, group) is not None for group in (-1, *groups))


def find_rule(name: str, location: str, custom: Sequence[RuleId] = ()) -> RuleId:
    """The rule with this name, built in or ``custom``.

    Raises ``UsageError`` that starts with ``location`` and suggests the nearest name.
    """
    known: dict[str, RuleId] = {str(rule): rule for rule in (*RuleId, *custom)}
    if name not in known:
        raise UsageError(f'{location}: unknown rule "{name}"', hint=nearest(name, known))
    return known[name]


def parse_severity(rule: RuleId, name: str, location: str) -> RuleSeverity:
    """Parse the severity of a rule.

    Raises ``UsageError`` that starts with ``location``. A rule about unknown input can be a warning, but not off.
    """
    try:
        severity = RuleSeverity(name)
    except ValueError:
        raise UsageError(f'{location}: unknown severity "{name}"', hint=", ".join(RuleSeverity)) from None
    if severity is RuleSeverity.OFF and rule.row.takes is OptionType.NOTHING:
        raise UsageError(f"{location}: {rule} cannot be turned off", hint=f"{RuleSeverity.WARN}, or waive it by name")
    return severity


def matches(pattern: str, text: str) -> bool:
    """Whether ``pattern`` matches the whole ``text``; ``*`` matches any characters, including none and slashes."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *middle, last = others
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        # The leftmost match leaves the most text for the remaining parts, so there is no need to backtrack.
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
