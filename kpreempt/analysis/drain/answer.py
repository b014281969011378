"""Whether nodes can be drained: it is simulated, rules are put to what happens, and what would help is tried.

Upgrades may ask for the order that displaces least: at each step the node whose drain displaces the fewest pods.

Asked which nodes can go, it finds those that autoscalers would remove: no pod is left pending, no other pod is evicted,
no budget is violated. Which pods may be moved follows Cluster Autoscaler with its default flags
(``cluster-autoscaler/simulator/drainability/rules``, ``utils/drain/drain.go``, and its FAQ, "What types of pods can
prevent CA from removing a node?") and Karpenter 1.8 of ``karpenter.sh/do-not-disrupt``
(``pkg/controllers/state/statenode.go``, ``pkg/utils/pod/scheduling.go``). Their other reasons to keep a node, such as
its utilization, its group's least size or its price, are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from kpreempt.analysis.algorithms import Scheduler, pods_by_node
from kpreempt.analysis.check.gate import Facts, GateRules, StaticFinding, Suppressions
from kpreempt.analysis.check.report import facts_of, judge, not_all, of_queue, of_settings, summed_up
from kpreempt.analysis.check.simulations import SimulationContext, Simulations
from kpreempt.analysis.check.unread import unread_quotas
from kpreempt.analysis.drain.kubectl import DrainBatch, DrainRuns, SimulatedDrain, in_order, plain_drain
from kpreempt.analysis.drain.unblock import Way, blocked_evictions, budgets_selecting, with_remedies
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
    DrainRemedy,
    DrainRemedyAction,
    NodeRemoval,
    RemovalBlocker,
)
from kpreempt.verdict.unread import unreadable_of

_BUDGET = "PodDisruptionBudget"
_OPTIONS = {
    "--ignore-daemonsets": "ignore_daemon_sets",
    "--delete-emptydir-data": "delete_empty_dir_data",
    "--force": "force",
}
# So many drains at most are simulated, and so many decisions times nodes they may come to. To prepare a simulation
# takes as long as so many for each node and pod.
_MOST_TRIALS = 200
_MOST_DECISIONS = 1_500_000
_TO_PREPARE = 2
# So many nodes at most are tried, and so many decisions times nodes the trials may come to.
_MOST_REMOVALS = 60
_MOST_REMOVAL_DECISIONS = 3_000_000
_IN_MEMORY = "Memory"


class DrainQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: the nodes by shifts, the command, and the rules.

    Where it ``removes``, it is asked which of the nodes can go, and those are drained. Where it ``seeks_order``, the
    shifts are those of an upgrade, whose nodes go in the order that was found to displace least.
    ``told`` is the command as a user would write it. ``runs`` and ``worst_of`` are as of a check's question, as are
    ``assumptions`` and ``is_live``.
    """

    cluster: ClusterSnapshot
    shifts: Sequence[DrainBatch]
    options: DrainOptions
    told: str
    rules: GateRules
    suppressions: Suppressions
    seed: int = 0
    runs: int | None = None
    worst_of: int = 0
    assumptions: Sequence[Assumption] = ()
    is_live: bool = False
    removes: bool = False
    seeks_order: bool = False


