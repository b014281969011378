"""The pods on all nodes as columns, node by node in the order of the snapshot."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import accumulate, chain

import numpy as np
import numpy.typing as npt

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PodResource,
    Resource,
    resource_calculator,
)

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

# A start time that is missing; it counts as now, and needs Go's sort.
NO_START = np.iinfo(np.int64).max


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

    @cached_property
    def priority(self) -> Integers:
        """The pods' priorities."""
        return np.array([pod.spec.priority or 0 for pod in self.pods], dtype=np.int64)

    @cached_property
    def start(self) -> Integers:
        """Start times in microseconds since the epoch, or ``NO_START``."""
        starts = [pod.status.start_time for pod in self.pods]
        return np.array(
            [NO_START if start is None else round(start.timestamp() * 1_000_000) for start in starts], dtype=np.int64
        )

    @cached_property
    def _resource_ids(self) -> tuple[Integers, list[PodResource]]:
        """For every pod the index of what it occupies, and the distinct values."""
        calculate = resource_calculator(self.cluster.features).of
        distinct: dict[int, int] = {}
        values: list[PodResource] = []
        ids = []
        for pod in self.pods:
            value = calculate(pod)
            index = distinct.get(id(value))
            if index is None:
                index = distinct[id(value)] = len(values)
                values.append(value)
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
        numbers: dict[tuple[object, ...], int] = {}
        representatives: list[Pod] = []
        ids = []
        for pod in self.pods:
            metadata = pod.metadata
            # Equal labels in another order make another group, which costs a little and harms nothing.
            key = (metadata.namespace, *metadata.labels.items())
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(representatives)
                representatives.append(pod)
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
    def with_required_anti_affinity(self) -> list[int]:
        """The positions of pods that require others to stay away."""
        return [
            index
            for index, pod in enumerate(self.pods)
            if (affinity := pod.spec.affinity) is not None
            and affinity.pod_anti_affinity is not None
            and affinity.pod_anti_affinity.required
        ]

    def per_group(self, amounts: list[int]) -> Integers:
        """A column from one amount per group of ``label_groups``."""
        ids, _ = self.label_groups
        return np.array(amounts, dtype=np.int64)[ids] if amounts else ids
