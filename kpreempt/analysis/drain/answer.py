"""Whether nodes can be drained: it is simulated, rules are put to what happens, and what would help is tried."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.check.assumed import of_queue, of_settings, summed_up
from kpreempt.analysis.check.gate import Excuses, Facts, GateRules, Objection
from kpreempt.analysis.check.report import facts_of, judge, not_all
from kpreempt.analysis.check.simulations import Simulations
from kpreempt.analysis.check.unread import unread_quotas
from kpreempt.analysis.drain.best_order import best_order
from kpreempt.analysis.drain.blocked import blocked_evictions
from kpreempt.analysis.drain.details import detail_of, fix_of
from kpreempt.analysis.drain.kubectl import Shift
from kpreempt.analysis.drain.removal import removals
from kpreempt.analysis.drain.runs import DrainRuns, SimulatedDrain
from kpreempt.analysis.drain.shifts import plain_drain
from kpreempt.analysis.drain.unblock import Way, with_remedies
from kpreempt.analysis.pending.verdicts import Spread, one_by_one
from kpreempt.analysis.simulation.outcomes import Choose
from kpreempt.analysis.simulation.pace import AT_ONCE, Pace
from kpreempt.eviction.kubectl_drain import DrainCommand
from kpreempt.gate_rules import RuleId
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import ADMITTED_LABELS
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.check import Change, ChangeKind, GateFinding
from kpreempt.verdict.drain import BlockedEviction, Drain, DrainOrder, NodeRemoval
from kpreempt.verdict.unread import unreadable_of

_BUDGET = "PodDisruptionBudget"
_OPTIONS = {
    "--ignore-daemonsets": "ignore_daemon_sets",
    "--delete-emptydir-data": "delete_empty_dir_data",
    "--force": "force",
}


class DrainQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: the nodes by shifts, the command, and the rules.

    Where it ``removes``, it is asked which of the nodes can go, and those are drained. Where it ``seeks_order``, the
    shifts are those of an upgrade, whose nodes go in the order that was found to displace least.
    ``told`` is the command as a user would write it. ``runs`` and ``worst_of`` are as of a check's question, as are
    ``assumptions`` and ``is_live``.
    """

    cluster: ClusterSnapshot
    shifts: Sequence[Shift]
    command: DrainCommand
    told: str
    rules: GateRules
    excuses: Excuses
    seed: int = 0
    runs: int | None = None
    worst_of: int = 0
    assumptions: Sequence[Assumption] = ()
    is_live: bool = False
    removes: bool = False
    seeks_order: bool = False


def drain_nodes(
    question: DrainQuestion,
    scheduler: Scheduler,
    *,
    now: datetime,
    at: datetime,
    chances: Callable[[int], Choose],
    paces: Callable[[int], Pace] = lambda _: AT_ONCE,
    spread: Spread = one_by_one,
    phases: Phases = NO_PHASES,
) -> Drain:
    """The answer; ``at`` is the time of the snapshot, whose age counts to ``now``."""
    cluster = question.cluster
    daemon_sets, lacking = _daemon_sets(cluster)

    def runs(
        of: ClusterSnapshot, shifts: Sequence[Shift], command: DrainCommand, arriving: Sequence[Pod] = ()
    ) -> Simulations[SimulatedDrain]:
        play = DrainRuns(of, shifts, command, daemon_sets, scheduler, now=at, arriving=arriving, phases=phases)
        going = {node for shift in shifts for node in shift.nodes}
        decisions = sum(pod.spec.node_name in going for pod in of.pods) * len(of.nodes)
        return Simulations(play, chances=chances, paces=paces, decisions=decisions, cluster=of)

    shifts, can_go = question.shifts, list[NodeRemoval]()
    if question.removes:
        found = removals(
            cluster,
            [name for shift in question.shifts for name in shift.nodes],
            lambda nodes: runs(cluster, plain_drain(nodes), question.command).by_chance(question.seed),
        )
        can_go, shifts = found.nodes, plain_drain(found.going)
    order: DrainOrder | None = None
    if question.seeks_order:
        shifts, order = best_order(
            shifts,
            lambda tried: runs(cluster, tried, question.command).by_chance(question.seed),
            cluster,
        )

    def again(of: ClusterSnapshot, arriving: Sequence[Pod], option: str) -> SimulatedDrain:
        command = question.command
        if option:
            options = msgspec.structs.replace(command.options, **{_OPTIONS[option]: True})
            command = msgspec.structs.replace(command, options=options)
        return runs(of, shifts, command, arriving).by_chance(question.seed)

    summary = summed_up(cluster, now)
    general = [*question.assumptions, *lacking, *_of_the_way(question, scheduler)]
    drains = runs(cluster, shifts, question.command)
    simulated, is_all = drains.asked_for(question.seed, question.runs, question.worst_of, spread)
    more = [] if is_all or not question.worst_of else [not_all(len(simulated))]
    changes = [_change(each.node, each.left, each.evicted) for each in simulated[0].works]

    def facts(each: SimulatedDrain) -> Facts:
        moved = {victim.pod for victim in each.simulation.displaced if victim.drained}
        assumptions = [*general, *each.assumptions, *_of_owners(cluster, moved), *more]
        found = facts_of(each, assumptions, snapshot_age=summary.age_seconds, is_live=question.is_live)
        return msgspec.structs.replace(found, objections=_objections(each))

    coming = [node.name for shift in shifts for added in (*shift.coming, *shift.fresh) for node in added.nodes]
    judgement = judge(simulated, is_all, changes, facts, question.rules, question.excuses)
    shown = judgement.shown
    blocked, untried = with_remedies(blocked_evictions(shown), cluster, shown, Way(again, at, coming))
    findings = [_with_fix(each, blocked) for each in judgement.fields["findings"]]
    assumed = (assumption for each in (shown, *simulated) for assumption in each.assumptions)
    displaced = shown.simulation.displaced
    moved = {each.pod for each in displaced if each.drained}
    return Drain(
        **{**judgement.fields, "findings": findings},
        algorithm=scheduler.algorithm,
        cluster=summary,
        at=at,
        changes=changes,
        command=question.told,
        finishes=all(each.is_drained for each in simulated),
        moved=sum(each.drained for each in displaced),
        preempted=sum(not each.drained for each in displaced),
        left_pending=sum(each.was_running for each in shown.simulation.waiting),
        at_least=_at_least(simulated),
        drained=list(shown.works),
        blocked=blocked,
        deletes_data_of=_with_data(cluster, moved),
        untried=untried,
        removals=can_go,
        order=order,
        assumptions=list(dict.fromkeys([*general, *assumed, *_of_owners(cluster, moved), *more])),
    )


