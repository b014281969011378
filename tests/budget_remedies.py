"""Random clusters with PodDisruptionBudgets, and whether a remedy of their audit keeps its promise when it is applied.

This does not share the code that proves remedies: edits are applied as ``kubectl`` would, controllers are imitated, and
the audit is asked again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from kpreempt.admission import fill_budget_statuses
from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.budgets.audit import audit_budgets
from kpreempt.analysis.nodes.changes import with_changed_nodes
from kpreempt.analysis.remedies.edits import edited, edited_documents, with_new_templates
from kpreempt.controllers.actions import is_ready
from kpreempt.eviction.records import ACCEPTED, StoredBudget
from kpreempt.eviction.subresource import answer_eviction
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import ObjectMeta, OwnerReference, controller_of, replace_in
from kpreempt.model.pod import Pod, PodCondition
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PriorityClass
from kpreempt.model.workloads import Deployment, ReplicaSet, StatefulSet, WorkloadSpec
from kpreempt.verdict.budgets import BudgetAudit, Finding, FindingId
from kpreempt.verdict.remedies import Change, ChangeKind, ObjectEdit, Remedy, RemedyStage
from tests.factories import NOW, make_node, make_pod

Document = dict[str, Any]
NAMESPACE = "shop"
NEVER = (FindingId.NEVER_ALLOWS, FindingId.MIN_AVAILABLE_ABOVE_PODS)
BLOCKING = (
    *NEVER,
    FindingId.OVERLAP,
    FindingId.NO_SCALE,
    FindingId.INVALID_AMOUNT,
    FindingId.UNMANAGED_PODS,
    FindingId.ALLOWS_NONE_NOW,
)


class Scenario(msgspec.Struct, frozen=True):
    """A cluster, and plain objects such as HorizontalPodAutoscalers."""

    cluster: ClusterSnapshot
    documents: list[Document] = []

    def audit(self, has_time: Callable[[], bool] = lambda: True) -> BudgetAudit:
        """The audit of all PDBs, whose statuses are up to date."""
        cluster = synced(self.cluster)
        context = AnalysisContext(cluster, scheduler_for(), NOW, at=NOW)
        return audit_budgets(context, documents=self.documents, has_time=has_time)


def synced(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """The cluster after the disruption controller has computed every status."""
    budgets = [msgspec.structs.replace(each, status=None) for each in cluster.pod_disruption_budgets]
    return fill_budget_statuses(msgspec.structs.replace(cluster, pod_disruption_budgets=budgets))[0]


def random_scenario(seed: int) -> Scenario:
    """A namespace with a few workloads and PDBs; pods may be unready, and a pending pod may preempt."""
    draw = random.Random(seed)
    parts: dict[str, list[Any]] = {"pods": [], "deployments": [], "replica_sets": [], "stateful_sets": []}
    documents: list[Document] = []
    names = draw.sample(["web", "api", "db", "cache"], draw.randint(1, 3))
    for name in names:
        kind = draw.choice(["Deployment"] * 4 + ["StatefulSet", "StatefulSet", "DaemonSet", "Job", "Cluster", ""])
        documents += _add_workload(draw, parts, kind, name)
    nodes = [make_node(f"n{number}", cpu="4", unschedulable=draw.random() < 0.2) for number in range(1, 4)]
    if draw.random() < 0.4:
        parts["pods"].append(make_pod("import", cpu=draw.choice(["1", "2", "4"]), priority=1000))
    cluster = ClusterSnapshot(
        nodes=nodes,
        pod_disruption_budgets=[_random_budget(draw, f"pdb{number}", names) for number in range(draw.randint(1, 2))],
        priority_classes=[PriorityClass(ObjectMeta(name="high"), 2000)] if draw.random() < 0.5 else [],
        **parts,
    )
    return Scenario(cluster, documents)


def _add_workload(draw: random.Random, parts: dict[str, list[Any]], kind: str, name: str) -> list[Document]:
    replicas = draw.randint(1, 4)
    labels = {"app": name, "tier": draw.choice(["front", "back"])}
    selector = LabelSelector(match_labels={"app": name})
    owner = OwnerReference(kind, name, f"uid-{name}", "apps/v1", controller=True) if kind else None
    meta = ObjectMeta(name=name, namespace=NAMESPACE, uid=f"uid-{name}")
    if draw.random() < 0.15:
        custom = OwnerReference("Database", f"{name}-cr", "uid-cr", "example.com/v1", controller=True)
        meta = msgspec.structs.replace(meta, owner_references=[custom])
    spec = WorkloadSpec(selector, replicas)
    if kind == "Deployment":
        parts["deployments"].append(Deployment(meta, spec))
        assert owner is not None
        own = ObjectMeta(name=f"{name}-1", namespace=NAMESPACE, uid=f"uid-{name}-1", owner_references=[owner])
        parts["replica_sets"].append(ReplicaSet(own, spec))
        owner = OwnerReference("ReplicaSet", f"{name}-1", f"uid-{name}-1", "apps/v1", controller=True)
    elif kind == "StatefulSet":
        parts["stateful_sets"].append(StatefulSet(meta, spec))
    elif kind == "Job":
        owner = OwnerReference("Job", name, f"uid-{name}", "batch/v1", controller=True)
    elif kind == "Cluster":
        owner = OwnerReference("Cluster", name, f"uid-{name}", "example.com/v1", controller=True)
    for index in range(max(replicas - (draw.random() < 0.1), 1)):
        node = "" if draw.random() < 0.05 else f"n{draw.randint(1, 3)}"
        pod = make_pod(
            f"{name}-{index}",
            node=node,
            cpu="1",
            labels=labels,
            priority=draw.choice([0, 10]),
            started=NOW - timedelta(1),
        )
        ready = "True" if node and draw.random() < 0.8 else "False"
        pod = replace_in(pod, "status", conditions=[PodCondition("Ready", ready)])
        leaving = NOW if draw.random() < 0.05 else None
        owners = [owner] if owner is not None else []
        parts["pods"].append(replace_in(pod, "metadata", owner_references=owners, deletion_timestamp=leaving))
    if kind in ("Deployment", "StatefulSet") and draw.random() < 0.3:
        minimum = draw.randint(1, replicas)
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": name}
        return [
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "spec": {"scaleTargetRef": reference, "minReplicas": minimum, "maxReplicas": replicas + 2},
            }
        ]
    return []


def _random_budget(draw: random.Random, name: str, names: Sequence[str]) -> PodDisruptionBudget:
    own = draw.choice(names)
    selector = draw.choice(
        [
            *[LabelSelector(match_labels={"app": own})] * 6,
            LabelSelector(match_labels={"tier": draw.choice(["front", "back"])}),
            LabelSelector(match_labels={"app": own, "tier": draw.choice(["front", "back"])}),
            LabelSelector(match_labels={"app": f"{own}x"}),
            LabelSelector(),
            None,
        ]
    )
    amounts: list[dict[str, Any]] = [
        {"min_available": draw.randint(0, 4)},
        {"min_available": f"{draw.choice([50, 60, 90, 100])}%"},
        {"max_unavailable": draw.randint(0, 2)},
        {"max_unavailable": "0%"},
        {"min_available": "1"},
    ]
    amount = draw.choice([*amounts, *amounts[:3]])
    return PodDisruptionBudget(
        ObjectMeta(name=draw.choice([name, f"{own}-{name}"]), namespace=NAMESPACE),
        PodDisruptionBudgetSpec(selector=selector, **amount),
    )


# What a remedy does when it is applied.


def applied(scenario: Scenario, remedy: Remedy, finding: Finding) -> Scenario:
    """The scenario after a user has applied the remedy, and controllers have reacted."""
    cluster = edited(scenario.cluster, remedy.edits)
    cluster = with_new_templates(cluster, remedy.edits)
    documents = edited_documents(scenario.documents, [each for each in remedy.edits if not each.creates])
    for change in remedy.changes:
        if change.kind is ChangeKind.UNCORDON:
            nodes = [
                replace_in(each, "spec", unschedulable=False, taints=[]) if each.name == change.subject else each
                for each in cluster.nodes
            ]
            cluster = msgspec.structs.replace(cluster, nodes=nodes)
        elif change.kind is ChangeKind.ADD_NODE:
            cluster, _ = with_changed_nodes(
                cluster, added=[change.subject], read_file=lambda _: ClusterSnapshot(), now=NOW
            )
        elif change.kind in (ChangeKind.REPAIR, ChangeKind.PLACE):
            pods = [ready(each) if each.metadata.name in finding.pods else each for each in cluster.pods]
            cluster = msgspec.structs.replace(cluster, pods=pods)
        elif change.kind is ChangeKind.PRIORITY:
            cluster = _with_priority(cluster, change)
    for document in documents:
        least, reference = document["spec"]["minReplicas"], document["spec"]["scaleTargetRef"]
        cluster = _at_least(cluster, reference["kind"], reference["name"], least)
    return Scenario(_with_all_pods(scenario.cluster, cluster), documents)


def _is_of(pod: Pod, workload: str) -> bool:
    """Whether the pod belongs to the Deployment, by its only ReplicaSet, or to the StatefulSet."""
    owner = controller_of(pod.metadata)
    return owner is not None and owner.name in (workload, f"{workload}-1")


def ready(pod: Pod) -> Pod:
    """The pod, running and ready."""
    return replace_in(pod, "status", phase="Running", conditions=[PodCondition("Ready", "True")])


def _with_priority(cluster: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    name = change.subject.partition("/")[2]
    pods = [replace_in(each, "spec", priority=change.after) if _is_of(each, name) else each for each in cluster.pods]
    return msgspec.structs.replace(cluster, pods=pods)


def _at_least(cluster: ClusterSnapshot, kind: str, name: str, size: int) -> ClusterSnapshot:
    field = {"Deployment": "deployments", "StatefulSet": "stateful_sets"}[kind]
    changed = [
        replace_in(each, "spec", replicas=max(each.spec.replicas or 0, size)) if each.metadata.name == name else each
        for each in getattr(cluster, field)
    ]
    return msgspec.structs.replace(cluster, **{field: changed})


def _with_all_pods(before: ClusterSnapshot, after: ClusterSnapshot) -> ClusterSnapshot:
    """The cluster with the new pods of enlarged workloads, which are as ready as the existing ones."""
    sizes = {each.metadata.name: each.spec.replicas or 0 for each in (*before.deployments, *before.stateful_sets)}
    pods = list(after.pods)
    for each in (*after.deployments, *after.stateful_sets):
        name = each.metadata.name
        own = [pod for pod in after.pods if _is_of(pod, name)]
        staying = [pod for pod in own if pod.metadata.deletion_timestamp is None]
        grown = (each.spec.replicas or 0) > sizes[name]
        for index in range(len(staying), (each.spec.replicas or 0) if grown and own else 0):
            new = replace_in(own[0], "metadata", name=f"{name}-{100 + index}", deletion_timestamp=None)
            is_working = all(map(is_ready, staying))
            pods.append(ready(new) if is_working else replace_in(new, "status", conditions=[]))
    return msgspec.structs.replace(after, pods=pods)


# Whether it keeps its promise.


def broken_promises(scenario: Scenario, before: BudgetAudit, finding: Finding, remedy: Remedy) -> Iterator[str]:
    """What is wrong with a remedy that was applied, as text; nothing if it keeps its promise."""
    changed = applied(scenario, remedy, finding)
    after = changed.audit()
    if remedy.solves and _is_there(after, finding):
        yield "the finding is still there"
    old = {(each.id, each.subject): each.severity.rank for each in before.findings}
    for each in after.findings:
        is_serious = each.severity.rank <= finding.severity.rank
        if is_serious and each.severity.rank < old.get((each.id, each.subject), 99):
            yield f"{each.id} of {each.subject} is new"
    allowed = {item.budget: item.disruptions_allowed for item in after.items}
    for item in before.items:
        if item.budget in allowed and allowed[item.budget] < item.disruptions_allowed:
            yield f"{item.budget} allows less"
    if finding.id in BLOCKING and not _lets_pods_go(changed.cluster, finding, remedy):
        yield "no pod can be evicted"
    if lost := _protected(scenario.cluster) - _protected(changed.cluster):
        yield f"{sorted(lost)} lose their last PDB"
    yield from _forbidden(scenario, finding, remedy)


def _is_there(audit: BudgetAudit, finding: Finding) -> bool:
    kinds = NEVER if finding.id in NEVER else (finding.id,)
    return any(each.id in kinds and each.subject == finding.subject for each in audit.findings)


def _lets_pods_go(cluster: ClusterSnapshot, finding: Finding, remedy: Remedy) -> bool:
    if not remedy.solves:
        return any(_is_accepted(synced(cluster), pod) for pod in cluster.pods if pod.metadata.name in finding.pods)
    staying = [
        ready(replace_in(each, "metadata", deletion_timestamp=None))
        for each in cluster.pods
        if each.metadata.deletion_timestamp is None or _owner(each) in ("DaemonSet", "Job")
    ]
    for each in (*cluster.deployments, *cluster.stateful_sets):
        own = [pod for pod in cluster.pods if _is_of(pod, each.metadata.name)]
        missing = (each.spec.replicas or 0) - sum(pod.metadata.deletion_timestamp is None for pod in own)
        more = range(missing if own else 0)
        staying += [
            ready(replace_in(own[0], "metadata", name=f"new-{index}", deletion_timestamp=None)) for index in more
        ]
    whole = synced(msgspec.structs.replace(cluster, pods=staying))
    own_budgets = [
        each for each in whole.pod_disruption_budgets if f"PodDisruptionBudget {each.metadata.name}" == finding.subject
    ]
    if finding.id is FindingId.OVERLAP:
        return all(_is_accepted(whole, pod) for pod in whole.pods if pod.metadata.name in finding.pods)
    pods = [pod for pod in whole.pods if any(_selects(each, pod) for each in own_budgets)]
    return not pods or any(_is_accepted(whole, pod) for pod in pods)


def _owner(pod: Pod) -> str:
    owner = controller_of(pod.metadata)
    return owner.kind if owner is not None else ""


def _is_accepted(cluster: ClusterSnapshot, pod: Pod) -> bool:
    budgets = map(StoredBudget, cluster.pod_disruption_budgets)
    return answer_eviction(pod.metadata.name, pod, budgets, NOW) == ACCEPTED


def _selects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    selector = budget.spec.selector
    return selector is not None and selector.is_valid() and selector.matches(pod.metadata.labels)


def _protected(cluster: ClusterSnapshot) -> set[str]:
    budgets = cluster.pod_disruption_budgets
    return {pod.key for pod in cluster.pods if any(_selects(each, pod) for each in budgets)}


def _forbidden(scenario: Scenario, finding: Finding, remedy: Remedy) -> Iterator[str]:
    """What is never advised."""
    scaled = {each["spec"]["scaleTargetRef"]["name"] for each in scenario.documents}
    owned = {
        each.metadata.name
        for each in (*scenario.cluster.deployments, *scenario.cluster.stateful_sets)
        if controller_of(each.metadata) is not None
    }
    for change in remedy.changes:
        name = change.subject.partition("/")[2]
        if change.kind is ChangeKind.SCALE and name in scaled:
            yield "replicas that an autoscaler sets"
        if change.kind in (ChangeKind.SCALE, ChangeKind.PRIORITY) and name in owned and not remedy.manager:
            yield "a field that an operator owns"
        if change.kind is ChangeKind.CREATE and finding.number == 1:
            yield "a PDB on a singleton"
        if change.kind is ChangeKind.DELETE and not change.subject.startswith("PodDisruptionBudget "):
            yield "a deletion"


def single_edits(scenario: Scenario, finding: Finding) -> Iterator[Remedy]:
    """Every edit of the tried kinds: amounts of the PDB, its deletion, one more replica, an autoscaler's minimum."""

    def remedy(kind: ChangeKind, subject: str, patch: dict[str, Any], **more: Any) -> Remedy:
        edit = ObjectEdit(subject, patch, **more)
        return Remedy(stage=RemedyStage.REQUESTER, changes=[Change(kind, subject)], edits=[edit])

    for budget in scenario.cluster.pod_disruption_budgets:
        subject = f"PodDisruptionBudget {budget.key}"
        if f"PodDisruptionBudget {budget.metadata.name}" == finding.subject:
            for field, other in (("minAvailable", "maxUnavailable"), ("maxUnavailable", "minAvailable")):
                for value in range(4):
                    yield remedy(ChangeKind.SET, subject, {"spec": {field: value, other: None}})
        if finding.id in (FindingId.OVERLAP, FindingId.SELECTS_NOTHING):
            yield remedy(ChangeKind.DELETE, subject, {}, deletes=True)
    scaled = {each["spec"]["scaleTargetRef"]["name"]: each for each in scenario.documents}
    for kind, workloads in (
        ("Deployment", scenario.cluster.deployments),
        ("StatefulSet", scenario.cluster.stateful_sets),
    ):
        for each in workloads:
            size = (each.spec.replicas or 0) + 1
            key = f"{NAMESPACE}/{each.metadata.name}"
            if controller_of(each.metadata) is not None:
                continue
            if each.metadata.name not in scaled:
                yield remedy(ChangeKind.SCALE, f"{kind} {key}", {"spec": {"replicas": size}})
            else:
                for value in range(1, size):
                    yield remedy(ChangeKind.SET, f"HorizontalPodAutoscaler {key}", {"spec": {"minReplicas": value}})


def all_remedies(audit: BudgetAudit) -> Iterable[tuple[Finding, Remedy]]:
    """Each printed remedy with its finding."""
    return [(finding, remedy) for finding in audit.findings for remedy in finding.remedies]
