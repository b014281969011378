"""A control plane whose scheduler waits for its lease, so that a whole queue is there before it tries the first pod."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.live.crowded import CLASSES, PATIENT, PATIENT_PRIORITY, Queue, name, pods_of
from tests.live.observation import key_of
from tests.live.patience import until
from tests.live.plane import ControlPlane, Object, RefusedError, program
from tests.live.resting import RESOURCES, Objects, at_rest
from tests.live.rollout import preempted_while

# Leader election makes the scheduler wait; it renews its lease seldom enough for a busy machine.
_ELECTS = ("-scheduler-arg=--leader-elect=true", "-scheduler-arg=--leader-elect-retry-period=200ms")
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
_LEASE = f"{_LEASES}/kube-scheduler"
_HOLDER = {"holderIdentity": "the-test", "leaseDurationSeconds": 24 * 3600}
_PREEMPTED = re.compile(r"Preempted by pod (\S+) on node \S+")
# The first pod of a cluster has started at this time, and the others a minute after one another.
_STARTED = "2026-01-02T{hour:02}:{minute:02}:00Z"


@dataclass(frozen=True)
class Turn:
    """What the scheduler did: the objects before and after, and the victims of each pod by ``namespace/name``."""

    before: Objects
    after: Objects
    victims: dict[str, set[str]]


class HoldingPlane(ControlPlane):
    """A control plane for one queue after the other, each with a new scheduler."""

    def __init__(self, *arguments: str) -> None:
        super().__init__(program(), (*_ELECTS, *arguments), moving=True)
        self._is_prepared = False

    def set_up(self, queue: Queue) -> None:
        """Delete everything, and create the cluster without its queue; the scheduler is ready, and held."""
        self.control("stop", "kube-scheduler")
        self._hold()
        if not self._is_prepared:
            self._prepare()
        self._clear()
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": queue.namespace}})
        for node in queue.nodes:
            self.request("POST", RESOURCES["Node"], node)
        for running in queue.running:
            self._create(running.workload)
            pods = self._pods_of(running.workload, len(running.nodes))
            for pod, node in zip(pods, running.nodes, strict=True):
                self._bind(pod, node)
        for budget in queue.budgets:
            self._create(budget)
        for number, pod in enumerate(at_rest(self, is_held=True)["Pod"]):
            started = _STARTED.format(hour=number // 60, minute=number % 60)
            self.request("PATCH", f"{_path(pod)}/{name(pod)}/status", {"status": {"startTime": started}})
        self.control("start", "kube-scheduler")

    def fill(self, queue: Queue) -> Objects:
        """Create the queue's pods, one workload after the other, and return all objects."""
        for workload in queue.pending:
            self._create(workload)
            self._pods_of(workload, pods_of(workload))
        return at_rest(self, is_held=True)

    def release(self) -> None:
        """Let the scheduler start."""
        self.request("PATCH", _LEASE, {"spec": {"holderIdentity": ""}})

    def add(self, node: Object) -> None:
        """Add a node."""
        self.request("POST", RESOURCES["Node"], node)

    def after(self, happens: Callable[[], object], before: Objects) -> Turn:
        """Return what the scheduler does after a call of ``happens``, once the cluster is idle."""
        after, deleted = preempted_while(self, happens)
        uids = {each["metadata"]["uid"]: key_of(each) for each in deleted}

        def told() -> dict[str, Object] | None:
            """The first preemption of each victim, as soon as there is one: other pods may preempt it once more."""
            events = self.request("GET", "/api/v1/events?fieldSelector=reason=Preempted")["items"]
            events.sort(key=lambda event: event["eventTime"], reverse=True)
            found = {each["involvedObject"]["uid"]: each for each in events}
            return found if uids.keys() <= found.keys() else None

        events = until(told, "the events of all preemptions") if uids else {}
        keys = {each["metadata"]["uid"]: key_of(each) for each in (*before["Pod"], *after["Pod"], *deleted)}
        victims: dict[str, set[str]] = {}
        for uid, victim in uids.items():
            preemptor = _PREEMPTED.fullmatch(events[uid]["message"])
            assert preemptor, events[uid]
            victims.setdefault(keys.get(preemptor[1], preemptor[1]), set()).add(victim)
        return Turn(before, after, victims)

    def _hold(self) -> None:
        """Take the lease from a scheduler that is not running."""
        try:
            self.request("PATCH", _LEASE, {"spec": _HOLDER})
        except RefusedError:
            self.request("POST", _LEASES, {"metadata": {"name": "kube-scheduler"}, "spec": _HOLDER})

    def _prepare(self) -> None:
        for class_name, value in {**CLASSES, PATIENT: PATIENT_PRIORITY}.items():
            policy = "Never" if class_name == PATIENT else "PreemptLowerPriority"
            document = {"metadata": {"name": class_name}, "value": value, "preemptionPolicy": policy}
            self.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", document)
            until(partial(self._is_known, class_name), f"PriorityClass {class_name}")
        self._is_prepared = True

    def _is_known(self, class_name: str) -> bool:
        """Whether pods get the priority of the class, which admission learns after a while."""
        spec = {"priorityClassName": class_name, "containers": [{"name": "main", "image": "main:1"}]}
        try:
            self.request(
                "POST", "/api/v1/namespaces/default/pods?dryRun=All", {"metadata": {"name": "x"}, "spec": spec}
            )
        except RefusedError:
            return False
        return True

    def _clear(self) -> None:
        namespaces = {each["metadata"]["namespace"] for each in self._all("Pod")}

        def is_empty() -> bool:
            for namespace in namespaces:
                pods = f"{_placed('Pod', namespace)}?gracePeriodSeconds=0"
                self.request("DELETE", pods)
            return not self._all("Pod") and not self._all("ReplicaSet")

        for namespace in namespaces:
            for kind in ("Deployment", "ReplicaSet", "StatefulSet", "PodDisruptionBudget"):
                self.request("DELETE", f"{_placed(kind, namespace)}?propagationPolicy=Background")
        until(is_empty, "an empty cluster")
        self.request("DELETE", RESOURCES["Node"])

    def _all(self, kind: str) -> list[Object]:
        items: list[Object] = self.request("GET", RESOURCES[kind])["items"]
        return items

    def _create(self, document: Object) -> None:
        self.request("POST", _path(document), document)

    def _pods_of(self, workload: Object, number: int) -> list[Object]:
        """The pods of a new workload, as soon as its controller has created them all."""

        def look() -> list[Object] | None:
            namespace = workload["metadata"]["namespace"]
            pods = self.request("GET", f"{_placed('Pod', namespace)}?labelSelector=app={name(workload)}")["items"]
            return pods if len(pods) == number else None

        return until(look, f"{number} pods of {name(workload)}")

    def _bind(self, pod: Object, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        self.request("POST", f"{_path(pod)}/{name(pod)}/binding", {"metadata": {"name": name(pod)}, "target": target})


def _placed(kind: str, namespace: str) -> str:
    group, _, plural = RESOURCES[kind].rpartition("/")
    return f"{group}/namespaces/{namespace}/{plural}"


def _path(document: Object) -> str:
    return _placed(document.get("kind", "Pod"), document["metadata"]["namespace"])
