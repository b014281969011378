"""The state of each workload in an idle cluster."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.live.plane import Object
from tests.live.resting import Objects, controller, is_ready

WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Pod")


@dataclass
class Standing:
    """A workload's pods by node, and how many of them are ready, unscheduled, and up to date.

    ``wanted`` is its size, and ``held`` how many of its pods may stay unchanged. ``updated`` and ``wanted`` are None
    for workloads without them.
    """

    nodes: Counter[str] = field(default_factory=Counter)
    ready: int = 0
    pending: int = 0
    updated: int | None = None
    wanted: int | None = None
    held: int = 0

    @property
    def is_done(self) -> bool:
        """Whether the workload is complete: as many pods as desired, all ready and up to date."""
        pods = self.nodes.total() + self.pending
        is_updated = self.updated is None or self.updated >= pods - self.held
        return self.wanted in (None, pods) and self.ready == pods and is_updated


@dataclass(frozen=True)
class Standings:
    """The workloads by name, the workload of each pod, and the disruptions that each budget allows."""

    workloads: dict[str, Standing]
    owners: dict[str, str]
    allowed: dict[str, int]


def standings(objects: Objects) -> Standings:
    """All workloads with a size or pods; a ReplicaSet's pods belong to its Deployment."""
    tops = tops_of(objects)
    found: dict[str, Standing] = {}
    for kind in WORKLOADS[:-1]:
        for each in objects[kind]:
            if controller(each) is None:
                found[tops[each["metadata"]["uid"]]] = _empty(kind, each)
    for pod in objects["Pod"]:
        if pod["status"]["phase"] in ("Succeeded", "Failed"):
            continue
        standing = found.setdefault(workload_of(pod, tops), Standing())
        if node := pod["spec"].get("nodeName"):
            standing.nodes[node] += 1
        else:
            standing.pending += 1
        standing.ready += is_ready(pod)
    budgets = {_key(each): each["status"]["disruptionsAllowed"] for each in objects["PodDisruptionBudget"]}
    return Standings(found, {_key(pod): workload_of(pod, tops) for pod in objects["Pod"]}, budgets)


def tops_of(objects: Objects) -> dict[str, str]:
    """The name of the workload (``Deployment shop/api``) by the UID of each object that creates its pods."""
    tops = {
        each["metadata"]["uid"]: f"{kind} {_key(each)}"
        for kind in WORKLOADS[:-1]
        for each in objects[kind]
        if controller(each) is None
    }
    for each in objects["ReplicaSet"]:
        if owner := controller(each):
            tops[each["metadata"]["uid"]] = tops[owner["uid"]]
    return tops


def workload_of(pod: Object, tops: dict[str, str]) -> str:
    """The workload of the pod, which is the pod itself if nothing controls it."""
    owner = controller(pod)
    return tops[owner["uid"]] if owner else f"Pod {_key(pod)}"


def _empty(kind: str, workload: Object) -> Standing:
    """The workload's desired size, and its number of updated pods, as counted by its own controller."""
    spec, status = workload["spec"], workload["status"]
    if kind == "Job":
        wanted = spec["parallelism"]
        if spec.get("completions") is not None:
            wanted = min(wanted, spec["completions"] - status.get("succeeded", 0))
        return Standing(wanted=wanted)
    if kind == "ReplicaSet":
        return Standing(wanted=spec["replicas"])
    updated = status.get("updatedNumberScheduled" if kind == "DaemonSet" else "updatedReplicas", 0)
    wanted = status["desiredNumberScheduled"] if kind == "DaemonSet" else spec["replicas"]
    update = spec.get("updateStrategy", {})
    held = wanted if update.get("type") == "OnDelete" else update.get("rollingUpdate", {}).get("partition", 0)
    return Standing(updated=updated, wanted=wanted, held=held)


def _key(document: Object) -> str:
    return f"{document['metadata']['namespace']}/{document['metadata']['name']}"
