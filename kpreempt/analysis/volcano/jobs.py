"""A job of Volcano's, as its webhook completes it, and why the webhook or the controller would not go on with it.

Follows Volcano v1.8.0 ``pkg/webhooks/admission/jobs/{mutate,validate}``. Templates of pods stay plain data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from kpreempt.analysis.document_reader import NEW, Document, DocumentReader, describe
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.model.volcano import DEFAULT_QUEUE, VOLCANO_SCHEDULER_NAME

_PLUGINS = frozenset(("env", "mpi", "pytorch", "ssh", "svc", "tensorflow"))
_TASKS = "spec.tasks"
# Pods are made one by one; more than any cluster has would take all memory.
MAX_PODS = 200_000
_TASK_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_QUALIFIED_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_MAX_NAME = 63


class VolcanoTask(msgspec.Struct, frozen=True, kw_only=True):
    """Equal pods of a job. ``metadata`` and ``spec`` are those of its template.

    Its pods are made once all tasks of ``depends_on`` run, or any of them with ``waits_for_any``.
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
    """A claim that all pods of a job use; ``claim`` is the specification of one that is made for it."""

    mount_path: str
    claim_name: str
    claim: Document | None


class VolcanoJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job with the webhook's defaults. ``uid`` is ``new`` and ``version`` 0 where the job is not in a cluster yet.

    ``plugins`` are names with their arguments.
    """

    name: str
    namespace: str
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
    """The job that a manifest means, in ``namespace`` if it says none. The document is not changed.

    Raises ``InputError`` where it has not the shape of a job. A job of that shape that the webhook refuses is read all
    the same (``job_refusals``).
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
            raise reader.error(f"is more than {MAX_PODS:,} pods with those before", f"{task.path}.replicas")
    return VolcanoJob(
        name=name,
        namespace=reader.name(metadata, "namespace") or namespace,
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


def job_refusals(job: VolcanoJob, cluster: ClusterSnapshot) -> list[str]:
    """Why no pod group would be made of the job, in the order in which Volcano looks; an empty list where one is.

    Most are the webhook's, in its words; the last are those for which the controller leaves an accepted job as it is.
    Lifecycle policies and what Kubernetes itself says of the templates are not looked at. A queue without a state is
    assumed to be open, as it is once its controller has seen it.
    """
    first = next(_decisive_refusals(job), None)
    return [first] if first else [*_refusals(job), *_refusals_of_queue(job, cluster), *_missing_claims(job, cluster)]


def _task(document: Document, index: int, reader: DocumentReader) -> VolcanoTask:
    path = f"{_TASKS}[{index}]"
    template = reader.mapping(document, "template", path)
    depends_on = reader.mapping(document, "dependsOn", path)
    names = depends_on.get("name") or []
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise reader.error("expected a list of strings", f"{path}.dependsOn.name")
    replicas = reader.int32(document, "replicas", path) or 0
    least = reader.int32(document, "minAvailable", path)
    return VolcanoTask(
        name=reader.text(document, "name", path) or f"default{index}",
        replicas=replicas,
        min_available=replicas if least is None else least,
        metadata=reader.mapping(template, "metadata", f"{path}.template"),
        spec=reader.mapping(template, "spec", f"{path}.template"),
        path=path,
        topology_policy=reader.text(document, "topologyPolicy", path),
        depends_on=names,
        # One alone is waited for either way.
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


def _decisive_refusals(job: VolcanoJob) -> Iterator[str]:
    """Those after which the webhook looks no further."""
    if job.min_available < 0:
        yield "job 'minAvailable' must be >= 0."
    if not job.tasks:
        yield "No task specified in job spec"
    if "mpi" in job.plugins:
        for role in ("master", "worker"):
            if job.task(argument_of(job.plugins["mpi"], role, role)) is None:
                yield f"The specified mpi {role} task was not found"


def _refusals(job: VolcanoJob) -> Iterator[str]:
    seen: set[str] = set()
    for index, task in enumerate(job.tasks):
        where = f"in task: {task.name}, job: {job.name};"
        if task.replicas < 0:
            yield f"'replicas' < 0 {where}"
        if task.min_available < 0:
            yield f"'minAvailable' < 0 {where}"
        elif task.min_available > task.replicas:
            yield f"'minAvailable' is greater than 'replicas' {where}"
        if len(task.name) > _MAX_NAME or not _TASK_NAME.fullmatch(task.name):
            yield f"the task name {task.name} is no DNS label;"
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
    yield from _refusals_of_volumes(job.volumes)
    if not _is_acyclic(job):
        yield "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"


def _refusals_of_volumes(volumes: list[VolcanoVolume]) -> Iterator[str]:
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


def _refusals_of_queue(job: VolcanoJob, cluster: ClusterSnapshot) -> Iterator[str]:
    queue = next((each for each in cluster.queues if each.metadata.name == job.queue), None)
    if queue is not None and queue.status.state not in ("", "Open"):
        yield (f"can only submit job to queue with state `Open`, queue `{job.queue}` status is `{queue.status.state}`;")
    # The scheduler makes the default queue where it is missing.
    if queue is None and job.queue != DEFAULT_QUEUE:
        yield f'unable to find job queue: queues.scheduling.volcano.sh "{job.queue}" not found;'


def _missing_claims(job: VolcanoJob, cluster: ClusterSnapshot) -> Iterator[str]:
    known = {each.key for each in cluster.persistent_volume_claims}
    for volume in job.volumes:
        if volume.claim_name and f"{job.namespace}/{volume.claim_name}" not in known:
            yield (
                f"pvc {volume.claim_name} is not found, the job will be in the Pending state until the PVC is created"
            )


def _is_acyclic(job: VolcanoJob) -> bool:
    """Whether tasks can be begun one after the other.

    A task that is not there is never begun, and one that is named twice only once.
    """
    left = {task.name: task.depends_on for task in job.tasks}
    begun: set[str] = set()
    while left:
        ready = [name for name, needs in left.items() if begun.issuperset(needs) and len(set(needs)) == len(needs)]
        if not ready:
            return False
        for name in ready:
            del left[name]
        begun.update(ready)
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
