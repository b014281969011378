"""Which pending pods would violate PodDisruptionBudgets (PDBs), and what prevents that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from kpreempt.admission.priority import known_classes
from kpreempt.analysis.algorithms import AnalysisContext, Spread, decide_pending, equivalence_key_for
from kpreempt.analysis.budgets.protection import Protection
from kpreempt.analysis.nodes.changes import changed, uncordon
from kpreempt.analysis.nodes.copies import NewNodes, Sample, with_nodes
from kpreempt.analysis.remedies.edits import with_new_templates
from kpreempt.analysis.remedies.excluded import CORDON_TAINT, is_set_by_controller
from kpreempt.analysis.remedies.owners import Owners
from kpreempt.analysis.remedies.search import Candidate, search
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_name, grouped, replace_in
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetStatus, PriorityClass
from kpreempt.verdict import Outcome, PossibleOutcome, Verdict
from kpreempt.verdict.budgets import AuditedBudget, Finding, PossibleViolation
from kpreempt.verdict.remedies import Change, ChangeKind, ObjectEdit, Remedy, RemedySearch, RemedyStage

_LAST = 2**63
# The most remedies that are tried for a finding, and the most cordoned nodes and kinds of new nodes among them.
_MOST_TRIED = 8
_MOST_NODES = 2
_MOST_SHOWN = 3
_PRIORITY_CLASS = "spec.template.spec.priorityClassName"
# The kinds whose pods are replaced when their template changes.
_ROLLED = ("Deployment", "StatefulSet", "DaemonSet")
_SYSTEM = "system-"
_Breaches = dict[str, list[PossibleViolation]]


def breaches_of(
    decided: Sequence[tuple[Pod, Verdict]], positions: Mapping[str, int], protection: Protection
) -> dict[str, list[PossibleViolation]]:
    """The pending pods that would violate each PDB, in queue order."""
    found: dict[str, list[PossibleViolation]] = {}
    for pod, verdict in sorted(decided, key=lambda each: positions.get(each[0].key, _LAST)):
        outcomes = verdict.possible_outcomes
        violations: dict[str, list[_Disruptions]] = {}
        for outcome in outcomes:
            for key, taken in _disruptions_of(outcome, protection).items():
                if taken.most > taken.allowed:
                    violations.setdefault(key, []).append(taken)
        for key, outcomes_of_budget in violations.items():
            breach = PossibleViolation(
                pod=pod.key,
                priority=pod.priority,
                owner=controller_name(pod.metadata),
                position=positions.get(pod.key),
                nodes=list(dict.fromkeys(taken.node for taken in outcomes_of_budget)),
                victims=list(dict.fromkeys(victim for taken in outcomes_of_budget for victim in taken.pods)),
                allowed=outcomes_of_budget[0].allowed,
                remaining=min(taken.allowed - taken.most for taken in outcomes_of_budget),
                is_certain=len(outcomes_of_budget) == len(outcomes)
                and all(taken.least > taken.allowed for taken in outcomes_of_budget),
            )
            found.setdefault(key, []).append(breach)
    return found


class _Disruptions(NamedTuple):
    """The disruptions of a PDB in one outcome: the possible victims, and the maximum and minimum of them."""

    node: str
    pods: list[str]
    allowed: int
    most: int
    least: int


def _disruptions_of(outcome: PossibleOutcome, protection: Protection) -> dict[str, _Disruptions]:
    """The disruptions of each PDB in an outcome, except pods that are already terminating."""
    groups = [(len(outcome.victims), outcome.victims), *((choice.count, choice.pods) for choice in outcome.choices)]
    taken: dict[str, _Disruptions] = {}
    for count, pods in groups:
        victims: dict[str, list[str]] = {}
        for pod in pods:
            for budget in protection.budgets_of(pod) if pod not in protection.leaving else ():
                if pod.partition("/")[2] not in (budget.status or PodDisruptionBudgetStatus()).disrupted_pods:
                    victims.setdefault(budget.key, []).append(pod)
        for key, pods_of_budget in victims.items():
            before = taken.get(key, _Disruptions(outcome.node, [], protection.allowed_by(key), 0, 0))
            taken[key] = before._replace(
                pods=before.pods + pods_of_budget,
                most=before.most + min(count, len(pods_of_budget)),
                least=before.least + max(0, count - (len(pods) - len(pods_of_budget))),
            )
    return taken


class PreemptionRemedies:
    """Finds what prevents that pending pods violate PDBs: capacity elsewhere, or a higher priority.

    A remedy is kept only if no pod then violates the PDB, no PDB is violated that was not before, and the pods that
    preempt for other reasons still get a node. Those that violated the PDB may stay pending, and are then counted.
    """

    def __init__(
        self,
        context: AnalysisContext,
        decided: Sequence[tuple[Pod, Verdict]],
        positions: Mapping[str, int],
        owners: Owners,
        *,
        spread: Spread,
        has_time: Callable[[], bool],
    ) -> None:
        """``decided`` are all pending pods with their verdicts, ``positions`` those in the queue."""
        self._cluster, self._scheduler, self._now = context.cluster, context.scheduler, context.time
        self._positions, self._owners = positions, owners
        self._spread, self._has_time = spread, has_time
        # Of equal pods, one stands for all: ``_representatives`` has its key.
        preemptors = [pod for pod, verdict in decided if any(each.num_victims for each in verdict.possible_outcomes)]
        keys = {pod.key: equivalence_key_for(self._scheduler, pod) for pod in preemptors}
        first = {keys[pod.key]: pod for pod in reversed(preemptors)}
        self._preemptors = list(first.values())
        self._pending = [pod for pod, verdict in decided if verdict.outcome is Outcome.LANDS or pod in preemptors]
        self._representatives = {key: first[own].key for key, own in keys.items()}
        self._placed = _placed(decided) & {pod.key for pod in self._preemptors}
        self._running = grouped(
            (pod for pod in self._cluster.pods if pod.spec.node_name), lambda pod: pod.metadata.namespace
        )
        self._before = breaches_of(decided, positions, Protection(self._cluster))
        self._pods = {pod.key: pod for pod in self._cluster.pods}
        self._nodes: NewNodes | None = None
        # The verdicts and violations with changes that were tried.
        self._decisions: dict[tuple[Change, ...], tuple[list[tuple[Pod, Verdict]], _Breaches]] = {}
        self.searches: list[RemedySearch] = []

    def with_remedies(self, finding: Finding, item: AuditedBudget) -> Finding:
        """The finding about a violated PDB with its remedies."""
        breaches = self._before[item.budget]
        trials = [*self._trials(breaches)]
        changed_clusters = {tuple(candidate.changes): change for candidate, change in trials}

        def prove(candidate: Candidate) -> Remedy | None:
            key = tuple(candidate.changes)
            if key not in self._decisions:
                self._decisions[key] = self._decided(changed_clusters[key]())
            return self._proven(candidate, *self._decisions[key], item.budget, breaches)

        # Pairs are not tried: each is a decision about all preempting pods.
        candidates = [msgspec.structs.replace(candidate, is_alone=True) for candidate, _ in trials]
        found, thorough = search(
            candidates, prove, has_time=self._has_time, most_tried=_MOST_TRIED, most_shown=_MOST_SHOWN
        )
        self.searches.append(thorough)
        return msgspec.structs.replace(finding, remedies=found)

    def leaves_room(self, pod: Pod, node: str) -> bool:
        """Whether pending pods violate no PDB because of a new pod on the node that they don't violate now."""
        if not self._pending:
            return True
        running = [*self._cluster.pods, replace_in(pod, "spec", node_name=node)]
        prepared = self._scheduler.prepare(msgspec.structs.replace(self._cluster, pods=running), now=self._now)
        decided = [*decide_pending(self._pending, self._scheduler, prepared, spread=self._spread)]
        after = breaches_of(decided, self._positions, Protection(self._cluster))
        return not any(_is_worse(each, self._before.get(key, ())) for key, each in after.items())

    def keeps(self, old: Sequence[PodDisruptionBudget], new: Sequence[PodDisruptionBudget]) -> bool:
        """Whether, with ``new`` PDBs instead of ``old`` ones, pending pods violate none that they don't violate now."""
        if not self._may_matter(old, new):
            return True
        replaced = {each.key for each in old}
        others = (each for each in self._cluster.pod_disruption_budgets if each.key not in replaced)
        cluster = msgspec.structs.replace(self._cluster, pod_disruption_budgets=[*others, *new])
        _, after = self._decided(cluster)
        return not any(_is_worse(each, self._before.get(key, ())) for key, each in after.items())

    def _may_matter(self, old: Sequence[PodDisruptionBudget], new: Sequence[PodDisruptionBudget]) -> bool:
        """Whether a PDB differs for the scheduler, and selects a pod that could be preempted."""
        if not self._preemptors:
            return False
        known = {(each.key, str(each.spec.selector), each.allowed): each for each in old}
        found = {(each.key, str(each.spec.selector), each.allowed): each for each in new}
        differing = [each for key, each in (known | found).items() if key not in known or key not in found]
        highest = max(pod.priority for pod in self._preemptors)
        return any(
            each.spec.selector is not None and each.spec.selector.matches(pod.metadata.labels)
            for each in differing
            for pod in self._running.get(each.metadata.namespace, ())
            if pod.priority < highest
        )

    def _decided(self, cluster: ClusterSnapshot) -> tuple[list[tuple[Pod, Verdict]], _Breaches]:
        """The verdicts about the preempting pods, and the violations."""
        prepared = self._scheduler.prepare(cluster, now=self._now)
        decided = [*decide_pending(self._preemptors, self._scheduler, prepared, spread=self._spread)]
        return decided, breaches_of(decided, self._positions, Protection(cluster))

    def _trials(
        self, breaches: Sequence[PossibleViolation]
    ) -> Iterator[tuple[Candidate, Callable[[], ClusterSnapshot]]]:
        """What may help, with a function that returns the cluster in which it is done."""
        for node in [each for each in self._cluster.nodes if _is_only_cordoned(each)][:_MOST_NODES]:
            candidate = Candidate(
                stage=RemedyStage.CAPACITY,
                changes=[Change(ChangeKind.UNCORDON, node.name)],
                edits=[ObjectEdit(f"Node {node.name}", {"spec": {"unschedulable": None}})],
            )
            yield candidate, partial(changed, self._cluster, edits=[uncordon(node.name)])
        for sample in self._new_nodes(self._pods[breaches[0].pod]):
            candidate = Candidate(
                stage=RemedyStage.CAPACITY, changes=[Change(ChangeKind.ADD_NODE, sample.kind.like.name)]
            )
            yield candidate, partial(with_nodes, self._cluster, sample.added)
        priority = max(breach.priority for breach in breaches)
        lower: dict[str, list[Pod]] = {}
        for pod in (self._pods[key] for breach in breaches for key in breach.victims):
            if pod.priority < priority:
                lower.setdefault(self._owners.workload_of(pod), []).append(pod)
        # A PDB whose pods belong to several workloads is violated until all of them outrank the pod.
        if lower and all(name.partition(" ")[0] in _ROLLED for name in lower):
            yield self._raised(lower, priority)

    def _new_nodes(self, pod: Pod) -> Sequence[Sample]:
        if self._nodes is None:
            self._nodes = NewNodes(self._cluster, self._scheduler, now=self._now)
        return self._nodes.taking(pod)[:_MOST_NODES]

    def _raised(
        self, workloads: Mapping[str, Sequence[Pod]], priority: int
    ) -> tuple[Candidate, Callable[[], ClusterSnapshot]]:
        chosen = self._class_of_at_least(priority)
        managers = filter(None, map(self._owners.manager_of, workloads))
        if chosen is not None:
            name = chosen.metadata.name
            edits = [
                ObjectEdit(each, {"spec": {"template": {"spec": {"priorityClassName": name}}}}) for each in workloads
            ]
            candidate = Candidate(
                stage=RemedyStage.PRIORITY,
                changes=[Change(ChangeKind.SET, each, field=_PRIORITY_CLASS, value=name) for each in workloads],
                edits=edits,
                manager=next(managers, ""),
            )
            return candidate, partial(with_new_templates, self._cluster, edits)
        changes = [
            Change(ChangeKind.PRIORITY, each, min(pod.priority for pod in pods), priority)
            for each, pods in workloads.items()
        ]
        candidate = Candidate(stage=RemedyStage.PRIORITY, changes=changes, manager=next(managers, ""))
        return candidate, partial(self._with_priority, workloads.keys(), priority)

    def _with_priority(self, workloads: Collection[str], priority: int) -> ClusterSnapshot:
        pods = [
            replace_in(pod, "spec", priority=max(pod.priority, priority))
            if self._owners.workload_of(pod) in workloads
            else pod
            for pod in self._cluster.pods
        ]
        return msgspec.structs.replace(self._cluster, pods=pods)

    def _class_of_at_least(self, priority: int) -> PriorityClass | None:
        """The existing class with the lowest value that is enough; those of the system are for its own pods."""
        classes = known_classes(self._cluster).values()
        enough = [each for each in classes if each.value >= priority and not each.metadata.name.startswith(_SYSTEM)]
        return min(enough, key=lambda each: (each.value, each.metadata.name), default=None)

    def _proven(
        self,
        candidate: Candidate,
        decided: Sequence[tuple[Pod, Verdict]],
        after: Mapping[str, Sequence[PossibleViolation]],
        budget: str,
        breaches: Sequence[PossibleViolation],
    ) -> Remedy | None:
        if budget in after or any(_is_worse(each, self._before.get(key, ())) for key, each in after.items()):
            return None
        own = [self._representatives[breach.pod] for breach in breaches]
        placed = _placed(decided)
        if self._placed - placed - {*own}:
            return None
        nodes = list(dict.fromkeys(node for pod, verdict in decided if pod.key in own for node in verdict.lands_on))
        return candidate.remedy(nodes=nodes, scheduled=sum(key in placed for key in own), pods=len(own))


def _placed(decided: Sequence[tuple[Pod, Verdict]]) -> set[str]:
    """The pods that get a node, at once or by preemption."""
    return {pod.key for pod, verdict in decided if verdict.lands_on or verdict.nominated_nodes}


def _is_worse(after: Sequence[PossibleViolation], before: Sequence[PossibleViolation]) -> bool:
    """Whether a PDB is violated by other pods than before, or more."""
    known = {breach.pod: breach for breach in before}
    return any(
        each.pod not in known
        or each.remaining < known[each.pod].remaining
        or (each.is_certain and not known[each.pod].is_certain)
        for each in after
    )


def _is_only_cordoned(node: Node) -> bool:
    """Whether nothing but a cordon keeps pods from the node."""
    return node.spec.unschedulable and not any(
        is_set_by_controller(taint) and taint.key != CORDON_TAINT for taint in node.spec.taints
    )
