"""Equal pods on a node: whether their order decides the victims, and what every order would lead to.

Also the choice between nodes if that order, and thus the victims on some nodes, is unknown. Each node's list has its
own order, so any outcome on one node may be combined with any on another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

from kpreempt.model.pod import Pod
from kpreempt.schedulers.choice import CandidateVictims, Criterion, rank_of
from kpreempt.schedulers.equal_pods import Choice, EquivalentPods, Fits, Outcomes, Possible, StayingPods, Steps, follow
from kpreempt.schedulers.kube.framework.node_info import PodInfo
from kpreempt.schedulers.kube.preemption.importance import BudgetIndex, PodWithBudgets, tie_of
from kpreempt.verdict import Alternatives, PodChoice, PossibleOutcome

# Maximum number of steps for all searches of a decision together, and for one of them.
MAX_STEPS = 400_000
MAX_STEPS_OF_NODE = 20_000
P = TypeVar("P")
Tie = Sequence[EquivalentPods[PodInfo]]
# A property of two pods.
Both = Callable[[PodInfo, PodInfo], bool]


class ReprieveStep(NamedTuple):
    """A potential victim in the likely order, and what happened to it."""

    counted: PodWithBudgets
    is_reprieved: bool


def kinds_of(tie: Sequence[ReprieveStep], budgets: BudgetIndex, is_alike: Both) -> list[EquivalentPods[PodInfo]]:
    """Group the pods of a tie that no filter and no budget distinguishes; ``is_alike`` checks the filters."""
    kinds: list[EquivalentPods[PodInfo]] = []
    for each in tie:
        info = each.counted.pod_info
        protected_by = tuple(budget.key for budget in budgets.protecting(info))
        like = next((kind for kind in kinds if kind.budgets == protected_by and is_alike(kind.pods[0], info)), None)
        if like is None:
            kinds.append(EquivalentPods([info], protected_by))
        else:
            like.pods.append(info)
    return kinds


# The filters that read pods' labels.
_OF_LABELS = frozenset({"InterPodAffinity", "PodTopologySpread"})


def distinguished_by(skipped: Collection[str]) -> Both:
    """Return a check whether the filters, except those ``skipped`` for this pod, treat two pods of a node the same."""
    looks_at_labels = not set(skipped).issuperset(_OF_LABELS)

    def is_alike(one: PodInfo, other: PodInfo) -> bool:
        first, second = one.pod, other.pod
        # Claims belong to a namespace.
        is_local = looks_at_labels or first.spec.volumes or first.spec.resource_claims
        return (
            (not is_local or first.metadata.namespace == second.metadata.namespace)
            and (not looks_at_labels or first.metadata.labels == second.metadata.labels)
            and (first.metadata.deletion_timestamp is None) == (second.metadata.deletion_timestamp is None)
            and first.spec == second.spec
        )

    return is_alike


def is_decided_by_order(tie: Sequence[ReprieveStep], kinds: Tie, allowed: Mapping[str, int]) -> bool:
    """Return whether another order within the tie may change the number of victims of each kind, or the violations.

    A pod that is put back only uses resources. So of the pods put back in one pass, if all stay or all are evicted in
    one order, they do in every order. ``allowed`` is what budgets still allow when the tie's turn comes.
    """
    if len(kinds) == 1:
        return False
    budget_counts: dict[str, int] = {}
    for kind in kinds:
        for budget in kind.budgets:
            budget_counts[budget] = budget_counts.get(budget, 0) + len(kind.pods)
    return any(0 < allowed.get(budget, 0) < count for budget, count in budget_counts.items()) or any(
        len({each.is_reprieved for each in tie if each.counted.violates == violates}) > 1 for violates in (True, False)
    )


class NodeTies(NamedTuple):
    """The ties of a node's potential victims.

    Also whether their order decides more than which of the equivalent pods are evicted.
    """

    ties: list[Tie]
    steps: list[list[ReprieveStep]]
    is_open: bool

    def likely_outcome(self, num_violations: int) -> Outcomes[PodInfo]:
        """Return the outcome if the numbers are certain."""
        gone = {each.counted.pod_info.key for tie in self.steps for each in tie if not each.is_reprieved}
        certain: list[PodInfo] = []
        choices: list[Choice[PodInfo]] = []
        for kind in (kind for tie in self.ties for kind in tie):
            count = sum(info.key in gone for info in kind.pods)
            if count == len(kind.pods):
                certain += kind.pods
            elif count:
                choices.append(Choice(count, kind.pods))
        return Outcomes([Possible(certain, choices, num_violations)])


def node_ties(
    reprieve_steps: Sequence[ReprieveStep],
    budgets: BudgetIndex,
    is_tied: Both,
    is_alike: Both,
    *,
    only_uses_resources: bool,
) -> NodeTies | None:
    """Return the ties of a node; ``None`` if there are none, or no tie is split.

    ``reprieve_steps`` has the potential victims by importance, in the likely order.
    """
    # The potential victims in groups of equals.
    groups: list[list[ReprieveStep]] = []
    for each in reprieve_steps:
        if groups and is_tied(groups[-1][-1].counted.pod_info, each.counted.pod_info):
            groups[-1].append(each)
        else:
            groups.append([each])
    if len(groups) == len(reprieve_steps):
        return None
    ties: list[Tie] = [kinds_of(group, budgets, is_alike) for group in groups]
    is_open = False
    allowed = allowed_by(budgets, reprieve_steps)
    for group, kinds in zip(groups, ties, strict=True):
        is_open |= is_decided_by_order(group, kinds, allowed) or (not only_uses_resources and len(kinds) > 1)
        for kind in kinds:
            for budget in kind.budgets:
                allowed[budget] -= len(kind.pods)
    if not is_open and all(len({each.is_reprieved for each in group}) == 1 for group in groups):
        return None
    return NodeTies(ties, groups, is_open)


def allowed_by(budgets: BudgetIndex, reprieve_steps: Sequence[ReprieveStep]) -> dict[str, int]:
    """Return the disruptions that each budget of these pods allows before any is evicted."""
    return {
        budget.key: budget.allowed for each in reprieve_steps for budget in budgets.protecting(each.counted.pod_info)
    }


def follow_all(
    found: NodeTies,
    allowed: Mapping[str, int],
    fits: Callable[[list[PodInfo], PodInfo], bool],
    steps: Steps,
) -> Outcomes[PodInfo]:
    """Return what every order leads to. ``fits`` checks whether a pod fits with the pods that are already back."""
    kinds = [kind for tie in found.ties for kind in tie]

    def can_stay(kept: StayingPods, kind: int) -> bool:
        staying = [info for number, count in enumerate(kept) for info in kinds[number].pods[:count]]
        return fits(staying, kinds[kind].pods[kept[kind]])

    return follow_on_node(found.ties, allowed, can_stay, steps)


def follow_on_node(
    ties: Sequence[Sequence[EquivalentPods[P]]], allowed: Mapping[str, int], fits: Fits, steps: Steps
) -> Outcomes[P]:
    """Return what every order of the ties of one node leads to, using the decision's steps."""
    taken = steps.take(MAX_STEPS_OF_NODE)
    before = taken.remaining
    outcomes = follow(ties, allowed, fits, taken)
    steps.remaining -= before - max(0, taken.remaining)
    return outcomes


