"""Pods made small: equal parts of freshly decoded pods are kept once, and what nothing reads is let go.

A dump of 150,000 pods repeats a few hundred label sets, resource lists and tolerations; shared, they take a third of
the memory. Records are frozen, so sharing cannot be seen from outside. This runs for every pod, so it is written out
field by field.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from msgspec.structs import force_setattr

from kpreempt.model.pod import (
    DEFAULT_SCHEDULER_NAME,
    Container,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Volume,
)

_EMPTY_LIST: list[Any] = []
_EMPTY_DICT: dict[Any, Any] = {}
# What conditions are read for: budgets (Ready), evictions under way, resizes. Nobody reads the others.
_CONDITIONS = frozenset(("Ready", "DisruptionTarget", "PodResizePending", "PodResizeInProgress", "PodScheduled"))


class Sharing:
    """Parts that have been seen before."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._maps: dict[Hashable, dict[str, str]] = {}
        self._lists: dict[Hashable, list[Any]] = {}
        self._resources: dict[Hashable, ResourceRequirements] = {}
        self._statuses: dict[Hashable, list[ContainerStatus]] = {}
        self._conditions: dict[tuple[str, str, str], PodCondition] = {}

    def share(self, pod: Pod) -> None:
        """Replace parts of a pod that was just decoded, and that nobody else has seen, by equal ones known already."""
        meta = pod.metadata
        namespace, labels = meta.namespace, meta.labels
        force_setattr(meta, "namespace", self._texts.setdefault(namespace, namespace))
        force_setattr(meta, "labels", self._map(labels))
        owners = meta.owner_references
        force_setattr(meta, "owner_references", self._list(owners) if owners else _EMPTY_LIST)
        if not meta.finalizers:
            force_setattr(meta, "finalizers", _EMPTY_LIST)
        self._share_placement(pod.spec)
        self._share_lists(pod.spec)
        self._share_status(pod.status)

    def _share_placement(self, spec: PodSpec) -> None:
        """The parts of a spec that are not lists."""
        texts = self._texts.setdefault
        node_name, scheduler_name = spec.node_name, spec.scheduler_name
        force_setattr(spec, "node_name", texts(node_name, node_name))
        if scheduler_name is not DEFAULT_SCHEDULER_NAME:
            force_setattr(spec, "scheduler_name", texts(scheduler_name, scheduler_name))
        if spec.priority_class_name:
            force_setattr(spec, "priority_class_name", texts(spec.priority_class_name, spec.priority_class_name))
        if spec.restart_policy:
            force_setattr(spec, "restart_policy", texts(spec.restart_policy, spec.restart_policy))
        selector = spec.node_selector
        force_setattr(spec, "node_selector", self._map(selector) if selector else _EMPTY_DICT)
        if not spec.overhead:
            force_setattr(spec, "overhead", _EMPTY_DICT)

    def _share_lists(self, spec: PodSpec) -> None:
        for container in spec.containers:
            self._share_container(container)
        if spec.init_containers:
            for container in spec.init_containers:
                self._share_container(container)
        else:
            force_setattr(spec, "init_containers", _EMPTY_LIST)
        tolerations = spec.tolerations
        force_setattr(spec, "tolerations", self._list(tolerations) if tolerations else _EMPTY_LIST)
        # Most volumes are of sources that no scheduler reads; these have nothing but a name here.
        volumes = [volume for volume in spec.volumes if volume != Volume(name=volume.name)] if spec.volumes else None
        force_setattr(spec, "volumes", volumes or _EMPTY_LIST)
        if not spec.topology_spread_constraints:
            force_setattr(spec, "topology_spread_constraints", _EMPTY_LIST)
        if not spec.scheduling_gates:
            force_setattr(spec, "scheduling_gates", _EMPTY_LIST)
        if not spec.resource_claims:
            force_setattr(spec, "resource_claims", _EMPTY_LIST)

    def _share_container(self, container: Container) -> None:
        name, image, ports, resources = container.name, container.image, container.ports, container.resources
        force_setattr(container, "name", self._texts.setdefault(name, name))
        if image:
            force_setattr(container, "image", self._texts.setdefault(image, image))
        force_setattr(container, "ports", self._list(ports) if ports else _EMPTY_LIST)
        if not container.restart_policy_rules:
            force_setattr(container, "restart_policy_rules", _EMPTY_LIST)
        force_setattr(container, "resources", self._resources.setdefault(_key(resources), resources))

    def _share_status(self, status: PodStatus) -> None:
        phase, conditions = status.phase, status.conditions
        force_setattr(status, "phase", self._texts.setdefault(phase, phase))
        if conditions:
            conditions = [self._condition(each) for each in conditions if each.type in _CONDITIONS]
        force_setattr(status, "conditions", self._list(conditions) if conditions else _EMPTY_LIST)
        statuses = status.container_statuses
        force_setattr(status, "container_statuses", self._telling(statuses) if statuses else _EMPTY_LIST)
        statuses = status.init_container_statuses
        force_setattr(status, "init_container_statuses", self._telling(statuses) if statuses else _EMPTY_LIST)
        if not status.resource_claim_statuses:
            force_setattr(status, "resource_claim_statuses", _EMPTY_LIST)
        if not status.allocated_resources:
            force_setattr(status, "allocated_resources", _EMPTY_DICT)

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
        """The statuses that say what a container was given; the others are not read."""
        telling = [each for each in statuses if each.resources is not None or each.allocated_resources]
        if not telling:
            return _EMPTY_LIST
        key = tuple(
            (each.name, *each.allocated_resources, *map(id, each.allocated_resources.values()), _key(each.resources))
            for each in telling
        )
        return self._statuses.setdefault(key, telling)


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
