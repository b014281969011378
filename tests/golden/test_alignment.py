"""Every recorded text fits in 80 columns, and its tables are aligned."""

from __future__ import annotations

import re
from functools import partial
from itertools import takewhile
from pathlib import Path

import pytest

from tests.golden import checks, plugins, screens
from tests.golden.answers import ROOT
from tests.golden.cases import ROOT as CASES

_WIDTH = 80
# Cells begin or end at the last letter of a right-aligned title, or the first letter of a left-aligned one.
_TITLE = re.compile(r"[A-Z#][A-Z+#]*(?: [A-Z]+)*")
_TEXTS = sorted(
    path
    for root in (ROOT, checks.ROOT, plugins.ROOT, screens.ROOT, CASES)
    for path in root.rglob("*.txt")
    if path.name not in ("pane.txt", "outage.github.txt") and "120" not in path.name and path.name != "brief.txt"
)
_TABLES = ("POD", "BUDGET", "WORST", "#", "WORKLOAD", "NODE")


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("path", _TEXTS, ids=_name)
def test_no_line_is_wider_than_the_page_but_for_a_name_that_is(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        # The part before the last space fits; a single word may not. A command is copied, so that it is one line.
        assert len(line) <= _WIDTH or len(line.split()) == 1 or line.startswith("  kpreempt "), line


@pytest.mark.parametrize("path", _TEXTS, ids=_name)
def test_the_cells_of_a_table_stand_below_their_titles(path: Path) -> None:
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        lines = block.splitlines()
        for number, title in enumerate(lines):
            if title.split()[:1] and title.split()[0] in _TABLES and len(title.split()) > 1 and title.isupper():
                for row in takewhile(partial(_is_within, title), lines[number + 1 :]):
                    _check(title, row)


def _is_within(title: str, row: str) -> bool:
    """Whether the row belongs to the title's table: numbers on the left may be wider than the title."""
    is_number = title.lstrip().startswith("#") and not row[:1].isupper()
    is_indented = _indent(row) >= _indent(title) or is_number
    return is_indented and not row.lstrip().startswith(("…", "0 on every node"))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _check(title: str, row: str) -> None:
    """Each cell begins where its title does, or ends where that ends; a cell may be empty."""
    titles = [match.span() for match in _TITLE.finditer(title)]
    for cell in re.finditer(r"\S+(?: \S+)*", row):
        begins, ends = cell.span()
        assert any(begins == start or ends == end for start, end in titles), (title, row)
