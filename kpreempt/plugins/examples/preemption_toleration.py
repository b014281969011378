"""PreemptionToleration: pods whose PriorityClass says that they are spared, for a while or for good.

Follows ``pkg/preemptiontoleration`` of ``kubernetes-sigs/scheduler-plugins`` v0.34.7, with the preemption of
kube-scheduler 1.36 around it. It takes the place of DefaultPreemption. A PriorityClass may say in annotations::

    preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority: "10000"
    preemption-toleration.scheduling.x-k8s.io/toleration-seconds: "3600"

Its pods are then not evicted for pods of a priority below 10000 in the hour after they were scheduled; with a negative
number of seconds never. An annotation that is not a number makes the class one without toleration. Where the class of
a pod of lower priority is not there, the dry run of its node ends in an error.

Departures: a class of which only value and name are known, because the input has no annotations, tolerates nothing;
and the two classes of the system, which every API server has, are known also where the input has them not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from kpreempt.plugins import (
    Code,
    CycleState,
    Eligibility,
    NodeInfo,
    NodeToStatus,
    ObjectKind,
    PluginError,
    Pod,
    PodInfo,
    PreemptionPlugin,
    Wanted,
)

PRIORITY_CLASS = ObjectKind("PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", is_namespaced=False)
MINIMUM_PREEMPTABLE_PRIORITY = "preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority"
TOLERATION_SECONDS = "preemption-toleration.scheduling.x-k8s.io/toleration-seconds"

REASON_NEVER = "not eligible due to preemptionPolicy=Never."
REASON_TERMINATING = "not eligible due to a terminating pod on the nominated node."

_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_INTEGER = re.compile(r"[+-]?[0-9]+")
# More would take a while to read, and none is a number of 64 bits unless it begins with zeros.
_MOST_DIGITS = 1000


class PreemptionTolerationArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How many of the nodes where evictions may help are tried: those of DefaultPreemption, and with its defaults.

    Raises ``ValueError`` for what kube-scheduler refuses.
    """

    min_candidate_nodes_percentage: int | None = None
    min_candidate_nodes_absolute: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.percentage <= 100:
            raise ValueError(
                f"minCandidateNodesPercentage: Invalid value: {self.percentage}: not in valid range [0, 100]"
            )
        if not 0 <= self.absolute < 2**31:
            raise ValueError(f"minCandidateNodesAbsolute: Invalid value: {self.absolute}: not in valid range [0, inf)")
        if self.percentage == self.absolute == 0:
            raise ValueError(
                "minCandidateNodesPercentage: Invalid value: 0:"
                " cannot be zero at the same time as minCandidateNodesAbsolute"
            )

    @property
    def percentage(self) -> int:
        """Of the nodes, so many per cent."""
        return 10 if self.min_candidate_nodes_percentage is None else self.min_candidate_nodes_percentage

    @property
    def absolute(self) -> int:
        """So many nodes at least."""
        return 100 if self.min_candidate_nodes_absolute is None else self.min_candidate_nodes_absolute


class Policy(NamedTuple):
    """Of which priority a pod must be to evict in any case, and for how long others cannot; negative: never."""

    minimum_priority: int
    seconds: int


class PreemptionToleration(PreemptionPlugin):
    """Preempts by priority, but for pods that are spared."""

    args_type = PreemptionTolerationArgs
    # The conditions of pods say since when they are scheduled.
    wants = Wanted(kinds=(PRIORITY_CLASS,), pod_conditions=True)
    message_prefix = ""

    def eligibility(self, state: CycleState, pod: Pod, filtered: NodeToStatus) -> Eligibility:
        """Not with ``preemptionPolicy: Never``, nor while a pod of lower priority leaves the nominated node.

        As in DefaultPreemption, but whoever asked that pod to leave.
        """
        if pod.spec.preemption_policy == "Never":
            return Eligibility(False, REASON_NEVER)
        nominated = pod.status.nominated_node_name
        if not nominated or filtered.get(nominated).code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return Eligibility(True)
        node_info = self.handle.snapshot.node(nominated)
        if node_info is not None and any(
            info.pod.metadata.deletion_timestamp is not None and info.priority < pod.priority for info in node_info.pods
        ):
            return Eligibility(False, REASON_TERMINATING)
        return Eligibility(True)

    def is_eligible_pod(self, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
        """Whether ``victim``, whose priority is lower, is not spared. Raises ``PluginError`` without its class."""
        name = victim.pod.spec.priority_class_name
        if not name:
            return True
        if name not in self._policies:
            raise PluginError(f'priorityclass.scheduling.k8s.io "{name}" not found')
        policy = self._policies[name]
        return policy is None or not is_spared(policy, pod.priority, victim.pod, self.handle.snapshot.now)

    def no_victims_message(self, pod: Pod, node_info: NodeInfo) -> str:
        """Upstream's words."""
        return f"No victims found on node {node_info.name} for preemptor pod {pod.metadata.name}"

    def num_candidates(self, num_nodes: int) -> int:
        """As many as the arguments say."""
        wanted = max(num_nodes * self.args.percentage // 100, self.args.absolute)
        return int(min(wanted, num_nodes))

    @cached_property
    def _policies(self) -> dict[str, Policy | None]:
        """The classes of the cluster with their policies; ``None`` where an annotation is not a number."""
        snapshot = self.handle.snapshot
        values = _SYSTEM_CLASSES | {each.metadata.name: each.value for each in snapshot.objects.priority_classes}
        annotations = dict(map(_annotations_of, snapshot.documents(PRIORITY_CLASS.key)))
        return {name: policy_of(value, annotations.get(name, {})) for name, value in values.items()}


def policy_of(value: int, annotations: Mapping[str, object]) -> Policy | None:
    """The policy of a class of this value; ``None`` where an annotation is not a number of its size."""
    minimum = _integer(annotations.get(MINIMUM_PREEMPTABLE_PRIORITY, str(value + 1)), bits=32)
    seconds = _integer(annotations.get(TOLERATION_SECONDS, "0"), bits=64)
    return None if minimum is None or seconds is None else Policy(minimum, seconds)


def is_spared(policy: Policy, priority: int, victim: Pod, now: datetime) -> bool:
    """Whether ``victim`` stays, for a pod of that priority, at that time."""
    if priority >= policy.minimum_priority:
        return False
    if policy.seconds < 0:
        return True
    condition = next((each for each in victim.status.conditions if each.type == "PodScheduled"), None)
    if condition is None or condition.status != "True":
        return True
    since = condition.last_transition_time or datetime.min.replace(tzinfo=UTC)
    if since.tzinfo is None:
        since = since.replace(tzinfo=UTC)
    # Go counts durations in an int64 of nanoseconds; one of more than 292 years turns negative, and is over.
    nanoseconds = (policy.seconds * 10**9 + 2**63) % 2**64 - 2**63
    return nanoseconds > (now - since) // timedelta(microseconds=1) * 1000


def _annotations_of(document: Mapping[str, Any]) -> tuple[str, Mapping[str, object]]:
    """Name and annotations of a PriorityClass."""
    metadata = document["metadata"]
    annotations = metadata.get("annotations") or {}
    if not isinstance(annotations, Mapping):
        raise PluginError(f"PriorityClass {metadata['name']}: metadata.annotations is not an object")
    return metadata["name"], annotations


def _integer(text: object, *, bits: int) -> int | None:
    """What Go's ``strconv.ParseInt`` reads in base 10, or ``None``."""
    if not isinstance(text, str) or len(text) > _MOST_DIGITS or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None
