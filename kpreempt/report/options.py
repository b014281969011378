"""The options of a report, whatever its format."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from kpreempt.report.amounts import format_time
from kpreempt.verdict import Verdict
from kpreempt.verdict.node_report import Occupancy

if TYPE_CHECKING:
    from kpreempt.gate_rules import RuleId


class Extent(StrEnum):
    """How much to print: one line, one screen, every section, or everything (pages and Markdown)."""

    LINE = "line"
    SCREEN = "screen"
    REPORT = "report"
    DOCUMENT = "document"


STREAM_NAME = "kpreempt-input.yaml"


class RenderOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to render.

    ``width`` is in terminal cells, and ``height`` is the number of lines of a screen. Ages count up to ``now``; without
    it they count up to the time of the snapshot, and if that is unknown, absolute times are shown. ``is_clock``:
    ``now`` is just the time when kpreempt ran. ``as_list`` makes a list even of one verdict. ``occupancy`` is the
    utilization of the nodes, for formats that draw it. ``extent`` is for text, which comes in several; ``verbose``
    omits nothing from a report. ``stream_name`` is the file name that stands for a stream in systems that require one.
    ``docs_url`` is the base URL of kpreempt's ``docs``, for links to the pages of rules; there are no links if empty.
    """

    width: int = 80
    height: int = 24
    color: bool = False
    verbose: bool = False
    extent: Extent = Extent.REPORT
    now: datetime | None = None
    is_clock: bool = False
    as_list: bool = False
    occupancy: Occupancy | None = None
    stream_name: str = STREAM_NAME
    docs_url: str = ""

    @property
    def is_full(self) -> bool:
        """Whether nothing is omitted, except for the format's own limits."""
        return self.verbose or self.extent is Extent.DOCUMENT

    def facts_of_time(self, at: datetime | None) -> list[str]:
        """The time an answer is for, as a fact on a page; empty for the clock's, so equal input gives equal pages."""
        return [] if at is None or self.is_clock else [f"for {format_time(at)}"]

    def page_of(self, rule: RuleId) -> str:
        """The URL of the page about a rule; empty if it has none."""
        return f"{self.docs_url.rstrip('/')}/rules/{rule}.md" if self.docs_url and not rule.is_custom else ""


def reference_time(verdict: Verdict, options: RenderOptions) -> datetime | None:
    """The time that ages in a report on this verdict count up to, or ``None`` if unknown."""
    return options.now or verdict.cluster.taken_at
