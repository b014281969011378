"""Changes to a question as data, and the single ones to a pod or its cluster, as alternatives with the least first.

A change says what is different, how to apply it, and which options have the same effect; a pod's fields are changed by
their paths, as ``--set`` does, so that what is proved is what a reader can repeat.

What a pod asks for is the larger of what runs together and of what its init containers need on their way, and its
overhead (``k8s.io/component-helpers`` v0.36.3 ``resource/helpers.go``); so one amount can take several settings.

The least priority with which a pod lands that no node takes, over all nodes of the cluster.

What the scheduler decides changes with a pod's priority only where that passes the priority of another pod. So the
priorities just above those are enough. Of these a bound for each node leaves out the ones at which too little would go
from it, and whole verdicts find the least of the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kpreempt.analysis.nodes.changes import changed
from kpreempt.analysis.what_if import Assignment, Overrides, Step, format_path, override_pod, pod_document
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Container, Pod, annotations_of, with_annotations
from kpreempt.model.quantity import NANO_PER_MILLI, NANO_PER_UNIT, Quantity, quantity
from kpreempt.verdict import Change, ChangeKind, Code, Status, Verdict
from kpreempt.verdict.details import InsufficientResources

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
    uncordons: Sequence[str] = ()
    cordons: Sequence[str] = ()
    budgets: Sequence[str] = ()
    removed_pods: Sequence[str] = ()
    share_affected: float = 0.0
    is_about_system: bool = False

    @property
    def is_of_cluster(self) -> bool:
        """Whether the cluster is another one afterwards."""
        return bool(self.uncordons or self.cordons or self.budgets or self.removed_pods)

    @property
    def weight(self) -> tuple[int, float]:
        """How far the edit reaches: by its worst change, and among those by the share that is cut or affected."""
        rank, share = max(map(_weight, self.changes))
        return (rank + _OF_SYSTEM if self.is_about_system else rank), max(share, self.share_affected)

    def options(self, num_tolerations: int) -> list[str]:
        """The arguments that make ``kpreempt explain`` apply the edit to the pod as its user states it.

        ``num_tolerations`` is how many it states itself, to which admission adds.
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
        arguments += [f"--uncordon={name}" for name in self.uncordons]
        arguments += [f"--cordon={name}" for name in self.cordons]
        arguments += [f"--budget={budget}" for budget in self.budgets]
        arguments += [f"--without=pod/{key}" for key in self.removed_pods]
        return arguments


# A toleration to be appended, by its number among those that an edit appends.
_TOLERATION = re.compile(r"spec\.tolerations\[\+([0-9]+)\]")


def appended_toleration(number: int) -> str:
    """The path of the ``number``-th toleration that an edit appends."""
    return f"spec.tolerations[+{number}]"


def _appended(path: str, num_tolerations: int) -> str:
    """The path, with the place of a toleration that is appended to so many."""
    match = _TOLERATION.fullmatch(path)
    return path if match is None else f"spec.tolerations[{num_tolerations + int(match[1])}]"


def edit_pod(pod: Pod, edit: Edit) -> Pod:
    """The pod as the edit makes it. Raises ``UsageError`` where a path of the edit is not there."""
    if not edit.overrides:
        return pod
    # With plain data, and with the places of tolerations that are appended.
    assignments = [
        Assignment(
            _appended(each.path, len(pod.spec.tolerations)),
            str(each.value) if isinstance(each.value, Quantity) else each.value,
        )
        for each in edit.overrides.assignments
    ]
    document = override_pod(pod_document(pod), msgspec.structs.replace(edit.overrides, assignments=assignments))
    edited = msgspec.convert(document, Pod, dec_hook=_quantity)
    # An edit changes no annotation; where all were read they stay.
    told = annotations_of(pod)
    return with_annotations(edited, told) if told else edited


