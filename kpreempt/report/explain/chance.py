"""What the verdict cannot predict: the start of the node search, the order of equal volumes and of tied pods.

On big clusters the scheduler samples the nodes, starting at one that cannot be predicted. Verdicts cover all nodes;
these texts say how far the real search may deviate from that.
"""

from __future__ import annotations

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Block, Listing, Phrase, Section, Sentence, Span, strong
from kpreempt.report.evidence import join_names
from kpreempt.verdict import (
    Alternatives,
    Odds,
    OddsOutcome,
    Outcome,
    PodChoice,
    PossibleOutcome,
    SearchOrder,
    Verdict,
)
from kpreempt.verdict.chance import VolumeOutcome

_OUTCOMES_SHOWN = 4
_PODS_LISTED = 4
_NODES_SHOWN = 3
# Rounding errors of probabilities are far below this, in percent.
_EPSILON = 1e-7
_ENDS_SHOWN = 3
_WINNERS_SHOWN = 2


def is_sampled_preemption(verdict: Verdict) -> bool:
    """Whether the order of the search decides which candidate wins."""
    return verdict.odds is not None and len(verdict.odds.outcomes) != 1


def chance_of_preemption(verdict: Verdict) -> str:
    """A sentence on how often the nominated nodes win, or an empty text if they always do."""
    odds = verdict.odds
    if odds is None or not is_sampled_preemption(verdict):
        return ""
    if not odds.outcomes:
        return "But the scheduler is configured to keep no candidates, so it would not preempt at all."
    own = next((each for each in odds.outcomes if set(each.nodes) & set(verdict.nominated_nodes)), None)
    others = [each for each in odds.outcomes if each is not own]
    this = "this node" if len(verdict.nominated_nodes) == 1 else "one of these nodes"
    share = percent(own.probability) if own else "less than 1%"
    rest = ", and another node otherwise" if len(others) > 1 else ""
    return (
        f"The scheduler tries only some of the nodes, {_by_chance(odds.order)}: it picks {this} "
        f"{share} of the time, {_one_of(others[0])} {percent(others[0].probability)}{rest}."
    )


def chance_of_landing(verdict: Verdict) -> str:
    """A sentence saying that not every node that fits is scored, or an empty text."""
    sampling = verdict.sampling
    if sampling is None:
        return ""
    is_list = sampling.order is SearchOrder.LIST
    start = "starts its search where the last one ended" if is_list else "searches the nodes in random order"
    return (
        f"The scheduler {start} and stops once {count(sampling.nodes_to_find, 'node')} "
        f"{agree(sampling.nodes_to_find, 'fits')}, so it may pick another node."
    )


def chance_of_volumes(verdict: Verdict) -> str:
    """A sentence on the pod's outcome in other orders of equal volumes, or an empty text if it is always the same."""
    choices = verdict.volume_choices
    if choices is None or not choices.uncertain:
        return ""
    victims = {node: sorted(each.pod for each in victims) for node, victims in verdict.victims.items()}
    own = _end(VolumeOutcome(verdict.outcome, sorted(verdict.nominated_nodes or verdict.lands_on), victims))
    ends = list(dict.fromkeys(end for each in choices.outcomes if (end := _end(each)) != own))
    if not ends:
        return "But tied volumes are bound in random order, and not every order was tried."
    others = "; not every order was tried" if not choices.complete else ""
    return (
        "But this holds for only one order of tied volumes, and the order is random: in another order, the pod would"
        f" {join_names(ends, limit=_ENDS_SHOWN).replace(' and ', ' or ')}{others}."
    )


def _end(outcome: VolumeOutcome) -> str:
    """What the pod would do."""
    if not outcome.nodes:
        return "stay pending"
    nodes = join_names(outcome.nodes, limit=_NODES_SHOWN).replace(" and ", " or ")
    if not outcome.victims:
        return f"land on {nodes}"
    pods = list(dict.fromkeys(pod for victims in outcome.victims.values() for pod in victims))
    violation = ", violating budgets" if outcome.outcome is Outcome.PREEMPTS_VIOLATING_BUDGETS else ""
    return f"preempt {join_names(pods, limit=_NODES_SHOWN)} on {nodes}{violation}"


def odds_blocks(odds: Odds) -> list[Block]:
    """The possible results of the search, most likely first, and how far the probabilities may be off."""
    stop = f"stops at {count(odds.num_candidates, 'candidate')}"
    order = "starts at a random node" if odds.order is SearchOrder.LIST else "visits the nodes in random order"
    items = [[(strong(_one_of(each)), f"  wins {percent(each.probability)} of the time")] for each in odds.outcomes]
    workers = count(odds.parallelism, "worker")
    if odds.order is SearchOrder.LIST:
        doubts = "computed as if nodes were tried one at a time"
        chunk = count(odds.chunk_size, "node")
        parallel = f"the real search has {workers} that each try {chunk} in a row, so other nodes may win too"
    else:
        doubts = "computed as if every order were equally likely"
        parallel = f"the scheduler tries {odds.parallelism:,} nodes at a time, so slower nodes win less often"
    if odds.order is SearchOrder.SMALL_MAP:
        doubts += ", which may be off by several points for so few nodes"
    if odds.parallelism > 1:
        doubts += f"; {parallel}"
    return [
        Sentence(f"the search {order} and {stop}:"),
        Listing(items, noun="outcome", shown=_WINNERS_SHOWN),
        Sentence(Span(doubts if odds.outcomes else "", "dim")),
    ]


