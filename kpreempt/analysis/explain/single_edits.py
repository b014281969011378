"""Changes to a question as data, and the single ones to a pod or its cluster, as alternatives with the least first.

A change says what is different, how to apply it, and which options have the same effect; a pod's fields are changed by
their paths, as ``--set`` does, so that what is proved is what a reader can repeat.

What a pod asks for is the larger of what runs together and of what its init containers need on their way, and its
overhead (``k8s.io/component-helpers`` v0.36.3 ``resource/helpers.go``); so one amount can take several settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from kpreempt.analysis.explain.overrides import cordon, set_budget, uncordon, without
from kpreempt.analysis.what_if import Assignment, Overrides, Step, format_path, override_pod, pod_document
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Container, Pod, annotations_of, with_annotations
from kpreempt.model.quantity import NANO_PER_MILLI, NANO_PER_UNIT, Quantity, quantity
from kpreempt.verdict import Change, ChangeKind

# How far a change reaches: first what the pod asks for, then what it puts up with, then what it insists on, then what
# others pay for, and last what pods of the system pay for. A request cut by more than half counts as more than a wish
# given up.
INTRUSIVENESS = {kind: rank for rank, kind in enumerate(ChangeKind)}
_OF_SYSTEM = len(INTRUSIVENESS)
_PLAIN = re.compile(r"[A-Za-z][\w./-]*")
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that belong together, with what they do to the pod and to the cluster.

    ``share_affected`` is that of all running pods that the edit puts behind the pod in question; ``is_about_system``
    says that pods of the system are among those that it costs.
    """

    changes: Sequence[Change]
    overrides: Overrides = Overrides()
    uncordoned: str = ""
    cordoned: str = ""
    budgets: Sequence[str] = ()
    removed_pods: Sequence[str] = ()
    share_affected: float = 0.0
    is_about_system: bool = False

    @property
    def is_of_cluster(self) -> bool:
        """Whether the cluster is another one afterwards."""
        return bool(self.uncordoned or self.cordoned or self.budgets or self.removed_pods)

    @property
    def weight(self) -> tuple[int, float]:
        """How far the edit reaches: by its worst change, and among those by the share that is cut or affected."""
        rank, share = max(map(_weight, self.changes))
        return (rank + _OF_SYSTEM if self.is_about_system else rank), max(share, self.share_affected)

    def options(self, stated: Stated) -> list[str]:
        """The arguments that make ``kpreempt explain`` apply the edit to the pod as its user states it."""
        arguments: list[str] = []
        if self.overrides.priority is not None:
            arguments.append(f"--priority={self.overrides.priority}")
        if self.overrides.preemption_policy is not None:
            arguments.append(f"--preemption-policy={self.overrides.preemption_policy}")
        arguments += [f"--set={stated.setting(assignment)}" for assignment in self.overrides.assignments]
        arguments += [f"--uncordon={self.uncordoned}"] if self.uncordoned else []
        arguments += [f"--cordon={self.cordoned}"] if self.cordoned else []
        arguments += [f"--budget={budget}" for budget in self.budgets]
        arguments += [f"--without=pod/{key}" for key in self.removed_pods]
        return arguments


class Stated(msgspec.Struct, frozen=True):
    """How the pod as its user states it differs from the one that the scheduler sees.

    ``num_tolerations`` is how many it states itself, to which admission adds.
    """

    num_tolerations: int

    def setting(self, assignment: Assignment) -> str:
        """``PATH=VALUE`` for an assignment to the admitted pod; tolerations are appended to the stated ones."""
        path = assignment.path
        if match := _TOLERATION.fullmatch(path):
            path = f"spec.tolerations[{self.num_tolerations + int(match[1])}]"
        return f"{path}={_as_yaml(assignment.value)}"


# A toleration to be appended, by its number among those that an edit appends.
_TOLERATION = re.compile(r"spec\.tolerations\[\+([0-9]+)\]")


def appended_toleration(number: int) -> str:
    """The path of the ``number``-th toleration that an edit appends."""
    return f"spec.tolerations[+{number}]"


def edit_pod(pod: Pod, edit: Edit) -> Pod:
    """The pod as the edit makes it. Raises ``UsageError`` where a path of the edit is not there."""
    if not edit.overrides:
        return pod
    assignments = [_placed(assignment, len(pod.spec.tolerations)) for assignment in edit.overrides.assignments]
    overrides = msgspec.structs.replace(edit.overrides, assignments=assignments)
    document = override_pod(pod_document(pod), overrides)
    edited = msgspec.convert(document, Pod, dec_hook=_quantity)
    # An edit changes no annotation; where all were read they stay.
    told = annotations_of(pod)
    return with_annotations(edited, told) if told else edited


