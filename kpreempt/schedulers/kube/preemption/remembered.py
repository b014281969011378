"""Dry runs that are remembered from one cluster to the next, for pods that are alike.

Who goes from a node hangs on the node with its pods and those nominated to it, on what the budgets of its pods allow,
and on nothing else where all filters that run look at nodes alone. So where one cluster follows another
(``framework/memory.py``), a node is tried again only once some of this has changed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from msgspec import UNSET

from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.schedulers.choice import CandidateVictims
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.interface import Victims
from kpreempt.schedulers.kube.framework.memory import Changes, Findings
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.preemption.alternatives import told_outcome
from kpreempt.schedulers.kube.preemption.budgets import BudgetIndex
from kpreempt.schedulers.kube.preemption.odds import Rank, SampledCandidate
from kpreempt.verdict import Candidate


class Tried:
    """The victims on a node, and what is made of them later, each thing once: it stays with them in memory.

    ``helps`` says whether there are any. ``rank`` is how good a candidate the node is, where that hangs on no time, and
    ``key`` sorts it among others in memory, the best first.
    """

    __slots__ = ("_candidate", "_of_choice", "helps", "key", "name", "rank", "victims")

    def __init__(self, name: str, victims: Victims) -> None:
        self.name = name
        self.victims = victims
        self.helps = victims.status.is_success
        self.rank: SampledCandidate | None = None
        self.key: tuple[float, ...] | None = None
        self._candidate: Candidate | None = None
        self._of_choice: CandidateVictims | None = None

    @property
    def of_choice(self) -> CandidateVictims:
        """The victims as the rules of the choice see them."""
        found = self._of_choice
        if found is None:
            found = self._of_choice = CandidateVictims(self.victims.pods, self.victims.num_violations)
        return found

    @property
    def candidate(self) -> Candidate:
        """The node as evidence."""
        found = self._candidate
        if found is None:
            found = self._candidate = _candidate(self.name, self.victims)
        return found


def _candidate(node: str, victims: Victims) -> Candidate:
    return Candidate(
        node,
        [victim.key for victim in victims.pods],
        victims.num_violations,
        victims.steps,
        [told_outcome(node, each) for each in victims.outcomes.possible] if victims.outcomes else UNSET,
    )


class Ranking:
    """The candidates in the order of their ranks, the best first, brought up to date as they come and go.

    ``open`` are those whose victims hang on the order of equal pods, by name; ``hanging`` those whose victims hang on
    that of budgets.
    """

    def __init__(self) -> None:
        self._sorted: list[tuple[tuple[float, ...], str]] = []
        self.open: dict[str, Tried] = {}
        self.hanging: set[str] = set()

    def __len__(self) -> int:
        return len(self._sorted)

    def add(self, tried: Tried, rank: Rank, place: int) -> None:
        """A candidate comes; ``place`` is that of the node in the list."""
        tried.key = (*(-each for each in rank), place)
        insort(self._sorted, (tried.key, tried.name))
        if tried.victims.outcomes:
            self.open[tried.name] = tried
        if tried.victims.hangs_on_budget_order:
            self.hanging.add(tried.name)

    def discard(self, tried: Tried) -> None:
        """A candidate goes, if it is one."""
        if tried.key is None:
            return
        del self._sorted[bisect_left(self._sorted, (tried.key,))]
        tried.key = None
        self.open.pop(tried.name, None)
        self.hanging.discard(tried.name)

    def best_certain(self) -> list[str]:
        """The best of those whose victims are known."""
        found = ([name for name in tier if name not in self.open] for tier in self._tiers(len(self._sorted)))
        return next(filter(None, found), [])

    @property
    def rivals(self) -> int:
        """How many can win: those without violations, if there is any, else all."""
        return bisect_left(self._sorted, ((1,),)) or len(self._sorted)

    def tiers(self) -> Iterator[list[str]]:
        """Those that can win, together where they are equally good, in the order of the list of nodes."""
        return self._tiers(self.rivals)

    def _tiers(self, count: int) -> Iterator[list[str]]:
        tier: list[str] = []
        last: tuple[float, ...] = ()
        for key, name in islice(self._sorted, count):
            if tier and key[:-1] != last:
                yield tier
                tier = []
            last = key[:-1]
            tier.append(name)
        if tier:
            yield tier


class _Seen(NamedTuple):
    """What of a node a dry run hangs on: how many of its pods that could go each budget selects, by its position.

    ``is_timed`` says that some start time is missing, for which the time stands.
    """

    node_info: NodeInfo
    budgets: Mapping[int, int]
    is_timed: bool


class _Known:
    """The dry runs that hold, by node, as far as has been followed."""

    def __init__(self, changes: Changes) -> None:
        self.tried: dict[str, Tried] = {}
        self.ranking = Ranking()
        # Those that are not in the ranking yet.
        self.unranked: dict[str, Tried] = {}
        self._changes = changes
        self._place = 0
        self._now: datetime | None = None
        self._budgets: BudgetIndex | None = None
        # What was seen of a node that was tried, be it remembered still or not.
        self._seen: dict[str, _Seen] = {}
        # By the position of a budget, the nodes where it selects some pods that could go; perhaps more.
        self._by_budget: dict[int, set[str]] = {}
        self._timed: set[str] = set()

    def keep(self, tried: Tried, seen: _Seen) -> None:
        """What a dry run of a node came to."""
        name = tried.name
        self.forget([name])
        self.tried[name] = tried
        self.unranked[name] = tried
        if seen.is_timed:
            self._timed.add(name)
        if self._seen.get(name) is not seen:
            self._seen[name] = seen
            for position in seen.budgets:
                self._by_budget.setdefault(position, set()).add(name)

    def seen(self, node_info: NodeInfo) -> _Seen | None:
        """What was seen of the very node, if it was tried."""
        seen = self._seen.get(node_info.name)
        return seen if seen is not None and seen.node_info is node_info else None

    def follow(self, nodes: Sequence[NodeInfo], budgets: BudgetIndex, now: datetime) -> None:
        """Go on to a cluster of the same nodes, and forget what does not hold any more there."""
        before, self._budgets = self._budgets, budgets
        if before is None or not budgets.selects_as(before):
            self.tried.clear()
            self.ranking = Ranking()
            self._seen.clear()
            self._by_budget.clear()
            self._timed.clear()
        elif before is not budgets:
            for position, then, there in budgets.changes_since(before):
                self._follow_budget(position, then, there)
        places, self._place = self._changes.places[self._place :], len(self._changes.places)
        self.forget(nodes[place].name for place in places)
        if now != self._now:
            self.forget(self._timed)
            self._timed.clear()
        self._now = now

    def _follow_budget(self, position: int, then: PodDisruptionBudget, there: PodDisruptionBudget) -> None:
        """A budget allows something else.

        Steps tell what. Without them it is all the same whether that is enough for all pods or for more.
        """
        names = self._by_budget.get(position)
        if not names:
            return
        # As many pods find what they need as before.
        enough = min(then.allowed, there.allowed) if _disrupted(then) == _disrupted(there) else -1
        is_same = then.allowed == there.allowed and enough >= 0
        there_are = names & self.tried.keys()
        self.forget(
            name
            for name in there_are
            if self.tried[name].victims.steps or (not is_same and self._seen[name].budgets.get(position, 0) > enough)
        )

    def forget(self, names: Iterable[str]) -> None:
        """What dry runs of these nodes came to does not hold any more."""
        for name in names:
            tried = self.tried.pop(name, None)
            if tried is not None:
                self.ranking.discard(tried)


class RememberedDryRuns:
    """What is known of the dry runs of pods like ``pod``, of those ``with_steps`` or of others."""

    def __init__(
        self, findings: Findings, pod: Pod, cluster: ClusterState, budgets: BudgetIndex, *, with_steps: bool
    ) -> None:
        self._pod = pod
        self._nodes = cluster.by_name
        self._position = cluster.position
        self._budgets = budgets
        self._known = findings.column(("dry run", with_steps), 0, lambda _, changes: _Known(changes))
        self._known.follow(cluster.node_infos, budgets, cluster.now)
        # Where the pod is nominated itself, it does not count beside itself, as it does for others.
        self._own = {cluster.node_infos[place].name for place in cluster.places_nominated_to(pod)}

    def recall(self, names: Iterable[str]) -> list[Tried | None]:
        """For each of these nodes its dry run, if nothing has changed there."""
        tried = self._known.tried
        if not self._own:
            return list(map(tried.get, names))
        return [None if name in self._own else tried.get(name) for name in names]

    def untried(self, potential: set[str]) -> list[NodeInfo] | None:
        """Those of the nodes to be tried that are not known; ``None`` where others than these are to be kept, too.

        Others are forgotten.
        """
        if self._own:
            return None
        known = self._known
        known.forget(known.tried.keys() - potential)
        missing = potential - known.tried.keys()
        return sorted((self._nodes[name] for name in missing), key=lambda each: self._position[each.name])

    def ranking(self, rank_of: Callable[[Tried], Rank]) -> Ranking:
        """All that were tried and are candidates."""
        known = self._known
        for name, tried in known.unranked.items():
            if tried.helps and known.tried.get(name) is tried:
                known.ranking.add(tried, rank_of(tried), self._position[name])
        known.unranked.clear()
        return known.ranking

    def of(self, names: Iterable[str]) -> list[Tried]:
        """What is known of these nodes, in the order of the list of nodes."""
        return [self._known.tried[name] for name in sorted(names, key=self._position.__getitem__)]

    def remember(self, tried: Iterable[Tried]) -> None:
        """Keep what dry runs came to."""
        for each in tried:
            if each.name not in self._own:
                node_info = self._nodes[each.name]
                self._known.keep(each, self._known.seen(node_info) or self._look_at(node_info))

    def _look_at(self, node_info: NodeInfo) -> _Seen:
        counts: dict[int, int] = {}
        is_timed = False
        priority = self._pod.priority
        for info in node_info.pods:
            if info.priority < priority:
                is_timed |= info.start is None
                for position in self._budgets.positions_of(info.pod):
                    counts[position] = counts.get(position, 0) + 1
        return _Seen(node_info, counts, is_timed)


def _disrupted(budget: PodDisruptionBudget) -> object:
    """The pods that a budget holds as disrupted already."""
    return budget.status.disrupted_pods if budget.status is not None else None
