"""Which pods a DaemonSet makes and deletes next.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/daemon/daemon_controller.go`` (``podsShouldBeOnNode``,
``manage``) and ``update.go`` (``rollingUpdate``). Departures: nodes are taken in their order, where upstream's order is
chance; a failed pod is deleted at once, where upstream holds back if it happens again and again; a pod on a node that
is gone holds up no update; and of the two marks of a pod's template only the hash counts, not the generation of old.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from kpreempt.controllers.actions import (
    USUAL,
    Action,
    ControlledPod,
    ControllerRules,
    CreatePods,
    DeletePod,
    scaled_value,
)
from kpreempt.model.meta import grouped

_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


class DaemonSetState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the controller looks at in a DaemonSet; ``revision`` is the hash of its present template.

    ``rules`` are those of the controller's version.
    """

    revision: str = ""
    strategy: Literal["RollingUpdate", "OnDelete"] = "RollingUpdate"
    max_surge: int | str = 0
    max_unavailable: int | str = 1
    min_ready_seconds: int = 0
    rules: ControllerRules = USUAL


class DaemonNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node: whether a pod should run there, and whether one that is there may stay.

    A pod may stay, though none would be made, where taints that it does not tolerate have the effect NoSchedule only.
    """

    name: str
    should_run: bool = True
    may_stay: bool = True


def reconcile_daemon_set(
    daemon_set: DaemonSetState, pods: Sequence[ControlledPod], nodes: Sequence[DaemonNode], now: datetime
) -> list[Action]:
    """What the controller does next to the set's ``pods``; ``nodes`` are all nodes of the cluster.

    First every node gets its pod and loses what is too much; only where that is done an update goes on. Raises
    ``SyncError`` for amounts of the strategy that are no percentage.
    """
    state = _Sync(daemon_set, pods, nodes, now)
    actions = state.manage()
    return actions if actions or daemon_set.strategy != "RollingUpdate" else state.update()


class _Pair(msgspec.Struct, frozen=True):
    """The pods on a node that were not told to end, at most one of the present template and one of another."""

    new: ControlledPod | None = None
    old: ControlledPod | None = None


class _Sync:
    def __init__(
        self, daemon_set: DaemonSetState, pods: Sequence[ControlledPod], nodes: Sequence[DaemonNode], now: datetime
    ) -> None:
        self._set = daemon_set
        self._nodes = {node.name: node for node in nodes}
        self._now = now
        # One that has ended and was told to go is done with, and one that is tied to no node is nobody's.
        own = (pod for pod in pods if pod.target_node and not (pod.has_finished and pod.is_terminating))
        self._pods = grouped(own, lambda pod: pod.target_node)

    def manage(self) -> list[Action]:
        """What brings every node to the pods that it should have, whatever their template."""
        actions: list[Action] = []
        for node in self._nodes.values():
            there = self._pods.get(node.name)
            if node.should_run and there is None:
                actions.append(CreatePods(node_name=node.name))
            elif node.may_stay:
                actions += self._tidy(node, there or [])
            else:
                actions += (DeletePod(pod.name, "misplaced") for pod in there or () if not pod.is_terminating)
        lost = (pod for name, there in self._pods.items() if name not in self._nodes for pod in there)
        actions += (DeletePod(pod.name, "misplaced") for pod in lost if not pod.node_name and not pod.is_terminating)
        return actions

    def _tidy(self, node: DaemonNode, there: Iterable[ControlledPod]) -> list[Action]:
        staying = [pod for pod in there if not pod.is_terminating]
        # Of several failed ones the others wait, as they do upstream for the backoff after the first.
        failed = next((pod for pod in staying if pod.phase == "Failed"), None)
        ended = (pod for pod in staying if pod.phase == "Succeeded" or pod is failed)
        actions: list[Action] = [DeletePod(pod.name, "finished") for pod in ended]
        # Those on a node first, then the oldest.
        running = sorted(
            (pod for pod in staying if not pod.has_finished),
            key=lambda pod: (not pod.node_name, pod.created or _BEFORE_ALL, pod.name),
        )
        # Without a surge one pod at a time is on a node.
        surges = self._set.strategy == "RollingUpdate" and scaled_value(self._set.max_surge, 1, round_up=True) > 0
        if not surges:
            return [*actions, *(DeletePod(pod.name, "duplicate") for pod in running[1:])]
        if not running and node.should_run:
            # A surging set has one pod at least that stays, whatever leaves.
            return [*actions, CreatePods(node_name=node.name)]
        # Of each template the oldest stays; the old one as long as it is ready, and the new one is not available.
        new = next((pod for pod in running if self._is_new(pod)), None)
        old = next((pod for pod in running if not self._is_new(pod)), None)
        actions += (DeletePod(pod.name, "duplicate") for pod in running if pod is not new and pod is not old)
        if new is not None and old is not None and (not old.is_ready or self._is_available(new)):
            actions.append(DeletePod(old.name, "update"))
        return actions

    def update(self) -> list[Action]:
        """What brings the present template to as many nodes as may go without a pod, or have two."""
        wanted = [node.name for node in self._nodes.values() if node.should_run]
        unavailable = scaled_value(self._set.max_unavailable, len(wanted), round_up=True)
        surge = scaled_value(self._set.max_surge, len(wanted), round_up=True)
        if surge != 0:
            return self._surge(surge, len(wanted))
        # The API server lets nobody ask for neither; where it comes to that, one of the nodes may lack its pod.
        return self._replace(unavailable or min(len(wanted), 1), wanted)

    def _replace(self, most: int, wanted: Sequence[str]) -> list[Action]:
        """Old pods go where they are not available, and others as long as no more than ``most`` nodes lack a pod."""
        missing = 0
        broken: list[Action] = []
        healthy: list[Action] = []
        for name in self._in_order(wanted):
            pair = self._pair(name)
            if pair is None or (pair.new is None) == (pair.old is None):
                missing += 1
            elif pair.old is None:
                missing += not self._is_available(pair.new)
            elif not self._is_available(pair.old):
                broken.append(DeletePod(pair.old.name, "update"))
                missing += self._set.rules.counts_replaced_daemon_pods
            elif missing < most:
                healthy.append(DeletePod(pair.old.name, "update"))
        return [*broken, *healthy[: max(most - missing, 0)]]

    def _surge(self, most: int, wanted: int) -> list[Action]:
        """New pods come beside old ones, on ``most`` nodes at a time, and old ones go once those are available."""
        surging = available = 0
        leaving: list[Action] = []
        misplaced: list[Action] = []
        urgent: list[Action] = []
        candidates: list[Action] = []
        for name in self._in_order(()):
            pair = self._pair(name)
            if pair is None:
                surging += 1
                continue
            available += self._is_available(pair.old or pair.new)
            if pair.old is None:
                continue
            if pair.new is not None:
                if self._is_available(pair.new):
                    leaving.append(DeletePod(pair.old.name, "update"))
                else:
                    surging += 1
            elif name not in self._nodes or not self._nodes[name].should_run:
                # One that is available goes only once another is, elsewhere.
                gone = misplaced if self._is_available(pair.old) else leaving
                gone.append(DeletePod(pair.old.name, "misplaced"))
            elif not self._is_available(pair.old):
                urgent.append(CreatePods(node_name=name))
            elif surging < most:
                candidates.append(CreatePods(node_name=name))
        created = [*urgent, *candidates[: max(most - surging, 0)]]
        return [*created, *leaving, *misplaced[: max(available - wanted, 0)]]

    def _in_order(self, others: Iterable[str]) -> list[str]:
        """The nodes that have pods, in the cluster's order, then those that it does not have; with ``others``."""
        names = {*self._pods, *others}
        return [name for name in self._nodes if name in names] + [
            name for name in self._pods if name not in self._nodes
        ]

    def _pair(self, node_name: str) -> _Pair | None:
        """The node's pods, or ``None`` where there are too many of one kind."""
        staying = [pod for pod in self._pods.get(node_name, ()) if not pod.is_terminating]
        new = [pod for pod in staying if self._is_new(pod)]
        old = [pod for pod in staying if not self._is_new(pod)]
        if len(new) > 1 or len(old) > 1:
            return None
        return _Pair(new=new[0] if new else None, old=old[0] if old else None)

    def _is_new(self, pod: ControlledPod) -> bool:
        return bool(self._set.revision) and pod.revision == self._set.revision

    def _is_available(self, pod: ControlledPod | None) -> bool:
        return pod is not None and pod.is_available(self._set.min_ready_seconds, self._now)
