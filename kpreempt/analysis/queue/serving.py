"""Serves the queue of a cluster: simulates the scheduler until nothing changes, several times if anything is open.

The first run takes the likely order of the queue and the first of equal results. If the order is not known exactly, or
if chance decides, further runs draw both. Pods of one kind whose mutual order is unknown are interchangeable: if some
of them are scheduled, it is open which ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from math import prod
from typing import Any, NamedTuple

import msgspec

from kpreempt.analysis.algorithms import (
    AnalysisContext,
    Spread,
    equivalence_key_for,
    one_by_one,
    pending_pods,
    timed_by_part,
)
from kpreempt.analysis.pending.states import counts_in
from kpreempt.analysis.queue.waiting import UnknownTimes, Waiting, queue_of, queue_positions, waiting_pods
from kpreempt.analysis.simulation.engine import Limits, SimulationStart, simulate
from kpreempt.analysis.simulation.runs import DecisionTrace, run_exhaustive
from kpreempt.analysis.simulation.scheduling import AT_ONCE, Choose, Pace, first_branch
from kpreempt.model.meta import controller_name
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption, Outcome, Verdict
from kpreempt.verdict.served import QUEUE_SECONDS, InTurn, OpenPods, ServedQueue, TurnInQueue, TurnOutcome
from kpreempt.verdict.simulation import Simulation, SimulationEnd, StepKind

LIMITS = Limits(attempts=20_000, seconds=QUEUE_SECONDS)
# The number of runs if chance or an unknown order matters: all possible results, if they are no more than this.
_RUNS = 20
# The number if these differ and something is evicted: pods race for what victims leave, and some orders are rare.
_RACES = 60
# The budget for all further runs, in attempts times nodes.
_MAX_WORK = 2_000_000
# An eviction, with what follows, takes as long as this number of other attempts.
_EVICTION_WORK = 10
# The limit for the turn of one pod.
_MAX_WORK_FOR_ONE = 200_000
# From this cost on, a run takes a second or more.
_LONG_WORK = 300_000


class Draws(NamedTuple):
    """What decides at random, by seed: results of decisions, the speed of components, and numbers from 0 to 1."""

    choices: Callable[[int], Choose]
    paces: Callable[[int], Pace]
    numbers: Callable[[int], Callable[[], float]]


def turn_of(
    context: AnalysisContext, pod: Pod, verdict: Verdict, draws: Draws
) -> tuple[TurnInQueue | None, list[Assumption]]:
    """What becomes of a pending pod when the whole queue is served, if that takes no longer than explaining the pod.

    ``verdict`` is on the pod alone. ``None`` if the pod is not in the queue, or is alone in it.
    """
    scheduler, at = context.scheduler, context.time
    prepared: list[Any] = []

    def prepare() -> Any:
        if not prepared:
            prepared.append(scheduler.prepare(context.cluster, now=at))
        return prepared[0]

    is_short = len(pending_pods(context.cluster)) * len(context.cluster.nodes) <= _MAX_WORK_FOR_ONE
    known = {pod.key: verdict}
    waiting = waiting_pods(context.cluster, scheduler, prepare, at, known=known, decides=is_short)
    if len(waiting) < 2 or all(each.pod.key != pod.key for each in waiting):
        return None, []
    positions = queue_positions(queue_of(scheduler, waiting, at, scheduler.queue_rules(prepare, context.phases)))
    place = TurnInQueue(position=positions.get(pod.key), in_queue=len(positions))
    if not is_short:
        return place, []
    served, assumptions = Server(context, prepare(), waiting, draws).serve(max_work=_MAX_WORK_FOR_ONE)
    turn = with_reasons(served.in_turn[pod.key], verdict)
    return msgspec.structs.replace(place, runs=served.runs, is_complete=served.is_complete, turn=turn), assumptions


def with_reasons(turn: InTurn, verdict: Verdict) -> InTurn:
    """What becomes of a pod with the reasons why it stays pending; one that is not tried again is rejected as now.

    A pod that a plugin holds out of the queue until the end is not served.
    """
    if turn.outcome is TurnOutcome.LEFT_PENDING and verdict.outcome is Outcome.NOT_SCHEDULED:
        return msgspec.structs.replace(turn, outcome=TurnOutcome.NOT_SERVED)
    if turn.outcome not in (TurnOutcome.LEFT_PENDING, TurnOutcome.OPEN):
        return turn
    message = turn.message or (verdict.message if turn.outcome is TurnOutcome.LEFT_PENDING else "")
    return msgspec.structs.replace(turn, message=message, reasons=counts_in(message))


class _Fate(NamedTuple):
    """What became of a pod in one run."""

    outcome: TurnOutcome
    node: str = ""
    victims: tuple[str, ...] = ()
    violated: tuple[str, ...] = ()
    seconds: float | None = None
    message: str = ""


class _Run(msgspec.Struct, frozen=True):
    simulation: Simulation
    fates: dict[str, _Fate]
    widths: tuple[int, ...]
    chosen: tuple[int, ...]
    is_truncated: bool
    assumptions: list[Assumption]


class Server:
    """Serves the queue of one prepared cluster any number of times."""

    def __init__(self, context: AnalysisContext, prepared: Any, waiting: Sequence[Waiting], draws: Draws) -> None:
        self._context = context
        self._scheduler = timed_by_part(context.scheduler, context.phases)
        self._prepared = prepared
        self._waiting = waiting
        self._times = UnknownTimes(waiting, context.time)
        self._draws = draws

    def serve(self, *, spread: Spread = one_by_one, max_work: int = _MAX_WORK) -> tuple[ServedQueue, list[Assumption]]:
        """Serve the queue; ``max_work`` limits the further runs, in attempts times nodes."""
        # If no further run is affordable, the other results of a decision are not needed.
        is_only_run = len(self._waiting) * len(self._context.cluster.nodes) > max_work
        first = self._run(None if is_only_run else DecisionTrace((), first_branch))
        runs, is_complete = [first], True
        displaces = bool(first.simulation.displaced)
        if displaces or first.simulation.draws or not self._times.are_all_known or first.is_truncated:
            simulation = first.simulation
            weight = simulation.attempts + _EVICTION_WORK * len(simulation.displaced)
            work = max(weight * len(self._context.cluster.nodes), 1)
            affordable, most = min(_RUNS - 1, max_work // work), min(_RACES - 1, max_work // work)
            is_complete = False
            if self._times.are_all_known and not displaces and prod(first.widths) <= affordable:
                runs, is_complete = run_exhaustive(lambda _, trace: self._run(trace), affordable + 1, first)
            if not is_complete:
                is_long = work >= _LONG_WORK
                orders = list(islice(self._times.extremes(self._kind_of), affordable))
                runs += spread(orders, lambda order: self._run(DecisionTrace((), first_branch), order), is_long=is_long)
                end = affordable - len(orders) + 1
                for seeds in (range(1, end), range(end, most - len(orders) + 1)):
                    is_race = displaces and any(_outcomes(run) != _outcomes(first) for run in runs)
                    if is_race or len(runs) <= affordable:
                        runs += spread(seeds, lambda seed: self._drawn(seed, has_pace=displaces), is_long=is_long)
        assumptions = dict.fromkeys(each for run in runs for each in run.assumptions)
        return self._summed_up(runs, is_complete=is_complete), list(assumptions)

    def _drawn(self, seed: int, *, has_pace: bool) -> _Run:
        waiting = self._times.drawn(self._draws.numbers(seed))
        pace = self._draws.paces(seed) if has_pace else AT_ONCE
        return self._run(DecisionTrace((), self._draws.choices(seed)), waiting, pace)

    def _run(self, trace: DecisionTrace | None, waiting: Sequence[Waiting] | None = None, pace: Pace = AT_ONCE) -> _Run:
        """Serve the queue once; without a ``trace``, only the likely result of each decision is determined."""
        context = self._context
        simulation, assumptions, after = simulate(
            pace.in_drawn_order(context.cluster),
            SimulationStart(
                choose=trace.choose if trace is not None else None,
                pace=pace,
                waiting=self._waiting if waiting is None else waiting,
            ),
            self._scheduler,
            now=context.time,
            limits=LIMITS,
            prepared=self._prepared if pace.is_at_once else None,
        )
        fates = _fates(self._waiting, simulation, {pod.key: pod for pod in after.pods})
        if simulation.end is SimulationEnd.ABORTED and simulation.attempts > LIMITS.attempts:
            # Not every pod has had its turn.
            fates = {
                key: fate._replace(outcome=TurnOutcome.OPEN) if fate.outcome is TurnOutcome.LEFT_PENDING else fate
                for key, fate in fates.items()
            }
        return _Run(
            simulation=simulation,
            fates=fates,
            widths=tuple(trace.widths) if trace is not None else (),
            chosen=tuple(trace.chosen) if trace is not None else (),
            is_truncated=trace is not None and trace.is_truncated,
            assumptions=assumptions,
        )

    def _summed_up(self, runs: Sequence[_Run], *, is_complete: bool) -> ServedQueue:
        likely = runs[0].simulation
        in_turn = {key: _in_turn([run.fates[key] for run in runs]) for key in runs[0].fates}
        found = []
        for pods in self._kinds(in_turn):
            numbers = [sum(run.fates[key].outcome is TurnOutcome.SCHEDULED for key in pods) for run in runs]
            found.append(OpenPods(pods=pods, at_least=min(numbers), at_most=max(numbers)))
            for key in pods:
                in_turn[key] = msgspec.structs.replace(in_turn[key], outcome=TurnOutcome.OPEN)
        is_out_of_time = likely.end is SimulationEnd.ABORTED and likely.attempts <= LIMITS.attempts
        scheduled = [sum(fate.outcome is TurnOutcome.SCHEDULED for fate in run.fates.values()) for run in runs]
        return ServedQueue(
            runs=len(runs),
            is_complete=is_complete,
            ended=likely.end,
            seconds=LIMITS.seconds if is_out_of_time else likely.seconds,
            attempts=likely.attempts,
            scheduled_min=min(scheduled),
            scheduled_max=max(scheduled),
            in_turn=in_turn,
            open=found,
            evicted_runs=Counter(
                key for run in runs for key in dict.fromkeys(each.pod for each in run.simulation.displaced)
            ),
            displaced=likely.displaced,
            pending=[each for each in likely.pending if each.was_running],
            loop=likely.loop,
        )

    def _kind_of(self, pod: Pod) -> Hashable:
        return controller_name(pod.metadata), equivalence_key_for(self._context.scheduler, pod)

    def _kinds(self, in_turn: dict[str, InTurn]) -> list[list[str]]:
        """The pods with an open outcome, by kind, in queue order.

        Of pods of one kind whose mutual order is unknown, either all have a certain outcome, which is the same, or none
        has one. If one of a kind is open, so are those that are scheduled later than at once: they wait together for
        what victims leave, and which of them is tried at the right moment is a matter of milliseconds.
        """
        together: dict[Hashable, list[str]] = {}
        kinds: dict[str, Hashable] = {}
        for each in self._waiting:
            key, kind = each.pod.key, self._kind_of(each.pod)
            kinds[key] = kind
            together.setdefault((kind, each.time, each.plugins), []).append(key)
        is_open = {key for key, each in in_turn.items() if each.outcome is TurnOutcome.OPEN}
        for keys in together.values():
            if len({in_turn[key].outcome for key in keys}) > 1:
                is_open.update(keys)
        racing = {kinds[key] for key in is_open}
        is_open.update(key for key, each in in_turn.items() if each.seconds and kinds[key] in racing)
        found: dict[Hashable, list[str]] = {}
        for each in self._waiting:
            if each.pod.key in is_open:
                found.setdefault(kinds[each.pod.key], []).append(each.pod.key)
        return list(found.values())


def _fates(waiting: Sequence[Waiting], simulation: Simulation, after: dict[str, Pod]) -> dict[str, _Fate]:
    """What became of each pod of the queue."""
    bound_at: dict[str, float] = {}
    victims: dict[str, dict[str, None]] = {}
    violated: dict[str, dict[str, None]] = {}
    for step in simulation.steps:
        if step.kind is StepKind.BOUND:
            bound_at[step.pod] = step.at
        elif step.kind is StepKind.TERMINATING and step.cause:
            victims.setdefault(step.cause, {})[step.pod] = None
            violated.setdefault(step.cause, {}).update(dict.fromkeys(step.violated))
    pending = {each.pod: each for each in simulation.pending}
    fates = {}
    for each in waiting:
        key = each.pod.key
        pod = after.get(key)
        is_there = pod is not None and pod.metadata.deletion_timestamp is None
        if each.pod.spec.scheduling_gates:
            outcome = TurnOutcome.NOT_SERVED
        elif pod is None or not is_there or pod.metadata.uid != each.pod.metadata.uid:
            outcome = TurnOutcome.REMOVED
        elif pod.spec.node_name:
            outcome = TurnOutcome.SCHEDULED
        else:
            known = pending.get(key)
            outcome = TurnOutcome.OPEN if known is not None and known.uncertain else TurnOutcome.LEFT_PENDING
        fates[key] = _Fate(
            outcome,
            pod.spec.node_name if pod is not None and is_there else "",
            tuple(victims.get(key, ())),
            tuple(violated.get(key, ())),
            bound_at.get(key) if outcome is TurnOutcome.SCHEDULED else None,
            pending[key].message if key in pending else "",
        )
    return fates


def _outcomes(run: _Run) -> list[TurnOutcome]:
    return [fate.outcome for fate in run.fates.values()]


def _in_turn(fates: Sequence[_Fate]) -> InTurn:
    first = fates[0]
    outcomes = {fate.outcome for fate in fates}
    nodes = Counter(fate.node for fate in fates if fate.node)
    victims = dict.fromkeys(victim for fate in fates for victim in fate.victims)
    return InTurn(
        outcome=first.outcome if len(outcomes) == 1 else TurnOutcome.OPEN,
        nodes=[node for node, _ in nodes.most_common()],
        victims=list(first.victims),
        other_victims=[each for each in victims if each not in first.victims],
        violated=list(dict.fromkeys(budget for fate in fates for budget in fate.violated)),
        seconds=first.seconds,
        scheduled_runs=sum(fate.outcome is TurnOutcome.SCHEDULED for fate in fates),
        message=first.message,
    )
