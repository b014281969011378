"""Which kinds that were not read may change what a change does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kpreempt.analysis.naming import some_of
from kpreempt.model.cluster import ClusterSnapshot, KindState, state_of
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.check import Change, ChangeKind
from kpreempt.verdict.unread import absent, unreadable_of

_AUTOSCALER = "HorizontalPodAutoscaler"
_MUTATING = ("MutatingWebhookConfiguration", "MutatingAdmissionPolicy")
_QUOTAS = "ResourceQuota"
_LOST_WHEN_PRUNED = ("Namespace", "PersistentVolumeClaim", "PersistentVolume", "Service")
_SCALED = frozenset(("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"))
_MAKES_PODS = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob")


def unread_workloads(cluster: ClusterSnapshot, orphans: Sequence[tuple[str, str]]) -> list[Assumption]:
    """Workloads of a change, each by kind and name, that the input has pods of and doesn't have itself."""
    found = []
    for kind in dict.fromkeys(kind for kind, _ in orphans):
        subjects = [name for each, name in orphans if each == kind]
        if state_of(cluster, kind) is KindState.ABSENT:
            consequence = f"pods of {some_of(subjects)} are there: what the change does is read off these"
            found.append(absent(kind, cluster.unread[kind], consequence, AssumptionKind.ABSENT))
        else:
            message = "the input has its pods, and not itself; how it was before is told from them"
            found += [Assumption(f"{kind} {each}", "spec", message) for each in subjects]
    return found


def unread_pruned(cluster: ClusterSnapshot, pruned: Sequence[tuple[str, str]]) -> list[Assumption]:
    """Kinds of pruned objects, each by kind and description, whose deletion is damage if any are there."""
    found = []
    for kind in dict.fromkeys(kind for kind, _ in pruned if kind in (*_MAKES_PODS, *_LOST_WHEN_PRUNED)):
        names = some_of([described for each, described in pruned if each == kind])
        if state_of(cluster, kind) is KindState.ABSENT:
            consequence = f"what goes when {names} is pruned is unknown"
            found.append(absent(kind, cluster.unread[kind], consequence, AssumptionKind.ABSENT))
        else:
            found += unreadable_of(cluster, [kind])
    return found


def unread_besides_workloads(cluster: ClusterSnapshot, kinds: Collection[str]) -> list[Assumption]:
    """What could not be read and acts on workloads of these kinds that a change alters, and on the pods they make.

    A webhook that is there changes pods in a way that is not evaluated anyway, which is no reason against an answer.
    """
    if not kinds:
        return []
    webhooks = [
        Assumption(each.subject, each.field, each.message, AssumptionKind.INFORMATIONAL)
        for each in unreadable_of(cluster, _MUTATING)
    ]
    return [*unreadable_of(cluster, [_AUTOSCALER] if _SCALED & set(kinds) else []), *webhooks]


def unread_quotas(
    cluster: ClusterSnapshot, changes: Iterable[Change], *, replaces_pods: bool = False
) -> list[Assumption]:
    """That the input has no ResourceQuota, if a change makes pods that one may refuse.

    Workloads that are new count in full, unless their namespace is, too. Of those that are scaled up or replaced it is
    only reported: they run under the quotas that there are.
    """
    unread = cluster.unread.get(_QUOTAS)
    if unread is None or unread.state is not KindState.ABSENT:
        return []
    changes = list(changes)
    new = {each.object.partition(" ")[2] for each in changes if each.object.startswith("Namespace ") and _is_new(each)}
    makes = [each for each in changes if each.object.partition(" ")[0] in _MAKES_PODS]
    names = [
        each.object for each in makes if _is_new(each) and each.object.partition(" ")[2].partition("/")[0] not in new
    ]
    if names:
        return [absent(_QUOTAS, unread, f"one may refuse pods of {some_of(names)}")]
    grown = [
        each.object
        for each in makes
        if each.kind is ChangeKind.SCALED and (each.replicas or 0) > (each.replicas_before or 0)
    ]
    if grown:
        return [absent(_QUOTAS, unread, f"one may refuse more pods of {some_of(grown)}", AssumptionKind.INFORMATIONAL)]
    if replaces_pods or any(each.kind is ChangeKind.ROLLED for each in makes):
        return [
            absent(_QUOTAS, unread, "one may refuse pods while old ones are still there", AssumptionKind.INFORMATIONAL)
        ]
    return []


def _is_new(change: Change) -> bool:
    return change.kind is ChangeKind.CREATED and change.replicas != 0
