"""Which kinds that were not read may change an answer about many pods, or about what follows.

What they change for a single pod its scheduler and its admission say (``schedulers/unread.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kpreempt.analysis.check.naming import some_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.unread import KindState, state_of
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.check import Change, ChangeKind
from kpreempt.verdict.simulation import Simulation
from kpreempt.verdict.unread import absent, unread_of, unreadable_of

BUDGETS = "PodDisruptionBudget"
AUTOSCALER = "HorizontalPodAutoscaler"
MUTATING = ("MutatingWebhookConfiguration", "MutatingAdmissionPolicy")
QUOTAS = "ResourceQuota"
_MAKES_PODS = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob")
_LOST_WHEN_PRUNED = ("Namespace", "PersistentVolumeClaim", "PersistentVolume", "Service")
SCALED = frozenset(("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"))
# What says how many pods an owner wants, and what owns it; pods name the first of each pair.
_OWNERS = (
    ("ReplicaSet", "ReplicaSet"),
    ("ReplicaSet", "Deployment"),
    ("StatefulSet", "StatefulSet"),
    ("ReplicationController", "ReplicationController"),
)


def unread_events(cluster: ClusterSnapshot) -> list[Assumption]:
    """That events could not be read, for answers that say when pods were tried. Most dumps have none."""
    return unreadable_of(cluster, ["Event"])


def unread_for_budgets(cluster: ClusterSnapshot, protected: Iterable[Pod]) -> list[Assumption]:
    """What an audit of budgets lacks: budgets, and the owners of the pods that these protect.

    Owners of other pods are only missing among those without a budget.
    """
    if not cluster.unread:
        return []
    counted, there = _owner_kinds(protected), _owner_kinds(cluster.pods)
    others = unreadable_of(cluster, [kind for kind in there if kind not in counted])
    told = [Assumption(each.subject, each.field, each.message, AssumptionKind.TOLD) for each in others]
    return [*unread_of(cluster, [BUDGETS, *counted]), *told]


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


def unread_of_changed(cluster: ClusterSnapshot, kinds: Collection[str]) -> list[Assumption]:
    """What could not be read of the kinds of which a change has objects, so that they seem to be new."""
    return unreadable_of(
        cluster, [*kinds, *(["ReplicaSet"] if "Deployment" in kinds and "ReplicaSet" not in kinds else [])]
    )


def unread_beside_workloads(cluster: ClusterSnapshot, kinds: Collection[str]) -> list[Assumption]:
    """What could not be read and acts on workloads of these kinds that a change alters, and on the pods they make.

    A webhook that is there changes pods in a way that is not evaluated anyway, which is no reason against an answer.
    """
    if not kinds:
        return []
    told = [
        Assumption(each.subject, each.field, each.message, AssumptionKind.TOLD)
        for each in unreadable_of(cluster, MUTATING)
    ]
    return [*unreadable_of(cluster, [AUTOSCALER] if SCALED & set(kinds) else []), *told]


def unread_quotas(
    cluster: ClusterSnapshot, changes: Iterable[Change], *, replaces_pods: bool = False
) -> list[Assumption]:
    """That the input has no ResourceQuota, if a change makes pods that one may refuse.

    Workloads that are new count in full, unless their namespace is, too. Of those that are scaled up or replaced it is
    only reported: they run under the quotas that there are.
    """
    unread = cluster.unread.get(QUOTAS)
    if unread is None or unread.state is not KindState.ABSENT:
        return []
    changes = list(changes)
    new = {each.object.partition(" ")[2] for each in changes if each.object.startswith("Namespace ") and _is_new(each)}
    makes = [each for each in changes if each.object.partition(" ")[0] in _MAKES_PODS]
    names = [each.object for each in makes if _is_new(each) and _namespace(each) not in new]
    if names:
        return [absent(QUOTAS, unread, f"one may refuse pods of {some_of(names)}")]
    grown = [each.object for each in makes if each.kind is ChangeKind.SCALED and _grows(each)]
    if grown:
        return [absent(QUOTAS, unread, f"one may refuse more pods of {some_of(grown)}", AssumptionKind.TOLD)]
    if replaces_pods or any(each.kind is ChangeKind.ROLLED for each in makes):
        return [absent(QUOTAS, unread, "one may refuse pods while old ones are still there", AssumptionKind.TOLD)]
    return []


def unread_in_simulation(
    cluster: ClusterSnapshot, simulation: Simulation, arriving: Sequence[Pod] = ()
) -> list[Assumption]:
    """What could not be read, and may let a simulation go otherwise; ``cluster`` is that of the start."""
    if not cluster.unread:
        return []
    gone = {each.pod for each in simulation.displaced}
    displaced = [pod for pod in cluster.pods if pod.key in gone]
    kinds = [BUDGETS, "Service"] if gone else []
    kinds += _owner_kinds([*displaced, *arriving])
    kinds += ["PriorityClass"] if any(map(_gets_default_priority, displaced)) else []
    # A pod that takes the place of another is let in anew.
    quotas = ["ResourceQuota"] if displaced or arriving else []
    return [*unread_of(cluster, kinds), *unreadable_of(cluster, quotas)]


def _is_new(change: Change) -> bool:
    return change.kind is ChangeKind.CREATED and change.replicas != 0


def _grows(change: Change) -> bool:
    return (change.replicas or 0) > (change.replicas_before or 0)


def _namespace(change: Change) -> str:
    return change.object.partition(" ")[2].partition("/")[0]


def _owner_kinds(pods: Iterable[Pod]) -> list[str]:
    direct = {owner.kind for pod in pods if (owner := controller_of(pod.metadata)) is not None}
    return [kind for first, kind in _OWNERS if first in direct]


def _gets_default_priority(pod: Pod) -> bool:
    """Whether who takes the pod's place gets today's default priority."""
    is_owned = controller_of(pod.metadata) is not None
    return is_owned and not pod.spec.priority_class_name and pod.priority == 0
