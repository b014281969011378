"""Compare algorithms, and the effects of an upgrade: the decisions, where they differ, and why."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.meta import grouped
from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import (
    Block,
    Cards,
    Count,
    Fold,
    Listing,
    Phrase,
    Report,
    Role,
    Rows,
    Section,
    Sentence,
    Span,
    Table,
    Words,
    columns,
    strong,
)
from kpreempt.report.evidence import OUTCOMES, assumption_sections, join_names
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Outcome
from kpreempt.verdict.compare import (
    Certainty,
    ComparedPod,
    Comparison,
    Decision,
    Difference,
    Step,
    UpgradeComparison,
    UpgradedPod,
    UpgradeEffect,
    UpgradeGroup,
    VersionChange,
)

_NODES_LISTED = 2
_VICTIMS_LISTED = 4
_ROWS_SHOWN = 20
_DIFFERENCES_SHOWN = 5
_GATES_SHOWN = 4
_MAY = "“May”: the outcome depends on chance, the order of tied pods, or where the node search stops."
_ERRORS, _DECISIONS, _DIFFERENCE, _PAIRS, _CAUSE = 90, 80, 70, 60, 50
_STEPS: dict[Step, str] = {
    Step.ATTEMPT: "the attempt",
    Step.FILTER: "filtering",
    Step.SCORES: "scoring",
    Step.ELIGIBILITY: "eligibility",
    Step.POTENTIAL_NODES: "the nodes tried for preemption",
    Step.CANDIDATES: "the dry run",
    Step.VICTIMS: "the victims",
    Step.BUDGET_VIOLATIONS: "budget violations",
    Step.CHOICE: "the choice",
    Step.NOMINATED_NODES: "the nominated node",
    Step.OUTCOME: "the outcome",
}
_EFFECTS: dict[UpgradeEffect, tuple[str, str, Role]] = {
    UpgradeEffect.NO_LONGER_LANDS: ("no longer lands", "may no longer land", "bad"),
    UpgradeEffect.EVICTS: ("preempts differently", "may preempt differently", "bad"),
    UpgradeEffect.LANDS_ELSEWHERE: ("lands elsewhere", "may land elsewhere", "warn"),
    UpgradeEffect.EVICTS_NO_PODS: ("preempts no pods", "may preempt no pods", "good"),
    UpgradeEffect.LANDS_NOW: ("lands now", "may land now", "good"),
    UpgradeEffect.ATTEMPT: ("tried differently", "may be tried differently", "warn"),
    UpgradeEffect.UNKNOWN: ("unknown", "unknown", "warn"),
}


def comparison_report(comparison: Comparison, _options: RenderOptions) -> Report:
    """For one pod, each decision and the differences; for many, a matrix, the differences by pod, and the pairs."""
    items = comparison.items
    errors = [item for item in items if item.error]
    differing = [item for item in items if not item.error and not item.is_same]
    words = "differ" if comparison.differing else "some undecided" if errors else "agree"
    lead: Phrase = ("No pod matches.",)
    rows: list[list[Words]] = []
    if len(items) == 1:
        lead = _headline(items[0])
        base = items[0].decisions[0].algorithm if items[0].decisions else ""
        rows = [
            [Span(each.algorithm, "warn" if base in each.differs_from else ""), _decision(each)]
            for each in items[0].decisions
        ]
        table = Table(columns("ALGORITHM", "DECISION"), rows, noun="algorithm", is_untitled=True)
        decided = Section("DECISIONS", blocks=[table], reserved_lines=4, priority=_DECISIONS)
        sections = [] if errors else [decided, *_difference_sections(items[0])]
    else:
        lead = (
            _agreement(comparison) if len(errors) < len(items) else ("No pod could be evaluated.",) if items else lead
        )
        sections = [
            _matrix(comparison, differing),
            Section("DIFFERENCES", blocks=[Cards(differing, _of_pod, noun="pod", shown=_DIFFERENCES_SHOWN)]),
        ]
    failures: list[list[Words]] = [[strong(_title(item)), item.error] for item in errors]
    failed = Table(
        columns("POD", "WHY"), failures, noun="pod", caption="Pods that could not be evaluated", is_untitled=True
    )
    pairs: list[list[Words]] = []
    if len(comparison.algorithms) > 2 and len(items) > 1:
        pairs = [[f"{each.base} and {each.other}", f"{each.differing:,}"] for each in comparison.pairs]
    counts = [
        Count("pods", len(items)),
        Count("decided differently", comparison.differing, comparison.differing > 0),
        *([Count("not evaluated", len(errors), is_bad=True)] if errors else []),
    ]
    steps = "every step that differs"
    return Report(
        title=("kpreempt compare", ": " if items else "", Span(words if items else "", "strong")),
        tone="good" if items and not comparison.differing and not errors else "warn",
        lead=lead,
        counts=counts,
        page_facts=comparison.algorithms,
        sections=[
            Section(
                "ERRORS",
                f"{count(len(errors), 'pod')} could not be evaluated" if errors else "",
                [failed],
                anchor="failed",
                style="bad",
                priority=_ERRORS,
            ),
            *sections,
            Section(
                "PAIRS",
                "number of pods on which two algorithms differ" if pairs else "",
                [Table(columns("PAIR", "PODS", right=["PODS"]), pairs, noun="pair", is_untitled=True)],
                priority=_PAIRS,
            ),
            *assumption_sections(comparison.assumptions),
        ],
        more=[("-v", steps if len(items) < 2 else f"every pod, {steps}")],
        command="compare",
    )


def _headline(item: ComparedPod) -> Phrase:
    """Whether all algorithms agree about the pod, or why they cannot be compared."""
    if item.error:
        return (strong(_title(item)), Span(" could not be evaluated", "bad"), f": {item.error}")
    words = Span("all algorithms agree", "good") if item.is_same else Span("the algorithms differ", "warn")
    return (strong(_title(item)), f" (priority {item.priority:,}): ", words, ".")


def _difference_sections(item: ComparedPod) -> list[Section]:
    """The differences from the first algorithm; algorithms with the same differences are grouped."""
    return [
        Section(
            "DIFFERS",
            _first_difference(item, group),
            _sides(item, group),
            heading="Differences",
            anchor=f"difference-{number}",
            priority=_DIFFERENCE,
            short=Section(
                "DIFFERS",
                (
                    *_first_difference(item, group),
                    f": {group[0].differences[0].base} → {group[0].differences[0].other}",
                ),
            ),
        )
        for number, group in enumerate(_differing_groups(item), 1)
    ]


def _of_pod(item: ComparedPod) -> Section:
    """The differences for one pod of several."""
    blocks: list[Block] = [Rows([(each.algorithm, _decision(each)) for each in item.decisions])]
    groups = _differing_groups(item)
    for group in groups:
        blocks += [Sentence((*_first_difference(item, group), ":")), *_sides(item, group)]
    if not groups:
        blocks.append(Sentence("The algorithms after the first differ from each other."))
    return Section(_title(item), f"priority {item.priority:,}", blocks)


def _differing_groups(item: ComparedPod) -> list[list[Decision]]:
    """The decisions that differ from the first, grouped by their differences."""

    def differences(decision: Decision) -> tuple[object, ...]:
        return tuple((each.step, each.subject, each.base, each.other) for each in decision.differences)

    return list(grouped(filter(differences, item.decisions), differences).values())


def _first_difference(item: ComparedPod, group: Sequence[Decision]) -> Phrase:
    """The algorithms that differ from the first, and the step at which they do."""
    others = [each.algorithm for each in group]
    return (
        *(strong(join_names(others, limit=len(others))), f" {agree(len(others), 'differs')} from "),
        *(strong(item.decisions[0].algorithm), " in ", Span(_place_of(group[0].differences[0]), "heading")),
    )


def _sides(item: ComparedPod, group: Sequence[Decision]) -> list[Block]:
    """What each algorithm decides where they first differ, and after that."""
    later = group[0].differences[1:]
    blocks: list[Block] = [_side(item.decisions[0].algorithm, group, 0)]
    if later:
        rest: list[Block] = []
        for index, each in enumerate(later, start=1):
            rest += [Sentence(f"then at {_place_of(each)}:"), _side(item.decisions[0].algorithm, group, index)]
        steps = join_names([_STEPS[each.step] for each in later], limit=len(later))
        blocks.append(Fold(f"and then at {steps}", rest, is_brief=True))
    return blocks


def _side(base: str, group: Sequence[Decision], index: int) -> Rows:
    differences = [(each.algorithm, each.differences[index]) for each in group]
    first = differences[0][1]
    sides = [(base, first.base, first.base_reason)]
    sides += [(algorithm, each.other, each.other_reason) for algorithm, each in differences]
    rows: list[tuple[Words, Words]] = []
    for number, (algorithm, decision, reason) in enumerate(sides):
        is_repeated = number > 1 and (decision, reason) == sides[number - 1][1:]
        words: Phrase = ("the same",) if is_repeated else (decision, Span(f"  ({reason})", "dim") if reason else "")
        rows.append((algorithm, words))
    return Rows(rows)


def _place_of(difference: Difference) -> str:
    """The step at which they differ, with its node or rule."""
    if difference.step == Step.CHOICE:
        return f"{_STEPS[difference.step]}, rule {difference.subject}"
    others = f" and {count(difference.others, 'more node')}" if difference.others else ""
    subject = f" ({difference.subject}{others})" if difference.subject else ""
    return f"{_STEPS[difference.step]}{subject}"


def _agreement(comparison: Comparison) -> Phrase:
    """The number of pods on which the algorithms differ, and the number that could not be evaluated."""
    pods = count(len(comparison.items), "pod")
    decided = sum(not item.error for item in comparison.items)
    style: Role = "warn" if comparison.differing else "good"
    subject = " and ".join(comparison.algorithms) if len(comparison.algorithms) == 2 else "The algorithms"
    number = comparison.differing
    failed = len(comparison.items) - decided
    words = f" on {number or decided:,} of {pods}" if number or failed else f" on all {pods}"
    undecided = Span(f"; {failed:,} could not be evaluated" if failed else "", "bad")
    return (strong(subject), Span(" differ" if number else " agree", style), words, undecided, ".")


def _matrix(comparison: Comparison, differing: Sequence[ComparedPod]) -> Section:
    """A row per pod: the first algorithm's decision, and the others if they differ from it."""
    decided = sorted((item for item in comparison.items if not item.error), key=lambda item: item.is_same)
    titles = columns("POD", *comparison.algorithms, "DIFFER AT")
    caption = f"The decision on each pod; =: same as {comparison.algorithms[0]}" if comparison.algorithms else ""

    def table(items: Sequence[ComparedPod]) -> Table:
        rows: list[list[Words]] = []
        for item in items:
            base = item.decisions[0].algorithm
            cells: list[Words] = [
                _in_brief(each) if each.algorithm == base or base in each.differs_from else "="
                for each in item.decisions
            ]
            steps = dict.fromkeys(_STEPS[each.differences[0].step] for each in item.decisions if each.differences)
            rows.append([strong(_title(item)), *cells, ", ".join(steps)])
        return Table(titles, rows, noun="pod", caption=caption, shown=_ROWS_SHOWN)

    evicts = any(decision.victims for item in decided for decision in item.decisions)
    legend = "; ".join(
        [f"=: same as {comparison.algorithms[0]}", *(["-N: N pods evicted"] if evicts else [])] if decided else []
    )
    short = Section("PODS", legend if differing else "", [table(differing)])
    return Section("PODS", legend, [table(decided)], heading="Decisions", priority=_DECISIONS, short=short)


