"""The pods that a StatefulSet creates and deletes next.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/statefulset/stateful_set_control.go`` (``updateStatefulSet``) and
``stateful_set_utils.go``. Repairing modified claims and labels is omitted. Differences: pods of Parallel sets are
created and deleted in order of their ordinals, while upstream does it all at once, and at most 500 are created at a
time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
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

BURST = 500
# Upstream parses ordinals as int32.
MAX_ORDINAL = 2**31 - 1
_MAX_DIGITS = 10


class StatefulSetState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a StatefulSet that the controller reads.

    ``partition`` is the number of pods that keep the old template, and ``None`` if the strategy has no
    ``rollingUpdate`` part. ``current_revision`` and ``update_revision`` name the last template that was completely
    rolled out and the current one; ``current_replicas`` is the number of pods of the former by the status. ``rules``
    are those of the controller's version; ``max_unavailable`` only matters if the gate MaxUnavailableStatefulSet is on.
    """

    name: str
    replicas: int = 1
    start: int = 0
    parallel: bool = False
    strategy: Literal["RollingUpdate", "OnDelete"] = "RollingUpdate"
    partition: int | None = 0
    max_unavailable: int | str | None = None
    min_ready_seconds: int = 0
    current_revision: str = ""
    update_revision: str = ""
    current_replicas: int = 0
    rules: ControllerRules = DEFAULT_RULES


class StatefulSetStep(msgspec.Struct, frozen=True):
    """The actions, and the set with its status for the next step."""

    actions: list[Action]
    stateful_set: StatefulSetState


def reconcile_stateful_set(
    stateful_set: StatefulSetState, pods: Sequence[ControlledPod], now: datetime
) -> StatefulSetStep:
    """Return the controller's next actions for the set's ``pods``; terminating ones keep their ordinals.

    Raises ``SyncError`` for a ``max_unavailable`` that is not a percentage.
    """
    if not stateful_set.current_revision:
        # A set without a history starts with the current template.
        stateful_set = msgspec.structs.replace(stateful_set, current_revision=stateful_set.update_revision)
    members = _Members(stateful_set, pods, now)
    actions: list[Action] = []
    updates: list[DeletePod] = []
    # If a set is ordered, any action or wait ends the step.
    is_done = members.fill(actions) or members.reduce(actions)
    if not is_done and stateful_set.strategy == "RollingUpdate":
        updates = members.outdated()
    deleted = {action.name for action in actions if isinstance(action, DeletePod)}
    actions.extend(each for each in updates if each.name not in deleted)
    return StatefulSetStep(actions=actions, stateful_set=members.with_status(len(updates)))


def ordinal_of(name: str) -> int:
    """Return the number at the end of a pod's name, or -1 if it is not an ordinal."""
    digits = name.rpartition("-")[2]
    if digits == name or len(digits) > _MAX_DIGITS or not (digits.isascii() and digits.isdecimal()):
        return -1
    ordinal = int(digits)
    return ordinal if ordinal <= MAX_ORDINAL else -1


