"""Remedies for a pod that is unschedulable, or that preempts other pods, each proven by verdicts or a simulation.

A pod should land without evictions. For each of the closest nodes, changes address every rejection by the node
(``candidates``); a verdict on the changed pod in the changed cluster proves them. If replicas of the pod wait, too,
they are placed one after another with the same change, which shows how many it helps. Changes that only help by
evictions, such as a higher priority, are proven by a simulation with the controllers: every victim must be replaced and
run at the end, and no PodDisruptionBudget may be violated.

Also: one more node of an existing kind. The filters on a new node show which kinds could take the pod; the smallest are
verified by a verdict on the cluster with that node. Whether an autoscaler would add one is not modeled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler, pending_pods
from kpreempt.analysis.explain.candidates import combinations_for, rejections_of
from kpreempt.analysis.explain.single_edits import (
    Edit,
    EditContext,
    allow_preemption,
    edit_cluster,
    edit_pod,
    first_reaching,
    just_above,
    raised,
    worth_trying,
)
from kpreempt.analysis.nodes.copies import (
    NewNodes,
    Sample,
    informational_assumptions,
)
from kpreempt.analysis.remedies.selection import selected
from kpreempt.errors import KpreemptError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_of
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.resources import pod_requests, requests_in_units
from kpreempt.verdict import Change, ChangeKind, NodeEvaluation, Outcome, Status, Verdict
from kpreempt.verdict.details import InsufficientResources
from kpreempt.verdict.remedies import Cause, ObjectEdit, Remedy, RemedySearch, RemedyStage

# On larger clusters, each verdict takes too long for more than the priority and a new node.
_MAX_NODES_SEARCHED = 3000
_MAX_NODES = 5000
_MAX_NODES_TRIED = 12
_MAX_PER_DETAIL = 3
_MAX_SAMPLED = 24
_MAX_REMEDIES = 6
_MAX_VERDICTS = 40
_MIN_VERDICTS = 8
_VERDICTS_TIMES_NODES = 10_000
_LIMIT_WITH_FAILING_EXTENDER = 4
# Up to this many nodes, several kinds of new nodes are verified.
_SMALL_CLUSTER = 200
_MAX_NEW_NODES = 8
# The maximum number of replicas times nodes to place for one remedy.
_MAX_PLACED = 20_000
_MAX_FIRST_REPLICAS = 10
# A pod is stuck if it should have terminated this many seconds ago.
_STUCK_AFTER = 60


class Situation(msgspec.Struct, frozen=True):
    """A pod in a prepared cluster, and the verdict on it."""

    cluster: ClusterSnapshot
    prepared: Any
    pod: Pod
    verdict: Verdict


class RemediesFound(msgspec.Struct, frozen=True):
    """Remedies in an expert's order, the extent of the search, and facts behind the rejections."""

    remedies: list[Remedy]
    search: RemedySearch
    causes: list[Cause]


def find_remedies(scheduler: Scheduler, situation: Situation, stated: int, *, now: datetime) -> RemediesFound:
    """The remedies for a pod that stays pending or preempts.

    ``stated`` is the number of tolerations in the pod's manifest. ``now`` is the snapshot's time.
    """
    causes: list[Cause] = []
    if situation.verdict.outcome.stays_pending:
        from kpreempt.analysis.explain.causes import causes_of  # noqa: PLC0415 - not for pods that preempt

        causes = causes_of(situation.cluster, situation.pod, situation.verdict)
    if failing := failing_extender(situation.verdict):
        return RemediesFound([], RemedySearch(reason="extender", extender=failing), causes)
    search = _Search(scheduler, situation, stated, now)
    found = [*search.ends_of_deadlock(), *search.of_terminating_pods(), *search.after_replicas()]
    causes[:0] = search.deadlocks
    if situation.verdict.outcome is Outcome.WAITS_FOR_VICTIMS:
        # The pod has a node as soon as its victims are gone.
        return RemediesFound(selected(found, _MAX_REMEDIES), search.extent, causes)
    is_small = len(situation.cluster.nodes) <= _MAX_NODES_SEARCHED
    if is_small:
        found += search.on_nodes(nearest_nodes(scheduler, situation))
    found += search.with_new_node()
    if situation.verdict.outcome.stays_pending:
        found += search.by_evictions()
    reason = "limit" if search.gave_up else "" if is_small else "size"
    extent = msgspec.structs.replace(search.extent, reason=reason)
    return RemediesFound(selected(found, _MAX_REMEDIES), extent, causes)


