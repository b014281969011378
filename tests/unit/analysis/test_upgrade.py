"""What an upgrade changes for pods, how sure that is, and which change of Kubernetes does it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kpreempt.admission import complete_cluster
from kpreempt.analysis.algorithms import pending_pods
from kpreempt.analysis.compare.upgrade import (
    ExplainInputs,
    compare_upgrade,
    effect_of,
    keeps_workloads,
    next_pods,
    outcomes_of,
    parse_version,
    stored_by,
    versions_between,
)
from kpreempt.analysis.explain.pods import ExplainInput
from kpreempt.analysis.pod_inputs import pod_in_cluster
from kpreempt.errors import ConfigurationError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.snapshot.decode import decode_object
from kpreempt.snapshot.load import load_snapshot
from kpreempt.verdict import (
    Alternatives,
    Candidate,
    Odds,
    OddsOutcome,
    Outcome,
    PodChoice,
    PodSummary,
    PossibleOutcome,
    Sampling,
    SearchOrder,
    Verdict,
)
from kpreempt.verdict.compare import Certainty, UpgradeComparison, UpgradeEffect
from tests.factories import LATER_VERSION, NOW

FIXTURES = Path(__file__).parents[3] / "fixtures" / "versions"


def upgraded(
    name: str, before: str, after: str, configuration: dict[str, Any] | None = None, **gates: bool
) -> UpgradeComparison:
    cluster, _ = complete_cluster(load_snapshot([str(FIXTURES / f"{name}.yaml")]).cluster)
    requested = ExplainInputs(cluster, [ExplainInput(pod=pod) for pod in pending_pods(cluster)])
    return compare_upgrade([requested], versions_between(f"kube-{before}", after, configuration, gates), now=NOW)


def reported(answer: UpgradeComparison) -> list[tuple[str, UpgradeEffect, Certainty, list[str]]]:
    return [(item.pod, item.effect, item.certainty, item.causes) for item in answer.items]


def verdict(outcome: Outcome = Outcome.LANDS, nodes: Sequence[str] = ("a",), **changes: Any) -> Verdict:
    return Verdict(
        algorithm="kube",
        outcome=outcome,
        pod=PodSummary("ns", "p"),
        feasible_nodes=list(nodes),
        lands_on=list(nodes),
        **changes,
    )


def evicts(node: str, *victims: str, **changes: Any) -> Verdict:
    return Verdict(
        algorithm="kube",
        outcome=Outcome.PREEMPTS,
        pod=PodSummary("ns", "p"),
        candidates=[Candidate(node, list(victims))],
        nominated_nodes=[node],
        **changes,
    )


NEVER = Verdict(algorithm="kube", outcome=Outcome.UNSCHEDULABLE, pod=PodSummary("ns", "p"))
UNCERTAIN = Verdict(algorithm="kube", outcome=Outcome.UNCERTAIN, pod=PodSummary("ns", "p"))
SAMPLED = Sampling(200, 100, 42)
DRAWN = Odds(SearchOrder.ANY, 10, [OddsOutcome(["a"], 0.9), OddsOutcome(["b"], 0.1)], 16, 1)
EITHER = Alternatives([PossibleOutcome("a", [], [PodChoice(1, ["x", "y"])])])
INEXACT = Alternatives([PossibleOutcome("a", ["x"])], exact=False)


@pytest.mark.parametrize(
    ("base", "target", "certainty"),
    [
        pytest.param(verdict(), verdict(), None, id="the same node"),
        pytest.param(verdict(), verdict(nodes=["b"]), Certainty.CERTAIN, id="another node"),
        pytest.param(verdict(nodes=["a", "b"]), verdict(nodes=["b", "a"]), None, id="the same nodes by chance"),
        pytest.param(verdict(nodes=["a", "b"]), verdict(), Certainty.POSSIBLE, id="one of the nodes of before"),
        pytest.param(verdict(nodes=["a", "b"]), verdict(nodes=["c"]), Certainty.CERTAIN, id="none of those of before"),
        pytest.param(verdict(), verdict(nodes=["b"], sampling=SAMPLED), Certainty.POSSIBLE, id="not all are scored"),
        pytest.param(
            verdict(sampling=SAMPLED, scores={"a": 9, "b": 7, "c": 1}),
            verdict(sampling=SAMPLED, scores={"a": 9, "b": 4, "c": 3}),
            None,
            id="ranks alike, so that it does not matter which are scored",
        ),
        pytest.param(
            verdict(sampling=SAMPLED, scores={"a": 9, "b": 7, "c": 1}),
            verdict(sampling=SAMPLED, scores={"a": 9, "b": 1, "c": 7}),
            Certainty.POSSIBLE,
            id="ranks otherwise those that may be all that are scored",
        ),
        pytest.param(verdict(sampling=SAMPLED), NEVER, Certainty.CERTAIN, id="lands nowhere, whatever was scored"),
        pytest.param(NEVER, NEVER, None, id="neither lands"),
        pytest.param(verdict(), evicts("a", "x"), Certainty.CERTAIN, id="on the same node, but by evicting"),
        pytest.param(evicts("a", "x", "y"), evicts("a", "y", "x"), None, id="the same victims in another order"),
        pytest.param(evicts("a", "x"), evicts("a", "y"), Certainty.CERTAIN, id="another victim"),
        pytest.param(evicts("a", "x"), evicts("a", "y", alternatives=EITHER), Certainty.POSSIBLE, id="x may go, too"),
        pytest.param(evicts("a", "z"), evicts("a", "y", alternatives=EITHER), Certainty.CERTAIN, id="z surely stays"),
        pytest.param(evicts("a", "z"), evicts("a", "x", alternatives=INEXACT), Certainty.POSSIBLE, id="orders untried"),
        pytest.param(evicts("a", "x", odds=DRAWN), evicts("b", "y"), Certainty.POSSIBLE, id="a search that ends early"),
        pytest.param(UNCERTAIN, verdict(), Certainty.UNKNOWN, id="one is not known"),
        pytest.param(UNCERTAIN, UNCERTAIN, Certainty.UNKNOWN, id="neither is known"),
    ],
)
def test_a_difference_is_certain_only_where_nothing_that_may_happen_is_the_same(
    base: Verdict, target: Verdict, certainty: Certainty | None
) -> None:
    assert outcomes_of(base).difference_to(outcomes_of(target)) is certainty
    assert outcomes_of(target).difference_to(outcomes_of(base)) is certainty


@pytest.mark.parametrize(
    ("base", "target", "effect"),
    [
        (verdict(), verdict(nodes=["b"]), UpgradeEffect.LANDS_ELSEWHERE),
        (verdict(), NEVER, UpgradeEffect.NO_LONGER_LANDS),
        (evicts("a", "x"), NEVER, UpgradeEffect.NO_LONGER_LANDS),
        (NEVER, verdict(), UpgradeEffect.LANDS_NOW),
        (NEVER, evicts("a", "x"), UpgradeEffect.EVICTS),
        (verdict(), evicts("a", "x"), UpgradeEffect.EVICTS),
        (evicts("a", "x"), verdict(), UpgradeEffect.EVICTS_NO_PODS),
        (UNCERTAIN, verdict(), UpgradeEffect.UNKNOWN),
    ],
)
def test_what_becomes_otherwise_of_a_pod(base: Verdict, target: Verdict, effect: UpgradeEffect) -> None:
    assert effect_of(base, target) is effect


@pytest.mark.parametrize(
    ("name", "before", "after", "effect"),
    [
        ("pod-level-resources", "1.33", "1.34", UpgradeEffect.NO_LONGER_LANDS),
        ("node-declared-features", "1.35", "1.36", UpgradeEffect.LANDS_ELSEWHERE),
        ("stops-at-violated-budget", "1.36", "1.37", UpgradeEffect.EVICTS),
        ("default-plugins", "1.30", "1.31", UpgradeEffect.LANDS_NOW),
        # With more changes between the two, it is still this one.
        ("default-plugins", "1.29", "1.37", UpgradeEffect.LANDS_NOW),
        ("node-declared-features", "1.32", "1.37", UpgradeEffect.LANDS_ELSEWHERE),
    ],
)
def test_the_change_that_makes_the_difference_is_named(
    name: str, before: str, after: str, effect: UpgradeEffect
) -> None:
    answer = upgraded(name, before, after)
    assert reported(answer) == [("shop/new", effect, Certainty.CERTAIN, [name])]
    assert [(change.name, bool(change.source)) for change in answer.changes] == [(name, True)]
    assert [(group.causes, group.pods) for group in answer.groups] == [([name], ["shop/new"])]
    assert (answer.compared, answer.differing, answer.passes) == (1, 1, False)


def test_changes_that_only_together_make_the_difference_are_all_named() -> None:
    # What is allocated to a container counts in 1.37 even where its status says nothing of its cgroups; in 1.32 no
    # resize counts, and with the gate alone what the cgroups say.
    node = decode_object("Node", {"metadata": {"name": "worker"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}})
    shrinking = _pod("shrinking", "1", node="worker", statuses=[{"name": "main", "allocatedResources": {"cpu": "3"}}])
    cluster = ClusterSnapshot(nodes=[node], pods=[shrinking])  # type: ignore[list-item]
    requested = ExplainInputs(cluster, [ExplainInput(pod=_pod("new", "2"))])
    answer = compare_upgrade([requested], versions_between("kube-1.32", "1.37"), now=NOW)
    together = ["compares-resizes-by-pod", "follows-actuated-resources-alone", "in-place-pod-vertical-scaling"]
    assert [(item.pod, sorted(item.causes)) for item in answer.items] == [("shop/new", together)]
    assert sorted(change.name for change in answer.changes) == together


def test_pods_that_cannot_be_distinguished_are_each_reported() -> None:
    cluster, _ = complete_cluster(load_snapshot([str(FIXTURES / "pod-level-resources.yaml")]).cluster)
    (pod,) = pending_pods(cluster)
    names = [f"new-{number}" for number in range(5)]
    same = [msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, name=name)) for name in names]
    requested = ExplainInputs(cluster, [ExplainInput(pod=each) for each in same])
    answer = compare_upgrade([requested], versions_between("kube-1.33", "1.34"), now=NOW)
    assert [item.pod for item in answer.items] == [f"shop/{name}" for name in names]
    assert answer.groups[0].pods == [f"shop/{name}" for name in names]


def _pod(name: str, cpu: str, *, node: str = "", statuses: Sequence[dict[str, Any]] = (), **metadata: Any) -> Pod:
    pod = decode_object(
        "Pod",
        {
            "metadata": {"name": name, "namespace": "shop", **metadata},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
            },
            "status": {"phase": "Running" if node else "Pending", "containerStatuses": list(statuses)},
        },
    )
    assert isinstance(pod, Pod)
    return pod


def test_a_difference_that_chance_may_make_is_a_possible_one() -> None:
    answer = upgraded("counts-image-volumes", "1.35", "1.36")
    cause = ["counts-image-volumes"]
    assert reported(answer) == [("shop/new", UpgradeEffect.LANDS_ELSEWHERE, Certainty.POSSIBLE, cause)]
    assert (answer.differing, answer.possibly_differing, answer.passes) == (0, 1, False)


def test_what_one_version_does_not_report_is_unknown() -> None:
    cluster = load_snapshot([str(FIXTURES / "dynamic-resource-allocation.yaml")]).cluster
    claims = [msgspec.structs.replace(each, unread_fields=["spec.new"]) for each in cluster.resource_claims]
    cluster = msgspec.structs.replace(cluster, resource_claims=claims)
    requested = ExplainInputs(cluster, [ExplainInput(pod=pod) for pod in pending_pods(cluster)])
    answer = compare_upgrade([requested], versions_between("kube-1.33", "1.34"), now=NOW)
    assert reported(answer) == [("shop/new", UpgradeEffect.UNKNOWN, Certainty.UNKNOWN, [])]
    assert (answer.undecided, answer.passes, answer.groups) == (1, False, [])


def test_words_alone_are_no_difference() -> None:
    answer = upgraded("reports-preemption", "1.36", "1.37")
    assert (answer.items, answer.compared, answer.passes) == ([], 1, True)


def test_a_gate_that_both_have_set_makes_no_difference() -> None:
    assert upgraded("pod-level-resources", "1.33", "1.34", PodLevelResources=False).passes


def test_a_configuration_counts_in_both_and_in_between() -> None:
    most = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}}}],
    }
    assert not upgraded("scores-change-of-balance", "1.35", "1.36").passes
    assert upgraded("scores-change-of-balance", "1.35", "1.36", most).passes
    assert reported(upgraded("node-declared-features", "1.35", "1.36", most))[0][3] == ["node-declared-features"]


def test_a_configuration_that_the_newer_version_refuses_is_said() -> None:
    named = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": {"enabled": [{"name": "CinderLimits"}]}}}],
    }
    with pytest.raises(ConfigurationError):
        upgraded("default-plugins", "1.30", "1.32", named)


@pytest.mark.parametrize("text", ["1.35", "v1.35", "kube-1.35", " 1.35 "])
def test_a_version_may_be_written_as_others_write_it(text: str) -> None:
    assert parse_version(text) == "1.35"
    assert parse_version("v1.34.1") == "1.34.1"


@pytest.mark.parametrize("text", ["", "1", "1.28", LATER_VERSION, "latest", "kube-1.13"])
def test_a_version_that_is_not_modeled_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_version(text)


@pytest.mark.parametrize(("before", "after"), [("1.36", "1.35"), ("1.35", "1.35"), ("1.35.5", "1.35")])
def test_an_upgrade_goes_to_a_newer_version(before: str, after: str) -> None:
    with pytest.raises(UsageError, match="not newer"):
        versions_between(f"kube-{before}", after)


def _workload(kind: str, name: str, *, template: bool = True, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    made: dict[str, Any] = {
        "metadata": {"labels": labels},
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            "resources": {"requests": {"cpu": "3"}},
        },
    }
    return {
        "apiVersion": "batch/v1" if kind in ("Job", "CronJob") else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": labels}, **({"template": made} if template else {}), **spec},
    }


def _owned(name: str, kind: str, owner: str, node: str = "worker", api_version: str = "apps/v1") -> Pod:
    reference = {"apiVersion": api_version, "kind": kind, "name": owner, "controller": True, "uid": "u"}
    return _pod(name, "1", node=node, ownerReferences=[reference])


def _selected_pods(documents: list[dict[str, Any]], *pods: Pod) -> tuple[list[str], list[str]]:
    """The compared pods, each with the number of pods in its cluster, and the assumptions' subjects."""
    node = decode_object(
        "Node",
        {"metadata": {"name": "worker"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}},
    )
    records: dict[str, list[Any]] = {}
    for each in documents:
        if each["kind"] != "CronJob":
            records.setdefault(each["kind"], []).append(decode_object(each["kind"], each))
    cluster = ClusterSnapshot(
        nodes=[node],  # type: ignore[list-item]
        pods=list(pods),
        deployments=records.get("Deployment", []),
        stateful_sets=records.get("StatefulSet", []),
        daemon_sets=records.get("DaemonSet", []),
        jobs=records.get("Job", []),
    )
    requested, assumptions = next_pods(cluster, documents, decode_object, now=NOW, settings=KubeScheduler().settings)
    found = [f"{q.origin or q.pod.key} beside {len(each.cluster.pods)}" for each in requested for q in each.inputs]
    return found, [each.subject for each in assumptions]


