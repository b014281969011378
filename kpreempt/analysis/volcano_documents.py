"""What Volcano's controller makes of a job: its pod group, its claims and its pods, as plain data.

Follows Volcano v1.8.0 ``pkg/controllers/job/job_controller_actions.go`` and ``job_controller_util.go``. First there is
the group alone. Its pods are made once the scheduler's ``enqueue`` has let it in: ``syncJob`` makes them when the
group's phase is neither empty nor ``Pending``. So a job that is submitted goes through two sessions: in the first it
is asked whether there is room for the group's ``minResources`` (``as_submitted``), in the second its pods are placed
(``once_enqueued``). Left out of pods is what no scheduler reads: environments, mounts, host names, and the volumes of
the plugins ``svc`` and ``ssh``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kpreempt.admission.pod_resources import add_amounts
from kpreempt.admission.priority import SYSTEM_PRIORITY_CLASSES
from kpreempt.admission.volcano import quota_usage
from kpreempt.analysis.document_reader import NEW, Document, DocumentReader
from kpreempt.analysis.volcano_jobs import VolcanoJob, VolcanoTask, argument_of
from kpreempt.model.pod import Container, PodSpec, ResourceList, ResourceRequirements
from kpreempt.model.policy import PriorityClass
from kpreempt.model.quantity import quantity
from kpreempt.model.volcano import (
    BATCH_VERSION,
    COOLDOWN_TIME,
    GROUP_NAME,
    JDB_MAX_UNAVAILABLE,
    JDB_MIN_AVAILABLE,
    NUMA_POLICY,
    PREEMPTABLE,
    REVOCABLE_ZONE,
    SCHEDULING_VERSION,
    TASK_SPEC,
    TEMPLATE_UID,
)

_JOB_NAME = "volcano.sh/job-name"
_QUEUE_LABEL = "volcano.sh/queue-name"
_MPI_PORT, _PYTORCH_PORT = "22", "23456"


class Gang(msgspec.Struct, frozen=True, kw_only=True):
    """A job's pod group, with its claims and pods. ``held_back`` are tasks whose pods wait for other tasks to run."""

    group: Document
    claims: list[Document]
    pods: list[Document] = []
    held_back: list[str] = []


def as_submitted(job: VolcanoJob, priority_classes: Iterable[PriorityClass]) -> Gang:
    """What there is right after the job was accepted: a group that waits to be let in, and no pods."""
    return Gang(group=_group(job, priority_classes, "Pending"), claims=claims_of_job(job))


def once_enqueued(job: VolcanoJob, priority_classes: Iterable[PriorityClass]) -> Gang:
    """What there is once the scheduler has let the group in: the group and the pods of all tasks that need not wait.

    None of the pods runs yet, so a task waits for those others that are to have a running pod.
    """
    ready = [task for task in job.tasks if _can_begin(job, task)]
    pods = [pod for task in ready for pod in _pods(job, task, task.replicas)]
    return Gang(
        group=_group(job, priority_classes, "Inqueue"),
        claims=claims_of_job(job),
        pods=pods,
        held_back=[task.name for task in job.tasks if task not in ready],
    )


def first_pod_of_task(job: VolcanoJob, task: VolcanoTask) -> Document:
    """The pod of a task that is numbered 0."""
    return _pods(job, task, 1)[0]


def claims_of_job(job: VolcanoJob) -> list[Document]:
    """The claims that are made for a job, in its order."""
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": job.namespace, "ownerReferences": _owners(job)},
            "spec": volume.claim,
        }
        for name, volume in zip(_claim_names(job), job.volumes, strict=True)
        if volume.claim is not None and not volume.claim_name
    ]


def group_name(job: VolcanoJob) -> str:
    """The name of the job's pod group."""
    return f"{job.name}-{job.uid}"


def _group(job: VolcanoJob, priority_classes: Iterable[PriorityClass], phase: str) -> Document:
    least = _least_resources(job, priority_classes)
    return {
        "apiVersion": SCHEDULING_VERSION,
        "kind": "PodGroup",
        "metadata": {
            "name": group_name(job),
            "namespace": job.namespace,
            "labels": dict(job.labels),
            "annotations": dict(job.annotations),
            "ownerReferences": _owners(job),
        },
        "spec": {
            "minMember": job.min_available,
            "minTaskMember": {task.name: task.min_available for task in job.tasks},
            "queue": job.queue,
            "priorityClassName": job.priority_class_name,
            "minResources": {name: str(amount) for name, amount in least.items()},
        },
        "status": {"phase": phase},
    }


def _least_resources(job: VolcanoJob, priority_classes: Iterable[PriorityClass]) -> ResourceList:
    """What the first ``minAvailable`` pods take, those of tasks with the highest priority first.

    The controller sorts tasks of equal priority as Go does, which keeps their order for up to twelve tasks.
    """
    values = {each.metadata.name: each.value for each in (*SYSTEM_PRIORITY_CLASSES, *priority_classes)}

    def priority(task: VolcanoTask) -> int:
        return values.get(job.reader.text(task.spec, "priorityClassName", f"{task.path}.template.spec"), 0)

    total: ResourceList = {}
    left = job.min_available
    for task in sorted(job.tasks, key=priority, reverse=True):
        count = min(task.replicas, left)
        if count > 0:
            add_amounts(total, quota_usage(_resources_of(task, job.reader), count))
            left -= count
    return total


