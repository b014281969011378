"""The scheduler's part in a simulation: its queue, its decisions, what it remembers of them, and what is up to chance.

Chance, or an unknown order, decides how a decision comes out, and how long everything takes. Nothing in a snapshot says
how long the parts of a cluster take. With ``AT_ONCE`` all that can be done at a moment is done in it: the scheduler
tries one pod after the other, and controllers answer between two attempts. In a real cluster each of these takes its
time. Pods of a rollout come while others are tried already, what takes the place of a victim is tried before the next
of them, and pods become ready one by one. Which comes first then is up to chance, and with it which has to go. So is
the order of equal pods, in which the scheduler has seen them; a simulation has one and the same from its start to its
end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from math import comb, prod
from typing import Literal, TypeVar

import msgspec

from kpreempt.analysis.algorithms import Scheduler, equivalence_key_for, has_queue, queue_for
from kpreempt.analysis.queue.cluster import refused
from kpreempt.analysis.queue.state import UNKNOWN_PLUGIN, rejecting_plugins
from kpreempt.analysis.simulation.cluster import SimulatedCluster
from kpreempt.controllers.actions import is_ready
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_name, grouped
from kpreempt.model.pod import Pod
from kpreempt.scheduler_table import DEFAULT_ALGORITHM
from kpreempt.schedulers.kube.preemption.odds import SampledCandidate, outcomes_in_any_order, outcomes_of_scores
from kpreempt.schedulers.queues import Attempt
from kpreempt.verdict import Assumption, AssumptionKind, OddsOutcome, Outcome, PodChoice, SearchOrder, Verdict
from kpreempt.verdict.simulation import Simulation

# As long as the longest backoff: a pod that waits since before the start may be tried at once.
_SINCE_LAST_TRY = timedelta(seconds=10)
_NOT_ALL_FOUND = Assumption(
    "scheduler",
    "percentageOfNodesToScore",
    "on so many nodes the search for room stops early, and only the scheduler knows where it starts: any is drawn",
    AssumptionKind.INFORMATIONAL,
)


class Scheduling:
    """Which pod is tried next, and what comes of it. Times are in seconds from the start.

    ``choose`` picks one of the ways in which a decision may come out. Of pods that are ``waiting`` since before nobody
    knows which plugins refused them. A plugin that orders the queue sees the cluster of the
    start, one that holds pods back that of the moment.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        scheduler: Scheduler,
        choose: Choose,
        waiting: Iterable[Pod],
    ) -> None:
        self._cluster = cluster
        self._scheduler = scheduler
        self._choose = choose
        start = cluster.started
        settings = scheduler.settings
        # For a scheduler whose own is not modelled that of today, which callers tell.
        self.queue = queue_for(
            scheduler.algorithm if has_queue(scheduler.algorithm) else DEFAULT_ALGORITHM,
            start - _SINCE_LAST_TRY,
            feature_gates=settings.gates,
            initial_backoff=settings.initial_backoff,
            max_backoff=settings.max_backoff,
            rules=scheduler.queue_rules(cluster.prepared),
        )
        self.attempts = 0
        self.draws = 0
        self.assumptions: dict[Assumption, None] = {}
        # The version of the cluster at which each pod was tried last.
        self._tried_at: dict[str, int] = {}
        # Failed attempts since the last change, by what the scheduler sees of the pod.
        self._failed: dict[bytes, Verdict] = {}
        self._failed_at = -1
        # By name, what makes pods alike here, each with the record that it is of; and the number of each kind.
        self._kinds: dict[str, tuple[Pod, int | None]] = {}
        self._kind_numbers: dict[Hashable, int] = {}
        for pod in waiting:
            self.queue.restore(pod, Attempt(plugins=frozenset((UNKNOWN_PLUGIN,))), start - _SINCE_LAST_TRY)
        self.queue.advance(start)

    def next_pod(self) -> Pod | None:
        """The pod that the scheduler takes now, if there is one."""
        now = self._cluster.now
        self.queue.advance(now)
        pod = self.queue.pop(now)
        if pod is None:
            return None
        self.attempts += 1
        self._tried_at[pod.key] = self._cluster.version
        return self._cluster.pods[pod.key]

    def next_timer(self) -> float | None:
        """When the queue next moves a pod by itself, as long as a try could come to something new."""
        timer = self.queue.next_timer()
        if timer is None or not self._may_come_to_something():
            return None
        return (timer - self._cluster.started).total_seconds()

    def decide(self, pod: Pod) -> Verdict:
        """The scheduler's decision; one that failed counts for equal pods, too, until something changes."""
        if self._failed_at != self._cluster.version:
            self._failed, self._failed_at = {}, self._cluster.version
        key = equivalence_key_for(self._scheduler, pod) if self._failed else b""
        if key in self._failed:
            return self._failed[key]
        verdict = self._scheduler.decide(
            self._cluster.prepared(),
            pod,
            records_steps=False,
            records_scores=False,
            records_nodes=False,
            is_popped=True,
        )
        if verdict.outcome not in FINDS_A_NODE:
            self._failed[key or equivalence_key_for(self._scheduler, pod)] = verdict
        self.assumptions.update(dict.fromkeys(verdict.assumptions))
        if verdict.sampling is not None:
            self.assumptions[_NOT_ALL_FOUND] = None
        return verdict

    def draw(self, verdict: Verdict) -> tuple[Branch, list[str]]:
        """How a decision comes out, and the nodes between which it was drawn, none where nothing was."""
        branches = branches_of(verdict, self._kind_of)
        if len(branches) > 1:
            branches = [each for each in branches if self._may_come(each, verdict)] or branches
        if len(branches) == 1:
            return branches[0], []
        self.draws += 1
        return self._choose(branches), list(dict.fromkeys(branch.node for branch in branches))

    def _kind_of(self, key: str) -> Hashable:
        """What equal pods of a node share where it makes no difference to the simulation which of them goes.

        ``None`` for those that go already, which is no difference to it at all.
        """
        pod = self._cluster.pods.get(key)
        if pod is None:
            return key
        known = self._kinds.get(key)
        if known is None or known[0] is not pod:
            metadata = pod.metadata
            number = None
            if metadata.deletion_timestamp is None:
                kind = metadata.namespace, controller_name(metadata), frozenset(metadata.labels.items()), is_ready(pod)
                number = self._kind_numbers.setdefault(kind, len(self._kind_numbers))
            known = self._kinds[key] = pod, number
        return known[1]

    def _may_come(self, branch: Branch, verdict: Verdict) -> bool:
        """Whether nobody goes before a like pod told to go in the simulation, which put it behind its equals."""
        told = self._cluster.observed_on(branch.node)
        if not told:
            return True
        gone = set(branch.leaving)
        if branch.violated is not None:
            gone.update(victim.pod for victim in verdict.victims.get(branch.node, ()))
        pods = self._cluster.pods
        spared = [pod for key, pod in told.items() if key not in gone]
        going = [pods[key] for key in gone if key in pods and key not in told]
        return not any(_are_alike(one, other) for one in spared for other in going)

    def landed(self, pod: Pod, bound: Pod) -> None:
        """The attempt came to a node; ``bound`` is the pod as it is on it."""
        now = self._cluster.now
        self.queue.assigned_pod_changed(None, bound, now)
        self.queue.delete(pod, now, is_bound=True)
        self.queue.done(pod, now)

    def not_landed(self, key: str, verdict: Verdict) -> None:
        """The attempt came to no node, or to one where victims have to go first."""
        plugins = rejecting_plugins(verdict) or frozenset((UNKNOWN_PLUGIN,))
        now = self._cluster.now
        pod = self._cluster.store(refused(self._cluster.pods[key], now, is_error=False))
        self.queue.add_unschedulable(pod, Attempt(self.queue.scheduling_cycle or 0, plugins), now)

    def held_by(self) -> dict[str, str]:
        """The out-of-tree plugins that keep pods out of the queue, by the pod's name."""
        return {each.pod: each.held_by for each in self.queue.pods() if each.held_by}

    def _may_come_to_something(self) -> bool:
        """Whether anything has changed since a pod of the queue was tried."""
        waiting = map(self._cluster.pods.get, self.queue.names())
        return any(
            pod is not None
            and not pod.spec.scheduling_gates
            and self._tried_at.get(pod.key, 0) != self._cluster.version
            for pod in waiting
        )


