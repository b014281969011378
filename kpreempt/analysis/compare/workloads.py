"""The next pod of every workload of a cluster, as its controller would make it.

It is made from the workload's template, where its whole document is at hand; otherwise from the workload's newest pod.
The pods of StatefulSets and DaemonSets take the place of others of theirs, which are gone by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.admission import admit
from kpreempt.analysis.compare.upgrade import Asked
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.explain.pods import Question
from kpreempt.analysis.questions import Decode, questions_of
from kpreempt.analysis.version_rules import api_server_rules, controller_rules
from kpreempt.analysis.what_if import Overrides
from kpreempt.analysis.workload_pods import PodTemplate, pods_of
from kpreempt.controllers.replacement import is_replaced, replacement_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.schedulers.settings import Settings
from kpreempt.verdict import Assumption

# Kinds that are asked about unless something else controls them.
_KINDS = frozenset(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob"))
_IN_PLACE = frozenset(("StatefulSet", "DaemonSet"))
_NEW = "new"
_FINISHED = frozenset(("Complete", "Failed"))
# Kind, namespace and name.
_Workload = tuple[str, str, str]


def keeps_workloads(kind: str, record: Any) -> bool:
    """Whether the document of an object is needed: a workload that nothing else controls."""
    return kind in _KINDS and controller_of(record.metadata) is None


def next_pods(
    cluster: ClusterSnapshot,
    documents: Iterable[Document],
    decode: Decode,
    *,
    now: datetime,
    settings: Settings,
    is_asked: Callable[[str], bool] = lambda _: True,
) -> tuple[list[Asked], list[Assumption]]:
    """The next pod of each workload in a namespace that ``is_asked`` about, and what is assumed of workloads.

    ``settings`` are those of a scheduler of the cluster's version.
    ``documents`` are those that ``keeps_workloads`` kept. A workload of which neither a template nor a pod is known is
    told as an assumption. Raises what ``questions_of`` raises.
    """
    templates, known = _templates(documents)
    templates = [each for each in templates if is_asked(each.namespace)]
    together = [each for each in templates if each.kind not in _IN_PLACE]
    owned = _pods_by_workload(cluster)
    asked = [_asked(cluster, together, decode, settings)] if together else []
    for template in templates:
        if template.kind in _IN_PLACE:
            gone = owned.get((template.kind, template.namespace, template.name), [])
            rest = cluster if template.kind == "StatefulSet" else _without(cluster, gone)
            one = _asked(rest, [template], decode, settings)
            # That its namesake is gone is what it takes for the pod to be made.
            asked.append(Asked(one.cluster, [_without_namesake(each) for each in one.questions]))
    others = {each: pods for each, pods in owned.items() if each not in known and is_asked(each[1])}
    replaced = {each: pods for each, pods in others.items() if is_replaced(pods[0])}
    asked += [_replacement(cluster, workload, pods, now, settings) for workload, pods in replaced.items()]
    return asked, list(_untold(cluster, known, others, is_asked))


def _templates(documents: Iterable[Document]) -> tuple[list[PodTemplate], set[_Workload]]:
    """The templates of workloads, and these; finished Jobs make no pods, and are known all the same."""
    found: list[PodTemplate] = []
    known: set[_Workload] = set()
    for document in documents:
        holder = document.get("spec") or {}
        holder = (holder.get("jobTemplate") or {}).get("spec") or {} if document["kind"] == "CronJob" else holder
        if not (holder.get("template") or {}).get("spec"):
            continue
        metadata = document["metadata"]
        known.add((document["kind"], metadata.get("namespace") or "", metadata["name"]))
        if not _has_finished(document):
            found += pods_of(document)
    return found, known


def _has_finished(document: Document) -> bool:
    conditions = (document.get("status") or {}).get("conditions") or []
    return document["kind"] == "Job" and any(
        each.get("type") in _FINISHED and each.get("status") == "True" for each in conditions
    )


def _asked(cluster: ClusterSnapshot, templates: Sequence[PodTemplate], decode: Decode, settings: Settings) -> Asked:
    found = questions_of(cluster, templates, Overrides(), decode, api_server_rules(settings))
    return Asked(found.cluster, found.questions)


def _without_namesake(question: Question) -> Question:
    kept = [each for each in question.assumptions if each.field != "metadata.name"]
    return msgspec.structs.replace(question, assumptions=kept)


def _pods_by_workload(cluster: ClusterSnapshot) -> dict[_Workload, list[Pod]]:
    """The pods that something controls, by what stands above it: a Deployment rather than its ReplicaSet."""
    above: dict[_Workload, _Workload] = {}
    for kind, records in (("ReplicaSet", cluster.replica_sets), ("Job", cluster.jobs)):
        for record in records:
            owner = controller_of(record.metadata)
            if owner is not None:
                namespace = record.metadata.namespace
                above[kind, namespace, record.metadata.name] = (owner.kind, namespace, owner.name)
    found: dict[_Workload, list[Pod]] = {}
    for pod in cluster.pods:
        owner = controller_of(pod.metadata)
        if owner is not None and owner.kind != "Node":
            own = (owner.kind, pod.metadata.namespace, owner.name)
            found.setdefault(above.get(own, own), []).append(pod)
    return found


def _replacement(
    cluster: ClusterSnapshot, workload: _Workload, pods: Sequence[Pod], now: datetime, settings: Settings
) -> Asked:
    """What takes the place of the workload's newest pod, or for a DaemonSet of each."""
    kind, namespace, name = workload
    newest = max(pods, key=lambda pod: (_created(pod), pod.metadata.name))
    gone = list(pods) if kind == "DaemonSet" else [newest]
    rules = controller_rules(settings)
    made = [replacement_of(pod, suffix=_NEW, uid="", now=now, rules=rules) for pod in gone]
    rest = _without(cluster, gone) if kind in _IN_PLACE else cluster
    questions = []
    for pod in made:
        if pod is not None:
            admission = admit(pod, rest, api_server_rules(settings))
            origin = f"{kind} {namespace}/{name}"
            questions.append(
                Question(pod=admission.pod, manifest=pod, origin=origin, assumptions=admission.assumptions)
            )
    return Asked(rest, questions)


def _created(pod: Pod) -> float:
    created = pod.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0


def _without(cluster: ClusterSnapshot, gone: Sequence[Pod]) -> ClusterSnapshot:
    names = {id(pod) for pod in gone}
    return msgspec.structs.replace(cluster, pods=[pod for pod in cluster.pods if id(pod) not in names])


def _untold(
    cluster: ClusterSnapshot,
    known: set[_Workload],
    others: dict[_Workload, list[Pod]],
    is_asked: Callable[[str], bool],
) -> Iterator[Assumption]:
    """Workloads of which the next pod is not known."""
    records = (
        ("Deployment", cluster.deployments),
        ("StatefulSet", cluster.stateful_sets),
        ("DaemonSet", cluster.daemon_sets),
        ("ReplicaSet", cluster.replica_sets),
        ("ReplicationController", cluster.replication_controllers),
    )
    for kind, of_kind in records:
        for record in of_kind:
            each = (kind, record.metadata.namespace, record.metadata.name)
            if controller_of(record.metadata) is None and is_asked(each[1]) and each not in known | others.keys():
                message = "the cluster as it was read has neither its template nor a pod of it: it is not asked about"
                yield Assumption(f"{kind} {each[1]}/{each[2]}", "spec.template", message)
    for (kind, namespace, name), pods in others.items():
        if not is_replaced(pods[0]):
            message = "what its controller makes next is not known: it is not asked about"
            yield Assumption(f"{kind} {namespace}/{name}", "spec", message)
