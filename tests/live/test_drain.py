"""``kubectl drain`` ends as ``kpreempt drain`` predicted from the cluster just before."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import pytest

from kpreempt.cli.process import run
from kpreempt.cli.terminal import EXIT_GATE
from tests.live.patience import until
from tests.live.plane import ControlPlane, Object, program
from tests.live.plugin import environment, needs_kubectl
from tests.live.resting import Objects, at_rest, is_ready
from tests.live.rollout import Stage
from tests.live.rollout_prediction import disagreements

pytestmark = pytest.mark.live

PATIENCE_SECONDS = 120
DRAINED = "node-1"
# The name of a copy.
NEW = "node-1-new-1"


@dataclass(frozen=True)
class Scenario:
    """A cluster, group by group, of which ``node-1`` is drained with these options; ``says`` is in the rejections.

    The first pods are ``unready``. A ``newcomer`` is added first, and then ``node-1`` is deleted once it is empty.
    """

    groups: list[list[Object]]
    options: list[str] = field(default_factory=list)
    says: str = ""
    unready: int = 0
    newcomer: Object | None = None


def node(name: str, cpu: str = "4") -> Object:
    status = {key: {"cpu": cpu, "memory": "8Gi", "pods": "20"} for key in ("capacity", "allocatable")}
    metadata = {
        "name": name,
        "labels": {"kubernetes.io/hostname": name},
        "annotations": {"kwok.x-k8s.io/node": "fake"},
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status}


def template(name: str, cpu: str = "1", **spec: Any) -> Object:
    container = {"name": "main", "image": "main:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **spec},
    }


def workload(kind: str, name: str, replicas: int | None = None, cpu: str = "1", **pod: Any) -> Object:
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template(name, cpu, **pod)}
    spec |= {"replicas": replicas} if replicas is not None else {}
    spec |= {"serviceName": name} if kind == "StatefulSet" else {}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def budget(name: str, app: str, **spec: Any) -> Object:
    selector = {"matchLabels": {"app": app}}
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {**spec, "selector": selector},
    }


def bare(name: str) -> Object:
    metadata = {"name": name, "namespace": "default", "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template(name)["spec"]}


ONE, OTHER = node(DRAINED), node("node-2")
WEB = workload("Deployment", "web", 3)
STORE = {"volumes": [{"name": "scratch", "emptyDir": {}}]}
# On the drained node as long as it is the only one.
SCENARIOS = {
    "pods move": Scenario([[ONE, WEB], [OTHER]]),
    "a budget lets one go after the other": Scenario([[ONE, budget("web", "web", maxUnavailable=1), WEB], [OTHER]]),
    "a budget of a single replica blocks": Scenario(
        [[ONE, budget("web", "web", minAvailable=1), workload("Deployment", "web", 1)], [OTHER]],
        ["--timeout=12s"],
        "global timeout reached: 12s",
    ),
    "no room for what comes in their place": Scenario(
        [[ONE, budget("web", "web", maxUnavailable=1), WEB], [node("node-2", "1500m")]],
        ["--timeout=17s"],
        "global timeout reached: 17s",
    ),
    "a pod with two budgets": Scenario(
        [[ONE, budget("a", "web", maxUnavailable=1), budget("b", "web", maxUnavailable=1), WEB], [OTHER]],
        ["--timeout=12s"],
        "This pod has more than one PodDisruptionBudget",
    ),
    "budgets are not asked": Scenario(
        [[ONE, budget("web", "web", maxUnavailable=0), WEB], [OTHER]], ["--disable-eviction"]
    ),
    "a StatefulSet with a budget": Scenario(
        [[ONE, budget("db", "db", maxUnavailable=1), workload("StatefulSet", "db", 3)], [OTHER]]
    ),
    "pods of a DaemonSet are refused": Scenario(
        [[ONE, workload("DaemonSet", "agent")], [OTHER]], says="cannot delete DaemonSet-managed Pods"
    ),
    "pods of a DaemonSet stay": Scenario(
        [[ONE, workload("DaemonSet", "agent")], [WEB], [OTHER]], ["--ignore-daemonsets"]
    ),
    "local data is refused": Scenario(
        [[ONE, workload("Deployment", "web", 2, **STORE)], [OTHER]], says="cannot delete Pods with local storage"
    ),
    "local data goes": Scenario(
        [[ONE, workload("Deployment", "web", 2, **STORE)], [OTHER]], ["--delete-emptydir-data"]
    ),
    "a pod without a controller is refused": Scenario(
        [[ONE, WEB], [bare("notes")], [OTHER]], says="cannot delete Pods that declare no controller"
    ),
    "a pod without a controller is lost": Scenario([[ONE, WEB], [bare("notes")], [OTHER]], ["--force"]),
    "pods that are not ready always go": Scenario(
        [[ONE, budget("web", "web", maxUnavailable=1, unhealthyPodEvictionPolicy="AlwaysAllow"), WEB], [OTHER]],
        unready=2,
    ),
    "pods that are not ready go from a healthy budget": Scenario(
        [[ONE, budget("web", "web", maxUnavailable=1, unhealthyPodEvictionPolicy="IfHealthyBudget"), WEB], [OTHER]],
        unready=1,
    ),
    "pods that are not ready keep a budget blocked": Scenario(
        [[ONE, budget("web", "web", maxUnavailable=1, unhealthyPodEvictionPolicy="IfHealthyBudget"), WEB], [OTHER]],
        ["--timeout=12s"],
        "global timeout reached: 12s",
        unready=2,
    ),
    "a new node comes first": Scenario(
        [[ONE, budget("web", "web", maxUnavailable=1), WEB], [node("node-2", "500m")]],
        newcomer=node(NEW),
    ),
}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """A control plane with Kubernetes' own controllers and simulated kubelets, for one drain after the other."""
    needs_kubectl()
    with ControlPlane(program(), moving=True) as plane:
        yield Stage(plane)


