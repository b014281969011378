"""kube-scheduler: a cluster made ready once, and any number of questions about it."""

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
from kpreempt.schedulers.kube.framework.decision_cache import Memory
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
from kpreempt.schedulers.kube.versions import Behaviour
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

# Below this many pods columns save no time, and NumPy need not be loaded.
MIN_PODS_OF_TABLE = 2000
# In bytes, with what OpenBLAS takes for itself.
_ROOM_OF_NUMPY = 96 * 2**20


class Prepared:
    """A cluster made ready by ``scheduler`` for any number of questions: the cache's state, a framework per profile.

    A big cluster has columns over its pods, too.
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
    """kube-scheduler with its profiles, as its version and feature gates let it behave."""

    def __init__(
        self,
        profiles: Sequence[Profile] | None = None,
        behavior: Behaviour | None = None,
        assumptions: Sequence[Assumption] = (),
        *,
        registry: Registry | None = None,
        extra_fields: ExtraFields = NO_EXTRAS,
        extenders: Sequence[HttpExtender] = (),
        extender_settings: Sequence[ExtenderSettings] = (),
        backoffs: tuple[int, int] | None = None,
    ) -> None:
        """``registry`` has the plugins that there are (``None``: the version's own).

        ``extra_fields`` is what those out-of-tree read besides.

        ``extenders`` are those that may be called, in the order in which they are;
        ``extender_settings`` are of all that the configuration has, in its order. ``backoffs`` are the shortest and the
        longest backoff of the queue, in seconds.
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
        """The names of the profiles."""
        return frozenset(profile.scheduler_name for profile in self.profiles)

    @property
    def decisions_depend_on_pod_identity(self) -> bool:
        """Whether a verdict may hang on who a pod is: by extenders, or plugins that do not say that theirs cannot."""
        return bool(self.extenders) or any(plugin.is_local is not True for plugin in self._out_of_tree.values())

    @property
    def is_monotonic_in_priority(self) -> bool:
        """Whether a pod's priority matters only by whose it passes: no plugin from outside and no extender is asked."""
        return not self.extenders and not self._out_of_tree

    @cached_property
    def _makers(self) -> list[PluginMaker]:
        return [PluginMaker(profile, self.behavior, self.registry) for profile in self.profiles]

    @cached_property
    def _ungated(self) -> frozenset[str]:
        """The names of the profiles in which nothing looks at scheduling gates."""
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
        expects_alike: bool = False,
    ) -> Prepared:
        """Put pods on nodes and make the plugins.

        ``now`` stands for missing start times. ``is_queued`` says that a scheduler is running there, whose queue holds
        the pending pods. Otherwise the framework is looked at on its own, as where the recorded verdicts were made: it
        knows nominated pods by name only, and does not prefer the pod's own nominated node. What ``before``, if
        this scheduler prepared it in the same way, has of the same nodes is used again where nothing changed (of pods
        ``changes`` say what did, if they are known), and the columns over their pods even beside other nodes. If
        nothing but pods and budgets changed, what decisions find out is remembered (``framework/memory.py``); where it
        ``expects_alike`` pods on clusters that follow, from the first decision on.
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
            memory = Memory(expects_alike=True) if expects_alike else None
            if follows is not None and state.follows_closely:
                # What decisions on the cluster before, and on those before that, left.
                memory = follows.frameworks[profile.scheduler_name].memory or Memory()
                memory.trim(state.node_infos)
            framework = Framework(maker.make(handle), state, memory)
            handle.framework = framework
            if tables is not None:
                # It needs NumPy, which is loaded for big clusters only.
                from kpreempt.schedulers.kube.bulk import serve  # noqa: PLC0415

                framework.rates_at_once = True
                serve(handle, framework, tables)
            frameworks[profile.scheduler_name] = framework
        return Prepared(self, state, frameworks, tables)

    def _tables(self, state: ClusterState, before: LatestTable | None) -> LatestTable | None:
        """Columns over the pods of a big cluster."""
        if state.num_pods < MIN_PODS_OF_TABLE:
            return None
        if before is None:
            # OpenBLAS ends the process where there is no room for it, so that it is asked for first.
            mmap(-1, _ROOM_OF_NUMPY).close()
        from kpreempt.schedulers.kube.bulk import LatestTable  # noqa: PLC0415

        return LatestTable(state, before)

    def queue_rules(self, prepared: Callable[[], Prepared], phases: Phases = NO_PHASES) -> QueueRules:
        """What out-of-tree plugins make of the scheduling queue (``profile.py``).

        ``prepared`` gives the cluster as it is when it is called, which only such plugins need, and queues without
        queueing hints.
        """
        rules = queue_rules(self.profiles, self.registry, lambda: prepared().frameworks, phases)
        if self.behavior.scheduler_queueing_hints:
            return rules
        from kpreempt.schedulers.kube.node_report import fits_on  # noqa: PLC0415 - only queues of old need it

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
        phases: Phases = NO_PHASES,
        is_popped: bool = False,
    ) -> Verdict:
        """What becomes of ``pod``, which must not be in the cluster as a running pod.

        Without ``records_steps`` only the best candidates carry the steps of choosing their victims. That is all that a
        report shows, and on big clusters it takes a fraction of the time. Without ``records_scores`` it says what nodes
        score in all, and no more, and leaves those steps out, too, where they take time; of candidates it has those
        with which the choice may end. Without ``records_nodes`` and where clusters follow one another, it has of the
        nodes that a plugin refuses in one way only one. ``phases`` are ``filter``, then ``score``, or ``dryRun`` and
        ``choice``. A pod that ``is_popped`` from a queue with this scheduler's
        ``queue_rules`` was let in: no plugin from outside holds it back any more, whatever has changed since.

        Where the cluster does not have the scheduler's own order of pods, the verdict tells what other orders of equal
        ones would come to; that of equal volumes is a Go map's, and no input shows it.
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
            reason = f'no profile for scheduler name "{name}" (there is: {known})'
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
        # What plugins from outside look at is not known.
        remembers_shapes = framework.memory is not None and not framework.has_out_of_tree_plugins
        state = CycleState(
            records_steps=records_steps,
            records_scores=records_scores,
            records_nodes=records_nodes,
            phases=phases,
            findings=findings,
            shape_findings=framework.memory.of_shape(pod) if framework.memory and remembers_shapes else None,
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
        """What every filter says of one node: more than the scheduler looks at, which stops at the first refusal.

        Empty for a pod of another scheduler; raises ``KeyError`` for a node that is not there.
        """
        framework = prepared.frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            return NodeEvaluation()
        from kpreempt.schedulers.kube.node_report import evaluate_node  # noqa: PLC0415 - few ask about one node

        return evaluate_node(framework, pod, prepared.cluster.by_name[node_name])

    def capacity_of_nodes(self, prepared: Prepared, pod: Pod, most: int) -> Mapping[str, int] | None:
        """How many pods like this one each node holds, ``most`` at most."""
        from kpreempt.schedulers.kube.node_report import capacity_of_nodes  # noqa: PLC0415 - few ask for it

        framework = prepared.frameworks.get(pod.spec.scheduler_name)
        return None if framework is None or self.extenders else capacity_of_nodes(framework, pod, most)

    def rank_victims(self, prepared: Prepared, node_name: str, priority: int) -> list[RankedVictim]:
        """The pods of a node below ``priority``, those that would go first first.

        Raises ``KeyError`` for a node that is not there.
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
    """Why the scheduler would not look at the pod at all, or an empty text."""
    if pod.is_terminal:
        return f"the pod has finished (phase {pod.status.phase})"
    if pod.metadata.deletion_timestamp is not None:
        return f"skip schedule deleting pod: {pod.key}"
    if pod.spec.node_name:
        return f'the pod is assigned to node "{pod.spec.node_name}" already; the scheduler has no part in it'
    return ""


def _summary(pod: Pod, behavior: Behaviour) -> PodSummary:
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
