"""StatefulSets: the pods they create and delete, and their resulting status."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Literal

import msgspec

from kpreempt.controllers.actions import DEFAULT_RULES, REVISION_LABEL, Action, CreatePods, DeletePod, controlled_pod
from kpreempt.controllers.stateful_set import StatefulSetState, reconcile_stateful_set
from kpreempt.model.pod import Pod
from tests.parity.controllers_states import (
    Compared,
    Object,
    State,
    chance,
    metadata,
    ready_condition,
    seconds_ago,
    text_of,
)
from tests.parity.reference import Answer

NAME = "db"


def draw_stateful_set(random: Random, now: datetime) -> State:
    """A set with some of its pods missing, unhealthy, terminating, or outdated."""
    stateful_set = _stateful_set(random)
    pods = _pods(random, now, stateful_set)
    views = [controlled_pod(msgspec.convert(pod, Pod)) for pod in pods]

    def compare(answer: Answer) -> Compared:
        step = reconcile_stateful_set(stateful_set, views, now)
        real = [_real_action(each) for each in answer["answer"]["actions"]]
        ours = [_our_action(each) for each in step.actions]
        outcome = "+".join(sorted({_word(each) for each in step.actions})) or "nothing"
        if stateful_set.parallel:
            # Upstream acts on several pods at once, and may delete one twice.
            real, ours = sorted(set(real)), sorted(ours)
        status = answer["answer"]["status"]
        after = step.stateful_set
        return Compared(
            (real, status.get("currentRevision"), status.get("currentReplicas", 0)),
            (ours, after.current_revision, after.current_replicas),
            outcome,
        )

    request = {
        "controller": "StatefulSet",
        "now": text_of(now),
        "statefulSet": _object(stateful_set),
        "pods": pods,
        "currentRevision": stateful_set.current_revision,
        "updateRevision": stateful_set.update_revision,
        "hasMaxUnavailable": stateful_set.rules.max_unavailable_stateful_set,
    }
    return State(request, compare)


def _stateful_set(random: Random) -> StatefulSetState:
    strategy: Literal["RollingUpdate", "OnDelete"] = "OnDelete" if chance(random, 0.2) else "RollingUpdate"
    current, update = random.choice([("old", "new"), ("old", "new"), ("new", "new")])
    partition = random.choice([None, 0, 0, 1, 2, 9]) if strategy == "RollingUpdate" else None
    limits: list[int | str | None] = [None, 1, 2, 3, "1%", "50%", "100%"]
    return StatefulSetState(
        name=NAME,
        replicas=random.randint(0, 5),
        start=random.choice([0, 0, 0, 1, 5]),
        parallel=chance(random, 0.45),
        strategy=strategy,
        partition=partition,
        max_unavailable=random.choice(limits) if partition is not None else None,
        rules=DEFAULT_RULES._replace(max_unavailable_stateful_set=chance(random, 0.4)),
        min_ready_seconds=random.choice([0, 0, 10]),
        current_revision=current,
        update_revision=update,
        current_replicas=random.randint(0, 5),
    )


def _object(stateful_set: StatefulSetState) -> Object:
    strategy: Object = {"type": stateful_set.strategy}
    if stateful_set.partition is not None:
        strategy["rollingUpdate"] = {"partition": stateful_set.partition}
        if stateful_set.max_unavailable is not None:
            strategy["rollingUpdate"]["maxUnavailable"] = stateful_set.max_unavailable
    labels = {"app": NAME}
    spec = {
        "replicas": stateful_set.replicas,
        "minReadySeconds": stateful_set.min_ready_seconds,
        "podManagementPolicy": "Parallel" if stateful_set.parallel else "OrderedReady",
        "updateStrategy": strategy,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main"}]}},
    }
    if stateful_set.start:
        spec["ordinals"] = {"start": stateful_set.start}
    status = {"currentReplicas": stateful_set.current_replicas}
    return {"metadata": metadata(NAME), "spec": spec, "status": status}


def _pods(random: Random, now: datetime, stateful_set: StatefulSetState) -> list[Object]:
    wanted = range(stateful_set.start, stateful_set.start + stateful_set.replicas)
    # Half of the sets have all their pods, and few others: updates wait for that.
    is_complete = chance(random, 0.5)
    pods = []
    for ordinal in range(wanted.stop + 3):
        likelihood = 0.6
        if is_complete:
            likelihood = 1 if ordinal in wanted else 0.12
        if chance(random, likelihood):
            pods.append(_pod(random, now, ordinal, [stateful_set.current_revision, stateful_set.update_revision]))
    random.shuffle(pods)
    return pods


def _pod(random: Random, now: datetime, ordinal: int, revisions: list[str]) -> Object:
    is_well = chance(random, 0.75)
    phase = "Running" if is_well else random.choice(["Pending", "Running", "Failed", "Succeeded"])
    name = f"{NAME}-{ordinal}"
    if chance(random, 0.2):
        revisions = ["old", "new", "third"]
    labels = {REVISION_LABEL: random.choice(revisions), "statefulset.kubernetes.io/pod-name": name}
    pod = {
        "metadata": metadata(name, labels=labels, creationTimestamp=text_of(now - timedelta(hours=1))),
        "spec": {},
        "status": {
            "phase": phase,
            "conditions": [ready_condition(is_well or chance(random, 0.3), seconds_ago(random, now, 9, 10, 11, 3600))],
        },
    }
    if chance(random, 0.1):
        pod["metadata"]["deletionTimestamp"] = text_of(now)
    return pod


def _real_action(action: dict[str, str]) -> tuple[str, str]:
    return ("deleted", action["deleted"]) if "deleted" in action else (action["revision"], action["created"])


def _our_action(action: Action) -> tuple[str, str]:
    assert isinstance(action, CreatePods | DeletePod)
    return ("deleted", action.name) if isinstance(action, DeletePod) else (action.revision, action.name)


def _word(action: Action) -> str:
    return action.reason if isinstance(action, DeletePod) else "creates"
