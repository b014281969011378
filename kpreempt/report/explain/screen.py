"""The answer on one screen: the sentence, who goes, why here, what else there is, and how to see more.

A terminal of 24 lines and 80 columns holds it with the prompt, whatever the verdict: what is cut says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from kpreempt.report.amounts import count
from kpreempt.report.colour import finished
from kpreempt.report.durations import format_reading
from kpreempt.report.explain.headline import answer
from kpreempt.report.explain.screen_frame import COLUMN, Room, Section, beside, clipped, elided, shortened
from kpreempt.report.layout import COLUMN_GAP, Line, Page, Part, Phrase, Span, plain, strong, width_of
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.verdict import Assumption, Outcome, Verdict
from kpreempt.verdict.unread import absent_sentence

# One less than a terminal has, for the prompt.
LINES = 23
# What the answer rests on, and how to see more.
_CLOSING_LINES = 2
_MOST = Room(
    replicas=8, capacity=8, sentence=6, victims=8, groups=8, elsewhere=4, event=9, changes=5, assumed=3, steps=8
)
# What is cut in turn until all fits: first what -v tells better, last the scheduler's own words and the sentence.
_CUTS = (
    *(("steps", 6), ("changes", 4), ("elsewhere", 3), ("groups", 7), ("victims", 6), ("assumed", 2)),
    *(("capacity", 6), ("replicas", 6)),
    *(("changes", 3), ("steps", 4), ("groups", 6), ("sentence", 5), ("victims", 5), ("elsewhere", 2)),
    *(("groups", 5), ("event", 7), ("changes", 2), ("assumed", 1), ("victims", 4), ("groups", 4), ("event", 5)),
    *(("steps", 2), ("sentence", 4), ("groups", 3), ("victims", 3), ("event", 3), ("sentence", 3), ("event", 2)),
    *(("capacity", 4), ("replicas", 4)),
)
_NARROWEST_POD = 20
_WIDEST_NODE = 28
_TITLES = ("POD", "NODE", "OUTCOME")
# A name that a shell takes as it is.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")


def render(verdicts: Sequence[Verdict], options: RenderOptions) -> str:
    """The verdicts as text, as much as ``options.extent`` says."""
    if options.extent is Extent.REPORT:
        from kpreempt.report.explain.text import render as render_report  # noqa: PLC0415 - a screen needs none of it

        return render_report(verdicts, options)
    page = Page(options.width)
    if options.extent is Extent.LINE:
        # As wide as it is: where it is pasted, somebody else breaks lines.
        page.lines = [(Span(_in_one_line(verdict)),) for verdict in verdicts]
    elif len(verdicts) == 1:
        page.lines = _of_one(verdicts[0], options)
    elif verdicts:
        page.lines = _of_many(verdicts, options)
    return finished(page, options)


def _in_one_line(verdict: Verdict) -> str:
    """The sentence, who goes if that is few, and what the answer rests on."""
    from kpreempt.report.explain.screen_parts import victims_in_brief  # noqa: PLC0415 - few words need it

    if verdict.workload is not None:
        from kpreempt.report.explain.workload import headline_of  # noqa: PLC0415 - few ask about more than one pod

        said = plain(headline_of(verdict.workload))
    else:
        unknown = absent_sentence(verdict.assumptions)
        said = f"{plain(answer(verdict))}{victims_in_brief(verdict)}{f' {unknown}' if unknown else ''}"
    assumptions = _assumptions(verdict)
    assumed = f", {count(len(assumptions), 'assumption')}" if assumptions else ""
    facts = plain((", ".join(_cluster(verdict)),))
    return f"{said} [{facts}{assumed}]"


def _assumptions(verdict: Verdict) -> list[Assumption]:
    """What is assumed, without the files that hold no objects."""
    return [each for each in verdict.assumptions if not each.lists_files]


def _of_one(verdict: Verdict, options: RenderOptions) -> list[Line]:
    sections = _sections(verdict)
    room = _MOST
    told = [section(verdict, options, room) for _, section in sections]
    for field, most in _CUTS:
        if sum(map(len, told)) <= LINES - _CLOSING_LINES:
            break
        room = room._replace(**{field: most})
        for at, (needs, section) in enumerate(sections):
            if needs == field:
                told[at] = section(verdict, options, room)
    lines = [line for each in told for line in each][: LINES - _CLOSING_LINES]
    lines += [_facts(verdict, options), _more(_hints(verdict), options.width)]
    return [elided(line, options.width) for line in lines]


def _sections(verdict: Verdict) -> Sequence[Section]:
    """The sections of the verdict in their order, those about more pods than the first before all."""
    own = _sections_of_pod(verdict)
    if verdict.workload is None and verdict.capacity is None:
        return own
    from kpreempt.report.explain.screen_workload import SECTIONS  # noqa: PLC0415 - few ask about more than one pod

    return [*SECTIONS, *own]


def _sections_of_pod(verdict: Verdict) -> Sequence[Section]:
    from kpreempt.report.explain import screen_parts as parts  # noqa: PLC0415 - not for lists of pods

    if verdict.outcome == Outcome.NOT_SCHEDULED:
        return [parts.SENTENCE, parts.EVENT, parts.ASSUMED]
    if verdict.node_story is not None:
        from kpreempt.report.explain.screen_node import SECTIONS  # noqa: PLC0415 - few ask about a node

        return [parts.SENTENCE, *SECTIONS, parts.EVENT, parts.ASSUMED]
    return [parts.SENTENCE, *parts.SECTIONS, parts.EVENT, parts.INSTEAD, parts.ASSUMED]


def _facts(verdict: Verdict, options: RenderOptions) -> Line:
    """The scheduler, the cluster, and that nothing was assumed, on one line."""
    assumed = [] if _assumptions(verdict) else ["nothing assumed"]
    facts = [*_cluster(verdict), *assumed]
    page = Page(options.width - COLUMN)
    page.paragraph(Span(" · ".join(facts), "dim"))
    return clipped(beside("", page), 1, options.width)[0]


def _cluster(verdict: Verdict) -> tuple[str, str]:
    """The scheduler, and what is known of the cluster; its version where it is not the scheduler's."""
    cluster = verdict.cluster
    facts = [count(cluster.nodes, "node"), count(cluster.pods, "pod")]
    if cluster.version and not cluster.version.startswith(f"v{verdict.algorithm.removeprefix('kube-')}."):
        facts.append(cluster.version)
    if cluster.age_seconds is not None:
        facts.append(format_reading(cluster.age_seconds))
    return verdict.algorithm, ", ".join(facts)


