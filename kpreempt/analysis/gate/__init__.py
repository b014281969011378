"""The gate of a check: rules, what breaks them, and what lets it pass all the same."""

from kpreempt.analysis.gate.baseline import Accepted, Baseline, baseline_text, read_baseline
from kpreempt.analysis.gate.evaluate import Excuses, evaluate, measured, passes
from kpreempt.analysis.gate.facts import Facts, PodFacts
from kpreempt.analysis.gate.rules import (
    ForbiddenVictims,
    GateRules,
    Override,
    rule_named,
)
from kpreempt.analysis.gate.several import Judged, least, together
from kpreempt.analysis.gate.waivers import WAIVE, WAIVE_REASON, Waiver, waiver_of_option, waivers_of_object

__all__ = [
    "WAIVE",
    "WAIVE_REASON",
    "Accepted",
    "Baseline",
    "Excuses",
    "Facts",
    "ForbiddenVictims",
    "GateRules",
    "Judged",
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
    "together",
    "waiver_of_option",
    "waivers_of_object",
]
