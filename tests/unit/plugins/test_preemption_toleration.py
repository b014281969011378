"""PreemptionToleration: the cases of upstream's own tests (v0.34.7), and whole verdicts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from kpreempt.errors import ConfigurationError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import ObjectMeta
from kpreempt.model.pod import Pod, PodCondition
from kpreempt.model.policy import PriorityClass
from kpreempt.plugins import NodeToStatus
from kpreempt.plugins.examples.preemption_toleration import (
    MINIMUM_PREEMPTABLE_PRIORITY,
    TOLERATION_SECONDS,
    Policy,
    PreemptionToleration,
    PreemptionTolerationArgs,
    policy_of,
)
from kpreempt.verdict import Outcome, Verdict
from tests.factories import NOW, make_node, make_pod
from tests.unit.plugins.running import PluginRun, cluster_of, decide_with, scheduler_with, victims_of

CLASSES = "PriorityClass.scheduling.k8s.io"


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, Policy(2, 0), id="by default whoever has a higher priority, at once"),
        pytest.param({MINIMUM_PREEMPTABLE_PRIORITY: "100", TOLERATION_SECONDS: "10"}, Policy(100, 10), id="both"),
        pytest.param({MINIMUM_PREEMPTABLE_PRIORITY: "a"}, None, id="a priority that is no number"),
        pytest.param({TOLERATION_SECONDS: "a"}, None, id="seconds that are no number"),
        pytest.param({MINIMUM_PREEMPTABLE_PRIORITY: "100", TOLERATION_SECONDS: "-1"}, Policy(100, -1), id="for good"),
        pytest.param({MINIMUM_PREEMPTABLE_PRIORITY: "+7"}, Policy(7, 0), id="a plus"),
        pytest.param({MINIMUM_PREEMPTABLE_PRIORITY: " 7"}, None, id="a space, which Go refuses"),
        pytest.param({MINIMUM_PREEMPTABLE_PRIORITY: "1_000"}, None, id="an underscore, which Go refuses"),
        pytest.param({MINIMUM_PREEMPTABLE_PRIORITY: "٣"}, None, id="other digits, which Go refuses"),
        pytest.param({MINIMUM_PREEMPTABLE_PRIORITY: ""}, None, id="nothing"),
        pytest.param({MINIMUM_PREEMPTABLE_PRIORITY: str(2**31)}, None, id="more than 32 bits"),
        pytest.param({TOLERATION_SECONDS: str(2**63)}, None, id="more than 64 bits"),
        pytest.param({TOLERATION_SECONDS: "9" * 100_000}, None, id="a number of many digits"),
        pytest.param({TOLERATION_SECONDS: 5}, None, id="no text"),
    ],
)
def test_the_policy_of_a_class(annotations: dict[str, Any], expected: Policy | None) -> None:
    assert policy_of(1, annotations) == expected


def priority_class(value: int, annotations: Any = None) -> tuple[PriorityClass, dict[str, Any]]:
    metadata: dict[str, Any] = {"name": "dummy"}
    if annotations is not None:
        metadata["annotations"] = annotations
    document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value}
    return PriorityClass(metadata=ObjectMeta(name="dummy"), value=value), document


def victim(priority: int, *, scheduled: datetime | None = None, status: str = "True", name: str = "dummy") -> Pod:
    pod = make_pod("victim", node="node-a", cpu="1", priority=priority, priority_class_name=name)
    if scheduled is None:
        return pod
    condition = PodCondition(type="PodScheduled", status=status, last_transition_time=scheduled)
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=[condition]))


def cluster(pod: Pod, *known: tuple[PriorityClass, dict[str, Any]], others: tuple[Pod, ...] = ()) -> ClusterSnapshot:
    return cluster_of(
        [make_node("node-a", cpu="1")],
        [pod, *others],
        documents={CLASSES: [document for _, document in known]},
        priority_classes=[record for record, _ in known],
    )


def decide(on: ClusterSnapshot, priority: int, **more: Any) -> Verdict:
    return decide_with(PreemptionToleration, on, make_pod("incoming", cpu="1", priority=priority, **more))


def policy(seconds: int | str | None = None, minimum: int | str = 200) -> dict[str, str]:
    annotations = {MINIMUM_PREEMPTABLE_PRIORITY: str(minimum)}
    return annotations if seconds is None else annotations | {TOLERATION_SECONDS: str(seconds)}


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("annotations", "pod", "priority", "is_spared"),
    [
        pytest.param(policy("a", 10), victim(1), 2, False, id="seconds that are no number"),
        pytest.param(policy(None, "a"), victim(1), 2, False, id="a priority that is no number"),
        pytest.param(None, victim(1), 2, False, id="a class without a policy"),
        pytest.param(policy(-1), victim(100, scheduled=NOW), 201, False, id="above the minimum"),
        pytest.param(policy(-1), victim(100, scheduled=NOW), 200, False, id="at the minimum"),
        pytest.param(policy(0), victim(100, scheduled=NOW), 199, False, id="no time at all"),
        pytest.param(policy(-1), victim(100, scheduled=ago(10**9)), 199, True, id="for good"),
        pytest.param(policy(100), victim(100, scheduled=ago(101)), 199, False, id="for a time that is over"),
        pytest.param(policy(100), victim(100, scheduled=ago(100)), 199, False, id="for a time that is just over"),
        pytest.param(policy(100), victim(100, scheduled=ago(99.5)), 199, True, id="for a time that is nearly over"),
        pytest.param(policy(100), victim(100, scheduled=ago(10)), 199, True, id="for a while"),
        pytest.param(policy(100), victim(100), 199, True, id="a pod of which nobody says when it was scheduled"),
        pytest.param(policy(100), victim(100, scheduled=ago(999), status="False"), 199, True, id="one that is not yet"),
        pytest.param(policy(300 * 365 * 86400), victim(100, scheduled=NOW), 199, False, id="for 300 years"),
        pytest.param(policy(-1), victim(100, name=""), 199, False, id="a pod without a class"),
    ],
)
def test_who_is_spared(annotations: dict[str, str] | None, pod: Pod, priority: int, is_spared: bool) -> None:
    known = priority_class(pod.priority, annotations)
    verdict = decide(cluster(pod, known), priority)
    assert victims_of(verdict) == ({} if is_spared else {"node-a": ["victim"]})
    if is_spared:
        assert verdict.dry_run["node-a"].message == "No victims found on node node-a for preemptor pod incoming"
        assert "preemption: " not in verdict.message


def test_a_pod_that_is_spared_stays_and_another_goes() -> None:
    other = make_pod("other", node="node-a", cpu="500m", priority=150)
    spared = make_pod("spared", node="node-a", cpu="500m", priority=100, priority_class_name="dummy")
    on = cluster(spared, priority_class(100, policy(-1)), others=(other,))
    verdict = decide_with(PreemptionToleration, on, make_pod("incoming", cpu="500m", priority=199))
    assert victims_of(verdict) == {"node-a": ["other"]}


def test_nothing_warns_of_a_nomination_that_protects_nothing() -> None:
    verdict = decide(cluster(victim(1), priority_class(1)), 2)
    assert verdict.outcome == Outcome.PREEMPTS
    assert not [each for each in verdict.assumptions if "protects nothing" in each.message]


def test_a_missing_class_ends_the_dry_run_of_its_node_only() -> None:
    on = cluster_of(
        [make_node("node-a", cpu="1"), make_node("node-b", cpu="1")],
        [victim(1), make_pod("plain", node="node-b", cpu="1", priority=1)],
    )
    verdict = decide(on, 2)
    assert victims_of(verdict) == {"node-b": ["plain"]}
    assert verdict.dry_run["node-a"].message == 'priorityclass.scheduling.k8s.io "dummy" not found'


def test_a_missing_class_is_the_answer_where_no_other_node_helps() -> None:
    verdict = decide(cluster(victim(1)), 2)
    assert verdict.outcome == Outcome.UNSCHEDULABLE
    assert 'priorityclass.scheduling.k8s.io "dummy" not found' in verdict.message


def test_a_class_without_its_document_tolerates_nothing() -> None:
    record, _ = priority_class(1)
    on = msgspec.structs.replace(cluster(victim(1)), priority_classes=[record])
    assert victims_of(decide(on, 2)) == {"node-a": ["victim"]}


def test_the_classes_of_the_system_are_known_anyway() -> None:
    on = cluster(victim(1, name="system-node-critical"))
    assert victims_of(decide(on, 2_000_002_000)) == {"node-a": ["victim"]}


def test_annotations_that_are_none_end_in_an_error_that_names_the_class() -> None:
    verdict = decide(cluster(victim(1), priority_class(1, ["not", "a", "map"])), 2)
    assert verdict.outcome == Outcome.UNSCHEDULABLE
    assert "PriorityClass dummy: metadata.annotations is not an object" in verdict.message


@pytest.mark.parametrize(
    ("priority", "filtered", "reason"),
    [
        pytest.param(5, "Unschedulable", "not eligible due to a terminating pod on the nominated node.", id="lower"),
        pytest.param(9, "Unschedulable", "", id="as important"),
    ],
)
def test_a_pod_waits_for_a_terminating_less_important_one_whatever_deleted_it(
    priority: int, filtered: str, reason: str
) -> None:
    going = victim(priority)
    going = msgspec.structs.replace(
        going, metadata=msgspec.structs.replace(going.metadata, deletion_timestamp=datetime(2026, 11, 20, tzinfo=UTC))
    )
    verdict = decide(cluster(going, priority_class(priority)), 9, nominated="node-a")
    assert verdict.eligibility is not None
    assert verdict.eligibility.reason == reason


def test_a_pod_that_never_preempts_is_not_eligible() -> None:
    requested = make_pod("incoming", cpu="1", priority=9, preemption_policy="Never")
    setting = PluginRun(PreemptionToleration, cluster(victim(1)), requested)
    eligibility = setting.plugin.eligibility(setting.state, requested, NodeToStatus())
    assert eligibility.reason == "not eligible due to preemptionPolicy=Never."


@pytest.mark.parametrize(
    ("args", "num_nodes", "expected"),
    [
        pytest.param({}, 5000, 500, id="a tenth by default"),
        pytest.param({}, 500, 100, id="a hundred at least by default"),
        pytest.param({}, 50, 50, id="no more than there are"),
        pytest.param({"minCandidateNodesPercentage": 50, "minCandidateNodesAbsolute": 0}, 7, 3, id="rounded down"),
        pytest.param({"minCandidateNodesAbsolute": None}, 500, 100, id="null is the default"),
    ],
)
def test_how_many_candidates_are_enough(args: dict[str, Any], num_nodes: int, expected: int) -> None:
    plugin = PluginRun(PreemptionToleration, cluster(victim(1)), make_pod("p"), args).plugin
    assert plugin.num_candidates(num_nodes) == expected


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(
            {"minCandidateNodesPercentage": 101},
            "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
            id="more than all",
        ),
        pytest.param(
            {"minCandidateNodesAbsolute": -1},
            "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
            id="fewer than none",
        ),
        pytest.param(
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            "cannot be zero at the same time as minCandidateNodesAbsolute",
            id="none at all",
        ),
        pytest.param({"minCandidateNodes": 1}, "unknown field `minCandidateNodes`", id="another field"),
        pytest.param({"minCandidateNodesAbsolute": "1"}, "Expected `int | null`, got `str`", id="a text"),
    ],
)
def test_arguments_that_kube_scheduler_refuses(args: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match="decoding args for plugin PreemptionToleration") as refused:
        scheduler_with(PreemptionToleration, args)
    assert message in refused.value.message


def test_the_arguments_have_the_defaults_of_default_preemption() -> None:
    args = PreemptionTolerationArgs()
    assert (args.percentage, args.absolute) == (10, 100)
