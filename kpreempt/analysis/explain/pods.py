"""Explains pods: the verdict on each pod by itself in a cluster, with remedies (``remedies``) if it needs any.

Also computes the utilization of the nodes in verdicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import AnalysisContext, Scheduler, timed_by_part
from kpreempt.analysis.nodes.copies import (
    allocatable_of,
)
from kpreempt.analysis.unread import BUDGETS
from kpreempt.model.cluster import REDACTED_AT, ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.kube.framework.resources import pod_requests, requests_in_units
from kpreempt.verdict import Assumption, ClusterSummary, DefaultedField, PodSummary, Verdict
from kpreempt.verdict.node_report import NodeHealth, NodeState, NodeUse, Occupancy
from kpreempt.verdict.unread import unread_of


class ExplainInput(msgspec.Struct, frozen=True, kw_only=True):
    """A pod as the scheduler would see it, with its origin.

    ``origin`` is its workload (``Deployment shop/api``), empty for a plain pod. ``admission`` lists defaulted fields.
    ``found`` is the pod in the cluster, if it exists, and ``manifest`` the pod that a new one was created from.
    """

    pod: Pod
    found: Pod | None = None
    manifest: Pod | None = None
    origin: str = ""
    admission: list[DefaultedField] = []
    assumptions: list[Assumption] = []


SimulateRest = Callable[[int, Verdict, Any], Verdict]


def explain_pods(
    context: AnalysisContext,
    inputs: Iterable[ExplainInput],
    *,
    node_name: str = "",
    proposes: bool = False,
    simulates_on: bool = False,
    records_steps: bool = True,
    simulate_rest: SimulateRest | None = None,
    whole: ClusterSnapshot | None = None,
) -> list[Verdict]:
    """The verdict on each pod against the same cluster, in the order of the input.

    With ``node_name``, each verdict has the full report on that node. Otherwise, with ``proposes``, pods that are
    unschedulable or preempt get remedies. With ``simulates_on``, each verdict includes what happens next. The input is
    not modified. Raises ``NotFoundError`` if the node is not in the cluster.

    Without ``records_steps``, only the best candidates have the steps of their victim selection, unless there is a
    ``node_name``. ``simulate_rest`` extends each verdict; it gets the index of the pod and the prepared cluster.
    ``whole`` is the cluster with the existing pods in question, which keep their turn in the queue.
    """
    cluster, scheduler, phases, at = context.cluster, context.scheduler, context.phases, context.time
    if node_name:
        from kpreempt.analysis.nodes.changes import check_node  # noqa: PLC0415 - rarely needed

        check_node(cluster, node_name)
    with phases.phase("prepare"):
        prepared = scheduler.prepare(cluster, now=at, expects_equivalent_pods=simulate_rest is not None)
    verdicts = []
    within = timed_by_part(scheduler, phases)
    for index, explain_input in enumerate(inputs):
        verdict = explain_pod(
            cluster,
            explain_input,
            scheduler,
            prepared,
            now=context.now,
            assumptions=context.assumptions,
            records_steps=records_steps or bool(node_name),
            phases=phases,
        )
        if node_name or (proposes and (verdict.outcome.stays_pending or verdict.outcome.preempts) and cluster.nodes):
            with phases.phase("remedies"):
                verdict = _with_remedies(verdict, within, cluster, prepared, explain_input, node_name, now=at)
        remedies = [*verdict.remedies, *(verdict.node_report.remedies if verdict.node_report is not None else ())]
        if any(each.evicted for each in remedies):
            # PDBs may not have been read.
            both = dict.fromkeys([*verdict.assumptions, *unread_of(cluster, [BUDGETS])])
            verdict = msgspec.structs.replace(verdict, assumptions=list(both))
        if simulates_on:
            from kpreempt.analysis.simulation.engine import SimulationStart, simulate  # noqa: PLC0415 - rarely needed

            pod = explain_input.pod
            with phases.phase("aftermath"):
                if whole is not None and is_waiting(explain_input):
                    queued = with_pod(whole, explain_input)
                    start = SimulationStart(observed=[pod.key])
                    aftermath, assumed, _ = simulate(queued, start, scheduler, now=at)
                else:
                    start = SimulationStart(arriving=[pod])
                    aftermath, assumed, _ = simulate(cluster, start, scheduler, now=at, prepared=prepared)
            both = dict.fromkeys([*verdict.assumptions, *assumed])
            verdict = msgspec.structs.replace(verdict, aftermath=aftermath, assumptions=list(both))
        if simulate_rest is not None:
            verdict = simulate_rest(index, verdict, prepared)
        verdicts.append(verdict)
    return verdicts


def is_waiting(explain_input: ExplainInput) -> bool:
    """Whether the pod exists and has no node."""
    found = explain_input.found
    return found is not None and not found.spec.node_name and not found.is_terminal


def with_pod(whole: ClusterSnapshot, explain_input: ExplainInput) -> ClusterSnapshot:
    """The whole cluster, in which the existing pod is as in the question."""
    found, pod = explain_input.found, explain_input.pod
    return msgspec.structs.replace(whole, pods=[pod if each is found else each for each in whole.pods])


def _with_remedies(
    verdict: Verdict,
    scheduler: Scheduler,
    cluster: ClusterSnapshot,
    prepared: Any,
    explain_input: ExplainInput,
    node_name: str,
    *,
    now: datetime,
) -> Verdict:
    """The verdict with the report on a node, or with remedies if there is no ``node_name``.

    The search is imported here because pods that fit do not need it.
    """
    from kpreempt.analysis.explain.remedies import Situation, find_remedies  # noqa: PLC0415

    situation = Situation(cluster, prepared, explain_input.pod, verdict)
    stated = _stated_tolerations(explain_input)
    if node_name:
        from kpreempt.analysis.explain.node_report import explain_node  # noqa: PLC0415

        report = explain_node(scheduler, situation, node_name, stated, now=now)
        return msgspec.structs.replace(verdict, node_report=report)
    found = find_remedies(scheduler, situation, stated, now=now)
    return msgspec.structs.replace(verdict, remedies=found.remedies, remedy_search=found.search, causes=found.causes)


def _stated_tolerations(explain_input: ExplainInput) -> int:
    """The number of tolerations of the pod, without those that admission added."""
    added = sum(each.path.startswith("spec.tolerations[") for each in explain_input.admission)
    return max(0, len(explain_input.pod.spec.tolerations) - added)


def explain_pod(
    cluster: ClusterSnapshot,
    explain_input: ExplainInput,
    scheduler: Scheduler,
    prepared: Any,
    *,
    now: datetime,
    assumptions: Iterable[Assumption] = (),
    records_steps: bool = True,
    phases: Phases = NO_PHASES,
) -> Verdict:
    """The verdict on one pod in a prepared cluster, with its context."""
    verdict = scheduler.decide(prepared, explain_input.pod, records_steps=records_steps, phases=phases)
    found, counts = explain_input.found, []
    if found is not None and not found.spec.node_name:
        from kpreempt.analysis.pending.states import other_node_counts  # noqa: PLC0415 - only for existing pods

        counts = other_node_counts([found], cluster, now)
    return msgspec.structs.replace(
        verdict,
        pod=_found(msgspec.structs.replace(verdict.pod, origin=explain_input.origin), found),
        cluster=described(verdict.cluster, cluster, now),
        admission=[*verdict.admission, *explain_input.admission],
        assumptions=[*assumptions, *explain_input.assumptions, *verdict.assumptions, *counts],
    )


def _found(summary: PodSummary, found: Pod | None) -> PodSummary:
    """The summary with the pod's current node and phase, if it is assigned or has finished."""
    if found is None or not (found.spec.node_name or found.is_terminal):
        return summary
    phase = "Running" if found.status.phase == "Running" else "Pending"
    if found.is_terminal:
        phase = "Finished"
    elif found.metadata.deletion_timestamp is not None:
        phase = "Terminating"
    return msgspec.structs.replace(summary, current_node=found.spec.node_name, current_phase=phase)


