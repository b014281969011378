"""What chance or an unknown order decides in a simulation: how a decision comes out, and how long everything takes.

Nothing in a snapshot says how long the parts of a cluster take. With ``AT_ONCE`` all that can be done at a moment is
done in it: the scheduler tries one pod after the other, and controllers answer between two attempts. In a real cluster
each of these takes its time. Pods of a rollout come while others are tried already, what takes the place of a victim is
tried before the next of them, and pods become ready one by one. Which comes first then is up to chance, and with it
which has to go. So is the order of equal pods, in which the scheduler has seen them; a simulation has one and the same
from its start to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import islice
from math import comb, prod
from typing import Literal, TypeVar

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.kube.preemption.odds import SampledCandidate, outcomes_in_any_order, outcomes_of_scores
from kpreempt.verdict import OddsOutcome, Outcome, PodChoice, SearchOrder, Verdict
from kpreempt.verdict.simulation import Simulation

FINDS_A_NODE = frozenset({Outcome.LANDS, Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS})
# So many branches of one decision are gone into.
_MOST_BRANCHES = 64
# So many ways are looked at: pods of many kinds that go, some of each, have very many.
_MOST_WAYS = 256


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which a decision may come out: the node, the pods that have to leave it, and how likely that is.

    ``violated`` are the budgets that each of those breaks, ``None`` where the verdict does not say. ``weight`` means
    something only beside the weights of the other branches; orders of equal pods count as equally likely. It
    ``has_others`` where there may be branches beside those that are told.
    """

    node: str
    leaving: Sequence[str] = ()
    violated: Mapping[str, Sequence[str]] | None = None
    weight: float = 1.0
    has_others: bool = False


# Picks one of several branches.
Choose = Callable[[Sequence[Branch]], Branch]
# What equal pods have to share for it to make no difference which of them goes; None where it makes none that one does.
Alike = Callable[[str], Hashable]


def first_branch(branches: Sequence[Branch]) -> Branch:
    """The first, which is the verdict's own answer."""
    return branches[0]


def branches_of(verdict: Verdict, alike: Alike) -> list[Branch]:
    """The branches of a verdict that finds a node: at least one, the verdict's own answer first.

    Whatever else chance decides about a pod that finds a node becomes a branch here; a simulation then takes each like
    the others. Of equal pods that are ``alike`` to the simulation only the number that goes makes branches.
    """
    if verdict.outcome is Outcome.LANDS:
        return [Branch(node=node, weight=weight) for node, weight in _landings(verdict).items()]
    # The nodes that the choice between candidates can end with, those of the best first, each with its weight.
    winners = _weighted(verdict.nominated_nodes, verdict.odds.outcomes if verdict.odds is not None else ())
    told = verdict.alternatives
    first = next(iter(winners))
    leaving = {candidate.node: candidate.victims for candidate in verdict.candidates}
    # The evictions in the likely order, those of the verdict's own answer with the budgets that they break.
    found = []
    for node in (first, *(node for node in winners if node != first)):
        violated = None
        if node in verdict.victims:
            going = [victim for victim in verdict.victims[node] if not victim.terminating]
            violated = {victim.pod: [use.budget for use in victim.budgets if use.left < 0] for victim in going}
        gone = leaving.get(node, []) if violated is None else list(violated)
        found.append(Branch(node=node, leaving=gone, violated=violated, weight=winners[node]))
    several = {each.node for each in verdict.candidates if each.outcomes is not msgspec.UNSET}
    if told is None and several.isdisjoint(winners):
        return found
    return _in_all_orders(verdict, winners, found, alike)


def _in_all_orders(
    verdict: Verdict, winners: Mapping[str, float], likely: Sequence[Branch], alike: Alike
) -> list[Branch]:
    """Every branch that an order of equal pods leads to, those of the likely one first."""
    told = verdict.alternatives
    outcomes = list(told.outcomes) if told is not None else []
    seen = {outcome.node for outcome in outcomes}
    by_node = {candidate.node: candidate for candidate in verdict.candidates}
    outcomes += [each for node in winners if node not in seen for each in by_node[node].possible]
    least = min(winners.values())
    numbers = Counter(outcome.node for outcome in outcomes)
    branches = {_effect(branch, alike): branch for branch in likely}
    weights: dict[Hashable, float] = {}
    # The ways in which the choices of each outcome can be made, as far as they differ to the simulation.
    every_way = (
        Branch(
            node=outcome.node,
            leaving=[*outcome.victims, *chosen],
            weight=winners.get(outcome.node, least) / numbers[outcome.node] * likelihood,
        )
        for outcome in outcomes
        for chosen, likelihood in _all_choices(outcome.choices, alike)
    )
    for branch in islice(every_way, _MOST_WAYS):
        effect = _effect(branch, alike)
        branches.setdefault(effect, branch)
        weights[effect] = weights.get(effect, 0.0) + branch.weight
    is_cut = next(every_way, None) is not None
    weighted = [
        msgspec.structs.replace(branch, weight=weights.get(effect, branch.weight))
        for effect, branch in branches.items()
    ]
    kept = weighted[:_MOST_BRANCHES]
    if is_cut or len(kept) < len(branches) or (told is not None and (told.untold or not told.exact)):
        kept = [msgspec.structs.replace(branch, has_others=True) for branch in kept]
    return kept


def _effect(branch: Branch, alike: Alike) -> Hashable:
    kinds: dict[Hashable, int] = {}
    for kind in map(alike, branch.leaving):
        if kind is not None:
            kinds[kind] = kinds.get(kind, 0) + 1
    return branch.node, frozenset(kinds.items())


