"""Applies a candidate to a drain: what the cluster, its nodes and the options are with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec

from kpreempt.admission import admit_claim
from kpreempt.analysis.check.rollout.controller_inputs import deployment_state, owned_by_replica_set
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.drain.blocked import budgets_selecting
from kpreempt.analysis.drain.candidates import OPTIONS, UPGRADES
from kpreempt.analysis.drain.kubectl import DrainPlan, cordoned, upgraded
from kpreempt.analysis.nodes.copies import Copier, with_nodes
from kpreempt.analysis.remedies.edits import edited
from kpreempt.analysis.remedies.owners import Owners
from kpreempt.analysis.remedies.search import Candidate
from kpreempt.analysis.simulation.claims import bind_claims
from kpreempt.analysis.simulation.client import Controller
from kpreempt.analysis.simulation.controllers import DeploymentController, Maker, SimulatedReplicaSet, with_claims_of
from kpreempt.controllers.actions import SyncError
from kpreempt.controllers.disruption import Candidates, Scales, disruptions_allowed, failed_status, sync_budget
from kpreempt.controllers.replacement import replacement_of
from kpreempt.eviction.kubectl_drain import DrainOptions, timeout_seconds
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import AnnotatedMeta, controller_of, replace_in
from kpreempt.model.pod import Pod, PodCondition
from kpreempt.model.storage import PersistentVolumeClaim
from kpreempt.model.workloads import Deployment, ReplicaSet, StatefulSet
from kpreempt.schedulers.interface import Settings
from kpreempt.verdict.remedies import Change, ChangeKind

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RESTARTED = "restarted"
_TIMEOUT = "--timeout="


class Variants:
    """Makes the variants of a drain. ``deployments`` are manifests by name (``Deployment shop/api``)."""

    def __init__(
        self,
        plan: DrainPlan,
        owners: Owners,
        deployments: Mapping[str, Document],
        now: datetime,
        settings: Settings,
    ) -> None:
        self._plan, self._owners, self._deployments = plan, owners, deployments
        self._now, self._settings = now, settings

    def of(self, candidate: Candidate) -> DrainPlan:
        """The drain with the changes of a candidate."""
        plan = self._plan
        cluster = edited(plan.cluster, candidate.edits)
        arriving: list[Pod] = []
        touched = {edit.object.partition(" ")[2] for edit in candidate.edits}
        restarted: list[str] = []
        names = [change.subject for change in candidate.changes if change.kind is ChangeKind.CORDON]
        if names:
            cluster = msgspec.structs.replace(cluster, nodes=cordoned(cluster.nodes, names))
        for change in candidate.changes:
            if change.kind is ChangeKind.REPAIR:
                cluster = _repaired(cluster, change.subject.removeprefix("Pod "))
            elif change.kind is ChangeKind.RESTART:
                restarted.append(change.subject)
            elif change.kind is ChangeKind.ADD_NODE:
                node = next(each for each in plan.cluster.nodes if each.name == change.subject)
                new = [each.name for batch in plan.batches for added in batch.new_nodes for each in added.nodes]
                cluster = with_nodes(cluster, Copier(cluster, now=self._now, taken=new).like(node, 1))
            elif (scaled := self._scale_of(change)) is not None:
                cluster, pods = self._scaled(cluster, *scaled)
                arriving += pods
        pods = [pod for pod in cluster.pods if f"Pod {pod.key}" in {change.subject for change in candidate.changes}]
        touched |= {budget.key for pod in (*pods, *arriving) for budget in budgets_selecting(cluster, pod)}
        cluster = _synced(cluster, touched)
        batches = plan.batches
        for option in candidate.options:
            if option in UPGRADES:
                nodes = [name for batch in plan.batches for name in batch.nodes]
                upgrade = upgraded(cluster, nodes, UPGRADES[option], now=self._now)
                cluster, batches = upgrade.cluster, upgrade.batches
        cluster, rollouts = self._rolled_out(cluster, restarted)
        return DrainPlan(
            cluster=cluster,
            batches=batches,
            options=with_options(plan.options, candidate.options),
            arriving=arriving,
            rollouts=rollouts,
        )

    def _scale_of(self, change: Change) -> tuple[str, int] | None:
        """The workload that the change scales, itself or through its autoscaler, and its size then."""
        if change.kind is ChangeKind.SCALE and change.after is not None:
            return change.subject, change.after
        workload = self._owners.scaled_by(change.subject)
        return (workload, int(change.value)) if change.kind is ChangeKind.SET and workload else None

    def _scaled(self, cluster: ClusterSnapshot, workload: str, size: int) -> tuple[ClusterSnapshot, list[Pod]]:
        """The cluster with the size of the workload, and the pods that its controller then creates."""
        kind, _, name = workload.partition(" ")
        pods = [pod for pod in cluster.pods if self._owners.workload_of(pod) == workload and pod.is_active]
        if not pods:
            return cluster, []
        owner = controller_of(pods[-1].metadata)
        assert owner is not None

        def sized(record: Deployment | ReplicaSet | StatefulSet) -> bool:
            metadata = record.metadata
            names = ((kind, name), (owner.kind, f"{pods[-1].metadata.namespace}/{owner.name}"))
            return (type(record).__name__, f"{metadata.namespace}/{metadata.name}") in names

        fields = ("deployments", "replica_sets", "stateful_sets", "replication_controllers")
        before = self._owners.size_of(workload) or 0
        cluster = msgspec.structs.replace(
            cluster,
            **{
                field: [
                    replace_in(each, "spec", replicas=size) if sized(each) else each for each in getattr(cluster, field)
                ]
                for field in fields
            },
        )
        new = []
        for number in range(before, size):
            suffix = f"more-{number}"
            pod = replacement_of(
                pods[-1], suffix=suffix, uid=suffix, now=pods[-1].metadata.creation_timestamp or _EPOCH
            )
            assert pod is not None
            if kind == "StatefulSet":
                own = f"{name.partition('/')[2]}-{number}"
                pod = with_claims_of(replace_in(pod, "metadata", name=own), pods[-1].metadata.name)
                cluster = self._with_claims(cluster, pods[-1], pod)
            new.append(pod)
        return cluster, new

    def _with_claims(self, cluster: ClusterSnapshot, old: Pod, new: Pod) -> ClusterSnapshot:
        """The cluster with the claims that the StatefulSet creates for its new pod: like those of an old one."""
        names = {
            before.persistent_volume_claim.claim_name: after.persistent_volume_claim.claim_name
            for before, after in zip(old.spec.volumes, new.spec.volumes, strict=True)
            if before.persistent_volume_claim is not None and after.persistent_volume_claim is not None
        }
        namespace = new.metadata.namespace
        known = {each.key: each for each in cluster.persistent_volume_claims}
        created = [
            admit_claim(
                PersistentVolumeClaim(
                    metadata=AnnotatedMeta(name=after, namespace=namespace, labels=known[key].metadata.labels),
                    spec=msgspec.structs.replace(known[key].spec, volume_name=""),
                ),
                cluster,
            )
            for before, after in names.items()
            if (key := f"{namespace}/{before}") in known and f"{namespace}/{after}" not in known
        ]
        claims = [*cluster.persistent_volume_claims, *created]
        cluster = msgspec.structs.replace(cluster, persistent_volume_claims=claims)
        return bind_claims(cluster, [each.key for each in created], self._settings).cluster

    def _rolled_out(
        self, cluster: ClusterSnapshot, workloads: Sequence[str]
    ) -> tuple[ClusterSnapshot, Callable[[], Sequence[Controller]]]:
        """The cluster with the new ReplicaSets, and the controllers that roll them out."""
        inputs = [self._new_set(cluster, workload) for workload in workloads]
        sets = [each for each, _ in inputs]
        cluster = msgspec.structs.replace(cluster, replica_sets=[*cluster.replica_sets, *sets])
        makes = [make for _, make in inputs]
        return cluster, lambda: [make() for make in makes]

    def _new_set(self, cluster: ClusterSnapshot, workload: str) -> tuple[ReplicaSet, Callable[[], Controller]]:
        namespace, _, name = workload.partition(" ")[2].partition("/")
        pods = [pod for pod in cluster.pods if self._owners.workload_of(pod) == workload and pod.is_active]
        old = [
            each
            for each in cluster.replica_sets
            if each.metadata.namespace == namespace
            and (owner := controller_of(each.metadata)) is not None
            and (owner.kind, owner.name) == ("Deployment", name)
        ]
        current = next(each for each in old if each.metadata.name == _owner_name(pods[-1]))
        new_name = f"{name}-{_RESTARTED}"
        new = replace_in(current, "metadata", name=new_name, uid=_RESTARTED)
        prototype = replacement_of(pods[-1], suffix=_RESTARTED, uid=_RESTARTED, now=self._now)
        assert prototype is not None
        prototype = owned_by_replica_set(prototype, new_name, _RESTARTED, _RESTARTED)
        make = partial(self._controller, workload, pods, old, prototype, new_name)
        return new, make

    def _controller(
        self, workload: str, pods: Sequence[Pod], old: Sequence[ReplicaSet], prototype: Pod, new_name: str
    ) -> Controller:
        namespace, _, name = workload.partition(" ")[2].partition("/")
        sets = []
        for each in old:
            own = [pod for pod in pods if _owner_name(pod) == each.metadata.name]
            maker = Maker(own[0] if own else prototype, each.metadata.name)
            created = each.metadata.creation_timestamp
            sets.append(SimulatedReplicaSet(name=each.metadata.name, maker=maker, replicas=len(own), created=created))
        new = SimulatedReplicaSet(name=new_name, maker=Maker(prototype, new_name), exists=False)
        return DeploymentController(namespace, name, deployment_state(self._deployments[workload]), new, sets)


def with_options(options: DrainOptions, added: Iterable[str]) -> DrainOptions:
    """The options of ``kubectl drain`` with more of them."""
    for each in added:
        changes: dict[str, bool | float] = {OPTIONS[each][0]: True} if each in OPTIONS else {}
        if each.startswith(_TIMEOUT):
            changes["timeout"] = timeout_seconds(each.removeprefix(_TIMEOUT))
        options = msgspec.structs.replace(options, **changes)
    return options


def _owner_name(pod: Pod) -> str:
    owner = controller_of(pod.metadata)
    return owner.name if owner is not None else ""


def _repaired(cluster: ClusterSnapshot, key: str) -> ClusterSnapshot:
    """The cluster in which the pod is ready."""

    def ready(pod: Pod) -> Pod:
        conditions = [each for each in pod.status.conditions if each.type != "Ready"]
        return replace_in(pod, "status", conditions=[*conditions, PodCondition(type="Ready", status="True")])

    pods = [ready(pod) if pod.key == key else pod for pod in cluster.pods]
    return msgspec.structs.replace(cluster, pods=pods)


def _synced(cluster: ClusterSnapshot, keys: Iterable[str]) -> ClusterSnapshot:
    """The cluster with the statuses that the controller computes for these budgets."""
    changed = set(keys)
    candidates, scales = Candidates(cluster.pods), Scales(cluster)
    budgets = []
    for each in cluster.pod_disruption_budgets:
        if each.key not in changed:
            budgets.append(each)
            continue
        try:
            status = sync_budget(each, candidates.of(each), scales.scale_of, None).status
            before = each.status
            if before is not None:
                # Pods that were assumed to be ready still count as ready.
                healthy = max(status.current_healthy, before.current_healthy)
                allowed = disruptions_allowed(healthy, status.desired_healthy, status.expected_pods)
                status = msgspec.structs.replace(status, current_healthy=healthy, disruptions_allowed=allowed)
        except SyncError:
            status = failed_status(each)
        budgets.append(msgspec.structs.replace(each, status=status))
    return msgspec.structs.replace(cluster, pod_disruption_budgets=budgets)