def edit_cluster(cluster: ClusterSnapshot, edit: Edit) -> ClusterSnapshot:
    """The cluster as the edit makes it. Raises ``NotFoundError`` for an object that is not there."""
    return changed(
        cluster,
        removed=[f"pod/{key}" for key in edit.removed_pods],
        cordons=edit.cordons,
        uncordons=edit.uncordons,
        budgets=edit.budgets,
    )


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
    rounds_up = resource in ("cpu", "memory") or resource.startswith(_POD_LEVEL_PREFIX)
    if spec.resources is not None and resource in spec.resources.requests and rounds_up:
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
            place: Place = ["spec", "initContainers", index, "resources"]
            assignments += _settings(place, container.resources.limits, resource, (room - sidecars) // unit)
    needs_of = [_nano(container, resource) for container in spec.containers]
    if sidecars > room:
        return None
    lowered = _share(needs_of, room - sidecars, unit)
    for index, (container, before, after) in enumerate(zip(spec.containers, needs_of, lowered, strict=True)):
        if after != before:
            place = ["spec", "containers", index, "resources"]
            assignments += _settings(place, container.resources.limits, resource, after // unit)
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


# The highest priority that users may give.
HIGHEST_USER_PRIORITY = 10**9

Reached = tuple[int, Verdict]
# The verdict at a priority, where that brings what is wanted.
Ask = Callable[[int], Verdict | None]


def just_above(pods: Iterable[Pod], pod: Pod) -> list[int]:
    """The priorities above that of ``pod`` that users may give and that outrank one more of ``pods``, ascending."""
    own = pod.priority
    return sorted({each.priority + 1 for each in pods if own <= each.priority < HIGHEST_USER_PRIORITY})


def worth_trying(cluster: ClusterSnapshot, pod: Pod, verdict: Verdict) -> list[int]:
    """The priorities, ascending, below the first of which no node can take the pod.

    ``verdict`` is that on the pod as it is, which lands nowhere, of a scheduler that evicts by priority.
    """
    may_evict = pod.spec.preemption_policy != "Never"
    going: dict[str, list[Pod]] = {}
    for each in cluster.pods:
        node = each.spec.node_name if may_evict else ""
        node = node or ("" if each.spec.node_name else each.status.nominated_node_name)
        if node and not each.is_terminal and each.key != pod.key:
            going.setdefault(node, []).append(each)
    return sorted(
        {priority for name, pods in going.items() for priority in _of_node(pods, pod, verdict.filter.get(name))}
    )


def least(priorities: Sequence[int], ask: Ask, *, only_grows: bool) -> Reached | None:
    """The first of ``priorities`` at which ``ask`` finds what is wanted, with its verdict.

    ``only_grows`` says that what is reached at one priority is reached at every higher one. Where that is not sure they
    are tried one by one.
    """
    if not only_grows:
        answers = ((priority, ask(priority)) for priority in priorities)
        return next(((priority, verdict) for priority, verdict in answers if verdict is not None), None)
    best: Reached | None = None
    failed, reached = -1, len(priorities)
    # The bound is mostly what it takes; and where the highest does not help none does.
    for probe in (0, len(priorities) - 1):
        if failed < probe < reached:
            verdict = ask(priorities[probe])
            if verdict is None:
                failed = probe
            else:
                best, reached = (priorities[probe], verdict), probe
    while best is not None and reached - failed > 1:
        middle = (failed + reached) // 2
        verdict = ask(priorities[middle])
        if verdict is None:
            failed = middle
        else:
            best, reached = (priorities[middle], verdict), middle
    return best


def _of_node(pods: Sequence[Pod], pod: Pod, status: Status | None) -> list[int]:
    """The priorities at which the pods below may be enough for the node; ``pods`` are those that can give way there."""
    wanted = just_above(pods, pod)
    if status is None or not wanted:
        return wanted
    if status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        # But for pods that are nominated there, nothing that has a priority matters.
        return just_above((each for each in pods if not each.spec.node_name), pod)
    if not isinstance(status.detail, InsufficientResources):
        return wanted
    missing = {each.resource: each.missing for each in status.detail.shortfalls}
    lowest = _enough(pods, missing)
    return [] if lowest is None else [priority for priority in wanted if priority > lowest]


def _enough(pods: Sequence[Pod], missing: Mapping[str, int]) -> int | None:
    """The least priority such that the pods up to it may hold as much as is missing of everything."""
    left = dict(missing)
    for each in sorted(pods, key=lambda pod: pod.priority):
        for resource in left:
            left[resource] -= 1 if resource == "pods" else most_requested(each, resource)
        if all(amount <= 0 for amount in left.values()):
            return each.priority
    return None


def most_requested(pod: Pod, resource: str) -> int:
    """An amount that the pod's requests do not exceed, in milli-CPU, bytes or units."""
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
