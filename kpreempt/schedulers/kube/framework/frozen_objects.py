"""The records of a cluster as out-of-tree plugins see them: kind by kind, frozen when they are first asked for."""

from __future__ import annotations

from typing import Any

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.frozen import FrozenList, frozen

# By its identity a record, which so stays the one with this identity, and the record frozen.
_Frozen = dict[int, tuple[Any, Any]]


class FrozenObjects:
    """A ``ClusterSnapshot`` to its readers. Records that ``before`` has frozen are not frozen again."""

    def __init__(self, cluster: ClusterSnapshot, before: FrozenObjects | None = None) -> None:
        self._cluster = cluster
        self._frozen: dict[str, _Frozen] = {}
        self._before: dict[str, _Frozen] = {} if before is None else before._before | before._frozen

    def __getattr__(self, field: str) -> Any:
        # Called only for what was not asked for yet.
        value = getattr(self._cluster, field)
        if isinstance(value, list) and value and isinstance(value[0], msgspec.Struct):
            seen = self._freeze(value, self._before.pop(field, {}))
            self._frozen[field] = seen
            found: Any = FrozenList([seen[id(record)][1] for record in value])
        else:
            found = frozen(value)
        self.__dict__[field] = found
        return found

    @staticmethod
    def _freeze(records: list[Any], known: _Frozen) -> _Frozen:
        seen: _Frozen = {}
        for record in records:
            seen[id(record)] = known.get(id(record)) or (record, frozen(record))
        return seen
