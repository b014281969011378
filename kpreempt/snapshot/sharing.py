"""Pods made small: equal parts of freshly decoded pods are kept once, and what nothing reads is let go.

A dump of 150,000 pods repeats a few hundred label sets, resource lists and tolerations; shared, they take a third of
the memory. Records are frozen, so sharing cannot be seen from outside. This runs for every pod, so it is written out
field by field, and short texts that every pod has, such as its node's name, are not worth their look-up.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from msgspec.structs import force_setattr

from kpreempt.model.empty import NO_ITEMS
from kpreempt.model.pod import (
    DEFAULT_RESTART_POLICY,
    DEFAULT_SCHEDULER_NAME,
    AllAnnotations,
    Container,
    ContainerStatus,
    Pod,
    PodAnnotations,
    PodCondition,
    PodSpec,
    ResourceRequirements,
    Volume,
    all_annotations,
)

# What conditions are read for: budgets (Ready), evictions under way, resizes. Nobody reads the others.
_CONDITIONS = frozenset(("Ready", "DisruptionTarget", "PodResizePending", "PodResizeInProgress", "PodScheduled"))


class Sharing:
    """Parts that have been seen before; ``keeps_conditions`` leaves those of pods as they are."""

    def __init__(self, *, keeps_conditions: bool = False) -> None:
        self._keeps_conditions = keeps_conditions
        self._texts: dict[str, str] = {}
        self._annotations: dict[PodAnnotations, PodAnnotations | None] = {PodAnnotations(): None}
        self._all_annotations: dict[Hashable, AllAnnotations | None] = {(): None}
        self._maps: dict[Hashable, dict[str, str]] = {}
        self._lists: dict[Hashable, list[Any]] = {}
        self._containers: dict[Hashable, list[Container]] = {}
        self._statuses: dict[Hashable, list[ContainerStatus]] = {}
        self._conditions: dict[tuple[str, str, str], PodCondition] = {}

    def share(self, pod: Pod) -> None:
        """Replace parts of a pod that was just decoded, and that nobody else has seen, by equal ones known already."""
        meta, status = pod.metadata, pod.status
        if meta.labels:
            force_setattr(meta, "labels", self._map(meta.labels))
        if meta.annotations is not None:
            force_setattr(meta, "annotations", self._annotations.setdefault(meta.annotations, meta.annotations))
        if meta.owner_references:
            force_setattr(meta, "owner_references", self._list(meta.owner_references))
        self._share_spec(pod.spec)
        if status.conditions and not self._keeps_conditions:
            conditions = [self._condition(each) for each in status.conditions if each.type in _CONDITIONS]
            force_setattr(status, "conditions", self._list(conditions))
        if status.container_statuses:
            force_setattr(status, "container_statuses", self._telling(status.container_statuses))
        if status.init_container_statuses:
            force_setattr(status, "init_container_statuses", self._telling(status.init_container_statuses))

    def annotate(self, pod: Pod, annotations: dict[str, str]) -> None:
        """Give a pod that was just decoded all its annotations."""
        key = tuple(annotations.items())
        if key not in self._all_annotations:
            made = all_annotations(annotations)
            self._all_annotations[key] = made if made.everything else None
        force_setattr(pod.metadata, "annotations", self._all_annotations[key])

    def _share_spec(self, spec: PodSpec) -> None:
        texts = self._texts.setdefault
        scheduler_name = spec.scheduler_name
        force_setattr(spec, "containers", self._list_of_containers(spec.containers))
        if scheduler_name is not DEFAULT_SCHEDULER_NAME:
            force_setattr(spec, "scheduler_name", texts(scheduler_name, scheduler_name))
        if spec.priority_class_name:
            force_setattr(spec, "priority_class_name", texts(spec.priority_class_name, spec.priority_class_name))
        if spec.restart_policy is not DEFAULT_RESTART_POLICY:
            force_setattr(spec, "restart_policy", texts(spec.restart_policy, spec.restart_policy))
        if spec.node_selector:
            force_setattr(spec, "node_selector", self._map(spec.node_selector))
        if spec.init_containers:
            force_setattr(spec, "init_containers", self._list_of_containers(spec.init_containers))
        if spec.tolerations:
            force_setattr(spec, "tolerations", self._list(spec.tolerations))
        if spec.volumes:
            # Most volumes are of sources that no scheduler reads; these have nothing but a name here.
            volumes = [volume for volume in spec.volumes if volume != Volume(name=volume.name)]
            force_setattr(spec, "volumes", volumes or NO_ITEMS)

    def _list_of_containers(self, containers: list[Container]) -> list[Container]:
        if len(containers) == 1:
            key: Hashable = _container_key(containers[0])
        else:
            key = tuple([_container_key(each) for each in containers])
        return self._containers.setdefault(key, containers)

    def _map(self, value: dict[str, str]) -> dict[str, str]:
        return self._maps.setdefault(tuple(value.items()), value)

    def _list(self, value: list[Any]) -> list[Any]:
        """The list, or an equal one of hashable records that is known already."""
        return self._lists.setdefault(tuple(value), value)

    def _condition(self, condition: PodCondition) -> PodCondition:
        """The condition, without the time and message where only its status counts.

        What the scheduler says of a pod that it could not place is kept.
        """
        if condition.type not in ("Ready", "PodScheduled"):
            return condition
        if condition.type == "PodScheduled" and condition.status != "True":
            return condition
        key = (condition.type, condition.status, condition.reason)
        known = self._conditions.get(key)
        if known is None:
            known = self._conditions[key] = PodCondition(*key)
        return known

    def _telling(self, statuses: list[ContainerStatus]) -> list[ContainerStatus]:
        """The statuses that say what a container was given, or that it began anew; the others are not read."""
        telling = [
            each for each in statuses if each.restart_count or each.resources is not None or each.allocated_resources
        ]
        if not telling:
            return NO_ITEMS
        key = tuple(
            (
                each.name,
                each.restart_count,
                *each.allocated_resources,
                *map(id, each.allocated_resources.values()),
                _key(each.resources),
            )
            for each in telling
        )
        return self._statuses.setdefault(key, telling)


def _container_key(container: Container) -> Hashable:
    resources = container.resources
    requests = resources.requests
    rest = container.ports or container.restart_policy or container.restart_policy_rules
    if rest or resources.limits or resources.claims:
        extras = (*container.ports, container.restart_policy, *container.restart_policy_rules)
        return container.name, container.image, _key(resources), *extras
    return container.name, container.image, *requests, *map(id, requests.values())


def _key(resources: ResourceRequirements | None) -> Hashable:
    """A key for amounts: names, and the identities of the quantities, since equal texts are one object already.

    Equal amounts in other words (1000m, 1) stay apart: a report shows the words.
    """
    if resources is None:
        return None
    requests, limits = resources.requests, resources.limits
    if not limits and not resources.claims:
        return (*requests, *map(id, requests.values()))
    return tuple(requests), *map(id, requests.values()), tuple(limits), *map(id, limits.values()), *resources.claims
