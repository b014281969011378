"""Redaction: a cluster with other names, on which every verdict is the same apart from the names.

Names, namespaces, labels, taints, images, resources and anything else that could identify the cluster become tokens,
which sort like the names if the order matters or is shown. Numbers that labels and taints are compared with stay, and
so do names that every cluster has. Times keep their ages but lose their dates. Records are walked by functions, one per
record type, which are built once from the types of its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import chain
from typing import Any

import msgspec
from msgspec import inspect
from msgspec.structs import force_setattr

from kpreempt.model import meta, pod, taints
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kinds import KINDS
from kpreempt.model.kueue import Topology, Workload
from kpreempt.snapshot.decode import Record
from kpreempt.snapshot.minimize import minimized
from kpreempt.snapshot.redact import kueue_rules, rules, spaces, well_known
from kpreempt.snapshot.redact.spaces import KnownNames, Renamer, RoundedImages, Rule
from kpreempt.snapshot.redact.times import Times, creation
from kpreempt.snapshot.redact.tokens import Names
from kpreempt.verdict import Assumption

_KIND_OF = {kind.record: kind.name for kind in KINDS.values()} | kueue_rules.KINDS

# Equal parts of pods are the same object (``PodDecoder``), so they only need to be redacted once.
_SHARED_LISTS = (taints.Toleration, meta.OwnerReference, pod.ContainerPort, pod.PodCondition, pod.ContainerStatus)
_SHARED_RECORDS = (pod.ResourceRequirements,)
_INSENSITIVE_TYPES = (inspect.IntType, inspect.BoolType, inspect.LiteralType, inspect.NoneType)


# The number of shared parts of records that are cached.
_REMEMBERED = 1_000_000


def redaction_of(
    cluster: ClusterSnapshot,
    taken_at: datetime,
    key: bytes,
    images: RoundedImages,
    *,
    queueing: Sequence[Record] = (),
) -> Redaction:
    """Build the tokens for all names of a cluster, as it was at ``taken_at``; walks all objects once.

    ``queueing`` are Kueue's objects.
    """
    records = (record for kind in KINDS.values() for record in getattr(cluster, kind.field))
    known = KnownNames(cluster)
    templates = [each.template for one in queueing if isinstance(one, Workload) for each in one.spec.pod_sets]
    known.add(ClusterSnapshot(pods=[pod.Pod(spec=each.spec) for each in templates]))
    known.places |= {level.node_label for each in queueing if isinstance(each, Topology) for level in each.spec.levels}
    return Redaction(chain(records, queueing), known, taken_at, key, images, kinds=cluster.skipped)


class Redaction:
    """The tokens for all names of objects."""

    def __init__(
        self,
        records: Iterable[Record],
        known: KnownNames,
        taken_at: datetime,
        key: bytes,
        images: RoundedImages,
        *,
        kinds: Iterable[str] = (),
    ) -> None:
        """Walk all records once, and the names of ``kinds``; ``known`` is what was collected from all records together.

        The random ``key``, up to 64 bytes, is used for this dump only: it orders the tokens whose order does not
        matter. ``images`` returns those of a node as exactly as scores need them. Times are relative to ``taken_at``.
        """
        self._names = Names(key)
        self._times = Times(taken_at)
        if known.has_groups:
            # The first space determines the form of pods' tokens.
            self._names.collect(spaces.MEMBER, "")
        renamer = Renamer(known, self._names.collect, self._names, self._times.collect, images)
        for record in records:
            redacted(renamer, _KIND_OF[type(record)], minimized(record))
        for name in kinds:
            self._names.collect(spaces.KIND, name)
        self._names.number()
        self._times.number()
        self._renamer = Renamer(known, self._names.token, self._names, self._times.token, images)

    def record(self, record: Record) -> Record:
        """Return an object of the cluster with its new names."""
        return redacted(self._renamer, _KIND_OF[type(record)], minimized(record))

    def key(self, kind: str, namespace: str, name: str) -> tuple[str, str]:
        """Return the new namespace and name of an object. Raises ``KeyError`` for one that was in no record."""
        self._renamer.namespace = namespace
        return self._names.token(spaces.NAMESPACE, namespace) if namespace else "", rules.object_name(
            self._renamer, kind, name
        )

    def time(self, time: datetime) -> datetime:
        """Return the replacement of a time, which has the same distance from the end."""
        return self._times.shifted(time)

    def skipped(self, skipped: Mapping[str, int]) -> dict[str, int]:
        """Return the counts of kinds that were skipped when the cluster was read."""
        return {self._names.token(spaces.KIND, name): count for name, count in skipped.items()}

    def assumptions(self, assumptions: Iterable[Assumption]) -> list[Assumption]:
        """Return the assumptions, reduced to what can be published: the kinds of objects that they are about."""
        message = "an assumption was made when the cluster was read; its text is redacted"
        words = ((each, each.subject.partition(" ")[0]) for each in assumptions)
        return [
            Assumption(word if word in well_known.KINDS else "cluster", "", message, each.kind) for each, word in words
        ]

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield every token with the original name."""
        return self._names.pairs()

    def times(self) -> Iterator[tuple[datetime, datetime]]:
        """Yield every replaced time with the original one."""
        return self._times.pairs()


