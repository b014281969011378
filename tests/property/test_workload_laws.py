"""All pods of a workload in sequence: decisions with a cache equal those without."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import HealthCheck, assume, event, given, reject, settings
from hypothesis import strategies as st

from kpreempt.analysis.workload.answer import capacity_answer, workload_answer
from kpreempt.analysis.workload.in_cluster import WorkloadInput, copies_of
from kpreempt.analysis.workload.placing import Placed, Placing, last_branch
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube import scheduler as kube_scheduler
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import Outcome
from kpreempt.verdict.workload import ReplicaScope
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.strategies import Object, scenarios
from tests.strategies_whole import whole_scenarios

MANY = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
# Rich ones use cross-node constraints, the others use the cache.
APPS = ("a", "b", "c")


@st.composite
def crowded(draw: st.DrawFn) -> Object:
    """Nodes full of evictable pods of a few workloads with spread constraints, and budgets for these."""
    num_nodes = draw(st.integers(2, 6))
    objects: list[Object] = []
    for index in range(num_nodes):
        labels = {"kubernetes.io/hostname": f"n{index}", "zone": draw(st.sampled_from("xy"))}
        amounts = {"cpu": str(draw(st.integers(2, 5))), "memory": "8Gi", "pods": "20"}
        metadata: Object = {"name": f"n{index}", "labels": labels}
        objects.append({"kind": "Node", "metadata": metadata, "status": {"allocatable": amounts, "capacity": amounts}})
        for number in range(draw(st.integers(0, 4))):
            pod = pod_document(f"p{index}-{number}", draw(st.sampled_from(APPS)), draw(st.integers(0, 3)), "1")
            pod["spec"]["nodeName"] = f"n{index}"
            pod["status"] = {"phase": "Running"}
            if draw(st.booleans()):
                pod["status"]["startTime"] = f"2026-01-0{draw(st.integers(1, 3))}T00:00:00Z"
            objects.append(pod)
    if draw(st.integers(0, 4)) == 0:
        waiting = pod_document("waiting", "a", draw(st.sampled_from((5, 10, 20))), "1")
        waiting["status"] = {"phase": "Pending", "nominatedNodeName": "n0"}
        objects.append(waiting)
    for app in draw(st.lists(st.sampled_from(APPS), unique=True)):
        allowed = draw(st.integers(0, 3))
        spec = {"selector": {"matchLabels": {"app": app}}, "maxUnavailable": allowed}
        status = {"disruptionsAllowed": allowed, "currentHealthy": 10, "desiredHealthy": 10 - allowed}
        status["expectedPods"] = 10
        metadata = {"name": app, "namespace": "default"}
        objects.append({"kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec, "status": status})
    pod = pod_document("new", "web", 10, draw(st.sampled_from(("500m", "1", "2", "3"))))
    other: Object = draw(
        st.sampled_from(({}, {}, {"hostNetwork": True}, SPREAD, {"affinity": {"podAntiAffinity": REQUIRED}}))
    )
    pod["spec"] |= other
    return {"objects": objects, "pod": pod}


def pod_document(name: str, app: str, priority: int, cpu: str) -> Object:
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "priority": priority, "schedulerName": "default-scheduler"}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {"app": app}}
    return {"kind": "Pod", "metadata": metadata, "spec": spec}


_WEB = {"matchLabels": {"app": "web"}}
SPREAD = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": _WEB}
    ]
}
REQUIRED = {
    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname", "labelSelector": _WEB}]
}
ANY_SCENARIO = (
    crowded() | crowded() | scenarios(max_pods=8) | scenarios(rich=False, max_nodes=6, max_pods=8) | whole_scenarios()
)


class Case:
    """A scheduler, a cluster and equal pods."""

    def __init__(self, scenario: Object, number: int) -> None:
        self.scheduler = KubeScheduler(behavior=gates_of(scenario.get("featureGates")))
        self.cluster: ClusterSnapshot = cluster_of(scenario["objects"])
        pod = pod_of(scenario["pod"])
        if pod.spec.node_name or pod.is_terminal:
            reject()
        taken = {each.key for each in self.cluster.pods}
        self.pods: list[Pod] = [pod, *islice(copies_of(pod, taken), number - 1)]

    def placing(self, *, remembers: bool, first: bool = True) -> Placing:
        prepared = self.scheduler.prepare(self.cluster, now=NOW, expects_equivalent_pods=remembers)
        extra = {} if first else {"choose": last_branch}
        return Placing(self.cluster, self.scheduler, prepared, NOW, **extra, remembers=remembers)


def reported(placed: list[Placed]) -> list[object]:
    """Everything reported about the pods; steps are those of the best candidates."""
    return [
        (each.pod.key, each.branch, each.victims, each.violating, each.ties, each.is_open, each.rejected, each.verdict)
        for each in placed
    ]


@MANY
@given(ANY_SCENARIO, st.integers(2, 7), st.booleans(), st.booleans())
def test_cached_decisions_hold_for_each_replica(scenario: Object, number: int, at_once: bool, first: bool) -> None:
    case = Case(scenario, number)
    with patch.object(kube_scheduler, "MIN_PODS_OF_TABLE", 0 if at_once else 10**9):
        remembered = list(case.placing(remembers=True, first=first).place(case.pods))
        plain = list(case.placing(remembers=False, first=first).place(case.pods))
    event(f"{sum(bool(each.victims) for each in plain)} preempt")
    assert reported(remembered) == reported(plain)


@pytest.mark.parametrize("min_pods_of_table", [0, 10**9], ids=["at once", "one by one"])
def test_what_a_victim_takes_from_a_budget_is_missing_on_a_node_that_was_tried_before(min_pods_of_table: int) -> None:
    objects: list[Object] = []
    for name in ("n0", "n1", "n2"):
        amounts = {"cpu": "1", "memory": "8Gi", "pods": "20"}
        status = {"allocatable": amounts, "capacity": amounts}
        objects.append({"kind": "Node", "metadata": {"name": name, "labels": {}}, "status": status})
        pod = pod_document(f"on-{name}", "a", 0, "1")
        pod["spec"]["nodeName"] = name
        pod["status"] = {"phase": "Running", "startTime": f"2026-01-0{3 - int(name[1])}T00:00:00Z"}
        objects.append(pod)
    spec = {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": 1}
    allows_two = {"disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3}
    metadata = {"name": "a", "namespace": "default"}
    objects.append({"kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec, "status": allows_two})
    case = Case({"objects": objects, "pod": pod_document("new", "web", 10, "1")}, 3)
    with patch.object(kube_scheduler, "MIN_PODS_OF_TABLE", min_pods_of_table):
        placed = list(case.placing(remembers=True).place(case.pods))
    seen = [{one.node: one.num_pdb_violations for one in each.verdict.candidates} for each in placed if each.verdict]
    assert seen == [{"n0": 0, "n1": 0, "n2": 0}, {"n1": 0, "n2": 0}, {"n2": 1}]


@MANY
@given(crowded() | scenarios(max_pods=4) | whole_scenarios())
def test_nodes_that_are_filled_one_by_one_hold_what_the_scheduler_would_put_there(scenario: Object) -> None:
    case = Case(scenario, 40)
    prepared = case.scheduler.prepare(case.cluster, now=NOW, expects_equivalent_pods=True)
    room = case.scheduler.capacity_of_nodes(prepared, case.pods[0], 1000)
    assume(room is not None and sum(room.values()) < len(case.pods))
    landed: Counter[str] = Counter()
    for each in case.placing(remembers=False).place(case.pods):
        if each.verdict is None or each.branch is None or each.verdict.outcome is not Outcome.LANDS:
            break
        landed[each.branch.node] += 1
    capacity = capacity_answer(case.cluster, case.pods[0], case.scheduler, prepared, now=NOW)
    event(f"{min(capacity.pods, 5)} fit")
    assert {each.node: each.pods for each in capacity.nodes} == dict(landed)
    assert capacity.pods == landed.total()


@MANY
@given(ANY_SCENARIO, st.integers(1, 5))
def test_every_replica_counts_once_and_no_pod_is_evicted_twice(scenario: Object, number: int) -> None:
    case = Case(scenario, number)
    prepared = case.scheduler.prepare(case.cluster, now=NOW, expects_equivalent_pods=True)
    workload_input = WorkloadInput(workload="Pod a/b", scope=ReplicaScope.NEW, pods=case.pods)
    answer, _ = workload_answer(case.cluster, workload_input, case.scheduler, prepared, now=NOW)
    totals = answer.totals
    assert totals.lands + totals.preempts + totals.pending + totals.uncertain + totals.rejected == number
    assert sum(each.replicas for each in answer.nodes) == totals.lands + totals.preempts
    assert sum(each.replicas for each in answer.pending) == number - totals.lands - totals.preempts
    victims = [victim for each in answer.items for victim in each.victims]
    assert len(victims) == len(set(victims)) == totals.evictions
    assert not set(victims) & {pod.key for pod in case.pods}
    assert len({victim for each in answer.items for victim in each.violating}) == totals.violations
    assert msgspec.json.decode(msgspec.json.encode(answer), type=type(answer)) == answer
