"""What may let a drain finish: candidates from what blocks an eviction or breaks a rule.

Pods of an operator's custom resource, and their PodDisruptionBudgets, are left to the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property

import msgspec

from kpreempt.analysis.check.rollout.controller_inputs import deployment_state
from kpreempt.analysis.check.rollout.kinds import CLUSTER_KINDS, SCALED_KINDS
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.drain.blocked import budgets_selecting, operator_of
from kpreempt.analysis.drain.kubectl import DrainPlan, Upgrade
from kpreempt.analysis.remedies.excluded import CORDON_TAINT, is_set_by_controller
from kpreempt.analysis.remedies.owners import Owners
from kpreempt.analysis.remedies.search import Candidate
from kpreempt.analysis.simulation.cluster import is_serving
from kpreempt.controllers.actions import SyncError, scaled_value
from kpreempt.controllers.disruption import desired_healthy
from kpreempt.gate_rules import RuleId
from kpreempt.model.cluster import KindState
from kpreempt.model.meta import ObjectMeta
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.schedulers.interface import Settings
from kpreempt.verdict.check import GateFinding
from kpreempt.verdict.drain import BlockedEviction, BlockReason
from kpreempt.verdict.remedies import Change, ChangeKind, ObjectEdit, RemedyStage

BUDGET = "PodDisruptionBudget"
# The options of ``kubectl drain``, by the field of ``DrainOptions``, and the text of the error without each.
OPTIONS = {
    "--ignore-daemonsets": ("ignore_daemon_sets", ("DaemonSet-managed Pods",)),
    "--delete-emptydir-data": ("delete_empty_dir_data", ("Pods with local storage",)),
    "--force": ("force", ("Pods that declare no controller", "daemonsets.apps ")),
}
# An upgrade replaces each node: before it is drained, or after.
UPGRADES = {"--surge=1": Upgrade(max_unavailable=1, surge=1), "--one-by-one": Upgrade(max_unavailable=1)}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SELECTING = ("Deployment", "StatefulSet")
_RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
_POLICY_GATE = "PDBUnhealthyPodEvictionPolicy"
# A workload is scaled up by this number of replicas at most.
_MOST_REPLICAS = 10
# More cordoned nodes are not proposed to be uncordoned one by one.
_MOST_UNCORDONED = 2


def missing_options(messages: Iterable[str]) -> list[str]:
    """The options of ``kubectl drain`` that these errors require."""
    given = list(messages)
    return [
        option for option, (_, texts) in OPTIONS.items() if any(text in message for message in given for text in texts)
    ]


def of_options(options: Sequence[str]) -> Candidate:
    """The drain with these options."""
    return Candidate(
        stage=RemedyStage.REQUESTER,
        changes=[Change(ChangeKind.OPTION, option) for option in options],
        options=options,
        is_alone=True,
    )


class Candidates:
    """Candidates for a drain. ``deployments`` are the manifests by name (``Deployment shop/api``)."""

    def __init__(
        self,
        plan: DrainPlan,
        owners: Owners,
        deployments: Mapping[str, Document],
        restarted_at: str,
        settings: Settings,
    ) -> None:
        self._plan, self._owners, self._deployments = plan, owners, deployments
        self._restarted_at = restarted_at
        # Since 1.27; there are no facts about versions before 1.29.
        self._has_policies = bool(settings.facts) and settings.gates.get(_POLICY_GATE, True)
        self._pods = {pod.key: pod for pod in plan.cluster.pods}
        self._budgets = {each.key: each for each in plan.cluster.pod_disruption_budgets}
        self._nodes = [name for batch in plan.batches for name in batch.nodes]

    def of_blocked(self, blocked: BlockedEviction) -> Iterator[Candidate]:
        """What may let the pods be evicted, in the order of stages."""
        budgets = [self._budgets[key] for key in blocked.budgets if key in self._budgets]
        pods = [self._pods[key] for key in blocked.pods if key in self._pods]
        if blocked.reason is BlockReason.MULTIPLE_BUDGETS:
            for workload in blocked.workloads:
                if self._owners.size_of(workload) == 1:
                    yield from self._restarted(workload)
            # The newest one first: the others did their work without it.
            for budget in sorted(budgets, key=lambda each: each.metadata.creation_timestamp or _EPOCH, reverse=True):
                if not self._manager(budget, pods):
                    yield Candidate(
                        stage=RemedyStage.DELETION,
                        changes=[Change(ChangeKind.DELETE, f"{BUDGET} {budget.key}")],
                        edits=[ObjectEdit(f"{BUDGET} {budget.key}", deletes=True)],
                    )
        if len(budgets) != 1:
            return
        yield from self._repaired(blocked)
        manager = self._manager(budgets[0], pods)
        if blocked.pending:
            yield from self._capacity([blocked.node])
        if manager:
            return
        for workload in blocked.workloads:
            if blocked.reason in (BlockReason.SINGLE_REPLICA, BlockReason.NEVER_ALLOWS):
                yield from self._restarted(workload)
                yield from self._scaled(workload, budgets[0] if len(blocked.workloads) == 1 else None)
        if self._has_policies and set(blocked.pods) <= set(blocked.unready):
            yield _with_policy(budgets[0])
        yield from _loosened(budgets[0], blocked)

    def of_finding(self, finding: GateFinding, missing: Iterable[str]) -> Iterator[Candidate]:
        """What may prevent that pods stay pending, or that a workload or Service has no ready pod for a while.

        ``missing`` are the pods that a broken dependency lacks.
        """
        if finding.rule is RuleId.MAX_PENDING:
            yield from self._capacity(self._nodes if len(self._nodes) == 1 else [])
        if finding.rule not in (RuleId.MIN_READY, RuleId.MAX_BROKEN_DEPENDENCIES, RuleId.BRIEF_INTERRUPTION):
            return
        workloads = (self._owners.workload_of(self._pods[key]) for key in missing if key in self._pods)
        for workload in dict.fromkeys([finding.subject, *workloads]):
            size = self._owners.size_of(workload)
            if size is None or self._owners.manager_of(workload):
                continue
            if size == 1:
                yield from self._restarted(workload)
                yield from self._scaled(workload, None)
            else:
                yield from self._protected(workload)

    def _manager(self, budget: PodDisruptionBudget, pods: Sequence[Pod]) -> str:
        """The custom resource whose operator manages the budget or its pods."""
        managers = [
            self._owners.manager_of(f"{BUDGET} {budget.key}"),
            *(operator_of(self._owners, pod) for pod in pods),
        ]
        return next(filter(None, managers), "")

    # Repairs.

    def _repaired(self, blocked: BlockedEviction) -> Iterator[Candidate]:
        """Pods of the budget become ready: those that the drain does not evict, or else all."""
        unready = [self._pods[key] for key in blocked.unready if key in self._pods]
        staying = [pod for pod in unready if pod.spec.node_name not in self._nodes]
        for pods in (staying, unready):
            if pods:
                changes = [Change(ChangeKind.REPAIR, f"Pod {pod.key}") for pod in pods]
                yield Candidate(stage=RemedyStage.REPAIR, changes=changes)

    # Capacity.

    def _capacity(self, nodes: Sequence[str]) -> Iterator[Candidate]:
        """Nodes that are uncordoned or added, and replacements for the drained nodes."""
        cordoned = [
            each for each in self._plan.cluster.nodes if each.spec.unschedulable and each.name not in self._nodes
        ]
        for node in cordoned[:_MOST_UNCORDONED]:
            if any(is_set_by_controller(taint) and taint.key != CORDON_TAINT for taint in node.spec.taints):
                continue
            taints = [
                {name: value for name in ("key", "value", "effect") if (value := getattr(taint, name))}
                for taint in node.spec.taints
                if taint.key != CORDON_TAINT
            ]
            yield Candidate(
                stage=RemedyStage.CAPACITY,
                changes=[Change(ChangeKind.UNCORDON, node.name)],
                edits=[ObjectEdit(f"Node {node.name}", {"spec": {"unschedulable": None, "taints": taints or None}})],
            )
        yield from self.upgrades()
        for name in nodes:
            yield Candidate(
                stage=RemedyStage.CAPACITY,
                changes=[Change(ChangeKind.ADD_NODE, name)],
                options=[f"--add-node={name}"],
            )

    def upgrades(self) -> Iterator[Candidate]:
        """Upgrades instead of a drain of several nodes, so that not all of them are cordoned at the same time."""
        for option in UPGRADES if len(self._nodes) > 1 and not self._plan.is_upgrade else ():
            yield Candidate(
                stage=RemedyStage.CAPACITY,
                changes=[Change(ChangeKind.OPTION, option)],
                options=[option],
                is_alone=True,
            )

    # Workloads.

    def _restarted(self, workload: str) -> Iterator[Candidate]:
        """A rolling update of the Deployment while the nodes are cordoned: its new pods start on other nodes."""
        document = self._deployments.get(workload)
        if document is None or self._owners.manager_of(workload) or self._has_unready(workload):
            return
        deployment = deployment_state(document)
        surge = scaled_value(deployment.max_surge, deployment.replicas, round_up=True)
        if deployment.paused or deployment.strategy != "RollingUpdate" or not surge:
            return
        annotations = {"metadata": {"annotations": {_RESTARTED_AT: self._restarted_at}}}
        yield Candidate(
            stage=RemedyStage.REQUESTER,
            changes=[*self._cordons(), Change(ChangeKind.RESTART, workload)],
            edits=[ObjectEdit(workload, {"spec": {"template": annotations}})],
        )

    def _scaled(self, workload: str, budget: PodDisruptionBudget | None) -> Iterator[Candidate]:
        """The workload with as many more replicas as its budget needs, through its autoscaler if it has one."""
        kind = workload.partition(" ")[0]
        size = self._owners.size_of(workload)
        if kind not in SCALED_KINDS or not size or self._owners.manager_of(workload) or self._has_unready(workload):
            return
        enough = (n for n in range(size + 1, size + 1 + _MOST_REPLICAS) if budget is None or _allows_one(budget, n))
        replicas = next(enough, None)
        if replicas is None:
            return
        autoscaler = self._owners.autoscaler_of(workload)
        if autoscaler is None:
            change = Change(ChangeKind.SCALE, workload, before=size, after=replicas)
            edit = ObjectEdit(workload, {"spec": {"replicas": replicas}})
        elif replicas > autoscaler.max:
            return
        else:
            change = Change(ChangeKind.SET, autoscaler.name, field="spec.minReplicas", value=replicas)
            edit = ObjectEdit(autoscaler.name, {"spec": {"minReplicas": replicas}})
        yield Candidate(stage=RemedyStage.REQUESTER, changes=[*self._cordons(), change], edits=[edit])

    def _cordons(self) -> list[Change]:
        """The nodes are cordoned before new pods are created, so that these land elsewhere."""
        return [Change(ChangeKind.CORDON, name) for name in self._nodes]

    def _has_unready(self, workload: str) -> bool:
        """Whether one of its pods is not ready, so that a new one may not become ready either."""
        return workload in self._unready

    @cached_property
    def _unready(self) -> set[str]:
        unready = (pod for pod in self._pods.values() if pod.spec.node_name and pod.is_active and not is_serving(pod))
        return {self._owners.workload_of(pod) for pod in unready}

    # Budgets.

    def _protected(self, workload: str) -> Iterator[Candidate]:
        """A budget for a workload of several pods that has none, so that they go one by one."""
        kind, _, name = workload.partition(" ")
        namespace, _, own = name.partition("/")
        cluster = self._plan.cluster
        records = getattr(cluster, CLUSTER_KINDS[kind].field) if kind in _SELECTING else []
        selector = next((each.spec.selector for each in records if _key(each.metadata) == name), None)
        pods = [pod for pod in self._pods.values() if self._owners.workload_of(pod) == workload]
        unread = cluster.unread.get(BUDGET)
        are_known = unread is None or unread.state is KindState.ABSENT
        is_known = are_known and selector is not None and name not in self._budgets
        if not is_known or any(budgets_selecting(cluster, pod) for pod in pods) or self._has_unready(workload):
            return
        budget = f"{BUDGET} {name}"
        manifest = {
            "apiVersion": "policy/v1",
            "kind": BUDGET,
            "metadata": {"name": own, "namespace": namespace},
            "spec": {"maxUnavailable": 1, "selector": msgspec.to_builtins(selector)},
        }
        yield Candidate(
            stage=RemedyStage.LIMIT,
            changes=[Change(ChangeKind.CREATE, budget, field="spec.maxUnavailable", value=1)],
            edits=[ObjectEdit(budget, manifest, creates=True)],
        )


def _key(metadata: ObjectMeta) -> str:
    return f"{metadata.namespace}/{metadata.name}"


def _allows_one(budget: PodDisruptionBudget, replicas: int) -> bool:
    """Whether the budget allows a disruption if the workload has this number of healthy pods."""
    try:
        return replicas > desired_healthy(budget.spec, replicas)
    except SyncError:
        return False


def _loosened(budget: PodDisruptionBudget, blocked: BlockedEviction) -> Iterator[Candidate]:
    """Let the budget allow one disruption, in addition to the pods that are missing."""
    if blocked.reason is BlockReason.NO_SCALE:
        yield _with_limit(budget, "minAvailable", max(blocked.current_healthy - 1, 0))
        return
    missing = max(blocked.expected_pods - blocked.current_healthy, 0)
    is_number = isinstance(budget.spec.min_available, int) and budget.spec.max_unavailable is None
    if is_number and blocked.current_healthy > 1:
        yield _with_limit(budget, "minAvailable", blocked.current_healthy - 1)
    # If only replacements are missing, one disruption is enough.
    for number in dict.fromkeys([1, missing + 1] if blocked.reason is BlockReason.NEVER_ALLOWS else [missing + 1]):
        yield _with_limit(budget, "maxUnavailable", number)


def _with_limit(budget: PodDisruptionBudget, field: str, value: int) -> Candidate:
    other = "minAvailable" if field == "maxUnavailable" else "maxUnavailable"
    return _edited(budget, field, value, {field: value, other: None})


def _with_policy(budget: PodDisruptionBudget) -> Candidate:
    field, value = "unhealthyPodEvictionPolicy", "AlwaysAllow"
    return _edited(budget, field, value, {field: value})


def _edited(budget: PodDisruptionBudget, field: str, value: int | str, spec: dict[str, int | str | None]) -> Candidate:
    name = f"{BUDGET} {budget.key}"
    return Candidate(
        stage=RemedyStage.LIMIT,
        changes=[Change(ChangeKind.SET, name, field=f"spec.{field}", value=value)],
        edits=[ObjectEdit(name, {"spec": spec})],
    )
