"""Which assumptions shut a gate, and under which rule."""

from __future__ import annotations

from kpreempt.gate_rules import RuleId
from kpreempt.verdict import Assumption, AssumptionKind

_BUDGETS = "PodDisruptionBudget"
_RULES = {
    AssumptionKind.NOT_MODELLED: RuleId.FIELDS_NOT_MODELLED,
    # Objects that could not be read are left out as bad ones are.
    AssumptionKind.UNREADABLE: RuleId.OBJECTS_SET_ASIDE,
    AssumptionKind.SET_ASIDE: RuleId.OBJECTS_SET_ASIDE,
    AssumptionKind.UNCERTAIN: RuleId.OUTCOME_UNCERTAIN,
}


def rule_about(assumption: Assumption) -> RuleId | None:
    """The rule that the assumption breaks, or ``None`` where only how something is told rests on it.

    One about the kind of budgets as a whole is about the budgets, also where a dump does not say what it was.
    """
    if assumption.kind is AssumptionKind.TOLD:
        return None
    is_kind = assumption.subject == _BUDGETS and assumption.field in ("", "list")
    if is_kind or (assumption.kind is AssumptionKind.UNREADABLE and assumption.subject == _BUDGETS):
        return RuleId.BUDGETS_UNREADABLE
    return _RULES[assumption.kind]
