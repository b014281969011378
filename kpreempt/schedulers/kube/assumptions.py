"""Assumptions and effects of a verdict, and details of its victims and devices.

Effects are listed in the order in which the scheduler produces them (``framework/preemption/executor.go`` and
``schedule_one.go``, v1.36.3). Preemption is asynchronous: the nomination is recorded immediately while the victims are
being deleted, the last victim after all others. Without the SchedulerAsyncPreemption gate, victims are deleted first
and lower-priority nominations are cleared afterward. If several nodes are tied, the effects apply to the node named in
the message, or to the first one. An uncertain verdict has no effects.

Victim details are the owner, start time, grace period and budgets. Device assumptions cover unmodeled fields, and facts
that no object in the cluster shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from kpreempt.model.devices import ResourceSlice
from kpreempt.model.meta import controller_name
from kpreempt.model.pod import Pod, ResourceList
from kpreempt.model.quantity import quantity_text
from kpreempt.schedulers.budgets import SelectingBudgets
from kpreempt.schedulers.kube.extender_session import ExtenderSession
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import PostFilterResult, PreemptionEvidence
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, is_same_pod
from kpreempt.schedulers.kube.framework.runner import ProfilePlugins
from kpreempt.schedulers.kube.plugins.dynamic_resources import pod_devices
from kpreempt.schedulers.kube.plugins.image_locality import ImageLocality
from kpreempt.schedulers.kube.preemption.evaluator import preemption_rules
from kpreempt.schedulers.kube.preemption.importance import BudgetIndex
from kpreempt.verdict import (
    AllocatedDevice,
    Assumption,
    AssumptionKind,
    Candidate,
    Effect,
    Outcome,
    Sampling,
    Verdict,
    Victim,
)

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.devices.pod_devices import PodDevices


def nomination_assumptions(pod: Pod, cluster: ClusterState) -> list[Assumption]:
    """List nominated pods whose resources would be reserved if the pods were in the scheduling queue."""
    return [
        Assumption(
            f"Pod {nominated.key}",
            "status.nominatedNodeName",
            f"its resources on {nominated.status.nominated_node_name} are not reserved: the input has no"
            " scheduling queue",
        )
        for nominated in cluster.nominated_out_of_queue
        if nominated.priority >= pod.priority and not is_same_pod(nominated, pod)
    ]


def rounded_images(
    plugins: ProfilePlugins, pod: Pod, feasible: Sequence[NodeInfo], cluster: ClusterState
) -> list[Assumption]:
    """Warn that redaction rounded image sizes, if other sizes could change a node's score."""
    if not cluster.has_rounded_images or len(feasible) < 2:
        return []
    raters = [each for each in plugins.scores if isinstance(each, ImageLocality)]
    is_certain = all(each.is_certain(pod, node_info) for each in raters for node_info in feasible)
    return [] if is_certain else [rounded_sizes(pod)]


def rounded_sizes(pod: Pod) -> Assumption:
    """Build the assumption that a pod's scores depend on how image sizes are rounded."""
    message = "image sizes are rounded in a redacted snapshot; with the real sizes another node might score best"
    return Assumption(f"Pod {pod.key}", "spec.containers[*].image", message, AssumptionKind.UNCERTAIN)


def unprotected(
    plugins: ProfilePlugins, pod: Pod, plugin: str, victims: Mapping[str, list[Victim]]
) -> list[Assumption]:
    """Warn that a nomination protects nothing if the plugin that made it does not preempt by priority."""
    rules = preemption_rules(plugins)
    chooses = rules is not None and rules.name == plugin and rules.overrides("may_evict")
    all_lower = all(victim.priority < pod.priority for of_node in victims.values() for victim in of_node)
    if not victims or (all_lower and not chooses):
        return []
    return [
        Assumption(
            f"plugin {plugin}",
            "postFilter",
            "it does not evict by priority, so the nomination protects nothing: until the pod is bound, a pod with a"
            f" priority above {pod.priority} may take the resources freed for it",
            AssumptionKind.UNCERTAIN,
        )
    ]


def unordered_budgets(evidence: PreemptionEvidence | None, cluster: ClusterState) -> list[Assumption]:
    """Warn that a pod's budgets are processed in input order, if another order could change the victims."""
    if evidence is None or not evidence.depends_on_budget_order or cluster.cluster.has_scheduler_order:
        return []
    return [
        Assumption(
            "PodDisruptionBudgets",
            "",
            "several protect the same pod, and how many disruptions remain after a violation depends on their order in"
            " the scheduler's cache, which is unknown, so other pods may be evicted",
            AssumptionKind.UNCERTAIN,
        )
    ]


