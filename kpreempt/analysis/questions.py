"""From the pods that manifests ask for to questions that a scheduler can answer.

A pod that does not exist yet needs other new objects, too: the ReplicaSet that owns it, its claims (for devices, those
that a controller makes from templates), a pod per node for a DaemonSet. They are laid over the cluster,
unless it has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec

from kpreempt.admission import USUAL, Admission, ApiServerRules, admit, admit_claim, admit_priority, apply_api_defaults
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.explain.pods import Question
from kpreempt.analysis.subject import InCluster, PodTemplate, for_nodes, set_aside_namesakes
from kpreempt.analysis.what_if import Overrides, override_pod, pod_document
from kpreempt.analysis.workload_pods import ephemeral_claims
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.storage import PersistentVolumeClaim
from kpreempt.model.workloads import ReplicaSet
from kpreempt.verdict import Admitted, Assumption

_Record = TypeVar("_Record")


class Decode(Protocol):
    """Turns plain data of a kind into its record; raises ``InputError`` with the source and line."""

    def __call__(self, kind: str, document: Document, *, source: str = "", line: int = 0) -> object:
        """Decode one object."""


class Asked(msgspec.Struct, frozen=True):
    """Questions, and the cluster in which they are asked; ``sizes`` are how many questions each template has."""

    cluster: ClusterSnapshot
    questions: list[Question]
    sizes: list[int] = []


class _Unadmitted(msgspec.Struct, frozen=True):
    template: PodTemplate
    pod: Pod
    claims: list[PersistentVolumeClaim]
    owners: list[ReplicaSet]
    assumptions: list[Assumption] = []


def questions_of(
    cluster: ClusterSnapshot,
    templates: Sequence[PodTemplate],
    overrides: Overrides,
    decode: Decode,
    rules: ApiServerRules = USUAL,
) -> Asked:
    """The question for each template, overridden and admitted by ``rules``, in order; a DaemonSet's has one per node.

    Raises what ``override_pod``, ``decode`` and ``admit`` raise.
    """
    pods: list[_Unadmitted] = []
    sizes = []
    for template in templates:
        document = override_pod(template.document, overrides)
        expanded = _expanded(cluster, msgspec.structs.replace(template, document=document), decode, rules)
        sizes.append(len(expanded))
        pods += expanded
    cluster, namesakes = set_aside_namesakes(cluster, (each.pod for each in pods))
    if any(each.pod.spec.resource_claims for each in pods):
        cluster, claiming = with_device_claims(cluster, [each.pod for each in pods])
        pods = [msgspec.structs.replace(each, pod=pod) for each, pod in zip(pods, claiming, strict=True)]
    new_claims = _unknown_claims(cluster, [claim for each in pods for claim in each.claims])
    cluster = msgspec.structs.replace(
        cluster,
        persistent_volume_claims=[*cluster.persistent_volume_claims, *new_claims.values()],
        replica_sets=_with_owners(cluster.replica_sets, [owner for each in pods for owner in each.owners]),
    )
    questions = []
    for each in pods:
        admission = admit(each.pod, cluster, rules)
        mine = [assumption for assumption in namesakes if assumption.subject == f"Pod {each.pod.key}"]
        made = [new_claims[claim.key] for claim in each.claims if claim.key in new_claims]
        questions.append(
            Question(
                pod=admission.pod,
                manifest=each.pod,
                origin=each.template.origin,
                admission=[*(_made(claim, each) for claim in made), *admission.changes],
                assumptions=[
                    *mine,
                    *each.assumptions,
                    *admission.assumptions,
                    *_refused(admission.pod, cluster),
                ],
            )
        )
    return Asked(cluster, questions, sizes)


def _refused(pod: Pod, cluster: ClusterSnapshot) -> list[Assumption]:
    """That quotas would not let the pod be created."""
    if not cluster.resource_quotas:
        return []
    from kpreempt.admission.resource_quotas import refused_by_quotas  # noqa: PLC0415 - few clusters have quotas

    return refused_by_quotas(pod, cluster)


def question_in_cluster(found: InCluster, overrides: Overrides, decode: Decode) -> Asked:
    """The question for a pod of the cluster: overridden, but admitted already.

    A new priority class is looked up as for a new pod.
    """
    if not overrides:
        return Asked(found.cluster, [Question(pod=found.pod, admission=found.changes, found=found.found)])
    pod = apply_api_defaults(_as(Pod, decode("Pod", override_pod(pod_document(found.pod), overrides))))
    admission = _reread_priority(pod, found.pod, overrides, found.cluster)
    question = Question(
        pod=admission.pod,
        admission=[*found.changes, *admission.changes],
        assumptions=admission.assumptions,
        found=found.found,
    )
    return Asked(found.cluster, [question])


def _expanded(
    cluster: ClusterSnapshot, template: PodTemplate, decode: Decode, rules: ApiServerRules
) -> list[_Unadmitted]:
    """The template's pods: one, or for a DaemonSet one for each node that the controller picks."""
    first = _unadmitted(template, decode)
    if template.kind != "DaemonSet":
        return [first]
    from kpreempt.admission.daemon_sets import daemon_node_names  # noqa: PLC0415 - few ask about a DaemonSet

    names = daemon_node_names(first.pod, cluster.nodes, rules)
    if names:
        return [_unadmitted(each, decode) for each in for_nodes(template, names)]
    message = f"the controller makes a pod for none of {len(cluster.nodes)} nodes; explained as if it made one for any"
    assumption = Assumption(template.origin, "spec.template.spec", message)
    return [msgspec.structs.replace(first, assumptions=[assumption])]


