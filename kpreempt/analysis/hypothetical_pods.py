"""Pods that do not exist, of a size and a priority, for the question what happens if one of these comes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median_low
from typing import Literal

import msgspec

from kpreempt.admission import admit
from kpreempt.analysis.edits import Edit, Stated, appended_toleration, edit_pod
from kpreempt.analysis.field_paths import Assignment
from kpreempt.analysis.what_if import Overrides
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.model.node import Node
from kpreempt.model.pod import Container, Pod, PodMeta, PodSpec, ResourceRequirements
from kpreempt.model.quantity import quantity
from kpreempt.schedulers.kube.framework.resources import pod_requests, requests_in_units
from kpreempt.verdict import Change, ChangeKind

Requests = Mapping[str, int]
NAMESPACE = DEFAULT_NAMESPACE
_NAME = "pod"
_CPU = "cpu"
_SIZES = (_CPU, "memory")
_POLICY: Literal["PreemptLowerPriority"] = "PreemptLowerPriority"


def requests_of(pod: Pod) -> dict[str, int]:
    """What a pod asks for, in milli-CPU, bytes and units."""
    return requests_in_units(pod_requests(pod))


def allocatable_of(node: Node) -> dict[str, int]:
    """What a node has for pods, in milli-CPU, bytes and units."""
    return requests_in_units({name: amount.nano for name, amount in node.status.allocatable.items()})


def typical_requests(pods: Iterable[Pod]) -> dict[str, int]:
    """The median of the CPU and of the memory that pods ask for, among those that ask for any."""
    amounts: dict[str, list[int]] = {name: [] for name in _SIZES}
    for pod in pods:
        requests = requests_of(pod)
        for name, values in amounts.items():
            if requests.get(name):
                values.append(requests[name])
    return {name: median_low(values) for name, values in amounts.items() if values}


def room_of(pod: Pod, node: Node, pods_on_node: Iterable[Pod]) -> dict[str, int]:
    """The CPU and memory that are free on the pod's node, and what the pod itself asks for, together."""
    room = requests_in_units({name: amount.nano for name, amount in node.status.allocatable.items() if name in _SIZES})
    for other in pods_on_node:
        if other is not pod:
            for name, amount in requests_of(other).items():
                if name in room:
                    room[name] -= amount
    return {name: amount for name, amount in room.items() if amount > 0}


def hypothetical_pod(cluster: ClusterSnapshot, requests: Requests, priority: int) -> Pod:
    """A new pod in the namespace ``default`` that asks for these amounts, as the scheduler would see it.

    It has no labels, no selectors, and may preempt. LimitRanges do not apply to it.
    """
    amounts = {name: quantity(_amount(name, amount)) for name, amount in requests.items()}
    resources = ResourceRequirements(requests=amounts)
    pod = Pod(
        metadata=PodMeta(name=_NAME, namespace=NAMESPACE),
        spec=PodSpec(
            containers=[Container(name="main", resources=resources)], priority=priority, preemption_policy=_POLICY
        ),
    )
    return admit(pod, msgspec.structs.replace(cluster, limit_ranges=[])).pod


def tied_to(pod: Pod, node_name: str) -> Pod:
    """The pod as one that has to go to the node, and tolerates its taints."""
    return edit_pod(pod, _tie(node_name))


def options_for(requests: Requests, priority: int, node_name: str = "") -> list[str]:
    """The options with which ``kpreempt explain`` asks about the hypothetical pod, tied to a node if one is given."""
    options = []
    for name, amount in requests.items():
        text = _amount(name, amount)
        options.append(f"--{name}={text}" if name in _SIZES else f"--resource={name}={text}")
    options += [f"--priority={priority}", f"--preemption-policy={_POLICY}"]
    return [*options, *_tie(node_name).options(Stated(0))] if node_name else options


def _tie(node_name: str) -> Edit:
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return Edit(
        changes=[Change(ChangeKind.PIN, subject=node_name)],
        overrides=Overrides(
            assignments=[
                Assignment("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", required),
                Assignment(appended_toleration(0), {"operator": "Exists"}),
            ]
        ),
    )


def _amount(name: str, amount: int) -> str:
    return f"{amount}m" if name == _CPU else str(amount)
