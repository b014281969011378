"""What acts in a simulation apart from the scheduler, and what it can do.

A change is applied in stages, each once the previous one is done. Also: the run times of pods that end, which
controller acts next, and which evicted pods are to be replaced.
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
    """A simulation at a point in time: its ``cluster``, which is read-only, and the actions on it.

    ``mutations`` counts created and deleted pods, and resized ReplicaSets.
    """

    cluster: SimulatedCluster
    mutations: int

    def create(self, pod: Pod) -> None:
        """Create a pod, unless a ResourceQuota rejects it; its controller then retries when there is capacity."""

    def delete(self, key: str, reason: str) -> None:
        """Request the deletion of a pod (``namespace/name``)."""

    def release(self, key: str) -> None:
        """Remove a Job's finalizer from a pod."""

    def resize(self, name: str, owner: str, replicas: int) -> None:
        """Resize the ReplicaSet ``name`` (with its namespace) for ``owner``."""

    def call_again(self, controller: Controller, after: timedelta) -> None:
        """Call the controller again later, even if nothing happens until then."""

    def evict(self, key: str, grace: int | None, node: str) -> Answer:
        """The API server's response to an eviction, which is carried out if allowed."""

    def kill(self, key: str, grace: int | None, node: str) -> None:
        """Delete a pod without checking its budgets."""

    def place_bound(self, pods: Sequence[Pod]) -> None:
        """Add pods that already have a node."""

    def set_nodes(self, nodes: Sequence[Node]) -> None:
        """Replace the nodes of the cluster; pods on removed nodes are deleted with them."""


class Controller:
    """The controller of one changed ``workload`` (``Deployment shop/api``).

    ``owners`` are the owners of its pods: the workload or its ReplicaSets; the default workload is the first owner.
    ``desired`` is the desired number of pods at the end, or ``None`` if unknown. A pod is available once it has been
    ready for ``min_ready_seconds``.
    """

    def __init__(
        self, owners: Sequence[OwnerKey], desired: int | None = None, min_ready_seconds: int = 0, workload: str = ""
    ) -> None:
        self.owners = tuple(owners)
        self.workload = workload or "{1} {0}/{2}".format(*owners[0])
        self.desired = desired
        self.min_ready_seconds = min_ready_seconds

    def sync(self, client: Client) -> bool:
        """Take the next step; returns whether there was one. Raises ``SyncError`` if upstream would fail."""
        raise NotImplementedError

    def is_done(self, client: Client) -> bool:
        """Whether the desired state is reached."""
        raise NotImplementedError

    def state(self) -> object:
        """The controller's own state; it continues in the same way from equal states."""
        return None


class Operator(Protocol):
    """Works on the nodes, like ``kubectl drain``."""

    def due(self, client: Client) -> float | None:
        """The time of the next action in seconds, if nothing else happens before."""

    def act(self, client: Client) -> None:
        """Do what is due."""

    def state(self) -> object:
        """The progress of the work."""


# More pods than this do not end: a Job with a hundred thousand completions is not simulated to its end.
_MAX_ENDINGS = 2000


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """Controllers that start together, and plain pods that are created with them.

    If it ``is_awaited``, the next stage starts once all of them are done and their pods that end have ended; otherwise
    it starts at once.
    """

    controllers: Sequence[Controller] = ()
    arriving: Sequence[Pod] = ()
    is_awaited: bool = True


class RunTime(msgspec.Struct, frozen=True):
    """The seconds that a pod runs until it succeeds, and whether that is a guess."""

    seconds: float
    is_guess: bool = False


class PodEndings:
    """The pods that end by themselves, by owner; the owner of a plain pod is ``(namespace, "Pod", name)``."""

    def __init__(self, run_times: Mapping[OwnerKey, RunTime]) -> None:
        self._run_times = run_times
        self._left = _MAX_ENDINGS
        self._running: set[str] = set()
        # Pods that found no node until a pod of another owner ended, with that pod.
        self._waited: dict[str, Pod] = {}

    def of(self, pod: Pod) -> RunTime | None:
        """The run time of the pod; ``None`` if it does not end."""
        return self._run_times.get(owner_key(pod) or (pod.metadata.namespace, "Pod", pod.metadata.name))

    def begin(self, pod: Pod) -> float | None:
        """Record that a pod runs; returns the seconds until it ends, or ``None`` if it does not."""
        run_time = self.of(pod)
        if run_time is None or not self._left:
            return None
        self._left -= 1
        self._running.add(pod.key)
        return run_time.seconds

    def end(self, pod: Pod, waiting: Iterable[Pod], ran: Callable[[str], bool]) -> None:
        """Record that a pod has ended; ``waiting`` have no node now, some as replacements of pods that ``ran``.

        The wait of a replacement counts even if the run time is no guess, because the pod was running before.
        """
        self._running.discard(pod.key)
        run_time, owner = self.of(pod), owner_key(pod)
        is_guess = run_time is not None and run_time.is_guess
        for each in waiting:
            if (owner is None or owner_key(each) != owner) and (is_guess or ran(each.key)):
                self._waited.setdefault(each.key, pod)

    def reserve_found(self, key: str) -> Pod | None:
        """Record that a pod was scheduled; returns the pod whose end it waited for, if that counts."""
        return self._waited.pop(key, None)

    def is_running(self, key: str) -> bool:
        """Whether a pod has yet to end."""
        return key in self._running