@pytest.mark.parametrize(
    ("documents", "pods", "requested", "untold"),
    [
        ([_workload("Deployment", "web")], [], ["Deployment shop/web beside 0"], []),
        (
            [_workload("StatefulSet", "db")],
            [_owned("db-0", "StatefulSet", "db"), _owned("db-1", "StatefulSet", "db")],
            ["StatefulSet shop/db beside 1"],
            [],
        ),
        (
            [_workload("DaemonSet", "logs")],
            [_owned("logs-x", "DaemonSet", "logs"), _pod("other", "1", node="worker")],
            ["DaemonSet shop/logs beside 1"],
            [],
        ),
        ([_workload("Job", "one")], [], ["Job shop/one beside 0"], []),
        ([{**_workload("Job", "one"), "status": {"conditions": [{"type": "Complete", "status": "True"}]}}], [], [], []),
        (
            [_workload("CronJob", "nightly", template=False, jobTemplate={"spec": _workload("Job", "n")["spec"]})],
            [],
            ["CronJob shop/nightly beside 0"],
            [],
        ),
        # As in a dump that kpreempt wrote: no template, but a pod.
        (
            [_workload("StatefulSet", "db", template=False)],
            [_owned("db-0", "StatefulSet", "db")],
            ["StatefulSet shop/db beside 0"],
            [],
        ),
        ([], [_owned("web-x", "ReplicaSet", "web")], ["ReplicaSet shop/web beside 1"], []),
        ([_workload("Deployment", "idle", template=False)], [], [], ["Deployment shop/idle"]),
        ([], [_owned("game", "GameServer", "game", api_version="agones.dev/v1")], [], ["GameServer shop/game"]),
        ([], [_owned("mirror", "Node", "worker", api_version="v1")], [], []),
    ],
    ids=[
        "a template",
        "a StatefulSet's pod comes in the place of its first",
        "a DaemonSet's comes when its others are gone",
        "a Job",
        "a Job that has ended",
        "a CronJob",
        "without a template, as the newest pod",
        "of a ReplicaSet alone",
        "neither a template nor a pod",
        "a controller that is not Kubernetes'",
        "a static pod has no controller",
    ],
)
def test_the_next_pod_of_every_workload(
    documents: list[dict[str, Any]], pods: list[Pod], requested: list[str], untold: list[str]
) -> None:
    assert _selected_pods(documents, *pods) == (requested, untold)


