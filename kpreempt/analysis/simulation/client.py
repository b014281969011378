"""What acts in a simulation besides the scheduler, what it can do in it, and when.

What a change brings comes stage by stage, each once what it waits for is there. Also how long pods run that end, which
controller's turn it is, and which pods had to go and are to be made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

import msgspec

from kpreempt.analysis.simulation.cluster import OwnerKey, SimulatedCluster, owner_key
from kpreempt.controllers.actions import SyncError, tied_node
from kpreempt.eviction.records import Answer
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption, AssumptionKind


class Client(Protocol):
    """A simulation at one moment: its ``cluster``, which is only looked at, and what may be done to it.

    ``mutations`` counts how often a pod was made or deleted, or a ReplicaSet given another size.
    """

    cluster: SimulatedCluster
    mutations: int

    def create(self, pod: Pod) -> None:
        """A pod is made, unless a ResourceQuota refuses it; its controller is called again once there is room."""

    def delete(self, key: str, reason: str) -> None:
        """A pod (``namespace/name``) is told to go."""

    def release(self, key: str) -> None:
        """A Job takes its finalizer off a pod."""

    def resize(self, name: str, owner: str, replicas: int) -> None:
        """``owner`` gives the ReplicaSet ``name`` (with its namespace) another size."""

    def call_again(self, controller: Controller, after: timedelta) -> None:
        """The controller has more to do later, even if nothing happens until then."""

    def evict(self, key: str, grace: int | None, node: str) -> Answer:
        """The API server's answer to an eviction, with what comes of it."""

    def kill(self, key: str, grace: int | None, node: str) -> None:
        """A pod is deleted without asking its budgets."""

    def place(self, pods: Sequence[Pod]) -> None:
        """Pods come that have a node already."""

    def set_nodes(self, nodes: Sequence[Node]) -> None:
        """The cluster has these nodes from now on; pods of those that are no more go with them."""


class Controller:
    """The controller of one ``workload`` (``Deployment shop/api``) that a change is about.

    ``owners`` are what manages its pods: itself, or its ReplicaSets; without a name for it, the workload is the first.
    ``desired`` is how many pods there should be in the end; ``None`` where nothing says so. A pod counts as available
    once it has been ready for ``min_ready_seconds``.
    """

    def __init__(
        self, owners: Sequence[OwnerKey], desired: int | None = None, min_ready_seconds: int = 0, workload: str = ""
    ) -> None:
        self.owners = tuple(owners)
        self.workload = workload or "{1} {0}/{2}".format(*owners[0])
        self.desired = desired
        self.min_ready_seconds = min_ready_seconds

    def sync(self, client: Client) -> bool:
        """Take the next step; whether there was one to take. Raises ``SyncError`` where upstream would fail."""
        raise NotImplementedError

    def is_done(self, client: Client) -> bool:
        """Whether all that is asked for has come about."""
        raise NotImplementedError

    def state(self) -> object:
        """What the controller remembers, apart from its pods; two moments that are alike in it go on alike."""
        return None


class Operator(Protocol):
    """Someone who works on the nodes, as ``kubectl drain`` does."""

    def due(self, client: Client) -> float | None:
        """The second at which there is something to do, if nothing else happens until then."""

    def act(self, client: Client) -> None:
        """Do what is due."""

    def state(self) -> object:
        """How far it has come."""


# Pods beyond these run on: a Job of a hundred thousand completions is not simulated to its end.
_MOST_ENDINGS = 2000


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """Controllers that begin together, and plain pods that come with them.

    Where it ``is_awaited``, the next stage comes once all of them are done and their pods that end have ended; else at
    once.
    """

    controllers: Sequence[Controller] = ()
    arriving: Sequence[Pod] = ()
    is_awaited: bool = True


class RunTime(msgspec.Struct, frozen=True):
    """How many seconds a pod runs until it ends well, and whether that ``is_guess``."""

    seconds: float
    is_guess: bool = False


class Endings:
    """The pods that end by themselves, by what manages them; a plain pod is ``(namespace, "Pod", name)``."""

    def __init__(self, run_times: Mapping[OwnerKey, RunTime]) -> None:
        self._run_times = run_times
        self._left = _MOST_ENDINGS
        self._running: set[str] = set()
        # Who found no room until a pod of somebody else ended, and whose.
        self._waited: dict[str, Pod] = {}

    def of(self, pod: Pod) -> RunTime | None:
        """How long the pod runs; ``None`` for one that runs on."""
        return self._run_times.get(owner_key(pod) or (pod.metadata.namespace, "Pod", pod.metadata.name))

    def begin(self, pod: Pod) -> float | None:
        """A pod runs, and ends after so many seconds; ``None`` where it runs on."""
        run_time = self.of(pod)
        if run_time is None or not self._left:
            return None
        self._left -= 1
        self._running.add(pod.key)
        return run_time.seconds

    def end(self, pod: Pod, waiting: Iterable[Pod], ran: Callable[[str], bool]) -> None:
        """A pod has ended; ``waiting`` have no node then, of which some take the place of others that ``ran``.

        That those waited counts however long it was: they were running.
        """
        self._running.discard(pod.key)
        run_time, owner = self.of(pod), owner_key(pod)
        is_guess = run_time is not None and run_time.is_guess
        for each in waiting:
            if (owner is None or owner_key(each) != owner) and (is_guess or ran(each.key)):
                self._waited.setdefault(each.key, pod)

    def reserve_found(self, key: str) -> Pod | None:
        """A pod lands; returns the pod for whose end it waited, if it did and that counts."""
        return self._waited.pop(key, None)

    def is_running(self, key: str) -> bool:
        """Whether a pod is still to end."""
        return key in self._running


