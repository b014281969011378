"""The JSON Schema of what ``-o json``, ``yaml`` and ``jsonl`` print; ``verdict.schema.json`` is this, written down."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

import msgspec

from kpreempt.report.document import KIND
from kpreempt.verdict import API_VERSION, Verdict, VerdictList

SCHEMA_FILE = "verdict.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "#/$defs/{name}"


def verdict_schema() -> dict[str, Any]:
    """The schema of a ``Verdict`` or a ``VerdictList``. Unknown keys are allowed: the version may gain fields."""
    alternatives, definitions = msgspec.json.schema_components([Verdict, VerdictList], ref_template=_REFERENCE)
    for definition in definitions.values():
        if "description" in definition:
            definition["description"] = cleandoc(definition["description"])
    _fix_kind(definitions["Verdict"], KIND)
    _fix_kind(definitions["VerdictList"], "VerdictList")
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
