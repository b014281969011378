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
    """The segments of a recording, oldest first; none where the folder is no recording. Raises ``InputError``."""
    try:
        return sorted(path for path in Path(folder).iterdir() if _NAME.fullmatch(path.name))
    except (OSError, ValueError) as error:
        raise unreadable(name_of(folder), error) from error


def is_recording(path: str) -> bool:
    """Whether the path is a folder with a recording in it. Raises nothing."""
    try:
        return Path(path).is_dir() and bool(segments_in(path))
    except (OSError, ValueError, InputError):
        return False


def name_at(time: datetime) -> str:
    """The name of a segment that begins at that time."""
    return f"{time.astimezone(UTC).strftime(_STEM)}{ENDING}"


def began(path: Path) -> datetime:
    """When a segment was begun, which its name says."""
    return datetime.strptime(path.stem, _STEM).replace(tzinfo=UTC)
