"""Which kinds that were not read could change the effect of a change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kpreempt.analysis.check.rollout.kinds import MUTATING, SCALED_KINDS, VALIDATING
from kpreempt.analysis.naming import some_of
from kpreempt.model.cluster import ClusterSnapshot, KindState, state_of
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.check import Change, ChangeKind
from kpreempt.verdict.unread import absent, unreadable_of

_AUTOSCALER = "HorizontalPodAutoscaler"
_QUOTAS = "ResourceQuota"
_DAMAGE_WHEN_PRUNED = ("Namespace", "PersistentVolumeClaim", "PersistentVolume", "Service")
_CREATES_PODS = (
    "Pod",
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "ReplicationController",
    "Job",
    "CronJob",
)


def unread_workloads(cluster: ClusterSnapshot, orphans: Sequence[tuple[str, str]]) -> list[Assumption]:
    """Workloads of a change (kind and name) that have pods in the input but are missing themselves."""
    found = []
    for kind in dict.fromkeys(kind for kind, _ in orphans):
        subjects = [name for each, name in orphans if each == kind]
        if state_of(cluster, kind) is KindState.ABSENT:
            consequence = f"the change to {some_of(subjects)} is derived from the pods"
            found.append(absent(kind, cluster.unread[kind], consequence, AssumptionKind.ABSENT))
        else:
            message = "the input has its pods, but not the object itself; its previous state is derived from them"
            found += [Assumption(f"{kind} {each}", "spec", message) for each in subjects]
    return found


def unread_pruned(cluster: ClusterSnapshot, pruned: Sequence[tuple[str, str]]) -> list[Assumption]:
    """Kinds of pruned objects (kind and description) whose deletion would be damage if any exist."""
    found = []
    for kind in dict.fromkeys(kind for kind, _ in pruned if kind in (*_CREATES_PODS, *_DAMAGE_WHEN_PRUNED)):
        names = some_of([described for each, described in pruned if each == kind])
        if state_of(cluster, kind) is KindState.ABSENT:
            consequence = f"it is unknown what pruning {names} deletes"
            found.append(absent(kind, cluster.unread[kind], consequence, AssumptionKind.ABSENT))
        else:
            found += unreadable_of(cluster, [kind])
    return found


def unread_except_workloads(cluster: ClusterSnapshot, kinds: Collection[str]) -> list[Assumption]:
    """Kinds that could not be read and that act on changed workloads of these kinds and their pods.

    Webhooks are only reported: their changes to pods are not evaluated in any case.
    """
    if not kinds:
        return []
    return [
        *unreadable_of(cluster, [_AUTOSCALER] if not set(kinds).isdisjoint(SCALED_KINDS) else []),
        *_only_reported(cluster, MUTATING),
    ]


def unread_policies(cluster: ClusterSnapshot, changes: Iterable[Change]) -> list[Assumption]:
    """Kinds that could not be read and that may reject objects of a change; they are only reported."""
    not_sent = (ChangeKind.UNCHANGED, ChangeKind.DELETED, ChangeKind.DRAINED)
    return _only_reported(cluster, VALIDATING) if any(each.kind not in not_sent for each in changes) else []


def _only_reported(cluster: ClusterSnapshot, kinds: Iterable[str]) -> list[Assumption]:
    return [
        Assumption(each.subject, each.field, each.message, AssumptionKind.INFORMATIONAL)
        for each in unreadable_of(cluster, kinds)
    ]


def unread_quotas(
    cluster: ClusterSnapshot, changes: Iterable[Change], *, replaces_pods: bool = False
) -> list[Assumption]:
    """The assumption that the cluster has no ResourceQuota, if a change creates pods that one could reject.

    It counts in full for new workloads, unless their namespace is new, too. For workloads that are scaled up or
    replaced, it is informational: they already run under the existing quotas.
    """
    unread = cluster.unread.get(_QUOTAS)
    if unread is None or unread.state is not KindState.ABSENT:
        return []
    changes = list(changes)
    new = {each.object.partition(" ")[2] for each in changes if each.object.startswith("Namespace ") and _is_new(each)}
    pod_changes = [each for each in changes if each.object.partition(" ")[0] in _CREATES_PODS]
    names = [
        each.object
        for each in pod_changes
        if _is_new(each) and each.object.partition(" ")[2].partition("/")[0] not in new
    ]
    if names:
        return [absent(_QUOTAS, unread, f"a quota could reject pods of {some_of(names)}")]
    grown = [
        each.object
        for each in pod_changes
        if each.kind is ChangeKind.SCALED and (each.replicas or 0) > (each.replicas_before or 0)
    ]
    if grown:
        consequence = f"a quota could reject additional pods of {some_of(grown)}"
        return [absent(_QUOTAS, unread, consequence, AssumptionKind.INFORMATIONAL)]
    if replaces_pods or any(each.kind is ChangeKind.ROLLED for each in pod_changes):
        consequence = "a quota could reject new pods while old pods still exist"
        return [absent(_QUOTAS, unread, consequence, AssumptionKind.INFORMATIONAL)]
    return []


def _is_new(change: Change) -> bool:
    return change.kind is ChangeKind.CREATED and change.replicas != 0
