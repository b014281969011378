"""What ended a pod: real incidents, by Kubernetes' own scheduler, controllers and API server, and by kubectl.

The nodes have no kubelets, so pods that are deleted stay for an hour, unless they are deleted by force.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kpreempt.cli.process import run
from tests.live.eviction import create, current, path_of, pod
from tests.live.patience import until
from tests.live.plane import ControlPlane, Object, program
from tests.live.plugin import ANSWER_SECONDS, environment, kubectl_kpreempt, needs_kubectl

pytestmark = pytest.mark.live

SHOP = "avocet-shop"
# The taint eviction controller reads an index of pods that the node lifecycle controller creates.
CONTROLLERS = (
    "taint-eviction-controller,node-lifecycle-controller,pod-garbage-collector-controller,replicaset-controller"
)
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
"""
NODES = ("avocet-1", "avocet-2", "avocet-3", "avocet-4")
PRIORITIES = (10, 1000)


class Incidents(NamedTuple):
    """A control plane, and the audit log that its API server writes."""

    plane: ControlPlane
    audit_log: Path

    def sentence(self, *words: str) -> str:
        """The answer of ``kubectl kpreempt who-evicted`` up to the line about the pod, as one line."""
        ran = kubectl_kpreempt(self.plane.kubeconfig, "who-evicted", *words, "-n", SHOP)
        assert (ran.code, ran.err) == (0, "")
        return " ".join(ran.out.partition("\n  ")[0].split())

    def answer(self, *words: str) -> Any:
        """The answer as JSON."""
        ran = kubectl_kpreempt(self.plane.kubeconfig, "who-evicted", *words, "-n", SHOP, "-o", "json")
        assert (ran.code, ran.err) == (0, "")
        return json.loads(ran.out)

    def kubectl(self, *words: str) -> None:
        """Run kubectl. Raises ``CalledProcessError``."""
        env = environment(self.plane.kubeconfig)
        subprocess.run(["kubectl", *words], check=True, capture_output=True, timeout=ANSWER_SECONDS, env=env)

    def pod(self, name: str, node: str = "", priority: int = 10, **spec: Any) -> Object:
        """Create a pod, which runs if it has a node."""
        document = pod(SHOP, name, priority, {"cpu": "1"}, node=node, **spec)
        create(self.plane, document)
        return document

    def until_terminating(self, document: Object) -> None:
        """Wait until a pod is deleted."""
        name = document["metadata"]["name"]
        until(lambda: current(self.plane, document)["metadata"].get("deletionTimestamp"), f"the deletion of {name}")


@pytest.fixture(scope="module")
def incidents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Incidents]:
    """A control plane with the controllers that end pods, which writes an audit log."""
    needs_kubectl()
    folder = tmp_path_factory.mktemp("audit")
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    arguments = [
        f"-controller-manager-arg=--controllers={CONTROLLERS}",
        f"-apiserver-arg=--audit-policy-file={folder / 'policy.yaml'}",
        f"-apiserver-arg=--audit-log-path={folder / 'audit.log'}",
        "-apiserver-arg=--audit-log-mode=blocking",
    ]
    with ControlPlane(program(), arguments) as plane:
        for priority in PRIORITIES:
            metadata = {"name": f"level-{priority}"}
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
            create(plane, {**kind, "metadata": metadata, "value": priority})
        create(plane, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}})
        for name in NODES:
            amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
            ready = [{"type": "Ready", "status": "True"}]
            status = {"capacity": amounts, "allocatable": amounts, "conditions": ready}
            create(plane, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status})
        yield Incidents(plane, folder / "audit.log")


def test_a_taint_evicts_a_pod_that_tolerates_it_for_a_time(incidents: Incidents) -> None:
    toleration = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    tolerant = incidents.pod("tolerant", "avocet-1", tolerations=[toleration])
    forever = incidents.pod("forever", "avocet-1", tolerations=[{"key": "maintenance", "operator": "Exists"}])
    incidents.kubectl("taint", "node", "avocet-1", "maintenance=disk:NoExecute")
    incidents.until_terminating(tolerant)
    assert incidents.sentence("tolerant").startswith(f"The taint eviction controller evicted {SHOP}/tolerant ")
    assert incidents.sentence("tolerant").endswith(
        "because of a NoExecute taint on avocet-1 (maintenance=disk:NoExecute, tolerated for 1s)."
    )
    [item] = incidents.answer("tolerant")["items"]
    assert item["cause"] == "NoExecuteTaint"
    assert [each["source"] for each in item["evidence"]] == ["Condition", "Event"]
    assert incidents.answer("forever")["items"] == []
    assert "deletionTimestamp" not in current(incidents.plane, forever)["metadata"]


def test_kubectl_drain_evicts_a_pod_and_the_audit_log_has_its_user(incidents: Incidents) -> None:
    drained = incidents.pod("drained", "avocet-2")
    words = ("drain", "avocet-2", "--force", "--timeout=1s", "--as=alice", "--as-group=system:masters")
    with pytest.raises(subprocess.CalledProcessError):
        # It would wait until the pod is gone.
        incidents.kubectl(*words)
    incidents.until_terminating(drained)
    likely = incidents.sentence("drained")
    assert likely.startswith(f"{SHOP}/drained was evicted through the Eviction API on avocet-2 ")
    # This API server does not track managed fields, which have the program that cordoned the node.
    assert likely.endswith(", probably by a drain of the node (the node is cordoned).")
    certain = incidents.sentence("drained", "--audit-log", str(incidents.audit_log))
    assert certain.startswith(f"alice evicted {SHOP}/drained on avocet-2 ")
    assert certain.endswith(" with kubectl drain.")


