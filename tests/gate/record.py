"""Record the clusters of ``fixtures/gate``: install the sets on a test control plane, and dump it.

usage: python -m tests.gate.record PROGRAM VERSION

PROGRAM is the control plane of that minor version, built by ``tests/reference/build``. The nodes and their kubelets are
simulated; the API server, the scheduler and the controllers are real. kubectl applies and dumps.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.gate.sets import CLUSTERS, NAMESPACES, SETS, documents_of, is_hook
from tests.live.plane import ControlPlane, Object, RefusedError
from tests.live.plugin import environment
from tests.live.resting import condition, is_ready

# In addition to those for live rollouts: controllers for volumes, autoscalers and quotas.
CONTROLLERS = (
    "-controller-manager-arg=--controllers=persistentvolume-binder-controller,persistentvolumeclaim-protection-controller,"
    "horizontal-pod-autoscaler-controller,resourcequota-controller,namespace-controller,serviceaccount-controller,"
    "endpoints-controller,endpointslice-controller,cronjob-controller",
    "-end-jobs=true",
)
# The content of a dump: everything that a check reads, as in docs/ci.md, of the kinds that the version serves.
KINDS = (
    "nodes,pods,namespaces,priorityclasses,poddisruptionbudgets,services,replicationcontrollers,replicasets,"
    "statefulsets,deployments,daemonsets,jobs,cronjobs,persistentvolumes,persistentvolumeclaims,storageclasses,"
    "csinodes,csidrivers,csistoragecapacities,resourcequotas,limitranges,runtimeclasses,horizontalpodautoscalers,"
    "mutatingwebhookconfigurations,validatingwebhookconfigurations,scrapes.watch.example.com"
)
DEVICES = ",resourceclaims,resourceclaimtemplates,resourceslices,deviceclasses"
SECONDS = 180


def main(program: str, version: str) -> None:
    """Record the cluster of one version."""
    with ControlPlane(Path(program), CONTROLLERS, moving=True) as plane:
        cluster = Cluster(plane)
        cluster.install()
        kinds = KINDS + (DEVICES if int(version.partition(".")[2]) >= 34 else "")
        dump = json.loads(cluster.kubectl("get", kinds, "--all-namespaces", "--output", "json"))
        kubelets = plane.request("GET", "/version")["gitVersion"]
    for each in dump["items"]:
        if each["kind"] == "Node":
            # Whoever simulates the kubelets identifies itself; real ones have the API server's version.
            each["status"]["nodeInfo"]["kubeletVersion"] = kubelets
        if each["kind"] == "HorizontalPodAutoscaler":
            # Without metrics this is never set.
            each["status"] = {"currentReplicas": 2, "desiredReplicas": 2, "currentMetrics": None}
    path = CLUSTERS / f"kube-{version}.json.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(dump, separators=(",", ":")).encode(), mtime=0))


class Cluster:
    """The nodes, other pods on them, and the sets."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self._environment = environment(plane.kubeconfig)

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """Return kubectl's output. Raises ``CalledProcessError``, with its messages on standard error."""
        return subprocess.run(
            ["kubectl", *arguments], env=self._environment, input=given, stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    def install(self) -> None:
        """Install everything, one set after the other, each idle before the next."""
        for node in nodes():
            self.plane.request("POST", "/api/v1/nodes", node)
        self._apply(list(yaml.safe_load_all((CLUSTERS / "base.yaml").read_text())))
        for name in SETS:
            documents = [each for each in documents_of(name) if not is_hook(each)]
            definitions = [each for each in documents if each["kind"] == "CustomResourceDefinition"]
            first = [each for each in documents if each["kind"] == "Namespace"]
            if definitions:
                self._apply(definitions)
                self.kubectl("wait", "--for=condition=Established", "crd", "--all")
            if NAMESPACES.get(name):
                first.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACES[name]}})
            self._apply(first)
            rest = [each for each in documents if each not in definitions and each not in first]
            self._apply(rest, NAMESPACES.get(name))
            self._rest()

    def _apply(self, documents: list[Object], namespace: str | None = None) -> None:
        if documents:
            location = ["--namespace", namespace] if namespace else []
            self.kubectl("apply", *location, "--filename", "-", given=yaml.safe_dump_all(documents))

    def _rest(self) -> None:
        """Wait until every pod runs or has ended and nothing changes between two reads; provision claims meanwhile."""
        end, last = time.monotonic() + SECONDS, None
        while time.monotonic() < end:
            self._provision()
            pods = self.plane.request("GET", "/api/v1/pods")["items"]
            waiting = [each["metadata"]["name"] for each in pods if not _is_settled(each)]
            state = sorted((each["metadata"]["uid"], each["metadata"]["resourceVersion"]) for each in pods)
            if not waiting and state == last and self._statuses_are_there(pods):
                return
            last = state
            time.sleep(1)
        raise SystemExit(f"not at rest: {waiting}")

    def _statuses_are_there(self, pods: list[Object]) -> bool:
        wanted = {"deployments": "availableReplicas", "statefulsets": "availableReplicas"}
        for plural, field in wanted.items():
            for each in self.plane.request("GET", f"/apis/apps/v1/{plural}")["items"]:
                status = each.get("status", {})
                if status.get("observedGeneration") != each["metadata"]["generation"]:
                    return False
                if status.get(field, 0) != each["spec"]["replicas"]:
                    return False
        return bool(pods)

    def _provision(self) -> None:
        """Create a volume for each claim that requests one from an external provisioner."""
        for claim in self.plane.request("GET", "/api/v1/persistentvolumeclaims")["items"]:
            metadata = claim["metadata"]
            options = metadata.get("annotations", {})
            is_ready_for_it = "volume.kubernetes.io/storage-provisioner" in options
            storage_class = claim["spec"].get("storageClassName")
            late = storage_class != "instant" and "volume.kubernetes.io/selected-node" not in options
            if claim["status"].get("phase") == "Pending" and is_ready_for_it and not late:
                try:
                    self.plane.request("POST", "/api/v1/persistentvolumes", _volume(claim))
                except RefusedError:
                    continue


