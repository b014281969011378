"""An old scheduler: a cluster made ready once, and any number of questions about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import DEFAULT_SCHEDULER_NAME, Pod
from kpreempt.model.wanted import NOTHING_WANTED
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.interface import NO_RULES, QueueRules, Settings
from kpreempt.schedulers.legacy.base.cycle import Cycle, evaluate_node, rank_victims
from kpreempt.schedulers.legacy.base.extenders import Extender
from kpreempt.schedulers.legacy.base.node_info import Cluster
from kpreempt.schedulers.legacy.base.predicates import Filter
from kpreempt.schedulers.legacy.base.version import Version
from kpreempt.verdict import Assumption, ClusterSummary, NodeEvaluation, Outcome, PodSummary, Verdict
from kpreempt.verdict.at_risk import Standing

if TYPE_CHECKING:
    from kpreempt.schedulers.interface import PodChanges


class LegacyScheduler:
    """One of the old schedulers, with what switches it.

    ``filters`` replace the version's default ones; ``no_preemption`` says why preemption is off, where it is. ``gates``
    are the feature gates that are modelled, by their names.
    """

    wanted = NOTHING_WANTED

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
        # Extenders are told everything about a pod, and its priority may mean anything to them.
        self.tells_pods_apart = bool(extenders)
        self.goes_by_priority = not extenders
        # The one name whose pods it schedules.
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
        expects_alike: bool = False,
    ) -> Cluster:
        """Put pods on nodes, all anew.

        ``now`` stands for missing start times; nominated pods count with a queue and without.
        """
        return Cluster(
            cluster,
            self.version.accounting,
            self.version.nominated_node,
            now=now,
            scheduler_names=self.scheduler_names,
        )

    def queue_rules(self, prepared: Callable[[], Cluster], phases: Phases = NO_PHASES) -> QueueRules:
        """None: it takes no plugins."""
        return NO_RULES

    def decide(
        self,
        prepared: Cluster,
        pod: Pod,
        *,
        records_steps: bool = True,
        records_scores: bool = True,
        records_nodes: bool = True,
        phases: Phases = NO_PHASES,
        is_popped: bool = False,
    ) -> Verdict:
        """What becomes of ``pod``, which must not be in the cluster as a running pod. The steps are always recorded."""
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
        reason = self._reason_not_seen(pod)
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

    def tell_node(self, prepared: Cluster, pod: Pod, node_name: str) -> NodeEvaluation:
        """What every filter says of one node; raises ``KeyError`` for a node that is not there.

        Empty for a pod of another scheduler.
        """
        node_info = prepared.by_name[node_name]
        if pod.spec.scheduler_name != self.scheduler_name:
            return NodeEvaluation()
        return evaluate_node(self.version, self.filters, prepared, pod, node_info)

    def room_of_nodes(self, prepared: Cluster, pod: Pod, most: int) -> Mapping[str, int] | None:
        """Not known: which of the filters look beyond their node is not written down."""
        return None

    def rank_victims(self, prepared: Cluster, node_name: str, priority: int) -> list[Standing]:
        """The pods of a node below ``priority``, those that would go first first.

        Raises ``KeyError`` for a node that is not there.
        """
        importance = self.version.importance(prepared.now)
        node_info = prepared.by_name[node_name]
        return rank_victims(node_info, priority, importance, self.version.budget_rule, prepared.budgets)

    def _reason_not_seen(self, pod: Pod) -> str:
        """Why the scheduler would not look at the pod at all, or an empty text."""
        if pod.is_terminal:
            return f"the pod has finished (phase {pod.status.phase})"
        if pod.metadata.deletion_timestamp is not None:
            return f"skip schedule deleting pod: {pod.key}"
        if pod.spec.node_name:
            return f'the pod is assigned to node "{pod.spec.node_name}" already; the scheduler has no part in it'
        name = pod.spec.scheduler_name
        if name != self.scheduler_name:
            return f'the pod is for scheduler "{name}" (this one is "{self.scheduler_name}")'
        return ""
