"""The scheduling framework of 1.18, as far as a what-if needs it (``framework/v1alpha1``, v1.18.19).

A plugin may compute state for the pod before the nodes are filtered (PreFilter); its extensions update it in a dry run.
Filters run in profile order, and the first rejection ends a node. ``selector_error`` checks for label selectors that
the API server rejects (``k8s.io/apimachinery`` v0.18 ``pkg/labels``): in a manifest that was never applied, they end
the scheduling attempt.
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
    """A plugin's PreFilter rejects the pod, which 1.18 treats as an error of the attempt: no pod is preempted."""


class PodState:
    """State that a plugin computed for the pod at PreFilter."""

    __slots__ = ()

    def clone(self) -> PodState:
        """Return an independent copy, or the state itself if it never changes."""
        return self

    def update(self, moved: PodInfo, node: Node, delta: int) -> None:
        """Handle that ``moved`` was added to the node (1, AddPod) or removed (-1, RemovePod)."""


class CycleState:
    """The pod that is scheduled, the cluster, and the plugins' states for the pod."""

    __slots__ = ("_states", "cluster", "pod")

    def __init__(self, cluster: Cluster, pod: PodInfo, states: Sequence[PodState]) -> None:
        self.cluster = cluster
        self.pod = pod
        self._states: dict[type[PodState], PodState] = {type(state): state for state in states}

    def of(self, kind: type[S]) -> S:
        """Return the state of that type; raise ``KeyError`` if its plugin did not run."""
        state = self._states[kind]
        assert isinstance(state, kind)
        return state

    def clone(self) -> CycleState:
        return CycleState(self.cluster, self.pod, [state.clone() for state in self._states.values()])

    def add_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """Run all extensions for a pod that was added to the node."""
        for state in self._states.values():
            state.update(info, node_info.node, 1)

    def remove_pod(self, info: PodInfo, node_info: NodeInfo) -> None:
        """Run all extensions for a pod that was removed from the node."""
        for state in self._states.values():
            state.update(info, node_info.node, -1)


class FilterPlugin(ABC):
    """A plugin that rejects nodes."""

    name: str

    def pre_filter(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> PodState | None:
        """Return state for the pod, if any; raise ``LegacyError`` or ``PreFilterRejectedError``."""
        return None

    @abstractmethod
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Return success, Unschedulable (evictions may help) or UnschedulableAndUnresolvable; raise ``LegacyError``."""

    def check(self, state: CycleState, node_info: NodeInfo) -> Status:
        """Run ``filter``, adding the framework's prefix to an error."""
        try:
            return self.filter(state, node_info)
        except LegacyError as error:
            name = state.pod.pod.metadata.name
            raise LegacyError(f'running "{self.name}" filter plugin for pod "{name}": {error}') from error


def run_pre_filters(plugins: Sequence[FilterPlugin], pod: PodInfo, cluster: Cluster) -> CycleState:
    """Run all PreFilters and collect their states; raise ``LegacyError`` if one fails."""
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
    """Return why ``LabelSelectorAsSelector`` rejects the selector; empty if it is valid."""
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
