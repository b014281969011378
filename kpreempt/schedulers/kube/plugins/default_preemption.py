"""DefaultPreemption evicts pods of lower priority to make room (``plugins/defaultpreemption``, v1.36.3)."""

from __future__ import annotations

from kpreempt.schedulers.kube.framework.interface import PluginArgs
from kpreempt.schedulers.kube.preemption.odds import num_candidates
from kpreempt.schedulers.kube.preemption.plugin import PreemptionPlugin
from kpreempt.schedulers.kube.preemption.rules import MIN_CANDIDATE_NODES_ABSOLUTE, MIN_CANDIDATE_NODES_PERCENTAGE


class DefaultPreemption(PreemptionPlugin):
    """Preempts by the usual rules; its arguments say how many candidates are enough."""

    name = "DefaultPreemption"

    def num_candidates(self, num_nodes: int) -> int:
        """How many candidates are enough, of so many nodes where evictions may help."""
        args = self.args
        return num_candidates(num_nodes, args["minCandidateNodesPercentage"], args["minCandidateNodesAbsolute"])


def default_args() -> PluginArgs:
    """The arguments that configuration loading fills in."""
    return {
        "minCandidateNodesPercentage": MIN_CANDIDATE_NODES_PERCENTAGE,
        "minCandidateNodesAbsolute": MIN_CANDIDATE_NODES_ABSOLUTE,
    }
