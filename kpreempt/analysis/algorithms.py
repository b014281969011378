"""The available schedulers by algorithm name, and the context of an analysis.

The context is a cluster, a scheduler and the time. The default algorithm is that of the cluster's version, which also
determines the rules of the API server and of controllers. Equal pending pods are decided once, each by itself against
the same cluster.
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
from kpreempt.schedulers.kube.disabled_gates import assume_of_pods
from kpreempt.schedulers.kube.versions import (
    behavior,
    decide_equally,
    minor_of,
    modeled_version,
    number_of,
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
    """Whether it is one of ``KUBE_ALGORITHMS``, or one of their releases."""
    return version_of(algorithm) is not None


def has_queue(algorithm: str) -> bool:
    """Whether its scheduling queue is modeled."""
    return algorithm in QUEUE_ALGORITHMS or is_kube_algorithm(algorithm)


class Scheduler(Protocol):
    """What an analysis needs from a scheduler; ``prepare`` is called once per cluster, ``decide`` once per pod."""

    @property
    def algorithm(self) -> str:
        """Its name among ``ALGORITHMS``."""

    @property
    def scheduler_names(self) -> frozenset[str]:
        """The scheduler names whose pods it schedules."""

    @property
    def extra_fields(self) -> ExtraFields:
        """What its plugins read that a snapshot only keeps on request."""

    @property
    def decisions_depend_on_pod_identity(self) -> bool:
        """Whether a verdict may depend on the pod's identity, as with out-of-tree plugins and some extenders."""

    @property
    def is_monotonic_in_priority(self) -> bool:
        """Whether priorities only matter relative to each other: there is no out-of-tree plugin or extender."""

    @property
    def assumptions(self) -> Sequence[Assumption]:
        """The assumptions that apply to any use of it, and that its verdicts have, too."""

    @property
    def settings(self) -> Settings:
        """The settings that apply to its queue and to controllers."""

    def prepare(
        self,
        cluster: ClusterSnapshot,
        *,
        now: datetime,
        is_queued: bool = True,
        before: Any = None,
        changes: PodChanges | None = None,
        expects_equivalent_pods: bool = False,
    ) -> Any:
        """Prepare a cluster for any number of pods.

        ``now`` stands in for missing start times. ``is_queued`` means that pending pods are in the scheduler's queue,
        as in a running cluster. ``before`` is this scheduler's preparation, with the same ``is_queued``, of a cluster
        that differs only in pods and budgets, so that unchanged parts can be reused; ``changes`` are the changes of
        pods, if known. It ``expects_equivalent_pods`` if many pods like the first one, or similar clusters, will
        follow.
        """

    def queue_rules(self, prepared: Callable[[], Any], phases: Phases = NO_PHASES) -> QueueRules:
        """The rules of out-of-tree plugins for its queue; none for a scheduler without such plugins.

        ``prepared`` returns the current prepared cluster on each call.
        """

    def decide(
        self,
        prepared: Any,
        pod: Pod,
        *,
        records_steps: bool = True,
        records_scores: bool = True,
        records_nodes: bool = True,
        records_odds: bool = True,
        phases: Phases = NO_PHASES,
        is_popped: bool = False,
    ) -> Verdict:
        """Decide about a pod as the scheduler would.

        Without ``records_steps``, only the best candidates need the steps of their victim selection, and without
        ``records_scores`` not even these, nor the plugins' scores. Without ``records_nodes``, some of the rejected
        nodes may stand for all, and without ``records_odds``, the likely result for everything that chance could lead
        to. ``phases`` records where the time goes. ``is_popped`` means that the pod comes from a queue with these
        ``queue_rules``.
        """

    def describe_node(self, prepared: Any, pod: Pod, node_name: str) -> NodeEvaluation:
        """The result of every filter on one node. Raises ``KeyError`` if the node does not exist."""

    def capacity_of_nodes(self, prepared: Any, pod: Pod, most: int) -> Mapping[str, int] | None:
        """The number of copies of this pod that fit on each node, at most ``most``; nodes with none are left out.

        ``None`` if pods on other nodes may matter, or if it is unknown.
        """

    def rank_victims(self, prepared: Any, node_name: str, priority: int) -> list[RankedVictim]:
        """The pods of a node below ``priority`` in eviction order.

        Raises ``KeyError`` if the node does not exist.
        """


