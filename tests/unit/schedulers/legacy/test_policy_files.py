"""Policy files: which predicates then run in each version, what of them is not modelled, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.errors import ConfigurationError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.verdict import Verdict
from tests.factories import NOW, make_node, make_pod

OLD = ("kube-1.8", "kube-1.13", "kube-1.18")


def decide(algorithm: str, node: Node, policy: dict[str, Any], **settings: Any) -> Verdict:
    scheduler = scheduler_for(algorithm, policy=policy, **settings)
    return scheduler.decide(scheduler.prepare(ClusterSnapshot(nodes=[node]), now=NOW), make_pod("p", cpu="9"))


def reasons(algorithm: str, node: Node, policy: dict[str, Any], **settings: Any) -> list[str]:
    return decide(algorithm, node, policy, **settings).filter["n1"].reasons


def named(*names: str, **more: Any) -> dict[str, Any]:
    return {"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": name} for name in names], **more}


def own(name: str, **argument: Any) -> dict[str, Any]:
    return {"predicates": [{"name": name, "argument": argument}]}


RETIRING = {"labels": ["retiring"], "presence": False}


@pytest.mark.parametrize("algorithm", OLD)
@pytest.mark.parametrize(
    ("policy", "runs"),
    [
        pytest.param(named("GeneralPredicates"), True, id="a predicate that is named runs"),
        pytest.param(named("PodFitsResources"), True, id="so does a part of GeneralPredicates"),
        pytest.param(named("NoDiskConflict"), False, id="what is not named does not run"),
        pytest.param(named(), False, id="an empty list leaves the mandatory ones"),
    ],
)
def test_predicates_that_are_named_run(algorithm: str, policy: dict[str, Any], runs: bool) -> None:
    assert reasons(algorithm, make_node("n1"), policy) == (["Insufficient cpu"] if runs else [])


@pytest.mark.parametrize(
    ("algorithm", "runs"),
    [
        pytest.param("kube-1.8", False, id="1.8 takes a missing list for an empty one"),
        pytest.param("kube-1.13", True, id="1.13 takes its default predicates"),
        pytest.param("kube-1.18", True, id="so does 1.18"),
    ],
)
def test_policy_without_predicates(algorithm: str, runs: bool) -> None:
    assert reasons(algorithm, make_node("n1"), {"predicates": None}) == (["Insufficient cpu"] if runs else [])


@pytest.mark.parametrize(
    ("algorithm", "gates", "reason"),
    [
        pytest.param("kube-1.8", {}, "NodeUnschedulable", id="1.8: CheckNodeCondition"),
        pytest.param("kube-1.8", {"TaintNodesByCondition": True}, None, id="1.8 with taints: taints alone"),
        pytest.param("kube-1.13", {}, "node(s) were unschedulable", id="1.13: CheckNodeUnschedulable"),
        pytest.param(
            "kube-1.13", {"TaintNodesByCondition": False}, "node(s) were unschedulable", id="1.13: CheckNodeCondition"
        ),
        pytest.param("kube-1.18", {}, "node(s) were unschedulable", id="1.18: CheckNodeUnschedulable"),
    ],
)
def test_mandatory_predicates_run_unnamed(algorithm: str, gates: dict[str, bool], reason: str | None) -> None:
    node = make_node("n1", unschedulable=True)
    assert reasons(algorithm, node, named(), feature_gates=gates) == ([reason] if reason else [])


@pytest.mark.parametrize(
    ("algorithm", "name", "reason"),
    [
        pytest.param("kube-1.8", "NotRetiring", "CheckNodeLabelPresence", id="1.8"),
        pytest.param("kube-1.13", "CheckNodeLabelPresence", "node(s) didn't have the requested labels", id="1.13"),
        pytest.param("kube-1.13", "HostName", "node(s) didn't have the requested labels", id="1.13 in another's place"),
        pytest.param("kube-1.13", "NotRetiring", None, id="1.13 never runs what has no place in its order"),
        pytest.param("kube-1.18", "NotRetiring", "node(s) didn't have the requested labels", id="1.18"),
        pytest.param("kube-1.18", "CheckNodeLabelPresence", None, id="1.18 reads no argument of a name that it has"),
    ],
)
def test_labels_that_a_node_is_not_to_have(algorithm: str, name: str, reason: str | None) -> None:
    verdict = decide(algorithm, make_node("n1", labels={"retiring": "soon"}), own(name, labelsPresence=RETIRING))
    assert verdict.filter["n1"].reasons == ([reason] if reason else [])
    assert not verdict.potential_nodes
    assert decide(algorithm, make_node("n1"), own(name, labelsPresence=RETIRING)).filter["n1"].is_success


def test_all_predicates_are_checked_where_the_policy_says_so() -> None:
    node = make_node("n1", unschedulable=True)
    policy = named("GeneralPredicates")
    assert reasons("kube-1.13", node, policy) == ["node(s) were unschedulable"]
    everything = policy | {"alwaysCheckAllPredicates": True}
    assert reasons("kube-1.13", node, everything) == ["node(s) were unschedulable", "Insufficient cpu"]


EXTENDER = {"urlPrefix": "https://me:secret@extender.example/v1", "filterVerb": "f", "preemptVerb": "p", "weight": 1}


@pytest.mark.parametrize(
    ("algorithm", "power"),
    [
        pytest.param("kube-1.8", "including the node chosen for preemption", id="1.8 asks about the chosen node"),
        pytest.param("kube-1.13", "change their victims", id="1.13 asks before the choice"),
        pytest.param("kube-1.18", "change their victims", id="1.18 asks before the choice"),
    ],
)
def test_an_extender_is_an_assumption_that_says_what_it_could_change(algorithm: str, power: str) -> None:
    assumptions = decide(algorithm, make_node("n1"), {"extenders": [EXTENDER]}).assumptions
    [about] = [each.message for each in assumptions if each.subject == "Policy"]
    assert power in about
    assert "https://extender.example/v1" in about
    assert "secret" not in about


def test_priorities_are_recognised_and_said_not_to_count() -> None:
    policy = {"priorities": [{"name": "LeastRequestedPriority", "weight": 1}]}
    assert [each.field for each in decide("kube-1.13", make_node("n1"), policy).assumptions] == ["priorities"]


BINDER = EXTENDER | {"bindVerb": "b"}


@pytest.mark.parametrize(
    ("algorithm", "policy", "message"),
    [
        pytest.param(
            "kube-1.8",
            named("CheckVolumeBinding"),
            "Invalid configuration: Predicate type not found for CheckVolumeBinding",
            id="a predicate of a later version",
        ),
        pytest.param(
            "kube-1.13",
            named("CheckNodeCondition"),
            "Invalid configuration: Predicate type not found for CheckNodeCondition",
            id="a predicate that taints have replaced",
        ),
        pytest.param(
            "kube-1.18",
            named("CheckNodeCondition"),
            'Invalid configuration: Predicate type not found for "CheckNodeCondition"',
            id="1.18 puts names in quotes",
        ),
        pytest.param(
            "kube-1.13",
            {"priorities": [{"name": "Nicest", "weight": 1}]},
            "Invalid configuration: Priority type not found for Nicest",
            id="no such priority",
        ),
        pytest.param(
            "kube-1.8",
            {"priorities": [{"name": "EqualPriority"}, {"name": "ImageLocalityPriority"}]},
            "[Priority EqualPriority should have a positive weight applied to it or it has overflown, "
            "Priority ImageLocalityPriority should have a positive weight applied to it or it has overflown]",
            id="two without a weight",
        ),
        pytest.param(
            "kube-1.13",
            own("HostName", labelsPresence=RETIRING, serviceAffinity={"labels": ["zone"]}),
            "Exactly 1 predicate argument is required, numArgs: 2, Predicate: HostName",
            id="two arguments",
        ),
        pytest.param(
            "kube-1.13",
            own("-", labelsPresence=RETIRING),
            'Algorithm name - does not match the name validation regexp "^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])$".',
            id="a name that cannot be one",
        ),
        pytest.param(
            "kube-1.8",
            {"extenders": [EXTENDER | {"weight": 0}]},
            "Priority for extender https://extender.example/v1 should have a positive weight applied to it",
            id="1.8: an extender without a weight",
        ),
        pytest.param(
            "kube-1.18",
            {"extenders": [EXTENDER | {"weight": 0, "prioritizeVerb": "s"}]},
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
            id="1.18: an extender without a weight",
        ),
        pytest.param(
            "kube-1.13",
            {"extenders": [BINDER, BINDER]},
            "Only one extender can implement bind, found 2",
            id="two extenders that bind",
        ),
        pytest.param(
            "kube-1.13",
            {"hardPodAffinitySymmetricWeight": 101},
            "invalid hardPodAffinitySymmetricWeight: 101, must be in the range 1-100",
            id="a weight that is too high",
        ),
        pytest.param(
            "kube-1.18",
            {"hardPodAffinitySymmetricWeight": -1},
            "hardPodAffinitySymmetricWeight: Invalid value: -1: not in valid range [0-100]",
            id="1.18: a weight that is too low",
        ),
        pytest.param(
            "kube-1.18",
            {"predicate": []},
            'invalid policy: strict decoder error: unknown field "predicate"',
            id="1.18 refuses unknown fields",
        ),
        pytest.param(
            "kube-1.13",
            {"kind": "Pod", "apiVersion": "v1"},
            'invalid policy: no kind "Pod" is registered for version "v1"',
            id="another kind of object",
        ),
        pytest.param(
            "kube-1.13",
            {"predicates": [{"name": 1}]},
            "invalid policy: Expected `str`, got `int` - at `$.predicates[0].name`",
            id="a field of another type",
        ),
    ],
)
def test_refused_as_the_scheduler_refuses_it(algorithm: str, policy: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        scheduler_for(algorithm, policy=policy)
    assert refused.value.message == message


@pytest.mark.parametrize("algorithm", OLD)
def test_service_affinity_is_refused_and_not_left_out(algorithm: str) -> None:
    with pytest.raises(ConfigurationError, match="serviceAffinity is not modeled"):
        scheduler_for(algorithm, policy=own("InOneZone", serviceAffinity={"labels": ["zone"]}))


def test_a_field_that_there_is_not_is_passed_over_before_1_18() -> None:
    [assumption] = decide("kube-1.13", make_node("n1"), {"predicate": []}).assumptions
    assert assumption.field == "predicate"


def test_todays_scheduler_reads_no_policy() -> None:
    with pytest.raises(UsageError, match="reads no Policy file"):
        scheduler_for(policy={})


@pytest.mark.parametrize("algorithm", ["kube-1.13", "kube-1.18"])
def test_preemption_is_switched_off_by_the_configuration(algorithm: str) -> None:
    configuration = {
        "kind": "KubeSchedulerConfiguration",
        "apiVersion": "kubescheduler.config.k8s.io/v1alpha1",
        "disablePreemption": True,
    }
    scheduler = scheduler_for(algorithm, configuration)
    cluster = ClusterSnapshot(nodes=[make_node("n1")], pods=[make_pod("q", node="n1", cpu="4")])
    verdict = scheduler.decide(scheduler.prepare(cluster, now=NOW), make_pod("p", cpu="4", priority=9))
    assert verdict.eligibility is not None
    assert not verdict.eligibility.eligible
    with pytest.raises(ConfigurationError, match="is registered for version"):
        scheduler_for(algorithm, configuration | {"apiVersion": "kubescheduler.config.k8s.io/v1"})


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        pytest.param({"provider": "DefaultProvider"}, [], id="the default provider is what is modelled"),
        pytest.param({"provider": "ClusterAutoscalerProvider"}, ["algorithmSource.provider"], id="the other one"),
        pytest.param(
            {"policy": {"file": {"path": "/etc/p"}}}, ["algorithmSource.policy"], id="a Policy is not fetched"
        ),
        pytest.param("DefaultProvider", ["algorithmSource"], id="of another type"),
    ],
)
def test_a_source_in_the_configuration_is_said_not_to_be_read(source: object, fields: list[str]) -> None:
    scheduler = scheduler_for("kube-1.13", {"kind": "KubeSchedulerConfiguration", "algorithmSource": source})
    verdict = scheduler.decide(scheduler.prepare(ClusterSnapshot(), now=NOW), make_pod("p"))
    assert [each.field for each in verdict.assumptions] == fields
