"""All pods of a workload: those that a manifest's controller would make, or that one in the cluster lacks, or more."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from itertools import count, islice
from typing import Any, NamedTuple

import msgspec

from kpreempt.admission import ApiServerRules
from kpreempt.admission.daemon_sets import daemon_node_names
from kpreempt.analysis.document_reader import Document, mapping_in
from kpreempt.analysis.explain.pods import Question
from kpreempt.analysis.questions import (
    Asked,
    Decode,
    InCluster,
    as_new,
    question_in_cluster,
    questions_of,
    with_device_claims,
)
from kpreempt.analysis.what_if import Overrides, pod_document
from kpreempt.analysis.workload_pods import PodTemplate, joined, pods_of, tie_to_node
from kpreempt.controllers.actions import deployment_of, tied_node
from kpreempt.errors import InputError, NotFoundError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of, replace_in
from kpreempt.model.pod import Pod
from kpreempt.model.storage import PersistentVolumeClaim
from kpreempt.model.workloads import Job
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.unread import missing
from kpreempt.verdict.workload import ReplicaScope as Which

_RECORDS: dict[str, Callable[[ClusterSnapshot], Sequence[Any]]] = {
    "Deployment": lambda cluster: cluster.deployments,
    "StatefulSet": lambda cluster: cluster.stateful_sets,
    "DaemonSet": lambda cluster: cluster.daemon_sets,
    "ReplicaSet": lambda cluster: cluster.replica_sets,
    "ReplicationController": lambda cluster: cluster.replication_controllers,
    "Job": lambda cluster: cluster.jobs,
    "CronJob": lambda _cluster: (),
}
_OLDEST = datetime.min.replace(tzinfo=UTC)


class WorkloadName(NamedTuple):
    """What names a workload of the cluster."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """``Deployment shop/web``."""
        return f"{self.kind} {self.namespace}/{self.name}"

    def is_of(self, kind: str, record: Any) -> bool:
        """Whether the record of a kind is this workload's own."""
        return (kind, record.metadata.namespace, record.metadata.name) == self


def workload_name(kind: str, namespace: str, name: str) -> WorkloadName:
    """The workload of that kind. Raises ``UsageError`` for a kind that makes no pods."""
    if kind not in _RECORDS:
        raise UsageError(f"{kind} makes no pods", hint=", ".join(_RECORDS))
    return WorkloadName(kind, namespace, name)


def questions_in_cluster(
    cluster: ClusterSnapshot,
    workload: WorkloadName,
    documents: Iterable[Document],
    overrides: Overrides,
    decode: Decode,
    rules: ApiServerRules,
    replicas: int | None,
) -> tuple[Asked, list[WorkloadQuestion | None]]:
    """The question for the first of its pods that are not on a node, and that about all of them.

    Where all are, it is about one more; with ``replicas`` about so many more. A new pod is made like the newest that it
    has, or of the template where it has none and that is among the ``documents`` of the cluster. Raises
    ``NotFoundError`` where there is no such workload, and ``InputError`` where nothing says what its pods are like.
    """
    own = _pods_of(cluster, workload)
    record = next((each for each in _RECORDS[workload.kind](cluster) if workload.is_of(workload.kind, each)), None)
    document = next((each for each in documents if _names(each, workload)), None)
    if record is None and document is None and not own:
        raise _unknown(cluster, workload)
    there = [pod for pod in own if not pod.is_terminal and pod.metadata.deletion_timestamp is None]
    waiting = [pod for pod in there if not pod.spec.node_name]
    running = len(there) - len(waiting)
    if not own:
        return _of_template(cluster, workload, document, overrides, decode, rules, replicas)
    model = max(waiting or there or own, key=lambda pod: pod.metadata.creation_timestamp or _OLDEST)
    made = _Maker(workload, model, own, cluster, decode)
    if workload.kind == "DaemonSet" and replicas is not None:
        raise UsageError("--replicas: a DaemonSet has one pod on each of its nodes", hint="--capacity")
    lacking = made.lacking(_desired(record, document), there)
    run_requested = [*waiting, *lacking] if replicas is None else list(made.more(replicas))
    which = Which.UNSCHEDULED if run_requested and replicas is None else Which.ADDITIONAL
    if workload.kind == "DaemonSet" and not run_requested:
        # More than one on a node there never is.
        hint = f"pod/{model.metadata.name} explains that one as if it were new"
        raise UsageError(f"{workload} has a pod on each of its nodes already", hint=hint)
    pods = run_requested or list(made.more(1))
    cluster, pods = with_device_claims(made.with_claims(pods), pods)
    told = []
    waiting_keys = {pod.key for pod in waiting}
    if any(pod.key not in waiting_keys for pod in pods):
        message = f"new pods are made like {model.metadata.name}, the newest there is"
        told.append(Assumption(str(workload), "spec.template", message, AssumptionKind.INFORMATIONAL))
    if overrides:
        pods = [question_in_cluster(InCluster(pod, cluster, pod), overrides, decode).questions[0].pod for pod in pods]
    question = Question(pod=pods[0], origin=str(workload), assumptions=told)
    desired = WorkloadQuestion(
        workload=str(workload),
        which=which,
        pods=pods,
        in_order=workload.kind == "StatefulSet"
        and mapping_in(document or {}, "spec").get("podManagementPolicy") != "Parallel",
        running=running,
    )
    return Asked(cluster, [question]), [desired]


