"""The scheduler in a simulation: its queue, its decisions, and what is random about them.

Chance, or an unknown order, decides between the possible results of a decision, and how long actions take; a snapshot
does not show how fast the components of a cluster are. With ``AT_ONCE``, everything that can happen at a time happens
then: the scheduler tries one pod after another, and controllers respond between two attempts. In a real cluster these
take time: pods of a rollout are created while others are already tried, the replacement of a victim is tried before the
next of them, and pods become ready one by one. The order is then random, and with it the victims. So is the order in
which the scheduler has seen equal pods, which is fixed within a simulation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import islice
from math import comb, prod
from typing import Literal, TypeVar

import msgspec

from kpreempt.analysis.algorithms import Scheduler, equivalence_key_for
from kpreempt.analysis.queue.cluster import after_failed_attempt
from kpreempt.analysis.queue.waiting import UNKNOWN_PLUGIN, Waiting, queue_of, rejecting_plugins
from kpreempt.analysis.simulation.cluster import SimulatedCluster
from kpreempt.controllers.actions import is_ready
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import controller_name, grouped
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.preemption.odds import SampledCandidate, outcomes_in_any_order, outcomes_of_scores
from kpreempt.schedulers.queues import Attempt
from kpreempt.verdict import Assumption, AssumptionKind, OddsOutcome, Outcome, PodChoice, SearchOrder, Verdict
from kpreempt.verdict.simulation import Simulation

_SEARCH_TRUNCATED = Assumption(
    "scheduler",
    "percentageOfNodesToScore",
    "on large clusters the search for nodes stops early, at an unknown position; a random position is used",
    AssumptionKind.INFORMATIONAL,
)


class Scheduling:
    """Decides which pod is tried next, and applies the results. Times are in seconds from the start.

    ``choose`` picks one of the possible results of a decision; ``None`` takes the likely one, does not determine the
    others, and counts every decision as a draw. ``waiting`` are the pods in the queue at the start. A
    plugin that orders the queue gets the cluster at the start, one that holds pods back the current cluster.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        scheduler: Scheduler,
        choose: Choose | None,
        waiting: Sequence[Waiting],
    ) -> None:
        self._cluster = cluster
        self._scheduler = scheduler
        self._choose = choose
        self.queue = queue_of(scheduler, waiting, cluster.started, scheduler.queue_rules(cluster.prepared))
        self.attempts = 0
        self.draws = 0
        self.assumptions: dict[Assumption, None] = {}
        # The version of the cluster for which the result of each pod is known.
        self._attempted_at = {each.pod.key: cluster.version for each in waiting if not each.finds_node}
        # Failed attempts since the last change, by scheduling key.
        self._failed_verdicts: dict[bytes, Verdict] = {}
        self._failed_at = -1
        # Pods with the number of their kind (interchangeable pods have the same), by key; and the numbers of kinds.
        self._kinds: dict[str, tuple[Pod, int | None]] = {}
        self._kind_numbers: dict[Hashable, int] = {}

    def next_pod(self) -> Pod | None:
        """The pod that the scheduler tries now, if any."""
        now = self._cluster.now
        self.queue.advance(now)
        pod = self.queue.pop(now)
        if pod is None:
            return None
        self.attempts += 1
        self._attempted_at[pod.key] = self._cluster.version
        return self._cluster.pods[pod.key]

    def next_timer(self) -> float | None:
        """When the queue's next timer moves a pod, if another attempt could have a new result."""
        timer = self.queue.next_timer()
        if timer is None or not self._can_make_progress():
            return None
        return (timer - self._cluster.started).total_seconds()

    def decide(self, pod: Pod) -> Verdict:
        """The scheduler's decision; a failure also applies to equal pods until something changes."""
        if self._failed_at != self._cluster.version:
            self._failed_verdicts, self._failed_at = {}, self._cluster.version
        key = equivalence_key_for(self._scheduler, pod) if self._failed_verdicts else b""
        if key in self._failed_verdicts:
            return self._failed_verdicts[key]
        verdict = self._scheduler.decide(
            self._cluster.prepared(),
            pod,
            records_steps=False,
            records_scores=False,
            records_nodes=False,
            records_odds=self._choose is not None,
            is_popped=True,
        )
        if not verdict.outcome.finds_node:
            self._failed_verdicts[key or equivalence_key_for(self._scheduler, pod)] = verdict
        self.assumptions.update(dict.fromkeys(verdict.assumptions))
        if verdict.sampling is not None:
            self.assumptions[_SEARCH_TRUNCATED] = None
        return verdict

    def draw(self, verdict: Verdict) -> tuple[Branch, list[str]]:
        """The result of a decision, and the nodes between which it was drawn, if any."""
        if self._choose is None:
            self.draws += 1
            return _likely(verdict), []
        branches = branches_of(verdict, self._kind_of)
        if len(branches) > 1:
            branches = [each for each in branches if self._is_possible(each, verdict)] or branches
        if len(branches) == 1:
            return branches[0], []
        self.draws += 1
        return self._choose(branches), list(dict.fromkeys(branch.node for branch in branches))

    def _kind_of(self, key: str) -> Hashable:
        """The kind of a pod; it does not matter to the simulation which pod of a kind is evicted.

        ``None`` for pods that are already terminating.
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

    def _is_possible(self, branch: Branch, verdict: Verdict) -> bool:
        """Whether the branch agrees with evictions in this simulation, which determined an order of equal pods."""
        terminating = self._cluster.observed_on(branch.node)
        if not terminating:
            return True
        victims = set(branch.leaving)
        if branch.violated is not None:
            victims.update(victim.pod for victim in verdict.victims.get(branch.node, ()))
        pods = self._cluster.pods
        spared = [pod for key, pod in terminating.items() if key not in victims]
        new_victims = [pods[key] for key in victims if key in pods and key not in terminating]
        return not any(_are_alike(one, other) for one in spared for other in new_victims)

    def bound(self, pod: Pod, bound: Pod) -> None:
        """Record that the attempt succeeded; ``bound`` is the pod on its node."""
        now = self._cluster.now
        self.queue.assigned_pod_changed(None, bound, now)
        self.queue.delete(pod, now, is_bound=True)
        self.queue.done(pod, now)

    def unbound(self, key: str, verdict: Verdict) -> None:
        """Record that the attempt failed, or that victims have to terminate first."""
        plugins = rejecting_plugins(verdict) or frozenset((UNKNOWN_PLUGIN,))
        now = self._cluster.now
        pod = self._cluster.store(after_failed_attempt(self._cluster.pods[key], now, is_error=False))
        self.queue.add_unschedulable(pod, Attempt(self.queue.scheduling_cycle or 0, plugins), now)

    def held_by(self) -> dict[str, str]:
        """The out-of-tree plugins that keep pods out of the queue, by pod."""
        return {each.pod: each.held_by for each in self.queue.pods() if each.held_by}

    def _can_make_progress(self) -> bool:
        """Whether anything has changed since a queued pod was last tried."""
        waiting = map(self._cluster.pods.get, self.queue.names())
        return any(
            pod is not None
            and not pod.spec.scheduling_gates
            and self._attempted_at.get(pod.key) != self._cluster.version
            for pod in waiting
        )


def _are_alike(one: Pod, other: Pod) -> bool:
    """Whether two pods are equal for filters, budgets and importance."""
    metadata, other_metadata = one.metadata, other.metadata
    return (
        (metadata.namespace, metadata.labels) == (other_metadata.namespace, other_metadata.labels)
        and one.status.start_time == other.status.start_time
        and one.spec == other.spec
    )


# The maximum number of branches per decision.
_MAX_BRANCHES = 64
# The maximum number of combinations examined: victims of many kinds have very many.
_MAX_COMBINATIONS = 256


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """One possible result of a decision: the node, the pods that are evicted, and its likelihood.

    ``violated`` maps victims to the budgets they violate, or is ``None`` if the verdict does not show them. ``weight``
    is relative to the other branches; orders of equal pods are equally likely. It ``is_truncated`` if there may be
    branches that are not listed.
    """

    node: str
    leaving: Sequence[str] = ()
    violated: Mapping[str, Sequence[str]] | None = None
    weight: float = 1.0
    is_truncated: bool = False


# Picks one of several branches.
Choose = Callable[[Sequence[Branch]], Branch]
# Returns the kind of a pod; it does not matter which pod of a kind is evicted, and None means that it is no matter at
# all.
Alike = Callable[[str], Hashable]


def first_branch(branches: Sequence[Branch]) -> Branch:
    """The first branch, which is the verdict's own result."""
    return branches[0]


