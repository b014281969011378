"""Finds remedies for the findings of a check: edits to the manifests or to the cluster.

A remedy is proven by running the whole check again with it: the finding must be gone, and nothing else may be worse, in
any simulated outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Protocol

import msgspec

from kpreempt.analysis.check.candidates import ADD_NODE, RemedyInput, Situation, candidates_for, clearing
from kpreempt.analysis.check.report import CheckedRollout
from kpreempt.analysis.check.simulations import Simulated
from kpreempt.analysis.remedies.search import Candidate, search
from kpreempt.errors import KpreemptError
from kpreempt.gate_rules import OptionType
from kpreempt.verdict.check import Check, FindingStatus, GateFinding
from kpreempt.verdict.remedies import Remedy, RemedyStage
from kpreempt.verdict.simulation import SimulationEnd

__all__ = ["ADD_NODE", "RemedyInput", "Rerun", "with_remedies"]

# The budget for simulations with candidates, in decisions times nodes (the cost of a decision), and what a simulation
# costs in addition. The first check's own cost comes on top. This takes a few seconds.
_MAX_COST, _COST_OF_RUN = 1_500_000, 5_000
_MAX_TRIED = 24
# For more findings, none are searched: the first ones explain the others in most cases.
_MAX_SEARCHED = 8


class Rerun(Protocol):
    """Runs the check again with a candidate; ``once`` means a single simulation."""

    def __call__(self, candidate: Candidate, *, once: bool) -> CheckedRollout:
        """Raises ``KpreemptError`` if the candidate cannot be applied."""


class _Outcome(msgspec.Struct, frozen=True):
    """What matters for the comparison of two checks: the worst over all simulations."""

    findings: Mapping[str, GateFinding]
    least_ready: Mapping[str, int]
    ready_after: Mapping[str, int]
    ready_before: Mapping[str, int]
    pending: Mapping[str, int]
    violations: Mapping[str, int]
    disruptions_after: Mapping[str, int]
    evicted: int
    unsettled: bool
    incomplete: frozenset[str]


def _outcome_of(checked: CheckedRollout) -> _Outcome:
    runs = checked.simulated
    workloads = [each for run in runs for each in run.simulation.workloads]
    budgets = [each for run in runs for each in run.simulation.budgets]
    return _Outcome(
        findings={each.fingerprint: each for each in checked.check.findings if each.status.counts},
        least_ready=_worst(((each.workload, each.ready_min) for each in workloads), min),
        ready_after=_worst(((each.workload, each.ready_after) for each in workloads), min),
        ready_before=_worst(((each.workload, each.ready_before) for each in workloads), max),
        pending=_worst((each for run in runs for each in _pending_in(run)), max),
        violations=_worst(((each.budget, each.violations) for each in budgets), max),
        disruptions_after=_worst(((each.budget, each.after) for each in budgets), min),
        evicted=max(len(each.simulation.displaced) for each in runs),
        unsettled=any(each.simulation.end is not SimulationEnd.SETTLED for each in runs),
        incomplete=frozenset(each.workload for each in workloads if each.is_changed and not each.is_done),
    )


def _worst(pairs: Iterable[tuple[str, int]], choose: Callable[[int, int], int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for key, amount in pairs:
        found[key] = choose(found[key], amount) if key in found else amount
    return found


def _pending_in(run: Simulated) -> Iterable[tuple[str, int]]:
    return Counter(each.workload for each in run.simulation.pending).items()


class _Proof:
    """Runs candidates, each at most once, and decides whether they help with a finding."""

    def __init__(self, first: CheckedRollout, rerun: Rerun) -> None:
        self._first = _outcome_of(first)
        self._check = first.check
        self._changed = {each.change.object for each in first.plan.workloads}
        self._rerun = rerun
        self._single: dict[bytes, CheckedRollout | None] = {}
        self._full: dict[bytes, CheckedRollout | None] = {}
        self.cost = 0

    def remedy(self, candidate: Candidate, finding: GateFinding) -> Remedy | None:
        """The remedy, or ``None`` if the candidate does not help with the finding or makes something worse."""
        key = msgspec.json.encode([candidate.edits, candidate.options])
        if key not in self._single:
            self._single[key] = self._run(candidate, once=True)
        single = self._single[key]
        if single is None or not self._helps(single, finding, candidate):
            return None
        if key not in self._full:
            # One run is all there is, unless chance or the request leads to more.
            is_one = self._check.runs == 1 and not (single.check.simulation.draws or single.check.simulation.displaced)
            self._full[key] = single if is_one else self._run(candidate, once=False)
        full = self._full[key]
        if full is None or not self._helps(full, finding, candidate):
            return None
        outcome = _outcome_of(full)
        evicted = [each.pod for each in full.check.simulation.displaced]
        gaps = {
            workload: least
            for workload, least in outcome.least_ready.items()
            if least < self._first.least_ready.get(workload, outcome.ready_before[workload])
        }
        return candidate.remedy(
            solves=full.check.passed,
            evicted=evicted if len(evicted) > len(self._check.simulation.displaced) else [],
            pending=sum(each.was_running for each in full.check.simulation.pending),
            least_ready=gaps,
        )

    def _run(self, candidate: Candidate, *, once: bool) -> CheckedRollout | None:
        try:
            checked = self._rerun(candidate, once=once)
        except KpreemptError:
            self.cost += _COST_OF_RUN
            return None
        self.cost += _cost_of(checked)
        return checked

    def _helps(self, checked: CheckedRollout, finding: GateFinding, candidate: Candidate) -> bool:
        first, outcome = self._first, _outcome_of(checked)
        may_evict = candidate.stage is RemedyStage.PRIORITY
        if finding.fingerprint in outcome.findings or (outcome.unsettled and not first.unsettled):
            return False
        if any(_is_worse(each, first.findings.get(each.fingerprint)) for each in outcome.findings.values()):
            return False
        # A rollout that gets stuck keeps all its pods; one that completes replaces them as its strategy says, which the
        # rules judge.
        free = {each for each in self._changed if each in first.incomplete or each == finding.subject}
        return (
            outcome.incomplete <= first.incomplete
            and (outcome.evicted <= first.evicted or may_evict)
            and not any(
                least < first.least_ready.get(workload, outcome.ready_before[workload]) and not may_evict
                for workload, least in outcome.least_ready.items()
                if workload not in free
            )
            and not any(
                ready < first.ready_after.get(workload, outcome.ready_before[workload])
                for workload, ready in outcome.ready_after.items()
            )
            and not any(number > first.pending.get(workload, 0) for workload, number in outcome.pending.items())
            and not any(number > first.violations.get(budget, 0) for budget, number in outcome.violations.items())
            and not any(
                number < first.disruptions_after[budget]
                for budget, number in outcome.disruptions_after.items()
                if budget in first.disruptions_after
            )
        )


def _cost_of(checked: CheckedRollout) -> int:
    """The cost of the simulations; the first one is listed twice."""
    return sum(each.decisions * len(each.before.nodes) + _COST_OF_RUN for each in checked.simulated[1:])


def _is_worse(finding: GateFinding, before: GateFinding | None) -> bool:
    if before is None:
        # What the input lacks may become relevant once pods are created; that is not an effect.
        return finding.rule.row.takes is not OptionType.NOTHING
    is_more_severe = finding.status is FindingStatus.FAILS and before.status is not FindingStatus.FAILS
    return is_more_severe or finding.amount > before.amount or finding.share > before.share


def with_remedies(
    first: CheckedRollout, remedy_input: RemedyInput, rerun: Rerun, *, has_time: Callable[[], bool]
) -> Check:
    """The check, with remedies for the findings that count.

    The number of runs is limited by the cost of the first one, and no run starts once ``has_time`` is false.
    """
    counted = [each for each in first.check.findings if each.status.counts]
    if not counted:
        return first.check
    situation = Situation(first, remedy_input)
    proof = _Proof(first, rerun)
    budget = _MAX_COST + _cost_of(first)

    def may_go_on() -> bool:
        return proof.cost < budget and has_time()

    searched: dict[str, GateFinding] = {}
    ordered = sorted(counted, key=lambda each: each.status is not FindingStatus.FAILS)
    with_candidates = ((each, own) for each in ordered if (own := list(candidates_for(each, situation))))
    for finding, candidates in islice(with_candidates, _MAX_SEARCHED):
        found, how = search(
            candidates,
            lambda candidate, finding=finding: proof.remedy(candidate, finding),  # type: ignore[misc]
            has_time=may_go_on,
            most_tried=_MAX_TRIED,
            is_enough=lambda _: True,
        )
        cleared = clearing(finding, situation)
        searched[finding.fingerprint] = msgspec.structs.replace(
            finding, remedies=[*([cleared] if cleared else []), *found], search=how
        )
    findings = [searched.get(each.fingerprint, each) for each in first.check.findings]
    return msgspec.structs.replace(first.check, findings=findings)
