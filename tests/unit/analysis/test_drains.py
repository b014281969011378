"""Drains: which pods are evicted when, what blocks an eviction forever, and what unblocks it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kpreempt.analysis.drain.kubectl import Upgrade
from kpreempt.gate_rules import RuleId
from kpreempt.report.remedies import action
from kpreempt.verdict import AssumptionKind
from kpreempt.verdict.check import FindingStatus
from kpreempt.verdict.drain import AutoscalerRule, BlockReason, Drain, RemovalBlocker
from kpreempt.verdict.simulation import StepKind
from tests.drains import altered, budget, drained
from tests.rollouts import Document, nodes, priority_class, running, workload

PODSET = "kueue.x-k8s.io/podset"
UNREADY = [{"type": "Ready", "status": "False"}]


def deployment(name: str, on: Sequence[str], **more: Any) -> list[Document]:
    """A Deployment with its pods on these nodes."""
    return running(workload("Deployment", name, replicas=len(on), **more), on)


def reported(drain: Drain) -> list[str]:
    """When the pods of the nodes are evicted, and when nodes are empty."""
    evicted = [
        (step.at, f"{step.at:g} {step.pod.removeprefix('shop/')}")
        for step in drain.simulation.steps
        if step.kind is StepKind.TERMINATING and step.reason == "drained"
    ]
    ended = [(each.ended, f"{each.ended:g} {each.node} empty") for each in drain.drained if each.ended is not None]
    return [text for _, text in sorted([*ended, *evicted], key=lambda each: each[0])]


def reasons(drain: Drain) -> list[tuple[BlockReason, list[str]]]:
    """The blocked evictions and what blocks them."""
    return [(each.reason, each.budgets) for each in drain.blocked]


def helping(drain: Drain) -> list[list[str]]:
    """What helps each that is blocked: what is done, and whether the drain finishes then."""
    return [[action(each) + "!" * each.solves for each in blocked.remedies] for blocked in drain.blocked]


def failing(drain: Drain) -> set[RuleId]:
    """The rules for which the gate is shut."""
    return {each.rule for each in drain.findings if each.status is FindingStatus.FAILS}


def test_pods_without_a_budget_go_at_once_and_take_their_time_to_stop() -> None:
    drain = drained([*nodes(2, "4"), *deployment("web", ["n1", "n1"])], "n1")
    assert reported(drain) == ["0 web-old-a", "0 web-old-b", "30 n1 empty"]
    assert (drain.finishes, drain.moved, drain.min_seconds, drain.blocked) == (True, 2, 30.0, [])
    assert drain.passed is False
    assert failing(drain) == {RuleId.MIN_READY}


def test_a_budget_lets_one_go_at_a_time_and_kubectl_asks_every_five_seconds() -> None:
    cluster = [*nodes(2, "4"), *deployment("web", ["n1", "n1", "n1"]), budget("web", maxUnavailable=1)]
    drain = drained(cluster, "n1")
    assert reported(drain) == ["0 web-old-a", "5 web-old-b", "10 web-old-c", "40 n1 empty"]
    assert drain.finishes and drain.passed


def test_pods_of_a_stateful_set_come_back_only_once_the_old_one_is_gone() -> None:
    pods = running(workload("StatefulSet", "db", replicas=2), ["n1", "n1"])
    drain = drained([*nodes(2), *pods, budget("db", maxUnavailable=1)], "n1")
    assert reported(drain) == ["0 db-0", "35 db-1", "65 n1 empty"]


def test_nodes_are_cordoned_together_and_drained_one_after_the_other() -> None:
    drain = drained([*nodes(3, "4"), *deployment("web", ["n1"]), *deployment("api", ["n2"])], "n2 n1")
    assert reported(drain) == ["0 api-old-a", "30 n2 empty", "30 web-old-a", "60 n1 empty"]
    assert {each.lands_on for each in drain.simulation.displaced} == {"n3"}


def test_a_grace_period_takes_the_place_of_the_pods_own() -> None:
    cluster = [*nodes(2), *deployment("web", ["n1"])]
    assert drained(cluster, "n1 --grace-period=0").min_seconds == 0
    assert drained(cluster, "n1 --grace-period=300").min_seconds == 300


def test_pods_that_have_ended_go_whatever_the_options_say() -> None:
    cluster = altered([*nodes(2), *deployment("web", ["n1"])], "web-old-a", phase="Succeeded", conditions=[])
    drain = drained(cluster, "n1")
    assert (drain.finishes, drain.moved, drain.min_seconds) == (True, 0, 0)


def full() -> list[Document]:
    """Two nodes; no pod fits on the second one."""
    return [*nodes(2), *deployment("big", ["n2"], cpu="2")]


BLOCKED: dict[str, tuple[list[Document], str, BlockReason, list[str]]] = {
    "a budget wants all pods": (
        [*nodes(3), *deployment("web", ["n1", "n2"]), budget("web", minAvailable=2)],
        "n1",
        BlockReason.NEVER_ALLOWS,
        [
            "cordon n1, and restart Deployment shop/web!",
            "cordon n1, and scale Deployment shop/web to 3 replicas!",
            "set minAvailable: 1 in PodDisruptionBudget shop/web!",
        ],
    ),
    "a budget wants all in percent": (
        [*nodes(3), *deployment("web", ["n1", "n2"]), budget("web", minAvailable="100%")],
        "n1",
        BlockReason.NEVER_ALLOWS,
        ["cordon n1, and restart Deployment shop/web!", "set maxUnavailable: 1 in PodDisruptionBudget shop/web!"],
    ),
    "a budget lets nobody go": (
        [*nodes(3), *deployment("web", ["n1", "n2"]), budget("web", maxUnavailable=0)],
        "n1",
        BlockReason.NEVER_ALLOWS,
        ["cordon n1, and restart Deployment shop/web!", "set maxUnavailable: 1 in PodDisruptionBudget shop/web!"],
    ),
    "a single replica": (
        [*nodes(2), *deployment("web", ["n1"]), budget("web", minAvailable=1)],
        "n1",
        BlockReason.SINGLE_REPLICA,
        [
            "cordon n1, and restart Deployment shop/web!",
            "cordon n1, and scale Deployment shop/web to 2 replicas!",
            "set maxUnavailable: 1 in PodDisruptionBudget shop/web!",
        ],
    ),
    "no room for the replacement": (
        [*full(), *deployment("web", ["n1", "n1"]), budget("web", maxUnavailable=1)],
        "n1",
        BlockReason.PODS_PENDING,
        ["add 1 node like n1!"],
    ),
    "another pod is not ready": (
        altered(
            [*nodes(3), *deployment("web", ["n1", "n2"]), budget("web", minAvailable=1)],
            "web-old-b",
            conditions=UNREADY,
        ),
        "n1",
        BlockReason.PODS_NOT_READY,
        ["repair Pod shop/web-old-b!"],
    ),
    "the pod itself is not ready, and the budget not met": (
        altered(
            [*nodes(3), *deployment("web", ["n1", "n2", "n2"]), budget("web", maxUnavailable=0)],
            "web-old-a",
            conditions=UNREADY,
        ),
        "n1",
        BlockReason.NEVER_ALLOWS,
        ["set unhealthyPodEvictionPolicy: AlwaysAllow in PodDisruptionBudget shop/web!"],
    ),
    "two budgets": (
        [*nodes(2), *deployment("web", ["n1"]), *(budget(name, "web", maxUnavailable=1) for name in ("a", "b"))],
        "n1",
        BlockReason.MULTIPLE_BUDGETS,
        [
            "cordon n1, and restart Deployment shop/web!",
            "delete PodDisruptionBudget shop/a!",
            "delete PodDisruptionBudget shop/b!",
        ],
    ),
    "an owner without a scale": (
        [*nodes(2), *running(workload("Job", "crunch"), ["n1"]), budget("crunch", maxUnavailable=1)],
        "n1",
        BlockReason.NO_SCALE,
        ["set minAvailable: 0 in PodDisruptionBudget shop/crunch!"],
    ),
    "pods of DaemonSets": (
        [*nodes(2), *running(workload("DaemonSet", "logs"), ["n1"])],
        "n1",
        BlockReason.OPTION_REQUIRED,
        ["use --ignore-daemonsets!"],
    ),
    "local storage": (
        [*nodes(2), *deployment("web", ["n1"], pod={"volumes": [{"name": "tmp", "emptyDir": {}}]})],
        "n1",
        BlockReason.OPTION_REQUIRED,
        ["use --delete-emptydir-data!"],
    ),
}


@pytest.mark.parametrize(("cluster", "line", "reason", "helps"), BLOCKED.values(), ids=BLOCKED)
def test_what_blocks_is_named_and_what_helps_is_proved(
    cluster: list[Document], line: str, reason: BlockReason, helps: list[str]
) -> None:
    drain = drained(cluster, line)
    assert [each.reason for each in drain.blocked] == [reason]
    assert helping(drain) == [helps]
    assert not drain.finishes and not drain.passed and drain.min_seconds is None
    assert RuleId.DRAIN_INCOMPLETE in failing(drain)


def test_a_pod_that_is_not_ready_goes_where_the_budget_is_met_without_it() -> None:
    cluster = [*nodes(3), *deployment("web", ["n1", "n2", "n2"]), budget("web", minAvailable=2)]
    drain = drained(altered(cluster, "web-old-a", conditions=UNREADY), "n1")
    assert drain.finishes and drain.blocked == []


def test_a_blocked_node_keeps_those_behind_it_waiting_until_its_time_is_over() -> None:
    cluster = [
        *nodes(3),
        *deployment("web", ["n1"]),
        *deployment("api", ["n2"]),
        budget("web", minAvailable=1),
    ]
    waits = drained(cluster, "n1 n2")
    assert [(each.began, each.drained) for each in waits.drained] == [(0.0, False), (None, False)]
    gives_up = drained(cluster, "n1 n2 --timeout=40s")
    assert reported(gives_up) == ["40 n1 empty", "40 api-old-a", "70 n2 empty"]
    assert gives_up.drained[0].errors == ['error when evicting pods/"web-old-a" -n "shop": global timeout reached: 40s']
    assert [each.drained for each in gives_up.drained] == [False, True]


def test_deletions_ask_no_budget_and_count_as_violations() -> None:
    cluster = [*nodes(2), *deployment("web", ["n1"]), budget("web", minAvailable=1)]
    drain = drained(cluster, "n1 --disable-eviction")
    assert drain.finishes
    assert failing(drain) == {RuleId.MAX_PDB_VIOLATIONS}


def test_what_comes_in_the_place_of_a_pod_may_preempt_others() -> None:
    high = workload("Deployment", "web", replicas=1, pod={"priorityClassName": "high"})
    cluster = [
        *nodes(2, "1"),
        priority_class("high", 1000),
        *running(high, ["n1"], priority=1000),
        *deployment("low", ["n2"]),
    ]
    drain = drained(cluster, "n1")
    assert (drain.moved, drain.preempted, drain.pending_after) == (1, 1, 1)
    assert {RuleId.MAX_CASCADE_DEPTH, RuleId.MAX_PENDING} <= failing(drain)


def test_what_is_lost_is_reported() -> None:
    pod = {**deployment("web", ["n1"])[-1]}
    pod["metadata"] = {key: value for key, value in pod["metadata"].items() if key != "ownerReferences"}
    volumes = {"volumes": [{"name": "tmp", "emptyDir": {}}]}
    cluster = [*nodes(2, "4"), pod, *deployment("api", ["n1"], pod=volumes)]
    drain = drained(cluster, "n1 --force --delete-emptydir-data")
    assert drain.pods_losing_data == ["shop/api-old-a"]
    assert [each.pod for each in drain.simulation.displaced if each.lost] == ["shop/web-old-a"]
    assert RuleId.LOST_PODS in failing(drain)


def test_no_pod_is_evicted_in_a_namespace_that_is_on_its_way_out() -> None:
    gone = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop", "deletionTimestamp": "2026-11-21T11:00:00Z", "finalizers": ["kubernetes"]},
    }
    drain = drained([gone, *nodes(2), *deployment("web", ["n1"])], "n1")
    assert [each.reason for each in drain.blocked] == [BlockReason.TERMINATING]
    assert helping(drain) == [[]]


def test_every_run_counts_where_chance_decides() -> None:
    cluster = [*nodes(4, "4"), *deployment("web", ["n1", "n1"]), budget("web", maxUnavailable=1)]
    drain = drained(cluster, "n1", runs=4)
    assert (drain.runs, drain.finishes) == (4, True)


def test_an_upgrade_replaces_nodes_in_turn_and_pods_may_land_on_the_new_ones() -> None:
    cluster = [*nodes(2), *deployment("web", ["n1", "n1"]), *deployment("api", ["n2"], cpu="2")]
    # With nothing but the old nodes there is no room.
    assert drained(cluster, "n1").pending_after == 2
    drain = drained(cluster, "n1 n2", upgrade=Upgrade(max_unavailable=1, surge=1, kubelet_version="v1.37.0"))
    assert drain.finishes and drain.pending_after == 0
    assert reported(drain) == ["0 web-old-a", "0 web-old-b", "30 n1 empty", "30 api-old-a", "60 n2 empty"]
    assert {each.lands_on for each in drain.simulation.displaced} == {"n1-new-1", "n2-new-1"}


def test_an_upgrade_without_surge_drains_into_the_node_that_is_left() -> None:
    cluster = [*nodes(2, "4"), *deployment("web", ["n1", "n2"]), budget("web", maxUnavailable=1)]
    drain = drained(cluster, "n1 n2", upgrade=Upgrade(max_unavailable=1))
    assert drain.finishes
    # The pod from n1 goes to n2 and has to go once more.
    assert drain.moved == 3
    assert reported(drain) == ["0 web-old-a", "30 n1 empty", "30 web-old-b", "35 web-old-new-1", "65 n2 empty"]


# What leaves n1 first lands on n2, and has to go once more with what is there.
CROWDED = [*nodes(2, "4"), *deployment("web", ["n1"] * 3), *deployment("api", ["n2"])]


@pytest.mark.parametrize("line", ["n1 n2", "n2 n1"])
def test_the_order_that_displaces_least_is_found_whatever_was_given(line: str) -> None:
    drain = drained(CROWDED, line, upgrade=Upgrade(max_unavailable=1), seeks_order=True)
    as_given = drained(CROWDED, line, upgrade=Upgrade(max_unavailable=1))
    assert drain.order is not None
    assert (drain.order.displaced, drain.order.displaced_in_given_order) == (drain.moved, as_given.moved)
    assert [each.node for each in drain.drained] == drain.order.nodes == ["n2", "n1"]
    assert (drain.finishes, drain.moved, drain.order.unsearched) == (True, 5, 0)


@pytest.mark.parametrize(
    "upgrade",
    [Upgrade(max_unavailable=2), Upgrade(max_unavailable=1, surge=1), Upgrade(max_unavailable=3, surge=2)],
    ids=str,
)
def test_the_best_order_is_never_worse_than_that_given_and_has_all_nodes(upgrade: Upgrade) -> None:
    cluster = [*nodes(3), *deployment("web", ["n1", "n3"]), *deployment("api", ["n2"]), budget("web", minAvailable=1)]
    drain = drained(cluster, "n3 n1 n2", upgrade=upgrade, seeks_order=True)
    as_given = drained(cluster, "n3 n1 n2", upgrade=upgrade)
    assert drain.order is not None
    assert sorted(drain.order.nodes) == ["n1", "n2", "n3"]
    assert drain.finishes is as_given.finishes is True
    assert drain.moved + drain.preempted <= as_given.moved + as_given.preempted


def test_a_search_that_is_cut_short_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kpreempt.analysis.drain.answer._MAX_TRIALS", 4)
    drain = drained([*nodes(3), *deployment("web", ["n1", "n3"])], "n1 n2 n3", upgrade=Upgrade(), seeks_order=True)
    assert drain.order is not None
    assert (drain.order.nodes, drain.order.unsearched) == (["n2", "n1", "n3"], 2)


def test_pods_of_daemon_sets_go_with_their_node_and_come_with_the_new_one() -> None:
    logs = running(workload("DaemonSet", "logs", cpu="1"), ["n1", "n2"])
    cluster = [*nodes(2), *logs, *deployment("web", ["n1"])]
    drain = drained(cluster, "n1 --ignore-daemonsets", upgrade=Upgrade(max_unavailable=1, surge=1))
    assert drain.finishes and drain.moved == 1
    gone = [step.pod for step in drain.simulation.steps if step.kind is StepKind.TERMINATED]
    came = [step.pod for step in drain.simulation.steps if step.kind is StepKind.CREATED]
    assert gone == ["shop/web-old-a", "shop/logs-a"]
    assert came[0] == "shop/logs-n1-new-1"


def test_a_node_that_does_not_get_empty_is_not_replaced() -> None:
    cluster = [*nodes(3), *deployment("web", ["n1"]), *deployment("api", ["n2"]), budget("web", minAvailable=1)]
    drain = drained(cluster, "n1 n2 --timeout=40s", upgrade=Upgrade(max_unavailable=1))
    assert [(each.drained, each.began) for each in drain.drained] == [(False, 0.0), (False, None)]


def test_nothing_is_certain_of_a_node_whose_kubelet_does_not_answer() -> None:
    cluster = [*nodes(2), *deployment("web", ["n1"]), budget("other", maxUnavailable=1)]
    cluster[0]["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    drain = drained(cluster, "n1")
    assert drain.finishes
    assert failing(drain) == {RuleId.OUTCOME_UNCERTAIN}


def test_nothing_is_certain_of_a_pod_whose_owner_is_not_there() -> None:
    orphan = running(workload("Deployment", "web", replicas=1), ["n1"])[-1]
    cluster = [*nodes(2, "4"), orphan, *deployment("api", ["n2"]), budget("other", maxUnavailable=1)]
    assert failing(drained(cluster, "n1")) == {RuleId.OUTCOME_UNCERTAIN}


def annotated(documents: list[Document], name: str, **annotations: str) -> list[Document]:
    """The documents, of which one has these annotations."""
    return [
        {**each, "metadata": {**each["metadata"], "annotations": annotations}}
        if each["metadata"]["name"] == name
        else each
        for each in documents
    ]


def pod_of(name: str, **more: Any) -> list[Document]:
    """A Deployment of one pod on ``n1``, which asks for little."""
    return deployment(name, ["n1"], cpu="100m", **more)


def static(**annotations: str) -> Document:
    """The mirror of a static pod on ``n1``."""
    mirrored = {"kubernetes.io/config.mirror": "x", **annotations}
    metadata = {"namespace": "kube-system", "name": "proxy", "annotations": mirrored}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}


def leaving(documents: list[Document]) -> list[Document]:
    """The documents, of which the pods are on their way out."""
    times = {"deletionTimestamp": "2026-11-21T12:00:00Z", "deletionGracePeriodSeconds": 30}
    return [
        {**each, "metadata": {**each["metadata"], **times}} if each["kind"] == "Pod" else each for each in documents
    ]


UNDISRUPTED = {"karpenter.sh/do-not-disrupt": "true"}
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
KEPT: dict[str, tuple[list[Document], list[AutoscalerRule]]] = {
    "nothing keeps a pod of a controller": (pod_of("web"), []),
    "safe-to-evict is false": (
        annotated(pod_of("web"), "web-old-a", **{SAFE: "false"}),
        [AutoscalerRule.NOT_SAFE_TO_EVICT],
    ),
    "do-not-disrupt": (
        annotated(pod_of("web"), "web-old-a", **UNDISRUPTED),
        [AutoscalerRule.DO_NOT_DISRUPT],
    ),
    "do-not-disrupt on a pod of a DaemonSet": (
        annotated(running(workload("DaemonSet", "logs"), ["n1"]), "logs-a", **UNDISRUPTED),
        [AutoscalerRule.DO_NOT_DISRUPT],
    ),
    "do-not-disrupt on a static pod": ([static(**UNDISRUPTED)], [AutoscalerRule.DO_NOT_DISRUPT]),
    "static pods keep no node": ([static()], []),
    "do-not-disrupt on a pod that is leaving": (leaving(annotated(pod_of("web"), "web-old-a", **UNDISRUPTED)), []),
    "a folder of the node": (
        pod_of("web", pod={"volumes": [{"name": "host", "hostPath": {"path": "/var"}}]}),
        [AutoscalerRule.LOCAL_STORAGE],
    ),
    "an emptyDir": (pod_of("web", pod={"volumes": [{"name": "tmp", "emptyDir": {}}]}), [AutoscalerRule.LOCAL_STORAGE]),
    "an emptyDir in memory is no local storage": (
        pod_of("web", pod={"volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory"}}]}),
        [],
    ),
    "an emptyDir that is said to be safe": (
        annotated(
            pod_of("web", pod={"volumes": [{"name": "tmp", "emptyDir": {}}]}),
            "web-old-a",
            **{f"{SAFE}-local-volumes": "log,tmp"},
        ),
        [],
    ),
    "safe-to-evict outweighs local storage": (
        annotated(pod_of("web", pod={"volumes": [{"name": "tmp", "emptyDir": {}}]}), "web-old-a", **{SAFE: "true"}),
        [],
    ),
    "pods of DaemonSets keep no node": (
        running(workload("DaemonSet", "logs", pod={"volumes": [{"name": "tmp", "emptyDir": {}}]}), ["n1"]),
        [],
    ),
}


@pytest.mark.parametrize(("pods", "rules"), KEPT.values(), ids=KEPT)
def test_a_node_is_kept_by_the_rules_of_autoscalers(pods: list[Document], rules: list[AutoscalerRule]) -> None:
    drain = drained([*nodes(2, "4"), *pods], "n1 --ignore-daemonsets --delete-emptydir-data --force", removes=True)
    assert [each.rule for each in drain.removals[0].blocking_pods] == rules
    assert drain.removals[0].is_removable is not bool(rules)


def test_nodes_are_drained_in_parallel_while_all_pods_fit() -> None:
    cluster = [*nodes(4), *deployment("web", ["n1", "n2"]), *deployment("api", ["n3", "n3", "n4"], cpu="500m")]
    drain = drained(cluster, "n1 n2 n3 n4", removes=True)
    assert [each.node for each in drain.removals if each.is_removable] == ["n1", "n2"]
    assert {each.blocker for each in drain.removals if not each.is_removable} == {RemovalBlocker.PENDING}
    assert [each.node for each in drain.drained] == ["n1", "n2"]
    assert drain.finishes and drain.pending_after == 0


def test_pods_of_workloads_that_kueue_admitted_are_reported_and_block_no_drain() -> None:
    plain = [*nodes(2, "4"), *deployment("web", ["n1", "n1", "n2"]), budget("web", maxUnavailable=1)]
    admitted = [
        each
        if each["kind"] != "Pod"
        else {**each, "metadata": {**each["metadata"], "labels": {**each["metadata"]["labels"], PODSET: "main"}}}
        for each in plain
    ]
    before, drain = drained(plain, "n1"), drained(admitted, "n1")
    (found,) = [each for each in drain.assumptions if each not in before.assumptions]
    assert found.kind is AssumptionKind.INFORMATIONAL
    assert found.message.startswith("shop/web-old-a and 1 more are pods of Workloads admitted by Kueue: ")
    assert before.passed and drain.passed