def _of_template(
    cluster: ClusterSnapshot,
    workload: WorkloadName,
    document: Document | None,
    overrides: Overrides,
    decode: Decode,
    rules: ApiServerRules,
    replicas: int | None,
) -> tuple[Asked, list[WorkloadQuestion | None]]:
    """The questions about a workload that has no pods at all."""
    # Documents of kpreempt's own dumps have no pod template.
    path = ("spec", "jobTemplate", "spec") if workload.kind == "CronJob" else ("spec",)
    has_template = isinstance(mapping_in(document or {}, *path).get("template"), dict)
    templates = pods_of(document) if document is not None and has_template else []
    if not templates:
        raise InputError(
            f"{workload} has no pods, and the dump does not keep its template",
            hint="-f FILE, the workload's manifest",
        )
    desired = replicas if replicas is not None else max(templates[0].replicas, 1)
    if workload.kind == "DaemonSet" and replicas is None:
        return workload_questions(cluster, templates, overrides, decode, rules, None)
    asked, found = workload_questions(cluster, templates, overrides, decode, rules, desired)
    which = Which.UNSCHEDULED if replicas is None and templates[0].replicas else Which.ADDITIONAL
    if workload.kind == "CronJob" and replicas is None:
        # Each of its Jobs makes its own.
        which = Which.NEW
    return asked, [each and msgspec.structs.replace(each, which=which, running=0) for each in found]


class _Maker:
    """Makes more pods of a workload, like the one that is its ``model``."""

    def __init__(
        self, workload: WorkloadName, model: Pod, own: Sequence[Pod], cluster: ClusterSnapshot, decode: Decode
    ) -> None:
        self._workload, self._model, self._cluster, self._decode = workload, model, cluster, decode
        self._own = {pod.metadata.name for pod in own}
        self._taken = {pod.key for pod in cluster.pods}

    def lacking(self, desired: int | None, there: Sequence[Pod]) -> list[Pod]:
        """The pods that are wanted and not there."""
        if self._workload.kind == "DaemonSet":
            # The model without the node that it is tied to.
            document = pod_document(as_new(self._model))
            affinity = (document["spec"].get("affinity") or {}).get("nodeAffinity") or {}
            affinity.pop("requiredDuringSchedulingIgnoredDuringExecution", None)
            names = daemon_node_names(self._decode("Pod", document), self._cluster.nodes)
            have = {pod.spec.node_name or tied_node(pod) for pod in there}
            pods = []
            for node_name in names:
                if node_name not in have:
                    document = pod_document(as_new(self._model))
                    document["metadata"].pop("uid", None)
                    document["metadata"]["name"] = joined(self._workload.name, node_name)
                    tie_to_node(document["spec"], node_name)
                    pods.append(self._decode("Pod", document))
            return pods
        if desired is None:
            return []
        return list(self.more(max(desired - len(there), 0)))

    def more(self, number: int) -> Iterable[Pod]:
        """So many more."""
        return islice(self._new(), checked_number(number, str(self._workload)))

    def with_claims(self, pods: Sequence[Pod]) -> ClusterSnapshot:
        """The cluster with the claims that a StatefulSet makes for new pods, like those of the model."""
        if self._workload.kind != "StatefulSet":
            return self._cluster
        end, namespace = f"-{self._model.metadata.name}", self._workload.namespace
        there = {claim.key for claim in self._cluster.persistent_volume_claims}
        models = {claim.metadata.name: claim for claim in self._cluster.persistent_volume_claims}
        made: list[PersistentVolumeClaim] = []
        for pod in pods:
            for volume in self._model.spec.volumes:
                source = volume.persistent_volume_claim
                if source is None or not source.claim_name.endswith(end) or source.claim_name not in models:
                    continue
                name = f"{source.claim_name.removesuffix(end)}-{pod.metadata.name}"
                if f"{namespace}/{name}" not in there:
                    like = models[source.claim_name]
                    metadata = msgspec.structs.replace(like.metadata, name=name, annotations={})
                    spec = msgspec.structs.replace(like.spec, volume_name="")
                    made.append(msgspec.structs.replace(like, metadata=metadata, spec=spec))
        claims = [*self._cluster.persistent_volume_claims, *made]
        return msgspec.structs.replace(self._cluster, persistent_volume_claims=claims) if made else self._cluster

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
        """The pod of a StatefulSet that has this number."""
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


