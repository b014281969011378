"""The page of a check in a browser without a network, on screens and on paper."""

from __future__ import annotations

import json
import re
import struct
import zlib

import pytest

from kpreempt.report.answers import render_answer
from kpreempt.report.html.report import SCRIPT
from kpreempt.report.options import RenderOptions
from tests.browser.chromium import Chromium
from tests.checks import MARKUP, big_check, hostile_check, whole_check
from tests.html_pages import parse

pytestmark = pytest.mark.browser

WHOLE = render_answer(whole_check(), "html", RenderOptions())
HOSTILE_PAGE = render_answer(hostile_check(), "html", RenderOptions())
LONG = render_answer(big_check(pods=20, name_length=230), "html", RenderOptions())
FOLDED = big_check(pods=20, name_length=5)
PARTS = [
    "findings", "not-counted", "rules", "changes", "timeline", "victims", "budgets", "workloads", "waiting",
    "broken-dependencies", "outcomes", "nodes", "waivers", "assumptions",
]  # fmt: skip
# Elements that extend beyond the window; visually hidden ones do not count.
TOO_WIDE = """[...document.querySelectorAll("body *")].filter(each => {
  const box = each.getBoundingClientRect();
  return box.width > 1 && box.right > document.documentElement.clientWidth + 1;
}).map(each => each.outerHTML.slice(0, 120))"""


def test_the_browser_reads_the_written_parts(chromium: Chromium) -> None:
    page = parse(chromium.dom(WHOLE))
    assert [each.attributes["aria-labelledby"] for each in page.all("section")] == PARTS
    assert len(page.all(class_="lane")) == 3
    assert len(page.all(class_="map")) == 3
    assert len(page.all("svg", "")) == len(parse(WHOLE).all("svg"))


@pytest.mark.parametrize("page", [WHOLE, HOSTILE_PAGE, LONG], ids=["whole", "hostile", "long"])
@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_reaches_beyond_the_window(chromium: Chromium, page: str, width: int) -> None:
    root = "document.documentElement"
    widths = f"[{root}.clientWidth, {root}.scrollWidth, {TOO_WIDE}]"
    found = json.loads(chromium.probe(page, widths, width=width))
    assert found[0] == width
    assert (found[1], found[2]) == (width, [])


def test_the_style_is_allowed_by_the_policy(chromium: Chromium) -> None:
    """The policy stays, so no script can check this: the picture differs if the style is blocked."""
    refused = WHOLE.replace("sha256-", "sha256-AAAA", 1)
    assert refused != WHOLE
    assert chromium.screenshot(WHOLE, width=1280) != chromium.screenshot(refused, width=1280)


@pytest.mark.parametrize("width", [1280, 400])
def test_a_picture_is_as_wide_as_the_window_and_not_blank(chromium: Chromium, width: int) -> None:
    picture = chromium.screenshot(WHOLE, width=width)
    assert picture.startswith(b"\x89PNG")
    assert struct.unpack(">II", picture[16:24]) == (width, 900)
    assert len(picture) > 20_000


def test_hostile_names_run_no_script_with_the_policy_or_without(chromium: Chromium) -> None:
    page = parse(chromium.dom(HOSTILE_PAGE))
    assert page.all("title")[0].text == "kpreempt check: failed"
    assert [each.text for each in page.all("script")] == [SCRIPT]
    assert not page.all("img")
    assert MARKUP in page.text
    counts = "[document.title, document.images.length, document.scripts.length]"
    # The other script is the probe.
    assert json.loads(chromium.probe(HOSTILE_PAGE, counts)) == ["kpreempt check: failed", 0, 2]


def test_the_search_is_allowed_by_the_policy_and_absent_without_its_script(chromium: Chromium) -> None:
    (box,) = parse(chromium.dom(WHOLE)).all(class_="search")
    assert "hidden" not in box.attributes
    (without,) = parse(chromium.dom(re.sub(r"<script>.*</script>", "", WHOLE, flags=re.S))).all(class_="search")
    assert "hidden" in without.attributes


