"""What a recording says of each change, and of a base beyond its objects; and the cluster as it stands, as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from kpreempt.model.frozen import NO_ENTRIES
from kpreempt.model.meta import Time
from kpreempt.snapshot.kinds import RECORDED


class What(StrEnum):
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


OBJECT_CHANGES = (What.ADDED, What.MODIFIED, What.DELETED)


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change, as it was seen. ``version`` is the resource version that it made; versions count up in a cluster.

    A gap begins after the version ``since``. ``object`` is the object after the change, as dumps have it; it is absent
    where the object is deleted.
    """

    what: What
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


class Kept:
    """The line of every object, by kind, then by namespace and name."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[Key, bytes]] = {kind: {} for kind in RECORDED}

    def put(self, kind: str, key: Key, line: bytes) -> None:
        """An object is there, or is so now."""
        self._lines[kind][key] = line

    def get(self, kind: str, key: Key) -> bytes | None:
        """The line of an object, or ``None`` where there is none."""
        return self._lines[kind].get(key)

    def keys(self, kind: str) -> Iterable[Key]:
        """The objects of a kind."""
        return self._lines[kind].keys()

    def apply(self, change: Change) -> None:
        """Follow a change; one that is about no object changes nothing."""
        if change.what in (What.ADDED, What.MODIFIED):
            self._lines[change.kind][change.namespace, change.name] = bytes(change.object)
        elif change.what is What.DELETED:
            self._lines[change.kind].pop((change.namespace, change.name), None)
        elif change.what is What.UNREAD:
            # What it was last is not what it is.
            self._lines[change.kind].clear()

    def lines(self) -> Iterator[bytes]:
        """The objects kind by kind, each kind in the order in which an API server lists it."""
        for lines in self._lines.values():
            for key in sorted(lines, key=path_of):
                yield lines[key]

    def count(self, kind: str) -> int:
        """How many objects there are of a kind."""
        return len(self._lines[kind])

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))


def path_of(key: Key) -> str:
    """The end of an object's key in the API server's store, by which lists are sorted."""
    namespace, name = key
    return f"{namespace}/{name}" if namespace else name
