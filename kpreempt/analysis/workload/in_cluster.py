"""All pods of a workload: those its manifest would create, those missing in the cluster, or additional ones."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from itertools import count, islice
from typing import Any

import msgspec

from kpreempt.admission import ApiServerRules
from kpreempt.admission.daemon_sets import daemon_node_names, excluded_nodes
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.explain.pods import ExplainInput
from kpreempt.analysis.pod_inputs import (
    Decode,
    ExplainInputs,
    InCluster,
    as_new,
    input_in_cluster,
    inputs_of,
    with_device_claims,
)
from kpreempt.analysis.queue.order import FailedAttempts, in_queue_order
from kpreempt.analysis.what_if import Overrides, pod_document
from kpreempt.analysis.workload_pods import PodTemplate, joined, pods_of, tie_to_node
from kpreempt.controllers.actions import deployment_of, tied_node
from kpreempt.errors import InputError, NotFoundError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import mapping_in
from kpreempt.model.meta import ObjectName, controller_of, replace_in
from kpreempt.model.pod import Pod
from kpreempt.model.storage import PersistentVolumeClaim
from kpreempt.model.workloads import DaemonSetStatus, Job, StatefulSet
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.unread import missing
from kpreempt.verdict.workload import ExcludedNode
from kpreempt.verdict.workload import ReplicaScope as Which

RECORDS: dict[str, Callable[[ClusterSnapshot], Sequence[Any]]] = {
    "Deployment": lambda cluster: cluster.deployments,
    "StatefulSet": lambda cluster: cluster.stateful_sets,
    "DaemonSet": lambda cluster: cluster.daemon_sets,
    "ReplicaSet": lambda cluster: cluster.replica_sets,
    "ReplicationController": lambda cluster: cluster.replication_controllers,
    "Job": lambda cluster: cluster.jobs,
    "CronJob": lambda _cluster: (),
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_OLDEST = datetime.min.replace(tzinfo=UTC)


def workload_name(kind: str, namespace: str, name: str) -> ObjectName:
    """The workload of that kind. Raises ``UsageError`` for a kind that creates no pods."""
    if kind not in RECORDS:
        raise UsageError(f"{kind} creates no pods", hint=", ".join(RECORDS))
    return ObjectName(kind, namespace, name)


def inputs_in_cluster(
    cluster: ClusterSnapshot,
    workload: ObjectName,
    documents: Iterable[Document],
    overrides: Overrides,
    decode: Decode,
    rules: ApiServerRules,
    replicas: int | None,
) -> tuple[ExplainInputs, list[WorkloadInput | None]]:
    """The input for the first of the workload's unscheduled pods, and for all of them.

    If all are scheduled, it covers one more pod; with ``replicas``, that many more. New pods are copies of the newest
    one, or from the template in ``documents`` if there are no pods. Raises ``NotFoundError`` if the workload does not
    exist, and ``InputError`` if nothing shows what its pods look like.
    """
    own = pods_of_workload(cluster, workload)
    record = record_of_workload(cluster, workload)
    document = next((each for each in documents if _names(each, workload)), None)
    if record is None and document is None and not own:
        raise unknown_workload(cluster, workload)
    active = [pod for pod in own if not pod.is_terminal and pod.metadata.deletion_timestamp is None]
    waiting = in_queue_order([pod for pod in active if not pod.spec.node_name], FailedAttempts(cluster.events))
    running = len(active) - len(waiting)
    if not own:
        return _of_template(cluster, workload, record, document, overrides, decode, rules, replicas)
    model = max(waiting or active or own, key=lambda pod: pod.metadata.creation_timestamp or _OLDEST)
    maker = _Maker(workload, model, own, cluster, decode, record, document)
    if workload.kind == "DaemonSet" and replicas is not None:
        raise UsageError("--replicas: not supported for a DaemonSet, which has one pod per node", hint="--capacity")
    missing_pods = maker.missing_pods(_desired(record), active)
    selected = [*waiting, *missing_pods] if replicas is None else list(maker.more(replicas))
    which = Which.UNSCHEDULED if selected and replicas is None else Which.ADDITIONAL
    # A DaemonSet never has more than one pod per node, and a finished Job creates none.
    pods = selected or ([] if workload.kind == "DaemonSet" else list(maker.more(1)))
    cluster, pods = with_device_claims(maker.with_claims(pods), pods)
    assumptions = []
    waiting_keys = {pod.key for pod in waiting}
    if any(pod.key not in waiting_keys for pod in pods):
        message = f"new pods are copies of {model.metadata.name}, the newest pod"
        assumptions.append(Assumption(str(workload), "spec.template", message, AssumptionKind.INFORMATIONAL))
        if workload.kind == "StatefulSet" and record is None:
            message = "unknown, because the StatefulSet is not in the input; assuming OrderedReady, the default"
            assumptions.append(Assumption(str(workload), "spec.podManagementPolicy", message, AssumptionKind.UNCERTAIN))
    if overrides:
        pods = [input_in_cluster(InCluster(pod, cluster, pod), overrides, decode).inputs[0].pod for pod in pods]
    pod = pods[0] if pods else as_new(model)
    explain_input = ExplainInput(pod=pod, origin=str(workload), assumptions=assumptions)
    workload_input = WorkloadInput(
        workload=str(workload),
        scope=which,
        pods=pods,
        existing=sum(pod.key in waiting_keys for pod in pods),
        in_order=workload.kind == "StatefulSet" and (record is None or record.spec.pod_management_policy != "Parallel"),
        running=running,
        is_suspended=_is_suspended(workload, document),
        excluded_nodes=maker.excluded_nodes(),
    )
    return ExplainInputs(cluster, [explain_input]), [workload_input]


def _of_template(
    cluster: ClusterSnapshot,
    workload: ObjectName,
    record: Any,
    document: Document | None,
    overrides: Overrides,
    decode: Decode,
    rules: ApiServerRules,
    replicas: int | None,
) -> tuple[ExplainInputs, list[WorkloadInput | None]]:
    """The input for a workload without pods."""
    # Documents from kpreempt dumps may lack the pod template.
    path = ("spec", "jobTemplate", "spec") if workload.kind == "CronJob" else ("spec",)
    has_template = isinstance(mapping_in(document or {}, *path).get("template"), dict)
    templates = pods_of(document) if document is not None and has_template else []
    if not templates:
        raise InputError(
            f"{workload} has no pods, and the dump lacks its template",
            hint="pass the workload's manifest with -f FILE",
        )
    number = replicas if replicas is not None else max(templates[0].replicas, 1)
    if workload.kind == "DaemonSet" and replicas is None:
        batch, [several] = workload_inputs(cluster, templates, overrides, decode, rules, None)
        pods = several.pods if several is not None else [each.pod for each in batch.inputs]
        maker = _Maker(workload, pods[0], [], cluster, decode, record, document)
        excluded = maker.excluded_nodes()
        if len(excluded) == len(cluster.nodes):
            # There is no node for the only pod.
            pods = []
        workload_input = WorkloadInput(
            workload=str(workload), scope=Which.UNSCHEDULED, pods=pods, running=0, excluded_nodes=excluded
        )
        return batch, [workload_input]
    batch, found = workload_inputs(cluster, templates, overrides, decode, rules, number)
    which = Which.UNSCHEDULED if replicas is None and templates[0].replicas else Which.ADDITIONAL
    if workload.kind == "CronJob" and replicas is None:
        # Each of its Jobs creates its own pods.
        which = Which.NEW
    is_suspended = _is_suspended(workload, document)
    return batch, [
        each and msgspec.structs.replace(each, scope=which, running=0, is_suspended=is_suspended) for each in found
    ]


def _is_suspended(workload: ObjectName, document: Document | None) -> bool:
    """Whether a CronJob creates no Jobs; Jobs themselves have records."""
    return workload.kind == "CronJob" and mapping_in(document or {}, "spec").get("suspend") is True


class _Maker:
    """Creates more pods of a workload, as copies of ``model``."""

    def __init__(
        self,
        workload: ObjectName,
        model: Pod,
        own: Sequence[Pod],
        cluster: ClusterSnapshot,
        decode: Decode,
        record: Any,
        document: Document | None,
    ) -> None:
        self._workload, self._model, self._cluster, self._decode = workload, model, cluster, decode
        self._record, self._document = record, document
        self._own = {pod.metadata.name for pod in own}
        self._taken = {pod.key for pod in cluster.pods}

    def missing_pods(self, desired: int | None, existing: Sequence[Pod]) -> list[Pod]:
        """The desired pods that do not exist."""
        if self._workload.kind == "DaemonSet":
            return self._missing_daemon_pods(existing)
        if desired is not None and isinstance(self._record, StatefulSet):
            stem, _, ordinal = self._model.metadata.name.rpartition("-")
            first = self._record.spec.ordinals
            start = first.start if first is not None else 0
            if stem == self._workload.name and ordinal.isdecimal():
                missing = (each for each in range(start, start + desired) if f"{stem}-{each}" not in self._own)
                ordinals = list(islice(missing, MAX_REPLICAS + 1))
                checked_number(len(ordinals), str(self._workload))
                return [self._numbered(stem, each) for each in ordinals]
        if desired is None:
            return []
        return list(self.more(max(desired - len(existing), 0)))

    def excluded_nodes(self) -> list[ExcludedNode]:
        """The nodes for which a DaemonSet creates no pod; empty if the input does not show its template."""
        template = self._template_pod() if self._workload.kind == "DaemonSet" else None
        return excluded_nodes(template, self._cluster.nodes) if template is not None else []

    def _template_pod(self) -> Pod | None:
        """The DaemonSet's pod before it is tied to a node; ``None`` without the template, whose affinity is lost."""
        spec = mapping_in(self._document or {}, "spec", "template", "spec")
        if not spec:
            return None
        required = mapping_in(spec, "affinity", "nodeAffinity").get(_REQUIRED)
        document = pod_document(as_new(self._model))
        affinity = (document["spec"].get("affinity") or {}).get("nodeAffinity") or {}
        affinity.pop(_REQUIRED, None)
        if required is not None:
            affinity = document["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
            affinity[_REQUIRED] = required
        pod: Pod = self._decode("Pod", document)
        return pod

    def _missing_daemon_pods(self, existing: Sequence[Pod]) -> list[Pod]:
        """The pods for nodes that lack one; none without the template if the controller reports that it has all."""
        nodes_with_pods = {pod.spec.node_name or tied_node(pod) for pod in existing}
        template = self._template_pod()
        if template is None:
            status = self._record.status if self._record is not None else DaemonSetStatus()
            if status.desired_number_scheduled and len(nodes_with_pods) >= status.desired_number_scheduled:
                return []
            document = pod_document(as_new(self._model))
            ((document["spec"].get("affinity") or {}).get("nodeAffinity") or {}).pop(_REQUIRED, None)
            template = self._decode("Pod", document)
        pods = []
        for node_name in daemon_node_names(template, self._cluster.nodes):
            if node_name not in nodes_with_pods:
                document = pod_document(as_new(self._model))
                document["metadata"].pop("uid", None)
                document["metadata"]["name"] = joined(self._workload.name, node_name)
                tie_to_node(document["spec"], node_name)
                pods.append(self._decode("Pod", document))
        return pods

    def more(self, number: int) -> Iterable[Pod]:
        """Yield ``number`` additional pods."""
        return islice(self._new(), checked_number(number, str(self._workload)))

    def with_claims(self, pods: Sequence[Pod]) -> ClusterSnapshot:
        """The cluster with the claims that a StatefulSet creates for new pods, copied from those of the model."""
        if self._workload.kind != "StatefulSet":
            return self._cluster
        end, namespace = f"-{self._model.metadata.name}", self._workload.namespace
        existing = {claim.key for claim in self._cluster.persistent_volume_claims}
        models = {claim.metadata.name: claim for claim in self._cluster.persistent_volume_claims}
        new_claims: list[PersistentVolumeClaim] = []
        for pod in pods:
            for volume in self._model.spec.volumes:
                source = volume.persistent_volume_claim
                if source is None or not source.claim_name.endswith(end) or source.claim_name not in models:
                    continue
                name = f"{source.claim_name.removesuffix(end)}-{pod.metadata.name}"
                if f"{namespace}/{name}" not in existing:
                    model_claim = models[source.claim_name]
                    metadata = msgspec.structs.replace(model_claim.metadata, name=name, annotations={})
                    spec = msgspec.structs.replace(model_claim.spec, volume_name="")
                    new_claims.append(msgspec.structs.replace(model_claim, metadata=metadata, spec=spec))
        claims = [*self._cluster.persistent_volume_claims, *new_claims]
        return msgspec.structs.replace(self._cluster, persistent_volume_claims=claims) if new_claims else self._cluster

    def _new(self) -> Iterable[Pod]:
        if self._workload.kind != "StatefulSet":
            # A Deployment's pods are named after their ReplicaSet.
            owner = controller_of(self._model.metadata)
            base = self._workload.name
            if self._workload.kind == "Deployment":
                base = owner.name if owner is not None else self._model.metadata.name
            metadata = msgspec.structs.replace(
                self._model.metadata, name=joined(base, "new"), uid="", creation_timestamp=None
            )
            first = msgspec.structs.replace(as_new(self._model), metadata=metadata)
            yield first
            yield from copies_of(first, self._taken)
            return
        stem, _, _ = self._model.metadata.name.rpartition("-")
        for number in count():
            if f"{stem}-{number}" not in self._own:
                yield self._numbered(stem, number)

    def _numbered(self, stem: str, number: int) -> Pod:
        """The pod of a StatefulSet with this ordinal."""
        old, name = self._model.metadata.name, f"{stem}-{number}"
        document = pod_document(as_new(self._model))
        labels = dict(document["metadata"].get("labels") or {})
        labels |= {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(number)}
        metadata = {
            key: value for key, value in document["metadata"].items() if key not in ("uid", "creationTimestamp")
        }
        document["metadata"] = {**metadata, "name": name, "labels": labels}
        document["spec"] = deepcopy(document["spec"])
        for volume in document["spec"].get("volumes") or ():
            claim = volume.get("persistentVolumeClaim") or {}
            if str(claim.get("claimName", "")).endswith(f"-{old}"):
                claim["claimName"] = f"{claim['claimName'].removesuffix(old)}{name}"
        pod: Pod = self._decode("Pod", document)
        return pod


def pods_of_workload(cluster: ClusterSnapshot, workload: ObjectName) -> list[Pod]:
    """All pods of a workload, including finished and terminating ones."""
    kind, namespace, name = workload
    owners = {(kind, name)}
    if kind == "Deployment":
        owners = {("ReplicaSet", each) for each in _owned(cluster.replica_sets, workload)}
    elif kind == "CronJob":
        owners = {("Job", each) for each in _owned(cluster.jobs, workload)}
    found = []
    for pod in cluster.pods:
        owner = controller_of(pod.metadata) if pod.metadata.namespace == namespace else None
        if owner is None:
            continue
        # A dump may lack ReplicaSets, which are named after their Deployment and its template.
        is_of_set = kind == "Deployment" and owner.kind == "ReplicaSet"
        if (owner.kind, owner.name) in owners or (is_of_set and deployment_of(pod, owner.name) == name):
            found.append(pod)
    return found


def _owned(records: Iterable[Any], workload: ObjectName) -> list[str]:
    """The names of the records that the workload controls."""
    owners = [(each, controller_of(each.metadata)) for each in records]
    return [
        each.metadata.name
        for each, owner in owners
        if owner is not None
        and (owner.kind, owner.name) == (workload.kind, workload.name)
        and each.metadata.namespace == workload.namespace
    ]


def _desired(record: Any) -> int | None:
    """The desired number of pods, if known."""
    if isinstance(record, Job):
        spec, status = record.spec, record.status
        if any(each.type in ("Complete", "Failed") and each.status == "True" for each in status.conditions):
            return 0
        number = 1 if spec.parallelism is None else spec.parallelism
        return number if spec.completions is None else max(min(number, spec.completions - status.succeeded), 0)
    if record is None:
        return None
    replicas: int | None = record.spec.replicas
    return 1 if replicas is None else replicas


def _names(document: Document, workload: ObjectName) -> bool:
    metadata = mapping_in(document, "metadata")
    return workload == (
        document.get("kind"),
        metadata.get("namespace") or workload.namespace,
        metadata.get("name"),
    )


def record_of_workload(cluster: ClusterSnapshot, workload: ObjectName) -> Any:
    """The workload's record, or ``None``; always ``None`` for a CronJob."""
    return next((each for each in RECORDS[workload.kind](cluster) if workload.is_of(workload.kind, each)), None)


def unknown_workload(cluster: ClusterSnapshot, workload: ObjectName) -> NotFoundError:
    """The error for a workload that is not in the cluster: which one may be meant instead."""
    from kpreempt.analysis.targets import in_namespace, similar_workloads  # noqa: PLC0415 - only for this error

    kind, namespace, name = workload
    problem = missing(cluster, kind, f'{kind} "{name}"{in_namespace(namespace)}')
    return NotFoundError(problem, hint=", ".join(similar_workloads(cluster, *workload)))


class WorkloadInput(msgspec.Struct, frozen=True, kw_only=True):
    """The input for a workload: its ``pods``, in the order in which they are created.

    ``workload`` is ``Deployment shop/web``, or ``Pod shop/web`` for copies of one pod. If ``in_order``, each pod is
    created when the previous one is ready, except the first ``existing`` pods, which are pending, in queue order.
    ``running`` is the number of its pods on nodes, for a workload in the cluster. ``is_suspended``: a CronJob that
    creates no Jobs. A DaemonSet creates no pods for ``excluded_nodes``.
    """

    workload: str
    scope: Which
    pods: Sequence[Pod]
    in_order: bool = False
    existing: int = 0
    running: int | None = None
    is_suspended: bool = False
    excluded_nodes: Sequence[ExcludedNode] = ()


# The maximum number of pods that are scheduled one by one, each of which takes up to some hundredths of a second.
MAX_REPLICAS = 2_000


def checked_number(number: int, workload: str) -> int:
    """Check the number of pods. Raises ``UsageError`` if there are too many."""
    if number > MAX_REPLICAS:
        message = f"{workload}: too many replicas: {number:,} (maximum {MAX_REPLICAS:,})"
        raise UsageError(message, hint=f"--replicas {MAX_REPLICAS}")
    return number


def workload_inputs(
    cluster: ClusterSnapshot,
    templates: Sequence[PodTemplate],
    overrides: Overrides,
    decode: Decode,
    rules: ApiServerRules,
    replicas: int | None,
) -> tuple[ExplainInputs, list[WorkloadInput | None]]:
    """The input for the first pod of each template, and for all pods of templates with several.

    ``replicas`` is the number of pods per template, or ``None`` to use the template's. Raises the errors of
    ``inputs_of``, and ``UsageError`` for ``replicas`` with a DaemonSet, or for more than ``MAX_REPLICAS``.
    """
    if replicas is not None and any(template.kind == "DaemonSet" for template in templates):
        raise UsageError("--replicas: not supported for a DaemonSet, which has one pod per node", hint="--capacity")
    numbers = [
        checked_number(template.replicas if replicas is None else replicas, template.origin or "pod")
        for template in templates
    ]
    expanded = [
        _one_by_one(template, number) if _have_distinct_names(template) else [template]
        for template, number in zip(templates, numbers, strict=True)
    ]
    batch = inputs_of(cluster, [each for group in expanded for each in group], overrides, decode, rules)
    inputs, found = iter(batch.inputs), []
    sizes, names = iter(batch.sizes), {pod.key for pod in batch.cluster.pods}
    first = []
    for template, group, number in zip(templates, expanded, numbers, strict=True):
        own = list(islice(inputs, sum(islice(sizes, len(group)))))
        first.append(own[0])
        pods = [each.pod for each in own]
        if len(group) == 1 and template.kind != "DaemonSet":
            pods = [own[0].pod, *islice(copies_of(own[0].pod, names), number - 1)]
            cluster, pods = with_device_claims(batch.cluster, pods)
            batch = msgspec.structs.replace(batch, cluster=cluster)
        found.append(
            WorkloadInput(
                workload=template.origin or f"Pod {own[0].pod.key}",
                scope=Which.NEW,
                pods=pods,
                in_order=template.in_order,
            )
            if len(pods) > 1 or replicas is not None
            else None
        )
    return ExplainInputs(batch.cluster, first), found


def more_of(
    found: InCluster, cluster: ClusterSnapshot, batch: ExplainInputs, replicas: int | None
) -> tuple[ExplainInputs, list[WorkloadInput | None]]:
    """The input for ``replicas`` copies of a pod in the cluster, starting with the pod itself if it is pending.

    If the pod is running, the copies are additional; ``batch`` is the input that treats the pod as new.
    """
    explain_input = batch.inputs[0]
    pod = explain_input.pod
    if found.changes:
        batch = ExplainInputs(cluster, [explain_input])
        cluster, (pod,) = with_device_claims(cluster, [next(copies_of(pod, {each.key for each in cluster.pods}))])
        batch = msgspec.structs.replace(batch, cluster=cluster)
        explain_input = msgspec.structs.replace(
            explain_input, pod=pod, found=None, admission=explain_input.admission[1:]
        )
    if replicas is None:
        return ExplainInputs(batch.cluster, [explain_input]), []
    taken = {each.key for each in batch.cluster.pods} | {pod.key}
    pods = [pod, *islice(copies_of(pod, taken), checked_number(replicas, f"Pod {pod.key}") - 1)]
    cluster, pods = with_device_claims(batch.cluster, pods)
    batch = msgspec.structs.replace(batch, cluster=cluster)
    which = Which.ADDITIONAL if found.changes else Which.NEW
    workload = WorkloadInput(workload=f"Pod {found.found.key}", scope=which, pods=pods)
    return ExplainInputs(batch.cluster, [explain_input]), [workload]


def copies_of(pod: Pod, taken: Container[str]) -> Iterator[Pod]:
    """Endless copies of a pod, with names that are not ``taken``."""
    base = as_new(pod)
    for number in count(2):
        name = f"{pod.metadata.name}-{number}"
        if f"{pod.metadata.namespace}/{name}" not in taken:
            yield replace_in(base, "metadata", name=name, uid="")


def _have_distinct_names(template: PodTemplate) -> bool:
    """Whether the template's pods differ by more than their names, so that each has to be created separately."""
    volumes = template.document["spec"].get("volumes")
    return template.kind == "StatefulSet" or any(
        isinstance(each, dict) and "ephemeral" in each for each in (volumes if isinstance(volumes, list) else [])
    )


def _one_by_one(template: PodTemplate, number: int) -> list[PodTemplate]:
    """The template for each pod: with the next ordinals for a StatefulSet, otherwise with other names."""
    name = template.document["metadata"]["name"]
    stem, _, ordinal = name.rpartition("-")
    first = int(ordinal) if template.kind == "StatefulSet" else 2
    names = (f"{stem}-{first + index}" for index in count(1))
    if template.kind != "StatefulSet":
        names = (f"{name}-{index}" for index in count(2))
    return [template, *(_renamed(template, name, other) for other in islice(names, max(number - 1, 0)))]


def _renamed(template: PodTemplate, name: str, other: str) -> PodTemplate:
    """The template of a pod with another name, with the claims that are named after it."""
    claims = {
        claim["metadata"]["name"]: f"{claim['metadata']['name'].removesuffix(name)}{other}" for claim in template.claims
    }

    def volume(document: Document) -> Document:
        claim = document.get("persistentVolumeClaim") or {}
        if claim.get("claimName") not in claims:
            return document
        return {**document, "persistentVolumeClaim": {**claim, "claimName": claims[claim["claimName"]]}}

    document = template.document
    metadata = {**document["metadata"], "name": other}
    if template.kind == "StatefulSet":
        numbered = {
            "statefulset.kubernetes.io/pod-name": other,
            "apps.kubernetes.io/pod-index": other.rpartition("-")[2],
        }
        metadata["labels"] = {**metadata["labels"], **numbered}
    spec = document["spec"]
    if spec.get("volumes"):
        spec = {**spec, "volumes": [volume(each) for each in spec["volumes"]]}
    return msgspec.structs.replace(
        template,
        document={**document, "metadata": metadata, "spec": spec},
        claims=[
            {**claim, "metadata": {**claim["metadata"], "name": claims[claim["metadata"]["name"]]}}
            for claim in template.claims
        ],
    )
