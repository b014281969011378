"""The pods in question: those of manifests, one made from a few flags, or one that is in the cluster."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy

import msgspec

from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.workload_pods import (
    WORKLOAD_KINDS,
    PodTemplate,
    joined,
    kind_of,
    pods_of,
    tie_to_node,
)
from kpreempt.errors import InputError, NotFoundError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.devices import ResourceClaim
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.model.pod import Pod, PodStatus
from kpreempt.verdict import Admitted, Assumption
from kpreempt.verdict.unread import missing

__all__ = [
    "InCluster",
    "PodTemplate",
    "Subjects",
    "as_new",
    "for_nodes",
    "in_namespace",
    "kinds_not_needed",
    "pending_again",
    "pod_from_flags",
    "pod_in_cluster",
    "pod_name",
    "pods_of",
    "select",
    "set_aside_namesakes",
    "subjects_of",
]


_OF_VOLUMES = frozenset(
    {
        *("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "VolumeAttachment"),
        *("CSINode", "CSIDriver", "CSIStorageCapacity"),
    }
)
_HARMLESS_SOURCES = frozenset({"name", "emptyDir", "configMap", "secret", "projected", "downwardAPI", "hostPath"})


class Subjects(msgspec.Struct, frozen=True):
    """The pods that some manifests ask for, and a note on each object that asks for none."""

    templates: list[PodTemplate]
    notes: list[str] = []


class InCluster(msgspec.Struct, frozen=True):
    """A pod of the cluster as if it were pending, the cluster without it, and what was changed for that.

    ``found`` is the pod as it is there.
    """

    pod: Pod
    cluster: ClusterSnapshot
    found: Pod
    changes: list[Admitted] = []


def subjects_of(documents: Iterable[tuple[Document, str, int]], namespace: str = DEFAULT_NAMESPACE) -> Subjects:
    """The pods of all documents, each given with its source and line, in order; in ``namespace`` if they say none.

    Raises ``InputError`` for a document that cannot be read, or where no document has a pod.
    """
    templates: list[PodTemplate] = []
    notes: list[str] = []
    sources: dict[str, None] = {}
    for document, source, line in documents:
        sources[source] = None
        found = pods_of(document, source=source, line=line)
        if namespace != DEFAULT_NAMESPACE and found and not document["metadata"].get("namespace"):
            found = [in_namespace(each, namespace) for each in found]
        templates += found
        if not found:
            notes.append(f"{describe(document)} has no pod template and is ignored")
    if not templates:
        kinds = ", ".join(WORKLOAD_KINDS)
        raise InputError(f"no pod in it: expected one of {kinds}", source=", ".join(filter(None, sources)))
    return Subjects(templates, notes)


def select(templates: Sequence[PodTemplate], wanted: str) -> list[PodTemplate]:
    """The templates of ``KIND/NAME``; kinds in any case, short (``deploy``) or plural.

    Raises ``UsageError`` for a text of another shape and ``NotFoundError`` for one that fits nothing, listing what
    there is.
    """
    kind, slash, name = wanted.partition("/")
    if not slash or not kind or not name:
        raise UsageError(f'"{wanted}" does not select an object', hint="KIND/NAME, such as deployment/api")
    found = [each for each in templates if each.name == name and kind_of(kind) == each.kind]
    if not found:
        there = [f"{each.kind.lower()}/{each.name}" for each in templates]
        near = difflib.get_close_matches(f"{kind.lower()}/{name}", there, n=1)
        raise NotFoundError(f'nothing is "{wanted}"; there is: {", ".join(there)}', hint=near[0] if near else "")
    return found


def pod_from_flags(
    *,
    cpu: str = "",
    memory: str = "",
    resources: Mapping[str, str] | None = None,
    priority_class: str = "",
    name: str = "pod",
    namespace: str = DEFAULT_NAMESPACE,
) -> PodTemplate:
    """A pod with one container that asks for these amounts (quantities as text)."""
    requests = dict(resources or {})
    requests |= {key: amount for key, amount in (("cpu", cpu), ("memory", memory)) if amount}
    # The API server wants limits equal to requests for what cannot be overcommitted.
    limits = {key: amount for key, amount in requests.items() if "/" in key or key.startswith("hugepages-")}
    spec: Document = {"containers": [{"name": "main", "resources": {"requests": requests, "limits": limits}}]}
    if priority_class:
        spec["priorityClassName"] = priority_class
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
    return PodTemplate(kind="Pod", name=name, namespace=namespace, document=document)


def kinds_not_needed(templates: Sequence[PodTemplate]) -> frozenset[str]:
    """The kinds that cannot matter to where new pods of these templates land, nor to whom they evict.

    Volumes, claims and what drivers say of them matter to pods with volumes that are mounted from outside: the filters
    that read these kinds let all others pass, whoever else has such volumes. A kind of source that is not known counts
    as one that is.
    """
    is_without = all(not template.claims and _harmless_volumes(template.document.get("spec")) for template in templates)
    return _OF_VOLUMES if templates and is_without else frozenset()


def _harmless_volumes(spec: object) -> bool:
    volumes = spec.get("volumes") or [] if isinstance(spec, dict) else None
    return isinstance(volumes, list) and all(
        isinstance(each, dict) and each.keys() <= _HARMLESS_SOURCES for each in volumes
    )


def in_namespace(template: PodTemplate, namespace: str) -> PodTemplate:
    """The same template in another namespace, with all that belongs to it."""

    def moved(document: Document) -> Document:
        return {**document, "metadata": {**document["metadata"], "namespace": namespace}}

    return msgspec.structs.replace(
        template,
        namespace=namespace,
        origin=f"{template.kind} {namespace}/{template.name}" if template.origin else "",
        document=moved(template.document),
        claims=[moved(claim) for claim in template.claims],
        owners=[moved(owner) for owner in template.owners],
    )


def for_nodes(template: PodTemplate, node_names: Iterable[str]) -> list[PodTemplate]:
    """A DaemonSet's pod once per node, each tied to its node as the controller does."""
    tied = []
    for node_name in node_names:
        document = deepcopy(template.document)
        document["metadata"]["name"] = joined(template.name, node_name)
        tie_to_node(document["spec"], node_name)
        tied.append(msgspec.structs.replace(template, document=document))
    return tied


