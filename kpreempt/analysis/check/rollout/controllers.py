"""Starts the controllers that act in the simulation of a change, from its plan.

Quotas for objects other than pods, and for storage, are compared with what the change creates; for claims this follows
``k8s.io/kubernetes`` v1.36.3 ``pkg/quota/v1/evaluator/core/persistent_volume_claims.go``. Objects beyond a quota are
simulated anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.admission.daemon_sets import daemon_nodes
from kpreempt.admission.pod_resources import format_nano
from kpreempt.analysis.algorithms import api_server_rules, controller_rules
from kpreempt.analysis.check.rollout.apply import same_template
from kpreempt.analysis.check.rollout.cluster_documents import laid_over
from kpreempt.analysis.check.rollout.controller_inputs import (
    REJECTED_PODS,
    Prototypes,
    amount,
    deployment_state,
    endings_of,
    job_state,
    number,
    owned_by_replica_set,
    part,
    text,
    unmodeled_of_job,
    with_injected,
)
from kpreempt.analysis.check.rollout.kept_documents import alike
from kpreempt.analysis.check.rollout.kinds import CLUSTER_KINDS, POD_OWNERS, plural_of
from kpreempt.analysis.check.rollout.records import Plan, PlannedWorkload
from kpreempt.analysis.document_reader import NEW, Document, DocumentReader
from kpreempt.analysis.pod_inputs import Decode
from kpreempt.analysis.simulation.claims import Bound, bind_claims
from kpreempt.analysis.simulation.client import Controller, RunTime, Stage
from kpreempt.analysis.simulation.cluster import OwnerKey, Workloads
from kpreempt.analysis.simulation.controllers import (
    DaemonSetController,
    DeletionController,
    DeploymentController,
    JobController,
    ReplicaSetController,
    SimulatedReplicaSet,
    StatefulSetController,
)
from kpreempt.analysis.workload_pods import pods_of
from kpreempt.controllers.actions import REVISION_LABEL
from kpreempt.controllers.daemon_set import DaemonSetState
from kpreempt.controllers.stateful_set import StatefulSetState, ordinal_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.model.quantity import NANO_PER_UNIT
from kpreempt.model.storage import PersistentVolumeClaim, class_of_claim, requested_storage
from kpreempt.model.workloads import ReplicaSet
from kpreempt.schedulers.interface import Settings
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.check import Change, ChangeKind

_CLAIM_PREFIX = "PersistentVolumeClaim "
_DESIRED = "deployment.kubernetes.io/desired-replicas"
_MAX = "deployment.kubernetes.io/max-replicas"
_REVISION = "deployment.kubernetes.io/revision"
# Objects that controllers create in addition to pods.
_CREATED_BY_CONTROLLERS = {"Deployment": "count/replicasets.apps", "CronJob": "count/jobs.batch"}
_CLAIM = "PersistentVolumeClaim"
_STORAGE, _CLAIMS = "requests.storage", "persistentvolumeclaims"
_OF_CLASS = ".storageclass.storage.k8s.io/"


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """The controllers of a simulation and the plain pods to create, by stages, and the cluster at the start.

    ``run_times`` are for pods that end, ``claims`` the result of binding the change's claims. ``rejected`` maps
    workloads and plain pods that are not simulated to the reason why the API server rejects their pods, ``exceeded``
    maps quotas (``shop/compute``) to the other objects that exceed them, which are simulated anyway.
    """

    cluster: ClusterSnapshot
    stages: list[Stage]
    run_times: dict[OwnerKey, RunTime]
    assumptions: list[Assumption]
    claims: Bound
    rejected: dict[str, str]
    exceeded: dict[str, str]


def start_controllers(plan: Plan, decode: Decode, now: datetime, settings: Settings) -> Started:
    """Create the controllers of all workloads of a plan, with their initial state.

    ``settings`` are those of the scheduler, which include the cluster's version. Raises ``InputError`` and
    ``NotFoundError`` from decoding and admission.
    """
    starter = _Starter(plan.cluster, decode, now, settings, plan.accounts)
    starter.prototypes.rejected.update({name: f"{REJECTED_PODS}{why}" for name, why in plan.rejected_pods.items()})
    starter.lay_over(plan.workloads)
    order = plan.order
    controllers: list[list[Controller]] = [[] for _ in order.awaited]
    arriving: list[list[Pod]] = [[] for _ in order.awaited]
    for workload in plan.workloads:
        stage = order.of.get(workload.change.object, order.last)
        controller = starter.controller_of_workload(workload)
        # No new pod of it is ever created.
        if workload.change.object not in starter.prototypes.rejected:
            controllers[stage].append(controller)
    for template in plan.pods:
        stage = order.of.get(f"Pod {template.namespace}/{template.name}", order.last)
        pod = starter.prototypes.of_template(template)
        if (template.origin or f"Pod {pod.key}") not in starter.prototypes.rejected:
            arriving[stage].append(pod)
    run_times, by_run_times = endings_of(plan)
    created_claims = (
        each.object
        for each in plan.changes
        if each.kind is ChangeKind.CREATED and each.object.startswith(_CLAIM_PREFIX)
    )
    new = [*(each.removeprefix(_CLAIM_PREFIX) for each in created_claims), *starter.prototypes.new_claims]
    claims = bind_claims(starter.prototypes.cluster, new, settings)
    exceeded, by_quotas = exceeded_quotas(plan.changes, claims.cluster, new)
    return Started(
        cluster=claims.cluster,
        exceeded=exceeded,
        claims=claims,
        rejected=starter.prototypes.rejected,
        stages=[
            Stage(controllers=own, arriving=pods, is_awaited=is_awaited)
            for own, pods, is_awaited in zip(controllers, arriving, order.awaited, strict=True)
        ],
        run_times=run_times,
        assumptions=[*starter.prototypes.assumptions, *by_run_times, *claims.assumptions, *by_quotas],
    )


class _Starter:
    def __init__(
        self, cluster: ClusterSnapshot, decode: Decode, now: datetime, settings: Settings, accounts: Sequence[Document]
    ) -> None:
        self.prototypes = Prototypes(cluster, decode, now, settings, accounts)
        self._rules, self._api_server = controller_rules(settings), api_server_rules(settings)
        self._decode = decode
        self._workloads = Workloads(cluster)
        self._owned: dict[OwnerKey, list[Pod]] = {}
        self._replica_sets: dict[tuple[str, str], list[str]] = {}
        for pod in cluster.pods:
            owner = controller_of(pod.metadata)
            if owner is None:
                continue
            key = (pod.metadata.namespace, owner.kind, owner.name)
            if key not in self._owned and owner.kind == "ReplicaSet":
                names = self._replica_sets.setdefault((pod.metadata.namespace, self._workloads.of(pod)), [])
                names.append(owner.name)
            self._owned.setdefault(key, []).append(pod)
        self._records = {(each.metadata.namespace, each.metadata.name): each for each in cluster.replica_sets}

    def lay_over(self, workloads: Iterable[PlannedWorkload]) -> None:
        """Replace the cluster's records of the workloads with those of the change."""
        changed: dict[str, dict[tuple[str, str], Any]] = {}
        for workload in workloads:
            record = None
            if workload.after is not None:
                source, line = workload.change.source, workload.change.line
                record = self._decode(workload.kind, workload.after, source=source, line=line)
            changed.setdefault(CLUSTER_KINDS[workload.kind].field, {})[workload.namespace, workload.name] = record
        self.prototypes.cluster = laid_over(self.prototypes.cluster, changed)

    def controller_of_workload(self, workload: PlannedWorkload) -> Controller:
        """The controller of a workload."""
        if workload.after is None:
            owners = [(workload.namespace, workload.kind, workload.name)]
            if workload.kind == "Deployment":
                owners = [(workload.namespace, "ReplicaSet", name) for name in self._names_of_sets(workload)]
            return DeletionController(f"{workload.kind} {workload.key}", owners)
        controllers: dict[str, Callable[[PlannedWorkload, Document], Controller]] = {
            "Deployment": self._deployment,
            "StatefulSet": self._stateful_set,
            "DaemonSet": self._daemon_set,
            "Job": self._job,
        }
        return controllers.get(workload.kind, self._replica_set)(workload, workload.after)

    def _prototype(self, workload: PlannedWorkload, document: Document) -> Pod:
        return self.prototypes.of_document(document, workload.change.source, workload.change.line)

    def _new_prototype(self, workload: PlannedWorkload, document: Document, pods: Iterable[Pod]) -> Pod:
        """The pod of the current template, with the containers that the cluster injects into the workload's pods."""
        pod, names = with_injected(self._prototype(workload, document), workload.before, pods)
        if names:
            message = f"its pods have containers that its template lacks ({', '.join(names)}); new pods get them, too"
            assumption = Assumption(
                f"{workload.kind} {workload.key}",
                "spec.template.spec.containers",
                message,
                AssumptionKind.INFORMATIONAL,
            )
            self.prototypes.assumptions[assumption] = None
        return pod

    def _owner(self, workload: PlannedWorkload) -> OwnerKey:
        return (workload.namespace, workload.kind, workload.name)

    def _replica_set(self, workload: PlannedWorkload, document: Document) -> Controller:
        pods = self._owned.get(self._owner(workload), [])
        maker = self.prototypes.maker(self._new_prototype(workload, document, pods), workload.name)
        return ReplicaSetController(self._owner(workload), number(document, "spec", "replicas", default=1), maker)

    # Deployments.

    def _deployment(self, workload: PlannedWorkload, document: Document) -> Controller:
        (template,) = pods_of(document, source=workload.change.source, line=workload.change.line)
        names = self._names_of_sets(workload)
        pods = [pod for name in names for pod in self._owned.get((workload.namespace, "ReplicaSet", name), [])]
        prototype = self._new_prototype(workload, document, pods)
        documents = {text(each, "metadata", "name"): each for each in workload.replica_sets}
        ready_for = number(document, "spec", "minReadySeconds")
        present = self._present_set(workload, document, documents)
        new, old = None, []
        for name in names:
            simulated = self._simulated_set(workload, name, documents.get(name), prototype, ready_for, name == present)
            if name == present:
                new = simulated
            else:
                old.append(simulated)
        if new is None:
            (owner,) = template.owners
            name = _free_name(owner["metadata"]["name"], {each.name for each in old})
            maker = self.prototypes.maker(owned_by_replica_set(prototype, name, "", NEW), name)
            new = SimulatedReplicaSet(name=name, maker=maker, min_ready_seconds=ready_for, exists=False)
            owner = {**owner, "metadata": {**owner["metadata"], "name": name}}
            record: Any = self._decode("ReplicaSet", owner, source=template.source, line=template.line)
            cluster = self.prototypes.cluster
            self.prototypes.cluster = msgspec.structs.replace(cluster, replica_sets=[*cluster.replica_sets, record])
        return DeploymentController(workload.namespace, workload.name, deployment_state(document), new, old)

    def _names_of_sets(self, workload: PlannedWorkload) -> list[str]:
        """The ReplicaSets of a Deployment, including those that are only known from their pods."""
        listed = [text(each, "metadata", "name") for each in workload.replica_sets]
        from_pods = self._replica_sets.get((workload.namespace, f"Deployment {workload.key}"), [])
        return list(dict.fromkeys([*listed, *from_pods]))

    def _present_set(self, workload: PlannedWorkload, document: Document, documents: dict[str, Document]) -> str:
        """The ReplicaSet that already has the current template; the oldest if there are several."""
        ordered = sorted(documents.items(), key=lambda each: (text(each[1], "metadata", "creationTimestamp"), each[0]))
        for name, each in ordered:
            template = part(each, "spec", "template")
            if isinstance(template, dict) and same_template(alike(document, each)["spec"]["template"], template):
                return name
        if not workload.is_same_template:
            return ""
        # If a snapshot has no templates, the ReplicaSet of the last revision is the current one.
        known = self._names_of_sets(workload)
        return max(
            known,
            key=lambda name: (_annotated(documents.get(name), _REVISION, 18) or 0, self._size(workload, name)),
            default="",
        )

    def _size(self, workload: PlannedWorkload, name: str) -> int:
        record: ReplicaSet | None = self._records.get((workload.namespace, name))
        if record is not None and record.spec.replicas is not None:
            return record.spec.replicas
        return sum(pod.is_active for pod in self._owned.get((workload.namespace, "ReplicaSet", name), []))

    def _simulated_set(
        self,
        workload: PlannedWorkload,
        name: str,
        document: Document | None,
        prototype: Pod,
        ready_for: int,
        is_present: bool,
    ) -> SimulatedReplicaSet:
        record = self._records.get((workload.namespace, name))
        pods = self._owned.get((workload.namespace, "ReplicaSet", name), [])
        has_template = document is not None and part(document, "spec", "template") is not None
        if pods:
            # An existing pod was admitted by the cluster itself, including its webhooks' changes.
            pod = self.prototypes.of_pod(pods[0])
        elif has_template and (is_present or self._size(workload, name) > 0):
            pod = self._prototype(workload, {"apiVersion": "apps/v1", "kind": "ReplicaSet", **(document or {})})
        else:
            # An old ReplicaSet that creates no more pods; its template may refer to objects that no longer exist.
            uid = record.metadata.uid if record is not None else ""
            # The hash in a ReplicaSet's name, which its pods have as a label.
            template_hash = name.removeprefix(f"{workload.name}-")
            pod = owned_by_replica_set(prototype, name, uid, template_hash)
        return SimulatedReplicaSet(
            name=name,
            maker=self.prototypes.maker(pod, name),
            replicas=self._size(workload, name),
            created=record.metadata.creation_timestamp if record is not None else None,
            desired_replicas=_annotated(document, _DESIRED),
            max_replicas=_annotated(document, _MAX),
            min_ready_seconds=ready_for,
        )

    # Workloads whose pods have identities.

    def _stateful_set(self, workload: PlannedWorkload, document: Document) -> Controller:
        spec, name = document["spec"], workload.name
        pods = self._owned.get(self._owner(workload), [])
        revisions = [pod.metadata.labels.get(REVISION_LABEL, "") for pod in pods]
        counts = Counter(revisions)
        most_common = max(sorted(counts), key=counts.__getitem__, default="")
        current = text(workload.before, "status", "currentRevision") or most_common
        update = text(workload.before, "status", "updateRevision") or current
        if not workload.is_same_template or not update:
            update = _free_name(f"{name}-{NEW}", set(revisions))
        rolling = part(spec, "updateStrategy", "rollingUpdate")
        start, replicas = number(spec, "ordinals", "start"), number(spec, "replicas", default=1)
        makers = {update: self.prototypes.maker(self._new_prototype(workload, document, pods), name)}
        for pod in pods:
            revision = pod.metadata.labels.get(REVISION_LABEL, "")
            if revision not in makers:
                makers[revision] = self.prototypes.maker(self.prototypes.of_pod(pod), name)
        reader = DocumentReader(f"StatefulSet {workload.key}", workload.change.source, workload.change.line)
        self.prototypes.add_claims(document, name, workload.namespace, range(start, start + replicas), reader)
        state = StatefulSetState(
            name=name,
            replicas=replicas,
            start=start,
            parallel=text(spec, "podManagementPolicy") == "Parallel",
            strategy="OnDelete" if text(spec, "updateStrategy", "type") == "OnDelete" else "RollingUpdate",
            partition=number(rolling, "partition") if isinstance(rolling, dict) else None,
            max_unavailable=amount(rolling, "maxUnavailable", 1),
            min_ready_seconds=number(spec, "minReadySeconds"),
            current_revision=current,
            update_revision=update,
            current_replicas=sum(
                revision == current and ordinal_of(pod.metadata.name) >= 0
                for revision, pod in zip(revisions, pods, strict=True)
            ),
            rules=self._rules,
        )
        return StatefulSetController(self._owner(workload), state, makers)

    def _daemon_set(self, workload: PlannedWorkload, document: Document) -> Controller:
        spec = document["spec"]
        pods = self._owned.get(self._owner(workload), [])
        newest = max(pods, key=lambda pod: str(pod.metadata.creation_timestamp or ""), default=None)
        revision = newest.metadata.labels.get(REVISION_LABEL, "") if newest is not None else ""
        if not (workload.is_same_template and bool(pods)):
            revision = _free_name(NEW, {pod.metadata.labels.get(REVISION_LABEL, "") for pod in pods})
        rolling = part(spec, "updateStrategy", "rollingUpdate")
        # If the pods do not show their template's revision, and the template is unchanged, no update is due.
        waits = text(spec, "updateStrategy", "type") == "OnDelete" or not revision
        prototype = self._new_prototype(workload, document, pods)
        state = DaemonSetState(
            revision=revision,
            strategy="OnDelete" if waits else "RollingUpdate",
            max_surge=amount(rolling, "maxSurge", 0),
            max_unavailable=amount(rolling, "maxUnavailable", 1),
            min_ready_seconds=number(spec, "minReadySeconds"),
            rules=self._rules,
        )
        nodes = daemon_nodes(prototype, self.prototypes.cluster.nodes, self._api_server)
        return DaemonSetController(self._owner(workload), state, self.prototypes.maker(prototype, workload.name), nodes)

    def _job(self, workload: PlannedWorkload, document: Document) -> Controller:
        maker = self.prototypes.maker(self._prototype(workload, document), workload.name)
        # Templates of Jobs are immutable: another template means another Job with the same name.
        is_another = workload.before is not None and not workload.is_same_template
        owned = self._owned.get(self._owner(workload), []) if is_another else []
        state = job_state(document, None if is_another else workload.before, self._rules)
        other_pods = frozenset(pod.key for pod in owned)
        unmodeled = unmodeled_of_job(workload.change.object, document, self._rules)
        self.prototypes.assumptions.update(dict.fromkeys(unmodeled))
        return JobController(self._owner(workload), state, maker, workload.change.object, other_pods)


