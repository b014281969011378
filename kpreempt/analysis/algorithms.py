"""The schedulers that there are, by the name of their algorithm, and what every question about a cluster is asked of.

That is a cluster, a scheduler and the time. Where no algorithm is named, that of the cluster's own version stands; what
of a version counts for the API server and for controllers, which know nothing of schedulers, is told from it, too.
Equal pending pods are decided on once, each on its own against the same cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

import msgspec

from kpreempt.admission import ApiServerRules
from kpreempt.analysis.what_if import pod_document
from kpreempt.errors import UsageError, nearest
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.extra_fields import ExtraFields
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.scheduler_table import (
    ALGORITHMS,
    ALL_ALGORITHMS,
    DEFAULT_ALGORITHM,
    KUBE_ALGORITHMS,
    KUEUE,
    LATEST_ALGORITHM,
    LEGACY_ROWS,
    PREFIX,
    QUEUE_ALGORITHMS,
    VOLCANO,
)
from kpreempt.schedulers.interface import NO_RULES, QueueRules, Settings
from kpreempt.schedulers.kube.dormant_gates import assume_of_pods
from kpreempt.schedulers.kube.versions import (
    behavior,
    decide_alike,
    minor_of,
    modeled_version,
    number_of_server,
    version_of,
)
from kpreempt.verdict import Assumption, AssumptionKind, NodeEvaluation, Verdict

if TYPE_CHECKING:
    from kpreempt.controllers.actions import ControllerRules
    from kpreempt.eviction.records import EvictionRules
    from kpreempt.schedulers.extender_protocol import Connect
    from kpreempt.schedulers.interface import PodChanges
    from kpreempt.schedulers.kube.configuration import FoundPlugin
    from kpreempt.schedulers.queues.interface import SchedulingQueue
    from kpreempt.verdict.at_risk import RankedVictim


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
    def extra_fields(self) -> ExtraFields:
        """What its plugins read that a snapshot keeps only where it is asked for."""

    @property
    def decisions_depend_on_pod_identity(self) -> bool:
        """Whether a verdict may hang on who a pod is, as with out-of-tree plugins and extenders that see its name."""

    @property
    def is_monotonic_in_priority(self) -> bool:
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

    def describe_node(self, prepared: Any, pod: Pod, node_name: str) -> NodeEvaluation:
        """What every filter says of one node; raises ``KeyError`` for a node that is not there."""

    def capacity_of_nodes(self, prepared: Any, pod: Pod, most: int) -> Mapping[str, int] | None:
        """How many pods like this one fit on each node one after the other, ``most`` at most; nodes with none left out.

        ``None`` where it may matter to a node what is on others, or that is not known.
        """

    def rank_victims(self, prepared: Any, node_name: str, priority: int) -> list[RankedVictim]:
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
    if version is None and (asked := next((each for each in plugins if each.is_requested), None)):
        takers = f"{KUBE_ALGORITHMS[0]} to {KUBE_ALGORITHMS[-1]}"
        raise UsageError(f"{asked.source}: plugins are for {takers}, and {algorithm} takes none")
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
        # The algorithm that a name means which is nearly one; all of them where it names another version.
        near = nearest(algorithm, ALL_ALGORITHMS)
        digits, other = ("".join(filter(str.isdigit, each)) for each in (algorithm, near))
        hint = near if digits in ("", other) else ", ".join(ALL_ALGORITHMS)
        raise UsageError(f"there is no algorithm {algorithm!r}", hint=hint)
    if policy is not None:
        hint = f"--algorithm {'|'.join(LEGACY_ROWS)}, or --scheduler-config"
        raise UsageError(f"--policy-config: {algorithm} reads no Policy file; 1.23 took them away", hint=hint)
    if configuration is None and not feature_gates and not plugins:
        from kpreempt.schedulers.kube.scheduler import KubeScheduler  # noqa: PLC0415

        return KubeScheduler(behavior=behavior(version))
    from kpreempt.schedulers.kube.configuration import scheduler_from_configuration  # noqa: PLC0415

    return scheduler_from_configuration(configuration, feature_gates, plugins, connect, version)


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
        self._scheduler, self._parts = scheduler, parts

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

        return KubeQueue(started, behavior(version, gates), initial_backoff, max_backoff, rules=rules)
    if algorithm == "kube-1.8" or not gates.get("PodPriority", True):
        from kpreempt.schedulers.queues.v1_8 import Queue18  # noqa: PLC0415

        return Queue18()
    from kpreempt.schedulers.queues.v1_13 import Queue113  # noqa: PLC0415

    return Queue113(started)


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


# The name for the cluster's own version.
AUTO = "auto"


class Chosen(NamedTuple):
    """An algorithm for a cluster, and what is assumed of the cluster's version."""

    algorithm: str
    assumptions: list[Assumption]


