"""Reports as Markdown; text from the input is never markup: text, code spans, fenced blocks and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate

from tabulate import tabulate

from kpreempt.report.amounts import count
from kpreempt.report.blocks import (
    Block,
    Cards,
    Code,
    Fold,
    Listing,
    Node,
    Report,
    Rows,
    Section,
    Sentence,
    Table,
    Timeline,
    Tree,
    Words,
    spans_of,
)
from kpreempt.report.escape import printable
from kpreempt.report.options import RenderOptions

_SPECIAL = re.compile(r"[\\`*_\[\]<>#|~!&$@]|://|(?i:www\.)")
_BACKTICKS = re.compile(r"`+")
_WITHIN = re.compile(r"([\s,;:]*)(.*?)([\s,;:]*)", re.DOTALL)
# Text that is also safe in a code span within a table.
_PLAIN_CODE = re.compile(r"[^`|]*")
_NO_WORD = re.compile(r"[^0-9A-Za-z \u0080-\U0010ffff]")
# GitHub limits comments to 64 KiB. Limits in bytes: for all, for a block, and for the main block.
_LIMIT, _LIMIT_OF_BLOCK, _LIMIT_OF_MAIN = 64_000, 8_000, 24_000
_ITEMS_SHOWN = 100
_CARDS_SHOWN = 10
# The width of the borders of a table cell.
_BORDER = 3


def render_markdown(report: Report, _options: RenderOptions) -> str:
    """The report for an issue or a pull request: the answer, with the reasoning collapsed."""
    comment = _Comment(report.folded)
    facts = "<br>\n".join(emphasized(fact) for fact in report.facts)
    start = [f"### {emphasized(report.title)}" if report.title else "", emphasized(report.lead)]
    parts = [part for each in (*start, facts if report.always_facts else "") for part in comment.append(each)]
    parts += comment.sections(report.shown_sections(), "" if report.always_facts else facts)
    if comment.is_cut:
        parts.append("The rest is omitted because comments are limited in size.")
    return "\n\n".join(parts) + "\n"


class _Comment:
    """Collects parts until the size limit, with the reasoning collapsed under the title ``folded``."""

    def __init__(self, folded: str) -> None:
        self.is_cut = False
        self._folded = folded
        self._remaining = _LIMIT

    def append(self, part: str) -> list[str]:
        """The part as a list, or an empty list if it is empty or does not fit."""
        # Bots read commands at the start of a line.
        part = f"\\{part}" if part.startswith("/") else part
        size = len(part.encode()) + 2
        if not part or size > self._remaining:
            self.is_cut = self.is_cut or bool(part)
            return []
        self._remaining -= size
        return [part]

    def sections(self, blocks: Sequence[Block | Section], facts: str = "") -> list[str]:
        """Blocks and sections, with the sections that are reasoning collapsed at the end."""
        parts: list[str] = []
        reasoning: list[Section] = []
        for block in blocks:
            if not isinstance(block, Section):
                parts += self._block(block)
            elif not block.is_empty and not block.only:
                if block.is_reasoning:
                    reasoning.append(block)
                else:
                    parts += self._section(block)
        if not reasoning:
            return [*parts, *self.append(facts)]
        start = self.append(f"<details><summary>{self._folded}</summary>")
        inside = [*self.append(facts), *(part for each in reasoning for part in self._section(each))]
        return [*parts, *start, *inside, "</details>"] if start else parts

    def _section(self, section: Section, title: str = "") -> list[str]:
        title = escaped(title or section.title)
        if not section.label:
            start = f"### {title}\n\n{emphasized(section.lead)}"
        else:
            start = f"**{title}{'' if title.endswith('?') else ':'}** {emphasized(section.lead)}".rstrip()
        return [*self.append(start), *self.sections(section.blocks)]

    def _block(self, block: Block) -> list[str]:
        match block:
            case Sentence():
                return self.append(emphasized(block.words))
            case Code():
                return self.append(fenced(block.lines))
            case Rows():
                return self.append(
                    "\n".join(f"- {emphasized(term)}: {emphasized(words)}" for term, words in block.rows)
                )
            case Fold():
                start = self.append(f"<details><summary>{escaped(block.summary)}</summary>")
                return [*start, *self.sections(block.blocks), "</details>"] if start else []
            case Cards():
                least = self._remaining - _LIMIT_OF_MAIN
                numbers = block.numbers or [1] * len(block.items)
                cards: list[str] = []
                shown = 0
                for item in block.items[: block.shown or _CARDS_SHOWN]:
                    if self._remaining < least:
                        break
                    section = block.draw(item)
                    cards += self._section(section, section.label)
                    shown += 1
                return [*cards, *self._rest(block, 0 if block.is_summarized else sum(numbers[shown:]))]
            case Table() if block.items:
                limit = min(self._remaining, _LIMIT_OF_MAIN if block.is_main else _LIMIT_OF_BLOCK)
                titles = [escaped(column.title) for column in block.columns]
                rows = [[emphasized(cell) for cell in row] for row in block.items[:_ITEMS_SHOWN]]
                rows = rows[: max(_fitting([titles, titles, *rows], limit) - 2, 0)]
                aligns = [column.align for column in block.columns]
                text = table(titles, rows, aligns) if rows else ""
                return [*self.append(text), *self._rest(block, len(block.items) - len(rows))]
            case Listing() | Timeline() | Tree():
                lines = _lines(block)
                sizes = accumulate(len(line.encode()) + 1 for line in lines[:_ITEMS_SHOWN])
                number = sum(size <= min(self._remaining, _LIMIT_OF_BLOCK) for size in sizes)
                return [*self.append("\n".join(lines[:number])), *self._rest(block, len(lines) - number)]
        return []

    def _rest(self, block: Cards | Table | Listing | Timeline | Tree, remaining: int) -> list[str]:
        return self.append(f"… and {count(remaining, f'more {block.noun}')}" if remaining > 0 else "")


def _lines(block: Listing | Timeline | Tree) -> list[str]:
    match block:
        case Listing():
            number = "1." if block.is_numbered and len(block.items) > 1 else "-"
            return [f"{number} {'<br>'.join(map(emphasized, item))}" for item in block.items]
        case Timeline():
            return [f"- {code(clock)} {emphasized(words)}" for clock, words in block.items]
        case Tree():
            return [line for node in block.items for line in _branch(node, "")]


def _fitting(rows: Sequence[Sequence[str]], limit: int) -> int:
    """The number of rows that fit in ``limit`` bytes, in columns as wide as their widest cell."""
    widths = [0] * len(rows[0])
    for number, row in enumerate(rows):
        widths = [max(width, len(cell.encode()) + _BORDER) for width, cell in zip(widths, row, strict=True)]
        if (number + 1) * sum(widths) > limit:
            return number
    return len(rows)


def _branch(node: Node, indent: str) -> list[str]:
    below = [line for child in node.children for line in _branch(child, f"{indent}  ")]
    return [f"{indent}- {emphasized(node.words)}", *below]


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], aligns: Sequence[str]) -> str:
    """A table with padded columns; the cells are Markdown already."""
    return tabulate(rows, headers=headers, tablefmt="pipe", colalign=aligns, disable_numparse=True)


def escaped(text: str) -> str:
    """Escape text so that no character is markup, a link, a mention or an issue reference."""
    return _inert(printable(text))


def _inert(shown: str) -> str:
    # GitHub ignores a backslash before mentions and references; a zero-width space prevents them.
    return _SPECIAL.sub(
        lambda match: f"{match[0]}&#8203;" if match[0] in "@#" else f"{match[0][:-1]}\\{match[0][-1]}", shown
    )


def emphasized(words: Words) -> str:
    """Words as Markdown: emphasis in bold type, names and code in code spans."""
    parts = []
    for text, role, link in spans_of(words):
        if role in ("name", "code"):
            # Links to kpreempt's documentation are kept; others are anchors on a page.
            parts.append(f"[{code(text)}]({link})" if link and not link.startswith("#") else code(text))
        elif role in ("strong", "bad") and (match := _WITHIN.fullmatch(printable(text))) and match[2]:
            # Asterisks next to a word only work if there is a word on the other side.
            before, inside, after = map(_inert, match.groups())
            parts.append(f"{before}**{inside}**{after}")
        else:
            parts.append(escaped(text))
    return "".join(parts)


def code(text: str) -> str:
    r"""Text in a code span that is also safe in a table. If it could end early, each sign is written by its number.

    In GitHub's tables, ``\\|`` ends a cell even in a code span.
    """
    shown = printable(text)
    if _PLAIN_CODE.fullmatch(shown):
        return f"`{shown}`" if shown.strip() else ""
    numbered = _NO_WORD.sub(lambda match: f"&#{ord(match[0])};", shown)
    return f"<code>{numbered}</code>".replace("&#64;", "&#64;&#8203;")


def fenced_report(text: str) -> str:
    """A terminal report, which contains no hidden characters, as a fenced block."""
    return _in_fence(text.rstrip("\n"))


def fenced(lines: Iterable[str]) -> str:
    """Lines as a fenced block."""
    return _in_fence("\n".join(map(printable, lines)))


def _in_fence(shown: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in _BACKTICKS.findall(shown)), default=0))
    return f"{fence}text\n{shown}\n{fence}"
