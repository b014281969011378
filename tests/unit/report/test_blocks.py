"""What the renderers make of blocks: nothing is cut unsaid, nothing from the input drives a terminal or is markup."""

from __future__ import annotations

import re

import pytest

from kpreempt.report.blocks import (
    Cards,
    Code,
    Fold,
    Hint,
    Listing,
    Node,
    Report,
    Rows,
    Section,
    Sentence,
    Span,
    Table,
    Timeline,
    Tree,
    columns,
    name,
)
from kpreempt.report.html.report import render_page
from kpreempt.report.markdown import render_markdown
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.report.terminal import render_text
from tests.html_pages import parse

HOSTILE = "a\x1b[2J\u202e|<script>`*_"
PODS = columns("POD", "PRIORITY", "WHY", right=["PRIORITY"])


def section(words: str = "x", *, items: int = 3) -> Section:
    return Section(
        "VICTIMS",
        (Span(words, "bad"), " go"),
        [
            Sentence((name(words), " is a name")),
            Rows([("by", words)]),
            Table(PODS, [[name(f"{words}{at}"), "10", words] for at in range(items)], noun="victim", shown=2),
            Listing([[words, words]] * items, noun="change", is_numbered=True),
            Tree([Node(words, [Node(words)])]),
            Timeline([("1s", words)]),
            Code(words),
            Hint("see -v"),
            Fold("more", [Sentence(words)]),
        ],
        priority=1,
    )


def report(*sections: Section, **fields: object) -> Report:
    return Report(lead="It lands.", title=(name("shop/api"), " lands"), sections=sections, **fields)  # type: ignore[arg-type]


def text(shown: Report, **options: object) -> str:
    return render_text(shown, RenderOptions(**options))  # type: ignore[arg-type]


def table(words: str, width: int) -> list[str]:
    rows = [[name("shop/web-1"), "10", words]]
    return text(report(Section("", blocks=[Table(PODS, rows)])), width=width).splitlines()[4:]


def test_the_last_column_of_a_table_wraps_in_place() -> None:
    assert table("it is short of cpu and of memory too", 48) == [
        "POD         PRIORITY  WHY",
        "shop/web-1        10  it is short of cpu and of",
        "                      memory too",
    ]


def test_a_table_too_wide_for_columns_has_the_first_above_the_others_or_is_paragraphs() -> None:
    assert table("short of a-resource-with-a-long-name", 44)[2:] == [
        "shop/web-1",
        "        10  short of",
        "            a-resource-with-a-long-name",
    ]
    assert table("it is short of cpu and of memory too", 30) == [
        "POD  PRIORITY  WHY", "shop/web-1  10  it is short of", "  cpu and of memory too",
    ]  # fmt: skip


def test_words_break_at_spaces_alone_and_lines_hang_below_their_first() -> None:
    words = Section("", blocks=[Sentence(("one  two ", Span("three", "bad"), ", four 名前 名前"))])
    assert text(report(words), width=12).splitlines()[4:] == ["one  two", "  three,", "  four 名前", "  名前"]


def test_a_label_stands_next_to_its_text_or_before_it_if_it_is_long() -> None:
    sections = (Section("EVENT", "0/5 nodes are available"), Section("A LONGER LABEL", "before"))
    assert text(report(*sections), width=30).splitlines()[2:] == [
        "EVENT         0/5 nodes are",
        "              available",
        "",
        "A LONGER LABEL  before",
    ]


def test_names_wider_than_the_page_run_over_it_in_a_report_and_lose_their_middle_on_a_screen() -> None:
    long = report(Section("ON", "gke-prod-default-pool-1", priority=1))
    assert "gke-prod-default-pool-1" in text(long, width=20)
    assert "ON            gk…l-1" in text(long, width=20, extent=Extent.SCREEN).splitlines()


def test_what_a_report_leaves_out_is_counted_and_verbose_leaves_out_nothing() -> None:
    assert "… and 1 more victim (-v)" in text(report(section()))
    assert "more victim" not in text(report(section()), verbose=True)


@pytest.mark.parametrize("items", [3, 300])
@pytest.mark.parametrize("is_compact", [False, True])
def test_a_screen_holds_every_section_or_counts_it(items: int, is_compact: bool) -> None:
    sections = [section(items=items) for _ in range(9)]
    lines = text(report(*sections, is_compact=is_compact, more=[("-v", "all")]), extent=Extent.SCREEN).splitlines()
    assert len(lines) <= 22
    assert lines[-1] == "More: -v (all)"
    shown = "\n".join(lines)
    victims = len(re.findall(r"\bx\d+\b", shown))
    counted = re.findall(r"([\d,]+) more victims?", shown)
    assert victims + sum(int(each.replace(",", "")) for each in counted) == 9 * items


