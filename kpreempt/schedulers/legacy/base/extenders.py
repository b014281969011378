"""Scheduler extenders, as objects that a scheduler is given (``algorithm/scheduler_interface.go``, v1.13.12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from kpreempt.model.pod import Pod
from kpreempt.schedulers.legacy.base.filtering import LegacyError
from kpreempt.schedulers.legacy.base.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.legacy.base.victims import Victims


class Filtered(NamedTuple):
    """An extender's answer: the nodes that it lets pass, and why it refuses others."""

    passing: list[str]
    failed: dict[str, str]


class Extender(Protocol):
    """A process that is asked besides the scheduler's own filters. Its methods raise ``LegacyError`` where it fails."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def is_ignorable(self) -> bool:
        """Whether scheduling goes on where it fails (1.13 and 1.18)."""

    @property
    def supports_preemption(self) -> bool:
        """Whether it has a verb for preemption (1.13 and 1.18)."""

    def is_interested(self, pod: Pod) -> bool:
        """Whether the pod uses a resource that it manages, or it manages all pods (1.13 and 1.18)."""

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Filtered:
        """Which of the nodes it lets pass, each with the pods that would be on it."""

    def process_preemption(self, pod: Pod, candidates: Mapping[str, Victims]) -> dict[str, Victims]:
        """The candidates that it leaves, whose victims it may have changed."""


def process_preemption(
    extenders: Sequence[Extender], pod: Pod, candidates: Mapping[str, Victims]
) -> dict[str, Victims]:
    """The candidates that all extenders leave, which are asked before the choice (1.13 and 1.18).

    One that fails is passed over where it may be ignored; otherwise its ``LegacyError`` ends the preemption.
    """
    left = dict(candidates)
    for extender in extenders:
        if not left:
            break
        if extender.supports_preemption and extender.is_interested(pod):
            try:
                left = extender.process_preemption(pod, left)
            except LegacyError:
                if not extender.is_ignorable:
                    raise
    return left


def lets_pass_without(extenders: Sequence[Extender], pod: Pod, node_info: NodeInfo, victims: Sequence[PodInfo]) -> bool:
    """Whether all extenders let the node pass once the victims are off it (1.8, after the choice)."""
    node_info = node_info.clone()
    for victim in victims:
        node_info.remove_pod(victim)
    for extender in extenders:
        try:
            answer = extender.filter(pod, [node_info])
        except LegacyError:
            return False
        if node_info.name in answer.failed or not answer.passing:
            return False
    return True
