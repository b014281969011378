"""Answers as pages: what is on them, what is not, and that nothing of the input becomes markup."""

from __future__ import annotations

import itertools
import re
from datetime import timedelta

import msgspec
import pytest

from kpreempt.errors import UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.report import RenderOptions, render
from kpreempt.report.answers import render_answer
from kpreempt.verdict import Alternatives, Assumption, AssumptionKind, Outcome, PossibleOutcome, Verdict
from kpreempt.verdict.compare import ComparedPod, Comparison
from kpreempt.verdict.node_report import NodeUse, Occupancy
from kpreempt.verdict.pending import PendingGroup, PendingPod, PendingPods
from kpreempt.verdict.plugins import SchedulerPlugins
from kpreempt.verdict.served import InTurn, TurnOutcome
from kpreempt.verdict.unread import LIST
from kpreempt.verdict.waiting import PendingState
from kpreempt.verdict.who_evicted import EvictionsOfPod, PodLocation, PodPhase
from kpreempt.verdict.workload import BudgetViolations, Pending, Replica, ReplicaScope, ReplicasOnNode, Totals, Workload
from tests.answer_pages import answers, page_of, spoilt
from tests.checks import MARKUP
from tests.factories import NOW, decide, make_budget, make_node, make_pod
from tests.html_pages import Element, parse

NAMES = list(answers())
KINDS = ["chosen-by-priority-sum", "aftermath", "many-verdicts", "pending", "compare", "who-evicted"]
STARTED = NOW - timedelta(days=12)


def words_of(element: Element) -> str:
    return " ".join(element.text.split())


def section_of(page: Element, name: str) -> Element:
    return next(each for each in page.all("section") if each.attributes["aria-labelledby"] == name)


def sections_of(page: Element) -> list[str]:
    return [each.attributes["aria-labelledby"] for each in page.all("section")]


def rows_of(table: Element) -> list[list[str]]:
    """The cells of a table's rows, as they read."""
    return [[words_of(cell) for cell in row.children] for row in table.all("tbody")[0].all("tr")]


@pytest.mark.parametrize("name", NAMES)
def test_every_page_closes_and_leads_where_its_links_say(name: str) -> None:
    page = parse(page_of(answers()[name]))
    identifiers = [each.attributes["id"] for each in page.all() if "id" in each.attributes]
    assert len(identifiers) == len(set(identifiers))
    assert {each.attributes["href"].removeprefix("#") for each in page.all("a")} <= set(identifiers)
    assert set(sections_of(page)) <= set(identifiers)
    assert len(page.all("main")) == len(page.all("header")) == len(page.all("footer")) == 1
    assert page.all("html")[0].attributes["lang"] == "en"


