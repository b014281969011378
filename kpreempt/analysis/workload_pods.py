"""The pod of a manifest, as its controller would create it.

Works on plain data, so that overrides can change the pod before it is decoded. What a controller adds to a template
follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/controller_utils.go`` and ``pkg/controller/{deployment,
statefulset,daemon,job,cronjob}``; random parts (hashes, name suffixes) are ``new`` here.

DaemonSets add tolerations and the node affinity; StatefulSets and ephemeral volumes add the claims that must exist
before the pod can be scheduled (``pkg/controller/daemon/util/daemonset_util.go``, ``pkg/controller/statefulset/
stateful_set_utils.go``, ``pkg/controller/volume/ephemeral``).
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

import msgspec

from kpreempt.analysis.document_reader import NEW, Document, DocumentReader, describe
from kpreempt.model.documents import mapping_in
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.model.volcano import BATCH_GROUP
from kpreempt.model.workloads import TEMPLATE_HASH_LABEL

_MAX_NAME = 253
_SET_BY_SERVER = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")

WORKLOAD_KINDS = {
    "Pod": ("po", "pods"),
    "Deployment": ("deploy", "deployments"),
    "StatefulSet": ("sts", "statefulsets"),
    "DaemonSet": ("ds", "daemonsets"),
    "ReplicaSet": ("rs", "replicasets"),
    "ReplicationController": ("rc", "replicationcontrollers"),
    "Job": ("job", "jobs"),
    "CronJob": ("cj", "cronjobs"),
    "PodTemplate": ("podtemplate", "podtemplates"),
}


class PodTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """The pod of a manifest, as plain data.

    ``kind`` and ``name`` are the manifest object's; ``origin`` is ``Deployment shop/api``, or empty for a plain pod.
    ``document`` is the pod as its controller would send it to the API server. ``claims`` and ``owners`` are the claims
    and ReplicaSets that the controllers would create first. ``replicas`` is the desired number of pods; if
    ``in_order``, each is created when the previous one is ready. ``manifest`` is the object itself, which begins on
    ``line`` of the ``text`` of its source. ``rejection`` says why the API server rejects it in every version; its pod
    is then empty.
    """

    kind: str
    name: str
    namespace: str
    document: Document
    origin: str = ""
    replicas: int = 1
    in_order: bool = False
    claims: list[Document] = []
    owners: list[Document] = []
    source: str = ""
    line: int = 0
    manifest: Document | None = None
    text: bytes = b""
    rejection: str = ""


def kind_of(text: str) -> str:
    """The kind for ``deploy``, ``deployments`` or ``Deployment.apps``, as in kubectl; empty if unknown."""
    text = text.partition(".")[0].lower()
    found = (kind for kind, names in WORKLOAD_KINDS.items() if text in (kind.lower(), f"{kind.lower()}s", *names))
    return next(found, "")


def is_volcano_job(document: Document) -> bool:
    """Whether an object is a Volcano ``Job``, in any version."""
    version = document.get("apiVersion")
    return document.get("kind") == "Job" and isinstance(version, str) and version.startswith(f"{BATCH_GROUP}/")


def pods_of(document: Document, *, source: str = "", line: int = 0) -> list[PodTemplate]:
    """The pod of an object; empty for an object without a pod or a pod template.

    A Volcano job has one per task. ``document`` is not modified. Raises ``InputError`` if it does not have the
    structure of its kind.
    """
    if is_volcano_job(document):
        return _pods_of_volcano_job(document, source, line)
    reader = DocumentReader(describe(document), source, line)
    kind = document.get("kind")
    # Objects of an unknown kind may have a pod template in the same place as workloads.
    has_template = isinstance(mapping_in(document, "spec", "template", "spec").get("containers"), list)
    if not isinstance(kind, str) or (kind not in WORKLOAD_KINDS and not has_template):
        return []
    spec = reader.mapping(document, "spec")
    if kind == "Pod":
        pod = deepcopy(document)
        metadata = reader.mapping(pod, "metadata")
        name = reader.name(metadata, "name")
        generate_name = reader.name(metadata, "generateName")
        if not name:
            if not generate_name:
                raise reader.error("a pod must have a name", "metadata.name")
            name = joined(generate_name.rstrip("-"), NEW)
        namespace = reader.name(metadata, "namespace", DEFAULT_NAMESPACE)
        # Fields that the API server sets itself are ignored in a manifest.
        pod.pop("status", None)
        metadata = {key: value for key, value in metadata.items() if key not in _SET_BY_SERVER}
        pod["metadata"] = {**metadata, "name": name, "namespace": namespace}
        return [
            PodTemplate(
                kind="Pod", name=name, namespace=namespace, document=pod, source=reader.source, line=reader.line
            )
        ]
    if kind == "PodTemplate":
        holder, path = document, ""
    elif kind == "CronJob":
        job = reader.mapping(spec, "jobTemplate", "spec")
        holder, path = reader.mapping(job, "spec", "spec.jobTemplate"), "spec.jobTemplate.spec"
    else:
        holder, path = spec, "spec"
    if not isinstance(holder.get("template"), dict):
        raise reader.error("expected a pod template", f"{path}.template".lstrip("."))
    return [_Workload(document, holder, path, reader).template()]


def _pods_of_volcano_job(document: Document, source: str, line: int) -> list[PodTemplate]:
    from kpreempt.analysis.volcano.jobs import (  # noqa: PLC0415 - rarely needed
        claims_of_job,
        first_pod_of_task,
        read_volcano_job,
    )

    job = read_volcano_job(document, source=source, line=line)
    return [
        PodTemplate(
            kind="Job",
            name=job.name,
            namespace=job.namespace,
            document=first_pod_of_task(job, task),
            origin=f"Job {job.namespace}/{job.name}",
            replicas=task.replicas,
            claims=claims_of_job(job),
            source=source,
            line=line,
        )
        for task in job.tasks
        if task.replicas > 0
    ]


def joined(name: str, end: str) -> str:
    """``name-end``, shortened to the maximum length of names."""
    return f"{name[: _MAX_NAME - len(end) - 1].rstrip('-.')}-{end}"


class _Workload:
    """An object with a pod template."""

    def __init__(self, document: Document, holder: Document, path: str, reader: DocumentReader) -> None:
        metadata = reader.mapping(document, "metadata")
        self._document, self._holder = document, holder
        self._path = f"{path}.template".lstrip(".")
        self._reader = reader
        self.kind: str = document["kind"]
        self.name = reader.name(metadata, "name")
        if not self.name:
            raise reader.error("a workload must have a name", "metadata.name")
        self.namespace = reader.name(metadata, "namespace", DEFAULT_NAMESPACE)
        self.uid = reader.name(metadata, "uid")
        self.api_version = reader.name(document, "apiVersion")

    def template(self) -> PodTemplate:
        """The pod that the object's controller would create."""
        template = self._holder["template"]
        metadata = deepcopy(self._reader.mapping(template, "metadata", self._path))
        spec = deepcopy(self._reader.mapping(template, "spec", self._path))
        metadata["labels"] = dict(self._reader.mapping(metadata, "labels", f"{self._path}.metadata"))
        metadata |= {"name": joined(self.name, NEW), "namespace": self.namespace}
        self._own(metadata, self.api_version, self.kind, self.name, self.uid)
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        claims, owners = list[Document](), list[Document]()
        if self.kind == "Deployment":
            owners = [self._replica_set_of(pod)]
        elif self.kind == "StatefulSet":
            claims = self._claims_of(pod)
        elif self.kind == "DaemonSet":
            metadata["labels"] |= {"controller-revision-hash": NEW}
            tolerations = self._reader.mappings(spec, "tolerations", f"{self._path}.spec")
            spec["tolerations"] = add_daemon_tolerations(tolerations, bool(spec.get("hostNetwork")))
        elif self.kind in ("Job", "CronJob"):
            job = self.name if self.kind == "Job" else joined(self.name, NEW)
            metadata["labels"] |= {"job-name": job, "batch.kubernetes.io/job-name": job}
            if self.kind == "CronJob":
                self._own(metadata, "batch/v1", "Job", job)
        elif self.kind == "PodTemplate":
            # No controller creates pods from a bare PodTemplate, so its pod has no owner.
            del metadata["ownerReferences"]
        return PodTemplate(
            kind=self.kind,
            name=self.name,
            namespace=self.namespace,
            origin=f"{self.kind} {self.namespace}/{self.name}",
            document=pod,
            replicas=self._replicas(),
            in_order=self.kind == "StatefulSet" and self._holder.get("podManagementPolicy") != "Parallel",
            claims=claims,
            owners=owners,
            source=self._reader.source,
            line=self._reader.line,
        )

    def _own(self, metadata: Document, api_version: str, kind: str, name: str, uid: str = "") -> None:
        owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}
        metadata["ownerReferences"] = [owner]

    def _replicas(self) -> int:
        if self.kind in ("DaemonSet", "PodTemplate"):
            return 1
        if self.kind not in ("Job", "CronJob"):
            return self._reader.count(self._holder, "replicas", 1)
        parallelism = self._reader.count(self._holder, "parallelism", 1)
        return min(parallelism, self._reader.count(self._holder, "completions", parallelism))

    def _replica_set_of(self, pod: Document) -> Document:
        """Add the ReplicaSet of the template, identified by a hash label in pods and selector."""
        replica_set = joined(self.name, NEW)
        hash_label = {TEMPLATE_HASH_LABEL: NEW}
        pod["metadata"]["labels"] |= hash_label
        self._own(pod["metadata"], "apps/v1", "ReplicaSet", replica_set)
        selector = deepcopy(self._reader.mapping(self._holder, "selector", "spec"))
        selector["matchLabels"] = {**self._reader.mapping(selector, "matchLabels", "spec.selector"), **hash_label}
        metadata: Document = {"name": replica_set, "namespace": self.namespace}
        self._own(metadata, self.api_version, self.kind, self.name, self.uid)
        spec = {"selector": selector, "replicas": self._replicas()}
        return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}

    def _claims_of(self, pod: Document) -> list[Document]:
        """Number the StatefulSet's pod and add its claims, which are created before the pod."""
        ordinal = str(self._reader.count(self._reader.mapping(self._holder, "ordinals", "spec"), "start", 0))
        name = f"{self.name}-{ordinal}"
        pod["metadata"]["name"] = name
        pod["metadata"]["labels"] |= {
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": ordinal,
            "controller-revision-hash": f"{self.name}-{NEW}",
        }
        selector = self._reader.mapping(self._holder, "selector", "spec")
        labels = self._reader.mapping(selector, "matchLabels", "spec.selector")
        claims, volumes = stateful_claims(self._holder, name, self.namespace, labels, self._reader)
        names = {volume["name"] for volume in volumes}
        others = [
            volume
            for volume in self._reader.mappings(pod["spec"], "volumes", f"{self._path}.spec")
            if volume.get("name") not in names
        ]
        pod["spec"]["volumes"] = volumes + others
        return claims


