"""Names and messages from the input, as separate spans, so that no format takes them for its own words or markup."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.blocks import Part, Phrase, Role, Span, Words, spans_of
from kpreempt.report.escape import printable

_NAMES_SHOWN = 3
# Kubernetes names with a namespace and a kind are shorter.
_LONGEST_NAME = 360
_LONGEST_MESSAGE = 500


def plain(words: Words) -> str:
    """The words without their roles, escaped."""
    return "".join(printable(span.text) for span in spans_of(words))


def name(text: str, style: Role = "name") -> Span:
    """A name from the input, cut if it is longer than names can be."""
    return Span(shortened(text, _LONGEST_NAME), style)


def message(text: str) -> Span:
    """Prose from the input, on one line, cut if it is long."""
    return Span(shortened(" ".join(text.split()), _LONGEST_MESSAGE))


def names(texts: Sequence[str], *, limit: int | None = _NAMES_SHOWN, style: Role = "name") -> Phrase:
    """``a``, ``a and b``, ``a, b, c and 4 more``, with each name in its own span."""
    parts: list[Part] = []
    shown = texts[:limit]
    for number, text in enumerate(shown):
        last = number == len(shown) - 1 and len(texts) == len(shown)
        parts += [(" and " if last else ", ") if number else "", name(text, style)]
    if len(texts) > len(shown):
        parts.append(f" and {len(texts) - len(shown):,} more")
    return tuple(parts)


def shortened(text: str, length: int) -> str:
    """The text, cut to ``length`` characters with an ellipsis if it is longer."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
