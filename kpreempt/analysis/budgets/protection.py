"""Which pods PodDisruptionBudgets select, as the disruption controller sees it, and which workloads own pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher

import msgspec

from kpreempt.controllers.actions import deployment_of
from kpreempt.controllers.disruption import Candidates
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement, matches_requirement
from kpreempt.model.meta import OwnerReference, controller_name, controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, check_selecting
from kpreempt.model.workloads import ReplicaSet
from kpreempt.verdict.budgets import NearMiss

_MOST_TOLD = 3
# How alike two labels are of which one may be a slip of the other, and how many are held side by side.
_ALIKE = 0.75
_MOST_COMPARED = 2000
# No valid label is longer, no selector of more parts a slip of the pen; hints go with so many budgets.
_LONGEST = 63
_MOST_PARTS = 20
_MOST_SOUGHT = 50


class Protection:
    """Which unfinished pods each budget selects, as the disruption controller sees it, and the other way round.

    ``leaving`` are those among them that are on their way out.
    """

    def __init__(self, cluster: ClusterSnapshot) -> None:
        budgets = cluster.pod_disruption_budgets
        namespaces = {budget.metadata.namespace for budget in budgets}
        self.in_namespace: dict[str, list[Pod]] = {namespace: [] for namespace in namespaces}
        self.leaving: set[str] = set()
        self._allowed = {budget.key: budget.allowed for budget in budgets}
        for pod in cluster.pods:
            namespace = pod.metadata.namespace
            if namespace not in namespaces or pod.is_terminal:
                continue
            self.in_namespace[namespace].append(pod)
            if pod.metadata.deletion_timestamp is not None:
                self.leaving.add(pod.key)
        candidates = Candidates(pod for pods in self.in_namespace.values() for pod in pods)
        self._pods: dict[str, Sequence[Pod]] = {
            budget.key: candidates.of(budget).pods
            if (selector := budget.spec.selector) is not None and selector.is_valid()
            else ()
            for budget in budgets
        }
        self._budgets: dict[str, list[PodDisruptionBudget]] = {}
        self._all = budgets
        # With a bit for each of these.
        self._bits: dict[str, int] = {}
        for index, budget in enumerate(budgets):
            for pod in self._pods[budget.key]:
                selecting = self._budgets.setdefault(pod.key, [])
                selecting.append(budget)
                check_selecting(pod.key, len(selecting))
                self._bits[pod.key] = self._bits.get(pod.key, 0) | 1 << index

    def pods_of(self, budget: PodDisruptionBudget) -> Sequence[Pod]:
        """The budget's pods that have not finished, in the order of the input."""
        return self._pods[budget.key]

    def allowed_by(self, budget: str) -> int:
        """How many disruptions the budget of that name allows now."""
        return self._allowed[budget]

    def beside(self, budget: PodDisruptionBudget, pods: Iterable[Pod]) -> list[PodDisruptionBudget]:
        """The other budgets that select one of the pods."""
        bits = 0
        for pod in pods:
            bits |= self._bits.get(pod.key, 0)
        return [each for index, each in enumerate(self._all) if bits >> index & 1 and each is not budget]

    def budgets_of(self, key: str) -> Sequence[PodDisruptionBudget]:
        """The budgets that select the pod of that name."""
        return self._budgets.get(key, ())


class Workload(msgspec.Struct, frozen=True):
    """Something that owns pods: kind and name, how many pods it is to have if that is known, and its selector."""

    name: str
    replicas: int | None = None
    selector: LabelSelector | None = None