def _likely(verdict: Verdict) -> Branch:
    if verdict.outcome is Outcome.LANDS:
        return Branch(node=(verdict.lands_on or verdict.chosen_nodes)[0])
    node = verdict.nominated_nodes[0]
    evicted = [victim for victim in verdict.victims[node] if not victim.terminating]
    violated = {victim.pod: [use.budget for use in victim.budgets if use.remaining < 0] for victim in evicted}
    return Branch(node=node, leaving=list(violated), violated=violated)


def branches_of(verdict: Verdict, alike: Alike) -> list[Branch]:
    """The branches of a verdict that finds a node: at least one, the verdict's own result first.

    Anything else that chance decides about a pod becomes a branch here. Among equal pods that are ``alike`` for the
    simulation, only the number of victims distinguishes branches.
    """
    if verdict.outcome is Outcome.LANDS:
        return [Branch(node=node, weight=weight) for node, weight in _nodes_by_weight(verdict).items()]
    # The nodes that may be chosen, the best first, with their weights.
    winners = _weighted(verdict.nominated_nodes, verdict.odds.outcomes if verdict.odds is not None else ())
    alternatives = verdict.alternatives
    first = next(iter(winners))
    leaving = {candidate.node: candidate.victims for candidate in verdict.candidates}
    # The evictions in the likely order; those of the verdict's own result have the budgets they violate.
    found = []
    for node in (first, *(node for node in winners if node != first)):
        violated = None
        if node in verdict.victims:
            evicted = [victim for victim in verdict.victims[node] if not victim.terminating]
            violated = {victim.pod: [use.budget for use in victim.budgets if use.remaining < 0] for victim in evicted}
        victims = leaving.get(node, []) if violated is None else list(violated)
        found.append(Branch(node=node, leaving=victims, violated=violated, weight=winners[node]))
    has_alternatives = {each.node for each in verdict.candidates if each.outcomes is not msgspec.UNSET}
    if alternatives is None and has_alternatives.isdisjoint(winners):
        return found
    return _in_all_orders(verdict, winners, found, alike)


