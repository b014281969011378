"""Records with their names replaced: for each type of record one function, made once from the types of its fields."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect
from msgspec.structs import force_setattr

from kpreempt.model import meta, pod, taints
from kpreempt.snapshot.decode import Record
from kpreempt.snapshot.redact import rules, spaces
from kpreempt.snapshot.redact.rules import Rule
from kpreempt.snapshot.redact.spaces import Renamer

# Equal parts of pods are one object (snapshot/sharing.py), so that what becomes of them need be found once only.
_SHARED_LISTS = (taints.Toleration, meta.OwnerReference, pod.ContainerPort, pod.PodCondition, pod.ContainerStatus)
_SHARED_RECORDS = (pod.ResourceRequirements,)
_TELLING_NOTHING = (inspect.IntType, inspect.BoolType, inspect.DateTimeType, inspect.LiteralType, inspect.NoneType)


def redacted(renamer: Renamer, kind: str, record: Record) -> Record:
    """The object with the names that the renamer gives; the input stays as it is."""
    metadata = record.metadata
    renamer.namespace = metadata.namespace
    name = rules.object_name(renamer, kind, metadata.name)
    type_of_record: type[msgspec.Struct] = type(record)
    new = rule_of(type_of_record)(renamer, record)
    # The copy is nobody else's yet.
    force_setattr(new.metadata, "name", name)
    return new


@cache
def rule_of(record: type[msgspec.Struct]) -> Rule:
    """What replaces a record of that type: always a new one, but for those of ``RECORDS``."""
    special = rules.RECORDS.get(record)
    if special is not None:
        return special
    fields = [(field.name, rule, field.default) for field, rule in _rules_of_fields(record) if rule is not None]

    def apply(renamer: Renamer, value: Any) -> Any:
        new = value.__copy__()
        for name, rule, default in fields:
            old = getattr(value, name)
            if old and old is not default:
                force_setattr(new, name, rule(renamer, old))
        return new

    return rules.remembered(apply) if record in _SHARED_RECORDS else apply


def unlisted_fields(record: type[msgspec.Struct]) -> list[str]:
    """The fields of a record, and of those within it, that hold text and have no rule; for a test."""
    found: list[str] = []
    for name, kind in _fields_of(record):
        if _declared(record, name) is None:
            below = _record_within(kind)
            if below is not None:
                found += [] if below in rules.RECORDS else unlisted_fields(below)
            elif _rule_of_type(kind) is _UNLISTED:
                found.append(f"{record.__name__}.{name}")
    return found


def _rules_of_fields(record: type[msgspec.Struct]) -> list[tuple[inspect.Field, Rule | None]]:
    return [(field, _declared(record, field.name) or _rule_of_type(field.type)) for field in _info(record).fields]


def _declared(record: type[msgspec.Struct], field: str) -> Rule | None:
    for each in record.__mro__:
        if field in (known := rules.FIELDS.get(each, {})):
            return known[field]
    return None


def _info(record: type[msgspec.Struct]) -> inspect.StructType:
    info = inspect.type_info(record)
    assert isinstance(info, inspect.StructType)
    return info


def _fields_of(record: type[msgspec.Struct]) -> list[tuple[str, inspect.Type]]:
    return [(field.name, field.type) for field in _info(record).fields]


def _record_within(kind: inspect.Type) -> type[msgspec.Struct] | None:
    """The record that a field holds, one or none or several of."""
    if isinstance(kind, inspect.UnionType):
        return next((found for each in kind.types if (found := _record_within(each))), None)
    if isinstance(kind, inspect.ListType):
        return _record_within(kind.item_type)
    return kind.cls if isinstance(kind, inspect.StructType) else None


def _rule_of_type(kind: inspect.Type) -> Rule | None:
    """The rule for a field of which only its type is known; ``None`` for what tells nothing."""
    if isinstance(kind, inspect.UnionType):
        kinds = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
        return _rule_of_type(kinds[0]) if len(kinds) == 1 else _UNLISTED
    if isinstance(kind, inspect.StructType):
        return rule_of(kind.cls)
    if isinstance(kind, inspect.ListType) and isinstance(kind.item_type, inspect.StructType):
        return _list_of(kind.item_type.cls)
    if isinstance(kind, inspect.DictType) and isinstance(kind.value_type, inspect.CustomType):
        return rules.AMOUNTS
    if isinstance(kind, (*_TELLING_NOTHING, inspect.CustomType)):
        return None
    return _UNLISTED


def _list_of(record: type[msgspec.Struct]) -> Rule:
    rule = rule_of(record)

    def apply(renamer: Renamer, value: Any) -> Any:
        return [rule(renamer, item) for item in value]

    return rules.remembered(apply) if record in _SHARED_LISTS else apply


def _unlisted(renamer: Renamer, value: Any) -> Any:
    """Text in whatever form, without knowing what it is for."""
    if isinstance(value, str):
        return renamer.rename(spaces.TEXT, value)
    if isinstance(value, list):
        return [_unlisted(renamer, item) for item in value]
    if isinstance(value, dict):
        return {_unlisted(renamer, key): _unlisted(renamer, item) for key, item in value.items()}
    return value


_UNLISTED: Callable[[Renamer, Any], Any] = _unlisted