class Workloads:
    """The workloads of a cluster, found by their pods: a ReplicaSet of a Deployment counts as that."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._replica_sets: dict[tuple[str, str], ReplicaSet] = {
            (each.metadata.namespace, each.metadata.name): each for each in cluster.replica_sets
        }
        self._known: dict[tuple[str, str], Workload] = {}
        kinds = (
            ("Deployment", cluster.deployments),
            ("StatefulSet", cluster.stateful_sets),
            ("ReplicaSet", cluster.replica_sets),
        )
        for kind, group in kinds:
            for each in group:
                if kind == "ReplicaSet" and controller_of(each.metadata) is not None:
                    continue
                name = f"{kind} {each.metadata.name}"
                replicas = 1 if each.spec.replicas is None else each.spec.replicas
                self._known[each.metadata.namespace, name] = Workload(name, replicas, each.spec.selector)
        for old in cluster.replication_controllers:
            name = f"ReplicationController {old.metadata.name}"
            selector = LabelSelector(match_labels=old.spec.selector) if old.spec.selector else None
            replicas = 1 if old.spec.replicas is None else old.spec.replicas
            self._known[old.metadata.namespace, name] = Workload(name, replicas, selector)

    def of(self, pod: Pod) -> Workload:
        """What the pod belongs to; without a name where it has no controller."""
        owner = controller_of(pod.metadata)
        if owner is None:
            return Workload("")
        name = self._name(pod, owner)
        return self._known.get((pod.metadata.namespace, name)) or Workload(name)

    def wanting(self, namespace: str, selector: LabelSelector) -> list[Workload]:
        """The workloads of the namespace whose pods the selector would select, as far as their own selectors say."""
        return [
            workload
            for (where, _), workload in self._known.items()
            if where == namespace
            and workload.selector is not None
            and workload.selector.match_labels
            and selector.matches(workload.selector.match_labels)
        ]

    def _name(self, pod: Pod, owner: OwnerReference) -> str:
        own = f"{owner.kind} {owner.name}"
        if owner.kind != "ReplicaSet":
            return own
        replica_set = self._replica_sets.get((pod.metadata.namespace, owner.name))
        if replica_set is not None:
            return controller_name(replica_set.metadata) or own
        # A Deployment names its ReplicaSets so; without them in the input several would pass for several workloads.
        deployment = deployment_of(pod, owner.name)
        return f"Deployment {deployment}" if deployment else own


class NearMisses:
    """The pods that a selector which selects nothing would select if one label were another, for the first of many."""

    def __init__(self, workloads: Workloads) -> None:
        self._workloads = workloads
        self._left = _MOST_SOUGHT
        self._slips: dict[tuple[str, str], bool] = {}

    def of(self, selector: LabelSelector, pods: Iterable[Pod]) -> list[NearMiss]:
        """Those among the pods, told by what they belong to, those with most pods first."""
        equal = [LabelSelectorRequirement(key, "In", [value]) for key, value in selector.match_labels.items()]
        parts = [*equal, *selector.match_expressions]
        if not self._left or len(parts) > _MOST_PARTS:
            return []
        self._left -= 1
        counts: Counter[tuple[str, str, str]] = Counter()
        for pod in pods:
            labels = pod.metadata.labels
            unmet = [part for part in parts if not matches_requirement(part.key, part.operator, part.values, labels)]
            if len(unmet) == 1:
                wanted, found = _wanted_and_found(unmet[0], labels)
                # Every pod misses a selector of one label by one label; only likely slips are worth telling.
                if len(parts) > 1 or self._is_slip(wanted, found):
                    counts[self._workloads.of(pod).name or f"Pod {pod.metadata.name}", wanted, found] += 1
        return [NearMiss(name, number, *labels) for (name, *labels), number in counts.most_common(_MOST_TOLD)]

    def _is_slip(self, wanted: str, found: str) -> bool:
        pair = wanted, found
        if pair not in self._slips:
            self._slips[pair] = len(self._slips) < _MOST_COMPARED and _is_slip(wanted, found)
        return self._slips[pair]


def _wanted_and_found(part: LabelSelectorRequirement, labels: Mapping[str, str]) -> tuple[str, str]:
    """A part of a selector, and what a pod has instead: another value of the key, or the value under another key."""
    if part.operator != "In" or len(part.values) != 1:
        found = f"{part.key}={labels[part.key]}" if part.key in labels else ""
        return str(LabelSelector(match_expressions=[part])), found
    value = part.values[0]
    if part.key in labels:
        found = f"{part.key}={labels[part.key]}"
    else:
        found = next((f"{key}={value}" for key in sorted(labels) if labels[key] == value), "")
    return f"{part.key}={value}", found


def _is_slip(wanted: str, found: str) -> bool:
    """Whether one label may have been written for the other: under another key, or misspelt."""
    if not found:
        return False
    key, _, value = wanted.partition("=")
    other_key, _, other = found.partition("=")
    if max(len(value), len(other)) > _LONGEST:
        return False
    return key != other_key or SequenceMatcher(None, value, other, autojunk=False).ratio() >= _ALIKE
