"""Checks whether nodes can be drained: simulates the drain, evaluates rules on what happens, and tries remedies.

For an upgrade, it can search for the order of nodes that displaces the fewest pods: at each step it picks the node
whose drain displaces the fewest.

To find removable nodes, it looks for nodes that autoscalers would remove: no pod remains pending, no other pod is
evicted, and no budget is violated. Which pods can be moved follows Cluster Autoscaler with its default flags
(``cluster-autoscaler/simulator/drainability/rules``, ``utils/drain/drain.go``, and its FAQ, "What types of pods can
prevent CA from removing a node?") and Karpenter 1.8 for ``karpenter.sh/do-not-disrupt``
(``pkg/controllers/state/statenode.go``, ``pkg/utils/pod/scheduling.go``). Other reasons to keep a node, such as its
utilization, the minimum size of its group or its price, are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from kpreempt.analysis.algorithms import Scheduler, pending_pods, pods_by_node
from kpreempt.analysis.check.gate import Facts, GateRules, StaticFinding, Suppressions, evaluate
from kpreempt.analysis.check.headroom import placeholders
from kpreempt.analysis.check.report import facts_of, judge, not_all, of_queue, of_settings
from kpreempt.analysis.check.simulations import SimulationContext, Simulations
from kpreempt.analysis.check.unread import unread_quotas
from kpreempt.analysis.check.without_change import WithoutChange
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.drain.blocked import blocked_evictions, budgets_selecting
from kpreempt.analysis.drain.kubectl import DrainBatch, DrainPlan, DrainRuns, SimulatedDrain, in_order, plain_drain
from kpreempt.analysis.drain.remedies import DrainRemedies, DrainSearch, find_remedies
from kpreempt.analysis.explain.pods import summed_up
from kpreempt.analysis.naming import counted
from kpreempt.controllers.replacement import is_replaced
from kpreempt.eviction.kubectl_drain import DrainOptions
from kpreempt.gate_rules import RuleId
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import ADMITTED_LABELS
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.check import Change, ChangeKind, GateFinding
from kpreempt.verdict.drain import (
    AutoscalerRule,
    BlockedEviction,
    BlockingPod,
    BlockReason,
    Drain,
    DrainOrder,
    NodeRemoval,
    RemovalBlocker,
)
from kpreempt.verdict.headroom import without_headroom
from kpreempt.verdict.unread import unreadable_of

_BUDGET = "PodDisruptionBudget"
# Limits of the search for an order: the number of simulated drains, and their decisions times nodes in total. The cost
# of preparing a simulation is this many decisions per node and pod.
_MAX_TRIALS = 200
_MAX_DECISIONS = 1_500_000
_PREPARATION_COST = 2
# Limits of the search for removable nodes, in nodes tried, and in decisions times nodes in total.
_MAX_REMOVALS = 60
_MAX_REMOVAL_DECISIONS = 3_000_000
_IN_MEMORY = "Memory"
_NOTHING_HELPS = "No change that was tried helps."


class DrainInput(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a drain: the nodes in batches, the options, and the rules.

    If it ``removes``, it determines which of the nodes can be removed, and drains those. If it ``seeks_order``, the
    batches are those of an upgrade, whose nodes are drained in the order found to displace the fewest pods.
    ``description`` is the command as a user would type it. ``runs``, ``worst_of``, ``assumptions`` and ``is_live`` are
    as in the input of a check. ``documents`` are manifests of the cluster's Deployments and HorizontalPodAutoscalers.
    Remedies are searched while ``has_time`` is true.
    """

    cluster: ClusterSnapshot
    batches: Sequence[DrainBatch]
    options: DrainOptions
    description: str
    rules: GateRules
    suppressions: Suppressions
    seed: int = 0
    runs: int | None = None
    worst_of: int = 0
    assumptions: Sequence[Assumption] = ()
    is_live: bool = False
    removes: bool = False
    seeks_order: bool = False
    documents: Sequence[Document] = ()
    has_time: Callable[[], bool] = lambda: True


