"""ReplicaSets: the pods that are deleted if there are too many."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import permutations
from random import Random

import msgspec

from kpreempt.controllers.actions import ControlledPod, DeletePod, controlled_pod
from kpreempt.controllers.deployment import in_ranked_deletion_order, reconcile_replica_set
from kpreempt.model.pod import Pod
from tests.parity.controllers_states import Compared, Object, State, metadata, ready_condition, text_of
from tests.parity.reference import Answer

HOUR = 3600
DAY = 24 * HOUR
# Go uses insertion sort for up to twelve items, so equal pods keep their order.
MAX_PODS = 6


def draw_replica_set(random: Random, now: datetime) -> State:
    """Pods, some of which are deleted; they are often equal in what distinguishes them."""
    count = random.choice([2, 2, 2, 3, 4, MAX_PODS])
    # Half of the time only the last criteria of the order differ.
    is_settled = random.random() < 0.5
    while True:
        drawn = [_pod(random, now, number, is_settled) for number in range(count)]
        pods, views = [pod for pod, _ in drawn], [view for _, view in drawn]
        related = [number for number in range(count) if random.random() < 0.7]
        if _is_order(views, [views[number] for number in related], now):
            break
    surplus = random.randint(1, count - 1)

    def compare(answer: Answer) -> Compared:
        actions = reconcile_replica_set(count - surplus, views, [views[number] for number in related], now)
        ours = [action.name for action in actions if isinstance(action, DeletePod)]
        return Compared(answer["answer"]["deleted"], ours, f"deletes of {count} pods")

    request = {"controller": "ReplicaSet", "pods": pods, "related": related, "surplus": surplus}
    return State(request, compare)


def _is_order(pods: list[ControlledPod], related: list[ControlledPod], now: datetime) -> bool:
    """Whether the rules give an order instead of a cycle, in which the sort algorithm decides.

    Two pods that became ready at the same time are ordered by restarts, and each of them by uid relative to a third one
    that became ready at another time of the same magnitude.
    """

    def is_before(left: ControlledPod, right: ControlledPod) -> bool:
        return in_ranked_deletion_order([right, left], related, now)[0] is left

    before = {(left.name, right.name) for left, right in permutations(pods, 2) if is_before(left, right)}
    names = [pod.name for pod in pods]
    return not any(
        (first, third) in before and (first, second) not in before and (second, third) not in before
        for first, second, third in permutations(names, 3)
    )


def _pod(random: Random, now: datetime, number: int, is_settled: bool) -> tuple[Object, ControlledPod]:
    phase = "Running" if is_settled else random.choice(["Pending", "Running", "Unknown"])
    node = random.choice(["n1", "n2"] if is_settled else ["", "n1", "n2"])
    cost = random.choice([0, 0, 0, -1, 5])
    restarts, sidecar_restarts = random.choice([0, 0, 0, 3]), random.choice([0, 0, 2])
    pod = {
        "metadata": metadata(f"p{number}", uid=f"{random.choice('abcdefgh')}{number}"),
        "spec": {"nodeName": node, "initContainers": [{"name": "sidecar", "restartPolicy": "Always"}]},
        "status": {
            "phase": phase,
            "conditions": [ready_condition(random.random() < 2 / 3, _some_time(random, now))],
            "containerStatuses": [{"name": "main", "restartCount": restarts}],
            "initContainerStatuses": [{"name": "sidecar", "restartCount": sidecar_restarts}],
        },
    }
    if cost:
        pod["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": str(cost)}
    created = _some_time(random, now)
    if created is not None:
        pod["metadata"]["creationTimestamp"] = text_of(created)
    return pod, controlled_pod(msgspec.convert(pod, Pod))


def _some_time(random: Random, now: datetime) -> datetime | None:
    """Ages count by powers of two, and the real controller reads the clock slightly later than ``now``."""
    ages = [None, HOUR, HOUR, 5 * HOUR, 8 * HOUR, 30 * DAY, random.randint(100, 10**7)]
    age = random.choice(ages)
    return None if age is None else now - timedelta(seconds=age)
