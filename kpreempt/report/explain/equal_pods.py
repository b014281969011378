"""What the unknown order of equal pods leaves open, in words."""

from __future__ import annotations

from kpreempt.report.amounts import agree, count
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Alternatives, PodChoice, PossibleOutcome, Verdict

_OUTCOMES_SHOWN = 4
_PODS_NAMED = 4
WHY = (
    "Pods of equal priority and start time go in the order of the scheduler's cache, which nothing shows from outside; "
    "most likely the one that was updated last goes first."
)


def order_in_a_sentence(verdict: Verdict) -> str:
    """What hangs on the order of equal pods, for the headline; empty where nothing does."""
    alternatives = verdict.alternatives
    if alternatives is None:
        return ""
    outcomes = alternatives.outcomes
    nodes = list(dict.fromkeys(each.node for each in outcomes))
    sizes = sorted({each.num_victims for each in outcomes})
    if alternatives.exact and len(outcomes) == 1:
        choices = outcomes[0].choices
        if len(choices) == 1:
            return f"It is {_choice(choices[0], named=2)}; only the scheduler knows their order."
        return f"Which of {count(sum(len(each.pods) for each in choices), 'equal pod')} go, only the scheduler knows."
    parts = []
    others = [node for node in nodes if node not in verdict.nominated_nodes]
    if others:
        parts.append(f"it may be {join_names(others, limit=2).replace(' and ', ' or ', 1)} instead")
    if len(sizes) > 1:
        parts.append(f"{sizes[0]:,} to {count(sizes[-1], 'pod')} may go")
    told = "; ".join(parts) or "the victims differ"
    return f"That depends on the order of equal pods, which only the scheduler knows: {told}."


def order_in_brief(alternatives: Alternatives) -> str:
    """What hangs on the order of equal pods, where there is little room."""
    outcomes = alternatives.outcomes
    if alternatives.exact and len(outcomes) == 1 and len(outcomes[0].choices) == 1:
        return f"that is {_choice(outcomes[0].choices[0], named=2)}"
    may_violate = any(each.num_pdb_violations for each in outcomes)
    return "the victims depend on the order of equal pods" + (
        ", and so whether a budget is violated" if may_violate else ""
    )


def may_violate_in_another_order(verdict: Verdict) -> bool:
    """Whether only another order than the likely one violates a budget."""
    return verdict.worst_outcome != verdict.outcome


def add_equal_pods(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """The outcomes that the order of equal pods can lead to, below the victims of the likely one."""
    alternatives = verdict.alternatives
    if alternatives is None:
        return
    page.blank()
    page.paragraph(Span("equal pods", "warn"), f"  {WHY}", indent=2, hanging=2)
    shown = alternatives.outcomes if options.verbose else alternatives.outcomes[:_OUTCOMES_SHOWN]
    for outcome in shown:
        page.paragraph(*outcome_in_words(outcome), indent=4, hanging=2)
    rest = len(alternatives.outcomes) - len(shown)
    if rest or alternatives.untold:
        hint = " (-v -v lists them)" if rest and not alternatives.untold else ""
        page.paragraph(Span(f"… and {count(rest + alternatives.untold, 'more outcome')}{hint}", "dim"), indent=4)
    if not alternatives.exact:
        page.paragraph(Span(INEXACT, "warn"), indent=4, hanging=2)


INEXACT = "Not every order was followed, so others are possible."


def outcome_in_words(outcome: PossibleOutcome) -> Phrase:
    """``on n1  ml/x and 1 of ml/a, ml/b``, and whether that violates a budget."""
    parts = [join_names(outcome.victims, limit=_PODS_NAMED)] if outcome.victims else []
    parts += [_choice(choice, named=_PODS_NAMED) for choice in outcome.choices]
    violations = outcome.num_pdb_violations
    broken: Phrase = (
        (Span(f"; {count(violations, 'eviction')} {agree(violations, 'violates')} a budget", "bad"),)
        if violations
        else ()
    )
    return ("on ", strong(outcome.node), f"  {'; '.join(parts)}", *broken)


def alternatives_in_lines(alternatives: Alternatives) -> list[Phrase]:
    """A line for each outcome, and what is left out."""
    lines = [outcome_in_words(each) for each in alternatives.outcomes]
    if alternatives.untold:
        lines.append((f"… and {count(alternatives.untold, 'more outcome')}",))
    if not alternatives.exact:
        lines.append((INEXACT,))
    return lines


def _choice(choice: PodChoice, *, named: int) -> str:
    return (
        f"{choice.count:,} of {len(choice.pods):,}: {join_names(choice.pods, limit=named).replace(' and ', ' or ', 1)}"
    )
