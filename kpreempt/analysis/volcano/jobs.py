"""A Volcano job with the defaults of its webhook, and what its controller creates: group, claims and pods.

Follows Volcano v1.8.0 ``pkg/webhooks/admission/jobs/{mutate,validate}``, including the reasons why the webhook or the
controller would reject a job, and ``pkg/controllers/job/job_controller_{actions,util}.go``. Templates of pods and the
created objects remain plain data.

The group is created first. Its pods are created once the scheduler's ``enqueue`` action has admitted it: ``syncJob``
creates them when the group's phase is neither empty nor ``Pending``. So a submitted job needs two sessions: the first
checks whether there is capacity for the group's ``minResources`` (``as_submitted``), the second places its pods
(``after_enqueue``). Pods lack what no scheduler reads: environments, mounts, host names, and the volumes of the plugins
``svc`` and ``ssh``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kpreempt.admission.pod_resources import add_amounts
from kpreempt.admission.priority import SYSTEM_PRIORITY_CLASSES
from kpreempt.admission.volcano import quota_usage
from kpreempt.analysis.document_reader import NEW, Document, DocumentReader, describe
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.model.pod import Container, PodSpec, ResourceList, ResourceRequirements
from kpreempt.model.policy import PriorityClass
from kpreempt.model.quantity import quantity
from kpreempt.model.volcano import (
    BATCH_VERSION,
    COOLDOWN_TIME,
    DEFAULT_QUEUE,
    GROUP_NAME,
    JDB_MAX_UNAVAILABLE,
    JDB_MIN_AVAILABLE,
    NUMA_POLICY,
    PREEMPTABLE,
    REVOCABLE_ZONE,
    SCHEDULING_VERSION,
    TASK_SPEC,
    TEMPLATE_UID,
    VOLCANO_SCHEDULER_NAME,
)

_PLUGINS = frozenset(("env", "mpi", "pytorch", "ssh", "svc", "tensorflow"))
_TASKS = "spec.tasks"
# Pods are created one by one; more than any cluster has would use too much memory.
MAX_PODS = 200_000
_TASK_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_QUALIFIED_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_MAX_NAME = 63


class VolcanoTask(msgspec.Struct, frozen=True, kw_only=True):
    """Equal pods of a job; ``metadata`` and ``spec`` are those of its template.

    Its pods are created once all tasks of ``depends_on`` are running, or any of them with ``waits_for_any``.
    """

    name: str
    replicas: int
    min_available: int
    metadata: Document
    spec: Document
    path: str
    topology_policy: str = ""
    depends_on: list[str] = []
    waits_for_any: bool = False


class VolcanoVolume(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that all pods of a job use; ``claim`` is the spec of a claim to create."""

    mount_path: str
    claim_name: str
    claim: Document | None


class VolcanoJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job with the webhook's defaults; ``uid`` is ``new`` and ``version`` 0 if it is not in a cluster yet.

    ``plugins`` are names with their arguments. ``document`` is the job as it was read.
    """

    name: str
    namespace: str
    document: Document
    uid: str
    version: int
    labels: dict[str, str]
    annotations: dict[str, str]
    scheduler_name: str
    queue: str
    priority_class_name: str
    min_available: int
    tasks: list[VolcanoTask]
    volumes: list[VolcanoVolume]
    plugins: dict[str, list[str]]
    reader: DocumentReader

    def task(self, name: str) -> VolcanoTask | None:
        return next((each for each in self.tasks if each.name == name), None)


def read_volcano_job(
    document: Document, namespace: str = DEFAULT_NAMESPACE, *, source: str = "", line: int = 0
) -> VolcanoJob:
    """Read a job from a manifest; the default namespace is ``namespace``. The document is not modified.

    Raises ``InputError`` if it does not have the structure of a job. A job that the webhook would reject is read anyway
    (``job_rejections``).
    """
    reader = DocumentReader(describe(document), source, line)
    metadata, spec = reader.mapping(document, "metadata"), reader.mapping(document, "spec")
    name = reader.name(metadata, "name")
    if not name:
        raise reader.error("a job needs a name", "metadata.name")
    tasks = [_task(each, index, reader) for index, each in enumerate(reader.mappings(spec, "tasks", "spec"))]
    total = 0
    for task in tasks:
        total += max(0, task.replicas)
        if total > MAX_PODS:
            raise reader.error(f"results in more than {MAX_PODS:,} pods in total", f"{task.path}.replicas")
    return VolcanoJob(
        name=name,
        namespace=reader.name(metadata, "namespace") or namespace,
        document=document,
        uid=reader.name(metadata, "uid") or NEW,
        version=reader.int32(reader.mapping(document, "status"), "version", "status") or 0,
        labels=reader.texts(metadata, "labels", "metadata"),
        annotations=reader.texts(metadata, "annotations", "metadata"),
        scheduler_name=reader.text(spec, "schedulerName", "spec") or VOLCANO_SCHEDULER_NAME,
        queue=reader.text(spec, "queue", "spec") or DEFAULT_QUEUE,
        priority_class_name=reader.text(spec, "priorityClassName", "spec"),
        min_available=reader.int32(spec, "minAvailable", "spec") or sum(each.min_available for each in tasks),
        tasks=tasks,
        volumes=[
            _volume(each, f"spec.volumes[{index}]", reader)
            for index, each in enumerate(reader.mappings(spec, "volumes", "spec"))
        ],
        plugins=_plugins(spec, reader),
        reader=reader,
    )


def job_rejections(job: VolcanoJob, cluster: ClusterSnapshot) -> list[str]:
    """Why no pod group would be created for the job, in the order of Volcano's checks; empty if one would.

    Most are the webhook's messages; the last are those for which the controller ignores an accepted job. Lifecycle
    policies and Kubernetes' own validation of templates are not checked. A queue without a state is assumed to be open,
    as it is once its controller has processed it.
    """
    first = next(_decisive_rejections(job), None)
    return [first] if first else [*_rejections(job), *_rejections_of_cluster(job, cluster)]


def _task(document: Document, index: int, reader: DocumentReader) -> VolcanoTask:
    path = f"{_TASKS}[{index}]"
    template = reader.mapping(document, "template", path)
    depends_on = reader.mapping(document, "dependsOn", path)
    names = depends_on.get("name") or []
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise reader.error("expected a list of strings", f"{path}.dependsOn.name")
    replicas = reader.int32(document, "replicas", path) or 0
    min_available = reader.int32(document, "minAvailable", path)
    return VolcanoTask(
        name=reader.text(document, "name", path) or f"default{index}",
        replicas=replicas,
        min_available=replicas if min_available is None else min_available,
        metadata=reader.mapping(template, "metadata", f"{path}.template"),
        spec=reader.mapping(template, "spec", f"{path}.template"),
        path=path,
        topology_policy=reader.text(document, "topologyPolicy", path),
        depends_on=names,
        # A single dependency is awaited either way.
        waits_for_any=len(names) > 1 and reader.text(depends_on, "iteration", f"{path}.dependsOn") == "any",
    )


def _volume(document: Document, path: str, reader: DocumentReader) -> VolcanoVolume:
    return VolcanoVolume(
        mount_path=reader.text(document, "mountPath", path),
        claim_name=reader.text(document, "volumeClaimName", path),
        claim=reader.mapping(document, "volumeClaim", path) if document.get("volumeClaim") is not None else None,
    )


def _plugins(spec: Document, reader: DocumentReader) -> dict[str, list[str]]:
    plugins: dict[str, list[str]] = {}
    for name, arguments in reader.mapping(spec, "plugins", "spec").items():
        if not isinstance(arguments or [], list) or not all(isinstance(each, str) for each in arguments or []):
            raise reader.error("expected a list of strings", f"spec.plugins.{name}")
        plugins[name] = arguments or []
    return plugins


def _decisive_rejections(job: VolcanoJob) -> Iterator[str]:
    """The errors after which the webhook stops."""
    if job.min_available < 0:
        yield "job 'minAvailable' must be >= 0."
    if not job.tasks:
        yield "No task specified in job spec"
    if "mpi" in job.plugins:
        for role in ("master", "worker"):
            if job.task(argument_of(job.plugins["mpi"], role, role)) is None:
                yield f"The specified mpi {role} task was not found"


def _rejections(job: VolcanoJob) -> Iterator[str]:
    seen: set[str] = set()
    for index, task in enumerate(job.tasks):
        suffix = f"in task: {task.name}, job: {job.name};"
        if task.replicas < 0:
            yield f"'replicas' < 0 {suffix}"
        if task.min_available < 0:
            yield f"'minAvailable' < 0 {suffix}"
        elif task.min_available > task.replicas:
            yield f"'minAvailable' is greater than 'replicas' {suffix}"
        if len(task.name) > _MAX_NAME or not _TASK_NAME.fullmatch(task.name):
            yield f"the task name {task.name} is not a DNS label;"
        if task.name in seen:
            yield f"duplicated task name {task.name};"
            break
        seen.add(task.name)
        pod_name = f"{job.name}-{task.name}-{index}"
        if not _is_qualified(pod_name):
            yield f"create pod with name {pod_name} validate failed;"
    if not _is_qualified(job.name):
        yield f"create job with name {job.name} validate failed"
    if sum(each.replicas for each in job.tasks) < job.min_available:
        yield "job 'minAvailable' should not be greater than total replicas in tasks;"
    yield from (f"unable to find job plugin: {name};" for name in job.plugins if name not in _PLUGINS)
    yield from _rejections_of_volumes(job.volumes)
    if not _is_acyclic(job):
        yield "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"


def _rejections_of_volumes(volumes: list[VolcanoVolume]) -> Iterator[str]:
    seen: set[str] = set()
    for volume in volumes:
        if not volume.mount_path:
            yield "mountPath is required;"
        elif volume.mount_path in seen:
            yield f"duplicated mountPath: {volume.mount_path};"
        elif volume.claim is None and not volume.claim_name:
            yield "either VolumeClaim or VolumeClaimName must be specified;"
        elif volume.claim is not None and volume.claim_name:
            yield "VolumeClaim and VolumeClaimName must not both be specified;"
        else:
            seen.add(volume.mount_path)
            continue
        return


def _rejections_of_cluster(job: VolcanoJob, cluster: ClusterSnapshot) -> Iterator[str]:
    queue = next((each for each in cluster.queues if each.metadata.name == job.queue), None)
    if queue is not None and queue.status.state not in ("", "Open"):
        yield (f"can only submit job to queue with state `Open`, queue `{job.queue}` status is `{queue.status.state}`;")
    # The scheduler creates the default queue if it is missing.
    if queue is None and job.queue != DEFAULT_QUEUE:
        yield f'unable to find job queue: queues.scheduling.volcano.sh "{job.queue}" not found;'
    known = {each.key for each in cluster.persistent_volume_claims}
    for volume in job.volumes:
        if volume.claim_name and f"{job.namespace}/{volume.claim_name}" not in known:
            yield (
                f"pvc {volume.claim_name} is not found, the job will be in the Pending state until the PVC is created"
            )


def _is_acyclic(job: VolcanoJob) -> bool:
    """Whether tasks can be started one after another.

    A missing task is never started, and a task that is named twice is started only once.
    """
    remaining = {task.name: task.depends_on for task in job.tasks}
    started: set[str] = set()
    while remaining:
        ready = [
            name for name, needs in remaining.items() if started.issuperset(needs) and len(set(needs)) == len(needs)
        ]
        if not ready:
            return False
        for name in ready:
            del remaining[name]
        started.update(ready)
    return True


def argument_of(arguments: list[str], name: str, default: str) -> str:
    """The value of a plugin's flag, ``--name=value`` or ``-name value``; the last one counts."""
    found = default
    rest = iter(arguments)
    for each in rest:
        flag, equals, value = each.partition("=")
        if flag not in ("-" + name, "--" + name):
            continue
        found = value if equals else next(rest, default)
    return found


