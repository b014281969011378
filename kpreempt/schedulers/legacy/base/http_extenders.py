"""Extenders over HTTP for the old schedulers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kpreempt.model.pod import Pod
from kpreempt.schedulers.extender_protocol import (
    Connect,
    Dialect,
    ExtenderError,
    ExtenderSettings,
    HttpExtender,
    NodeVictims,
)
from kpreempt.schedulers.legacy.base.extenders import Extender, Filtered
from kpreempt.schedulers.legacy.base.filtering import LegacyError
from kpreempt.schedulers.legacy.base.node_info import NodeInfo
from kpreempt.schedulers.legacy.base.victims import Victims


def http_extenders(settings: Sequence[ExtenderSettings], dialect: Dialect, connect: Connect | None) -> list[Extender]:
    """The extenders in the order in which they are asked; none without ``connect``."""
    if connect is None:
        return []
    return [_OverHttp(HttpExtender(each, dialect, connect(each))) for each in settings]


class _OverHttp:
    """An HTTP extender in an old scheduler's terms."""

    def __init__(self, extender: HttpExtender) -> None:
        self._extender = extender
        self.name = extender.name
        self.is_ignorable = extender.is_ignorable
        self.supports_preemption = extender.supports_preemption
        self.is_prioritizer = extender.is_prioritizer
        self.is_interested = extender.is_interested

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Filtered:
        """Which of the nodes it lets pass."""
        try:
            answer = self._extender.filter(pod, [info.node for info in nodes])
        except ExtenderError as error:
            raise LegacyError(str(error)) from None
        returned = {each.name: each.returned for each in answer.passing if each.returned is not None}
        return Filtered([each.name for each in answer.passing], answer.failed, returned, answer.was_asked)

    def process_preemption(
        self, pod: Pod, candidates: Mapping[str, Victims], node_infos: Mapping[str, NodeInfo]
    ) -> dict[str, Victims]:
        """The candidates that it leaves. The steps of a dry run are kept where the victims stay the same."""

        def pods_of(node: str) -> Sequence[Pod] | None:
            info = node_infos.get(node)
            return None if info is None else [each.pod for each in info.pods]

        asked = {
            node: NodeVictims([info.pod for info in each.pods], each.num_violations)
            for node, each in candidates.items()
        }
        try:
            answer = self._extender.process_preemption(pod, asked, pods_of)
        except ExtenderError as error:
            raise LegacyError(str(error)) from None
        return {node: _victims(each, candidates.get(node), node_infos[node]) for node, each in answer.items()}


def _victims(found: NodeVictims, before: Victims | None, node_info: NodeInfo) -> Victims:
    infos = {id(info.pod): info for info in node_info.pods}
    pods = [infos[id(pod)] for pod in found.pods]
    is_same = before is not None and [info.key for info in before.pods] == [info.key for info in pods]
    return Victims(pods, found.num_violations, before.steps if is_same and before is not None else [])