def test_workloads_are_kept_that_nothing_else_controls() -> None:
    owned = {"name": "web-1", "ownerReferences": [{"kind": "Deployment", "name": "web", "controller": True}]}
    assert keeps_workloads("Deployment", decode_object("Deployment", {"metadata": {"name": "web"}}))
    assert keeps_workloads("ReplicaSet", decode_object("ReplicaSet", {"metadata": {"name": "web"}}))
    assert not keeps_workloads("ReplicaSet", decode_object("ReplicaSet", {"metadata": owned}))
    assert not keeps_workloads("Pod", decode_object("Pod", {"metadata": {"name": "web"}}))


def test_a_new_pod_is_what_the_api_server_of_each_version_makes_of_it() -> None:
    loaded = load_snapshot([str(FIXTURES / "match-label-keys-in-pod-affinity.yaml")]).cluster
    found = pod_in_cluster(loaded, "new", "shop")
    versions = versions_between("kube-1.30", "1.31")
    stored = ExplainInput(pod=found.pod)
    new = ExplainInput(
        pod=stored_by(versions.base, ExplainInput(pod=found.pod, manifest=found.pod), loaded), manifest=found.pod
    )
    assert compare_upgrade([ExplainInputs(found.cluster, [stored])], versions, now=NOW).differing == 0
    (item,) = compare_upgrade([ExplainInputs(found.cluster, [new])], versions, now=NOW).items
    assert item.causes == ["match-label-keys-in-pod-affinity"]
