"""Reports about Kueue: one Workload, pending Workloads, Workloads with quota, and compared configurations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kpreempt.report.amounts import count, format_time
from kpreempt.report.blocks import (
    Cards,
    Listing,
    Phrase,
    Report,
    Role,
    Section,
    Sentence,
    Span,
    Table,
    Words,
    columns,
    joined,
    strong,
)
from kpreempt.report.evidence import assumption_sections, join_names
from kpreempt.report.options import RenderOptions
from kpreempt.report.remedies import commands, line, not_tried
from kpreempt.verdict.kueue import (
    AdmissionOutcome,
    AdmissionRun,
    ComparedWorkload,
    KueueAnswer,
    KueueComparison,
    PendingWorkload,
    PendingWorkloads,
    PreemptionsOfWorkload,
    WorkloadAtRisk,
    WorkloadOutcome,
    WorkloadsAtRisk,
    WorkloadThreat,
)
from kpreempt.verdict.remedies import Remedy

_MAX_LISTED = 3
_THREATS = 3
_PENDING_SHOWN = 20
_COMPARED_SHOWN = 10
_RULES = {
    "InClusterQueue": "prioritization in the ClusterQueue",
    "InCohortReclamation": "reclamation within the cohort",
    "InCohortFairSharing": "Fair Sharing within the cohort",
    "InCohortReclaimWhileBorrowing": "reclamation within the cohort while borrowing",
}
_OUTCOMES: dict[WorkloadOutcome, tuple[str, Role]] = {
    WorkloadOutcome.ADMITTED: ("admitted", "good"),
    WorkloadOutcome.QUOTA_RESERVED: ("gets quota", "warn"),
    WorkloadOutcome.PREEMPTS: ("preempts", "warn"),
    WorkloadOutcome.PENDING: ("pending", "bad"),
    WorkloadOutcome.NOT_QUEUED: ("not queued", "bad"),
}


def report_workloads(answers: Sequence[KueueAnswer], _options: RenderOptions) -> Report:
    """Each Workload with its evidence: the sentence, flavors, preempted Workloads, nodes, and the quota tree."""
    sections_by_workload = []
    for answer in answers:
        queue = f"ClusterQueue {answer.cluster_queue}, " if answer.cluster_queue else ""
        facts = f"{queue}priority {answer.priority}"
        title, lead, sections = f"Workload {answer.workload}", _headline(answer), _sections(answer)
        if len(answers) == 1:
            return Report(title=title, lead=lead, facts=[facts], sections=sections, is_complete=True)
        sections_by_workload.append(Section("", lead, [Sentence(Span(facts, "dim")), *sections], heading=title))
    return Report(lead="", sections=sections_by_workload, is_complete=True)


def _headline(answer: KueueAnswer) -> Phrase:
    reading, name = answer.alone, strong(f"Workload {answer.workload}")
    if reading.outcome is WorkloadOutcome.NOT_QUEUED:
        return (name, " ", Span("is not queued", "bad"), ".")
    if reading.outcome is WorkloadOutcome.PENDING:
        return (name, " ", Span("stays pending", "bad"), " in Kueue.")
    flavors = _with_flavors(flavor for each in reading.pod_sets for flavor in each.flavors.values())
    admitted, requested = (sum(getattr(each, field) for each in reading.pod_sets) for field in ("count", "requested"))
    if admitted < requested:
        flavors += f" for {admitted} of its {requested} pods"
    if not answer.placement:
        then = ""
    elif all(each.placed >= each.tried for each in answer.placement):
        then = "; its pods land"
    else:
        placed, pods = (sum(getattr(each, field) for each in answer.placement) for field in ("placed", "pods"))
        if pods == 1:
            then = ", but kube-scheduler finds no node for its pod"
        else:
            then = f", but kube-scheduler places {placed or 'none'} of its {pods} pods"
    if reading.outcome is WorkloadOutcome.ADMITTED:
        return (name, " is ", Span("admitted", "good"), f"{flavors}{then}.")
    if reading.outcome is WorkloadOutcome.QUOTA_RESERVED:
        waits = " and waits for its admission checks"
        return (name, " ", Span("gets quota", "warn"), f"{flavors}{waits}{then}.")
    victims = join_names([each.workload for each in reading.targets], limit=_MAX_LISTED)
    targets = f"{count(len(reading.targets), 'Workload')} ({victims})"
    if not reading.admitted_in:
        return (name, " ", Span("preempts", "warn"), f" {targets} and is still not admitted.")
    gets = "then gets quota" if reading.waits_for_checks else "is then admitted"
    return (name, " ", Span("preempts", "warn"), f" {targets} and {gets}{flavors}{then}.")


def _with_flavors(names: Iterable[str]) -> str:
    """``with flavor spot``, with a leading space; empty without any."""
    flavors = sorted(set(names))
    if not flavors:
        return ""
    return f" with {'flavor' if len(flavors) == 1 else 'flavors'} {join_names(flavors, limit=_MAX_LISTED)}"


def _sections(answer: KueueAnswer) -> list[Section]:
    reading = answer.alone
    why = "" if reading.admitted_in else reading.message
    return [
        Section("WHY", why, [Listing([[each] for each in answer.no_preemption], noun="reason")]),
        _remedies(answer),
        *_flavor_sections(reading),
        Section(
            "PREEMPTED",
            "entire Workloads; PodDisruptionBudgets are not considered" if reading.targets else "",
            [
                Table(
                    columns("WORKLOAD", "CLUSTERQUEUE", "BY", "PODS"),
                    [
                        (
                            strong(each.workload),
                            each.cluster_queue,
                            _RULES.get(each.reason, each.reason),
                            count(len(each.pods), "pod") if each.pods else "pods not found",
                        )
                        for each in reading.targets
                    ],
                )
            ],
        ),
        _nodes(answer),
        Section("IN QUEUE", f"with all pending Workloads: {_together(answer)}"),
        _quota(answer),
        *assumption_sections(answer.assumptions),
    ]


def _remedies(answer: KueueAnswer) -> Section:
    """``FIX``: what would get the Workload admitted, each with its result and how to apply it."""
    items: list[list[Words]] = [
        [(*line(each), ": ", *_result(each)), *(Span(command, "dim") for command in _commands(answer, each))]
        for each in answer.remedies
    ]
    untried = not_tried(answer.search) if answer.search is not None else ""
    rest = [Sentence(Span(untried, "dim"))] if untried else []
    return Section("FIX", "any one of these" if len(items) > 1 else "", [Listing(items, noun="fix"), *rest])


def _commands(answer: KueueAnswer, remedy: Remedy) -> list[str]:
    """The commands that apply a remedy, unless the manifest is to be changed."""
    kinds = {each.object.partition(" ")[0] for each in remedy.edits}
    return [] if answer.origin.partition(" ")[0] in kinds else commands(remedy)


def _result(remedy: Remedy) -> Phrase:
    """What the remedy brings: ``gets quota; no Workload is preempted``."""
    parts: list[Words] = [Span("gets quota" if remedy.solves else "gets quota if no other Workload is queued", "good")]
    if remedy.evicted:
        parts.append((Span("preempts", "warn"), f" {join_names(remedy.evicted, limit=_MAX_LISTED)}"))
    else:
        parts.append("no Workload is preempted")
    if remedy.scheduled < remedy.pods:
        parts.append(
            Span(f"kube-scheduler places {remedy.scheduled:,} of its {count(remedy.pods, 'pod')}", "bad"),
        )
    return joined(parts, "; ")


def _flavor_sections(reading: AdmissionRun) -> list[Section]:
    """The flavors assigned to each pod set, and those that were tried."""
    entry = next((each for cycle in reading.cycles for each in cycle["entries"] if "final" in each), None)
    if not reading.pod_sets or entry is None:
        return []
    rows: list[list[Words]] = []
    for pod_set in reading.pod_sets:
        assigned = ", ".join(f"{resource} {flavor}" for resource, flavor in sorted(pod_set.flavors.items()))
        pods = str(pod_set.count) if pod_set.count == pod_set.requested else f"{pod_set.count} of {pod_set.requested}"
        rows.append([strong(pod_set.name), pods, assigned or "no flavor"])
    tried: list[list[Words]] = []
    for of_set in entry["nominated"]["podSets"]:
        for each in of_set["attempts"]:
            mode = f"preemption: {each['preemption']}" if each["preemption"] else each["mode"]
            borrows = f", borrowing {count(each['borrow'], 'level')} up" if each["borrow"] else ""
            reasons = f": {'; '.join(each['reasons'])}" if each["reasons"] else ""
            tried.append([f"{of_set['name']} {each['flavor']}: {mode}{borrows}{reasons}"])
    return [
        Section(
            "POD SETS",
            "pods, and the flavor of each resource",
            [Table(columns("POD SET", "PODS", "FLAVORS", right=["PODS"]), rows)],
        ),
        Section(
            "TRIED",
            "flavors in order, when the Workload first reached the head of the queue" if tried else "",
            [Listing(tried, noun="flavor")],
        ),
    ]


def _nodes(answer: KueueAnswer) -> Section:
    items: list[list[Words]] = []
    for each in answer.placement:
        item: list[Words] = [(strong(each.name), f": {each.placed} of {each.tried} pods land")]
        if each.tried < each.pods:
            item.append(f"{each.pods - each.tried} more not tried")
        if each.victims:
            item.append(
                f"evicting {count(len(each.victims), 'pod')}: {join_names(each.victims, limit=_MAX_LISTED)}",
            )
        if each.reason:
            item.append(each.reason)
        items.append(item)
    lead = "kube-scheduler's placement of the pods, in sequence" if items else ""
    return Section("NODES", lead, [Listing(items, noun="pod set")])


def _together(answer: KueueAnswer) -> str:
    reading = answer.together
    cycles = count(len(reading.cycles), "cycle")
    if reading.outcome is WorkloadOutcome.NOT_QUEUED:
        return f"it never reaches the head of the queue in {cycles}: {reading.message}"
    if reading.admitted_in:
        before = f", preempting {join_names([each.workload for each in reading.targets], limit=_MAX_LISTED)}"
        again = f", and preempted again in cycle {reading.evicted_in}" if reading.evicted_in else ""
        return f"admitted in cycle {reading.admitted_in}{before if reading.targets else ''}{again}"
    is_cut = any((each.subject, each.field) == ("Kueue", "cycles") for each in answer.assumptions)
    until = "simulation limit reached" if is_cut else "no further changes"
    why = "same reason" if reading.message == answer.alone.message else reading.message
    return f"not admitted after {cycles} ({until}): {why}"


def _quota(answer: KueueAnswer) -> Section:
    """The quota of the ClusterQueue and of the cohorts above it, before and after."""
    cycles = answer.alone.cycles
    if not cycles:
        return Section("QUOTA")
    before = {(each["kind"], each["name"]): each for each in cycles[0]["before"]}
    after = {(each["kind"], each["name"]): each for each in cycles[-1].get("after") or cycles[-1]["before"]}
    key = ("ClusterQueue", answer.cluster_queue)
    rows: list[tuple[str, ...]] = []
    while key in before:
        node, later = before[key], after.get(key, before[key])
        name = f"{node['name']}, share {node['share']}" if node["share"] != "0" else node["name"]
        for resource, quota in node["subtreeQuota"].items():
            used, then = node["usage"].get(resource, "0"), later["usage"].get(resource, "0")
            usage = used if used == then else f"{used} → {then}"
            rows.append((name, resource, quota, usage, node["available"][resource]))
            name = ""
        key = ("Cohort", node["parent"])
    titles = columns("NAME", "RESOURCE", "QUOTA", "USED", "AVAILABLE")
    return Section("QUOTA", "of the ClusterQueue and the cohorts above it" if rows else "", [Table(titles, rows)])


def report_pending(pending: PendingWorkloads, _options: RenderOptions) -> Report:
    """The number of pending Workloads by outcome, and each with its reason."""
    by_outcome = Counter(each.outcome.outcome for each in pending.items)
    outcomes = joined((f"{by_outcome[each]} ", Span(*_OUTCOMES[each])) for each in WorkloadOutcome if by_outcome[each])
    total = strong(count(len(pending.items), "Workload"))
    lead: Phrase = (total, " without quota: ", *outcomes, f", after {count(pending.cycles, 'cycle')}.")
    items = [_waiting(each) for each in pending.items]
    return Report(
        lead=lead if items else "No Workload waits for quota.",
        sections=[
            Section("WAITING", blocks=[Listing(items, noun="Workload", shown=_PENDING_SHOWN, is_numbered=True)]),
            *assumption_sections(pending.assumptions),
        ],
        is_complete=True,
    )


def _waiting(item: PendingWorkload) -> list[Words]:
    queue = f"ClusterQueue {item.cluster_queue}" if item.cluster_queue else f"LocalQueue {item.queue}"
    place = f", position {item.position}" if item.position else ""
    lines: list[Words] = [
        (strong(item.workload), ": ", *_outcome_in_words(item.outcome)),
        f"{queue}{place}, priority {item.priority:,}",
    ]
    if item.outcome.message:
        lines.append(item.outcome.message)
    if item.other_outcomes:
        lines.append(("or, by chance: ", *joined(map(_outcome_in_words, item.other_outcomes), ", or ")))
    return lines


def _outcome_in_words(result: AdmissionOutcome) -> Phrase:
    """The outcome for a Workload: its flavors, the cycle, and the Workloads it preempts."""
    flavors = _with_flavors(flavor for each in result.flavors.values() for flavor in each.values())
    targets = join_names([each.workload for each in result.targets], limit=_MAX_LISTED)
    again = f", and is preempted again in cycle {result.evicted_in}" if result.evicted_in else ""
    word = Span(*_OUTCOMES[result.outcome])
    if result.outcome is WorkloadOutcome.PREEMPTS:
        then = (
            f", then admitted{flavors} in cycle {result.admitted_in}" if result.admitted_in else ", and is not admitted"
        )
        return (word, f" {targets}{then}{again}")
    if result.outcome is WorkloadOutcome.QUOTA_RESERVED:
        return (word, f"{flavors} in cycle {result.admitted_in}, and waits for its admission checks{again}")
    if result.admitted_in:
        return (word, f"{flavors} in cycle {result.admitted_in}{again}")
    return (word,)


def report_comparison(comparison: KueueComparison, options: RenderOptions) -> Report:
    """The Workloads with different outcomes; all of them if ``verbose``."""
    # A single requested Workload is always shown.
    has_all = options.verbose or len(comparison.items) == 1
    items = [each for each in comparison.items if has_all or not each.is_same]
    total = count(len(comparison.items), "Workload")
    lead: Words = "No Workload waits for quota."
    if comparison.differing:
        verb = "has" if comparison.differing == 1 else "have"
        words = Span(f"{verb} or may have a different outcome", "warn")
        lead = (strong(f"{comparison.differing} of {total}"), " ", words, ".")
    elif comparison.items:
        lead = (strong(total), ": ", Span("all configurations agree", "good"), ".")

    def draw(item: ComparedWorkload) -> Section:
        rows = [
            (name, (*_outcome_in_words(result), _why(result)))
            for name, result in zip(comparison.names, item.outcomes, strict=True)
        ]
        facts = f"(ClusterQueue {item.cluster_queue}, priority {item.priority:,})"
        table = Table(columns("CONFIGURATION", "OUTCOME"), rows, is_untitled=True)
        return Section(item.workload, facts, [table])

    shown = len(items) if options.verbose else _COMPARED_SHOWN
    return Report(
        lead=lead,
        sections=[
            Section("COMPARED", blocks=[Cards(items, draw, noun="Workload", shown=shown)]),
            *assumption_sections(comparison.assumptions),
        ],
        is_complete=True,
    )


def _why(result: AdmissionOutcome) -> str:
    rules = dict.fromkeys(_RULES.get(each.reason, each.reason) for each in result.targets)
    if rules:
        return f" (by {', '.join(rules)})"
    return f": {result.message}" if result.message else ""


def report_at_risk(answer: WorkloadsAtRisk, options: RenderOptions) -> Report:
    """The Workloads with quota that would be preempted, by which ones, and what they borrow."""
    threatened = sum(bool(each.threats) for each in answer.items)
    lead: Words = "No Workload has quota."
    if answer.items:
        would = Span(f"{threatened} would be preempted", "bad" if threatened else "good")
        lead = (strong(count(len(answer.items), "Workload")), " with quota: ", would, ".")
    omitted = f"… and {answer.omitted:,} more (--limit shows more)" if answer.omitted else ""
    items = [list(_with_quota(each, options)) for each in answer.items]
    return Report(
        lead=lead,
        sections=[
            Section("WITH QUOTA", blocks=[Listing(items, noun="Workload"), Sentence(Span(omitted, "dim"))]),
            *assumption_sections(answer.assumptions),
        ],
        is_complete=True,
    )


def _with_quota(item: WorkloadAtRisk, options: RenderOptions) -> Iterable[Words]:
    pods = f", {count(len(item.pods), 'pod')}" if item.pods else ""
    yield (strong(item.workload), f" (ClusterQueue {item.cluster_queue}, priority {item.priority:,}{pods})")
    shown = item.threats if options.verbose else item.threats[:_THREATS]
    yield from map(_threat, shown)
    if len(item.threats) > len(shown):
        yield f"and {len(item.threats) - len(shown)} more (-v lists them)"
    if not item.threats:
        yield "no pending Workload would preempt it"
    for loan in item.borrowed:
        may = f", which {join_names(loan.reclaimers, limit=_THREATS)} may reclaim for a new Workload"
        borrows = f"its ClusterQueue borrows {loan.amount} of {loan.flavor_resource}"
        yield f"{borrows}{may if loan.reclaimers else ''}"


def _threat(threat: WorkloadThreat) -> Phrase:
    would = "would be preempted" if threat.is_certain else "may be preempted"
    then = ""
    if not threat.cycle:
        then = "; but not if all pending Workloads are considered"
    elif not threat.alone:
        then = f"; with all pending Workloads, in cycle {threat.cycle}"
    return (
        f"{would} for ",
        strong(threat.workload),
        f" (ClusterQueue {threat.cluster_queue}, priority {threat.priority:,}), by "
        f"{_RULES.get(threat.reason, threat.reason)}{then}",
    )


def report_preemptions(answer: PreemptionsOfWorkload, _options: RenderOptions) -> Report:
    """The Workloads for which a Workload was preempted, and the current state of both."""
    was = ": no condition or event shows that it was preempted."
    if answer.preemptions:
        number = len(answer.preemptions)
        was = f" was preempted at least {'once' if number == 1 else count(number, 'time')}."
    items: list[list[Words]] = []
    for each in answer.preemptions:
        when = format_time(each.at) if each.at else "before"
        by: Phrase = (f"{when}: for a Workload that is not in the cluster (UID {each.preemptor_uid or 'UNKNOWN'})",)
        if each.preemptor:
            by = (f"{when}: for ", strong(each.preemptor), f", now {each.state}")
        items.append([by, each.message])
    return Report(
        lead=(strong(f"Workload {answer.workload}"), f" ({answer.state}){was}"),
        sections=[Section("PREEMPTED", blocks=[Listing(items, noun="preemption")])],
        is_complete=True,
    )