@pytest.mark.parametrize("name", NAMES)
def test_headings_come_in_order_and_tables_say_what_they_are(name: str) -> None:
    page = parse(page_of(answers()[name]))
    levels = [int(each.name[1]) for each in page.all() if re.fullmatch(r"h[1-6]", each.name)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all(each.all("caption")[0].text for each in page.all("table"))
    assert {each.attributes.get("scope") for each in page.all("th")} <= {"col", "row"}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_fetched_run_or_styled_from_elsewhere(name: str) -> None:
    page = parse(page_of(answers()[name]))
    assert {each.name for each in page.all()}.isdisjoint({"script", "img", "link", "iframe", "object", "form", "base"})
    for each in page.all():
        assert not {name for name in each.attributes if name in ("src", "style", "srcset") or name.startswith("on")}
        assert each.attributes.get("href", "#").startswith("#")
    policies = [each for each in page.all("meta") if "http-equiv" in each.attributes]
    assert policies[0].attributes["content"].startswith("default-src 'none'; style-src 'sha256-")


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_come_out_as_text(name: str) -> None:
    page = parse(page_of(spoilt(answers()[name])))
    assert {each.name for each in page.all()}.isdisjoint({"script", "img"})
    assert len(page.all("head")[0].all("title")) == len(page.all("style")) == 1
    assert MARKUP in page.all("main")[0].text
    assert len(page.all()) >= len(parse(page_of(answers()[name])).all("section"))


def test_names_that_turn_what_is_read_are_written_as_what_they_are() -> None:
    name = "shop/\u202eevil\u2066\x1b[31m\x00"
    pending = PendingPods(
        groups=[PendingGroup("", Outcome.LANDS, None, [name])],
        items=[PendingPod(pod=name, state=PendingState.FITS_NOW, outcome=Outcome.LANDS, nodes=[name])],
    )
    markup = page_of(pending)
    assert "shop/\\u202eevil\\u2066\\x1b[31m\\x00" in markup
    assert not {"\u202e", "\u2066", "\x1b", "\x00"} & set(markup)


@pytest.mark.parametrize("name", KINDS)
def test_equal_answers_give_equal_pages_and_verbose_ones_are_unfolded(name: str) -> None:
    answer = answers()[name]
    assert page_of(answer) == page_of(answer)
    folds = parse(page_of(answer, verbose=True)).all("details")
    assert all("open" in each.attributes for each in folds)


def preempting() -> Verdict:
    cluster = ClusterSnapshot(
        nodes=[make_node("node-a", cpu="2"), make_node("node-b", cpu="2"), make_node("tiny", cpu="1")],
        pods=[
            make_pod("web-1", node="node-a", cpu="1", priority=10, started=STARTED, labels={"app": "web"}),
            make_pod("job-1", node="node-b", cpu="1500m", priority=20, started=STARTED),
            make_pod("job-2", node="node-b", cpu="500m", priority=5, started=STARTED),
        ],
        pod_disruption_budgets=[make_budget("web", {"app": "web"}, 0)],
    )
    return decide(cluster, make_pod("api", cpu="1500m", priority=1000))


def test_the_sentence_comes_first_then_victims_with_their_budgets() -> None:
    page = parse(page_of(preempting()))
    assert words_of(page.all("h1")[0]) == "shop/api preempts 1 pod"
    assert "shop/api preempts 1 pod on node-b and lands there" in words_of(page.all(class_="lead")[0])
    assert sections_of(page) == [
        *("victims", "event", "then", "writes"),
        *("nodes", "filter", "eligible", "dry-run", "choice"),
    ]
    assert rows_of(section_of(page, "victims").all("table")[0]) == [["shop/job-1", "20", "-", "12d"]]


def test_overdrawn_budgets_are_marked_in_words() -> None:
    verdict = answers()["budgets-violated"]
    cells = [row[-1] for row in rows_of(section_of(parse(page_of(verdict)), "victims").all("table")[0])]
    assert any("(0→-1) VIOLATED" in cell for cell in cells)


def test_the_choice_has_a_row_for_each_candidate_and_a_column_for_each_rule() -> None:
    table = section_of(parse(page_of(preempting())), "choice").all("table")[0]
    heads = [words_of(each) for each in table.all("thead")[0].all("th")]
    assert heads == ["Candidate", "1.", "Result"]
    assert rows_of(table) == [["node-b", "0", "nominated"], ["node-a", "✗ 1", "eliminated by rule 1"]]


def test_the_dry_run_tells_each_reprieve_in_its_order() -> None:
    cards = section_of(parse(page_of(preempting())), "dry-run").all(class_="card")
    assert [words_of(card.all("h3")[0]) for card in cards] == ["node-b", "node-a"]
    assert words_of(cards[0]).startswith("node-bnominated: 1 victim (shop/job-1), no budget violated")
    assert rows_of(cards[0].all("table")[0]) == [
        ["shop/job-1", "20", "12d", "evicted: needs 1 more cpu"],
        ["shop/job-2", "5", "12d", "reprieved"],
    ]
    assert rows_of(cards[1].all("table")[0]) == [
        ["shop/web-1", "10", "12d", "evicted: needs 500m more cpu; violates budget web"]
    ]


def test_refusals_are_grouped_by_whether_preemption_may_help() -> None:
    section = section_of(parse(page_of(preempting())), "filter")
    assert [words_of(each) for each in section.all("p")[1:]] == [
        "2 nodes where preemption could help:",
        "1 node where it doesn't help:",
    ]
    assert words_of(section.all("ul")[1].all("li")[0]).startswith("1 Insufficient cpu NodeResourcesFit")


def occupied() -> Occupancy:
    full = NodeUse({"cpu": 2000, "pods": 110}, {"cpu": 2000, "pods": 2}, ["shop/other"])
    half = NodeUse({"cpu": 2000, "pods": 110}, {"cpu": 1000, "pods": 1})
    requests = {"shop/job-1": {"cpu": 1500, "pods": 1}, "shop/web-1": {"cpu": 1000, "pods": 1}}
    return Occupancy({"node-a": half, "node-b": full, "tiny": NodeUse({"cpu": 1000, "pods": 110}, {})}, requests)


def map_of(verdict: Verdict, occupancy: Occupancy | None) -> list[Element]:
    page = parse(render([verdict], "html", options=RenderOptions(occupancy=occupancy)))
    return section_of(page, "nodes").all(class_="map") if "nodes" in sections_of(page) else []


def test_the_map_has_what_is_there_requested_and_freed_in_words_too() -> None:
    cards = map_of(preempting(), occupied())
    assert [words_of(card.all("h3")[0]) for card in cards] == [
        "node-b nominated", "node-a candidate", "tiny is too small",
    ]  # fmt: skip
    assert "2 of 2 requested, 1.5 freed, the pod requests 1.5" in words_of(cards[0])
    assert "2 of 110 running, 1 evicted, 1 added" in words_of(cards[0])
    assert "victims: shop/job-1" in words_of(cards[0])
    assert "nominated here: shop/other" in words_of(cards[0])
    assert "the pod requests 1.5, 500m over capacity" in words_of(cards[2])


def test_the_bars_of_the_map_are_as_long_as_the_amounts() -> None:
    rooms = [card.all("dd")[0] for card in map_of(preempting(), occupied())]
    bars = [
        [(bar.attributes["class"], bar.attributes["x"], bar.attributes["width"]) for bar in room.all("rect")]
        for room in rooms
    ]
    assert bars[0] == [
        ("track", "0%", "100%"),
        ("before", "0%", "25%"),
        ("freed", "25%", "75%"),
        ("after", "25%", "75%"),
    ]
    assert bars[2] == [("track", "0%", "66.7%"), ("after", "0%", "66.7%"), ("over", "66.7%", "33.3%")]


def test_without_knowing_how_full_nodes_are_none_is_drawn() -> None:
    assert map_of(preempting(), None) == []


def test_the_event_is_there_to_the_letter() -> None:
    message = f"0/5 nodes are available: {'x' * 900}  two spaces."
    verdict = msgspec.structs.replace(preempting(), message=message)
    assert section_of(parse(page_of(verdict)), "event").all(class_="event")[0].text == message


def test_what_would_help_comes_first_for_a_pod_that_lands_nowhere() -> None:
    page = parse(page_of(answers()["never-lands"]))
    assert sections_of(page)[:2] == ["fix", "event"]
    assert section_of(page, "fix").all("li")


def test_an_aftermath_has_its_timeline() -> None:
    page = parse(page_of(answers()["aftermath"]))
    assert {"timeline", "displaced", "budgets", "workloads"} <= set(sections_of(page))
    assert section_of(page, "timeline").all(class_="lane")


def test_equal_pods_leave_outcomes_open() -> None:
    cluster = ClusterSnapshot(
        nodes=[make_node("node-a", cpu="2")],
        pods=[make_pod(name, node="node-a", cpu="1", priority=10, started=STARTED) for name in ("a", "b")],
    )
    page = parse(page_of(decide(cluster, make_pod("api", cpu="1", priority=1000))))
    assert "1 of 2: shop/a or shop/b" in words_of(section_of(page, "tied-pods"))
    assert "most likely" in words_of(section_of(page, "victims"))


def counts_of(page: Element) -> dict[str, str]:
    return {
        words_of(each.all("dt")[0]): words_of(each.all("dd")[0]) for each in page.all(class_="counts")[0].all("div")
    }


def test_the_banner_counts_what_is_sure() -> None:
    page = parse(page_of(preempting()))
    assert counts_of(page) == {"of 3 nodes fit": "0", "candidates": "2", "evicted": "1", "violate budgets": "0"}


def test_budgets_that_were_not_looked_at_are_not_counted_as_kept() -> None:
    unread = Assumption("PodDisruptionBudget", LIST, "could not be read", AssumptionKind.UNREADABLE)
    for verdict in (
        msgspec.structs.replace(preempting(), assumptions=[unread]),
        msgspec.structs.replace(preempting(), algorithm="kube-1.8"),
    ):
        page = parse(page_of(verdict))
        assert "violate budgets" not in counts_of(page)
        assert "no budget violated" not in words_of(section_of(page, "dry-run"))


def test_where_the_order_decides_numbers_are_likely_and_no_more() -> None:
    cluster = ClusterSnapshot(
        nodes=[make_node("node-a", cpu="3")],
        pods=[
            make_pod(name, node="node-a", cpu=cpu, priority=10, started=STARTED, labels={"app": name})
            for name, cpu in (("small", "1"), ("large", "2"))
        ],
        pod_disruption_budgets=[make_budget("large", {"app": "large"}, 1)],
    )
    verdict = decide(cluster, make_pod("api", cpu="1", priority=1000))
    inexact = msgspec.structs.replace(
        verdict, alternatives=Alternatives([PossibleOutcome("node-a", ["shop/small"])], exact=False)
    )
    counts = counts_of(parse(page_of(inexact)))
    assert counts["evicted, most likely"] == "1"
    assert "violate budgets, at worst" in counts
    uncertain = counts_of(parse(page_of(msgspec.structs.replace(verdict, outcome=Outcome.UNCERTAIN))))
    assert "evicted" not in uncertain


def test_several_pods_have_a_table_and_a_story_each() -> None:
    page = parse(render([preempting(), decide(ClusterSnapshot(), make_pod("lost"))], "html"))
    table = section_of(page, "pods").all("table")[0]
    assert [row[0] for row in rows_of(table)] == ["shop/api", "shop/lost"]
    assert [each.attributes["href"] for each in table.all("a")] == ["#pod-1", "#pod-2"]
    assert {"pod-1-victims", "pod-2-filter"} <= set(sections_of(page))


def test_no_pod_at_all_is_a_page_too() -> None:
    assert "0 pods" in parse(render([], "html")).all("h1")[0].text


def big_verdict(nodes: int) -> Verdict:
    cluster = ClusterSnapshot(
        nodes=[make_node(f"node-{number:05}-{'n' * 200}", cpu="4") for number in range(nodes)],
        pods=[
            make_pod(
                f"pod-{number:05}-{copy}",
                node=f"node-{number:05}-{'n' * 200}",
                cpu="2",
                priority=number % 7,
                started=STARTED,
            )
            for number in range(nodes)
            for copy in range(2)
        ],
    )
    return decide(cluster, make_pod("api", cpu="3", priority=1000))


def test_a_page_of_thousands_of_nodes_stays_small_and_says_what_is_cut() -> None:
    markup = page_of(big_verdict(2000))
    assert len(markup.encode()) < 2_000_000
    page = parse(markup)
    for section in ("nodes", "choice", "dry-run"):
        assert section_of(page, section).all(class_="note"), section


def test_stories_of_many_pods_stay_small_together() -> None:
    verdict = big_verdict(300)
    markup = render([verdict] * 60, "html")
    assert len(markup.encode()) < 2_000_000
    assert "more pods are omitted" in markup


def pending_pod(number: int, **fields: object) -> PendingPod:
    pod = PendingPod(
        pod=f"shop/wait-{number:05}-{'w' * 200}",
        position=number + 1,
        state=PendingState.WAITS_FOR_CHANGE,
        outcome=Outcome.UNSCHEDULABLE,
        cause="Insufficient cpu",
        message="0/1 nodes are available: 1 Insufficient cpu.",
        in_turn=InTurn(outcome=TurnOutcome.LEFT_PENDING),
    )
    return msgspec.structs.replace(pod, **fields)


def all_pending(items: list[PendingPod]) -> PendingPods:
    group = PendingGroup("Insufficient cpu", Outcome.UNSCHEDULABLE, None, [item.pod for item in items])
    return PendingPods(at=NOW, in_queue=len(items), groups=[group], items=items)


def test_pending_begins_with_the_summary_and_tells_pods_by_outcome() -> None:
    page = parse(page_of(answers()["pending"]))
    assert words_of(page.all(class_="lead")[0]).startswith(
        "9 pods pending: served in queue order, 2 get scheduled by preempting 4 pods "
    )
    headings = [words_of(each) for each in page.all("h2")]
    assert headings == [
        "More nodes",
        *("Preempts", "Waits", "Unschedulable", "Lands", "Gated", "Other scheduler"),
        *("Assumptions", "Notes"),
    ]
    cards = page.all(class_="card")
    assert [words_of(card.all("h3")[0]) for card in cards][:2] == ["shop/api-1", "shop/checkout-1"]
    assert words_of(cards[0].all("p")[0]) == '#1 to 2, priority 1,000 "high" and 1 more of ReplicaSet api'
    assert all(card.all("details") and card.all(class_="rows") for card in cards)
    assert "batch/encode-1 terminating for 90s, 30s past its grace period; finalizer" in words_of(cards[1])


def test_a_summary_is_whole_on_a_page() -> None:
    cause = "a cause of many words " * 20
    items = [pending_pod(0, cause=cause)]
    assert cause.strip() in words_of(parse(page_of(all_pending(items))).all(class_="lead")[0])


def test_pods_of_one_owner_share_a_row_with_all_their_names() -> None:
    items = [pending_pod(number, owner="ReplicaSet api", pod=f"shop/api-{number}") for number in range(45)]
    page = parse(page_of(all_pending(items)))
    cards = page.all(class_="card")
    assert [words_of(card.all("p")[0]).partition(",")[0] for card in cards] == ["#1 to 45"]
    assert "shop/api-39 and 5 more" in words_of(cards[0].all(class_="rows")[0])


def test_thousands_of_pending_pods_make_a_small_page() -> None:
    markup = page_of(all_pending([pending_pod(number) for number in range(5000)]))
    assert len(markup.encode()) < 2_000_000
    assert "more pod kinds are omitted" in markup


def test_no_pending_pod_is_said_so() -> None:
    page = parse(page_of(PendingPods(namespace="shop", has_namespace=True)))
    assert "No pod is pending in namespace shop." in words_of(page.all(class_="lead")[0])


def test_a_comparison_says_what_differs() -> None:
    comparison = answers()["compare"]
    assert isinstance(comparison, Comparison)
    page = parse(page_of(comparison))
    rows = rows_of(section_of(page, "decisions").all("table")[0])
    assert [row[0] for row in rows] == comparison.algorithms
    assert [row[1].startswith("preempts 2 pods on") for row in rows] == [True] * len(comparison.algorithms)
    differences = [section_of(page, f"difference-{number}") for number in range(1, len(comparison.algorithms))]
    reported = [words_of(each) for each in differences]
    assert [algorithm in words for algorithm, words in zip(comparison.algorithms[1:], reported, strict=True)] == [
        True
    ] * 3
    many = msgspec.structs.replace(comparison, items=[*comparison.items, *comparison.items])
    table = section_of(parse(page_of(many)), "pods").all("table")[0]
    heads = [words_of(each) for each in table.all("th") if each.attributes["scope"] == "col"]
    assert heads == ["Pod", *comparison.algorithms, "Differ at"]
    assert "=" not in rows_of(table)[0]


def test_what_could_not_be_decided_is_not_agreed_upon() -> None:
    failed = Comparison(
        algorithms=["kube-1.8", "kube-1.36"], items=[ComparedPod(pod="shop/api", error="no such class")]
    )
    page = parse(page_of(failed))
    assert words_of(page.all("h1")[0]) == "kpreempt compare: some undecided"
    assert page.all("header")[0].attributes["class"] == "banner warn"
    assert rows_of(section_of(page, "failed").all("table")[0]) == [["shop/api", "no such class"]]


def test_a_pod_that_is_gone_is_not_called_well() -> None:
    gone = EvictionsOfPod(victim=PodLocation(pod="shop/web-1", phase=PodPhase.NOT_FOUND))
    assert parse(page_of(gone)).all("header")[0].attributes["class"] == "banner warn"
    running = msgspec.structs.replace(gone, victim=PodLocation(pod="shop/web-1", phase=PodPhase.RUNNING, node="n1"))
    assert parse(page_of(running)).all("header")[0].attributes["class"] == "banner good"


def test_who_preempted_says_who_when_and_why() -> None:
    page = parse(page_of(answers()["who-evicted"]))
    assert words_of(page.all("h1")[0]) == "batch/encode-2 was evicted"
    terms = {words_of(term): words_of(what) for term, what in zip(page.all("dt"), page.all("dd"), strict=True)}
    assert terms["by"].startswith("shop/checkout-1 (still pending, nominated to node-b")
    assert "Preempted by pod " in words_of(section_of(page, "eviction-1"))
    assert terms["before"].startswith("confirmed by kube-1.36 with the snapshot of 2026-11-21T03:09:00Z")
    assert words_of(page.all("h2")[0]) == "Eviction at 2026-11-21T03:10:30Z"


def test_answers_without_a_page_say_which_formats_there_are() -> None:
    with pytest.raises(UsageError, match="unknown output format 'html'"):
        render_answer(SchedulerPlugins(algorithm="kube-1.36", profiles=[]), "html", RenderOptions())


def of_workload() -> Verdict:
    """Three replicas: one lands, one preempts violating a budget, one stays pending."""
    replicas = [
        Replica(pod="shop/api-1", outcome=Outcome.LANDS, node="node-a", ties=["node-a", "node-b"]),
        Replica(
            pod="shop/api-2",
            outcome=Outcome.PREEMPTS_VIOLATING_BUDGETS,
            node="node-b",
            victims=["shop/web-1", MARKUP],
            violating=["shop/web-1"],
        ),
        Replica(pod="shop/api-3", outcome=Outcome.UNSCHEDULABLE, message="0/3 nodes are available."),
    ]
    workload = Workload(
        workload="Deployment shop/api",
        scope=ReplicaScope.NEW,
        replicas=3,
        totals=Totals(lands=1, preempts=1, evictions=2, violations=1, pending=1),
        nodes=[ReplicasOnNode(node="node-b", replicas=1, evictions=2)],
        budgets=[BudgetViolations(budget="shop/web", allowed=0, violations=1)],
        pending=[Pending(replicas=1, message="0/3 nodes are available.")],
        items=replicas,
    )
    return msgspec.structs.replace(preempting(), workload=workload)


def test_a_workload_has_its_replicas_before_the_first_pod() -> None:
    page = parse(page_of(of_workload()))
    shown = sections_of(page)
    assert shown[:4] == ["replicas", "one-by-one", "first-pod", "victims"]
    assert {"victims", "choice"} <= set(shown)
    tables = {each: rows_of(section_of(page, each).all("table")[0]) for each in shown[:2]}
    assert [row[:3] for row in tables["one-by-one"]] == [
        ["shop/api-1", "lands", "node-a or node-b"],
        ["shop/api-2", "preempts", "node-b"],
        ["shop/api-3", "unschedulable", "-"],
    ]
    assert tables["replicas"] == [["node-b", "1", "2"]]
    assert "1 pending: 0/3 nodes are available." in words_of(section_of(page, "replicas"))
    assert tables["one-by-one"][1][3] == f"shop/web-1 (violates a budget), {MARKUP}"
    assert "1 eviction violates budget shop/web (allows 0)." in words_of(page.all(class_="lead")[0])


def test_of_victims_of_a_workload_no_budget_is_cleared_where_none_could_be_read() -> None:
    unread = Assumption("PodDisruptionBudget", LIST, "could not be read", AssumptionKind.UNREADABLE)
    page = parse(page_of(msgspec.structs.replace(of_workload(), assumptions=[unread])))
    assert "violate" not in words_of(section_of(page, "one-by-one")).replace("(violates a budget)", "")
    assert "budgets were not read" in words_of(section_of(page, "victims"))


def test_workloads_on_one_page_have_anchors_of_their_own() -> None:
    page = parse(render([of_workload(), of_workload()], "html", options=RenderOptions()))
    shown = sections_of(page)
    assert len(set(shown)) == len(shown)
    assert {"pod-1-replicas", "pod-2-replicas", "pod-1-victims"} <= set(shown)