def _is_qualified(name: str) -> bool:
    return len(name) <= _MAX_NAME and _QUALIFIED_NAME.fullmatch(name) is not None


_JOB_NAME = "volcano.sh/job-name"
_QUEUE_LABEL = "volcano.sh/queue-name"
_MPI_PORT, _PYTORCH_PORT = "22", "23456"


class Gang(msgspec.Struct, frozen=True, kw_only=True):
    """A job's pod group, claims and pods; ``blocked_pods`` are tasks whose pods wait for other tasks."""

    group: Document
    claims: list[Document]
    pods: list[Document] = []
    blocked_pods: list[str] = []


def as_submitted(job: VolcanoJob, priority_classes: Iterable[PriorityClass]) -> Gang:
    """The objects right after the job was accepted: a pending group, and no pods."""
    return Gang(group=_group(job, priority_classes, "Pending"), claims=claims_of_job(job))


def after_enqueue(job: VolcanoJob, priority_classes: Iterable[PriorityClass]) -> Gang:
    """The objects after the scheduler has enqueued the group: the group, and the pods of tasks that need not wait.

    None of the pods is running yet, so a task waits for all dependencies that require a running pod.
    """
    ready = []
    for task in job.tasks:
        others = [job.task(name) for name in task.depends_on]
        is_started = [other is None or other.min_available <= 0 for other in others]
        if any(is_started) if task.waits_for_any else all(is_started):
            ready.append(task)
    pods = [pod for task in ready for pod in _pods(job, task, task.replicas)]
    return Gang(
        group=_group(job, priority_classes, "Inqueue"),
        claims=claims_of_job(job),
        pods=pods,
        blocked_pods=[task.name for task in job.tasks if task not in ready],
    )


