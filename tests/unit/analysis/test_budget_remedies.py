# ruff: noqa: E501 - tables read better in rows
"""The remedies of findings about PodDisruptionBudgets: the best first, and that each keeps its promise."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import ObjectMeta, OwnerReference, replace_in
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PriorityClass
from kpreempt.model.workloads import Deployment, ReplicaSet, StatefulSet, WorkloadSpec
from kpreempt.report.budgets.text import finding_text, fix_in_words
from kpreempt.report.remedies import commands
from kpreempt.verdict.budgets import BudgetAudit, Finding, FindingId
from tests.budget_remedies import Scenario, all_remedies, broken_promises
from tests.factories import NOW, make_node, make_pod
from tests.unit.analysis.test_budget_audit import WEB, autoscaler, budget, deployment, pods

EACH = "set maxUnavailable: 1 instead of minAvailable"
MANAGED = "through {}: its operator may revert other changes"
POSTGRES = OwnerReference("Cluster", "pg", "uid-pg", "postgresql.cnpg.io/v1", controller=True)
FIELDS = {
    Node: "nodes",
    Pod: "pods",
    PodDisruptionBudget: "pod_disruption_budgets",
    Deployment: "deployments",
    ReplicaSet: "replica_sets",
    StatefulSet: "stateful_sets",
    PriorityClass: "priority_classes",
}


def scenario(*parts: Any, documents: Sequence[dict[str, Any]] = ()) -> Scenario:
    """A cluster of these objects, on one node unless they include nodes."""
    flat = [each for part in parts for each in (part if isinstance(part, list | tuple) else [part])]
    found: dict[str, list[Any]] = {}
    for each in flat:
        found.setdefault(FIELDS[type(each)], []).append(each)
    found.setdefault("nodes", [make_node("node-a", cpu="4")])
    return Scenario(ClusterSnapshot(**found), list(documents))


def kept(given: Scenario) -> BudgetAudit:
    """The audit, whose remedies all keep their promises."""
    audit = given.audit()
    for finding, remedy in all_remedies(audit):
        assert [*broken_promises(given, audit, finding, remedy)] == []
    return audit


def finding_of(audit: BudgetAudit, kind: FindingId, subject: str = "") -> Finding:
    return next(each for each in audit.findings if each.id is kind and each.subject.endswith(subject))


def owned_by(record: Any, owner: OwnerReference) -> Any:
    return replace_in(record, "metadata", owner_references=[owner])


def web(replicas: int, **how: Any) -> list[Any]:
    return [*deployment("web", replicas), *pods("ReplicaSet web-1", replicas, **how)]


def stateful(name: str, replicas: int) -> list[Any]:
    labels = {"app": name}
    meta = ObjectMeta(name=name, namespace="shop", uid=f"uid-{name}")
    spec = WorkloadSpec(LabelSelector(match_labels=labels), replicas)
    return [StatefulSet(meta, spec), *pods(f"StatefulSet {name}", replicas, labels=labels)]


def postgres(role: str) -> list[Any]:
    """The only instance of a role in an operator's database, and the PDB on it."""
    labels = {"cnpg.io/cluster": "pg", "cnpg.io/instanceRole": role}
    return [owned_by(each, POSTGRES) for each in pods("", 1, labels=labels)]


PRIMARY = {"cnpg.io/cluster": "pg", "cnpg.io/instanceRole": "primary"}