def _title(item: ComparedPod) -> str:
    """The name of the pod, or of its scenario."""
    return item.name or item.pod or "the scenario"


def _decision(decision: Decision) -> Phrase:
    """The outcome in one line; the victims only if there is one node."""
    word, style, *_ = OUTCOMES[decision.outcome]
    nodes = join_names(decision.nodes, limit=_NODES_LISTED).replace(" and ", " or ", 1)
    if decision.outcome == Outcome.LANDS:
        return (Span(word, style), f" on {nodes}")
    if not decision.victims:
        return (Span(word, style), f": {decision.reason}" if decision.reason else "")
    victims = decision.victims.get(decision.nodes[0], []) if len(decision.nodes) == 1 else []
    number = max(map(len, decision.victims.values()))
    named = f": {join_names(victims, limit=_VICTIMS_LISTED)}" if victims else ""
    violations = decision.num_pdb_violations
    spent = f"; {count(violations, 'budget violation')}" if violations else ""
    return (Span(word, style), f" {count(number, 'pod')} on {nodes}{named}", Span(spent, "bad"))


def _in_brief(decision: Decision) -> Phrase:
    """The node and the number of pods evicted from it, or the outcome if there is no node."""
    style = OUTCOMES[decision.outcome].style
    if not decision.nodes:
        return (Span(OUTCOMES[decision.outcome].short, style),)
    node = decision.nodes[0] if len(decision.nodes) == 1 else f"one of {len(decision.nodes):,}"
    number = max(map(len, decision.victims.values()), default=0)
    return (node, Span(f" -{number}", style) if decision.victims else "")