def edit_cluster(cluster: ClusterSnapshot, edit: Edit) -> ClusterSnapshot:
    """The cluster as the edit makes it. Raises ``NotFoundError`` for an object that is not there."""
    steps: list[tuple[Callable[[ClusterSnapshot, str], ClusterSnapshot], str]] = [
        *((set_budget, budget) for budget in edit.budgets),
        *((without, f"pod/{key}") for key in edit.removed_pods),
    ]
    steps += [(uncordon, edit.uncordoned)] if edit.uncordoned else []
    steps += [(cordon, edit.cordoned)] if edit.cordoned else []
    for change, target in steps:
        cluster = change(cluster, target)
    return cluster


def _weight(change: Change) -> tuple[int, float]:
    rank = INTRUSIVENESS[change.kind]
    if change.kind != ChangeKind.REQUEST or change.before is None or change.after is None:
        return rank, 0.0
    cut = 1 - change.after / max(change.before, 1)
    if change.after == 0:
        rank = INTRUSIVENESS[ChangeKind.PIN]
    elif cut > 0.5:
        rank = INTRUSIVENESS[ChangeKind.HOST_PORT]
    return rank, cut


def _placed(assignment: Assignment, num_tolerations: int) -> Assignment:
    """The assignment with plain data, and with the place of a toleration that is appended."""
    path, value = assignment.path, assignment.value
    if match := _TOLERATION.fullmatch(path):
        path = f"spec.tolerations[{num_tolerations + int(match[1])}]"
    return Assignment(path, str(value) if isinstance(value, Quantity) else value)


def _as_yaml(value: Any) -> str:
    """A value as YAML on one line; JSON is YAML, too."""
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _YAML_WORDS:
        return value
    return json.dumps(value, separators=(",", ":"))


def _quantity(kind: type, value: Any) -> Any:
    if kind is Quantity:
        return quantity(str(value))
    raise NotImplementedError(f"{kind.__name__} has no decoder")


EditOptions = list[Edit]
Place = list[Step]

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_MAX_STEPS = 10

_BINARY_UNITS = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")
# Their limits may be higher than their requests; those of all other resources must be equal.
_OVERCOMMITTED = frozenset({"cpu", "memory", "ephemeral-storage"})
_POD_LEVEL_PREFIX = "hugepages-"


class EditContext(msgspec.Struct, frozen=True):
    """A pod, the cluster that it comes to, and the node in question."""

    pod: Pod
    cluster: ClusterSnapshot
    node: Node


def raise_priority(context: EditContext, others: Sequence[str]) -> EditOptions:
    """One more than the priority of each pod on the node, and of ``others``, that the pod does not outrank yet."""
    from kpreempt.analysis.explain.least_priority import just_above  # noqa: PLC0415 - lower requests need none

    keys = frozenset(others)
    there = (
        each
        for each in context.cluster.pods
        if (each.spec.node_name == context.node.name or each.key in keys) and not each.is_terminal
    )
    wanted = just_above(there, context.pod)
    return [raised(context.pod, context.cluster, priority) for priority in wanted[:_MAX_STEPS]]


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


def allow_preemption(pod: Pod) -> EditOptions:
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


def remove_pods(context: EditContext, keys: Sequence[str], number: int = 1) -> EditOptions:
    """Take one of the pods away, or this number, the least important first, but never the one in question."""
    priorities = {each.key: each.priority for each in context.cluster.pods}
    of_system = {each.key for each in context.cluster.pods if is_of_system(each)}
    there = [key for key in dict.fromkeys(keys) if key in priorities and key != context.pod.key]
    ranked = sorted(there, key=priorities.__getitem__)
    sets = [ranked[start : start + number] for start in range(len(ranked) - number + 1)]
    return [
        Edit(
            changes=[Change(ChangeKind.WITHOUT_POD, subject=key) for key in each],
            removed_pods=each,
            is_about_system=not of_system.isdisjoint(each),
        )
        for each in (sets if number == 1 else sets[:1])[:_MAX_STEPS]
    ]


def pods_on(context: EditContext) -> list[Pod]:
    """The pods that take room on the node."""
    return [pod for pod in context.cluster.pods if pod.spec.node_name == context.node.name and not pod.is_terminal]


def drop_preferences(context: EditContext) -> EditOptions:
    """Give up what the pod prefers: each preference alone, then all of them."""
    spec = context.pod.spec
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
    options = [dropping(ChangeKind.PREFERENCE, {name: place}) for name, place in places.items()]
    return [*options, dropping(ChangeKind.PREFERENCE, places)] if len(places) > 1 else options


