"""Finds violations by the objects of a change themselves, independent of evictions.

These are removed APIs, weakened protection (``protection``), replicas that conflict with an autoscaler, rollouts that
get stuck, pods that bypass the scheduler or never get their volume, pods that a controller adopts, and nodes without a
kubelet; and what the change takes away: namespaces, volumes, the pods behind Services, and all pods of a workload.

Deleted workloads are covered by a rule with a limit (``gate/measures.py``). Objects that the user lists with
``--delete`` may be deleted, but not what is deleted along with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import starmap
from typing import Any

from kpreempt.analysis.check.deadlocks import Deadlock
from kpreempt.analysis.check.gate import StaticFinding
from kpreempt.analysis.check.protection import ProtectionRules
from kpreempt.analysis.check.rollout.controller_inputs import number
from kpreempt.analysis.check.rollout.records import Adoption, Plan, PlannedWorkload, Reset
from kpreempt.analysis.check.rollout.removed_apis import removed_in
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.naming import counted, some_of
from kpreempt.analysis.simulation.cluster import Workloads
from kpreempt.analysis.simulation.kubelet import is_not_ready
from kpreempt.controllers.actions import is_ready
from kpreempt.gate_rules import DEADLOCK, RuleId
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import mapping_in, mappings_in
from kpreempt.model.labels import LabelIndex, LabelSelector
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import Service
from kpreempt.verdict.check import Change, ChangeKind
from kpreempt.verdict.simulation import ATTACHED_ELSEWHERE, NOT_ADMITTED, Simulation, SimulationStep, StepKind

_MINOR = re.compile(r"^(?:v|kube-)?1\.(\d+)")
# What helps if a word is in the API server's reason; the first that matches.
_FIXES_OF_REJECTIONS = {
    "unknown ": "Correct or remove each unknown field; kubectl apply fails because of them.",
    "immutable": "Keep the field as it is in the cluster, rename the object, or delete the object first (this deletes"
    " its pods, too).",
    "": "Correct each field in the message; kubectl apply fails because of them.",
}
_CREATE = "Create the namespace before the objects in it (--create-namespace)."
_WITHOUT_POLICIES = (
    "Remove it: no API replaces PodSecurityPolicies. Label the namespaces for Pod Security Admission instead."
)
_NO_CLASS = "no PriorityClass with name"
_FIX_OF_PODS = "Correct what the message names in the pod template, or allow such pods in the namespace."
_NODE = "Node "
_NAMESPACE = "Namespace "
_CLAIM = "PersistentVolumeClaim"
_VOLUME = "PersistentVolume"
_ORDINAL = re.compile(r"[0-9]{1,10}")


def check_manifests(
    plan: Plan,
    apis: Mapping[str, str],
    versions: Iterable[str],
    after: ClusterSnapshot,
    simulation: Simulation,
    protection: ProtectionRules,
    deadlocks: Mapping[str, Deadlock],
) -> list[StaticFinding]:
    """All violations by the objects of a plan.

    ``deadlocks`` has the workloads in a rollout deadlock. ``apis`` are the API versions of the change's objects;
    ``protection`` is for the same plan. The cluster's version is the first of ``versions`` that has a minor version
    (``v1.36.2`` or ``kube-1.36``).
    """
    minor = next((int(found[1]) for text in versions if (found := _MINOR.match(text))), None)
    missing = plan.missing_namespaces
    absent = some_of([*missing.absent, *missing.late])
    without_namespace = (
        [
            StaticFinding(
                RuleId.APPLY_REJECTED, f"Namespace {absent}", missing.detail, _CREATE, change=missing.objects[0]
            )
        ]
        if absent
        else []
    )
    return [
        *_of_removed_apis(apis, minor),
        *without_namespace,
        *starmap(_of_rejection, plan.rejections.items()),
        *protection.static_findings(after),
        *(StaticFinding(RuleId.DUPLICATE_OBJECTS, *each) for each in plan.duplicates.items()),
        *map(_of_reset, plan.resets),
        *_of_rollouts(plan.workloads, simulation, deadlocks),
        *_of_placement(plan, after, simulation),
    ]


def of_rejected_pods(subject: str, reason: str) -> StaticFinding:
    """The violation by a workload, or a pod, whose pods the API server rejects."""
    fix = "Use an existing PriorityClass, or add it to the change." if _NO_CLASS in reason else _FIX_OF_PODS
    return StaticFinding(RuleId.APPLY_REJECTED, subject, reason, fix)


def _of_rejection(subject: str, reason: str) -> StaticFinding:
    is_fixed = ("may not change", "may not be changed", "updates to")
    words = "immutable" if any(each in reason for each in is_fixed) else reason
    fix = next(fix for word, fix in _FIXES_OF_REJECTIONS.items() if word in words)
    return StaticFinding(RuleId.APPLY_REJECTED, subject, reason, fix)


def _of_removed_apis(apis: Mapping[str, str], minor: int | None) -> Iterator[StaticFinding]:
    for subject, version in apis.items():
        removed = removed_in(version, subject.partition(" ")[0])
        if removed is not None and minor is not None and removed <= minor + 1:
            detail = f"{version} is not served as of Kubernetes 1.{removed}"
            fix = _WITHOUT_POLICIES if subject.startswith("PodSecurityPolicy ") else ""
            yield StaticFinding(RuleId.REMOVED_API, subject, detail, fix)


def _of_reset(reset: Reset) -> StaticFinding:
    count = abs(reset.current - reset.written)
    pods = "1 pod" if count == 1 else f"{count} pods"
    pronoun = "it" if count == 1 else "them"
    done = (
        f"deletes {pods}; the autoscaler then recreates {pronoun}"
        if reset.written < reset.current
        else f"creates {pods}; the autoscaler then deletes {pronoun}"
    )
    detail = (
        f"{reset.autoscaler} set {reset.current} replicas, but the manifest sets {reset.written}; applying it {done}"
    )
    return StaticFinding(RuleId.AUTOSCALED_REPLICAS, reset.workload, detail)


def of_autoscalers(
    autoscalers: Sequence[tuple[str, str]], now: Simulation, most: Simulation
) -> Iterator[StaticFinding]:
    """Workloads that fit with their current replicas, but not with the maximum of their autoscaler.

    ``autoscalers`` has pairs of autoscaler and workload.
    """
    evicted = len(most.displaced) - len(now.displaced)
    for name, workload in autoscalers:
        waiting = [sum(each.workload == workload for each in of.pending) for of in (most, now)]
        refused = [sum(each.rejected_after for each in of.rejected if each.workload == workload) for of in (most, now)]
        counts = {"pending": waiting[0] - waiting[1], "rejected by a quota": refused[0] - refused[1]}
        found = [f"{count} more pods {words}" for words, count in counts.items() if count > 0]
        found += [f"{evicted} more pods evicted"] if evicted > 0 and not found else []
        if found:
            detail = f"{name}: {', '.join(found)}"
            yield StaticFinding(RuleId.AUTOSCALED_MAXIMUM, workload, detail, change=name)


def _of_rollouts(
    workloads: Sequence[PlannedWorkload], simulation: Simulation, deadlocks: Mapping[str, Deadlock]
) -> Iterator[StaticFinding]:
    for each in workloads:
        if each.before is None or each.after is None or each.is_same_template:
            continue
        name = each.change.object
        detail, deadlock = _retained_by(each, mapping_in(each.after, "spec")), deadlocks.get(name)
        if detail:
            yield StaticFinding(RuleId.ROLLOUT_STUCK, name, detail)
        elif deadlock is not None and deadlock.keeps_apart:
            own = (waiting for waiting in simulation.pending if waiting.workload == name)
            messages = [waiting.message for waiting in own if waiting.message]
            detail = "; ".join([deadlock.sentence, *messages[:1]])
            yield StaticFinding(RuleId.ROLLOUT_STUCK, name, detail, is_critical=True)


def _retained_by(workload: PlannedWorkload, spec: Document) -> str:
    """What keeps pods of the old template running; an empty string if nothing does."""
    update = mapping_in(spec, "updateStrategy")
    if update.get("type") == "OnDelete":
        return "with OnDelete, its pods keep the old template until they are deleted"
    if workload.kind == "Deployment" and spec.get("paused"):
        return "it is paused"
    partition: Any = mapping_in(update, "rollingUpdate").get("partition")
    if workload.kind == "StatefulSet" and isinstance(partition, int) and partition > 0:
        # Counted from the first ordinal, which ``spec.ordinals.start`` can raise.
        kept = "the first pod" if partition == 1 else f"the first {partition:,} pods"
        replicas: Any = spec.get("replicas", 1)
        if isinstance(replicas, int) and partition >= replicas:
            return f"partition {partition} keeps all pods on the old template"
        return f"partition {partition} keeps {kept} on the old template"
    return ""


def _of_placement(plan: Plan, after: ClusterSnapshot, simulation: Simulation) -> Iterator[StaticFinding]:
    """All placement violations; ``after`` is the cluster at the end of the simulation."""
    # Why pods with a node do not run there at the end, by reason and workload.
    steps = {step.pod: step for step in simulation.steps if step.kind is StepKind.BLOCKED}
    blocked: dict[str, dict[str, list[SimulationStep]]] = {}
    if steps:
        names = Workloads(after)
        for pod in after.pods:
            step = steps.get(pod.key)
            if step is not None and pod.is_active and not is_ready(pod):
                blocked.setdefault(step.reason, {}).setdefault(names.of(pod), []).append(step)
    yield from _of_volumes(plan.workloads, blocked.get(ATTACHED_ELSEWHERE, {}), after, simulation)
    yield from _of_node_names(plan, after, blocked.get(NOT_ADMITTED, {}), simulation)
    for adoption in plan.adoptions:
        yield _of_adoption(adoption, simulation)
    for each in plan.changes:
        if each.kind is ChangeKind.CREATED and each.object.startswith(_NODE):
            detail = "the API server taints it node.kubernetes.io/not-ready:NoSchedule, and it has no kubelet"
            yield StaticFinding(RuleId.CREATED_NODES, each.object, detail)


def _of_volumes(
    workloads: Sequence[PlannedWorkload],
    blocked: dict[str, list[SimulationStep]],
    after: ClusterSnapshot,
    simulation: Simulation,
) -> Iterator[StaticFinding]:
    updated = {each.change.object for each in workloads if each.before is not None and not each.is_same_template}
    created = {step.pod for step in simulation.steps if step.kind is StepKind.CREATED}
    for name, steps in blocked.items():
        pods = [step.pod for step in steps]
        detail = f"{some_of(pods)} on {steps[0].node}: {steps[0].message}"
        old = [each.key for each in after.pods if each.key not in created and steps[0].message.endswith(f" {each.key}")]
        if name in updated and old:
            detail = (
                f"{DEADLOCK}: the new pod waits for a volume that the old pod {old[0]} holds until the new pod is"
                f" ready; {detail}"
            )
        yield StaticFinding(RuleId.VOLUME_ATTACHED_ELSEWHERE, name, detail, pods=pods)


def _of_node_names(
    plan: Plan, after: ClusterSnapshot, blocked: dict[str, list[SimulationStep]], simulation: Simulation
) -> Iterator[StaticFinding]:
    nodes = {each.name: each for each in after.nodes}
    rule = RuleId.BYPASSES_SCHEDULER
    for name in dict.fromkeys([*plan.node_names, *blocked]):
        steps = blocked.get(name, [])
        if steps:
            pods = [step.pod for step in steps]
            verb = "does" if len(pods) == 1 else "do"
            detail = f"{some_of(pods)} {verb} not run because {steps[0].message}"
            yield StaticFinding(rule, name, detail, is_critical=True, pods=pods)
            continue
        node = nodes.get(plan.node_names[name])
        victims: list[str] = []
        if simulation.displaced:
            workloads = Workloads(after)
            own = {pod.key for pod in after.pods if workloads.of(pod) == name}
            victims = [each.pod for each in simulation.displaced if each.cause in own]
        if node is None:
            detail = f"node {plan.node_names[name]} does not exist"
        elif victims:
            detail = (
                f"the kubelet of {node.name} evicts {some_of(victims)} for it without checking PodDisruptionBudgets"
            )
        elif is_not_ready(node):
            detail = f"node {node.name} is not ready"
        elif node.spec.unschedulable:
            detail = f"node {node.name} is cordoned, but its kubelet starts the pods anyway"
        else:
            detail = f"nodeName is {node.name}, so the scheduler's filters (taints, affinity, spreading) are skipped"
            yield StaticFinding(rule, name, detail)
            continue
        yield StaticFinding(rule, name, detail, is_critical=True)


def _of_adoption(adoption: Adoption, simulation: Simulation) -> StaticFinding:
    objects = [each.removeprefix("Pod ") for each in adoption.objects]
    pronoun, possessive = ("it", "its") if len(objects) == 1 else ("them", "their")
    has_sets = adoption.objects[0].startswith("ReplicaSet ")
    if adoption.surplus is not None:
        deletions = adoption.surplus
        deletes = f"scales {pronoun} to 0 unless {possessive} template matches"
    else:
        terminations = (step for step in simulation.steps if step.kind is StepKind.TERMINATING and not step.cause)
        pods = {
            step.pod
            for step in terminations
            if step.pod in objects
            or (has_sets and step.owner.replace(" ", f" {step.pod.partition('/')[0]}/", 1) in adoption.objects)
        }
        deletions = len(pods)
        deletes = f"deletes {deletions:,} of {possessive} pods"
    if not has_sets:
        deletes = "deletes it" if len(objects) == 1 else f"deletes {deletions:,} of {pronoun}"
    detail = f"{some_of(objects)}" + (
        f"; the controller then {deletes}" if deletions else f"; the controller keeps {pronoun}"
    )
    return StaticFinding(RuleId.ADOPTED_PODS, adoption.owner, detail, change=adoption.change, is_critical=deletions > 0)


def removals(
    before: ClusterSnapshot, plan: Plan, after: ClusterSnapshot, simulation: Simulation
) -> list[StaticFinding]:
    """What the change takes away; ``before`` is the cluster without the change, ``after`` the end of the simulation."""
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
    """Why an object that the user did not list is deleted."""
    return f"with {change.deleted_with}" if change.deleted_with else f"by {change.deleted_by}"


def _namespace(change: Change, before: ClusterSnapshot, changes: Sequence[Change]) -> StaticFinding:
    name = change.object.removeprefix(_NAMESPACE)
    own = [each for each in changes if each.deleted_with == change.object]
    pods = [each.key for each in before.pods if each.metadata.namespace == name and not each.is_terminal]
    services = sum(each.metadata.namespace == name for each in before.services)
    claims = sum(each.metadata.namespace == name for each in before.persistent_volume_claims)
    counts = ((len(pods), "pod"), (services, "Service"), (claims, _CLAIM))
    content = [counted(count, noun) for count, noun in counts if count]
    others = [each.object for each in own if not (each.deleted_by or each.source)]
    detail = f"with everything in it{': ' if content else ''}{', '.join(content)}"
    if others:
        detail += f"; not in the manifests: {some_of(others)}"
    return StaticFinding(RuleId.NAMESPACE_DELETION, change.object, detail, pods=pods)


def _volumes(before: ClusterSnapshot, plan: Plan, changes: Mapping[str, Change]) -> Iterator[StaticFinding]:
    deleted = {name for name, each in changes.items() if each.kind is ChangeKind.DELETED}
    retired = dict(_claims_of_sets(plan.workloads, before))
    for claim in before.persistent_volume_claims:
        if not (claim.spec.volume_name or claim.status.phase == "Bound"):
            continue
        subject, namespace = f"{_CLAIM} {claim.key}", claim.metadata.namespace
        above = [f"{each.kind} {namespace}/{each.name}" for each in claim.metadata.owner_references]
        # A pod's ephemeral volume is deleted with it.
        above = [each for each in (*above, f"{_NAMESPACE}{namespace}") if each in deleted and each[:4] != "Pod "]
        if subject in deleted:
            reason = _reason(changes[subject]) if changes[subject].is_unlisted_deletion else ""
        else:
            reason = f"with {above[0]}" if above else retired.get(claim.key, "")
        if reason:
            volume = claim.spec.volume_name or "volume"
            detail = f"{reason}; the data on {volume} is lost unless its reclaim policy is Retain"
            cause = next((each for each in (subject, *above) if each in changes), "")
            yield StaticFinding(RuleId.VOLUME_DELETION, subject, detail, change=cause)
    for each in before.persistent_volumes:
        change, bound_to = changes.get(f"{_VOLUME} {each.metadata.name}"), each.spec.claim_ref
        if change is not None and change.is_unlisted_deletion and bound_to is not None:
            detail = f"{_reason(change)}; it holds the data of {_CLAIM} {bound_to.namespace}/{bound_to.name}"
            yield StaticFinding(RuleId.VOLUME_DELETION, change.object, detail)


def _claims_of_sets(workloads: Iterable[PlannedWorkload], before: ClusterSnapshot) -> Iterator[tuple[str, str]]:
    """The claims that the retention policies of StatefulSets delete, each with the reason."""
    for each in workloads:
        if each.kind != "StatefulSet" or each.before is None:
            continue
        spec = mapping_in(each.after or each.before, "spec")
        policy_field = "whenDeleted" if each.after is None else "whenScaled"
        if mapping_in(spec, "persistentVolumeClaimRetentionPolicy").get(policy_field) != "Delete":
            continue
        start = number(spec, "ordinals", "start")
        retained = range(start, start + number(spec, "replicas", default=1) if each.after is not None else start)
        stems = [
            f"{mapping_in(template, 'metadata').get('name')}-{each.name}-"
            for template in mappings_in(spec, "volumeClaimTemplates")
        ]
        for claim in before.persistent_volume_claims:
            stem, _, ordinal = claim.metadata.name.rpartition("-")
            is_own = claim.metadata.namespace == each.namespace and f"{stem}-" in stems and _ORDINAL.fullmatch(ordinal)
            if is_own and int(ordinal) not in retained:
                policy = f"persistentVolumeClaimRetentionPolicy.{policy_field}: Delete"
                yield claim.key, f"with pod {ordinal} of {each.change.object} ({policy})"


class _PodsOf:
    """The pods of workloads before and after the change, without finished and terminating pods."""

    def __init__(self, before: ClusterSnapshot, after: ClusterSnapshot, changes: Mapping[str, Change]) -> None:
        # The namespaces of the changed objects, or the changed namespaces themselves.
        namespaces = {name.rpartition(" ")[2].partition("/")[0] for name in changes}
        self._clusters = before, after
        self.before, self.after = (
            [each for each in own.pods if each.metadata.namespace in namespaces and each.is_active]
            for own in (before, after)
        )

    @cached_property
    def _workloads(self) -> tuple[Workloads, Workloads]:
        before, after = self._clusters
        return Workloads(before), Workloads(after)

    def of_workload(self, workload: str) -> tuple[list[str], list[str]]:
        """The keys of a workload's pods before and after the change."""
        first, last = (
            [each.key for each in pods if workloads.of(each) == workload]
            for pods, workloads in zip((self.before, self.after), self._workloads, strict=True)
        )
        return first, last

    def owner(self, pod: Pod) -> str:
        """The workload of a pod from before the change."""
        return self._workloads[0].of(pod)