def summed_up(cluster: ClusterSnapshot, now: datetime) -> ClusterSummary:
    """The size of the cluster, without finished pods, and the age of its data."""
    summary = ClusterSummary(nodes=len(cluster.nodes), pods=sum(not pod.is_terminal for pod in cluster.pods))
    return described(summary, cluster, now)


def described(summary: ClusterSummary, cluster: ClusterSnapshot, now: datetime) -> ClusterSummary:
    """A scheduler's summary of a cluster with the snapshot's metadata, and its unhealthy nodes.

    A redacted snapshot has no age.
    """
    taken_at = cluster.taken_at
    is_dated = taken_at is not None and taken_at != REDACTED_AT
    return msgspec.structs.replace(
        summary,
        version=cluster.version,
        taken_at=taken_at,
        age_seconds=max(0, int((now - taken_at).total_seconds())) if taken_at and is_dated else None,
        skipped=cluster.skipped,
        unhealthy=unhealthy_nodes(cluster.nodes) or msgspec.UNSET,
    )


# The taints of ``k8s.io/kubernetes`` v1.36.3 ``pkg/controller/nodelifecycle`` and ``k8s.io/cloud-provider``, of Cluster
# Autoscaler's ``utils/taints``, and of Karpenter's ``pkg/apis/v1/taints.go``.
_BY_TAINT = {
    "node.kubernetes.io/unreachable": NodeState.UNREACHABLE,
    "node.kubernetes.io/not-ready": NodeState.NOT_READY,
    "node.cloudprovider.kubernetes.io/shutdown": NodeState.SHUT_DOWN,
    "node.kubernetes.io/out-of-service": NodeState.OUT_OF_SERVICE,
    "ToBeDeletedByClusterAutoscaler": NodeState.REMOVED_BY_CLUSTER_AUTOSCALER,
    "karpenter.sh/disrupted": NodeState.REMOVED_BY_KARPENTER,
    "karpenter.sh/disruption": NodeState.REMOVED_BY_KARPENTER,
    "DeletionCandidateOfClusterAutoscaler": NodeState.REMOVAL_CANDIDATE,
}
_BY_READY = {"False": NodeState.NOT_READY, "Unknown": NodeState.UNREACHABLE}


