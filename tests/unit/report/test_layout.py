from __future__ import annotations

import pytest

from kpreempt.report.layout import Page, Span, to_plain


def lines(page: Page) -> list[str]:
    return to_plain(page.lines).splitlines()


def test_a_paragraph_breaks_at_spaces_and_hangs() -> None:
    page = Page(16)
    page.paragraph("one two ", Span("three", "bad"), " four five", indent=2, hanging=2)
    assert lines(page) == ["  one two three", "    four five"]


def test_a_word_of_several_styles_is_not_broken() -> None:
    page = Page(10)
    page.paragraph("see ", Span("node-b", "strong"), "; ok")
    assert lines(page) == ["see", "node-b; ok"]


def test_a_name_wider_than_the_page_is_not_cut() -> None:
    page = Page(10)
    page.paragraph("on gke-prod-default-pool-1 it runs")
    assert lines(page) == ["on", "gke-prod-default-pool-1", "it runs"]


def test_two_spaces_stay_two_spaces() -> None:
    page = Page(40)
    page.paragraph("a  b")
    assert lines(page) == ["a  b"]


def test_wide_characters_count_for_two_cells() -> None:
    page = Page(8)
    page.paragraph("名前 名前")
    assert lines(page) == ["名前", "名前"]


def test_a_label_stands_beside_its_text() -> None:
    page = Page(24)
    page.labelled("EVENT", "0/5 nodes are available", column=8)
    page.labelled("A LONG LABEL", "below", column=8)
    assert lines(page) == ["EVENT   0/5 nodes are", "        available", "A LONG LABEL", "        below"]


ROWS = [[("POD",), ("PRIORITY",), ("WHY",)], [("shop/web-1",), ("10",), ("it is short of cpu and of memory too",)]]


def test_the_last_column_of_a_table_wraps_in_place() -> None:
    page = Page(48)
    page.table(ROWS, aligns=("left", "right", "left"))
    assert lines(page) == [
        "POD         PRIORITY  WHY",
        "shop/web-1        10  it is short of cpu and of",
        "                      memory too",
    ]


def test_a_table_too_wide_for_the_page_becomes_paragraphs() -> None:
    page = Page(30)
    page.table(ROWS, aligns=("left", "right", "left"))
    assert lines(page) == ["POD  PRIORITY  WHY", "shop/web-1  10  it is short of", "  cpu and of memory too"]


def test_where_names_are_long_the_first_column_stands_above_the_others() -> None:
    page = Page(40)
    rows = [
        [("BUDGET",), ("READY",), ("ALLOWED",)],
        [("kube-system/" + "a" * 20,), ("3/3",), ("1",)],
        [("b",), ("10/12",), ("0",)],
    ]
    page.table(rows, aligns=("left", "right", "right"), indent=2)
    assert to_plain(page.lines).splitlines() == [
        "  BUDGET",
        "    READY  ALLOWED",
        f"  kube-system/{'a' * 20}",
        "      3/3        1",
        "  b",
        "    10/12        0",
    ]


def test_of_a_paragraph_that_is_cut_the_reader_sees_that_there_is_more() -> None:
    page = Page(20)
    page.paragraph("one two three four five six seven eight", indent=2, hanging=2, most=2)
    assert to_plain(page.lines).splitlines() == ["  one two three four", "    five six seven …"]
    page.lines.clear()
    page.paragraph("short", most=1)
    assert to_plain(page.lines) == "short\n"


@pytest.mark.parametrize("text", ["a\x1b[2Jb", "a\nb"])
def test_no_part_of_a_page_can_hold_a_control_character(text: str) -> None:
    page = Page(80)
    page.paragraph(text)
    page.labelled(text, text, column=4)
    page.table([[(text,), (text,)]], aligns=("left", "left"))
    assert all(line.isprintable() for line in lines(page))
    assert len(lines(page)) == 4
