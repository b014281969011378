"""Which nodes can go as autoscalers would have it: nobody is left pending, nobody else goes, no budget breaks.

Who may be moved follows Cluster Autoscaler with its default flags (``cluster-autoscaler/simulator/drainability/rules``,
``utils/drain/drain.go``, and its FAQ, "What types of pods can prevent CA from removing a node?") and Karpenter 1.8 of
``karpenter.sh/do-not-disrupt`` (``pkg/controllers/state/statenode.go``, ``pkg/utils/pod/scheduling.go``). Their other
reasons to keep a node, such as its utilization, its group's least size or its price, are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from kpreempt.analysis.drain.blocked import budgets_selecting
from kpreempt.analysis.drain.runs import SimulatedDrain
from kpreempt.controllers.replacement import is_replaced
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.verdict.drain import Keep, KeepRule, NodeRemoval, NotGoing

# So many nodes at most are tried, and so many decisions times nodes the trials may come to.
_MOST_TRIALS = 60
_MOST_DECISIONS = 3_000_000
_IN_MEMORY = "Memory"


class Removals(msgspec.Struct, frozen=True):
    """The nodes that can go together, in the order in which they were found, and what there is to say of each node."""

    going: list[str]
    nodes: list[NodeRemoval]


def removals(
    cluster: ClusterSnapshot, nodes: Sequence[str], drain: Callable[[Sequence[str]], SimulatedDrain]
) -> Removals:
    """Which of ``nodes`` can go: those with the fewest pods to move are tried first, each beside those that go already.

    This is greedy: another choice might let more of them go.
    """
    by_node: dict[str, list[Pod]] = {name: [] for name in nodes}
    for pod in cluster.pods:
        if pod.spec.node_name in by_node:
            by_node[pod.spec.node_name].append(pod)
    keeps = {name: [each for pod in pods for each in _keeps(pod, cluster)] for name, pods in by_node.items()}
    order = sorted(
        (name for name in nodes if not keeps[name]), key=lambda name: (sum(map(_moves, by_node[name])), name)
    )
    going: list[str] = []
    found = {name: NodeRemoval(node=name, keeps=own) for name, own in keeps.items() if own}
    trials, spent = 0, 0
    for name in order:
        if trials == _MOST_TRIALS or spent > _MOST_DECISIONS:
            found[name] = NodeRemoval(node=name, why=NotGoing.NOT_TRIED)
            continue
        trials += 1
        simulated = drain([*going, name])
        spent += max(simulated.decisions, 1) * len(cluster.nodes)
        why = _why_not(simulated)
        found[name] = NodeRemoval(node=name, goes=why is None, why=why, moves=sum(map(_moves, by_node[name])))
        if why is None:
            going.append(name)
    return Removals(going, [found[name] for name in nodes])


def _why_not(drain: SimulatedDrain) -> NotGoing | None:
    simulation = drain.simulation
    if not drain.is_drained:
        return NotGoing.BLOCKED
    if any(not each.waited_before for each in simulation.waiting):
        return NotGoing.PENDING
    if any(not each.drained for each in simulation.displaced):
        return NotGoing.PREEMPTS
    return NotGoing.BUDGETS if any(each.violations for each in simulation.budgets) else None


def _moves(pod: Pod) -> bool:
    """Whether the pod has to go somewhere else."""
    owner = controller_of(pod.metadata)
    is_of_node = owner is not None and owner.kind in ("DaemonSet", "Node")
    return not (pod.is_terminal or pod.is_mirror or is_of_node)


def _keeps(pod: Pod, cluster: ClusterSnapshot) -> Iterator[Keep]:
    """The rules by which an autoscaler leaves the pod's node."""
    annotations = pod.metadata.annotations
    # Of Karpenter's rule static pods and those of DaemonSets are no exception, but pods that are leaving are.
    is_active = not pod.is_terminal and pod.metadata.deletion_timestamp is None
    if is_active and annotations is not None and annotations.do_not_disrupt == "true":
        yield Keep(rule=KeepRule.DO_NOT_DISRUPT, pod=pod.key)
    if not _moves(pod):
        return
    safe = annotations.safe_to_evict if annotations is not None else ""
    if safe == "false":
        yield Keep(rule=KeepRule.NOT_SAFE_TO_EVICT, pod=pod.key)
    if safe in ("true", "false"):
        return
    if not is_replaced(pod):
        yield Keep(rule=KeepRule.NO_CONTROLLER, pod=pod.key)
    elif pod.metadata.namespace == "kube-system" and not budgets_selecting(cluster, pod):
        yield Keep(rule=KeepRule.SYSTEM_POD, pod=pod.key)
    elif _has_local_storage(pod):
        yield Keep(rule=KeepRule.LOCAL_STORAGE, pod=pod.key)


def _has_local_storage(pod: Pod) -> bool:
    annotations = pod.metadata.annotations
    named = annotations.safe_local_volumes.split(",") if annotations is not None else []
    local = (
        volume.name
        for volume in pod.spec.volumes
        if volume.host_path is not None or (volume.empty_dir is not None and volume.empty_dir.medium != _IN_MEMORY)
    )
    return any(name not in named for name in local)
