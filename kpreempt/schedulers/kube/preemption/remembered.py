"""Dry runs that are remembered from one cluster to the next, for pods that are alike.

Who goes from a node hangs on the node with its pods and those nominated to it, on what the budgets of its pods allow,
and on nothing else where all filters that run look at nodes alone. So where one cluster follows another
(``framework/memory.py``), a node is tried again only once some of this has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import UNSET

from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.schedulers.choice import CandidateVictims
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.decision_cache import Changes, Findings
from kpreempt.schedulers.kube.framework.interface import Victims
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.preemption.importance import BudgetIndex
from kpreempt.schedulers.kube.preemption.odds import SampledCandidate
from kpreempt.schedulers.kube.preemption.ties import to_possible_outcome
from kpreempt.verdict import Candidate


class Tried:
    """The victims on a node, and what is made of them later, each thing once: it stays with them in memory.

    ``helps`` says whether there are any. ``rank`` is how good a candidate the node is, where that hangs on no time.
    """

    __slots__ = ("_candidate", "helps", "name", "of_choice", "rank", "victims")

    def __init__(self, name: str, victims: Victims) -> None:
        self.name = name
        self.victims = victims
        self.helps = victims.status.is_success
        self.rank: SampledCandidate | None = None
        # The victims as the rules of the choice see them.
        self.of_choice = CandidateVictims(victims.pods, victims.num_violations)
        self._candidate: Candidate | None = None

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


class _SeenVictims(NamedTuple):
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
        self._changes = changes
        self._place = 0
        self._now: datetime | None = None
        self._budgets: BudgetIndex | None = None
        # What was seen of a node that was tried, be it remembered still or not.
        self._seen: dict[str, _SeenVictims] = {}
        # By the position of a budget, the nodes where it selects some pods that could go; perhaps more.
        self._by_budget: dict[int, set[str]] = {}
        self._timed: set[str] = set()

    def keep(self, tried: Tried, seen: _SeenVictims) -> None:
        """What a dry run of a node came to."""
        name = tried.name
        self.forget([name])
        self.tried[name] = tried
        if seen.is_timed:
            self._timed.add(name)
        if self._seen.get(name) is not seen:
            self._seen[name] = seen
            for position in seen.budgets:
                self._by_budget.setdefault(position, set()).add(name)

    def seen(self, node_info: NodeInfo) -> _SeenVictims | None:
        """What was seen of the very node, if it was tried."""
        seen = self._seen.get(node_info.name)
        return seen if seen is not None and seen.node_info is node_info else None

    def follow(self, nodes: Sequence[NodeInfo], budgets: BudgetIndex, now: datetime) -> None:
        """Go on to a cluster of the same nodes, and forget what does not hold any more there."""
        before, self._budgets = self._budgets, budgets
        if before is None or not budgets.selects_as(before):
            self.tried.clear()
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
        names = self._by_budget.get(position, set())
        # As many pods find what they need as before.
        enough = min(then.allowed, there.allowed) if _disrupted(then) == _disrupted(there) else -1
        is_same = then.allowed == there.allowed and enough >= 0
        self.forget(
            name
            for name in names & self.tried.keys()
            if self.tried[name].victims.steps or (not is_same and self._seen[name].budgets.get(position, 0) > enough)
        )

    def forget(self, names: Iterable[str]) -> None:
        """What dry runs of these nodes came to does not hold any more."""
        for name in names:
            self.tried.pop(name, None)


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

    def remember(self, tried: Iterable[Tried]) -> None:
        """Keep what dry runs came to."""
        for each in tried:
            if each.name not in self._own:
                node_info = self._nodes[each.name]
                seen = self._known.seen(node_info)
                if seen is None:
                    counts: dict[int, int] = {}
                    going = [info for info in node_info.pods if info.priority < self._pod.priority]
                    for info in going:
                        for position in self._budgets.positions_of(info.pod):
                            counts[position] = counts.get(position, 0) + 1
                    seen = _SeenVictims(node_info, counts, any(info.start is None for info in going))
                self._known.keep(each, seen)


def _disrupted(budget: PodDisruptionBudget) -> object:
    """The pods that a budget holds as disrupted already."""
    return budget.status.disrupted_pods if budget.status is not None else None
