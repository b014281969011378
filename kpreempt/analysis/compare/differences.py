"""Compares the decisions of several algorithms about the same pods: at which steps they differ, and why.

Versions word the same reason differently, so reasons are shown but never compared; what is compared is the result of
each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import combinations, groupby
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.explain.pods import ExplainInput
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.verdict import Assumption, Candidate, Outcome, Reprieve, Status, TieBreakRound, Verdict
from kpreempt.verdict.compare import ComparedPod, Comparison, Decision, Difference, Pair, Step

PREEMPTS = (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)
_CRITERIA = ("pdbViolations", "highestPriority", "prioritySum", "victims", "latestStart")
_MAX_LISTED = 4


def is_same_outcome(base: Verdict, other: Verdict) -> bool:
    """Whether the outcome (ignoring budgets), the nodes, and the victims on each are the same.

    If the pod fits and one of the two computes no scores, one shared node is enough.
    """
    if outcome_of(base) != outcome_of(other):
        return False
    base_nodes, other_nodes = set(nodes_of(base)), set(nodes_of(other))
    if base.outcome == Outcome.LANDS and not (_is_scored(base) and _is_scored(other)):
        return bool(base_nodes & other_nodes)
    # The victims are equal, or those of one are possible for the other in another order of equal pods.
    sets = [{node: set(gone) for node, gone in victims_by_node(each).items()} for each in (base, other)]
    return base_nodes == other_nodes and (
        sets[0] == sets[1] or _are_alternatives(base, other) or _are_alternatives(other, base)
    )


def nodes_of(verdict: Verdict) -> list[str]:
    """The nodes on which the pod can end up."""
    return verdict.nominated_nodes or verdict.lands_on or verdict.chosen_nodes


def victims_by_node(verdict: Verdict) -> dict[str, list[str]]:
    """The victims on each node that may be nominated."""
    return {each.node: each.victims for each in verdict.candidates if each.node in verdict.nominated_nodes}


def differences_between(base: Verdict, other: Verdict) -> list[Difference]:
    """The steps at which the verdicts differ, in order; at least one if the outcomes differ."""
    held = [verdict.outcome == Outcome.NOT_SCHEDULED for verdict in (base, other)]
    if held[0] != held[1]:
        words = {True: "does not try it", False: "tries it"}
        reasons = [verdict.reason if is_held else "" for verdict, is_held in zip((base, other), held, strict=True)]
        return [
            Difference(
                step=Step.ATTEMPT,
                base=words[held[0]],
                other=words[held[1]],
                base_reason=reasons[0],
                other_reason=reasons[1],
            )
        ]
    decisive = {*nodes_of(base), *nodes_of(other)}
    found = []
    for _, of_step in groupby(_differences(base, other), key=lambda difference: difference.step):
        # The first difference at a step, on a decisive node if possible, and the number of the others.
        several = list(of_step)
        first = next((each for each in several if each.subject in decisive), several[0])
        found.append(msgspec.structs.replace(first, others=len(several) - 1))
    if not found and not is_same_outcome(base, other):
        found.append(Difference(step=Step.OUTCOME, base=base.outcome, other=other.outcome))
    return found


def _differences(base: Verdict, other: Verdict) -> Iterator[Difference]:
    """The differences of all steps, in order."""
    words = ("fits", "does not fit")
    yield from _of_nodes(Step.FILTER, words, base.feasible_nodes, other.feasible_nodes, base.filter, other.filter)
    if base.feasible_nodes and other.feasible_nodes and set(nodes_of(base)) != set(nodes_of(other)):
        yield Difference(step=Step.SCORES, base=_names(nodes_of(base)), other=_names(nodes_of(other)))
    mine, yours = base.eligibility, other.eligibility
    if mine is not None and yours is not None and mine.eligible != yours.eligible:
        may = {True: "may preempt", False: "may not preempt"}
        yield Difference(
            step=Step.ELIGIBILITY,
            base=may[mine.eligible],
            other=may[yours.eligible],
            base_reason=mine.reason,
            other_reason=yours.reason,
        )
    words = ("is tried", "is not tried")
    ours, theirs = base.potential_nodes, other.potential_nodes
    yield from _of_nodes(Step.POTENTIAL_NODES, words, ours, theirs, base.filter, other.filter)
    both = set(ours) & set(theirs)
    words = ("is a candidate", "is not a candidate")
    ours, theirs = ([each.node for each in verdict.candidates] for verdict in (base, other))
    found = _of_nodes(Step.CANDIDATES, words, ours, theirs, base.dry_run, other.dry_run)
    yield from (each for each in found if each.subject in both)
    yield from _victims(base, other)
    for one, another in _shared_candidates(base, other):
        if one.num_pdb_violations != another.num_pdb_violations:
            yield Difference(
                step=Step.BUDGET_VIOLATIONS,
                subject=one.node,
                base=str(one.num_pdb_violations),
                other=str(another.num_pdb_violations),
            )
    rules = list(_choice(base, other))
    yield from rules
    ours, theirs = base.nominated_nodes, other.nominated_nodes
    if ours and theirs and set(ours) != set(theirs) and not rules:
        yield Difference(step=Step.NOMINATED_NODES, base=_names(ours), other=_names(theirs))


def outcome_of(verdict: Verdict) -> Outcome:
    """The outcome without the distinction of budget violations."""
    return Outcome.PREEMPTS if verdict.outcome in PREEMPTS else verdict.outcome


def _are_alternatives(verdict: Verdict, by: Verdict) -> bool:
    outcomes = by.alternatives.outcomes if by.alternatives else []
    return all(
        any(each.node == node and each.allows(victims) for each in outcomes)
        for node, victims in victims_by_node(verdict).items()
    )


def _is_scored(verdict: Verdict) -> bool:
    """Whether the best of several feasible nodes is known."""
    return bool(verdict.scores) or len(nodes_of(verdict)) == 1


def _victims(base: Verdict, other: Verdict) -> Iterator[Difference]:
    for ours, theirs in _shared_candidates(base, other):
        if set(ours.victims) != set(theirs.victims):
            # Why each verdict reprieves or evicts the first pod on which they differ.
            pod = _only_in_one(ours.victims, theirs.victims)[0]
            steps = [next((step for step in each.steps if step.pod == pod), None) for each in (ours, theirs)]
            yield Difference(
                step=Step.VICTIMS,
                subject=ours.node,
                base=_names(ours.victims),
                other=_names(theirs.victims),
                base_reason=_reprieve(pod, steps[0]),
                other_reason=_reprieve(pod, steps[1]),
            )


def _choice(base: Verdict, other: Verdict) -> Iterator[Difference]:
    if not base.candidates or not other.candidates or set(nodes_of(base)) == set(nodes_of(other)):
        return
    ours, theirs = _rounds(base), _rounds(other)
    for criterion in _CRITERIA:
        mine, yours = ours[criterion], theirs[criterion]
        if set(mine.survivors) != set(yours.survivors):
            yield Difference(
                step=Step.CHOICE,
                subject=criterion,
                base=f"keeps {_names(mine.survivors)}",
                other=f"keeps {_names(yours.survivors)}",
                base_reason=_values(mine),
                other_reason=_values(yours),
            )


def _rounds(verdict: Verdict) -> dict[str, TieBreakRound]:
    """The result of every rule; a rule that was not applied, or does not exist, eliminates no node."""
    applied = {each.criterion: each for each in verdict.selection.rounds} if verdict.selection else {}
    remaining = [each.node for each in verdict.candidates]
    rounds = {}
    for criterion in _CRITERIA:
        rounds[criterion] = applied.get(criterion) or TieBreakRound(criterion, {}, remaining)
        remaining = rounds[criterion].survivors
    return rounds


def _of_nodes(
    step: Step,
    words: tuple[str, str],
    ours: Sequence[str],
    theirs: Sequence[str],
    base: Mapping[str, Status],
    other: Mapping[str, Status],
) -> Iterator[Difference]:
    """The nodes that only one of the two has, with their reasons."""
    for node in _only_in_one(ours, theirs):
        yield Difference(
            step=step,
            subject=node,
            base=words[node not in ours],
            other=words[node in ours],
            base_reason=_reason(base.get(node)),
            other_reason=_reason(other.get(node)),
        )


def _reason(status: Status | None) -> str:
    if status is None or status.is_success:
        return ""
    plugin = f"{status.plugin}: " if status.plugin else ""
    return f"{plugin}{status.message or status.code}"


def _reprieve(pod: str, step: Reprieve | None) -> str:
    if step is None:
        return ""
    first = ", first in reprieve order: its budget allows no disruptions" if step.violates_budget else ""
    if step.is_reprieved:
        return f"{pod} reprieved{first}"
    blocked = f": {_reason(step.blocked_by)}" if step.blocked_by is not None else ""
    return f"{pod} evicted{first}{blocked}"


def _values(applied: TieBreakRound) -> str:
    if not applied.values:
        return "not applied"
    shown = [f"{node} {value}" for node, value in list(applied.values.items())[:_MAX_LISTED]]
    return ", ".join([*shown, "…"] if len(applied.values) > _MAX_LISTED else shown)


def _shared_candidates(base: Verdict, other: Verdict) -> Iterator[tuple[Candidate, Candidate]]:
    theirs = {each.node: each for each in other.candidates}
    return ((each, theirs[each.node]) for each in base.candidates if each.node in theirs)


def _only_in_one(base: Sequence[str], other: Sequence[str]) -> list[str]:
    """The elements that only one of the two has, in the order of the first, then of the second."""
    ours, theirs = set(base), set(other)
    return [each for each in dict.fromkeys([*base, *other]) if (each in ours) != (each in theirs)]


def _names(names: Sequence[str]) -> str:
    return (
        ", ".join([*names[:_MAX_LISTED], f"{len(names) - _MAX_LISTED} more"] if len(names) > _MAX_LISTED else names)
        or "none"
    )


def compare_pods(
    cluster: ClusterSnapshot,
    inputs: Sequence[ExplainInput],
    schedulers: Mapping[str, Scheduler],
    *,
    now: datetime,
    is_queued: bool = True,
    prepare: Callable[..., Any] | None = None,
    assumptions: Iterable[Assumption] = (),
    phases: Phases = NO_PHASES,
) -> Comparison:
    """Compare the decisions of schedulers, by display name, about each pod alone.

    ``now`` stands in for missing start times. ``is_queued`` says that pending pods are in the queue. ``prepare`` can
    replace the schedulers' own preparation of a cluster, for example with a cache. Assumptions that not all schedulers
    make are prefixed with the scheduler's name.
    """
    verdicts: dict[str, list[Verdict]] = {}
    for name, scheduler in schedulers.items():
        with phases.phase("prepare"):
            make = scheduler.prepare if prepare is None else partial(prepare, scheduler)
            prepared = make(cluster, now=now, is_queued=is_queued)
        verdicts[name] = [scheduler.decide(prepared, explain_input.pod, phases=phases) for explain_input in inputs]
    items = [
        _compared({name: verdicts[name][index] for name in schedulers}, explain_input)
        for index, explain_input in enumerate(inputs)
    ]
    own = [each for explain_input in inputs for each in explain_input.assumptions]
    return comparison_of(list(schedulers), items, [*assumptions, *own, *assumptions_of(verdicts)])


def comparison_of(
    algorithms: Sequence[str], items: Sequence[ComparedPod], assumptions: Iterable[Assumption]
) -> Comparison:
    """The comparison of some pods, with counts."""
    decided = [item for item in items if not item.error]
    return Comparison(
        algorithms=list(algorithms),
        differing=sum(not item.is_same for item in decided),
        pairs=[
            Pair(base, other, sum(base in each.differs_from for item in decided for each in item.decisions_of(other)))
            for base, other in combinations(algorithms, 2)
        ],
        items=list(items),
        assumptions=list(dict.fromkeys(assumptions)),
    )


def _compared(verdicts: Mapping[str, Verdict], explain_input: ExplainInput) -> ComparedPod:
    base = next(iter(verdicts.values()))
    decisions = [
        decision_of(
            name, verdict, verdicts, [] if is_same_outcome(base, verdict) else differences_between(base, verdict)
        )
        for name, verdict in verdicts.items()
    ]
    return ComparedPod(
        pod=explain_input.pod.key,
        origin=explain_input.origin,
        priority=explain_input.pod.priority,
        is_same=not any(each.differs_from for each in decisions),
        decisions=decisions,
    )


def decision_of(
    name: str, verdict: Verdict, verdicts: Mapping[str, Verdict], differences: list[Difference]
) -> Decision:
    """The decision of an algorithm, and which ones it differs from; ``differences`` are relative to the first."""
    violations = [each.num_pdb_violations for each in verdict.candidates if each.node in verdict.nominated_nodes]
    return Decision(
        algorithm=name,
        outcome=verdict.outcome,
        reason=verdict.reason,
        nodes=nodes_of(verdict),
        victims=victims_by_node(verdict),
        num_pdb_violations=max(violations, default=0),
        message=verdict.message,
        differs_from=[other for other, theirs in verdicts.items() if not is_same_outcome(theirs, verdict)],
        differences=differences,
    )


def assumptions_of(verdicts: Mapping[str, Sequence[Verdict]]) -> list[Assumption]:
    """The assumptions of all verdicts, with the algorithm's name unless all algorithms make them."""
    by_algorithm = {name: {each for verdict in own for each in verdict.assumptions} for name, own in verdicts.items()}
    shared = set.intersection(*by_algorithm.values()) if by_algorithm else set()
    found = []
    for name, own in verdicts.items():
        for each in dict.fromkeys(each for verdict in own for each in verdict.assumptions):
            subject = each.subject if each in shared else f"{name}: {each.subject}"
            found.append(Assumption(subject, each.field, each.message, each.kind))
    return found
