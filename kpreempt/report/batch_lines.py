"""The lines of ``kpreempt batch``: verdicts with the field names of the recorded conformance suites.

The suites are compared with these lines, so fields and values keep their names here if other documents rename them.
``FIELDS`` and ``VALUES`` list these names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, get_args

import msgspec

from kpreempt.report.escape import printable_json
from kpreempt.verdict import Alternatives, AssumptionKind, BudgetUse, ExtenderCall, Outcome, Reprieve, Verdict
from kpreempt.verdict.details import InsufficientDevices, NodeNameMismatch
from kpreempt.verdict.volcano import Attempt, Vote, VoteEffect

# For each record, the keys of renamed fields in a line.
FIELDS: Mapping[type[msgspec.Struct], Mapping[str, str]] = {
    Verdict: {"permanently_unschedulable": "refusedForGood"},
    Alternatives: {"omitted": "untold"},
    BudgetUse: {"remaining": "left"},
    Reprieve: {"is_reprieved": "kept"},
    NodeNameMismatch: {"node_name": "wanted"},
    InsufficientDevices: {"requested": "wanted"},
    ExtenderCall: {"nodes_sent": "asked", "rejected": "refused", "added": "letIn", "removed": "dropped"},
    Attempt: {"explanations": "because", "rejected": "refused"},
    Vote: {"remaining": "left", "rejected": "refused"},
}
# For each enumeration, the renamed values in a line.
VALUES: Mapping[StrEnum, str] = {
    Outcome.UNSCHEDULABLE: "NeverLands",
    Outcome.WAITS_FOR_VICTIMS: "NeverLands",
    AssumptionKind.UNMODELED: "NotModelled",
    AssumptionKind.SKIPPED: "SetAside",
    AssumptionKind.INFORMATIONAL: "Told",
    VoteEffect.INTERSECTED: "Kept",
}


def encode_line(record: msgspec.Struct) -> str:
    """The record as JSON on one line, with a line's names and without characters that control a terminal."""
    return printable_json(msgspec.json.encode(_renamed(record)).decode())


def _renamed(value: Any) -> Any:
    """The value with a line's names; the same object if nothing in it is renamed."""
    kind: Any = type(value)
    if kind is list or kind is dict:
        before = value if kind is list else value.values()
        after = [_renamed(each) for each in before]
        if all(one is other for one, other in zip(before, after, strict=True)):
            return value
        return after if kind is list else dict(zip(value, after, strict=True))
    if isinstance(value, StrEnum):
        return VALUES.get(value, value)
    return _renamed_record(value) if isinstance(value, msgspec.Struct) and _has_renamed(kind) else value


def _renamed_record(record: msgspec.Struct) -> Any:
    kind: Any = type(record)
    line = _LineOf.of(kind)
    changed = {}
    for name, default in line.looked_at:
        before = getattr(record, name)
        # Keep defaults unchanged, so that they are still omitted.
        if before is not default:
            after = _renamed(before)
            if after is not before:
                changed[name] = after
    if not changed and kind not in FIELDS:
        return record
    values = {name: getattr(record, name) for name in kind.__struct_fields__}
    return line.record(**{**values, **changed})


class _LineOf(msgspec.Struct, frozen=True):
    """The line format of a record: ``record`` has its fields, and those in ``looked_at`` may need renaming."""

    record: Any
    looked_at: list[tuple[str, Any]]

    @staticmethod
    @cache
    def of(kind: type[msgspec.Struct]) -> _LineOf:
        """The line format of a record."""
        config, names = kind.__struct_config__, FIELDS.get(kind, {})
        fields = msgspec.structs.fields(kind)
        record = msgspec.defstruct(
            kind.__name__,
            [(each.name, Any, _field(each, names.get(each.name, each.encode_name))) for each in fields],
            omit_defaults=config.omit_defaults,
            tag_field=config.tag_field,
            tag=config.tag,
            kw_only=True,
        )
        looked_at = [
            (each.name, each.default if config.omit_defaults else msgspec.NODEFAULT)
            for each in fields
            if any(map(_has_renamed, _kinds_in(each.type)))
        ]
        return _LineOf(record, looked_at)


def _field(field: msgspec.structs.FieldInfo, name: str) -> Any:
    """A field with the default of another field."""
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=field.default_factory, name=name)
    return msgspec.field(default=field.default, name=name)


@cache
def _has_renamed(kind: Any) -> bool:
    """Whether a value of this type may contain a renamed name."""
    return kind in FIELDS or kind in map(type, VALUES) or any(map(_has_renamed, _kinds_of_fields(kind)))


def _kinds_of_fields(kind: Any) -> Iterator[Any]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for each in msgspec.structs.fields(kind):
            yield from _kinds_in(each.type)


def _kinds_in(annotation: Any) -> Iterator[Any]:
    """The types in an annotation."""
    arguments = get_args(annotation)
    if not arguments:
        yield annotation
    for each in arguments:
        yield from _kinds_in(each)
