"""What a recording holds: from when to when, how much, and what it lacks."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from datetime import datetime

import msgspec

from kpreempt.errors import InputError
from kpreempt.files import name_of
from kpreempt.model.cluster import REDACTED_AT
from kpreempt.snapshot.archives import Intake
from kpreempt.snapshot.recording.changes import OBJECT_CHANGES, What
from kpreempt.snapshot.recording.past import shown
from kpreempt.snapshot.recording.segments import Segment, segments_in


class RecordingInfo(msgspec.Struct, frozen=True, kw_only=True):
    """``size`` is in bytes. ``gaps`` are the times between which nothing was watched, ``changes`` are by kind."""

    begins: datetime
    ends: datetime
    segments: int
    size: int
    changes: dict[str, int]
    gaps: list[tuple[datetime, datetime]]
    relisted: dict[str, int]
    unread: list[str]
    damaged: list[str]

    def lines(self, folder: str) -> Iterator[str]:
        """The same in words."""
        total = sum(self.changes.values())
        files = "1 segment" if self.segments == 1 else f"{self.segments:,} segments"
        how = "redacted, " if self.ends <= REDACTED_AT else ""
        yield f"{name_of(folder)}: {how}{shown(self.begins)} to {shown(self.ends)}, {files}, {_in_words(self.size)}"
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in self.changes.items())
        yield f"  {total:,} change{'' if total == 1 else 's'}{': ' if kinds else ''}{kinds}"
        for begin, end in self.gaps:
            yield f"  nothing was watched from {shown(begin)} to {shown(end)}"
        for kind, count in self.relisted.items():
            yield f"  {kind} was listed anew {'once' if count == 1 else f'{count:,} times'}: changes were missed"
        for kind in self.unread:
            yield f"  {kind} could not be read"
        yield from (f"  {each}" for each in self.damaged)


def info_of(folder: str) -> RecordingInfo:
    """What is in the folder. Raises ``InputError`` where that is no recording."""
    paths = segments_in(folder)
    if not paths:
        raise InputError("is no recording", source=name_of(folder), hint="kpreempt record --to DIR makes one")
    changes: Counter[str] = Counter()
    relisted: Counter[str] = Counter()
    unread: dict[str, None] = {}
    gaps, damaged = [], []
    begins = ends = None
    for path in paths:
        segment = Segment(path)
        if ends is not None and not segment.end.continues:
            gaps.append((ends, segment.end.taken_at))
        ends = segment.end.taken_at
        begins = begins or ends
        # What a damaged base holds would come out only when it is needed.
        deque(segment.base(Intake()), maxlen=0)
        for change in segment.changes():
            ends = max(ends, change.seen)
            changes[change.kind] += change.what in OBJECT_CHANGES
            relisted[change.kind] += change.what is What.GAP
            if change.what is What.UNREAD:
                unread[change.kind] = None
        if segment.damage is not None:
            what = "its last record is torn, and left out" if segment.damage.is_torn else "is damaged"
            damaged.append(f"{path.name}: {what} (byte {segment.damage.offset:,})")
    assert begins is not None
    assert ends is not None
    return RecordingInfo(
        begins=begins,
        ends=ends,
        segments=len(paths),
        size=sum(path.stat().st_size for path in paths),
        changes={kind: count for kind, count in changes.most_common() if count},
        gaps=gaps,
        relisted={kind: count for kind, count in relisted.items() if count},
        unread=list(unread),
        damaged=damaged,
    )


def _in_words(size: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"
