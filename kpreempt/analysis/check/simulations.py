"""A change simulated: once, several times by chance, or with every choice that chance may make."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from math import prod
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from kpreempt.analysis.algorithms import Scheduler, Spread, one_by_one, timed_by_part
from kpreempt.analysis.check.rollout.controller_inputs import seconds_in_all
from kpreempt.analysis.check.rollout.controllers import start_controllers
from kpreempt.analysis.check.rollout.records import Plan
from kpreempt.analysis.questions import Decode
from kpreempt.analysis.simulation.claims import bind_claims
from kpreempt.analysis.simulation.engine import Limits, SimulationStart, simulate
from kpreempt.analysis.simulation.scheduling import AT_ONCE, Branch, Choose, Pace, first_branch
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import OutcomeShare
from kpreempt.verdict.simulation import Simulation, StepKind

# Beyond this a simulation is broken off; a rollout needs a few attempts for each of its pods.
_ATTEMPTS = 50_000
# So is one that goes on for a day beyond the time that its Jobs take.
_SECONDS = 24 * 3600.0
# So many simulations by default where chance leaves more; all of them where one simulation foretells no more than that.
_FEW_PLAYS = 20
_MOST_PLAYS = 2 * _FEW_PLAYS
_LEAST_PLAYS = 4
# As many are enough to see whether it makes a difference how fast everything is.
_PACED_PLAYS = 4
# What the drawn simulations may come to together, in decisions times nodes, which is what a decision takes.
_MOST_DECISIONS = 4_000_000
# From here on a simulation takes a second or more.
_MANY_DECISIONS = 300_000
_DECIDED = (StepKind.BOUND, StepKind.NOMINATED, StepKind.PENDING)


class Simulated(msgspec.Struct, frozen=True):
    """One run of a change: the seed or the number that it goes by, what was assumed, and the cluster at both ends.

    ``likelihood`` is the product of the shares that each choice of it has among its branches. It ``has_others`` where
    some choice has more branches than were told. ``unbound`` are the claims of the change that nothing can be bound to,
    by key, with the reason; ``waiting_claims`` those of them that would be bound with a pod.
    ``refused`` says of workloads why the API server refuses their pods, and ``exceeded`` of quotas for which other
    objects of the change they have no room.
    """

    seed: int
    simulation: Simulation
    assumptions: list[Assumption]
    before: ClusterSnapshot
    after: ClusterSnapshot
    likelihood: float = 1.0
    taken: tuple[int, ...] = ()
    widths: tuple[int, ...] = ()
    has_others: bool = False
    decisions: int = 0
    unbound: Mapping[str, str] = {}
    waiting_claims: Mapping[str, str] = {}
    refused: Mapping[str, str] = {}
    exceeded: Mapping[str, str] = {}


SomeSimulated = TypeVar("SomeSimulated", bound=Simulated)


class SimulationContext(NamedTuple):
    """What simulates a question: the scheduler, and what decides where it leaves a choice.

    ``at`` is the time of the snapshot, whose age counts to ``now``. ``chances`` makes what draws, by a seed, and
    ``paces`` how long everything takes. ``spread`` has several simulations worked on at once.
    """

    scheduler: Scheduler
    now: datetime
    at: datetime
    chances: Callable[[int], Choose]
    paces: Callable[[int], Pace] = lambda _: AT_ONCE
    spread: Spread = one_by_one
    phases: Phases = NO_PHASES


class Choices:
    """Takes what ``prefix`` says, draw by draw, and then what ``others`` picks; remembers among how many it was."""

    def __init__(self, prefix: Sequence[int], others: Choose) -> None:
        self._prefix = prefix
        self._others = others
        self.widths: list[int] = []
        self.taken: list[int] = []
        self.likelihood = 1.0
        self.has_others = False

    def choose(self, branches: Sequence[Branch]) -> Branch:
        at = len(self.widths)
        chosen = branches[self._prefix[at]] if at < len(self._prefix) else self._others(branches)
        self.widths.append(len(branches))
        self.has_others |= any(branch.has_others for branch in branches)
        self.taken.append(next(index for index, branch in enumerate(branches) if branch is chosen))
        self.likelihood *= chosen.weight / sum(branch.weight for branch in branches)
        return chosen


class Rollouts:
    """A plan, ready to be simulated any number of times. The cluster is prepared for the scheduler once."""

    def __init__(self, plan: Plan, decode: Decode, context: SimulationContext) -> None:
        self._plan = plan
        self._scheduler = timed_by_part(context.scheduler, context.phases)
        self._decode = decode
        self._now = context.at
        self._phases = context.phases
        self._prepared: Any = None

    def __call__(self, seed: int, choices: Choices, pace: Pace) -> Simulated:
        """One simulation."""
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
        # Claims that were made with pods may be left unbound, too.
        known = {each.key for each in made.claims.cluster.persistent_volume_claims}
        new = [each.key for each in after.persistent_volume_claims if each.key not in known]
        return Simulated(
            seed=seed,
            simulation=simulation,
            assumptions=list(dict.fromkeys([*made.assumptions, *assumptions])),
            before=made.cluster,
            after=after,
            unbound={**made.claims.unbound, **bind_claims(after, new, self._scheduler.settings).unbound},
            refused=made.refused,
            exceeded=made.exceeded,
            waiting_claims=made.claims.waiting,
        )


class Simulations(Generic[SomeSimulated]):
    """Simulates a scenario any number of times: ``play`` does so once, with choices and a pace.

    So many ``decisions``, times nodes, are foreseen for each. They begin with the objects of the ``cluster``.
    """

    def __init__(
        self,
        play: Callable[[int, Choices, Pace], SomeSimulated],
        context: SimulationContext,
        *,
        decisions: int = 0,
        cluster: ClusterSnapshot | None = None,
    ) -> None:
        self._is_long = decisions >= _MANY_DECISIONS
        self._shared = [cluster, *cluster.pods, *cluster.nodes] if cluster is not None else []
        self._play = play
        self._chances = context.chances
        self._paces = context.paces
        self._spread = context.spread

    def by_chance(self, seed: int) -> SomeSimulated:
        """A simulation in which the seed decides where the scheduler draws, and how long everything takes."""
        return self._simulate(seed, Choices((), self._chances(seed)), self._paces(seed))

    def run_requested(self, seed: int, runs: int | None, worst_of: int) -> tuple[list[SomeSimulated], bool]:
        """``runs`` simulations from ``seed`` on, as many as are enough for ``None``, or ``worst_of`` with all choices.

        And whether these are all that there can be.
        """
        if worst_of:
            return self.every(worst_of)
        if runs is None:
            return self.enough(seed)
        found = list(self.several(seed, runs))
        return found, not (found[0].simulation.draws or found[1:])

    def several(self, seed: int, runs: int) -> Iterator[SomeSimulated]:
        """As many simulations, with seeds that follow one another; one is enough where nothing is up to chance."""
        # Long ones begin before it is known whether anything is up to chance; where nothing is, they are left.
        found = self._drawn(range(seed, seed + runs), is_long=self._is_long and runs > 1)
        first = next(found)
        yield first
        # Who goes may depend on who comes first.
        if first.simulation.draws or first.simulation.displaced:
            yield from found

    def every(self, most: int, first: SomeSimulated | None = None) -> tuple[list[SomeSimulated], bool]:
        """The simulations of all choices there are, ``most`` at most, and whether these were all.

        The first takes the first branch wherever there is a draw, or is the one that was simulated already; then come
        those that differ from it in one choice, and so on.
        """
        found: list[SomeSimulated] = []
        waiting: deque[tuple[int, ...]] = deque([()])
        while waiting and len(found) < most:
            prefix = waiting.popleft()
            simulated = (
                first if first is not None and not found else self._simulate(len(found), Choices(prefix, first_branch))
            )
            found.append(msgspec.structs.replace(simulated, seed=len(found)))
            for place in range(len(prefix), len(simulated.widths)):
                others = (other for other in range(simulated.widths[place]) if other != simulated.taken[place])
                waiting.extend((*simulated.taken[:place], other) for other in others)
        return found, not waiting and not any(simulated.has_others for simulated in found)

    def enough(self, seed: int) -> tuple[list[SomeSimulated], bool]:
        """As many simulations as show what chance may do, and whether these are all that there can be.

        One where nothing is up to chance, all where they are few, else so many with seeds that follow one another as
        their decisions leave room for. They are not all where another pace leads to something else. How long a decision
        takes on this machine has no part in it.
        """
        first, *more = self.several(seed, _LEAST_PLAYS if self._is_long else 1)
        if not (first.simulation.draws or first.simulation.displaced):
            return [first], True
        made = max(first.decisions * len(first.before.nodes), 1)
        room = _MOST_DECISIONS // made
        if prod(first.widths) <= _FEW_PLAYS:
            # More than one simulation foretells may be there after all; those that were looked at count all the same.
            of_all = first if self._paces(seed).is_at_once else None
            found, is_all = self.every(min(max(room, _LEAST_PLAYS), _MOST_PLAYS), of_all)
            # Whether it makes no difference how long everything takes.
            kinds = {_key_of(share_of(each)) for each in found}
            paced = self._drawn(range(seed + 1, seed + 1 + _PACED_PLAYS)) if first.simulation.displaced else ()
            if all(_key_of(share_of(each)) in kinds for each in paced):
                return found, is_all
        seeds = range(seed + 1 + len(more), seed + min(max(room, _LEAST_PLAYS), _FEW_PLAYS))
        return [first, *more, *self._drawn(seeds, is_long=made >= _MANY_DECISIONS)], False

    def _drawn(self, seeds: range, *, is_long: bool = False) -> Iterator[SomeSimulated]:
        return self._spread(seeds, self.by_chance, is_long=is_long, shared=self._shared)

    def _simulate(self, seed: int, choices: Choices, pace: Pace = AT_ONCE) -> SomeSimulated:
        simulated = self._play(seed, choices, pace)
        return msgspec.structs.replace(
            simulated,
            likelihood=choices.likelihood,
            taken=tuple(choices.taken),
            widths=tuple(choices.widths),
            has_others=choices.has_others,
            decisions=sum(step.kind in _DECIDED for step in simulated.simulation.steps),
        )


def share_of(simulated: Simulated, *, fails: bool = False, share: float = 0.0) -> OutcomeShare:
    """The outcome of one simulation, by which it is told from others; it counts once, and as ``share`` of the whole."""
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
    """The same for outcomes that count as equal."""
    return msgspec.json.encode(msgspec.structs.replace(outcome, seed=0, count=0, share=0), order="deterministic")


def shares(outcomes: Sequence[OutcomeShare]) -> list[OutcomeShare]:
    """Equal outcomes counted together, the most frequent first."""
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
    """The greater the worse: budgets broken, pods that wait, victims, how deep the cascade is, what is stranded."""
    return (
        simulation.end != "Settled",
        sum(budget.violations for budget in simulation.budgets),
        sum(not each.pending_before for each in simulation.pending),
        len(simulation.displaced),
        simulation.depth,
        len(simulation.broken_dependencies),
    )
