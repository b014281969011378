"""Scheduler extenders as objects passed to a scheduler (``algorithm/scheduler_interface.go``, v1.13.12).

HTTP extenders are one kind of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.extender_protocol import (
    ExtenderError,
    HttpExtender,
    NodeVictims,
)
from kpreempt.schedulers.legacy.base.node_info import Cluster, NodeInfo, PodInfo
from kpreempt.schedulers.legacy.base.predicates import LegacyError, Victims
from kpreempt.schedulers.legacy.base.version import Version
from kpreempt.verdict import ExtenderCall, Status


class Filtered(NamedTuple):
    """An extender's response: the nodes that pass, and why others are rejected.

    ``returned`` are complete nodes if the response has them. ``was_called`` is true if a call was made.
    """

    passing: list[str]
    failed: dict[str, str]
    returned: Mapping[str, Node] = {}
    was_called: bool = True


class Extender(Protocol):
    """A process that is called in addition to the scheduler's own filters. Methods raise ``LegacyError`` on failure."""

    # The name in messages.
    name: str
    # Whether scheduling continues when it fails, and whether it has a verb for preemption (1.13 and 1.18).
    is_ignorable: bool
    supports_preemption: bool
    # Whether it scores nodes.
    is_prioritizer: bool

    def is_interested(self, pod: Pod) -> bool:
        """Return whether the pod uses a managed resource, or the extender manages all pods (1.13 and 1.18)."""

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Filtered:
        """Return which nodes pass, given the pods on each."""

    def process_preemption(
        self, pod: Pod, candidates: Mapping[str, Victims], node_infos: Mapping[str, NodeInfo]
    ) -> dict[str, Victims]:
        """Return the remaining candidates with possibly changed victims; ``node_infos`` are all nodes."""


class ExtenderCaller:
    """Calls extenders for one pod, and records their responses in ``calls``."""

    def __init__(self, extenders: Sequence[Extender], version: Version, cluster: Cluster, pod: Pod) -> None:
        self.calls: list[ExtenderCall] = []
        self._extenders = extenders
        self._version = version
        self._cluster = cluster
        self._pod = pod

    def filter_nodes(self, evaluated: Mapping[str, Status]) -> tuple[list[str], dict[str, Status], dict[str, Status]]:
        """Let the extenders reject some of the nodes that fit, one extender after the other.

        Returns the remaining nodes, possibly others than were sent; the statuses of all nodes of the cluster; and those
        of unknown nodes that were named as failed. A failing extender is skipped if it is ignorable; otherwise its
        ``LegacyError`` ends the attempt.
        """
        infos = [info for info in self._cluster.node_infos if evaluated[info.name].is_success]
        failures = {name: status for name, status in evaluated.items() if not status.is_success}
        dropped_by: dict[str, str] = {}
        knows_interest = not self._version.calls_extenders_after_choice
        for extender in self._extenders:
            if not infos:
                break
            if knows_interest and not extender.is_interested(self._pod):
                continue
            try:
                answer = self._filter(extender, infos, can_ignore=knows_interest)
            except LegacyError:
                if knows_interest and extender.is_ignorable:
                    continue
                raise
            for name, reason in answer.failed.items():
                # Another extender may already have rejected the node.
                before = failures.get(name)
                if before is None:
                    failures[name] = self._version.extender_rejection(extender.name, reason)
                elif reason:
                    failures[name] = msgspec.structs.replace(before, reasons=[*before.reasons, reason])
            dropped_by |= {info.name: extender.name for info in infos if info.name not in answer.passing}
            # A node that only the extender knows has no pods.
            infos = [
                self._cluster.by_name.get(name) or NodeInfo(answer.returned[name], [], self._cluster.accounting)
                for name in dict.fromkeys(answer.passing)
            ]
        fitting = [info.name for info in infos]
        statuses = dict(evaluated)
        for name, status in evaluated.items():
            if name in failures and not (status.is_success and name in fitting):
                statuses[name] = failures[name]
            elif status.is_success and name not in fitting:
                statuses[name] = self._version.extender_rejection(dropped_by[name], "")
        strangers = {name: status for name, status in failures.items() if name not in evaluated}
        return fitting, statuses, strangers

    def process_preemption(self, candidates: Mapping[str, Victims]) -> dict[str, Victims]:
        """Return the candidates that all extenders keep; they are called before the choice (1.13 and 1.18).

        A failing extender is skipped if it is ignorable; otherwise its ``LegacyError`` ends the preemption.
        """
        left = dict(candidates)
        for extender in self._extenders:
            if not left:
                break
            if not extender.supports_preemption or not extender.is_interested(self._pod):
                continue
            call = ExtenderCall(extender.name, "preempt", nodes_sent=len(left))
            try:
                after = extender.process_preemption(self._pod, left, self._cluster.by_name)
            except LegacyError as error:
                self._note(call, error=str(error), ignored=extender.is_ignorable)
                if not extender.is_ignorable:
                    raise
                continue
            keys = {node: [info.key for info in each.pods] for node, each in after.items()}
            self._note(
                call,
                removed=[node for node in left if node not in after],
                added=[node for node in after if node not in left],
                changed={
                    node: pods
                    for node, pods in keys.items()
                    if node not in left or pods != [info.key for info in left[node].pods]
                },
                violations={
                    node: each.num_violations
                    for node, each in after.items()
                    if node not in left or each.num_violations != left[node].num_violations
                },
            )
            left = after
        return left

    def passes_without(self, node_info: NodeInfo, victims: Sequence[PodInfo]) -> bool:
        """Return whether all extenders accept the node without the victims (1.8, after the choice)."""
        node_info = node_info.clone()
        for victim in victims:
            node_info.remove_pod(victim)
        for extender in self._extenders:
            try:
                answer = self._filter(extender, [node_info], can_ignore=False, without_victims=True)
            except LegacyError:
                return False
            if node_info.name in answer.failed or not answer.passing:
                return False
        return True

    def _filter(
        self, extender: Extender, infos: Sequence[NodeInfo], *, can_ignore: bool, without_victims: bool = False
    ) -> Filtered:
        call = ExtenderCall(extender.name, "filter", nodes_sent=len(infos), without_victims=without_victims)
        try:
            answer = extender.filter(self._pod, infos)
            for name in answer.passing:
                if name not in self._cluster.by_name and name not in answer.returned:
                    # The real scheduler looks up the unknown node in its cache, and panics.
                    raise LegacyError(
                        f'extender {extender.name} returned node "{name}", which the scheduler does not know; '
                        f"{self._version.algorithm} panics"
                    )
        except LegacyError as error:
            self._note(call, error=str(error), ignored=can_ignore and extender.is_ignorable)
            raise
        if answer.was_called:
            names = [info.name for info in infos]
            self._note(
                call,
                rejected={name: answer.failed.get(name, "") for name in names if name not in answer.passing},
                added=[name for name in dict.fromkeys(answer.passing) if name not in names],
            )
        return answer

    def _note(self, call: ExtenderCall, **found: object) -> None:
        self.calls.append(msgspec.structs.replace(call, **found))


