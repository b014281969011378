"""A Workload that is put to Kueue, for a terminal: the sentence, flavors, who goes, the quota tree, and the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kpreempt.report.amounts import count
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.evidence import join_names
from kpreempt.report.kueue.words import RULES, with_flavors
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.kueue import KueueAnswer, Reading, WorkloadOutcome

_NAMED = 3


def render_workloads(answers: Sequence[KueueAnswer], options: RenderOptions) -> str:
    """Each Workload with its evidence."""
    page = Page(options.width)
    for number, each in enumerate(answers):
        if number:
            page.blank()
        _add(page, each, options)
    return finished(page, options)


def _add(page: Page, answer: KueueAnswer, options: RenderOptions) -> None:
    page.paragraph(*_headline(answer))
    queue = f"ClusterQueue {answer.cluster_queue}, " if answer.cluster_queue else ""
    page.paragraph(f"{queue}priority {answer.priority}", indent=2, hanging=2)
    reading = answer.alone
    if not reading.admitted_in:
        _section(page, "WHY", reading.message)
    _add_changes(page, answer)
    _add_flavors(page, reading)
    _add_preempted(page, answer)
    _add_nodes(page, answer)
    _add_together(page, answer)
    _add_quota(page, answer)
    add_assumptions_section(page, answer.assumptions, options)


def _section(page: Page, label: str, *phrase: Any) -> None:
    page.blank()
    page.labelled(Span(label, "heading"), *phrase, column=LABEL_COLUMN)


def _headline(answer: KueueAnswer) -> Phrase:
    reading, name = answer.alone, strong(f"Workload {answer.workload}")
    if reading.outcome is WorkloadOutcome.NOT_QUEUED:
        return (name, " ", Span("is not queued", "bad"), ".")
    if reading.outcome is WorkloadOutcome.PENDING:
        return (name, " ", Span("stays pending", "bad"), " in Kueue.")
    given = with_flavors(flavor for each in reading.pod_sets for flavor in each.flavors.values()) + _fewer(reading)
    then = _landing_in_words(answer)
    if reading.outcome is WorkloadOutcome.ADMITTED:
        return (name, " is ", Span("admitted", "good"), f"{given}{then}.")
    if reading.outcome is WorkloadOutcome.QUOTA_RESERVED:
        waits = " and waits for its admission checks"
        return (name, " ", Span("gets quota", "warn"), f"{given}{waits}{then}.")
    victims = join_names([each.workload for each in reading.targets], limit=_NAMED)
    goes = f"{count(len(reading.targets), 'Workload')} ({victims})"
    if not reading.admitted_in:
        return (name, " ", Span("preempts", "warn"), f" {goes} and is not admitted even so.")
    gone = "it is" if len(reading.targets) == 1 else "they are"
    gets = "gets quota" if reading.waits_for_checks else "is admitted"
    return (name, " ", Span("preempts", "warn"), f" {goes}, and {gets}{given} once {gone} gone{then}.")


def _fewer(reading: Reading) -> str:
    """That a Workload does with fewer pods than it wants."""
    count, wanted = (sum(getattr(each, field) for each in reading.pod_sets) for field in ("count", "wanted"))
    return f" for {count} of its {wanted} pods" if count < wanted else ""


def _landing_in_words(answer: KueueAnswer) -> str:
    if not answer.landing:
        return ""
    short = [each for each in answer.landing if each.placed < each.tried]
    if not short:
        return ", and its pods land"
    placed, pods = (sum(getattr(each, field) for each in answer.landing) for field in ("placed", "pods"))
    if pods == 1:
        return ", but kube-scheduler finds no node for its pod"
    return f", but kube-scheduler places {placed or 'none'} of its {pods} pods"


def _add_flavors(page: Page, reading: Reading) -> None:
    entry = next((each for cycle in reading.cycles for each in cycle["entries"] if "final" in each), None)
    rows: list[list[Phrase]] = []
    for pod_set in reading.pod_sets:
        given = ", ".join(f"{resource} {flavor}" for resource, flavor in sorted(pod_set.flavors.items()))
        pods = str(pod_set.count) if pod_set.count == pod_set.wanted else f"{pod_set.count} of {pod_set.wanted}"
        rows.append([(strong(pod_set.name),), (pods,), (given or "no flavor",)])
    if not rows or entry is None:
        return
    page.blank()
    page.labelled(Span("POD SETS", "heading"), "pods, and the flavor of each resource", column=LABEL_COLUMN)
    page.table(rows, aligns=("left", "right", "left"), indent=2)
    tried = [text for each in entry["nominated"]["podSets"] for text in _attempts(each)]
    if tried:
        _section(page, "TRIED", "flavors in their order, when it was head first")
        for text in tried:
            page.paragraph(text, indent=2, hanging=2)


def _attempts(pod_set: dict[str, Any]) -> list[str]:
    found = []
    for each in pod_set["attempts"]:
        mode = f"preemption: {each['preemption']}" if each["preemption"] else each["mode"]
        borrows = f", borrows {count(each['borrow'], 'level')} up" if each["borrow"] else ""
        reasons = f": {'; '.join(each['reasons'])}" if each["reasons"] else ""
        found.append(f"{pod_set['name']} {each['flavor']}: {mode}{borrows}{reasons}")
    return found


def _add_changes(page: Page, answer: KueueAnswer) -> None:
    if not answer.changes:
        return
    which = "any one of these" if len(answer.changes) > 1 else "this one"
    _section(page, "CHANGE", f"with nobody else queued, it would be admitted with {which}")
    for each in answer.changes:
        gone = join_names([one.workload for one in each.targets], limit=_NAMED)
        then = f", preempting {gone}" if each.targets else ""
        page.paragraph(f"{each.subject}: {each.field}: {each.after} (now {each.before}){then}", indent=2, hanging=2)


def _add_preempted(page: Page, answer: KueueAnswer) -> None:
    targets = answer.alone.targets
    if not targets:
        return
    _section(page, "PREEMPTED", "whole Workloads; no PodDisruptionBudget is asked")
    rows: list[list[Phrase]] = [
        [
            (strong(each.workload),),
            (each.cluster_queue,),
            (RULES.get(each.reason, each.reason),),
            (count(len(each.pods), "pod") if each.pods else "pods not found",),
        ]
        for each in targets
    ]
    page.table(rows, aligns=("left", "left", "left", "left"), indent=2)


def _add_nodes(page: Page, answer: KueueAnswer) -> None:
    if not answer.landing:
        return
    _section(page, "NODES", "what kube-scheduler then does with the pods, one after the other")
    for each in answer.landing:
        page.paragraph(strong(each.name), f": {each.placed} of {each.tried} pods land", indent=2, hanging=2)
        if each.tried < each.pods:
            page.paragraph(f"{each.pods - each.tried} more were not put to it", indent=4, hanging=4)
        if each.evicts:
            named = join_names(each.evicts, limit=_NAMED)
            page.paragraph(f"evicting {count(len(each.evicts), 'pod')}: {named}", indent=4, hanging=4)
        if each.reason:
            page.paragraph(each.reason, indent=4, hanging=4)


def _add_together(page: Page, answer: KueueAnswer) -> None:
    reading = answer.together
    cycles = count(len(reading.cycles), "cycle")
    if reading.outcome is WorkloadOutcome.NOT_QUEUED:
        told = f"it is never head in {cycles}: {reading.message}"
    elif reading.admitted_in:
        before = f", preempting {join_names([each.workload for each in reading.targets], limit=_NAMED)}"
        again = f", and preempted again in cycle {reading.evicted_in}" if reading.evicted_in else ""
        told = f"admitted in cycle {reading.admitted_in}{before if reading.targets else ''}{again}"
    else:
        is_cut = any((each.subject, each.field) == ("Kueue", "cycles") for each in answer.assumptions)
        until = "as far as it is followed" if is_cut else "until nothing more happens"
        why = "for the same reason" if reading.message == answer.alone.message else reading.message
        told = f"not admitted in {cycles}, {until}: {why}"
    _section(page, "IN QUEUE", f"with all that wait: {told}")


def _add_quota(page: Page, answer: KueueAnswer) -> None:
    """The quota of the ClusterQueue and the cohorts above it, before and after."""
    cycles = answer.alone.cycles
    if not cycles:
        return
    before = {(each["kind"], each["name"]): each for each in cycles[0]["before"]}
    after = {(each["kind"], each["name"]): each for each in cycles[-1].get("after") or cycles[-1]["before"]}
    key = ("ClusterQueue", answer.cluster_queue)
    rows: list[list[Phrase]] = []
    while key in before:
        node, later = before[key], after.get(key, before[key])
        name = f"{node['name']}, share {node['share']}" if node["share"] != "0" else node["name"]
        for resource, quota in node["subtreeQuota"].items():
            used, then = node["usage"].get(resource, "0"), later["usage"].get(resource, "0")
            usage = used if used == then else f"{used} → {then}"
            row = (name, resource, f"quota {quota}", f"used {usage}", f"available {node['available'][resource]}")
            rows.append([(each,) for each in row])
            name = ""
        key = ("Cohort", node["parent"])
    if rows:
        _section(page, "QUOTA", "of the ClusterQueue and the cohorts above it")
        page.table(rows, aligns=("left",) * 5, indent=2)
