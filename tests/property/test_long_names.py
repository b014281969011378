"""Rejected nodes with names of any length on a screen: every taint is visible, with a node that is recognizable."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.taints import Taint
from kpreempt.report import RenderOptions, render
from kpreempt.report.blocks import Column, Listing, Report, Section, Table, name
from kpreempt.report.options import Extent
from kpreempt.report.terminal import render_text
from tests.factories import NOW, make_node, make_pod

LINES = 22
MIDDLES = ["a7x", "b7x", "a8x", "b8y", "c9z"]

# Names of real nodes end, begin or differ in the middle in the same way.
parts = st.text("abz-.019", max_size=110)
bases = st.tuples(parts, parts).map(lambda ends: (f"n{ends[0]}", f"{ends[1]}n"))
effects = st.sampled_from(["NoSchedule", "NoExecute"])
values = st.text("abc", max_size=25)


def screen(nodes: list[str], taints: list[Taint], width: int, version: str) -> list[str]:
    cluster = ClusterSnapshot(
        nodes=[make_node(node, cpu="4", taints=[taint]) for node, taint in zip(nodes, taints, strict=True)],
        pods=[],
    )
    context = AnalysisContext(cluster, scheduler_for(version), NOW)
    verdicts = explain_pods(context, [ExplainInput(pod=make_pod("new", cpu="1"))], proposes=True, records_steps=False)
    options = RenderOptions(width=width, extent=Extent.SCREEN)
    return render(verdicts, "text", options=options).splitlines()


def matching(shortened: str, nodes: list[str]) -> list[str]:
    pattern = ".+".join(map(re.escape, shortened.split("…")))
    return [node for node in nodes if re.fullmatch(pattern, node)]


@settings(max_examples=60, deadline=None)
@given(
    ends=bases,
    keys=st.lists(st.text("kxyz", min_size=1, max_size=12), min_size=2, max_size=5, unique=True),
    value=values,
    effect=effects,
    width=st.sampled_from([80, 120]),
    version=st.sampled_from(["kube-1.33", "kube-1.36"]),
)
def test_every_taint_is_visible_with_one_of_its_nodes(
    ends: tuple[str, str], keys: list[str], value: str, effect: str, width: int, version: str
) -> None:
    nodes = [middle.join(ends) for middle in MIDDLES[: len(keys)]]
    taints = [Taint(key=f"{key}.example.com/{key}", value=value, effect=effect) for key in keys]
    lines = screen(nodes, taints, width, version)
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).partition("REJECTED")[2].split())
    texts = [f"{each.key}{f'={value}' if value else ''}:{effect}" for each in taints]
    rows = re.findall(r"(\S+): (\S+\.example\.com/\S+)(?= )", text)[: len(nodes)]
    assert [matching(node, nodes) for node, _ in rows] == [[node] for node in nodes]
    # A taint that is wider than the page is shortened, too.
    assert [matching(taint, texts) for _, taint in rows] == [[taint] for taint in texts]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("length", [10, 44, 63, 253])
@settings(max_examples=20, deadline=None)
@given(at=st.integers(0, 250))
def test_a_shortened_name_is_like_no_other_on_the_page(width: int, length: int, at: int) -> None:
    at = min(at, length - 2)
    nodes = ["n" * at + middle + "n" * (length - at - 2) for middle in ("aa", "ab", "ba")]
    rows = [[name(node), "x" * 30] for node in nodes]
    listing = Listing([[str(number), (name(node), ": ", "y" * 30)] for number, node in enumerate(nodes)], parts="node")
    sections = [
        Section("TABLE", blocks=[Table([Column("NODE"), Column("WHY")], rows, is_dense=True)], priority=3),
        Section("LIST", blocks=[listing], priority=2),
        Section("WORDS", blocks=[Listing([[f"on {node}"] for node in nodes])], priority=1),
    ]
    shown = render_text(Report(lead="", sections=sections), RenderOptions(width=width, height=40, extent=Extent.SCREEN))
    words = [word.rstrip(":") for word in shown.split() if "…" in word or word.rstrip(":") in nodes]
    assert len(words) == 3 * len(nodes)
    for word in words:
        assert len(matching(word, nodes)) == 1 or word in nodes


@settings(max_examples=60, deadline=None)
@given(
    middles=st.lists(st.text("ab…漢", max_size=30), min_size=2, max_size=4, unique=True),
    around=st.text("n漢…", min_size=1, max_size=40),
    width=st.integers(1, 30),
)
@example(middles=["a", "b"], around="nnn", width=1)
@example(middles=["漢a", "漢b"], around="漢漢漢", width=7)
def test_words_are_shortened_to_any_width(middles: list[str], around: str, width: int) -> None:
    words = [f"{around}{middle}{around}" for middle in middles]
    report = Report(lead="", sections=[Section("", blocks=[Listing([[word] for word in words])], priority=1)])
    shown = render_text(report, RenderOptions(width=width, height=40, extent=Extent.SCREEN))
    assert all(cell_len(line.strip()) <= max(width, 2) for line in shown.splitlines())
