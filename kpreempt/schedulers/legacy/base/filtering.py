"""How the filters of a version are run on one node, with and without the pods that are nominated to it.

``podFitsOnNode`` (``core/generic_scheduler.go``): v1.8.15 runs every predicate on the node alone; v1.13.12 and v1.18.19
stop at the first that fails, and run all twice where pods of equal or higher priority are nominated to the node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, Self

from kpreempt.schedulers.legacy.base.cluster import Cluster, is_same_pod
from kpreempt.schedulers.legacy.base.node_info import NodeInfo, PodInfo
from kpreempt.verdict import Code, Status


class LegacyError(Exception):
    """What upstream returns as an error where it is not a refusal: the attempt ends, and nobody is preempted."""


class State(Protocol):
    """What a version computes once for a pod and keeps right in a dry run: predicate metadata, or the cycle state."""

    def clone(self) -> Self:
        """A copy that can be changed without touching this one."""

    def add_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """A pod was put on the node."""

    def remove_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """A pod was taken off the node."""


class Filter(NamedTuple):
    """A predicate or filter plugin by its name. ``check`` may raise ``LegacyError``.

    It gets the version's state, which knows the pod, and the node. The node passes with a status that has neither a
    code nor reasons; refusals are to have a code where the version has codes.
    """

    name: str
    check: Callable[[Any, NodeInfo], Status]


class FilterRun:
    """Runs the filters for one pod.

    ``stops_at_first`` ends with the first refusal, otherwise the reasons of all are given together. With
    ``counts_nominated`` the pod has to fit beside the pods that are nominated to the node as well as without them.
    """

    def __init__(
        self,
        filters: Sequence[Filter],
        cluster: Cluster,
        pod: PodInfo,
        *,
        stops_at_first: bool,
        counts_nominated: bool,
    ) -> None:
        self.filters = filters
        self.pod = pod
        self._cluster = cluster
        self._stops_at_first = stops_at_first
        self._counts_nominated = counts_nominated

    def __call__(self, state: State, node_info: NodeInfo) -> Status:
        """What the filters say of the node; raises ``LegacyError``."""
        for run_state, run_node in self.situations(state, node_info):
            status = self._run(run_state, run_node)
            if not status.is_success:
                break
        return status

    def situations(self, state: State, node_info: NodeInfo) -> list[tuple[State, NodeInfo]]:
        """The node with nominated pods that count, if there are any, then as it is."""
        nominated = self.nominated_pods(node_info.name)
        if not nominated:
            return [(state, node_info)]
        beside_state, beside_node = state.clone(), node_info.clone()
        for info in nominated:
            beside_node.add_pod(info)
            beside_state.add_pod(info, beside_node)
        return [(beside_state, beside_node), (state, node_info)]

    def nominated_pods(self, node_name: str) -> list[PodInfo]:
        """Other pods of equal or higher priority that are nominated to the node."""
        if not self._counts_nominated:
            return []
        return [
            info
            for info in self._cluster.nominated_pods.get(node_name, ())
            if info.priority >= self.pod.priority and not is_same_pod(info.pod, self.pod.pod)
        ]

    def _run(self, state: State, node_info: NodeInfo) -> Status:
        refusals = []
        for each in self.filters:
            status = each.check(state, node_info)
            if not status.is_success:
                refusals.append(status.of_plugin(each.name))
                if self._stops_at_first:
                    break
        if len(refusals) == 1:
            return refusals[0]
        if not refusals:
            return Status(Code.NONE)
        is_final = any(status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE for status in refusals)
        return Status(
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE if is_final else refusals[0].code,
            [reason for status in refusals for reason in status.reasons],
            refusals[0].plugin,
            refusals[0].detail,
        )
