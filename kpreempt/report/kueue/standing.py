"""Workloads with quota, for a terminal: who would preempt them, what is borrowed, and who preempted one."""

from __future__ import annotations

from kpreempt.report.amounts import count
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.evidence import join_names
from kpreempt.report.kueue.words import RULES
from kpreempt.report.layout import Page, Part, Span, Style, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.kueue import (
    BorrowedQuota,
    PreemptionsOfWorkload,
    WorkloadAtRisk,
    WorkloadPreemption,
    WorkloadsAtRisk,
    WorkloadThreat,
)

_THREATS = 3


def render_workloads_at_risk(answer: WorkloadsAtRisk, options: RenderOptions) -> str:
    """Who would be preempted, and for whom; what is borrowed and may be reclaimed."""
    page = Page(options.width)
    if not answer.items:
        page.paragraph("No Workload has quota.")
    else:
        threatened = sum(bool(each.threats) for each in answer.items)
        total = count(len(answer.items), "Workload")
        style: Style = "bad" if threatened else "good"
        page.paragraph(strong(total), " with quota: ", Span(f"{threatened} would be preempted", style), ".")
    for each in answer.items:
        _add(page, each, options)
    if answer.omitted:
        page.blank()
        page.paragraph(f"... and {answer.omitted:,} more (--limit shows more)", indent=2)
    add_assumptions_section(page, answer.assumptions, options)
    return finished(page, options)


def _add(page: Page, item: WorkloadAtRisk, options: RenderOptions) -> None:
    page.blank()
    pods = f", {count(len(item.pods), 'pod')}" if item.pods else ""
    where = f" (ClusterQueue {item.cluster_queue}, priority {item.priority:,}{pods})"
    page.paragraph(strong(item.workload), where, indent=2, hanging=2)
    shown = item.threats if options.verbose else item.threats[:_THREATS]
    for threat in shown:
        page.paragraph(*_threat(threat), indent=4, hanging=2)
    if len(item.threats) > len(shown):
        page.paragraph(f"and {len(item.threats) - len(shown)} more (-v lists them)", indent=4)
    if not item.threats:
        page.paragraph("nobody who waits would preempt it", indent=4)
    for loan in item.borrowed:
        page.paragraph(_loan(loan), indent=4, hanging=2)


def _threat(threat: WorkloadThreat) -> list[Part]:
    rule = RULES.get(threat.reason, threat.reason)
    would = "would go" if threat.is_certain else "may go"
    told: list[Part] = [f"{would} for ", strong(threat.workload)]
    told.append(f" (ClusterQueue {threat.cluster_queue}, priority {threat.priority:,}), by {rule}")
    if not threat.cycle:
        return [*told, "; with all that wait it does not come to that"]
    return told if threat.alone else [*told, f"; with all that wait, in cycle {threat.cycle}"]


def _loan(loan: BorrowedQuota) -> str:
    told = f"its ClusterQueue borrows {loan.amount} of {loan.flavor_resource}"
    if not loan.reclaimers:
        return told
    may = "may reclaim it for a new Workload"
    return f"{told}: {join_names(loan.reclaimers, limit=_THREATS)} {may}"


def render_workload_preemptions(answer: PreemptionsOfWorkload, options: RenderOptions) -> str:
    """For whom it was preempted, and how both stand now."""
    page = Page(options.width)
    name = strong(f"Workload {answer.workload}")
    if not answer.preemptions:
        page.paragraph(name, f" ({answer.state}): no condition and no event says that it was preempted.")
    else:
        times = count(len(answer.preemptions), "time")
        page.paragraph(name, f" ({answer.state}) was preempted {times}, as far as is known.")
    for each in answer.preemptions:
        page.blank()
        page.paragraph(*_preemption(each), indent=2, hanging=2)
        page.paragraph(each.message, indent=4, hanging=2)
    return finished(page, options)


def _preemption(preemption: WorkloadPreemption) -> list[Part]:
    when = preemption.at.strftime("%Y-%m-%dT%H:%M:%SZ") if preemption.at else "before"
    if preemption.preemptor:
        return [f"{when}: for ", strong(preemption.preemptor), f", which is {preemption.state} now"]
    return [f"{when}: for a Workload that is not in the cluster, of UID {preemption.preemptor_uid or 'UNKNOWN'}"]
