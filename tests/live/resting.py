"""Wait until a control plane with controllers and kubelets is idle."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tests.live.plane import ControlPlane, Object

RESOURCES = {
    "Node": "/api/v1/nodes",
    "PodDisruptionBudget": "/apis/policy/v1/poddisruptionbudgets",
    "Deployment": "/apis/apps/v1/deployments",
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "Job": "/apis/batch/v1/jobs",
    "Pod": "/api/v1/pods",
}
PATIENCE_SECONDS = 90
# Two reads this far apart must be equal: every write reaches the other components within this time.
SECONDS_BETWEEN_LOOKS = 0.25
# The names of the controllers' queues in their metrics.
_QUEUES = ("deployment", "replicaset", "statefulset", "daemonset", "job", "disruption")

Objects = dict[str, list[Object]]


class _Look(NamedTuple):
    objects: Objects
    unrest: list[str]
    # Equal if nothing has happened in between.
    state: object


def at_rest(plane: ControlPlane, *, is_held: bool = False) -> Objects:
    """Return all objects by kind once the cluster is idle. Raises ``AssertionError`` with the remaining activity.

    In an idle cluster every pod with a node runs, every other pod has been tried without success, no pod is
    terminating, the statuses of workloads match their pods, and the scheduler and the controllers have no work.
    If the scheduler ``is_held``, the other pods have not been tried, and its work does not count.
    """
    end = time.monotonic() + PATIENCE_SECONDS
    last = _look(plane, is_held)
    while time.monotonic() < end:
        time.sleep(SECONDS_BETWEEN_LOOKS)
        look = _look(plane, is_held)
        if not look.unrest and look.state == last.state:
            return look.objects
        last = look
    raise AssertionError(f"not at rest within {PATIENCE_SECONDS} s: {'; '.join(last.unrest) or 'something changes'}")


def objects_of(plane: ControlPlane) -> Objects:
    """All current objects by kind."""
    return {kind: plane.request("GET", path)["items"] for kind, path in RESOURCES.items()}


def _look(plane: ControlPlane, is_held: bool) -> _Look:
    # Metrics are read first: anything written meanwhile shows in the objects.
    busy, work = _work(plane, is_held)
    objects = objects_of(plane)
    versions = {
        each["metadata"]["uid"]: each["metadata"]["resourceVersion"]
        for kind, items in objects.items()
        # Nodes change with every heartbeat.
        if kind != "Node"
        for each in items
    }
    return _Look(objects, [*busy, *_unrest(objects, is_held)], (work, versions))


def _work(plane: ControlPlane, is_held: bool) -> tuple[list[str], object]:
    """The current work of the scheduler and the controllers, and how much they have done so far."""
    scheduler = {} if is_held else plane.metrics("kube-scheduler")
    manager = plane.metrics("kube-controller-manager")
    busy = [f"the scheduler's {name} queue" for name in ("active", "backoff") if scheduler.get(_pending(name))]
    added = {name: manager.get(f'workqueue_adds_total{{name="{name}"}}') for name in _QUEUES}
    done = {name: manager.get(f'workqueue_work_duration_seconds_count{{name="{name}"}}') for name in _QUEUES}
    busy += [f"the controllers' {name} queue" for name in _QUEUES if added[name] != done[name]]
    attempts = {name: count for name, count in scheduler.items() if name.startswith("scheduler_schedule_attempts")}
    return busy, (attempts, done)


def _pending(queue: str) -> str:
    return f'scheduler_pending_pods{{queue="{queue}"}}'


def _unrest(objects: Objects, is_held: bool) -> list[str]:
    lines = [f"node {each['metadata']['name']} is not ready" for each in objects["Node"] if not is_ready(each)]
    pods = [each for each in objects["Pod"] if each["spec"].get("nodeName") or not is_held]
    lines += [line for pod in pods if (line := _unrest_of_pod(pod))]
    for kind, items in objects.items():
        for each in items:
            seen = each.get("status", {}).get("observedGeneration", 0)
            if kind not in ("Node", "Pod", "Job") and seen != each["metadata"]["generation"]:
                lines.append(f"{_name(kind, each)} has a new spec")
    lines += [f"{_name('Deployment', each)} counts" for each in objects["Deployment"] if not _deployed(each, objects)]
    for kind, counts in _COUNTS.items():
        for each in objects[kind]:
            pods = controlled(objects["Pod"], each)
            if any(value is not None and value != expected for value, expected in counts(each, pods)):
                lines.append(f"{_name(kind, each)} counts")
    return lines


def _name(kind: str, document: Object) -> str:
    return f"{kind} {document['metadata']['namespace']}/{document['metadata']['name']}"


def _unrest_of_pod(pod: Object) -> str:
    name = _name("Pod", pod)
    if "deletionTimestamp" in pod["metadata"]:
        return f"{name} is on its way out"
    if pod["spec"].get("nodeName"):
        # A simulated kubelet makes a pod running and ready at once; others are set up by the test.
        return "" if pod["status"]["phase"] != "Pending" else f"{name} does not run"
    if pod["status"].get("nominatedNodeName"):
        return f"{name} is nominated"
    has_been_tried = condition(pod, "PodScheduled").get("reason") in ("Unschedulable", "SchedulingGated")
    return "" if has_been_tried else f"{name} has not been tried"


def condition(document: Object, kind: str) -> Object:
    """The condition of that type; empty if there is none."""
    found: Iterable[Object] = document["status"].get("conditions", [])
    return next((each for each in found if each["type"] == kind), {})


def is_ready(document: Object) -> bool:
    """Whether the Ready condition of the pod or node is true."""
    return condition(document, "Ready").get("status") == "True"


def controlled(items: Iterable[Object], owner: Object) -> list[Object]:
    """The objects controlled by the owner."""
    uid = owner["metadata"]["uid"]
    return [each for each in items if (controller(each) or {}).get("uid") == uid]


def controller(document: Object) -> Object | None:
    """The reference to the object's controller."""
    references: Iterable[Object] = document["metadata"].get("ownerReferences", [])
    return next((each for each in references if each.get("controller")), None)


