"""The pods on all nodes as columns, node by node in the order of the snapshot."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from functools import cached_property
from itertools import accumulate, chain

import numpy as np
import numpy.typing as npt

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.affinity_terms import AffinityTerm
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.node_info import PodInfo
from kpreempt.schedulers.kube.framework.pod_resources import PodResource, resource_calculator, sole_resources
from kpreempt.schedulers.kube.framework.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    Resource,
)

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

# A start time that is missing; it counts as now, and needs Go's sort.
NO_START = float("inf")


class PodTable:
    """Columns over the assigned pods of a cluster; made once per cluster, each column when it is first needed."""

    def __init__(self, cluster: ClusterState) -> None:
        self.cluster = cluster
        by_node = [cluster.assigned[node_info.name] for node_info in cluster.node_infos]
        self.pods: list[Pod] = list(chain.from_iterable(by_node))
        sizes = [len(pods) for pods in by_node]
        # Pods of node n are those from first[n] up to first[n + 1].
        self.first: Integers = np.array([0, *accumulate(sizes)], dtype=np.int64)
        self.node: Integers = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        self._infos: dict[int, PodInfo] = {}

    def info(self, position: int) -> PodInfo:
        """The record of the pod at a position, made when first asked for."""
        info = self._infos.get(position)
        if info is None:
            info = self._infos[position] = PodInfo(self.pods[position], self.cluster.features)
        return info

    @cached_property
    def priority(self) -> Integers:
        """The pods' priorities."""
        return np.array([pod.spec.priority or 0 for pod in self.pods], dtype=np.int64)

    @cached_property
    def start(self) -> Floats:
        """Start times in seconds since the epoch, exact to the microsecond, or ``NO_START``."""
        starts = [pod.status.start_time for pod in self.pods]
        return np.array(
            [
                NO_START if start is None else (start if start.tzinfo else start.replace(tzinfo=UTC)).timestamp()
                for start in starts
            ],
            dtype=np.float64,
        )

    @cached_property
    def _resource_ids(self) -> tuple[Integers, list[PodResource]]:
        """For every pod the index of what it occupies, and the distinct values."""
        calculate = resource_calculator(self.cluster.features).of
        # A snapshot has equal resources once, so that most pods are known by the object that they share.
        known: dict[int, int] = {}
        distinct: dict[int, int] = {}
        values: list[PodResource] = []
        ids = []
        for pod in self.pods:
            sole = sole_resources(pod)
            index = None if sole is None else known.get(id(sole))
            if index is None:
                value = calculate(pod)
                index = distinct.setdefault(id(value), len(values))
                if index == len(values):
                    values.append(value)
                if sole is not None:
                    known[id(sole)] = index
            ids.append(index)
        return np.array(ids, dtype=np.int64), values

    def resource(self, name: str) -> Integers:
        """How much of a resource every pod occupies: milli-CPU, bytes or units."""
        ids, values = self._resource_ids
        amounts = [value.resource.amount(name) for value in values]
        return np.array(amounts, dtype=np.int64)[ids] if amounts else ids

    @cached_property
    def resource_names(self) -> list[str]:
        """The resources besides CPU, memory and ephemeral storage that some pod occupies."""
        _, values = self._resource_ids
        return sorted({name for value in values for name in value.resource.scalar})

    def total(self, amounts: Integers) -> Integers:
        """The sum of a column over the pods of every node, in the order of the snapshot."""
        result = np.zeros(len(self.first) - 1, dtype=np.int64)
        np.add.at(result, self.node, amounts)
        return result

    def fill_requested(self) -> None:
        """Give every node of the cluster the sum of what its pods occupy, without a look at each pod."""
        cpu, memory, storage = (self.total(self.resource(name)).tolist() for name in (CPU, MEMORY, EPHEMERAL_STORAGE))
        others = {name: self.total(self.resource(name)).tolist() for name in self.resource_names}
        for index, node_info in enumerate(self.cluster.node_infos):
            requested = Resource()
            requested.milli_cpu, requested.memory, requested.ephemeral_storage = (
                cpu[index],
                memory[index],
                storage[index],
            )
            requested.scalar = {name: amounts[index] for name, amounts in others.items() if amounts[index]}
            node_info.requested = requested

    @cached_property
    def label_groups(self) -> tuple[Integers, list[Pod]]:
        """For every pod the number of its group, and one pod of each group: equal namespace and labels."""
        # A snapshot has equal labels once, so that most pods are known by the object that they share.
        known: dict[tuple[str, int], int] = {}
        numbers: dict[tuple[object, ...], int] = {}
        representatives: list[Pod] = []
        ids = []
        for pod in self.pods:
            metadata = pod.metadata
            identity = (metadata.namespace, id(metadata.labels))
            number = known.get(identity)
            if number is None:
                # Equal labels in another order make another group, which costs a little and harms nothing.
                number = numbers.setdefault((metadata.namespace, *metadata.labels.items()), len(representatives))
                if number == len(representatives):
                    representatives.append(pod)
                known[identity] = number
            ids.append(number)
        return np.array(ids, dtype=np.int64), representatives

    def count_matching(self, is_match: Callable[[Pod], bool], *, skips_terminating: bool = False) -> list[int]:
        """For every node how many of its pods match; ``is_match`` may look at namespace and labels only."""
        _, representatives = self.label_groups
        amounts = self.per_group([int(is_match(pod)) for pod in representatives])
        if skips_terminating:
            amounts = np.where(self._is_terminating, 0, amounts)
        counts: list[int] = self.total(amounts).tolist()
        return counts

    @cached_property
    def _is_terminating(self) -> Booleans:
        return np.array([pod.metadata.deletion_timestamp is not None for pod in self.pods], dtype=np.bool_)

    @cached_property
    def _anti_affinity_groups(self) -> tuple[Integers, Integers, list[Pod]]:
        """The positions of pods that require others to stay away, the number of each one's group, and a pod of each.

        In a group namespace, labels and terms are equal.
        """
        labels = self.label_groups[0].tolist()
        groups: dict[int, list[int]] = {}
        representatives: list[Pod] = []
        positions, ids = [], []
        for position, pod in enumerate(self.pods):
            terms = _anti_affinity_terms(pod)
            if not terms:
                continue
            alike = groups.setdefault(labels[position], [])
            number = next((each for each in alike if _anti_affinity_terms(representatives[each]) == terms), None)
            if number is None:
                number = len(representatives)
                alike.append(number)
                representatives.append(pod)
            positions.append(position)
            ids.append(number)
        return np.array(positions, dtype=np.int64), np.array(ids, dtype=np.int64), representatives

    def count_anti_affinity(self, is_match: Callable[[AffinityTerm], bool]) -> dict[str, Integers]:
        """By topology key, how many matching terms of required anti-affinity each pod has; no key without any."""
        positions, ids, representatives = self._anti_affinity_groups
        by_key: dict[str, Integers] = {}
        for number, pod in enumerate(representatives):
            for term in PodInfo(pod, self.cluster.features).required_anti_affinity_terms:
                if is_match(term):
                    counts = by_key.setdefault(term.topology_key, np.zeros(len(representatives), dtype=np.int64))
                    counts[number] += 1
        result = {}
        for key, counts in by_key.items():
            result[key] = np.zeros(len(self.pods), dtype=np.int64)
            result[key][positions] = counts[ids]
        return result

    def per_group(self, amounts: list[int]) -> Integers:
        """A column from one amount per group of ``label_groups``."""
        ids, _ = self.label_groups
        return np.array(amounts, dtype=np.int64)[ids] if amounts else ids


def _anti_affinity_terms(pod: Pod) -> list[PodAffinityTerm]:
    affinity = pod.spec.affinity
    return affinity.pod_anti_affinity.required if affinity is not None and affinity.pod_anti_affinity else []
