"""What every filter says of one node."""

from __future__ import annotations

import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import PersistentVolumeClaimVolume, Pod, Volume
from kpreempt.model.taints import Taint
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import NodeEvaluation
from tests.factories import NOW, make_node, make_pod

TAINT = Taint("dedicated", "gpu", "NoSchedule")


def evaluate(cluster: ClusterSnapshot, pod: Pod, node: str = "a") -> NodeEvaluation:
    scheduler = KubeScheduler()
    return scheduler.describe_node(scheduler.prepare(cluster, now=NOW), pod, node)


def refusing(evaluation: NodeEvaluation, *, without_lower: bool = False) -> list[str]:
    statuses = evaluation.without_lower if without_lower else evaluation.filters
    return [status.plugin for status in statuses if not status.is_success]


def test_every_filter_is_evaluated_where_the_scheduler_stops_at_the_first() -> None:
    cluster = ClusterSnapshot(nodes=[make_node("a", cpu="1", taints=[TAINT])])
    pod = make_pod("new", cpu="2", node_selector={"disk": "ssd"})
    assert refusing(evaluate(cluster, pod)) == ["TaintToleration", "NodeAffinity", "NodeResourcesFit"]


def test_filters_that_have_nothing_to_do_for_the_pod_are_left_out() -> None:
    plugins = [status.plugin for status in evaluate(ClusterSnapshot(nodes=[make_node("a")]), make_pod("new")).filters]
    assert "NodeResourcesFit" in plugins
    assert "NodePorts" not in plugins


def test_the_filters_are_evaluated_again_without_the_pods_of_lower_priority() -> None:
    cluster = ClusterSnapshot(
        nodes=[make_node("a", taints=[TAINT])],
        pods=[
            make_pod("low", node="a", cpu="3", priority=1),
            make_pod("equal", node="a", cpu="1", priority=5),
            make_pod("elsewhere", node="b", cpu="1", priority=1),
        ],
    )
    evaluation = evaluate(cluster, make_pod("new", cpu="2", priority=5))
    assert evaluation.lower_priority_pods == ["shop/low"]
    assert refusing(evaluation) == ["TaintToleration", "NodeResourcesFit"]
    assert refusing(evaluation, without_lower=True) == ["TaintToleration"]


def test_without_lower_priority_pods_there_is_nothing_to_evaluate_again() -> None:
    cluster = ClusterSnapshot(nodes=[make_node("a")], pods=[make_pod("equal", node="a", cpu="3")])
    evaluation = evaluate(cluster, make_pod("new", cpu="2"))
    assert (evaluation.lower_priority_pods, evaluation.without_lower) == ([], [])


@pytest.mark.parametrize(
    ("priority", "nominated", "refused"),
    [
        pytest.param(5, ["shop/first"], ["NodeResourcesFit"], id="of a higher priority, its room is kept"),
        pytest.param(10, ["shop/first"], ["NodeResourcesFit"], id="of the same priority, too"),
        pytest.param(11, [], [], id="of a lower priority, it does not count"),
    ],
)
def test_a_pod_that_is_nominated_to_the_node(priority: int, nominated: list[str], refused: list[str]) -> None:
    cluster = ClusterSnapshot(nodes=[make_node("a")], pods=[make_pod("first", cpu="3", priority=10, nominated="a")])
    evaluation = evaluate(cluster, make_pod("new", cpu="2", priority=priority))
    assert (evaluation.nominated_pods, refusing(evaluation)) == (nominated, refused)


def test_a_pod_that_is_refused_before_any_node_has_no_filters_to_evaluate() -> None:
    volume = Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolume("missing"))
    evaluation = evaluate(ClusterSnapshot(nodes=[make_node("a")]), make_pod("new", volumes=[volume]))
    assert evaluation.pre_filter is not None
    assert evaluation.pre_filter.message == 'persistentvolumeclaim "missing" not found'
    assert evaluation.filters == []


def test_nothing_is_said_of_a_pod_that_another_scheduler_handles() -> None:
    cluster = ClusterSnapshot(nodes=[make_node("a")])
    assert evaluate(cluster, make_pod("new", scheduler_name="other")) == NodeEvaluation()
