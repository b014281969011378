"""What may help with a finding of a check, derived from its cause.

Candidates are only proposals: ``remedies`` runs the check again with each of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from kpreempt.analysis.check.report import CheckedRollout
from kpreempt.analysis.check.rollout.apply import LAST_APPLIED, last_applied
from kpreempt.analysis.check.rollout.autoscalers import KIND as AUTOSCALER
from kpreempt.analysis.check.rollout.autoscalers import is_autoscaler
from kpreempt.analysis.check.rollout.kinds import SCALED_KINDS, is_pod_owner
from kpreempt.analysis.check.simulations import Simulated, SimulationContext
from kpreempt.analysis.check.template_candidates import node_labels, template_candidates
from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.explain.candidates import MAX_CUT
from kpreempt.analysis.hypothetical_pods import RequestsOfMany
from kpreempt.analysis.nodes.copies import NewNodes, allocatable_of, kinds_of
from kpreempt.analysis.remedies.edits import nested
from kpreempt.analysis.remedies.excluded import (
    CORDON_TAINT,
    SYSTEM_NAMESPACE,
    is_set_by_autoscaler,
    is_set_by_controller,
)
from kpreempt.analysis.remedies.owners import Owners
from kpreempt.analysis.remedies.quotas import amount_of, amount_text, larger_quota
from kpreempt.analysis.remedies.search import Candidate
from kpreempt.controllers.actions import is_ready
from kpreempt.gate_rules import DEADLOCK, RuleId
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import group_of, mapping_in, mappings_in
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.verdict.check import ChangeKind as ChangedBy
from kpreempt.verdict.check import GateFinding
from kpreempt.verdict.remedies import Change, ChangeKind, ObjectEdit, Remedy, RemedyStage
from kpreempt.verdict.simulation import QuotaRejection, StepKind

ADD_NODE = "--add-node="
_SET = ChangeKind.SET
_REQUESTER, _CAPACITY, _LIMIT = RemedyStage.REQUESTER, RemedyStage.CAPACITY, RemedyStage.LIMIT
_ONE_BY_ONE = {"maxSurge": 0, "maxUnavailable": 1}
_PDB = "PodDisruptionBudget"
_MAX_CLASSES, _MAX_KINDS, _MAX_NODES = 3, 2, 3
_STRATEGY_FIELDS = {"Deployment": "strategy", "DaemonSet": "updateStrategy"}
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_MISSING = re.compile(r"must specify (.*)")
# Amounts for containers that say nothing about what they need, small enough not to matter.
_SMALL = {"cpu": "100m", "memory": "128Mi", "ephemeral-storage": "100Mi"}


class RemedyInput(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster before the change, its plain ``documents``, and those of the change, with their namespaces."""

    cluster: ClusterSnapshot
    documents: Sequence[Document]
    change: Sequence[Document]
    simulation: SimulationContext


class Situation:
    """A check with findings, and lookups for candidates."""

    def __init__(self, checked: CheckedRollout, remedy_input: RemedyInput) -> None:
        self.checked, self.input = checked, remedy_input
        self.cluster = remedy_input.cluster
        self.plan = checked.plan
        self.manifests = {describe(each): each for each in remedy_input.change}
        self.workloads = {each.change.object: each for each in checked.plan.workloads}

    @property
    def run(self) -> Simulated:
        """The simulation that is shown."""
        return self.checked.simulated[0]

    @cached_property
    def owners(self) -> Owners:
        """The owners of the objects after the change."""
        return Owners(self.run.after, [*self.input.documents, *self.input.change])

    @cached_property
    def new_nodes(self) -> NewNodes:
        """New nodes of each kind."""
        simulation = self.input.simulation
        return NewNodes(self.cluster, simulation.scheduler, now=simulation.at)

    def manifest(self, name: str) -> Document:
        """The manifest of an object of the change; empty if it has none."""
        return self.manifests.get(name, {})

    def pods_of(self, workload: str, cluster: ClusterSnapshot) -> list[Pod]:
        """The active pods of a workload."""
        namespace = workload.partition(" ")[2].partition("/")[0]
        return [
            each
            for each in cluster.pods
            if each.metadata.namespace == namespace and each.is_active and self.owners.workload_of(each) == workload
        ]

    def waiting_pods(self, workload: str) -> list[Pod]:
        """The pods of a workload that are pending at the end."""
        keys = {each.pod for each in self.run.simulation.pending if each.workload == workload}
        return [each for each in self.run.after.pods if each.key in keys]

    def set_in(self, name: str, field: str, value: Any, patch: Document, stage: RemedyStage = _REQUESTER) -> Candidate:
        """A candidate that sets a field of an object."""
        return Candidate(
            stage=stage,
            changes=[Change(_SET, subject=name, field=field, value=value)],
            edits=[ObjectEdit(name, patch)],
            manager="" if name in self.manifests else self.owners.manager_of(name),
        )