def _annotated(document: Document | None, key: str, most_digits: int = 10) -> int | None:
    value = part(document, "metadata", "annotations", key)
    is_number = isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= most_digits
    return int(value) if is_number else None


def _free_name(name_hint: str, taken: set[str]) -> str:
    name = name_hint
    suffix = 2
    while name in taken:
        name = f"{name_hint}-{suffix}"
        suffix += 1
    return name


# The usage of quotas in billionths, by namespace and resource name.
_Amounts = Counter[tuple[str, str]]


def exceeded_quotas(
    changes: Iterable[Change], cluster: ClusterSnapshot, new_claims: Iterable[str]
) -> tuple[dict[str, str], list[Assumption]]:
    """What exceeds each quota (``shop/compute``), as text, and assumptions if that is uncertain.

    ``new_claims`` are the keys of the change's claims in ``cluster``.
    """
    if not cluster.resource_quotas:
        return {}, []
    new = set(new_claims)
    created: _Amounts = Counter()
    guessed: _Amounts = Counter()
    existing: _Amounts = Counter()
    for change in changes:
        kind, _, key = change.object.partition(" ")
        namespace = key.partition("/")[0]
        if change.kind is ChangeKind.CREATED and kind != _CLAIM:
            created.update({(namespace, name): NANO_PER_UNIT for name in _names_of(kind)})
        if change.kind in (ChangeKind.CREATED, ChangeKind.ROLLED) and kind in _CREATED_BY_CONTROLLERS:
            guessed[namespace, _CREATED_BY_CONTROLLERS[kind]] += NANO_PER_UNIT
    for claim in cluster.persistent_volume_claims:
        (created if claim.key in new else existing).update(_usage_of(claim))
    quotas: dict[str, list[str]] = {}
    assumptions = []
    for quota in cluster.resource_quotas:
        namespace = quota.metadata.namespace
        for name, limit in quota.limits.items():
            key_of_limit = (namespace, name)
            used = quota.status.used[name].nano if name in quota.status.used else existing[key_of_limit]
            total = used + created[key_of_limit] + guessed[key_of_limit]
            if not (created[key_of_limit] or guessed[key_of_limit]) or total <= limit.nano:
                continue
            words = f"{name} {format_nano(total, binary=limit.text.endswith('i'))} of {limit}"
            if used + created[key_of_limit] > limit.nano:
                quotas.setdefault(quota.key, []).append(words)
            else:
                message = (
                    f"{words}, including objects that controllers create for the change, even if they are rejected"
                )
                subject = f"ResourceQuota {quota.key}"
                assumptions.append(Assumption(subject, f"spec.hard.{name}", message, AssumptionKind.UNCERTAIN))
    return {key: ", ".join(words) for key, words in quotas.items()}, assumptions


def _usage_of(claim: PersistentVolumeClaim) -> dict[tuple[str, str], int]:
    """A claim's usage of quotas."""
    own = {_CLAIMS: NANO_PER_UNIT, _STORAGE: requested_storage(claim).nano}
    usage = {**own, f"count/{_CLAIMS}": NANO_PER_UNIT}
    if name := class_of_claim(claim):
        usage |= {f"{name}{_OF_CLASS}{each}": amount for each, amount in own.items()}
    return {(claim.metadata.namespace, each): amount for each, amount in usage.items()}


def _names_of(kind: str) -> list[str]:
    """The resource names under which quotas count objects of a kind."""
    plural = plural_of(kind)
    known = CLUSTER_KINDS.get(kind)
    group = POD_OWNERS[kind][0] if kind in POD_OWNERS else known.groups[0] if known else ""
    return [f"count/{plural}.{group}"] if group else [f"count/{plural}", plural]
