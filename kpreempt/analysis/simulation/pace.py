"""How long the parts of a cluster take in a simulation, which nothing in a snapshot says.

With ``AT_ONCE`` all that can be done at a moment is done in it: the scheduler tries one pod after the other, and
controllers answer between two attempts. In a real cluster each of these takes its time. Pods of a rollout come while
others are tried already, what takes the place of a victim is tried before the next of them, and pods become ready one
by one. Who comes first then is up to chance, and with it who has to go. So is the order of equal pods, in which the
scheduler has seen them; a simulation has one and the same from its start to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.verdict.simulation import Simulation

# What takes time: an attempt of the scheduler; a controller's next step after something has happened to its pods, or a
# kubelet's after a grace period; from one pod that a controller makes to the next, until the scheduler knows of it;
# until a pod that is bound is ready.
Delay = Literal["attempt", "answer", "creation", "readiness"]
# So many seconds each takes on average where it is fast, and so many times may that double where it is slow.
_FASTEST: dict[Delay, float] = {"attempt": 0.002, "answer": 0.01, "creation": 0.005, "readiness": 0.02}
_DOUBLINGS = 7
_Item = TypeVar("_Item")


class Pace:
    """How many seconds something takes; without ``chance``, which draws numbers from 0 up to 1, none at all.

    In one cluster the scheduler is fast and controllers are slow, in another one it is the other way round.
    """

    def __init__(self, chance: Callable[[], float] | None = None) -> None:
        self._chance = chance
        self._means = {}
        if chance is not None:
            self._means = {delay: fastest * 2.0 ** (_DOUBLINGS * chance()) for delay, fastest in _FASTEST.items()}

    @property
    def is_at_once(self) -> bool:
        """Whether nothing takes any time."""
        return self._chance is None

    def seconds(self, of: Delay) -> float:
        """How long something takes this time."""
        return 2.0 * self._means[of] * self._chance() if self._chance is not None else 0.0

    def in_any_order(self, items: Sequence[_Item]) -> list[_Item]:
        """Things that are done together, in an order that is drawn; as they are where nothing takes any time."""
        chance = self._chance
        return list(items) if chance is None else sorted(items, key=lambda _: chance())

    def in_drawn_order(self, cluster: ClusterSnapshot) -> ClusterSnapshot:
        """The cluster with its assigned pods in an order in which the scheduler may have seen them, if nothing says."""
        if self._chance is None or cluster.has_scheduler_order:
            return cluster
        chance = self._chance
        assigned = iter(sorted((pod for pod in cluster.pods if pod.spec.node_name), key=lambda _: chance()))
        pods = [next(assigned) if pod.spec.node_name else pod for pod in cluster.pods]
        return msgspec.structs.replace(cluster, pods=pods, has_scheduler_order=True)


AT_ONCE = Pace()


def in_whole_seconds(simulation: Simulation) -> Simulation:
    """The simulation with times to the second: what was drawn beyond that is not worth telling."""
    return msgspec.structs.replace(
        simulation,
        seconds=_whole(simulation.seconds),
        starts_at={key: _whole(at) for key, at in simulation.starts_at.items()},
        steps=[msgspec.structs.replace(step, at=_whole(step.at)) for step in simulation.steps],
        workloads=[msgspec.structs.replace(each, least_at=_whole(each.least_at)) for each in simulation.workloads],
        refused=[msgspec.structs.replace(each, since=_whole(each.since)) for each in simulation.refused],
        stranded=[
            msgspec.structs.replace(
                each, since=_whole(each.since), until=None if each.until is None else _whole(each.until)
            )
            for each in simulation.stranded
        ],
    )


def _whole(seconds: float) -> float:
    return float(int(seconds))
