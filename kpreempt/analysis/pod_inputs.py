"""The pods of a query, from manifests, flags or the cluster, prepared for a scheduler.

A new pod also needs other new objects: the ReplicaSet that owns it, its claims (for devices, those that a controller
creates from templates), and for a DaemonSet one pod per node. They are added to the cluster unless it has them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Protocol

import msgspec

from kpreempt.admission import (
    DEFAULT_RULES,
    Admission,
    ApiServerRules,
    admit,
    admit_claim,
    admit_priority,
    apply_api_defaults,
)
from kpreempt.admission.records import rejected
from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.explain.pods import ExplainInput
from kpreempt.analysis.explain.rejections import LineOf, rejected_template
from kpreempt.analysis.what_if import Overrides, override_pod, pod_document
from kpreempt.analysis.workload_pods import (
    WORKLOAD_KINDS,
    PodTemplate,
    ephemeral_claims,
    joined,
    kind_of,
    pods_of,
    tie_to_node,
)
from kpreempt.errors import InputError, NotFoundError, UsageError
from kpreempt.model.cluster import ClusterSnapshot, KindState, state_of
from kpreempt.model.meta import DEFAULT_NAMESPACE, replace_in
from kpreempt.model.pod import Pod, PodStatus
from kpreempt.model.storage import PersistentVolumeClaim
from kpreempt.model.workloads import ReplicaSet
from kpreempt.verdict import Assumption, DefaultedField


class Decode(Protocol):
    """Decodes plain data of a kind into its record; raises ``InputError`` with the source and line."""

    def __call__(self, kind: str, document: Document, *, source: str = "", line: int = 0) -> Any:
        """Decode one object."""


class ExplainInputs(msgspec.Struct, frozen=True):
    """Queries with their cluster; ``sizes`` are the numbers of queries per template."""

    cluster: ClusterSnapshot
    inputs: list[ExplainInput]
    sizes: list[int] = []


class _Unadmitted(msgspec.Struct, frozen=True):
    template: PodTemplate
    pod: Pod
    claims: list[PersistentVolumeClaim]
    owners: list[ReplicaSet]
    assumptions: list[Assumption] = []


def inputs_of(
    cluster: ClusterSnapshot,
    templates: Sequence[PodTemplate],
    overrides: Overrides,
    decode: Decode,
    rules: ApiServerRules = DEFAULT_RULES,
) -> ExplainInputs:
    """The query for each template, with overrides and admitted by ``rules``, in order; a DaemonSet has one per node.

    Raises the errors of ``override_pod``, ``decode`` and ``admit``.
    """
    pods: list[_Unadmitted] = []
    sizes = []
    for template in templates:
        document = override_pod(template.document, overrides)
        expanded = _expanded(cluster, msgspec.structs.replace(template, document=document), decode, rules)
        sizes.append(len(expanded))
        pods += expanded
    cluster, namesakes = without_namesakes(cluster, (each.pod for each in pods))
    if any(each.pod.spec.resource_claims for each in pods):
        cluster, claiming = with_device_claims(cluster, [each.pod for each in pods])
        pods = [msgspec.structs.replace(each, pod=pod) for each, pod in zip(pods, claiming, strict=True)]
    # The claims that the cluster lacks, by key, as the API server would store them.
    claims = [claim for each in pods for claim in each.claims]
    known = {claim.key for claim in cluster.persistent_volume_claims} if claims else set()
    new_claims = {claim.key: admit_claim(claim, cluster) for claim in claims if claim.key not in known}
    owners = [owner for each in pods for owner in each.owners]
    existing = {(each.metadata.namespace, each.metadata.name) for each in cluster.replica_sets} if owners else set()
    new_owners = [each for each in owners if (each.metadata.namespace, each.metadata.name) not in existing]
    cluster = msgspec.structs.replace(
        cluster,
        persistent_volume_claims=[*cluster.persistent_volume_claims, *new_claims.values()],
        replica_sets=[*cluster.replica_sets, *new_owners],
    )
    inputs = []
    # Most clusters have nothing that these plugins read.
    plugins = _PodPlugins(cluster, rules.minor) if _has_plugin_objects(cluster) else None
    for each in pods:
        admission = admit(each.pod, cluster, rules)
        by_plugins = plugins.checked(each) if plugins is not None else []
        own_assumptions = [assumption for assumption in namesakes if assumption.subject == f"Pod {each.pod.key}"]
        rejections = []
        if cluster.resource_quotas:
            # Whether quotas would reject the pod.
            from kpreempt.admission.resource_quotas import rejected_by_quotas  # noqa: PLC0415 - few clusters have quotas

            rejections = rejected_by_quotas(admission.pod, cluster)
        created = [new_claims[claim.key] for claim in each.claims if claim.key in new_claims]
        inputs.append(
            ExplainInput(
                pod=admission.pod,
                manifest=each.pod,
                origin=each.template.origin,
                admission=[*(_claim_created(claim, each) for claim in created), *admission.changes],
                assumptions=[*own_assumptions, *each.assumptions, *admission.assumptions, *by_plugins, *rejections],
            )
        )
    return ExplainInputs(cluster, inputs, sizes)


def _has_plugin_objects(cluster: ClusterSnapshot) -> bool:
    return (
        any(each.metadata.namespace == "kube-system" for each in cluster.resource_quotas)
        or state_of(cluster, "Namespace") is KindState.UNREADABLE
        or any(
            each.is_terminating
            or any("/node-selector" in key for key in each.metadata.annotations)
            or any(key.startswith("pod-security.") for key in each.metadata.labels)
            for each in cluster.namespaces
        )
    )


class _PodPlugins:
    """The admission plugins that read a pod's manifest."""

    def __init__(self, cluster: ClusterSnapshot, minor: int) -> None:
        from kpreempt.admission.plugin_state import PluginState  # noqa: PLC0415 - few clusters need it

        self._state = PluginState(cluster)
        self._minor = minor

    def checked(self, each: _Unadmitted) -> list[Assumption]:
        """The assumptions about a pod. Raises ``PodRejectedError``."""
        from kpreempt.admission.pod_plugins import assumptions_of_pod, rejection_of_pod  # noqa: PLC0415

        document = each.template.document
        if reason := rejection_of_pod(document, self._state, self._minor):
            raise rejected(each.pod, reason)
        return list(assumptions_of_pod(document, f"Pod {each.pod.key}", self._state, self._minor))


