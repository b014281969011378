"""The schedulers that there are, by the name of their algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, cast

from kpreempt.errors import UsageError, nearest
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.wanted import Wanted
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.scheduler_table import (
    ALL_ALGORITHMS,
    DEFAULT_ALGORITHM,
    KUBE_ALGORITHMS,
    KUEUE,
    LEGACY_ROWS,
    QUEUE_ALGORITHMS,
    VOLCANO,
)
from kpreempt.schedulers.interface import NO_RULES, QueueRules, Settings
from kpreempt.schedulers.kube.versions import behaviour, version_of
from kpreempt.verdict import Assumption, NodeEvaluation, Verdict

if TYPE_CHECKING:
    from kpreempt.schedulers.extender_protocol import Connect
    from kpreempt.schedulers.interface import PodChanges
    from kpreempt.schedulers.kube.configuration import FoundPlugin
    from kpreempt.schedulers.queues.interface import SchedulingQueue
    from kpreempt.verdict.at_risk import Standing


def is_kube_algorithm(algorithm: str) -> bool:
    """Whether it is one of ``KUBE_ALGORITHMS``, or a release of theirs."""
    return version_of(algorithm) is not None


def has_queue(algorithm: str) -> bool:
    """Whether its scheduling queue is modelled."""
    return algorithm in QUEUE_ALGORITHMS or is_kube_algorithm(algorithm)


class Scheduler(Protocol):
    """What an analysis asks of a scheduler. ``prepare`` is done once for a cluster, ``decide`` once for a pod."""

    @property
    def algorithm(self) -> str:
        """Its name among ``ALGORITHMS``."""

    @property
    def scheduler_names(self) -> frozenset[str]:
        """The scheduler names whose pods it schedules."""

    @property
    def wanted(self) -> Wanted:
        """What its plugins read that a snapshot keeps only where it is asked for."""

    @property
    def tells_pods_apart(self) -> bool:
        """Whether a verdict may hang on who a pod is, as with out-of-tree plugins and extenders that see its name."""

    @property
    def goes_by_priority(self) -> bool:
        """Whether a pod's priority matters only by whose it passes: no out-of-tree plugin and no extender is asked."""

    @property
    def assumptions(self) -> Sequence[Assumption]:
        """What is assumed of it whatever it is asked; its verdicts have it, too."""

    @property
    def settings(self) -> Settings:
        """What of its settings counts for its queue and for controllers."""

    def prepare(
        self,
        cluster: ClusterSnapshot,
        *,
        now: datetime,
        is_queued: bool = True,
        before: Any = None,
        changes: PodChanges | None = None,
        expects_alike: bool = False,
    ) -> Any:
        """Make a cluster ready for any number of pods.

        ``now`` stands for missing start times. ``is_queued`` says that pending pods wait in the scheduler's queue, as
        they do in a cluster that runs. ``before`` is what this scheduler made, with the same ``is_queued``, of a
        cluster from which this one differs in its pods and budgets only: what is the same need not be done again;
        ``changes`` are those of its pods, where they are known.
        It ``expects_alike`` where many pods like the first one will be asked about, as such clusters follow.
        """

    def queue_rules(self, prepared: Callable[[], Any], phases: Phases = NO_PHASES) -> QueueRules:
        """What out-of-tree plugins make of its queue; nothing for a scheduler that takes none.

        ``prepared`` gives the cluster, made ready, as it is whenever it is called.
        """

    def decide(
        self,
        prepared: Any,
        pod: Pod,
        *,
        records_steps: bool = True,
        records_scores: bool = True,
        records_nodes: bool = True,
        phases: Phases = NO_PHASES,
        is_popped: bool = False,
    ) -> Verdict:
        """What becomes of a pod as the scheduler would see it.

        Without ``records_steps`` only the best candidates need carry the steps of choosing their victims, and without
        ``records_scores`` not even these, and nobody need say which plugin gave a node what. Without ``records_nodes``
        some of the nodes that are refused may stand for all. ``phases`` is told what the time goes to. ``is_popped``
        says that the pod comes from a queue with these ``queue_rules``.
        """

    def tell_node(self, prepared: Any, pod: Pod, node_name: str) -> NodeEvaluation:
        """What every filter says of one node; raises ``KeyError`` for a node that is not there."""

    def room_of_nodes(self, prepared: Any, pod: Pod, most: int) -> Mapping[str, int] | None:
        """How many pods like this one fit on each node one after the other, ``most`` at most; nodes with none left out.

        ``None`` where it may matter to a node what is on others, or that is not known.
        """

    def rank_victims(self, prepared: Any, node_name: str, priority: int) -> list[Standing]:
        """The pods of a node below ``priority`` in the order in which they would go, the first first.

        Raises ``KeyError`` for a node that is not there.
        """