def drain_nodes(drain_input: DrainInput, context: SimulationContext) -> Drain:
    """Simulate the drain and evaluate the rules."""
    cluster, scheduler, at = drain_input.cluster, context.scheduler, context.at
    daemon_sets, unknown_owners = _daemon_sets(cluster)

    def runs(plan: DrainPlan) -> Simulations[SimulatedDrain]:
        removed = {node for batch in plan.batches for node in batch.nodes}
        decisions = sum(pod.spec.node_name in removed for pod in plan.cluster.pods) * len(plan.cluster.nodes)
        run = DrainRuns(plan, daemon_sets, context)
        return Simulations(run, context, decisions=decisions, cluster=plan.cluster)

    def plan_of(batches: Sequence[DrainBatch]) -> DrainPlan:
        return DrainPlan(cluster=cluster, batches=batches, options=drain_input.options)

    batches, removable = drain_input.batches, list[NodeRemoval]()
    if drain_input.removes:
        nodes, removed = removals(
            cluster,
            [name for batch in drain_input.batches for name in batch.nodes],
            lambda nodes: runs(plan_of(plain_drain(nodes))).by_chance(drain_input.seed),
        )
        removable, batches = nodes, plain_drain(removed)
    order: DrainOrder | None = None
    if drain_input.seeks_order:
        batches, order = best_order(
            batches,
            lambda tried: runs(plan_of(tried)).by_chance(drain_input.seed),
            cluster,
        )

    summary = summed_up(cluster, context.now)
    general = [*drain_input.assumptions, *unknown_owners, *_method_assumptions(drain_input, scheduler)]
    plan = plan_of(batches)

    def run(simulations: Simulations[SimulatedDrain]) -> tuple[list[SimulatedDrain], bool]:
        return simulations.run_requested(drain_input.seed, drain_input.runs, drain_input.worst_of)

    simulated, is_all = run(runs(plan))
    extra = [] if is_all or not drain_input.worst_of else [not_all(len(simulated))]
    changes = [
        Change(object=f"Node {each.node}", kind=ChangeKind.DRAINED, replicas_before=len(each.remaining) + each.evicted)
        for each in simulated[0].works
    ]

    def facts(each: SimulatedDrain) -> Facts:
        moved = {victim.pod for victim in each.simulation.displaced if victim.drained}
        assumptions = [*general, *each.assumptions, *_of_owners(cluster, moved), *extra]
        found = facts_of(each, assumptions, snapshot_age=summary.age_seconds, is_live=drain_input.is_live)
        return msgspec.structs.replace(found, static_findings=_static_findings(each))

    headroom = placeholders(cluster, (), drain_input.rules.expendable)
    without = WithoutChange(drain_input.suppressions)
    if pending_pods(cluster):
        without.follow(
            simulated, changes, without=runs(plan_of([])), old_changes=[], facts=facts, rules=drain_input.rules
        )
    judgment = judge(simulated, is_all, changes, facts, drain_input.rules, without.suppressions, headroom)
    shown = judgment.shown
    search = DrainSearch(
        plan=plan,
        simulate=runs,
        run=lambda simulations: run(simulations)[0],
        run_some=lambda simulations, most: list(simulations.run_samples(drain_input.seed, most)),
        findings_of=lambda each: evaluate(
            without_headroom(each.simulation, headroom),
            changes,
            facts(each),
            drain_input.rules,
            without.all,
        )[1],
        daemon_sets=daemon_sets,
        now=at,
        settings=scheduler.settings,
        documents=drain_input.documents,
        has_time=drain_input.has_time,
    )
    helping = find_remedies(search, simulated, shown, judgment.fields["findings"])
    findings = [_with_remedies(each, helping) for each in judgment.fields["findings"]]
    assumed = (assumption for each in (shown, *simulated) for assumption in each.assumptions)
    displaced = shown.simulation.displaced
    moved = {each.pod for each in displaced if each.drained}
    finishes = all(each.is_drained for each in simulated)
    return Drain(
        **{**judgment.fields, "findings": findings},
        algorithm=scheduler.algorithm,
        cluster=summary,
        at=at,
        changes=changes,
        without_change=without.outcome(shown),
        command=drain_input.description,
        finishes=finishes,
        moved=sum(each.drained for each in displaced),
        preempted=sum(not each.drained for each in displaced),
        pending_after=sum(each.was_running for each in shown.simulation.pending),
        min_seconds=min(max((work.ended or 0.0 for work in each.works), default=0.0) for each in simulated)
        if finishes
        else None,
        drained=list(shown.works),
        blocked=helping.blocked,
        pods_losing_data=[
            pod.key for pod in cluster.pods if pod.key in moved and pod.has_empty_dir and not pod.is_terminal
        ],
        remedies=helping.remedies,
        search=helping.search,
        removals=removable,
        order=order,
        assumptions=list(dict.fromkeys([*general, *assumed, *_of_owners(cluster, moved), *extra])),
    )


