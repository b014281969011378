"""The cluster as it stands, as bytes: the line of each object, so that many objects take little memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kpreempt.snapshot.kinds import RECORDED
from kpreempt.snapshot.recording.changes import Change, What

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
