"""A table with one row for each verdict."""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate

from kpreempt.report.escape import printable
from kpreempt.report.options import RenderOptions
from kpreempt.report.summary import SUMMARY_COLUMNS, summary_row
from kpreempt.verdict import Verdict

_ALIGNS = ("left", "right", "left", "left", "right", "right", "left")


def render(verdicts: Sequence[Verdict], _options: RenderOptions) -> str:
    """Columns as kubectl's wide output has them: as wide as needed, whatever the terminal."""
    rows = [[printable(cell) for cell in summary_row(verdict)] for verdict in verdicts]
    table = tabulate(
        rows, headers=SUMMARY_COLUMNS, tablefmt="plain", colalign=_ALIGNS if rows else None, disable_numparse=True
    )
    return "\n".join(line.rstrip() for line in table.splitlines()) + "\n"