def _all_choices(choices: Sequence[PodChoice], alike: Alike) -> Iterator[tuple[list[str], float]]:
    if not choices:
        yield [], 1.0
        return
    first, *others = choices
    for pods, part in _choices(first, alike):
        for more, rest in _all_choices(others, alike):
            yield [*pods, *more], part * rest


def _choices(choice: PodChoice, alike: Alike) -> Iterator[tuple[list[str], float]]:
    """Which of the pods go, and how likely that is: one way for each number of pods of a kind."""
    kinds: dict[Hashable, list[str]] = {}
    for pod in choice.pods:
        kinds.setdefault(alike(pod), []).append(pod)
    pools = list(kinds.values())
    all_ways = comb(len(choice.pods), choice.count)
    for numbers in _divisions(choice.count, [len(pool) for pool in pools]):
        pods = [pod for pool, number in zip(pools, numbers, strict=True) for pod in pool[:number]]
        ways = prod(comb(len(pool), number) for pool, number in zip(pools, numbers, strict=True))
        yield pods, ways / all_ways


def _divisions(count: int, sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The ways to take ``count`` from pools of these sizes, as few as can be from the first at first."""
    if not sizes:
        yield ()
        return
    first, *rest = sizes
    for number in range(max(0, count - sum(rest)), min(first, count) + 1):
        for others in _divisions(count - number, rest):
            yield number, *others


def _landings(verdict: Verdict) -> Mapping[str, float]:
    """The nodes that a pod can land on, those of the best scores first, each with its weight.

    Where not all nodes that fit are scored, and nobody knows which, the search may have started anywhere; scores are
    assumed to be what they are among all nodes.
    """
    nodes, sampling = verdict.lands_on or verdict.chosen_nodes, verdict.sampling
    if sampling is None:
        return _weighted(nodes, ())
    if sampling.order is SearchOrder.LIST:
        scores = list(map(verdict.scores.__getitem__, verdict.feasible_nodes))
        return _weighted(nodes, outcomes_of_scores(verdict.feasible_nodes, scores, sampling.nodes_to_find))
    by_score = {score: SampledCandidate(False, (score,)) for score in set(verdict.scores.values())}
    scored = {node: by_score[verdict.scores[node]] for node in verdict.feasible_nodes}
    return _weighted(nodes, outcomes_in_any_order(scored, sampling.nodes_to_find))


def _weighted(best: Sequence[str], outcomes: Sequence[OddsOutcome]) -> Mapping[str, float]:
    if len(outcomes) < 2:
        return dict.fromkeys(best, 1.0)
    likely = {node: each.probability / len(each.nodes) for each in outcomes for node in each.nodes}
    return {node: likely[node] for node in dict.fromkeys([*(node for node in best if node in likely), *likely])}


# What takes time: an attempt of the scheduler; a controller's next step after something has happened to its pods, or a
# kubelet's after a grace period; from one pod that a controller makes to the next, until the scheduler knows of it;
# until a pod that is bound is ready.
Delay = Literal["attempt", "answer", "creation", "readiness"]
# So many seconds each takes on average where it is fast, and so many times may that double where it is slow.
_FASTEST: dict[Delay, float] = {"attempt": 0.002, "answer": 0.01, "creation": 0.005, "readiness": 0.02}
_DOUBLINGS = 7
_Item = TypeVar("_Item")


class Pace:
    """How many seconds something takes; without ``chance``, which draws numbers from 0 up to 1, none at all.

    In one cluster the scheduler is fast and controllers are slow, in another one it is the other way round.
    """

    def __init__(self, chance: Callable[[], float] | None = None) -> None:
        self._chance = chance
        self._means = {}
        if chance is not None:
            self._means = {delay: fastest * 2.0 ** (_DOUBLINGS * chance()) for delay, fastest in _FASTEST.items()}

    @property
    def is_at_once(self) -> bool:
        """Whether nothing takes any time."""
        return self._chance is None

    def seconds(self, of: Delay) -> float:
        """How long something takes this time."""
        return 2.0 * self._means[of] * self._chance() if self._chance is not None else 0.0

    def in_any_order(self, items: Sequence[_Item]) -> list[_Item]:
        """Things that are done together, in an order that is drawn; as they are where nothing takes any time."""
        chance = self._chance
        return list(items) if chance is None else sorted(items, key=lambda _: chance())

    def in_drawn_order(self, cluster: ClusterSnapshot) -> ClusterSnapshot:
        """The cluster with its assigned pods in an order in which the scheduler may have seen them, if nothing says."""
        if self._chance is None or cluster.has_scheduler_order:
            return cluster
        chance = self._chance
        assigned = iter(sorted((pod for pod in cluster.pods if pod.spec.node_name), key=lambda _: chance()))
        pods = [next(assigned) if pod.spec.node_name else pod for pod in cluster.pods]
        return msgspec.structs.replace(cluster, pods=pods, has_scheduler_order=True)


AT_ONCE = Pace()


def in_whole_seconds(simulation: Simulation) -> Simulation:
    """The simulation with times to the second: what was drawn beyond that is not worth telling."""
    return msgspec.structs.replace(
        simulation,
        seconds=_whole(simulation.seconds),
        starts_at={key: _whole(at) for key, at in simulation.starts_at.items()},
        steps=[msgspec.structs.replace(step, at=_whole(step.at)) for step in simulation.steps],
        workloads=[msgspec.structs.replace(each, least_at=_whole(each.least_at)) for each in simulation.workloads],
        refused=[msgspec.structs.replace(each, since=_whole(each.since)) for each in simulation.refused],
        stranded=[
            msgspec.structs.replace(
                each, since=_whole(each.since), until=None if each.until is None else _whole(each.until)
            )
            for each in simulation.stranded
        ],
    )


def _whole(seconds: float) -> float:
    return float(int(seconds))