def scheduler_for(
    algorithm: str = "",
    configuration: Mapping[str, Any] | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    policy: Mapping[str, Any] | None = None,
    plugins: Sequence[FoundPlugin] = (),
    connect: Connect | None = None,
) -> Scheduler:
    """The scheduler of that name (the default for an empty one), with a configuration as plain data and feature gates.

    ``policy`` is a Policy file, which only the old ones have, and ``plugins`` are those out-of-tree, which only
    today's has. ``connect`` makes calls to extenders; without it none is called. Raises ``UsageError`` for a file or a
    plugin with another, and for a name or a gate that there is not, and ``ConfigurationError`` for a configuration that
    the real scheduler rejects.
    """
    # Each is imported when it is asked for: a command needs one.
    algorithm = algorithm or DEFAULT_ALGORITHM
    version = version_of(algorithm)
    if version is None and (asked := next((each for each in plugins if each.is_asked_for), None)):
        raise UsageError(f"{asked.source}: plugins are for {_of_kube()}, and {algorithm} takes none")
    if algorithm in LEGACY_ROWS:
        from kpreempt.schedulers.legacy.factory import legacy_scheduler  # noqa: PLC0415

        return legacy_scheduler(algorithm, configuration, feature_gates, policy=policy, connect=connect)
    if algorithm == VOLCANO:
        hint = "kpreempt volcano, or kpreempt explain --algorithm volcano-1.8"
        raise UsageError(f"{VOLCANO} runs whole sessions, and is not asked about one pod after the other", hint=hint)
    if algorithm == KUEUE:
        hint = "kpreempt explain --algorithm kueue-0.19, or kpreempt batch"
        raise UsageError(
            f"{KUEUE} decides on whole Workloads, and is not asked about one pod after the other", hint=hint
        )
    if version is None:
        raise UsageError(f"there is no algorithm {algorithm!r}", hint=_advice(algorithm))
    if policy is not None:
        hint = f"--algorithm {'|'.join(LEGACY_ROWS)}, or --scheduler-config"
        raise UsageError(f"--policy-config: {algorithm} reads no Policy file; 1.23 took them away", hint=hint)
    if configuration is None and not feature_gates and not plugins:
        from kpreempt.schedulers.kube.scheduler import KubeScheduler  # noqa: PLC0415

        return KubeScheduler(behaviour=behaviour(version))
    from kpreempt.schedulers.kube.configuration import scheduler_from_configuration  # noqa: PLC0415

    return scheduler_from_configuration(configuration, feature_gates, plugins, connect, version)


def _of_kube() -> str:
    return f"{KUBE_ALGORITHMS[0]} to {KUBE_ALGORITHMS[-1]}"


def timed_by_part(scheduler: Scheduler, phases: Phases) -> Scheduler:
    """The same scheduler; what its plugins and extenders take is told to ``phases``, its own phases are not."""
    return scheduler if phases is NO_PHASES else cast(Scheduler, _Timed(scheduler, _Parts(phases)))


class _Parts:
    def __init__(self, phases: Phases) -> None:
        self._phases = phases

    def phase(self, _name: str, /) -> AbstractContextManager[None]:
        return nullcontext()

    def part(self, name: str, /) -> AbstractContextManager[None]:
        return self._phases.part(name)


class _Timed:
    def __init__(self, scheduler: Scheduler, parts: Phases) -> None:
        self._scheduler = scheduler
        self._parts = parts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)

    def decide(self, prepared: Any, pod: Pod, **options: Any) -> Verdict:
        return self._scheduler.decide(prepared, pod, phases=self._parts, **options)


def queue_for(
    algorithm: str,
    started: datetime,
    *,
    feature_gates: Mapping[str, bool] | None = None,
    initial_backoff: timedelta | None = None,
    max_backoff: timedelta | None = None,
    rules: QueueRules = NO_RULES,
) -> SchedulingQueue:
    """An empty queue of the algorithm, of a scheduler that started at ``started``.

    Of the gates PodPriority (in 1.13) and, later, SchedulerPopFromBackoffQ count. Backoff can be configured, and
    ``rules`` made by out-of-tree plugins, in ``KUBE_ALGORITHMS`` only. Raises ``UsageError`` for an algorithm whose
    queue is not modelled.
    """
    gates = feature_gates or {}
    if not has_queue(algorithm):
        raise UsageError(f"the queue of {algorithm} is not modelled", hint=", ".join(QUEUE_ALGORITHMS))
    version = version_of(algorithm)
    if version is not None:
        from kpreempt.schedulers.kube.queue.handlers import KubeQueue  # noqa: PLC0415

        return KubeQueue(started, behaviour(version, gates), initial_backoff, max_backoff, rules=rules)
    if algorithm == "kube-1.8" or not gates.get("PodPriority", True):
        from kpreempt.schedulers.queues.v1_8 import Queue18  # noqa: PLC0415

        return Queue18()
    from kpreempt.schedulers.queues.v1_13 import Queue113  # noqa: PLC0415

    return Queue113(started)


def _advice(name: str) -> str:
    """The algorithm that a name means which is nearly one; all of them where it names another version."""
    near = nearest(name, ALL_ALGORITHMS)
    digits, version = ("".join(filter(str.isdigit, each)) for each in (name, near))
    return near if digits in ("", version) else ", ".join(ALL_ALGORITHMS)
