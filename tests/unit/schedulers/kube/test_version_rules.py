"""What each version does otherwise where no recorded verdict of it shows it: patch releases, and neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kpreempt.errors import ConfigurationError, UsageError
from kpreempt.schedulers.kube.configuration import scheduler_from_configuration
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.verdict import AssumptionKind, Outcome, Verdict
from tests.conformance.cases import NOW, cluster_of, pod_of, read_lines
from tests.conformance.test_recorded_versions import VERSIONS

_PREFIX = "version-"
SCENARIOS = {each["name"].removeprefix(_PREFIX): each for each in read_lines(VERSIONS / "extra.jsonl.gz")}


def verdict_of(scenario: str, version: str, gates: dict[str, bool] | None = None) -> Verdict:
    """What a version decides on a scenario that was made for a difference."""
    given = SCENARIOS[scenario]
    scheduler = KubeScheduler(behavior=behavior(version, gates))
    prepared = scheduler.prepare(cluster_of(given["objects"]), now=NOW, is_queued=given.get("queued", False))
    return scheduler.decide(prepared, pod_of(given["pod"]))


def nominated(verdict: Verdict) -> list[str]:
    return verdict.nominated_nodes


def feasible(verdict: Verdict) -> list[str]:
    return verdict.feasible_nodes


def first_reason(verdict: Verdict) -> str:
    return verdict.message.partition(": ")[2].partition(".")[0].partition(",")[0]


def score(plugin: str) -> Callable[[Verdict], list[int | None]]:
    return lambda verdict: [scores.get(plugin) for scores in verdict.plugin_scores.values()]


@pytest.mark.parametrize(
    ("scenario", "look", "before", "after"),
    [
        pytest.param("victims-sorted-again", nominated, ("1.29.10", ["n0"]), ("1.29.11", ["n1"]), id="victims, 1.29"),
        pytest.param("victims-sorted-again", nominated, ("1.30.6", ["n0"]), ("1.30.7", ["n1"]), id="victims, 1.30"),
        pytest.param("victims-sorted-again", nominated, ("1.31.2", ["n0"]), ("1.31.3", ["n1"]), id="victims, 1.31"),
        pytest.param(
            "taint-words",
            first_reason,
            ("1.34.1", "1 node(s) had untolerated taint {dedicated: a}"),
            ("1.34.2", "2 node(s) had untolerated taint(s)"),
            id="taints",
        ),
        pytest.param(
            "sidecar-hostport", feasible, ("1.33.5", ["n0", "n1"]), ("1.33.6", ["n1"]), id="host ports of sidecars"
        ),
        pytest.param("in-tree-ebs-limit", feasible, ("1.30", []), ("1.31", ["n0"]), id="in-tree volume limits"),
        pytest.param("attach-limit-in-allocatable", feasible, ("1.31", []), ("1.32", ["n0"]), id="limits of nodes"),
        pytest.param("volume-attachment-counts", feasible, ("1.31", ["n0"]), ("1.32", []), id="attachments"),
        pytest.param("spread-same-key", feasible, ("1.32", ["n0"]), ("1.33", []), id="spread counts"),
        pytest.param("resize-sidecar", feasible, ("1.32", ["n0"]), ("1.33", []), id="resizes count"),
        pytest.param("declared-features", feasible, ("1.35", ["n0", "n1"]), ("1.36", ["n1"]), id="declared features"),
        pytest.param("init-image", score("ImageLocality"), ("1.29", [0, 0]), ("1.30", [21, 0]), id="init images"),
        pytest.param("sidecar-score", score("NodeResourcesFit"), ("1.31", [71, 62]), ("1.32", [52, 62]), id="sidecars"),
        pytest.param(
            "best-effort-pod",
            score("NodeResourcesBalancedAllocation"),
            ("1.32", [68, 100]),
            ("1.33", [None, None]),
            id="balance of best effort",
        ),
        pytest.param(
            "balanced-before-after",
            score("NodeResourcesBalancedAllocation"),
            ("1.35", [81, 87]),
            ("1.36", [81, 68]),
            id="change of balance",
        ),
    ],
)
def test_a_change_parts_two_releases(
    scenario: str, look: Callable[[Verdict], Any], before: tuple[str, Any], after: tuple[str, Any]
) -> None:
    assert look(verdict_of(scenario, before[0])) == before[1]
    assert look(verdict_of(scenario, after[0])) == after[1]


@pytest.mark.parametrize(
    ("version", "reasons", "potential"),
    [
        pytest.param("1.29.5", "1 Insufficient cpu.", ["n0", "n1", "n2"], id="tried"),
        pytest.param("1.29.6", "1 Insufficient cpu.", ["n0"], id="left out"),
        pytest.param(
            "1.30.1", "1 Insufficient cpu, 2 node is filtered out by the prefilter result.", ["n0"], id="told apart"
        ),
        pytest.param("1.30.2", "1 Insufficient cpu.", ["n0"], id="not told"),
        pytest.param(
            "1.32", "1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity].", ["n0"], id="told"
        ),
    ],
)
def test_nodes_that_pre_filter_leaves_out(version: str, reasons: str, potential: list[str]) -> None:
    verdict = verdict_of("absent-nodes", version)
    assert verdict.message == f"0/3 nodes are available: {reasons}"
    assert verdict.potential_nodes == potential


@pytest.mark.parametrize(("version", "code"), [("1.29.6", "Unschedulable"), ("1.30.6", "UnschedulableAndUnresolvable")])
def test_plugins_that_leave_no_node_between_them(version: str, code: str) -> None:
    status = verdict_of("local-pv-against-node-name", version).pre_filter
    assert status is not None
    assert status.code == code
    assert status.reasons == ["node(s) didn't satisfy plugin(s) [NodeAffinity VolumeBinding] simultaneously"]


def test_the_hostnames_of_a_local_volume_are_labels_since_they_were_mended() -> None:
    assert verdict_of("local-pv-against-node-name", "1.29.11").pre_filter is None


def test_a_release_that_sends_the_preemptors_status_may_fail_and_says_so() -> None:
    kinds = {
        version: [each.kind for each in verdict_of("victims-sorted-again", version).assumptions]
        for version in ("1.30.4", "1.30.5")
    }
    assert kinds["1.30.5"] == []
    own = SCENARIOS["victims-sorted-again"]
    requests = own["pod"]["spec"]["containers"][0]["resources"]
    assert kinds["1.30.4"] == ([] if "limits" not in requests else [AssumptionKind.UNCERTAIN])


@pytest.mark.parametrize(("gate", "first"), [(True, "clearNomination"), (False, "setCondition")])
def test_lower_nominations_go_after_the_victims_where_preemption_waits(gate: bool, first: str) -> None:
    given = SCENARIOS["preemption-words"]
    victim = next(each for each in given["objects"] if each["kind"] == "Pod")
    lower = {
        **victim,
        "metadata": {**victim["metadata"], "name": "lower", "uid": "lower"},
        "spec": {**{key: value for key, value in victim["spec"].items() if key != "nodeName"}, "priority": 1},
        "status": {"phase": "Pending", "nominatedNodeName": verdict_of("preemption-words", "1.36").nominated_nodes[0]},
    }
    scheduler = KubeScheduler(behavior=behavior("1.36", {"SchedulerAsyncPreemption": gate}))
    prepared = scheduler.prepare(cluster_of([*given["objects"], lower]), now=NOW)
    actions = [each.action for each in scheduler.decide(prepared, pod_of(given["pod"])).effects]
    assert actions[0] == first
    assert actions.count("clearNomination") == 1


def test_the_message_of_a_success_names_the_node_of_the_effects() -> None:
    verdict = verdict_of("spread-same-key", "1.37")
    assert verdict.nominated_nodes == ["n0", "n1"]
    assert verdict.message.endswith("found a potential placement for pod on node n1, preempting 1 victims")
    assert [each.text for each in verdict.effects if each.action == "nominate"] == ["status.nominatedNodeName=n1"]


def test_a_score_of_nothing_is_there_in_the_first_version_alone() -> None:
    for version, idle in (("1.29", {"NodeAffinity": 0, "VolumeBinding": 0}), ("1.30", {})):
        scores = verdict_of("best-effort-pod", version).plugin_scores["n0"]
        assert {name: scores[name] for name in ("NodeAffinity", "VolumeBinding") if name in scores} == idle


def test_the_forerunner_of_storage_scores_prefers_full_volumes() -> None:
    on = {"VolumeCapacityPriority": True}
    assert score("VolumeBinding")(verdict_of("static-binding-score", "1.32", on)) == [10, 100]
    assert score("VolumeBinding")(verdict_of("static-binding-score", "1.37")) == [90, 0]


def _configured(version: str, profile: dict[str, Any]) -> KubeScheduler:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    return scheduler_from_configuration(document, version=version)


@pytest.mark.parametrize(
    ("version", "profile", "reason"),
    [
        pytest.param(
            "1.32",
            {"plugins": {"multiPoint": {"enabled": [{"name": "EBSLimits"}]}}},
            '"EBSLimits" does not exist',
            id="a plugin that is gone",
        ),
        pytest.param(
            "1.31",
            {"plugins": {"filter": {"enabled": [{"name": "EBSLimits"}]}}},
            'was invalid in version "v1"',
            id="a plugin that may not be named",
        ),
        pytest.param(
            "1.34",
            {"plugins": {"multiPoint": {"enabled": [{"name": "NodeDeclaredFeatures"}]}}},
            '"NodeDeclaredFeatures" does not exist',
            id="a plugin that is yet to come",
        ),
        pytest.param(
            "1.35",
            {"plugins": {"placementScore": {"enabled": [{"name": "A"}]}}},
            'unknown field "profiles[0].plugins.placementScore"',
            id="an extension point that is yet to come",
        ),
        pytest.param(
            "1.34",
            {"pluginConfig": [{"name": "DynamicResources", "args": {"bindingTimeout": "5s"}}]},
            'unknown field "bindingTimeout"',
            id="an argument that is yet to come",
        ),
    ],
)
def test_a_version_refuses_what_it_does_not_have(version: str, profile: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        _configured(version, profile)
    assert reason in raised.value.message


def test_a_version_takes_what_later_ones_refuse() -> None:
    enabled = {"plugins": {"filter": {"enabled": [{"name": "EBSLimits"}]}}}
    assert "EBSLimits" in _configured("1.30", enabled).profiles[0].enabled_names


@pytest.mark.parametrize(
    ("version", "gates", "reason"),
    [
        pytest.param("1.34", {"NodeDeclaredFeatures": True}, "unrecognized feature gate: Node", id="yet to come"),
        pytest.param("1.37", {"SidecarContainers": True}, "unrecognized feature gate: SidecarContainers", id="gone"),
        pytest.param(
            "1.37", {"DRAExtendedResource": False}, "cannot set feature gate DRAExtendedResource", id="locked"
        ),
    ],
)
def test_a_gate_is_refused_by_the_versions_own_list(version: str, gates: dict[str, bool], reason: str) -> None:
    with pytest.raises(UsageError) as raised:
        scheduler_from_configuration(None, gates, version=version)
    assert reason in raised.value.message


def test_gates_need_others_only_since_that_is_checked() -> None:
    gates = {"PodLevelResources": False, "InPlacePodLevelResourcesVerticalScaling": True}
    with pytest.raises(UsageError):
        scheduler_from_configuration(None, gates, version="1.35")
    assert scheduler_from_configuration(None, {"DRAAdminAccess": True}, version="1.32").assumptions


def test_a_gate_that_is_locked_by_now_is_reported_where_it_could_be_set() -> None:
    (assumption,) = scheduler_from_configuration(None, {"PodSchedulingReadiness": False}, version="1.29").assumptions
    assert assumption.field == "feature gate PodSchedulingReadiness"


def test_without_conditions_any_pod_that_is_leaving_is_waited_for() -> None:
    given = SCENARIOS["terminating-words"]
    leaving = [each for each in given["objects"] if each["metadata"].get("deletionTimestamp")]
    assert leaving
    silent = [
        {**each, "status": {**each["status"], "conditions": []}} if each in leaving else each
        for each in given["objects"]
    ]
    for gate, may in ((True, True), (False, False)):
        scheduler = KubeScheduler(behavior=behavior("1.30", {"PodDisruptionConditions": gate}))
        prepared = scheduler.prepare(cluster_of(silent), now=NOW)
        eligibility = scheduler.decide(prepared, pod_of(given["pod"])).eligibility
        assert eligibility is not None
        assert eligibility.eligible is may


def test_an_outcome_that_depends_on_the_order_of_budgets_is_reported() -> None:
    given = SCENARIOS["budgets-overlap"]
    cluster = cluster_of(given["objects"])

    unordered = msgspec.structs.replace(cluster, has_scheduler_order=False)
    scheduler = KubeScheduler(behavior=behavior("1.37"))
    verdict = scheduler.decide(scheduler.prepare(unordered, now=NOW), pod_of(given["pod"]))
    assert "PodDisruptionBudgets" in [each.subject for each in verdict.assumptions]
    assert verdict.outcome != Outcome.UNSCHEDULABLE


@pytest.mark.parametrize(("version", "score"), [("1.32", 50), ("1.33", 97)])
def test_requests_of_a_whole_pod_in_the_score_of_fit(version: str, score: int) -> None:
    pod = {"kind": "Pod", "metadata": {"name": "new"}, "spec": {"containers": [{"name": "main"}]}}
    pod["spec"]["resources"] = {"requests": {"cpu": "2", "memory": "4Gi"}}  # type: ignore[index]
    scheduler = KubeScheduler(behavior=behavior(version, {"PodLevelResources": True}))
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    node = {"kind": "Node", "metadata": {"name": "worker"}, "status": {"allocatable": room}}
    verdict = scheduler.decide(scheduler.prepare(cluster_of([node]), now=NOW), pod_of(pod))

    assert verdict.plugin_scores["worker"]["NodeResourcesFit"] == score


@pytest.mark.parametrize(
    ("version", "allocatable", "fits"),
    [
        pytest.param("1.34", {}, True, id="not listed, left to devices"),
        pytest.param("1.34", {"hugepages-2Mi": "0"}, False, id="listed with nothing"),
        pytest.param("1.35", {}, False, id="no device class stands for it"),
    ],
)
def test_huge_pages_next_to_devices_for_extended_resources(
    version: str, allocatable: dict[str, str], *, fits: bool
) -> None:
    room = {"cpu": "4", "memory": "8Gi", "pods": "10", **allocatable}
    requests = {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi"}
    container = {"name": "main", "resources": {"requests": requests, "limits": requests}}
    pod = {"kind": "Pod", "metadata": {"name": "new"}, "spec": {"containers": [container]}}
    scheduler = KubeScheduler(behavior=behavior(version, {"DRAExtendedResource": True}))
    node = {"kind": "Node", "metadata": {"name": "worker"}, "status": {"allocatable": room}}
    verdict = scheduler.decide(scheduler.prepare(cluster_of([node]), now=NOW), pod_of(pod))

    assert (verdict.feasible_nodes == ["worker"]) is fits
