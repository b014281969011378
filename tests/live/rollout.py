"""A rollout on a control plane with controllers: a cluster, a change, and where every pod is before and after."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.live.patience import until
from tests.live.plane import ControlPlane, Object, RefusedError, Watch
from tests.live.plugin import environment
from tests.live.resting import PATIENCE_SECONDS, RESOURCES, Objects, at_rest, condition, objects_of
from tests.live.standings import WORKLOADS, Standings, standings, tops_of, workload_of

ROLLOUTS = Path(__file__).parent / "rollouts"
NAMES = sorted(path.parent.name for path in ROLLOUTS.glob("*/change.yaml"))
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PODS = "/api/v1/namespaces/default/pods"
# A test pod that marks the end of a rollout.
_MARK = "mark"


@dataclass(frozen=True)
class Rollout:
    """The effect of the change: the cluster before and after, and preempted pods with workload and node."""

    before: Standings
    after: Standings
    victims: list[tuple[str, str, str]]

    @property
    def preempted(self) -> Counter[str]:
        """How many pods of each workload were preempted."""
        return Counter(workload for workload, _, _ in self.victims)


class Stage:
    """A control plane for one rollout after the other."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    def set(self, name: str) -> Objects:
        """Delete everything, and create the cluster of that name."""
        return self.make(list(_groups(documents_of(ROLLOUTS / name / "cluster.yaml"))))

    def make(self, groups: list[list[Object]]) -> Objects:
        """Create a cluster of these documents, each group once the previous ones are idle."""
        self._clear()
        objects: Objects = {}
        for group in groups:
            self._apply(group)
            objects = at_rest(self.plane)
        return objects

    def play(self, change: list[Object], before: Objects) -> Rollout:
        """Apply the change to the cluster, and wait until it is idle."""
        return self.after(partial(self._apply, change), before)

    def after(self, happens: Callable[[], object], before: Objects) -> Rollout:
        """Return the effect of calling ``happens`` once the cluster is idle."""
        after, deleted = preempted_while(self.plane, happens)
        tops = tops_of(before) | tops_of(after)
        victims = [(workload_of(pod, tops), pod["metadata"]["name"], pod["spec"]["nodeName"]) for pod in deleted]
        return Rollout(standings(before), standings(after), victims)

    def _kubectl(self, *words: str, **options: Any) -> None:
        # kubectl's errors go to standard error, which pytest shows.
        subprocess.run(
            ["kubectl", *words],
            check=True,
            timeout=PATIENCE_SECONDS,
            env=environment(self.plane.kubeconfig),
            **options,
        )

    def _apply(self, documents: list[Object]) -> None:
        """Apply the documents; those that admission reads first, until it has seen them."""
        for classes in (True, False):
            items = [each for each in documents if (each["kind"] == "PriorityClass") == classes]
            if items:
                text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
                self._kubectl("apply", "-f", "-", input=text.encode(), stdout=subprocess.DEVNULL)
            for each in items if classes else ():
                until(partial(self._is_known, each), f"PriorityClass {each['metadata']['name']}")

    def _is_known(self, priority_class: Object) -> bool:
        """Whether pods get the priority of the class, which admission learns after a while."""
        name = "" if priority_class.get("globalDefault") else priority_class["metadata"]["name"]
        try:
            pod = self.plane.request("POST", f"{PODS}?dryRun=All", _pod("known", priorityClassName=name))
        except RefusedError:
            return False
        return bool(pod["spec"]["priority"] == priority_class["value"])

    def _clear(self) -> None:
        def is_empty() -> bool:
            items = self.plane.request("GET", RESOURCES["Pod"])["items"]
            for pod in items:
                self._delete("Pod", pod, "gracePeriodSeconds=0")
            return not items and not any(objects_of(self.plane)[kind] for kind in WORKLOADS)

        for kind, items in objects_of(self.plane).items():
            for each in items if kind != "Pod" else ():
                self._delete(kind, each, "propagationPolicy=Background")
        until(is_empty, "an empty cluster")
        for each in self.plane.request("GET", CLASSES)["items"]:
            if not each["metadata"]["name"].startswith("system-"):
                self.plane.request("DELETE", f"{CLASSES}/{each['metadata']['name']}")

    def _delete(self, kind: str, document: Object, how: str) -> None:
        group, _, plural = RESOURCES[kind].rpartition("/")
        metadata = document["metadata"]
        place = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        try:
            self.plane.request("DELETE", f"{group}{place}/{plural}/{metadata['name']}?{how}")
        except RefusedError:
            # Dependents are deleted with their owner, perhaps before their turn.
            return


def preempted_while(plane: ControlPlane, happens: Callable[[], object]) -> tuple[Objects, list[Object]]:
    """The objects once the cluster is idle after a call of ``happens``, and the pods that were preempted meanwhile."""
    version = plane.request("GET", RESOURCES["Pod"])["metadata"]["resourceVersion"]
    # Read while it happens: a busy server drops the first changes before the last are there.
    watch = plane.watch(RESOURCES["Pod"], version)
    with ThreadPoolExecutor(1) as reader:
        preempted = reader.submit(_preempted, watch)
        try:
            happens()
            after = at_rest(plane)
            plane.request("POST", PODS, _pod(_MARK, schedulingGates=[{"name": "test.example/mark"}]))
            deleted = preempted.result(PATIENCE_SECONDS)
        finally:
            watch.close()
    plane.request("DELETE", f"{PODS}/{_MARK}")
    return after, deleted


def documents_of(path: Path) -> list[Object]:
    """The documents of a file."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def _groups(documents: list[Object]) -> Iterator[list[Object]]:
    """The documents up to each workload: with an idle cluster in between, each is added to a known state."""
    group: list[Object] = []
    for document in documents:
        group.append(document)
        if document["kind"] in WORKLOADS:
            yield group
            group = []
    if group:
        yield group


def _pod(name: str, **spec: object) -> Object:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "main:1"}], **spec}}


def _preempted(watch: Watch) -> list[Object]:
    """The pods preempted before the mark."""
    found: dict[str, Object] = {}
    for pod in watch.objects(PATIENCE_SECONDS):
        assert pod["kind"] == "Pod", pod
        if pod["metadata"]["name"] == _MARK:
            return list(found.values())
        if condition(pod, "DisruptionTarget").get("reason") == "PreemptionByScheduler":
            found[pod["metadata"]["uid"]] = pod
    raise AssertionError("the watch does not tell of a pod that is there")