def test_podgc_deletes_the_pods_of_a_node_that_is_gone(incidents: Incidents) -> None:
    document = pod(SHOP, "orphan", 10, {"cpu": "1"}, node="avocet-3")
    # It would be gone at once.
    document["metadata"]["finalizers"] = ["shop.example/keep"]
    create(incidents.plane, document)
    incidents.kubectl("delete", "node", "avocet-3", "--wait=false", "--as=carol", "--as-group=system:masters")
    # PodGC looks every 20 seconds, and waits another 40.
    for _ in range(4):
        try:
            incidents.until_terminating(document)
            break
        except AssertionError:
            continue
    sentence = incidents.sentence("orphan")
    assert sentence.startswith(f"PodGC deleted {SHOP}/orphan ")
    assert sentence.endswith("because its node avocet-3 no longer exists.")
    known = incidents.sentence("orphan", "--audit-log", str(incidents.audit_log))
    assert known.endswith("because its node avocet-3 no longer exists; carol deleted it with kubectl.")
    assert [each["cause"] for each in incidents.answer("orphan")["items"]] == ["NodeGone"]


def test_a_user_deletes_a_pod_which_only_the_audit_log_shows(incidents: Incidents) -> None:
    deleted = incidents.pod("deleted", "avocet-4")
    words = ("delete", "pod", "deleted", "-n", SHOP, "--wait=false", "--as=bob", "--as-group=system:masters")
    incidents.kubectl(*words)
    incidents.until_terminating(deleted)
    unknown = incidents.sentence("deleted")
    assert "has no DisruptionTarget condition" in unknown
    assert unknown.endswith("Its owner or a client deleted it; only an audit log shows which.")
    # The API server does not record it in the pod.
    assert "bob" not in json.dumps(current(incidents.plane, deleted))
    known = incidents.sentence("deleted", "--audit-log", str(incidents.audit_log))
    assert known.startswith(f"{SHOP}/deleted was not evicted: bob deleted it ")
    assert known.endswith(" with kubectl.")


def test_an_owner_deletes_pods_that_it_does_not_need(incidents: Incidents) -> None:
    document = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "wader", "namespace": SHOP},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "wader"}},
            "template": {
                "metadata": {"labels": {"app": "wader"}},
                "spec": {
                    "nodeName": "avocet-4",
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "main", "image": "registry.example/wader:1"}],
                },
            },
        },
    }
    create(incidents.plane, document)

    def pods() -> list[Object]:
        items = incidents.plane.request("GET", f"/api/v1/namespaces/{SHOP}/pods?labelSelector=app%3Dwader")["items"]
        return [each for each in items if "deletionTimestamp" not in each["metadata"]]

    until(lambda: len(pods()) == 3, "three pods")
    incidents.kubectl("scale", "rs/wader", "-n", SHOP, "--replicas=1")
    until(lambda: len(pods()) == 1, "one pod")
    events = f"/api/v1/namespaces/{SHOP}/events?fieldSelector=reason%3DSuccessfulDelete"
    until(lambda: len(incidents.plane.request("GET", events)["items"]) == 2, "an event about each deletion")
    answer = incidents.answer("rs/wader")
    assert answer["selection"] == f"ReplicaSet {SHOP}/wader"
    assert answer["running"] == 1
    ends = [(item["cause"], item["owner"]) for each in answer["items"] for item in each["items"]]
    assert ends == [("DeletedByOwner", "ReplicaSet wader")] * 2
    name = answer["items"][0]["victim"]["pod"].partition("/")[2]
    assert incidents.sentence(name).startswith(
        f"{SHOP}/{name} was not evicted: its owner, ReplicaSet wader, deleted it"
    )


def test_a_recording_shows_what_ended_a_pod_that_is_gone(
    incidents: Incidents, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "recording"
    words = ["kpreempt", "record", "--to", str(folder), "--kubeconfig", str(incidents.plane.kubeconfig)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL, env=environment(incidents.plane.kubeconfig)) as recording:
        try:
            until(lambda: list(folder.glob("*.kprec")), "a base")
            evicted = incidents.pod("evicted", "avocet-4")
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "evicted"}}
            incidents.plane.request("POST", f"{path_of(evicted)}/evicted/eviction", eviction)
            force = {"gracePeriodSeconds": 0}
            incidents.plane.request("DELETE", f"{path_of(evicted)}/evicted", force)
            victim = incidents.pod("victim", "avocet-4", nodeSelector={})
            incidents.pod("preemptor", priority=1000, nodeName="", affinity=_on("avocet-4"), containers=_of("4"))
            incidents.until_terminating(victim)
            until(lambda: _events(incidents, "Preempted"), "an event about the preemption")
        finally:
            recording.terminate()
    assert incidents.sentence("victim").startswith(f"{SHOP}/victim was preempted by {SHOP}/preemptor (priority 1,000)")
    # It is gone, and nothing in the cluster shows it.
    assert kubectl_kpreempt(incidents.plane.kubeconfig, "who-evicted", "evicted", "-n", SHOP).code != 0
    capsys.readouterr()
    assert run(["who-evicted", "evicted", "-n", SHOP, "--snapshot", str(folder)]) == 0
    assert capsys.readouterr().out.startswith(f"{SHOP}/evicted was evicted through the Eviction API on avocet-4")
    assert run(["history", "evicted", "-n", SHOP, "--snapshot", str(folder)]) == 0
    assert "evicted by a client of the Eviction API on avocet-4" in capsys.readouterr().out


def _on(node: str) -> Object:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _of(cpu: str) -> list[Object]:
    return [{"name": "main", "image": "registry.example/big:1", "resources": {"requests": {"cpu": cpu}}}]


def _events(incidents: Incidents, reason: str) -> list[Any]:
    items: list[Any] = incidents.plane.request("GET", f"/api/v1/events?fieldSelector=reason%3D{reason}")["items"]
    return items
