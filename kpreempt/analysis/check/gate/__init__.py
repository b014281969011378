"""The gate of a check: limits, what breaks them, and what lets it pass all the same."""

from kpreempt.analysis.check.gate.case import Facts, Objection, PodFacts
from kpreempt.analysis.check.gate.evaluate import (
    VARIABLES,
    CustomRule,
    Judged,
    evaluate,
    least,
    measured,
    passes,
    together,
    with_custom_rules,
)
from kpreempt.analysis.check.gate.excuses import (
    WAIVE,
    WAIVE_REASON,
    Accepted,
    Baseline,
    Excuses,
    Waiver,
    baseline_text,
    read_baseline,
    source_of,
    waiver_of_option,
    waivers_of_object,
)
from kpreempt.analysis.check.gate.rules import ForbiddenVictims, GateRules, Override, rule_named, severity_named

__all__ = [
    "VARIABLES",
    "WAIVE",
    "WAIVE_REASON",
    "Accepted",
    "Baseline",
    "CustomRule",
    "Excuses",
    "Facts",
    "ForbiddenVictims",
    "GateRules",
    "Judged",
    "Objection",
    "Override",
    "PodFacts",
    "Waiver",
    "baseline_text",
    "evaluate",
    "least",
    "measured",
    "passes",
    "read_baseline",
    "rule_named",
    "severity_named",
    "source_of",
    "together",
    "waiver_of_option",
    "waivers_of_object",
    "with_custom_rules",
]