def input_in_cluster(found: InCluster, overrides: Overrides, decode: Decode) -> ExplainInputs:
    """The query for a pod of the cluster, with overrides; it is already admitted.

    A new priority class is looked up as for a new pod.
    """
    if not overrides:
        return ExplainInputs(found.cluster, [ExplainInput(pod=found.pod, admission=found.changes, found=found.found)])
    pod = apply_api_defaults(decode("Pod", override_pod(pod_document(found.pod), overrides)))
    admission = _reread_priority(pod, found.pod, overrides, found.cluster)
    explain_input = ExplainInput(
        pod=admission.pod,
        admission=[*found.changes, *admission.changes],
        assumptions=admission.assumptions,
        found=found.found,
    )
    return ExplainInputs(found.cluster, [explain_input])


def _expanded(
    cluster: ClusterSnapshot, template: PodTemplate, decode: Decode, rules: ApiServerRules
) -> list[_Unadmitted]:
    """The template's pods: one, or for a DaemonSet one for each node that the controller selects."""
    first = _unadmitted(template, decode)
    if template.kind != "DaemonSet":
        return [first]
    from kpreempt.admission.daemon_sets import daemon_node_names  # noqa: PLC0415 - rarely needed

    names = daemon_node_names(first.pod, cluster.nodes, rules)
    if names:
        return [_unadmitted(each, decode) for each in for_nodes(template, names)]
    message = f"the controller creates no pod on any of the {len(cluster.nodes)} nodes; explained as if it created one"
    assumption = Assumption(template.origin, "spec.template.spec", message)
    return [msgspec.structs.replace(first, assumptions=[assumption])]


