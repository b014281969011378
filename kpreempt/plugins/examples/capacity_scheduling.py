"""CapacityScheduling: namespaces with a guaranteed share each, that lend to others what they do not use.

Follows ``pkg/capacityscheduling`` of ``kubernetes-sigs/scheduler-plugins`` v0.34.7, with the preemption of
kube-scheduler 1.36 around it. An ElasticQuota gives its namespace ``min``, which is guaranteed, and ``max``, above
which it never gets. A pod in such a namespace is refused before any node is looked at where the namespace would use
more than its ``max``, or all of them together more than all their ``min``. Then it may preempt: in its own namespace
pods of lower priority, or, while its namespace is within its ``min``, pods of namespaces that use more than theirs,
whatever their priority. Pods in namespaces without a quota preempt each other by priority.

Upstream's oddities are kept. ``max`` of a quota that names some resources allows nothing of CPU, memory and ephemeral
storage where it does not name these. Sidecars count as other init containers do, and requests of a whole pod not at
all. Of several quotas in a namespace the first counts.

Departures:

- A victim that has to go only because of a quota, and whose budget allows it not, counts as a violated budget here.
- Where a pod neither fits beside the incoming one nor would be within the quotas beside nominated pods, upstream takes
  it off the node twice, and the node's dry run ends in an error. Here it is a victim.
- Pods on nodes are counted as a scheduler counts them that has just started; pods in phase Unknown are counted.
- Amounts do not overflow, and Reserve does not run in a what-if.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from kpreempt.plugins import (
    SUCCESS,
    Code,
    CycleState,
    Eligibility,
    NodeInfo,
    NodeToStatus,
    PluginError,
    Pod,
    PodInfo,
    PreemptionPlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    Resource,
    Status,
    Wanted,
)
from kpreempt.plugins.examples.elastic_quota import ELASTIC_QUOTA, Usage, plus, request_of, usage_of

REASON_NEVER = "not eligible due to preemptionPolicy=Never."
REASON_TERMINATING = "not eligible due to a terminating pod on the nominated node."
REASON_NO_STATE = "not eligible due to failed to read from cycleState"
REASON_QUOTA = "global quota max exceeded"

_ASKED = "CapacityScheduling/asked"
_USAGE = "CapacityScheduling/usage"


class Asked(NamedTuple):
    """What a pod asks for: alone, and with nominated pods that come before it in its namespace, and in all.

    ``is_over_min`` says that its namespace would not be within ``min`` with it.
    """

    alone: Resource
    in_namespace: Resource
    in_all: Resource
    is_over_min: bool = False


class CapacityScheduling(PreFilterPlugin, PreemptionPlugin, ReservePlugin):
    """Admits by elastic quotas, and preempts to give namespaces back what they are guaranteed."""

    wants = Wanted(kinds=(ELASTIC_QUOTA,))
    message_prefix = ""

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Refuse a pod with which its quota, or all quotas together, would be exceeded."""
        usage = self._usage.clone()
        state.write(_USAGE, usage)
        request = request_of(pod)
        namespace = pod.metadata.namespace
        if namespace not in usage.quotas:
            state.write(_ASKED, Asked(request, request, request))
            return None, SUCCESS
        asked = self._with_nominated(pod, request, usage)
        state.write(_ASKED, asked)
        rejected = f"Pod {pod.key} is rejected in PreFilter because"
        reasons = (
            f"{rejected} ElasticQuota {namespace} is more than Max",
            f"{rejected} total ElasticQuota used is more than min",
        )
        return None, usage.refusal(namespace, asked.in_namespace, asked.in_all, reasons)

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        """Count a pod in its quota."""
        _read(state)[1].count(added.pod, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node_info: NodeInfo) -> None:
        """Take a pod out of its quota."""
        _read(state)[1].count(removed.pod, -1)

    def eligibility(self, state: CycleState, pod: Pod, filtered: NodeToStatus) -> Eligibility:
        """Not with ``preemptionPolicy: Never``, nor while pods that make room for it are on their way out."""
        if pod.spec.preemption_policy == "Never":
            return Eligibility(False, REASON_NEVER)
        if state.read(_ASKED) is None:
            # An earlier plugin has refused the pod for good, or this one runs at postFilter only.
            return Eligibility(False, REASON_NO_STATE)
        nominated = pod.status.nominated_node_name
        if not nominated or filtered.get(nominated).code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return Eligibility(True)
        node_info = self.handle.snapshot.node(nominated)
        if node_info is not None:
            asked, usage = _read(state)
            for info in node_info.pods:
                is_going = info.pod.metadata.deletion_timestamp is not None
                if is_going and (by_priority(usage, pod, info) or gives_back(asked, usage, pod, info)):
                    return Eligibility(False, REASON_TERMINATING)
        return Eligibility(True)

    def may_evict(self, state: CycleState, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
        """Whether ``victim`` may go: in the own namespace by priority, in others where they use more than ``min``."""
        asked, usage = _read(state)
        if pod.metadata.namespace in usage.quotas and not asked.is_over_min:
            return gives_back(asked, usage, pod, victim)
        return by_priority(usage, pod, victim)

    def no_victims_message(self, pod: Pod, node_info: NodeInfo) -> str:
        """Upstream's words."""
        return f"No victims found on node {node_info.name} for preemptor pod {pod.metadata.name}"

    def check_fit(self, state: CycleState, pod: Pod, node_info: NodeInfo, put_back: PodInfo | None) -> Status:
        """Whether the quotas allow the pod, once victims are gone; nominated pods count when one is put back."""
        asked, usage = _read(state)
        namespace = pod.metadata.namespace
        if namespace not in usage.quotas:
            return SUCCESS
        both = (REASON_QUOTA, REASON_QUOTA)
        if put_back is None:
            return usage.refusal(namespace, asked.alone, asked.alone, both)
        return usage.refusal(namespace, asked.in_namespace, asked.in_all, both)

    def num_candidates(self, num_nodes: int) -> int:
        """All nodes."""
        return num_nodes

    @cached_property
    def _usage(self) -> Usage:
        """As the cluster is; the plugin is made anew for each cluster."""
        snapshot = self.handle.snapshot
        return usage_of(snapshot.documents(ELASTIC_QUOTA.key), snapshot.objects.pods)

    @cached_property
    def _nominated(self) -> list[Pod]:
        """The pods for which room is kept, node by node."""
        snapshot = self.handle.snapshot
        return [info.pod for node_info in snapshot.nodes for info in snapshot.nominated_pods(node_info.name)]

    def _with_nominated(self, pod: Pod, request: Resource, usage: Usage) -> Asked:
        """What the pod asks for, beside nominated pods of other namespaces as long as these are within their min."""
        in_namespace, in_all = request, request
        for other in self._nominated:
            namespace = other.metadata.namespace
            if namespace not in usage.quotas or _is_same(other, pod):
                continue
            if namespace != pod.metadata.namespace:
                if not usage.is_over_min(namespace):
                    in_all = plus(in_all, request_of(other))
            elif other.priority >= pod.priority:
                in_namespace = plus(in_namespace, request_of(other))
                in_all = plus(in_all, request_of(other))
        return Asked(request, in_namespace, in_all, usage.is_over_min(pod.metadata.namespace, in_namespace))


def by_priority(usage: Usage, pod: Pod, victim: PodInfo) -> bool:
    """Whether ``victim`` is less important and in reach: in the same namespace, or both are under no quota."""
    own, theirs = pod.metadata.namespace, victim.pod.metadata.namespace
    is_in_reach = theirs == own if own in usage.quotas else theirs not in usage.quotas
    return is_in_reach and victim.priority < pod.priority


def gives_back(asked: Asked, usage: Usage, pod: Pod, victim: PodInfo) -> bool:
    """Whether ``victim`` is in a namespace that uses more than its min, and the own one would be within its."""
    own, theirs = pod.metadata.namespace, victim.pod.metadata.namespace
    if own not in usage.quotas or theirs not in usage.quotas or theirs == own:
        return False
    return not asked.is_over_min and usage.is_over_min(theirs)


def _read(state: CycleState) -> tuple[Asked, Usage]:
    """What PreFilter has left."""
    asked, usage = state.read(_ASKED), state.read(_USAGE)
    if not isinstance(asked, Asked) or not isinstance(usage, Usage):
        raise PluginError("CapacityScheduling does not run at preFilter")
    return asked, usage


def _is_same(one: Pod, other: Pod) -> bool:
    if one.metadata.uid and other.metadata.uid:
        return one.metadata.uid == other.metadata.uid
    return one.key == other.key