def _services(
    before: ClusterSnapshot, after: ClusterSnapshot, changes: Mapping[str, Change], pods: _PodsOf, evicted: set[str]
) -> Iterator[StaticFinding]:
    """Services that had pods and are deleted, or select no pod at the end."""
    pods_before, pods_after = _selectable(pods.before), _selectable(pods.after)
    remaining = {(each.metadata.namespace, each.metadata.name): each for each in after.services}
    for service in before.services:
        namespace, name = service.metadata.namespace, service.metadata.name
        lost_pods = pods_before(service)
        new_service, subject = remaining.get((namespace, name)), f"Service {namespace}/{name}"
        change = changes.get(subject)
        if (
            not lost_pods
            or (new_service is not None and pods_after(new_service))
            or all(each.key in evicted for each in lost_pods)
        ):
            continue
        cause = subject if change is not None else next(filter(changes.__contains__, map(pods.owner, lost_pods)), "")
        behind = counted(len(lost_pods), "pod")
        if new_service is None:
            if change is not None and not change.is_unlisted_deletion:
                continue
            reason = _reason(change) if change is not None else f"with {_NAMESPACE}{namespace}"
            cause = cause or f"{_NAMESPACE}{namespace}"
            detail = f"is deleted {reason}, with {behind} behind it"
        elif new_service.spec.selector != service.spec.selector:
            detail = f"no longer selects any of its {behind}: {_selector(service)} → {_selector(new_service)}"
        else:
            detail = f"loses its {behind}: no pod matches {_selector(new_service)}"
        yield StaticFinding(RuleId.SERVICE_OUTAGE, subject, detail, change=cause, pods=[each.key for each in lost_pods])