def failing_extender(verdict: Verdict) -> str:
    """The extender whose filter call failed, so that no node passes."""
    calls = [call for call in verdict.extender_calls if call.error and not call.ignored and call.verb == "filter"]
    return calls[-1].extender if calls and verdict.outcome.stays_pending else ""


def limit_of(situation: Situation) -> int:
    """The limit of verdicts in a search, which is lower if each takes longer.

    Extenders are called again for each verdict. If one fails, each call may take until its timeout.
    """
    if any(call.error for call in situation.verdict.extender_calls):
        return _LIMIT_WITH_FAILING_EXTENDER
    return min(_MAX_VERDICTS, max(_MIN_VERDICTS, _VERDICTS_TIMES_NODES // max(len(situation.cluster.nodes), 1)))


def nearest_nodes(scheduler: Scheduler, situation: Situation) -> dict[str, NodeEvaluation]:
    """What the filters say about each of the nodes with the fewest rejections, then those that lack the least.

    The nearest is first. There are a few nodes for each kind of rejection.
    """
    ranked = []
    for order, name in enumerate(_sample(situation.verdict)):
        evaluation = scheduler.describe_node(situation.prepared, situation.pod, name)
        rejections = rejections_of(evaluation)
        ranked.append((len(rejections), sum(map(_distance, rejections)), order, name, evaluation))
    return {name: evaluation for *_, name, evaluation in sorted(ranked)[:_MAX_NODES_TRIED]}


def _sample(verdict: Verdict) -> list[str]:
    """For each kind of rejection, the few nodes that lack the least: first those with different details."""
    kinds: dict[tuple[str, str], dict[str, list[tuple[float, str]]]] = {}
    for name, status in verdict.filter.items():
        nodes_by_detail = kinds.setdefault((status.plugin, status.message), {})
        nodes_by_detail.setdefault(repr(status.detail), []).append((_distance(status), name))
    # The number of nodes before this one with the same detail, and of details before its own, in each kind.
    picked = [
        (same, order, distance, name)
        for nodes_by_detail in kinds.values()
        for order, own in enumerate(sorted(nodes_by_detail.values()))
        for same, (distance, name) in enumerate(own[:_MAX_PER_DETAIL])
    ]
    return [name for *_, name in sorted(picked)[:_MAX_SAMPLED]]


def _distance(status: Status) -> float:
    """The largest missing share of a request; 1 if the rejection is not about amounts."""
    detail = status.detail
    if not isinstance(detail, InsufficientResources) or not detail.shortfalls:
        return 1.0
    return max(each.missing_share for each in detail.shortfalls)


def is_certain(verdict: Verdict) -> bool:
    """Whether the outcome does not depend on the order of equal volumes."""
    return verdict.volume_choices is None or not verdict.volume_choices.uncertain


def destinations(verdict: Verdict) -> list[str]:
    """The nodes (several if they tie) on which the pod ends up, now or after evictions."""
    return verdict.nominated_nodes or verdict.lands_on or verdict.chosen_nodes


class _Search:
    """Proves candidates, and counts verdicts."""

    def __init__(self, scheduler: Scheduler, situation: Situation, stated: int, now: datetime) -> None:
        self._scheduler, self._situation, self._stated, self._now = scheduler, situation, stated, now
        self._limit = limit_of(situation)
        self._tried: set[tuple[str, ...]] = set()
        self._replicas = _waiting_replicas(situation.cluster, situation.pod)
        self.deadlocks: list[Cause] = []
        self.gave_up = False
        self.extent = RemedySearch()

    def _has_budget(self) -> bool:
        self.gave_up = self.gave_up or self.extent.tried >= self._limit
        return not self.gave_up

    def _decide(self, prepared: Any, pod: Pod) -> Verdict:
        verdict = self._scheduler.decide(prepared, pod, records_steps=False)
        calls = self.extent.extender_calls + len(verdict.extender_calls)
        self.extent = msgspec.structs.replace(self.extent, tried=self.extent.tried + 1, extender_calls=calls)
        return verdict

    def _prepare(self, cluster: ClusterSnapshot) -> Any:
        situation = self._situation
        if cluster is situation.cluster:
            return situation.prepared
        return self._scheduler.prepare(cluster, now=self._now, before=situation.prepared)

    def ends_of_deadlock(self) -> Iterator[Remedy]:
        """The rollout strategies that end a deadlock."""
        cluster, pod = self._situation.cluster, self._situation.pod
        nodes: list[str] = []

        def lands_without(old: Sequence[Pod]) -> bool:
            leaving = {each.key for each in old}
            rest = msgspec.structs.replace(cluster, pods=[each for each in cluster.pods if each.key not in leaving])
            verdict = self._decide(self._prepare(rest), pod)
            nodes[:] = destinations(verdict)
            return verdict.outcome is Outcome.LANDS and is_certain(verdict)

        owner = controller_of(pod.metadata)
        if owner is None or owner.kind != "ReplicaSet" or not self._situation.verdict.outcome.stays_pending:
            return
        from kpreempt.analysis.remedies.deadlock import cause_of, deadlock_of, strategies  # noqa: PLC0415

        deadlock = deadlock_of(pod, cluster, lands_without)
        if deadlock is None:
            return
        self.deadlocks.append(cause_of(deadlock, self._situation.verdict))
        for candidate in strategies(deadlock):
            yield candidate.remedy(nodes=list(nodes), stops=[each.key for each in deadlock.old])

    def of_terminating_pods(self) -> Iterator[Remedy]:
        """Wait for terminating pods, or release those that should have terminated long ago.

        A pod with finalizers remains until they are removed, even when its containers have ended.
        """
        cluster = self._situation.cluster
        if not self._situation.verdict.outcome.stays_pending:
            return
        leaving: dict[str, list[Pod]] = {}
        for pod in cluster.pods:
            if pod.metadata.deletion_timestamp is not None and pod.spec.node_name and not pod.is_terminal:
                leaving.setdefault(pod.spec.node_name, []).append(pod)
        for node, pods in leaving.items():
            ends = max(((pod.metadata.deletion_timestamp or self._now) - self._now).total_seconds() for pod in pods)
            stuck = [pod for pod in pods if pod.metadata.finalizers]
            if (ends <= -_STUCK_AFTER and not stuck) or not self._has_budget():
                continue
            keys = {pod.key for pod in pods}
            rest = msgspec.structs.replace(cluster, pods=[each for each in cluster.pods if each.key not in keys])
            prepared = self._prepare(rest)
            verdict = self._decide(prepared, self._situation.pod)
            if verdict.outcome is not Outcome.LANDS or not is_certain(verdict) or node not in destinations(verdict):
                continue
            if ends > -_STUCK_AFTER and not stuck:
                edit = Edit(stage=RemedyStage.REPAIR, changes=[Change(ChangeKind.WAIT, subject=each) for each in keys])
                yield remedy_of([edit], 0, nodes=[node], clears_after=max(int(ends), 0), scheduled=1, pods=1)
            elif ends <= -_STUCK_AFTER:
                objects = [ObjectEdit(f"Pod {pod.key}", {"metadata": {"finalizers": None}}) for pod in stuck]
                changes = [Change(ChangeKind.SET, each.object, field="the finalizers") for each in objects]
                edit = Edit(stage=RemedyStage.REPAIR, changes=changes, objects=objects)
                yield remedy_of([edit], 0, nodes=[node], scheduled=1, pods=1)

    def after_replicas(self) -> Iterator[Remedy]:
        """Wait, if the pod lands once another replica, which lands now, is on its node."""
        situation = self._situation
        others = [each for each in self._replicas if each.key != situation.pod.key]
        if not others or len(self._replicas) * len(situation.cluster.nodes) > _MAX_PLACED:
            return
        from kpreempt.analysis.workload.placing import CHOICES, Placing  # noqa: PLC0415 - only for several replicas

        for other in others[:_MAX_FIRST_REPLICAS]:
            nodes: dict[str, None] = {}
            for choose in CHOICES:
                placing = Placing(situation.cluster, self._scheduler, situation.prepared, self._now, choose)
                first, last = placing.place([other, situation.pod])
                if any(each.branch is None or each.victims for each in (first, last)):
                    break
                nodes[last.branch.node if last.branch is not None else ""] = None
            else:
                change = Change(ChangeKind.WAIT, subject=other.key, field="scheduled")
                edit = Edit(stage=RemedyStage.REPAIR, changes=[change])
                yield remedy_of([edit], 0, nodes=[*nodes], scheduled=1, pods=1)
                return

    def on_nodes(self, evaluations: Mapping[str, NodeEvaluation]) -> Iterator[Remedy]:
        """The changes with which the pod lands on one of these nodes, or thereby on another one."""
        situation = self._situation
        nodes = {node.name: node for node in situation.cluster.nodes}
        for name, evaluation in evaluations.items():
            context = EditContext(situation.pod, situation.cluster, nodes[name])
            for edits in combinations_for(context, evaluation):
                remedy = self._landing(edits, name)
                if remedy is not None:
                    yield remedy

    def _landing(self, edits: Sequence[Edit], node: str) -> Remedy | None:
        """The remedy, if the pod lands without evictions; a verdict is only computed if the node could take it."""
        situation = self._situation
        key = tuple(sorted(str(change) for edit in edits for change in edit.changes))
        if key in self._tried or not self._has_budget():
            return None
        self._tried.add(key)
        try:
            pod, cluster = _edited(situation.pod, situation.cluster, edits)
        except KpreemptError:
            return None
        prepared = self._prepare(cluster)
        evaluation = self._scheduler.describe_node(prepared, pod, node)
        if rejections_of(evaluation):
            return None
        verdict = self._decide(prepared, pod)
        if verdict.outcome is not Outcome.LANDS or not is_certain(verdict):
            return None
        return self._remedy(edits, destinations(verdict), cluster, prepared)

    def _remedy(
        self, edits: Sequence[Edit], nodes: Sequence[str], cluster: ClusterSnapshot, prepared: Any, **outcome: Any
    ) -> Remedy:
        scheduled, replicas = self._placed(edits, cluster, prepared)
        return remedy_of(edits, self._stated, nodes=list(nodes), scheduled=scheduled, pods=replicas, **outcome)

    def _placed(self, edits: Sequence[Edit], cluster: ClusterSnapshot, prepared: Any) -> tuple[int, int]:
        """How many of the waiting replicas land with the same changes, of how many; 1 of 1 if only the pod waits."""
        replicas = self._replicas
        if len(replicas) <= 1 or len(replicas) * len(cluster.nodes) > _MAX_PLACED:
            return 1, 1
        from kpreempt.analysis.workload.placing import Placing  # noqa: PLC0415 - only for several replicas

        try:
            pods = [_edited(each, cluster, [_of_pod(edit) for edit in edits])[0] for each in replicas]
        except KpreemptError:
            return 1, 1
        placing = Placing(cluster, self._scheduler, prepared, self._now)
        return sum(each.branch is not None and not each.victims for each in placing.place(pods)), len(pods)

    def with_new_node(self) -> Iterator[Remedy]:
        """One more node like those of the cluster."""
        situation = self._situation
        cluster, verdict = situation.cluster, situation.verdict
        if verdict.extender_calls or not cluster.nodes or len(cluster.nodes) > _MAX_NODES:
            return
        requests = requests_in_units(pod_requests(situation.pod))
        new = NewNodes(cluster, self._scheduler, now=self._now, requests=[requests])
        taking = new.taking(situation.pod)
        most = _MAX_NEW_NODES
        if len(cluster.nodes) > _SMALL_CLUSTER:
            most = max(2, min(_MAX_NEW_NODES, 2 * _MAX_NODES_SEARCHED // len(cluster.nodes)))
        tried, found = 0, None
        for sample in taking[:most]:
            tried += 1
            edit = Edit(
                stage=RemedyStage.CAPACITY,
                changes=[
                    Change(ChangeKind.ADD_NODE, sample.kind.like.name, value=sample.kind.allocatable, field=sample.name)
                ],
                added=sample.added,
            )
            found = self._with_sample(edit, sample)
            if found is not None:
                break
        untried = new.untried + (0 if found is not None else len(taking) - tried)
        self.extent = msgspec.structs.replace(self.extent, kinds=new.num_kinds, untried_kinds=untried)
        if found is not None:
            yield found

    def _with_sample(self, edit: Edit, sample: Sample) -> Remedy | None:
        situation = self._situation
        cluster = edit_cluster(situation.cluster, edit)
        prepared = self._prepare(cluster)
        verdict = self._decide(prepared, situation.pod)
        if verdict.outcome is not Outcome.LANDS or verdict.volume_choices is not None:
            return None
        known = situation.verdict.assumptions
        assumed = [*sample.added.assumptions, *(each for each in verdict.assumptions if each not in known)]
        return self._remedy(
            [edit], destinations(verdict), cluster, prepared, assumed=informational_assumptions(assumed)
        )

    def by_evictions(self) -> Iterator[Remedy]:
        """A higher priority, or leave to preempt, if the victims find another node."""
        situation = self._situation
        edits = [*allow_preemption(situation.pod)]
        priority = self._lowest_priority()
        if priority is not None:
            edits.append(raised(situation.pod, priority))
        for edit in edits:
            remedy = self._evicting(edit)
            if remedy is not None:
                yield remedy

    def _lowest_priority(self) -> int | None:
        """The lowest priority with which the pod gets a node, without violating a budget."""
        situation, scheduler = self._situation, self._scheduler
        pod, cluster = situation.pod, situation.cluster
        # Success at one priority does not imply success at all higher ones: a pod that this pod has affinity to, or
        # that it waits for on its nominated node, may be evicted at a higher priority.
        affinity = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
        needs_other_pods = affinity is not None and bool(affinity.required)
        is_monotonic = (
            scheduler.is_monotonic_in_priority and not needs_other_pods and not pod.status.nominated_node_name
        )
        priorities = just_above(_occupying(cluster), pod)
        if scheduler.is_monotonic_in_priority:
            priorities = worth_trying(cluster, pod, situation.verdict)

        def decide(priority: int) -> Verdict | None:
            if not is_monotonic and not self._has_budget():
                return None
            verdict = self._decide(situation.prepared, edit_pod(pod, raised(pod, priority)))
            return verdict if verdict.outcome.finds_node and is_certain(verdict) else None

        found = first_reaching(priorities, decide, only_grows=is_monotonic)
        return None if found is None or found[1].outcome is Outcome.PREEMPTS_VIOLATING_BUDGETS else found[0]

    def _evicting(self, edit: Edit) -> Remedy | None:
        """The remedy, if all victims run again at the end and no budget is violated, whatever is picked at random."""
        from kpreempt.analysis.simulation.engine import SimulationStart, simulate  # noqa: PLC0415 - rarely needed
        from kpreempt.analysis.workload.placing import CHOICES  # noqa: PLC0415

        situation = self._situation
        if len(situation.cluster.nodes) > _MAX_NODES_SEARCHED:
            self.gave_up = True
            return None
        pod = edit_pod(situation.pod, edit)
        verdict = self._decide(situation.prepared, pod)
        if not verdict.outcome.finds_node:
            return None
        # Other pending pods would compete with the victims, with or without the change. Nominated ones keep their node.
        running = [
            each
            for each in situation.cluster.pods
            if each.spec.node_name or each.status.nominated_node_name or each.is_terminal
        ]
        cluster = msgspec.structs.replace(situation.cluster, pods=running)
        evicted: dict[str, None] = {}
        evictions = 0
        for choose in CHOICES:
            start = SimulationStart(arriving=[pod], choose=choose)
            simulation, _, _ = simulate(cluster, start, self._scheduler, now=self._now)
            if pod.key not in simulation.starts_at or simulation.pending:
                return None
            if any(each.lost or not each.lands_on for each in simulation.displaced):
                return None
            if any(each.violations for each in simulation.budgets):
                return None
            if any(each.ready_after < each.ready_before for each in simulation.workloads):
                return None
            evicted |= dict.fromkeys(each.pod for each in simulation.displaced)
            evictions = max(evictions, len(simulation.displaced))
        # The order of tied pods in the scheduler's cache may decide, too.
        alternatives = verdict.alternatives.outcomes if verdict.alternatives is not None else []
        evicted |= dict.fromkeys(pod for each in alternatives for pod in each.pods)
        return remedy_of(
            [edit],
            self._stated,
            nodes=destinations(verdict),
            evicted=[*evicted],
            evictions=evictions,
            scheduled=1,
            pods=1,
        )


def remedy_of(edits: Sequence[Edit], stated: int, **outcome: Any) -> Remedy:
    """The remedy that consists of these edits; its stage is the last of theirs."""
    stages = list(RemedyStage)
    return Remedy(
        stage=max((edit.stage for edit in edits), key=stages.index),
        changes=[change for edit in edits for change in edit.changes],
        options=[option for edit in edits for option in edit.options(stated)],
        edits=[each for edit in edits for each in edit.objects],
        **outcome,
    )


def _edited(pod: Pod, cluster: ClusterSnapshot, edits: Sequence[Edit]) -> tuple[Pod, ClusterSnapshot]:
    for edit in edits:
        pod = edit_pod(pod, edit)
        cluster = edit_cluster(cluster, edit) if edit.is_of_cluster else cluster
    return pod, cluster


def _of_pod(edit: Edit) -> Edit:
    """Only the changes to the pod."""
    return Edit(stage=edit.stage, changes=edit.changes, overrides=edit.overrides)


def _waiting_replicas(cluster: ClusterSnapshot, pod: Pod) -> list[Pod]:
    """The pending pods of the pod's controller, itself included; only the pod if it is not in the cluster."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return [pod]
    replicas = [
        each
        for each in pending_pods(cluster)
        if each.metadata.namespace == pod.metadata.namespace
        and (other := controller_of(each.metadata)) is not None
        and (other.kind, other.name) == (owner.kind, owner.name)
        and each.metadata.deletion_timestamp is None
        and not each.spec.scheduling_gates
    ]
    return replicas if any(each.key == pod.key for each in replicas) else [pod]


def _occupying(cluster: ClusterSnapshot) -> list[Pod]:
    """Pods that occupy capacity, or are nominated."""
    return [
        pod for pod in cluster.pods if not pod.is_terminal and (pod.spec.node_name or pod.status.nominated_node_name)
    ]