def _static_findings(drain: SimulatedDrain) -> list[StaticFinding]:
    """The blocked evictions, one per budget; further nodes with the same budget are not listed."""
    found: dict[str, tuple[BlockedEviction, list[str]]] = {}
    for each in blocked_evictions(drain):
        found.setdefault(_subject(each), (each, []))[1].extend(each.pods)
    return [
        StaticFinding(RuleId.DRAIN_INCOMPLETE, subject, detail_of(each), change=f"Node {each.node}", pods=tuple(pods))
        for subject, (each, pods) in found.items()
    ]


def _subject(blocked: BlockedEviction) -> str:
    return f"{_BUDGET} {blocked.budgets[0]}" if blocked.budgets else f"Node {blocked.node}"


def _daemon_sets(cluster: ClusterSnapshot) -> tuple[Collection[tuple[str, str]], list[Assumption]]:
    """The DaemonSets of the cluster; if they are unknown, all that pods name are assumed to exist."""
    existing = {(each.metadata.namespace, each.metadata.name) for each in cluster.daemon_sets}
    owners = {
        (pod.metadata.namespace, owner.name)
        for pod in cluster.pods
        if (owner := controller_of(pod.metadata)) is not None and owner.kind == "DaemonSet"
    }
    if existing or not owners:
        return existing, []
    unread = unreadable_of(cluster, ["DaemonSet"])
    message = "the snapshot has none; DaemonSets that own pods are assumed to exist"
    return owners, unread or [Assumption("DaemonSet", "", message, AssumptionKind.INFORMATIONAL)]


def _method_assumptions(drain_input: DrainInput, scheduler: Scheduler) -> list[Assumption]:
    """The assumptions that result from the snapshot and from how the drain is simulated."""
    cluster = drain_input.cluster
    found = of_settings(scheduler)
    found += unread_quotas(cluster, (), replaces_pods=True)
    has_storage = any(volume.empty_dir or volume.host_path for pod in cluster.pods for volume in pod.spec.volumes)
    if not drain_input.is_live and cluster.taken_at is not None and cluster.pods and not has_storage:
        # Every cluster has local storage; dumps of older versions of kpreempt do not record it.
        is_allowed = drain_input.options.delete_empty_dir_data
        kind = AssumptionKind.INFORMATIONAL if is_allowed else AssumptionKind.UNCERTAIN
        message = "the snapshot shows no pod with local storage; dumps of older kpreempt versions lack it"
        found.append(Assumption("Pod", "spec.volumes", message, kind))
    names = {name for batch in drain_input.batches for name in batch.nodes}
    message = "its kubelet does not respond, so evicted pods may never terminate"
    found += [
        Assumption(f"Node {node.name}", "status.conditions", message, AssumptionKind.UNCERTAIN)
        for node in cluster.nodes
        if node.name in names and any(each.type == "Ready" and each.status != "True" for each in node.status.conditions)
    ]
    return [*found, *of_queue(scheduler.algorithm)]


def _of_owners(cluster: ClusterSnapshot, moved: Collection[str]) -> list[Assumption]:
    """The assumption that pods are recreated whose owner is missing in the snapshot."""
    existing = {
        kind: {(each.metadata.namespace, each.metadata.name) for each in objects}
        for kind, objects in (
            ("ReplicaSet", cluster.replica_sets),
            ("StatefulSet", cluster.stateful_sets),
            ("ReplicationController", cluster.replication_controllers),
            ("Job", cluster.jobs),
        )
        if objects
    }
    found = []
    for pod in cluster.pods:
        owner = controller_of(pod.metadata) if pod.key in moved else None
        if owner is None or owner.kind not in existing:
            continue
        if (pod.metadata.namespace, owner.name) not in existing[owner.kind]:
            message = (
                f"{owner.kind} {owner.name} is not in the snapshot; if it no longer exists, the pod is not recreated"
            )
            found.append(Assumption(f"Pod {pod.key}", "metadata.ownerReferences", message, AssumptionKind.UNCERTAIN))
    return [*found, *_of_kueue(cluster, moved)]


def _of_kueue(cluster: ClusterSnapshot, moved: Collection[str]) -> list[Assumption]:
    """The assumption that Kueue does not evict the Workloads of moved pods."""
    pods = [each for each in cluster.pods if each.key in moved and any(map(each.metadata.labels.get, ADMITTED_LABELS))]
    if not pods:
        return []
    subject = f"{pods[0].key} is a pod" if len(pods) == 1 else f"{pods[0].key} and {len(pods) - 1} more are pods"
    message = (
        f"{subject} of Workloads admitted by Kueue: they keep their quota while their pods are recreated; "
        "the simulation does not evict a Workload whose pods are not ready in time (waitForPodsReady)"
    )
    return [Assumption("Workloads", "status.admission", message, AssumptionKind.INFORMATIONAL)]