def _pods_of(cluster: ClusterSnapshot, workload: WorkloadName) -> list[Pod]:
    """All pods of a workload, also those that have finished or are on their way out."""
    kind, namespace, name = workload
    makers = {(kind, name)}
    if kind == "Deployment":
        makers = {("ReplicaSet", each) for each in _owned(cluster.replica_sets, workload)}
    elif kind == "CronJob":
        makers = {("Job", each) for each in _owned(cluster.jobs, workload)}
    found = []
    for pod in cluster.pods:
        owner = controller_of(pod.metadata) if pod.metadata.namespace == namespace else None
        if owner is None:
            continue
        # A dump may have pods and no ReplicaSets, which are named after their Deployment and its template.
        is_of_set = kind == "Deployment" and owner.kind == "ReplicaSet"
        if (owner.kind, owner.name) in makers or (is_of_set and deployment_of(pod, owner.name) == name):
            found.append(pod)
    return found


def _owned(records: Iterable[Any], workload: WorkloadName) -> list[str]:
    """The names of the records that the workload manages."""
    owners = [(each, controller_of(each.metadata)) for each in records]
    return [
        each.metadata.name
        for each, owner in owners
        if owner is not None
        and (owner.kind, owner.name) == (workload.kind, workload.name)
        and each.metadata.namespace == workload.namespace
    ]


def _desired(record: Any, document: Document | None) -> int | None:
    """How many pods are wanted, where that is known: of Jobs only from the whole object."""
    if document is not None and document.get("kind") == "Job":
        spec, status = mapping_in(document, "spec"), mapping_in(document, "status")
        parallelism = _number(spec, "parallelism")
        completions, succeeded = _number(spec, "completions"), _number(status, "succeeded") or 0
        desired = 1 if parallelism is None else parallelism
        return desired if completions is None else max(min(desired, completions - succeeded), 0)
    if record is None or isinstance(record, Job):
        return None
    replicas: int | None = record.spec.replicas
    return 1 if replicas is None else replicas


def _number(holder: Document, key: str) -> int | None:
    found = holder.get(key)
    return found if isinstance(found, int) else None


def _names(document: Document, workload: WorkloadName) -> bool:
    metadata = mapping_in(document, "metadata")
    return workload == (
        document.get("kind"),
        metadata.get("namespace") or workload.namespace,
        metadata.get("name"),
    )


def _unknown(cluster: ClusterSnapshot, workload: WorkloadName) -> NotFoundError:
    kind, namespace, name = workload
    records = _RECORDS[kind](cluster)
    elsewhere = sorted(each.metadata.namespace for each in records if each.metadata.name == name)
    problem = missing(cluster, kind, f'{kind} "{name}" in namespace "{namespace}"')
    if elsewhere:
        return NotFoundError(problem, hint=f"it is in {', '.join(elsewhere)}: -n {elsewhere[0]}")
    names = [each.metadata.name for each in records if each.metadata.namespace == namespace]
    return NotFoundError(problem, hint=", ".join(difflib.get_close_matches(name, names, n=3)))


class WorkloadQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked about a workload: its ``pods``, in the order in which they are created.

    ``workload`` is ``Deployment shop/web``, or ``Pod shop/web`` for more of one pod. Where they come ``in_order``, each
    is made once the one before it is ready. ``running`` is how many of it are on nodes, of one in the cluster.
    """

    workload: str
    which: Which
    pods: Sequence[Pod]
    in_order: bool = False
    running: int | None = None


# So many pods are put to the scheduler one after the other; each takes it up to some hundredths of a second.
MOST_REPLICAS = 2_000


def checked_number(number: int, workload: str) -> int:
    """The number of pods that are asked about. Raises ``UsageError`` for more than are put to a scheduler."""
    if number > MOST_REPLICAS:
        message = f"{workload}: {number:,} replicas are asked about, and at most {MOST_REPLICAS:,} are tried"
        raise UsageError(message, hint=f"--replicas {MOST_REPLICAS}")
    return number


def workload_questions(
    cluster: ClusterSnapshot,
    templates: Sequence[PodTemplate],
    overrides: Overrides,
    decode: Decode,
    rules: ApiServerRules,
    replicas: int | None,
) -> tuple[Asked, list[WorkloadQuestion | None]]:
    """The question for the first pod of each template, and for those of several pods that about all of them.

    ``replicas`` is how many of each are asked for, ``None`` where the template says it. Raises what ``questions_of``
    raises, and ``UsageError`` where a DaemonSet is to have so many, or there are more than ``MOST_REPLICAS``.
    """
    if replicas is not None and any(template.kind == "DaemonSet" for template in templates):
        raise UsageError("--replicas: a DaemonSet has one pod on each of its nodes", hint="--capacity")
    desired = [
        checked_number(template.replicas if replicas is None else replicas, template.origin or "pod")
        for template in templates
    ]
    expanded = [
        _one_by_one(template, number) if _are_named_apart(template) else [template]
        for template, number in zip(templates, desired, strict=True)
    ]
    asked = questions_of(cluster, [each for group in expanded for each in group], overrides, decode, rules)
    questions, found = iter(asked.questions), []
    sizes, names = iter(asked.sizes), {pod.key for pod in asked.cluster.pods}
    first = []
    for template, group, number in zip(templates, expanded, desired, strict=True):
        own = list(islice(questions, sum(islice(sizes, len(group)))))
        first.append(own[0])
        pods = [each.pod for each in own]
        if len(group) == 1 and template.kind != "DaemonSet":
            pods = [own[0].pod, *islice(copies_of(own[0].pod, names), number - 1)]
            cluster, pods = with_device_claims(asked.cluster, pods)
            asked = msgspec.structs.replace(asked, cluster=cluster)
        found.append(
            WorkloadQuestion(
                workload=template.origin or f"Pod {own[0].pod.key}",
                which=Which.NEW,
                pods=pods,
                in_order=template.in_order,
            )
            if len(pods) > 1 or replicas is not None
            else None
        )
    return Asked(asked.cluster, first), found


def more_of(
    found: InCluster, cluster: ClusterSnapshot, asked: Asked, replicas: int | None
) -> tuple[Asked, list[WorkloadQuestion | None]]:
    """The question about ``replicas`` of a pod of the cluster, the pod itself first where it waits for a node.

    Where it has one, they come beside it: ``asked``, which is about it as if it were new, is asked about one more then.
    """
    question = asked.questions[0]
    pod = question.pod
    if found.changes:
        asked = Asked(cluster, [question])
        cluster, (pod,) = with_device_claims(cluster, [next(copies_of(pod, {each.key for each in cluster.pods}))])
        asked = msgspec.structs.replace(asked, cluster=cluster)
        question = msgspec.structs.replace(question, pod=pod, found=None, admission=question.admission[1:])
    if replicas is None:
        return Asked(asked.cluster, [question]), []
    taken = {each.key for each in asked.cluster.pods} | {pod.key}
    pods = [pod, *islice(copies_of(pod, taken), checked_number(replicas, f"Pod {pod.key}") - 1)]
    cluster, pods = with_device_claims(asked.cluster, pods)
    asked = msgspec.structs.replace(asked, cluster=cluster)
    which = Which.ADDITIONAL if found.changes else Which.NEW
    workload = WorkloadQuestion(workload=f"Pod {found.found.key}", which=which, pods=pods)
    return Asked(asked.cluster, [question]), [workload]


def copies_of(pod: Pod, taken: Container[str]) -> Iterator[Pod]:
    """More pods like one, under names that are not ``taken``, without end."""
    base = as_new(pod)
    for number in count(2):
        name = f"{pod.metadata.name}-{number}"
        if f"{pod.metadata.namespace}/{name}" not in taken:
            yield replace_in(base, "metadata", name=name, uid="")


def _are_named_apart(template: PodTemplate) -> bool:
    """Whether the template's pods differ by more than their names, so that each has to be made on its own."""
    volumes = template.document["spec"].get("volumes")
    return template.kind == "StatefulSet" or any(
        isinstance(each, dict) and "ephemeral" in each for each in (volumes if isinstance(volumes, list) else [])
    )


def _one_by_one(template: PodTemplate, number: int) -> list[PodTemplate]:
    """The template for each of so many pods: of a StatefulSet with the next ordinals, of others with other names."""
    name = template.document["metadata"]["name"]
    stem, _, ordinal = name.rpartition("-")
    first = int(ordinal) if template.kind == "StatefulSet" else 2
    others = (f"{stem}-{first + index}" for index in count(1))
    if template.kind != "StatefulSet":
        others = (f"{name}-{index}" for index in count(2))
    return [template, *(_renamed(template, name, other) for other in islice(others, max(number - 1, 0)))]


def _renamed(template: PodTemplate, name: str, other: str) -> PodTemplate:
    """The template of a pod of another name, with the claims that are named after it."""
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
