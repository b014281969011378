"""The content of a recording: changes, and data about a base in addition to its objects; and the current cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from kpreempt.model.frozen import NO_ENTRIES
from kpreempt.model.meta import Time
from kpreempt.snapshot.kinds import RECORDED


class ChangeType(StrEnum):
    """An event: a change of an object, or of the recording itself."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    # The kind was listed again; only the final state of the changes since the previous version is known.
    GAP = "GAP"
    # The kind may not be read any more; ``status`` is HTTP's.
    UNREAD = "UNREAD"
    # Another scheduler, ``name``, holds the lease; empty if unknown.
    SCHEDULER = "SCHEDULER"
    # Nothing has changed, and everything was watched up to here.
    ALIVE = "ALIVE"


OBJECT_CHANGES = (ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED)


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change, as it was seen. ``version`` is its resource version; versions increase within a cluster.

    A gap begins after the version ``since``. ``object`` is the object after the change, as in dumps; it is absent if
    the object was deleted.
    """

    what: ChangeType
    seen: Time
    kind: str = ""
    namespace: str = ""
    name: str = ""
    version: int = 0
    since: int = 0
    status: int = 0
    object: msgspec.Raw = msgspec.Raw(b"null")


class Order(msgspec.Struct, frozen=True, array_like=True):
    """The pods of a node in the order of a scheduler's cache: ``namespace/name`` by position, empty if unknown.

    ``unplaced`` are the pods at the unknown positions.
    """

    places: Sequence[str]
    unplaced: Sequence[str]

    @property
    def is_sound(self) -> bool:
        """Whether each pod has a single position; files may contain anything."""
        pods = [*filter(None, self.places), *self.unplaced]
        return len(pods) == len(self.places) == len(set(pods))


class BaseEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known at a base in addition to its objects.

    ``versions`` are the resource versions at which each kind was listed, or up to which it was watched. ``holder`` is
    the holder of the scheduler's lease, empty if unknown. ``orders`` has the nodes whose order is known. ``continues``
    means that nothing was missed since the previous segment.
    """

    versions: Mapping[str, int]
    taken_at: Time
    holder: str = ""
    orders: Mapping[str, Order] = NO_ENTRIES
    continues: bool = False


Key = tuple[str, str]


class RecordedObjects(dict[str, dict[Key, bytes]]):
    """The line of every object, by kind, then by namespace and name."""

    def __init__(self) -> None:
        super().__init__((kind, {}) for kind in RECORDED)

    def apply(self, change: Change) -> None:
        """Apply a change; changes that are not about an object have no effect."""
        if change.what in (ChangeType.ADDED, ChangeType.MODIFIED):
            self[change.kind][change.namespace, change.name] = bytes(change.object)
        elif change.what is ChangeType.DELETED:
            self[change.kind].pop((change.namespace, change.name), None)
        elif change.what is ChangeType.UNREAD:
            # Reinsert it, because the last state determines its position.
            self[change.kind].clear()

    def lines(self) -> Iterator[bytes]:
        """Yield the objects by kind, each kind in the order in which an API server lists it."""
        for lines in self.values():
            for key in sorted(lines, key=path_of):
                yield lines[key]


def path_of(key: Key) -> str:
    """Return the end of an object's key in the API server's store, by which lists are sorted."""
    namespace, name = key
    return f"{namespace}/{name}" if namespace else name