def drain_nodes(question: DrainQuestion, context: SimulationContext) -> Drain:
    """The answer."""
    cluster, scheduler, at = question.cluster, context.scheduler, context.at
    daemon_sets, lacking = _daemon_sets(cluster)

    def runs(
        of: ClusterSnapshot, shifts: Sequence[DrainBatch], options: DrainOptions, arriving: Sequence[Pod] = ()
    ) -> Simulations[SimulatedDrain]:
        play = DrainRuns(of, shifts, options, daemon_sets, context, arriving)
        going = {node for shift in shifts for node in shift.nodes}
        decisions = sum(pod.spec.node_name in going for pod in of.pods) * len(of.nodes)
        return Simulations(play, context, decisions=decisions, cluster=of)

    shifts, can_go = question.shifts, list[NodeRemoval]()
    if question.removes:
        nodes, going = removals(
            cluster,
            [name for shift in question.shifts for name in shift.nodes],
            lambda nodes: runs(cluster, plain_drain(nodes), question.options).by_chance(question.seed),
        )
        can_go, shifts = nodes, plain_drain(going)
    order: DrainOrder | None = None
    if question.seeks_order:
        shifts, order = best_order(
            shifts,
            lambda tried: runs(cluster, tried, question.options).by_chance(question.seed),
            cluster,
        )

    def again(of: ClusterSnapshot, arriving: Sequence[Pod], option: str) -> SimulatedDrain:
        options = question.options
        if option:
            options = msgspec.structs.replace(options, **{_OPTIONS[option]: True})
        return runs(of, shifts, options, arriving).by_chance(question.seed)

    summary = summed_up(cluster, context.now)
    general = [*question.assumptions, *lacking, *_until_done(question, scheduler)]
    drains = runs(cluster, shifts, question.options)
    simulated, is_all = drains.run_requested(question.seed, question.runs, question.worst_of)
    more = [] if is_all or not question.worst_of else [not_all(len(simulated))]
    changes = [
        Change(object=f"Node {each.node}", kind=ChangeKind.DRAINED, replicas_before=len(each.remaining) + each.evicted)
        for each in simulated[0].works
    ]

    def facts(each: SimulatedDrain) -> Facts:
        moved = {victim.pod for victim in each.simulation.displaced if victim.drained}
        assumptions = [*general, *each.assumptions, *_of_owners(cluster, moved), *more]
        found = facts_of(each, assumptions, snapshot_age=summary.age_seconds, is_live=question.is_live)
        return msgspec.structs.replace(found, objections=_objections(each))

    coming = [node.name for shift in shifts for added in (*shift.coming, *shift.fresh) for node in added.nodes]
    judgement = judge(simulated, is_all, changes, facts, question.rules, question.suppressions)
    shown = judgement.shown
    blocked, untried = with_remedies(blocked_evictions(shown), cluster, shown, Way(again, at, coming))
    findings = [_with_fix(each, blocked) for each in judgement.fields["findings"]]
    assumed = (assumption for each in (shown, *simulated) for assumption in each.assumptions)
    displaced = shown.simulation.displaced
    moved = {each.pod for each in displaced if each.drained}
    finishes = all(each.is_drained for each in simulated)
    return Drain(
        **{**judgement.fields, "findings": findings},
        algorithm=scheduler.algorithm,
        cluster=summary,
        at=at,
        changes=changes,
        command=question.told,
        finishes=finishes,
        moved=sum(each.drained for each in displaced),
        preempted=sum(not each.drained for each in displaced),
        pending_after=sum(each.was_running for each in shown.simulation.pending),
        min_seconds=min(max((work.ended or 0.0 for work in each.works), default=0.0) for each in simulated)
        if finishes
        else None,
        drained=list(shown.works),
        blocked=blocked,
        pods_losing_data=[
            pod.key for pod in cluster.pods if pod.key in moved and pod.has_empty_dir and not pod.is_terminal
        ],
        untried=untried,
        removals=can_go,
        order=order,
        assumptions=list(dict.fromkeys([*general, *assumed, *_of_owners(cluster, moved), *more])),
    )


def _objections(drain: SimulatedDrain) -> list[StaticFinding]:
    """What is blocked, each budget once: the nodes after the first one are not told of."""
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
    """Those that there are; where they are not known, every one that a pod names is taken to be."""
    there = {(each.metadata.namespace, each.metadata.name) for each in cluster.daemon_sets}
    named = {
        (pod.metadata.namespace, owner.name)
        for pod in cluster.pods
        if (owner := controller_of(pod.metadata)) is not None and owner.kind == "DaemonSet"
    }
    if there or not named:
        return there, []
    unread = unreadable_of(cluster, ["DaemonSet"])
    message = "there is none in the snapshot: those that pods name are taken to be there"
    return named, unread or [Assumption("DaemonSet", "", message, AssumptionKind.INFORMATIONAL)]


def _until_done(question: DrainQuestion, scheduler: Scheduler) -> list[Assumption]:
    """What is assumed because of what the snapshot shows, and how it is simulated."""
    cluster = question.cluster
    found = of_settings(scheduler)
    found += unread_quotas(cluster, (), replaces_pods=True)
    has_storage = any(volume.empty_dir or volume.host_path for pod in cluster.pods for volume in pod.spec.volumes)
    if not question.is_live and cluster.taken_at is not None and cluster.pods and not has_storage:
        # Every cluster has some; dumps of former versions say of none.
        is_allowed = question.options.delete_empty_dir_data
        kind = AssumptionKind.INFORMATIONAL if is_allowed else AssumptionKind.UNCERTAIN
        message = "the snapshot shows local storage of no pod: taken by an older kpreempt, it would not"
        found.append(Assumption("Pod", "spec.volumes", message, kind))
    names = {name for shift in question.shifts for name in shift.nodes}
    message = "its kubelet does not answer: whether a pod that is told to go ever stops is not known"
    found += [
        Assumption(f"Node {node.name}", "status.conditions", message, AssumptionKind.UNCERTAIN)
        for node in cluster.nodes
        if node.name in names and any(each.type == "Ready" and each.status != "True" for each in node.status.conditions)
    ]
    return [*found, *of_queue(scheduler.algorithm)]


