"""Objections to where the pods of a change run, and to who owns them.

Pods that bypass the scheduler or never get their volume, pods that a controller adopts, nodes without a kubelet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kpreempt.analysis.check.gate import Objection
from kpreempt.analysis.check.naming import some_of
from kpreempt.analysis.check.rollout.records import Adoption, Plan, PlannedWorkload
from kpreempt.analysis.document_reader import mapping_in
from kpreempt.analysis.simulation.kubelet import is_not_ready
from kpreempt.analysis.simulation.workloads import Workloads
from kpreempt.controllers.pods import is_ready
from kpreempt.gate_rules import RuleId
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.verdict.check import ChangeKind
from kpreempt.verdict.simulation import ATTACHED_ELSEWHERE, NOT_ADMITTED, Simulation, SimulationStep, StepKind

_NODE = "Node "
_ONE_AT_A_TIME = "Set spec.strategy.type to Recreate, so that the old pod is gone before the new one comes."
_OWN_VOLUMES = "Run one pod, use a volume with ReadWriteMany, or a StatefulSet whose pods have claims of their own."


def placement_objections(plan: Plan, after: ClusterSnapshot, simulation: Simulation) -> Iterator[Objection]:
    """All of them. ``after`` is the cluster at the end of the simulation."""
    blocked = _blocked(after, simulation)
    yield from _of_volumes(plan.workloads, blocked.get(ATTACHED_ELSEWHERE, {}))
    yield from _of_node_names(plan, after, blocked.get(NOT_ADMITTED, {}), simulation)
    for adoption in plan.adoptions:
        yield _of_adoption(adoption, simulation)
    for each in plan.changes:
        if each.kind is ChangeKind.CREATED and each.object.startswith(_NODE):
            detail = "the API server taints it node.kubernetes.io/not-ready:NoSchedule, and no kubelet runs there"
            yield Objection(RuleId.CREATED_NODES, each.object, detail)


def _blocked(after: ClusterSnapshot, simulation: Simulation) -> dict[str, dict[str, list[SimulationStep]]]:
    """Why pods that have a node do not run there in the end, by reason and workload."""
    steps = {step.pod: step for step in simulation.steps if step.kind is StepKind.BLOCKED}
    found: dict[str, dict[str, list[SimulationStep]]] = {}
    if steps:
        names = Workloads(after)
        for pod in after.pods:
            step = steps.get(pod.key)
            is_leaving = pod.is_terminal or pod.metadata.deletion_timestamp is not None
            if step is not None and not is_leaving and not is_ready(pod):
                found.setdefault(step.reason, {}).setdefault(names.of(pod), []).append(step)
    return found


def _of_volumes(workloads: Sequence[PlannedWorkload], blocked: dict[str, list[SimulationStep]]) -> Iterator[Objection]:
    by_name = {each.change.object: each for each in workloads}
    for name, steps in blocked.items():
        workload = by_name.get(name)
        spec = mapping_in(workload.after, "spec") if workload is not None and workload.after is not None else {}
        is_single = workload is not None and workload.kind == "Deployment" and spec.get("replicas", 1) == 1
        fix = _ONE_AT_A_TIME if is_single else _OWN_VOLUMES
        pods = [step.pod for step in steps]
        detail = f"{some_of(pods)} on {steps[0].node}: {steps[0].message}"
        yield Objection(RuleId.VOLUME_ATTACHED_ELSEWHERE, name, detail, fix, pods=pods)


def _of_node_names(
    plan: Plan, after: ClusterSnapshot, blocked: dict[str, list[SimulationStep]], simulation: Simulation
) -> Iterator[Objection]:
    nodes = {each.name: each for each in after.nodes}
    rule = RuleId.BYPASSES_SCHEDULER
    for name in dict.fromkeys([*plan.node_names, *blocked]):
        steps = blocked.get(name, [])
        if steps:
            pods = [step.pod for step in steps]
            yield Objection(rule, name, f"{some_of(pods)}: {steps[0].message}", is_grave=True, pods=pods)
            continue
        node = nodes.get(plan.node_names[name])
        victims = _evicted_by(name, after, simulation)
        if node is None:
            detail = f"node {plan.node_names[name]} does not exist"
        elif victims:
            detail = f"the kubelet of {node.name} evicts {some_of(victims)} for it, and checks no PodDisruptionBudget"
        elif is_not_ready(node):
            detail = f"node {node.name} is not ready"
        elif node.spec.unschedulable:
            detail = f"node {node.name} is cordoned, and its kubelet starts the pods nevertheless"
        else:
            detail = f"nodeName is {node.name}, and the scheduler's filters (taints, affinity, spreading) do not apply"
            yield Objection(rule, name, detail)
            continue
        yield Objection(rule, name, detail, is_grave=True)


def _evicted_by(workload: str, after: ClusterSnapshot, simulation: Simulation) -> list[str]:
    """The pods that had to go for pods of a workload."""
    if not simulation.displaced:
        return []
    names = Workloads(after)
    own = {pod.key for pod in after.pods if names.of(pod) == workload}
    return [each.pod for each in simulation.displaced if each.cause in own]


def _of_adoption(adoption: Adoption, simulation: Simulation) -> Objection:
    objects = [each.removeprefix("Pod ") for each in adoption.objects]
    them, its = ("it", "its") if len(objects) == 1 else ("them", "their")
    has_sets = adoption.objects[0].startswith("ReplicaSet ")
    if adoption.surplus is not None:
        gone = adoption.surplus
        deletes = f"scales {them} to 0 unless {its} template is its own" if has_sets else f"deletes {gone} of {them}"
    else:
        sets = {each.removeprefix("ReplicaSet ") for each in adoption.objects if has_sets}
        pods = {
            step.pod
            for step in simulation.steps
            if step.kind is StepKind.LEAVES and not step.cause and (step.pod in objects or _set_of(step) in sets)
        }
        gone = len(pods)
        deletes = f"deletes {'1 pod' if gone == 1 else f'{gone} pods'}{f' of {them}' if has_sets else ''}"
    detail = f"{some_of(objects)}" + (f", and {deletes}" if gone else ", and keeps all of them")
    return Objection(RuleId.ADOPTED_PODS, adoption.owner, detail, change=adoption.change, is_grave=gone > 0)


def _set_of(step: SimulationStep) -> str:
    """The ReplicaSet that owns a pod, with its namespace; empty if none does."""
    kind, _, name = step.owner.partition(" ")
    return f"{step.pod.partition('/')[0]}/{name}" if kind == "ReplicaSet" else ""
