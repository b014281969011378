"""The least priority with which a pod lands that no node takes, over all nodes of the cluster.

What the scheduler decides changes with a pod's priority only where that passes the priority of another pod. So the
priorities just above those are enough. Of these a bound for each node leaves out the ones at which too little would go
from it, and whole verdicts find the least of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.verdict import Code, Status, Verdict
from kpreempt.verdict.details import InsufficientResources

# The highest priority that users may give.
HIGHEST_USER_PRIORITY = 10**9

Reached = tuple[int, Verdict]
# The verdict at a priority, where that brings what is wanted.
Ask = Callable[[int], Verdict | None]


def just_above(pods: Iterable[Pod], pod: Pod) -> list[int]:
    """The priorities above that of ``pod`` that users may give and that outrank one more of ``pods``, ascending."""
    own = pod.priority
    return sorted({each.priority + 1 for each in pods if own <= each.priority < HIGHEST_USER_PRIORITY})


def worth_trying(cluster: ClusterSnapshot, pod: Pod, verdict: Verdict) -> list[int]:
    """The priorities, ascending, below the first of which no node can take the pod.

    ``verdict`` is that on the pod as it is, which lands nowhere, of a scheduler that evicts by priority.
    """
    may_evict = pod.spec.preemption_policy != "Never"
    going: dict[str, list[Pod]] = {}
    for each in cluster.pods:
        node = each.spec.node_name if may_evict else ""
        node = node or ("" if each.spec.node_name else each.status.nominated_node_name)
        if node and not each.is_terminal and each.key != pod.key:
            going.setdefault(node, []).append(each)
    wanted: set[int] = set()
    for name, pods in going.items():
        wanted.update(_of_node(pods, pod, verdict.filter.get(name)))
    return sorted(wanted)


def least(priorities: Sequence[int], ask: Ask, *, only_grows: bool) -> Reached | None:
    """The first of ``priorities`` at which ``ask`` finds what is wanted, with its verdict.

    ``only_grows`` says that what is reached at one priority is reached at every higher one. Where that is not sure they
    are tried one by one.
    """
    if not only_grows:
        answers = ((priority, ask(priority)) for priority in priorities)
        return next(((priority, verdict) for priority, verdict in answers if verdict is not None), None)
    best: Reached | None = None
    failed, reached = -1, len(priorities)
    # The bound is mostly what it takes; and where the highest does not help none does.
    for probe in (0, len(priorities) - 1):
        if failed < probe < reached:
            verdict = ask(priorities[probe])
            if verdict is None:
                failed = probe
            else:
                best, reached = (priorities[probe], verdict), probe
    while best is not None and reached - failed > 1:
        middle = (failed + reached) // 2
        verdict = ask(priorities[middle])
        if verdict is None:
            failed = middle
        else:
            best, reached = (priorities[middle], verdict), middle
    return best


def _of_node(pods: Sequence[Pod], pod: Pod, status: Status | None) -> list[int]:
    """The priorities at which the pods below may be enough for the node; ``pods`` are those that can give way there."""
    wanted = just_above(pods, pod)
    if status is None or not wanted:
        return wanted
    if status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        # But for pods that are nominated there, nothing that has a priority matters.
        return just_above((each for each in pods if not each.spec.node_name), pod)
    if not isinstance(status.detail, InsufficientResources):
        return wanted
    missing = {each.resource: each.missing for each in status.detail.shortfalls}
    lowest = _enough(pods, missing)
    return [] if lowest is None else [priority for priority in wanted if priority > lowest]


def _enough(pods: Sequence[Pod], missing: Mapping[str, int]) -> int | None:
    """The least priority such that the pods up to it may hold as much as is missing of everything."""
    left = dict(missing)
    for each in sorted(pods, key=lambda pod: pod.priority):
        for resource in left:
            left[resource] -= 1 if resource == "pods" else most_requested(each, resource)
        if all(amount <= 0 for amount in left.values()):
            return each.priority
    return None


def most_requested(pod: Pod, resource: str) -> int:
    """An amount that the pod's requests do not exceed, in milli-CPU, bytes or units."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    lists = [
        pod.spec.overhead,
        pod.status.allocated_resources,
        *(each.resources.requests for each in (*pod.spec.containers, *pod.spec.init_containers)),
        *(each.requests for each in (pod.spec.resources, pod.status.resources) if each is not None),
        *(status.allocated_resources for status in statuses),
        *(status.resources.requests for status in statuses if status.resources is not None),
    ]
    amounts = [each[resource] for each in lists if resource in each]
    return sum(amount.milli_value if resource == "cpu" else amount.value for amount in amounts)
