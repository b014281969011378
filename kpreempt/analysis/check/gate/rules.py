"""What a gate allows: limits for all, others for a namespace or a workload, and who must not be a victim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kpreempt.errors import UsageError, nearest
from kpreempt.gate_rules import RuleId, RuleSeverity, Takes
from kpreempt.model.labels import LabelSelector


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """Other limits for what is of a namespace, or of a workload (``Deployment shop/api``); ``*`` is any text.

    Where both are given, both must match. ``limits`` has the rules that it replaces; ``None`` switches one off. What is
    of a namespace or workload is, for rules about victims, the victim; for those about pods that wait, the pod; for
    budgets the budget, which is of no workload.
    """

    namespace: str = ""
    workload: str = ""
    limits: Mapping[RuleId, int | None] = {}

    @property
    def name(self) -> str:
        """What it is for, in words that stay the same from run to run."""
        parts = (f"namespace {self.namespace}" if self.namespace else "", self.workload)
        return ", ".join(part for part in parts if part)

    def covers(self, namespace: str, workload: str) -> bool:
        """Whether it is about what is of this namespace and workload."""
        of_namespace = not self.namespace or matches(self.namespace, namespace)
        return of_namespace and (not self.workload or matches(self.workload, workload))


class ForbiddenVictims(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that must not be victims: those for which all holds that is given. ``*`` in names is any text."""

    namespace: str = ""
    selector: LabelSelector | None = None
    priority_class: str = ""

    @property
    def name(self) -> str:
        """What it forbids, in a few words."""
        parts = [f"namespace {self.namespace}"] if self.namespace else []
        parts += [f"label {self.selector}"] if self.selector is not None else []
        parts += [f"priority class {self.priority_class}"] if self.priority_class else []
        return ", ".join(parts)


class GateRules(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of all rules, ``None`` where one is off, with the overrides, of which the last that matches wins.

    Rules that only hold or not have the limit 0. A rule that ``limits`` or ``severities`` do not name has its default.
    Where it is ``report_only``, no rule is more than a warning. ``command`` is the one that asks them.
    """

    limits: Mapping[RuleId, int | None] = {}
    overrides: Sequence[Override] = ()
    forbidden: Sequence[ForbiddenVictims] = ()
    severities: Mapping[RuleId, RuleSeverity] = {}
    report_only: bool = False
    command: str = "check"

    @property
    def asked(self) -> list[RuleId]:
        """The rules that the command asks, in their order."""
        return [rule for rule in RuleId if self.command in rule.row.commands]

    def severity_of(self, rule: RuleId) -> RuleSeverity:
        """What the rule counts for."""
        found = self.severities.get(rule, rule.row.severity)
        return RuleSeverity.WARN if self.report_only and found is RuleSeverity.ERROR else found

    def general(self, rule: RuleId) -> int | None:
        """The limit where no override matches, or ``None``."""
        is_off = self.severity_of(rule) is RuleSeverity.OFF
        if is_off or (rule is RuleId.FORBID_VICTIMS and not self.forbidden):
            return None
        return self.limits.get(rule, rule.row.default)

    def group_of(self, rule: RuleId, namespace: str, workload: str) -> int:
        """The index of the override that decides about what is of this namespace and workload, -1 for none."""
        for index in range(len(self.overrides) - 1, -1, -1):
            if rule in self.overrides[index].limits and self.overrides[index].covers(namespace, workload):
                return index
        return -1

    def limit_of(self, rule: RuleId, group: int) -> int | None:
        """The limit in a group, as ``group_of`` tells it, or ``None`` where the rule is off."""
        if group < 0 or self.severity_of(rule) is RuleSeverity.OFF:
            return self.general(rule)
        return self.overrides[group].limits[rule]

    def is_on(self, rule: RuleId) -> bool:
        """Whether the rule can fail for anything at all."""
        groups = (index for index, each in enumerate(self.overrides) if rule in each.limits)
        return any(self.limit_of(rule, group) is not None for group in (-1, *groups))


def find_rule(name: str, where: str, custom: Sequence[RuleId] = ()) -> RuleId:
    """The rule of that name, of those that come with kpreempt and the ``custom`` ones.

    Raises ``UsageError`` that begins with ``where``, with the nearest name as advice.
    """
    known: dict[str, RuleId] = {str(rule): rule for rule in (*RuleId, *custom)}
    if name not in known:
        raise UsageError(f'{where}: there is no rule "{name}"', hint=nearest(name, known))
    return known[name]


def parse_severity(rule: RuleId, name: str, where: str) -> RuleSeverity:
    """What a rule is to count for. Raises ``UsageError`` that begins with ``where``.

    What is not known may be a warning, but not left untold.
    """
    try:
        severity = RuleSeverity(name)
    except ValueError:
        raise UsageError(f'{where}: there is no severity "{name}"', hint=", ".join(RuleSeverity)) from None
    if severity is RuleSeverity.OFF and rule.row.takes is Takes.NOTHING:
        raise UsageError(f"{where}: {rule} cannot be switched off", hint=f"{RuleSeverity.WARN}, or waive it by name")
    return severity


def matches(pattern: str, text: str) -> bool:
    """Whether the whole ``text`` is what ``pattern`` says; ``*`` stands for any characters, also none or a slash."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *middle, last = others
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        # The earliest place is as good as any other: what follows then has the most room.
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
