"""The JSON Schema of what ``-o json``, ``yaml`` and ``jsonl`` print; ``verdict.schema.json`` is this, written down."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

import msgspec

from kpreempt.gate_rules import RuleId
from kpreempt.report.answers import ROWS
from kpreempt.report.document import KIND
from kpreempt.verdict import API_VERSION

SCHEMA_FILE = "verdict.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "#/$defs/{name}"


def verdict_schema() -> dict[str, Any]:
    """The schema of a document of any kind. Unknown keys are allowed: the version may gain fields."""
    documents = {row.record_type: kind for row in ROWS if (kind := _kind(row.record_type))}
    alternatives, definitions = msgspec.json.schema_components(list(documents), ref_template=_REFERENCE)
    for definition in definitions.values():
        if "description" in definition:
            definition["description"] = cleandoc(definition["description"])
    rules = "\n".join(f"``{rule}``: {rule.row.meaning}" for rule in RuleId)
    # A rule of one's own has another name.
    definitions["RuleId"] = {
        "type": "string",
        "title": "RuleId",
        "examples": list(RuleId),
        "description": "A rule, by its name, which stays from version to version, or one of the user's own, which"
        f" kpreempt.toml has.\n\n{rules}",
    }
    for record, kind in documents.items():
        _fix_kind(definitions[record.__name__], kind)
    return {
        "$schema": _DIALECT,
        "$id": f"https://{API_VERSION}/{SCHEMA_FILE}",
        "title": "kpreempt verdicts",
        "oneOf": list(alternatives),
        "$defs": definitions,
    }


def _kind(record: type[msgspec.Struct]) -> str | None:
    """What a document of this record says it is; ``None`` for a record that is none."""
    kinds = [field.default for field in msgspec.structs.fields(record) if field.name == "kind"]
    return kinds[0] or KIND if kinds else None


def _fix_kind(definition: dict[str, Any], kind: str) -> None:
    """Say that a document always states its version and kind; the records have them only once they are printed."""
    definition["properties"]["apiVersion"] = {"const": API_VERSION}
    definition["properties"]["kind"] = {"const": kind}
    definition["required"] = sorted({*definition["required"], "apiVersion", "kind"})
