"""The JSON Schema of what ``-o json``, ``yaml`` and ``jsonl`` print; ``verdict.schema.json`` is this, written down."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

import msgspec

from kpreempt.gate_rules import RuleId
from kpreempt.report.document import KIND
from kpreempt.verdict import (
    API_VERSION,
    Comparison,
    PendingPods,
    PodsAtRisk,
    PreemptionsOfPod,
    SchedulingQueueState,
    Verdict,
    VerdictList,
)
from kpreempt.verdict.budget_audit import BudgetAudit
from kpreempt.verdict.check import Check
from kpreempt.verdict.plugin_list import SchedulerPlugins
from kpreempt.verdict.volcano import GangAnswer, GangAnswers, SessionAnswer, SessionVerdict

SCHEMA_FILE = "verdict.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
# The records that are documents of their own, each with its kind.
_DOCUMENTS: dict[type[msgspec.Struct], str] = {
    Verdict: KIND,
    VerdictList: "VerdictList",
    PendingPods: "PendingPods",
    PreemptionsOfPod: "PreemptionsOfPod",
    PodsAtRisk: "PodsAtRisk",
    BudgetAudit: "BudgetAudit",
    Check: "Check",
    SchedulingQueueState: "SchedulingQueue",
    Comparison: "Comparison",
    SchedulerPlugins: "SchedulerPlugins",
    SessionVerdict: "VolcanoSessionVerdict",
    SessionAnswer: "VolcanoSession",
    GangAnswer: "VolcanoJobVerdict",
    GangAnswers: "VolcanoJobVerdicts",
}
_REFERENCE = "#/$defs/{name}"


def verdict_schema() -> dict[str, Any]:
    """The schema of a document of any kind. Unknown keys are allowed: the version may gain fields."""
    alternatives, definitions = msgspec.json.schema_components(list(_DOCUMENTS), ref_template=_REFERENCE)
    for definition in definitions.values():
        if "description" in definition:
            definition["description"] = cleandoc(definition["description"])
    rules = "\n".join(f"``{rule}``: {rule.row.meaning}" for rule in RuleId)
    definitions["RuleId"]["description"] = f"A rule, by its name, which stays from version to version.\n\n{rules}"
    for record, kind in _DOCUMENTS.items():
        _fix_kind(definitions[record.__name__], kind)
    return {
        "$schema": _DIALECT,
        "$id": f"https://{API_VERSION}/{SCHEMA_FILE}",
        "title": "kpreempt verdicts",
        "oneOf": list(alternatives),
        "$defs": definitions,
    }


def _fix_kind(definition: dict[str, Any], kind: str) -> None:
    """Say that a document always states its version and kind; the records have them only once they are printed."""
    definition["properties"]["apiVersion"] = {"const": API_VERSION}
    definition["properties"]["kind"] = {"const": kind}
    definition["required"] = sorted({*definition["required"], "apiVersion", "kind"})
