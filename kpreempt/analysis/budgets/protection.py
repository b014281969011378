"""Which pods PodDisruptionBudgets select according to the disruption controller, and which workloads own pods."""

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

_MAX_SHOWN = 3
# Minimum similarity of two labels that may be typos of each other, and the maximum number of comparisons.
_MIN_SIMILARITY = 0.75
_MAX_COMPARED = 2000
# The maximum length of a valid label, the maximum size of a selector that may have a typo, and the maximum number of
# PDBs with hints.
_MAX_LENGTH = 63
_MAX_PARTS = 20
_MAX_SEARCHED = 50


class Protection:
    """The unfinished pods that each PDB selects, from the disruption controller's perspective, and the reverse.

    ``leaving`` are those among them that are terminating.
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
        # One bit for each PDB that selects the pod.
        self._bits: dict[str, int] = {}
        for index, budget in enumerate(budgets):
            for pod in self._pods[budget.key]:
                selecting = self._budgets.setdefault(pod.key, [])
                selecting.append(budget)
                check_selecting(pod.key, len(selecting))
                self._bits[pod.key] = self._bits.get(pod.key, 0) | 1 << index

    def pods_of(self, budget: PodDisruptionBudget) -> Sequence[Pod]:
        """The PDB's unfinished pods, in the order of the input."""
        return self._pods[budget.key]

    def allowed_by(self, budget: str) -> int:
        """The number of disruptions that the PDB allows now."""
        return self._allowed[budget]

    def other_budgets(self, budget: PodDisruptionBudget, pods: Iterable[Pod]) -> list[PodDisruptionBudget]:
        """The other PDBs that select one of the pods."""
        bits = 0
        for pod in pods:
            bits |= self._bits.get(pod.key, 0)
        return [each for index, each in enumerate(self._all) if bits >> index & 1 and each is not budget]

    def budgets_of(self, key: str) -> Sequence[PodDisruptionBudget]:
        """The PDBs that select the pod."""
        return self._budgets.get(key, ())


class Workload(msgspec.Struct, frozen=True):
    """An owner of pods: its kind and name, its desired replicas if known, and its selector."""

    name: str
    replicas: int | None = None
    selector: LabelSelector | None = None


class Workloads:
    """The workloads of a cluster by their pods; a Deployment's ReplicaSet counts as the Deployment."""

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
        """The workload of the pod; its name is empty if the pod has no controller."""
        owner = controller_of(pod.metadata)
        if owner is None:
            return Workload("")
        name = self._name(pod, owner)
        return self._known.get((pod.metadata.namespace, name)) or Workload(name)

    def in_namespace(self, namespace: str) -> list[Workload]:
        """The workloads of the namespace that the input has."""
        return [workload for (own, _), workload in self._known.items() if own == namespace]

    def wanting(self, namespace: str, selector: LabelSelector) -> list[Workload]:
        """The workloads of the namespace whose pods the selector would select, according to their own selectors."""
        return [
            workload
            for (workload_namespace, _), workload in self._known.items()
            if workload_namespace == namespace
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
        # A Deployment's ReplicaSets have such names; if they are not in the input, they must not count as separate
        # workloads.
        deployment = deployment_of(pod, owner.name)
        return f"Deployment {deployment}" if deployment else own


class NearMisses:
    """Finds pods that a selector without pods would select if one label were different, for some selectors."""

    def __init__(self, workloads: Workloads) -> None:
        self._workloads = workloads
        self._searches_left = _MAX_SEARCHED
        self._typos: dict[tuple[str, str], bool] = {}

    def of(self, selector: LabelSelector, pods: Iterable[Pod]) -> list[NearMiss]:
        """The near misses among the pods, grouped by workload, those with the most pods first."""
        equal = [LabelSelectorRequirement(key, "In", [value]) for key, value in selector.match_labels.items()]
        parts = [*equal, *selector.match_expressions]
        if not self._searches_left or len(parts) > _MAX_PARTS:
            return []
        self._searches_left -= 1
        counts: Counter[tuple[str, str, str]] = Counter()
        for pod in pods:
            labels = pod.metadata.labels
            unmet = [part for part in parts if not matches_requirement(part.key, part.operator, part.values, labels)]
            if len(unmet) == 1:
                required, found = _required_and_found(unmet[0], labels)
                # Every pod misses a one-label selector by one label, so only likely typos are reported.
                if len(parts) > 1 or self._is_typo(required, found):
                    counts[self._workloads.of(pod).name or f"Pod {pod.metadata.name}", required, found] += 1
        return [NearMiss(name, number, *labels) for (name, *labels), number in counts.most_common(_MAX_SHOWN)]

    def _is_typo(self, required: str, found: str) -> bool:
        pair = required, found
        if pair not in self._typos:
            self._typos[pair] = len(self._typos) < _MAX_COMPARED and _is_typo(required, found)
        return self._typos[pair]


def _required_and_found(part: LabelSelectorRequirement, labels: Mapping[str, str]) -> tuple[str, str]:
    """A part of a selector, and the pod's label instead: another value of the key, or the value under another key."""
    if part.operator != "In" or len(part.values) != 1:
        found = f"{part.key}={labels[part.key]}" if part.key in labels else ""
        return str(LabelSelector(match_expressions=[part])), found
    value = part.values[0]
    if part.key in labels:
        found = f"{part.key}={labels[part.key]}"
    else:
        found = next((f"{key}={value}" for key in sorted(labels) if labels[key] == value), "")
    return f"{part.key}={value}", found


def _is_typo(required: str, found: str) -> bool:
    """Whether one label may be a typo of the other: under another key, or misspelled."""
    if not found:
        return False
    key, _, value = required.partition("=")
    other_key, _, other = found.partition("=")
    if max(len(value), len(other)) > _MAX_LENGTH:
        return False
    return key != other_key or SequenceMatcher(None, value, other, autojunk=False).ratio() >= _MIN_SIMILARITY
