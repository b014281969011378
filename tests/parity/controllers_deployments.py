"""Deployments: the sizes of their ReplicaSets."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

import msgspec

from kpreempt.controllers.actions import Action, CreateReplicaSet, ScaleReplicaSet
from kpreempt.controllers.deployment import DeploymentState, ReplicaSetState, StrategyType, reconcile_deployment
from tests.parity.controllers_states import Compared, Object, State, chance, metadata, owner, text_of
from tests.parity.reference import Answer

NAME = "web"
NEW = "new"
# The annotations with the Deployment's size on its ReplicaSets.
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
# A current revision, so that nothing is written because of it.
REVISION = {"deployment.kubernetes.io/revision": "9"}

# By a ReplicaSet's name, empty for a new one: its size, and both annotations.
_Sizes = dict[str, tuple[int, int | None, int | None]]


def draw_deployment(random: Random, now: datetime) -> State:
    """A Deployment during a rollout, scaling, both, or neither."""
    deployment = _deployment(random)
    size = deployment.replicas
    new = _replica_set(random, now, NEW, size) if chance(random, 0.75) else None
    if new is not None and chance(random, 0.5):
        new = msgspec.structs.replace(new, replicas=min(new.replicas, size))
    old = [_replica_set(random, now, f"old{number}", size) for number in range(random.choice([0, 1, 1, 1, 2, 3]))]
    if chance(random, 0.6):
        # The annotated size equals its size, so that this is not about scaling.
        new = new and msgspec.structs.replace(new, desired_replicas=size)
        old = [msgspec.structs.replace(each, desired_replicas=size) for each in old]
    every = [each for each in (*old, new) if each is not None]

    def compare(answer: Answer) -> Compared:
        actions = reconcile_deployment(deployment, new, old)
        word = "paused" if deployment.paused else deployment.strategy
        return Compared(_written(answer, every), _ours(actions), word if actions else "nothing")

    request = {
        "controller": "Deployment",
        "deployment": _deployment_object(deployment),
        "replicaSets": [_replica_set_object(each) for each in every],
        # Only its existence counts.
        "pods": {each.name: [_running_pod(each.name, n) for n in range(min(each.unfinished, 3))] for each in every},
    }
    return State(request, compare)


def _deployment(random: Random) -> DeploymentState:
    replicas = random.choice([0, 1, 2, 3, 4, 5, 7, 10, random.randint(0, 40), random.randint(0, 2000)])
    strategy: StrategyType = "Recreate" if chance(random, 0.2) else "RollingUpdate"
    return DeploymentState(
        replicas=replicas,
        strategy=strategy,
        max_surge=_amount(random),
        max_unavailable=_amount(random),
        paused=chance(random, 0.1),
        status_replicas=random.choice([0, replicas, random.randint(0, 15)]),
    )


def _amount(random: Random) -> int | str:
    amounts: list[int | str] = [
        0,
        1,
        2,
        3,
        5,
        random.randint(0, 12),
        f"{random.randint(0, 130)}%",
        "25%",
        "50%",
        "100%",
    ]
    return random.choice(amounts)


def _replica_set(random: Random, now: datetime, name: str, deployment_size: int) -> ReplicaSetState:
    near = [deployment_size, max(deployment_size - 1, 0), random.randint(0, max(deployment_size, 1))]
    size = random.choice([0, 0, 1, 2, 3, *near, random.randint(0, 12)])
    pods = random.choice([size, size, size, random.randint(0, size + 2)])
    desired = random.choice([None, deployment_size])
    if size or chance(random, 0.5):
        desired = random.choice([*[deployment_size] * 5, None, random.randint(0, 12)])
    most = random.choice([None, 0, deployment_size, deployment_size + 2, random.randint(1, 20)])
    return ReplicaSetState(
        name=name,
        replicas=size,
        pods=pods,
        available=random.choice([pods, pods, random.randint(0, pods)]),
        unfinished=random.choice([pods, pods, pods + random.randint(0, 2)]),
        created=now - timedelta(hours=random.randint(1, 4)),
        desired_replicas=desired,
        max_replicas=None if desired is None else most,
    )


def _deployment_object(deployment: DeploymentState) -> Object:
    strategy: Object = {"type": deployment.strategy}
    if deployment.strategy == "RollingUpdate":
        amounts = {"maxSurge": deployment.max_surge, "maxUnavailable": deployment.max_unavailable}
        strategy["rollingUpdate"] = amounts
    return {
        "metadata": metadata(NAME, annotations=REVISION),
        "spec": {
            "replicas": deployment.replicas,
            "paused": deployment.paused,
            "selector": {"matchLabels": {"app": NAME}},
            "template": _template(NEW),
            "strategy": strategy,
        },
        "status": {"replicas": deployment.status_replicas},
    }


def _replica_set_object(replica_set: ReplicaSetState) -> Object:
    annotations = dict(REVISION) if replica_set.name == NEW else {}
    for note, size in ((DESIRED, replica_set.desired_replicas), (MOST, replica_set.max_replicas)):
        if size is not None:
            annotations[note] = str(size)
    assert replica_set.created is not None
    return {
        "metadata": metadata(
            replica_set.name,
            annotations=annotations,
            creationTimestamp=text_of(replica_set.created),
            ownerReferences=[owner("Deployment", NAME)],
        ),
        "spec": {
            "replicas": replica_set.replicas,
            "selector": {"matchLabels": {"app": NAME}},
            "template": _template(replica_set.name),
        },
        "status": {
            "replicas": replica_set.pods,
            "availableReplicas": replica_set.available,
            "readyReplicas": replica_set.available,
        },
    }


def _template(version: str) -> Object:
    container = {"name": "main", "image": "web"}
    return {"metadata": {"labels": {"app": NAME, "version": version}}, "spec": {"containers": [container]}}


def _running_pod(replica_set: str, number: int) -> Object:
    return {"metadata": metadata(f"{replica_set}-{number}"), "status": {"phase": "Running"}}


def _written(answer: Answer, before: list[ReplicaSetState]) -> _Sizes:
    """What the real controller wrote, without writes that do not change the sizes."""
    known = {each.name: (each.replicas, each.desired_replicas, each.max_replicas) for each in before}
    sizes = {
        "" if each["isNew"] else each["name"]: (
            each["replicas"],
            _noted(each["desiredReplicas"]),
            _noted(each["maxReplicas"]),
        )
        for each in answer["answer"]["written"]
    }
    return {name: size for name, size in sizes.items() if known.get(name) != size}


def _noted(text: str) -> int | None:
    return int(text) if text else None


def _ours(actions: list[Action]) -> _Sizes:
    sizes: _Sizes = {}
    for action in actions:
        assert isinstance(action, CreateReplicaSet | ScaleReplicaSet)
        name = "" if isinstance(action, CreateReplicaSet) else action.name
        sizes[name] = (action.replicas, action.desired_replicas, action.max_replicas)
    return sizes