def _selector(service: Service) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(service.spec.selector.items())) or "no selector"


def _selectable(pods: Sequence[Pod]) -> Callable[[Service], list[Pod]]:
    """Return a function that finds the pods that a Service selects; none without a selector."""
    index = LabelIndex(each.metadata.labels for each in pods)

    def selected(service: Service) -> list[Pod]:
        selector, namespace = service.spec.selector, service.metadata.namespace
        found = index.matching(LabelSelector(match_labels=selector)) if selector else ()
        return [pods[each] for each in found if pods[each].metadata.namespace == namespace]

    return selected


def _scaled_to_zero(changes: Mapping[str, Change], pods: _PodsOf, nodes: int) -> Iterator[StaticFinding]:
    for change in changes.values():
        is_daemon = change.object.startswith("DaemonSet ") and change.kind is not ChangeKind.CREATED
        if change.kind is ChangeKind.DELETED or not (change.replicas == 0 or is_daemon):
            continue
        first, last = pods.of_workload(change.object)
        if is_daemon:
            if first and not last:
                detail = f"{len(first):,} → 0 pods: no longer runs on any of the {nodes:,} nodes"
                yield StaticFinding(RuleId.SCALED_TO_ZERO, change.object, detail, pods=first)
        elif first or (change.replicas_before and not change.object.startswith("Job ")):
            detail = f"{max(change.replicas_before or 0, len(first)):,} → 0 pods"
            if change.object.startswith("CronJob "):
                detail = "suspended; it starts no more Jobs"
            yield StaticFinding(RuleId.SCALED_TO_ZERO, change.object, detail, pods=first)