def _volume(claim: Object) -> Object:
    metadata, spec = claim["metadata"], claim["spec"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": f"pvc-{metadata['uid']}",
            "annotations": {"pv.kubernetes.io/provisioned-by": "disk.csi.example.com"},
        },
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "storageClassName": spec["storageClassName"],
            "persistentVolumeReclaimPolicy": "Delete",
            "csi": {"driver": "disk.csi.example.com", "volumeHandle": metadata["uid"]},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
        },
    }


def _is_settled(pod: Object) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and (
        is_ready(pod) or pod["status"]["phase"] in ("Succeeded", "Failed") or condition(pod, "Waiting") != {}
    )


def nodes() -> Iterator[Object]:
    """A control plane, ten workers in three zones of which two are bigger, a small one, and two with accelerators."""
    yield node("control-plane-0", "4", "8Gi", {"node-role.kubernetes.io/control-plane": ""}, zone="a", control=True)
    for number in range(10):
        cpu, memory = ("8", "16Gi") if number in (2, 7) else ("4", "8Gi")
        yield node(f"worker-{number}", cpu, memory, {"pool": "workers"}, zone="abc"[number % 3])
    yield node("small-0", "2", "4Gi", {"pool": "small"}, zone="a")
    for number in range(2):
        yield node(f"gpu-{number}", "16", "64Gi", {"pool": "gpu"}, zone="ab"[number], accelerators=2)


def node(
    name: str,
    cpu: str,
    memory: str,
    labels: dict[str, str],
    *,
    zone: str,
    control: bool = False,
    accelerators: int = 0,
) -> Object:
    """A node as its kubelet registers it."""
    capacity = {"cpu": cpu, "memory": memory, "pods": "110", "ephemeral-storage": "100Gi"}
    if accelerators:
        capacity["example.com/gpu"] = str(accelerators)
    reserved = {"cpu": f"{int(cpu) * 1000 - 80}m", "memory": f"{int(memory[:-2]) * 1024 - 350}Mi"}
    taints = []
    if control:
        taints = [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    elif accelerators:
        taints = [{"key": "example.com/gpu", "effect": "NoSchedule"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/region": "r1",
                "topology.kubernetes.io/zone": f"r1-{zone}",
                **labels,
            },
        },
        "spec": {"taints": taints},
        "status": {"capacity": capacity, "allocatable": {**capacity, **reserved}},
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
