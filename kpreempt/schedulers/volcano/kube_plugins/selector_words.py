"""What is wrong with a selector, as 1.25 words it (``pkg/util/validation/field/errors.go``, apimachinery v0.25.0)."""

from __future__ import annotations

import json
import re

from kpreempt.verdict import Status

_INVALID = "Invalid value: "
# A list of texts, or none at all, as JSON.
_VALUES = re.compile(rf'{_INVALID}(null|\[(?:"(?:[^"\\]|\\.)*",?)*\])')


def in_older_words(status: Status) -> Status:
    """The status with lists of values as Go writes them, which are JSON in newer versions."""
    return Status(status.code, [_VALUES.sub(_as_go, reason) for reason in status.reasons])


def _as_go(match: re.Match[str]) -> str:
    values = json.loads(match[1])
    if values is None:
        return f"{_INVALID}[]string(nil)"
    return f"{_INVALID}[]string{{{', '.join(json.dumps(value, ensure_ascii=False) for value in values)}}}"
