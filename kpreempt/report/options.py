"""What a caller can ask of a report, whatever its format."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from kpreempt.report.amounts import format_time
from kpreempt.verdict import Verdict
from kpreempt.verdict.story import Occupancy

if TYPE_CHECKING:
    from kpreempt.gate_rules import RuleId


class Extent(StrEnum):
    """How much is told: one line, what fits a screen, every section, or all that there is, for pages and Markdown."""

    LINE = "line"
    SCREEN = "screen"
    REPORT = "report"
    DOCUMENT = "document"


STREAM_NAME = "kpreempt-input.yaml"


class RenderOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to render.

    ``width`` is in terminal cells, ``height`` the lines of a screen, for answers that keep to one. ``now`` is what ages
    count to; without it they count to the time of the dump, and where that is unknown too, points in time are shown
    instead. ``is_clock`` says that ``now`` is only when kpreempt ran. ``as_list`` makes a list even of one verdict.
    ``occupancy`` is how full nodes are, for formats that draw them. ``extent`` is for text that comes in several;
    ``verbose`` leaves nothing out of a report. ``stream_name`` is the file that stands for a stream where a system asks
    for one. ``docs_url`` is where kpreempt's ``docs`` are to be read, for links to the pages of rules; there are none
    where it is empty.
    """

    width: int = 80
    height: int = 24
    colour: bool = False
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
        """Whether nothing is left out, except by limits of the format."""
        return self.verbose or self.extent is Extent.DOCUMENT

    def facts_of_time(self, at: datetime | None) -> list[str]:
        """Which time an answer is for, as a fact of a page; nothing for the clock's: equal input makes equal pages."""
        return [] if at is None or self.is_clock else [f"for {format_time(at)}"]

    def page_of(self, rule: RuleId) -> str:
        """The address of the page about a rule of the gate; empty where it has none."""
        return f"{self.docs_url.rstrip('/')}/rules/{rule}.md" if self.docs_url and not rule.is_custom else ""


def reference_time(verdict: Verdict, options: RenderOptions) -> datetime | None:
    """What ages in a report on this verdict count to, or ``None`` where that is unknown."""
    return options.now or verdict.cluster.taken_at
