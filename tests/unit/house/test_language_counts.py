"""What ``tools/language_counts.py`` counts, and what it leaves out."""

from __future__ import annotations

import pytest

from tools.language_counts import area_of, counts, excess


@pytest.mark.parametrize(
    ("path", "area"),
    [
        ("kpreempt/cli/app.py", "code"),
        ("docs/gate.md", "docs"),
        ("README.md", "docs"),
        ("fixtures/golden-answers/pending.txt", "goldens"),
        ("tests/golden/cases.py", "tests"),
        ("fixtures/conformance/kube-1.36/generated/a.md", ""),
        ("tests/reference/cmd/reference/main.go", ""),
        ("completions/kpreempt.fish", ""),
    ],
)
def test_a_file_belongs_to_one_area(path: str, area: str) -> None:
    assert area_of(path) == area


def test_our_words_count_and_those_of_others_do_not() -> None:
    texts = [
        ("docs/gate.md", "It is told anew where nobody asked. See https://example.org/who/where."),
        ("docs/fleet.md", "SELECT pod FROM verdicts WHERE certain"),
        ("fixtures/conformance/a.md", "told"),
        ("kpreempt/a.py", "is_told = colour"),
    ]
    found = counts(iter(texts))
    assert {name: dict(areas) for name, areas in found.items() if any(areas.values())} == {
        "told, tell": {"docs": 1, "code": 1},
        "ask": {"docs": 1, "code": 0},
        "where": {"docs": 1, "code": 0},
        "nobody": {"docs": 1, "code": 0},
        "anew": {"docs": 1, "code": 0},
        "British spelling": {"docs": 0, "code": 1},
    }


def test_what_is_left_of_a_pattern_is_compared_with_its_limit() -> None:
    before = counts(iter([("docs/gate.md", "anew " * 100 + "where " * 100)]))
    assert excess(counts(iter([("docs/gate.md", "anew " * 5 + "where " * 15)])), before) == []
    assert excess(counts(iter([("docs/gate.md", "anew " * 6 + "where " * 16)])), before) == [
        "where in docs",
        "anew in docs",
    ]
