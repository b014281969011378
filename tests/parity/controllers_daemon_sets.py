"""DaemonSets: the nodes for which they create pods, and the pods that they delete."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Literal

import msgspec

from kpreempt.controllers.actions import REVISION_LABEL, ControlledPod, CreatePods, DeletePod, controlled_pod
from kpreempt.controllers.daemon_set import DaemonNode, DaemonSetState, reconcile_daemon_set
from kpreempt.model.pod import Pod
from tests.parity.controllers_states import (
    Compared,
    Object,
    State,
    chance,
    metadata,
    owner,
    ready_condition,
    seconds_ago,
    text_of,
)
from tests.parity.reference import Answer

NAME = "agent"
# A missing node that pods name.
LOST = "lost"


def draw_daemon_set(random: Random, now: datetime) -> State:
    """A set on a few nodes, some of which it excludes, with missing, unhealthy, duplicate or outdated pods."""
    strategy: Literal["RollingUpdate", "OnDelete"] = "OnDelete" if chance(random, 0.2) else "RollingUpdate"
    surges: list[int | str] = [0, 0, 1, 2, "30%", "100%"]
    missing: list[int | str] = [0, 1, 2, "30%", "100%"]
    daemon_set = DaemonSetState(
        revision="new",
        strategy=strategy,
        max_surge=random.choice(surges),
        max_unavailable=random.choice(missing),
        min_ready_seconds=random.choice([0, 0, 10]),
    )
    nodes = [_node(random, f"n{number}") for number in range(random.randint(0, 6))]
    pods = _pods(random, now, nodes)
    views = [controlled_pod(msgspec.convert(pod, Pod)) for pod in pods]
    request = {
        "controller": "DaemonSet",
        "now": text_of(now),
        "daemonSet": _object(daemon_set),
        "pods": pods,
        "nodes": [_node_object(node) for node in nodes],
        "revision": daemon_set.revision,
    }
    return State(request, lambda answer: _compare(answer, daemon_set, views, nodes, now), may_fail=True)


def _compare(
    answer: Answer, daemon_set: DaemonSetState, pods: list[ControlledPod], nodes: list[DaemonNode], now: datetime
) -> Compared:
    if "error" in answer:
        # A pod on a deleted node blocks upstream's updates, but not ours.
        return Compared(f'"{LOST}" not found' in answer["error"], True, "fails")
    real = answer["answer"]
    by_name = {pod.name: pod for pod in pods}
    actions = reconcile_daemon_set(daemon_set, pods, nodes, now)
    created = [action.node_name for action in actions if isinstance(action, CreatePods)]
    deleted = [action.name for action in actions if isinstance(action, DeletePod)]
    if real["isUpdate"]:
        # Upstream processes nodes in the order of a Go map, so only the count can be compared.
        counts = (len(real["created"]), len(real["deleted"]))
        return Compared(counts, (len(created), len(deleted)), "updates" if actions else "nothing")
    # Upstream deletes terminating pods again.
    still_there = [name for name in real["deleted"] if not by_name[name].is_terminating]
    if not real["created"] and not still_there:
        return Compared(None, None, "only deletes again")
    return Compared(
        (sorted(real["created"]), _without_choice(still_there, by_name)),
        (sorted(created), _without_choice(deleted, by_name)),
        "manages",
    )


def _without_choice(deleted: list[str], pods: dict[str, ControlledPod]) -> list[str]:
    """The pods' names, or for failed ones their nodes: which of several goes first depends on upstream's cache."""
    return sorted(f"failed on {pods[name].target_node}" if pods[name].phase == "Failed" else name for name in deleted)


def _node(random: Random, name: str) -> DaemonNode:
    may_stay = chance(random, 0.8)
    return DaemonNode(name, should_run=may_stay and chance(random, 0.75), may_stay=may_stay)


def _node_object(node: DaemonNode) -> Object:
    spec = {} if node.should_run else {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    labels = {"agents": "yes"} if node.may_stay else {}
    return {"metadata": {"name": node.name, "labels": labels}, "spec": spec}


def _object(daemon_set: DaemonSetState) -> Object:
    strategy: Object = {"type": daemon_set.strategy}
    if daemon_set.strategy == "RollingUpdate":
        amounts = {"maxSurge": daemon_set.max_surge, "maxUnavailable": daemon_set.max_unavailable}
        strategy["rollingUpdate"] = amounts
    labels = {"app": NAME}
    pod = {"nodeSelector": {"agents": "yes"}, "containers": [{"name": "main"}]}
    spec = {
        "minReadySeconds": daemon_set.min_ready_seconds,
        "updateStrategy": strategy,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return {"metadata": metadata(NAME), "spec": spec}


def _pods(random: Random, now: datetime, nodes: list[DaemonNode]) -> list[Object]:
    # Usually every node has its pod, which updates require.
    is_complete = chance(random, 0.75)
    places = []
    for node in nodes:
        count = random.choice([0, 0, 1] if is_complete else [0, 0, 1, 1, 2, 3])
        if is_complete and node.should_run:
            count = 1
        places += [node.name] * (count + chance(random, 0.1))
    if chance(random, 0.1):
        places.append(LOST)
    return [_pod(random, now, number, place, is_complete) for number, place in enumerate(places)]


def _pod(random: Random, now: datetime, number: int, place: str, is_complete: bool) -> Object:
    is_well = chance(random, 0.75)
    ended = [] if is_complete and chance(random, 0.9) else ["Failed", "Succeeded"]
    phase = "Running" if is_well else random.choice(["Pending", "Running", *ended])
    spec: Object = {"nodeName": place}
    if place == LOST or (phase == "Pending" and chance(random, 0.5)):
        # Not on its node yet.
        field = {"key": "metadata.name", "operator": "In", "values": [place]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}
    since = seconds_ago(random, now, 9, 10, 11, 3600)
    pod = {
        "metadata": metadata(
            f"p{number}",
            labels={"app": NAME, REVISION_LABEL: random.choice(["old", "new"])},
            ownerReferences=[owner("DaemonSet", NAME)],
            creationTimestamp=text_of(now - timedelta(hours=random.randint(1, 3))),
        ),
        "spec": spec,
        "status": {"phase": phase, "conditions": [ready_condition(is_well or chance(random, 0.3), since)]},
    }
    if chance(random, 0.08):
        pod["metadata"]["deletionTimestamp"] = text_of(now)
    return pod