def describe_sampling(verdict: Verdict) -> Phrase:
    """How many of the nodes that fit are scored."""
    if verdict.sampling is None:
        return ()
    found, fitting = verdict.sampling.nodes_to_find, len(verdict.feasible_nodes)
    return ("; ", Span(f"the scheduler scores only the first {found:,} it finds of {fitting:,}", "warn"))


def percent(probability: float) -> str:
    """Format a probability in whole percent, marking rounded values; never 0% or 100% unless that is exact."""
    rounded = round(100 * probability)
    if abs(100 * probability - rounded) < _EPSILON:
        return f"{rounded}%" if probability else "0%"
    return "less than 1%" if rounded < 1 else "more than 99%" if rounded > 99 else f"~{rounded}%"


def _by_chance(order: SearchOrder) -> str:
    return "starting at a random one" if order is SearchOrder.LIST else "in random order"


def _one_of(outcome: OddsOutcome) -> str:
    names = join_names(outcome.nodes, limit=_NODES_SHOWN)
    return names if len(outcome.nodes) < 2 else f"one of {names}"


WHY = (
    "Among pods with the same priority and start time, the order in the scheduler's cache decides. It is not visible "
    "from outside; most likely, the pod that was updated last comes first."
)


def order_in_a_sentence(verdict: Verdict) -> str:
    """How the order of tied pods affects the answer, for the headline; empty if it does not."""
    alternatives = verdict.alternatives
    if alternatives is None:
        return ""
    outcomes = alternatives.outcomes
    nodes = list(dict.fromkeys(each.node for each in outcomes))
    sizes = sorted({each.num_victims for each in outcomes})
    if alternatives.exact and len(outcomes) == 1:
        choices = outcomes[0].choices
        if len(choices) == 1:
            if choices[0].count == 1 and not outcomes[0].victims:
                names = join_names(choices[0].pods, limit=2).replace(" and ", " or ", 1)
                return f"The victim is {names}: they are tied, and the order in the scheduler's cache decides."
            return f"The victims include {_tied(choices[0])}; the order in the scheduler's cache decides."
        tied = count(sum(len(each.pods) for each in choices), "tied pod")
        return f"Which of the {tied} it evicts depends on the order in the scheduler's cache."
    parts = []
    others = [node for node in nodes if node not in verdict.nominated_nodes]
    if others:
        parts.append(f"it may be {join_names(others, limit=2).replace(' and ', ' or ', 1)} instead")
    if len(sizes) > 1:
        parts.append(f"{sizes[0]:,} to {count(sizes[-1], 'pod')} may be evicted")
    effects = "; ".join(parts) or "the victims differ"
    return f"That depends on the order of tied pods in the scheduler's cache: {effects}."


def order_in_brief(alternatives: Alternatives) -> str:
    """How the order of tied pods affects the answer, in a few words."""
    outcomes = alternatives.outcomes
    if alternatives.exact and len(outcomes) == 1 and len(outcomes[0].choices) == 1:
        return _tied(outcomes[0].choices[0])
    broken = " and any budget violations" if any(each.num_pdb_violations for each in outcomes) else ""
    return f"the victims{broken} depend on the order of tied pods"


def _tied(choice: PodChoice) -> str:
    """``1 of ml/a and ml/b, which are tied``."""
    return f"{choice.count:,} of {join_names(choice.pods, limit=2)}, which are tied"


def equal_pods_section(verdict: Verdict) -> Section:
    """``TIED PODS``: the outcomes that are possible, depending on the order of tied pods."""
    alternatives = verdict.alternatives
    if alternatives is None:
        return Section("TIED PODS")
    return Section(
        "TIED PODS",
        WHY,
        [
            Listing([[line] for line in _outcome_lines(alternatives)], noun="outcome", shown=_OUTCOMES_SHOWN),
            Sentence(Span("" if alternatives.exact else INEXACT, "warn")),
        ],
        heading="Outcomes that depend on the order of tied pods",
        style="warn",
    )


def _outcome_lines(alternatives: Alternatives) -> list[Phrase]:
    omitted = f"… and {count(alternatives.omitted, 'more outcome')}"
    return [*map(possible_outcome, alternatives.outcomes), *([(omitted,)] if alternatives.omitted else [])]


INEXACT = "Not every order was tried, so other outcomes are possible."


def possible_outcome(outcome: PossibleOutcome) -> Phrase:
    """``on n1  ml/x and 1 of ml/a, ml/b``, and how many of the evictions violate a budget."""
    parts = [join_names(outcome.victims, limit=_PODS_LISTED)] if outcome.victims else []
    parts += [_choice(choice, named=_PODS_LISTED) for choice in outcome.choices]
    violations = outcome.num_pdb_violations
    broken: Phrase = (
        (Span(f"; {count(violations, 'eviction')} {agree(violations, 'violates')} a budget", "bad"),)
        if violations
        else ()
    )
    return ("on ", strong(outcome.node), f"  {'; '.join(parts)}", *broken)


def alternatives_in_lines(alternatives: Alternatives) -> list[Phrase]:
    """One line per outcome, and one for the outcomes that are omitted."""
    return [*_outcome_lines(alternatives), *([] if alternatives.exact else [(INEXACT,)])]


def _choice(choice: PodChoice, *, named: int) -> str:
    return (
        f"{choice.count:,} of {len(choice.pods):,}: {join_names(choice.pods, limit=named).replace(' and ', ' or ', 1)}"
    )
