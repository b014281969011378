"""PodDisruptionBudgets: the status that the disruption controller sets."""

from __future__ import annotations

from datetime import datetime
from random import Random

import msgspec

from kpreempt.controllers.actions import SyncError
from kpreempt.controllers.disruption import Candidates, Scales, sync_budget
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.model.workloads import Deployment, ReplicaSet, StatefulSet
from tests.parity.controllers_states import Compared, Object, State, chance, metadata, owner, seconds_ago, text_of
from tests.parity.reference import Answer

# The last ReplicaSet has no Deployment.
DEPLOYMENTS = ["d0", "d1"]
REPLICA_SETS = {"r0": "d0", "r1": "d1", "r2": "d0", "r3": None}
STATEFUL_SET = "s0"
ODD_AMOUNTS = ["half", "-5%", "+7%"]


def draw_budget(random: Random, now: datetime) -> State:
    """A budget with pods of several owners, for some of which an eviction was granted but not executed yet."""
    budget = _budget(random, now)
    pods = [_pod(random, now, f"p{number}") for number in range(random.randint(0, 10))]
    deployments = [_workload(random, name) for name in DEPLOYMENTS]
    replica_sets = [_workload(random, name, above) for name, above in REPLICA_SETS.items()]
    stateful_sets = [_workload(random, STATEFUL_SET)]
    cluster = ClusterSnapshot(
        pods=msgspec.convert(pods, list[Pod]),
        replica_sets=msgspec.convert(replica_sets, list[ReplicaSet]),
        deployments=msgspec.convert(deployments, list[Deployment]),
        stateful_sets=msgspec.convert(stateful_sets, list[StatefulSet]),
    )
    request = {
        "controller": "PodDisruptionBudget",
        "now": text_of(now),
        "budget": budget,
        "pods": pods,
        "replicaSets": replica_sets,
        "deployments": deployments,
        "statefulSets": stateful_sets,
    }
    typed = msgspec.convert(budget, PodDisruptionBudget)
    return State(request, lambda answer: _compare(answer, typed, cluster, now), may_fail=True)


def _compare(answer: Answer, budget: PodDisruptionBudget, cluster: ClusterSnapshot, now: datetime) -> Compared:
    real = None
    if "error" not in answer:
        status = answer["answer"]
        counts = ("currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed")
        real = (*(status.get(count, 0) for count in counts), status.get("disruptedPods") or {})
    try:
        ours = sync_budget(budget, Candidates(cluster.pods).of(budget), Scales(cluster).scale_of, now).status
    except SyncError:
        return Compared(real, None, "fails")
    word = "minAvailable" if budget.spec.min_available is not None else "none"
    return Compared(
        real,
        (
            ours.current_healthy,
            ours.desired_healthy,
            ours.expected_pods,
            ours.disruptions_allowed,
            ours.disrupted_pods,
        ),
        word if budget.spec.max_unavailable is None else "maxUnavailable",
    )


def _budget(random: Random, now: datetime) -> Object:
    selectors: list[Object] = [{"matchLabels": {"app": "a"}}, {"matchLabels": {"app": "b"}}, {}]
    if chance(random, 0.1):
        # Invalid: In requires values.
        selectors = [{"matchExpressions": [{"key": "app", "operator": "In"}]}]
    amounts: list[int | str] = [0, 1, 2, 3, 9, "0%", "1%", "25%", "33%", "34%", "50%", "100%", "130%"]
    spec: Object = {"selector": random.choice(selectors)}
    limit = random.choice(["minAvailable", "maxUnavailable", "maxUnavailable", ""])
    if limit:
        spec[limit] = random.choice(ODD_AMOUNTS if chance(random, 0.15) else amounts)
    status = {}
    if chance(random, 0.5):
        # An eviction is granted for two minutes.
        status["disruptedPods"] = {
            f"p{number}": text_of(seconds_ago(random, now, 0, 60, 119, 120, 121, 500))
            for number in range(random.randint(0, 6))
        }
    return {"metadata": metadata("b", generation=3), "spec": spec, "status": status}


def _workload(random: Random, name: str, deployment: str | None = None) -> Object:
    above = {} if deployment is None else {"ownerReferences": [owner("Deployment", deployment)]}
    return {"metadata": metadata(name, **above), "spec": {"replicas": random.randint(0, 9)}}


def _pod(random: Random, now: datetime, name: str) -> Object:
    owners = [[owner("ReplicaSet", each)] for each in REPLICA_SETS] + [[owner("StatefulSet", STATEFUL_SET)], []]
    pod = {
        "metadata": metadata(
            name, labels={"app": random.choice(["a", "a", "b"])}, ownerReferences=random.choice(owners)
        ),
        "status": {
            "phase": random.choice(["Running", "Pending", "Failed"]),
            "conditions": [{"type": "Ready", "status": random.choice(["True", "True", "False"])}],
        },
    }
    if chance(random, 0.1):
        pod["metadata"]["deletionTimestamp"] = text_of(now)
    return pod
