"""Which kinds that were not read could change a result about many pods, or a simulation.

For a single pod, its scheduler and admission report this (``schedulers/unread.py``).
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
# Kinds that determine the desired size of an owner, and its own owner; pods refer to the first of each pair.
_OWNERS = (
    ("ReplicaSet", "ReplicaSet"),
    ("ReplicaSet", "Deployment"),
    ("StatefulSet", "StatefulSet"),
    ("ReplicationController", "ReplicationController"),
)


def unread_events(cluster: ClusterSnapshot) -> list[Assumption]:
    """Events that could not be read, for results that show when pods were tried. Most dumps have none."""
    return unreadable_of(cluster, ["Event"])


def unread_for_budgets(cluster: ClusterSnapshot, protected: Iterable[Pod]) -> list[Assumption]:
    """What an audit of budgets lacks: budgets, and the owners of protected pods.

    Owners of other pods only matter for the list of workloads without a budget, so they are informational.
    """
    if not cluster.unread:
        return []
    counted, all_kinds = _owner_kinds(protected), _owner_kinds(cluster.pods)
    others = unreadable_of(cluster, [kind for kind in all_kinds if kind not in counted])
    informational = [
        Assumption(each.subject, each.field, each.message, AssumptionKind.INFORMATIONAL) for each in others
    ]
    return [*unread_of(cluster, [BUDGETS, *counted]), *informational]


def unread_in_simulation(
    cluster: ClusterSnapshot, simulation: Simulation, arriving: Sequence[Pod] = ()
) -> list[Assumption]:
    """Kinds that could not be read and may change a simulation; ``cluster`` is the one at the start."""
    if not cluster.unread:
        return []
    victims = {each.pod for each in simulation.displaced}
    displaced = [pod for pod in cluster.pods if pod.key in victims]
    kinds = [BUDGETS, "Service"] if victims else []
    kinds += _owner_kinds([*displaced, *arriving])
    # Whether a replacement gets the current default priority.
    gets_default = any(
        controller_of(pod.metadata) is not None and not pod.spec.priority_class_name and pod.priority == 0
        for pod in displaced
    )
    kinds += ["PriorityClass"] if gets_default and may_have_default(cluster) else []
    # A replacement is admitted again.
    quotas = ["ResourceQuota"] if displaced or arriving else []
    return [*unread_of(cluster, kinds), *unreadable_of(cluster, quotas)]


def _owner_kinds(pods: Iterable[Pod]) -> list[str]:
    direct = {owner.kind for pod in pods if (owner := controller_of(pod.metadata)) is not None}
    return [kind for first, kind in _OWNERS if first in direct]