def _with_remedies(finding: GateFinding, helping: DrainRemedies) -> GateFinding:
    """The finding with what helps, or what is known about that."""
    key = (finding.rule, finding.subject)
    if finding.rule is not RuleId.DRAIN_INCOMPLETE and key not in helping.of_findings:
        return finding
    own = [each for each in helping.blocked if _subject(each) == finding.subject]
    remedies = helping.of_findings.get(key, helping.remedies)
    if finding.rule is RuleId.DRAIN_INCOMPLETE and not remedies:
        remedies = next((each.remedies for each in own if each.remedies), [])
    advice = next((each.advice for each in own if each.advice), _NOTHING_HELPS)
    return msgspec.structs.replace(finding, remedies=remedies, fix="" if remedies else advice)


def detail_of(blocked: BlockedEviction) -> str:
    """Why the pods cannot be evicted, in a few words."""
    requirement = f"it requires {blocked.desired_healthy:,} of {counted(blocked.expected_pods, 'pod')} to be healthy"
    reason = blocked.reason
    if reason is BlockReason.MULTIPLE_BUDGETS:
        return f"more than one budget selects the pod: {', '.join(blocked.budgets)}"
    if reason in (BlockReason.NEVER_ALLOWS, BlockReason.SINGLE_REPLICA):
        return f"{requirement}, so it never allows a disruption"
    if reason is BlockReason.PODS_PENDING:
        why = f": {blocked.pending_message}" if blocked.pending_message else ""
        return f"{requirement} and has {blocked.current_healthy:,}; {_pods(len(blocked.pending))} pending{why}"
    if reason is BlockReason.PODS_NOT_READY:
        return f"{requirement} and has {blocked.current_healthy:,}; {_pods(len(blocked.unready))} not ready"
    if reason is BlockReason.TOO_FEW_PODS:
        return f"{requirement} and has {blocked.current_healthy:,}"
    if reason is BlockReason.TIMED_OUT:
        return "evicted, but not terminated before the timeout"
    return (blocked.cause or blocked.message).rstrip(".")


def _pods(count: int) -> str:
    return "1 pod is" if count == 1 else f"{count:,} pods are"


def best_order(
    batches: Sequence[DrainBatch], simulate: Callable[[Sequence[DrainBatch]], SimulatedDrain], cluster: ClusterSnapshot
) -> tuple[Sequence[DrainBatch], DrainOrder]:
    """Find an order of the upgrade that displaces fewer pods; keeps the order of ``batches`` if none is better.

    The search is greedy: another order could displace even fewer. ``simulate`` runs the drain once. A step is only
    taken if every remaining node can be tried.
    """
    rest = [name for batch in batches for name in batch.nodes]
    as_given = simulate(batches)
    found: list[str] = []
    minimum_cost = _PREPARATION_COST * (len(cluster.nodes) + len(cluster.pods))
    each_node = as_given.decisions * len(cluster.nodes) // len(rest)
    trials, spent = 0, 0
    while len(rest) > 1:
        # Each step simulates one more node.
        step = len(rest) * (minimum_cost + each_node * (len(found) + 1))
        if trials + len(rest) > _MAX_TRIALS or spent + step > _MAX_DECISIONS:
            break
        trials, spent = trials + len(rest), spent + step
        costs = [_cost(simulate(in_order(batches, [*found, name]))) for name in rest]
        found.append(rest.pop(costs.index(min(costs))))
    unsearched = len(rest) if len(rest) > 1 else 0
    best = in_order(batches, [*found, *rest])
    chosen = simulate(best)
    if _cost(chosen) >= _cost(as_given):
        best, chosen = list(batches), as_given
    return best, DrainOrder(
        nodes=[name for batch in best for name in batch.nodes],
        displaced=len(chosen.simulation.displaced),
        displaced_in_given_order=len(as_given.simulation.displaced),
        unsearched=unsearched,
    )


def _cost(drain: SimulatedDrain) -> tuple[int, int, int]:
    """Nodes that are not drained, pods left pending, and displaced pods; lower is better."""
    undrained = sum(not each.drained for each in drain.works)
    pending = sum(not each.pending_before for each in drain.simulation.pending)
    return undrained, pending, len(drain.simulation.displaced)