_PREFIX = "node.kubernetes.io/"
_EVERYWHERE = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_ON_HOST_NETWORK = ("network-unavailable", "NoSchedule")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

_TEMPLATES = "spec.volumeClaimTemplates[]"


def add_daemon_tolerations(tolerations: list[Document], host_network: bool) -> list[Document]:
    """Add the tolerations of every DaemonSet pod, replacing existing ones for the same taint."""
    result = deepcopy(tolerations)
    for key, effect in (*_EVERYWHERE, *([_ON_HOST_NETWORK] if host_network else [])):
        toleration = {"key": _PREFIX + key, "operator": "Exists", "effect": effect}
        indexes = [
            index
            for index, existing in enumerate(result)
            if all(
                (existing.get(field) or "") == toleration.get(field, "")
                for field in ("key", "operator", "effect", "value")
            )
        ]
        for index in indexes:
            result[index] = dict(toleration)
        if not indexes:
            result.append(toleration)
    return result


def tie_to_node(spec: Document, node_name: str) -> None:
    """Set the pod's required node affinity to this node, in place; the old affinity has already selected the node."""
    affinity = spec.get("affinity") or {}
    node_affinity = affinity.get("nodeAffinity") or {}
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    spec["affinity"] = {**affinity, "nodeAffinity": {**node_affinity, _REQUIRED: required}}


