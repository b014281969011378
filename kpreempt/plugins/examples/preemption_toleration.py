"""PreemptionToleration: a PriorityClass protects its pods from preemption, for a while or forever.

Follows ``pkg/preemptiontoleration`` of ``kubernetes-sigs/scheduler-plugins`` v0.34.7, with the preemption of
kube-scheduler 1.36 around it. It replaces DefaultPreemption. A PriorityClass may have these annotations::

    preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority: "10000"
    preemption-toleration.scheduling.x-k8s.io/toleration-seconds: "3600"

Pods with a priority below 10000 then cannot preempt its pods during the first hour after these were scheduled; with a
negative number of seconds they never can. An annotation that is not a number disables the toleration. If the class of a
lower-priority pod is missing, the dry run of its node ends in an error.

Differences from upstream: a class of which the input has only value and name, without annotations, tolerates nothing;
and the two system classes, which every API server has, are known even if the input lacks them.
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
    ExtraFields,
    NodeInfo,
    NodeToStatus,
    ObjectKind,
    PluginError,
    Pod,
    PodInfo,
    PreemptionPlugin,
)

PRIORITY_CLASS = ObjectKind("PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", is_namespaced=False)
MINIMUM_PREEMPTABLE_PRIORITY = "preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority"
TOLERATION_SECONDS = "preemption-toleration.scheduling.x-k8s.io/toleration-seconds"

REASON_NEVER = "not eligible due to preemptionPolicy=Never."
REASON_TERMINATING = "not eligible due to a terminating pod on the nominated node."

_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_INTEGER = re.compile(r"[+-]?[0-9]+")
# Longer numbers are slow to parse, and exceed 64 bits unless they begin with zeros.
_MAX_DIGITS = 1000


class PreemptionTolerationArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The number of nodes to try: fields and defaults of DefaultPreemption's arguments.

    Raises ``ValueError`` for values that kube-scheduler rejects.
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
        """The percentage of nodes to try."""
        return 10 if self.min_candidate_nodes_percentage is None else self.min_candidate_nodes_percentage

    @property
    def absolute(self) -> int:
        """The minimum number of nodes to try."""
        return 100 if self.min_candidate_nodes_absolute is None else self.min_candidate_nodes_absolute


class Policy(NamedTuple):
    """The priority at which a pod can always evict, and how long others cannot; negative: never."""

    minimum_priority: int
    seconds: int


class PreemptionToleration(PreemptionPlugin):
    """Preempts by priority, except for pods that tolerate preemption."""

    args_type = PreemptionTolerationArgs
    # The conditions of pods, which record when they were scheduled.
    extra_fields = ExtraFields(kinds=(PRIORITY_CLASS,), pod_conditions=True)
    message_prefix = ""

    def eligibility(self, state: CycleState, pod: Pod, filtered: NodeToStatus) -> Eligibility:
        """Return ineligible for ``preemptionPolicy: Never``, or if a lower-priority pod leaves the nominated node.

        Unlike in DefaultPreemption, it does not matter why that pod terminates.
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
        """Return whether ``victim`` of lower priority may be evicted. Raises ``PluginError`` without its class."""
        name = victim.pod.spec.priority_class_name
        if not name:
            return True
        if name not in self._policies:
            raise PluginError(f'priorityclass.scheduling.k8s.io "{name}" not found')
        policy = self._policies[name]
        return policy is None or not is_spared(policy, pod.priority, victim.pod, self.handle.snapshot.now)

    def no_victims_message(self, pod: Pod, node_info: NodeInfo) -> str:
        """Upstream's message."""
        return f"No victims found on node {node_info.name} for preemptor pod {pod.metadata.name}"

    def num_candidates(self, num_nodes: int) -> int:
        """Return the number that the arguments specify."""
        extra_fields = max(num_nodes * self.args.percentage // 100, self.args.absolute)
        return int(min(extra_fields, num_nodes))

    @cached_property
    def _policies(self) -> dict[str, Policy | None]:
        """The policies of the cluster's classes; ``None`` if an annotation is not a number."""
        snapshot = self.handle.snapshot
        values = _SYSTEM_CLASSES | {each.metadata.name: each.value for each in snapshot.objects.priority_classes}
        annotations = dict(map(_annotations_of, snapshot.documents(PRIORITY_CLASS.key)))
        return {name: policy_of(value, annotations.get(name, {})) for name, value in values.items()}


def policy_of(value: int, annotations: Mapping[str, object]) -> Policy | None:
    """Return the policy of a class with this value; ``None`` if an annotation is not a valid number."""
    minimum = _integer(annotations.get(MINIMUM_PREEMPTABLE_PRIORITY, str(value + 1)), bits=32)
    seconds = _integer(annotations.get(TOLERATION_SECONDS, "0"), bits=64)
    return None if minimum is None or seconds is None else Policy(minimum, seconds)


def is_spared(policy: Policy, priority: int, victim: Pod, now: datetime) -> bool:
    """Return whether ``victim`` is protected from a pod of that priority at that time."""
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
    # Go stores durations in an int64 of nanoseconds; more than 292 years overflow to a negative value, which has
    # expired.
    nanoseconds = (policy.seconds * 10**9 + 2**63) % 2**64 - 2**63
    return nanoseconds > (now - since) // timedelta(microseconds=1) * 1000


def _annotations_of(document: Mapping[str, Any]) -> tuple[str, Mapping[str, object]]:
    """Return name and annotations of a PriorityClass."""
    metadata = document["metadata"]
    annotations = metadata.get("annotations") or {}
    if not isinstance(annotations, Mapping):
        raise PluginError(f"PriorityClass {metadata['name']}: metadata.annotations is not an object")
    return metadata["name"], annotations


def _integer(text: object, *, bits: int) -> int | None:
    """Parse an integer like Go's ``strconv.ParseInt`` in base 10, or return ``None``."""
    if not isinstance(text, str) or len(text) > _MAX_DIGITS or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None
