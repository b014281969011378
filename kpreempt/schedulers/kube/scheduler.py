"""One scheduling cycle for one pod (``pkg/scheduler/schedule_one.go``, v1.36.3), with all its evidence.

Departures: every node is looked at, where the real scheduler stops at ``percentageOfNodesToScore``; and where the
choice is random the verdict holds every node that it can end with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.kube.claims import claim_assumptions
from kpreempt.schedulers.kube.effects import effects_of
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.features import FeatureGates
from kpreempt.schedulers.kube.framework.fit_error import NO_NODES, no_node_message
from kpreempt.schedulers.kube.framework.interface import (
    FrameworkError,
    Handle,
    NodeToStatus,
    PostFilterResult,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.resources import pod_requests, requests_in_units
from kpreempt.schedulers.kube.framework.runner import Framework, is_same_pod
from kpreempt.schedulers.kube.node_story import evaluate_node
from kpreempt.schedulers.kube.plugins.default_preemption import DefaultPreemption
from kpreempt.schedulers.kube.preemption.budgets import BudgetIndex
from kpreempt.schedulers.kube.preemption.standing import rank_victims
from kpreempt.schedulers.kube.preemption.victims_report import victims_by_node
from kpreempt.schedulers.kube.profile import Profile, build_plugins, default_profile
from kpreempt.schedulers.kube.sampling import sampling_of
from kpreempt.verdict import (
    SUCCESS,
    Assumption,
    Candidate,
    ClusterSummary,
    Code,
    Eligibility,
    NodeEvaluation,
    Outcome,
    PodSummary,
    Sampling,
    Standing,
    Status,
    Verdict,
)

ALGORITHM = "kube-1.36"
# Below this many pods columns save no time, and NumPy need not be loaded.
MIN_PODS_OF_TABLE = 2000


class Prepared:
    """A cluster made ready for any number of questions: the cache's state, and a framework per profile."""

    def __init__(
        self, cluster: ClusterState, frameworks: Mapping[str, Framework], assumptions: list[Assumption]
    ) -> None:
        self.cluster = cluster
        self.frameworks = frameworks
        self.assumptions = assumptions


class KubeScheduler:
    """kube-scheduler 1.36 with its profiles and feature gates."""

    algorithm = ALGORITHM

    def __init__(
        self,
        profiles: Sequence[Profile] | None = None,
        features: FeatureGates | None = None,
        assumptions: Sequence[Assumption] = (),
    ) -> None:
        self.features = features or FeatureGates()
        self.profiles = list(profiles) if profiles is not None else [default_profile(self.features)]
        self.assumptions = list(assumptions)

    @property
    def scheduler_names(self) -> frozenset[str]:
        """The names of the profiles."""
        return frozenset(profile.scheduler_name for profile in self.profiles)

    def prepare(self, cluster: ClusterSnapshot, *, now: datetime, is_queued: bool = True) -> Prepared:
        """Put pods on nodes and make the plugins.

        ``now`` stands for missing start times. ``is_queued`` says that a scheduler is running there, whose queue holds
        the pending pods. Otherwise the framework is looked at on its own, as where the recorded verdicts were made: it
        knows nominated pods by name only, and does not prefer the pod's own nominated node.
        """
        names = self.scheduler_names
        state = ClusterState(cluster, self.features, now=now, scheduler_names=names, is_queued=is_queued)
        is_big = state.num_pods >= MIN_PODS_OF_TABLE
        frameworks = {}
        for profile in self.profiles:
            handle = Handle(state, self.features, profile.parallelism)
            framework = Framework(build_plugins(profile, handle), state)
            handle.framework = framework
            if is_big:
                # It needs NumPy, which is loaded for big clusters only.
                from kpreempt.schedulers.kube.bulk import serve  # noqa: PLC0415

                serve(handle, framework.plugins.filters)
            frameworks[profile.scheduler_name] = framework
        return Prepared(state, frameworks, self.assumptions)

    def decide(
        self, prepared: Prepared, pod: Pod, *, records_steps: bool = True, phases: Phases = NO_PHASES
    ) -> Verdict:
        """What becomes of ``pod``, which must not be in the cluster as a running pod.

        Without ``records_steps`` only the best candidates carry the steps of choosing their victims. That is all that a
        report shows, and on big clusters it takes a fraction of the time. ``phases`` are ``filter``, then ``score``, or
        ``dryRun`` and ``choice``.
        """
        summary = _summary(pod, self.features)
        cluster = _cluster_summary(prepared.cluster)

        def not_scheduled(reason: str) -> Verdict:
            return Verdict(
                algorithm=self.algorithm,
                outcome=Outcome.NOT_SCHEDULED,
                reason=reason,
                pod=summary,
                cluster=cluster,
                assumptions=prepared.assumptions,
            )

        framework = prepared.frameworks.get(pod.spec.scheduler_name)
        reason = _reason_not_seen(pod)
        if reason:
            return not_scheduled(reason)
        if framework is None:
            known = ", ".join(sorted(prepared.frameworks))
            return not_scheduled(f'no profile for scheduler name "{pod.spec.scheduler_name}" (there is: {known})')
        gate = framework.run_pre_enqueue(pod)
        if not gate.is_success:
            return not_scheduled(gate.message)
        state = CycleState(records_steps=records_steps, phases=phases)
        return _Cycle(self, prepared, framework, pod, summary, cluster, state).run()

    def tell_node(self, prepared: Prepared, pod: Pod, node_name: str) -> NodeEvaluation:
        """What every filter says of one node: more than the scheduler looks at, which stops at the first refusal.

        Empty for a pod of another scheduler; raises ``KeyError`` for a node that is not there.
        """
        framework = prepared.frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            return NodeEvaluation()
        return evaluate_node(framework, pod, prepared.cluster.by_name[node_name])

    def rank_victims(self, prepared: Prepared, node_name: str, priority: int) -> list[Standing]:
        """The pods of a node below ``priority``, those that would go first first.

        Raises ``KeyError`` for a node that is not there.
        """
        cluster = prepared.cluster
        budgets = BudgetIndex(cluster.cluster.pod_disruption_budgets)
        return rank_victims(cluster.by_name[node_name], priority, budgets, cluster.now)