def first_pod_of_task(job: VolcanoJob, task: VolcanoTask) -> Document:
    """The pod of a task with index 0."""
    return _pods(job, task, 1)[0]


def claims_of_job(job: VolcanoJob) -> list[Document]:
    """The claims that are created for a job, in its order."""
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
    min_resources = _min_resources(job, priority_classes)
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
            "minResources": {name: str(amount) for name, amount in min_resources.items()},
        },
        "status": {"phase": phase},
    }


def _min_resources(job: VolcanoJob, priority_classes: Iterable[PriorityClass]) -> ResourceList:
    """The resources of the first ``minAvailable`` pods, starting with the tasks of highest priority.

    The controller sorts tasks of equal priority as Go does, which keeps their order for up to twelve tasks.
    """
    values = {each.metadata.name: each.value for each in (*SYSTEM_PRIORITY_CLASSES, *priority_classes)}

    def priority(task: VolcanoTask) -> int:
        return values.get(job.reader.text(task.spec, "priorityClassName", f"{task.path}.template.spec"), 0)

    total: ResourceList = {}
    remaining = job.min_available
    for task in sorted(job.tasks, key=priority, reverse=True):
        count = min(task.replicas, remaining)
        if count > 0:
            add_amounts(total, quota_usage(_resources_of(task, job.reader), count))
            remaining -= count
    return total


def _resources_of(task: VolcanoTask, reader: DocumentReader) -> PodSpec:
    """The spec of a task's pods with only its resource amounts."""
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


def _pods(job: VolcanoJob, task: VolcanoTask, count: int) -> list[Document]:
    """The first pods of a task, with shared common parts."""
    template = f"{task.path}.template"
    # The annotations that a pod inherits from its job; only the first of the two budgets.
    budget = JDB_MIN_AVAILABLE if JDB_MIN_AVAILABLE in job.annotations else JDB_MAX_UNAVAILABLE
    from_job = (PREEMPTABLE, COOLDOWN_TIME, REVOCABLE_ZONE, budget)
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
        **{key: job.annotations[key] for key in from_job if key in job.annotations},
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
    """The ports that plugins open, and the list of containers; the scheduler checks them on the host network."""
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
    """The claim of each volume; random names are numbered here."""
    return [volume.claim_name or f"{job.name}-pvc-{NEW}-{index}" for index, volume in enumerate(job.volumes)]


def _owners(job: VolcanoJob) -> list[Document]:
    uid = "" if job.uid == NEW else job.uid
    return [{"apiVersion": BATCH_VERSION, "kind": "Job", "name": job.name, "uid": uid, "controller": True}]
