"""Rollout deadlocks: a new pod needs what an old pod of the same Deployment holds until the new pod is ready.

The Deployment controller scales the old ReplicaSet down only as far as ``maxUnavailable`` allows, which is rounded
down: 25%, the default, is 0 for up to three replicas (``k8s.io/kubernetes`` v1.36.3
``pkg/controller/deployment/rolling.go``, ``pkg/controller/deployment/util/deployment_util.go`` ``ResolveFenceposts``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from kpreempt.analysis.remedies.search import Candidate
from kpreempt.analysis.simulation.cluster import Workloads, is_serving
from kpreempt.controllers.actions import SyncError, scaled_value
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import Deployment, DeploymentStrategy, RollingUpdate
from kpreempt.verdict import Verdict
from kpreempt.verdict.details import AffinityConflict, InsufficientResources, PortConflict, VolumeConflict
from kpreempt.verdict.remedies import Cause, CauseKind, Change, ChangeKind, ObjectEdit, RemedyStage

_DEFAULT = "25%"
_MOST_TRIED = 8

# Returns whether the pod lands without evictions in a cluster without these pods.
LandsWithout = Callable[[Sequence[Pod]], bool]


class Deadlock(msgspec.Struct, frozen=True):
    """The Deployment, and its old pods that must stop first.

    ``stops_one``: one old pod is enough. ``is_assumed``: the input lacks the Deployment, whose strategy is assumed to
    be the default.
    """

    workload: str
    old: Sequence[Pod]
    stops_one: bool
    is_assumed: bool


def deadlock_of(pod: Pod, cluster: ClusterSnapshot, lands_without: LandsWithout) -> Deadlock | None:
    """The rollout deadlock that the pending pod is in, if any."""
    owner, workloads = controller_of(pod.metadata), Workloads(cluster)
    if owner is None or owner.kind != "ReplicaSet":
        return None
    workload = workloads.of(pod)
    if not workload.startswith("Deployment "):
        return None
    # Unready old pods are removed first in any case, so they hold nothing for long.
    old = [
        each
        for each in cluster.pods
        if each.metadata.namespace == pod.metadata.namespace
        and is_serving(each)
        and (controller := controller_of(each.metadata)) is not None
        and controller.kind == "ReplicaSet"
        and controller.name != owner.name
        and workloads.of(each) == workload
    ]
    deployment = next((each for each in cluster.deployments if _name(each) == workload), None)
    if not old or _stops_old_pods(deployment, workloads.size_of(workload) or len(old)):
        return None
    one = next((each for each in old[:_MOST_TRIED] if lands_without([each])), None)
    if one is None and (len(old) == 1 or not lands_without(old)):
        return None
    is_assumed = deployment is None or deployment.spec.strategy is None
    return Deadlock(workload, old if one is None else [one], one is not None, is_assumed)


def cause_of(deadlock: Deadlock, verdict: Verdict) -> Cause:
    """The rollout deadlock, with what the old pods hold."""
    old = {each.key for each in deadlock.old}
    nodes = list(dict.fromkeys(each.spec.node_name for each in deadlock.old))
    held = ""
    for node in nodes:
        detail = verdict.filter[node].detail if node in verdict.filter else None
        if isinstance(detail, PortConflict) and not old.isdisjoint(detail.holders):
            held = f"host port {detail.port}/{detail.protocol}"
        elif isinstance(detail, InsufficientResources):
            held = " and ".join(
                "its pod slot" if each.resource == "pods" else each.resource for each in detail.shortfalls
            )
        elif isinstance(detail, AffinityConflict):
            held = f"the {detail.topology_key.rpartition('/')[2]} that anti-affinity excludes"
        elif isinstance(detail, VolumeConflict):
            held = f"claim {detail.claim}" if detail.claim else "its volume"
    return Cause(
        CauseKind.ROLLOUT_DEADLOCK,
        subject=deadlock.workload,
        resource=held,
        pods=[each.key for each in deadlock.old],
        nodes=nodes,
        is_assumed=deadlock.is_assumed,
    )


def strategies(deadlock: Deadlock) -> Iterator[Candidate]:
    """The strategies that stop old pods before new ones are ready."""
    rolling = {"maxSurge": 0, "maxUnavailable": 1}
    if deadlock.stops_one:
        yield _with_strategy(
            deadlock, {"type": "RollingUpdate", "rollingUpdate": rolling}, "spec.strategy.rollingUpdate", rolling
        )
    yield _with_strategy(deadlock, {"type": "Recreate", "rollingUpdate": None}, "spec.strategy.type", "Recreate")


def _with_strategy(deadlock: Deadlock, strategy: dict[str, object], field: str, value: object) -> Candidate:
    return Candidate(
        stage=RemedyStage.REPAIR,
        changes=[Change(ChangeKind.SET, subject=deadlock.workload, field=field, value=value)],
        edits=[ObjectEdit(deadlock.workload, {"spec": {"strategy": strategy}})],
        is_alone=True,
    )


def _name(deployment: Deployment) -> str:
    return f"Deployment {deployment.metadata.namespace}/{deployment.metadata.name}"


def _stops_old_pods(deployment: Deployment | None, replicas: int) -> bool:
    """Whether the rollout stops old pods before the new ones are ready."""
    strategy = (deployment.spec.strategy if deployment is not None else None) or DeploymentStrategy()
    if strategy.type == "Recreate":
        return True
    rolling = strategy.rolling_update or RollingUpdate()
    unavailable = _DEFAULT if rolling.max_unavailable is None else rolling.max_unavailable
    surge = _DEFAULT if rolling.max_surge is None else rolling.max_surge
    try:
        surges = scaled_value(surge, replicas, round_up=True)
        # If both are 0, the controller uses a maxUnavailable of 1.
        return scaled_value(unavailable, replicas, round_up=False) > 0 or surges == 0
    except SyncError:
        # What the controller does with such a text is unknown, so nothing is said.
        return True
