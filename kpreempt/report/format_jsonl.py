"""A verdict a line, as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.document import encode_json, with_kind
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Verdict


def render(verdicts: Sequence[Verdict], _options: RenderOptions) -> str:
    """One line for each verdict, in order."""
    return "".join(encode_json(with_kind(verdict)) + "\n" for verdict in verdicts)