def _unadmitted(template: PodTemplate, decode: Decode) -> _Unadmitted:
    decoded = partial(decode, source=template.source, line=template.line)
    claims = [*template.claims, *ephemeral_claims(template.document)]
    return _Unadmitted(
        template=template,
        pod=decoded("Pod", template.document),
        claims=[decoded("PersistentVolumeClaim", claim) for claim in claims],
        owners=[decoded("ReplicaSet", owner) for owner in template.owners],
    )


def _reread_priority(pod: Pod, before: Pod, overrides: Overrides, cluster: ClusterSnapshot) -> Admission:
    """The priority of a pod whose class may have changed since its admission."""
    if pod.spec.priority_class_name != before.spec.priority_class_name and overrides.priority is None:
        policy = pod.spec.preemption_policy if overrides.preemption_policy else None
        pod = replace_in(pod, "spec", priority=None, preemption_policy=policy)
    elif pod.spec.priority is not None or before.spec.priority is None:
        return Admission(pod)
    return admit_priority(pod, cluster)


def _claim_created(claim: PersistentVolumeClaim, created: _Unadmitted) -> DefaultedField:
    class_name = claim.spec.storage_class_name
    value = f"storage class {class_name}" if class_name else "no storage class"
    maker = created.template.origin or f"Pod {created.pod.key}"
    return DefaultedField(f"PersistentVolumeClaim {claim.key}", value, f"created for {maker}")


def with_device_claims(cluster: ClusterSnapshot, pods: Sequence[Pod]) -> tuple[ClusterSnapshot, list[Pod]]:
    """The pods with the claims that are generated for them from the cluster's templates, and the cluster with these."""
    if not any(pod.spec.resource_claims for pod in pods):
        return cluster, list(pods)
    from kpreempt.controllers.resource_claims import with_generated_claims  # noqa: PLC0415 - few pods have devices

    claims, existing = list(cluster.resource_claims), {claim.key for claim in cluster.resource_claims}
    claiming = []
    for pod in pods:
        own, generated = with_generated_claims(pod, cluster.resource_claim_templates, existing)
        claims += generated
        existing.update(claim.key for claim in generated)
        claiming.append(own)
    if len(claims) == len(cluster.resource_claims):
        return cluster, claiming
    return msgspec.structs.replace(cluster, resource_claims=claims), claiming


