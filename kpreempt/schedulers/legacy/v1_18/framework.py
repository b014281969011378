"""The scheduling framework of 1.18, as far as a what-if runs it (``framework/v1alpha1``, v1.18.19).

A plugin may compute something for the pod before the nodes are looked at (PreFilter); its extensions keep that right in
a dry run. Filters run in the order of the profile, and the first refusal ends a node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, TypeVar

from kpreempt.model.node import Node
from kpreempt.schedulers.legacy.base.cluster import Cluster
from kpreempt.schedulers.legacy.base.filtering import Filter, LegacyError
from kpreempt.schedulers.legacy.base.node_info import NodeInfo, PodInfo
from kpreempt.verdict import Code, Detail, Status

S = TypeVar("S", bound="PodState")


class PreFilterRejectedError(LegacyError):
    """A plugin's PreFilter refuses the pod, which 1.18 takes for an error of the attempt: nobody is preempted."""


class PodState(ABC):
    """What a plugin computed for the pod at PreFilter."""

    __slots__ = ()

    @abstractmethod
    def clone(self) -> PodState:
        """A copy that changes independently."""

    def update(self, moved: PodInfo, node: Node, delta: int) -> None:  # noqa: B027 (most states know only the pod)
        """``moved`` came to the node (1, AddPod) or left it (-1, RemovePod)."""


class CycleState:
    """The pod that is scheduled, the cluster, and what the plugins keep for the pod."""

    __slots__ = ("_states", "cluster", "pod")

    def __init__(self, cluster: Cluster, pod: PodInfo, states: Sequence[PodState]) -> None:
        self.cluster = cluster
        self.pod = pod
        self._states: dict[type[PodState], PodState] = {type(state): state for state in states}

    def of(self, kind: type[S]) -> S:
        """The state of that type; ``KeyError`` where its plugin did not run."""
        state = self._states[kind]
        assert isinstance(state, kind)
        return state

    def clone(self) -> CycleState:
        return CycleState(self.cluster, self.pod, [state.clone() for state in self._states.values()])

    def add_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """Run all extensions for a pod that was put on the node."""
        for state in self._states.values():
            state.update(info, node_info.node, 1)

    def remove_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """Run all extensions for a pod that was taken off the node."""
        for state in self._states.values():
            state.update(info, node_info.node, -1)


class FilterPlugin(ABC):
    """A plugin that refuses nodes."""

    name: ClassVar[str]

    def pre_filter(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> PodState | None:
        """What to keep for the pod, if anything; raises ``LegacyError`` or ``PreFilterRejectedError``."""
        return None

    @abstractmethod
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Success, Unschedulable (evictions may help) or UnschedulableAndUnresolvable; raises ``LegacyError``."""

    def check(self, state: CycleState, node_info: NodeInfo) -> Status:
        """What ``filter`` says, with the words that the framework puts before an error."""
        try:
            return self.filter(state, node_info)
        except LegacyError as error:
            name = state.pod.pod.metadata.name
            raise LegacyError(f'running "{self.name}" filter plugin for pod "{name}": {error}') from error


def run_pre_filters(plugins: Sequence[FilterPlugin], pod: PodInfo, cluster: Cluster) -> CycleState:
    """All PreFilters' states; raises ``LegacyError`` where one does not succeed."""
    states = []
    for plugin in plugins:
        try:
            state = plugin.pre_filter(pod, cluster.node_infos)
        except PreFilterRejectedError as error:
            raise LegacyError(f'rejected by "{plugin.name}" at prefilter: {error}') from error
        except LegacyError as error:
            what = f'"{plugin.name}" prefilter plugin for pod "{pod.pod.metadata.name}"'
            raise LegacyError(f"error while running {what}: {error}") from error
        if state is not None:
            states.append(state)
    return CycleState(cluster, pod, states)


def filters_of(plugins: Sequence[FilterPlugin]) -> list[Filter]:
    """The plugins as the filters that a run takes."""
    return [Filter(plugin.name, plugin.check) for plugin in plugins]


def refused(code: Code, *reasons: str, detail: Detail | None = None) -> Status:
    """A refusal with its reasons and what the plugin saw."""
    return Status(code, list(reasons), detail=detail)