# Up to this many outcomes are reported, the most likely first.
MAX_OUTCOMES = 200


class _Rival(NamedTuple):
    """One possible outcome on a node: the victims as the choice sees them, and the outcome if it is not certain."""

    node: str
    victims: CandidateVictims
    possible: Possible[Pod] | None


def alternatives_of(
    likely: Mapping[str, CandidateVictims],
    outcomes: Mapping[str, Outcomes[Pod]],
    criteria: Sequence[Criterion],
    nominated: Sequence[str],
    *,
    is_exact: bool,
) -> Alternatives | None:
    """Return every possible outcome of the choice, one with a ``nominated`` node first; ``None`` if no order matters.

    ``likely`` has all candidates with their victims in the likely order, and ``outcomes`` what other orders lead to.
    Without ``is_exact``, not everything is known about the choice.
    """
    # If not everything is known, others may have changed the victims.
    rivals = [
        each
        for node, victims in likely.items()
        for each in _rivals(node, victims, outcomes.get(node), is_likely_known=is_exact)
    ]
    winners = _winners(rivals, criteria)
    if not any(each.possible for each in winners):
        return None
    first = {node: place for place, node in enumerate(nominated)}
    winners.sort(
        key=lambda each: (
            first.get(each.node, len(first)),
            [-value for value in rank_of(each.node, each.victims, criteria)],
        )
    )
    listed = []
    for each in winners[:MAX_OUTCOMES]:
        if each.possible is not None:
            listed.append(to_possible_outcome(each.node, each.possible))
        else:
            certain = [pod.key for pod in each.victims.pods]
            listed.append(PossibleOutcome(each.node, certain, [], each.victims.num_violations))
    is_complete = all(outcomes[each.node].is_exact for each in winners if each.node in outcomes)
    return Alternatives(listed, exact=is_exact and is_complete, omitted=len(winners) - len(listed))


def _rivals(node: str, likely: CandidateVictims, found: Outcomes[Pod] | None, *, is_likely_known: bool) -> list[_Rival]:
    """Return the rivals on a node. Equal pods share priority and start, so all examples of an outcome rank equally."""
    if found is None:
        return [_Rival(node, likely, None)]
    if is_likely_known and len(found.possible) == 1:
        return [_Rival(node, likely, found.possible[0])]
    return [
        _Rival(node, CandidateVictims(sorted(each.an_example, key=tie_of), each.num_violations), each)
        for each in found.possible
    ]


def _winners(rivals: Sequence[_Rival], criteria: Sequence[Criterion]) -> list[_Rival]:
    """Return the outcomes that can win: no other node is better even with its worst outcome.

    Goes rule by rule, as the choice does, so that later rules run on few outcomes.
    """
    winners: list[int] = []
    level = list(range(len(rivals)))
    # Keep nodes with an outcome at least as good, by the rules so far, as the best of the nodes' worst outcomes.
    setting = {each.node for each in rivals}
    for criterion in criteria:
        ranks = {index: criterion.rank(rivals[index].node, rivals[index].victims) for index in level}
        worst: dict[str, float] = {}
        for index, rank in ranks.items():
            node = rivals[index].node
            if node in setting:
                worst[node] = min(rank, worst.get(node, rank))
        bar = max(worst.values())
        setting = {node for node, rank in worst.items() if rank == bar}
        winners += [index for index, rank in ranks.items() if rank > bar]
        level = [index for index, rank in ranks.items() if rank == bar]
    return [rivals[index] for index in sorted([*winners, *level])]


def to_possible_outcome(node: str, possible: Possible[Pod]) -> PossibleOutcome:
    """Convert an outcome to evidence, with pods sorted by name so that the result does not depend on the search."""
    certain = sorted(pod.key for pod in possible.pods)
    choices = [PodChoice(choice.number, sorted(pod.key for pod in choice.pods)) for choice in possible.choices]
    return PossibleOutcome(node, certain, choices, possible.num_violations)
