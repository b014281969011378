"""All pods of a workload: those that a manifest's controller would make, or that one of the cluster lacks."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import count, islice

import msgspec

from kpreempt.admission import ApiServerRules
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.questions import Asked, Decode, questions_of, with_device_claims
from kpreempt.analysis.subject import InCluster, as_new
from kpreempt.analysis.what_if import Overrides
from kpreempt.analysis.workload_pods import PodTemplate
from kpreempt.errors import UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.verdict.workload import Asked as Which


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
    wanted = [
        checked_number(template.replicas if replicas is None else replicas, template.origin or "pod")
        for template in templates
    ]
    expanded = [
        _one_by_one(template, number) if _are_named_apart(template) else [template]
        for template, number in zip(templates, wanted, strict=True)
    ]
    asked = questions_of(cluster, [each for group in expanded for each in group], overrides, decode, rules)
    questions, found = iter(asked.questions), []
    sizes, names = iter(asked.sizes), {pod.key for pod in asked.cluster.pods}
    first = []
    for template, group, number in zip(templates, expanded, wanted, strict=True):
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
    which = Which.MORE if found.changes else Which.NEW
    workload = WorkloadQuestion(workload=f"Pod {found.found.key}", which=which, pods=pods)
    return Asked(asked.cluster, [question]), [workload]


def copies_of(pod: Pod, taken: Container[str]) -> Iterator[Pod]:
    """More pods like one, under names that are not ``taken``, without end."""
    base = as_new(pod)
    for number in count(2):
        name = f"{pod.metadata.name}-{number}"
        if f"{pod.metadata.namespace}/{name}" not in taken:
            metadata = msgspec.structs.replace(base.metadata, name=name, uid="")
            yield msgspec.structs.replace(base, metadata=metadata)


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
        claim["metadata"]["name"]: _end_replaced(claim["metadata"]["name"], name, other) for claim in template.claims
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


def _end_replaced(text: str, end: str, other: str) -> str:
    return f"{text.removesuffix(end)}{other}"
