"""The pods that a DaemonSet creates and deletes next.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/daemon/daemon_controller.go`` (``podsShouldBeOnNode``,
``manage``) and ``update.go`` (``rollingUpdate``). Differences: nodes are processed in order, while upstream's order is
random; a failed pod is deleted at once, while upstream backs off if it keeps failing; a pod on a deleted node does not
block an update; and only the hash identifies a pod's template, not the old generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from kpreempt.controllers.actions import (
    DEFAULT_RULES,
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
    """The fields of a DaemonSet that the controller reads; ``revision`` is the hash of its current template.

    ``rules`` are those of the controller's version.
    """

    revision: str = ""
    strategy: Literal["RollingUpdate", "OnDelete"] = "RollingUpdate"
    max_surge: int | str = 0
    max_unavailable: int | str = 1
    min_ready_seconds: int = 0
    rules: ControllerRules = DEFAULT_RULES


class DaemonNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node: whether a pod should run there, and whether an existing one may stay.

    A pod may stay although none would be created if the taints it does not tolerate are NoSchedule only.
    """

    name: str
    should_run: bool = True
    may_stay: bool = True


def reconcile_daemon_set(
    daemon_set: DaemonSetState, pods: Sequence[ControlledPod], nodes: Sequence[DaemonNode], now: datetime
) -> list[Action]:
    """Return the controller's next actions for the set's ``pods``; ``nodes`` are all nodes of the cluster.

    First every node gets its pod and loses surplus ones; only after that an update continues. Raises ``SyncError`` for
    amounts of the strategy that are not percentages.
    """
    state = _Sync(daemon_set, pods, nodes, now)
    actions = state.manage()
    return actions if actions or daemon_set.strategy != "RollingUpdate" else state.update()


class _Pair(msgspec.Struct, frozen=True):
    """The pods on a node that are not terminating, at most one of the current template and one of another."""

    new: ControlledPod | None = None
    old: ControlledPod | None = None


class _Sync:
    def __init__(
        self, daemon_set: DaemonSetState, pods: Sequence[ControlledPod], nodes: Sequence[DaemonNode], now: datetime
    ) -> None:
        self._set = daemon_set
        self._nodes = {node.name: node for node in nodes}
        self._now = now
        # Ignore finished pods that are terminating, and pods that are not tied to a node.
        own = (pod for pod in pods if pod.target_node and not (pod.has_finished and pod.is_terminating))
        self._pods = grouped(own, lambda pod: pod.target_node)

    def manage(self) -> list[Action]:
        """Return the actions that give every node the pods it should have, regardless of their template."""
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
        # If several have failed, the others wait, as they do upstream for the backoff after the first one.
        failed = next((pod for pod in staying if pod.phase == "Failed"), None)
        ended = (pod for pod in staying if pod.phase == "Succeeded" or pod is failed)
        actions: list[Action] = [DeletePod(pod.name, "finished") for pod in ended]
        # Pods on a node first, then the oldest.
        running = sorted(
            (pod for pod in staying if not pod.has_finished),
            key=lambda pod: (not pod.node_name, pod.created or _BEFORE_ALL, pod.name),
        )
        # Without a surge, a node has one pod at a time.
        surges = self._set.strategy == "RollingUpdate" and scaled_value(self._set.max_surge, 1, round_up=True) > 0
        if not surges:
            return [*actions, *(DeletePod(pod.name, "duplicate") for pod in running[1:])]
        if not running and node.should_run:
            # A surging set keeps at least one pod, whatever else is terminating.
            return [*actions, CreatePods(node_name=node.name)]
        # The oldest of each template stays; the old one as long as it is ready and the new one is not available.
        new = next((pod for pod in running if self._is_new(pod)), None)
        old = next((pod for pod in running if not self._is_new(pod)), None)
        actions += (DeletePod(pod.name, "duplicate") for pod in running if pod is not new and pod is not old)
        if new is not None and old is not None and (not old.is_ready or self._is_available(new)):
            actions.append(DeletePod(old.name, "update"))
        return actions

    def update(self) -> list[Action]:
        """Return the actions that roll the current template out to as many nodes as the strategy allows."""
        desired = [node.name for node in self._nodes.values() if node.should_run]
        unavailable = scaled_value(self._set.max_unavailable, len(desired), round_up=True)
        surge = scaled_value(self._set.max_surge, len(desired), round_up=True)
        if surge != 0:
            return self._surge(surge, len(desired))
        # The API server rejects 0 for both; if it happens anyway, one node may be without its pod.
        return self._replace(unavailable or min(len(desired), 1), desired)

    def _replace(self, most: int, desired: Sequence[str]) -> list[Action]:
        """Delete old pods that are unavailable, and others while at most ``most`` nodes lack a pod."""
        missing = 0
        broken: list[Action] = []
        healthy: list[Action] = []
        for name in self._in_order(desired):
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

    def _surge(self, most: int, desired: int) -> list[Action]:
        """Create new pods next to old ones, on ``most`` nodes at a time; delete old ones once these are available."""
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
                # An available pod is deleted only once another is available elsewhere.
                gone = misplaced if self._is_available(pair.old) else leaving
                gone.append(DeletePod(pair.old.name, "misplaced"))
            elif not self._is_available(pair.old):
                urgent.append(CreatePods(node_name=name))
            elif surging < most:
                candidates.append(CreatePods(node_name=name))
        created = [*urgent, *candidates[: max(most - surging, 0)]]
        return [*created, *leaving, *misplaced[: max(available - desired, 0)]]

    def _in_order(self, others: Iterable[str]) -> list[str]:
        """Return the nodes with pods and ``others``: in the cluster's order, then unknown ones."""
        names = {*self._pods, *others}
        return [name for name in self._nodes if name in names] + [
            name for name in self._pods if name not in self._nodes
        ]

    def _pair(self, node_name: str) -> _Pair | None:
        """Return the node's pods, or ``None`` if there are too many of one kind."""
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