class _Cycle:
    """The state of one cycle, and its steps."""

    def __init__(
        self,
        scheduler: KubeScheduler,
        prepared: Prepared,
        framework: Framework,
        pod: Pod,
        summary: PodSummary,
        cluster: ClusterSummary,
        state: CycleState,
    ) -> None:
        self._scheduler = scheduler
        self._prepared = prepared
        self._framework = framework
        name = pod.spec.scheduler_name
        self._profile = next(profile for profile in scheduler.profiles if profile.scheduler_name == name)
        self._pod = pod
        self._summary = summary
        self._cluster_summary = cluster
        self._state = state
        self._node_infos = prepared.cluster.node_infos

    def run(self) -> Verdict:
        """Filter, then score or preempt."""
        if not self._node_infos:
            return self._verdict(Outcome.NEVER_LANDS, message=NO_NODES)
        try:
            with self._state.phases.phase("filter"):
                node_names, pre_filter, restricting = self._framework.run_pre_filter(self._state, self._pod)
                if pre_filter.is_success:
                    filtered, feasible, evaluated = self._filter(node_names, restricting)
            if not pre_filter.is_success:
                return self._rejected_by_pre_filter(pre_filter)
            if feasible:
                return self._score(evaluated, feasible, self._sampling(node_names, len(feasible)))
            return self._preempt(filtered, evaluated, None)
        except FrameworkError as error:
            return self._verdict(Outcome.NEVER_LANDS, reason="the scheduler ends in an error", message=str(error))

    def _rejected_by_pre_filter(self, pre_filter: Status) -> Verdict:
        filtered = NodeToStatus()
        filtered.absent = pre_filter
        evaluated = {node_info.name: pre_filter for node_info in self._node_infos}
        return self._preempt(filtered, evaluated, pre_filter)

    def _filter(
        self, node_names: frozenset[str] | None, restricting: list[str]
    ) -> tuple[NodeToStatus, list[NodeInfo], dict[str, Status]]:
        """Every node's status, and the nodes that fit."""
        filtered = NodeToStatus()
        if node_names is not None:
            reason = f"node(s) didn't satisfy plugin(s) [{' '.join(restricting)}]"
            filtered.absent = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [reason])
        evaluated: dict[str, Status] = {}
        feasible: list[NodeInfo] = []
        # A running scheduler looks at the nominated node even where PreFilter left it out.
        preferred = self._pod.status.nominated_node_name if self._prepared.cluster.is_queued else ""
        for node_info in self._node_infos:
            if node_names is not None and node_info.name not in node_names and node_info.name != preferred:
                evaluated[node_info.name] = filtered.absent
                continue
            status = self._framework.run_filters_with_nominated_pods(self._state, self._pod, node_info)
            evaluated[node_info.name] = status
            if status.is_success:
                feasible.append(node_info)
            else:
                filtered.statuses[node_info.name] = status
        return filtered, feasible, evaluated

    def _sampling(self, node_names: frozenset[str] | None, feasible: int) -> Sampling | None:
        by_name = self._prepared.cluster.by_name
        profile = self._profile
        return sampling_of(
            len(by_name) if node_names is None else len(node_names & by_name.keys()),
            feasible,
            percentage=profile.percentage_of_nodes_to_score,
            is_scoring=bool(self._framework.plugins.scores) or profile.has_extenders,
        )

    def _score(self, evaluated: dict[str, Status], feasible: list[NodeInfo], sampling: Sampling | None) -> Verdict:
        with self._state.phases.phase("score"):
            plugin_scores = self._framework.run_scores(self._state, self._pod, feasible)
        # Without plugins that score every node's total is 1.
        base = 0 if self._framework.plugins.scores else 1
        scores = {node: base + sum(by_plugin.values()) for node, by_plugin in plugin_scores.items()}
        best = max(scores.values())
        chosen = [node for node, score in scores.items() if score == best]
        nominated = self._pod.status.nominated_node_name
        return self._verdict(
            Outcome.LANDS,
            filter=evaluated,
            feasible_nodes=[node_info.name for node_info in feasible],
            scores=scores,
            plugin_scores=plugin_scores,
            chosen_nodes=chosen,
            # The real scheduler looks at the nominated node first, and takes it where it fits, without any scores.
            lands_on=[nominated] if nominated in scores else chosen,
            sampling=None if nominated in scores else sampling,
        )

    def _preempt(self, filtered: NodeToStatus, evaluated: dict[str, Status], pre_filter: Status | None) -> Verdict:
        result, status = None, SUCCESS
        if self._framework.plugins.post_filters:
            result, status = self._framework.run_post_filter(self._state, self._pod, filtered)
        message = no_node_message(
            len(self._node_infos),
            filtered,
            pre_filter=pre_filter.message if pre_filter else "",
            post_filter=status.message,
        )
        evidence = result.evidence if result else None
        nominated = (result.nominated_node_names if result else None) or []
        candidates = {candidate.node: candidate for candidate in evidence.candidates} if evidence else {}
        victims = victims_by_node([candidates[node] for node in nominated], self._prepared.cluster)
        return self._verdict(
            _outcome(nominated, candidates),
            filter=evaluated,
            pre_filter=pre_filter,
            eligibility=evidence.eligibility if evidence else self._eligibility(filtered),
            potential_nodes=evidence.potential_nodes if evidence else [],
            dry_run=evidence.dry_run if evidence else {},
            candidates=evidence.candidates if evidence else [],
            selection=evidence.selection if evidence else None,
            odds=evidence.odds if evidence else None,
            nominated_nodes=nominated,
            victims=victims,
            message=message,
            post_filter=result,
        )

    def _eligibility(self, filtered: NodeToStatus) -> Eligibility | None:
        """Whether the pod could have preempted, where an earlier PostFilter ended the attempt."""
        for plugin in self._framework.plugins.post_filters:
            if isinstance(plugin, DefaultPreemption):
                return plugin.eligibility(self._pod, filtered)
        return None

    def _verdict(self, outcome: Outcome, *, post_filter: PostFilterResult | None = None, **parts: object) -> Verdict:
        candidates = post_filter.evidence.candidates if post_filter and post_filter.evidence else []
        claims = claim_assumptions(self._pod, candidates, self._prepared.cluster, self._scheduler.features)
        verdict = Verdict(
            algorithm=self._scheduler.algorithm,
            outcome=Outcome.UNCERTAIN if claims else outcome,
            pod=self._summary,
            cluster=self._cluster_summary,
            assumptions=[*self._prepared.assumptions, *_nomination_assumptions(self._pod, self._prepared), *claims],
            **parts,  # type: ignore[arg-type]  # the callers above name the record's own fields
        )
        return effects_of(verdict, self._pod, self._prepared.cluster, post_filter)


