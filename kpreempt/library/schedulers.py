"""The scheduler that is asked for: understood before a cluster is read, and made for it once it is."""

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
    """A scheduler, its configuration as plain data where one was given, and the feature gates that were set.

    ``assumptions`` are about the cluster that it is for: its version, and gates for which it has objects.
    """

    scheduler: Scheduler
    configuration: Mapping[str, Any] | None
    feature_gates: Mapping[str, bool]
    assumptions: list[Assumption]


class SchedulerFactory:
    """The scheduler of an algorithm's name, which may be ``auto``: that of the version of each cluster it is for."""

    def __init__(
        self,
        named: str | None,
        make: Callable[[str], Scheduler],
        configuration: Mapping[str, Any] | None = None,
        feature_gates: Mapping[str, bool] | None = None,
    ) -> None:
        """``make`` makes the scheduler of an algorithm, and raises what is wrong with the rest of the options."""
        self.algorithm = named or AUTO
        self._make = make
        self._configuration = configuration
        self._feature_gates = feature_gates or {}
        self._made: dict[str, Scheduler] = {}
        # Many lines of a batch are about one cluster.
        self._last: tuple[ClusterSnapshot, ConfiguredScheduler] | None = None

    @cached_property
    def extra_fields(self) -> ExtraFields:
        """What its plugins read that a snapshot keeps only on request.

        Raises what is wrong with the options: for the algorithm, or with ``auto`` for every version.
        """
        return (self._of_any_version() if self.algorithm == AUTO else self.of(self.algorithm)).extra_fields

    def checked(self) -> Self:
        """The same, once its options are known to be good for some cluster. Raises as ``extra_fields`` does."""
        _ = self.extra_fields
        return self

    def on(self, cluster: ClusterSnapshot) -> ConfiguredScheduler:
        """The scheduler for a cluster. Raises ``UsageError`` and ``ConfigurationError`` where its version refuses."""
        if self._last is None or self._last[0] is not cluster:
            chosen = algorithm_for(self.algorithm, cluster)
            try:
                scheduler = self.of(chosen.algorithm)
            except (UsageError, ConfigurationError) as error:
                if self.algorithm != AUTO:
                    raise
                why = f"{chosen.algorithm} is used, by the cluster's version; --algorithm selects another"
                raise type(error)(error.message, hint=f"{error.hint}; {why}" if error.hint else why) from None
            assumptions = [*chosen.assumptions, *assume_of_gates(scheduler, cluster)]
            self._last = cluster, ConfiguredScheduler(scheduler, self._configuration, self._feature_gates, assumptions)
        return self._last[1]

    def of(self, algorithm: str) -> Scheduler:
        """The scheduler of an algorithm. Raises ``UsageError`` and ``ConfigurationError`` for options it refuses."""
        if algorithm not in self._made:
            self._made[algorithm] = self._make(algorithm)
        return self._made[algorithm]

    def _of_any_version(self) -> Scheduler:
        """That of the newest version that takes the options; what keeps the newest from it where none does."""
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
    """The kube-scheduler of a cluster's version, without any options."""
    return SchedulerFactory(None, scheduler_for)


class Context(NamedTuple):
    """What a question is put to: a cluster that was read, the scheduler that decides, and the times that count.

    Questions about a recording have an empty cluster. ``now`` is when the question is asked, and ``ages`` what ages
    count to where it is not the time of the dump. Names without a namespace are in ``namespace``. ``spread`` does the
    work for several pods, and ``warn`` gets what of the input is ignored.
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

    @property
    def configured(self) -> ConfiguredScheduler:
        """The scheduler for the cluster. Raises as ``SchedulerFactory.on`` does."""
        return self.scheduler.on(self.loaded.cluster)

    @property
    def at(self) -> datetime:
        """What ages count to: ``ages``, else the time of the dump where it is known, else ``now``."""
        return self.ages or self.loaded.cluster.taken_at or self.now

    @property
    def assumptions(self) -> list[Assumption]:
        """What is assumed before anything is asked."""
        return [*self.configured.assumptions, *self.loaded.assumptions]

    def of(self, cluster: ClusterSnapshot) -> AnalysisContext:
        """The same about a cluster that a question has changed."""
        at = self.ages or cluster.taken_at
        return AnalysisContext(cluster, self.configured.scheduler, self.now, at, self.assumptions, self.phases)


class Answered(NamedTuple):
    """The record that answers a question, and the cluster that it is about."""

    record: Any
    cluster: ClusterSnapshot
