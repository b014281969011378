"""What the input says about a pod if nothing can be predicted: the scheduler's message, its owner, quotas and PDBs."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from kpreempt.admission.pod_resources import format_nano
from kpreempt.admission.priority import known_classes
from kpreempt.admission.resource_quotas import QuotaCounts, covers, rejection, usage_of
from kpreempt.analysis.algorithms import AnalysisContext
from kpreempt.analysis.budgets.protection import Protection
from kpreempt.analysis.explain.pods import ExplainInput, summed_up
from kpreempt.analysis.messages.scheduling import explain_message
from kpreempt.analysis.missing_pods import MissingPodsFinder
from kpreempt.analysis.queue.order import FailedAttempts, rejection_of
from kpreempt.analysis.remedies.owners import Owners
from kpreempt.analysis.simulation.cluster import is_serving
from kpreempt.analysis.workload.in_cluster import WorkloadInput, pods_of_workload
from kpreempt.model.cluster import ClusterSnapshot, KindState, state_of, within
from kpreempt.model.meta import ObjectName
from kpreempt.model.pod import Pod
from kpreempt.model.quantity import Quantity
from kpreempt.verdict import Outcome, Verdict
from kpreempt.verdict.waiting import BudgetState, KnownFacts, OwnerState, QuotaUse
from kpreempt.verdict.workload import Totals, Workload

_BUDGET, _QUOTA = "PodDisruptionBudget", "ResourceQuota"


def with_known_facts(
    verdict: Verdict, explain_input: ExplainInput, workload: WorkloadInput | None, context: AnalysisContext
) -> Verdict:
    """Return a verdict of a scheduler without nodes, reduced to what is known, with what else the input says.

    ``context`` has the cluster with the pod, if it exists.
    """
    pod = explain_input.found or explain_input.pod
    cluster = within(context.cluster, {pod.metadata.namespace}, ("Pod",))
    known = _facts(pod, cluster, context)
    class_name = pod.spec.priority_class_name
    if explain_input.found is None and class_name and class_name not in known_classes(cluster):
        known = replace(known, has_unknown_priority=True)
    answer = None
    if workload is not None:
        number = len(workload.pods)
        answer = Workload(
            workload=workload.workload,
            scope=workload.scope,
            replicas=number,
            totals=Totals(uncertain=number),
            at=context.time,
        )
        known = replace(known, owner=_owner(workload.workload, cluster))
    return Verdict(
        api_version=verdict.api_version,
        kind=verdict.kind,
        algorithm=verdict.algorithm,
        outcome=verdict.outcome if verdict.outcome is Outcome.NOT_SCHEDULED else Outcome.UNCERTAIN,
        reason=verdict.reason if verdict.outcome is Outcome.NOT_SCHEDULED else "",
        held_by=verdict.held_by,
        pod=verdict.pod,
        cluster=summed_up(cluster, context.now),
        admission=verdict.admission,
        assumptions=verdict.assumptions,
        workload=answer,
        known=known,
    )


def _facts(pod: Pod, cluster: ClusterSnapshot, context: AnalysisContext) -> KnownFacts:
    condition = rejection_of(pod)
    message = condition.message if condition is not None else ""
    protection = Protection(cluster)
    # A pod that does not exist yet is selected by its labels.
    exists = any(each is pod for each in cluster.pods)
    protection = protection if exists else Protection(replace(cluster, pods=[*cluster.pods, pod]))
    workload = Owners(cluster).workload_of(pod)
    owner = _owner(workload, cluster) if workload and not workload.startswith("Pod ") else None
    return KnownFacts(
        at=context.time,
        message=message,
        scheduling=explain_message(message) if message else None,
        since=condition.last_transition_time if condition is not None else None,
        last_attempt=FailedAttempts(cluster.events).last_of(pod),
        # That of a new pod may not exist yet either.
        owner=owner if owner is not None and (owner.pods or owner.desired is not None) else None,
        quotas=_quotas(pod, cluster),
        budgets=[
            BudgetState(
                budget=each.key,
                disruptions_allowed=each.allowed,
                current_healthy=each.status.current_healthy,
                desired_healthy=each.status.desired_healthy,
                expected_pods=each.status.expected_pods,
            )
            for each in protection.budgets_of(pod.key)
            if each.status is not None
        ],
        unknown=[kind for kind in (_QUOTA, _BUDGET) if state_of(cluster, kind) is not KindState.READ],
    )


def _owner(workload: str, cluster: ClusterSnapshot) -> OwnerState:
    """Return the state of a workload, and why it lacks pods, if it does."""
    name = ObjectName.parse(workload)
    own = [pod for pod in pods_of_workload(cluster, name) if not pod.is_terminal]
    return OwnerState(
        workload=workload,
        desired=Owners(cluster).size_of(workload),
        pods=len(own),
        on_nodes=sum(bool(pod.spec.node_name) for pod in own),
        ready=sum(map(is_serving, own)),
        missing_pods=MissingPodsFinder(cluster).of(*name),
    )


def _quotas(pod: Pod, cluster: ClusterSnapshot) -> list[QuotaUse]:
    counts, usage = QuotaCounts(cluster.pods), usage_of(pod)
    found = []
    for quota in cluster.resource_quotas:
        if not covers(quota, pod):
            continue
        used = counts.used_of(quota)
        limits = {key: quota.limits[key] for key in quota.limits if key in usage or key in used}
        found.append(
            QuotaUse(
                quota=quota.key,
                used=_in_text({key: used[key] for key in limits if key in used}),
                hard=_in_text(limits),
                rejects=rejection(quota, used, pod, usage),
            )
        )
    return found


def _in_text(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {key: format_nano(each.nano, binary=each.text.endswith("i")) for key, each in amounts.items()}
