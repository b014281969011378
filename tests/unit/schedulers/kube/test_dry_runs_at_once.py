"""Pods whose dry runs are made of all nodes at once where the cluster is big, and what comes of them there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest

from kpreempt.model.affinity import Affinity, PodAffinity, PodAffinityTerm
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube import scheduler
from kpreempt.schedulers.kube.preemption.evaluator import Evaluator
from kpreempt.schedulers.kube.preemption.importance import BudgetIndex
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import Verdict
from tests.factories import NOW, decide, make_node, make_pod
from tests.volume_factories import make_claim, make_class, make_volume, uses

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
DB = LabelSelector(match_labels={"app": "db"})


def near(*keys: str) -> Affinity:
    """Next to a database in the same domain of each key."""
    return Affinity(pod_affinity=PodAffinity(required=[PodAffinityTerm(key, DB) for key in keys]))


def cluster(*pods: Pod, **others: Any) -> ClusterSnapshot:
    """Three nodes in two zones, full of pods of low priority."""
    nodes = [make_node(name, labels={ZONE: zone}) for name, zone in (("a", "z0"), ("b", "z0"), ("c", "z1"))]
    fillers = [make_pod(f"filler-{node.metadata.name}", node=node.metadata.name, cpu="4") for node in nodes]
    return ClusterSnapshot(nodes=nodes, pods=[*fillers, *pods], **others)


def candidates(verdict: Verdict) -> dict[str, Sequence[str]]:
    return {each.node: each.victims for each in verdict.candidates}


def decide_at_once(snapshot: ClusterSnapshot, pod: Pod) -> Verdict:
    """The verdict, for which no node is tried on its own. It comes to the same as dry runs one by one."""
    kube = KubeScheduler()
    alone = AssertionError("a node was tried on its own")
    with patch.object(scheduler, "MIN_PODS_OF_TABLE", 0), patch.object(Evaluator, "_dry_run", side_effect=alone):
        verdict = kube.decide(kube.prepare(snapshot, now=NOW), pod, records_steps=False)
    plain = decide(snapshot, pod)
    assert (verdict.dry_run, candidates(verdict)) == (plain.dry_run, candidates(plain))
    return verdict


def database(node: str, *, priority: int, name: str = "db") -> Pod:
    return make_pod(f"{name}-{node}", node=node, priority=priority, labels={"app": "db"})


@pytest.mark.parametrize(
    ("pods", "keys", "expected"),
    [
        pytest.param([database("b", priority=1000)], [ZONE], {"a", "b"}, id="one that stays in the zone"),
        pytest.param([database("b", priority=0)], [ZONE], {"a"}, id="one that would go from its own node"),
        pytest.param([database("b", priority=0)], [ZONE, ZONE], {"a"}, id="the same term twice"),
        pytest.param([database("a", priority=1000)], [HOSTNAME, ZONE], {"a"}, id="two terms"),
        pytest.param(
            [database("a", priority=0), database("a", priority=0, name="other"), database("c", priority=1000)],
            [ZONE],
            {"b", "c"},
            id="two that would go",
        ),
        pytest.param([], [ZONE], set(), id="none anywhere"),
        pytest.param([database("b", priority=1000)], ["rack"], set(), id="a key that no node has"),
    ],
)
def test_a_pod_that_wants_others_next_to_it_is_tried_everywhere_at_once(
    pods: Sequence[Pod], keys: Sequence[str], expected: set[str]
) -> None:
    pod = make_pod("api", cpu="3", priority=100, affinity=near(*keys))
    assert set(candidates(decide_at_once(cluster(*pods), pod))) == expected


@pytest.mark.parametrize("is_there", [True, False], ids=["other the last of its kind, which would go", "alone"])
def test_the_first_pod_of_its_kind_is_tried_everywhere_at_once(is_there: bool) -> None:
    pods = [database("c", priority=0)] if is_there else []
    pod = make_pod("api", cpu="3", priority=100, labels={"app": "db"}, affinity=near(ZONE))
    assert set(candidates(decide_at_once(cluster(*pods), pod))) == ({"c"} if is_there else {"a", "b", "c"})


def test_a_pod_whose_claim_is_yet_to_be_bound_is_tried_everywhere_at_once() -> None:
    storage = {
        "storage_classes": [make_class()],
        "persistent_volume_claims": [make_claim("data")],
        "persistent_volumes": [make_volume("disk", zone="z1")],
    }
    pod = make_pod("api", cpu="3", priority=100, volumes=uses("data"))
    assert set(candidates(decide_at_once(cluster(**storage), pod))) == {"c"}


def test_budgets_are_checked_only_for_pods_of_nodes_on_which_evictions_help() -> None:
    keepers = [make_pod(f"keeper-{node}", node=node, cpu="2", priority=1000) for node in "bc"]
    snapshot = ClusterSnapshot(
        nodes=[make_node(name) for name in "abc"],
        pods=[*(make_pod(f"filler-{node}", node=node, cpu="2", labels={"on": node}) for node in "abc"), *keepers],
    )
    requested: set[str] = set()

    def noted(budgets: BudgetIndex, pod: Pod) -> Sequence[int]:
        requested.add(pod.metadata.name)
        return positions_of(budgets, pod)

    positions_of = BudgetIndex.positions_of
    with patch.object(BudgetIndex, "positions_of", noted):
        verdict = decide_at_once(snapshot, make_pod("api", cpu="3", priority=100))
    assert (candidates(verdict), requested) == ({"a": ["shop/filler-a"]}, {"filler-a"})
