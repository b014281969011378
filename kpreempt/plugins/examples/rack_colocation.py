"""RackColocation: keep all pods of a group in one rack. This example has no upstream.

Pods of a namespace with the same value of the label ``example.com/group`` form a group; the label ``example.com/rack``
of a node names its rack. Both labels are configurable, as is the maximum number of pods of a group per rack::

    pluginConfig:
    - name: RackColocation
      args: {groupLabel: example.com/team, topologyKey: topology.kubernetes.io/zone, maxPods: 8}

PreFilter counts the group's pods in each rack, add-pod and remove-pod keep the counts exact in a dry run, Filter
rejects nodes, and Score prefers nodes that already have pods of the group.

The status code of a rejection decides whether the scheduler tries evictions on the node. Evictions happen on one node,
in one rack. So if pods of the group are in another rack, no eviction on this node can help: it is unresolvable. If the
rack has its maximum number of the group's pods, evictions help only if enough of these pods are on this node.

As with Kubernetes' own pod affinity, a nominated pod counts only on the node that it is nominated to. Pods of the group
on nodes without a rack are not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import msgspec

from kpreempt.plugins import (
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Pod,
    PodInfo,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Status,
    normalize_to_max,
    unresolvable,
    unschedulable,
)

REASON_NO_RACK = "node(s) were not in a rack"
REASON_OTHER_RACK = "node(s) were outside the rack of the pod's group"
REASON_FULL_RACK = "node(s) were in a rack with the maximum number of pods of the group"

_MEMBERS = "RackColocation/members"


class RackColocationArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The label of a pod's group, the label of a node's rack, and the maximum pods of a group per rack.

    ``max_pods`` 0 means no limit. Raises ``ValueError`` for an empty label or a negative number.
    """

    group_label: str = "example.com/group"
    topology_key: str = "example.com/rack"
    max_pods: int = 0

    def __post_init__(self) -> None:
        if not self.group_label or not self.topology_key:
            raise ValueError("groupLabel and topologyKey: Required value")
        if self.max_pods < 0:
            raise ValueError(f"maxPods: Invalid value: {self.max_pods}: must not be negative")


class Members:
    """The number of pods of the group per rack; cycle state that changes must be cloneable."""

    __slots__ = ("in_rack",)

    def __init__(self, in_rack: Counter[str]) -> None:
        self.in_rack = in_rack

    def clone(self) -> Members:
        """Return an independent copy: the framework clones the state for each node it tries evictions on."""
        return Members(Counter(self.in_rack))

    def change(self, rack: str, number: int) -> None:
        """Add pods or, with a negative number, remove them; racks without pods are dropped."""
        self.in_rack[rack] += number
        if not self.in_rack[rack]:
            del self.in_rack[rack]


class RackColocation(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Keeps the pods of a group in one rack."""

    args_type = RackColocationArgs

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Count the pod's group; skip a pod without a group, which also skips Filter, add-pod and remove-pod."""
        if not self._group(pod):
            return None, SKIP
        in_rack = self._in_racks.get((pod.metadata.namespace, self._group(pod)), Counter())
        state.write(_MEMBERS, Members(Counter(in_rack)))
        return None, SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        """Count a pod that is added to the node."""
        self._change(state, pod, added, node_info, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node_info: NodeInfo) -> None:
        """Uncount a pod that is removed from the node."""
        self._change(state, pod, removed, node_info, -1)

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Reject nodes outside the group's rack, and in a rack that has the maximum number of pods."""
        rack = self._rack(node_info)
        if not rack:
            return unresolvable(REASON_NO_RACK, label=self.args.topology_key)
        in_rack = self._members(state).in_rack
        elsewhere = {name: number for name, number in in_rack.items() if name != rack}
        if elsewhere:
            racks = ", ".join(sorted(elsewhere))
            return unresolvable(REASON_OTHER_RACK, group=self._group(pod), rack=rack, others=racks)
        too_many = in_rack[rack] + 1 - self.args.max_pods
        if self.args.max_pods and too_many > 0:
            on_node = self._members_on(node_info, pod)
            reject = unschedulable if on_node >= too_many else unresolvable
            return reject(REASON_FULL_RACK, group=self._group(pod), rack=rack, pods=in_rack[rack], here=on_node)
        return SUCCESS

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Skip if the pod has no group, or no pod of the group is in a rack."""
        return SUCCESS if self._group(pod) and self._members(state).in_rack else SKIP

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return the number of the group's pods on the node."""
        return self._members_on(node_info, pod)

    def normalize_scores(self, state: CycleState, pod: Pod, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """Scale the scores so that the highest is 100."""
        return normalize_to_max(scores)

    @cached_property
    def _in_racks(self) -> dict[tuple[str, str], Counter[str]]:
        """Pods per rack, by namespace and group, counted once; the plugin is created once per cluster."""
        counts: dict[tuple[str, str], Counter[str]] = {}
        for node_info in self.handle.snapshot.nodes:
            if rack := self._rack(node_info):
                for info in node_info.pods:
                    if group := self._group(info.pod):
                        counts.setdefault((info.pod.metadata.namespace, group), Counter())[rack] += 1
        return counts

    def _members(self, state: CycleState) -> Members:
        members = state.read(_MEMBERS)
        # Missing if this plugin is enabled at filter but not at preFilter: then no pod counts.
        return members if isinstance(members, Members) else Members(Counter())

    def _change(self, state: CycleState, pod: Pod, changed: PodInfo, node_info: NodeInfo, number: int) -> None:
        if (rack := self._rack(node_info)) and self._is_member(changed, pod):
            self._members(state).change(rack, number)

    def _group(self, pod: Pod) -> str:
        return pod.metadata.labels.get(self.args.group_label, "")

    def _rack(self, node_info: NodeInfo) -> str:
        return node_info.node.metadata.labels.get(self.args.topology_key, "")

    def _is_member(self, info: PodInfo, pod: Pod) -> bool:
        """Return whether a pod is in the same group as ``pod``."""
        return info.pod.metadata.namespace == pod.metadata.namespace and self._group(info.pod) == self._group(pod)

    def _members_on(self, node_info: NodeInfo, pod: Pod) -> int:
        return sum(self._is_member(info, pod) for info in node_info.pods)