def _in_all_orders(
    verdict: Verdict, winners: Mapping[str, float], likely: Sequence[Branch], alike: Alike
) -> list[Branch]:
    """Every branch that an order of equal pods can lead to, those of the likely order first."""
    alternatives = verdict.alternatives
    outcomes = list(alternatives.outcomes) if alternatives is not None else []
    seen = {outcome.node for outcome in outcomes}
    by_node = {candidate.node: candidate for candidate in verdict.candidates}
    outcomes += [each for node in winners if node not in seen for each in by_node[node].possible]
    minimum = min(winners.values())
    numbers = Counter(outcome.node for outcome in outcomes)
    branches = {_effect(branch, alike): branch for branch in likely}
    weights: dict[Hashable, float] = {}
    # The combinations of choices of each outcome, as far as they differ for the simulation.
    combinations = (
        Branch(
            node=outcome.node,
            leaving=[*outcome.victims, *chosen],
            weight=winners.get(outcome.node, minimum) / numbers[outcome.node] * likelihood,
        )
        for outcome in outcomes
        for chosen, likelihood in _all_choices(outcome.choices, alike)
    )
    for branch in islice(combinations, _MAX_COMBINATIONS):
        effect = _effect(branch, alike)
        branches.setdefault(effect, branch)
        weights[effect] = weights.get(effect, 0.0) + branch.weight
    is_cut = next(combinations, None) is not None
    weighted = [
        msgspec.structs.replace(branch, weight=weights.get(effect, branch.weight))
        for effect, branch in branches.items()
    ]
    result = weighted[:_MAX_BRANCHES]
    if (
        is_cut
        or len(result) < len(branches)
        or (alternatives is not None and (alternatives.omitted or not alternatives.exact))
    ):
        result = [msgspec.structs.replace(branch, is_truncated=True) for branch in result]
    return result


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
    """The combinations of victims with their likelihood: one for each number of pods per kind."""
    pools = list(grouped(choice.pods, alike).values())
    all_ways = comb(len(choice.pods), choice.count)
    for numbers in _divisions(choice.count, [len(pool) for pool in pools]):
        pods = [pod for pool, number in zip(pools, numbers, strict=True) for pod in pool[:number]]
        ways = prod(comb(len(pool), number) for pool, number in zip(pools, numbers, strict=True))
        yield pods, ways / all_ways