def _nomination_assumptions(pod: Pod, prepared: Prepared) -> list[Assumption]:
    """Nominated pods whose room would be kept if the scheduling queue held them."""
    return [
        Assumption(
            f"Pod {nominated.key}",
            "status.nominatedNodeName",
            f"its room on {nominated.status.nominated_node_name} is not kept, because this cluster comes without a"
            " scheduling queue",
        )
        for nominated in prepared.cluster.nominated_outside_queue
        if nominated.priority >= pod.priority and not is_same_pod(nominated, pod)
    ]


def _outcome(nominated: list[str], candidates: Mapping[str, Candidate]) -> Outcome:
    if not nominated:
        return Outcome.NEVER_LANDS
    if any(candidates[node].num_pdb_violations for node in nominated):
        return Outcome.PREEMPTS_VIOLATING_BUDGETS
    return Outcome.PREEMPTS


def _reason_not_seen(pod: Pod) -> str:
    """Why the scheduler would not look at the pod at all, or an empty text."""
    if pod.is_terminal:
        return f"the pod has finished (phase {pod.status.phase})"
    if pod.metadata.deletion_timestamp is not None:
        return f"skip schedule deleting pod: {pod.key}"
    if pod.spec.node_name:
        return f'the pod is assigned to node "{pod.spec.node_name}" already; the scheduler has no part in it'
    return ""


def _summary(pod: Pod, features: FeatureGates) -> PodSummary:
    requests = pod_requests(pod, pod_level=features.pod_level_resources)
    return PodSummary(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        priority=pod.priority,
        priority_class_name=pod.spec.priority_class_name,
        preemption_policy=pod.spec.preemption_policy or "PreemptLowerPriority",
        scheduler_name=pod.spec.scheduler_name,
        nominated_node_name=pod.status.nominated_node_name,
        requests=requests_in_units(requests),
    )


def _cluster_summary(cluster: ClusterState) -> ClusterSummary:
    return ClusterSummary(nodes=len(cluster.node_infos), pods=cluster.num_pods)
