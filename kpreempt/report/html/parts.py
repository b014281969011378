"""Parts that several pages have."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.html.markup import TABLE_LIMIT, Html, message, name, table
from kpreempt.verdict.records import Assumption


def assumptions(listed: Sequence[Assumption]) -> Html:
    """What this answer does not evaluate; nothing where there is nothing."""
    if not listed:
        return Html("")
    columns = ("Object", "Field", "What this means")
    caption = "In the input, and not evaluated here"
    return table(caption, columns, _assumption, listed, limit=TABLE_LIMIT, what="assumptions")


def _assumption(each: Assumption) -> list[str]:
    return [name(each.subject), name(each.field), message(each.message)]