class _Hint(NamedTuple):
    option: str
    what: str = ""


def _hints(verdict: Verdict) -> list[_Hint]:
    """The options that show more of this answer, the most useful first."""
    if verdict.node_story is not None:
        return [_Hint("-v", "every filter, the dry run, all changes")]
    if verdict.outcome == Outcome.NOT_SCHEDULED:
        return [_Hint("-v")]
    what = "dry run, choice" if verdict.candidates else "scores" if verdict.feasible_nodes else "every refusal"
    hints = [_Hint("-v", what)]
    if other := _another_node(verdict):
        hints.append(_Hint(f"--node {other if _PLAIN_NAME.fullmatch(other) else 'NODE'}", "why not there"))
    if verdict.victims and verdict.aftermath is None:
        hints.append(_Hint("--aftermath", "what follows"))
    return hints


def _another_node(verdict: Verdict) -> str:
    """A node on which the pod does not end, one that came near if there is one."""
    ends = {*verdict.nominated_nodes, *verdict.lands_on}
    near = [
        *(candidate.node for candidate in verdict.candidates),
        *sorted(verdict.scores, key=lambda node: -verdict.scores[node]),
        *verdict.dry_run,
        *verdict.filter,
    ]
    return next((node for node in near if node and node not in ends), "")


def _more(hints: Sequence[_Hint], width: int) -> Line:
    """``More:`` and as many of the options as a line holds."""
    page = Page(width)
    parts: list[Part] = [Span("More:", "dim")]
    for hint in hints:
        for what in (f" ({hint.what})" if hint.what else "", ""):
            longer = [*parts, "  ", strong(hint.option), Span(what, "dim")]
            if width_of(plain(longer)) <= width:
                parts = longer
                break
    page.paragraph(*parts)
    return page.lines[0]


def _of_many(verdicts: Sequence[Verdict], options: RenderOptions) -> list[Line]:
    """A line for each pod, and how to see more of one."""
    from kpreempt.report.explain.summary import name_destinations, name_subject, outcome_in_words  # noqa: PLC0415 - of lists alone

    cells = [(name_subject(each), name_destinations(each), outcome_in_words(each)) for each in verdicts]
    gaps = 2 * COLUMN_GAP
    nodes = min(max(len(_TITLES[1]), *(width_of(node) for _, node, _ in cells)), _WIDEST_NODE)
    outcomes = max(len(_TITLES[2]), *(width_of(plain(outcome)) for *_, outcome in cells))
    outcomes = min(outcomes, max(options.width - gaps - _NARROWEST_POD - nodes, len(_TITLES[2])))
    pods = max(_NARROWEST_POD, options.width - gaps - nodes - outcomes)
    page = Page(options.width)
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in _TITLES)]
    rows += [
        ((shortened(pod, pods),), (shortened(node, nodes),), _shortened(outcome, outcomes))
        for pod, node, outcome in cells
    ]
    page.table(rows, aligns=("left", "left", "left"))
    page.blank()
    facts = Page(options.width)
    facts.paragraph(Span(" · ".join(_cluster(verdicts[0])), "dim"))
    page.lines += clipped(facts.lines, 1, options.width)
    hints = [_Hint("--select KIND/NAME", "only this one"), _Hint("-v", "each in full"), _Hint("-o wide")]
    return [elided(line, options.width) for line in [*page.lines, _more(hints, options.width)]]


def _shortened(phrase: Phrase, width: int) -> Phrase:
    """A phrase of one style within a width."""
    return tuple(Span(shortened(part.text, width), part.style) for part in phrase if isinstance(part, Span))
