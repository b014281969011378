"""Placeholders: pods that only keep room free, and that are meant to be evicted.

Kubernetes ("Overprovision node capacity for a cluster") and Cluster Autoscaler's FAQ ("How can I configure
overprovisioning?") document them: pods of negative priority, which do nothing. Whatever needs the room evicts them, and
their pending replacements make an autoscaler add a node. So their evictions are headroom used, not harm.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kpreempt.analysis.check.gate import matches
from kpreempt.analysis.simulation.cluster import Workloads
from kpreempt.model.cluster import ClusterSnapshot, KindState, state_of
from kpreempt.model.meta import grouped
from kpreempt.model.pod import Container, Pod
from kpreempt.schedulers.budgets import SelectingBudgets

_PAUSE = "pause"
_NEVER = "Never"


def placeholders(cluster: ClusterSnapshot, changed: Collection[str], expendable: Sequence[str] = ()) -> frozenset[str]:
    """The workloads whose pods are placeholders, such as ``Deployment headroom/filler``.

    All pods of such a workload were in the cluster before the change and have a negative priority. They are pause
    containers, or they never preempt and neither a Service nor a PodDisruptionBudget selects them. ``expendable`` are
    further workloads, as patterns. Workloads that the change contains are none: nothing in it can make a pod one.
    """
    names, budgets = Workloads(cluster), SelectingBudgets(cluster.pod_disruption_budgets)
    unreadable = any(
        state_of(cluster, kind) not in (KindState.READ, KindState.ABSENT) for kind in ("Service", "PodDisruptionBudget")
    )

    # A class can be changed after its pods were created.
    classes = {each.metadata.name: each.preemption_policy for each in cluster.priority_classes}

    def is_placeholder(pod: Pod) -> bool:
        """Whether the pod only keeps room free."""
        if pod.priority >= 0:
            return False
        is_idle = all(map(_is_pause, pod.spec.containers))
        is_unused = (
            not unreadable
            and not budgets.selecting(pod)
            and not any(each.selects(pod.metadata) for each in cluster.services)
        )
        policies = {pod.spec.preemption_policy, classes.get(pod.spec.priority_class_name)}
        return is_idle or (_NEVER in policies and is_unused)

    assigned = (pod for pod in cluster.pods if pod.spec.node_name and not pod.is_terminal)
    return frozenset(
        name
        for name, pods in grouped(assigned, names.of).items()
        if name not in changed and (all(map(is_placeholder, pods)) or any(matches(each, name) for each in expendable))
    )


def _is_pause(container: Container) -> bool:
    return container.image.rpartition("/")[2].partition("@")[0].partition(":")[0].startswith(_PAUSE)
