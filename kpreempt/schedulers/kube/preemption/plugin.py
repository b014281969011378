"""A PostFilter plugin that preempts."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.foreign import ForeignPlugin
from kpreempt.schedulers.kube.framework.interface import NodeToStatus, PostFilterPlugin, PostFilterResult
from kpreempt.schedulers.kube.framework.runner import ProfilePlugins
from kpreempt.schedulers.kube.preemption.evaluator import Evaluator
from kpreempt.schedulers.kube.preemption.rules import PreemptionRules
from kpreempt.verdict import Status


class PreemptionPlugin(PreemptionRules, PostFilterPlugin):
    """Eligibility, dry run and choice, by the hooks of ``PreemptionRules``; its reasons begin with ``message_prefix``.

    That is DefaultPreemption's own; most plugins outside the tree say nothing before their reasons.
    """

    message_prefix: ClassVar[str] = "preemption: "

    def post_filter(
        self, state: CycleState, pod: Pod, filtered: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Nominate a node, or say why no eviction helps."""
        result, status = self._evaluator.preempt(state, pod, filtered)
        if result is not None and result.evidence is not None and self.overrides("may_evict"):
            result = result._replace(evidence=result.evidence._replace(eviction_rule=self.name))
        if status.reasons:
            return result, Status(status.code, [f"{self.message_prefix}{status.message}"])
        return result, status

    @cached_property
    def _evaluator(self) -> Evaluator:
        return Evaluator(self.handle, self)


def preemption_rules(plugins: ProfilePlugins) -> PreemptionRules | None:
    """The rules of the first plugin of a profile that preempts, if there is one."""
    for plugin in plugins.post_filters:
        own = plugin.plugin if isinstance(plugin, ForeignPlugin) else plugin
        if isinstance(own, PreemptionPlugin):
            return own
    return None
