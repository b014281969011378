"""Object metadata: identity, labels, owners."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypeVar

import msgspec

from kpreempt.model.frozen import NO_ENTRIES, NO_ITEMS, Few

# The API's times always say their offset; one without could not be compared with the others.
Time = Annotated[datetime, msgspec.Meta(tz=True)]
_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


# Where an object is that does not say its namespace.
DEFAULT_NAMESPACE = "default"

# The annotation in which ``kubectl apply`` keeps the whole manifest.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class OwnerReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Who owns an object; ``controller`` marks the managing one."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False


# The API server has 253 characters at most. Reports repeat names, and would be as long as one that has no bound.
Name = Annotated[str, msgspec.Meta(max_length=100_000)]


class ObjectMeta(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Metadata without annotations: of pods, of which there are many, and of what needs none."""

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
    """The metadata of an object that was created ``now``, unless it says when it was."""
    return meta if meta.creation_timestamp is not None else msgspec.structs.replace(meta, creation_timestamp=now)


def controller_name(meta: ObjectMeta) -> str:
    """``ReplicaSet api``: kind and name of the owner that manages the object, or an empty text."""
    owner = controller_of(meta)
    return f"{owner.kind} {owner.name}" if owner else ""


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """The owner that manages the object, or ``None``."""
    return next((owner for owner in meta.owner_references if owner.controller), None)


def replace_in(record: _Record, part: str, **changes: object) -> _Record:
    """The record with other fields in a part of it: its ``metadata``, ``spec`` or ``status``."""
    return msgspec.structs.replace(record, **{part: msgspec.structs.replace(getattr(record, part), **changes)})


def grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    """The items by their key, both in the order in which they come."""
    found: dict[_Key, list[_Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def later(time: datetime, seconds: float) -> datetime:
    """The time so many seconds on; the last or the first that there is where that is beyond it."""
    try:
        return time + timedelta(seconds=seconds)
    except OverflowError:
        return _LAST if seconds > 0 else _FIRST