@pytest.mark.parametrize(
    ("given", "kind", "fix"),
    [
        pytest.param(scenario(web(3), budget(min_available=3)), FindingId.NEVER_ALLOWS, f"{EACH}, or scale Deployment shop/web to 4 replicas", id="all replicas have to stay"),
        pytest.param(scenario(web(1), budget(min_available=1)), FindingId.NEVER_ALLOWS, f"scale Deployment shop/web to 2 replicas, or {EACH} (its only pod can then be evicted)", id="a singleton (gate-32)"),
        pytest.param(scenario(stateful("web", 1), budget(min_available=1)), FindingId.NEVER_ALLOWS, f"scale StatefulSet shop/web to 2 replicas, or {EACH} (its only pod can then be evicted)", id="a stateful singleton (gate-35)"),
        pytest.param(scenario(web(1, cpu="3"), budget(min_available=1)), FindingId.NEVER_ALLOWS, f"{EACH} (its only pod can then be evicted)", id="a second replica would be pending"),
        pytest.param(scenario(web(1), budget(min_available=1), documents=[autoscaler(1)]), FindingId.NEVER_ALLOWS, f"set minReplicas: 2 in HorizontalPodAutoscaler shop/web, or {EACH} (its only pod can then be evicted)", id="an autoscaler sets the replicas"),
        pytest.param(scenario(web(1), budget(min_available=1), documents=[autoscaler(1, maximum=1)]), FindingId.NEVER_ALLOWS, f"{EACH} (its only pod can then be evicted)", id="an autoscaler does not allow a second replica"),
        pytest.param(scenario(web(2, ready=1), budget(max_unavailable=0)), FindingId.NEVER_ALLOWS, "set maxUnavailable: 1", id="one is not ready, too"),
        pytest.param(scenario(postgres("primary"), budget(labels=PRIMARY, min_available=1)), FindingId.NEVER_ALLOWS, f"set minAvailable: 0 ({MANAGED.format('Cluster shop/pg')}; its only pod can then be evicted)", id="an operator's pods (gate-18)"),
        pytest.param(scenario(web(2), owned_by(budget(min_available=2), POSTGRES)), FindingId.NEVER_ALLOWS, f"{EACH} ({MANAGED.format('Cluster shop/pg')}), or scale Deployment shop/web to 3 replicas", id="an operator's PDB"),
        pytest.param(scenario(web(2, ready=0), budget(max_unavailable=1)), FindingId.ALLOWS_NONE_NOW, "repair pods web-1-0, web-1-1, or set unhealthyPodEvictionPolicy: AlwaysAllow (a drain can then evict the pods that are not ready, no others)", id="all pods crash (gate-07, mailer)"),
        pytest.param(scenario(web(2, ready=1), budget(max_unavailable=1)), FindingId.ALLOWS_NONE_NOW, "repair pod web-1-1", id="one crashes, and can be evicted (gate-07, orders)"),
        pytest.param(scenario(*deployment("web", 3), pods("ReplicaSet web-1", 2), budget(max_unavailable=1)), FindingId.ALLOWS_NONE_NOW, "", id="a pod is missing, not broken (gate-15)"),
        pytest.param(scenario(web(3), budget(min_available=1), documents=[autoscaler(1)]), FindingId.ALLOWS_NONE_AT_HPA_MINIMUM, "set minReplicas: 2 in HorizontalPodAutoscaler shop/web", id="maxUnavailable would allow less (gate-16)"),
        pytest.param(scenario(web(4), budget(min_available=2), documents=[autoscaler(2)]), FindingId.ALLOWS_NONE_AT_HPA_MINIMUM, "set minReplicas: 3 in HorizontalPodAutoscaler shop/web", id="two at the minimum (gate-16)"),
        pytest.param(scenario(web(3), budget(min_available=1), documents=[autoscaler(1, ownerReferences=[{"kind": "ScaledObject", "name": "web", "controller": True}])]), FindingId.ALLOWS_NONE_AT_HPA_MINIMUM, f"set minReplicas: 2 in HorizontalPodAutoscaler shop/web ({MANAGED.format('ScaledObject shop/web')})", id="KEDA sets the autoscaler"),
        pytest.param(scenario(web(2), budget(max_unavailable=1), budget("ours", min_available=1)), FindingId.OVERLAP, "delete PodDisruptionBudget shop/ours, or delete PodDisruptionBudget shop/web", id="two PDBs on the same pods"),
        pytest.param(scenario(web(3), budget(max_unavailable=2), budget("ours", min_available=2)), FindingId.OVERLAP, "delete PodDisruptionBudget shop/web", id="the stricter one stays"),
        pytest.param(scenario(web(2, labels={**WEB, "eks.amazonaws.com/component": "coredns"}), budget(max_unavailable=1), budget("eks", {"eks.amazonaws.com/component": "coredns"}, min_available=1)), FindingId.OVERLAP, "delete PodDisruptionBudget shop/web", id="the add-on manager recreates one (gate-08)"),
        pytest.param(
            scenario(
                budget("all", {"tier": "front"}, max_unavailable=1), budget("web", {"app": "web", "tier": "front"}, max_unavailable=1),
                *deployment("web", 2), pods("ReplicaSet web-1", 2, labels={**WEB, "tier": "front"}),
                *deployment("api", 2), pods("ReplicaSet api-1", 2, labels={"app": "api", "tier": "front"}),
            ), FindingId.OVERLAP, "select tier=front,app notin (web)", id="one PDB is for the rest",
        ),
        pytest.param(scenario(pods("DaemonSet web", 3), budget(max_unavailable=1)), FindingId.NO_SCALE, "set minAvailable: 2 instead of maxUnavailable", id="a DaemonSet has no scale"),
        pytest.param(scenario(pods("", 2), budget(max_unavailable=1)), FindingId.UNMANAGED_PODS, "set minAvailable: 1 instead of maxUnavailable", id="no controller has a scale"),
        pytest.param(scenario(web(3), budget(min_available="2")), FindingId.INVALID_AMOUNT, "set minAvailable: 2", id="a number in quotes"),
        pytest.param(scenario(budget(min_available="1")), FindingId.INVALID_AMOUNT, "set minAvailable: 1", id="so, without the pods (gate-22)"),
        pytest.param(scenario(web(1), budget(min_available="1")), FindingId.INVALID_AMOUNT, EACH, id="a number in quotes that would block every drain"),
        pytest.param(scenario(web(3), budget(min_available="most")), FindingId.INVALID_AMOUNT, EACH, id="no number at all"),
        pytest.param(scenario(web(2), budget("x", {"app": "webb"}, max_unavailable=1)), FindingId.SELECTS_NOTHING, "select app=web", id="a typo"),
        pytest.param(scenario(web(2), budget("web-pdb", {"run": "1"}, max_unavailable=1)), FindingId.SELECTS_NOTHING, "select app=web", id="other labels, but the workload's name"),
        pytest.param(scenario(web(2), budget("x", {"app": "gone"}, max_unavailable=1)), FindingId.SELECTS_NOTHING, "delete PodDisruptionBudget shop/x", id="a PDB of something that is gone"),
        pytest.param(scenario(budget(max_unavailable=1)), FindingId.SELECTS_NOTHING, "", id="a manifest without the cluster's pods"),
        pytest.param(scenario(web(2), budget("web-pdb", selector=None, max_unavailable=1)), FindingId.NULL_SELECTOR, "select app=web", id="no selector, but the workload's name"),
        pytest.param(scenario(web(2), budget("x", selector=LabelSelector(), max_unavailable=1)), FindingId.SELECTS_EVERY_POD, "select app=web", id="everything is one workload"),
        pytest.param(scenario(web(2)), FindingId.NO_BUDGET, "create a PodDisruptionBudget with maxUnavailable: 1", id="two replicas without a PDB (gate-30)"),
        # The PDB that is meant for it needs another selector, not a second PDB.
        pytest.param(scenario(web(2), budget(labels={"app": "webb"}, max_unavailable=1)), FindingId.NO_BUDGET, "", id="a PDB misses it by a typo"),
    ],
)  # fmt: skip
def test_the_best_remedy_is_first_and_all_keep_their_promise(given: Scenario, kind: FindingId, fix: str) -> None:
    assert fix_in_words(finding_of(kept(given), kind)) == fix


