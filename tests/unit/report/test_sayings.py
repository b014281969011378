"""The report on a pod that fits on no node, on one that has a node, and without pending pods."""

from __future__ import annotations

import re

import pytest

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.explain.pods import explain_pods
from kpreempt.analysis.pending.pods import explain_pending
from kpreempt.analysis.pod_inputs import input_in_cluster, pod_in_cluster
from kpreempt.analysis.pod_selection import PodSelection, parse_selector
from kpreempt.analysis.what_if import Overrides
from kpreempt.library.draws import DRAWS
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.extra_fields import NO_EXTRAS
from kpreempt.model.meta import ObjectMeta
from kpreempt.model.pod import PersistentVolumeClaimVolume, Pod, Volume
from kpreempt.model.taints import Taint
from kpreempt.model.workloads import Namespace
from kpreempt.report import RenderOptions, render
from kpreempt.report.answers import render_answer
from kpreempt.snapshot.decode import object_decoder
from kpreempt.verdict import Outcome
from tests.factories import NOW, decide, make_node, make_pod

WIDE = RenderOptions(width=1000)
FULL = RenderOptions(width=1000, verbose=True)
ELSEWHERE = "1 pod is pending in another namespace: ml (1)."
TAINT = Taint("dedicated", "gpu", "NoSchedule")


def headline(cluster: ClusterSnapshot, pod: Pod) -> str:
    return render([decide(cluster, pod)], "text", options=WIDE).splitlines()[0]


def pending(cluster: ClusterSnapshot, namespace: str = "", selector: str = "") -> str:
    selection = PodSelection(namespace, parse_selector(selector))
    answer = explain_pending(
        AnalysisContext(cluster, scheduler_for(), NOW, at=NOW),
        is_selected=selection.has,
        namespace=selection.namespace,
        draws=DRAWS,
    )
    return render_answer(answer, "text", FULL)


@pytest.mark.parametrize(
    ("cluster", "pod", "is_permanent"),
    [
        pytest.param(ClusterSnapshot(nodes=[make_node("a")]), make_pod("new", cpu="9"), True, id="all are too small"),
        pytest.param(
            ClusterSnapshot(nodes=[make_node("a"), make_node("b", taints=[TAINT])]),
            make_pod("new", cpu="9"),
            True,
            id="one that is too small has a taint, too",
        ),
        pytest.param(
            ClusterSnapshot(nodes=[make_node("a")]),
            make_pod("new", node_selector={"disk": "ssd"}),
            True,
            id="no node has the label that it selects",
        ),
        pytest.param(
            ClusterSnapshot(
                nodes=[make_node("a"), make_node("b")], pods=[make_pod("x", node="b", cpu="3", priority=9)]
            ),
            make_pod("new", cpu="2", node_selector={"kubernetes.io/hostname": "b"}),
            False,
            id="the node that it selects is full",
        ),
        pytest.param(
            ClusterSnapshot(nodes=[make_node("a", taints=[TAINT])]),
            make_pod("new"),
            False,
            id="a taint may go",
        ),
        pytest.param(
            ClusterSnapshot(nodes=[make_node("a", unschedulable=True)]), make_pod("new"), False, id="a cordon ends"
        ),
        pytest.param(
            ClusterSnapshot(nodes=[make_node("a", pods="1")], pods=[make_pod("x", node="a")]),
            make_pod("new"),
            False,
            id="a slot may become free",
        ),
    ],
)
def test_never_is_said_only_where_no_state_of_the_nodes_helps(
    cluster: ClusterSnapshot, pod: Pod, is_permanent: bool
) -> None:
    verdict = decide(cluster, pod)
    assert (verdict.outcome, verdict.permanently_unschedulable) == (Outcome.UNSCHEDULABLE, is_permanent)
    said = headline(cluster, pod)
    assert ("these nodes reject the pod even when empty" in said) == is_permanent
    assert "is unschedulable now" in said
    waiting = ClusterSnapshot(nodes=cluster.nodes, pods=[*cluster.pods, pod])
    assert re.search(r"unschedulable now \(.*\); preemption doesn't help", pending(waiting))
    assert ("no node fits, even empty" in pending(waiting)) == is_permanent


def test_a_claim_that_is_missing_is_named_as_the_scheduler_names_it() -> None:
    missing = Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolume(claim_name="nope"))
    pod = make_pod("new", volumes=[missing])
    cluster = ClusterSnapshot(nodes=[make_node("a")])
    said = 'persistentvolumeclaim "nope" not found'
    assert headline(cluster, pod) == f"shop/new is unschedulable now: {said}; preemption doesn't help."
    verdict = decide(cluster, pod)
    assert verdict.message == f"0/1 nodes are available: {said}. not found"
    assert verdict.reason == ""
    reported = pending(ClusterSnapshot(nodes=cluster.nodes, pods=[pod]))
    assert f"1 pod unschedulable now ({said}); preemption doesn't help\n" in reported
    assert f"1 stays pending ({said})." in reported
    assert "claims: PersistentVolumeClaim shop/nope\n" in reported


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        pytest.param("Running", "shop/x runs on b. If it were recreated: shop/x lands on", id="runs"),
        pytest.param("Pending", "shop/x is on b. If it were recreated: shop/x lands on", id="starts"),
        pytest.param("Succeeded", "shop/x has finished on b. If it were recreated: shop/x lands on", id="has finished"),
    ],
)
def test_where_a_pod_is_comes_before_where_it_would_land(phase: str, words: str) -> None:
    cluster = ClusterSnapshot(nodes=[make_node("a"), make_node("b")], pods=[make_pod("x", node="b", phase=phase)])
    requested = input_in_cluster(pod_in_cluster(cluster, "x", "shop"), Overrides(), object_decoder(NO_EXTRAS))
    [verdict] = explain_pods(AnalysisContext(requested.cluster, scheduler_for(), NOW), requested.inputs)
    assert render([verdict], "text", options=WIDE).startswith(words)
    assert verdict.pod.current_node == "b"


@pytest.mark.parametrize(
    ("namespace", "selector", "words"),
    [
        pytest.param("shop", "", f"No pod is pending in namespace shop. {ELSEWHERE}", id="one"),
        pytest.param("no", "", f'Namespace "no" does not exist. {ELSEWHERE}', id="none"),
        pytest.param("", "app=x", "No pending pod matches the selector; 1 other pod is pending.", id="a selector"),
        pytest.param(
            "ml",
            "app=x",
            "No pending pod in namespace ml matches the selector; 1 other pod is pending.",
            id="a selector in a namespace",
        ),
    ],
)
def test_where_nothing_is_pending_it_says_what_else_is(namespace: str, selector: str, words: str) -> None:
    known = [Namespace(metadata=ObjectMeta(name=name)) for name in ("shop", "ml")]
    cluster = ClusterSnapshot(nodes=[make_node("a")], pods=[make_pod("x", namespace="ml")], namespaces=known)
    assert pending(cluster, namespace, selector).strip() == words


def test_a_namespace_is_not_denied_where_none_was_read() -> None:
    cluster = ClusterSnapshot(nodes=[make_node("a")])
    assert "in this namespace, which may not exist" in pending(cluster, "shop")
    assert pending(cluster).strip() == "No pod is pending."