def _of_owners(cluster: ClusterSnapshot, moved: Collection[str]) -> list[Assumption]:
    """That something makes the pods again whose owner is not among those of its kind that are in the snapshot."""
    there = {
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
        if owner is None or owner.kind not in there:
            continue
        if (pod.metadata.namespace, owner.name) not in there[owner.kind]:
            message = f"{owner.kind} {owner.name} is not in the snapshot: if it is gone, nothing makes the pod again"
            found.append(Assumption(f"Pod {pod.key}", "metadata.ownerReferences", message, AssumptionKind.UNCERTAIN))
    return [*found, *_of_kueue(cluster, moved)]


def _of_kueue(cluster: ClusterSnapshot, moved: Collection[str]) -> list[Assumption]:
    """That Kueue leaves the Workloads alone of which pods are moved."""
    pods = [each for each in cluster.pods if each.key in moved and any(map(each.metadata.labels.get, ADMITTED_LABELS))]
    if not pods:
        return []
    who = f"{pods[0].key} is a pod" if len(pods) == 1 else f"{pods[0].key} and {len(pods) - 1} more are pods"
    message = (
        f"{who} of Workloads that Kueue has admitted: they keep their quota while their pods are made again, which is "
        "simulated; that Kueue evicts a whole Workload whose pods are not ready again in time (waitForPodsReady) is not"
    )
    return [Assumption("Workloads", "status.admission", message, AssumptionKind.INFORMATIONAL)]


def _with_fix(finding: GateFinding, blocked: Sequence[BlockedEviction]) -> GateFinding:
    """The finding with the change that was proved to help."""
    if finding.rule is not RuleId.DRAIN_INCOMPLETE:
        return finding
    own = (each for each in blocked if _subject(each) == finding.subject and each.remedies)
    fixes = [fix_of(remedy) for each in own for remedy in each.remedies]
    return msgspec.structs.replace(finding, fix=fixes[0]) if fixes else finding


def detail_of(blocked: BlockedEviction) -> str:
    """Why they stay, in a few words."""
    wants = f"it wants {blocked.desired_healthy:,} healthy of {blocked.expected_pods:,}"
    reason = blocked.reason
    if reason is BlockReason.MULTIPLE_BUDGETS:
        return f"more than one budget selects the pod: {', '.join(blocked.budgets)}"
    if reason in (BlockReason.NEVER_ALLOWS, BlockReason.SINGLE_REPLICA):
        return f"{wants}, so that it never allows a disruption"
    if reason is BlockReason.PODS_PENDING:
        why = f": {blocked.pending_message}" if blocked.pending_message else ""
        return f"{wants} and has {blocked.current_healthy:,}; {_pods(len(blocked.pending))} pending{why}"
    if reason is BlockReason.PODS_NOT_READY:
        return f"{wants} and has {blocked.current_healthy:,}; {_pods(len(blocked.unready))} not ready"
    if reason is BlockReason.TOO_FEW_PODS:
        return f"{wants} and has {blocked.current_healthy:,}"
    if reason is BlockReason.TIMED_OUT:
        return "told to go, and still there when the time was over"
    return (blocked.cause or blocked.message).rstrip(".")


def fix_of(unblock: DrainRemedy) -> str:
    """The change as an instruction."""
    target, value = unblock.target, unblock.value
    if unblock.action is DrainRemedyAction.SET:
        return f"Set {unblock.field}: {value} on {target}."
    if unblock.action is DrainRemedyAction.SCALE:
        return f"Scale {target} to {value} replicas first."
    if unblock.action is DrainRemedyAction.DELETE:
        return f"Delete {target}."
    if unblock.action is DrainRemedyAction.ADD_NODE:
        return f"Add a node like {target.removeprefix('Node ')} first."
    return f"Give {target}."


def _pods(count: int) -> str:
    return "1 pod is" if count == 1 else f"{count:,} pods are"


def best_order(
    shifts: Sequence[DrainBatch], simulate: Callable[[Sequence[DrainBatch]], SimulatedDrain], cluster: ClusterSnapshot
) -> tuple[Sequence[DrainBatch], DrainOrder]:
    """The upgrade in the order that was found, which is that of ``shifts`` where none is better, and what it saves.

    This is greedy: another order might displace fewer. ``simulate`` plays one run of the cluster.
    A step is taken only where every node that is left can be tried.
    """
    rest = [name for shift in shifts for name in shift.nodes]
    given = simulate(shifts)
    found: list[str] = []
    least = _TO_PREPARE * (len(cluster.nodes) + len(cluster.pods))
    each_node = given.decisions * len(cluster.nodes) // len(rest)
    trials, spent = 0, 0
    while len(rest) > 1:
        # Every step simulates one node more.
        step = len(rest) * (least + each_node * (len(found) + 1))
        if trials + len(rest) > _MOST_TRIALS or spent + step > _MOST_DECISIONS:
            break
        trials, spent = trials + len(rest), spent + step
        costs = [_cost(simulate(in_order(shifts, [*found, name]))) for name in rest]
        found.append(rest.pop(costs.index(min(costs))))
    unsearched = len(rest) if len(rest) > 1 else 0
    best = in_order(shifts, [*found, *rest])
    chosen = simulate(best)
    if _cost(chosen) >= _cost(given):
        best, chosen = list(shifts), given
    return best, DrainOrder(
        nodes=[name for shift in best for name in shift.nodes],
        displaced=len(chosen.simulation.displaced),
        displaced_in_given_order=len(given.simulation.displaced),
        unsearched=unsearched,
    )


def _cost(drain: SimulatedDrain) -> tuple[int, int, int]:
    """Nodes that do not get empty, pods that are left pending, and pods that are displaced: the fewer, the better."""
    stay = sum(not each.drained for each in drain.works)
    pending = sum(not each.pending_before for each in drain.simulation.pending)
    return stay, pending, len(drain.simulation.displaced)


def removals(
    cluster: ClusterSnapshot, nodes: Sequence[str], drain: Callable[[Sequence[str]], SimulatedDrain]
) -> tuple[list[NodeRemoval], list[str]]:
    """What there is to say of each of ``nodes``, and which can go together, in the order in which they were found.

    Those with the fewest pods to move are tried first, each beside those that go already. This is greedy: another
    choice might let more of them go.
    """
    by_node = pods_by_node(cluster.pods, nodes)
    keeps = {name: [each for pod in pods for each in _keeps(pod, cluster)] for name, pods in by_node.items()}
    order = sorted(
        (name for name in nodes if not keeps[name]), key=lambda name: (sum(map(_moves, by_node[name])), name)
    )
    going: list[str] = []
    found = {name: NodeRemoval(node=name, blocking_pods=own) for name, own in keeps.items() if own}
    trials, spent = 0, 0
    for name in order:
        if trials == _MOST_REMOVALS or spent > _MOST_REMOVAL_DECISIONS:
            found[name] = NodeRemoval(node=name, blocker=RemovalBlocker.NOT_TRIED)
            continue
        trials += 1
        simulated = drain([*going, name])
        spent += max(simulated.decisions, 1) * len(cluster.nodes)
        simulation = simulated.simulation
        if not simulated.is_drained:
            why: RemovalBlocker | None = RemovalBlocker.BLOCKED
        elif any(not each.pending_before for each in simulation.pending):
            why = RemovalBlocker.PENDING
        elif any(not each.drained for each in simulation.displaced):
            why = RemovalBlocker.PREEMPTS
        else:
            why = RemovalBlocker.BUDGETS if any(each.violations for each in simulation.budgets) else None
        found[name] = NodeRemoval(
            node=name, is_removable=why is None, blocker=why, moved=sum(map(_moves, by_node[name]))
        )
        if why is None:
            going.append(name)
    return [found[name] for name in nodes], going


def _moves(pod: Pod) -> bool:
    """Whether the pod has to go somewhere else."""
    owner = controller_of(pod.metadata)
    is_of_node = owner is not None and owner.kind in ("DaemonSet", "Node")
    return not (pod.is_terminal or pod.is_mirror or is_of_node)


def _keeps(pod: Pod, cluster: ClusterSnapshot) -> Iterator[BlockingPod]:
    """The rules by which an autoscaler leaves the pod's node."""
    annotations = pod.metadata.annotations
    # Of Karpenter's rule static pods and those of DaemonSets are no exception, but pods that are leaving are.
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
    named = annotations.safe_local_volumes.split(",") if annotations is not None else []
    local = (
        volume.name
        for volume in pod.spec.volumes
        if volume.host_path is not None or (volume.empty_dir is not None and volume.empty_dir.medium != _IN_MEMORY)
    )
    return any(name not in named for name in local)