def _at_least(simulated: Sequence[SimulatedDrain]) -> float | None:
    """When the last node is empty, at the earliest; ``None`` where one never is in some run."""
    if not all(each.is_drained for each in simulated):
        return None
    return min(max((work.ended or 0.0 for work in each.works), default=0.0) for each in simulated)


def _change(node: str, left: Sequence[str], evicted: int) -> Change:
    return Change(object=f"Node {node}", kind=ChangeKind.DRAINED, replicas_before=len(left) + evicted)


def _objections(drain: SimulatedDrain) -> list[Objection]:
    """What is blocked, each budget once: the nodes after the first one are not told of."""
    found: dict[str, tuple[BlockedEviction, list[str]]] = {}
    for each in blocked_evictions(drain):
        found.setdefault(_subject(each), (each, []))[1].extend(each.pods)
    return [
        Objection(RuleId.DRAIN_BLOCKED, subject, detail_of(each), change=f"Node {each.node}", pods=tuple(pods))
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
    return named, unread or [Assumption("DaemonSet", "", message, AssumptionKind.TOLD)]


def _of_the_way(question: DrainQuestion, scheduler: Scheduler) -> list[Assumption]:
    """What is assumed because of what the snapshot shows, and how it is simulated."""
    cluster = question.cluster
    found = of_settings(scheduler)
    found += unread_quotas(cluster, (), replaces_pods=True)
    has_storage = any(volume.empty_dir or volume.host_path for pod in cluster.pods for volume in pod.spec.volumes)
    if not question.is_live and cluster.taken_at is not None and cluster.pods and not has_storage:
        # Every cluster has some; dumps of former versions say of none.
        is_allowed = question.command.options.delete_empty_dir_data
        kind = AssumptionKind.TOLD if is_allowed else AssumptionKind.UNCERTAIN
        message = "the snapshot shows local storage of no pod: taken by an older kpreempt, it would not"
        found.append(Assumption("Pod", "spec.volumes", message, kind))
    return [*found, *_of_nodes(question), *of_queue(scheduler.algorithm)]


def _of_nodes(question: DrainQuestion) -> list[Assumption]:
    """What is assumed of the nodes that are drained."""
    names = {name for shift in question.shifts for name in shift.nodes}
    message = "its kubelet does not answer: whether a pod that is told to go ever stops is not known"
    return [
        Assumption(f"Node {node.name}", "status.conditions", message, AssumptionKind.UNCERTAIN)
        for node in question.cluster.nodes
        if node.name in names and any(each.type == "Ready" and each.status != "True" for each in node.status.conditions)
    ]


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
    return [Assumption("Workloads", "status.admission", message, AssumptionKind.TOLD)]


def _with_data(cluster: ClusterSnapshot, moved: Collection[str]) -> list[str]:
    return [pod.key for pod in cluster.pods if pod.key in moved and pod.has_empty_dir and not pod.is_terminal]


def _with_fix(finding: GateFinding, blocked: Sequence[BlockedEviction]) -> GateFinding:
    """The finding with the change that was proved to help."""
    if finding.rule is not RuleId.DRAIN_BLOCKED:
        return finding
    own = (each for each in blocked if _subject(each) == finding.subject and each.remedies)
    fixes = [fix_of(remedy) for each in own for remedy in each.remedies]
    return msgspec.structs.replace(finding, fix=fixes[0]) if fixes else finding
