"""What becomes of the pods in the queue: the scheduler tries them in order, each on the state left by the others."""

from __future__ import annotations

from enum import StrEnum

from kpreempt.verdict.base import Record
from kpreempt.verdict.simulation import Displaced, SimulationEnd, UnscheduledPod

# A queue is served for this time of the cluster at most.
QUEUE_SECONDS = 30 * 60.0


class TurnOutcome(StrEnum):
    """What becomes of a pod in the end.

    ``Open``: chance or an unknown order decides whether it is scheduled. ``Removed``: it was scheduled, and then
    evicted for another pod. ``NotServed``: the scheduler does not try it.
    """

    SCHEDULED = "Scheduled"
    LEFT_PENDING = "LeftPending"
    OPEN = "Open"
    REMOVED = "Removed"
    NOT_SERVED = "NotServed"


class InTurn(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What becomes of a pod when the whole queue is served.

    ``nodes`` are those on which it ends up in any run, the most frequent first. ``victims`` are the pods that are
    evicted for it in the likely run, ``other_victims`` those in other runs, and ``violated`` the budgets that this
    violates in any run. It is scheduled ``seconds`` after the
    start in the likely run, and in ``scheduled_runs`` of all runs. ``message`` is the scheduler's last message about a
    pod that stays pending, and ``reasons`` counts the nodes that reject it by reason.
    """

    outcome: TurnOutcome
    nodes: list[str] = []
    victims: list[str] = []
    other_victims: list[str] = []
    violated: list[str] = []
    seconds: float | None = None
    scheduled_runs: int = 0
    message: str = ""
    reasons: dict[str, int] = {}

    @property
    def may_evict(self) -> bool:
        """Whether pods are evicted for it in any run."""
        return bool(self.victims or self.other_victims)


class OpenPods(Record, frozen=True, kw_only=True):
    """Pods of one kind of which only some are scheduled, with the lowest and the highest number in any run."""

    pods: list[str]
    at_least: int
    at_most: int


class ServedQueue(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The pods of a queue that is served until nothing changes, for 30 minutes, or for 20,000 attempts.

    The first of ``runs`` takes the likely order and the first of equal nodes. ``is_complete``: no other order and no
    chance could lead to another outcome. ``in_turn`` has every pod of the queue by key, and ``open`` the pods whose
    outcome is open. ``scheduled_min`` and ``scheduled_max`` count the scheduled pods over all runs,
    and ``evicted_runs`` the runs in which a pod is evicted.

    The rest is from the likely run: how it ``ended``, after how many seconds and attempts; the evicted pods; the
    ``pending`` replacements of evicted pods; the workloads that keep displacing each other.
    """

    runs: int = 1
    is_complete: bool = True
    ended: SimulationEnd = SimulationEnd.SETTLED
    seconds: float = 0.0
    attempts: int = 0
    scheduled_min: int = 0
    scheduled_max: int = 0
    in_turn: dict[str, InTurn] = {}
    open: list[OpenPods] = []
    evicted_runs: dict[str, int] = {}
    displaced: list[Displaced] = []
    pending: list[UnscheduledPod] = []
    loop: list[str] = []

    @property
    def is_out_of_time(self) -> bool:
        """Whether it ended after 30 minutes of the cluster's time."""
        return self.ended is SimulationEnd.ABORTED and self.seconds >= QUEUE_SECONDS


class TurnInQueue(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The place of a pod in the queue, and what becomes of it when the whole queue is served.

    ``position`` counts from 1 of the ``in_queue`` pods; it is missing for a pod that is not in the queue. ``runs`` and
    ``is_complete`` are those of ``ServedQueue``. ``turn`` is missing if the queue is too long to be served.
    """

    position: int | None = None
    in_queue: int = 0
    runs: int = 0
    is_complete: bool = True
    turn: InTurn | None = None
