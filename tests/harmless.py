"""Find text that a terminal or a pipeline would interpret."""

from __future__ import annotations

import re

from kpreempt.report.escape import is_hidden

# Matched anywhere in a line, and at the start of a line.
_ANYWHERE = re.compile(r"##[A-Za-z-]*\[")
_AT_START = re.compile(r"(?m)^\s*::[A-Za-z]")


def obeyed(text: str) -> list[str]:
    """Return characters that are not printed as themselves, except line breaks, and commands of CI systems."""
    hidden = [repr(each) for each in sorted(set(text)) if each != "\n" and is_hidden(each)]
    return hidden + _ANYWHERE.findall(text) + _AT_START.findall(text)
