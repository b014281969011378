"""CapacityScheduling: each namespace has a guaranteed quota and lends the unused part to others.

Follows ``pkg/capacityscheduling`` of ``kubernetes-sigs/scheduler-plugins`` v0.34.7, with the preemption of
kube-scheduler 1.36 around it. An ElasticQuota gives its namespace a guaranteed ``min`` and an upper limit ``max``.
PreFilter rejects a pod if its namespace would exceed its ``max``, or if all namespaces together would exceed the sum of
their ``min``. The pod may then preempt pods of lower priority in its own namespace or, while its namespace is within
its ``min``, pods of any priority in namespaces that exceed theirs. Pods in namespaces without a quota preempt each
other by priority.

Upstream's quirks are kept. A ``max`` that names some resources allows no CPU, memory or ephemeral storage unless it
names these. Sidecars count like other init containers, and pod-level requests are ignored. If a namespace has several
quotas, the first one counts.

Differences from upstream:

- A victim that must be evicted only because of a quota, against its PodDisruptionBudget, counts as a PDB violation.
- If a pod neither fits next to the incoming pod nor is within the quotas with nominated pods, upstream removes it from
  the node twice, and the node's dry run fails. Here it is a victim.
- Pods on nodes are counted as by a scheduler that has just started; pods in phase Unknown are counted.
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
    ExtraFields,
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
)
from kpreempt.plugins.examples.elastic_quota import ELASTIC_QUOTA, Usage, plus, request_of, usage_of

REASON_NEVER = "not eligible due to preemptionPolicy=Never."
REASON_TERMINATING = "not eligible due to a terminating pod on the nominated node."
REASON_NO_STATE = "not eligible due to failed to read from cycleState"
REASON_QUOTA = "global quota max exceeded"

_REQUESTED = "CapacityScheduling/requested"
_USAGE = "CapacityScheduling/usage"


class Requested(NamedTuple):
    """The requests of a pod: alone, with earlier nominated pods of its namespace, and with all nominated pods.

    ``is_over_min`` means that its namespace would exceed its ``min``.
    """

    alone: Resource
    in_namespace: Resource
    in_all: Resource
    is_over_min: bool = False


class CapacityScheduling(PreFilterPlugin, PreemptionPlugin, ReservePlugin):
    """Admits pods by elastic quotas, and preempts to restore guaranteed quotas."""

    extra_fields = ExtraFields(kinds=(ELASTIC_QUOTA,))
    message_prefix = ""

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Reject a pod that would exceed its quota, or the sum of all quotas."""
        usage = self._usage.clone()
        state.write(_USAGE, usage)
        request = request_of(pod)
        namespace = pod.metadata.namespace
        if namespace not in usage.quotas:
            state.write(_REQUESTED, Requested(request, request, request))
            return None, SUCCESS
        requested = self._with_nominated(pod, request, usage)
        state.write(_REQUESTED, requested)
        rejected = f"Pod {pod.key} is rejected in PreFilter because"
        reasons = (
            f"{rejected} ElasticQuota {namespace} is more than Max",
            f"{rejected} total ElasticQuota used is more than min",
        )
        return None, usage.rejection(namespace, requested.in_namespace, requested.in_all, reasons)

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        """Add a pod to its quota's usage."""
        _read(state)[1].count(added.pod, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node_info: NodeInfo) -> None:
        """Remove a pod from its quota's usage."""
        _read(state)[1].count(removed.pod, -1)

    def eligibility(self, state: CycleState, pod: Pod, filtered: NodeToStatus) -> Eligibility:
        """Return ineligible for ``preemptionPolicy: Never``, and while victims on the nominated node terminate."""
        if pod.spec.preemption_policy == "Never":
            return Eligibility(False, REASON_NEVER)
        if state.read(_REQUESTED) is None:
            # An earlier plugin rejected the pod permanently, or this plugin is enabled only at postFilter.
            return Eligibility(False, REASON_NO_STATE)
        nominated = pod.status.nominated_node_name
        if not nominated or filtered.get(nominated).code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return Eligibility(True)
        node_info = self.handle.snapshot.node(nominated)
        if node_info is not None:
            requested, usage = _read(state)
            for info in node_info.pods:
                is_going = info.pod.metadata.deletion_timestamp is not None
                if is_going and (by_priority(usage, pod, info) or gives_back(requested, usage, pod, info)):
                    return Eligibility(False, REASON_TERMINATING)
        return Eligibility(True)

    def may_evict(self, state: CycleState, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
        """Return whether ``victim`` may be evicted: by priority in the same namespace, otherwise if over ``min``."""
        requested, usage = _read(state)
        if pod.metadata.namespace in usage.quotas and not requested.is_over_min:
            return gives_back(requested, usage, pod, victim)
        return by_priority(usage, pod, victim)

    def no_victims_message(self, pod: Pod, node_info: NodeInfo) -> str:
        """Upstream's message."""
        return f"No victims found on node {node_info.name} for preemptor pod {pod.metadata.name}"

    def check_fit(self, state: CycleState, pod: Pod, node_info: NodeInfo, put_back: PodInfo | None) -> Status:
        """Check the quotas once victims are removed; nominated pods count when a pod is put back."""
        requested, usage = _read(state)
        namespace = pod.metadata.namespace
        if namespace not in usage.quotas:
            return SUCCESS
        both = (REASON_QUOTA, REASON_QUOTA)
        if put_back is None:
            return usage.rejection(namespace, requested.alone, requested.alone, both)
        return usage.rejection(namespace, requested.in_namespace, requested.in_all, both)

    def num_candidates(self, num_nodes: int) -> int:
        """Try all nodes."""
        return num_nodes

    @cached_property
    def _usage(self) -> Usage:
        """The current usage; the plugin is created once per cluster."""
        snapshot = self.handle.snapshot
        return usage_of(snapshot.documents(ELASTIC_QUOTA.key), snapshot.objects.pods)

    @cached_property
    def _nominated(self) -> list[Pod]:
        """The nominated pods, node by node."""
        snapshot = self.handle.snapshot
        return [info.pod for node_info in snapshot.nodes for info in snapshot.nominated_pods(node_info.name)]

    def _with_nominated(self, pod: Pod, request: Resource, usage: Usage) -> Requested:
        """Return the pod's requests, with nominated pods of other namespaces while these are within their min."""
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
        return Requested(request, in_namespace, in_all, usage.is_over_min(pod.metadata.namespace, in_namespace))


def by_priority(usage: Usage, pod: Pod, victim: PodInfo) -> bool:
    """Return whether ``victim`` has lower priority, and is in the same namespace or both have no quota."""
    own, theirs = pod.metadata.namespace, victim.pod.metadata.namespace
    is_in_reach = theirs == own if own in usage.quotas else theirs not in usage.quotas
    return is_in_reach and victim.priority < pod.priority


def gives_back(requested: Requested, usage: Usage, pod: Pod, victim: PodInfo) -> bool:
    """Return whether ``victim``'s namespace exceeds its min, while the pod's would stay within its own."""
    own, theirs = pod.metadata.namespace, victim.pod.metadata.namespace
    if own not in usage.quotas or theirs not in usage.quotas or theirs == own:
        return False
    return not requested.is_over_min and usage.is_over_min(theirs)


def _read(state: CycleState) -> tuple[Requested, Usage]:
    """Return the state that PreFilter wrote."""
    requested, usage = state.read(_REQUESTED), state.read(_USAGE)
    if not isinstance(requested, Requested) or not isinstance(usage, Usage):
        raise PluginError("CapacityScheduling does not run at preFilter")
    return requested, usage


def _is_same(one: Pod, other: Pod) -> bool:
    if one.metadata.uid and other.metadata.uid:
        return one.metadata.uid == other.metadata.uid
    return one.key == other.key
