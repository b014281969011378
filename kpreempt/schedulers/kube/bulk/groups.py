"""Pods in groups of equals, so that what concerns a group is computed once.

A snapshot has equal labels and containers once, so that most pods are known by the object that they share; a look at
its identity is then enough.
"""

from __future__ import annotations

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.pod import ContainerPort, Pod
from kpreempt.schedulers.kube.framework.host_ports import host_ports_of
from kpreempt.schedulers.kube.framework.pod_resources import PodResource, has_only_containers, resource_calculator
from kpreempt.schedulers.kube.versions import Behaviour

# Of a pod that is in no group, and of one that is in none because it states no affinity at all.
NO_GROUP = -1
NO_AFFINITY = -2


class LabelGroups:
    """Pods of equal namespace and labels; ``representatives`` has one of each group."""

    def __init__(self) -> None:
        self.representatives: list[Pod] = []
        # By the identity of labels: the namespace in which they were last seen, and the group.
        self._last: dict[int, tuple[str, int]] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        # What is known by its identity must not make room for something else.
        self._kept: list[object] = []

    def number(self, pod: Pod) -> int:
        """The number of the pod's group."""
        metadata = pod.metadata
        labels, namespace = metadata.labels, metadata.namespace
        last = self._last.get(id(labels))
        if last is not None and last[0] == namespace:
            return last[1]
        # Equal labels in another order make another group, which costs a little and harms nothing.
        number = self._numbers.setdefault((namespace, *labels.items()), len(self._numbers))
        if number == len(self.representatives):
            self.representatives.append(pod)
        if last is None:
            self._kept.append(labels)
        self._last[id(labels)] = namespace, number
        return number


class ResourceGroups:
    """Pods that occupy the same; ``values`` has what the pods of each group occupy."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.values: list[PodResource] = []
        self._calculate = resource_calculator(behaviour).of
        self._by_containers: dict[int, int] = {}
        self._by_value: dict[int, int] = {}
        # What is known by its identity must not make room for something else; ``values`` keeps the rest.
        self._kept: list[object] = []

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
            self._kept.append(pod.spec.containers)
            self._by_containers[id(pod.spec.containers)] = number
        return number


class PortGroups:
    """Pods that share their containers take the same host ports; ``values`` has those of each group."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.values: list[list[ContainerPort]] = []
        self._counts_sidecars = behaviour.counts_ports_of_sidecars
        self._by_containers: dict[tuple[int, int], int] = {}
        # What is known by its identity must not make room for something else.
        self._kept: list[object] = []

    def number(self, pod: Pod) -> int:
        """The number of the pod's group, ``NO_GROUP`` where it takes no port."""
        spec = pod.spec
        key = id(spec.containers), id(spec.init_containers)
        number = self._by_containers.get(key)
        if number is None:
            ports = host_ports_of(pod, counts_sidecars=self._counts_sidecars)
            number = len(self.values) if ports else NO_GROUP
            if ports:
                self.values.append(ports)
            self._by_containers[key] = number
            self._kept += spec.containers, spec.init_containers
        return number


class AntiAffinityGroups:
    """Pods of equal namespace and labels that require the same others to stay away.

    ``representatives`` has one pod of each group.
    """

    def __init__(self) -> None:
        self.representatives: list[Pod] = []
        self._alike: dict[int, list[tuple[list[PodAffinityTerm], int]]] = {}

    def number(self, pod: Pod, label_group: int) -> int:
        """The number of the pod's group, ``NO_GROUP`` where it requires nothing of that kind."""
        affinity = pod.spec.affinity
        if affinity is None or affinity.pod_anti_affinity is None or not affinity.pod_anti_affinity.required:
            return NO_GROUP
        mine = affinity.pod_anti_affinity.required
        alike = self._alike.setdefault(label_group, [])
        number = next((number for terms, number in alike if terms == mine), None)
        if number is None:
            number = len(self.representatives)
            alike.append((mine, number))
            self.representatives.append(pod)
        return number


class Groups:
    """The groups of all pods that a table and those made from it have seen. They only ever grow."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.labels = LabelGroups()
        self.resources = ResourceGroups(behaviour)
        self.ports = PortGroups(behaviour)
        self.anti_affinity = AntiAffinityGroups()
