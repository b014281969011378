"""What extenders were asked and what they said, a line for each call."""

from __future__ import annotations

from kpreempt.report.amounts import count
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import ExtenderCall, Verdict

_LINES_SHOWN = 8
_NAMES_SHOWN = 5
_REASONS_SHOWN = 3
_ABOUT = {"preempt": "candidate"}


def add_extenders_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """``EXTENDERS``: every call with what it changed; nothing where none was made."""
    calls = verdict.extender_calls
    shown = calls if options.verbose else calls[:_LINES_SHOWN]
    if not shown:
        return
    page.blank()
    for number, call in enumerate(shown):
        label = "" if number else Span("EXTENDERS", "heading")
        page.labelled(label, *describe_call(call), column=LABEL_COLUMN, hanging=2)
    if len(calls) > len(shown):
        rest = f"… and {len(calls) - len(shown):,} more (-v -v)"
        page.labelled("", Span(rest, "dim"), column=LABEL_COLUMN)


def describe_call(call: ExtenderCall) -> Phrase:
    """Who was asked for what, and what came of it."""
    about = count(call.asked, _ABOUT.get(call.verb, "node"))
    without = " without its victims" if call.without_victims else ""
    start: Phrase = (strong(call.extender), f" {call.verb}, {about}{without}: ")
    if call.error:
        end = " (passed over)" if call.ignored else ""
        return (*start, Span("fails:", "bad"), f" {call.error}{end}")
    return (*start, "; ".join(_changes(call)) or "leaves all as it is")


def _changes(call: ExtenderCall) -> list[str]:
    parts = [f"refuses {names}{because}" for names, because in _refusals(call)]
    if call.unresolvable:
        parts.append(f"preemption doesn't help on {_names(call.unresolvable)}")
    if call.let_in:
        parts.append(f"lets in {_names(call.let_in)}, not asked about")
    if call.returns_nodes:
        parts.append("sends whole nodes back, which are scored as if no pods were on them")
    if call.dropped:
        parts.append(f"drops {_names(call.dropped)}")
    parts += [
        f"changes the victims on {node} to {_names(pods)}" for node, pods in list(call.changed.items())[:_NAMES_SHOWN]
    ]
    if len(call.changed) > _NAMES_SHOWN:
        parts.append(f"changes those of {len(call.changed) - _NAMES_SHOWN:,} more")
    if call.violations:
        numbers = [f"{number:,} on {node}" for node, number in call.violations.items()]
        parts.append(f"budget violations then count as {_names(numbers)}")
    if call.scores:
        parts.append(f"scores {_names([f'{node} {score:,}' for node, score in call.scores.items()])}")
    return parts


def _refusals(call: ExtenderCall) -> list[tuple[str, str]]:
    """The nodes that are refused for one reason, and the reason; the rarer ones together."""
    by_reason: dict[str, list[str]] = {}
    for node, reason in call.refused.items():
        by_reason.setdefault(reason, []).append(node)
    groups = sorted(by_reason.items(), key=lambda group: -len(group[1]))
    shown = [(_names(nodes), f": {reason}" if reason else " without a reason") for reason, nodes in groups]
    rest = groups[_REASONS_SHOWN:]
    nodes = _names([node for _, nodes in rest for node in nodes])
    return [*shown[:_REASONS_SHOWN], (nodes, f" for {count(len(rest), 'more reason')}")] if rest else shown


def _names(names: list[str]) -> str:
    return join_names(names, limit=_NAMES_SHOWN)
