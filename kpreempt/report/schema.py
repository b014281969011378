"""The JSON Schema of ``-o json``, ``yaml`` and ``jsonl`` output; ``verdict.schema.json`` is generated from it."""

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
    """The schema of a document of any kind. Unknown keys are allowed, because the version may gain fields."""
    documents = {row.record_type: kind for row in ROWS if (kind := _kind(row.record_type))}
    alternatives, definitions = msgspec.json.schema_components(list(documents), ref_template=_REFERENCE)
    for definition in definitions.values():
        if "description" in definition:
            definition["description"] = cleandoc(definition["description"])
    rules = "\n".join(f"``{rule}``: {rule.row.meaning}" for rule in RuleId)
    # Custom rules have other names.
    definitions["RuleId"] = {
        "type": "string",
        "title": "RuleId",
        "examples": list(RuleId),
        "description": "A rule, by its name, which is stable across versions; or a custom rule from"
        f" kpreempt.toml.\n\n{rules}",
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
    """The kind of documents of this record; ``None`` if the record is not a document."""
    kinds = [field.default for field in msgspec.structs.fields(record) if field.name == "kind"]
    return kinds[0] or KIND if kinds else None


def _fix_kind(definition: dict[str, Any], kind: str) -> None:
    """Declare the version and kind as required constants; records only get them when they are printed."""
    definition["properties"]["apiVersion"] = {"const": API_VERSION}
    definition["properties"]["kind"] = {"const": kind}
    definition["required"] = sorted({*definition["required"], "apiVersion", "kind"})