def stateful_claims(
    spec: Document, pod_name: str, namespace: str, labels: Mapping[str, str], reader: DocumentReader
) -> tuple[list[Document], list[Document]]:
    """The claims of a StatefulSet's pod, and the pod's volumes that use them.

    ``spec`` is the StatefulSet's; ``labels`` are those of its selector, which its claims carry.
    """
    claims, volumes = [], []
    for template in reader.mappings(spec, "volumeClaimTemplates", "spec"):
        metadata = reader.mapping(template, "metadata", _TEMPLATES)
        volume = reader.name(metadata, "name")
        claim_name = f"{volume}-{pod_name}"
        volumes.append({"name": volume, "persistentVolumeClaim": {"claimName": claim_name}})
        claim_labels = {**reader.mapping(metadata, "labels", f"{_TEMPLATES}.metadata"), **labels}
        claim_metadata = {**metadata, "name": claim_name, "namespace": namespace, "labels": claim_labels}
        claims.append(_claim(template, claim_metadata))
    return claims, volumes


def ephemeral_claims(document: Document) -> list[Document]:
    """The claims for the ephemeral volumes of a pod in plain data, which is not modified."""
    metadata, spec = document["metadata"], document.get("spec")
    volumes = spec.get("volumes") if isinstance(spec, dict) else None
    claims = []
    for volume in volumes if isinstance(volumes, list) else []:
        ephemeral = volume.get("ephemeral") if isinstance(volume, dict) else None
        template = ephemeral.get("volumeClaimTemplate") if isinstance(ephemeral, dict) else None
        if not isinstance(template, dict):
            continue
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": metadata["name"],
            "uid": metadata.get("uid") or "",
            "controller": True,
        }
        claim_metadata = {
            **(template.get("metadata") or {}),
            "name": f"{metadata['name']}-{volume.get('name')}",
            "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        }
        claims.append(_claim(template, claim_metadata))
    return claims


def _claim(template: Document, metadata: Document) -> Document:
    return {
        **deepcopy(template),
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": deepcopy(metadata),
    }
