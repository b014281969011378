"""kube-scheduler: prepare a cluster once, then run any number of decisions on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from mmap import mmap
from typing import TYPE_CHECKING

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.durations import go_seconds
from kpreempt.model.extra_fields import NO_EXTRAS, ExtraFields
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.scheduler_table import PREFIX
from kpreempt.schedulers.interface import QueueRules, Settings
from kpreempt.schedulers.kube import versions
from kpreempt.schedulers.kube.cycle import Cycle
from kpreempt.schedulers.kube.extender_session import ExtenderSession, call_extenders
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.decision_cache import DecisionCache
from kpreempt.schedulers.kube.framework.interface import (
    Handle,
    Plugin,
)
from kpreempt.schedulers.kube.framework.resources import pod_requests, requests_in_units
from kpreempt.schedulers.kube.framework.runner import Framework
from kpreempt.schedulers.kube.plugin_table import Registry, registry_of
from kpreempt.schedulers.kube.plugins.scheduling_gates import SchedulingGates
from kpreempt.schedulers.kube.profile import (
    PluginMaker,
    Profile,
    default_profile,
    out_of_tree_names,
    plugins_at,
    queue_rules,
)
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict import (
    Assumption,
    ClusterSummary,
    NodeEvaluation,
    Outcome,
    PodSummary,
    Verdict,
)

if TYPE_CHECKING:
    from kpreempt.schedulers.extender_protocol import ExtenderSettings, HttpExtender
    from kpreempt.schedulers.interface import PodChanges
    from kpreempt.schedulers.kube.bulk import LatestTable
    from kpreempt.verdict.at_risk import RankedVictim

# With fewer pods, columns save no time and NumPy is not worth loading.
MIN_PODS_OF_TABLE = 2000
# In bytes, including what OpenBLAS allocates for itself.
_NUMPY_MEMORY = 96 * 2**20


class Prepared:
    """A cluster that ``scheduler`` prepared for any number of decisions: the cache's state and a framework per profile.

    A big cluster also has columns over its pods.
    """

    def __init__(
        self,
        scheduler: KubeScheduler,
        cluster: ClusterState,
        frameworks: Mapping[str, Framework],
        tables: LatestTable | None = None,
    ) -> None:
        self.scheduler = scheduler
        self.cluster = cluster
        self.frameworks = frameworks
        self.tables = tables


class KubeScheduler:
    """kube-scheduler with its profiles, under its version and feature gates."""

    def __init__(
        self,
        profiles: Sequence[Profile] | None = None,
        behavior: Behavior | None = None,
        assumptions: Sequence[Assumption] = (),
        *,
        registry: Registry | None = None,
        extra_fields: ExtraFields = NO_EXTRAS,
        extenders: Sequence[HttpExtender] = (),
        extender_settings: Sequence[ExtenderSettings] = (),
        backoffs: tuple[int, int] | None = None,
    ) -> None:
        """``registry`` has the available plugins (``None``: the version's in-tree plugins).

        ``extra_fields`` lists extra fields that out-of-tree plugins read.

        ``extenders`` are the ones that may be called, in order; ``extender_settings`` are the settings of all
        configured extenders, in order. ``backoffs`` are the queue's initial and maximum backoff in seconds.
        """
        self.extenders = list(extenders)
        self.extender_settings = list(extender_settings)
        self.behavior = behavior or versions.behavior()
        self.algorithm = f"{PREFIX}{self.behavior.version}"
        self.registry = registry_of(self.behavior.version) if registry is None else registry
        self.extra_fields = extra_fields
        self.profiles = list(profiles) if profiles is not None else [default_profile(self.behavior)]
        self.assumptions = list(assumptions)
        initial, longest = map(go_seconds, backoffs) if backoffs else (None, None)
        self.settings = Settings(versions.modeled_gates(self.behavior), initial, longest, self.behavior._asdict())

    @property
    def scheduler_names(self) -> frozenset[str]:
        """Names of the profiles."""
        return frozenset(profile.scheduler_name for profile in self.profiles)

    @property
    def decisions_depend_on_pod_identity(self) -> bool:
        """Whether a verdict may depend on a pod's identity: through extenders, or plugins that do not rule it out."""
        return bool(self.extenders) or any(plugin.is_local is not True for plugin in self._out_of_tree.values())

    @property
    def is_monotonic_in_priority(self) -> bool:
        """Whether raising a pod's priority only adds evictable pods: no out-of-tree plugin or extender is called."""
        return not self.extenders and not self._out_of_tree

    @cached_property
    def _makers(self) -> list[PluginMaker]:
        return [PluginMaker(profile, self.behavior, self.registry) for profile in self.profiles]

    @cached_property
    def _ungated(self) -> frozenset[str]:
        """Names of the profiles in which no plugin checks scheduling gates."""
        return frozenset(
            profile.scheduler_name
            for profile in self.profiles
            if SchedulingGates.name not in plugins_at(profile, "preEnqueue", self.registry)
        )

    @property
    def _out_of_tree(self) -> Mapping[str, type[Plugin]]:
        return out_of_tree_names((name for profile in self.profiles for name in profile.enabled_names), self.registry)

    def prepare(
        self,
        cluster: ClusterSnapshot,
        *,
        now: datetime,
        is_queued: bool = True,
        before: Prepared | None = None,
        changes: PodChanges | None = None,
        expects_equivalent_pods: bool = False,
    ) -> Prepared:
        """Assign pods to nodes and create the plugins.

        ``now`` is used for missing start times. ``is_queued`` means that a scheduler is running whose queue holds the
        pending pods. Otherwise the framework runs on its own, as when the recorded verdicts were made: it knows
        nominated pods by name only, and does not prefer the pod's own nominated node.

        If this scheduler prepared ``before`` in the same way, its results for unchanged nodes are reused (``changes``
        lists the changed pods, if known), and its columns over pods are reused even if nodes changed. If only pods and
        budgets changed, what decisions find out is cached (``framework/memory.py``); with ``expects_equivalent_pods``
        pods on the clusters that follow, from the first decision on.
        """
        names = self.scheduler_names
        own = before if before is not None and before.scheduler is self else None
        follows = None
        if own is not None and own.cluster.is_queued == is_queued and own.cluster.cluster.nodes is cluster.nodes:
            follows = own
        state = ClusterState(
            cluster,
            self.behavior,
            now=now,
            scheduler_names=names,
            ungated=self._ungated,
            is_queued=is_queued,
            before=follows.cluster if follows is not None else None,
            changes=changes if follows is not None else None,
        )
        tables = self._tables(state, own.tables if own is not None else None)
        frameworks = {}
        for profile, maker in zip(self.profiles, self._makers, strict=True):
            handle = Handle(state, self.behavior, profile.parallelism)
            memory = DecisionCache(expects_equivalent_pods=True) if expects_equivalent_pods else None
            if follows is not None and state.follows_closely:
                # What decisions on the previous clusters left.
                memory = follows.frameworks[profile.scheduler_name].memory
                memory = memory or DecisionCache(expects_equivalent_pods=expects_equivalent_pods)
                memory.trim(state.node_infos)
            framework = Framework(maker.make(handle), state, memory)
            handle.framework = framework
            if tables is not None:
                # Needs NumPy, which is loaded only for big clusters.
                from kpreempt.schedulers.kube.bulk import serve  # noqa: PLC0415

                framework.rates_at_once = True
                serve(handle, framework, tables)
            frameworks[profile.scheduler_name] = framework
        return Prepared(self, state, frameworks, tables)

    def _tables(self, state: ClusterState, before: LatestTable | None) -> LatestTable | None:
        """Build the columns over the pods of a big cluster."""
        if state.num_pods < MIN_PODS_OF_TABLE:
            return None
        if before is None:
            # OpenBLAS ends the process if it cannot allocate its memory, so check for it first.
            mmap(-1, _NUMPY_MEMORY).close()
        from kpreempt.schedulers.kube.bulk import LatestTable  # noqa: PLC0415

        return LatestTable(state, before)

    def queue_rules(self, prepared: Callable[[], Prepared], phases: Phases = NO_PHASES) -> QueueRules:
        """Return how out-of-tree plugins change the scheduling queue (``profile.py``).

        ``prepared`` returns the current cluster; only out-of-tree plugins, and queues without queueing hints, call it.
        """
        rules = queue_rules(self.profiles, self.registry, lambda: prepared().frameworks, phases)
        if self.behavior.scheduler_queueing_hints:
            return rules
        from kpreempt.schedulers.kube.node_report import fits_on  # noqa: PLC0415 - only old queues need it

        def fits(pod: Pod, node: Node) -> bool:
            node_info = prepared().cluster.by_name.get(node.name)
            return node_info is not None and fits_on(pod, node_info, self.behavior)

        return rules._replace(fits_on=fits)

    def decide(
        self,
        prepared: Prepared,
        pod: Pod,
        *,
        records_steps: bool = True,
        records_scores: bool = True,
        records_nodes: bool = True,
        records_odds: bool = True,
        phases: Phases = NO_PHASES,
        is_popped: bool = False,
    ) -> Verdict:
        """Decide about ``pod``, which must not be in the cluster as a running pod.

        Without ``records_steps``, only the best candidates carry the steps of victim selection. This is all that a
        report shows, and on big clusters it takes a fraction of the time. Without ``records_scores``, the verdict has
        only each node's total score, omits those steps if they are expensive, and has only the candidates that may be
        chosen. Without ``records_nodes``, if clusters follow one another, it has only one node for each way in which a
        plugin rejects nodes. Without ``records_odds``, it has only the likely result. ``phases`` are ``filter``, then
        ``score``, or ``dryRun`` and ``choice``. A pod that ``is_popped`` from a queue with this scheduler's
        ``queue_rules`` was already admitted: out-of-tree plugins no longer hold it back, whatever has changed since.

        If the cluster does not have the scheduler's own order of pods, the verdict describes what other orders of equal
        pods would result in. Equal volumes are in the order of a Go map, which no input shows.
        """
        frame = Verdict(
            algorithm=self.algorithm,
            outcome=Outcome.NOT_SCHEDULED,
            pod=_summary(pod, self.behavior),
            cluster=ClusterSummary(nodes=len(prepared.cluster.node_infos), pods=prepared.cluster.num_pods),
            assumptions=self.assumptions,
        )
        name = pod.spec.scheduler_name
        reason = _reason_unseen(pod)
        if not reason and name not in prepared.frameworks:
            known = ", ".join(sorted(prepared.frameworks))
            reason = f'no profile for scheduler name "{name}" (known: {known})'
        if reason:
            return msgspec.structs.replace(frame, reason=reason)
        framework = prepared.frameworks[name]
        gate = framework.run_pre_enqueue(pod, phases, is_popped=is_popped)
        if not gate.is_success:
            held_by = gate.plugin if gate.plugin != SchedulingGates.name else ""
            return msgspec.structs.replace(frame, reason=gate.message, held_by=held_by)
        profile = next(profile for profile in self.profiles if profile.scheduler_name == name)
        findings = None
        if framework.memory is not None:
            framework.memory.follow(prepared.cluster)
            findings = framework.memory.of(pod)
        # It is unknown which fields out-of-tree plugins read.
        remembers_shapes = framework.memory is not None and not framework.has_out_of_tree_plugins
        state = CycleState(
            records_steps=records_steps,
            records_scores=records_scores,
            records_nodes=records_nodes,
            records_odds=records_odds,
            phases=phases,
            findings=findings,
            scheduling_findings=framework.memory.of_scheduling_key(pod)
            if framework.memory and remembers_shapes
            else None,
        )
        if self.extenders:
            call_extenders(state, ExtenderSession(self.extenders, prepared.cluster, pod, phases))

        def run(state: CycleState) -> Verdict:
            return Cycle(framework, profile, self.behavior, pod, state, frame).run()

        verdict = run(state)
        if not pod.spec.volumes:
            return verdict
        from kpreempt.schedulers.kube.volume_choices import with_volume_choices  # noqa: PLC0415 - few pods have volumes

        return with_volume_choices(verdict, pod, state, framework, run)

    def describe_node(self, prepared: Prepared, pod: Pod, node_name: str) -> NodeEvaluation:
        """Return every filter's result on one node; the scheduler itself would stop at the first rejection.

        Empty for a pod of another scheduler. Raises ``KeyError`` if the node does not exist.
        """
        framework = prepared.frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            return NodeEvaluation()
        from kpreempt.schedulers.kube.node_report import evaluate_node  # noqa: PLC0415 - rarely used

        return evaluate_node(framework, pod, prepared.cluster.by_name[node_name])

    def capacity_of_nodes(self, prepared: Prepared, pod: Pod, most: int) -> Mapping[str, int] | None:
        """Return how many pods like this one each node can hold, up to ``most``."""
        from kpreempt.schedulers.kube.node_report import capacity_of_nodes  # noqa: PLC0415 - rarely used

        framework = prepared.frameworks.get(pod.spec.scheduler_name)
        return None if framework is None or self.extenders else capacity_of_nodes(framework, pod, most)

    def rank_victims(self, prepared: Prepared, node_name: str, priority: int) -> list[RankedVictim]:
        """List the pods of a node with a priority below ``priority``, first victim first.

        Raises ``KeyError`` if the node does not exist.
        """
        from kpreempt.schedulers.kube.preemption.importance import BudgetIndex, rank_victims, stand_in_order  # noqa: PLC0415

        cluster = prepared.cluster
        budgets = BudgetIndex(
            cluster.cluster.pod_disruption_budgets, stops_at_violated=self.behavior.stops_at_violated_budget
        )
        return rank_victims(
            cluster.by_name[node_name],
            priority,
            budgets,
            cluster.now,
            has_scheduler_order=stand_in_order(cluster.cluster, cluster.by_name[node_name], priority),
            reads_starts_once=self.behavior.reads_start_times_once,
        )


def _reason_unseen(pod: Pod) -> str:
    """Return why the scheduler would ignore the pod, or an empty text."""
    if pod.is_terminal:
        return f"the pod has finished (phase {pod.status.phase})"
    if pod.metadata.deletion_timestamp is not None:
        return f"skip schedule deleting pod: {pod.key}"
    if pod.spec.node_name:
        return f'the pod is already assigned to node "{pod.spec.node_name}"; the scheduler ignores it'
    return ""


def _summary(pod: Pod, behavior: Behavior) -> PodSummary:
    return PodSummary(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        priority=pod.priority,
        priority_class_name=pod.spec.priority_class_name,
        preemption_policy=pod.spec.preemption_policy or "PreemptLowerPriority",
        scheduler_name=pod.spec.scheduler_name,
        nominated_node_name=pod.status.nominated_node_name,
        requests=requests_in_units(pod_requests(pod, pod_level=behavior.pod_level_resources)),
    )