def pod_in_cluster(cluster: ClusterSnapshot, name: str, namespace: str = DEFAULT_NAMESPACE) -> InCluster:
    """The pod ``NAME`` or ``pod/NAME`` of ``namespace``, which was admitted already.

    A pending pod comes as it is, with its nomination. One that has a node, or has finished, comes as if it had just
    been created, which a change says. Raises ``UsageError`` for another kind and ``NotFoundError`` for a name that
    is not there.
    """
    rest = pod_name(name)
    pod = next((each for each in cluster.pods if each.key == f"{namespace}/{rest}"), None)
    if pod is None:
        elsewhere = sorted(pod.metadata.namespace for pod in cluster.pods if pod.metadata.name == rest)
        if elsewhere:
            hint = f"it is in {', '.join(elsewhere)}: -n {elsewhere[0]}"
            unknown_pod = NotFoundError(f'there is no pod "{rest}" in namespace "{namespace}"', hint=hint)
        else:
            names = [pod.metadata.name for pod in cluster.pods if pod.metadata.namespace == namespace]
            near = difflib.get_close_matches(rest, names, n=3)
            unknown_pod = NotFoundError(
                missing(cluster, "Pod", f'pod "{rest}" in namespace "{namespace}"'), hint=", ".join(near)
            )
        raise unknown_pod
    remaining = msgspec.structs.replace(cluster, pods=[each for each in cluster.pods if each is not pod])
    if not pod.spec.node_name and not pod.is_terminal:
        return InCluster(pod, remaining, pod)
    if pod.spec.resource_claims:
        from kpreempt.controllers.resource_claims import vacated  # noqa: PLC0415 - few pods have devices

        remaining = msgspec.structs.replace(remaining, resource_claims=vacated(cluster.resource_claims, pod))
    state = pod.status.phase or "assigned"
    place = f" on {pod.spec.node_name}" if pod.spec.node_name else ""
    reason = f"{state}{place}; explained as if it were pending, in the cluster without it"
    return InCluster(pending_again(pod), remaining, pod, [Admitted("status.phase", "Pending", reason)])


def pod_name(text: str) -> str:
    """The name that ``NAME`` or ``pod/NAME`` gives. Raises ``UsageError`` for another kind."""
    kind, slash, name = text.rpartition("/")
    if slash and kind_of(kind) != "Pod":
        raise UsageError(f'"{text}" is not a pod', hint=f"pod/{name}, or -f FILE for a manifest")
    return name


def pending_again(pod: Pod) -> Pod:
    """The pod as if it had just been created and no scheduler had seen it."""
    status = PodStatus(phase="Pending", resource_claim_statuses=pod.status.resource_claim_statuses)
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=None, deletion_grace_period_seconds=None)
    spec = msgspec.structs.replace(pod.spec, node_name="")
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec, status=status)


def as_new(pod: Pod) -> Pod:
    """The pod as a new one like it, for which no claims have been made."""
    pod = pending_again(pod)
    return msgspec.structs.replace(pod, status=PodStatus(phase="Pending"))


def set_aside_namesakes(cluster: ClusterSnapshot, new: Iterable[Pod]) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster without the pods that ``new`` ones of the same namespace and name replace."""
    spaces_of: dict[str, set[str]] = {}
    for pod in new:
        spaces_of.setdefault(pod.metadata.name, set()).add(pod.metadata.namespace)
    namesakes = [pod for pod in cluster.pods if pod.metadata.namespace in spaces_of.get(pod.metadata.name, ())]
    if not namesakes:
        return cluster, []
    assumptions = [
        Assumption(f"Pod {pod.key}", "metadata.name", "is in the cluster already; explained as if it were created anew")
        for pod in namesakes
    ]
    pods = [pod for pod in cluster.pods if pod.metadata.namespace not in spaces_of.get(pod.metadata.name, ())]
    return msgspec.structs.replace(cluster, pods=pods, resource_claims=_released(cluster, namesakes)), assumptions


def _released(cluster: ClusterSnapshot, gone: Sequence[Pod]) -> list[ResourceClaim]:
    """The claims for devices without those of pods that are gone."""
    if not any(pod.spec.resource_claims for pod in gone):
        return cluster.resource_claims
    from kpreempt.controllers.resource_claims import released  # noqa: PLC0415 - few pods have devices

    return released(cluster.resource_claims, gone)
