"""What the dry run tried: which nodes would have room without their lower-priority pods, and who goes."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count, plural
from kpreempt.report.durations import format_since
from kpreempt.report.evidence import describe_shortage
from kpreempt.report.explain.choice import order_by_survival
from kpreempt.report.explain.failures import Depth, add_failures, is_crowd, may_be_mended
from kpreempt.report.explain.victims import bare_name
from kpreempt.report.layout import LABEL_COLUMN, Align, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions, reference_time
from kpreempt.scheduler_table import row_of
from kpreempt.verdict import Candidate, Reprieve, Verdict
from kpreempt.verdict.unread import are_budgets_unread

_ALIGNS: tuple[Align, ...] = ("left", "right", "left", "left")
_STEPS_SHOWN = 5
_STEPS_SHOWN_OF_CROWD = 3
_COSTS_SHOWN = 2
_NODES_SHOWN = 3


def add_eligibility_section(page: Page, verdict: Verdict) -> None:
    """``2 ELIGIBLE``: whether the pod may evict at all."""
    if verdict.eligibility is None:
        return
    page.blank()
    page.labelled(Span("2 ELIGIBLE", "heading"), *describe_eligibility(verdict), column=LABEL_COLUMN)


def describe_eligibility(verdict: Verdict) -> Phrase:
    """Whether the pod may evict at all, and why; nothing where that was not asked."""
    eligibility = verdict.eligibility
    if eligibility is None:
        return ()
    if not eligibility.eligible:
        return (Span("no", "bad"), f": {eligibility.reason}")
    policy = verdict.pod.preemption_policy
    # Only an old scheduler lets such a pod evict others.
    passed_over = ", which does not count here" if policy == "Never" else ""
    phrase: Phrase = (Span("yes", "good"), f": preemptionPolicy {policy}{passed_over}")
    if verdict.pod.nominated_node_name:
        phrase = (*phrase, f", and nothing terminating on {verdict.pod.nominated_node_name} holds it back")
    return phrase


def add_dry_run_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """``3 DRY RUN``: the candidates with the steps of choosing their victims, and the nodes where no eviction helps."""
    if verdict.eligibility is None or not verdict.eligibility.eligible:
        return
    page.blank()
    page.labelled(Span("3 DRY RUN", "heading"), *describe_dry_run(verdict), column=LABEL_COLUMN)
    ordered = order_by_survival(verdict)
    in_full = len(ordered) if options.verbose else _in_full(ordered)
    for candidate in ordered[:in_full]:
        add_candidate(page, candidate, verdict, options)
    _add_summaries(page, ordered[in_full:], verdict)
    if verdict.dry_run:
        owned = "their lower-priority pods" if not verdict.eviction_rule else _evictable(verdict)
        page.paragraph(Span(f"still refused without {owned}:", "dim"), indent=2)
        depth = Depth.REASONS if is_crowd(verdict, options) else Depth.CAUSES
        add_failures(page, verdict.dry_run, options, indent=4, depth=depth)


def _evictable(verdict: Verdict) -> str:
    return f"the pods that {verdict.eviction_rule} lets it preempt" if verdict.eviction_rule else "lower-priority pods"


def describe_dry_run(verdict: Verdict) -> Phrase:
    """How many nodes were tried, and how many are candidates."""
    tried = len(verdict.potential_nodes)
    if not tried and verdict.pre_filter is not None and may_be_mended(verdict.pre_filter.code):
        return (Span("no node is tried: the preemption ends in an error", "bad"),)
    if not tried:
        return (Span("no node to try: preemption helps on none", "bad"),)
    found = len(verdict.candidates)
    return (
        f"{count(tried, 'node')} tried without {_evictable(verdict)}: ",
        Span(count(found, "candidate"), "good" if found else "bad"),
    )


def _in_full(ordered: Sequence[Candidate]) -> int:
    """How many candidates show their steps: all while that is short, otherwise the one that lasts longest."""
    is_short = len(ordered) <= 3 and sum(len(candidate.steps) for candidate in ordered) <= 2 * _STEPS_SHOWN
    return len(ordered) if is_short else 1


def add_candidate(page: Page, candidate: Candidate, verdict: Verdict, options: RenderOptions) -> None:
    """A candidate with its cost, and the steps of choosing its victims where they were recorded."""
    page.paragraph(strong(candidate.node), "  ", *describe_cost(candidate, verdict), indent=2, hanging=2)
    if not candidate.steps:
        return
    in_short = is_crowd(verdict, options)
    limit = _STEPS_SHOWN_OF_CROWD if in_short else _STEPS_SHOWN
    steps = candidate.steps if options.verbose else _shown_steps(candidate.steps, limit)
    now = reference_time(verdict, options)
    ages = [format_since(step.start_time, now) for step in steps]
    titles = ("POD", "PRIORITY", "RUNNING", "REPRIEVE ORDER")
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in titles)]
    rows += [_step_row(step, age) for step, age in zip(steps, ages, strict=True)]
    if in_short:
        # The victims' table has the ages.
        page.table(
            [(pod, priority, fate) for pod, priority, _, fate in rows], aligns=_ALIGNS[:2] + _ALIGNS[3:], indent=4
        )
    else:
        page.table(rows, aligns=_ALIGNS, indent=4)
    hidden = [step for step in candidate.steps if step not in steps]
    if hidden:
        gone, kept = sum(not step.kept for step in hidden), sum(step.kept for step in hidden)
        parts = [f"{gone:,} more evicted"] if gone else []
        parts += [f"{kept:,} more reprieved"] if kept else []
        page.paragraph(Span(f"… {', '.join(parts)} (-v -v shows all)", "dim"), indent=4)


def _shown_steps(steps: Sequence[Reprieve], limit: int) -> list[Reprieve]:
    """At most ``limit`` steps, evictions before the others, in the order in which they were taken."""
    by_weight = sorted(range(len(steps)), key=lambda index: (steps[index].kept, index))
    return [steps[index] for index in sorted(by_weight[:limit])]


def _step_row(step: Reprieve, age: str) -> tuple[Phrase, ...]:
    spent = name_spent(step) if step.violates_budget else ""
    fate: Phrase
    if step.kept:
        fate = (Span("reprieved", "good"), f" (tried first: {spent} allows no more)" if spent else "")
    else:
        why = describe_shortage(step.blocked_by) if step.blocked_by else "no reason given"
        fate = (Span("evicted", "warn"), f": {why}", Span(f"; violates {spent}", "bad") if spent else "")
    return ((step.pod,), (f"{step.priority:,}",), (age,), fate)


def name_spent(step: Reprieve) -> str:
    """The budgets that the step's eviction would violate."""
    names = [bare_name(use.budget) for use in step.budgets if use.left < 0]
    return f"budget {' and '.join(names)}" if names else "a budget"