def removals(
    cluster: ClusterSnapshot, nodes: Sequence[str], drain: Callable[[Sequence[str]], SimulatedDrain]
) -> tuple[list[NodeRemoval], list[str]]:
    """The result for each of ``nodes``, and those that can be removed together, in the order of the search.

    Nodes with the fewest pods to move are tried first, in addition to those already found. The search is greedy:
    another choice could remove more nodes.
    """
    by_node = pods_by_node(cluster.pods, nodes)
    blocking = {name: [each for pod in pods for each in _blocking_pods(pod, cluster)] for name, pods in by_node.items()}
    order = sorted(
        (name for name in nodes if not blocking[name]), key=lambda name: (sum(map(_moves, by_node[name])), name)
    )
    removed: list[str] = []
    found = {name: NodeRemoval(node=name, blocking_pods=own) for name, own in blocking.items() if own}
    trials, spent = 0, 0
    for name in order:
        if trials == _MAX_REMOVALS or spent > _MAX_REMOVAL_DECISIONS:
            found[name] = NodeRemoval(node=name, blocker=RemovalBlocker.NOT_TRIED)
            continue
        trials += 1
        simulated = drain([*removed, name])
        spent += max(simulated.decisions, 1) * len(cluster.nodes)
        found[name] = _removal(name, simulated, sum(map(_moves, by_node[name])))
        if found[name].is_removable:
            removed.append(name)
    return [found[name] for name in nodes], removed


def _removal(node: str, drain: SimulatedDrain, moved: int) -> NodeRemoval:
    """Whether the node can be removed, by the simulation of its drain."""
    simulation = drain.simulation
    blocked = blocked_evictions(drain)
    pending = [each.pod for each in simulation.pending if not each.pending_before]
    preempted = [each.pod for each in simulation.displaced if not each.drained]
    violated = [each.budget for each in simulation.budgets if each.violations]
    pods, budgets = list[str](), list[str]()
    if not drain.is_drained:
        why: RemovalBlocker | None = RemovalBlocker.BLOCKED
        pods = [pod for each in blocked for pod in each.pods]
        budgets = list(dict.fromkeys(budget for each in blocked for budget in each.budgets))
    elif pending:
        why, pods = RemovalBlocker.PENDING, pending
    elif preempted:
        why, pods = RemovalBlocker.PREEMPTS, preempted
    else:
        why, budgets = (RemovalBlocker.BUDGETS, violated) if violated else (None, [])
    return NodeRemoval(node=node, is_removable=why is None, blocker=why, pods=pods, budgets=budgets, moved=moved)


def _moves(pod: Pod) -> bool:
    """Whether the pod must be rescheduled."""
    owner = controller_of(pod.metadata)
    is_of_node = owner is not None and owner.kind in ("DaemonSet", "Node")
    return not (pod.is_terminal or pod.is_mirror or is_of_node)


def _blocking_pods(pod: Pod, cluster: ClusterSnapshot) -> Iterator[BlockingPod]:
    """The rules because of which an autoscaler keeps the pod's node."""
    annotations = pod.metadata.annotations
    # Karpenter's rule includes static pods and those of DaemonSets, but not terminating pods.
    if pod.is_active and annotations is not None and annotations.do_not_disrupt == "true":
        yield BlockingPod(rule=AutoscalerRule.DO_NOT_DISRUPT, pod=pod.key)
    if not _moves(pod):
        return
    safe = annotations.safe_to_evict if annotations is not None else ""
    if safe == "false":
        yield BlockingPod(rule=AutoscalerRule.NOT_SAFE_TO_EVICT, pod=pod.key)
    if safe in ("true", "false"):
        return
    if not is_replaced(pod):
        yield BlockingPod(rule=AutoscalerRule.NO_CONTROLLER, pod=pod.key)
    elif pod.metadata.namespace == "kube-system" and not budgets_selecting(cluster, pod):
        yield BlockingPod(rule=AutoscalerRule.SYSTEM_POD, pod=pod.key)
    elif _has_local_storage(pod):
        yield BlockingPod(rule=AutoscalerRule.LOCAL_STORAGE, pod=pod.key)


def _has_local_storage(pod: Pod) -> bool:
    annotations = pod.metadata.annotations
    safe_volumes = annotations.safe_local_volumes.split(",") if annotations is not None else []
    local = (
        volume.name
        for volume in pod.spec.volumes
        if volume.host_path is not None or (volume.empty_dir is not None and volume.empty_dir.medium != _IN_MEMORY)
    )
    return any(name not in safe_volumes for name in local)
