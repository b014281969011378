"""Simulates a change once, several times at random, or with every possible choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from math import prod
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from kpreempt.analysis.algorithms import Scheduler, Spread, one_by_one, timed_by_part
from kpreempt.analysis.check.rollout.controller_inputs import seconds_in_all
from kpreempt.analysis.check.rollout.controllers import start_controllers
from kpreempt.analysis.check.rollout.records import Plan
from kpreempt.analysis.pod_inputs import Decode
from kpreempt.analysis.simulation.claims import bind_claims
from kpreempt.analysis.simulation.engine import Limits, SimulationStart, simulate
from kpreempt.analysis.simulation.runs import DecisionTrace, run_exhaustive
from kpreempt.analysis.simulation.scheduling import AT_ONCE, Choose, Pace, first_branch
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import OutcomeShare
from kpreempt.verdict.simulation import Simulation, StepKind

# A simulation is aborted after this many attempts; a rollout needs a few for each of its pods.
_ATTEMPTS = 50_000
# A simulation is also aborted one day after its Jobs should have ended.
_SECONDS = 24 * 3600.0
# The default number of runs if there are many possible outcomes. If one run predicts no more outcomes than this, all of
# them are simulated.
_DEFAULT_RUNS = 20
_MAX_RUNS = 2 * _DEFAULT_RUNS
_MIN_RUNS = 4
# Enough runs to see whether the speed of components makes a difference.
_PACED_RUNS = 4
# The budget for random simulations in total, in decisions times nodes (the cost of a decision).
_MAX_DECISIONS = 4_000_000
# From this cost on, a simulation takes a second or more.
_LONG_DECISIONS = 300_000
_DECIDED = (StepKind.BOUND, StepKind.NOMINATED, StepKind.PENDING)


class Simulated(msgspec.Struct, frozen=True):
    """One simulation of a change: its seed or number, its assumptions, and the cluster before and after.

    ``likelihood`` is the product of the shares of its choices, which the seed has drawn if it ``is_drawn``. It
    ``is_truncated`` if a choice had more branches than
    were enumerated. ``unbound`` maps claims of the change that cannot be bound to the reason; ``waiting_claims`` are
    those that would be bound together with a pod. ``rejected`` maps workloads to the reason why the API server rejects
    their pods, and ``exceeded`` maps quotas to the reason why they reject other objects of the change.
    """

    seed: int
    simulation: Simulation
    assumptions: list[Assumption]
    before: ClusterSnapshot
    after: ClusterSnapshot
    likelihood: float = 1.0
    is_drawn: bool = False
    chosen: tuple[int, ...] = ()
    widths: tuple[int, ...] = ()
    is_truncated: bool = False
    decisions: int = 0
    unbound: Mapping[str, str] = {}
    waiting_claims: Mapping[str, str] = {}
    rejected: Mapping[str, str] = {}
    exceeded: Mapping[str, str] = {}


SomeSimulated = TypeVar("SomeSimulated", bound=Simulated)


class SimulationContext(NamedTuple):
    """What a simulation needs: the scheduler, and how to decide random choices.

    ``at`` is the time of the snapshot; its age is counted to ``now``. ``chances`` returns the random choices for a
    seed, ``paces`` the speed of components. ``spread`` runs several simulations in parallel.
    """

    scheduler: Scheduler
    now: datetime
    at: datetime
    chances: Callable[[int], Choose]
    paces: Callable[[int], Pace] = lambda _: AT_ONCE
    spread: Spread = one_by_one
    phases: Phases = NO_PHASES


class Rollouts:
    """A plan that can be simulated any number of times; the cluster is prepared for the scheduler once."""

    def __init__(self, plan: Plan, decode: Decode, context: SimulationContext) -> None:
        self._plan = plan
        self._scheduler = timed_by_part(context.scheduler, context.phases)
        self._decode = decode
        self._now = context.at
        self._phases = context.phases
        self._prepared: Any = None

    def __call__(self, seed: int, choices: DecisionTrace, pace: Pace) -> Simulated:
        """Run one simulation."""
        made = start_controllers(self._plan, self._decode, self._now, self._scheduler.settings)
        if self._prepared is None:
            with self._phases.phase("prepare"):
                self._prepared = self._scheduler.prepare(made.cluster, now=self._now)
        first, *later = made.stages
        start = SimulationStart(
            arriving=first.arriving,
            leaving=self._plan.deleted_pods,
            lost_nodes=self._plan.deleted_nodes,
            controllers=first.controllers,
            is_awaited=first.is_awaited,
            later=later,
            run_times=made.run_times,
            choose=choices.choose,
            pace=pace,
        )
        with self._phases.phase("simulation"):
            simulation, assumptions, after = simulate(
                pace.in_drawn_order(made.cluster),
                start,
                self._scheduler,
                now=self._now,
                limits=Limits(attempts=_ATTEMPTS, seconds=_SECONDS + seconds_in_all(self._plan)),
                prepared=self._prepared if pace.is_at_once else None,
            )
        # Claims created with pods can remain unbound, too.
        known = {each.key for each in made.claims.cluster.persistent_volume_claims}
        new = [each.key for each in after.persistent_volume_claims if each.key not in known]
        return Simulated(
            seed=seed,
            simulation=simulation,
            assumptions=list(dict.fromkeys([*made.assumptions, *assumptions])),
            before=made.cluster,
            after=after,
            unbound={**made.claims.unbound, **bind_claims(after, new, self._scheduler.settings).unbound},
            rejected=made.rejected,
            exceeded=made.exceeded,
            waiting_claims=made.claims.waiting,
        )


class Simulations(Generic[SomeSimulated]):
    """Simulates a scenario any number of times; ``run`` runs it once, with choices and a pace.

    ``decisions`` is the expected number per run, times nodes. The objects of ``cluster`` are shared between processes.
    """

    def __init__(
        self,
        run: Callable[[int, DecisionTrace, Pace], SomeSimulated],
        context: SimulationContext,
        *,
        decisions: int = 0,
        cluster: ClusterSnapshot | None = None,
    ) -> None:
        self._is_long = decisions >= _LONG_DECISIONS
        self._shared = [cluster, *cluster.pods, *cluster.nodes] if cluster is not None else []
        self._run = run
        self._chances = context.chances
        self._paces = context.paces
        self._spread = context.spread

    def by_chance(self, seed: int) -> SomeSimulated:
        """A simulation in which the seed decides random choices and the speed of components."""
        found = self._simulate(seed, DecisionTrace((), self._chances(seed)), self._paces(seed))
        return msgspec.structs.replace(found, is_drawn=True)

    def like(self, others: Sequence[Simulated]) -> list[SomeSimulated]:
        """Simulate this scenario with the draws of each of these simulations of another one."""
        draws = [(each.seed, None if each.is_drawn else each.chosen) for each in others]
        first = self._redrawn(draws[0])
        if not (first.simulation.draws or first.simulation.displaced):
            return [first] * len(others)
        return [first, *self._spread(draws[1:], self._redrawn, is_long=self._is_long, shared=self._shared)]

    def _redrawn(self, draws: tuple[int, tuple[int, ...] | None]) -> SomeSimulated:
        seed, chosen = draws
        return self.by_chance(seed) if chosen is None else self._simulate(seed, DecisionTrace(chosen, first_branch))

    def run_requested(self, seed: int, runs: int | None, worst_of: int) -> tuple[list[SomeSimulated], bool]:
        """Run ``runs`` simulations from ``seed`` on (``None``: as many as needed), or ``worst_of`` with every choice.

        Also returns whether these are all possible simulations.
        """
        if worst_of:
            return self.run_exhaustive(worst_of)
        if runs is None:
            return self.run_adaptive(seed)
        found = list(self.run_samples(seed, runs))
        return found, not (found[0].simulation.draws or found[1:])

    def run_samples(self, seed: int, runs: int) -> Iterator[SomeSimulated]:
        """Run simulations with consecutive seeds; one is enough if nothing is random."""
        # Start long ones in parallel before it is known whether anything is random; if nothing is, they are discarded.
        found = self._drawn(range(seed, seed + runs), is_long=self._is_long and runs > 1)
        first = next(found)
        yield first
        # The victims may depend on the order in which pods are created.
        if first.simulation.draws or first.simulation.displaced:
            yield from found

    def run_exhaustive(self, limit: int, first: SomeSimulated | None = None) -> tuple[list[SomeSimulated], bool]:
        """Simulate every possible choice, up to ``limit`` runs (``runs.run_exhaustive``), numbered from 0."""
        found, is_all = run_exhaustive(self._simulate, limit, first)
        return [msgspec.structs.replace(each, seed=number) for number, each in enumerate(found)], is_all

    def run_adaptive(self, seed: int) -> tuple[list[SomeSimulated], bool]:
        """Run as many simulations as needed to cover the possible outcomes; also returns whether these are all.

        Runs one if nothing is random, all if there are few, and otherwise as many random ones as the budget of
        decisions allows. They do not count as all if another pace leads to another outcome. The speed of this machine
        has no influence.
        """
        first, *more = self.run_samples(seed, _MIN_RUNS if self._is_long else 1)
        if not (first.simulation.draws or first.simulation.displaced):
            return [first], True
        cost = max(first.decisions * len(first.before.nodes), 1)
        affordable = _MAX_DECISIONS // cost
        if prod(first.widths) <= _DEFAULT_RUNS:
            # There may be more outcomes than one run predicts; those that were simulated still count.
            of_all = first if self._paces(seed).is_at_once else None
            found, is_all = self.run_exhaustive(min(max(affordable, _MIN_RUNS), _MAX_RUNS), of_all)
            # Check whether the speed of components makes a difference.
            kinds = {_key_of(share_of(each)) for each in found}
            paced = self._drawn(range(seed + 1, seed + 1 + _PACED_RUNS)) if first.simulation.displaced else ()
            if all(_key_of(share_of(each)) in kinds for each in paced):
                return found, is_all
        seeds = range(seed + 1 + len(more), seed + min(max(affordable, _MIN_RUNS), _DEFAULT_RUNS))
        return [first, *more, *self._drawn(seeds, is_long=cost >= _LONG_DECISIONS)], False

    def _drawn(self, seeds: range, *, is_long: bool = False) -> Iterator[SomeSimulated]:
        return self._spread(seeds, self.by_chance, is_long=is_long, shared=self._shared)

    def _simulate(self, seed: int, choices: DecisionTrace, pace: Pace = AT_ONCE) -> SomeSimulated:
        simulated = self._run(seed, choices, pace)
        return msgspec.structs.replace(
            simulated,
            likelihood=choices.likelihood,
            chosen=tuple(choices.chosen),
            widths=tuple(choices.widths),
            is_truncated=choices.is_truncated,
            decisions=sum(step.kind in _DECIDED for step in simulated.simulation.steps),
        )


def share_of(simulated: Simulated, *, fails: bool = False, share: float = 0.0) -> OutcomeShare:
    """The outcome of one simulation, which counts once, and as ``share`` of the total."""
    simulation = simulated.simulation
    return OutcomeShare(
        count=1,
        seed=simulated.seed,
        share=share,
        fails=fails,
        end=simulation.end,
        victims=dict(sorted(Counter(each.workload for each in simulation.displaced).items())),
        violations={budget.budget: budget.violations for budget in simulation.budgets if budget.violations},
        pending=dict(sorted(Counter(each.workload for each in simulation.pending).items())),
        depth=simulation.depth,
    )


def _key_of(outcome: OutcomeShare) -> bytes:
    """A key that is equal for equal outcomes."""
    return msgspec.json.encode(msgspec.structs.replace(outcome, seed=0, count=0, share=0), order="deterministic")


def shares(outcomes: Sequence[OutcomeShare]) -> list[OutcomeShare]:
    """Count equal outcomes together, the most frequent first."""
    found: dict[bytes, OutcomeShare] = {}
    for each in outcomes:
        key = _key_of(each)
        known = found.get(key)
        if known is not None:
            count, share = known.count + each.count, known.share + each.share
            found[key] = msgspec.structs.replace(known, count=count, share=share)
        else:
            found[key] = each
    return sorted(found.values(), key=lambda each: (-each.count, each.seed))


def severity_key(simulation: Simulation) -> tuple[int, ...]:
    """A sort key for how bad a simulation is: violated PDBs, pending pods, victims, depth, broken dependencies."""
    return (
        simulation.end != "Settled",
        sum(budget.violations for budget in simulation.budgets),
        sum(not each.pending_before for each in simulation.pending),
        len(simulation.displaced),
        simulation.depth,
        len(simulation.broken_dependencies),
    )
