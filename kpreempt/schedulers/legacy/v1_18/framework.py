"""The scheduling framework of 1.18, as far as a what-if runs it (``framework/v1alpha1``, v1.18.19).

A plugin may compute something for the pod before the nodes are looked at (PreFilter); its extensions keep that right in
a dry run. Filters run in the order of the profile, and the first refusal ends a node. ``selector_error`` is about label
selectors that the API server rejects (``k8s.io/apimachinery`` v0.18 ``pkg/labels``): in a manifest that never met one
they end the attempt to schedule.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement, is_label_key, is_label_value
from kpreempt.model.node import Node
from kpreempt.schedulers.legacy.base.node_info import Cluster, NodeInfo, PodInfo
from kpreempt.schedulers.legacy.base.predicates import LegacyError
from kpreempt.verdict import Status

S = TypeVar("S", bound="PodState")


class PreFilterRejectedError(LegacyError):
    """A plugin's PreFilter refuses the pod, which 1.18 takes for an error of the attempt: nobody is preempted."""


class PodState:
    """What a plugin computed for the pod at PreFilter."""

    __slots__ = ()

    def clone(self) -> PodState:
        """A copy that changes independently; the state itself if it never changes."""
        return self

    def update(self, moved: PodInfo, node: Node, delta: int) -> None:
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

    name: str

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


def selector_error(selector: LabelSelector | None) -> str:
    """Why ``LabelSelectorAsSelector`` refuses the selector; empty where it takes it."""
    if selector is None or selector.is_valid():
        return ""
    equalities = (LabelSelectorRequirement(key, "In", [value]) for key, value in selector.match_labels.items())
    problems = map(_problem, (*equalities, *selector.match_expressions))
    return next((problem for problem in problems if problem), "")


def _problem(requirement: LabelSelectorRequirement) -> str:
    if not is_label_key(requirement.key):
        return f'invalid label key "{requirement.key}"'
    if requirement.operator in ("In", "NotIn"):
        if not requirement.values:
            return "for 'in', 'notin' operators, values set can't be empty"
    elif requirement.values:
        return "values set must be empty for exists and does not exist"
    for value in requirement.values:
        if not is_label_value(value):
            return f'invalid label value: "{value}": at key: "{requirement.key}"'
    return ""