def algorithm_for(named: str, cluster: ClusterSnapshot) -> Chosen:
    """The algorithm that is ``named``, or for ``auto`` that of the cluster's version.

    The version is the server's, else that of the newest kubelet, which is never newer than the server; without either
    the newest that is modelled. Of a version that is not modelled the nearest stands. A patch release is named where
    it decides otherwise than the last one of its minor version.

    A guess from kubelets, or from nothing, shuts no gate (``AssumptionKind.TOLD``): nearly every cluster that is not
    amid an upgrade is what its kubelets are, and what no kubelet reports on comes from no cluster. A version that is
    known not to be modelled, or to be another than that of the algorithm that is named, does.
    """
    if named != AUTO:
        return Chosen(named, _contradiction(named, cluster.version))
    if number_of_server(cluster.version) is not None:
        return _of_version(cluster.version, f"it is {cluster.version}")
    # The highest of the versions that are Kubernetes'; nothing where none is, as of nodes that only look like some.
    versions = (node.status.node_info.kubelet_version for node in cluster.nodes)
    numbers = {each: number for each in set(versions) if (number := number_of_server(each)) is not None}
    kubelet = max(numbers, key=lambda each: (numbers[each], each), default="")
    if not kubelet:
        message = f"the input has none: assumed to be {_shown(LATEST_ALGORITHM)}, the newest that is modelled"
        return Chosen(LATEST_ALGORITHM, [_about_version(message, AssumptionKind.INFORMATIONAL)])
    chosen = _of_version(_minor(kubelet), f"its newest kubelet is {kubelet}")
    if chosen.assumptions:
        return chosen
    message = (
        f"only kubelets report one: assumed to be {_shown(chosen.algorithm)}, as the newest of them ({kubelet}); the"
        " API server may be newer"
    )
    return Chosen(chosen.algorithm, [_about_version(message, AssumptionKind.INFORMATIONAL)])


def assume_of_gates(scheduler: Scheduler, cluster: ClusterSnapshot) -> list[Assumption]:
    """That gates are off which are so by default, where pods of the cluster have what they are for."""
    version = version_of(scheduler.algorithm)
    if version is None:
        return []
    return assume_of_pods(cluster.pods, behavior(version, scheduler.settings.gates))


def _of_version(version: str, what: str) -> Chosen:
    """The algorithm for a server of this version, of which ``what`` tells in an assumption."""
    own = f"{PREFIX}{_minor(version)}"
    if own in ALGORITHMS and own not in KUBE_ALGORITHMS:
        return Chosen(own, [])
    stands = modeled_version(version)
    assert stands is not None
    if stands.fit == "exact":
        release = version_of(stands.algorithm)
        assert release is not None
        minor = minor_of(release)
        return Chosen(f"{PREFIX}{minor}" if decide_alike(release, minor) else stands.algorithm, [])
    shown = _shown(stands.algorithm)
    if stands.fit == "alike":
        message = f"{what}, and its scheduler is that of {shown}"
        return Chosen(stands.algorithm, [_about_version(message, AssumptionKind.INFORMATIONAL)])
    from kpreempt.schedulers.kube.history import known_changes  # noqa: PLC0415 - few clusters are so old or so new

    known = known_changes(_minor(version))
    differs = f"Known to differ: {' '.join(known)}" if known else f"What differs in {_minor(version)} is not known."
    message = f"{what}, which is not modelled; the nearest that is, {shown}, is used. {differs}"
    return Chosen(stands.algorithm, [_about_version(message, AssumptionKind.UNMODELED)])


def _contradiction(algorithm: str, version: str) -> list[Assumption]:
    """That a cluster's version decides otherwise than the algorithm that is named; one that is not known does not."""
    if not version or algorithm == VOLCANO:
        return []
    own = version_of(algorithm)
    if number_of_server(version) is None:
        return []
    stands = modeled_version(version)
    if own is None:
        is_own = algorithm == f"{PREFIX}{_minor(version)}"
    else:
        its = version_of(stands.algorithm) if stands is not None and stands.fit in ("exact", "alike") else None
        is_own = its is not None and decide_alike(own, its)
    if is_own:
        return []
    return [_about_version(f"it is {version}; the scheduler used is that of {_shown(algorithm)}")]


def _about_version(message: str, kind: AssumptionKind = AssumptionKind.UNMODELED) -> Assumption:
    return Assumption("cluster", "version", message, kind)


def _minor(version: str) -> str:
    number = number_of_server(version)
    assert number is not None
    return ".".join(map(str, number[:2]))


def _shown(algorithm: str) -> str:
    return algorithm.removeprefix(PREFIX)


def api_server_rules(settings: Settings) -> ApiServerRules:
    """Those of the version whose scheduler has these settings; of one from before 1.29 none of them holds."""
    return ApiServerRules(**_held(ApiServerRules, settings.facts))


def controller_rules(settings: Settings) -> ControllerRules:
    """Those of the version whose scheduler has these settings; of one from before 1.29 none of them holds."""
    from kpreempt.controllers.actions import ControllerRules  # noqa: PLC0415 - few questions go on to controllers

    return ControllerRules(**_held(ControllerRules, settings.facts))


def api_server_of(cluster: ClusterSnapshot) -> ApiServerRules:
    """Those of the cluster's own version, for questions that are put to no scheduler or to several."""
    version = version_of(algorithm_for(AUTO, cluster).algorithm)
    return ApiServerRules(**_held(ApiServerRules, behavior(version)._asdict() if version is not None else {}))


