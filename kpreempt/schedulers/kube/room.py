"""How many more pods like one fit on each node as it is, where what a node says hangs on that node alone."""

from __future__ import annotations

from collections.abc import Mapping

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import FrameworkError
from kpreempt.schedulers.kube.framework.node_info import PodInfo
from kpreempt.schedulers.kube.framework.runner import Framework


def room_of_nodes(framework: Framework, pod: Pod, most: int) -> Mapping[str, int] | None:
    """How many such pods each node holds, ``most`` at most; ``None`` where another node's pods could matter.

    One pod after the other takes its room, and where all filters that run look at nothing but the node, it is the same
    in which order nodes are filled.
    """
    volumes = pod.spec.volumes
    if pod.spec.resource_claims or any(each.ephemeral or each.persistent_volume_claim for each in volumes):
        # Each has claims of its own, or all share one, which only one pod may be allowed to use.
        return None
    state = CycleState(records_steps=False)
    try:
        names, status, _ = framework.run_pre_filter(state, pod)
        if not framework.looks_at_nodes_alone(state):
            return None
        if not status.is_success:
            return {}
        cluster = framework.cluster
        info = PodInfo(pod, cluster.behaviour)
        found = {}
        for node_info in cluster.node_infos:
            if names is not None and node_info.name not in names:
                continue
            count = 0
            if framework.run_filters_with_nominated_pods(state, pod, node_info).is_success:
                filled = node_info.snapshot()
                while count < most:
                    count += 1
                    filled.add_pod(info)
                    if not framework.run_filters_with_nominated_pods(state, pod, filled).is_success:
                        break
            if count:
                found[node_info.name] = count
    except FrameworkError:
        return None
    return found