_OF_VOLUMES = frozenset(
    {
        *("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "VolumeAttachment"),
        *("CSINode", "CSIDriver", "CSIStorageCapacity"),
    }
)
_HARMLESS_SOURCES = frozenset({"name", "emptyDir", "configMap", "secret", "projected", "downwardAPI", "hostPath"})


class Subjects(msgspec.Struct, frozen=True):
    """The pods of some manifests, a note for each object without one, and the ``api_versions`` of all objects."""

    templates: list[PodTemplate]
    notes: list[str] = []
    api_versions: list[str] = []


class InCluster(msgspec.Struct, frozen=True):
    """A pod of the cluster as if it was pending, the cluster without it, and the changes that were made for this.

    ``found`` is the pod as it exists.
    """

    pod: Pod
    cluster: ClusterSnapshot
    found: Pod
    changes: list[DefaultedField] = []


def subjects_of(
    documents: Iterable[tuple[Document, str, int, bytes]],
    namespace: str = DEFAULT_NAMESPACE,
    line_of: LineOf | None = None,
) -> Subjects:
    """The pods of all documents (each with source, line and text), in order; the default namespace is ``namespace``.

    With ``line_of``, pods of objects that every version of the API server rejects are kept with the reason. Raises
    ``InputError`` if a document cannot be read, or if no document has a pod.
    """
    templates: list[PodTemplate] = []
    notes: list[str] = []
    sources: dict[str, None] = {}
    for document, source, line, text in documents:
        sources[source] = None
        rejected = rejected_template(document, source, line, text, line_of) if line_of is not None else None
        found = [rejected] if rejected is not None else pods_of(document, source=source, line=line)
        found = [msgspec.structs.replace(each, manifest=document, text=text) for each in found]
        if namespace != DEFAULT_NAMESPACE and found and not document["metadata"].get("namespace"):
            found = [in_namespace(each, namespace) for each in found]
        templates += found
        if not found:
            notes.append(f"{describe(document)} has no pod template and is ignored")
    if not templates:
        kinds = ", ".join(WORKLOAD_KINDS)
        raise InputError(f"no pod found: expected one of {kinds}", source=", ".join(filter(None, sources)))
    return Subjects(templates, notes)


def select(templates: Sequence[PodTemplate], wanted: str) -> list[PodTemplate]:
    """The templates matching ``KIND/NAME``; kinds in any case, short (``deploy``) or plural.

    Raises ``UsageError`` for another format and ``NotFoundError``, with the existing ones, if nothing matches.
    """
    kind, slash, name = wanted.partition("/")
    if not slash or not kind or not name:
        raise UsageError(f'"{wanted}" does not select an object', hint="use KIND/NAME, such as deployment/api")
    found = [each for each in templates if each.name == name and kind_of(kind) == each.kind]
    if not found:
        existing = [f"{each.kind.lower()}/{each.name}" for each in templates]
        near = difflib.get_close_matches(f"{kind.lower()}/{name}", existing, n=1)
        raise NotFoundError(f'"{wanted}" not found; available: {", ".join(existing)}', hint=near[0] if near else "")
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
    """A pod with one container that requests these amounts (quantities as text)."""
    requests = dict(resources or {})
    requests |= {key: amount for key, amount in (("cpu", cpu), ("memory", memory)) if amount}
    # The API server requires limits equal to requests for resources that cannot be overcommitted.
    limits = {key: amount for key, amount in requests.items() if "/" in key or key.startswith("hugepages-")}
    spec: Document = {"containers": [{"name": "main", "resources": {"requests": requests, "limits": limits}}]}
    if priority_class:
        spec["priorityClassName"] = priority_class
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
    return PodTemplate(kind="Pod", name=name, namespace=namespace, document=document)


def kinds_not_needed(templates: Sequence[PodTemplate]) -> frozenset[str]:
    """The kinds that cannot affect where new pods of these templates are placed, or what they evict.

    Volumes, claims and drivers matter only for pods with external volumes: for all other pods, the filters that read
    these kinds pass. An unknown kind of volume source counts as external.
    """
    is_without = all(not template.claims and _harmless_volumes(template.document.get("spec")) for template in templates)
    return _OF_VOLUMES if templates and is_without else frozenset()


def _harmless_volumes(spec: object) -> bool:
    volumes = spec.get("volumes") or [] if isinstance(spec, dict) else None
    return isinstance(volumes, list) and all(
        isinstance(each, dict) and each.keys() <= _HARMLESS_SOURCES for each in volumes
    )


def in_namespace(template: PodTemplate, namespace: str) -> PodTemplate:
    """The template in another namespace, with everything that belongs to it."""

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
    """A DaemonSet's pod for each node, tied to its node as the controller does."""
    tied = []
    for node_name in node_names:
        document = deepcopy(template.document)
        document["metadata"]["name"] = joined(template.name, node_name)
        tie_to_node(document["spec"], node_name)
        tied.append(msgspec.structs.replace(template, document=document))
    return tied


def pod_in_cluster(cluster: ClusterSnapshot, name: str, namespace: str = DEFAULT_NAMESPACE) -> InCluster:
    """The pod ``NAME`` or ``pod/NAME`` of ``namespace``, already admitted.

    A pending pod is returned as it is, with its nomination. A pod that has a node or has finished is returned as if it
    was just created, and a change says so. Raises ``UsageError`` for another kind and ``NotFoundError`` if the pod does
    not exist.
    """
    rest = pod_name(name)
    pod = next((each for each in cluster.pods if each.key == f"{namespace}/{rest}"), None)
    if pod is None:
        from kpreempt.analysis.targets import unknown_pod  # noqa: PLC0415 - only for this error

        raise unknown_pod(cluster, namespace, rest)
    remaining = msgspec.structs.replace(cluster, pods=[each for each in cluster.pods if each is not pod])
    if not pod.spec.node_name and not pod.is_terminal:
        return InCluster(pod, remaining, pod)
    if pod.spec.resource_claims:
        from kpreempt.controllers.resource_claims import vacated  # noqa: PLC0415 - few pods have devices

        remaining = msgspec.structs.replace(remaining, resource_claims=vacated(cluster.resource_claims, pod))
    state = pod.status.phase or "assigned"
    place = f" on {pod.spec.node_name}" if pod.spec.node_name else ""
    reason = f"{state}{place}; explained as if it was pending, in the cluster without it"
    return InCluster(as_pending(pod), remaining, pod, [DefaultedField("status.phase", "Pending", reason)])


def named_pod(cluster: ClusterSnapshot, text: str, stated: str | None, default: str) -> InCluster:
    """The pod ``NAME``, ``pod/NAME`` or ``NS/NAME``. Raises ``UsageError`` and ``NotFoundError``."""
    from kpreempt.analysis.targets import namespace_of  # noqa: PLC0415 - not needed for manifests

    namespace = namespace_of(cluster, [], text, stated, default)
    return pod_in_cluster(cluster, text.removeprefix(f"{namespace}/"), namespace)


def pod_name(text: str) -> str:
    """The name in ``NAME`` or ``pod/NAME``. Raises ``UsageError`` for another kind."""
    kind, slash, name = text.rpartition("/")
    if slash and kind_of(kind) != "Pod":
        raise UsageError(f'"{text}" is not a pod', hint=f"use pod/{name}, or -f FILE for a manifest")
    return name


def as_pending(pod: Pod) -> Pod:
    """The pod as if it had just been created."""
    status = PodStatus(phase="Pending", resource_claim_statuses=pod.status.resource_claim_statuses)
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=None, deletion_grace_period_seconds=None)
    spec = msgspec.structs.replace(pod.spec, node_name="")
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec, status=status)


