"""The order of a node's pods as a recording tells it, held against a scheduler's cache.

``pkg/scheduler/backend/cache/cache.go`` and ``pkg/scheduler/framework/types.go`` (v1.36.3): the cache knows pods by
UID; adding appends to ``NodeInfo.Pods``, removing puts the last one into the gap, updating does both, and a snapshot
keeps the order. A pod is added once it is assumed, and binding it is an update.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from kpreempt.model.cluster import PodOrder
from kpreempt.snapshot.load import load_snapshot
from kpreempt.snapshot.recording.segments import Limits
from tests.unit.snapshot.recording.making import Document, Making, a_node, a_pod

NODES = ("n1", "n2")
NO_NODE = "0/2 nodes are available: 2 Insufficient cpu."


class Cache:
    """The scheduler's: the UIDs of the pods on each node."""

    def __init__(self) -> None:
        self.pods: dict[str, list[str]] = {node: [] for node in NODES}

    def add(self, node: str, uid: str) -> None:
        self.pods[node] = [*self.pods[node], uid]

    def remove(self, node: str, uid: str) -> None:
        *others, last = self.pods[node]
        self.pods[node] = [last if each == uid else each for each in others]

    def update(self, node: str, uid: str) -> None:
        self.remove(node, uid)
        self.add(node, uid)


class Life:
    """Pods that come, wait, are assumed, bound, updated and go, in the cache and in the recording at once."""

    def __init__(self, folder: Path, old: list[str], waiting: list[str]) -> None:
        self.cache = Cache()
        self.documents = {name: a_pod(name, NODES[0]) for name in old}
        self.documents |= {name: a_pod(name) for name in waiting}
        for name in old:
            self.cache.add(NODES[0], f"uid-{name}")
        objects = {
            "Node": [a_node(each) for each in NODES],
            "Pod": [self.documents[name] for name in sorted(old + waiting)],
        }
        self.making = Making(folder, objects, Limits(base_every=timedelta(seconds=30)))
        self.assumed: dict[str, str] = {}
        self.count = 0

    def those(self, is_one: Callable[[str], bool]) -> list[str]:
        return sorted(filter(is_one, self.documents))

    def is_bound(self, name: str) -> bool:
        return "nodeName" in self.documents[name]["spec"]

    def is_free(self, name: str) -> bool:
        return not self.is_bound(name) and name not in self.assumed

    def tell(self, what: str, name: str, document: Document) -> None:
        self.making.change(what, "Pod", document, seconds=0.1)
        self.documents[name] = document
        if what == "DELETED":
            del self.documents[name]

    def uid(self, name: str) -> str:
        return str(self.documents[name]["metadata"]["uid"])

    def create(self, name: str) -> None:
        """Perhaps under a name that was there before."""
        self.count += 1
        self.tell("ADDED", name, a_pod(name, uid=f"uid-{name}-{self.count}"))

    def assume(self, name: str, node: str) -> None:
        self.assumed[name] = node
        self.cache.add(node, self.uid(name))

    def bind(self, name: str) -> None:
        node = self.assumed.pop(name)
        self.cache.update(node, self.uid(name))
        self.tell("MODIFIED", name, a_pod(name, node, uid=self.uid(name)))

    def forget(self, name: str) -> None:
        """What came after it was assumed has failed."""
        self.cache.remove(self.assumed.pop(name), self.uid(name))
        self.reject(name, f'binding rejected: running "{self.count}"')

    def reject(self, name: str, message: str = NO_NODE) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        self.tell("MODIFIED", name, a_pod(name, uid=self.uid(name), conditions=[condition]))

    def update(self, name: str) -> None:
        """Another client changes a pod, which waits, is assumed or is bound."""
        document = self.documents[name]
        self.count += 1
        if self.is_bound(name):
            self.cache.update(document["spec"]["nodeName"], self.uid(name))
        self.tell(
            "MODIFIED", name, {**document, "metadata": {**document["metadata"], "labels": {"n": str(self.count)}}}
        )

    def finish(self, name: str) -> None:
        """Schedulers do not watch pods that are done."""
        node = self.documents[name]["spec"]["nodeName"]
        self.cache.remove(node, self.uid(name))
        self.tell("MODIFIED", name, a_pod(name, node, uid=self.uid(name), phase="Succeeded"))
        self.tell("DELETED", name, self.documents[name])

    def delete(self, name: str) -> None:
        if name in self.assumed:
            self.cache.remove(self.assumed.pop(name), self.uid(name))
        elif self.is_bound(name):
            self.cache.remove(self.documents[name]["spec"]["nodeName"], self.uid(name))
        self.tell("DELETED", name, self.documents[name])

    def step(self, data: st.DataObject) -> None:
        """Something happens that can."""
        doing: dict[str, tuple[Callable[[str], None], list[str]]] = {
            "create": (self.create, [each for each in "abcdef" if each not in self.documents]),
            "bind": (self.bind, sorted(self.assumed)),
            "forget": (self.forget, sorted(self.assumed)),
            "refuse": (self.reject, self.those(self.is_free)),
            "assume": (lambda name: self.assume(name, data.draw(st.sampled_from(NODES))), self.those(self.is_free)),
            "update": (self.update, sorted(self.documents)),
            "finish": (self.finish, self.those(self.is_bound)),
            "delete": (self.delete, sorted(self.documents)),
        }
        what = data.draw(st.sampled_from([name for name, (_, preemptor) in doing.items() if preemptor]))
        act, preemptor = doing[what]
        act(data.draw(st.sampled_from(preemptor)))


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_a_recording_knows_no_place_of_a_pod_that_the_cache_has_elsewhere(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        old = data.draw(st.permutations(["x", "y"][: data.draw(st.integers(0, 2))]))
        waiting = ["w"][: data.draw(st.integers(0, 1))]
        life = Life(Path(folder) / "rec", list(old), waiting)
        with closing(life.making) as making:
            for _ in range(data.draw(st.integers(1, 25))):
                life.step(data)
                if data.draw(st.integers(0, 7)) == 0:
                    # A new base, from which whoever reads begins.
                    making.wait(31)
            for name in sorted(life.assumed):
                life.bind(name)
            making.recorder.flush(making.now)
            cluster = load_snapshot([making.folder]).cluster
            uids = {pod.key: pod.metadata.uid for pod in cluster.pods}
            for node, order in cluster.pod_orders.items():
                agrees(order, life.cache.pods[node], uids)


def agrees(order: PodOrder, pods: list[str], uids: dict[str, str]) -> None:
    assert len(order.places) == len(pods)
    assert all(not place or uids[place] == uid for place, uid in zip(order.places, pods, strict=True)), (order, pods)
    assert {uids[each] for each in (*filter(None, order.places), *order.unplaced)} == set(pods)
