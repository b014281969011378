"""Nodes that refuse a pod are counted by the kind of their refusal, and none of them as ``other``."""

from __future__ import annotations

import re

import msgspec
import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.report import RenderOptions, render
from kpreempt.report.explain.headline import answer
from kpreempt.report.options import Extent
from kpreempt.report.quoting import plain
from kpreempt.verdict import Code, Status, Verdict
from kpreempt.verdict.details import InsufficientResources, Shortfall, UntoleratedTaint
from kpreempt.verdict.node_report import NodeHealth, NodeState
from tests.factories import decide, make_node, make_pod

PLUGINS = (
    "TaintToleration",
    "NodeUnschedulable",
    "NodeAffinity",
    "NodePorts",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeName",
    "NodeDeclaredFeatures",
)


def rejected_by(*numbers: int) -> Verdict:
    """The given number of nodes, rejected by each of the plugins in order."""
    verdict = decide(ClusterSnapshot(nodes=[make_node("a", cpu="1")]), make_pod("api", cpu="2"))
    statuses = {
        f"{plugin.lower()}-{number}": Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [f"reason of {plugin}"], plugin)
        for plugin, many in zip(PLUGINS, numbers, strict=False)
        for number in range(many)
    }
    return msgspec.structs.replace(verdict, filter=statuses, dry_run={})


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        pytest.param((1,), "the only node has an untolerated taint", id="one node"),
        pytest.param((3,), "all 3 nodes have an untolerated taint", id="one kind"),
        pytest.param((1, 2), "of 3 nodes, 2 are cordoned and 1 has an untolerated taint", id="the most frequent first"),
        pytest.param(
            (9, 8, 7, 6, 5, 4),
            "of 39 nodes, 9 have an untolerated taint, 8 are cordoned, 7 do not match the pod's node affinity, 6"
            " have the host"
            " port in use, 5 have no volume for the pod's claims and 4 are in the wrong zone for the pod's volumes",
            id="six kinds are all named",
        ),
        pytest.param(
            (10, 9, 8, 7, 6, 5, 4, 3, 2, 1),
            "4 violate a topology spread constraint, 3 violate a pod affinity rule and 3 more reject it",
            id="of ten kinds the rarest are counted",
        ),
        pytest.param(
            (9, 8, 7, 6, 5, 4, 3, 2, 1),
            "2 violate a pod affinity rule and 1 more rejects it",
            id="one node more",
        ),
    ],
)
def test_the_sentence_names_the_kinds(numbers: tuple[int, ...], words: str) -> None:
    assert words in plain(answer(rejected_by(*numbers)))


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("kinds", [1, 3, 6, 10])
def test_on_a_screen_the_sentence_is_whole_and_counts_every_node(kinds: int, width: int) -> None:
    verdict = rejected_by(*range(20, 20 - kinds, -1))
    text = render([verdict], "text", options=RenderOptions(width=width, extent=Extent.SCREEN))
    sentence = " ".join(text.partition("\n\n")[0].split())
    assert sentence.endswith("preemption doesn't help, because these nodes reject the pod even when empty.")
    assert "other" not in sentence
    reported = [int(word) for word in sentence.replace("all ", "").split() if word.isdecimal()]
    assert sum(reported) in (len(verdict.filter), 2 * len(verdict.filter))
    assert len(text.splitlines()) <= 22


TAINTS = [("node.kubernetes.io/disk-pressure", ""), ("dedicated", "gpu"), ("karpenter.sh/disrupted", ""), ("x", "y")]


@pytest.mark.parametrize("words", ["node(s) had untolerated taint(s)", "node(s) had untolerated taint {%s: %s}"])
def test_each_node_is_listed_with_its_taint_in_every_version(words: str) -> None:
    statuses = {
        f"n{number}": Status(
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            [words % taint if "%" in words else words],
            "TaintToleration",
            UntoleratedTaint(*taint, "NoSchedule"),
        )
        for number, taint in enumerate(TAINTS)
    }
    verdict = msgspec.structs.replace(rejected_by(), filter=statuses)
    lines = render([verdict], "text", options=RenderOptions(extent=Extent.SCREEN)).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("REJECTED"))
    assert lines[start].split(maxsplit=1)[1] == "4  node(s) had untolerated taint(s)"
    assert [line.strip() for line in lines[start + 1 : start + 5]] == [
        f"n{number}: {key}{f'={value}' if value else ''}:NoSchedule" for number, (key, value) in enumerate(TAINTS)
    ]


FULL = Status(
    Code.UNSCHEDULABLE, ["Insufficient cpu"], "NodeResourcesFit", InsufficientResources([Shortfall("cpu", 2, 3, 4)])
)
OTHER = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ["node(s) didn't satisfy plugin(s) [NodeAffinity]"])
UNSAID = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


@pytest.mark.parametrize(
    ("statuses", "words"),
    [
        pytest.param({"a": OTHER, "b": OTHER, "c": FULL}, "c (node affinity), which is too full", id="since 1.32"),
        pytest.param(
            {"a": UNSAID, "b": UNSAID, "c": FULL},
            "c (node affinity), which is too full",
            id="before 1.32",
        ),
        pytest.param(
            {"a": OTHER, "b": FULL, "c": FULL}, "b or c (node affinity), which are too full", id="one of several nodes"
        ),
    ],
)
def test_a_pod_that_selects_few_nodes_can_only_run_there(statuses: dict[str, Status], words: str) -> None:
    verdict = msgspec.structs.replace(rejected_by(), filter=statuses, restricted_by=["NodeAffinity"])
    assert f"unschedulable now: it can only run on {words}; preemption" in plain(answer(verdict))


def with_gpus(allocatable: int) -> Status:
    shortfall = Shortfall("nvidia.com/gpu", 4, 0, allocatable, exceeds_node=True)
    return Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        ["Insufficient nvidia.com/gpu"],
        "NodeResourcesFit",
        InsufficientResources([shortfall]),
    )


@pytest.mark.parametrize(
    ("gpus", "words"),
    [
        pytest.param((0, 0), "neither node offers nvidia.com/gpu", id="no devices"),
        pytest.param((0, 0, 2), "of 3 nodes, 2 offer no nvidia.com/gpu and 1 is too small", id="too few on one node"),
    ],
)
def test_a_node_without_devices_is_not_called_small(gpus: tuple[int, ...], words: str) -> None:
    statuses = {f"n{number}": with_gpus(allocatable) for number, allocatable in enumerate(gpus)}
    assert words in plain(answer(msgspec.structs.replace(rejected_by(), filter=statuses)))


def test_what_is_wrong_with_a_node_comes_before_what_it_lacks() -> None:
    verdict = msgspec.structs.replace(rejected_by(), filter={"a": FULL, "b": FULL, "c": FULL})
    unhealthy = [NodeHealth(node="a", states=[NodeState.NOT_READY]), NodeHealth(node="b", states=[NodeState.NOT_READY])]
    cluster = msgspec.structs.replace(verdict.cluster, unhealthy=unhealthy)
    words = plain(answer(msgspec.structs.replace(verdict, cluster=cluster)))
    assert "of 3 nodes, 2 are not ready and are too full and 1 is too full" in words


def test_reasons_that_are_left_out_of_a_screen_are_counted() -> None:
    text = render([rejected_by(*range(10, 0, -1))], "text", options=RenderOptions(extent=Extent.SCREEN, height=16))
    shown = text.count("  reason of ")
    counted = re.search(r"… and (\d+) more reasons \(-v\)", text)
    assert 0 < shown < 10
    assert counted is not None
    assert shown + int(counted[1]) == 10
