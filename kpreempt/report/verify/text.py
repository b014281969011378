"""How many decisions were predicted, preemptions, and the differences with their causes, for a terminal."""

from __future__ import annotations

from kpreempt.report.amounts import count
from kpreempt.report.closing_section import add_assumptions_section
from kpreempt.report.colour import finished
from kpreempt.report.durations import format_duration, format_time
from kpreempt.report.layout import Page, Phrase, Span, columns_of_numbers, strong
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.report.screen import Block, fill, paragraph, table_block, titled
from kpreempt.verdict.verify import Cause, DecisionDifference, Verification

_DECISIONS, _PREEMPTIONS = Span("DECISIONS", "heading"), Span("PREEMPTIONS", "heading")
_DIFFERENT, _RACES = Span("DIFFERENT", "heading"), Span("RACES", "heading")
_WORDS = {
    Cause.RACE: "decided a moment earlier",
    Cause.ORDER: "unknown order",
    Cause.NOT_MODELLED: "not modelled",
    Cause.CONFIGURATION: "another configuration or plugin",
    Cause.VERSION: "another version",
    Cause.UNKNOWN: "not explained: perhaps a defect of kpreempt",
}
_MORE = "-v (every difference, all that changed in a race)"
_CHANGES_SHOWN = 1


def render(answer: Verification, options: RenderOptions) -> str:
    """A sentence with the score, the counts, and each difference with its cause; or as much as fits a screen."""
    page = Page(options.width)
    page.paragraph(*_headline(answer))
    seconds = int((answer.ends - answer.begins).total_seconds())
    facts = [f"{format_time(answer.begins)}, {format_duration(seconds)} recorded", *answer.algorithms]
    page.paragraph(Span(" · ".join(facts), "dim"), indent=2)
    blocks = _blocks(answer, options)
    if options.extent is Extent.SCREEN:
        return fill(page, blocks, answer.assumptions, _MORE, options)
    for block in blocks:
        if block.items:
            page.blank()
            page.lines += [*block.head, *(line for item in block.items for line in item)]
    add_assumptions_section(page, answer.assumptions, options)
    return finished(page, options)


def _headline(answer: Verification) -> Phrase:
    predicted = sum(each.predicted for each in answer.decisions)
    compared = predicted + sum(each.different for each in answer.decisions)
    raced = sum(each.raced for each in answer.decisions)
    beside = f"; {raced:,} more raced" if raced else ""
    if answer.score is None:
        return ("No decision could be compared", f"{beside}.")
    words = f" of {count(compared, 'decision')} predicted ({shown_percent(answer.score)})"
    return (strong(f"{predicted:,}"), Span(words, "good" if compared == predicted else "warn"), f"{beside}.")


def shown_percent(score: float) -> str:
    """The score, never rounded up to all of it."""
    hundredths = int(score * 100)
    return f"{hundredths / 100:g}%"


def _blocks(answer: Verification, options: RenderOptions) -> list[Block]:
    different = [each for each in answer.items if each.cause is not Cause.RACE]
    races = [each for each in answer.items if each.cause is Cause.RACE]
    missing = [
        paragraph(options, f"{number:,} not compared: {why}", most=1) for why, number in answer.not_compared.items()
    ]
    return [
        table_block(
            options,
            titled(options, _DECISIONS, "of the real scheduler"),
            _counts(answer),
            "kind",
            aligns=columns_of_numbers(4),
        ),
        Block([], missing, "reason"),
        Block(
            titled(options, _DIFFERENT, "from what is predicted from just before"),
            [paragraph(options, *_difference(each), most=_lines(options, 3)) for each in different],
            "difference",
        ),
        table_block(
            options,
            titled(options, _PREEMPTIONS, "by namespace and priority class"),
            _preemptions(answer),
            "priority class",
            aligns=["left", *columns_of_numbers(3)],
        )
        if answer.preemptions
        else Block([], [], "priority class"),
        Block(
            titled(options, _RACES, "predicted from a moment before; neither for nor against the score"),
            [paragraph(options, *_race(each, options), most=_lines(options, 2)) for each in races],
            "race",
        ),
    ]


def _lines(options: RenderOptions, most: int) -> int:
    return most if options.extent is Extent.SCREEN else 0


def _titles(*titles: str) -> tuple[Phrase, ...]:
    return tuple((Span(title, "dim"),) for title in titles)


def _counts(answer: Verification) -> list[tuple[Phrase, ...]]:
    rows = [_titles("", "PREDICTED", "RACED", "DIFFERENT", "NOT COMPARED")]
    for each in answer.decisions:
        numbers = (each.predicted, each.raced, each.different, each.not_compared)
        rows.append(((each.decision.lower(),), *((f"{number:,}",) for number in numbers)))
    return rows


def _preemptions(answer: Verification) -> list[tuple[Phrase, ...]]:
    rows = [_titles("NAMESPACE", "PRIORITY CLASS", "PREEMPTIONS", "VICTIMS", "VIOLATING A BUDGET")]
    for each in answer.preemptions:
        numbers = (each.preemptions, each.victims, each.violating_budgets)
        rows.append(((each.namespace,), (each.priority_class or "-",), *((f"{number:,}",) for number in numbers)))
    return rows


def _difference(each: DecisionDifference) -> Phrase:
    why = f": {each.why}" if each.why else ""
    file = f" ({each.file})" if each.file else ""
    words = f" {'; '.join(each.differences)}. "
    return (strong(each.decision.pod), words, Span(f"{_WORDS[each.cause]}{why}{file}", "warn"))


def _race(each: DecisionDifference, options: RenderOptions) -> Phrase:
    shown = each.changes if options.verbose else each.changes[:_CHANGES_SHOWN]
    more = f", and {len(each.changes) - len(shown):,} more" if len(each.changes) > len(shown) else ""
    return (strong(each.decision.pod), f" {each.differences[0]}. {', '.join(shown)}{more}")
