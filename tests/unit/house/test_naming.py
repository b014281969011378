"""docs/naming.md has every public name, and no other."""

from __future__ import annotations

import re

from kpreempt.cli.requests import COMMANDS
from kpreempt.fleet.rows import TABLES
from kpreempt.gate_rules import RuleId
from tests.naming_document import DOCUMENT, values, with_names

PAGE = DOCUMENT.read_text(encoding="utf-8")


def cells(table: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    after = PAGE.partition(f"<!-- table: {table} -->\n")[2]
    rows = re.match(r"(?:\|.*\n)*", after)
    assert rows is not None
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in rows[0].splitlines()]
    return [[re.sub(r"[`\[\]]|\(\S+\.md\)", "", cell).strip() for cell in line] for line in lines[2:]]


def test_the_tables_are_those_of_the_code() -> None:
    assert with_names(PAGE) == PAGE


def test_every_command_is_named() -> None:
    assert [name for name, *_ in cells("commands")] == list(COMMANDS)


def test_every_rule_is_named() -> None:
    assert [name for name, *_ in cells("rules")] == list(RuleId)


def test_every_value_of_an_enumeration_has_a_meaning() -> None:
    named = [(enumeration, value) for enumeration, value, _ in cells("values")]
    assert named == [
        (enumeration, value or "(empty)") for enumeration, (_, listed) in sorted(values().items()) for value in listed
    ]
    assert [row for row in cells("values") if not row[2]] == []


def test_every_column_is_named() -> None:
    named = [(table, column) for table, column, _ in cells("columns")]
    assert named == [(table, column.name) for table, columns in TABLES.items() for column in columns]