class _Members:
    """The pods of a set by ordinal, as they were before the step, and those it creates."""

    def __init__(self, stateful_set: StatefulSetState, pods: Sequence[ControlledPod], now: datetime) -> None:
        self._set = stateful_set
        self._now = now
        self._ordinals = range(stateful_set.start, stateful_set.start + max(stateful_set.replicas, 0))
        owned = {ordinal_of(pod.name): pod for pod in pods if pod.name.rpartition("-")[0] == stateful_set.name}
        self._pods = {ordinal: pod for ordinal, pod in owned.items() if ordinal >= 0}
        self._made: dict[int, CreatePods] = {}
        # The number of pods that updates do not reach.
        self._num_old = max(stateful_set.partition or 0, 0)

    def fill(self, actions: list[Action]) -> bool:
        """Create missing pods and delete finished ones; return whether the step ends here."""
        for ordinal in self._ordinals:
            pod = self._pods.get(ordinal)
            if pod is None:
                self._made[ordinal] = CreatePods(name=f"{self._set.name}-{ordinal}", revision=self._revision(ordinal))
                actions.append(self._made[ordinal])
            elif pod.has_finished and not pod.is_terminating:
                # Another one is created once it is gone.
                actions.append(DeletePod(pod.name, "finished"))
            if not self._set.parallel and not (pod is not None and self._is_well(pod)):
                return True
            if len(self._made) == BURST:
                break
        return False

    def reduce(self, actions: list[Action]) -> bool:
        """Delete pods beyond the set's size, the last first; return whether the step ends here."""
        condemned = [
            self._pods[ordinal] for ordinal in sorted(self._pods, reverse=True) if ordinal not in self._ordinals
        ]
        if self._set.parallel:
            actions.extend(DeletePod(pod.name, "scale-down") for pod in condemned if not pod.is_terminating)
            return False
        if not condemned:
            return False
        last = condemned[0]
        first_unavailable = next((pod for pod in reversed(condemned) if self._is_unavailable(pod)), None)
        # An unhealthy pod is deleted only if it is the first unhealthy one, so that it cannot hide another problem.
        if not last.is_terminating and (self._is_well(last) or last is first_unavailable):
            actions.append(DeletePod(last.name, "scale-down"))
        return True

    def outdated(self) -> list[DeletePod]:
        """Return pods to delete because of their template, the last first, if enough others are available."""
        if self._set.rules.max_unavailable_stateful_set:
            return self._several_outdated()
        for ordinal in reversed(self._ordinals[self._num_old :]):
            if self._is_outdated(ordinal):
                return [self._update(ordinal)]
            pod = self._pods.get(ordinal)
            if pod is None or self._is_unavailable(pod):
                break
        return []

    def _several_outdated(self) -> list[DeletePod]:
        desired = len(self._ordinals)
        amount = self._set.max_unavailable
        most = 1 if amount is None else max(scaled_value(amount, desired, round_up=False), 1)
        there = [pod for ordinal, pod in self._pods.items() if ordinal in self._ordinals]
        max_updated = most - (desired - sum(not self._is_unavailable(pod) for pod in there))
        reached = self._ordinals[self._num_old :]
        known = sorted({*self._pods, *self._made}, reverse=True)
        outdated = [ordinal for ordinal in known if ordinal in reached and self._is_outdated(ordinal)]
        lost: list[int] = []
        if self._set.parallel and self._set.rules.updates_unavailable_pods_first:
            # Unavailable pods are replaced first, regardless of their number.
            lost = [each for each in outdated if each not in self._pods or self._is_unavailable(self._pods[each])]
            outdated = [each for each in outdated if each not in lost]
        return [self._update(ordinal) for ordinal in (*lost, *outdated[: max(max_updated, 0)])]

    def with_status(self, updates: int) -> StatefulSetState:
        """Return the set with its next status, after deleting ``updates`` pods with an old template."""
        state = self._set
        pods = self._pods.values()
        staying = Counter(pod.revision for pod in pods if not pod.is_terminating)
        is_complete = state.strategy == "RollingUpdate" and (
            staying[state.update_revision]
            == sum(pod.phase == "Running" and pod.is_ready for pod in pods)
            == len(pods)
            == state.replicas
        )
        if is_complete:
            return msgspec.structs.replace(
                state, current_revision=state.update_revision, current_replicas=staying[state.update_revision]
            )
        return msgspec.structs.replace(state, current_replicas=staying[state.current_revision] - updates)

    def _revision(self, ordinal: int) -> str:
        """Return the revision for a pod created now."""
        state = self._set
        num_old = state.partition
        if num_old is None:
            num_old = state.current_replicas if state.strategy == "RollingUpdate" else 0
        return state.current_revision if ordinal < state.start + num_old else state.update_revision

    def _is_outdated(self, ordinal: int) -> bool:
        pod = self._pods.get(ordinal)
        if pod is not None:
            return pod.revision != self._set.update_revision and not pod.is_terminating
        made = self._made.get(ordinal)
        return made is not None and made.revision != self._set.update_revision

    def _update(self, ordinal: int) -> DeletePod:
        pod = self._pods.get(ordinal)
        return DeletePod(pod.name if pod is not None else self._made[ordinal].name, "update")

    def _is_unavailable(self, pod: ControlledPod) -> bool:
        if self._set.rules.waits_for_min_ready_seconds:
            return pod.is_terminating or not pod.is_available(self._set.min_ready_seconds, self._now)
        return pod.is_terminating or not (pod.phase == "Running" and pod.is_ready)

    def _is_well(self, pod: ControlledPod) -> bool:
        is_available = pod.is_available(self._set.min_ready_seconds, self._now)
        return pod.phase == "Running" and is_available and not pod.is_terminating
