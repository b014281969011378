"""What is cached from one cluster to the next: what saves work, what is distinguished, and that it stays small."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod, Toleration, TopologySpreadConstraint, Volume
from kpreempt.model.storage import PersistentVolumeClaim
from kpreempt.schedulers.kube.framework.decision_cache import MAX_OUTDATED, MIN_KEYS, DecisionCache, equivalence_key
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.plugins.node_resources_fit import NodeResourcesFit
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from tests.factories import NOW, make_node, make_pod

NODES = [make_node(f"n{index}") for index in range(4)]
POD = make_pod("asked", cpu="100m", labels={"app": "web"})


class Looks:
    """A scheduler on a series of clusters, and the nodes for which NodeResourcesFit is called."""

    def __init__(self) -> None:
        self._kube = KubeScheduler()
        self.prepared: Any = None

    @property
    def memory(self) -> DecisionCache:
        """What is remembered by now."""
        memory = self.prepared.frameworks["default-scheduler"].memory
        assert isinstance(memory, DecisionCache)
        return memory

    def at(self, cluster: ClusterSnapshot, pod: Pod) -> list[str]:
        """Decide, and give the nodes that were looked at."""
        fit, requested = NodeResourcesFit.filter, list[str]()

        def noted(plugin: NodeResourcesFit, state: Any, pod: Pod, node_info: NodeInfo) -> Any:
            requested.append(node_info.name)
            return fit(plugin, state, pod, node_info)

        self.prepared = self._kube.prepare(cluster, now=NOW, before=self.prepared)
        everywhere = patch.object(NodeResourcesFit, "suspects", lambda _plugin, _state, _pod, nodes: nodes)
        with everywhere, patch.object(NodeResourcesFit, "filter", noted):
            self._kube.decide(self.prepared, pod)
        return requested


@pytest.fixture
def looks() -> Iterator[Looks]:
    """A series of decisions on the same nodes, of which the last few are remembered."""
    looks = Looks()
    cluster = ClusterSnapshot(nodes=NODES)
    for _ in range(3):
        looks.at(cluster, POD)
    yield looks


def cluster_with(*pods: Pod, **parts: Any) -> ClusterSnapshot:
    return ClusterSnapshot(nodes=NODES, pods=list(pods), **parts)


def test_only_a_node_with_other_pods_is_looked_at_again(looks: Looks) -> None:
    running = make_pod("running", node="n1", cpu="1")
    assert looks.at(cluster_with(), POD) == []
    assert looks.at(cluster_with(running), POD) == ["n1"]
    assert looks.at(cluster_with(running), POD) == []
    assert looks.at(cluster_with(), POD) == ["n1"]


def test_an_equal_pod_of_another_name_is_recognised(looks: Looks) -> None:
    assert looks.at(cluster_with(), make_pod("another", cpu="100m", labels={"app": "web"})) == []


def test_a_budget_that_changes_is_no_reason_to_look_again(looks: Looks) -> None:
    assert looks.at(cluster_with(pod_disruption_budgets=[]), POD) == []


def test_all_nodes_are_looked_at_where_anything_but_pods_and_budgets_changed(looks: Looks) -> None:
    changed = cluster_with(persistent_volume_claims=[PersistentVolumeClaim()])
    assert looks.at(changed, POD) == ["n0", "n1", "n2", "n3"]


def test_all_nodes_are_looked_at_by_another_scheduler(looks: Looks) -> None:
    other = Looks()
    other.prepared = looks.prepared
    assert other.at(cluster_with(), POD) == ["n0", "n1", "n2", "n3"]


def test_all_nodes_are_looked_at_where_nodes_changed(looks: Looks) -> None:
    assert looks.at(ClusterSnapshot(nodes=list(NODES)), POD) == ["n0", "n1", "n2", "n3"]


@pytest.mark.parametrize(
    ("pod", "is_alike"),
    [
        pytest.param(make_pod("b", cpu="100m", labels={"app": "web"}), True, id="another name and uid"),
        pytest.param(make_pod("asked", cpu="100m", labels={"app": "web"}, nominated="n0"), True, id="another status"),
        pytest.param(make_pod("asked", cpu="100m"), False, id="other labels"),
        pytest.param(
            make_pod("asked", cpu="100m", labels={"app": "web"}, namespace="x"), False, id="another namespace"
        ),
        pytest.param(make_pod("asked", cpu="200m", labels={"app": "web"}), False, id="other requests"),
        pytest.param(make_pod("asked", cpu="0.1", labels={"app": "web"}), False, id="requests in other words"),
        pytest.param(
            make_pod("asked", cpu="100m", labels={"app": "web"}, tolerations=[Toleration(operator="Exists")]),
            False,
            id="other tolerations",
        ),
    ],
)
def test_which_pods_are_alike(pod: Pod, is_alike: bool) -> None:
    assert (equivalence_key(pod) == equivalence_key(POD)) is is_alike


def test_pods_with_claims_that_are_named_after_them_are_not_alike() -> None:
    volume = msgspec.convert({"name": "data", "ephemeral": {}}, Volume)
    one, other = (make_pod(name, volumes=[volume]) for name in ("one", "other"))
    assert equivalence_key(one) != equivalence_key(other)


def test_only_the_likenesses_that_came_last_are_remembered() -> None:
    memory = DecisionCache()
    pods = [make_pod("pod", cpu=str(cpu)) for cpu in range(1, MIN_KEYS + 2)]
    for pod in [*pods, *pods[1:]]:
        memory.of(pod)
    assert memory.of(pods[-1]) is not None
    # It was not there any more, and is only noted.
    assert memory.of(pods[0]) is None


def test_nodes_of_clusters_before_are_forgotten(looks: Looks) -> None:
    constraint = TopologySpreadConstraint(
        max_skew=1, topology_key="kubernetes.io/hostname", when_unsatisfiable="DoNotSchedule"
    )
    requested, most = make_pod("asked", topology_spread_constraints=[constraint]), 0
    for index in range(3 * MAX_OUTDATED):
        looks.at(cluster_with(make_pod(f"running-{index}", node="n1")), requested)
        findings = looks.memory.of(requested)
        if index:
            assert findings is not None
            most = max(most, len(findings.on("spread filter")))
    assert len(NODES) < most <= len(NODES) + MAX_OUTDATED + 1