def test_a_drain_is_not_said_to_never_finish_if_an_operator_may_move_the_pods() -> None:
    audit = scenario(postgres("primary"), budget(labels=PRIMARY, min_available=1)).audit()
    text = finding_text(finding_of(audit, FindingId.NEVER_ALLOWS), audit.items[0])
    assert text.endswith("a drain of its pod's node waits until the operator of Cluster shop/pg moves it")
    audit = scenario(web(1), budget(min_available=1)).audit()
    text = finding_text(finding_of(audit, FindingId.NEVER_ALLOWS), audit.items[0])
    assert text.endswith("a drain of its pod's node never finishes")


def test_a_singleton_gets_no_budget_that_would_block_its_drain() -> None:
    assert [each.id for each in kept(scenario(web(1))).findings] == []


def preempted(*more: Any, requests: str = "3") -> Scenario:
    """A pending pod that evicts both pods of a PDB that allows one disruption."""
    workers = [*deployment("web", 2), *pods("ReplicaSet web-1", 2, cpu="2", priority=10)]
    return scenario(workers, budget(min_available=1), make_pod("import", cpu=requests, priority=1000), *more)


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        pytest.param(
            preempted(make_node("node-a", cpu="4"), make_node("node-b", cpu="4", unschedulable=True), PriorityClass(ObjectMeta(name="high"), 1000)),
            "uncordon node-b, or add 1 node like node-a, or set template.spec.priorityClassName: high in Deployment shop/web (the pod then stays pending)",
            id="capacity before priority, which has a class",
        ),
        pytest.param(
            preempted(make_node("node-a", cpu="4"), PriorityClass(ObjectMeta(name="system-cluster-critical"), 2_000_000_000)),
            "add 1 node like node-a, or raise the priority of Deployment shop/web from 10 to 1,000 (the pod then stays pending)",
            id="the classes of the system are not for it",
        ),
    ],
)  # fmt: skip
def test_preemptions_are_prevented_by_capacity_or_priority(given: Scenario, fix: str) -> None:
    assert fix_in_words(finding_of(kept(given), FindingId.VIOLATED_BY_PREEMPTION)) == fix