def scheduler_for(
    algorithm: str = "",
    configuration: Mapping[str, Any] | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    policy: Mapping[str, Any] | None = None,
    plugins: Sequence[FoundPlugin] = (),
    connect: Connect | None = None,
) -> Scheduler:
    """The scheduler with that name (or the default), with a configuration as plain data and feature gates.

    ``policy`` is a Policy file, which only old schedulers read, and ``plugins`` are out-of-tree, which only current
    ones support. ``connect`` makes calls to extenders; without it none is called. Raises ``UsageError`` for an
    unsupported file or plugin, and for an unknown name or gate, and ``ConfigurationError`` for a configuration that the
    real scheduler rejects.
    """
    # Each is imported on first use, because a command needs only one.
    algorithm = algorithm or DEFAULT_ALGORITHM
    version = version_of(algorithm)
    if version is None and (plugin := next((each for each in plugins if each.is_requested), None)):
        supported = f"{KUBE_ALGORITHMS[0]} to {KUBE_ALGORITHMS[-1]}"
        raise UsageError(f"{plugin.source}: plugins are supported by {supported}, but not by {algorithm}")
    if algorithm in LEGACY_ROWS:
        from kpreempt.schedulers.legacy.factory import legacy_scheduler  # noqa: PLC0415

        return legacy_scheduler(algorithm, configuration, feature_gates, policy=policy, connect=connect)
    if algorithm == VOLCANO:
        hint = "kpreempt volcano, or kpreempt explain --algorithm volcano-1.8"
        raise UsageError(f"{VOLCANO} runs whole sessions and does not decide about single pods", hint=hint)
    if algorithm == KUEUE:
        hint = "kpreempt explain --algorithm kueue-0.19, or kpreempt batch"
        raise UsageError(f"{KUEUE} decides about whole Workloads and not about single pods", hint=hint)
    if version is None:
        # Suggest a similar name, or all names if the version differs.
        near = nearest(algorithm, ALL_ALGORITHMS)
        digits, other = ("".join(filter(str.isdigit, each)) for each in (algorithm, near))
        hint = near if digits in ("", other) else ", ".join(ALL_ALGORITHMS)
        raise UsageError(f"unknown algorithm {algorithm!r}", hint=hint)
    if policy is not None:
        hint = f"--algorithm {'|'.join(LEGACY_ROWS)}, or --scheduler-config"
        raise UsageError(f"--policy-config: {algorithm} reads no Policy file; 1.23 removed them", hint=hint)
    if configuration is None and not feature_gates and not plugins:
        from kpreempt.schedulers.kube.scheduler import KubeScheduler  # noqa: PLC0415

        return KubeScheduler(behavior=behavior(version))
    from kpreempt.schedulers.kube.configuration import scheduler_from_configuration  # noqa: PLC0415

    return scheduler_from_configuration(configuration, feature_gates, plugins, connect, version)


def timed_by_part(scheduler: Scheduler, phases: Phases) -> Scheduler:
    """The same scheduler, which reports the time of plugins and extenders to ``phases``, but not its own phases."""
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
        return self._scheduler.decide(prepared, pod, **{**options, "phases": self._parts})


def queue_for(
    algorithm: str,
    started: datetime,
    *,
    feature_gates: Mapping[str, bool] | None = None,
    initial_backoff: timedelta | None = None,
    max_backoff: timedelta | None = None,
    rules: QueueRules = NO_RULES,
) -> SchedulingQueue:
    """An empty queue of the algorithm, for a scheduler that started at ``started``.

    The relevant gates are PodPriority (in 1.13) and SchedulerPopFromBackoffQ. Backoff and the ``rules`` of out-of-tree
    plugins only apply to ``KUBE_ALGORITHMS``. Raises ``UsageError`` if the queue of the algorithm is not modeled.
    """
    gates = feature_gates or {}
    if not has_queue(algorithm):
        raise UsageError(f"the queue of {algorithm} is not modeled", hint=", ".join(QUEUE_ALGORITHMS))
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

    ``at`` is the time of the snapshot, which stands in for missing start times; its age is counted to ``now``, which is
    also the default for ``at``. ``assumptions`` concern the cluster and thus every result. ``phases`` records where the
    time goes.
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
    """An algorithm for a cluster, and the assumptions about the cluster's version."""

    algorithm: str
    assumptions: list[Assumption]