def _divisions(count: int, sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The ways to take ``count`` items from pools of these sizes, starting with the fewest from the first pool."""
    if not sizes:
        yield ()
        return
    first, *rest = sizes
    for number in range(max(0, count - sum(rest)), min(first, count) + 1):
        for others in _divisions(count - number, rest):
            yield number, *others


def _nodes_by_weight(verdict: Verdict) -> Mapping[str, float]:
    """The nodes that a pod may be placed on, the best scores first, with their weights.

    If only some feasible nodes are scored, the search may have started anywhere; scores are assumed to be the same as
    among all nodes.
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


# Actions that take time: an attempt of the scheduler; a controller's next step after an event, or a kubelet's after a
# grace period; the time between pods that a controller creates, until the scheduler knows of them; and the time from
# binding until a pod is ready.
Delay = Literal["attempt", "answer", "creation", "readiness"]
# The average seconds of each action if it is fast, and how often that may double if it is slow.
_FASTEST: dict[Delay, float] = {"attempt": 0.002, "answer": 0.01, "creation": 0.005, "readiness": 0.02}
_DOUBLINGS = 7
_Item = TypeVar("_Item")


class Pace:
    """The duration of actions; without ``chance``, which returns random numbers from 0 to 1, everything is instant.

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
        """The duration of an action, drawn each time."""
        return 2.0 * self._means[of] * self._chance() if self._chance is not None else 0.0

    def in_any_order(self, items: Sequence[_Item]) -> list[_Item]:
        """Items that are processed together, in random order; in their own order if nothing takes any time."""
        chance = self._chance
        return list(items) if chance is None else sorted(items, key=lambda _: chance())

    def in_drawn_order(self, cluster: ClusterSnapshot) -> ClusterSnapshot:
        """The cluster with its assigned pods in a random order, if the scheduler's order is unknown."""
        if self._chance is None or cluster.has_scheduler_order:
            return cluster
        chance = self._chance
        assigned = iter(sorted((pod for pod in cluster.pods if pod.spec.node_name), key=lambda _: chance()))
        pods = [next(assigned) if pod.spec.node_name else pod for pod in cluster.pods]
        return msgspec.structs.replace(cluster, pods=pods, has_scheduler_order=True)


AT_ONCE = Pace()


def in_whole_seconds(simulation: Simulation) -> Simulation:
    """The simulation with times in whole seconds, because random fractions are not meaningful."""
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
