"""Several algorithms side by side, for a terminal: one pod in full, or a matrix of many."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import Page, Phrase, Span, Style, strong
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.verdict import Outcome
from kpreempt.verdict.compare import ComparedPod, Comparison, Decision, Difference, Step

_INDENT = 2
_NODES_NAMED = 2
_VICTIMS_NAMED = 4
_ROWS_SHOWN = 20
_DIFFERENCES_SHOWN = 5
_OUTCOMES: dict[Outcome, tuple[str, Style]] = {
    Outcome.LANDS: ("lands", "good"),
    Outcome.PREEMPTS: ("preempts", "warn"),
    Outcome.PREEMPTS_VIOLATING_BUDGETS: ("preempts", "bad"),
    Outcome.NEVER_LANDS: ("pending", "bad"),
    Outcome.NOT_SCHEDULED: ("held", "warn"),
    Outcome.UNCERTAIN: ("uncertain", "warn"),
}
STEPS: dict[Step, str] = {
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


def render_comparison(comparison: Comparison, options: RenderOptions) -> str:
    """One pod: what each decides, and where they differ. Many: a matrix, the differences pod by pod, and the pairs.

    On a screen as much of it as fits.
    """
    if options.extent is Extent.SCREEN:
        from kpreempt.report.compare_screen import render_screen  # noqa: PLC0415 - the report needs none of it

        return render_screen(comparison, options)
    page = Page(options.width)
    if not comparison.items:
        page.paragraph("No pod matches.")
    elif len(comparison.items) == 1:
        _add_pod(page, comparison.items[0], options)
    else:
        _add_many(page, comparison, options)
    add_assumptions_section(page, comparison.assumptions, options)
    return finished(page, options)


def _add_pod(page: Page, item: ComparedPod, options: RenderOptions) -> None:
    page.paragraph(*headline_of_pod(item), hanging=_INDENT)
    if item.error:
        return
    page.blank()
    page.table(decision_rows(item), aligns=("left", "left"), indent=_INDENT)
    _add_differences(page, item, options)


def headline_of_pod(item: ComparedPod) -> Phrase:
    """Whether all decide alike about the pod, or why they cannot."""
    if item.error:
        return (strong(title_of(item)), Span(" cannot be decided", "bad"), f": {item.error}")
    words = Span("all decide alike", "good") if item.is_same else Span("the algorithms differ", "warn")
    return (strong(title_of(item)), f" (priority {item.priority:,}): ", words, ".")


def decision_rows(item: ComparedPod) -> list[tuple[Phrase, Phrase]]:
    """Each algorithm with its decision."""
    return [(_name(each, item), decision_words(each)) for each in item.decisions]


def differing_groups(item: ComparedPod) -> list[list[Decision]]:
    """The decisions that differ from the first, those together that differ at the same."""
    groups: dict[tuple[object, ...], list[Decision]] = {}
    for decision in item.decisions:
        if decision.differences:
            key = tuple((each.step, each.subject, each.base, each.other) for each in decision.differences)
            groups.setdefault(key, []).append(decision)
    return list(groups.values())


def _add_differences(page: Page, item: ComparedPod, options: RenderOptions) -> None:
    """Where each differs from the first; those together that differ at the same."""
    base = item.decisions[0].algorithm
    for group in differing_groups(item):
        later = group[0].differences[1:]
        page.blank()
        page.paragraph(*parting(item, group), hanging=_INDENT)
        page.table(sides(base, group, 0), aligns=("left", "left"), indent=2 * _INDENT)
        if options.verbose:
            for index, each in enumerate(later, start=1):
                page.paragraph(f"then at {place_of(each)}", indent=_INDENT)
                page.table(sides(base, group, index), aligns=("left", "left"), indent=2 * _INDENT)
        elif later:
            words = join_names([STEPS[each.step] for each in later], limit=len(later))
            page.paragraph(Span(f"and then at {words}", "dim"), indent=_INDENT, hanging=_INDENT)


def parting(item: ComparedPod, group: Sequence[Decision]) -> Phrase:
    """Who differs from the first algorithm, and at which step."""
    others = [each.algorithm for each in group]
    return (
        *(strong(join_names(others, limit=len(others))), f" {agree(len(others), 'differs')} from "),
        *(strong(item.decisions[0].algorithm), " at ", Span(place_of(group[0].differences[0]), "heading")),
    )


def sides(base: str, group: Sequence[Decision], index: int) -> list[tuple[Phrase, ...]]:
    """What each says of the difference at ``index``."""
    differences = [(each.algorithm, each.differences[index]) for each in group]
    first = differences[0][1]
    told = [(base, first.base, first.base_reason)]
    told += [(name, each.other, each.other_reason) for name, each in differences]
    rows: list[tuple[Phrase, ...]] = []
    for number, (name, said, reason) in enumerate(told):
        is_repeated = number > 1 and (said, reason) == told[number - 1][1:]
        words: Phrase = ("the same",) if is_repeated else (said, Span(f"  ({reason})", "dim") if reason else "")
        rows.append(((name,), words))
    return rows


def place_of(difference: Difference) -> str:
    """The step at which two differ, with the node or rule that it is about."""
    if difference.step == Step.CHOICE:
        return f"{STEPS[difference.step]}, rule {difference.subject}"
    subject = f", {difference.subject}" if difference.subject else ""
    others = f" and {count(difference.others, 'more node')}" if difference.others else ""
    return f"{STEPS[difference.step]}{subject}{others}"


def _add_many(page: Page, comparison: Comparison, options: RenderOptions) -> None:
    page.paragraph(*agreement(comparison))
    shown = [item for item in comparison.items if not item.error and (options.verbose or not item.is_same)]
    rows = shown if options.verbose else shown[:_ROWS_SHOWN]
    if rows:
        page.blank()
        table = matrix(page, rows, comparison.algorithms)
        page.table(table, aligns=["left"] * len(table[0]), indent=_INDENT)
        if rest := len(shown) - len(rows):
            page.paragraph(Span(f"… and {count(rest, 'more pod')} (-v)", "dim"), indent=_INDENT)
    differing = [item for item in shown if not item.is_same]
    for item in differing if options.verbose else differing[:_DIFFERENCES_SHOWN]:
        page.blank()
        page.paragraph(strong(title_of(item)))
        _add_differences(page, item, options)
    _add_pairs(page, comparison)
    for item in comparison.items:
        if not item.error:
            continue
        page.blank()
        page.paragraph(*headline_of_pod(item), hanging=_INDENT)


def agreement(comparison: Comparison) -> Phrase:
    """On how many of the pods that could be decided the algorithms differ."""
    decided = sum(not item.error for item in comparison.items)
    style: Style = "warn" if comparison.differing else "good"
    subject = " and ".join(comparison.algorithms) if len(comparison.algorithms) == 2 else "The algorithms"
    number = comparison.differing
    words = f" on {number:,} of {count(decided, 'pod')}." if number else f" on {_all(decided)}."
    return (strong(subject), Span(" differ" if number else " agree", style), words)


def _all(number: int) -> str:
    return "the pod" if number == 1 else f"all {count(number, 'pod')}"


def matrix(page: Page, items: Sequence[ComparedPod], algorithms: Sequence[str]) -> list[tuple[Phrase, ...]]:
    """Titles, and a row for each pod: the decision of the first algorithm, and of the others where it is another."""
    titles = ("POD", *algorithms, "DIFFER AT")
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    for item in items:
        base = item.decisions[0].algorithm
        cells = [
            decision_in_brief(each) if each.algorithm == base or base in each.differs_from else ("=",)
            for each in item.decisions
        ]
        steps = dict.fromkeys(STEPS[each.differences[0].step] for each in item.decisions if each.differences)
        rows.append(((strong(title_of(item)),), *cells, (", ".join(steps),)))
    # Where they differ is told below, too.
    if not page.fits(rows, indent=_INDENT):
        return [row[:-1] for row in rows]
    return rows


def _add_pairs(page: Page, comparison: Comparison) -> None:
    if len(comparison.algorithms) < 3:
        return
    page.blank()
    page.paragraph(Span("PAIRS", "heading"), "  pods on which two algorithms differ")
    rows = [((f"{each.base} and {each.other}",), (f"{each.differing:,}",)) for each in comparison.pairs]
    page.table(rows, aligns=("left", "right"), indent=_INDENT)


def title_of(item: ComparedPod) -> str:
    """The name of the pod, or of its scenario."""
    return item.name or item.pod or "the scenario"


def _name(decision: Decision, item: ComparedPod) -> Phrase:
    is_other = item.decisions[0].algorithm in decision.differs_from
    return (Span(decision.algorithm, "warn" if is_other else ""),)


def decision_words(decision: Decision) -> Phrase:
    """What becomes of the pod in one line; who goes only where it is one node."""
    word, style = _OUTCOMES[decision.outcome]
    nodes = join_names(decision.nodes, limit=_NODES_NAMED).replace(" and ", " or ", 1)
    if decision.outcome == Outcome.LANDS:
        return (Span(word, style), f" on {nodes}")
    if not decision.victims:
        return (Span(word, style), f": {decision.reason}" if decision.reason else "")
    victims = decision.victims.get(decision.nodes[0], []) if len(decision.nodes) == 1 else []
    number = max(map(len, decision.victims.values()))
    named = f": {join_names(victims, limit=_VICTIMS_NAMED)}" if victims else ""
    violations = decision.num_pdb_violations
    spent = f"; {count(violations, 'budget violation')}" if violations else ""
    return (Span(word, style), f" {count(number, 'pod')} on {nodes}{named}", Span(spent, "bad"))


def decision_in_brief(decision: Decision) -> Phrase:
    """The node and how many pods are evicted from it, or the outcome where there is none."""
    word, style = _OUTCOMES[decision.outcome]
    if not decision.nodes:
        return (Span(word, style),)
    node = decision.nodes[0] if len(decision.nodes) == 1 else f"any of {len(decision.nodes):,}"
    number = max(map(len, decision.victims.values()), default=0)
    return (node, Span(f" -{number}", style) if decision.victims else "")
