"""NodeDeclaredFeatures rejects nodes that do not declare a feature that the pod uses.

Follows ``plugins/nodedeclaredfeatures`` of v1.36.3 and ``k8s.io/component-helpers`` v0.36.3 ``nodedeclaredfeatures``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.events import Action, is_own, on_node, on_pod
from kpreempt.schedulers.kube.framework.in_tree import in_tree
from kpreempt.schedulers.kube.framework.interface import (
    FilterPlugin,
    Handle,
    PluginArgs,
    PreFilterPlugin,
    PreFilterResult,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.verdict import SUCCESS, Code, Status, details
from kpreempt.verdict.status import SKIP

REASON_FEATURES = "node(s) didn't match Pod's required features"
REASON_FEATURES_OLD = "node declared features check failed - unsatisfied requirements"
USER_NAMESPACES = "UserNamespacesHostNetworkSupport"
RESTART_ALL_CONTAINERS = "RestartAllContainers"


def _restarts_all_containers(pod: Pod) -> bool:
    return any(
        rule.action == RESTART_ALL_CONTAINERS
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for rule in container.restart_policy_rules
    )


# Every feature that nodes declare, with a check whether a pod needs it; None for those that scheduling never needs.
FEATURES: Mapping[str, Callable[[Pod], bool] | None] = {
    "ExtendWebSocketsToKubelet": None,
    "InPlacePodLevelResourcesVerticalScaling": None,
    "InPlacePodVerticalScalingInitContainers": None,
    "RestartAllContainersOnContainerExits": _restarts_all_containers,
    USER_NAMESPACES: lambda pod: pod.spec.host_network and pod.spec.host_users is False,
}


_STATE_KEY = TreeKey("NodeDeclaredFeatures")


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin):
    """Compares the features that the pod's spec needs with those in the node's status."""

    name = "NodeDeclaredFeatures"
    is_local = True

    def __init__(
        self, args: PluginArgs, handle: Handle, features: Mapping[str, Callable[[Pod], bool] | None] = FEATURES
    ) -> None:
        self._is_enabled = handle.behavior.node_declared_features
        behavior = handle.behavior
        self._lists_missing = behavior.lists_missing_features
        if not behavior.infers_user_namespaces_on_host_network:
            features = {name: each for name, each in features.items() if name != USER_NAMESPACES}
        self._features = features
        self._known = sorted(features)

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Find the features that the pod needs; skip pods that need none."""
        if not self._is_enabled:
            return None, SKIP
        needed = [name for name, is_needed in self._features.items() if is_needed is not None and is_needed(pod)]
        if not needed:
            return None, SKIP
        state.write(_STATE_KEY, needed)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Reject nodes that lack a required feature."""
        needed = state.read(_STATE_KEY)
        assert isinstance(needed, list)
        declared = known_features(self._known, node_info.node.status.declared_features)
        missing = [name for name in needed if name not in declared]
        if not missing:
            return SUCCESS
        detail = details.MissingFeatures(missing)
        reason = f"{REASON_FEATURES_OLD}: {', '.join(missing)}" if self._lists_missing else REASON_FEATURES
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [reason], detail=detail)


def known_features(known: Sequence[str], declared: Sequence[str]) -> frozenset[str]:
    """Return the declared features that are known.

    Upstream walks both lists in parallel and relies on their being sorted, as the kubelet writes them; entries out of
    order are missed.
    """
    found = set()
    position = 0
    for name in declared:
        while position < len(known) and known[position] < name:
            position += 1
        if position < len(known) and known[position] == name:
            found.add(name)
            position += 1
    return frozenset(found)


def declares_otherwise(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """Return whether the node declares other features than before."""
    return new is not None and (old is None or old.status.declared_features != new.status.declared_features)


PLUGIN = in_tree(
    NodeDeclaredFeatures,
    awaits=lambda: [
        on_node(Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, declares_otherwise),
        on_pod(Action.UPDATE, is_own, is_modeled=False),
    ],
)
