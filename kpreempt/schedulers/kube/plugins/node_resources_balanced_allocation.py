"""NodeResourcesBalancedAllocation prefers nodes whose resources are used evenly.

Follows ``plugins/noderesources/balanced_allocation.go`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.interface import Handle, PluginArgs, PreScorePlugin, ScorePlugin
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.resource_scoring import (
    ResourceScorer,
    balance_afterwards,
    balanced_allocation,
    resource_weights,
)
from kpreempt.schedulers.kube.framework.resources import CPU, MEMORY
from kpreempt.verdict import SUCCESS, Status
from kpreempt.verdict.status import SKIP

_STATE_KEY = TreeKey("NodeResourcesBalancedAllocation")


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    """Compares the spread between resources before and after the pod."""

    name = "NodeResourcesBalancedAllocation"
    is_local = True

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._scorer = ResourceScorer(
            resource_weights(args.get("resources")),
            balanced_allocation if handle.behaviour.scores_change_of_balance else balance_afterwards,
            counts_pod_level=handle.behaviour.pod_level_resources,
            use_requested=True,
            rounds_by_container=handle.behaviour.rounds_requests_by_container,
        )

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Skip pods that ask for none of the resources, so that they do not all go to one node."""
        requests = self._scorer.requests_of(pod)
        if not any(requests):
            return SKIP
        state.write(_STATE_KEY, requests)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """50 to 100; 75 where the pod changes nothing."""
        requests = state.read(_STATE_KEY)
        if not isinstance(requests, list):
            # A configuration may leave PreScore out: nobody has looked at the requests then.
            requests = self._scorer.requests_of(pod)
            if not any(requests):
                return 0
        return self._scorer.score(requests, node_info)


def default_args() -> PluginArgs:
    """The arguments that configuration loading fills in."""
    return {"resources": [{"name": CPU, "weight": 1}, {"name": MEMORY, "weight": 1}]}
