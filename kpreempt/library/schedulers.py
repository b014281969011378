"""The requested scheduler: its options are checked before a cluster is read, and it is built afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from kpreempt.analysis.algorithms import AUTO, AnalysisContext, Scheduler, algorithm_for, assume_of_gates, scheduler_for
from kpreempt.errors import ConfigurationError, UsageError
from kpreempt.library.reading import LoadedCluster
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.extra_fields import ExtraFields
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.scheduler_table import KUBE_ALGORITHMS
from kpreempt.verdict import Assumption

if TYPE_CHECKING:
    from kpreempt.analysis.algorithms import Spread


class ConfiguredScheduler(NamedTuple):
    """A scheduler, its configuration as plain data if one was given, and the feature gates that were set.

    ``assumptions`` are about the cluster that it is for: its version, and gates implied by its objects.
    """

    scheduler: Scheduler
    configuration: Mapping[str, Any] | None
    feature_gates: Mapping[str, bool]
    assumptions: list[Assumption]


class SchedulerFactory:
    """Builds the scheduler of an algorithm's name; ``auto`` builds the one for the version of each cluster."""

    def __init__(
        self,
        named: str | None,
        make: Callable[[str], Scheduler],
        configuration: Mapping[str, Any] | None = None,
        feature_gates: Mapping[str, bool] | None = None,
    ) -> None:
        """``make`` builds the scheduler of an algorithm, and raises any error in the other options."""
        self.algorithm = named or AUTO
        self._make = make
        self._configuration = configuration
        self._feature_gates = feature_gates or {}
        self._made: dict[str, Scheduler] = {}
        # Many lines of a batch are about the same cluster.
        self._last: tuple[ClusterSnapshot, ConfiguredScheduler] | None = None

    @cached_property
    def extra_fields(self) -> ExtraFields:
        """The extra data that its plugins read, which snapshots only keep on request.

        Raises any error in the options: for the algorithm, or for every version with ``auto``.
        """
        return (self._of_any_version() if self.algorithm == AUTO else self.of(self.algorithm)).extra_fields

    def checked(self) -> Self:
        """Return ``self`` if the options are valid for some cluster. Raises like ``extra_fields``."""
        _ = self.extra_fields
        return self

    def on(self, cluster: ClusterSnapshot) -> ConfiguredScheduler:
        """Build the scheduler for a cluster.

        Raises ``UsageError`` and ``ConfigurationError`` if its version rejects the options.
        """
        if self._last is None or self._last[0] is not cluster:
            chosen = algorithm_for(self.algorithm, cluster)
            try:
                scheduler = self.of(chosen.algorithm)
            except (UsageError, ConfigurationError) as error:
                if self.algorithm != AUTO:
                    raise
                why = f"the cluster's version selects {chosen.algorithm}; --algorithm selects another"
                raise type(error)(error.message, hint=f"{error.hint}; {why}" if error.hint else why) from None
            assumptions = [*chosen.assumptions, *assume_of_gates(scheduler, cluster)]
            self._last = cluster, ConfiguredScheduler(scheduler, self._configuration, self._feature_gates, assumptions)
        return self._last[1]

    def of(self, algorithm: str) -> Scheduler:
        """Build the scheduler of an algorithm.

        Raises ``UsageError`` and ``ConfigurationError`` for options that it rejects.
        """
        if algorithm not in self._made:
            self._made[algorithm] = self._make(algorithm)
        return self._made[algorithm]

    def _of_any_version(self) -> Scheduler:
        """Build the latest version that accepts the options; if none does, raise the error of the latest."""
        newest, *older = reversed(KUBE_ALGORITHMS)
        try:
            return self.of(newest)
        except (UsageError, ConfigurationError):
            for algorithm in older:
                try:
                    return self.of(algorithm)
                except (UsageError, ConfigurationError):
                    continue
            raise


def default_scheduler() -> SchedulerFactory:
    """The kube-scheduler of the cluster's version, without any options."""
    return SchedulerFactory(None, scheduler_for)


class Context(NamedTuple):
    """The context of a request: a loaded cluster, the scheduler that decides, and the relevant times.

    Requests about a recording have an empty cluster. ``now`` is the time of the request, and ``ages`` the time to which
    ages count, by default the dump's. Names without a namespace are in ``namespace``. ``spread`` distributes the work
    for several pods, and ``warn`` receives messages about ignored input. ``read_autoscalers`` adds to a cluster what
    node autoscalers report, if that was not read with it.
    """

    loaded: LoadedCluster
    scheduler: SchedulerFactory
    now: datetime
    ages: datetime | None = None
    phases: Phases = NO_PHASES
    namespace: str = DEFAULT_NAMESPACE
    is_live: bool = False
    spread: Spread | None = None
    warn: Callable[[str], None] = lambda _: None
    read_autoscalers: Callable[[ClusterSnapshot], ClusterSnapshot] = lambda cluster: cluster

    @property
    def configured(self) -> ConfiguredScheduler:
        """The scheduler for the cluster. Raises like ``SchedulerFactory.on``."""
        return self.scheduler.on(self.loaded.cluster)

    @property
    def at(self) -> datetime:
        """The time to which ages count: ``ages``, else the time of the dump if known, else ``now``."""
        return self.ages or self.loaded.cluster.taken_at or self.now

    @property
    def assumptions(self) -> list[Assumption]:
        """The assumptions made before a request is answered."""
        return [*self.configured.assumptions, *self.loaded.assumptions]

    def of(self, cluster: ClusterSnapshot) -> AnalysisContext:
        """Return an equal context for a changed cluster."""
        at = self.ages or cluster.taken_at
        return AnalysisContext(cluster, self.configured.scheduler, self.now, at, self.assumptions, self.phases)


class Answered(NamedTuple):
    """The record that answers a request, and the cluster that it is about."""

    record: Any
    cluster: ClusterSnapshot