def _unadmitted(template: PodTemplate, decode: Decode) -> _Unadmitted:
    def decoded(kind: str, document: Document, record: type[_Record]) -> _Record:
        return _as(record, decode(kind, document, source=template.source, line=template.line))

    claims = [*template.claims, *ephemeral_claims(template.document)]
    return _Unadmitted(
        template=template,
        pod=decoded("Pod", template.document, Pod),
        claims=[decoded("PersistentVolumeClaim", claim, PersistentVolumeClaim) for claim in claims],
        owners=[decoded("ReplicaSet", owner, ReplicaSet) for owner in template.owners],
    )


def _as(record: type[_Record], decoded: object) -> _Record:
    if not isinstance(decoded, record):
        raise TypeError(f"decoding gave {type(decoded).__name__}, not {record.__name__}")
    return decoded


def _reread_priority(pod: Pod, before: Pod, overrides: Overrides, cluster: ClusterSnapshot) -> Admission:
    """The priority of a pod whose class may have changed since it was admitted."""
    if pod.spec.priority_class_name != before.spec.priority_class_name and overrides.priority is None:
        policy = pod.spec.preemption_policy if overrides.preemption_policy else None
        pod = msgspec.structs.replace(
            pod, spec=msgspec.structs.replace(pod.spec, priority=None, preemption_policy=policy)
        )
    elif pod.spec.priority is not None or before.spec.priority is None:
        return Admission(pod)
    return admit_priority(pod, cluster)


def _unknown_claims(
    cluster: ClusterSnapshot, claims: Sequence[PersistentVolumeClaim]
) -> dict[str, PersistentVolumeClaim]:
    """Those claims that the cluster does not have, by key, as the API server would store them."""
    known = {claim.key for claim in cluster.persistent_volume_claims} if claims else set()
    return {claim.key: admit_claim(claim, cluster) for claim in claims if claim.key not in known}


def _with_owners(there: list[ReplicaSet], wanted: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    known = {(each.metadata.namespace, each.metadata.name) for each in there} if wanted else set()
    return [*there, *(each for each in wanted if (each.metadata.namespace, each.metadata.name) not in known)]


def _made(claim: PersistentVolumeClaim, asked: _Unadmitted) -> Admitted:
    class_name = claim.spec.storage_class_name
    value = f"storage class {class_name}" if class_name else "no storage class"
    maker = asked.template.origin or f"Pod {asked.pod.key}"
    return Admitted(f"PersistentVolumeClaim {claim.key}", value, f"made for {maker}")


def with_device_claims(cluster: ClusterSnapshot, pods: Sequence[Pod]) -> tuple[ClusterSnapshot, list[Pod]]:
    """The pods with the claims that are made for them from the templates of the cluster, and the cluster with these."""
    if not any(pod.spec.resource_claims for pod in pods):
        return cluster, list(pods)
    from kpreempt.controllers.resource_claims import with_generated_claims  # noqa: PLC0415 - few pods have devices

    claims, there = list(cluster.resource_claims), {claim.key for claim in cluster.resource_claims}
    claiming = []
    for pod in pods:
        own, made = with_generated_claims(pod, cluster.resource_claim_templates, there)
        claims += made
        there.update(claim.key for claim in made)
        claiming.append(own)
    if len(claims) == len(cluster.resource_claims):
        return cluster, claiming
    return msgspec.structs.replace(cluster, resource_claims=claims), claiming
