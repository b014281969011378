"""DefaultPreemption evicts lower-priority pods to free resources (``plugins/defaultpreemption``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kpreempt.schedulers.kube.framework.arg_types import INT32, child, invalid
from kpreempt.schedulers.kube.framework.events import Action, on_pod
from kpreempt.schedulers.kube.framework.in_tree import in_tree
from kpreempt.schedulers.kube.preemption.evaluator import PreemptionPlugin
from kpreempt.schedulers.kube.preemption.odds import num_candidates
from kpreempt.schedulers.kube.preemption.rules import MIN_CANDIDATE_NODES_ABSOLUTE, MIN_CANDIDATE_NODES_PERCENTAGE
from kpreempt.schedulers.kube.versions import Behavior


class DefaultPreemption(PreemptionPlugin):
    """Preempts by the default rules; its arguments set how many candidates are enough."""

    name = "DefaultPreemption"

    def num_candidates(self, num_nodes: int) -> int:
        """Return how many candidates are enough if evictions may help on ``num_nodes`` nodes."""
        args = self.args
        return num_candidates(num_nodes, args["minCandidateNodesPercentage"], args["minCandidateNodesAbsolute"])


def default_args(args: Mapping[str, Any], behavior: Behavior) -> dict[str, Any]:
    """Return the arguments with defaults as loading sets them (``apis/config/v1/defaults.go``)."""
    return {
        "minCandidateNodesPercentage": MIN_CANDIDATE_NODES_PERCENTAGE,
        "minCandidateNodesAbsolute": MIN_CANDIDATE_NODES_ABSOLUTE,
        **args,
    }


def arg_problems(path: str, args: Mapping[str, Any], behavior: Behavior) -> list[str]:
    """List problems of the arguments at ``path`` (``apis/config/validation/validation_pluginargs.go``)."""
    percentage, absolute = args["minCandidateNodesPercentage"], args["minCandidateNodesAbsolute"]
    percentage_path = child(path, "minCandidateNodesPercentage")
    absolute_path = child(path, "minCandidateNodesAbsolute")
    problems = []
    if not 0 <= percentage <= 100:
        problems.append(invalid(percentage_path, percentage, "not in valid range [0, 100]"))
    if absolute < 0:
        problems.append(invalid(absolute_path, absolute, "not in valid range [0, inf)"))
    if percentage == 0 and absolute == 0:
        same = "cannot be zero at the same time as"
        problems.append(invalid(percentage_path, 0, f"{same} minCandidateNodesAbsolute"))
        problems.append(invalid(absolute_path, 0, f"{same} minCandidateNodesPercentage"))
    return problems


PLUGIN = in_tree(
    DefaultPreemption,
    unmodeled="preEnqueue",
    args={"minCandidateNodesPercentage": INT32, "minCandidateNodesAbsolute": INT32},
    default_args=default_args,
    arg_problems=arg_problems,
    # No event helps: the plugin itself activates the pod when its victims are deleted.
    awaits=lambda: [on_pod(Action.DELETE, lambda _pod, _old, _new: False)],
)