def unhealthy_nodes(nodes: Iterable[Node]) -> list[NodeHealth]:
    """The nodes with which something is wrong, in the order of the input."""
    return [each for node in nodes if (each := _health(node)) is not None]


def _health(node: Node) -> NodeHealth | None:
    found = set(_states(node))
    if not found:
        return None
    ready = node.not_ready
    states = [state for state in NodeState if state in found]
    if ready is None:
        return NodeHealth(node=node.name, states=states)
    return NodeHealth(
        node=node.name, states=states, reason=ready.reason, message=ready.message, since=ready.last_transition_time
    )


def _states(node: Node) -> Iterator[NodeState]:
    if node.metadata.deletion_timestamp is not None:
        yield NodeState.BEING_DELETED
    ready = node.not_ready
    if ready is not None and ready.status in _BY_READY:
        yield _BY_READY[ready.status]
    for taint in node.spec.taints:
        state = _BY_TAINT.get(taint.key)
        # One taint follows the other when the condition changes; the condition is what holds.
        is_outdated = state in _BY_READY.values() and ready is not None and ready.status in _BY_READY
        if state is not None and not is_outdated:
            yield state


def occupancy_of(cluster: ClusterSnapshot, verdicts: Iterable[Verdict]) -> Occupancy:
    """The requests of the pods on every node, including terminating ones, and those of the possible victims."""
    victims = {
        pod
        for verdict in verdicts
        for candidate in verdict.candidates
        for pod in (*candidate.victims, *(pod for each in candidate.possible for pod in each.pods))
    }
    used: dict[str, Counter[str]] = {}
    nominated: dict[str, list[str]] = {}
    requests = {}
    for pod in cluster.pods:
        if pod.is_terminal:
            continue
        if not pod.spec.node_name:
            if pod.status.nominated_node_name:
                nominated.setdefault(pod.status.nominated_node_name, []).append(pod.key)
            continue
        amounts = {**requests_in_units(pod_requests(pod)), "pods": 1}
        used.setdefault(pod.spec.node_name, Counter()).update(amounts)
        if pod.key in victims:
            requests[pod.key] = amounts
    nodes = {
        node.name: NodeUse(allocatable_of(node), dict(used.get(node.name, {})), nominated.get(node.name, []))
        for node in cluster.nodes
    }
    return Occupancy(nodes, requests)
