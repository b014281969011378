"""Edits for a node that could take the pod and is not chosen: what it loses by, and what the others have."""

from __future__ import annotations

from kpreempt.analysis.explain.edits import Edit
from kpreempt.analysis.explain.single_edits import (
    EditContext,
    EditOptions,
    drop_preferences,
    lower_requests,
    remove_pods,
)
from kpreempt.analysis.field_paths import Assignment, format_path
from kpreempt.analysis.what_if import Overrides
from kpreempt.model.affinity import METADATA_NAME_FIELD
from kpreempt.model.pod import Pod
from kpreempt.verdict import Candidate, Change, ChangeKind, Reprieve, Verdict
from kpreempt.verdict.details import InsufficientResources, Shortfall

_HOSTNAME = "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def choice_options(context: EditContext, verdict: Verdict) -> list[EditOptions]:
    """Ladders for a node that fits, or is a candidate, in ``verdict`` and that the pod does not end on."""
    node_name = context.node.name
    options: list[EditOptions] = []
    candidate = candidate_on(verdict, node_name)
    if candidate is not None:
        lowered = lower_further(context.pod, None, candidate)
        options += [[lowered] if lowered else [], _allow_more(candidate), remove_pods(context, candidate.victims)]
    if node_name in verdict.scores:
        options.append(drop_preferences(context))
    winners = verdict.nominated_nodes or verdict.lands_on
    if len(winners) == 1 and winners[0] != node_name:
        options.append([Edit(changes=[Change(ChangeKind.CORDON, subject=winners[0])], cordoned=winners[0])])
    options.append(_pin(context))
    return [options for options in options if options]


def candidate_on(verdict: Verdict, node_name: str) -> Candidate | None:
    """The candidate that the dry run found on a node."""
    return next((candidate for candidate in verdict.candidates if candidate.node == node_name), None)


def lower_further(pod: Pod, edit: Edit | None, candidate: Candidate) -> Edit | None:
    """Requests so much lower that one victim more of ``candidate`` could stay, or ``None`` where that is no matter.

    ``candidate`` is what the dry run found for ``pod`` with ``edit``. Between its requests and the returned ones the
    victims on the node stay the same, so that trying one after the other leaves out none that matters.
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
    return lower_requests(pod, amounts)


def _shortage(step: Reprieve) -> list[Shortfall]:
    """What was short with the pod back on the node, where that is a matter of requests alone."""
    detail = step.blocked_by.detail if step.blocked_by else None
    if not isinstance(detail, InsufficientResources) or any(each.resource == "pods" for each in detail.shortfalls):
        return []
    return detail.shortfalls


def _allow_more(candidate: Candidate) -> EditOptions:
    """Budgets that allow what evicting the victims takes: each alone, then all that are violated."""
    wanted: dict[str, tuple[int, int]] = {}
    for step in candidate.steps:
        for use in step.budgets:
            allowed, least = wanted.get(use.budget, (use.allowed, use.left))
            wanted[use.budget] = max(allowed, use.allowed), min(least, use.left)
    violated = {budget: (allowed, allowed - left) for budget, (allowed, left) in wanted.items() if left < 0}
    options = [_budgets({budget: amounts}) for budget, amounts in violated.items()]
    return [*options, _budgets(violated)] if len(violated) > 1 else options


def _budgets(wanted: dict[str, tuple[int, int]]) -> Edit:
    return Edit(
        changes=[Change(ChangeKind.BUDGET, budget, before, after) for budget, (before, after) in wanted.items()],
        budgets=[f"{budget}={after}" for budget, (_, after) in wanted.items()],
    )


def _pin(context: EditContext) -> EditOptions:
    """Tie the pod to the node, as a last resort: by its host name, or by its own where it has no such label."""
    spec, node = context.pod.spec, context.node
    hostname = node.labels.get(_HOSTNAME)
    if hostname is not None and _HOSTNAME not in spec.node_selector:
        place = Assignment(format_path(["spec", "nodeSelector", _HOSTNAME]), hostname)
        return [_tied(f"{_HOSTNAME}={hostname}", place)]
    rules = spec.affinity.node_affinity if spec.affinity else None
    if hostname is not None or (rules is not None and rules.required is not None):
        return []
    field = {"key": METADATA_NAME_FIELD, "operator": "In", "values": [node.name]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    place = Assignment(format_path(["spec", "affinity", "nodeAffinity", _REQUIRED]), required)
    return [_tied(f"{METADATA_NAME_FIELD}={node.name}", place)]


def _tied(subject: str, assignment: Assignment) -> Edit:
    return Edit(changes=[Change(ChangeKind.PIN, subject=subject)], overrides=Overrides(assignments=[assignment]))
