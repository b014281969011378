"""Which kinds that could not be read may change an answer about many pods, or about what follows.

What they change for a single pod its scheduler and its admission say (``schedulers/unread.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.simulation import Simulation
from kpreempt.verdict.unread import unread_of

BUDGETS = "PodDisruptionBudget"
AUTOSCALER = "HorizontalPodAutoscaler"
MUTATING = ("MutatingWebhookConfiguration", "MutatingAdmissionPolicy")
SCALED = frozenset(("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"))
# What says how many pods an owner wants, and what owns it; pods name the first of each pair.
_OWNERS = (
    ("ReplicaSet", "ReplicaSet"),
    ("ReplicaSet", "Deployment"),
    ("StatefulSet", "StatefulSet"),
    ("ReplicationController", "ReplicationController"),
)


def unread_events(cluster: ClusterSnapshot) -> list[Assumption]:
    """That events could not be read, for answers that tell when pods were tried."""
    return unread_of(cluster, ["Event"])


def unread_for_budgets(cluster: ClusterSnapshot, protected: Iterable[Pod]) -> list[Assumption]:
    """What an audit of budgets lacks: budgets, and the owners of the pods that these protect.

    Owners of other pods are only missing among those without a budget.
    """
    if not cluster.unread:
        return []
    counted, there = _owner_kinds(protected), _owner_kinds(cluster.pods)
    others = unread_of(cluster, [kind for kind in there if kind not in counted])
    told = [Assumption(each.subject, each.field, each.message, AssumptionKind.TOLD) for each in others]
    return [*unread_of(cluster, [BUDGETS, *counted]), *told]


def unread_of_changed(cluster: ClusterSnapshot, kinds: Collection[str]) -> list[Assumption]:
    """What could not be read of the kinds of which a change has objects, so that they seem to be new."""
    return unread_of(
        cluster, [*kinds, *(["ReplicaSet"] if "Deployment" in kinds and "ReplicaSet" not in kinds else [])]
    )


def unread_beside_workloads(cluster: ClusterSnapshot, kinds: Collection[str]) -> list[Assumption]:
    """What could not be read and acts on workloads of these kinds that a change alters, and on the pods they make.

    A webhook that is there changes pods in a way that is not evaluated anyway, which is no reason against an answer.
    """
    if not kinds:
        return []
    told = [
        Assumption(each.subject, each.field, each.message, AssumptionKind.TOLD) for each in unread_of(cluster, MUTATING)
    ]
    return [*unread_of(cluster, [AUTOSCALER] if SCALED & set(kinds) else []), *told]


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
    kinds += ["ResourceQuota"] if displaced or arriving else []
    return unread_of(cluster, kinds)


def _owner_kinds(pods: Iterable[Pod]) -> list[str]:
    direct = {owner.kind for pod in pods if (owner := controller_of(pod.metadata)) is not None}
    return [kind for first, kind in _OWNERS if first in direct]


def _gets_default_priority(pod: Pod) -> bool:
    """Whether who takes the pod's place gets today's default priority."""
    is_owned = controller_of(pod.metadata) is not None
    return is_owned and not pod.spec.priority_class_name and pod.priority == 0
