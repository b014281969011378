"""Whether a pod that no node takes could be held by any state of these nodes."""

from __future__ import annotations

from collections.abc import Callable

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import PluginError
from kpreempt.schedulers.kube.framework.runner import Framework
from kpreempt.schedulers.kube.plugins.node_affinity import NodeAffinity
from kpreempt.schedulers.kube.plugins.node_resources_fit import NodeResourcesFit
from kpreempt.verdict import Status
from kpreempt.verdict.status import is_lasting


def is_refused_for_good(
    framework: Framework, state: CycleState, pod: Pod, status_of: Callable[[str], Status], pre_filter: Status | None
) -> bool:
    """Whether each node refuses the pod whatever runs there, be it by a filter that was not reached.

    ``status_of`` gives every node's status, by its name, ``state`` is the one after PreFilter, and ``pre_filter`` is
    what PreFilter says where it refuses the pod.
    """
    if pre_filter is not None:
        # What a pod requires of its node contradicts itself; all else that is refused there may yet come about.
        return pre_filter.plugin == NodeAffinity.name
    filters = [
        plugin
        for plugin in framework.plugins.filters
        if isinstance(plugin, NodeResourcesFit | NodeAffinity) and plugin.name not in state.skip_filter_plugins
    ]
    try:
        return all(
            is_lasting(status_of(node_info.name))
            or any(is_lasting(plugin.filter(state, pod, node_info)) for plugin in filters)
            for node_info in framework.cluster.node_infos
        )
    except PluginError:
        return False
