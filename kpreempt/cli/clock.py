"""The time that an answer is given for: the clock's, or the one that ``--now`` says."""

from __future__ import annotations

from datetime import UTC, datetime

from kpreempt.errors import UsageError


def time_of_answer(text: str | None) -> datetime:
    """The time in ``text`` (RFC 3339), or the clock's for ``None``. Raises ``UsageError`` for any other text."""
    if text is None:
        return datetime.now(UTC)
    try:
        now = datetime.fromisoformat(text)
    except ValueError:
        now = None
    if now is None or now.tzinfo is None:
        raise UsageError(f"--now: {text!r} is not a time with its zone", hint="--now 2026-11-21T03:12:00Z")
    return now
