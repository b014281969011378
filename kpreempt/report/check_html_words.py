"""The words of a check's page for what the records name by constants."""

from __future__ import annotations

from kpreempt.report import play_words
from kpreempt.verdict.check import ChangeKind, GateStanding
from kpreempt.verdict.play import PlayEnd, StrandedKind

STANDINGS = {
    GateStanding.FAILS: ("fails", "bad"),
    GateStanding.NOT_NEW: ("not new", "warn"),
    GateStanding.ACCEPTED: ("accepted", "warn"),
    GateStanding.WAIVED: ("waived", "warn"),
}
CHANGES = {
    ChangeKind.CREATED: "created",
    ChangeKind.ROLLED: "rolled out",
    ChangeKind.SCALED: "scaled",
    ChangeKind.UPDATED: "updated",
    ChangeKind.DELETED: "deleted",
    ChangeKind.UNCHANGED: "unchanged",
}
STRANDED = {
    StrandedKind.AFFINITY: "has to be near a pod that is gone",
    StrandedKind.SERVICE: "has no ready pod",
    StrandedKind.DAEMON_SET: "cannot come back to its node",
}
ENDS = {
    PlayEnd.SETTLED: "comes to rest",
    PlayEnd.LOOP: "goes round for ever",
    PlayEnd.BROKEN_OFF: "broken off; more would happen",
}


def clock(seconds: float) -> str:
    """A time from the start, short ones to a tenth of a second: ``0.5s``, ``35s``, ``4m05s``, ``2h10m``."""
    if seconds < 10 and seconds != round(seconds):
        return f"{seconds:.1f}s"
    return play_words.clock(seconds)


def place(source: str, line: int, origin: str) -> str:
    """Where something is written: ``api.yaml:12``, with what a stream says that it came from."""
    at = f"{source}:{line}" if source and line else source
    return f"{origin} ({at})" if origin and at else origin or at
