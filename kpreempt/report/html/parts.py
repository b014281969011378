"""Parts that several pages have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpreempt.report.html.markup import TABLE_LIMIT, Html, message, name, table
from kpreempt.verdict.records import Assumption

FIRST_RESOURCES = ("cpu", "memory", "pods")


def in_order(resources: Iterable[str]) -> list[str]:
    """Resources in the order in which a node's are shown."""
    listed = list(resources)
    first = [each for each in FIRST_RESOURCES if each in listed]
    return first + [each for each in listed if each not in FIRST_RESOURCES]


def share(amount: int, most: int) -> str:
    """A width, of which ``most`` is the whole."""
    return f"{max(0, min(round(1000 * amount / most), 1000)) / 10:g}%"


def assumptions(listed: Sequence[Assumption]) -> Html:
    """What this answer does not evaluate; nothing where there is nothing."""
    if not listed:
        return Html("")
    columns = ("Object", "Field", "What this means")
    caption = "In the input, and not evaluated here"
    return table(caption, columns, _assumption, listed, limit=TABLE_LIMIT, what="assumptions")


def _assumption(each: Assumption) -> list[str]:
    return [name(each.subject), name(each.field), message(each.message)]
