"""Which rules of a gate count for less than they do by default: what its settings let through."""

from __future__ import annotations

from collections.abc import Iterator

from kpreempt.analysis.check.gate.excuses import Excuses
from kpreempt.analysis.check.gate.rules import GateRules
from kpreempt.gate_rules import RuleId, RuleSeverity
from kpreempt.verdict.check import GateSource

_EVERYTHING = -1


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
