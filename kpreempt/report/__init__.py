"""Verdicts as text: pure functions from records to a string, one module per format.

Nothing here decides anything about scheduling, prints, or reads the clock; time, width and colour come in
``RenderOptions``. ``answers`` has the table of all answers and formats.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.answers import VERDICT_FORMATS as FORMATS
from kpreempt.report.answers import render_answer
from kpreempt.report.document import document_of
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Verdict


def render(verdicts: Sequence[Verdict], format: str, *, options: RenderOptions | None = None) -> str:  # noqa: A002 - the option's name
    """The verdicts in one of ``FORMATS``, in the order given, ending with a newline unless empty.

    Raises ``UsageError`` for a format that there is not.
    """
    options = options or RenderOptions()
    return render_answer(document_of(verdicts, as_list=options.as_list), format, options)


__all__ = ["FORMATS", "RenderOptions", "render"]
