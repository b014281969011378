"""Reports as Markdown in which nothing from the input is markup: text, code spans, fenced blocks and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

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

_SPECIAL = re.compile(r"[\\`*_\[\]<>#|~!&$]|://|(?i:www\.)")
_BACKTICKS = re.compile(r"`+")
# A comment of a pull request holds 64 KiB.
_ITEMS_SHOWN = 100
_CARDS_SHOWN = 10


def render_markdown(report: Report, _options: RenderOptions) -> str:
    """The report for a ticket or a pull request: the answer, and the reasoning folded away."""
    title = f"### {emphasised(report.title)}" if report.title else ""
    facts = "<br>\n".join(emphasised(fact) for fact in report.facts)
    parts = [title, emphasised(report.lead), *_sections(report.shown_sections(), facts)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _sections(blocks: Sequence[Block | Section], facts: str = "") -> list[str]:
    """Blocks and sections, and those of the reasoning folded at the end."""
    parts: list[str] = []
    reasoning = [facts]
    for block in blocks:
        if not isinstance(block, Section):
            parts += _block(block)
        elif not block.is_empty and not block.only:
            (reasoning if block.is_reasoning else parts).extend(_section(block))
    if not any(reasoning[1:]):
        return [*parts, facts]
    return [*parts, "<details><summary>The reasoning</summary>", *reasoning, "</details>"]


def _section(section: Section, title: str = "") -> list[str]:
    title = escaped(title or section.title)
    if not section.label:
        start = f"### {title}\n\n{emphasised(section.lead)}"
    else:
        start = f"**{title}{'' if title.endswith('?') else ':'}** {emphasised(section.lead)}".rstrip()
    return [start, *_sections(section.blocks)]


def _block(block: Block) -> list[str]:
    match block:
        case Sentence():
            return [emphasised(block.words)]
        case Code():
            return [fenced(block.text)]
        case Rows():
            return ["\n".join(f"- {emphasised(term)}: {emphasised(words)}" for term, words in block.rows)]
        case Fold():
            return [f"<details><summary>{escaped(block.summary)}</summary>", *_sections(block.blocks), "</details>"]
    if isinstance(block, Cards):
        shown = [block.draw(item) for item in block.items[: block.shown or _CARDS_SHOWN]]
        left = 0 if block.is_summarized else len(block.items) - len(shown)
        cards = [part for each in shown for part in _section(each, each.label)]
        return [*cards, *([f"… and {count(left, f'more {block.noun}')}"] if left else [])]
    if not isinstance(block, Table | Listing | Timeline | Tree) or not block.items:
        return []
    rest = len(block.items) - _ITEMS_SHOWN
    match block:
        case Table():
            titles = [escaped(column.title) for column in block.columns]
            aligns = [column.align for column in block.columns]
            lines = [table(titles, [[emphasised(cell) for cell in row] for row in block.items[:_ITEMS_SHOWN]], aligns)]
        case Listing():
            number = "1." if block.is_numbered and len(block.items) > 1 else "-"
            lines = [f"{number} {'<br>'.join(map(emphasised, item))}" for item in block.items[:_ITEMS_SHOWN]]
        case Timeline():
            lines = [f"- {code(clock)} {emphasised(words)}" for clock, words in block.items[:_ITEMS_SHOWN]]
        case Tree():
            lines = [line for node in block.items[:_ITEMS_SHOWN] for line in _branch(node, "")]
    return ["\n".join(lines), *([f"… and {count(rest, f'more {block.noun}')}"] if rest > 0 else [])]


def _branch(node: Node, indent: str) -> list[str]:
    below = [line for child in node.children for line in _branch(child, f"{indent}  ")]
    return [f"{indent}- {emphasised(node.words)}", *below]


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], aligns: Sequence[str]) -> str:
    """A table with padded columns, of cells that are Markdown already."""
    return tabulate(rows, headers=headers, tablefmt="pipe", colalign=aligns, disable_numparse=True)


def escaped(text: str) -> str:
    """Text of which no character is markup, and that no one turns into a link."""
    return _SPECIAL.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", printable(text))


def emphasised(words: Words) -> str:
    """Words with what stands out in bold type, and names and code in code spans."""
    parts = []
    for text, role, _ in spans_of(words):
        if role in ("name", "code"):
            parts.append(code(text))
            continue
        shown = escaped(text)
        is_bold = role in ("strong", "bad") and shown.strip()
        parts.append(f"{shown[: len(shown) - len(shown.lstrip())]}**{shown.strip()}**" if is_bold else shown)
    return "".join(parts)


def code(text: str) -> str:
    """Text in a code span that also holds inside a table."""
    shown = printable(text).replace("|", "\\|")
    if not shown:
        return ""
    fence = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(shown)), default=0))
    padding = " " if "`" in shown else ""
    return f"{fence}{padding}{shown}{padding}{fence}"


def fenced_report(text: str) -> str:
    """A report for a terminal, which shows no hidden characters any more, as a block that keeps its columns."""
    return _in_fence(text.rstrip("\n"))


def fenced(text: str) -> str:
    """Text as a block that keeps its columns."""
    return _in_fence(printable(text))


def _in_fence(shown: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in _BACKTICKS.findall(shown)), default=0))
    return f"{fence}text\n{shown}\n{fence}"
