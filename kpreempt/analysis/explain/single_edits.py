"""Single changes to a pod or its cluster as data, as alternatives with the smallest first.

A change states what is different, how to apply it, and which options have the same effect. A pod's fields are changed
by path, as with ``--set``, so that users can reproduce what was verified.

A pod's request is the larger of the sum of its containers and the needs of its init containers, plus its overhead
(``k8s.io/component-helpers`` v0.36.3 ``resource/helpers.go``); so one amount can require several settings.

Also: the lowest priority with which an unschedulable pod is scheduled on any node. The scheduler's decision only
changes when the pod's priority passes that of another pod, so only the priorities just above those are tried. A bound
for each node excludes priorities at which too little would be freed there, and full verdicts find the lowest of the
rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kpreempt.analysis.nodes.changes import NodeEdit, changed
from kpreempt.analysis.nodes.copies import Added, with_nodes
from kpreempt.analysis.what_if import Assignment, Overrides, Step, format_path, override_pod, pod_document
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Container, Pod, annotations_of, with_annotations
from kpreempt.model.quantity import NANO_PER_MILLI, NANO_PER_UNIT, Quantity, decode_quantity, quantity
from kpreempt.verdict import Change, ChangeKind, Code, Status, Verdict
from kpreempt.verdict.details import InsufficientResources
from kpreempt.verdict.remedies import ObjectEdit, RemedyStage

_PLAIN = re.compile(r"[A-Za-z][\w./-]*")
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that belong together, with their effect on the pod and the cluster.

    ``nodes`` are edits of nodes, and ``added`` are new nodes. ``objects`` are changes to other objects, for which
    ``kpreempt explain`` has no option.
    """

    stage: RemedyStage
    changes: Sequence[Change]
    overrides: Overrides = Overrides()
    nodes: Sequence[NodeEdit] = ()
    budgets: Sequence[str] = ()
    objects: Sequence[ObjectEdit] = ()
    added: Added | None = None

    @property
    def is_of_cluster(self) -> bool:
        """Whether the edit changes the cluster."""
        return bool(self.nodes or self.budgets or self.objects or self.added)

    def options(self, num_tolerations: int) -> list[str]:
        """The arguments with which ``kpreempt explain`` applies the edit to the user's pod.

        ``num_tolerations`` is the number of tolerations in the manifest, without those that admission adds.
        """
        arguments: list[str] = []
        if self.overrides.priority is not None:
            arguments.append(f"--priority={self.overrides.priority}")
        if self.overrides.preemption_policy is not None:
            arguments.append(f"--preemption-policy={self.overrides.preemption_policy}")
        arguments += [
            f"--set={_appended(each.path, num_tolerations)}={_as_yaml(each.value)}"
            for each in self.overrides.assignments
        ]
        arguments += [each.argument for each in self.nodes]
        arguments += [f"--budget={budget}" for budget in self.budgets]
        if self.added is not None:
            arguments += [f"--add-node={change.subject}" for change in self.changes]
        return arguments


# An appended toleration, by its number within the edit.
_TOLERATION = re.compile(r"spec\.tolerations\[\+([0-9]+)\]")


def appended_toleration(number: int) -> str:
    """The path of the ``number``-th toleration that an edit appends."""
    return f"spec.tolerations[+{number}]"


def _appended(path: str, num_tolerations: int) -> str:
    """The path with the index of an appended toleration."""
    match = _TOLERATION.fullmatch(path)
    return path if match is None else f"spec.tolerations[{num_tolerations + int(match[1])}]"


def edit_pod(pod: Pod, edit: Edit) -> Pod:
    """Apply an edit to a pod. Raises ``UsageError`` if a path of the edit does not exist."""
    if not edit.overrides:
        return pod
    # Use plain data, and resolve the indexes of appended tolerations.
    assignments = [
        Assignment(
            _appended(each.path, len(pod.spec.tolerations)),
            str(each.value) if isinstance(each.value, Quantity) else each.value,
        )
        for each in edit.overrides.assignments
    ]
    document = override_pod(pod_document(pod), msgspec.structs.replace(edit.overrides, assignments=assignments))
    edited = msgspec.convert(document, Pod, dec_hook=decode_quantity)
    # Edits change no annotations, so keep all that were read.
    annotations = annotations_of(pod)
    return with_annotations(edited, annotations) if annotations else edited


def edit_cluster(cluster: ClusterSnapshot, edit: Edit) -> ClusterSnapshot:
    """Apply an edit to a cluster. Raises ``NotFoundError`` for an object that does not exist."""
    cluster = changed(cluster, edits=edit.nodes, budgets=edit.budgets)
    if edit.objects:
        from kpreempt.analysis.remedies.edits import edited  # noqa: PLC0415 - rarely needed

        cluster = edited(cluster, edit.objects)
    return with_nodes(cluster, edit.added) if edit.added is not None else cluster


def _as_yaml(value: Any) -> str:
    """A value as one-line YAML; JSON is valid YAML."""
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _YAML_WORDS:
        return value
    return json.dumps(value, separators=(",", ":"))


