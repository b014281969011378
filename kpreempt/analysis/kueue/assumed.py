"""What of Kueue is not modelled, or is chance, where a cluster has any of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kpreempt.model.kueue import ELASTIC, ClusterQueue, Workload
from kpreempt.schedulers.kueue import KueueConfiguration, KueueObjects, Outcomes
from kpreempt.schedulers.kueue.cluster_queues import MULTIKUEUE, PROVISIONING
from kpreempt.schedulers.kueue.configuration import GATES
from kpreempt.verdict import Assumption, AssumptionKind

# By the controller of an admission check: what Kueue's second look at an admitted Workload would change.
# What a Workload of several pods of a manifest was made from.
POD_GROUP = "pod group"
_SECOND_PASS = {
    PROVISIONING: "what is provisioned may be other nodes than those that are there, and is not modelled",
    MULTIKUEUE: "its Workloads run in another cluster, which is not modelled",
}


def assumed_of(objects: KueueObjects, config: KueueConfiguration) -> list[Assumption]:
    """What is not evaluated, each with the object that has it."""
    found = [
        Assumption("KueueConfiguration", f"featureGates.{gate}", "this feature gate is not modelled")
        for gate in sorted(config.feature_gates.keys() - GATES.keys())
    ]
    controllers = {each.metadata.name: each.spec.controller_name for each in objects.checks}
    for queue in objects.cluster_queues:
        found += _of_queue(queue, controllers)
    for workload in objects.workloads:
        found += _of_workload(workload)
    return found


def _of_queue(queue: ClusterQueue, controllers: Mapping[str, str]) -> Iterator[Assumption]:
    subject = f"ClusterQueue {queue.name}"
    strategy = queue.spec.admission_checks_strategy.admission_checks
    for check in dict.fromkeys([*queue.spec.admission_checks, *(each.name for each in strategy)]):
        if message := _SECOND_PASS.get(controllers.get(check, "")):
            yield Assumption(subject, f"AdmissionCheck {check}", message)
    if queue.spec.admission_scope is not None:
        message = "what its LocalQueues have used is known to the manager alone, and does not count here"
        yield Assumption(subject, "spec.admissionScope", message)
    if queue.spec.concurrent_admission_policy is not None:
        yield Assumption(subject, "spec.concurrentAdmissionPolicy", "variants of Workloads are not modelled")


def _of_workload(workload: Workload) -> Iterator[Assumption]:
    subject = f"Workload {workload.key}"
    if workload.spec.preemption_gates:
        yield Assumption(subject, "spec.preemptionGates", "it is taken to preempt as if there were no gate")
    if workload.metadata.annotations.get(ELASTIC) == "true":
        yield Assumption(subject, f"metadata.annotations.{ELASTIC}", "slices of Workloads are not modelled")
    if workload.status.unhealthy_nodes:
        yield Assumption(subject, "status.unhealthyNodes", "no node is replaced for it")
    groups: dict[str, int] = {}
    for index, each in enumerate(workload.spec.pod_sets):
        request = each.topology_request
        path = f"spec.podSets[{index}]"
        if request is not None and request.podset_slice_required_topology_constraints:
            field = f"{path}.topologyRequest.podsetSliceRequiredTopologyConstraints"
            yield Assumption(subject, field, "slices in several layers are not modelled")
        if request is not None and request.pod_set_group_name is not None:
            groups[request.pod_set_group_name] = groups.get(request.pod_set_group_name, 0) + 1
            if groups[request.pod_set_group_name] == 2:
                message = "leaders are placed with their group, and room for them is not counted"
                yield Assumption(subject, f"{path}.topologyRequest.podSetGroupName", message)
        if each.template.spec.resource_claims:
            yield Assumption(
                subject, f"{path}.template.spec.resourceClaims", "Kueue's quota for devices is not modelled"
            )


def assumed_of_chance(outcomes: Outcomes) -> list[Assumption]:
    """That one of several ends was taken, or that not all are known."""
    if not outcomes.others and outcomes.are_all:
        return []
    message = "some heads or shares are equal, and which goes first is chance; the answer has each end that was found"
    if not outcomes.are_all:
        message += ", and there may be more"
    return [Assumption("Kueue", "order of equals", message, AssumptionKind.UNCERTAIN)]


def assumed_of_end(outcomes: Outcomes) -> list[Assumption]:
    """That more would happen than was looked at."""
    if not outcomes.is_cut:
        return []
    message = f"it is not followed beyond cycle {len(outcomes.cycles)}, and more would happen then"
    return [Assumption("Kueue", "cycles", message, AssumptionKind.UNCERTAIN)]


def assumed_of_memory() -> Assumption:
    """That the manager is taken to start."""
    message = (
        "which flavors were tried, who preempts and what is parked is in the manager's memory: it is taken to start"
    )
    return Assumption("Kueue", "memory", message, AssumptionKind.TOLD)


def assumed_of_default(why: str) -> Assumption:
    """That the manager has the default configuration, and why that is assumed."""
    message = f"{why}; the manager is taken to have the default configuration"
    return Assumption("KueueConfiguration", "fairSharing", message)


def assumed_of_made(workload: Workload, origin: str) -> list[Assumption]:
    """What is not known of a Workload that is not in the cluster yet, and of what it was made from."""
    subject = f"Workload {workload.key}"
    found = []
    if workload.metadata.creation_timestamp is None:
        message = "it is taken to come now, after all of its priority; of equals in a second the UID decides"
        found.append(Assumption(subject, "metadata.uid", message, AssumptionKind.TOLD))
    if origin.startswith(POD_GROUP) and len(workload.spec.pod_sets) > 1:
        message = (
            "Kueue has the roles of a pod group in the order of a hash; here they go by that annotation or by name"
        )
        found.append(Assumption(subject, "spec.podSets", message, AssumptionKind.UNCERTAIN))
    return found
