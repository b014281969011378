"""In-place resizes that a kubelet has not granted: what they need, and whether preemption would help.

The kubelet writes condition ``PodResizePending`` since 1.33, and ``status.resize`` before (``pkg/kubelet/allocation``
of v1.36.3, ``pkg/kubelet/kubelet.go`` of v1.32.13). It compares what the pod wants with the node's allocatable minus
what it has allocated to the other pods. The scheduler ignores pods that have a node, except 1.37 with the alpha gate
``InPlacePodVerticalScalingSchedulerPreemption``: then deferred ones are tried on their own node, and may preempt there
(``pkg/scheduler/eventhandlers.go``, ``plugins/deferredpodscheduling`` of v1.37.1). Infeasible ones are never tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from kpreempt.analysis.algorithms import Scheduler, pods_by_node
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import RESIZE_PENDING, Container, ContainerStatus, Pod, ResourceList
from kpreempt.schedulers.kube.framework.resources import CPU, pod_requests, requests_in_units
from kpreempt.schedulers.kube.versions import known_gates
from kpreempt.verdict.waiting import RESIZE_GATE, PendingResize, ResizeNeed, ResizePreemption, ResizeState

_STATES = {each.value: each for each in ResizeState}


class _Answer(NamedTuple):
    """What the kubelet said about a resize."""

    state: ResizeState
    message: str = ""
    since: datetime | None = None


def pending_resizes(
    pods: Iterable[Pod], cluster: ClusterSnapshot, scheduler: Scheduler, at: datetime
) -> list[PendingResize]:
    """Return those of the ``pods`` whose resize is pending, by priority, the highest first, then by name.

    ``cluster`` may lack them.
    """
    found = [
        (pod, answer)
        for pod in pods
        if pod.spec.node_name and not pod.is_terminal and (answer := _answer(pod)) is not None
    ]
    if not found:
        return []
    nodes = {node.name: node for node in cluster.nodes}
    pods_on = pods_by_node(cluster.pods, {pod.spec.node_name for pod, _ in found})
    preemption = _preemption(scheduler)
    resizes = [
        _resize(pod, answer, nodes.get(pod.spec.node_name), pods_on.get(pod.spec.node_name, ()), preemption, at)
        for pod, answer in found
    ]
    return sorted(resizes, key=lambda each: (-each.priority, each.pod))


def _answer(pod: Pod) -> _Answer | None:
    """What the kubelet said; ``None`` if no resize is pending."""
    for each in pod.status.conditions:
        if each.type == RESIZE_PENDING and each.status == "True" and each.reason in _STATES:
            return _Answer(_STATES[each.reason], each.message, each.last_transition_time)
    return _Answer(_STATES[pod.status.resize]) if pod.status.resize in _STATES else None


def _resize(
    pod: Pod,
    answer: _Answer,
    node: Node | None,
    pods: Sequence[Pod],
    preemption: ResizePreemption,
    at: datetime,
) -> PendingResize:
    needs = [] if node is None else list(_needs(pod, node, [each for each in pods if each.key != pod.key]))
    may_preempt = answer.state is ResizeState.DEFERRED and pod.spec.preemption_policy != "Never"
    missing = [each for each in needs if each.missing]
    return PendingResize(
        pod=pod.key,
        node=pod.spec.node_name,
        state=answer.state,
        priority=pod.priority,
        at=at,
        since=answer.since,
        message=answer.message,
        needs=needs,
        preemption=preemption,
        fits_without_lower=may_preempt
        and bool(missing)
        and all(each.missing <= each.used_by_lower for each in missing),
    )


def _needs(pod: Pod, node: Node, others: list[Pod]) -> Iterator[ResizeNeed]:
    """The resources of which the pod wants more than it has."""
    wanted = requests_in_units(pod_requests(pod))
    has = requests_in_units(pod_requests(_as_allocated(pod))) if _has_allocation(pod) else None
    used = [
        (each.priority, requests_in_units(pod_requests(_as_allocated(each)))) for each in others if not each.is_terminal
    ]
    allocatable = {
        name: each.milli_value if name == CPU else each.value for name, each in node.status.allocatable.items()
    }
    for name, amount in wanted.items():
        allocated = None if has is None else has.get(name, 0)
        if allocated is not None and amount <= allocated:
            continue
        total = sum(each.get(name, 0) for _, each in used)
        yield ResizeNeed(
            resource=name,
            requested=amount,
            allocated=allocated,
            allocatable=allocatable.get(name, 0),
            used=total,
            used_by_lower=sum(each.get(name, 0) for priority, each in used if priority < pod.priority),
            missing=max(0, amount + total - allocatable.get(name, 0)),
        )


def _has_allocation(pod: Pod) -> bool:
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return bool(pod.status.allocated_resources) or any(_allocation(each) for each in statuses)


def _allocation(status: ContainerStatus) -> ResourceList:
    """What the kubelet has allocated to a container, or else what its cgroups have."""
    return status.allocated_resources or (status.resources.requests if status.resources is not None else {})


def _as_allocated(pod: Pod) -> Pod:
    """The pod with the requests that its kubelet has granted, as far as its status shows them."""
    if not _has_allocation(pod):
        return pod
    replace = msgspec.structs.replace
    statuses = {each.name: each for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)}

    def granted(container: Container) -> Container:
        allocation = _allocation(statuses[container.name]) if container.name in statuses else {}
        requests = {**container.resources.requests, **allocation}
        return (
            replace(container, resources=replace(container.resources, requests=requests)) if allocation else container
        )

    resources = pod.spec.resources
    if resources is not None and pod.status.allocated_resources:
        resources = replace(resources, requests={**resources.requests, **pod.status.allocated_resources})
    spec = replace(
        pod.spec,
        containers=[granted(each) for each in pod.spec.containers],
        init_containers=[granted(each) for each in pod.spec.init_containers],
        resources=resources,
    )
    return replace(pod, spec=spec)


def _preemption(scheduler: Scheduler) -> ResizePreemption:
    version = scheduler.settings.facts.get("version")
    if not isinstance(version, str) or RESIZE_GATE not in known_gates(version):
        return ResizePreemption.NOT_IN_VERSION
    # A gate that is set to a value that is not modeled is an assumption.
    is_on = any(each.subject == "scheduler" and each.field.endswith(RESIZE_GATE) for each in scheduler.assumptions)
    return ResizePreemption.GATE_ON if is_on else ResizePreemption.GATE_OFF
