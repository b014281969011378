"""What a terminal or a pipeline would act upon in a text that was written."""

from __future__ import annotations

import re

from kpreempt.report.escape import is_hidden

# Taken from anywhere in a line, and from where a line begins.
_ANYWHERE = re.compile(r"##[A-Za-z-]*\[")
_AT_START = re.compile(r"(?m)^\s*::[A-Za-z]")


def obeyed(text: str) -> list[str]:
    """Characters that do not show as themselves, but for line breaks, and commands of CI systems."""
    hidden = [repr(each) for each in sorted(set(text)) if each != "\n" and is_hidden(each)]
    return hidden + _ANYWHERE.findall(text) + _AT_START.findall(text)