def template_path(kind: str) -> tuple[str, ...]:
    """The path of the pod spec in an object."""
    inner = ("spec", "template", "spec")
    return {"Pod": ("spec",), "CronJob": ("spec", "jobTemplate", *inner)}.get(kind, inner)


def candidates_for(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """What may help with a finding, in any order. Edits to objects without a manifest are edits to the cluster."""
    for generate in _GENERATORS.get(finding.rule, ()):
        for each in generate(finding, situation):
            edits = [
                edit
                if edit.object in situation.manifests or edit.in_cluster
                else msgspec.structs.replace(edit, in_cluster=True)
                for edit in each.edits
            ]
            yield msgspec.structs.replace(each, edits=edits)


def clearing(finding: GateFinding, situation: Situation) -> Remedy | None:
    """Nothing to do: a quota rejects pods of a surge only until old pods are gone."""
    if finding.rule is not RuleId.QUOTA_REJECTIONS:
        return None
    simulation = situation.run.simulation
    own = [each for each in simulation.rejected if each.workload == finding.subject]
    if not own or any(each.rejected_after for each in own):
        return None
    namespace = finding.subject.partition(" ")[2].partition("/")[0]
    last = max((each.at for each in simulation.steps if each.kind is StepKind.REJECTED), default=0.0)
    created = (
        each.at
        for each in simulation.steps
        if each.kind is StepKind.CREATED and each.at >= last and each.pod.startswith(f"{namespace}/")
    )
    return Remedy(stage=RemedyStage.REPAIR, changes=[], solves=False, clears_after=round(min(created, default=last)))


def _rollout_strategies(name: str, situation: Situation) -> Iterator[Candidate]:
    """Strategies that stop an old pod before its replacement is ready."""
    workload = situation.workloads.get(name)
    if workload is None or workload.before is None or workload.after is None:
        return
    field = _STRATEGY_FIELDS.get(workload.kind)
    if field is None or not situation.manifest(name):
        return
    strategy = mapping_in(workload.after, "spec", field)
    if strategy.get("type") != "RollingUpdate":
        return
    rolling = mapping_in(strategy, "rollingUpdate")
    found = []
    if {key: rolling.get(key) for key in _ONE_BY_ONE} != _ONE_BY_ONE:
        rolled = {"type": "RollingUpdate", "rollingUpdate": _ONE_BY_ONE}
        found.append(situation.set_in(name, f"spec.{field}.rollingUpdate", _ONE_BY_ONE, {"spec": {field: rolled}}))
    if workload.kind == "Deployment":
        recreated = {"type": "Recreate", "rollingUpdate": None}
        found.append(situation.set_in(name, f"spec.{field}.type", "Recreate", {"spec": {field: recreated}}))
    # For a single pod, the two have the same effect, and Recreate says so.
    yield from reversed(found) if workload.change.replicas == 1 else found


def _of_own_strategy(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    # A deadlock is something to repair, before the pods request less.
    is_deadlock = finding.detail.startswith(DEADLOCK)
    for each in _rollout_strategies(finding.subject, situation):
        yield msgspec.structs.replace(each, stage=RemedyStage.REPAIR) if is_deadlock else each


def _of_causing_strategy(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    yield from _rollout_strategies(finding.change, situation)


def _gentle_strategies(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """Strategies that keep pods ready."""
    name = finding.change
    workload = situation.workloads.get(name)
    if workload is None or workload.after is None or not situation.manifest(name) or finding.pods:
        return
    field = {**_STRATEGY_FIELDS, "StatefulSet": "updateStrategy"}.get(workload.kind)
    if field is None or workload.is_same_template:
        return
    strategy = mapping_in(workload.after, "spec", field)
    rolling = mapping_in(strategy, "rollingUpdate")
    for values in ({"maxSurge": 1, "maxUnavailable": 0}, _ONE_BY_ONE):
        own = values if workload.kind != "StatefulSet" else {"maxUnavailable": 1}
        is_same = {key: rolling.get(key) for key in own} == own
        if not is_same:
            patch = {"spec": {field: {"type": "RollingUpdate", "rollingUpdate": own}}}
            yield situation.set_in(name, f"spec.{field}.rollingUpdate", own, patch)


def _whole_rollout(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """What keeps old pods on purpose: a partition, OnDelete, a paused rollout."""
    name = finding.subject
    workload = situation.workloads.get(name)
    if workload is None or workload.after is None:
        return
    spec = mapping_in(situation.manifest(name), "spec")
    update = mapping_in(mapping_in(workload.after, "spec"), "updateStrategy")
    if update.get("type") == "OnDelete":
        patch = nested(["spec", "updateStrategy", "type"], "RollingUpdate")
        yield situation.set_in(name, "spec.updateStrategy.type", "RollingUpdate", patch)
    if mapping_in(workload.after, "spec").get("paused"):
        # kubectl rollout pause sets it in the cluster only.
        candidate = situation.set_in(name, "spec.paused", None, nested(["spec", "paused"], None))
        edit = msgspec.structs.replace(candidate.edits[0], in_cluster=not spec.get("paused"))
        yield msgspec.structs.replace(candidate, edits=[edit])
    if mapping_in(update, "rollingUpdate").get("partition"):
        path = ["spec", "updateStrategy", "rollingUpdate", "partition"]
        yield situation.set_in(name, ".".join(path), 0, nested(path, 0))


def _stuck_pod(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """Delete the first pod that is not ready: an ordered StatefulSet waits for it before it replaces any pod.

    This is the documented way out ("forced rollback"); the StatefulSet creates the pod again in the new revision.
    """
    workload = situation.workloads.get(finding.subject)
    if workload is None or workload.kind != "StatefulSet" or workload.before is None or workload.after is None:
        return
    unready = [each for each in situation.pods_of(finding.subject, situation.cluster) if not is_ready(each)]
    for pod in sorted(unready, key=lambda each: (len(each.metadata.name), each.metadata.name))[:_MAX_NODES]:
        name = f"Pod {pod.key}"
        yield Candidate(
            stage=RemedyStage.DELETION,
            changes=[Change(ChangeKind.DELETE, subject=name)],
            edits=[ObjectEdit(name, deletes=True)],
        )


def _template_changes(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """What would let a pending pod be scheduled, as changes to its template or to nodes."""
    for pod in situation.waiting_pods(finding.subject)[:1]:
        manifest = situation.manifest(finding.subject)
        simulation = situation.input.simulation
        path = template_path(str(manifest.get("kind"))) if manifest else ()
        yield from template_candidates(
            pod, situation.run.after, simulation.scheduler, simulation.at, finding.subject, manifest, path
        )
        old = situation.pods_of(finding.subject, situation.cluster)
        yield from node_labels(pod, situation.cluster, [each.spec.node_name for each in old])


def _pod_hash_in_spread(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """Count only pods of the new template in spread constraints, so that old pods do not skew them."""
    name = finding.subject
    manifest = situation.manifest(name)
    if manifest.get("kind") != "Deployment":
        return
    path = template_path("Deployment")
    constraints = list(mappings_in(mapping_in(manifest, *path), "topologySpreadConstraints"))
    key = "pod-template-hash"
    if not any(
        each.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule" and key not in each.get("matchLabelKeys", [])
        for each in constraints
    ):
        return
    changed = [
        each
        if key in each.get("matchLabelKeys", [])
        else each | {"matchLabelKeys": [*each.get("matchLabelKeys", []), key]}
        for each in constraints
    ]
    yield Candidate(
        stage=_REQUESTER,
        changes=[Change(ChangeKind.MATCH_LABEL_KEYS, subject=str(each.get("topologyKey"))) for each in constraints],
        edits=[ObjectEdit(name, nested([*path, "topologySpreadConstraints"], changed))],
    )


def _fewer_replicas(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """The number of replicas that do fit, if the change creates or adds replicas."""
    name = finding.subject
    workload = situation.workloads.get(name)
    if workload is None or workload.kind not in SCALED_KINDS or not situation.manifest(name):
        return
    wanted, before = workload.change.replicas, workload.change.replicas_before or 0
    if not wanted or wanted <= before or situation.owners.autoscaler_of(name) is not None:
        return
    fitting = sum(bool(each.spec.node_name) for each in situation.pods_of(name, situation.run.after))
    for number in dict.fromkeys(each for each in (fitting, before) if 0 < each < wanted):
        yield Candidate(
            stage=_REQUESTER,
            changes=[Change(ChangeKind.SCALE, subject=name, before=wanted, after=number)],
            edits=[ObjectEdit(name, {"spec": {"replicas": number}})],
        )


def _class_changes(name: str, situation: Situation, classes: Iterable[str], stage: RemedyStage) -> Iterator[Candidate]:
    manifest = situation.manifest(name)
    if not manifest:
        return
    path = [*template_path(str(manifest.get("kind"))), "priorityClassName"]
    for each in classes:
        yield situation.set_in(name, ".".join(path), each or None, nested(path, each or None), stage)


def _classes(situation: Situation, namespace: str) -> dict[str, int]:
    """The PriorityClasses that pods of a namespace may have."""
    found = {each.metadata.name: each.value for each in situation.plan.cluster.priority_classes}
    if namespace == SYSTEM_NAMESPACE:
        return {**_SYSTEM_CLASSES, **found}
    return {name: value for name, value in found.items() if name not in _SYSTEM_CLASSES}


def _higher_priority(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """The next higher PriorityClasses, which let the pending pods evict others."""
    for pod in situation.waiting_pods(finding.subject)[:1]:
        own = pod.priority
        classes = _classes(situation, pod.metadata.namespace)
        higher = sorted((value, name) for name, value in classes.items() if value > own)
        names = [name for _, name in higher[:_MAX_CLASSES]]
        yield from _class_changes(finding.subject, situation, names, RemedyStage.PRIORITY)


def _more_nodes(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """One more node, or one per pending pod, of the kinds that take the pods."""
    waiting = situation.waiting_pods(finding.subject)
    for pod in waiting[:1]:
        for sample in situation.new_nodes.taking(pod)[:_MAX_KINDS]:
            for number in dict.fromkeys((1, len(waiting))):
                yield _with_nodes(sample.kind.like, number)


def _with_nodes(like: Node, number: int) -> Candidate:
    return Candidate(
        stage=_CAPACITY,
        changes=[Change(ChangeKind.ADD_NODE, subject=like.name, after=number)],
        options=[f"{ADD_NODE}{like.name}" + (f"={number}" if number > 1 else "")],
    )


def _more_nodes_for_evicted(_: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """More nodes of the smallest kinds."""
    displaced = situation.run.simulation.displaced
    if not displaced:
        return
    kinds = [each.like for each in kinds_of(situation.cluster)]
    for like in kinds[:_MAX_KINDS]:
        for number in dict.fromkeys((1, min(len(displaced), _MAX_NODES))):
            yield _with_nodes(like, number)


def _repaired_nodes(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """Nodes that are usable again: uncordoned, or with what their controller's taint reports repaired."""
    if not situation.waiting_pods(finding.subject):
        return
    # Nodes that an autoscaler removes, or that still start, are not usable.
    nodes = [each for each in situation.cluster.nodes if not any(map(is_set_by_autoscaler, each.spec.taints))]
    nodes = [each for each in nodes if each.metadata.deletion_timestamp is None]
    broken = [each for each in nodes if any(map(is_set_by_controller, each.spec.taints))]
    cordoned = [each for each in nodes if each.spec.unschedulable]
    for node in list({each.name: each for each in (*cordoned, *broken)}.values())[:_MAX_NODES]:
        name, is_cordoned = f"Node {node.name}", node.spec.unschedulable
        taints = [
            msgspec.to_builtins(each, enc_hook=str) for each in node.spec.taints if not is_set_by_controller(each)
        ]
        spec = {"taints": taints, **({"unschedulable": None} if is_cordoned else {})}
        changes = [Change(ChangeKind.UNCORDON, subject=node.name)] if is_cordoned else []
        own = [each.key for each in node.spec.taints if is_set_by_controller(each) and each.key != CORDON_TAINT]
        if not own:
            yield Candidate(stage=_CAPACITY, changes=changes, edits=[ObjectEdit(name, {"spec": spec})])
            continue
        changes += [Change(ChangeKind.REPAIR, subject=name, field=key) for key in dict.fromkeys(own)]
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        pods = [each for each in situation.cluster.pods if each.spec.node_name == node.name and each.is_active]
        yield Candidate(
            stage=RemedyStage.REPAIR,
            changes=changes,
            edits=[
                ObjectEdit(name, {"spec": spec, "status": ready}),
                # Its pods are ready again, too.
                *(ObjectEdit(f"Pod {each.key}", {"status": ready}) for each in pods if not is_ready(each)),
            ],
        )


def _smaller_requests(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """Requests with which the pods evict no others: as before the change, or what is free on the victims' nodes."""
    name = finding.change
    workload, manifest = situation.workloads.get(name), situation.manifest(name)
    displaced = situation.run.simulation.displaced
    if not manifest or not displaced:
        return
    path = template_path(str(manifest.get("kind")))
    spec = mapping_in(manifest, *path)
    old = mapping_in(workload.before, *path) if workload is not None and workload.before is not None else {}
    if old and (candidate := _with_requests(name, path, spec, _requests_of(old))) is not None:
        yield candidate
    causes = {each.cause for each in displaced}
    causing = next((each for each in situation.run.after.pods if each.key in causes), None)
    if causing is None:
        return
    counted = RequestsOfMany()
    wanted = counted.of(causing)
    own = {each.key for each in situation.pods_of(name, situation.cluster)} if workload is not None else set()
    # A pod of a DaemonSet, or of a rollout without a surge, replaces an old pod on its node.
    free = [_free(node, situation.cluster, counted, own) for node in situation.cluster.nodes]
    victims_nodes = {each.node for each in displaced}
    is_daemon = name.startswith("DaemonSet ")
    on_nodes = [
        amounts
        for node, amounts in zip(situation.cluster.nodes, free, strict=True)
        if node.name in victims_nodes or not is_daemon
    ]
    for resource in ("cpu", "memory"):
        amounts = [each.get(resource, 0) for each in on_nodes]
        room = (min if is_daemon else max)(amounts, default=0)
        if 0 < room < wanted.get(resource, 0):
            lowered = _lowered(spec, resource, wanted[resource], room)
            if lowered is not None and (candidate := _with_requests(name, path, spec, lowered)) is not None:
                yield candidate


def _free(node: Node, cluster: ClusterSnapshot, counted: RequestsOfMany, own: set[str]) -> dict[str, int]:
    free = dict(allocatable_of(node))
    for pod in cluster.pods:
        if pod.spec.node_name == node.name and pod.is_active and pod.key not in own:
            for resource, amount in counted.of(pod).items():
                free[resource] = free.get(resource, 0) - amount
    return free


def _requests_of(spec: Document) -> dict[str, Document]:
    """The requests of a pod spec, by container."""
    return {
        str(each.get("name")): mapping_in(each, "resources", "requests") for each in mappings_in(spec, "containers")
    }


def _lowered(spec: Document, resource: str, wanted: int, room: int) -> dict[str, Document] | None:
    """Requests in which the first container gives up what is missing; ``None`` if it has too little."""
    excess = wanted - room
    for container in mappings_in(spec, "containers"):
        amount = amount_of(mapping_in(container, "resources", "requests").get(resource), resource)
        if amount is not None and amount > excess:
            return {str(container.get("name")): {resource: amount_text(resource, amount - excess)}}
    return None


def _with_requests(
    name: str, path: Sequence[str], spec: Document, requests: Mapping[str, Document]
) -> Candidate | None:
    """Lower the requests of containers; ``None`` if none is lower."""
    changes, containers = [], []
    for container in mappings_in(spec, "containers"):
        own = mapping_in(container, "resources", "requests")
        lower = {}
        for resource, value in requests.get(str(container.get("name")), {}).items():
            before, after = amount_of(own.get(resource), resource), amount_of(value, resource)
            if before is not None and after is not None and (1 - MAX_CUT) * before <= after < before:
                lower[resource] = value
                changes.append(Change(ChangeKind.REQUEST, subject=resource, before=before, after=after))
        resources = {**mapping_in(container, "resources"), "requests": {**own, **lower}}
        containers.append({**container, "resources": resources} if lower else container)
    if not changes:
        return None
    edit = ObjectEdit(name, nested([*path, "containers"], containers))
    return Candidate(stage=_REQUESTER, changes=changes, edits=[edit])


def _lower_priority(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """Classes with which the pods evict no others: those whose priority is at most that of the victims."""
    name = finding.change
    manifest = situation.manifest(name)
    displaced = situation.run.simulation.displaced
    spec = mapping_in(manifest, *template_path(str(manifest.get("kind")))) if manifest else {}
    if not spec.get("priorityClassName") or not displaced:
        return
    least = min(each.priority for each in displaced)
    namespace = name.partition(" ")[2].partition("/")[0]
    lower = sorted(((v, k) for k, v in _classes(situation, namespace).items() if v <= least), reverse=True)
    yield from _class_changes(name, situation, [*(k for _, k in lower[:1]), ""], RemedyStage.PRIORITY)


def _quota_rejections(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    name = finding.subject
    own = [each for each in situation.run.simulation.rejected if each.workload == name]
    for rejection in own:
        if (match := _MISSING.search(rejection.message)) is not None:
            yield from _specified(name, match[1], situation)
        else:
            yield from _larger_quota(rejection, situation)
    yield from _rollout_strategies(name, situation)
    yield from _fewer_replicas(finding, situation)


def _specified(name: str, missing: str, situation: Situation) -> Iterator[Candidate]:
    """Specify what a quota requires of every container, for example ``limits.memory for: main,proxy``."""
    manifest = situation.manifest(name)
    if not manifest:
        return
    path = template_path(str(manifest.get("kind")))
    spec = mapping_in(manifest, *path)
    wanted: dict[str, list[str]] = {}
    for part in missing.split(";"):
        what, _, listed = part.strip().partition(" for: ")
        for resource in what.split(","):
            wanted[resource.strip()] = listed.split(",") if listed else []
    changes: list[Change] = []
    patch: Document = {}
    for field in ("initContainers", "containers"):
        containers = []
        for index, container in enumerate(mappings_in(spec, field)):
            resources = mapping_in(container, "resources")
            lists = {key: dict(mapping_in(resources, key)) for key in ("requests", "limits")}
            for resource, names in wanted.items():
                key, _, short = resource.partition(".") if "." in resource else ("requests", "", resource)
                if (names and container.get("name") not in names) or key not in lists or short in lists[key]:
                    continue
                other = lists["requests" if key == "limits" else "limits"].get(short)
                lists[key][short] = other or _SMALL.get(short, "1")
                place = ".".join([*path, f"{field}[{index}]", "resources", key, short])
                changes.append(Change(_SET, subject=name, field=place, value=lists[key][short]))
            filled = {key: value for key, value in lists.items() if value}
            containers.append({**container, "resources": {**resources, **filled}} if filled else container)
        if containers and containers != list(mappings_in(spec, field)):
            patch[field] = containers
    if changes:
        yield Candidate(stage=_REQUESTER, changes=changes, edits=[ObjectEdit(name, nested(path, patch))])


def _larger_quota(rejection: QuotaRejection, situation: Situation) -> Iterator[Candidate]:
    """Raise the quota by the amount that is missing."""
    name = f"ResourceQuota {rejection.quota}"
    size = (situation.owners.size_of(rejection.workload) or 1) + rejection.pods
    # Old pods count until they have stopped, so more than the rejected pods may have to fit.
    for number in sorted({1, 2, rejection.pods, size}):
        candidate = larger_quota(name, rejection.message, number, situation.owners.manager_of(name))
        if candidate is not None:
            yield candidate


def _budgets(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """A budget that allows one disruption, one more pod, or one budget less."""
    name = finding.subject
    budgets = {f"{_PDB} {each.key}": each for each in situation.run.after.pod_disruption_budgets}
    budget = budgets.get(name)
    if budget is None:
        return
    selected = [
        each
        for each in situation.run.after.pods
        if each.metadata.namespace == budget.metadata.namespace
        and each.is_active
        and budget.spec.selector is not None
        and budget.spec.selector.matches(each.metadata.labels)
    ]
    workloads = dict.fromkeys(map(situation.owners.workload_of, selected))
    sizes = [situation.owners.size_of(each) or 1 for each in workloads]
    if sum(sizes) > 1 and budget.spec.max_unavailable != 1:
        patch = {"spec": {"maxUnavailable": 1, "minAvailable": None}}
        stage = _REQUESTER if name in situation.manifests else _LIMIT
        yield situation.set_in(name, "spec.maxUnavailable", 1, patch, stage)
    for workload in list(workloads)[:1] if len(workloads) == 1 else ():
        yield from _one_more(workload, sizes[0], situation)
    keys = {each.key for each in selected}
    for other, each in budgets.items():
        is_other = other != name and each.metadata.namespace == budget.metadata.namespace and each.spec.selector
        if is_other and any(
            pod.key in keys and each.spec.selector is not None and each.spec.selector.matches(pod.metadata.labels)
            for pod in selected
        ):
            # Of two budgets for a pod, the one that the change creates is not needed.
            created = {c.object for c in situation.plan.changes if c.kind is ChangedBy.CREATED}
            for unneeded in (name, other) if other in created else (name,) if name in created else (other, name):
                yield Candidate(
                    stage=RemedyStage.DELETION,
                    changes=[Change(ChangeKind.DELETE, subject=unneeded)],
                    edits=[ObjectEdit(unneeded, deletes=True)],
                    manager="" if unneeded in situation.manifests else situation.owners.manager_of(unneeded),
                )
            return
    if name in situation.manifests and sum(sizes) == 1:
        yield Candidate(
            stage=RemedyStage.DELETION,
            changes=[Change(ChangeKind.DELETE, subject=name)],
            edits=[ObjectEdit(name, deletes=True)],
        )


def _one_more(workload: str, size: int, situation: Situation) -> Iterator[Candidate]:
    """One more pod; an autoscaler's minimum, if there is one."""
    kind = workload.partition(" ")[0]
    autoscaler = situation.owners.autoscaler_of(workload)
    if autoscaler is not None:
        name, more = autoscaler.name, autoscaler.min + 1
        if more <= autoscaler.max:
            yield situation.set_in(name, "spec.minReplicas", more, {"spec": {"minReplicas": more}}, _CAPACITY)
    elif kind in SCALED_KINDS:
        yield Candidate(
            stage=_CAPACITY,
            changes=[Change(ChangeKind.SCALE, subject=workload, before=size, after=size + 1)],
            edits=[ObjectEdit(workload, {"spec": {"replicas": size + 1}})],
            manager="" if workload in situation.manifests else situation.owners.manager_of(workload),
        )


def _without_replicas(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """Leave the replicas to the autoscaler."""
    name = finding.subject
    edits: list[ObjectEdit] = []
    changes: list[Change] = []
    live = next((each for each in situation.input.documents if describe(each) == name), {})
    former = last_applied(live) if live else None
    if former is not None and "replicas" in mapping_in(former, "spec"):
        spec = {key: value for key, value in mapping_in(former, "spec").items() if key != "replicas"}
        text = msgspec.json.encode({**former, "spec": spec}).decode()
        edits.append(ObjectEdit(name, nested(["metadata", "annotations", LAST_APPLIED], text), in_cluster=True))
        kind, _, key = name.partition(" ")
        namespace, _, own = key.partition("/")
        command = f"kubectl apply edit-last-applied {kind.lower()}/{own} -n {namespace}"
        changes.append(Change(ChangeKind.ORDER, subject=f"remove spec.replicas with {command}"))
    if "replicas" in mapping_in(situation.manifest(name), "spec"):
        changes.append(Change(_SET, subject=name, field="spec.replicas"))
        edits.append(ObjectEdit(name, {"spec": {"replicas": None}}))
    if changes:
        yield Candidate(stage=_REQUESTER, changes=changes, edits=edits)


def _served_version(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """The stable version of an API that is removed, for kinds whose fields are validated: some have other fields."""
    name, manifest = finding.subject, situation.manifest(finding.subject)
    if not manifest or not (is_pod_owner(manifest) or manifest.get("kind") in (_PDB, AUTOSCALER)):
        return
    group = group_of(manifest) if group_of(manifest) != "extensions" else "apps"
    version = f"{group}/{'v2' if group == 'autoscaling' else 'v1'}"
    if version != manifest.get("apiVersion"):
        yield situation.set_in(name, "apiVersion", version, {"apiVersion": version})


def _without_node_name(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    manifest = situation.manifest(finding.subject)
    path = [*template_path(str(manifest.get("kind"))), "nodeName"]
    if mapping_in(manifest, *path[:-1]).get("nodeName"):
        yield situation.set_in(finding.subject, ".".join(path), None, nested(path, None))


def _smaller_maximum(finding: GateFinding, situation: Situation) -> Iterator[Candidate]:
    """A maximum that fits."""
    name, manifest = finding.change, situation.manifest(finding.change)
    if not is_autoscaler(manifest):
        return
    most = mapping_in(manifest, "spec").get("maxReplicas")
    match = re.search(r"(\d+) more pods pending", finding.detail)
    if isinstance(most, int) and match is not None and most - int(match[1]) > 0:
        fitting = most - int(match[1])
        yield situation.set_in(name, "spec.maxReplicas", fitting, {"spec": {"maxReplicas": fitting}})


Generate = Callable[[GateFinding, Situation], Iterator[Candidate]]
_WAITING: tuple[Generate, ...] = (
    _of_own_strategy,
    _pod_hash_in_spread,
    _stuck_pod,
    _repaired_nodes,
    _template_changes,
    _more_nodes,
    _fewer_replicas,
    _higher_priority,
)
_EVICTING: tuple[Generate, ...] = (
    _smaller_requests,
    _of_causing_strategy,
    _more_nodes_for_evicted,
    _lower_priority,
)
_GENERATORS: Mapping[RuleId, tuple[Generate, ...]] = {
    RuleId.REQUIRE_SCHEDULABLE: _WAITING,
    RuleId.ROLLOUT_STUCK: (_whole_rollout, *_WAITING),
    RuleId.VOLUME_ATTACHED_ELSEWHERE: (_of_own_strategy, _fewer_replicas),
    **dict.fromkeys(
        (
            RuleId.MAX_PDB_VIOLATIONS,
            RuleId.MAX_VICTIMS,
            RuleId.MAX_VICTIMS_PER_WORKLOAD,
            RuleId.FORBID_VICTIMS,
            RuleId.MAX_CASCADE_DEPTH,
            RuleId.MAX_PENDING,
            RuleId.LOST_PODS,
            RuleId.FORBID_LOOPS,
        ),
        _EVICTING,
    ),
    RuleId.MIN_READY: (_gentle_strategies, *_EVICTING),
    RuleId.MAX_BROKEN_DEPENDENCIES: (_gentle_strategies, *_EVICTING),
    RuleId.BRIEF_INTERRUPTION: (_gentle_strategies, *_EVICTING),
    RuleId.QUOTA_REJECTIONS: (_quota_rejections,),
    RuleId.PDB_BLOCKS_DRAIN: (_budgets,),
    RuleId.PDB_BLOCKS_AT_HPA_MINIMUM: (_budgets,),
    RuleId.AUTOSCALED_REPLICAS: (_without_replicas,),
    RuleId.AUTOSCALED_MAXIMUM: (_smaller_maximum, _more_nodes_for_evicted),
    RuleId.BYPASSES_SCHEDULER: (_without_node_name,),
    RuleId.REMOVED_API: (_served_version,),
}
