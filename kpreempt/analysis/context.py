"""What every question about a cluster is asked of: the cluster, a scheduler, and the time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.verdict import Assumption


class AnalysisContext(NamedTuple):
    """A cluster with the scheduler that decides in it.

    ``at`` is the time of the snapshot, which stands for missing start times and which states count to; its age counts
    to ``now``, which is its time, too, if it has none. ``assumptions`` concern the cluster and so every answer.
    ``phases`` records what the time is spent on.
    """

    cluster: ClusterSnapshot
    scheduler: Scheduler
    now: datetime
    at: datetime | None = None
    assumptions: Iterable[Assumption] = ()
    phases: Phases = NO_PHASES

    @property
    def time(self) -> datetime:
        """The time of the snapshot."""
        return self.at or self.now
