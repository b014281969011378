"""Small pods, nodes and budgets for tests, with only the fields a test needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from kpreempt.analysis.image_sizes import ImageSizes
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import AnnotatedMeta, ObjectMeta, OwnerReference
from kpreempt.model.node import Node, NodeSpec, NodeStatus
from kpreempt.model.pod import Container, Pod, PodMeta, PodSpec, PodStatus, ResourceRequirements
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kpreempt.model.quantity import quantity
from kpreempt.scheduler_table import LATEST_VERSION
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.snapshot import redact
from kpreempt.verdict import Verdict

# The minor version after all modeled ones.
LATER_VERSION = f"1.{int(LATEST_VERSION.partition('.')[2]) + 1}"

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def redaction_of(cluster: ClusterSnapshot) -> redact.Redaction:
    """The result of redacting a cluster now."""
    return redact.redaction_of(cluster, NOW, b"a key", ImageSizes(cluster).rounded)


def make_pod(
    name: str,
    *,
    node: str = "",
    cpu: str = "",
    memory: str = "",
    priority: int = 0,
    namespace: str = "shop",
    labels: Mapping[str, str] | None = None,
    started: datetime | None = None,
    nominated: str = "",
    phase: str = "",
    **spec: Any,
) -> Pod:
    """A pod with one container, running if it has a node."""
    requests = {key: quantity(value) for key, value in (("cpu", cpu), ("memory", memory)) if value}
    spec.setdefault("containers", [Container(name="main", resources=ResourceRequirements(requests=requests))])
    return Pod(
        metadata=PodMeta(name=name, namespace=namespace, uid=f"uid-{namespace}-{name}", labels=dict(labels or {})),
        spec=PodSpec(node_name=node, priority=priority, **spec),
        status=PodStatus(
            phase=phase or ("Running" if node else "Pending"), start_time=started, nominated_node_name=nominated
        ),
    )


def owned(pod: Pod, kind: str, name: str) -> Pod:
    """The pod as created by such a controller, including unknown kinds."""
    group = {"Node": "v1", "Job": "batch/v1", "CloneSet": "x/v1"}.get(kind, "apps/v1")
    owner = OwnerReference(kind=kind, name=name, uid=name, api_version=group, controller=True)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=[owner]))


def make_node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Node:
    """A node with capacity for some pods."""
    allocatable = {"cpu": quantity(cpu), "memory": quantity(memory), "pods": quantity(pods)}
    all_labels = {"kubernetes.io/hostname": name, **(labels or {})}
    return Node(
        metadata=AnnotatedMeta(name=name, labels=all_labels),
        spec=NodeSpec(**spec),
        status=NodeStatus(allocatable=allocatable, capacity=allocatable),
    )


def make_budget(
    name: str, labels: Mapping[str, str], allowed: int, *, namespace: str = "shop", disrupted: Sequence[str] = ()
) -> PodDisruptionBudget:
    """A budget over pods with ``labels`` that allows some disruptions."""
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=dict(labels))),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted, "2026-11-20T00:00:00Z")
        ),
    )


def decide(cluster: ClusterSnapshot, pod: Pod) -> Verdict:
    """The default scheduler's verdict."""
    scheduler = KubeScheduler()
    return scheduler.decide(scheduler.prepare(cluster, now=NOW), pod)


def reasons(verdict: Verdict) -> dict[str, str]:
    """The reason on each node that was rejected."""
    return {name: status.message for name, status in verdict.filter.items() if not status.is_success}