EditOptions = list[Edit]
FieldPath = list[Step]

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_BINARY_UNITS = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")
# Limits of these resources may exceed requests; for all other resources the two must be equal.
_OVERCOMMITTED = frozenset({"cpu", "memory", "ephemeral-storage"})
_POD_LEVEL_PREFIX = "hugepages-"


class EditContext(msgspec.Struct, frozen=True):
    """A pod, its cluster, and the node to change."""

    pod: Pod
    cluster: ClusterSnapshot
    node: Node


def raised(pod: Pod, priority: int) -> Edit:
    """Raise the pod's priority."""
    return Edit(
        stage=RemedyStage.PRIORITY,
        changes=[Change(ChangeKind.PRIORITY, before=pod.priority, after=priority)],
        overrides=Overrides(priority=priority),
    )


def allow_preemption(pod: Pod) -> EditOptions:
    """Allow a pod to preempt if its policy forbids it."""
    if pod.spec.preemption_policy != "Never":
        return []
    policy = "PreemptLowerPriority"
    return [
        Edit(
            stage=RemedyStage.PRIORITY,
            changes=[Change(ChangeKind.PREEMPTION_POLICY, subject=policy)],
            overrides=Overrides(preemption_policy=policy),
        )
    ]


def drop_preferences(context: EditContext) -> EditOptions:
    """Drop the pod's preferences: each one alone, then all of them."""
    spec = context.pod.spec
    places: dict[str, FieldPath] = {}
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
    """An edit that removes fields, in the given order."""
    return Edit(
        stage=RemedyStage.REQUESTER,
        changes=[Change(kind, subject=name) for name in places],
        overrides=Overrides(assignments=[Assignment(format_path(list(place)), None) for place in places.values()]),
    )


def lower_requests(pod: Pod, amounts: Mapping[str, tuple[int, int]]) -> Edit | None:
    """Lower the pod's requests to at most these amounts.

    ``amounts`` has the current and the new amount, in milli-CPU, bytes or units. The largest container is lowered, or
    all containers proportionally if that one is too small. Returns ``None`` if the pod's own requests cannot be lowered
    enough.
    """
    changes, assignments = [], []
    for resource, (before, after) in amounts.items():
        assignments_of = _lower(pod, resource, after) if 0 <= after < before else None
        if assignments_of is None:
            return None
        changes.append(Change(ChangeKind.REQUEST, resource, before, after))
        assignments += assignments_of
    if not changes:
        return None
    return Edit(stage=RemedyStage.REQUESTER, changes=changes, overrides=Overrides(assignments=assignments))


