"""The report on one node, with the changes that would bring the pod there.

The search finds edits that address the rejections by the node, or the criterion that eliminated it and the advantages
of other nodes, and verifies each with a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.explain.candidates import REQUIRED, combinations_for, is_cut_too_far, rejections_of
from kpreempt.analysis.explain.remedies import (
    Situation,
    destinations,
    failing_extender,
    is_certain,
    limit_of,
    remedy_of,
)
from kpreempt.analysis.explain.single_edits import (
    Edit,
    EditContext,
    drop_preferences,
    edit_cluster,
    edit_pod,
    just_above,
    lower_requests,
    raised,
)
from kpreempt.analysis.nodes.changes import cordon
from kpreempt.analysis.remedies.selection import selected
from kpreempt.analysis.what_if import Assignment, Overrides, format_path
from kpreempt.errors import KpreemptError
from kpreempt.model.affinity import METADATA_NAME_FIELD
from kpreempt.model.pod import Pod
from kpreempt.verdict import Candidate, Change, ChangeKind, NodeReport, Outcome, Reprieve, Verdict
from kpreempt.verdict.details import InsufficientResources, Shortfall
from kpreempt.verdict.remedies import Remedy, RemedySearch, RemedyStage

_UNANSWERED = (Outcome.NOT_SCHEDULED, Outcome.UNCERTAIN)
_MAX_REMEDIES = 6
_MAX_LOWERINGS = 8
# On more nodes, recording the steps of every candidate takes too long for each tried change.
_MAX_NODES_WITH_STEPS = 1000
_HOSTNAME = "kubernetes.io/hostname"


def explain_node(
    scheduler: Scheduler, situation: Situation, node_name: str, stated: int, *, now: datetime
) -> NodeReport:
    """The report on a node, given the verdict. Raises ``KeyError`` for an unknown node."""
    verdict = situation.verdict
    evaluation = scheduler.describe_node(situation.prepared, situation.pod, node_name)
    is_chosen = node_name in destinations(verdict)
    remedies: list[Remedy] = []
    extent = RemedySearch()
    if not is_chosen and verdict.outcome not in _UNANSWERED:
        if failing := failing_extender(verdict):
            extent = RemedySearch(reason="extender", extender=failing)
        else:
            search = _Search(scheduler, situation, node_name, now)
            remedies = selected([remedy_of(edits, stated, **outcome) for edits, outcome in search.run()], _MAX_REMEDIES)
            extent = search.extent
    score = verdict.scores.get(node_name)
    # The criterion of candidate selection that eliminated the node.
    rounds = verdict.selection.rounds if verdict.selection else []
    eliminated = next((each for each in rounds if node_name in each.values and node_name not in each.survivors), None)
    return NodeReport(
        node=node_name,
        evaluation=evaluation,
        is_chosen=is_chosen,
        rank=None if score is None else 1 + sum(other > score for other in verdict.scores.values()),
        eliminated_at=eliminated.criterion if eliminated else "",
        value=eliminated.values[node_name] if eliminated else None,
        best=eliminated.values[eliminated.survivors[0]] if eliminated else None,
        remedies=remedies,
        search=extent,
    )


class _Search:
    """Tries changes until the pod ends up on the node, alone or tied with others."""

    def __init__(self, scheduler: Scheduler, situation: Situation, node: str, now: datetime) -> None:
        self._scheduler, self._situation, self._node, self._now = scheduler, situation, node, now
        self._limit = limit_of(situation)
        self._has_steps = len(situation.cluster.nodes) <= _MAX_NODES_WITH_STEPS
        self.extent = RemedySearch()

    def run(self) -> Iterator[tuple[list[Edit], dict[str, Any]]]:
        """The changes that bring the pod to the node, with their outcome."""
        situation = self._situation
        cluster, pod, verdict = situation.cluster, situation.pod, situation.verdict
        context = EditContext(pod, cluster, next(each for each in cluster.nodes if each.name == self._node))
        evaluation = self._scheduler.describe_node(situation.prepared, pod, self._node)
        may_evict = is_preemptor(pod)
        rejections = rejections_of(evaluation, may_evict=may_evict)
        tries: list[list[Edit]] = [*combinations_for(context, evaluation)]
        if may_evict:
            tries += [each for each in combinations_for(context, evaluation, may_evict=True) if each not in tries]
        others = (
            each
            for each in cluster.pods
            if (each.spec.node_name == self._node or each.key in evaluation.nominated_pods) and not each.is_terminal
        )
        tries += [[raised(pod, priority)] for priority in just_above(others, pod)]
        if not rejections:
            tries += [[edit] for edit in choice_edits(context, verdict)]
        for edits in tries:
            found = self._try(edits)
            if found is not None:
                yield found
            elif self.extent.reason:
                return
        candidate = candidate_on(verdict, self._node)
        edit = lower_further(pod, None, candidate) if candidate is not None else None
        for _ in range(_MAX_LOWERINGS):
            if edit is None or self.extent.reason:
                return
            changed = self._verdict([edit])
            if changed is None:
                return
            if self._is_there(changed):
                yield [edit], self._outcome(changed)
                return
            candidate = candidate_on(changed, self._node)
            edit = lower_further(pod, edit, candidate) if candidate is not None else None

    def _try(self, edits: list[Edit]) -> tuple[list[Edit], dict[str, Any]] | None:
        verdict = self._verdict(edits)
        return (edits, self._outcome(verdict)) if verdict is not None and self._is_there(verdict) else None

    def _verdict(self, edits: Sequence[Edit]) -> Verdict | None:
        """The verdict with the changes; ``None`` if they cannot be made, or there were too many verdicts."""
        if self.extent.tried >= self._limit:
            self.extent = msgspec.structs.replace(self.extent, reason="limit")
            return None
        pod, cluster, prepared = self._situation.pod, self._situation.cluster, self._situation.prepared
        try:
            for edit in edits:
                pod, cluster = edit_pod(pod, edit), edit_cluster(cluster, edit) if edit.is_of_cluster else cluster
        except KpreemptError:
            return None
        if cluster is not self._situation.cluster:
            prepared = self._scheduler.prepare(cluster, now=self._now, before=prepared)
        verdict = self._scheduler.decide(prepared, pod, records_steps=self._has_steps)
        calls = self.extent.extender_calls + len(verdict.extender_calls)
        self.extent = msgspec.structs.replace(self.extent, tried=self.extent.tried + 1, extender_calls=calls)
        return verdict

    def _is_there(self, verdict: Verdict) -> bool:
        """Whether the pod ends up on the node without violating a budget, whatever the order of equal volumes."""
        is_answer = verdict.outcome in (Outcome.LANDS, Outcome.PREEMPTS)
        return is_answer and is_certain(verdict) and self._node in destinations(verdict)

    def _outcome(self, verdict: Verdict) -> dict[str, Any]:
        candidate = candidate_on(verdict, self._node) if verdict.nominated_nodes else None
        evicted = list(candidate.victims) if candidate is not None else []
        return {
            "nodes": destinations(verdict),
            "evicted": evicted,
            "evictions": len(evicted),
            "scheduled": 1,
            "pods": 1,
        }


def is_preemptor(pod: Pod) -> bool:
    """Whether the pod's preemption policy allows evictions."""
    return pod.spec.preemption_policy != "Never"


