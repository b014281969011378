"""Pods in groups of equals, so that what concerns a group is computed once.

A snapshot has equal labels and containers once, so that most pods are known by the object that they share; a look at
its identity is then enough.
"""

from __future__ import annotations

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.meta import ObjectMeta
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.features import FeatureGates
from kpreempt.schedulers.kube.framework.pod_resources import PodResource, has_only_containers, resource_calculator


class LabelGroups:
    """Pods of equal namespace and labels."""

    def __init__(self) -> None:
        # By the identity of labels: the namespace in which they were last seen, and the group.
        self._last: dict[int, tuple[str, int]] = {}
        self._numbers: dict[tuple[object, ...], int] = {}

    def number(self, metadata: ObjectMeta) -> int:
        """The number of the pod's group; the first pod of a group has the number of groups before it."""
        last = self._last.get(id(metadata.labels))
        if last is not None and last[0] == metadata.namespace:
            return last[1]
        # Equal labels in another order make another group, which costs a little and harms nothing.
        number = self._numbers.setdefault((metadata.namespace, *metadata.labels.items()), len(self._numbers))
        self._last[id(metadata.labels)] = metadata.namespace, number
        return number


class ResourceGroups:
    """Pods that occupy the same; ``values`` has what the pods of each group occupy."""

    def __init__(self, features: FeatureGates) -> None:
        self.values: list[PodResource] = []
        self._calculate = resource_calculator(features).of
        self._by_containers: dict[int, int] = {}
        self._by_value: dict[int, int] = {}

    def number(self, pod: Pod) -> int:
        """The number of the pod's group."""
        is_plain = has_only_containers(pod)
        known = self._by_containers.get(id(pod.spec.containers)) if is_plain else None
        if known is not None:
            return known
        value = self._calculate(pod)
        number = self._by_value.setdefault(id(value), len(self.values))
        if number == len(self.values):
            self.values.append(value)
        if is_plain:
            self._by_containers[id(pod.spec.containers)] = number
        return number


class AntiAffinityGroups:
    """Pods of equal namespace and labels that require the same others to stay away.

    ``positions`` are those of the pods in the table, ``numbers`` the group of each, and ``representatives`` has one pod
    of each group.
    """

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.numbers: list[int] = []
        self.representatives: list[Pod] = []
        self._alike: dict[int, list[tuple[list[PodAffinityTerm], int]]] = {}

    def add(self, position: int, pod: Pod, label_group: int) -> None:
        """Note a pod down, if it requires anything of that kind."""
        affinity = pod.spec.affinity
        if affinity is None or affinity.pod_anti_affinity is None or not affinity.pod_anti_affinity.required:
            return
        mine = affinity.pod_anti_affinity.required
        alike = self._alike.setdefault(label_group, [])
        number = next((number for terms, number in alike if terms == mine), None)
        if number is None:
            number = len(self.representatives)
            alike.append((mine, number))
            self.representatives.append(pod)
        self.positions.append(position)
        self.numbers.append(number)
