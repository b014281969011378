"""Single changes to a pod or its cluster, as ladders of alternatives with the least change first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kpreempt.analysis.edits import Edit
from kpreempt.analysis.field_paths import Assignment, Step, format_path
from kpreempt.analysis.least_priority import just_above
from kpreempt.analysis.what_if import Overrides
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.verdict import Change, ChangeKind

Ladder = list[Edit]
Place = list[Step]

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_MAX_STEPS = 10


class Scene(msgspec.Struct, frozen=True):
    """A pod, the cluster that it comes to, and the node in question."""

    pod: Pod
    cluster: ClusterSnapshot
    node: Node


def raise_priority(scene: Scene, others: Sequence[str]) -> Ladder:
    """One more than the priority of each pod on the node, and of ``others``, that the pod does not outrank yet."""
    keys = frozenset(others)
    there = (
        each
        for each in scene.cluster.pods
        if (each.spec.node_name == scene.node.name or each.key in keys) and not each.is_terminal
    )
    wanted = just_above(there, scene.pod)
    return [raised(scene.pod, scene.cluster, priority) for priority in wanted[:_MAX_STEPS]]


def raised(pod: Pod, cluster: ClusterSnapshot, priority: int) -> Edit:
    """The pod at a higher priority; it reaches as far as the pods that it outranks then, and did not before."""
    running = [each for each in cluster.pods if each.spec.node_name and not each.is_terminal]
    outranked = [each for each in running if pod.priority <= each.priority < priority]
    return Edit(
        changes=[Change(ChangeKind.PRIORITY, before=pod.priority, after=priority)],
        overrides=Overrides(priority=priority),
        share_affected=len(outranked) / max(len(running), 1),
        is_about_system=any(map(is_of_system, outranked)),
    )


def is_of_system(pod: Pod) -> bool:
    """Whether the cluster itself may hang on the pod: one of ``kube-system``, or with a class that the API reserves."""
    return pod.metadata.namespace == "kube-system" or pod.spec.priority_class_name.startswith("system-")


def allow_preemption(pod: Pod) -> Ladder:
    """Let a pod evict that may not."""
    if pod.spec.preemption_policy != "Never":
        return []
    policy = "PreemptLowerPriority"
    return [
        Edit(
            changes=[Change(ChangeKind.PREEMPTION_POLICY, subject=policy)],
            overrides=Overrides(preemption_policy=policy),
        )
    ]


def remove_pods(scene: Scene, keys: Sequence[str]) -> Ladder:
    """Take one of the pods away, the least important first, but never the one in question."""
    priorities = {each.key: each.priority for each in scene.cluster.pods}
    of_system = {each.key for each in scene.cluster.pods if is_of_system(each)}
    there = [key for key in dict.fromkeys(keys) if key in priorities and key != scene.pod.key]
    return [
        Edit(
            changes=[Change(ChangeKind.WITHOUT_POD, subject=key)], removed_pods=[key], is_about_system=key in of_system
        )
        for key in sorted(there, key=priorities.__getitem__)[:_MAX_STEPS]
    ]


def pods_on(scene: Scene) -> list[Pod]:
    """The pods that take room on the node."""
    return [pod for pod in scene.cluster.pods if pod.spec.node_name == scene.node.name and not pod.is_terminal]


def drop_preferences(scene: Scene) -> Ladder:
    """Give up what the pod prefers: each preference alone, then all of them."""
    spec = scene.pod.spec
    places: dict[str, Place] = {}
    if spec.affinity is not None:
        for field, rules in (
            ("nodeAffinity", spec.affinity.node_affinity),
            ("podAffinity", spec.affinity.pod_affinity),
            ("podAntiAffinity", spec.affinity.pod_anti_affinity),
        ):
            if rules is not None and rules.preferred:
                places[f"preferred {field}"] = ["spec", "affinity", field, _PREFERRED]
    soft = [
        index
        for index, each in enumerate(spec.topology_spread_constraints)
        if each.when_unsatisfiable == "ScheduleAnyway"
    ]
    for index in reversed(soft):
        key = spec.topology_spread_constraints[index].topology_key
        places[f"preferred spread over {key} ({index})"] = ["spec", "topologySpreadConstraints", index]
    ladder = [dropping(ChangeKind.PREFERENCE, {name: place}) for name, place in places.items()]
    return [*ladder, dropping(ChangeKind.PREFERENCE, places)] if len(places) > 1 else ladder


def dropping(kind: ChangeKind, places: Mapping[str, Sequence[Step]]) -> Edit:
    """An edit that takes fields away, in the order given."""
    return Edit(
        changes=[Change(kind, subject=name) for name in places],
        overrides=Overrides(assignments=[Assignment(format_path(list(place)), None) for place in places.values()]),
    )
