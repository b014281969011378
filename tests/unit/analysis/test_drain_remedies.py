"""Remedies of drains: the first one for each kind of obstacle, and what it brings when a reader applies it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from kpreempt.analysis.drain.kubectl import Upgrade
from kpreempt.gate_rules import RuleId
from kpreempt.report.remedies import action, commands
from kpreempt.verdict.drain import BlockReason, Drain
from kpreempt.verdict.remedies import Remedy, RemedyStage
from tests.drains import altered, autoscaler, bare, budget, check_promise, drained
from tests.rollouts import QUOTA, Document, nodes, running, workload

UNREADY = [{"type": "Ready", "status": "False"}]
SCRATCH = {"volumes": [{"name": "tmp", "emptyDir": {}}]}


def deployment(name: str, on: Sequence[str], **more: Any) -> list[Document]:
    """A Deployment with its pods on these nodes."""
    return running(workload("Deployment", name, cpu=more.pop("cpu", "500m"), replicas=len(on), **more), on)


def stateful_set(name: str, on: Sequence[str], **more: Any) -> list[Document]:
    """A StatefulSet with its pods on these nodes."""
    return running(workload("StatefulSet", name, cpu=more.pop("cpu", "500m"), replicas=len(on), **more), on)


def of_zones(documents: Sequence[Document]) -> Any:
    """The documents, with each node in a zone of its own, and each pod of a workload in the zone of its node."""
    zone = "topology.kubernetes.io/zone"
    found = json.loads(json.dumps(documents))
    for each in found:
        if each["kind"] == "Node":
            each["metadata"]["labels"][zone] = each["metadata"]["name"]
        elif each["kind"] == "Pod":
            each["spec"]["nodeSelector"] = {zone: each["spec"]["nodeName"]}
    return found


def owner(kind: str, name: str, api_version: str) -> dict[str, Any]:
    """The owner of an object, as its controller."""
    reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": name, "controller": True}
    return {"ownerReferences": [reference]}


def cordoned(documents: Sequence[Document], name: str) -> list[Document]:
    """The documents, with a cordoned node."""
    return [
        {**each, "spec": {"unschedulable": True}} if each["metadata"]["name"] == name else each for each in documents
    ]


RECREATE = {"strategy": {"type": "Recreate"}}
MANAGED = owner("Cluster", "pg", "postgresql.cnpg.io/v1")


class Case(NamedTuple):
    documents: list[Document]
    line: str
    first: str
    number: int


CASES = {
    "all options that are missing": Case(
        [
            *nodes(2, "4"),
            *running(workload("DaemonSet", "logs", cpu="100m"), ["n1"]),
            *deployment("cache", ["n1"], pod=SCRATCH),
            bare("one", "n1"),
        ],
        "n1",
        "use --ignore-daemonsets --delete-emptydir-data --force",
        1,
    ),
    "an option of each node": Case(
        [*nodes(3, "4"), *deployment("cache", ["n1"], pod=SCRATCH), bare("one", "n2")],
        "n1 n2",
        "use --delete-emptydir-data --force",
        1,
    ),
    "an option, and a budget behind it": Case(
        [
            *nodes(3, "4"),
            *deployment("cache", ["n1"], pod=SCRATCH),
            *deployment("web", ["n1", "n2"], **RECREATE),
            budget("web", maxUnavailable=0),
        ],
        "n1",
        "use --delete-emptydir-data, and set maxUnavailable: 1 in PodDisruptionBudget shop/web",
        1,
    ),
    "budgets on two nodes": Case(
        [
            *nodes(3, "4"),
            *deployment("web", ["n1"]),
            *deployment("api", ["n2", "n3"], **RECREATE),
            budget("web", minAvailable=1),
            budget("api", minAvailable="100%"),
        ],
        "n1 n2",
        "cordon n1 and n2, and restart Deployment shop/web, and set maxUnavailable: 1 in PodDisruptionBudget shop/api",
        1,
    ),
    "a pod elsewhere that is not ready": Case(
        altered(
            [*nodes(3), *deployment("web", ["n1", "n2"]), budget("web", maxUnavailable=1)],
            "web-old-b",
            conditions=UNREADY,
        ),
        "n1",
        "repair Pod shop/web-old-b",
        1,
    ),
    "pods that are not ready themselves": Case(
        altered(
            altered(
                [*nodes(3), *deployment("web", ["n1", "n2"]), budget("web", maxUnavailable=1)],
                "web-old-a",
                conditions=UNREADY,
            ),
            "web-old-b",
            conditions=UNREADY,
        ),
        "n1",
        "repair Pod shop/web-old-b",
        2,
    ),
    "a singleton that can surge": Case(
        [*nodes(2), *deployment("web", ["n1"]), budget("web", minAvailable=1)],
        "n1",
        "cordon n1, and restart Deployment shop/web",
        3,
    ),
    "a singleton that cannot surge": Case(
        [*nodes(2), *deployment("web", ["n1"], **RECREATE), budget("web", minAvailable=1)],
        "n1",
        "cordon n1, and scale Deployment shop/web to 2 replicas",
        2,
    ),
    "a singleton with an autoscaler": Case(
        [*nodes(2), *deployment("web", ["n1"], **RECREATE), budget("web", minAvailable=1), autoscaler("web", 1, 5)],
        "n1",
        "cordon n1, and set minReplicas: 2 in HorizontalPodAutoscaler shop/web",
        2,
    ),
    "a singleton at the maximum of its autoscaler": Case(
        [*nodes(2), *deployment("web", ["n1"], **RECREATE), budget("web", minAvailable=1), autoscaler("web", 1, 1)],
        "n1",
        "set maxUnavailable: 1 in PodDisruptionBudget shop/web",
        1,
    ),
    "a singleton with an identity": Case(
        [*nodes(2), *stateful_set("db", ["n1"]), budget("db", maxUnavailable=0)],
        "n1",
        "set maxUnavailable: 1 in PodDisruptionBudget shop/db",
        1,
    ),
    "a budget that needs two more replicas": Case(
        [*nodes(3, "4"), *stateful_set("db", ["n1", "n2"]), budget("db", minAvailable=3)],
        "n1",
        "cordon n1, and scale StatefulSet shop/db to 4 replicas",
        2,
    ),
    "two budgets": Case(
        [*nodes(2), *stateful_set("db", ["n1", "n2"]), *(budget(name, "db", maxUnavailable=1) for name in ("a", "b"))],
        "n1",
        "delete PodDisruptionBudget shop/a",
        2,
    ),
    "a full cluster": Case(
        [
            *nodes(2),
            *deployment("big", ["n2"], cpu="2"),
            *deployment("web", ["n1", "n1"]),
            budget("web", maxUnavailable=1),
        ],
        "n1",
        "add 1 node like n1",
        1,
    ),
    "a cordoned node": Case(
        [
            *cordoned(nodes(3), "n3"),
            *deployment("big", ["n2"], cpu="2"),
            *deployment("web", ["n1", "n1"]),
            budget("web", maxUnavailable=1),
        ],
        "n1",
        "uncordon n3",
        2,
    ),
    "all nodes of a zonal workload": Case(
        of_zones([*nodes(3), *stateful_set("es", ["n1", "n2", "n3"]), budget("es", maxUnavailable=1)]),
        "n1 n2 n3",
        "add the replacement of each node before draining it (--surge 1)",
        2,
    ),
    "all nodes, and a singleton": Case(
        [*nodes(2), *deployment("web", ["n1"]), *deployment("api", ["n2", "n2"]), budget("web", minAvailable=1)],
        "n1 n2",
        "add the replacement of each node before draining it (--surge 1), and cordon n1 and n2, and restart Deployment"
        " shop/web",
        1,
    ),
    "a timeout that is too short": Case(
        [*nodes(2, "4"), *deployment("web", ["n1", "n1", "n1"]), budget("web", maxUnavailable=1)],
        "n1 --timeout=20s",
        "use --timeout=41s",
        1,
    ),
}


def first_of(drain: Drain) -> str:
    """The first remedy in words."""
    return action(drain.remedies[0]) if drain.remedies else ""


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_first_remedy_of_each_obstacle_and_what_each_brings(case: Case) -> None:
    drain = drained(case.documents, case.line)
    assert not drain.finishes
    assert (first_of(drain), len(drain.remedies)) == (case.first, case.number)
    for remedy in drain.remedies:
        assert remedy.solves
        check_promise(remedy, case.documents, case.line)
    incomplete = [each for each in drain.findings if each.rule is RuleId.DRAIN_INCOMPLETE]
    assert [each.remedies for each in incomplete] == [drain.remedies] * len(incomplete)


def test_what_blocks_the_nodes_that_are_not_reached_is_listed() -> None:
    drain = drained(*CASES["budgets on two nodes"][:2])
    found = [(each.node, each.budgets, each.is_ahead, len(each.remedies) > 0) for each in drain.blocked]
    assert found == [("n1", ["shop/web"], False, True), ("n2", ["shop/api"], True, True)]
    drain = drained(*CASES["an option, and a budget behind it"][:2])
    assert [(each.reason, each.is_ahead) for each in drain.blocked] == [
        (BlockReason.OPTION_REQUIRED, False),
        (BlockReason.NEVER_ALLOWS, True),
    ]


def test_a_remedy_of_one_node_does_not_let_the_whole_drain_finish() -> None:
    documents, line, *_ = CASES["budgets on two nodes"]
    for blocked in drained(documents, line).blocked:
        for remedy in blocked.remedies:
            assert not remedy.solves
            check_promise(remedy, documents, line, blocked)


def test_the_last_healthy_pod_is_never_evicted() -> None:
    documents, line, *_ = CASES["a pod elsewhere that is not ready"]
    remedies = [*drained(documents, line).remedies, *(drained(documents, line).blocked[0].remedies)]
    assert {each.stage for each in remedies} == {RemedyStage.REPAIR}


def test_a_gap_is_reported_where_a_workload_of_one_pod_is_evicted() -> None:
    documents, line, *_ = CASES["a singleton that can surge"]
    remedies = drained(documents, line).remedies
    assert [each.interrupted for each in remedies] == [[], [], ["Deployment shop/web"]]


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param([bare("pg-1", "n1", **MANAGED)], id="a pod of a custom resource"),
        pytest.param(
            [
                {**each, "metadata": {**each["metadata"], **MANAGED}} if each["kind"] == "StatefulSet" else each
                for each in stateful_set("pg-1", ["n1"])
            ],
            id="a StatefulSet of a custom resource",
        ),
    ],
)
def test_pods_of_an_operator_are_left_to_it(pods: list[Document]) -> None:
    documents = [*nodes(2), *pods, budget("pg-1", minAvailable=1)]
    drain = drained(documents, "n1")
    (blocked,) = drain.blocked
    assert (blocked.manager, blocked.remedies, drain.remedies) == ("Cluster shop/pg", [], [])
    assert "Cluster shop/pg" in blocked.advice
    assert not drain.finishes and not drain.passed
    (finding,) = (each for each in drain.findings if each.rule is RuleId.DRAIN_INCOMPLETE)
    assert finding.fix == blocked.advice


def test_the_budget_of_an_operator_is_not_edited() -> None:
    managed = budget("db", maxUnavailable=0)
    managed["metadata"] |= owner("Elasticsearch", "logs", "elasticsearch.k8s.elastic.co/v1")
    drain = drained([*nodes(2), *stateful_set("db", ["n1", "n2"]), managed], "n1")
    assert drain.remedies == []


def test_a_pod_of_a_missing_daemon_set_is_lost() -> None:
    existing = running(workload("DaemonSet", "logs", cpu="100m"), ["n1"])
    orphan = running(workload("DaemonSet", "old", cpu="100m"), ["n1"])[-1]
    documents = [*nodes(2, "4"), *existing, orphan]
    drain = drained(documents, "n1")
    assert first_of(drain) == "use --ignore-daemonsets --force"
    assert drain.remedies[0].lost == ["shop/old-a"]
    after = check_promise(drain.remedies[0], documents, "n1")
    assert [each.pod for each in after.simulation.displaced if each.lost] == ["shop/old-a"]
    assert after.pending_after == 0


BROKEN = {
    "pods that stay pending": Case(
        [*nodes(2), *deployment("big", ["n2"], cpu="2"), *deployment("web", ["n1"])], "n1", "add 1 node like n1", 1
    ),
    "all pods on one node": Case(
        [*nodes(3, "4"), *deployment("dns", ["n1", "n1"])],
        "n1",
        "create PodDisruptionBudget shop/dns with maxUnavailable: 1",
        1,
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_what_helps_against_a_violated_rule_of_a_drain_that_finishes(case: Case) -> None:
    documents = [*case.documents, QUOTA]
    drain = drained(documents, case.line)
    assert drain.finishes and drain.remedies == []
    (finding,) = (each for each in drain.findings if not each.rule.row.about_input)
    assert (action(finding.remedies[0]), len(finding.remedies)) == (case.first, case.number)
    for remedy in finding.remedies:
        after = check_promise(remedy, documents, case.line)
        assert (finding.rule, finding.subject) not in {(each.rule, each.subject) for each in after.findings}


def test_a_service_of_one_pod_gets_a_second_one() -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"selector": {"app": "db"}},
    }
    documents = [*nodes(2, "4"), *stateful_set("db", ["n1"]), service, QUOTA]
    drain = drained(documents, "n1")
    (finding,) = (each for each in drain.findings if each.rule is RuleId.BRIEF_INTERRUPTION)
    assert [action(each) for each in finding.remedies] == ["cordon n1, and scale StatefulSet shop/db to 2 replicas"]
    after = check_promise(finding.remedies[0], documents, "n1")
    assert RuleId.BRIEF_INTERRUPTION not in {each.rule for each in after.findings}


def test_nothing_is_tried_without_time() -> None:
    documents, line, *_ = CASES["a singleton that can surge"]
    drain = drained(documents, line, has_time=lambda: False)
    assert drain.remedies == []
    assert (drain.search.tried, drain.search.reason, drain.search.untried > 0) == (0, "time", True)


def test_an_upgrade_is_not_proposed_for_one() -> None:
    documents, line, *_ = CASES["all nodes of a zonal workload"]
    drain = drained([each for each in documents if each["metadata"]["name"] != "n4"], line, upgrade=Upgrade())
    assert drain.finishes


@pytest.mark.parametrize(
    ("case", "lines"),
    [
        (
            "a singleton that can surge",
            ["kubectl cordon n1", "kubectl rollout restart deployment web -n shop"],
        ),
        ("two budgets", ["kubectl delete poddisruptionbudget a -n shop"]),
        ("a full cluster", ["--add-node=n1"]),
    ],
)
def test_the_commands_of_a_remedy(case: str, lines: list[str]) -> None:
    documents, line, *_ = CASES[case]
    remedy: Remedy = drained(documents, line).remedies[0]
    assert commands(remedy) == lines
