"""What node autoscalers report about pods that are unschedulable; read from a live cluster only if there are any."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kpreempt.analysis.autoscaling.answer import autoscaling_of
from kpreempt.analysis.explain.pods import ExplainInput
from kpreempt.analysis.workload.in_cluster import WorkloadInput
from kpreempt.library.schedulers import Context
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.verdict import Outcome, Verdict
from kpreempt.verdict.pending import SHOWN_STATES, PendingPods
from kpreempt.verdict.served import InTurn, TurnOutcome


def with_reports(
    context: Context,
    cluster: ClusterSnapshot,
    verdicts: Sequence[Verdict],
    inputs: Sequence[ExplainInput],
    workloads: Sequence[WorkloadInput | None],
) -> list[Verdict]:
    """Return the verdicts, on unschedulable pods with what autoscalers report; the inputs are in the same order."""
    waiting = [
        _waiting(verdict, explain_input, workloads[index] if workloads else None)
        for index, (verdict, explain_input) in enumerate(zip(verdicts, inputs, strict=True))
    ]
    if not any(waiting):
        return list(verdicts)
    cluster = context.read_autoscalers(cluster)
    existing = {pod.metadata.uid: pod for pod in context.loaded.cluster.pods if pod.metadata.uid}
    found = []
    for verdict, pods, explain_input in zip(verdicts, waiting, inputs, strict=True):
        # The cluster of the query may be without the pod.
        known = existing.get(explain_input.pod.metadata.uid)
        is_changed = known is not None and known.spec != explain_input.pod.spec
        autoscaling = autoscaling_of(
            cluster,
            pods,
            context.at,
            changed=[known.key] if known and is_changed else [],
            are_new=known is None and pods == [explain_input.pod],
        )
        found.append(msgspec.structs.replace(verdict, autoscaling=autoscaling) if autoscaling is not None else verdict)
    return found


def _waiting(verdict: Verdict, explain_input: ExplainInput, workload: WorkloadInput | None) -> list[Pod]:
    """Return the pods that are, or would be, unschedulable: those of the workload that have no node, or this one."""
    if workload is not None and verdict.workload is not None and verdict.workload.totals.pending:
        existing = [pod for pod in workload.pods if pod.metadata.uid and not pod.spec.node_name]
        return existing or [explain_input.pod]
    is_on_node = explain_input.found is not None and bool(explain_input.found.spec.node_name)
    if verdict.known is not None:
        # The scheduler's message says that it fits nowhere.
        return [explain_input.pod] if verdict.known.message and not is_on_node else []
    turn = verdict.in_turn.turn if verdict.in_turn is not None else None
    is_waiting = verdict.outcome is Outcome.UNSCHEDULABLE or _is_left_pending(turn)
    return [explain_input.pod] if is_waiting and not is_on_node else []


def _is_left_pending(turn: InTurn | None) -> bool:
    """Return whether a pod fits alone, but stays pending because of the pods before it in the queue."""
    return turn is not None and turn.outcome is TurnOutcome.LEFT_PENDING


def pending_with_reports(context: Context, cluster: ClusterSnapshot, found: PendingPods) -> PendingPods:
    """Return the answer with what autoscalers report about its unschedulable pods."""
    waiting = {
        item.pod
        for item in found.items
        if item.state not in SHOWN_STATES and (item.outcome is Outcome.UNSCHEDULABLE or _is_left_pending(item.in_turn))
    }
    if not waiting:
        return found
    cluster = context.read_autoscalers(cluster)
    pods = {pod.key: pod for pod in cluster.pods if pod.key in waiting}
    autoscaling = autoscaling_of(cluster, [pods[item.pod] for item in found.items if item.pod in pods], context.at)
    return msgspec.structs.replace(found, autoscaling=autoscaling) if autoscaling is not None else found