@pytest.mark.parametrize(
    ("words", "standing", "cards"),
    [
        ("", "", 4),
        ("shop/web-5d8f-2", "", 1),
        ("CRUNCH may wait", "", 1),
        ("no such pod", "", 0),
        ("", "fails", 2),
        ("max-victims", "waived", 0),
    ],
)
def test_a_search_leaves_what_has_all_the_words(chromium: Chromium, words: str, standing: str, cards: int) -> None:
    page = render_answer(whole_check(), "html", RenderOptions())
    request = f"""(() => {{
      const words = document.querySelector(".search input"), kind = document.querySelector(".search select");
      words.value = {json.dumps(words)}; kind.value = {json.dumps(standing)};
      words.dispatchEvent(new Event("input"));
      return [...document.querySelectorAll(".card")].filter(each => !each.hidden).length;
    }})()"""
    assert json.loads(chromium.probe(page, request)) == cards


def test_an_injected_script_would_be_blocked(chromium: Chromium) -> None:
    script = "<script>document.documentElement.setAttribute('data-ran', 'yes')</script></body>"
    spoilt = WHOLE.replace("</body>", script)
    assert "data-ran=" not in chromium.dom(spoilt)
    assert "data-ran=" in chromium.dom(re.sub(r"<meta http-equiv=[^>]*>", "", spoilt))


def test_what_is_folded_is_hidden_on_a_screen_until_it_is_opened(chromium: Chromium) -> None:
    heights = (
        "[...document.querySelectorAll('.folded')].map(each => each.getBoundingClientRect().height > 0)",
        "(document.querySelectorAll('details').forEach(each => each.open = true),"
        "[...document.querySelectorAll('.folded')].map(each => each.getBoundingClientRect().height > 0))",
    )
    page = render_answer(FOLDED, "html", RenderOptions())
    closed, opened = (json.loads(chromium.probe(page, each)) for each in heights)
    assert len(closed) > 5
    assert not any(closed)
    assert all(opened)


def test_what_is_folded_is_on_paper(chromium: Chromium) -> None:
    """The number of sheets is the same, folded or not."""
    folded, unfolded = (render_answer(FOLDED, "html", RenderOptions(verbose=verbose)) for verbose in (False, True))
    assert folded != unfolded
    without = folded.replace('class="folded"', 'class="folded" hidden')
    sheets = [sheets_of(chromium.pdf(page)) for page in (folded, unfolded, without)]
    assert sheets[0] == sheets[1] > sheets[2]


def test_paper_is_a4_and_white_whatever_the_screen_is(chromium: Chromium) -> None:
    document = chromium.pdf(WHOLE)
    sizes = set(re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", readable(document)))
    assert {(round(float(wide)), round(float(high))) for wide, high in sizes} == {(595, 842)}


@pytest.mark.parametrize(
    ("preferred", "ground"), [("1", "rgb(255, 255, 255)"), ("0", "rgb(16, 21, 27)")], ids=["light", "dark"]
)
def test_colors_follow_the_preferred_scheme(chromium: Chromium, preferred: str, ground: str) -> None:
    options = (f"--blink-settings=preferredColorScheme={preferred}",)
    shown = "getComputedStyle(document.body).backgroundColor"
    assert json.loads(chromium.probe(WHOLE, shown, options=options)) == ground


def readable(document: bytes) -> bytes:
    """A PDF with its compressed parts decompressed."""
    packed = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", document, re.S)
    unpacked = []
    for each in packed:
        try:
            unpacked.append(zlib.decompress(each))
        except zlib.error:
            continue
    return document + b"\n".join(unpacked)


def sheets_of(document: bytes) -> int:
    """The number of pages of a PDF."""
    return len(re.findall(rb"/Type\s*/Page\b", readable(document)))