def choice_edits(context: EditContext, verdict: Verdict) -> Iterator[Edit]:
    """Edits for a node that fits, or is a candidate, in ``verdict``, but is not chosen."""
    node_name = context.node.name
    candidate = candidate_on(verdict, node_name)
    if candidate is not None:
        yield from _allow_more(candidate)
    if node_name in verdict.scores:
        yield from drop_preferences(context)
    winners = verdict.nominated_nodes or verdict.lands_on
    if len(winners) == 1 and winners[0] != node_name:
        change = Change(ChangeKind.CORDON, subject=winners[0])
        yield Edit(stage=RemedyStage.CAPACITY, changes=[change], nodes=[cordon(winners[0])])
    # As a last resort, tie the pod to the node, by its host name label, or by its name if it has no such label.
    spec, node = context.pod.spec, context.node
    hostname = node.labels.get(_HOSTNAME)
    rules = spec.affinity.node_affinity if spec.affinity else None
    if hostname is not None and _HOSTNAME not in spec.node_selector:
        place = Assignment(format_path(["spec", "nodeSelector", _HOSTNAME]), hostname)
        yield _tied(f"{_HOSTNAME}={hostname}", place)
    elif hostname is None and (rules is None or rules.required is None):
        field = {"key": METADATA_NAME_FIELD, "operator": "In", "values": [node.name]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        place = Assignment(format_path(["spec", "affinity", "nodeAffinity", REQUIRED]), required)
        yield _tied(f"{METADATA_NAME_FIELD}={node.name}", place)


def candidate_on(verdict: Verdict, node_name: str) -> Candidate | None:
    """The dry run's candidate on a node."""
    return next((candidate for candidate in verdict.candidates if candidate.node == node_name), None)


def lower_further(pod: Pod, edit: Edit | None, candidate: Candidate) -> Edit | None:
    """Requests that are low enough for one more victim of ``candidate`` to stay; ``None`` if that is impossible.

    ``candidate`` is the dry run's result for ``pod`` with ``edit``. Between its requests and the returned ones, the
    victims on the node are the same, so lowering requests step by step skips no relevant amount.
    """
    amounts = {
        change.subject: (change.before, change.after)
        for change in (edit.changes if edit else ())
        if change.before is not None and change.after is not None
    }
    shortages = [shortage for step in candidate.steps if (shortage := _shortage(step))]
    if not shortages:
        return None
    for each in min(shortages, key=lambda shortage: max(each.missing_share for each in shortage)):
        before, after = amounts.get(each.resource, (each.requested, each.requested))
        amounts[each.resource] = before, after - each.missing
        if is_cut_too_far(each.resource, *amounts[each.resource]):
            return None
    return lower_requests(pod, amounts)


def _shortage(step: Reprieve) -> list[Shortfall]:
    """The resources that were short with the pod back on the node, if only requests prevented its return."""
    detail = step.blocked_by.detail if step.blocked_by else None
    if not isinstance(detail, InsufficientResources) or any(each.resource == "pods" for each in detail.shortfalls):
        return []
    return detail.shortfalls


def _allow_more(candidate: Candidate) -> Iterator[Edit]:
    """Budgets that allow the eviction of the victims: each one alone, then all violated ones."""
    needed: dict[str, tuple[int, int]] = {}
    for step in candidate.steps:
        for use in step.budgets:
            allowed, least = needed.get(use.budget, (use.allowed, use.remaining))
            needed[use.budget] = max(allowed, use.allowed), min(least, use.remaining)
    violated = {budget: (allowed, allowed - left) for budget, (allowed, left) in needed.items() if left < 0}
    for budget, amounts in violated.items():
        yield _budgets({budget: amounts})
    if len(violated) > 1:
        yield _budgets(violated)


def _budgets(allowances: dict[str, tuple[int, int]]) -> Edit:
    return Edit(
        stage=RemedyStage.LIMIT,
        changes=[Change(ChangeKind.BUDGET, budget, before, after) for budget, (before, after) in allowances.items()],
        budgets=[f"{budget}={after}" for budget, (_, after) in allowances.items()],
    )


def _tied(subject: str, assignment: Assignment) -> Edit:
    change = Change(ChangeKind.PIN, subject=subject)
    return Edit(stage=RemedyStage.REQUESTER, changes=[change], overrides=Overrides(assignments=[assignment]))
