"""Finds remedies for a drain: each is simulated to the end of the drain, in every outcome that the drain itself has.

A remedy is kept if the drain finishes, or at least the eviction in question is no longer blocked, and nothing else gets
worse. What would be worse is measured against the drain without it, or, if that ends too early to tell, against one in
which ``kubectl`` gives up on what blocks it and goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice, product

import msgspec

from kpreempt.analysis.check.rollout.autoscalers import is_autoscaler
from kpreempt.analysis.check.simulations import Simulations
from kpreempt.analysis.document_reader import Document, describe
from kpreempt.analysis.drain.blocked import blocked_evictions
from kpreempt.analysis.drain.candidates import Candidates, missing_options, of_options
from kpreempt.analysis.drain.kubectl import DrainPlan, SimulatedDrain
from kpreempt.analysis.drain.variants import Variants, with_options
from kpreempt.analysis.remedies.owners import Owners
from kpreempt.analysis.remedies.search import Candidate, search
from kpreempt.analysis.remedies.selection import selected
from kpreempt.analysis.simulation.cluster import is_serving
from kpreempt.eviction.kubectl_drain import choose_pods
from kpreempt.eviction.selectors import parse_selector
from kpreempt.gate_rules import RuleId
from kpreempt.model.meta import grouped
from kpreempt.schedulers.interface import Settings
from kpreempt.verdict.check import FindingStatus, GateFinding
from kpreempt.verdict.drain import BlockedEviction, BlockReason
from kpreempt.verdict.remedies import Change, ChangeKind, Remedy, RemedySearch, RemedyStage
from kpreempt.verdict.simulation import BrokenDependencyKind, SimulationEnd

# Limits of the search: the number of changes that are tried, and their decisions times nodes in total.
_MAX_TRIALS = 24
_MAX_DECISIONS = 2_000_000
# If each simulation takes long, this many must show that a change helps.
_SOME_RUNS = 3
_MAX_COMBINATIONS, _MAX_STEPS = 6, 6
MOST_SHOWN = 3
# kubectl gives up on a node after this time, so that what blocks the nodes after it is found, too.
_PATIENCE_SECONDS = 6 * 3600.0
# A drain that gets further evicts more pods.
_NOT_COMPARED = frozenset({RuleId.MAX_VICTIMS, RuleId.MAX_VICTIMS_PER_WORKLOAD})
# A workload of one pod has a gap whenever its pod is evicted.
_ABOUT_GAPS = frozenset({RuleId.MIN_READY, RuleId.MAX_BROKEN_DEPENDENCIES, RuleId.BRIEF_INTERRUPTION})
_LACK_PODS = frozenset({BlockReason.PODS_PENDING, BlockReason.PODS_NOT_READY, BlockReason.TOO_FEW_PODS})
# Their pods end by themselves, belong to a node, or are reported as lost.
_NEVER_DOWN = ("Job ", "CronJob ", "DaemonSet ", "Pod ")
_NEEDS_REMEDIES = (RuleId.MAX_PENDING, *_ABOUT_GAPS)

_Finding = tuple[RuleId, str]


class DrainSearch(msgspec.Struct, frozen=True, kw_only=True):
    """What a search needs: the drain, how to simulate it, and how to find violated rules in a simulation.

    ``simulate`` prepares the simulations of a drain, ``run`` runs as many of them as requested, and ``run_some`` up
    to a number of them. ``daemon_sets`` are namespaces and names. ``documents`` are manifests of the cluster's
    Deployments and HorizontalPodAutoscalers. Nothing is tried once ``has_time`` is false.
    """

    plan: DrainPlan
    simulate: Callable[[DrainPlan], Simulations[SimulatedDrain]]
    run: Callable[[Simulations[SimulatedDrain]], Sequence[SimulatedDrain]]
    run_some: Callable[[Simulations[SimulatedDrain], int], Sequence[SimulatedDrain]]
    findings_of: Callable[[SimulatedDrain], Iterable[GateFinding]]
    daemon_sets: Collection[tuple[str, str]]
    now: datetime
    settings: Settings
    documents: Sequence[Document] = ()
    has_time: Callable[[], bool] = lambda: True


class DrainRemedies(msgspec.Struct, frozen=True, kw_only=True):
    """The blocked evictions with their remedies, those with which the drain finishes, and those for findings."""

    blocked: list[BlockedEviction]
    remedies: list[Remedy]
    search: RemedySearch
    of_findings: dict[_Finding, list[Remedy]]


def find_remedies(
    drain_search: DrainSearch,
    simulated: Sequence[SimulatedDrain],
    shown: SimulatedDrain,
    findings: Sequence[GateFinding],
) -> DrainRemedies:
    """Find remedies for what blocks the ``simulated`` drains, or else for the ``findings`` of the shown one."""
    needy = [each for each in findings if each.rule in _NEEDS_REMEDIES and each.status.counts]
    if shown.is_drained and not needy:
        return DrainRemedies(blocked=[], remedies=[], search=RemedySearch(), of_findings={})
    return _Finder(drain_search, simulated, shown).find(needy)


class _Effects(msgspec.Struct, frozen=True):
    """The worst of several simulations, by workload or budget: what a remedy must not make worse."""

    findings: frozenset[_Finding]
    ready_min: dict[str, int]
    ready_after: dict[str, int]
    pending: dict[str, int]
    violations: dict[str, int]
    preempted: int
    lost: frozenset[str]
    is_settled: bool


class _Proof(msgspec.Struct, frozen=True):
    """A remedy, its candidate, and the violated rules that are left with it."""

    remedy: Remedy
    candidate: Candidate
    findings: frozenset[_Finding]


class _Finder:
    def __init__(self, drain_search: DrainSearch, simulated: Sequence[SimulatedDrain], shown: SimulatedDrain) -> None:
        self._search, self._shown = drain_search, shown
        plan = drain_search.plan
        self._plan = plan
        self._owners = Owners(plan.cluster, filter(is_autoscaler, drain_search.documents))
        deployments = {describe(each): each for each in drain_search.documents if each.get("kind") == "Deployment"}
        restarted_at = drain_search.now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._candidates = Candidates(plan, self._owners, deployments, restarted_at, drain_search.settings)
        self._variants = Variants(plan, self._owners, deployments, drain_search.now, drain_search.settings)
        self._pods = {pod.key: pod for pod in plan.cluster.pods}
        self._ready = {key for key, pod in self._pods.items() if is_serving(pod)}
        self._num_ready = Counter(self._owners.workload_of(self._pods[key]) for key in self._ready)
        nodes = {name for batch in plan.batches for name in batch.nodes}
        num_pods = sum(pod.spec.node_name in nodes for pod in plan.cluster.pods)
        self._cost = max(shown.decisions, num_pods, 1) * len(plan.cluster.nodes)
        self._trials_left = min(_MAX_TRIALS, _MAX_DECISIONS // self._cost)
        self._tried, self._untried, self._stopped_by = 0, 0, ""
        self._proofs: list[_Proof] = []
        self._blocked = blocked_evictions(shown)
        self._options = missing_options(each.message for each in self._blocked)
        self._reference, self._is_ahead = simulated, False
        self._look_ahead()
        self._before = self._effects(self._reference)
        # The workloads whose ready pods a remedy may let go, one at a time: none while other pods are missing.
        self._disrupted = {
            self._owners.workload_of(self._pods[key])
            for each in self._blocked
            for key in each.pods
            if key in self._ready and each.reason not in _LACK_PODS
        }

    def _look_ahead(self) -> None:
        """Find what would block nodes that the drain does not reach, and pods that it does not get to."""
        plan, waiting = self._plan, [each.node for each in self._shown.works if each.began is None]
        if not (waiting or self._options) or not self._take():
            return
        selector = parse_selector(plan.options.pod_selector)
        for node in waiting:
            chosen = choose_pods(
                plan.cluster.pods, node, plan.options, selector, self._search.daemon_sets, self._search.now
            )
            self._options += [each for each in missing_options(chosen.errors) if each not in self._options]
            self._blocked += [
                BlockedEviction(
                    node=node,
                    reason=BlockReason.OPTION_REQUIRED,
                    pods=pods,
                    message=f"cannot delete {text}",
                    is_ahead=True,
                )
                for text, pods in chosen.errors.items()
            ]
        self._reference = self._all_runs(self._search.simulate(self._continued(plan)), 1)
        self._is_ahead = True
        found = [each for each in self._blocked if each.reason is not BlockReason.OPTION_REQUIRED]
        known = {(each.node, pod) for each in found for pod in each.pods}
        for each in blocked_evictions(self._reference[0]):
            if not any((each.node, pod) in known for pod in each.pods):
                self._blocked.append(msgspec.structs.replace(each, is_ahead=True))

    def _continued(self, plan: DrainPlan) -> DrainPlan:
        """The drain with all options that it lacks, in which ``kubectl`` gives up on a node and goes on."""
        options = with_options(plan.options, self._options)
        options = msgspec.structs.replace(options, timeout=options.timeout or _PATIENCE_SECONDS)
        return msgspec.structs.replace(plan, options=options, goes_on=True)

    def find(self, findings: Sequence[GateFinding]) -> DrainRemedies:
        """Find the remedies."""
        groups = grouped(self._blocked, lambda each: (each.reason, *each.budgets))
        remedies: dict[object, list[Remedy]] = {}
        whole = self._of_timeout()
        is_alone = len(groups) == 1
        for key, own in groups.items():
            remedies[key] = self._of_group(own, is_alone=is_alone)
        every = [*whole, *(each for found in remedies.values() for each in found if each.solves)]
        if not every and not is_alone:
            every = self._combined(list(remedies.values()))
        if not every and self._blocked:
            every = self._as_upgrade()
        solving = selected(_unique(every), MOST_SHOWN)
        blocked = [
            msgspec.structs.replace(each, remedies=remedies[key] or list(whole))
            for key, own in groups.items()
            for each in own
        ]
        order = {work.node: index for index, work in enumerate(self._shown.works)}
        blocked.sort(key=lambda each: (order[each.node], each.is_ahead, each.since, each.pods))
        of_findings = {(each.rule, each.subject): self._of_finding(each, solving) for each in findings}
        return DrainRemedies(
            blocked=blocked,
            remedies=solving,
            search=RemedySearch(self._tried, self._untried, self._stopped_by),
            of_findings=of_findings,
        )

    def _of_timeout(self) -> list[Remedy]:
        """A longer timeout, if the drain finishes without any."""
        options = self._plan.options
        if not (options.timeout and self._blocked and self._take()):
            return []
        endless = msgspec.structs.replace(self._plan, options=msgspec.structs.replace(options, timeout=0.0))
        runs = self._search.run(self._search.simulate(endless))
        if not all(each.is_drained for each in runs):
            return []
        longest = max((work.ended or 0.0) - (work.began or 0.0) for each in runs for work in each.works)
        option = f"--timeout={int(longest) + 1}s"
        candidate = Candidate(
            stage=RemedyStage.REQUESTER, changes=[Change(ChangeKind.OPTION, option)], options=[option], is_alone=True
        )
        remedy = self._prove(candidate, [], is_alone=True)
        return [remedy] if remedy is not None else []

    def _of_group(self, own: Sequence[BlockedEviction], *, is_alone: bool) -> list[Remedy]:
        """The remedies for what blocks evictions in the same way."""
        first = own[0]
        merged = msgspec.structs.replace(
            first,
            pods=[pod for each in own for pod in each.pods],
            workloads=list(dict.fromkeys(workload for each in own for workload in each.workloads)),
        )
        if first.reason is BlockReason.OPTION_REQUIRED:
            candidates = [of_options(self._options)] if self._options else []
            if self._is_ahead:
                # The look ahead had these options.
                solves = all(each.is_drained for each in self._reference)
                return [self._remedy(each, self._reference, solves=solves) for each in candidates]
        else:
            candidates = list(self._candidates.of_blocked(merged))
        found = self._searched(candidates, lambda each: self._prove(each, own, is_alone=is_alone))
        if not found or all(self._owners.size_of(each) == 1 for each in merged.workloads):
            # The gap that a workload of one pod has when its pod is evicted can be accepted.
            budgets = [each for each in candidates if each.stage in (RemedyStage.LIMIT, RemedyStage.DELETION)]
            found += self._searched(budgets, lambda each: self._prove(each, own, is_alone=is_alone, may_interrupt=True))
        # One way to change an object is enough.
        by_objects = {
            frozenset((change.kind, change.subject) for change in each.changes): each
            for each in reversed(selected(_unique(found), MOST_SHOWN))
        }
        return list(reversed(by_objects.values()))

    def _searched(self, candidates: Sequence[Candidate], prove: Callable[[Candidate], Remedy | None]) -> list[Remedy]:
        found, done = search(
            candidates, prove, has_time=self._search.has_time, most_tried=self._trials_left, most_shown=MOST_SHOWN
        )
        self._trials_left -= done.tried
        self._tried += done.tried
        self._untried += done.untried
        self._stopped_by = self._stopped_by or done.reason
        return found

    def _take(self) -> bool:
        """Whether there is time for one more trial, which then counts."""
        has_time = self._search.has_time()
        if not (self._trials_left and has_time):
            self._untried += 1
            self._stopped_by = self._stopped_by or ("limit" if has_time else "time")
            return False
        self._trials_left -= 1
        self._tried += 1
        return True

    def _combined(self, groups: Sequence[Sequence[Remedy]]) -> list[Remedy]:
        """The first combination of one remedy for each blocked eviction with which the whole drain finishes."""
        if not groups or not all(groups):
            return []
        for chosen in islice(product(*groups), _MAX_COMBINATIONS):
            if not self._take():
                return []
            combined = _merged([self._candidate_of(each) for each in chosen])
            may_interrupt = any(each.interrupted for each in chosen)
            remedy = self._prove(combined, self._blocked, is_alone=True, may_interrupt=may_interrupt)
            if remedy is not None:
                return [remedy]
        return []

    def _as_upgrade(self) -> list[Remedy]:
        """An upgrade instead of a drain, with what its own blocked evictions need."""
        for base in self._candidates.upgrades():
            parts = [*([of_options(self._options)] if self._options else []), base]
            for _ in range(_MAX_STEPS):
                if not self._take():
                    return []
                blocked = blocked_evictions(self._run_of(parts))
                if not blocked:
                    return self._reduced(parts)
                more = self._next_part(parts, blocked[0])
                if more is None:
                    break
                parts.append(more)
        return []

    def _run_of(self, parts: Sequence[Candidate]) -> SimulatedDrain:
        plan = self._continued(self._variants.of(_merged(parts)))
        return self._search.run_some(self._search.simulate(plan), 1)[0]

    def _next_part(self, parts: Sequence[Candidate], blocked: BlockedEviction) -> Candidate | None:
        """The first change that lets the blocked pods go, in addition to the ``parts``."""
        for each in self._candidates.of_blocked(blocked):
            if each.stage is RemedyStage.CAPACITY:
                continue
            if not self._take():
                return None
            run = self._run_of([*parts, each])
            if _lets_go([blocked], run) and self._is_no_worse(self._effects([run]), may_interrupt=False):
                return each
        return None

    def _reduced(self, parts: Sequence[Candidate]) -> list[Remedy]:
        """The remedy of all parts, without those that later ones made unnecessary."""
        found = self._prove(_merged(parts), self._blocked, is_alone=True)
        for each in parts if found is not None else ():
            fewer = [other for other in parts if other is not each]
            smaller = self._prove(_merged(fewer), self._blocked, is_alone=True) if fewer and self._take() else None
            if smaller is not None:
                found, parts = smaller, fewer
        return [found] if found is not None else []

    def _candidate_of(self, remedy: Remedy) -> Candidate:
        return next(each.candidate for each in self._proofs if each.remedy is remedy)

    def _of_finding(self, finding: GateFinding, solving: Sequence[Remedy]) -> list[Remedy]:
        """The remedies for a violated rule: those of the drain that help here, too, or else its own."""
        key = (finding.rule, finding.subject)
        if self._blocked:
            left = {id(each.remedy): each.findings for each in self._proofs}
            return [each for each in solving if key not in left[id(each)]]
        missing = [
            pod
            for each in self._shown.simulation.broken_dependencies
            if each.kind is BrokenDependencyKind.SERVICE and finding.subject == f"Service {each.subject}"
            for pod in each.missing
        ]
        candidates = list(self._candidates.of_finding(finding, missing))
        return self._searched(candidates, lambda each: self._prove(each, [], is_alone=True, without=key))

    # Proofs.

    def _prove(
        self,
        candidate: Candidate,
        own: Sequence[BlockedEviction],
        *,
        is_alone: bool,
        may_interrupt: bool = False,
        without: _Finding | None = None,
    ) -> Remedy | None:
        """The remedy, if ``own`` evictions are no longer blocked, or a violated rule is kept, and nothing is worse."""
        plan = self._variants.of(candidate)

        def is_good(runs: Sequence[SimulatedDrain]) -> bool:
            after = self._effects(runs)
            return without not in after.findings and self._is_no_worse(after, may_interrupt=may_interrupt)

        runs = self._runs_if(plan, lambda each: each.is_drained, is_good)
        solves = bool(runs)
        # A drain that becomes an upgrade ends differently, so it is not compared before it finishes.
        if not runs and not is_alone and plan.is_upgrade == self._plan.is_upgrade:
            runs = self._runs_if(self._continued(plan), lambda each: _lets_go(own, each), is_good)
        return self._remedy(candidate, runs, solves=solves) if runs else None

    def _remedy(self, candidate: Candidate, runs: Sequence[SimulatedDrain], *, solves: bool) -> Remedy:
        """The remedy of a candidate with the outcome of its simulations."""
        after = self._effects(runs)
        interrupted = sorted(
            workload
            for workload, ready in after.ready_min.items()
            if not ready and self._before.ready_min.get(workload, self._num_ready[workload])
        )
        lost = sorted(after.lost) if "--force" in candidate.options else []
        pending = max(sum(each.was_running for each in run.simulation.pending) for run in runs)
        remedy = candidate.remedy(solves=solves, pending=pending, lost=lost, interrupted=interrupted)
        self._proofs.append(_Proof(remedy, candidate, after.findings))
        return remedy

    def _runs_if(
        self,
        plan: DrainPlan,
        holds: Callable[[SimulatedDrain], bool],
        is_good: Callable[[Sequence[SimulatedDrain]], bool],
    ) -> Sequence[SimulatedDrain]:
        """All simulations of the drain, if they are good, and the condition holds in each of them; else none."""
        simulations = self._search.simulate(plan)
        # Most candidates fail in the first simulation.
        first = self._search.run_some(simulations, 1)
        if not (holds(first[0]) and is_good(first)):
            return []
        runs = self._all_runs(simulations, _SOME_RUNS)
        return runs if all(map(holds, runs)) and is_good(runs) else []

    def _all_runs(self, simulations: Simulations[SimulatedDrain], some: int) -> Sequence[SimulatedDrain]:
        """As many simulations as of the drain itself, or ``some`` if each takes long."""
        is_fast = self._cost * _MAX_TRIALS <= _MAX_DECISIONS
        return self._search.run(simulations) if is_fast else self._search.run_some(simulations, some)

    def _is_no_worse(self, after: _Effects, *, may_interrupt: bool) -> bool:
        before = self._before
        ignored = _ABOUT_GAPS if may_interrupt else frozenset()
        new = {each for each in after.findings - before.findings if each[0] not in ignored}
        if new or not after.is_settled or after.preempted > before.preempted or not after.lost <= before.lost:
            return False
        if _exceeds(after.pending, before.pending) or _exceeds(after.violations, before.violations):
            return False
        for workload, ready in after.ready_min.items():
            at_start = self._num_ready[workload]
            floor = min(before.ready_min.get(workload, at_start), at_start)
            if workload in self._disrupted:
                is_gap_accepted = may_interrupt and self._owners.size_of(workload) in (1, None)
                floor = max(floor - 1, 0 if is_gap_accepted else min(floor, 1))
            if ready < floor or after.ready_after[workload] < min(before.ready_after.get(workload, at_start), at_start):
                return False
        return True

    def _effects(self, runs: Sequence[SimulatedDrain]) -> _Effects:
        simulations = [each.simulation for each in runs]
        workloads = [
            each
            for simulation in simulations
            for each in simulation.workloads
            if not each.workload.startswith(_NEVER_DOWN)
        ]
        ready_min: dict[str, int] = {}
        ready_after: dict[str, int] = {}
        for each in workloads:
            ready_min[each.workload] = min(ready_min.get(each.workload, each.ready_min), each.ready_min)
            ready_after[each.workload] = min(ready_after.get(each.workload, each.ready_after), each.ready_after)
        violations: dict[str, int] = {}
        pending: dict[str, int] = {}
        for simulation in simulations:
            for budget in simulation.budgets:
                violations[budget.budget] = max(violations.get(budget.budget, 0), budget.violations)
            waiting: dict[str, int] = {}
            for pod in simulation.pending:
                if not pod.pending_before:
                    waiting[pod.workload] = waiting.get(pod.workload, 0) + 1
            pending |= {workload: max(number, pending.get(workload, 0)) for workload, number in waiting.items()}
        findings = {
            (each.rule, each.subject)
            for run in runs
            for each in self._search.findings_of(run)
            if each.status in (FindingStatus.FAILS, FindingStatus.WARNS)
            and each.rule not in _NOT_COMPARED
            and not each.rule.row.about_input
        }
        return _Effects(
            findings=frozenset(findings),
            ready_min=ready_min,
            ready_after=ready_after,
            pending=pending,
            violations=violations,
            preempted=max(sum(not each.drained for each in simulation.displaced) for simulation in simulations),
            lost=frozenset(each.pod for simulation in simulations for each in simulation.displaced if each.lost),
            is_settled=all(simulation.end is SimulationEnd.SETTLED for simulation in simulations),
        )


def _lets_go(own: Iterable[BlockedEviction], drain: SimulatedDrain) -> bool:
    """Whether the pods are no longer blocked, and their nodes are reached."""
    refused = {each.pod.key for each in drain.rejected_evictions} | {pod for _, pod in drain.late}
    reached = {work.node for work in drain.works if work.began is not None}
    return all(each.node in reached and refused.isdisjoint(each.pods) for each in own)


def _merged(parts: Sequence[Candidate]) -> Candidate:
    """All sets of changes together; what is in several of them counts once."""
    whole = parts[0]
    for part in parts[1:]:
        whole += msgspec.structs.replace(
            part,
            changes=[each for each in part.changes if each not in whole.changes],
            options=[each for each in part.options if each not in whole.options],
            edits=[each for each in part.edits if each not in whole.edits],
        )
    return whole


def _unique(remedies: Iterable[Remedy]) -> Iterator[Remedy]:
    seen = set()
    for each in remedies:
        key = msgspec.json.encode([each.changes, each.options])
        if key not in seen:
            seen.add(key)
            yield each


def _exceeds(after: dict[str, int], before: dict[str, int]) -> bool:
    return any(number > before.get(name, 0) for name, number in after.items())