# More steps than any controller takes at one moment; beyond them it goes round.
_MOST_STEPS = 10_000
_GOES_ROUND = "its controller always finds something to do; what it did until then counts"


class ControllerManager:
    """Calls the controllers about whose pods something has happened, in the order in which it did."""

    def __init__(self, controllers: Sequence[Controller]) -> None:
        self._controllers: dict[OwnerKey, Controller] = {}
        # A dictionary keeps the order, so that nothing is up to chance.
        self._called: dict[int, Controller] = {}
        self.add(controllers)
        # Those of the called that will get to it.
        self._due: set[int] = set()
        self._steps = 0
        self._refused: dict[int, Controller] = {}
        self._lost: dict[OwnerKey, list[Pod]] = {}
        self.assumptions: dict[Assumption, None] = {}

    def add(self, controllers: Sequence[Controller]) -> None:
        """Controllers begin, and have something to do."""
        self._controllers.update({owner: controller for controller in controllers for owner in controller.owners})
        self._called.update({id(controller): controller for controller in controllers})

    def of(self, pod: Pod) -> Controller | None:
        """The controller of a pod's owner, if the change is about that."""
        key = owner_key(pod)
        return self._controllers.get(key) if key is not None else None

    def call(self, controller: Controller | None) -> None:
        """Something has happened to a pod of the controller's."""
        if controller is not None:
            self._called[id(controller)] = controller

    def call_rejected(self, namespace: str) -> None:
        """There is room in the quotas of a namespace again. Who comes first then is a matter of backoffs."""
        for key, controller in list(self._refused.items()):
            if any(owner[0] == namespace for owner in controller.owners):
                del self._refused[key]
                self.call(controller)

    def act(self, client: Client) -> None:
        """The controllers act until none of them has anything left to do now."""
        for _ in range(_MOST_STEPS):
            if not self._called:
                return
            self._take_step(next(iter(self._called.values())), client)
        for controller in self._called.values():
            self._assume(controller, _GOES_ROUND)
        self._called.clear()

    def controllers_due(self) -> list[Controller]:
        """The controllers that have something to do, and were not told here before; ``step`` is what they then do."""
        found = [controller for key, controller in self._called.items() if key not in self._due]
        self._due.update(map(id, found))
        return found

    def step(self, controller: Controller, client: Client) -> None:
        """One step of a controller that was summoned; it is to be summoned again as long as it finds one to take."""
        self._due.discard(id(controller))
        self._steps += 1
        if self._steps > _MOST_STEPS:
            self._assume(controller, _GOES_ROUND)
            self._called.pop(id(controller), None)
            return
        self._take_step(controller, client)

    def _take_step(self, controller: Controller, client: Client) -> None:
        quotas = client.cluster.quotas
        quotas.begin()
        mutations, rejections = client.mutations, quotas.rejections
        try:
            more = controller.sync(client)
            # Whoever is refused and has nothing else to do comes back when there is room.
            is_stuck = quotas.rejections > rejections and client.mutations == mutations
            if quotas.rejections > rejections:
                self._refused[id(controller)] = controller
            if not more or is_stuck:
                self._called.pop(id(controller), None)
        except SyncError as error:
            self._called.pop(id(controller), None)
            self._assume(controller, f"its controller does nothing: {error.message}")

    def lose(self, pod: Pod) -> None:
        """A pod of a controller had to go for another."""
        key = owner_key(pod)
        if key is not None:
            self._lost.setdefault(key, []).append(pod)

    def take_lost(self, pod: Pod) -> Pod | None:
        """The pod that had to go and whose place this one takes: of the same name or node, or else the first."""
        key = owner_key(pod)
        lost = self._lost.get(key, []) if key is not None else []
        if not lost:
            return None
        node = tied_node(pod)
        same = [each for each in lost if each.key == pod.key or (node and each.spec.node_name == node)]
        found = same[0] if same else lost[0]
        lost.remove(found)
        return found

    def _assume(self, controller: Controller, message: str) -> None:
        self.assumptions[Assumption(controller.workload, "spec", message, AssumptionKind.UNCERTAIN)] = None
