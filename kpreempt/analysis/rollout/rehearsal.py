"""A change played through: once, several times by chance, or with every choice that chance may make."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.pending_verdicts import Spread, one_by_one
from kpreempt.analysis.play import Limits, Scene, play_to_the_end
from kpreempt.analysis.play.scheduling import Choose
from kpreempt.analysis.questions import Decode
from kpreempt.analysis.rollout.casting import cast
from kpreempt.analysis.rollout.records import Plan
from kpreempt.analysis.timed import timed_by_part
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import OutcomeShare
from kpreempt.verdict.play import Play

# Beyond this a play is broken off; a rollout needs a few attempts for each of its pods.
_ATTEMPTS = 50_000


class Rehearsed(msgspec.Struct, frozen=True):
    """One play of a change: the seed or the number that it goes by, what was assumed, and the cluster at both ends."""

    seed: int
    play: Play
    assumptions: list[Assumption]
    before: ClusterSnapshot
    after: ClusterSnapshot


class Rehearsal:
    """Plays a plan any number of times. The cluster is prepared for the scheduler once.

    ``chances`` makes what draws, by a seed.
    """

    def __init__(
        self,
        plan: Plan,
        scheduler: Scheduler,
        decode: Decode,
        *,
        now: datetime,
        chances: Callable[[int], Choose],
        phases: Phases = NO_PHASES,
    ) -> None:
        self._plan = plan
        self._scheduler = timed_by_part(scheduler, phases)
        self._decode = decode
        self._now = now
        self._chances = chances
        self._phases = phases
        self._prepared: Any = None

    def by_chance(self, seed: int) -> Rehearsed:
        """A play in which the seed decides where the scheduler draws."""
        return self._play(seed, self._chances(seed))

    def several(self, seed: int, runs: int, spread: Spread = one_by_one) -> Iterator[Rehearsed]:
        """As many plays, with seeds that follow one another; one is enough where nothing is drawn."""
        first = self.by_chance(seed)
        yield first
        if first.play.draws:
            yield from spread(range(seed + 1, seed + runs), self.by_chance)

    def every(self, most: int) -> tuple[list[Rehearsed], bool]:
        """The plays of all choices there are, ``most`` at most, and whether these were all.

        The first takes the first node wherever there is a draw; then come those that differ in one choice, and so on.
        """
        found: list[Rehearsed] = []
        waiting: deque[tuple[int, ...]] = deque([()])
        while waiting and len(found) < most:
            prefix = waiting.popleft()
            choices = _Choices(prefix)
            found.append(self._play(len(found), choices.choose))
            for place in range(len(prefix), len(choices.widths)):
                waiting.extend((*choices.taken[:place], other) for other in range(1, choices.widths[place]))
        return found, not waiting

    def _play(self, seed: int, choose: Choose) -> Rehearsed:
        made = cast(self._plan, self._decode, self._now, self._scheduler.settings.gates)
        if self._prepared is None:
            with self._phases.phase("prepare"):
                self._prepared = self._scheduler.prepare(made.cluster, now=self._now)
        scene = Scene(
            arriving=made.arriving,
            leaving=self._plan.deleted_pods,
            actors=made.actors,
            choose=choose,
        )
        with self._phases.phase("play"):
            play, assumptions, after = play_to_the_end(
                made.cluster,
                scene,
                self._scheduler,
                now=self._now,
                limits=Limits(attempts=_ATTEMPTS),
                prepared=self._prepared,
            )
        both = list(dict.fromkeys([*made.assumptions, *assumptions]))
        return Rehearsed(seed=seed, play=play, assumptions=both, before=made.cluster, after=after)


class _Choices:
    """Takes what ``prefix`` says, draw by draw, and then the first; remembers among how many it was."""

    def __init__(self, prefix: Sequence[int]) -> None:
        self._prefix = prefix
        self.widths: list[int] = []
        self.taken: list[int] = []

    def choose(self, nodes: Sequence[str]) -> str:
        at = len(self.widths)
        index = self._prefix[at] if at < len(self._prefix) else 0
        self.widths.append(len(nodes))
        self.taken.append(index)
        return nodes[index]


def share_of(rehearsed: Rehearsed, *, fails: bool) -> OutcomeShare:
    """The outcome of one play, by which it is told from others; it counts once."""
    play = rehearsed.play
    return OutcomeShare(
        count=1,
        seed=rehearsed.seed,
        end=play.end,
        victims=_counted(each.workload for each in play.displaced),
        violations={budget.budget: budget.violations for budget in play.budgets if budget.violations},
        pending=_counted(each.workload for each in play.waiting),
        depth=play.depth,
        fails=fails,
    )


def shares(outcomes: Sequence[OutcomeShare]) -> list[OutcomeShare]:
    """Equal outcomes counted together, the most frequent first."""
    found: dict[bytes, OutcomeShare] = {}
    for each in outcomes:
        key = msgspec.json.encode(msgspec.structs.replace(each, seed=0, count=0), order="deterministic")
        known = found.get(key)
        found[key] = each if known is None else msgspec.structs.replace(known, count=known.count + each.count)
    return sorted(found.values(), key=lambda each: (-each.count, each.seed))


def badness(play: Play) -> tuple[int, ...]:
    """The greater the worse: budgets broken, pods that wait, victims, how deep the cascade is, what is stranded."""
    return (
        play.end != "Settled",
        sum(budget.violations for budget in play.budgets),
        sum(not each.waited_before for each in play.waiting),
        len(play.displaced),
        play.depth,
        len(play.stranded),
    )


def _counted(names: Iterator[str] | Sequence[str]) -> dict[str, int]:
    counts = Counter(names)
    return {name: counts[name] for name in sorted(counts)}
