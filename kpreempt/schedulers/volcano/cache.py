"""A cluster as Volcano's cache holds it when a session opens.

Follows ``pkg/scheduler/cache/cache.go`` (``Snapshot``) and ``event_handlers.go`` of Volcano v1.8.0: pods of other
schedulers count once they are on a node, jobs need a pod group and a queue that exists, and nodes must be ready.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import AnnotatedMeta
from kpreempt.model.volcano import DEFAULT_QUEUE, HIERARCHY, HIERARCHY_WEIGHTS, VOLCANO_SCHEDULER_NAME, QueueSpec
from kpreempt.model.volcano import Queue as ClusterQueue
from kpreempt.schedulers.volcano.job import Job
from kpreempt.schedulers.volcano.node import Node
from kpreempt.schedulers.volcano.task import Task, TaskStatus

_TERMINATED = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


class Queue:
    """A queue in a session."""

    def __init__(self, queue: ClusterQueue) -> None:
        self.name = queue.metadata.name
        self.created = queue.metadata.creation_timestamp
        self.weight = queue.spec.weight
        self.capability = queue.spec.capability
        self.guarantee = queue.spec.guarantee.resource
        self.is_reclaimable = queue.spec.reclaimable is not False
        self.hierarchy = queue.metadata.annotations.get(HIERARCHY, "")
        self.weights = queue.metadata.annotations.get(HIERARCHY_WEIGHTS, "")


class Cache(NamedTuple):
    """What a session opens with, in the order of the input. ``ignored`` says which jobs are left out, and why."""

    cluster: ClusterSnapshot
    jobs: list[Job]
    nodes: list[Node]
    queues: list[Queue]
    ignored: dict[str, str]
    now: datetime


def cache_of(
    cluster: ClusterSnapshot, *, now: datetime, scheduler_names: frozenset[str] = frozenset({VOLCANO_SCHEDULER_NAME})
) -> Cache:
    """The cluster as jobs, nodes and queues that a session may change. The queue ``default`` is there in any case."""
    tasks = [Task(pod) for pod in cluster.pods if pod.spec.node_name or pod.spec.scheduler_name in scheduler_names]
    nodes = {node.metadata.name: Node(node) for node in cluster.nodes}
    for task in tasks:
        if task.node_name in nodes and task.status not in _TERMINATED:
            nodes[task.node_name].add(task)
    queues = {queue.metadata.name: Queue(queue) for queue in cluster.queues}
    if DEFAULT_QUEUE not in queues:
        spec = QueueSpec(weight=1, reclaimable=True)
        queues[DEFAULT_QUEUE] = Queue(ClusterQueue(metadata=AnnotatedMeta(name=DEFAULT_QUEUE), spec=spec))
    jobs, ignored = _jobs(cluster, queues)
    for task in tasks:
        if task.job_id in jobs:
            jobs[task.job_id].add(task)
        elif task.job_id and task.job_id not in ignored:
            ignored[task.job_id] = "there is no such pod group"
    return Cache(
        cluster,
        list(jobs.values()),
        [node for node in nodes.values() if node.is_ready],
        list(queues.values()),
        ignored,
        now,
    )


def _jobs(cluster: ClusterSnapshot, queues: dict[str, Queue]) -> tuple[dict[str, Job], dict[str, str]]:
    priorities = {item.metadata.name: item.value for item in cluster.priority_classes}
    default_priority = 0
    for item in cluster.priority_classes:
        if item.global_default:
            default_priority = item.value
    jobs: dict[str, Job] = {}
    ignored: dict[str, str] = {}
    for group in cluster.pod_groups:
        queue = group.spec.queue or DEFAULT_QUEUE
        if queue not in queues:
            ignored[group.key] = f"its queue {queue} does not exist"
            continue
        jobs[group.key] = Job(group, queue, priorities.get(group.spec.priority_class_name, default_priority))
    return jobs, ignored
