"""What is lost without an eviction, or permanently: with a node or namespace, to a quota, or in one of several runs."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.verdict.check import Check, RuleId
from kpreempt.verdict.simulation import StepKind
from tests.rollouts import Document, checked, end_of, nodes, priority_class, running, tale, workload

HIGH = priority_class("high", 1000)
HIGH_POD: dict[str, Any] = {"pod": {"priorityClassName": "high"}}
WEB = workload("Deployment", "web", replicas=2)


def make(kind: str, name: str, api_version: str = "v1", **parts: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, **parts}


NAMESPACE: Document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


def bare(name: str, node: str, cpu: str = "2") -> Document:
    container = {"name": "main", "image": "one", "resources": {"requests": {"cpu": cpu}}}
    pod = make("Pod", name, spec={"nodeName": node, "priority": 0, "containers": [container]})
    return {**pod, "status": {"phase": "Running"}}


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> Document:
    status = {"status": {"hard": hard, "used": used}} if used is not None else {}
    return make("ResourceQuota", "q", spec={"hard": hard, **spec}, **status)


def broken(found: Check) -> dict[str, list[str]]:
    """The rules that are broken, each with what it is about."""
    rules: dict[str, list[str]] = {}
    for each in found.findings:
        rules.setdefault(each.rule, []).append(each.subject)
    return rules


# Nodes.


def test_the_pods_of_a_deleted_node_are_made_again_elsewhere() -> None:
    found = checked([*nodes(2), *running(WEB, ["n1", "n1"])], [], deleted=["node/n1"])
    assert tale(found) == [
        "0 Terminating web-old-a",
        "0 Terminating web-old-b",
        "40 Terminated web-old-a",
        "40 Created web-old-new-1",
        "40 Terminated web-old-b",
        "40 Created web-old-new-2",
        "40 Bound web-old-new-1 n2",
        "40 Bound web-old-new-2 n2",
    ]
    # Both are gone for a while: nothing asks a budget, and the gate tells it.
    assert broken(found) == {"min-ready": ["Deployment shop/web"]}
    assert [(each.with_node, each.cause, each.lands_on) for each in found.simulation.displaced] == [
        (True, "Node n1", "n2")
    ] * 2
    assert end_of(found, "Deployment shop/web").ready_min == 0


def test_without_any_node_left_the_pods_wait() -> None:
    found = checked([*nodes(2), *running(WEB, ["n1", "n2"])], [], deleted=["node/n1", "node/n2"])
    assert broken(found)["max-pending"] == ["Deployment shop/web"]
    assert {each.change for each in found.findings} <= {"Node n1", "Node n2"}


def test_a_deleted_node_leaves_a_service_without_a_pod_and_breaks_a_budget() -> None:
    service = make("Service", "web", spec={"selector": {"app": "web"}})
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    budget = make("PodDisruptionBudget", "web", "policy/v1", spec=spec)
    found = checked([*nodes(2), *running(WEB, ["n1", "n1"]), service, budget], [], deleted=["node/n1"])
    assert broken(found) == {
        "max-pdb-violations": ["PodDisruptionBudget shop/web"],
        "max-broken-dependencies": ["Service shop/web"],
    }


def test_a_plain_pod_is_lost_with_its_node_and_a_daemon_is_not_missed() -> None:
    daemon = workload("DaemonSet", "log", cpu="100m")
    found = checked([*nodes(2), *running(daemon, ["n1", "n2"]), bare("one", "n1")], [], deleted=["node/n1"])
    assert broken(found) == {"lost-pods": ["Pod shop/one"]}
    assert [each.pod for each in found.simulation.displaced] == ["shop/one"]


@pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet", "Job"])
def test_whatever_makes_pods_makes_them_again(kind: str) -> None:
    more: dict[str, Any] = {"parallelism": 1} if kind == "Job" else {"replicas": 1}
    found = checked([*nodes(2), *running(workload(kind, "db", **more), ["n1"])], [], deleted=["node/n1"])
    assert [each.lands_on for each in found.simulation.displaced] == ["n2"]
    assert found.passed


def test_pods_of_a_workload_that_is_rolled_out_are_made_again_as_well() -> None:
    new = workload("Deployment", "web", replicas=2, image="two")
    found = checked([*nodes(2), *running(WEB, ["n1", "n1"])], [new], deleted=["node/n1"])
    end = end_of(found, "Deployment shop/web")
    assert (end.is_done, end.nodes_after) == (True, {"n2": 2})


# Permanently.


def test_a_pod_without_an_owner_that_is_evicted_is_lost() -> None:
    cluster = [*nodes(1, "2"), HIGH, bare("one", "n1")]
    found = checked(cluster, [workload("Deployment", "api", cpu="2", **HIGH_POD)])
    assert broken(found) == {"lost-pods": ["Pod shop/one"]}
    assert [each.lost for each in found.simulation.displaced] == [True]
    assert found.findings[0].change == "Deployment shop/api"


# Namespaces.


def test_what_goes_with_a_namespace_is_reported_workload_by_workload() -> None:
    idle = workload("Deployment", "idle", replicas=0)
    cluster = [*nodes(1), NAMESPACE, *running(WEB, ["n1", "n1"]), *running(idle, []), bare("one", "n1")]
    found = checked(cluster, [], deleted=["ns/shop"])
    assert broken(found) == {"max-deletions": ["Deployment shop/web", "Pod shop/one"]}
    assert found.findings[0].pods == ["shop/web-old-a", "shop/web-old-b"]


def test_what_is_deleted_together_with_its_namespace_may_be_deleted() -> None:
    cluster = [*nodes(1), NAMESPACE, *running(WEB, ["n1", "n1"])]
    found = checked(cluster, [], deleted=["ns/shop", "deploy/web"])
    assert found.passed
    assert [each.object for each in found.changes] == ["Namespace shop", "Deployment shop/web"]


def test_what_a_change_puts_into_a_namespace_goes_with_it() -> None:
    found = checked([*nodes(1), NAMESPACE, *running(WEB, ["n1", "n1"])], [WEB], deleted=["ns/shop"])
    assert not found.passed
    assert end_of(found, "Deployment shop/web").ready_after == 0


# Quotas.


def test_a_full_quota_refuses_pods_until_others_are_gone() -> None:
    strategy = {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}
    old, new = (workload("Deployment", "web", replicas=2, image=image, **strategy) for image in ("one", "two"))
    cluster = [*nodes(2), *running(old, ["n1", "n2"]), quota({"pods": "2"}, {"pods": "2"})]
    found = checked(cluster, [new])
    assert broken(found) == {"quota-rejections": ["Deployment shop/web"]}
    assert found.findings[0].detail == "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"
    assert end_of(found, "Deployment shop/web").is_done
    (refused,) = found.simulation.rejected
    assert (refused.quota, refused.since, refused.rejected_after) == ("shop/q", 0, 0)
    assert StepKind.REJECTED in {step.kind for step in found.simulation.steps}


def test_a_quota_that_never_has_room_leaves_the_change_undone() -> None:
    cluster = [*nodes(2), quota({"requests.cpu": "1500m"}, {"requests.cpu": "0"})]
    found = checked(cluster, [workload("Deployment", "web", replicas=3, cpu="1")])
    message = "exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=1, limited: requests.cpu=1500m"
    assert broken(found) == {"quota-rejections": ["Deployment shop/web"]}
    assert {each.detail for each in found.findings} == {message}
    assert [(each.pods, each.rejected_after) for each in found.simulation.rejected] == [(2, 2)]


def test_what_is_evicted_is_made_again_only_once_the_quota_has_room() -> None:
    """The victim counts until it is gone."""
    web = workload("Deployment", "web", replicas=1, cpu="2")
    api = workload("Deployment", "api", replicas=1, cpu="2", **HIGH_POD)
    found = checked([*nodes(1, "2"), HIGH, *running(web, ["n1"]), quota({"pods": "2"}, {"pods": "1"})], [api])
    steps = [
        (step.at, step.pod) for step in found.simulation.steps if step.kind in (StepKind.REJECTED, StepKind.CREATED)
    ]
    assert steps == [(0, "shop/api-new-1"), (0, "shop/web-old-new-1"), (30, "shop/web-old-new-1")]
    assert set(broken(found)) == {"max-pending", "quota-rejections"}


def test_what_is_evicted_and_never_may_be_made_again_waits() -> None:
    web = workload("Deployment", "web", replicas=1, cpu="2")
    api = workload("Deployment", "api", replicas=1, cpu="2", **HIGH_POD)
    tight = quota({"limits.cpu": "8"}, {"limits.cpu": "0"}, scopes=["NotTerminating"])
    other = {**api, "metadata": {**api["metadata"], "namespace": "other"}}
    found = checked([*nodes(1, "2"), HIGH, *running(web, ["n1"]), tight], [other])
    (waits,) = found.simulation.pending
    assert (waits.workload, waits.was_running) == ("Deployment shop/web", True)
    assert waits.message == "failed quota: q: must specify limits.cpu for: main"
    assert broken(found)["max-pending"] == ["Deployment shop/web"]


def test_a_quota_of_the_change_counts_from_its_pods() -> None:
    cluster = [*nodes(2), *running(WEB, ["n1", "n1"])]
    found = checked(cluster, [quota({"pods": "2"}), workload("Deployment", "api", replicas=1)])
    assert found.simulation.rejected[0].message == "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"


# Chance.


def coin(services: bool = True) -> list[Document]:
    """Two nodes that are equal but for who is evicted from them: ``web`` with a service, or ``other``."""
    web, other = (workload("Deployment", name, replicas=1, cpu="2") for name in ("web", "other"))
    service = [make("Service", "web", spec={"selector": {"app": "web"}})] if services else []
    return [*nodes(3, "2"), HIGH, *running(web, ["n1"]), *running(other, ["n2"]), *service]


API = workload("Deployment", "api", cpu="2", replicas=2, **HIGH_POD)


def test_where_chance_decides_every_outcome_is_looked_at() -> None:
    found = checked(coin(), [API])
    assert (found.explored_all, found.passed) == (True, False)
    assert 0 < found.failing_runs <= found.runs
    (stranded,) = (each for each in found.findings if each.rule is RuleId.MAX_BROKEN_DEPENDENCIES)
    assert (stranded.in_runs, stranded.of_runs, stranded.share) == (1, 2, 0.5)


def test_the_seed_does_not_decide_whether_the_gate_is_open() -> None:
    answers = [checked(coin(), [API], seed=seed) for seed in range(6)]
    assert {each.passed for each in answers} == {False}
    assert len({(each.runs, each.failing_runs) for each in answers}) == 1


def test_without_chance_there_is_one_play() -> None:
    found = checked([*nodes(1), *running(WEB, ["n1", "n1"])], [workload("Deployment", "web", replicas=3)])
    assert (found.runs, found.explored_all, found.outcomes) == (1, True, [])


def test_one_run_is_one_draw_if_that_is_requested() -> None:
    assert checked(coin(), [API], runs=1).runs == 1


def test_where_there_are_many_outcomes_some_are_drawn() -> None:
    found = checked(nodes(3), [workload("Deployment", f"d{index}", replicas=2, cpu="100m") for index in range(4)])
    assert (found.runs, found.explored_all, found.passed) == (20, False, True)


def test_a_taint_that_evicts_is_not_simulated_and_says_so() -> None:
    (node,) = nodes(1)
    tainted = {**node, "spec": {"taints": [{"key": "gone", "effect": "NoExecute"}]}}
    assert broken(checked([node, *running(WEB, ["n1", "n1"])], [tainted])) == {"unmodeled-input": ["Node n1"]}
