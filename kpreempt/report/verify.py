"""How many decisions of a recording were predicted, its preemptions, and the differences with their causes."""

from __future__ import annotations

from collections.abc import Iterator

from kpreempt.report.amounts import count, format_duration, format_time
from kpreempt.report.blocks import Listing, Phrase, Report, Section, Span, Table, Words, columns, strong
from kpreempt.report.escape import printable
from kpreempt.report.evidence import assumption_sections
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.verify import Cause, DecisionDifference, Verification

_WORDS = {
    Cause.RACE: "decided a moment earlier",
    Cause.ORDER: "unknown order",
    Cause.UNMODELED: "not modeled",
    Cause.CONFIGURATION: "another configuration or plugin",
    Cause.VERSION: "another version",
    Cause.UNKNOWN: "unexplained: possibly a bug in kpreempt",
}
_CHANGES_SHOWN = 1
_RESULTS = ("predicted", "raced", "different", "not_compared")
_OF_PREEMPTIONS = (
    ("preemptions", "kpreempt_preemptions", "Pods nominated to a node in the recording."),
    ("victims", "kpreempt_preemption_victims", "Pods evicted for these preemptions."),
    (
        "violating_budgets",
        "kpreempt_preemptions_violating_budgets",
        "Preemptions predicted to violate a PodDisruptionBudget.",
    ),
)
# Priorities on a screen.
_DECISIONS, _NOT_COMPARED, _DIFFERENT, _PREEMPTIONS, _RACES = 60, 55, 50, 40, 30


def report(answer: Verification, options: RenderOptions) -> Report:
    """The score, the counts, and each difference with its cause."""
    seconds = int((answer.ends - answer.begins).total_seconds())
    decisions = [
        [each.decision.lower(), *(f"{getattr(each, result):,}" for result in _RESULTS)] for each in answer.decisions
    ]
    preemptions = [
        [each.namespace, each.priority_class or "-", *(f"{getattr(each, field):,}" for field, _, _ in _OF_PREEMPTIONS)]
        for each in answer.preemptions
    ]
    different = [[_difference(each)] for each in answer.items if each.cause is not Cause.RACE]
    races = [[_race(each, options)] for each in answer.items if each.cause is Cause.RACE]
    numbers = ("PREDICTED", "RACED", "DIFFERENT", "NOT COMPARED")
    of_preemptions = ("PREEMPTIONS", "VICTIMS", "VIOLATING A BUDGET")
    missing = [[f"{number:,} not compared: {why}"] for why, number in answer.not_compared.items()]
    predicted = sum(each.predicted for each in answer.decisions)
    compared = predicted + sum(each.different for each in answer.decisions)
    raced = sum(each.raced for each in answer.decisions)
    races_counted = f"; {raced:,} more raced" if raced else ""
    lead: Phrase = ("No decision could be compared", f"{races_counted}.")
    if answer.score is not None:
        words = f" of {count(compared, 'decision')} predicted ({shown_percent(answer.score)})"
        lead = (strong(f"{predicted:,}"), Span(words, "good" if compared == predicted else "warn"), f"{races_counted}.")
    return Report(
        lead=lead,
        facts=[f"{format_time(answer.begins)}, {format_duration(seconds)} recorded", *answer.algorithms],
        sections=[
            _section(
                "DECISIONS",
                "by the real scheduler",
                Table(columns("", *numbers, right=numbers), decisions, "kind"),
                _DECISIONS,
            ),
            Section("NOT COMPARED", blocks=[Listing(missing, "reason")], priority=_NOT_COMPARED),
            _section("DIFFERENT", "from the prediction", Listing(different, "difference"), _DIFFERENT),
            _section(
                "PREEMPTIONS",
                "by namespace and priority class",
                Table(
                    columns("NAMESPACE", "PRIORITY CLASS", *of_preemptions, right=of_preemptions),
                    preemptions,
                    "priority class",
                ),
                _PREEMPTIONS,
            ),
            _section(
                "RACES",
                "predicted from a slightly earlier state; not part of the score",
                Listing(races, "race"),
                _RACES,
            ),
            *assumption_sections(answer.assumptions),
        ],
        more=[("-v", "every difference, all changes during a race")],
        command="verify",
    )


def _section(label: str, lead: str, block: Table | Listing, priority: int) -> Section:
    return Section(label, lead if block.items else "", [block], priority=priority)


def shown_percent(score: float) -> str:
    """The score, never rounded up to 100%."""
    hundredths = int(score * 100)
    return f"{hundredths / 100:g}%"


def _difference(each: DecisionDifference) -> Words:
    why = f": {each.explanation}" if each.explanation else ""
    file = f" ({each.file})" if each.file else ""
    words = f" {'; '.join(each.differences)}. "
    return (strong(each.decision.pod), words, Span(f"{_WORDS[each.cause]}{why}{file}", "warn"))


def _race(each: DecisionDifference, options: RenderOptions) -> Words:
    shown = each.changes if options.verbose else each.changes[:_CHANGES_SHOWN]
    more = f", and {len(each.changes) - len(shown):,} more" if len(each.changes) > len(shown) else ""
    return (strong(each.decision.pod), f" {each.differences[0]}. {', '.join(shown)}{more}")


def render_openmetrics(answer: Verification, _options: RenderOptions) -> str:
    """The score and the preemptions as OpenMetrics text 1.0.0, without the score if there is none.

    They are gauges, because they count within a recording, which can start over.
    """
    return "".join(f"{line}\n" for line in (*_metrics(answer), "# EOF"))


def _metrics(answer: Verification) -> Iterator[str]:
    if answer.score is not None:
        name = "kpreempt_verify_score_ratio"
        yield from _head(name, "Share of compared decisions that were predicted; races are not counted.")
        yield f"{name} {answer.score / 100:.6g}"
    name = "kpreempt_verify_decisions"
    yield from _head(name, "Decisions by the real scheduler in the recording.")
    for each in answer.decisions:
        for result in _RESULTS:
            yield f"{name}{_labels(decision=each.decision.lower(), result=result)} {getattr(each, result)}"
    for field, name, words in _OF_PREEMPTIONS:
        yield from _head(name, words)
        for of_class in answer.preemptions:
            labels = _labels(namespace=of_class.namespace, priority_class=of_class.priority_class)
            yield f"{name}{labels} {getattr(of_class, field)}"


def _head(name: str, words: str) -> Iterator[str]:
    yield f"# TYPE {name} gauge"
    yield f"# HELP {name} {words}"


def _labels(**labels: str) -> str:
    escaped = {name: printable(value).replace("\\", "\\\\").replace('"', '\\"') for name, value in labels.items()}
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped.items()) + "}"