def algorithm_for(named: str, cluster: ClusterSnapshot) -> Chosen:
    """The ``named`` algorithm, or for ``auto`` that of the cluster's version.

    The version is the server's, or else that of the newest kubelet, which is never newer than the server; without
    either, the latest supported one. For an unsupported version, the nearest one is used. A patch release is named if
    it decides differently from the last one of its minor version.

    A guess from kubelets, or from nothing, fails no gate (``AssumptionKind.INFORMATIONAL``): unless a cluster is being
    upgraded, it has the version of its kubelets, and input without kubelets is not from a cluster. A version that is
    known to be unsupported, or to differ from the named algorithm, does.
    """
    if named != AUTO:
        return Chosen(named, _contradiction(named, cluster.version))
    if number_of_server(cluster.version) is not None:
        return _of_version(cluster.version, cluster.version)
    # The highest Kubernetes version; empty if there is none, as with virtual nodes.
    versions = (node.status.node_info.kubelet_version for node in cluster.nodes)
    numbers = {each: number for each in set(versions) if (number := number_of_server(each)) is not None}
    kubelet = max(numbers, key=lambda each: (numbers[each], each), default="")
    if not kubelet:
        message = f"unknown; assuming {_shown(LATEST_ALGORITHM)} (latest supported)"
        return Chosen(LATEST_ALGORITHM, [_about_version(message, AssumptionKind.INFORMATIONAL)])
    chosen = _of_version(_minor(kubelet), f"{kubelet} (newest kubelet)")
    if chosen.assumptions:
        return chosen
    # Short, because it is on every screen.
    message = f"unknown; assuming {_shown(chosen.algorithm)}, like the newest kubelet"
    return Chosen(chosen.algorithm, [_about_version(message, AssumptionKind.INFORMATIONAL)])


def assume_of_gates(scheduler: Scheduler, cluster: ClusterSnapshot) -> list[Assumption]:
    """The assumption that gates that are off by default are off, if pods of the cluster use their fields."""
    version = version_of(scheduler.algorithm)
    if version is None:
        return []
    return assume_of_pods(cluster.pods, behavior(version, scheduler.settings.gates))


def _of_version(version: str, what: str) -> Chosen:
    """The algorithm for a server of this version; ``what`` starts the assumption."""
    own = f"{PREFIX}{_minor(version)}"
    if own in ALGORITHMS and own not in KUBE_ALGORITHMS:
        return Chosen(own, [])
    modeled = modeled_version(version)
    assert modeled is not None
    if modeled.fit == "exact":
        release = version_of(modeled.algorithm)
        assert release is not None
        minor = minor_of(release)
        return Chosen(f"{PREFIX}{minor}" if decide_equally(release, minor) else modeled.algorithm, [])
    shown = _shown(modeled.algorithm)
    if modeled.fit == "alike":
        message = f"{what} has the same scheduler as {shown}"
        return Chosen(modeled.algorithm, [_about_version(message, AssumptionKind.INFORMATIONAL)])
    from kpreempt.schedulers.kube.history import known_changes  # noqa: PLC0415 - rarely needed

    known = known_changes(_minor(version))
    differs = f"Known differences: {' '.join(known)}" if known else f"The differences in {_minor(version)} are unknown."
    message = f"{what} is not supported; the nearest supported version, {shown}, is used. {differs}"
    return Chosen(modeled.algorithm, [_about_version(message, AssumptionKind.UNMODELED)])


def _contradiction(algorithm: str, version: str) -> list[Assumption]:
    """The assumption that the cluster's version decides differently from the named algorithm; not if it is unknown."""
    if not version or algorithm == VOLCANO:
        return []
    own = version_of(algorithm)
    if number_of_server(version) is None:
        return []
    modeled = modeled_version(version)
    if own is None:
        is_own = algorithm == f"{PREFIX}{_minor(version)}"
    else:
        modeled_release = (
            version_of(modeled.algorithm) if modeled is not None and modeled.fit in ("exact", "alike") else None
        )
        is_own = modeled_release is not None and decide_equally(own, modeled_release)
    if is_own:
        return []
    return [_about_version(f"{version}, but the simulated scheduler is {_shown(algorithm)}")]


def _about_version(message: str, kind: AssumptionKind = AssumptionKind.UNMODELED) -> Assumption:
    return Assumption("cluster", "version", message, kind)


def _minor(version: str) -> str:
    number = number_of_server(version)
    assert number is not None
    return ".".join(map(str, number[:2]))


