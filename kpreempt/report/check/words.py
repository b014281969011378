"""What the gate has to say, in the sentences that all formats of ``check`` share.

In a phrase, all that stems from the input is a ``Span`` of its own, and what is not is a plain ``str``: so a format can
set names apart and keep them from being read as markup. The sentence of each rule is a template in its row
(``kpreempt.gate_rules``); its fields are those of ``_FIELDS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from shlex import quote
from string import Formatter

from kpreempt.gate_rules import CLUSTER
from kpreempt.report.amounts import count, format_duration
from kpreempt.report.blocks import Part, Phrase
from kpreempt.report.quoting import message, name, names, plain
from kpreempt.verdict.check import GateFinding, GateStanding

_LINKS_SHOWN = 5
_ROUNDING = 0.005
# How the links of a chain are written: a victim, and what takes its place.
BECOMES = " → "


def finding_text(finding: GateFinding) -> str:
    """What is wrong, in one sentence without a full stop, on one line, made safe to show."""
    return plain(finding_phrase(finding))


def finding_phrase(finding: GateFinding) -> Phrase:
    """What is wrong, in one sentence without a full stop, and in how many simulations where that is not in all."""
    often = how_often(finding.in_runs, finding.of_runs, finding.share)
    parts: list[Part] = [f"{often}: "] if often else []
    sentence = finding.rule.row.sentence
    for words, field, argument, _ in Formatter().parse(sentence if isinstance(sentence, str) else sentence(finding)):
        parts.append(words)
        if field is not None:
            parts += _FIELDS[field](finding, argument or "")
    return tuple(parts)


def how_often(runs: int, of_runs: int, share: float) -> str:
    """``in 7 of 20 runs``; empty where there is one, or it is in all of them."""
    if runs == of_runs:
        return ""
    # Runs that are all that there can be need not be equally likely.
    percent = f" ({share:.0%} likely)" if abs(share - runs / of_runs) > _ROUNDING else ""
    return f"in {runs:,} of {count(of_runs, 'run')}{percent}"


def chain_phrase(chain: Sequence[str]) -> Phrase:
    """Who preempts whom: ``shop/api-1 preempts batch/a; its replacement batch/new-2 preempts low/x``.

    ``chain`` is as a finding has it: the pod that begins, then each victim with its replacement, ``a → b``.
    """
    if not chain:
        return ()
    first, *links = chain
    parts: list[Part] = [name(first)]
    replacement = ""
    for number, link in enumerate(links[:_LINKS_SHOWN]):
        victim, _, following = link.partition(BECOMES)
        if number and replacement:
            parts += ["; its replacement ", name(replacement)]
        evicts = " loses " if not number and first.startswith("Node ") else " preempts "
        parts += ["; then goes " if number and not replacement else evicts, name(victim)]
        replacement = following
    if rest := len(links) - _LINKS_SHOWN if len(links) > _LINKS_SHOWN else 0:
        parts += [f"; and so on, {rest:,} more, down to ", name(links[-1].partition(BECOMES)[0])]
    return tuple(parts)


def standing_phrase(finding: GateFinding) -> Phrase:
    """Why a finding is excused, or an empty phrase where it is not."""
    words = {
        GateStanding.WAIVED: "waived",
        GateStanding.ACCEPTED: "accepted",
        GateStanding.NOT_NEW: "not new: there without the change, too",
    }.get(finding.standing)
    if words is None:
        return ()
    before, after = (" (", ")") if finding.standing is GateStanding.NOT_NEW else (" by ", "")
    by: Phrase = (before, name(finding.by), after) if finding.by else ()
    until: Phrase = (" until ", name(finding.expires)) if finding.expires else ()
    why: Phrase = (": ", message(finding.reason)) if finding.reason else ()
    return (words, *by, *until, *why)


def waive_option(finding: GateFinding) -> str:
    """The option that waives the finding, quoted for a shell: ``--waive 'max-pending=Deployment shop/api'``."""
    return f"--waive {quote(f'{finding.rule}={finding.subject}')}"


def _subject(finding: GateFinding, fallback: str) -> Phrase:
    return (name(finding.subject),) if finding.subject not in ("", CLUSTER) else (fallback or "the change",)


def _pods(finding: GateFinding, _: str) -> Phrase:
    return (": ", *names(finding.pods)) if finding.pods else ()


def _counted_pods(finding: GateFinding, _: str) -> Phrase:
    return (f", {count(len(finding.pods), 'pod')}: ", *names(finding.pods)) if finding.pods else ()


def _detail(finding: GateFinding, before: str) -> Phrase:
    return (before or ": ", *_message(finding, "")) if finding.detail else ()


def _message(finding: GateFinding, _: str) -> Phrase:
    return (message(finding.detail.rstrip().removesuffix(".")),)


# What stands in braces in the sentence of a rule, ``{field}`` or ``{field:argument}``, which all that is optional omits
# together with what comes before it.
_FIELDS: dict[str, Callable[[GateFinding, str], Phrase]] = {
    # The object; the argument, by default "the change", if it is about the cluster as a whole.
    "subject": _subject,
    # The object without its kind.
    "name": lambda finding, _: (name(finding.subject.partition(" ")[2] or finding.subject),),
    # The amount with its noun, or the first or second of the arguments, as one or several take it.
    "amount": lambda finding, noun: (count(finding.amount, noun),),
    "plural": lambda finding, forms: (forms.split("|")[finding.amount != 1],),
    "limit": lambda finding, unit: (format_duration(finding.limit) if unit == "time" else f"{finding.limit:,}",),
    "age": lambda finding, _: (format_duration(finding.amount),),
    # The pods, after a colon, or after how many they are.
    "names": lambda finding, _: names(finding.pods),
    "pods": _pods,
    "counted_pods": _counted_pods,
    # What is said about it, after a colon or the argument, and alone.
    "detail": _detail,
    "message": _message,
    "change": lambda finding, _: (name(finding.change),),
    "chain": lambda finding, fallback: chain_phrase(finding.chain) or _subject(finding, fallback),
}
