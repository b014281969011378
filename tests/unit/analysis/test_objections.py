"""Which APIs go with which version, and what keeps the pods of a rollout."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kpreempt.analysis.check.gate import StaticFinding
from kpreempt.analysis.check.protection import ProtectionRules
from kpreempt.analysis.check.rollout.records import Plan, PlannedWorkload, Reset
from kpreempt.analysis.check.static_findings import check_manifests
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.verdict.check import Change, ChangeKind
from kpreempt.verdict.simulation import SimulatedWorkload, Simulation
from tests.unit.analysis.gate.simulations import simulation

BUDGET = "PodDisruptionBudget shop/db"
APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        }
    }
}


def plan_of(*workloads: PlannedWorkload) -> Plan:
    return Plan(changes=[], workloads=list(workloads), pods=[], deleted_pods=[], cluster=ClusterSnapshot())


def objections_of(plan: Plan, apis: dict[str, str], versions: list[str], simulated: Simulation) -> list[StaticFinding]:
    cluster = ClusterSnapshot()
    return check_manifests(plan, apis, versions, cluster, simulated, ProtectionRules(cluster, plan), {})


@pytest.mark.parametrize(
    ("subject", "api", "versions", "is_reported"),
    [
        pytest.param(BUDGET, "policy/v1beta1", ["v1.24.3"], True, id="the next version does not serve it"),
        pytest.param(BUDGET, "policy/v1beta1", ["v1.36.0"], True, id="this one does not either"),
        pytest.param(BUDGET, "policy/v1beta1", ["v1.23.3"], False, id="the next version serves it"),
        pytest.param(BUDGET, "policy/v1", ["v1.36.0"], False, id="a stable one"),
        pytest.param(BUDGET, "policy/v1beta1", ["", "kube-1.36"], True, id="without a version that of the algorithm"),
        pytest.param(BUDGET, "policy/v1beta1", ["", "volcano-1.8"], False, id="no version of Kubernetes"),
        pytest.param("Ingress shop/a", "extensions/v1beta1", ["v1.20.0"], False, id="served until 1.21"),
        pytest.param("Deployment shop/a", "extensions/v1beta1", ["v1.20.0"], True, id="gone with 1.16"),
        pytest.param("CSIDriver a", "storage.k8s.io/v1beta1", ["v1.21.0"], True, id="a kind of a group"),
        pytest.param("Widget a", "storage.k8s.io/v1beta1", ["v1.21.0"], False, id="another kind of the group"),
    ],
)
def test_an_api_that_the_next_version_does_not_serve(
    subject: str, api: str, versions: list[str], is_reported: bool
) -> None:
    found = objections_of(plan_of(), {subject: api}, versions, simulation())
    assert [each.subject for each in found] == [subject] * is_reported


def rolled(kind: str, *, spec: dict[str, Any], pod: dict[str, Any], is_same: bool = False) -> PlannedWorkload:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    return PlannedWorkload(
        change=Change(object=f"{kind} shop/web", kind=ChangeKind.ROLLED),
        kind=kind,
        namespace="shop",
        name="web",
        before={"kind": kind},
        after={"kind": kind, "spec": {**spec, "template": template}},
        is_same_template=is_same,
    )


@pytest.mark.parametrize(
    ("workload", "is_done", "words"),
    [
        pytest.param(rolled("Deployment", spec={"paused": True}, pod={}), False, "paused", id="a pause"),
        pytest.param(
            rolled("DaemonSet", spec={"updateStrategy": {"type": "OnDelete"}}, pod={}), True, "OnDelete", id="OnDelete"
        ),
        pytest.param(
            rolled("StatefulSet", spec={"updateStrategy": {"rollingUpdate": {"partition": 2}}}, pod={}),
            True,
            "partition 2 keeps all pods on the old template",
            id="a partition",
        ),
        pytest.param(
            rolled("StatefulSet", spec={"updateStrategy": {"rollingUpdate": {"partition": 0}}}, pod={}),
            True,
            "",
            id="a partition of none",
        ),
        pytest.param(
            rolled("StatefulSet", spec={"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 1}}}, pod={}),
            True,
            "partition 1 keeps the first pod on the old template",
            id="a partition that some pods are above",
        ),
        pytest.param(
            rolled("DaemonSet", spec={"updateStrategy": {"type": "OnDelete"}}, pod={}, is_same=True),
            True,
            "",
            id="the template stays",
        ),
        pytest.param(rolled("Deployment", spec={}, pod=APART), True, "", id="apart, and through"),
        pytest.param(rolled("Deployment", spec={}, pod={}), False, "", id="stuck for another reason"),
    ],
)
def test_what_keeps_old_pods(workload: PlannedWorkload, is_done: bool, words: str) -> None:
    state = SimulatedWorkload(workload=workload.change.object, is_changed=True, is_done=is_done)
    found = objections_of(plan_of(workload), {}, [], simulation(workloads=[state]))
    assert len(found) == bool(words)
    assert all(words in each.detail for each in found)


@pytest.mark.parametrize(
    ("current", "written", "words"),
    [
        (
            4,
            2,
            "set 4 replicas, but the manifest sets 2; applying it deletes 2 pods; the autoscaler then recreates them",
        ),
        (
            2,
            1,
            "set 2 replicas, but the manifest sets 1; applying it deletes 1 pod; the autoscaler then recreates it",
        ),
        (
            2,
            5,
            "set 2 replicas, but the manifest sets 5; applying it creates 3 pods; the autoscaler then deletes them",
        ),
    ],
    ids=["fewer", "one fewer", "more"],
)
def test_what_is_taken_from_an_autoscaler(current: int, written: int, words: str) -> None:
    reset = Reset("Deployment shop/web", "HorizontalPodAutoscaler shop/h", current, written)
    plan = msgspec.structs.replace(plan_of(), resets=[reset])
    (found,) = objections_of(plan, {}, [], simulation())
    assert (found.rule.value, found.subject) == ("autoscaled-replicas", "Deployment shop/web")
    assert found.detail == f"HorizontalPodAutoscaler shop/h {words}"
