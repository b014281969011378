"""The predicates that 1.8 and 1.13 have in common, each for the words of a version.

``algorithm/predicates/predicates.go`` of v1.8.15 and v1.13.12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, Self

from kpreempt.schedulers.legacy.base.checks import PASSES, insufficient_resources, refusal, untolerated_taint
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.conditions import MEMORY_PRESSURE, bad_conditions, is_best_effort, is_true
from kpreempt.schedulers.legacy.base.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.legacy.base.resources import Amounts
from kpreempt.schedulers.legacy.base.volumes import disk_conflict
from kpreempt.verdict import Status
from kpreempt.verdict.details import NodeNameMismatch


class Affinity(Protocol):
    """What a version knows beforehand of the pods that want each other near or far."""

    def clone(self) -> Self:
        """A copy that can be changed without touching this one."""

    def add_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """A pod was put on the node."""

    def remove_pod(self, info: PodInfo) -> None:
        """A pod was taken off its node."""

    def check(self, node_info: NodeInfo) -> Status:
        """The pod's terms hold, and those of the pods that are there."""


class Metadata:
    """The pod, what it requests, and what the predicates know of it beforehand (``predicateMetadata``).

    ``ignored`` are resources that are left to extenders (1.13).
    """

    def __init__(
        self,
        cluster: Cluster,
        pod: PodInfo,
        request: Amounts,
        affinity: Affinity,
        ignored: frozenset[str] = frozenset(),
    ) -> None:
        self.cluster = cluster
        self.pod = pod
        self.request = request
        self.affinity = affinity
        self.ignored = ignored

    def clone(self) -> Metadata:
        """A copy that can be changed without touching this one."""
        return Metadata(self.cluster, self.pod, self.request, self.affinity.clone(), self.ignored)

    def add_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """A pod was put on the node."""
        self.affinity.add_pod(info, node_info)

    def remove_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """A pod was taken off the node."""
        self.affinity.remove_pod(info)


Check = Callable[[Metadata, NodeInfo], Status]


def node_condition(reasons: Mapping[str, str], unschedulable: str) -> Check:
    """The node is ready, has disk and network, and is not cordoned; ``reasons`` are by the type of the condition."""

    def check(_: Metadata, node_info: NodeInfo) -> Status:
        failed = [reasons[condition] for condition in bad_conditions(node_info.node)]
        if node_info.node.spec.unschedulable:
            failed.append(unschedulable)
        return refusal(*failed) if failed else PASSES

    return check


def memory_pressure(reason: str) -> Check:
    """The node has memory to spare, or the pod is not best-effort."""

    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        is_refused = is_true(node_info.node, MEMORY_PRESSURE) and is_best_effort(meta.pod.pod)
        return refusal(reason) if is_refused else PASSES

    return check


def no_pressure(condition: str, reason: str) -> Check:
    """The node does not say that it is under a pressure."""
    return lambda _, node_info: refusal(reason) if is_true(node_info.node, condition) else PASSES


def pod_fits_resources(always: Iterable[str] = ()) -> Check:
    """There is room for one more pod, and enough of everything; see ``insufficient_resources``."""
    compared = tuple(always)

    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        short = insufficient_resources(meta.request, node_info, compared, meta.ignored)
        if short is None:
            return PASSES
        return refusal(*(f"Insufficient {each.resource}" for each in short.shortfalls), detail=short)

    return check


def host_name(reason: str) -> Check:
    """The node is the one that the pod names, if it names one."""

    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        wanted = meta.pod.pod.spec.node_name
        return refusal(reason, detail=NodeNameMismatch(wanted)) if wanted not in ("", node_info.name) else PASSES

    return check


def general_predicates(*checks: Check) -> Check:
    """Several predicates as one: the reasons of all that fail."""

    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        failed = [status for each in checks if not (status := each(meta, node_info)).is_success]
        if not failed:
            return PASSES
        return refusal(*(reason for status in failed for reason in status.reasons), detail=failed[0].detail)

    return check


def no_disk_conflict(reason: str) -> Check:
    """No other pod uses a disk in a way that excludes this one."""

    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        conflict = disk_conflict(meta.pod.pod, node_info)
        return refusal(reason, detail=conflict) if conflict else PASSES

    return check


def tolerates_taints(reason: str) -> Check:
    """All taints that keep pods off are tolerated."""

    def check(meta: Metadata, node_info: NodeInfo) -> Status:
        taint = untolerated_taint(meta.pod.pod, node_info)
        return refusal(reason, detail=taint) if taint else PASSES

    return check


def match_inter_pod_affinity(meta: Metadata, node_info: NodeInfo) -> Status:
    """The pod's terms hold, and those of the pods that are there."""
    return meta.affinity.check(node_info)
