"""Create an old scheduler by name and settings: the cluster is prepared once, for any number of decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.extra_fields import NO_EXTRAS
from kpreempt.model.pod import DEFAULT_SCHEDULER_NAME, Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.scheduler_table import LEGACY_ROWS
from kpreempt.schedulers.extender_protocol import Connect, HttpExtender, with_ignorable_last
from kpreempt.schedulers.go_sort import sorted_as_before_go_1_19
from kpreempt.schedulers.interface import NO_RULES, QueueRules, Settings
from kpreempt.schedulers.legacy.base.configuration import configuration_extenders, read_policy, read_switches
from kpreempt.schedulers.legacy.base.cycle import Cycle, evaluate_node
from kpreempt.schedulers.legacy.base.extenders import Extender, OverHttp
from kpreempt.schedulers.legacy.base.node_info import Cluster
from kpreempt.schedulers.legacy.base.predicates import Filter, reprieve_order
from kpreempt.schedulers.legacy.base.version import Version
from kpreempt.verdict import Assumption, ClusterSummary, NodeEvaluation, Outcome, PodSummary, Verdict
from kpreempt.verdict.at_risk import RankedVictim

if TYPE_CHECKING:
    from kpreempt.schedulers.interface import PodChanges


def legacy_scheduler(
    algorithm: str,
    configuration: Mapping[str, Any] | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    *,
    policy: Mapping[str, Any] | None = None,
    extenders: Sequence[Extender] = (),
    connect: Connect | None = None,
) -> LegacyScheduler:
    """Create the scheduler with these settings as plain data. ``policy`` is a Policy file, ``extenders`` are called.

    With ``connect``, the extenders of the configuration are called, too; otherwise each is an assumption.

    Raises ``UsageError`` and ``ConfigurationError`` like ``read_switches`` and ``read_policy``, and for predicates that
    make the real scheduler exit.
    """
    version: type[Version] = import_module(f"{__package__}.{LEGACY_ROWS[algorithm].module}").VERSION
    dialect, is_called = version.dialect, connect is not None
    read_from, rest = configuration_extenders(configuration, dialect, are_called=is_called)
    switches = read_switches(dialect, rest, feature_gates)
    read, assumptions = None, read_from.assumptions
    if policy is not None:
        # The extenders of the configuration are ignored then.
        read = read_policy(policy, dialect, calls_extenders=is_called)
        read_from, assumptions = read.extenders, read.assumptions
    made = version.configured(switches.gates, read.policy if read is not None else None, read_from.ignored_resources)
    settings = with_ignorable_last(read_from.settings) if dialect.ignorable_last else read_from.settings
    over_http = [OverHttp(HttpExtender(each, dialect.protocol, connect(each))) for each in settings if connect]
    return LegacyScheduler(
        made,
        extenders=[*extenders, *over_http],
        scheduler_name=switches.scheduler_name,
        no_preemption=switches.no_preemption,
        assumptions=[*switches.assumptions, *assumptions, *made.assumptions],
        gates=switches.gates,
    )


class LegacyScheduler:
    """An old scheduler with its settings.

    ``filters`` replace the version's default ones; ``no_preemption`` says why preemption is disabled, if it is.
    ``gates`` are the modeled feature gates by name.
    """

    extra_fields = NO_EXTRAS

    def __init__(
        self,
        version: Version,
        *,
        filters: Sequence[Filter] | None = None,
        extenders: Sequence[Extender] = (),
        scheduler_name: str = DEFAULT_SCHEDULER_NAME,
        no_preemption: str = "",
        assumptions: Sequence[Assumption] = (),
        gates: Mapping[str, bool] | None = None,
    ) -> None:
        self.version = version
        self.algorithm = version.algorithm
        self.filters = version.filters if filters is None else filters
        self.extenders = extenders
        # Extenders receive the complete pod, and its priority may have any effect.
        self.decisions_depend_on_pod_identity = bool(extenders)
        self.is_monotonic_in_priority = not extenders
        # The name of the scheduler whose pods it schedules.
        self.scheduler_name = scheduler_name
        self.scheduler_names = frozenset([scheduler_name])
        self.no_preemption = no_preemption
        self.assumptions = list(assumptions)
        self.settings = Settings(gates or {})

    def prepare(
        self,
        cluster: ClusterSnapshot,
        *,
        now: datetime,
        is_queued: bool = True,
        before: Cluster | None = None,
        changes: PodChanges | None = None,
        expects_equivalent_pods: bool = False,
    ) -> Cluster:
        """Assign pods to nodes from scratch.

        ``now`` replaces missing start times; nominated pods count with and without a queue.
        """
        return Cluster(
            cluster,
            self.version.accounting,
            self.version.nominated_node,
            now=now,
            scheduler_names=self.scheduler_names,
        )

    def queue_rules(self, prepared: Callable[[], Cluster], phases: Phases = NO_PHASES) -> QueueRules:
        """Return no rules: old schedulers have no out-of-tree plugins."""
        return NO_RULES

    def decide(
        self,
        prepared: Cluster,
        pod: Pod,
        *,
        records_steps: bool = True,
        records_scores: bool = True,
        records_nodes: bool = True,
        records_odds: bool = True,
        phases: Phases = NO_PHASES,
        is_popped: bool = False,
    ) -> Verdict:
        """Decide on ``pod``, which must not be running in the cluster. The steps are always recorded."""
        frame = Verdict(
            algorithm=self.algorithm,
            outcome=Outcome.NOT_SCHEDULED,
            pod=PodSummary(
                namespace=pod.metadata.namespace,
                name=pod.metadata.name,
                priority=pod.priority,
                priority_class_name=pod.spec.priority_class_name,
                preemption_policy=pod.spec.preemption_policy or "PreemptLowerPriority",
                scheduler_name=pod.spec.scheduler_name,
                nominated_node_name=self.version.nominated_node(pod),
                requests=dict(sorted(self.version.requests(pod).items())),
            ),
            cluster=ClusterSummary(nodes=len(prepared.node_infos), pods=prepared.num_pods),
            assumptions=self.assumptions,
        )
        reason = self._reason_unseen(pod)
        if reason:
            return msgspec.structs.replace(frame, reason=reason)
        cycle = Cycle(
            self.version,
            self.filters,
            self.extenders,
            prepared,
            pod,
            frame,
            phases,
            no_preemption=self.no_preemption,
        )
        return cycle.run()

    def describe_node(self, prepared: Cluster, pod: Pod, node_name: str) -> NodeEvaluation:
        """Return every filter's result for one node; raise ``KeyError`` for a missing node.

        Empty for a pod of another scheduler.
        """
        node_info = prepared.by_name[node_name]
        if pod.spec.scheduler_name != self.scheduler_name:
            return NodeEvaluation()
        return evaluate_node(self.version, self.filters, prepared, pod, node_info)

    def capacity_of_nodes(self, prepared: Cluster, pod: Pod, most: int) -> Mapping[str, int] | None:
        """Return ``None``: it is not known which filters depend on more than the node."""
        return None

    def rank_victims(self, prepared: Cluster, node_name: str, priority: int) -> list[RankedVictim]:
        """Return the pods of a node below ``priority``, in eviction order.

        Raises ``KeyError`` for a missing node.
        """
        lower = [info for info in prepared.by_name[node_name].pods if info.priority < priority]
        by_importance = sorted_as_before_go_1_19(lower, self.version.importance(prepared.now))
        put_back = reprieve_order(by_importance, self.version.budget_rule, prepared.budgets)
        return [
            RankedVictim(
                pod=each.pod_info.key,
                priority=each.pod_info.priority,
                rank=place,
                start_time=each.pod_info.start,
                violates_budget=each.violates,
                budgets=each.budgets,
            )
            for place, each in enumerate(reversed(put_back), start=1)
        ]

    def _reason_unseen(self, pod: Pod) -> str:
        """Return why the scheduler would ignore the pod, or an empty string."""
        if pod.is_terminal:
            return f"the pod has finished (phase {pod.status.phase})"
        if pod.metadata.deletion_timestamp is not None:
            return f"skip schedule deleting pod: {pod.key}"
        if pod.spec.node_name:
            return f'the pod is already assigned to node "{pod.spec.node_name}"; the scheduler ignores it'
        name = pod.spec.scheduler_name
        if name != self.scheduler_name:
            return f'the pod is for scheduler "{name}" (this one is "{self.scheduler_name}")'
        return ""
