"""Rollout deadlocks: a new pod needs what an old pod of the same workload holds until the new pod is ready."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.check.rollout.records import Plan
from kpreempt.analysis.check.simulations import Simulated
from kpreempt.analysis.naming import some_of
from kpreempt.analysis.simulation.cluster import Workloads, is_serving
from kpreempt.analysis.simulation.kubelet import is_not_ready
from kpreempt.gate_rules import DEADLOCK
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import mapping_in
from kpreempt.model.pod import Pod
from kpreempt.verdict import Outcome
from kpreempt.verdict.details import (
    AffinityConflict,
    InsufficientDevices,
    InsufficientResources,
    PortConflict,
    SpreadConflict,
    VolumeConflict,
)
from kpreempt.verdict.simulation import StepKind

_HOST = "kubernetes.io/hostname"
_SURGING = ("Deployment", "DaemonSet")


class Deadlock(msgspec.Struct, frozen=True):
    """What a new pod waits for, in a sentence; ``keeps_apart``: it can never share a node with the old pod."""

    sentence: str
    keeps_apart: bool


def deadlocks_in(
    plan: Plan, simulated: Simulated, scheduler: Scheduler, now: datetime
) -> Iterator[tuple[str, Deadlock]]:
    """The workloads in a rollout deadlock at the end of a simulation.

    Their old pods still run, and without these, a new pod would be scheduled.
    """
    stuck = {each.workload for each in simulated.simulation.workloads if each.is_changed and not each.is_done}
    candidates = [
        each.change.object
        for each in plan.workloads
        if each.kind in _SURGING and each.before is not None and each.after is not None and each.change.object in stuck
    ]
    waiting: dict[str, str] = {}
    for each in simulated.simulation.pending:
        if not each.pending_before:
            waiting.setdefault(each.workload, each.pod)
    if not (candidates := [each for each in candidates if each in waiting]):
        return
    after, names = simulated.after, Workloads(simulated.after)
    known = {each.key for each in simulated.before.pods}
    pods = {each.key: each for each in after.pods}
    for name in candidates:
        pod = pods.get(waiting[name])
        old = [each for each in after.pods if each.key in known and is_serving(each) and names.of(each) == name]
        if pod is not None and old and (found := _deadlock(pod, old, after, scheduler, now)) is not None:
            yield name, found


def stalled_sets(plan: Plan, simulated: Simulated) -> Iterator[tuple[str, str]]:
    """The StatefulSets that wait for a pod that is not ready, with a sentence about it.

    With the policy ``OrderedReady``, a StatefulSet does not replace such a pod by a newer revision
    (``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/statefulset/stateful_set_control.go``; "forced rollback" in its
    documentation).
    """
    stuck = {each.workload for each in simulated.simulation.workloads if each.is_changed and not each.is_done}
    names: Workloads | None = None
    for each in plan.workloads:
        name = each.change.object
        if each.kind != "StatefulSet" or each.before is None or each.after is None or name not in stuck:
            continue
        names = names or Workloads(simulated.after)
        known = {pod.key for pod in simulated.before.pods if pod.spec.node_name}
        created = {step.pod for step in simulated.simulation.steps if step.kind is StepKind.CREATED}
        unready = [
            pod.key
            for pod in simulated.after.pods
            if pod.key in known - created and pod.is_active and not is_serving(pod) and names.of(pod) == name
        ]
        if unready and mapping_in(each.after, "spec").get("podManagementPolicy") != "Parallel":
            yield name, f"it waits for {min(unready)}, which is not ready, and does not replace it (OrderedReady)"


def pods_on_broken_nodes(simulated: Simulated) -> Iterator[tuple[str, str]]:
    """The workloads that are not done and have pods on nodes that are not ready, with a sentence about one of them."""
    stuck = {each.workload for each in simulated.simulation.workloads if each.is_changed and not each.is_done}
    broken = {each.name for each in simulated.after.nodes if is_not_ready(each)}
    if not (stuck and broken):
        return
    names = Workloads(simulated.after)
    found: dict[str, str] = {}
    for pod in simulated.after.pods:
        node = pod.spec.node_name
        if node in broken and not pod.is_terminal and not is_serving(pod) and (name := names.of(pod)) in stuck:
            found.setdefault(name, f"its pod {pod.key} is on {node}, which is not ready")
    yield from found.items()


def budgets_of(plan: Plan) -> Iterator[tuple[str, str]]:
    """The workloads of a change with a PodDisruptionBudget, which does not apply to rollouts."""
    for each in plan.workloads:
        labels = mapping_in(each.after or {}, "spec", "template", "metadata", "labels")
        for budget in plan.cluster.pod_disruption_budgets:
            selector = budget.spec.selector
            if budget.metadata.namespace == each.namespace and selector is not None and selector.matches(labels):
                yield each.change.object, budget.key


def _deadlock(
    pod: Pod, old: Sequence[Pod], cluster: ClusterSnapshot, scheduler: Scheduler, now: datetime
) -> Deadlock | None:
    gone = {pod.key, *(each.key for each in old)}
    freed = msgspec.structs.replace(cluster, pods=[each for each in cluster.pods if each.key not in gone])
    verdict = scheduler.decide(scheduler.prepare(freed, now=now), pod, records_steps=False, records_scores=False)
    holder = next((each for each in old if each.spec.node_name in verdict.lands_on), None)
    if verdict.outcome is not Outcome.LANDS or holder is None:
        return None
    prepared = scheduler.prepare(cluster, now=now)
    evaluation = scheduler.describe_node(prepared, pod, holder.spec.node_name)
    statuses = [each for each in (evaluation.pre_filter, *evaluation.filters) if each is not None]
    details = [each.detail for each in statuses if not each.is_success]
    until = "until the new pod is ready"
    for detail in details:
        keeps_apart = isinstance(detail, (PortConflict, AffinityConflict))
        if isinstance(detail, AffinityConflict):
            place = "a node" if detail.topology_key == _HOST else f"the same {detail.topology_key}"
            text = f"the new pod cannot be on {place} with the old pod {holder.key}, which stays {until}"
        elif isinstance(detail, SpreadConflict):
            text = f"the old pod {holder.key} counts for the spread over {detail.topology_key}, and stays {until}"
        elif isinstance(detail, PortConflict):
            text = f"the new pod waits for host port {detail.port}, which the old pod {holder.key} holds {until}"
        else:
            text = f"the new pod waits for {_resource(detail)}, which the old pod {holder.key} holds {until}"
        return Deadlock(f"{DEADLOCK}: {text}", keeps_apart)
    return None


def _resource(detail: object) -> str:
    if isinstance(detail, InsufficientResources):
        return some_of([each.resource for each in detail.shortfalls])
    if isinstance(detail, InsufficientDevices):
        return f"a device of class {detail.device_class}"
    if isinstance(detail, VolumeConflict):
        return f"volume {detail.claim or detail.volume}"
    return "its node"
