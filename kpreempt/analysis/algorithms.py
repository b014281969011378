"""The schedulers that there are, by the name of their algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from kpreempt.errors import UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers import kube
from kpreempt.verdict import NodeEvaluation, Standing, Verdict

ALGORITHMS = ("kube-1.36",)
DEFAULT_ALGORITHM = ALGORITHMS[0]


class Scheduler(Protocol):
    """What an analysis asks of a scheduler. ``prepare`` is done once for a cluster, ``decide`` once for a pod."""

    @property
    def scheduler_names(self) -> frozenset[str]:
        """The scheduler names whose pods it schedules."""

    def prepare(self, cluster: ClusterSnapshot, *, now: datetime, is_queued: bool = True) -> Any:
        """Make a cluster ready for any number of pods.

        ``now`` stands for missing start times. ``is_queued`` says that pending pods wait in the scheduler's queue, as
        they do in a cluster that runs.
        """

    def decide(self, prepared: Any, pod: Pod, *, records_steps: bool = True, phases: Phases = NO_PHASES) -> Verdict:
        """What becomes of a pod as the scheduler would see it.

        Without ``records_steps`` only the best candidates need carry the steps of choosing their victims. ``phases``
        is told what the time goes to.
        """

    def tell_node(self, prepared: Any, pod: Pod, node_name: str) -> NodeEvaluation:
        """What every filter says of one node; raises ``KeyError`` for a node that is not there."""

    def rank_victims(self, prepared: Any, node_name: str, priority: int) -> list[Standing]:
        """The pods of a node below ``priority`` in the order in which they would go, the first first.

        Raises ``KeyError`` for a node that is not there.
        """


def scheduler_for(
    algorithm: str = "",
    configuration: Mapping[str, Any] | None = None,
    feature_gates: Mapping[str, bool] | None = None,
) -> Scheduler:
    """The scheduler of that name (the default for an empty one), with a configuration as plain data and feature gates.

    Raises ``UsageError`` for a name or a gate that there is not, and ``ConfigurationError`` for a configuration that
    the real scheduler rejects.
    """
    if (algorithm or DEFAULT_ALGORITHM) not in ALGORITHMS:
        raise UsageError(f"there is no algorithm {algorithm!r}", hint=", ".join(ALGORITHMS))
    return kube.scheduler_from_configuration(configuration, feature_gates)
