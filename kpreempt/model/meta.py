"""Object metadata: identity, labels, owners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

import msgspec

from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS, Few

# The API's times always have an offset; a time without one could not be compared with the others.
Time = Annotated[datetime, msgspec.Meta(tz=True)]
_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


# The namespace of an object that has none.
DEFAULT_NAMESPACE = "default"

# Annotation of the documents that dumps keep completely, with digests.
SALT = "kpreempt.io/salt"

# The annotation in which ``kubectl apply`` keeps the full manifest.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class OwnerReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The owner of an object; ``controller`` marks the managing one."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False


# The API server allows at most 253 characters. Reports repeat names, so an unlimited one would blow them up.
Name = Annotated[str, msgspec.Meta(max_length=100_000)]


class ObjectMeta(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Metadata without annotations, for pods, which are numerous, and for kinds whose annotations don't matter."""

    name: Name = ""
    namespace: Name = ""
    uid: Name = ""
    resource_version: str = ""
    labels: dict[str, str] = NO_ENTRIES
    owner_references: Few[OwnerReference] = NO_ITEMS
    finalizers: Few[str] = NO_ITEMS
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    generation: int = 0


class AnnotatedMeta(ObjectMeta, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Metadata of the kinds whose annotations a scheduler reads."""

    annotations: dict[str, str] = NO_ENTRIES


class Keyed:
    """An object in a namespace."""

    __slots__ = ()
    metadata: ObjectMeta

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


_Meta = TypeVar("_Meta", bound=ObjectMeta)
_Record = TypeVar("_Record", bound=msgspec.Struct)
_Item = TypeVar("_Item")
_Key = TypeVar("_Key")


def with_creation_time(meta: _Meta, now: datetime) -> _Meta:
    """Return the metadata with ``now`` as the creation time, unless it has one."""
    return meta if meta.creation_timestamp is not None else msgspec.structs.replace(meta, creation_timestamp=now)


class ObjectName(NamedTuple):
    """The identity of an object in a cluster; its ``namespace`` is empty if it has none."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """``Deployment shop/web``, ``Node n1``."""
        return f"{self.kind} {slashed(self.namespace, self.name)}"

    @classmethod
    def of(cls, kind: str, meta: ObjectMeta) -> ObjectName:
        """Return the name of the object with this metadata."""
        return cls(kind, meta.namespace, meta.name)

    @classmethod
    def parse(cls, text: str) -> ObjectName:
        """Return the name that was written as ``Deployment shop/web``."""
        kind, _, key = text.partition(" ")
        namespace, _, name = key.rpartition("/")
        return cls(kind, namespace, name)

    def may_be(self, kind: str, record: Any) -> bool:
        """Return whether the record is this object, in any namespace."""
        return (kind, record.metadata.name) == (self.kind, self.name)

    def is_of(self, kind: str, record: Any) -> bool:
        """Return whether the record is this object."""
        return ObjectName.of(kind, record.metadata) == self


def slashed(*parts: str | None) -> str:
    """Join the parts that are not empty with slashes: ``namespace/name``, as far as they are known."""
    return "/".join(filter(None, parts))


def owner_name(meta: ObjectMeta) -> ObjectName | None:
    """Return the managing owner, or ``None``; it is in the namespace of the object."""
    owner = controller_of(meta)
    return ObjectName(owner.kind, meta.namespace, owner.name) if owner is not None else None


def controller_name(meta: ObjectMeta) -> str:
    """Return kind and name of the managing owner, like ``ReplicaSet api``, or an empty string."""
    owner = controller_of(meta)
    return f"{owner.kind} {owner.name}" if owner else ""


class HasOwners(Protocol):
    """Metadata with the owners of an object."""

    @property
    def owner_references(self) -> Sequence[OwnerReference]:
        """All owners; at most one is the managing one."""


def controller_of(meta: HasOwners) -> OwnerReference | None:
    """Return the managing owner, or ``None``."""
    # A loop, because this runs for every pod of a big cluster.
    for owner in meta.owner_references:
        if owner.controller:
            return owner
    return None


def replace_in(record: _Record, part: str, **changes: object) -> _Record:
    """Return the record with changed fields in its ``metadata``, ``spec`` or ``status``."""
    return msgspec.structs.replace(record, **{part: msgspec.structs.replace(getattr(record, part), **changes)})


def grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    """Group the items by key, keeping the order of keys and items."""
    found: dict[_Key, list[_Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def later(time: datetime, seconds: float) -> datetime:
    """Return the time some seconds later, limited to the range of times that Python supports."""
    try:
        return time + timedelta(seconds=seconds)
    except OverflowError:
        return _LAST if seconds > 0 else _FIRST
