"""What acts in a simulation besides the scheduler, and what it can do in it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from kpreempt.analysis.simulation.cluster import OwnerKey, SimulatedCluster
from kpreempt.eviction.records import Answer
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod


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
    ``wanted`` is how many pods there should be in the end; ``None`` where nothing says so. A pod counts as available
    once it has been ready for ``min_ready_seconds``.
    """

    def __init__(
        self, owners: Sequence[OwnerKey], wanted: int | None = None, min_ready_seconds: int = 0, workload: str = ""
    ) -> None:
        self.owners = tuple(owners)
        self.workload = workload or "{1} {0}/{2}".format(*owners[0])
        self.wanted = wanted
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
