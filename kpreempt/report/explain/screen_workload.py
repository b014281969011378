"""What is asked about more pods than one, on the screen above the answer about the first."""

from __future__ import annotations

from kpreempt.report.explain.screen_frame import COLUMN, Room, Section, clipped
from kpreempt.report.layout import Line, Page
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Verdict


def replicas(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """All replicas of a workload: the sentence, where they end, and why others stay pending."""
    if verdict.workload is None:
        return []
    from kpreempt.report.explain.workload import (  # noqa: PLC0415 - not for capacity alone
        add_workload_section,
        add_workload_summary,
    )

    page = Page(options.width)
    add_workload_summary(page, verdict.workload)
    add_workload_section(page, verdict.workload, options, column=COLUMN)
    return [*clipped(page.lines, room.replicas, options.width), ()]


def capacity(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """How many more of the pod fit, and on which nodes."""
    if verdict.capacity is None:
        return []
    from kpreempt.report.explain.capacity import add_capacity_section  # noqa: PLC0415 - not for replicas alone

    page = Page(options.width)
    add_capacity_section(page, verdict.capacity, options, column=COLUMN)
    return [*clipped(page.lines, room.capacity, options.width), ()]


SECTIONS: list[Section] = [("replicas", replicas), ("capacity", capacity)]