def _shown(algorithm: str) -> str:
    return algorithm.removeprefix(PREFIX)


def api_server_rules(settings: Settings) -> ApiServerRules:
    """The API server's rules in the version of these settings; none apply before 1.29."""
    return _api_server_rules(settings.facts)


def controller_rules(settings: Settings) -> ControllerRules:
    """The controllers' rules in the version of these settings; none apply before 1.29."""
    from kpreempt.controllers.actions import ControllerRules  # noqa: PLC0415 - rarely needed

    return ControllerRules(**_enabled_rules(ControllerRules, settings.facts))


def api_server_of(cluster: ClusterSnapshot) -> ApiServerRules:
    """The API server's rules in the cluster's version, for queries with no scheduler or several."""
    version = version_of(algorithm_for(AUTO, cluster).algorithm)
    return _api_server_rules(behavior(version)._asdict() if version is not None else {})


def _api_server_rules(facts: Mapping[str, object]) -> ApiServerRules:
    version = facts.get("version")
    minor = number_of(version)[1] if isinstance(version, str) else 0
    return ApiServerRules(**_enabled_rules(ApiServerRules, facts))._replace(minor=minor)


def _enabled_rules(rules: type[NamedTuple], facts: Mapping[str, object]) -> dict[str, bool]:
    return {field: facts.get(field) is True for field in rules._fields}


def eviction_rules_of(settings: Settings) -> EvictionRules:
    """The eviction rules in the version of these settings; none apply before 1.29."""
    from kpreempt.eviction.records import EvictionRules  # noqa: PLC0415 - rarely needed

    return EvictionRules(**_enabled_rules(EvictionRules, settings.facts))


Item = TypeVar("Item")
Result = TypeVar("Result")


def pending_pods(cluster: ClusterSnapshot) -> list[Pod]:
    """The unfinished pods without a node, in the order of the snapshot."""
    return [pod for pod in cluster.pods if not pod.spec.node_name and not pod.is_terminal]


def pods_by_node(pods: Iterable[Pod], nodes: Iterable[str]) -> dict[str, list[Pod]]:
    """The unfinished pods on each of the nodes, in order."""
    found: dict[str, list[Pod]] = {name: [] for name in nodes}
    for pod in pods:
        if pod.spec.node_name in found and not pod.is_terminal:
            found[pod.spec.node_name].append(pod)
    return found


class Spread(Protocol):
    """Runs work for each item, possibly in parallel, and returns the results in order."""

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

        ``is_long`` means that each takes a second or more; ``shared`` are existing objects that occur in many results.
        """
        ...


def one_by_one(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    /,
    *,
    is_long: bool = False,  # noqa: ARG001 - used by parallel implementations
    shared: Sequence[object] = (),  # noqa: ARG001 - used by parallel implementations
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
    """Each pod with its verdict; pods that are equivalent for the scheduler share one, except for the name.

    Shared verdicts lack effects, which name the pod, and scores, and anything that ``read`` drops: transferring
    verdicts between processes can take as long as computing them.
    """
    keys = [equivalence_key_for(scheduler, pod) for pod in pods]
    distinct = dict(zip(reversed(keys), reversed(pods), strict=True))

    def decide(pod: Pod) -> Verdict:
        verdict = scheduler.decide(prepared, pod, records_steps=False, records_scores=False, phases=phases)
        return read(msgspec.structs.replace(verdict, effects=[], scores={}))

    verdicts = dict(zip(distinct, spread(distinct.values(), decide), strict=True))
    return ((pod, _with_name(verdicts[key], pod)) for key, pod in zip(keys, pods, strict=True))


def equivalence_key_for(scheduler: Scheduler, pod: Pod) -> bytes:
    """Equal for pods with the same verdict from this scheduler; the pod's key if it depends on identity."""
    return pod.key.encode() if scheduler.decisions_depend_on_pod_identity else equivalence_key(pod)


def equivalence_key(pod: Pod) -> bytes:
    """Equal for pods that the scheduler cannot distinguish except by identity.

    Identity, times, and fields written by the scheduler are left out. The name is kept if claims or volumes are named
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
    reduced = msgspec.structs.replace(pod, metadata=metadata, status=status)
    return msgspec.json.encode(pod_document(reduced), order="deterministic")


def _with_name(verdict: Verdict, pod: Pod) -> Verdict:
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
