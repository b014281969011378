"""Reports as Markdown in which nothing from the input is markup: text, code spans, fenced blocks and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tabulate import tabulate

from kpreempt.report.amounts import count
from kpreempt.report.blocks import (
    Block,
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


def render_markdown(report: Report, _options: RenderOptions) -> str:
    """The report for a ticket or a pull request: the answer, and the reasoning folded away."""
    blocks = [f"### {emphasised(report.title)}" if report.title else "", emphasised(report.lead)]
    sections = report.shown_sections(is_answer_first=True)
    blocks += [part for section in sections if not section.is_reasoning for part in _section(section)]
    if facts := [emphasised(fact) for fact in report.facts]:
        blocks.append("<br>\n".join(facts))
    if reasoning := [part for section in sections if section.is_reasoning for part in _section(section)]:
        blocks += ["<details><summary>The reasoning</summary>", *reasoning, "</details>"]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _section(section: Section) -> list[str]:
    if not section.label:
        parts = [f"### {escaped(section.title)}", emphasised(section.lead)]
    else:
        title = f"**{escaped(section.label if section.noun else section.title)}**"
        parts = [f"{title}: {emphasised(section.lead)}" if section.lead else f"{title}:"]
    for block in section.blocks:
        if isinstance(block, Section):
            parts += [] if block.is_empty else _section(block)
        else:
            parts += _block(block)
    return [part for part in parts if part]


def _block(block: Block) -> list[str]:
    match block:
        case Sentence():
            return [emphasised(block.words)]
        case Code():
            return [fenced(block.text)]
        case Rows():
            return ["\n".join(f"- {escaped(term)}: {emphasised(words)}" for term, words in block.rows)]
        case Fold():
            inner = [
                part
                for each in block.blocks
                for part in (_section(each) if isinstance(each, Section) else _block(each))
            ]
            return [f"<details><summary>{escaped(block.summary)}</summary>", *inner, "</details>"]
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