def as_new(pod: Pod) -> Pod:
    """The pod as a new copy, without generated claims."""
    pod = as_pending(pod)
    return msgspec.structs.replace(pod, status=PodStatus(phase="Pending"))


def without_namesakes(cluster: ClusterSnapshot, new: Iterable[Pod]) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster without the pods that ``new`` pods of the same namespace and name replace."""
    namespaces_by_name: dict[str, set[str]] = {}
    for pod in new:
        namespaces_by_name.setdefault(pod.metadata.name, set()).add(pod.metadata.namespace)
    namesakes = [pod for pod in cluster.pods if pod.metadata.namespace in namespaces_by_name.get(pod.metadata.name, ())]
    if not namesakes:
        return cluster, []
    assumptions = [
        Assumption(f"Pod {pod.key}", "metadata.name", "already exists; explained as if it was recreated")
        for pod in namesakes
    ]
    pods = [pod for pod in cluster.pods if pod.metadata.namespace not in namespaces_by_name.get(pod.metadata.name, ())]
    claims = cluster.resource_claims
    if any(pod.spec.resource_claims for pod in namesakes):
        from kpreempt.controllers.resource_claims import released  # noqa: PLC0415 - few pods have devices

        claims = released(claims, namesakes)
    return msgspec.structs.replace(cluster, pods=pods, resource_claims=claims), assumptions