def describe_cost(candidate: Candidate, verdict: Verdict) -> Phrase:
    """How many pods would be evicted there, and how many evictions would violate budgets."""
    victims, violations = len(candidate.victims), candidate.num_pdb_violations
    return (
        count(victims, "victim"),
        ", ",
        Span(count(violations, "budget violation"), "bad") if violations else _no_violations(verdict),
    )


def knows_budgets(verdict: Verdict) -> bool:
    """Whether the scheduler asks for budgets, and they could be read."""
    return row_of(verdict.algorithm).reads_budgets and not are_budgets_unread(verdict.assumptions)


def _no_violations(verdict: Verdict) -> Span:
    if are_budgets_unread(verdict.assumptions):
        return Span("budgets not read", "warn")
    return Span("no budget violated", "good") if row_of(verdict.algorithm).reads_budgets else Span("budgets not asked")


def _add_summaries(page: Page, candidates: Sequence[Candidate], verdict: Verdict) -> None:
    """The other candidates: on one line for each cost where the costs are few, otherwise as ranges."""
    by_cost: dict[tuple[int, int], list[str]] = {}
    for candidate in candidates:
        by_cost.setdefault((len(candidate.victims), candidate.num_pdb_violations), []).append(candidate.node)
    if len(by_cost) > _COSTS_SHOWN:
        victims, violations = zip(*by_cost, strict=True)
        page.paragraph(
            f"{count(len(candidates), 'other candidate')}  {_range(victims, 'victim')}, ",
            f"{_range(violations, 'budget violation')} each" if any(violations) else _no_violations(verdict),
            indent=2,
            hanging=2,
        )
        return
    sample = {candidate.node: candidate for candidate in candidates}
    for nodes in by_cost.values():
        each = " each" if len(nodes) > 1 else ""
        more = f" and {len(nodes) - _NODES_SHOWN:,} more" if len(nodes) > _NODES_SHOWN else ""
        names = ", ".join(nodes[:_NODES_SHOWN])
        page.paragraph(f"{names}{more}", "  ", *describe_cost(sample[nodes[0]], verdict), each, indent=2, hanging=2)


def _range(numbers: Sequence[int], noun: str) -> str:
    low, high = min(numbers), max(numbers)
    return count(low, noun) if low == high else f"{low:,} to {high:,} {plural(noun)}"
