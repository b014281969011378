"""What the API server would have filled in to the objects of a cluster that no API server has seen.

What an API server hands out has it already, which is found out fast; this is for clusters written by hand. Follows
``k8s.io/kubernetes`` v1.36.3 ``pkg/apis/core/v1/defaults.go`` (pods, nodes, namespaces).

Priorities come from classes as in ``kpreempt/admission/priority.py``. Departure: a pod without a class that was there
before keeps no priority, which counts as 0, since the global default may be younger than the pod; that is said.

Budgets without a status get the one that the disruption controller would compute. Departure: where the object that owns
a pod is not in the input, its size is assumed to be the number of its pods, and that is said.

A new PersistentVolumeClaim gets the default storage class and the volume mode, after
``plugin/pkg/admission/storage/storageclass/setdefault``, ``pkg/volume/util/storageclass.go`` (the newest default class
wins, then the name) and ``pkg/apis/core/v1/defaults.go``. Claims for devices follow those of ``resource/v1``.
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
from kpreempt.model.storage import PersistentVolumeClaim
from kpreempt.model.workloads import Namespace
from kpreempt.verdict import Assumption, AssumptionKind

_DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_BETA_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

_Record = TypeVar("_Record")

_NEVER = "Never"

_VALUE, _POLICY, _DEFAULT = "value", "preemptionPolicy", "globalDefault"
_LACK = {
    _VALUE: "names it and states no priority",
    _POLICY: "names it and states no preemption policy",
    _DEFAULT: "states neither priority nor class",
}


def complete_cluster(
    cluster: ClusterSnapshot, *, created: Collection[str] = ()
) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster as an API server and its controllers would have it, and what is assumed for that.

    Objects get the defaults of their types, pods the priority of their class, budgets a status. ``created`` are the
    keys of the pods that come now, to which the global default class applies. The very same cluster comes back where
    nothing is missing.
    """
    cluster = apply_cluster_defaults(cluster)
    cluster, about_priorities = fill_priorities(cluster, created)
    cluster, about_budgets = fill_budget_statuses(cluster)
    return cluster, [*about_priorities, *about_budgets]


def apply_cluster_defaults(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """The cluster with the defaults that decide about scheduling; the very same one where nothing is missing.

    Pods get what ``apply_api_defaults`` gives, nodes their capacity as allocatable, namespaces the label with their
    name, claims for devices the mode and number of each request.
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
    """One object with the same defaults; the very same one where nothing is missing, or of another kind."""
    if isinstance(record, Pod):
        return apply_api_defaults(record)  # type: ignore[return-value]
    part = RECORDS.get(type(record))
    return record if part is None else part.filled(record)


def _completed_pods(pods: list[Pod]) -> list[Pod]:
    """The pods with their defaults. This runs for every pod of every snapshot, so what is usual is passed over fast.

    Pods of a snapshot share their lists of containers, so that a list which lacks nothing is known by its identity.
    """
    complete: tuple[set[int], set[int]] = (set(), set())
    defaults = ApiDefaults()
    changed: dict[int, Pod] = {}
    for index, pod in enumerate(pods):
        spec = pod.spec
        known = complete[spec.host_network]
        # All of ``POD_SPEC`` that a record may lack.
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
    """What pods lack that a class has a say in, and whether it gives it to them."""

    class_name: str
    field: str
    is_given: bool


def fill_priorities(
    cluster: ClusterSnapshot, created: Collection[str] = ()
) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster whose pods have the priority and the policy of their class where they state none, and what to say.

    ``created`` are the keys of the pods that come now, to which the global default applies. What a class gives is sure,
    and only told. A class that is not in the input, or a global default that may have come later than the pod, leaves
    a pod at 0, and the answer is uncertain. Pods that have finished stay as they are. The very same cluster comes back
    where nothing is filled in.
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
            # It would get 0, too.
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
    kind = AssumptionKind.TOLD if case.is_given else AssumptionKind.UNCERTAIN
    if chosen is None:
        message = f"not in the input; {lack}, and is taken at 0"
    elif case.is_given:
        message = f"{lack}; it gives {chosen.preemption_policy if case.field == _POLICY else chosen.value}"
    else:
        message = f"{lack}, and is taken at 0; created now, it would get {chosen.value}"
    return Assumption(f"PriorityClass {case.class_name}", case.field, message, kind)


def fill_budget_statuses(cluster: ClusterSnapshot) -> tuple[ClusterSnapshot, list[Assumption]]:
    """The cluster with a status for every budget that has none, and a sentence for each.

    The very same cluster comes back where all budgets have one.
    """
    if all(budget.status is not None for budget in cluster.pod_disruption_budgets):
        return cluster, []
    # Clusters written by hand need it.
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
            why = f"the disruption controller could compute none ({error.message})"
            message = f"has no status, and {why}, so 0 may be disrupted"
        else:
            status = sync.status
            message = (
                f"has no status; as the disruption controller would compute it: {status.current_healthy} of "
                f"{status.expected_pods} expected pods are ready, {status.desired_healthy} must stay, so "
                f"{status.disruptions_allowed} may be disrupted"
            )
            guessed = [f"{scale.kind} {scale.namespace}/{scale.name}" for scale in sync.scales if scale.is_guessed]
            if guessed:
                message += f" ({', '.join(guessed)} not in the input: counted by pods)"
            else:
                kind = AssumptionKind.TOLD
        budgets.append(msgspec.structs.replace(budget, status=status))
        assumptions.append(Assumption(f"PodDisruptionBudget {budget.key}", "status", message, kind))
    return msgspec.structs.replace(cluster, pod_disruption_budgets=budgets), assumptions


def admit_claim(claim: PersistentVolumeClaim, cluster: ClusterSnapshot) -> PersistentVolumeClaim:
    """The claim as the API server stores it, pending."""
    class_name = claim.spec.storage_class_name
    if class_name is None and _BETA_CLASS_ANNOTATION not in claim.metadata.annotations:
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
