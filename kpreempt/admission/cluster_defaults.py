"""Apply API server defaults to the objects of a cluster that was written by hand.

Objects from an API server have their defaults already, which is detected quickly. Follows ``k8s.io/kubernetes`` v1.36.3
``pkg/apis/core/v1/defaults.go`` (pods, nodes, namespaces).

Priorities come from classes as in ``kpreempt/admission/priority.py``. Difference: an existing pod without a class keeps
no priority, which counts as 0, because the global default may be newer than the pod; an assumption reports it.

PodDisruptionBudgets without a status get the one that the disruption controller would compute. Difference: if the
object that owns a pod is not in the input, its size is assumed to be the number of its pods, and an assumption reports
it.

A new PersistentVolumeClaim gets the default storage class and the volume mode, as in
``plugin/pkg/admission/storage/storageclass/setdefault``, ``pkg/volume/util/storageclass.go`` (the newest default class
wins, then the name) and ``pkg/apis/core/v1/defaults.go``. ResourceClaims follow ``resource/v1``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

import msgspec

from kpreempt.admission.api_defaults import ApiDefaults, apply_api_defaults
from kpreempt.admission.defaults import CLAIM_SPEC, RECORDS
from kpreempt.admission.priority import fill_in, global_default, known_classes
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.devices import (
    ResourceClaim,
    ResourceClaimTemplate,
)
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PriorityClass
from kpreempt.model.storage import BETA_STORAGE_CLASS_ANNOTATION, PersistentVolumeClaim
from kpreempt.model.workloads import Namespace
from kpreempt.verdict import Assumption, AssumptionKind

_DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

_Record = TypeVar("_Record")

_NEVER = "Never"

_VALUE, _POLICY, _DEFAULT = "value", "preemptionPolicy", "globalDefault"
_LACK = {
    _VALUE: "names it without a priority",
    _POLICY: "names it without a preemption policy",
    _DEFAULT: "has neither priority nor class",
}


def complete_cluster(
    cluster: ClusterSnapshot, *, created: Collection[str] = ()
) -> tuple[ClusterSnapshot, list[Assumption]]:
    """Return the cluster as an API server and its controllers would have it, and the assumptions.

    Objects get the defaults of their types, pods the priority of their class, PodDisruptionBudgets a status.
    ``created`` are the keys of new pods, which get the global default class. If nothing is missing, the same object is
    returned.
    """
    cluster = apply_cluster_defaults(cluster)
    cluster, about_priorities = fill_priorities(cluster, created)
    cluster, about_budgets = fill_budget_statuses(cluster)
    return cluster, [*about_priorities, *about_budgets]


def apply_cluster_defaults(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """Return the cluster with the defaults that affect scheduling; the same object if nothing is missing.

    Pods get the result of ``apply_api_defaults``, nodes their capacity as allocatable, namespaces the label with their
    name, and ResourceClaims the mode and count of each request.
    """
    changes = {
        "pods": _completed_pods(cluster.pods),
        "nodes": RECORDS[Node](None, cluster.nodes),
        "namespaces": RECORDS[Namespace](None, cluster.namespaces),
        "resource_claims": RECORDS[ResourceClaim](None, cluster.resource_claims),
        "resource_claim_templates": RECORDS[ResourceClaimTemplate](None, cluster.resource_claim_templates),
    }
    if all(getattr(cluster, field) is objects for field, objects in changes.items()):
        return cluster
    return msgspec.structs.replace(cluster, **changes)


def apply_object_defaults(record: _Record) -> _Record:
    """Apply these defaults to one object; return the same object if nothing is missing or for another kind."""
    if isinstance(record, Pod):
        return apply_api_defaults(record)  # type: ignore[return-value]
    part = RECORDS.get(type(record))
    return record if part is None else part.filled(record)


def _completed_pods(pods: list[Pod]) -> list[Pod]:
    """Apply pod defaults. This runs for every pod of every snapshot, so complete pods are skipped quickly.

    Pods of a snapshot share their lists of containers, so a complete list is recognized by its identity.
    """
    complete: tuple[set[int], set[int]] = (set(), set())
    defaults = ApiDefaults()
    changed: dict[int, Pod] = {}
    for index, pod in enumerate(pods):
        spec = pod.spec
        known = complete[spec.host_network]
        # The fields of ``POD_SPEC`` that a record may lack.
        has_fields = (
            spec.termination_grace_period_seconds is not None
            and spec.restart_policy != ""
            and spec.scheduler_name != ""
            and (not spec.volumes or all(volume.rbd is None for volume in spec.volumes))
        )
        if (
            has_fields
            and id(spec.containers) in known
            and id(spec.init_containers) in known
            and spec.resources is None
            and not spec.overhead
        ):
            continue
        completed = defaults.applied_to(pod, has_fields=has_fields)
        if completed is pod:
            known.update((id(spec.containers), id(spec.init_containers)))
        else:
            changed[index] = completed
    return [changed.get(index, pod) for index, pod in enumerate(pods)] if changed else pods


class _Case(NamedTuple):
    """What a class may add to pods, and whether it does."""

    class_name: str
    field: str
    is_given: bool


def fill_priorities(
    cluster: ClusterSnapshot, created: Collection[str] = ()
) -> tuple[ClusterSnapshot, list[Assumption]]:
    """Add the priority and preemption policy of their class to pods without them, and return the assumptions.

    ``created`` are the keys of new pods, which get the global default. Values from a class are certain, and reported as
    information. If a class is not in the input, or a global default may be newer than the pod, the pod's priority is
    assumed to be 0, which is uncertain. Finished pods are unchanged. If nothing is added, the same object is returned.
    """
    classes = known_classes(cluster)
    never = {name for name, each in classes.items() if each.preemption_policy == _NEVER}
    default = global_default(cluster.priority_classes)
    changed: dict[int, Pod] = {}
    cases: dict[_Case, list[str]] = {}
    for index, pod in enumerate(cluster.pods):
        spec = pod.spec
        if spec.priority is not None and not (
            never and spec.preemption_policy is None and spec.priority_class_name in never
        ):
            continue
        name = spec.priority_class_name
        if pod.is_terminal:
            continue
        if name:
            case = _Case(name, _VALUE if spec.priority is None else _POLICY, name in classes)
        elif default is None or (default.value == 0 and default.preemption_policy != _NEVER):
            # It would be 0 anyway.
            continue
        else:
            case = _Case(default.metadata.name, _DEFAULT, pod.key in created)
        cases.setdefault(case, []).append(pod.key)
        if case.is_given:
            changed[index] = fill_in(pod, classes[case.class_name], "").pod
    if changed:
        pods = [changed.get(index, pod) for index, pod in enumerate(cluster.pods)]
        cluster = msgspec.structs.replace(cluster, pods=pods)
    return cluster, [_assumption(case, classes.get(case.class_name), pods) for case, pods in cases.items()]


def _assumption(case: _Case, chosen: PriorityClass | None, pods: Sequence[str]) -> Assumption:
    more = f" (and {len(pods) - 1:,} more)" if len(pods) > 1 else ""
    lack = f"pod {pods[0]}{more} {_LACK[case.field]}"
    kind = AssumptionKind.INFORMATIONAL if case.is_given else AssumptionKind.UNCERTAIN
    if chosen is None:
        message = f"not in the input; {lack}: priority assumed to be 0"
    elif case.is_given:
        what = f"policy is {chosen.preemption_policy}" if case.field == _POLICY else f"value is {chosen.value}"
        message = f"{lack}; its {what}"
    else:
        message = f"{lack}: priority assumed to be 0; a new pod would get {chosen.value}"
    return Assumption(f"PriorityClass {case.class_name}", case.field, message, kind)


def fill_budget_statuses(cluster: ClusterSnapshot) -> tuple[ClusterSnapshot, list[Assumption]]:
    """Compute the status of every PodDisruptionBudget that has none, with an assumption for each.

    If all have a status, the same object is returned.
    """
    if all(budget.status is not None for budget in cluster.pod_disruption_budgets):
        return cluster, []
    # Only clusters written by hand need it.
    from kpreempt.controllers.actions import SyncError  # noqa: PLC0415
    from kpreempt.controllers.disruption import (  # noqa: PLC0415
        Candidates,
        Scales,
        failed_status,
        sync_budget,
    )

    scales, candidates = Scales(cluster), Candidates(cluster.pods)
    assumptions: list[Assumption] = []
    budgets = []
    for budget in cluster.pod_disruption_budgets:
        if budget.status is not None:
            budgets.append(budget)
            continue
        kind = AssumptionKind.UNCERTAIN
        try:
            sync = sync_budget(budget, candidates.of(budget), scales.scale_of, None)
        except SyncError as error:
            status = failed_status(budget)
            why = f"the disruption controller could not compute one ({error.message})"
            message = f"no status, and {why}; assuming 0 disruptions allowed"
        else:
            status = sync.status
            message = (
                f"no status; computed as by the disruption controller: {status.current_healthy} of "
                f"{status.expected_pods} expected pods are healthy, {status.desired_healthy} must stay healthy: "
                f"{status.disruptions_allowed} disruptions allowed"
            )
            guessed = [f"{scale.kind} {scale.namespace}/{scale.name}" for scale in sync.scales if scale.is_guessed]
            if guessed:
                message += f" ({', '.join(guessed)} not in the input: its size is the number of its pods)"
            else:
                kind = AssumptionKind.INFORMATIONAL
        budgets.append(msgspec.structs.replace(budget, status=status))
        assumptions.append(Assumption(f"PodDisruptionBudget {budget.key}", "status", message, kind))
    return msgspec.structs.replace(cluster, pod_disruption_budgets=budgets), assumptions


def admit_claim(claim: PersistentVolumeClaim, cluster: ClusterSnapshot) -> PersistentVolumeClaim:
    """Return the claim as the API server stores it, pending."""
    class_name = claim.spec.storage_class_name
    if class_name is None and BETA_STORAGE_CLASS_ANNOTATION not in claim.metadata.annotations:
        defaults = [
            each.metadata
            for each in cluster.storage_classes
            if any(each.metadata.annotations.get(key) == "true" for key in _DEFAULT_CLASS_ANNOTATIONS)
        ]
        newest = max((each.creation_timestamp or _LONG_AGO for each in defaults), default=None)
        same_age = (each.name for each in defaults if (each.creation_timestamp or _LONG_AGO) == newest)
        class_name = min(same_age, default=None)
    status = msgspec.structs.replace(claim.status, phase=claim.status.phase or "Pending")
    spec = msgspec.structs.replace(CLAIM_SPEC.filled(claim.spec), storage_class_name=class_name)
    return msgspec.structs.replace(claim, spec=spec, status=status)