def predict(plane: ControlPlane, options: list[str], folder: Path) -> dict[str, Any]:
    answer = folder / "drain.json"
    words = [DRAINED, "--kubeconfig", str(plane.kubeconfig), *options]
    assert run(["drain", *words, "-o", f"json={answer}"]) in (0, EXIT_GATE)
    drain: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    return drain


def kubectl_drain(plane: ControlPlane, options: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["kubectl", "drain", DRAINED, *options],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env=environment(plane.kubeconfig),
    )


def upgrade(plane: ControlPlane, scenario: Scenario) -> subprocess.CompletedProcess[str]:
    """Drain the node like a pool upgrade: the new one is added first, and the old one is deleted once it is empty."""
    if scenario.newcomer is None:
        return kubectl_drain(plane, scenario.options)
    plane.request("PATCH", f"/api/v1/nodes/{DRAINED}", {"spec": {"unschedulable": True}})
    plane.request("POST", "/api/v1/nodes", scenario.newcomer)
    until(lambda: is_ready(plane.request("GET", f"/api/v1/nodes/{NEW}")), "the new node")
    real = kubectl_drain(plane, scenario.options)
    if real.returncode == 0:
        plane.request("DELETE", f"/api/v1/nodes/{DRAINED}")
    return real


def make(stage: Stage, scenario: Scenario) -> tuple[Objects, set[str]]:
    """Create the scenario's cluster, and return the names of its unready pods."""
    objects = stage.make(scenario.groups)
    unready = {each["metadata"]["name"] for each in objects["Pod"][: scenario.unready]}
    for name in unready:
        status = {"conditions": [{"type": kind, "status": "False"} for kind in ("Ready", "ContainersReady")]}
        path = f"/api/v1/namespaces/default/pods/{name}/status"
        stage.plane.request("PATCH", path, {"status": status}, patch="strategic-merge")
    return (at_rest(stage.plane) if unready else objects), unready


def by_time(reported: dict[str, Any]) -> list[list[str]]:
    """The names of evicted pods, grouped by second."""
    steps = [
        each
        for each in reported["simulation"]["steps"]
        if each.get("reason") == "drained" and each["kind"] == "Terminating"
    ]
    return [
        [each["pod"].partition("/")[2] for each in group]
        for _, group in groupby(steps, key=lambda each: each.get("at", 0.0))
    ]


def by_workload(text: str, owners: Mapping[str, str]) -> str:
    """A text with workloads instead of their pods."""
    for pod, owner in owners.items():
        text = text.replace(pod.partition("/")[2], owner)
    return text


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_drain_ends_as_predicted(stage: Stage, tmp_path: Path, compared: Counter[str], scenario: Scenario) -> None:
    before, unready = make(stage, scenario)
    surge = ["--surge=1"] if scenario.newcomer else []
    reported = predict(stage.plane, [*scenario.options, *surge], tmp_path)
    ran: list[subprocess.CompletedProcess[str]] = []
    rollout = stage.after(lambda: ran.append(upgrade(stage.plane, scenario)), before)
    (real,), (drained,) = ran, reported["drained"]
    # In a simulation, every evicted pod is a victim.
    names = re.findall(r"^pod/(\S+) (?:evicted|deleted)$", real.stdout, re.MULTILINE)
    deleted = [f"default/{name}" for name in names]
    evicted = [(rollout.before.owners[each], each, DRAINED) for each in deleted]
    rollout = replace(rollout, victims=[*rollout.victims, *evicted])
    assert (real.returncode == 0) is reported["finishes"], real.stderr
    assert disagreements(reported, rollout) == []
    pods = stage.plane.request("GET", "/api/v1/pods")["items"]
    # Any of the replicas may be the one that stays.
    there = {f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in pods}
    stayed = Counter(owner for pod, owner in rollout.before.owners.items() if pod in there)
    assert Counter(rollout.before.owners[each] for each in drained.get("remaining", [])) <= stayed
    assert len(deleted) == drained.get("evicted", 0)
    assert scenario.says in real.stderr
    assert any(scenario.says in each for each in drained.get("errors", [""])), drained
    stated = by_workload(real.stderr, rollout.before.owners)
    for each in (*drained.get("errors", []), *drained.get("warnings", [])):
        assert by_workload(each, rollout.before.owners) in stated
    assert bool(reported["blocked"]) is not reported["finishes"]
    for each in reported["blocked"]:
        assert by_workload(each["message"], rollout.before.owners) in stated

    def kind_of(pod: str) -> tuple[str, bool]:
        return rollout.before.owners[f"default/{pod}"], pod in unready

    # Evictions within the same second have no order, and equal replicas are interchangeable.
    groups, order = by_time(reported), iter(names)
    assert sum(map(len, groups)) == len(names)
    for group in groups:
        together = list(islice(order, len(group)))
        assert Counter(map(kind_of, together)) == Counter(map(kind_of, group)), names
    compared["drains"] += 1