def redacted(renamer: Renamer, kind: str, record: Record) -> Record:
    """Return a copy of the object with the renamer's names."""
    if len(renamer.memo) > _REMEMBERED:
        renamer.memo.clear()
    metadata = record.metadata
    renamer.namespace = metadata.namespace
    renamer.is_finished_renaming = isinstance(record, pod.Pod) and bool(record.spec.node_name)
    name = rules.object_name(renamer, kind, metadata.name)
    type_of_record: type[msgspec.Struct] = type(record)
    new = rule_of(type_of_record)(renamer, record)
    # The copy is not shared yet.
    force_setattr(new.metadata, "name", name)
    if metadata.creation_timestamp is not None:
        force_setattr(new.metadata, "creation_timestamp", creation(renamer, kind, metadata.creation_timestamp))
    return new


@cache
def rule_of(record: type[msgspec.Struct]) -> Rule:
    """Return the rule that replaces a record of that type: always with a copy, except for those of ``RECORDS``."""
    special = rules.RECORDS.get(record)
    if special is not None:
        return special
    fields = [
        (field.name, rule, field.default)
        for field in _info(record).fields
        if (rule := _declared(record, field.name) or _rule_of_type(field.type)) is not None
    ]

    def apply(renamer: Renamer, value: Any) -> Any:
        new = value.__copy__()
        for name, rule, default in fields:
            old = getattr(value, name)
            if old and old is not default:
                force_setattr(new, name, rule(renamer, old))
        return new

    return rules.remembered(apply) if record in _SHARED_RECORDS else apply


def unlisted_fields(record: type[msgspec.Struct]) -> list[str]:
    """List the fields of a record, including nested ones, that hold text and have no rule; for a test."""
    found: list[str] = []
    for field in _info(record).fields:
        name, kind = field.name, field.type
        if _declared(record, name) is None:
            below = _record_within(kind)
            if below is not None:
                found += [] if below in rules.RECORDS else unlisted_fields(below)
            elif _rule_of_type(kind) is _UNLISTED:
                found.append(f"{record.__name__}.{name}")
    return found


def _declared(record: type[msgspec.Struct], field: str) -> Rule | None:
    known = (rules.FIELDS.get(each, {}) for each in record.__mro__)
    return next((of_record[field] for of_record in known if field in of_record), None)


def _info(record: type[msgspec.Struct]) -> inspect.StructType:
    info = inspect.type_info(record)
    assert isinstance(info, inspect.StructType)
    return info


def _record_within(kind: inspect.Type) -> type[msgspec.Struct] | None:
    """Return the record type of a field with one or more records, if it has any."""
    if isinstance(kind, inspect.UnionType):
        return next((found for each in kind.types if (found := _record_within(each))), None)
    if isinstance(kind, inspect.ListType):
        return _record_within(kind.item_type)
    return kind.cls if isinstance(kind, inspect.StructType) else None


def _rule_of_type(kind: inspect.Type) -> Rule | None:
    """Return the rule for a field by its type alone; ``None`` if the type reveals nothing."""
    if isinstance(kind, inspect.UnionType):
        kinds = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
        return _rule_of_type(kinds[0]) if len(kinds) == 1 else _UNLISTED
    if isinstance(kind, inspect.StructType):
        return rule_of(kind.cls)
    if isinstance(kind, inspect.ListType) and isinstance(kind.item_type, inspect.StructType):
        record, rule = kind.item_type.cls, rule_of(kind.item_type.cls)

        def apply(renamer: Renamer, value: Any) -> Any:
            return [rule(renamer, item) for item in value]

        return rules.remembered(apply) if record in _SHARED_LISTS else apply
    if isinstance(kind, inspect.DictType) and isinstance(kind.value_type, inspect.CustomType):
        return spaces.AMOUNTS
    if isinstance(kind, inspect.DateTimeType):
        return Renamer.time
    return None if isinstance(kind, (*_INSENSITIVE_TYPES, inspect.CustomType)) else _UNLISTED


def _unlisted(renamer: Renamer, value: Any) -> Any:
    """Redact text in any form, without knowing its purpose."""
    if isinstance(value, str):
        return renamer.rename(spaces.TEXT, value)
    if isinstance(value, list):
        return [_unlisted(renamer, item) for item in value]
    if isinstance(value, dict):
        return {_unlisted(renamer, key): _unlisted(renamer, item) for key, item in value.items()}
    return value


_UNLISTED: Callable[[Renamer, Any], Any] = _unlisted