def upgrade_report(answer: UpgradeComparison, options: RenderOptions) -> Report:
    """The number of pods with another outcome, these pods grouped by cause, and what is unknown."""
    changes = {change.name: change for change in answer.changes}
    sections = []
    for number, group in enumerate(answer.groups, 1):
        lead, blocks = _cause(group, changes)
        pods = [
            item for item in answer.items if item.causes == group.causes and item.certainty is not Certainty.UNKNOWN
        ]
        anchor = f"change-{number}"
        sections.append(Section("CHANGE", lead, [*blocks, _pods(pods)], anchor=anchor, priority=_CAUSE))
    unknown = [item for item in answer.items if item.certainty is Certainty.UNKNOWN]
    shown = len(answer.unmodeled) if options.verbose else _GATES_SHOWN
    gates = "gate" if len(answer.unmodeled) == 1 else "gates"
    names = join_names(answer.unmodeled, limit=shown)
    return Report(
        lead=_upgrade_headline(answer),
        facts=[_MAY] if answer.possibly_differing else [],
        sections=[
            *sections,
            Section(
                "UNKNOWN",
                "the outcome is unknown in one of the versions:" if unknown else "",
                [_pods(unknown)],
                priority=_CAUSE,
            ),
            Section(
                "UNMODELED",
                f"{gates} whose default changes in {answer.target}: {names}." if answer.unmodeled else "",
            ),
            *assumption_sections(answer.assumptions),
        ],
        more=[("-v", "every pod by cause, gates that are not modeled, all assumptions")],
        command="compare",
    )


