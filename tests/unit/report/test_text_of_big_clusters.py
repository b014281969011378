"""A report on a big cluster says as much of each refusal as one on a small cluster."""

from __future__ import annotations

from unittest.mock import patch

from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.model.affinity import Affinity, PodAffinityTerm, PodAntiAffinity
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod, TopologySpreadConstraint
from kpreempt.report import RenderOptions, render
from kpreempt.schedulers.kube import scheduler
from tests.factories import NOW, make_node, make_pod

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
BATCH = LabelSelector(match_labels={"app": "batch"})


def away_from(selector: LabelSelector, key: str) -> Affinity:
    return Affinity(pod_anti_affinity=PodAntiAffinity(required=[PodAffinityTerm(key, selector)]))


def both_texts(cluster: ClusterSnapshot, pod: Pod) -> tuple[str, str]:
    """The text without columns over the pods, and with them."""
    texts = []
    for least in (10**9, 0):
        with patch.object(scheduler, "MIN_PODS_OF_TABLE", least):
            [verdict] = explain_pods(
                AnalysisContext(cluster, scheduler_for(), NOW),
                [ExplainInput(pod=pod)],
                proposes=True,
                records_steps=False,
            )
        texts.append(render([verdict], "text", options=RenderOptions(width=120)))
    return texts[0], texts[1]


def test_what_still_refuses_the_pod_without_its_victims_is_reported_in_full() -> None:
    nodes = [make_node(name, cpu="2", labels={ZONE: zone}) for name, zone in zip("abcdef", "xxyyzz", strict=True)]
    low = [make_pod(f"low-{node.name}", node=node.name, cpu="2") for node in nodes]
    other = [
        make_pod("batch", node="a", priority=9, labels={"app": "batch"}),
        make_pod("shy", node="c", priority=9, affinity=away_from(LabelSelector(match_labels={"app": "web"}), HOSTNAME)),
        make_pod("big", node="d", cpu="1500m", priority=9),
        make_pod("web", node="e", priority=9, labels={"app": "web"}),
        make_pod("web-2", node="e", priority=9, labels={"app": "web"}),
    ]
    spread = TopologySpreadConstraint(
        max_skew=1, topology_key=HOSTNAME, label_selector=LabelSelector(match_labels={"app": "web"})
    )
    pod = make_pod(
        "new",
        cpu="1",
        priority=5,
        labels={"app": "web"},
        affinity=away_from(BATCH, ZONE),
        topology_spread_constraints=[spread],
    )
    plain, with_columns = both_texts(ClusterSnapshot(nodes=nodes, pods=[*low, *other]), pod)
    assert with_columns == plain
    reported = " ".join(plain.split())
    assert "the pod's anti-affinity (app=batch) conflicts with shop/batch on a in" in reported
    assert "anti-affinity of shop/shy on c (app=web) conflicts with the pod" in reported
    assert "kubernetes.io/hostname=e would have 3 pods and" in reported
    assert "cpu: requests 1, 500m free of 2" in reported
