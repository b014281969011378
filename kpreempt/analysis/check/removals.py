"""What a change itself takes away: namespaces, volumes, the pods of Services, and all pods of a workload.

Deleted workloads are counted by a rule with a limit (``gate/measures.py``). An object that the user lists with
``--delete`` may go, but not what goes with it. What evictions do is measured elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from kpreempt.analysis.check.gate import Objection
from kpreempt.analysis.check.naming import counted, some_of
from kpreempt.analysis.check.rollout.controller_inputs import number
from kpreempt.analysis.check.rollout.records import Plan, PlannedWorkload
from kpreempt.analysis.document_reader import mapping_in, mappings_in
from kpreempt.analysis.simulation.workloads import Workloads
from kpreempt.gate_rules import RuleId
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import Service
from kpreempt.verdict.check import Change, ChangeKind
from kpreempt.verdict.simulation import Simulation

_NAMESPACE = "Namespace "
_CLAIM = "PersistentVolumeClaim"
_VOLUME = "PersistentVolume"
_ORDINAL = re.compile(r"[0-9]{1,10}")


def removals(before: ClusterSnapshot, plan: Plan, after: ClusterSnapshot, simulation: Simulation) -> list[Objection]:
    """All of them. ``before`` is the cluster without the change, ``after`` the one at the end of the simulation."""
    changes = {each.object: each for each in plan.changes if each.kind is not ChangeKind.UNCHANGED}
    if not changes:
        return []
    pods = _PodsOf(before, after, changes)
    return [
        *(
            _namespace(each, before, plan.changes)
            for each in changes.values()
            if each.object.startswith(_NAMESPACE) and each.is_unlisted_deletion
        ),
        *_volumes(before, plan, changes),
        *_services(before, after, changes, pods, {each.pod for each in simulation.displaced}),
        *_scaled_to_zero(changes, pods, len(after.nodes)),
    ]


def _reason(change: Change) -> str:
    """Why an object goes that the user does not list."""
    return f"with {change.deleted_with}" if change.deleted_with else f"by {change.deleted_by}"


def _namespace(change: Change, before: ClusterSnapshot, changes: Sequence[Change]) -> Objection:
    name = change.object.removeprefix(_NAMESPACE)
    own = [each for each in changes if each.deleted_with == change.object]
    pods = [each.key for each in before.pods if each.metadata.namespace == name and not each.is_terminal]
    services = sum(each.metadata.namespace == name for each in before.services)
    claims = sum(each.metadata.namespace == name for each in before.persistent_volume_claims)
    counts = ((len(pods), "pod"), (services, "Service"), (claims, _CLAIM))
    content = [counted(many, noun) for many, noun in counts if many]
    others = [each.object for each in own if not (each.deleted_by or each.source)]
    detail = f"with everything in it{': ' if content else ''}{', '.join(content)}"
    if others:
        detail += f"; not in the manifests: {some_of(others)}"
    return Objection(RuleId.NAMESPACE_DELETION, change.object, detail, pods=pods)


def _volumes(before: ClusterSnapshot, plan: Plan, changes: Mapping[str, Change]) -> Iterator[Objection]:
    deleted = {name for name, each in changes.items() if each.kind is ChangeKind.DELETED}
    retired = dict(_claims_of_sets(plan.workloads, before))
    for claim in before.persistent_volume_claims:
        if not (claim.spec.volume_name or claim.status.phase == "Bound"):
            continue
        subject, namespace = f"{_CLAIM} {claim.key}", claim.metadata.namespace
        above = [f"{each.kind} {namespace}/{each.name}" for each in claim.metadata.owner_references]
        # A pod's own volume goes with it.
        above = [each for each in (*above, f"{_NAMESPACE}{namespace}") if each in deleted and each[:4] != "Pod "]
        if subject in deleted:
            reason = _reason(changes[subject]) if changes[subject].is_unlisted_deletion else ""
        else:
            reason = f"with {above[0]}" if above else retired.get(claim.key, "")
        if reason:
            volume = claim.spec.volume_name or "volume"
            detail = f"{reason}; its volume {volume} loses its data unless its reclaim policy is Retain"
            cause = next((each for each in (subject, *above) if each in changes), "")
            yield Objection(RuleId.VOLUME_DELETION, subject, detail, change=cause)
    for each in before.persistent_volumes:
        change, bound_to = changes.get(f"{_VOLUME} {each.metadata.name}"), each.spec.claim_ref
        if change is not None and change.is_unlisted_deletion and bound_to is not None:
            detail = f"{_reason(change)}; it has the data of {_CLAIM} {bound_to.namespace}/{bound_to.name}"
            yield Objection(RuleId.VOLUME_DELETION, change.object, detail)


def _claims_of_sets(workloads: Iterable[PlannedWorkload], before: ClusterSnapshot) -> Iterator[tuple[str, str]]:
    """The claims that the retention policies of StatefulSets delete, each with the reason."""
    for each in workloads:
        if each.kind != "StatefulSet" or each.before is None:
            continue
        spec = mapping_in(each.after or each.before, "spec")
        moment = "whenDeleted" if each.after is None else "whenScaled"
        if mapping_in(spec, "persistentVolumeClaimRetentionPolicy").get(moment) != "Delete":
            continue
        start = number(spec, "ordinals", "start")
        kept = range(start, start + number(spec, "replicas", default=1) if each.after is not None else start)
        stems = [
            f"{mapping_in(template, 'metadata').get('name')}-{each.name}-"
            for template in mappings_in(spec, "volumeClaimTemplates")
        ]
        for claim in before.persistent_volume_claims:
            stem, _, ordinal = claim.metadata.name.rpartition("-")
            is_own = claim.metadata.namespace == each.namespace and f"{stem}-" in stems and _ORDINAL.fullmatch(ordinal)
            if is_own and int(ordinal) not in kept:
                policy = f"persistentVolumeClaimRetentionPolicy.{moment}: Delete"
                yield claim.key, f"with pod {ordinal} of {each.change.object} ({policy})"


class _PodsOf:
    """The pods of workloads before and after the change, without those that have ended or are on their way out."""

    def __init__(self, before: ClusterSnapshot, after: ClusterSnapshot, changes: Mapping[str, Change]) -> None:
        # The namespace of a changed object, or the one that it is.
        spaces = {name.rpartition(" ")[2].partition("/")[0] for name in changes}
        self._clusters = before, after
        self.before, self.after = (
            [each for each in own.pods if each.metadata.namespace in spaces and each.is_active]
            for own in (before, after)
        )

    @cached_property
    def _workloads(self) -> tuple[Workloads, Workloads]:
        before, after = self._clusters
        return Workloads(before), Workloads(after)

    def of(self, workload: str) -> tuple[list[str], list[str]]:
        """Those of one workload, by their keys, before and after."""
        first, last = (
            [each.key for each in pods if workloads.of(each) == workload]
            for pods, workloads in zip((self.before, self.after), self._workloads, strict=True)
        )
        return first, last

    def owner(self, pod: Pod) -> str:
        """The workload of a pod from before."""
        return self._workloads[0].of(pod)


def _services(
    before: ClusterSnapshot, after: ClusterSnapshot, changes: Mapping[str, Change], pods: _PodsOf, evicted: set[str]
) -> Iterator[Objection]:
    """Services that had pods and are deleted, or select none in the end."""
    had, have = _Selectable(pods.before), _Selectable(pods.after)
    remaining = {(each.metadata.namespace, each.metadata.name): each for each in after.services}
    for service in before.services:
        namespace, name = service.metadata.namespace, service.metadata.name
        lost = had.by(service)
        left, subject = remaining.get((namespace, name)), f"Service {namespace}/{name}"
        change = changes.get(subject)
        if not lost or (left is not None and have.by(left)) or all(each.key in evicted for each in lost):
            continue
        cause = subject if change is not None else next(filter(changes.__contains__, map(pods.owner, lost)), "")
        behind = counted(len(lost), "pod")
        if left is None:
            if change is not None and not change.is_unlisted_deletion:
                continue
            reason = _reason(change) if change is not None else f"with {_NAMESPACE}{namespace}"
            cause = cause or f"{_NAMESPACE}{namespace}"
            detail = f"is deleted {reason}, with {behind} behind it"
        elif left.spec.selector != service.spec.selector:
            detail = f"no longer selects any of its {behind}: {_selector(service)} → {_selector(left)}"
        else:
            detail = f"loses its {behind}: no pod with {_selector(left)} is left"
        yield Objection(RuleId.SERVICE_OUTAGE, subject, detail, change=cause, pods=[each.key for each in lost])


def _selector(service: Service) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(service.spec.selector.items())) or "no selector"


class _Selectable:
    """Pods by namespace and label."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._found: dict[tuple[str, str, str], list[Pod]] = {}
        for pod in pods:
            for key, value in pod.metadata.labels.items():
                self._found.setdefault((pod.metadata.namespace, key, value), []).append(pod)

    def by(self, service: Service) -> list[Pod]:
        """Those that the service selects; none without a selector."""
        selector, namespace = service.spec.selector, service.metadata.namespace
        candidates = [self._found.get((namespace, key, value), []) for key, value in selector.items()]
        fewest = min(candidates, key=len, default=[])
        return [each for each in fewest if selector.items() <= each.metadata.labels.items()]


def _scaled_to_zero(changes: Mapping[str, Change], pods: _PodsOf, nodes: int) -> Iterator[Objection]:
    for change in changes.values():
        is_daemon = change.object.startswith("DaemonSet ") and change.kind is not ChangeKind.CREATED
        if change.kind is ChangeKind.DELETED or not (change.replicas == 0 or is_daemon):
            continue
        first, last = pods.of(change.object)
        if is_daemon:
            if first and not last:
                detail = f"{len(first):,} → 0 pods: none of the {nodes:,} nodes runs it any more"
                yield Objection(RuleId.SCALED_TO_ZERO, change.object, detail, pods=first)
        elif first or (change.replicas_before and not change.object.startswith("Job ")):
            detail = f"{max(change.replicas_before or 0, len(first)):,} → 0 pods"
            if change.object.startswith("CronJob "):
                detail = "suspended, so that it starts no more Jobs"
            yield Objection(RuleId.SCALED_TO_ZERO, change.object, detail, pods=first)
