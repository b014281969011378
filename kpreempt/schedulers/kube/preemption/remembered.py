"""Dry runs cached from one cluster to the next, for equivalent pods.

If all filters that run are node-local, the victims on a node depend only on the node with its pods, the pods nominated
to it, and the disruptions that its pods' budgets allow. So when one cluster follows another
(``framework/decision_cache.py``), a node is tried again only if some of these have changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from heapq import heapify, heappop, heappush
from itertools import count

from msgspec import UNSET

from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.schedulers.choice import CandidateVictims, default_rank
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.decision_cache import Changes, PodCache
from kpreempt.schedulers.kube.framework.interface import BriefDryRun, HelpfulNode, Victims
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.preemption.importance import BudgetIndex, VictimCounts
from kpreempt.schedulers.kube.preemption.odds import SampledCandidate
from kpreempt.schedulers.kube.preemption.ties import to_possible_outcome
from kpreempt.verdict import Candidate, Code, Status


class CachedDryRun:
    """The victims on a node, and results derived from them, each computed once and cached with them.

    ``helps`` is whether preemption helps there. ``rank`` is how good a candidate the node is, if that does not depend
    on time. The victims on a helpful node may be computed on first use.
    """

    __slots__ = ("_candidate", "_victims", "helps", "name", "rank")

    def __init__(self, name: str, victims: Victims | HelpfulNode) -> None:
        self.name = name
        self._victims = victims
        self.helps = isinstance(victims, HelpfulNode) or victims.status.is_success
        self.rank: SampledCandidate | None = None
        self._candidate: Candidate | None = None

    @property
    def victims(self) -> Victims:
        """The victims, or why preemption does not help."""
        if isinstance(self._victims, HelpfulNode):
            self._victims = self._victims.victims()
        return self._victims

    @property
    def of_choice(self) -> CandidateVictims:
        """The victims as the rules of the choice see them."""
        return CandidateVictims(self.victims.pods, self.victims.num_violations)

    @property
    def candidate(self) -> Candidate:
        """The node as evidence."""
        if self._candidate is None:
            victims = self.victims
            self._candidate = Candidate(
                self.name,
                [victim.key for victim in victims.pods],
                victims.num_violations,
                victims.steps,
                [to_possible_outcome(self.name, each) for each in victims.outcomes.possible]
                if victims.outcomes
                else UNSET,
            )
        return self._candidate


def rank_of(tried: CachedDryRun, now: datetime) -> SampledCandidate:
    """Return how good a candidate is by the default rules, from the cache if possible."""
    known = tried.rank
    if known is None:
        victims = tried.of_choice
        known = SampledCandidate(victims.num_violations > 0, default_rank(victims, now))
        # A missing start time counts as now.
        if all(pod.start is not None for pod in victims.pods):
            tried.rank = known
    return known


# For all nodes where preemption does not help, if the reason was not needed.
_USELESS = CachedDryRun("", Victims(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE), [], 0, []))
# The number of values with which a rank starts as long as its rest is unknown: violations and the highest priority.
_FIRST = 2
# A rank for which less is better, the position of the node, a number that no other has, and the dry run.
_Ranked = tuple[tuple[float, ...], int, int, CachedDryRun]


class _Known:
    """The dry runs that are still valid, by node, for the latest cluster."""

    def __init__(self, changes: Changes, position: Mapping[str, int]) -> None:
        self.results: dict[str, CachedDryRun] = {}
        # The positions of the other nodes.
        self.unknown = set(position.values())
        self._position = position
        # The candidates, the best first, as a heap; some are no longer valid.
        self._ranked: list[_Ranked] = []
        self._numbers = count()
        self._changes = changes
        self._place = 0
        self._now: datetime | None = None
        self._budgets: BudgetIndex | None = None
        # What was seen of a node when it was tried, whether or not its dry run is still cached.
        self._seen: dict[str, VictimCounts] = {}
        # By budget position, the nodes where the budget selects evictable pods, with their number, possibly more.
        self._by_budget: dict[int, dict[str, int]] = {}
        # The nodes whose dry runs list their steps.
        self._stepped: set[str] = set()
        self._timed: set[str] = set()

    def keep(self, tried: CachedDryRun, seen: VictimCounts) -> None:
        """Store the result of a node's dry run."""
        name = tried.name
        self.forget([name])
        self.results[name] = tried
        self.unknown.discard(self._position[name])
        if tried.helps:
            victims = tried.victims
            first = (victims.num_violations, victims.pods[0].priority)
            heappush(self._ranked, (first, self._position[name], next(self._numbers), tried))
        if tried.victims.steps:
            self._stepped.add(name)
        if seen.is_timed:
            self._timed.add(name)
        if self._seen.get(name) is not seen:
            self._seen[name] = seen
            for position in seen.budgets:
                self._by_budget.setdefault(position, {})[name] = seen.budgets[position]

    def keep_brief(self, brief: BriefDryRun) -> None:
        """Store the results for nodes that were unknown."""
        self.results |= dict.fromkeys(brief.useless, _USELESS)
        for name, node in brief.helpful.items():
            tried = self.results[name] = CachedDryRun(name, node)
            first = (node.num_violations, node.priority)
            self._ranked.append((first, self._position[name], next(self._numbers), tried))
        if brief.helpful:
            heapify(self._ranked)
        for name in (*brief.helpful, *brief.useless):
            self.unknown.discard(self._position[name])
            self._seen.pop(name, None)
        self._timed.update(brief.timed)
        for position, counts in brief.selected.items():
            self._by_budget.setdefault(position, {}).update(counts)

    def best(self, potential: Sequence[int]) -> list[CachedDryRun]:
        """Return the best candidates on ``potential`` nodes, which are marked, in the order of nodes."""
        ranked, now = self._ranked, self._now
        assert now is not None
        best: list[_Ranked] = []
        others: list[_Ranked] = []
        while ranked and (not best or ranked[0][0] == best[0][0]):
            first = heappop(ranked)
            rank, place, number, tried = first
            if self.results.get(tried.name) is not tried:
                continue
            if len(rank) == _FIRST:
                # Few nodes need the rest of their rank.
                heappush(ranked, (tuple(-each for each in rank_of(tried, now).rank), place, number, tried))
            else:
                (best if potential[place] else others).append(first)
        for each in (*best, *others):
            heappush(ranked, each)
        return [each[-1] for each in best]

    def follow(self, nodes: Sequence[NodeInfo], budgets: BudgetIndex, now: datetime) -> None:
        """Advance to a cluster with the same nodes, and drop results that are no longer valid."""
        before, self._budgets = self._budgets, budgets
        if before is None or not budgets.selects_as(before):
            self.unknown.update(self._position[name] for name in self.results)
            self.results.clear()
            self._seen.clear()
            self._by_budget.clear()
            self._stepped.clear()
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
        """Handle a budget whose disruptions allowed have changed.

        Steps list the number. Without them, it does not matter whether it is enough for all pods or more.
        """
        counts = self._by_budget.get(position, {})
        # The same number of pods can be evicted without a violation as before.
        enough = min(then.allowed, there.allowed) if _disrupted(then) == _disrupted(there) else -1
        is_same = then.allowed == there.allowed and enough >= 0
        self.forget(list(self._stepped & counts.keys()))
        if not is_same:
            self.forget([name for name, number in counts.items() if number > enough])

    def forget(self, names: Iterable[str]) -> None:
        """Drop the dry runs of these nodes."""
        for name in names:
            if self.results.pop(name, None) is not None:
                self.unknown.add(self._position[name])
                self._stepped.discard(name)


