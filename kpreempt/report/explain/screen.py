"""The answer on one screen: the sentence, who goes, why here, what else there is, and how to see more.

A terminal of 24 lines and 80 columns holds it with the prompt, whatever the verdict: what is cut says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kpreempt.report.amounts import count
from kpreempt.report.colour import finished
from kpreempt.report.explain.headline import answer, cluster_facts, pod_name
from kpreempt.report.explain.screen_frame import COLUMN, Room, beside, clipped, elided, shortened
from kpreempt.report.layout import COLUMN_GAP, Line, Page, Part, Phrase, Span, plain, strong, width_of
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.verdict import Outcome, Verdict

# One less than a terminal has, for the prompt.
LINES = 23
# From the most that sections may take to what is never too much.
_ROOMS = (
    Room(sentence=6, victims=8, groups=8, elsewhere=4, event=8, changes=5, assumed=3, steps=8),
    Room(sentence=5, victims=6, groups=6, elsewhere=3, event=6, changes=4, assumed=2, steps=6),
    Room(sentence=4, victims=5, groups=5, elsewhere=3, event=4, changes=3, assumed=2, steps=4),
    Room(sentence=4, victims=4, groups=4, elsewhere=2, event=3, changes=2, assumed=1, steps=3),
    Room(sentence=3, victims=3, groups=3, elsewhere=2, event=2, changes=2, assumed=1, steps=2),
)
_NARROWEST_POD = 20
_WIDEST_NODE = 28
_FIRST_COLUMN = len("OUTCOME")
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
        page.lines = [(Span(_in_one_line(verdict, options)),) for verdict in verdicts]
    elif len(verdicts) == 1:
        page.lines = _of_one(verdicts[0], options)
    elif verdicts:
        page.lines = _of_many(verdicts, options)
    return finished(page, options)


def _in_one_line(verdict: Verdict, options: RenderOptions) -> str:
    """The sentence, who goes if that is few, and what the answer rests on."""
    from kpreempt.report.explain.screen_parts import victims_in_brief  # noqa: PLC0415 - few words need it

    assumed = f", {count(len(verdict.assumptions), 'assumption')}" if verdict.assumptions else ""
    facts = plain(cluster_facts(verdict, options)).replace(" · ", ", ")
    return f"{plain(answer(verdict))}{victims_in_brief(verdict)} [{facts}{assumed}]"


def _of_one(verdict: Verdict, options: RenderOptions) -> list[Line]:
    lines: list[Line] = []
    for room in _ROOMS:
        lines = _lines(verdict, options, room)
        if len(lines) <= LINES:
            break
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], lines[-1]]
    return [elided(line, options.width) for line in lines]


def _lines(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    from kpreempt.report.explain import screen_parts as parts  # noqa: PLC0415 - not for lists of pods

    sentence = Page(options.width)
    sentence.paragraph(*answer(verdict))
    found = clipped(sentence.lines, room.sentence, options.width)
    sections: Sequence[Callable[[Verdict, RenderOptions, Room], list[Line]]] = (
        parts.victims,
        parts.aftermath,
        parts.why_here,
        parts.refused,
        parts.dry_run,
        parts.elsewhere,
        parts.event,
        parts.instead,
    )
    if verdict.node_story is not None:
        from kpreempt.report.explain.screen_node import node_sections  # noqa: PLC0415 - few ask about a node

        sections = node_sections()
    if verdict.outcome == Outcome.NOT_SCHEDULED:
        sections = (parts.event,)
    body = [line for section in sections for line in section(verdict, options, room)]
    body += parts.assumed(verdict, options, room)
    return [*found, *([()] if body else []), *body, _facts(verdict, options), _more(_hints(verdict), options.width)]


def _facts(verdict: Verdict, options: RenderOptions) -> Line:
    """The scheduler, the cluster, and that nothing was assumed, on one line."""
    assumed = [] if verdict.assumptions else ["nothing assumed"]
    facts = [plain(cluster_facts(verdict, options)), *assumed]
    page = Page(options.width - COLUMN)
    page.paragraph(Span(" · ".join(facts), "dim"))
    return clipped(beside("", page), 1, options.width)[0]


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
    from kpreempt.report.explain.summary import name_destinations, outcome_in_words  # noqa: PLC0415 - of lists alone

    cells = [(pod_name(each), name_destinations(each), outcome_in_words(each)) for each in verdicts]
    nodes = min(max(width_of(node) for _, node, _ in cells), _WIDEST_NODE)
    outcomes = max(_FIRST_COLUMN, *(width_of(plain(outcome)) for *_, outcome in cells))
    pods = max(_NARROWEST_POD, options.width - nodes - outcomes - 2 * COLUMN_GAP)
    page = Page(options.width)
    rows: list[tuple[Phrase, ...]] = [tuple((Span(title, "dim"),) for title in ("POD", "NODE", "OUTCOME"))]
    rows += [((shortened(pod, pods),), (shortened(node, nodes),), outcome) for pod, node, outcome in cells]
    page.table(rows, aligns=("left", "left", "left"))
    page.blank()
    page.paragraph(*cluster_facts(verdicts[0], options))
    hints = [_Hint("--select KIND/NAME", "only this one"), _Hint("-v", "each in full"), _Hint("-o wide")]
    return [elided(line, options.width) for line in [*page.lines, _more(hints, options.width)]]
