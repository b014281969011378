"""The whole verdict as indented JSON; several as a ``VerdictList``."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kpreempt.report.document import document_of, encode_json
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Verdict


def render(verdicts: Sequence[Verdict], options: RenderOptions) -> str:
    """One JSON document."""
    return indented(document_of(verdicts, options))


def indented(record: msgspec.Struct) -> str:
    """A record as an indented JSON document."""
    return msgspec.json.format(encode_json(record), indent=2) + "\n"