def test_commands_apply_the_edits() -> None:
    audit = kept(scenario(web(3), budget(min_available=3)))
    amount, replicas = (commands(each) for each in finding_of(audit, FindingId.NEVER_ALLOWS).remedies)
    patch = '\'{"spec":{"maxUnavailable":1,"minAvailable":null}}\''
    assert amount == [f"kubectl patch poddisruptionbudget web -n shop --type merge -p {patch}"]
    assert replicas == ["kubectl scale deployment web -n shop --replicas=4"]
    (created,) = finding_of(kept(scenario(web(2))), FindingId.NO_BUDGET).remedies
    assert commands(created) == [
        "kubectl create poddisruptionbudget web -n shop --selector=app=web --max-unavailable=1"
    ]


def test_the_newest_of_equal_budgets_is_deleted() -> None:
    old, new = (
        replace_in(budget(name, max_unavailable=1), "metadata", creation_timestamp=NOW - timedelta(days=days))
        for name, days in (("a", 9), ("b", 1))
    )
    audit = kept(scenario(web(2), old, new))
    assert fix_in_words(finding_of(audit, FindingId.OVERLAP)).startswith("delete PodDisruptionBudget shop/b")


def test_the_search_ends_when_the_time_is_over() -> None:
    given = scenario(web(3), budget(min_available=3))
    audit = given.audit(has_time=lambda: False)
    assert [each.remedies for each in audit.findings] == [[]]
    assert (audit.search.tried, audit.search.reason) == (0, "time")
    assert audit.search.untried > 0
    assert msgspec.structs.replace(given.audit().search, tried=0).untried == 0