class RememberedDryRuns:
    """Cached dry runs of pods equivalent to ``pod``, either those ``with_steps`` or the others."""

    def __init__(
        self, findings: PodCache, pod: Pod, cluster: ClusterState, budgets: BudgetIndex, *, with_steps: bool
    ) -> None:
        self._pod = pod
        self._nodes = cluster.by_name
        self._position = cluster.position
        self._budgets = budgets
        self._known = findings.column(("dry run", with_steps), 0, lambda _, changes: _Known(changes, cluster.position))
        self._known.follow(cluster.node_infos, budgets, cluster.now)
        # If the pod itself is nominated, it does not count itself, while others count it.
        self._own = {cluster.node_infos[place].name for place in cluster.places_nominated_to(pod)}

    def recall(self, names: Iterable[str]) -> list[CachedDryRun | None]:
        """Return the dry run of each of these nodes, if nothing has changed there."""
        tried = self._known.results
        found = [None if name in self._own else tried.get(name) for name in names]
        return [None if each is _USELESS else each for each in found]

    @property
    def is_nominated(self) -> bool:
        """Whether the pod itself is nominated to a node."""
        return bool(self._own)

    def untried(self) -> list[int]:
        """Return the positions of the nodes whose dry runs are unknown, in order."""
        return sorted(self._known.unknown)

    def best(self, potential: Sequence[int]) -> list[CachedDryRun]:
        """Return the best candidates by the default rules on ``potential`` nodes, which are marked, in their order."""
        return self._known.best(potential)

    def remember_brief(self, brief: BriefDryRun) -> None:
        """Store the results of dry runs of ``untried`` nodes, unless the pod itself is nominated."""
        self._known.keep_brief(brief)

    def remember(self, tried: Iterable[CachedDryRun]) -> None:
        """Store the results of dry runs."""
        priority = self._pod.priority
        for each in tried:
            if each.name not in self._own:
                self._known.keep(each, self._budgets.victims_on(self._nodes[each.name], priority))


def _disrupted(budget: PodDisruptionBudget) -> object:
    """Return the pods that a budget already counts as disrupted."""
    return budget.status.disrupted_pods if budget.status is not None else None