def _upgrade_headline(answer: UpgradeComparison) -> Phrase:
    title = strong(f"From {answer.base} to {answer.target}")
    if not answer.compared:
        return (title, ": no pod matches.")
    pods = count(answer.compared, "pod")
    if answer.passes:
        every = "the pod keeps its outcome" if answer.compared == 1 else f"all {pods} keep their outcome"
        return (title, ": ", Span(every, "good"), ".")
    parts: list[str] = []
    if answer.differing:
        parts.append(f"{answer.differing:,} of {pods} {agree(answer.differing, 'has')} a different outcome")
    if answer.possibly_differing:
        number = f"{answer.possibly_differing:,}"
        parts.append(f"{number} more may" if parts else f"{number} of {pods} may have a different outcome")
    if answer.undecided:
        parts.append(f"{answer.undecided:,} {agree(answer.undecided, 'is')} unknown")
    return (title, ": ", Span(", ".join(parts), "warn"), ".")


def _cause(group: UpgradeGroup, changes: dict[str, VersionChange]) -> tuple[Phrase, list[Block]]:
    """The changes, each with its sentence and source."""
    if not group.causes:
        return (strong("Several changes combined"), "; none of them alone changes the outcome."), []
    sentences: list[Phrase] = [
        (strong(changes[each].sentence), Span(f" ({changes[each].source})", "dim")) for each in group.causes
    ]
    if len(sentences) == 1:
        return sentences[0], []
    return (strong("These changes combined:"),), [Listing([[each] for each in sentences], noun="change")]


def _pods(items: Sequence[UpgradedPod]) -> Table:
    """The changes for each pod, those that get worse first."""
    order = list(UpgradeEffect)
    ranked = sorted(items, key=lambda item: (order.index(item.effect), item.certainty is not Certainty.CERTAIN))
    rows: list[list[Words]] = []
    for item in ranked:
        certain, possible, style = _EFFECTS[item.effect]
        words = certain if item.certainty is Certainty.CERTAIN else possible
        outcome = (*_decision(item.base), Span(" → ", "dim"), *_decision(item.target))
        rows.append([strong(item.origin or item.pod), Span(words, style), outcome])
    titles = columns("POD", "EFFECT", "BEFORE AND AFTER")
    return Table(titles, rows, noun="pod", shown=_ROWS_SHOWN, is_untitled=True)
