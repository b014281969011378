"""A check as a page: what is on it, what is not, and that nothing of the input becomes markup."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
import tomllib
from collections.abc import Callable

import msgspec
import pytest

from kpreempt.report.answers import render_answer
from kpreempt.report.check.words import finding_text
from kpreempt.report.html.lanes import (
    WIDTH,
    Scale,
    ready_path,
    ready_series,
    scale_of,
    workload_names,
    workload_of,
)
from kpreempt.report.html.markup import Html, join, table, tag, text, within
from kpreempt.report.html.report import SCRIPT
from kpreempt.report.html.style import DARK, LIGHT, WORKLOADS_DARK, WORKLOADS_LIGHT
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import ClusterSummary
from kpreempt.verdict.check import Check, FindingStatus, OutcomeShare, Range, RuleId
from kpreempt.verdict.simulation import (
    Displaced,
    SimulatedWorkload,
    Simulation,
    SimulationEnd,
    SimulationStep,
    StepKind,
)
from tests.checks import MARKUP, big_check, finding, hostile_check, quiet_check, replaced, whole_check
from tests.html_pages import Element, parse

OPTIONS = RenderOptions()
PAGES = [pytest.param(make, id=make.__name__) for make in (whole_check, quiet_check, hostile_check)]
MakeCheck = Callable[[], Check]


def page_of(check: Check, **options: bool) -> Element:
    return parse(render_answer(check, "html", RenderOptions(**options)))  # type: ignore[arg-type]


def words_of(element: Element) -> str:
    return " ".join(element.text.split())


def section_of(page: Element, name: str) -> Element:
    return next(each for each in page.all("section") if each.attributes["aria-labelledby"] == name)


@pytest.mark.parametrize("make", PAGES)
def test_every_element_closes_and_names_what_it_is_labelled_by(make: MakeCheck) -> None:
    page = page_of(make())
    identifiers = [each.attributes["id"] for each in page.all() if "id" in each.attributes]
    assert len(identifiers) == len(set(identifiers))
    for link in page.all("a"):
        assert link.attributes["href"].removeprefix("#") in identifiers
    for each in page.all("section"):
        assert each.attributes["aria-labelledby"] in identifiers
    assert page.all("html")[0].attributes["lang"] == "en"


@pytest.mark.parametrize("make", PAGES)
def test_headings_come_in_order(make: MakeCheck) -> None:
    levels = [int(each.name[1]) for each in page_of(make()).all() if re.fullmatch(r"h[1-6]", each.name)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize("make", PAGES)
def test_tables_have_a_caption_and_every_heading_a_scope(make: MakeCheck) -> None:
    page = page_of(make())
    assert all(each.all("caption")[0].text for each in page.all("table"))
    assert {each.attributes.get("scope") for each in page.all("th")} <= {"col", "row"}


@pytest.mark.parametrize("make", PAGES)
def test_nothing_is_fetched_run_or_styled_from_elsewhere(make: MakeCheck) -> None:
    markup = render_answer(make(), "html", OPTIONS)
    page = parse(markup)
    assert {each.name for each in page.all()}.isdisjoint({"img", "link", "iframe", "object", "form", "base"})
    for each in page.all():
        loads = {name for name in each.attributes if name in ("src", "style", "srcset") or name.startswith("on")}
        assert not loads
        assert each.attributes.get("href", "#").startswith("#")
    assert [each.text for each in page.all("script")] == [SCRIPT]
    style = page.all("style")[0].text
    assert "url(" not in style
    assert "@import" not in style
    assert "://" not in markup


def test_the_policy_lets_nothing_in_but_the_style_and_the_script_that_are_there() -> None:
    page = page_of(whole_check())
    metas = {each.attributes.get("http-equiv") or each.attributes.get("name"): each for each in page.all("meta")}
    style, script = (
        base64.b64encode(hashlib.sha256(page.all(each)[0].text.encode()).digest()).decode()
        for each in ("style", "script")
    )
    policy = metas["Content-Security-Policy"].attributes["content"].split("; ")
    assert policy == [
        "default-src 'none'",
        f"style-src 'sha256-{style}'",
        f"script-src 'sha256-{script}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert metas["referrer"].attributes["content"] == "no-referrer"


def test_hostile_names_come_out_as_text() -> None:
    markup = render_answer(hostile_check(), "html", OPTIONS)
    page = parse(markup)
    assert page.all("title")[0].text == "kpreempt check: failed"
    assert f"shop/{MARKUP}" in section_of(page, "victims").text
    assert "shop/\\u202eevil\\u2066\\x1b[31m\\x00" in section_of(page, "nodes").text
    shown = set(markup) - set(render_answer(whole_check(), "html", OPTIONS))
    assert not shown & {"\u202e", "\u2066", "\x1b", "\x00", "<"}


def test_every_finding_is_there_with_its_place_pods_and_reason() -> None:
    check = whole_check()
    page = page_of(check)
    reported = [
        words_of(card) for name in ("findings", "not-counted") for card in section_of(page, name).all(class_="card")
    ]
    standings = {"FAILS": "fails", "NOT_NEW": "not new", "WAIVED": "waived"}
    ranked = [each for name in standings for each in check.findings if each.status is FindingStatus[name]]
    assert len(reported) == len(ranked) == len(check.findings)
    for each, words in zip(ranked, reported, strict=True):
        assert words.startswith(f"{standings[each.status.name]} {each.rule}{finding_text(each)}")
        assert all(pod in words for pod in each.pods)
        assert each.reason in words
        assert each.detail.removesuffix(".") in words
    assert "charts/api/templates/deployment.yaml (deploy/api.yaml:12)" in reported[0]
    assert "waived by .kpreempt.yaml:7 until 2027-01-01: crunch may wait" in reported[-1]


def test_a_chain_is_described_link_by_link() -> None:
    page = page_of(whole_check())
    cards = [card for name in ("findings", "not-counted") for card in section_of(page, name).all(class_="card")]
    chains = [words_of(card).rpartition("cascade")[2] for card in cards]
    assert chains[0].startswith("shop/api-7c9-2 → shop/web-5d8f-1 (evicted from node-a, priority 100)")
    assert chains[-1].startswith(
        "shop/api-7c9-2 → shop/web-5d8f-1 (evicted from node-a, priority 100; replaced by shop/web-5d8f-new-1)"
        " → batch/crunch-66b-9 (evicted from node-b, priority 0)"
    )


def test_rules_say_whether_they_hold() -> None:
    rules = section_of(page_of(whole_check()), "rules")
    rows = rules.all("tbody")[0].all("tr")
    results = {row.all("th")[0].all("bdi")[0].text: words_of(row.all("td")[0]) for row in rows}
    assert results == {
        "max-pdb-violations": "✗ 1 finding",
        "max-victims": "✗ 1 finding",
        "max-cascade-depth": "✓ passes, 1 waived",
        "max-pending": "✓ passes, 1 not new",
        "require-schedulable": "✓ passes",
    }
    assert "off: max-snapshot-age" in rules.text


@pytest.mark.parametrize("rule", RuleId)
def test_every_rule_has_a_title(rule: RuleId) -> None:
    assert rule.row.promise


def test_every_victim_is_there_at_its_depth_and_with_what_comes_of_it() -> None:
    items = section_of(page_of(whole_check()), "victims").all("li")
    assert [(item.attributes["class"], words_of(item)) for item in items] == [
        ("d1", "shop/web-5d8f-1 (priority 100, Deployment shop/web) is evicted from node-a for shop/api-7c9-2,"
               " violating budget shop/web; shop/web-5d8f-new-1 lands on node-b"),
        ("d2", "batch/crunch-66b-9 (priority 0, Deployment batch/crunch) is evicted from node-b for"
               " shop/web-5d8f-new-1;"
               " batch/crunch-66b-new-3 stays pending"),
        ("d1", "shop/web-5d8f-2 (priority 100, Deployment shop/web) is evicted from node-a for shop/api-7c9-2;"
               " shop/web-5d8f-new-2 lands on node-c"),
    ]  # fmt: skip


def test_the_clock_tells_all_steps_those_of_a_kind_together() -> None:
    section = section_of(page_of(whole_check()), "timeline")
    entries = [words_of(each) for each in section.all(class_="clock")[0].all("li")]
    times = [each.all("time")[0].text for each in section.all(class_="clock")[0].all("li")]
    assert [each for each in times if each] == ["0s", "1s", "30s", "31s", "42s", "1m12s", "1m35s"]
    for words in (
        "ReplicaSet api-7c9 creates shop/api-7c9-1, shop/api-7c9-2 and shop/api-7c9-3",
        "shop/web-5d8f-1 and shop/web-5d8f-2 are preempted by shop/api-7c9-2, violating budget shop/web",
        "shop/api-7c9-1 lands on node-c, picked at random from 2",
        "batch/crunch-66b-new-3 stays pending: 0/3 nodes are available: 3 Insufficient cpu.",
        "ReplicaSet api-5f4 deletes shop/api-5f4-1 (old version)",
        "shop/api-5f4-1 has terminated on node-c",
    ):
        assert [entry for entry in entries if words in entry], words
    assert "1 node choice is random" in section.text


def test_each_workload_has_a_lane_with_its_marks_in_words() -> None:
    lanes = section_of(page_of(whole_check()), "timeline").all(class_="lane")
    titles = [[each.text for each in lane.all("title")] for lane in lanes]
    assert [lane.all("bdi")[0].text for lane in lanes] == [
        "Deployment shop/api", "Deployment shop/web", "Deployment batch/crunch",
    ]  # fmt: skip
    assert titles == [
        ["0s: 1 pod lands", "30s: 2 pods land", "42s: 1 pod is deleted"],
        ["31s: 1 pod lands", "1m35s: 1 pod lands", "0s: 2 pods are evicted, 1 violating a budget"],
        ["1s: 1 pod is evicted"],
    ]
    assert "Deployment shop/webready: 2 at the start, 0 at 0s, 2" in lanes[1].text


def test_maps_show_each_node_before_and_after_in_words_not_colour_alone() -> None:
    cards = section_of(page_of(whole_check()), "nodes").all(class_="map")
    reported = [words_of(card) for card in cards]
    assert [card.all("h3")[0].text for card in cards] == ["node-a", "node-b", "node-c"]
    assert "3.5 → 4 of 4 (100%)" in reported[0]
    assert "1 → 5 of 4 (125%) exceeds allocatable" in reported[2]
    rows = {
        row.all("th")[0].text: [words_of(cell) for cell in row.all("td")] for row in cards[1].all("tbody")[0].all("tr")
    }
    assert rows == {
        "Deployment batch/crunch": ["■■■■■■29", "■■■■■■28 (−1)"],  # noqa: RUF001 - a minus
        "Deployment shop/web": ["0", "■1 (+1)"],
        "DaemonSet kube-system/agent": ["■■2", "■■2"],
    }


def test_bars_are_as_long_as_the_share_that_is_taken() -> None:
    rooms = section_of(page_of(whole_check()), "nodes").all(class_="map")[2].all("dd")
    widths = [[(each.attributes["class"], each.attributes["width"]) for each in room.all("rect")] for room in rooms]
    assert widths[0] == [("track", "80%"), ("before", "20%"), ("over", "100%")]
    assert widths[1] == [("track", "100%"), ("before", "12.5%"), ("after", "37.5%")]


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("changes", "charts/api/templates/deployment.yaml (deploy/api.yaml:12)"),
        ("changes", "2 → 4"),
        ("budgets", "shop/web0-10✗ 1"),
        ("workloads", "not completed, 1 evicted, 1 pending, worst at 1s"),
        ("workloads", "node-b 0 → 1"),
        ("waiting", "batch/other-1"),
        (
            "broken-dependencies",
            "shop/cache-0 on node-a no longer runs with the pods that its affinity requires since 0s",
        ),
        ("broken-dependencies", "from 0s until 31s; missing: shop/web-5d8f-1 and shop/web-5d8f-2"),
        ("outcomes", "7 of 20"),
        ("outcomes", "2 outcomes, 1 to 3 evictions; others are"),
        ("assumptions", "devices are not allocated"),
    ],
)
def test_the_other_parts_are_tables_of_what_is_known(section: str, said: str) -> None:
    assert said in words_of(section_of(page_of(whole_check()), section))


def test_a_check_of_which_nothing_comes_says_so_and_leaves_empty_parts_out() -> None:
    page = page_of(quiet_check())
    assert page.all("h1")[0].text == "kpreempt check: passed"
    assert [each.attributes["aria-labelledby"] for each in page.all("section")] == [
        "findings", "rules", "changes", "timeline", "victims",
    ]  # fmt: skip
    assert "none" in section_of(page, "victims").text
    assert "No rule is violated." in page.text


def test_the_banner_counts() -> None:
    banner = page_of(whole_check()).all("header")[0]
    counts = {each.all("dt")[0].text: each.all("dd")[0].text for each in banner.all("div")}
    assert counts == {
        "rules fail": "2", "findings": "2", "known or waived": "2", "pods evicted": "3", "budget violations": "1",
        "cascade depth": "2", "previously running, now pending": "1",
    }  # fmt: skip
    assert "worst of 20 runs, seed 4" in banner.text


def test_the_page_begins_with_one_plain_sentence() -> None:
    assert words_of(page_of(quiet_check()).all(class_="lead")[0]) == (
        "Harmless: nothing changes; no pod is evicted. All rules pass."
    )
    reported = words_of(page_of(hostile_check()).all(class_="lead")[0])
    assert reported.startswith("In the worst of 20 runs, shop/web is down for at least")


@pytest.mark.parametrize(
    ("check", "tone"),
    [
        pytest.param(quiet_check(), "good", id="nothing happens"),
        pytest.param(whole_check(), "bad", id="a rule is broken"),
        pytest.param(replaced(quiet_check(), evictions=Range(min=0, max=10)), "warn", id="many victims"),
        pytest.param(
            replaced(quiet_check(), evictions=Range(min=0, max=2), cluster=ClusterSummary(pods=20)),
            "warn",
            id="a large share of a small cluster",
        ),
        pytest.param(
            replaced(quiet_check(), evictions=Range(min=0, max=1), cluster=ClusterSummary(pods=3)),
            "good",
            id="a single victim",
        ),
        pytest.param(
            replaced(quiet_check(), findings=[finding(RuleId.ROLLOUT_STUCK, status=FindingStatus.WARNS)]),
            "warn",
            id="a warning",
        ),
    ],
)
def test_a_green_page_that_is_to_be_looked_at_is_not_green(check: Check, tone: str) -> None:
    assert page_of(check).all("header")[0].attributes["class"] == f"banner {tone}"


def test_bare_pods_are_one_row_and_one_card() -> None:
    pods = [f"batch/task-{number}" for number in range(30)]
    quiet = quiet_check()
    simulation = msgspec.structs.replace(
        quiet.simulation,
        workloads=[SimulatedWorkload(workload=f"Pod {pod}", ready_before=1, victims=1) for pod in pods],
    )
    lost = [finding(RuleId.LOST_PODS, f"Pod {pod}", amount=1, pods=[pod], fingerprint=pod) for pod in pods]
    page = page_of(replaced(quiet, simulation=simulation, findings=lost, passed=False))
    rows = section_of(page, "workloads").all("tbody")[0].all("tr")
    assert [row.all("th")[0].text for row in rows] == ["30 pods without a controller"]
    (card,) = section_of(page, "findings").all(class_="card")
    assert all(pod in card.text for pod in pods)


def test_what_waives_a_finding_is_there_to_be_copied() -> None:
    page = page_of(whole_check())
    (card, *_) = section_of(page, "findings").all(class_="card")
    assert [each.text for each in card.all("code")][-1] == ("--waive 'max-pdb-violations=PodDisruptionBudget shop/web'")
    (table_,) = (each.text for each in section_of(page, "waivers").all(class_="event"))
    assert tomllib.loads(table_)["check"]["waive"][:1] == [
        {"rule": "max-pdb-violations", "subject": "PodDisruptionBudget shop/web", "reason": "why this is acceptable"}
    ]


def test_a_page_of_thousands_of_pods_stays_small_and_says_what_is_cut() -> None:
    check = big_check()
    markup = render_answer(check, "html", OPTIONS)
    assert len(markup.encode()) < 2_000_000
    page = parse(markup)
    for section in page.all("section"):
        if section.attributes["aria-labelledby"] == "waivers":
            assert "# and 4,950 more findings" in section.text
        elif section.attributes["aria-labelledby"] != "rules":
            assert section.all(class_="note"), section.attributes
    victims = section_of(page, "victims")
    left = 5000 - len(victims.all("li"))
    assert f"{left:,} more victims are" in victims.text


def test_names_of_wide_characters_count_by_their_bytes() -> None:
    check = big_check(pods=600, name_length=250)
    wide = msgspec.json.decode(msgspec.json.encode(check).replace(b"n" * 250, "汉".encode() * 250), type=Check)
    assert len(render_answer(wide, "html", OPTIONS).encode()) < 2_000_000


def test_what_is_long_unfolds_and_is_all_there_on_paper() -> None:
    check = big_check(pods=100, name_length=3)
    folded = section_of(page_of(check), "victims")
    # The content of a closed element would be lost on paper: the rest of the list is next to it.
    assert {len(each.children) for each in folded.all("details")} == {1}
    assert len(folded.all("li")) == 100
    assert folded.all(class_="folded")[0].all("ol")[0].attributes["start"] == "31"
    assert "open" not in folded.all("details")[0].attributes
    assert "open" in section_of(page_of(check, verbose=True), "victims").all("details")[0].attributes


def test_equal_checks_give_equal_pages() -> None:
    assert render_answer(whole_check(), "html", OPTIONS) == render_answer(whole_check(), "html", OPTIONS)


def test_an_outcome_without_runs_is_shown_too() -> None:
    check = msgspec.structs.replace(quiet_check(), runs=0, outcomes=[OutcomeShare(count=0, seed=0, end="Elsewhere")])
    assert "Elsewhere" in words_of(section_of(page_of(check), "outcomes"))


def luminance(color: str) -> float:
    parts = [int(color[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("colours", "workloads"), [(LIGHT, WORKLOADS_LIGHT), (DARK, WORKLOADS_DARK)], ids=["light", "dark"]
)
def test_colours_stand_out_from_their_ground(colours: dict[str, str], workloads: tuple[str, ...]) -> None:
    for ground in ("ground", "panel"):
        for ink in ("ink", "dim", "good", "bad", "warn", "link"):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    for color in workloads:
        assert contrast(color, colours["ground"]) >= 3
    for bar in ("before", "link", "bad"):
        assert contrast(colours[bar], colours["track"]) >= 3, bar


def step(kind: StepKind, at: float, pod: str, node: str = "node-a") -> SimulationStep:
    return SimulationStep(at=at, kind=kind, pod=pod, node=node)


ARRIVES, LANDS, LEAVES = StepKind.CREATED, StepKind.BOUND, StepKind.TERMINATING


@pytest.mark.parametrize(
    ("steps", "figures", "points"),
    [
        pytest.param([], (2, 2, 2), [(0, 2)], id="nothing happens"),
        pytest.param(
            [step(LEAVES, 1, "a"), step(LANDS, 5, "b")], (2, 1, 2), [(0, 2), (1, 1), (5, 2)], id="one goes, one lands"
        ),
        pytest.param(
            [step(ARRIVES, 0, "b", ""), step(LEAVES, 1, "b"), step(LANDS, 2, "c")], (1, 1, 2), [(0, 1), (2, 2)],
            id="a pod that was not bound is not missed",
        ),
        pytest.param(
            [step(LEAVES, 3, "a"), step(LANDS, 3, "b")], (1, 1, 1), [(0, 1), (3, 1)],
            id="a change within a moment does not count where the record does not count it",
        ),
        pytest.param(
            [step(LEAVES, 3, "db-0"), step(LANDS, 4, "db-0"), step(LEAVES, 6, "db-0")], (1, 0, 0),
            [(0, 1), (3, 0), (4, 1), (6, 0)], id="a pod that comes back under its name can go again",
        ),
    ],
)  # fmt: skip
def test_ready_pods_follow_the_steps(
    steps: list[SimulationStep], figures: tuple[int, int, int], points: list[tuple[float, int]]
) -> None:
    before, least, after = figures
    series = ready_series(
        SimulatedWorkload(workload="w", ready_before=before, ready_min=least, ready_after=after), steps
    )
    assert (series.points, series.is_complete) == (points, True)


def test_where_the_steps_do_not_come_to_the_record_only_what_is_known_is_drawn() -> None:
    workload = SimulatedWorkload(workload="w", ready_before=3, ready_min=1, ready_min_at=20.0, ready_after=2)
    series = ready_series(workload, [step(LANDS, 5, "b")])
    assert (series.points, series.is_complete) == ([(0.0, 3), (20.0, 1)], False)
    assert ready_path(series, Scale(100.0), 2, 3) == "M0 0H200V2H1000V1H1000"


def test_the_line_falls_to_the_worst_of_what_is_drawn_at_one_place() -> None:
    workload = SimulatedWorkload(workload="w", ready_before=2, ready_min=0, ready_after=2)
    steps = [step(LEAVES, 50, "a"), step(LEAVES, 50, "b"), step(LANDS, 50.01, "c"), step(LANDS, 50.02, "d")]
    path = ready_path(ready_series(workload, steps), Scale(100.0), 2, 2)
    assert path == "M0 0H500V2V0H1000"


@pytest.mark.parametrize(
    ("moments", "uneven"),
    [([10, 20, 30, 40], False), ([1, 2, 3, 4000], True), ([], False), ([0.5, 86400], False)],
    ids=["even", "most at the start", "nothing", "too few to tell"],
)
def test_the_beginning_gets_more_room_where_most_happens_in_it(moments: list[float], uneven: bool) -> None:
    end = max(moments, default=0.0)
    steps = [step(LANDS, at, "a") for at in moments]
    simulation = Simulation(
        end=SimulationEnd.SETTLED, seconds=end, depth=0, starts_at={}, displaced=[], pending=[], budgets=[], steps=steps
    )
    scale = scale_of(simulation)
    assert (scale.unit > 0) is uneven
    places = [scale.x(at) for at in [0.0, *moments]]
    assert places == sorted(places)
    assert places[0] == 0
    assert places[-1] == (WIDTH if moments else 0)
    ticks = [scale.x(tick) for tick in scale.ticks()]
    assert all(after - before >= 100 for before, after in itertools.pairwise(ticks))


@pytest.mark.parametrize(
    ("pod", "owner", "expected"),
    [
        ("shop/api-7c9-1", "ReplicaSet api-7c9", "Deployment shop/api"),
        ("shop/old-1", "ReplicaSet old-rs", "Deployment shop/named-otherwise"),
        ("shop/db-0", "StatefulSet db", "StatefulSet shop/db"),
        ("lab/api-7c9-1", "ReplicaSet api-7c9", "ReplicaSet lab/api-7c9"),
        ("shop/one", "", "Pod shop/one"),
    ],
    ids=["by its hash", "as a victim says", "itself", "of another namespace", "alone"],
)
def test_a_step_belongs_to_the_workload_of_its_pod(pod: str, owner: str, expected: str) -> None:
    victim = Displaced(
        pod="shop/old-0",
        priority=0,
        node="n",
        cause="c",
        owner="ReplicaSet old-rs",
        workload="Deployment shop/named-otherwise",
    )
    workloads = [SimulatedWorkload(workload="Deployment shop/api"), SimulatedWorkload(workload="StatefulSet shop/db")]
    simulation = Simulation(
        end=SimulationEnd.SETTLED, seconds=0, depth=1, starts_at={}, displaced=[victim], pending=[], budgets=[],
        workloads=workloads, steps=[],
    )  # fmt: skip
    assert workload_of(SimulationStep(at=0, kind=LANDS, pod=pod, owner=owner), workload_names(simulation)) == expected


def test_text_is_escaped_once_and_markup_stays() -> None:
    assert join(["<", tag("b", "&", title='"'), Html("<i>")]) == '&lt;<b title="&quot;">&amp;</b><i>'
    assert Html("<b>") + "<" == "<b>&lt;"


def test_very_long_text_is_cut_and_says_so() -> None:
    assert text("x" * 700) == "x" * 600 + "… (100 more characters)"


def test_items_are_taken_until_the_limit_and_no_further() -> None:
    shown: list[str] = []

    def show(item: str) -> Html:
        shown.append(item)
        return Html(item)

    assert within(show, ["aaaa", "bbb", "cc", "d"], 5) == (["aaaa"], 3)
    assert shown == ["aaaa", "bbb"]
    assert within(show, ["ää"], 1) == (["ää"], 0)


def test_a_table_unfolds_its_later_rows_and_counts_those_that_are_cut() -> None:
    rows = [f"row-{number:02}" for number in range(40)]
    long = parse(table("All", ["Name"], lambda row: [row], rows, limit=10_000, noun="rows"))
    assert [len(each.all("tr")) for each in long.all("tbody")] == [12, 28]
    assert [each.text for each in long.all("summary")] == ["28 more rows"]
    short = parse(table("All", ["Name"], lambda row: [row], rows, limit=100, noun="rows"))
    kept = len(short.all("tbody")[0].all("tr"))
    assert f"{40 - kept} more rows are" in short.text