def test_color_adds_escape_sequences_and_nothing_else() -> None:
    colored = text(report(section()), color=True)
    assert "\x1b[1;31mx\x1b[0m go" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == text(report(section()))


@pytest.mark.parametrize("extent", Extent)
def test_no_name_drives_a_terminal(extent: Extent) -> None:
    shown = text(report(section(HOSTILE), section(HOSTILE)), extent=extent, verbose=True)
    assert all(line.isprintable() for line in shown.splitlines())


def test_no_name_is_markup_on_a_page_or_in_markdown() -> None:
    hostile = report(section(HOSTILE))
    page = parse(render_page(hostile, RenderOptions()))
    assert not page.all("script")
    assert "<script>" in page.text
    outside_code = re.sub(r"(`+).*?\1|\\.", "", render_markdown(hostile, RenderOptions()), flags=re.DOTALL)
    assert "<script>" not in outside_code
    assert "\x1b" not in outside_code


def test_commands_are_not_broken() -> None:
    command = f"kpreempt explain {'--set a=b ' * 20}".strip()
    assert command in text(report(Section("TRY", blocks=[Code(command, is_command=True)])), width=40)


def test_what_hangs_deep_in_a_tree_goes_on_below_one_another() -> None:
    deep = Node("leaf")
    for depth in range(9, 0, -1):
        deep = Node(f"level {depth}", [deep])
    lines = text(report(Section("TREE", blocks=[Tree([deep])]))).splitlines()
    assert lines[-1].endswith("── leaf")
    assert max(len(line) - len(line.lstrip(" │├└─")) for line in lines) <= 18


def test_a_block_without_items_is_not_there() -> None:
    empty = Section("VICTIMS", "none", [Table(PODS, []), Table(PODS, [], is_untitled=True), Listing([]), Tree([])])
    assert text(report(empty)) == "It lands.\n\nVICTIMS       none\n"


PARTS = [["2  reason", "n1: taint", "n2 and 2 more: taint", "n5: taint"]]


@pytest.mark.parametrize(
    ("height", "lines"),
    [
        pytest.param(24, ["2  reason", "  n1: taint", "  n2 and 2 more: taint", "  n5: taint"], id="all"),
        pytest.param(7, ["2  reason", "  n1: taint", "  … and 4 more nodes (-v)"], id="as many as fit"),
        pytest.param(6, ["2  reason", "  … 5 nodes (-v)"], id="none"),
    ],
)
def test_a_screen_shows_the_parts_of_an_item_that_fit_and_counts_what_the_others_stand_for(
    height: int, lines: list[str]
) -> None:
    listing = Listing(PARTS, noun="reason", parts="node", numbers=[[1, 3, 1]])
    shown = report(Section("REJECTED", blocks=[listing], priority=1), is_compact=True)
    section = text(shown, extent=Extent.SCREEN, height=height).splitlines()[2:]
    assert [line.removeprefix("REJECTED").strip() for line in section] == [line.strip() for line in lines]


def test_whole_items_are_omitted_before_the_first_is_cut() -> None:
    words = "a remedy with many words that does not fit on a single line of this screen, which is narrow"
    listing = Listing([[words]] * 3, noun="change", is_whole=True)
    shown = report(Section("FIX", blocks=[listing], priority=1, min_lines=4), is_compact=True)
    lines = text(shown, extent=Extent.SCREEN, height=9, width=60).splitlines()
    assert " ".join(" ".join(lines[2:-1]).split()) == f"FIX {words}"
    assert lines[-1].strip() == "… and 2 more changes (-v)"


def test_an_aside_is_omitted_before_the_reserved_lines_of_other_sections() -> None:
    aside = Section("EVENT", blocks=[Code("word " * 30)], priority=3, aside=1)
    kept = Section("FIX", blocks=[Listing([["x"]] * 6, noun="change")], priority=2, reserved_lines=6, is_inline=True)
    lines = text(report(aside, kept, is_compact=True), extent=Extent.SCREEN, height=11).splitlines()
    assert sum(line.endswith(" x") for line in lines) == 6
    assert lines[-1] == "… and EVENT (-v)"


@pytest.mark.parametrize("height", [9, 12, 24])
def test_a_card_that_is_cut_keeps_the_first_line_below_its_sentence(height: int) -> None:
    def card(item: int) -> Section:
        return Section(f"rule-{item}", "so much " * 99, [Rows([("fix", f"do {item}"), ("file", "a.yaml")])])

    cards = Section("FINDINGS", blocks=[Cards([1], card, noun="finding")], priority=1, min_lines=4)
    shown = text(report(cards), extent=Extent.SCREEN, height=height)
    assert "fix   do 1 … (-v)" in shown
    assert re.search(r"(so|much) …\n", shown)
    assert "… …" not in shown