def _held(rules: type[NamedTuple], facts: Mapping[str, object]) -> dict[str, bool]:
    return {field: facts.get(field) is True for field in rules._fields}


def eviction_rules_of(settings: Settings) -> EvictionRules:
    """Those of the version whose scheduler has these settings; of one from before 1.29 none of them holds."""
    from kpreempt.eviction.records import EvictionRules  # noqa: PLC0415 - few questions are about evictions

    return EvictionRules(**_held(EvictionRules, settings.facts))


Item = TypeVar("Item")
Result = TypeVar("Result")


def pending_pods(cluster: ClusterSnapshot) -> list[Pod]:
    """The pods without a node that have not finished, in the order of the snapshot."""
    return [pod for pod in cluster.pods if not pod.spec.node_name and not pod.is_terminal]


def pods_by_node(pods: Iterable[Pod], nodes: Iterable[str]) -> dict[str, list[Pod]]:
    """The pods on each of the nodes that have not finished, in their order."""
    found: dict[str, list[Pod]] = {name: [] for name in nodes}
    for pod in pods:
        if pod.spec.node_name in found and not pod.is_terminal:
            found[pod.spec.node_name].append(pod)
    return found


class Spread(Protocol):
    """Does work for each item, perhaps several at a time, and gives the results in the order of the items."""

    def __call__(
        self,
        items: Iterable[Item],
        work: Callable[[Item], Result],
        /,
        *,
        is_long: bool = False,
        shared: Sequence[object] = (),
    ) -> Iterator[Result]:
        """The result of ``work`` for each item.

        ``is_long`` says that each takes a second or more, and ``shared`` are objects that are there already, of which
        results may have many.
        """
        ...


def one_by_one(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    /,
    *,
    is_long: bool = False,  # noqa: ARG001 - others begin such work sooner
    shared: Sequence[object] = (),  # noqa: ARG001 - others need not send them
) -> Iterator[Result]:
    """The result of ``work`` for each item."""
    return map(work, items)


def decide_pending(
    pods: Sequence[Pod],
    scheduler: Scheduler,
    prepared: Any,
    *,
    spread: Spread = one_by_one,
    phases: Phases = NO_PHASES,
    read: Callable[[Verdict], Verdict] = lambda verdict: verdict,
) -> Iterator[tuple[Pod, Verdict]]:
    """Each pod with its verdict. Pods in whom the scheduler sees no difference share one, up to the pod's name.

    The effects of a shared verdict are left out, for they name the pod, and so are the scores of nodes, and what is not
    ``read`` of it: other processes hand it on, which takes as long as to decide where much is told of every node.
    """
    keys = [equivalence_key_for(scheduler, pod) for pod in pods]
    distinct = dict(zip(reversed(keys), reversed(pods), strict=True))

    def decide(pod: Pod) -> Verdict:
        verdict = scheduler.decide(prepared, pod, records_steps=False, records_scores=False, phases=phases)
        return read(msgspec.structs.replace(verdict, effects=[], scores={}))

    verdicts = dict(zip(distinct, spread(distinct.values(), decide), strict=True))
    return ((pod, _named(verdicts[key], pod)) for key, pod in zip(keys, pods, strict=True))


def equivalence_key_for(scheduler: Scheduler, pod: Pod) -> bytes:
    """Equal for pods on which one verdict of this scheduler does; for one that tells all apart who the pod is."""
    return pod.key.encode() if scheduler.decisions_depend_on_pod_identity else equivalence_key(pod)


def equivalence_key(pod: Pod) -> bytes:
    """Equal for pods that the scheduler cannot tell apart but for who they are.

    Left out are identity, times, and what the scheduler itself wrote. The name stays where claims or volumes are named
    after the pod.
    """
    is_named = bool(pod.spec.resource_claims) or any(volume.ephemeral is not None for volume in pod.spec.volumes)
    metadata = msgspec.structs.replace(
        pod.metadata,
        name=pod.metadata.name if is_named else "",
        uid="",
        resource_version="",
        creation_timestamp=None,
        generation=0,
    )
    conditions = [each for each in pod.status.conditions if each.type != "PodScheduled"]
    status = msgspec.structs.replace(pod.status, conditions=conditions)
    alike = msgspec.structs.replace(pod, metadata=metadata, status=status)
    return msgspec.json.encode(pod_document(alike), order="deterministic")


def _named(verdict: Verdict, pod: Pod) -> Verdict:
    summary = verdict.pod
    if summary.name == pod.metadata.name and summary.namespace == pod.metadata.namespace:
        return verdict
    old, new = f"Pod {summary.namespace}/{summary.name}", f"Pod {pod.key}"
    return msgspec.structs.replace(
        verdict,
        pod=msgspec.structs.replace(summary, name=pod.metadata.name),
        assumptions=[
            msgspec.structs.replace(each, subject=new) if each.subject == old else each for each in verdict.assumptions
        ],
    )