# More steps than any controller takes at one time; beyond them it never settles.
_MAX_STEPS = 10_000
_NEVER_SETTLES = "its controller never settles; only its first actions, up to the limit, are simulated"


class ControllerManager:
    """Calls the controllers whose pods changed, in the order of the changes."""

    def __init__(self, controllers: Sequence[Controller]) -> None:
        self._controllers: dict[OwnerKey, Controller] = {}
        # A dictionary keeps the order, so that it is deterministic.
        self._called: dict[int, Controller] = {}
        self.add(controllers)
        # The called controllers that are about to act.
        self._due: set[int] = set()
        self._steps = 0
        self._rejected: dict[int, Controller] = {}
        self._lost: dict[OwnerKey, list[Pod]] = {}
        self.assumptions: dict[Assumption, None] = {}

    def add(self, controllers: Sequence[Controller]) -> None:
        """Add controllers, which then have something to do."""
        self._controllers.update({owner: controller for controller in controllers for owner in controller.owners})
        self._called.update({id(controller): controller for controller in controllers})

    def of(self, pod: Pod) -> Controller | None:
        """The controller of a pod's owner, if the change includes it."""
        key = owner_key(pod)
        return self._controllers.get(key) if key is not None else None

    def enqueue(self, controller: Controller | None) -> None:
        """Note that a pod of the controller changed."""
        if controller is not None:
            self._called[id(controller)] = controller

    def call_rejected(self, namespace: str) -> None:
        """Call rejected controllers once quotas have capacity again; the real order depends on backoffs."""
        for key, controller in list(self._rejected.items()):
            if any(owner[0] == namespace for owner in controller.owners):
                del self._rejected[key]
                self.enqueue(controller)

    def act(self, client: Client) -> None:
        """Let controllers act until none of them has anything left to do now."""
        for _ in range(_MAX_STEPS):
            if not self._called:
                return
            self._take_step(next(iter(self._called.values())), client)
        for controller in self._called.values():
            self._assume(controller, _NEVER_SETTLES)
        self._called.clear()

    def controllers_due(self) -> list[Controller]:
        """The controllers with pending work that were not returned before; ``step`` then carries it out."""
        found = [controller for key, controller in self._called.items() if key not in self._due]
        self._due.update(map(id, found))
        return found

    def step(self, controller: Controller, client: Client) -> None:
        """One step of a controller from ``controllers_due``, which returns it again until it has no more steps."""
        self._due.discard(id(controller))
        self._steps += 1
        if self._steps > _MAX_STEPS:
            self._assume(controller, _NEVER_SETTLES)
            self._called.pop(id(controller), None)
            return
        self._take_step(controller, client)

    def _take_step(self, controller: Controller, client: Client) -> None:
        quotas = client.cluster.quotas
        quotas.begin()
        mutations, rejections = client.mutations, quotas.rejections
        try:
            more = controller.sync(client)
            # A controller that is rejected and has nothing else to do is called again when there is capacity.
            is_stuck = quotas.rejections > rejections and client.mutations == mutations
            if quotas.rejections > rejections:
                self._rejected[id(controller)] = controller
            if not more or is_stuck:
                self._called.pop(id(controller), None)
        except SyncError as error:
            self._called.pop(id(controller), None)
            self._assume(controller, f"its controller does nothing: {error.message}")

    def pod_lost(self, pod: Pod) -> None:
        """Note that a pod of a simulated controller was evicted."""
        key = owner_key(pod)
        if key is not None:
            self._lost.setdefault(key, []).append(pod)

    def take_lost(self, pod: Pod) -> Pod | None:
        """The evicted pod that this one replaces: one with the same name or node, or else the first."""
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
