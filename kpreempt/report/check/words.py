"""The sentences of the gate, shared by all formats of ``check``.

In a phrase, text from the input is always in a separate ``Span``, and kpreempt's words are plain ``str``, so that a
format can highlight names and escape them. The sentence of each rule is a template in its row (``kpreempt.gate_rules``)
with the fields of ``_FIELDS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from shlex import quote
from string import Formatter

from kpreempt.gate_rules import CLUSTER
from kpreempt.report.amounts import count, format_duration
from kpreempt.report.blocks import Part, Phrase
from kpreempt.report.quoting import message, name, names, plain
from kpreempt.verdict.check import FindingStatus, GateFinding

_LINKS_SHOWN = 5
_ROUNDING = 0.005
# Separates a victim and its replacement in a chain.
BECOMES = " → "


def finding_text(finding: GateFinding) -> str:
    """The violation in one sentence without a period, on one line, escaped."""
    return plain(finding_phrase(finding))


def finding_phrase(finding: GateFinding) -> Phrase:
    """The violation in one sentence without a period, with the number of simulations if it does not occur in all."""
    often = how_often(finding.in_runs, finding.of_runs, finding.share)
    parts: list[Part] = [f"{often}: "] if often else []
    sentence = finding.rule.row.sentence
    for words, field, argument, _ in Formatter().parse(sentence if isinstance(sentence, str) else sentence(finding)):
        parts.append(words)
        if field is not None:
            parts += _FIELDS[field](finding, argument or "")
    return tuple(parts)


def how_often(runs: int, of_runs: int, share: float) -> str:
    """``in 7 of 20 runs``; empty if there is only one run, or if it occurs in all of them."""
    if runs == of_runs:
        return ""
    # Runs that cover all possible outcomes need not be equally likely.
    percent = f" ({share:.0%} likely)" if abs(share - runs / of_runs) > _ROUNDING else ""
    return f"in {runs:,} of {count(of_runs, 'run')}{percent}"


def chain_phrase(chain: Sequence[str]) -> Phrase:
    """The chain of preemptions: ``shop/api-1 preempts batch/a; its replacement batch/new-2 preempts low/x``.

    ``chain`` is the finding's: the pod that starts it, then each victim with its replacement, ``a → b``.
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
        parts += ["; the next victim is " if number and not replacement else evicts, name(victim)]
        replacement = following
    if rest := len(links) - _LINKS_SHOWN if len(links) > _LINKS_SHOWN else 0:
        parts += [f"; and so on for {rest:,} more, ending with ", name(links[-1].partition(BECOMES)[0])]
    return tuple(parts)


def status_phrase(finding: GateFinding) -> Phrase:
    """Why a finding is suppressed, or an empty phrase if it is not."""
    words = {
        FindingStatus.WAIVED: "waived",
        FindingStatus.ACCEPTED: "accepted",
        FindingStatus.NOT_NEW: "not new: present without the change",
    }.get(finding.status)
    if words is None:
        return ()
    before, after = (" (", ")") if finding.status is FindingStatus.NOT_NEW else (" by ", "")
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


# The fields of a rule's sentence, ``{field}`` or ``{field:argument}``. Optional fields are omitted together with the
# text before them.
_FIELDS: dict[str, Callable[[GateFinding, str], Phrase]] = {
    # The object; the argument, by default "the change", if it is about the cluster.
    "subject": _subject,
    # The object without its kind.
    "name": lambda finding, _: (name(finding.subject.partition(" ")[2] or finding.subject),),
    # The amount with its noun, or the first or second argument for one or several.
    "amount": lambda finding, noun: (count(finding.amount, noun),),
    "plural": lambda finding, forms: (forms.split("|")[finding.amount != 1],),
    "limit": lambda finding, unit: (format_duration(finding.limit) if unit == "time" else f"{finding.limit:,}",),
    "age": lambda finding, _: (format_duration(finding.amount),),
    # The pods, alone, after a colon, or after their number.
    "names": lambda finding, _: names(finding.pods),
    "pods": _pods,
    "counted_pods": _counted_pods,
    # The detail, after a colon or the argument, or alone.
    "detail": _detail,
    "message": _message,
    "change": lambda finding, _: (name(finding.change),),
    "chain": lambda finding, fallback: chain_phrase(finding.chain) or _subject(finding, fallback),
}
