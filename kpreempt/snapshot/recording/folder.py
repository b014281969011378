"""How the files of a recording are called, and whether a folder is one."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from kpreempt.errors import InputError
from kpreempt.files import name_of, unreadable

ENDING = ".kprec"
_STEM = "%Y%m%dT%H%M%S%fZ"
_NAME = re.compile(r"[0-9]{8}T[0-9]{12}Z\.kprec")


def segments_in(folder: str) -> list[Path]:
    """The segments of a recording, oldest first; none if the folder is not a recording.

    Raises ``InputError``, also for a segment that is not named after a time.
    """
    paths = _named_like_segments(folder)
    for path in paths:
        began(path)
    return paths


def is_recording(path: str) -> bool:
    """Whether the path is a folder with a recording in it. Raises nothing."""
    try:
        return Path(path).is_dir() and bool(_named_like_segments(path))
    except (OSError, ValueError, InputError):
        return False


def name_at(time: datetime) -> str:
    """The name of a segment that begins at that time."""
    return f"{time.astimezone(UTC).strftime(_STEM)}{ENDING}"


def began(path: Path) -> datetime:
    """When a segment was begun, which its name says. Raises ``InputError`` if that is not a time."""
    try:
        return datetime.strptime(path.stem, _STEM).replace(tzinfo=UTC)
    except ValueError:
        problem = "is not named after a time, as the segments of a recording are"
        raise InputError(problem, source=name_of(str(path)), hint="20261121T030000000000Z.kprec") from None


def _named_like_segments(folder: str) -> list[Path]:
    try:
        return sorted(path for path in Path(folder).iterdir() if _NAME.fullmatch(path.name))
    except (OSError, ValueError) as error:
        raise unreadable(name_of(folder), error) from error