def dropping(kind: ChangeKind, places: Mapping[str, Sequence[Step]]) -> Edit:
    """An edit that takes fields away, in the order given."""
    return Edit(
        changes=[Change(kind, subject=name) for name in places],
        overrides=Overrides(assignments=[Assignment(format_path(list(place)), None) for place in places.values()]),
    )


def lower_requests(pod: Pod, amounts: Mapping[str, tuple[int, int]]) -> Edit | None:
    """Have the pod ask for at most so much of each resource.

    ``amounts`` gives what it asks for now and what it may ask for, in milli-CPU, bytes or units. The largest container
    gives up what is too much, or all of them their share where that one has too little. ``None`` where no requests of
    the pod's own come down to the amounts.
    """
    changes, assignments = [], []
    for resource, (before, after) in amounts.items():
        lowered = _lower(pod, resource, after) if 0 <= after < before else None
        if lowered is None:
            return None
        changes.append(Change(ChangeKind.REQUEST, resource, before, after))
        assignments += lowered
    return Edit(changes=changes, overrides=Overrides(assignments=assignments)) if changes else None


def _lower(pod: Pod, resource: str, most: int) -> list[Assignment] | None:
    unit = NANO_PER_MILLI if resource == "cpu" else NANO_PER_UNIT
    spec = pod.spec
    room = most * unit - (spec.overhead[resource].nano if resource in spec.overhead else 0)
    if room < 0:
        return None
    counts_as_whole = resource in ("cpu", "memory") or resource.startswith(_POD_LEVEL_PREFIX)
    if spec.resources is not None and resource in spec.resources.requests and counts_as_whole:
        # The API server wants the whole pod to ask for at least as much as its containers do.
        if sum(_nano(container, resource) for container in spec.containers) > room:
            return None
        return _settings(["spec", "resources"], spec.resources.limits, resource, room // unit)
    return _lower_containers(pod, resource, room, unit)


def _lower_containers(pod: Pod, resource: str, room: int, unit: int) -> list[Assignment] | None:
    spec = pod.spec
    assignments: list[Assignment] = []
    sidecars = 0
    for index, container in enumerate(spec.init_containers):
        needs = _nano(container, resource)
        if container.restart_policy == "Always":
            sidecars += needs
        elif sidecars + needs > room:
            if sidecars > room:
                return None
            assignments += _of_container("initContainers", index, container, resource, (room - sidecars) // unit)
    needs_of = [_nano(container, resource) for container in spec.containers]
    if sidecars > room:
        return None
    lowered = _share(needs_of, room - sidecars, unit)
    for index, (container, before, after) in enumerate(zip(spec.containers, needs_of, lowered, strict=True)):
        if after != before:
            assignments += _of_container("containers", index, container, resource, after // unit)
    return assignments


def _share(needs: Sequence[int], room: int, unit: int) -> list[int]:
    """What each container may ask for, in whole units where it changes, so that their sum is at most ``room``."""
    excess = sum(needs) - room
    if excess <= 0:
        return list(needs)
    largest = max(range(len(needs)), key=needs.__getitem__)
    rest = needs[largest] - excess
    if rest >= unit or len(needs) == 1:
        return [max(rest, 0) // unit * unit if index == largest else need for index, need in enumerate(needs)]
    total = sum(needs)
    shares = [need * room // total // unit * unit for need in needs]
    shares[largest] += (room - sum(shares)) // unit * unit
    return shares


def _of_container(field: str, index: int, container: Container, resource: str, amount: int) -> list[Assignment]:
    return _settings(["spec", field, index, "resources"], container.resources.limits, resource, amount)


def _settings(
    place: Sequence[str | int], limits: Mapping[str, Quantity], resource: str, amount: int
) -> list[Assignment]:
    """The request, and the limit where the two must be equal."""
    value = quantity(_format(resource, amount))
    lists = ["requests"]
    if resource in limits and resource not in _OVERCOMMITTED:
        lists.append("limits")
    return [Assignment(format_path([*place, each, resource]), value) for each in lists]


def _nano(container: Container, resource: str) -> int:
    amount = container.resources.requests.get(resource)
    return amount.nano if amount is not None else 0


def _format(resource: str, amount: int) -> str:
    """An amount as a quantity, exactly."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in _OVERCOMMITTED or resource.startswith(_POD_LEVEL_PREFIX):
        for index, unit in enumerate(_BINARY_UNITS):
            size = 1024 ** (len(_BINARY_UNITS) - index)
            if amount and amount % size == 0:
                return f"{amount // size}{unit}"
    return str(amount)
