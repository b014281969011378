"""Arbitrary verdicts, built from the records' own types, including those that no scheduler would return."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from kpreempt.verdict import Verdict
from kpreempt.verdict.node_report import NodeHealth, NodeState
from kpreempt.verdict.remedies import Cause, CauseKind, Change, ChangeKind

# Few names, so that the parts of a verdict often refer to the same node; some of them hostile.
NAMES = (
    "node-a",
    "node-b",
    "shop/api-7f9",
    "cpu",
    "memory",
    "pods",
    "NodeResourcesFit",
    "prioritySum",
    "latestStart",
    "delete",
    "bind",
    "",
    "a very long name that does not fit anywhere " * 3,
    "gke-prod-cluster-default-pool-9a8b7c6d-x1y2-with-a-name-that-goes-on-and-on-for-ever",
    "\x1b[31mred\x1b[0m",
    "right-to-left \u202e mark",
    "two\nlines",
    "`tick` | pipe | <b> * _ # @someone [x](http://example.com)",
    "名前",
)
_TEXTS = st.sampled_from(NAMES) | st.text(max_size=12)
_MAX_ITEMS = 3
_RECORDS: dict[type, st.SearchStrategy[Any]] = {}


_AMOUNTS = st.integers(0, 2**40)

_SCALARS: dict[type[inspect.Type], st.SearchStrategy[Any]] = {
    inspect.StrType: _TEXTS,
    inspect.IntType: st.integers(-5, 3000) | st.integers(-(2**63), 2**63 - 1),
    inspect.FloatType: st.sampled_from([-1.0, 0.0, 0.5, 90.0, 3333.4, 2.0**40]),
    inspect.BoolType: st.booleans(),
    inspect.NoneType: st.none(),
    # The new value of a field.
    inspect.AnyType: st.none() | _TEXTS | st.booleans() | _AMOUNTS | st.dictionaries(_TEXTS, _AMOUNTS, max_size=2),
    inspect.DateTimeType: st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - the bounds are naive by contract
}


def _strategy(kind: inspect.Type) -> st.SearchStrategy[Any]:
    if type(kind) in _SCALARS:
        return _SCALARS[type(kind)]
    match kind:
        case inspect.EnumType():
            return st.sampled_from(list(kind.cls))
        case inspect.ListType():
            return st.lists(_strategy(kind.item_type), max_size=_MAX_ITEMS)
        case inspect.DictType():
            return st.dictionaries(_strategy(kind.key_type), _strategy(kind.value_type), max_size=_MAX_ITEMS)
        case inspect.UnionType():
            return st.one_of(*(_strategy(each) for each in kind.types))
        case inspect.StructType():
            # Some records contain records of their own kind.
            if kind.cls not in _RECORDS:
                _RECORDS[kind.cls] = st.deferred(lambda: _record(kind))
            return _RECORDS[kind.cls]
    raise NotImplementedError(str(kind))


def _record(kind: inspect.StructType) -> st.SearchStrategy[Any]:
    fields = {field.name: _strategy(field.type) for field in kind.fields}
    return st.fixed_dictionaries(fields).map(lambda values: _valid(kind.cls(**values)))


def _valid(record: Any) -> Any:
    """The record with the fields that its kind always has."""
    if isinstance(record, Change) and record.kind is ChangeKind.ADD_NODE and not isinstance(record.value, dict):
        return msgspec.structs.replace(record, value={"cpu": 1000})
    if isinstance(record, Cause) and record.kind is CauseKind.PARTS:
        return msgspec.structs.replace(record, amounts={**record.amounts, "total": sum(record.amounts.values())})
    if isinstance(record, Cause) and record.kind is CauseKind.RESERVED:
        amounts = {"allocatable": 3, "capacity": 4}
        return msgspec.structs.replace(record, nodes=record.nodes or ["a"], amounts=amounts)
    if isinstance(record, NodeHealth):
        return msgspec.structs.replace(record, states=record.states or [NodeState.NOT_READY])
    return record


def verdicts(**fixed: Any) -> st.SearchStrategy[Verdict]:
    """Verdicts of every outcome with any content; ``fixed`` sets fields."""
    return _strategy(inspect.type_info(Verdict)).map(lambda verdict: msgspec.structs.replace(verdict, **fixed))