def _deployed(deployment: Object, objects: Objects) -> bool:
    """Whether its status is the sum of its ReplicaSets'."""
    total: Counter[str] = Counter()
    for each in controlled(objects["ReplicaSet"], deployment):
        for field in ("replicas", "readyReplicas", "availableReplicas"):
            total[field] += each["status"].get(field, 0)
    status = deployment["status"]
    return all(status.get(field, 0) == total[field] for field in ("replicas", "readyReplicas", "availableReplicas"))


def _replica_set(each: Object, pods: list[Object]) -> list[tuple[object, object]]:
    status = each["status"]
    return [
        (status.get("replicas", 0), len(pods)),
        (each["spec"]["replicas"], len(pods)),
        (status.get("readyReplicas", 0), sum(map(is_ready, pods))),
    ]


def _stateful_set(each: Object, pods: list[Object]) -> list[tuple[object, object]]:
    status: Mapping[str, Any] = each["status"]
    revisions = Counter(pod["metadata"]["labels"]["controller-revision-hash"] for pod in pods)
    return [
        (status.get("replicas", 0), len(pods)),
        (status.get("readyReplicas", 0), sum(map(is_ready, pods))),
        (status.get("updatedReplicas", 0), revisions[status.get("updateRevision", "")]),
    ]


def _daemon_set(each: Object, pods: list[Object]) -> list[tuple[object, object]]:
    status = each["status"]
    return [
        (status["currentNumberScheduled"], len(pods)),
        (status["desiredNumberScheduled"], len(pods)),
        (status["numberReady"], sum(map(is_ready, pods))),
    ]


def _job(each: Object, pods: list[Object]) -> list[tuple[object, object]]:
    """An unfinished Job has as many pods as it may have at a time; replacements are created late."""
    status, spec = each["status"], each["spec"]
    active = [pod for pod in pods if pod["status"]["phase"] not in ("Succeeded", "Failed")]
    is_over = any(condition(each, kind).get("status") == "True" for kind in ("Complete", "Failed"))
    wanted = spec["parallelism"]
    if spec.get("completions") is not None:
        wanted = min(wanted, spec["completions"] - status.get("succeeded", 0))
    return [
        (status.get("active", 0), len(active)),
        (None if is_over or spec.get("suspend") else wanted, len(active)),
        (status.get("ready", 0), sum(map(is_ready, active))),
    ]


# A field of a status or spec, and its required value; None if there is no requirement.
_COUNTS = {"ReplicaSet": _replica_set, "StatefulSet": _stateful_set, "DaemonSet": _daemon_set, "Job": _job}
