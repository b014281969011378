"""Verdicts as text: pure functions from records to a string, one module per format.

This package makes no scheduling decisions, prints nothing, and does not read the clock; time, width and color are given
in ``RenderOptions``. ``answers`` has the table of all answers and formats.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.answers import VERDICT_FORMATS as FORMATS
from kpreempt.report.answers import render_answer
from kpreempt.report.document import document_of
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Verdict


def render(verdicts: Sequence[Verdict], format: str, *, options: RenderOptions | None = None) -> str:  # noqa: A002 - the option's name
    """The verdicts in one of ``FORMATS``, in the given order, ending with a newline unless empty.

    Raises ``UsageError`` if there is no such format.
    """
    options = options or RenderOptions()
    return render_answer(document_of(verdicts, as_list=options.as_list), format, options)


__all__ = ["FORMATS", "RenderOptions", "render"]
