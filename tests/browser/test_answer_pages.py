"""HTML pages in a browser without a network: on wide and narrow screens, and on paper."""

from __future__ import annotations

import json
from functools import cache

import pytest

from tests.answer_pages import answers, page_of, spoilt
from tests.browser.chromium import Chromium
from tests.browser.test_check_page import TOO_WIDE, sheets_of
from tests.html_pages import parse

pytestmark = pytest.mark.browser

# One of each kind, and those with the most content.
NAMES = ["node-loses-the-choice", "never-lands", "aftermath", "many-verdicts", "pending", "compare", "who-evicted"]
# Labels of a narrow table stand next to their cells, and never on the next one.
CROWDED = """[...document.querySelectorAll(".stack td")].filter(cell =>
  cell.offsetParent && cell.scrollHeight > cell.clientHeight + 1).map(cell => cell.outerHTML.slice(0, 120))"""


@cache
def page(name: str, *, is_hostile: bool = False, verbose: bool = False) -> str:
    answer = answers()[name]
    return page_of(spoilt(answer) if is_hostile else answer, verbose=verbose)


@pytest.mark.parametrize("is_hostile", [False, True], ids=["as it is", "hostile"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_reaches_beyond_the_window(chromium: Chromium, name: str, width: int, is_hostile: bool) -> None:
    root = "document.documentElement"
    found = chromium.probe(
        page(name, is_hostile=is_hostile, verbose=True),
        f"[{root}.clientWidth, {root}.scrollWidth, {TOO_WIDE}, {CROWDED}]",
        width=width,
    )
    assert json.loads(found) == [width, width, [], []]


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_run_no_script(chromium: Chromium, name: str) -> None:
    shown = parse(chromium.dom(page(name, is_hostile=True)))
    assert not shown.all("script")
    assert not shown.all("img")
    counts = "[document.images.length, document.scripts.length, document.title === 'pwned']"
    # The only script is the probe.
    assert json.loads(chromium.probe(page(name, is_hostile=True), counts)) == [0, 1, False]


def test_what_is_folded_is_on_paper(chromium: Chromium) -> None:
    """The number of sheets is the same, folded or not."""
    folded, unfolded = page("many-verdicts"), page("many-verdicts", verbose=True)
    without = folded.replace('class="folded"', 'class="folded" hidden')
    sheets = [sheets_of(chromium.pdf(each)) for each in (folded, unfolded, without)]
    assert sheets[0] == sheets[1] > sheets[2]


@pytest.mark.parametrize(
    ("preferred", "ground"), [("1", "rgb(255, 255, 255)"), ("0", "rgb(16, 21, 27)")], ids=["light", "dark"]
)
def test_colors_follow_the_preferred_scheme(chromium: Chromium, preferred: str, ground: str) -> None:
    options = (f"--blink-settings=preferredColorScheme={preferred}",)
    shown = "getComputedStyle(document.body).backgroundColor"
    assert json.loads(chromium.probe(page("pending"), shown, options=options)) == ground
