"""Which kinds that were not read may change an answer about many pods, or about what follows.

What they change for a single pod its scheduler and its admission say (``schedulers/unread.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpreempt.admission.priority import may_have_default
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.simulation import Simulation
from kpreempt.verdict.unread import unread_of, unreadable_of

BUDGETS = "PodDisruptionBudget"
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
    told = [Assumption(each.subject, each.field, each.message, AssumptionKind.INFORMATIONAL) for each in others]
    return [*unread_of(cluster, [BUDGETS, *counted]), *told]


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
    # Whether who takes a pod's place gets today's default priority.
    gets_default = any(
        controller_of(pod.metadata) is not None and not pod.spec.priority_class_name and pod.priority == 0
        for pod in displaced
    )
    kinds += ["PriorityClass"] if gets_default and may_have_default(cluster) else []
    # A pod that takes the place of another is let in anew.
    quotas = ["ResourceQuota"] if displaced or arriving else []
    return [*unread_of(cluster, kinds), *unreadable_of(cluster, quotas)]


def _owner_kinds(pods: Iterable[Pod]) -> list[str]:
    direct = {owner.kind for pod in pods if (owner := controller_of(pod.metadata)) is not None}
    return [kind for first, kind in _OWNERS if first in direct]