class OverHttp:
    """An HTTP extender for an old scheduler."""

    def __init__(self, extender: HttpExtender) -> None:
        self._extender = extender
        self.name = extender.name
        self.is_ignorable = extender.is_ignorable
        self.supports_preemption = extender.supports_preemption
        self.is_prioritizer = extender.is_prioritizer
        self.is_interested = extender.is_interested

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Filtered:
        """Return which nodes pass."""
        try:
            answer = self._extender.filter(pod, [info.node for info in nodes])
        except ExtenderError as error:
            raise LegacyError(str(error)) from None
        returned = {each.name: each.returned for each in answer.passing if each.returned is not None}
        return Filtered([each.name for each in answer.passing], answer.failed, returned, answer.was_called)

    def process_preemption(
        self, pod: Pod, candidates: Mapping[str, Victims], node_infos: Mapping[str, NodeInfo]
    ) -> dict[str, Victims]:
        """Return the remaining candidates. The steps of a dry run are kept if the victims are unchanged."""
        node_victims = {
            node: NodeVictims([info.pod for info in each.pods], each.num_violations)
            for node, each in candidates.items()
        }
        try:
            answer = self._extender.process_preemption(
                pod,
                node_victims,
                lambda node: [each.pod for each in node_infos[node].pods] if node in node_infos else None,
            )
        except ExtenderError as error:
            raise LegacyError(str(error)) from None
        left = {}
        for node, found in answer.items():
            infos = {id(info.pod): info for info in node_infos[node].pods}
            victims, before = [infos[id(pod)] for pod in found.pods], candidates.get(node)
            is_same = before is not None and [info.key for info in before.pods] == [info.key for info in victims]
            left[node] = Victims(victims, found.num_violations, before.steps if before is not None and is_same else [])
        return left
