"""DefaultPreemption evicts pods of lower priority to make room (``plugins/defaultpreemption``, v1.36.3)."""

from __future__ import annotations

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import (
    Handle,
    NodeToStatus,
    PluginArgs,
    PostFilterPlugin,
    PostFilterResult,
)
from kpreempt.schedulers.kube.preemption.evaluator import Evaluator, SearchSize
from kpreempt.verdict import Eligibility, Status


class DefaultPreemption(PostFilterPlugin):
    """Eligibility, dry run and choice; its reasons carry the prefix ``preemption: ``."""

    name = "DefaultPreemption"

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._evaluator = Evaluator(
            handle,
            SearchSize(_number(args, "minCandidateNodesPercentage"), _number(args, "minCandidateNodesAbsolute")),
        )

    def post_filter(
        self, state: CycleState, pod: Pod, filtered: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Nominate a node, or say why no eviction helps."""
        result, status = self._evaluator.preempt(state, pod, filtered)
        if status.reasons:
            return result, Status(status.code, [f"preemption: {status.message}"])
        return result, status

    def eligibility(self, pod: Pod, filtered: NodeToStatus) -> Eligibility:
        """Whether the pod may preempt at all."""
        return self._evaluator.eligibility(pod, filtered)


def _number(args: PluginArgs, key: str) -> int:
    value = args.get(key)
    assert isinstance(value, int)
    return value


def default_args() -> PluginArgs:
    """The arguments that configuration loading fills in."""
    return {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100}
