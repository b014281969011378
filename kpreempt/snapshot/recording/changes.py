"""What a recording says of each change, and of a base beyond its objects; and the cluster as it stands, as bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from kpreempt.model.frozen import NO_ENTRIES
from kpreempt.model.meta import Time
from kpreempt.snapshot.kinds import RECORDED


class ChangeType(StrEnum):
    """What has happened: to an object, or to the recording itself."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    # The kind was listed anew: what happened to it since the version before is only known by its outcome.
    GAP = "GAP"
    # The kind may not be read any more; ``status`` is HTTP's.
    UNREAD = "UNREAD"
    # Another scheduler holds the lease, by its ``name``; empty where that cannot be told any more.
    SCHEDULER = "SCHEDULER"
    # Nothing has happened, and all was watched up to here.
    ALIVE = "ALIVE"


OBJECT_CHANGES = (ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED)


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change, as it was seen. ``version`` is the resource version that it made; versions count up in a cluster.

    A gap begins after the version ``since``. ``object`` is the object after the change, as dumps have it; it is absent
    where the object is deleted.
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
    """The pods of a node as a scheduler's cache has them: ``namespace/name`` by place, empty where it is not known.

    ``unplaced`` are the pods that stand on the places that are not known.
    """

    places: Sequence[str]
    unplaced: Sequence[str]

    @property
    def is_sound(self) -> bool:
        """Whether each pod stands in one place: what a file says may be anything."""
        pods = [*filter(None, self.places), *self.unplaced]
        return len(pods) == len(self.places) == len(set(pods))


class BaseEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known at a base beyond its objects.

    ``versions`` are the resource versions at which each kind was listed, or up to which it was watched. ``holder`` is
    who holds the scheduler's lease, empty where that is not known. ``orders`` are those of nodes where one is known.
    ``continues`` says that nothing was missed since the segment before.
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
        """Follow a change; one that is about no object changes nothing."""
        if change.what in (ChangeType.ADDED, ChangeType.MODIFIED):
            self[change.kind][change.namespace, change.name] = bytes(change.object)
        elif change.what is ChangeType.DELETED:
            self[change.kind].pop((change.namespace, change.name), None)
        elif change.what is ChangeType.UNREAD:
            # What it was last is not what it is.
            self[change.kind].clear()

    def lines(self) -> Iterator[bytes]:
        """The objects kind by kind, each kind in the order in which an API server lists it."""
        for lines in self.values():
            for key in sorted(lines, key=path_of):
                yield lines[key]


def path_of(key: Key) -> str:
    """The end of an object's key in the API server's store, by which lists are sorted."""
    namespace, name = key
    return f"{namespace}/{name}" if namespace else name
