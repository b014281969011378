"""What a controller sees of a simulation, and what it can do in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from kpreempt.analysis.simulation.cluster import OwnerKey
from kpreempt.controllers.pods import ControlledPod
from kpreempt.eviction.records import Answer
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod


class Client(Protocol):
    """The cluster at one moment of a simulation."""

    @property
    def now(self) -> datetime:
        """The time of day."""

    @property
    def nodes(self) -> Sequence[Node]:
        """All nodes."""

    def begin(self) -> None:
        """A controller begins its turn."""

    @property
    def deeds(self) -> int:
        """How often something was made, deleted or given another size so far."""

    @property
    def refusals(self) -> int:
        """How often the API server has refused to make a pod so far."""

    def pods_of(self, owner: OwnerKey) -> list[Pod]:
        """The pods of an owner, in the order in which they came, those on their way out included."""

    def controlled(self, pods: Iterable[Pod]) -> list[ControlledPod]:
        """The pods as controllers see them."""

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


class Controller(Protocol):
    """The controller of one workload that a change is about."""

    @property
    def workload(self) -> str:
        """``Deployment shop/api``."""

    @property
    def owners(self) -> Sequence[OwnerKey]:
        """What manages its pods: itself, or its ReplicaSets."""

    @property
    def wanted(self) -> int | None:
        """How many pods there should be in the end; ``None`` where nothing says so."""

    @property
    def min_ready_seconds(self) -> int:
        """How long a pod has to be ready until it counts as available."""

    def sync(self, client: Client) -> bool:
        """Take the next step; whether there was one to take. Raises ``SyncError`` where upstream would fail."""

    def is_done(self, client: Client) -> bool:
        """Whether all that is asked for has come about."""

    def state(self) -> object:
        """What the controller remembers, apart from its pods; two moments that are alike in it go on alike."""


class Site(Protocol):
    """The cluster at one moment of a simulation, as one who works on its nodes sees it and can change it."""

    @property
    def at(self) -> float:
        """Seconds since the start."""

    @property
    def now(self) -> datetime:
        """The time of day."""

    @property
    def nodes(self) -> Sequence[Node]:
        """All nodes."""

    @property
    def changes(self) -> object:
        """Another value whenever a pod has changed, or whether it is ready."""

    def pods_on(self, node: str) -> list[Pod]:
        """The pods that are bound to a node, those on their way out and those that have ended included."""

    def is_there(self, pod: Pod) -> bool:
        """Whether this very pod has not gone yet."""

    def evict(self, key: str, grace: int | None, node: str) -> Answer:
        """The API server's answer to an eviction, with what comes of it."""

    def kill(self, key: str, grace: int | None, node: str) -> None:
        """A pod is deleted without asking its budgets."""

    def place(self, pods: Sequence[Pod]) -> None:
        """Pods come that have a node already."""

    def set_nodes(self, nodes: Sequence[Node]) -> None:
        """The cluster has these nodes from now on; pods of those that are no more go with them."""


class Operator(Protocol):
    """Someone who works on the nodes, as ``kubectl drain`` does."""

    def due(self, site: Site) -> float | None:
        """The second at which there is something to do, if nothing else happens until then."""

    def act(self, site: Site) -> None:
        """Do what is due."""

    def state(self) -> object:
        """How far it has come."""