def _are_alike(one: Pod, other: Pod) -> bool:
    """Whether neither filters nor budgets nor their importance tell two pods apart."""
    mine, its = one.metadata, other.metadata
    return (
        (mine.namespace, mine.labels) == (its.namespace, its.labels)
        and one.status.start_time == other.status.start_time
        and one.spec == other.spec
    )


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
            violated = {victim.pod: [use.budget for use in victim.budgets if use.remaining < 0] for victim in going}
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
    all_branches = (
        Branch(
            node=outcome.node,
            leaving=[*outcome.victims, *chosen],
            weight=winners.get(outcome.node, least) / numbers[outcome.node] * likelihood,
        )
        for outcome in outcomes
        for chosen, likelihood in _all_choices(outcome.choices, alike)
    )
    for branch in islice(all_branches, _MOST_WAYS):
        effect = _effect(branch, alike)
        branches.setdefault(effect, branch)
        weights[effect] = weights.get(effect, 0.0) + branch.weight
    is_cut = next(all_branches, None) is not None
    weighted = [
        msgspec.structs.replace(branch, weight=weights.get(effect, branch.weight))
        for effect, branch in branches.items()
    ]
    kept = weighted[:_MOST_BRANCHES]
    if is_cut or len(kept) < len(branches) or (told is not None and (told.omitted or not told.exact)):
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
    pools = list(grouped(choice.pods, alike).values())
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
        workloads=[
            msgspec.structs.replace(each, ready_min_at=_whole(each.ready_min_at)) for each in simulation.workloads
        ],
        rejected=[msgspec.structs.replace(each, since=_whole(each.since)) for each in simulation.rejected],
        broken_dependencies=[
            msgspec.structs.replace(
                each, since=_whole(each.since), until=None if each.until is None else _whole(each.until)
            )
            for each in simulation.broken_dependencies
        ],
    )


def _whole(seconds: float) -> float:
    return float(int(seconds))