def _resources_of(task: VolcanoTask, reader: DocumentReader) -> PodSpec:
    """The specification of a task's pods with nothing but its amounts."""
    path = f"{task.path}.template.spec"

    def containers(key: str) -> list[Container]:
        found = []
        for index, container in enumerate(reader.mappings(task.spec, key, path)):
            place = f"{path}.{key}[{index}]"
            resources = reader.mapping(container, "resources", place)
            requests = _amounts(resources, "requests", f"{place}.resources", reader)
            limits = _amounts(resources, "limits", f"{place}.resources", reader)
            found.append(Container(resources=ResourceRequirements(requests=requests, limits=limits)))
        return found

    return PodSpec(
        containers=containers("containers"),
        init_containers=containers("initContainers"),
        overhead=_amounts(task.spec, "overhead", path, reader),
    )


def _amounts(parent: Mapping[str, Any], key: str, path: str, reader: DocumentReader) -> ResourceList:
    amounts: ResourceList = {}
    for name, value in reader.mapping(parent, key, path).items():
        try:
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                raise ValueError("is not a quantity")
            amounts[name] = quantity(str(value))
        except ValueError as error:
            raise reader.error(str(error), f"{path}.{key}.{name}") from None
    return amounts


def _can_begin(job: VolcanoJob, task: VolcanoTask) -> bool:
    """Whether a task's pods are made while no pod of the job runs."""
    others = [job.task(name) for name in task.depends_on]
    begun = [other is None or other.min_available <= 0 for other in others]
    return any(begun) if task.waits_for_any else all(begun)


def _pods(job: VolcanoJob, task: VolcanoTask, count: int) -> list[Document]:
    """The first pods of a task; what they have in common is shared."""
    template = f"{task.path}.template"
    labels = job.reader.texts(task.metadata, "labels", f"{template}.metadata") | {
        _JOB_NAME: job.name,
        TASK_SPEC: task.name,
        "volcano.sh/job-namespace": job.namespace,
        _QUEUE_LABEL: job.queue,
        **{key: job.labels[key] for key in (PREEMPTABLE, COOLDOWN_TIME) if key in job.labels},
    }
    annotations = job.reader.texts(task.metadata, "annotations", f"{template}.metadata") | {
        TASK_SPEC: task.name,
        GROUP_NAME: group_name(job),
        _JOB_NAME: job.name,
        _QUEUE_LABEL: job.queue,
        "volcano.sh/job-version": str(job.version),
        TEMPLATE_UID: f"{job.name}-{task.name}",
        **({NUMA_POLICY: task.topology_policy} if task.topology_policy else {}),
        **_from_job(job),
    }
    spec = _spec(job, task)
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{job.name}-{task.name}-{index}",
                "namespace": job.namespace,
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": _owners(job),
            },
            "spec": spec,
        }
        for index in range(count)
    ]


def _from_job(job: VolcanoJob) -> dict[str, str]:
    """The annotations that a pod has from its job; of the two budgets the first one that there is."""
    budget = JDB_MIN_AVAILABLE if JDB_MIN_AVAILABLE in job.annotations else JDB_MAX_UNAVAILABLE
    keys = (PREEMPTABLE, COOLDOWN_TIME, REVOCABLE_ZONE, budget)
    return {key: job.annotations[key] for key in keys if key in job.annotations}


def _spec(job: VolcanoJob, task: VolcanoTask) -> Document:
    path = f"{task.path}.template.spec"
    reader = job.reader
    spec = dict(task.spec)
    spec["schedulerName"] = reader.text(spec, "schedulerName", path) or job.scheduler_name
    if job.volumes:
        claims = dict.fromkeys(_claim_names(job))
        volumes = [
            {"name": f"{job.name}-{NEW}-{index}", "persistentVolumeClaim": {"claimName": claim}}
            for index, claim in enumerate(claims)
        ]
        spec["volumes"] = [*reader.mappings(spec, "volumes", path), *volumes]
    for key, port in _ports(job):
        if spec.get(key) is not None:
            containers = reader.mappings(spec, key, path)
            spec[key] = [
                _with_port(each, port, f"{path}.{key}[{index}]", reader) for index, each in enumerate(containers)
            ]
    return spec


def _ports(job: VolcanoJob) -> list[tuple[str, int]]:
    """The ports that plugins open, with the list of containers; on the host's network the scheduler looks at them."""
    ports = []
    if "mpi" in job.plugins:
        port = _port(job.plugins["mpi"], _MPI_PORT)
        ports += [("containers", port), ("initContainers", port)]
    if "pytorch" in job.plugins:
        arguments = job.plugins["pytorch"]
        if job.task(argument_of(arguments, "master", "master")) is not None:
            ports.append(("containers", _port(arguments, _PYTORCH_PORT)))
    return ports


def _port(arguments: list[str], default: str) -> int:
    text = argument_of(arguments, "port", default)
    return int(text if text.isascii() and text.isdecimal() and len(text) <= len(_PYTORCH_PORT) else default)


def _with_port(container: Document, port: int, path: str, reader: DocumentReader) -> Document:
    ports = reader.mappings(container, "ports", path)
    if any(each.get("containerPort") == port for each in ports):
        return container
    return {**container, "ports": [*ports, {"containerPort": port}]}


def _claim_names(job: VolcanoJob) -> list[str]:
    """The claim of each volume; what the controller draws is numbered here."""
    return [volume.claim_name or f"{job.name}-pvc-{NEW}-{index}" for index, volume in enumerate(job.volumes)]


def _owners(job: VolcanoJob) -> list[Document]:
    uid = "" if job.uid == NEW else job.uid
    return [{"apiVersion": BATCH_VERSION, "kind": "Job", "name": job.name, "uid": uid, "controller": True}]
