"""NodeResourcesBalancedAllocation prefers nodes whose resources are used evenly.

Follows ``plugins/noderesources/balanced_allocation.go`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.arg_types import RESOURCES, child, duplicate, invalid
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.in_tree import BulkScorePlugin, in_tree
from kpreempt.schedulers.kube.framework.interface import Handle, PluginArgs, PluginError, PreScorePlugin
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.resource_scoring import (
    ResourceScorer,
    balance_afterwards,
    balanced_allocation,
    resource_weights,
    weighted_resources,
)
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict import SUCCESS, Status
from kpreempt.verdict.status import SKIP

_CRASH = "the scheduler crashes at the selectors of device class {}: invalid memory address or nil pointer dereference"

_STATE_KEY = TreeKey("NodeResourcesBalancedAllocation")


class NodeResourcesBalancedAllocation(PreScorePlugin, BulkScorePlugin):
    """Compares the spread between resources before and after the pod."""

    name = "NodeResourcesBalancedAllocation"
    is_local = True

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._handle = handle
        self._skips_best_effort = handle.behavior.skips_balance_without_requests
        self._scorer = ResourceScorer(
            resource_weights(args.get("resources")),
            balanced_allocation if handle.behavior.scores_change_of_balance else balance_afterwards,
            counts_pod_level=handle.behavior.pod_level_resources,
            use_requested=True,
            rounds_by_container=handle.behavior.rounds_requests_by_container,
            devices=handle.cluster.devices_serving if handle.behavior.dra_extended_resource else None,
        )
        self._cluster = handle.cluster if handle.behavior.dra_extended_resource else None

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Skip pods that request none of the resources, so that they do not all go to one node."""
        requests = self._scorer.requests_of(pod)
        if self._skips_best_effort and not any(requests):
            return SKIP
        state.write(_STATE_KEY, (requests, len(nodes) == 1))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return 50 to 100; 75 if the pod changes nothing."""
        prepared = state.read(_STATE_KEY)
        if isinstance(prepared, tuple):
            requests, is_only = prepared
        else:
            # A configuration may disable PreScore; then the requests have not been checked.
            requests, is_only = self._scorer.requests_of(pod), False
            if self._skips_best_effort and not any(requests):
                return 0
        # A single node is chosen without scores.
        if self._cluster is not None and not is_only:
            # Upstream's plugin has no expression cache, and the process crashes if it needs one.
            for (name, _), request in zip(self._scorer.weights, requests, strict=True):
                device_class = self._cluster.classes_of_extended_resources.get(name)
                if not request or device_class is None or node_info.allocatable.scalar.get(name):
                    continue
                if any(each.cel for each in device_class.spec.selectors) and self._cluster.has_devices(node_info):
                    raise PluginError(_CRASH.format(device_class.metadata.name))
        return self._scorer.score(requests, node_info)

    def score_all(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> list[int]:
        """Return the same for many nodes, in columns if the cluster is big enough."""
        prepared = state.read(_STATE_KEY)
        found = None
        if self._handle.tables is not None and isinstance(prepared, tuple):
            from kpreempt.schedulers.kube.bulk.score_columns import scores_at_once  # noqa: PLC0415

            found = scores_at_once(self._scorer, prepared[0], self._handle.tables.amounts_of(nodes))
        return [self.score(state, pod, each) for each in nodes] if found is None else found


def default_args(args: Mapping[str, Any], behavior: Behavior) -> dict[str, Any]:
    """Return the arguments with defaults as loading sets them (``apis/config/v1/defaults.go``)."""
    return {**args, "resources": weighted_resources(args.get("resources"))}


def arg_problems(path: str, args: Mapping[str, Any], behavior: Behavior) -> list[str]:
    """List problems of the arguments at ``path`` (``apis/config/validation/validation_pluginargs.go``)."""
    problems = []
    seen: set[str] = set()
    for index, resource in enumerate(args["resources"]):
        location = f"{child(path, 'resources')}[{index}]"
        if resource["name"] in seen:
            problems.append(duplicate(child(location, "name"), resource["name"]))
        seen.add(resource["name"])
        if resource["weight"] != 1:
            problems.append(invalid(child(location, "weight"), resource["weight"], "must be 1"))
    return problems


PLUGIN = in_tree(
    NodeResourcesBalancedAllocation,
    args={"resources": RESOURCES},
    default_args=default_args,
    arg_problems=arg_problems,
)