def unpatched(pod: Pod, victims: Mapping[str, list[Victim]], cluster: ClusterState) -> list[Assumption]:
    """Warn about releases that patch the preemptor's status onto victims, if a victim's QoS class differs.

    The API server rejects the changed QoS class, and no pod is nominated (``prepareCandidate``,
    ``framework/preemption/preemption.go`` of v1.29.8).
    """
    behavior = cluster.behavior
    if not (behavior.patches_status_of_preemptor and behavior.pod_disruption_conditions):
        return []
    own = qos_class(pod)
    pods = {info.key: info.pod for node in victims for info in cluster.by_name[node].pods}
    others = [each.pod for of_node in victims.values() for each in of_node if qos_class(pods[each.pod]) != own]
    if not others:
        return []
    return [
        Assumption(
            "scheduler",
            "DisruptionTarget",
            f"this release patches the preemptor's QoS class onto {others[0]}, whose class differs; if the API server"
            " rejects that, the preemption is aborted",
            AssumptionKind.UNCERTAIN,
        )
    ]


def qos_class(pod: Pod) -> str:
    """Return the pod's QoS class (Guaranteed, Burstable or BestEffort), from CPU and memory (``GetPodQOS``)."""
    containers = [*pod.spec.containers, *pod.spec.init_containers]
    requests = [_positive(each.resources.requests) for each in containers]
    limits = [_positive(each.resources.limits) for each in containers]
    if not any(requests) and not any(limits):
        return "BestEffort"
    is_guaranteed = all(
        own.keys() == set(_QOS) and {**own, **request} == own for request, own in zip(requests, limits, strict=True)
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _positive(amounts: ResourceList) -> dict[str, int]:
    return {name: amounts[name].nano for name in _QOS if name in amounts and amounts[name].nano > 0}


_QOS = ("cpu", "memory")


def extender_node_limit_assumptions(
    extender_session: ExtenderSession | None, num_passing: int, search: Sampling | None
) -> list[Assumption]:
    """Warn that a running scheduler sends fewer nodes to its extenders if it stops its search early."""
    if extender_session is None or search is None or all(call.verb != "filter" for call in extender_session.calls):
        return []
    return [
        Assumption(
            "scheduler",
            "extenders",
            f"they were called with all {num_passing} nodes that pass the filters; a running scheduler stops its search"
            f" at {search.nodes_to_find} nodes and sends only those",
            AssumptionKind.UNCERTAIN,
        )
    ]


MISSED_ERRORS = Assumption(
    "scheduler",
    "error",
    "it is random whether the search reaches a node on which a filter fails before it has found enough nodes",
    AssumptionKind.UNCERTAIN,
)


def out_of_tree_error_assumptions(
    plugins: ProfilePlugins, extender_session: ExtenderSession | None, error: str
) -> list[Assumption]:
    """Warn that the verdict is an error that out-of-tree plugins or extenders may have caused.

    Reports about many pods print this once, because they do not show each verdict.
    """
    has_failed = extender_session is not None and any(
        call.error and not call.ignored for call in extender_session.calls
    )
    is_reported = plugins.has_out_of_tree or has_failed
    return [Assumption("scheduler", "error", error, AssumptionKind.UNCERTAIN)] if is_reported else []


# The API server's limit for an event's text (k8s.io/api events: NoteLengthLimit).
NOTE_LENGTH_LIMIT = 1024
_TRUNCATED = " ..."


def effects_of(verdict: Verdict, pod: Pod, cluster: ClusterState, result: PostFilterResult | None) -> Verdict:
    """Return the verdict with its ``effects``."""
    if verdict.outcome == Outcome.UNCERTAIN:
        return verdict
    if verdict.outcome == Outcome.LANDS:
        effects = [Effect("bind", f"pod {pod.key}", f"node {verdict.lands_on[0]}")]
        return msgspec.structs.replace(verdict, effects=effects)
    effects = [
        Effect(action, f"resourceclaim {key}")
        for action, keys in (("deallocate", verdict.deallocated_claims), ("deleteClaim", verdict.deleted_claims))
        for key in keys
    ]
    if verdict.nominated_nodes:
        node = _node_of(verdict, result)
        effects += _preemption_effects(verdict.victims[node], node, pod, cluster)
    effects.append(Effect("event", f"pod {pod.key}", f"Warning FailedScheduling: {event_note(verdict.message)}"))
    effects.append(Effect("setCondition", f"pod {pod.key}", f"PodScheduled=False Unschedulable: {verdict.message}"))
    target = f"pod {pod.key}"
    nominated = pod.status.nominated_node_name
    if verdict.nominated_nodes:
        effects.append(Effect("nominate", target, f"status.nominatedNodeName={_node_of(verdict, result)}"))
    elif nominated and result is not None and result.nominated_node_names is not None:
        effects.append(Effect("clearNomination", target, f"status.nominatedNodeName={nominated} is cleared"))
    elif nominated:
        effects.append(Effect("keepNomination", target, f"status.nominatedNodeName={nominated} stays"))
    return msgspec.structs.replace(verdict, effects=effects)


def _node_of(verdict: Verdict, result: PostFilterResult | None) -> str:
    """Return the node that stands for all tied nodes: the one named in the message, if any."""
    reported = result.reported_node if result is not None else ""
    return reported if reported in verdict.nominated_nodes else verdict.nominated_nodes[0]


def _preemption_effects(victims: list[Victim], node: str, pod: Pod, cluster: ClusterState) -> list[Effect]:
    behavior = cluster.behavior
    to_delete = [victim for victim in victims if behavior.deletes_terminating_victims or not victim.terminating]
    cleared = [
        Effect("clearNomination", f"pod {info.key}", f"status.nominatedNodeName={node} is cleared")
        for info in cluster.nominated_pods.get(node, ())
        if info.priority < pod.priority
    ]
    if not to_delete:
        return [] if behavior.scheduler_async_preemption else cleared
    effects = cleared if behavior.scheduler_async_preemption else []
    uid = pod.metadata.uid or "(its UID)"
    scheduler = pod.spec.scheduler_name
    for victim in to_delete:
        target = f"pod {victim.pod}"
        condition = f"{scheduler}: preempting to accommodate a higher priority pod"
        if behavior.pod_disruption_conditions:
            effects.append(Effect("setCondition", target, f"DisruptionTarget=True PreemptionByScheduler: {condition}"))
        effects += [
            Effect("delete", target, f"grace period {victim.grace_period_seconds} s"),
            Effect("event", target, f"Normal Preempted: Preempted by pod {uid} on node {node}"),
        ]
    return effects if behavior.scheduler_async_preemption else effects + cleared


def event_note(message: str) -> str:
    """Return the message as an event carries it, truncated to 1,024 bytes."""
    encoded = message.encode()
    if len(encoded) <= NOTE_LENGTH_LIMIT:
        return message
    return encoded[: NOTE_LENGTH_LIMIT - len(_TRUNCATED)].decode(errors="ignore") + _TRUNCATED


def victims_by_node(
    candidates: Iterable[Candidate], cluster: ClusterState, before: SelectingBudgets | None = None
) -> dict[str, list[Victim]]:
    """List each candidate's victims, most important first, with the disruptions that their evictions actually use.

    ``before`` is an index of the same budgets whose selected pods are already known.
    """
    budgets = BudgetIndex(cluster.cluster.pod_disruption_budgets, before)
    return {candidate.node: _victims_of(candidate, cluster, budgets) for candidate in candidates}


def _victims_of(candidate: Candidate, cluster: ClusterState, budgets: BudgetIndex) -> list[Victim]:
    on_node = {info.key: info for info in cluster.by_name[candidate.node].pods}
    return [
        Victim(
            pod=counted.pod_info.key,
            priority=counted.pod_info.priority,
            owner=controller_name(counted.pod_info.pod.metadata),
            start_time=counted.pod_info.start,
            grace_period_seconds=counted.pod_info.pod.spec.grace_seconds,
            terminating=counted.pod_info.pod.metadata.deletion_timestamp is not None,
            budgets=counted.budgets,
        )
        for counted in budgets.count([on_node[key] for key in candidate.victims])
    ]


_UNREAD = "a field of {} is not modeled and may affect which devices are allocated"


def claims_of(pod: Pod) -> list[str]:
    """List the pod's claims by name; a claim not yet created from its template, by its reference in the pod."""
    generated = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    return [claim.resource_claim_name or generated.get(claim.name) or claim.name for claim in pod.spec.resource_claims]


def devices_on(nodes: Iterable[str], state: CycleState) -> dict[str, list[AllocatedDevice]]:
    """Return the devices found for the pod on these nodes, given the state after a cycle."""
    claims = pod_devices(state)
    if claims is None or not claims.found:
        return {}
    return {
        node: [
            AllocatedDevice(
                claim.key,
                each.request,
                *each.device.id,
                each.is_share,
                {name: quantity_text(amount) for name, amount in each.consumed.items()},
            )
            for claim, devices in zip(found.claims, found.devices, strict=True)
            for each in devices
        ]
        for node in nodes
        if (found := claims.found.get(node)) is not None
    }


def claim_assumptions(pod: Pod, state: CycleState, cluster: ClusterState) -> list[Assumption]:
    """List assumptions about a pod's devices after its cycle; only informational ones leave the outcome certain."""
    claims = pod_devices(state)
    if claims is None or not claims.claims:
        return []
    return [*_about_search(claims, pod), *_about_order(claims, pod, cluster), *_about_fields(claims, cluster)]


def _about_search(claims: PodDevices, pod: Pod) -> Iterator[Assumption]:
    if claims.is_hidden:
        yield Assumption(
            f"Pod {pod.key}", "spec.resourceClaims", "its device selectors are redacted, so its devices are unknown"
        )
    elif claims.gave_up_on:
        yield Assumption(
            f"Node {claims.gave_up_on}",
            "ResourceSlices",
            "the device search stopped after too many combinations; a scheduler may find devices within its 10 s limit",
        )
    if len(claims.rivals) > 1:
        yield Assumption(
            f"Pod {pod.key}",
            "spec.resourceClaims",
            f"it is random which of {', '.join(claims.rivals)} is deallocated",
            AssumptionKind.INFORMATIONAL,
        )


def _about_order(claims: PodDevices, pod: Pod, cluster: ClusterState) -> Iterator[Assumption]:
    """List what the order of pools decides up to 1.35, where it is the order of a Go map."""
    if cluster.behavior.sorts_pools_of_devices or claims.allocator is None:
        return
    subject = f"Pod {pod.key}"
    yield Assumption(
        subject,
        "spec.resourceClaims",
        "if several pools have matching devices, it is random which ones are allocated",
        AssumptionKind.INFORMATIONAL,
    )
    if names := [each.name for each in cluster.node_infos if claims.fails_by_order(each)]:
        more = f" (and {len(names) - 1:,} more)" if len(names) > 1 else ""
        message = "it is random whether the device search reaches a device that ends it with an error"
        yield Assumption(f"Node {names[0]}{more}", "ResourceSlices", message)
    if cluster.behavior.allocates_from_incomplete_pools and cluster.behavior.dra_consumable_capacity:
        message = "with DRAConsumableCapacity, 1.34 also charges amounts to another device, which is not modeled"
        yield Assumption(subject, "spec.resourceClaims", message)
    if cluster.behavior.allocates_from_incomplete_pools and any(
        pool.invalid for node in cluster.node_infos for pool in cluster.devices.slices.pools_of(node.node)
    ):
        message = "a pool is invalid: it is random whether the search reaches it and ends with an error"
        yield Assumption("ResourceSlices", "", message)


def _about_fields(claims: PodDevices, cluster: ClusterState) -> Iterator[Assumption]:
    for claim in claims.claims:
        for field in claim.unread_fields:
            yield Assumption(f"ResourceClaim {claim.key}", field, _UNREAD.format(f"claim {claim.key}"))
    if claims.allocator is None:
        return
    for device_class in cluster.cluster.device_classes:
        for field in device_class.unread_fields:
            yield Assumption(f"DeviceClass {device_class.metadata.name}", field, _UNREAD.format("a device class"))
    slices = cluster.cluster.resource_slices
    for field, found in _unread_of_slices(slices).items():
        more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
        yield Assumption(f"ResourceSlice {found[0]}{more}", field, _UNREAD.format("slices"))
    if not cluster.behavior.finds_shared_counters_everywhere and (shared := _shared_pool_name(slices)):
        yield Assumption(
            f"ResourceSlice {shared}",
            "spec.pool.name",
            "several drivers have pools with this name; their shared counters are mixed in an unknown order",
        )


def _unread_of_slices(slices: Iterable[ResourceSlice]) -> dict[str, list[str]]:
    """Group the names of slices with unmodeled fields by field."""
    found: dict[str, list[str]] = {}
    for each in slices:
        fields = list(each.unread_fields)
        if each.spec.skip_node_operations:
            fields.append("spec.skipNodeOperations")
        for device in each.spec.devices:
            if device.node_allocatable_resources or device.node_allocatable_resource_mappings:
                fields.append("spec.devices[].nodeAllocatableResources")
            if any(attribute.typed is None for attribute in device.attributes.values()):
                fields.append("spec.devices[].attributes")
        for field in dict.fromkeys(fields):
            found.setdefault(field, []).append(each.metadata.name)
    return found


def _shared_pool_name(slices: Iterable[ResourceSlice]) -> str:
    """Find a slice with counters whose pool name is also used by another driver's pool with counters."""
    drivers: dict[str, str] = {}
    for each in slices:
        if each.spec.shared_counters:
            pool, driver = each.spec.pool.name, each.spec.driver
            if drivers.setdefault(pool, driver) != driver:
                return each.metadata.name
    return ""