def _lower(pod: Pod, resource: str, limit: int) -> list[Assignment] | None:
    unit = NANO_PER_MILLI if resource == "cpu" else NANO_PER_UNIT
    spec = pod.spec
    available = limit * unit - (spec.overhead[resource].nano if resource in spec.overhead else 0)
    if available < 0:
        return None
    is_pod_level = resource in ("cpu", "memory") or resource.startswith(_POD_LEVEL_PREFIX)
    if spec.resources is not None and resource in spec.resources.requests and is_pod_level:
        # The API server requires pod-level requests to be at least the sum of the containers' requests.
        if sum(_nano(container, resource) for container in spec.containers) > available:
            return None
        return _settings(["spec", "resources"], spec.resources.limits, resource, available // unit)
    return _lower_containers(pod, resource, available, unit)


def _lower_containers(pod: Pod, resource: str, available: int, unit: int) -> list[Assignment] | None:
    spec = pod.spec
    assignments: list[Assignment] = []
    sidecars = 0
    for index, container in enumerate(spec.init_containers):
        needs = _nano(container, resource)
        if container.restart_policy == "Always":
            sidecars += needs
        elif sidecars + needs > available:
            if sidecars > available:
                return None
            place: FieldPath = ["spec", "initContainers", index, "resources"]
            assignments += _settings(place, container.resources.limits, resource, (available - sidecars) // unit)
    needs_of = [_nano(container, resource) for container in spec.containers]
    if sidecars > available:
        return None
    lowered = _share(needs_of, available - sidecars, unit)
    for index, (container, before, after) in enumerate(zip(spec.containers, needs_of, lowered, strict=True)):
        if after != before:
            place = ["spec", "containers", index, "resources"]
            assignments += _settings(place, container.resources.limits, resource, after // unit)
    return assignments


def _share(needs: Sequence[int], available: int, unit: int) -> list[int]:
    """The new request of each container, in whole units if changed, so that their sum is at most ``available``."""
    excess = sum(needs) - available
    if excess <= 0:
        return list(needs)
    largest = max(range(len(needs)), key=needs.__getitem__)
    rest = needs[largest] - excess
    if rest >= unit or len(needs) == 1:
        return [max(rest, 0) // unit * unit if index == largest else need for index, need in enumerate(needs)]
    total = sum(needs)
    shares = [need * available // total // unit * unit for need in needs]
    shares[largest] += (available - sum(shares)) // unit * unit
    return shares


def _settings(
    place: Sequence[str | int], limits: Mapping[str, Quantity], resource: str, amount: int
) -> list[Assignment]:
    """The request, and the limit if the two must be equal."""
    value = quantity(_format(resource, amount))
    lists = ["requests"]
    if resource in limits and resource not in _OVERCOMMITTED:
        lists.append("limits")
    return [Assignment(format_path([*place, each, resource]), value) for each in lists]


def _nano(container: Container, resource: str) -> int:
    amount = container.resources.requests.get(resource)
    return amount.nano if amount is not None else 0


def _format(resource: str, amount: int) -> str:
    """An amount as an exact quantity."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in _OVERCOMMITTED or resource.startswith(_POD_LEVEL_PREFIX):
        for index, unit in enumerate(_BINARY_UNITS):
            size = 1024 ** (len(_BINARY_UNITS) - index)
            if amount and amount % size == 0:
                return f"{amount // size}{unit}"
    return str(amount)


# The highest priority that users may set.
HIGHEST_USER_PRIORITY = 10**9

Reached = tuple[int, Verdict]
# Returns the verdict at a priority if it reaches the goal.
Decide = Callable[[int], Verdict | None]


def just_above(pods: Iterable[Pod], pod: Pod) -> list[int]:
    """The allowed priorities above that of ``pod`` that outrank one more of ``pods``, ascending."""
    own = pod.priority
    return sorted({each.priority + 1 for each in pods if own <= each.priority < HIGHEST_USER_PRIORITY})


def worth_trying(cluster: ClusterSnapshot, pod: Pod, verdict: Verdict) -> list[int]:
    """The priorities to try, ascending; no node can take the pod below the first of them.

    ``verdict`` is the verdict on the unschedulable pod, from a scheduler that evicts by priority.
    """
    may_evict = pod.spec.preemption_policy != "Never"
    evictable: dict[str, list[Pod]] = {}
    for each in cluster.pods:
        node = each.spec.node_name if may_evict else ""
        node = node or ("" if each.spec.node_name else each.status.nominated_node_name)
        if node and not each.is_terminal and each.key != pod.key:
            evictable.setdefault(node, []).append(each)
    return sorted(
        {priority for name, pods in evictable.items() for priority in _of_node(pods, pod, verdict.filter.get(name))}
    )


def first_reaching(priorities: Sequence[int], decide: Decide, *, only_grows: bool) -> Reached | None:
    """The first of ``priorities`` at which ``decide`` reaches the goal, with its verdict.

    ``only_grows`` means that success at one priority implies success at every higher one; otherwise they are tried in
    turn.
    """
    if not only_grows:
        answers = ((priority, decide(priority)) for priority in priorities)
        return next(((priority, verdict) for priority, verdict in answers if verdict is not None), None)
    best: Reached | None = None
    failed, reached = -1, len(priorities)
    # The bound is usually sufficient, and if the highest priority does not help, none does.
    for probe in (0, len(priorities) - 1):
        if failed < probe < reached:
            verdict = decide(priorities[probe])
            if verdict is None:
                failed = probe
            else:
                best, reached = (priorities[probe], verdict), probe
    while best is not None and reached - failed > 1:
        middle = (failed + reached) // 2
        verdict = decide(priorities[middle])
        if verdict is None:
            failed = middle
        else:
            best, reached = (priorities[middle], verdict), middle
    return best


def _of_node(pods: Sequence[Pod], pod: Pod, status: Status | None) -> list[int]:
    """The priorities at which enough could be freed on the node; ``pods`` are those that could be evicted there."""
    priorities = just_above(pods, pod)
    if status is None or not priorities:
        return priorities
    if status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        # Only nominated pods matter here; evictions do not help.
        return just_above((each for each in pods if not each.spec.node_name), pod)
    if not isinstance(status.detail, InsufficientResources):
        return priorities
    missing = {each.resource: each.missing for each in status.detail.shortfalls}
    lowest = _enough(pods, missing)
    return [] if lowest is None else [priority for priority in priorities if priority > lowest]


def _enough(pods: Sequence[Pod], missing: Mapping[str, int]) -> int | None:
    """The lowest priority such that the pods up to it may hold what is missing of every resource."""
    missing_amounts = dict(missing)
    for each in sorted(pods, key=lambda pod: pod.priority):
        for resource in missing_amounts:
            missing_amounts[resource] -= 1 if resource == "pods" else most_requested(each, resource)
        if all(amount <= 0 for amount in missing_amounts.values()):
            return each.priority
    return None


def most_requested(pod: Pod, resource: str) -> int:
    """An upper bound of the pod's requests, in milli-CPU, bytes or units."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    lists = [
        pod.spec.overhead,
        pod.status.allocated_resources,
        *(each.resources.requests for each in (*pod.spec.containers, *pod.spec.init_containers)),
        *(each.requests for each in (pod.spec.resources, pod.status.resources) if each is not None),
        *(status.allocated_resources for status in statuses),
        *(status.resources.requests for status in statuses if status.resources is not None),
    ]
    amounts = [each[resource] for each in lists if resource in each]
    return sum(amount.milli_value if resource == "cpu" else amount.value for amount in amounts)
