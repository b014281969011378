"""What the verdict cannot decide: where the search starts, in which order equal volumes are taken and equal pods go.

On big clusters the scheduler looks at a part of the nodes, from somewhere. Verdicts are over all nodes; this says how
far the real search may miss their answer.
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
_PODS_NAMED = 4
_NODES_SHOWN = 3
# Rounding errors of probabilities are far below this, in percent.
_EXACT = 1e-7
_ENDS_SHOWN = 3
_WINNERS_SHOWN = 2


def is_sampled_preemption(verdict: Verdict) -> bool:
    """Whether the order of the search decides between the candidates."""
    return verdict.odds is not None and len(verdict.odds.outcomes) != 1


def chance_of_preemption(verdict: Verdict) -> str:
    """A sentence on how often the nominated nodes win, or an empty text where they always do."""
    odds = verdict.odds
    if odds is None or not is_sampled_preemption(verdict):
        return ""
    if not odds.outcomes:
        return "But its configuration lets the scheduler keep no candidate, so it would not preempt at all."
    own = next((each for each in odds.outcomes if set(each.nodes) & set(verdict.nominated_nodes)), None)
    others = [each for each in odds.outcomes if each is not own]
    this = "this node" if len(verdict.nominated_nodes) == 1 else "one of these nodes"
    share = percent(own.probability) if own else "less than 1%"
    rest = ", on others otherwise" if len(others) > 1 else ""
    return (
        f"The scheduler tries only a part of so many nodes, {_by_chance(odds.order)}: it ends on {this} "
        f"{share} of the time, on {_one_of(others[0])} {percent(others[0].probability)}{rest}."
    )


def chance_of_landing(verdict: Verdict) -> str:
    """A sentence that says where nodes that fit are left out of the scores, or an empty text."""
    sampling = verdict.sampling
    if sampling is None:
        return ""
    is_list = sampling.order is SearchOrder.LIST
    start = "from where its last search ended, which only it knows" if is_list else _by_chance(sampling.order)
    return (
        f"The scheduler stops looking once {count(sampling.nodes_to_find, 'node')} "
        f"{agree(sampling.nodes_to_find, 'fits')}, {start}, so it may take another one."
    )


def chance_of_volumes(verdict: Verdict) -> str:
    """A sentence on what becomes of the pod in other orders of equal volumes, or an empty text where it is the same."""
    choices = verdict.volume_choices
    if choices is None or not choices.uncertain:
        return ""
    victims = {node: sorted(each.pod for each in victims) for node, victims in verdict.victims.items()}
    own = _end(VolumeOutcome(verdict.outcome, sorted(verdict.nominated_nodes or verdict.lands_on), victims))
    ends = list(dict.fromkeys(end for each in choices.outcomes if (end := _end(each)) != own))
    if not ends:
        return "But equal volumes are taken in a random order, and not all orders were gone through."
    others = "; and not all orders were gone through" if not choices.complete else ""
    return (
        "But that is so in one order of equal volumes, which is random: in another it would"
        f" {join_names(ends, limit=_ENDS_SHOWN).replace(' and ', ' or ')}{others}."
    )


def _end(outcome: VolumeOutcome) -> str:
    """What the pod would do."""
    if not outcome.nodes:
        return "stay pending"
    where = join_names(outcome.nodes, limit=_NODES_SHOWN).replace(" and ", " or ")
    if not outcome.victims:
        return f"land on {where}"
    pods = list(dict.fromkeys(pod for victims in outcome.victims.values() for pod in victims))
    violation = ", violating budgets" if outcome.outcome is Outcome.PREEMPTS_VIOLATING_BUDGETS else ""
    return f"preempt {join_names(pods, limit=_NODES_SHOWN)} on {where}{violation}"


def odds_blocks(odds: Odds) -> list[Block]:
    """What the search can end with, the likeliest first, and how far the probabilities may be off."""
    stop = f"stops at {count(odds.num_candidates, 'candidate')}"
    order = "starts at a random node" if odds.order is SearchOrder.LIST else "takes the nodes in an order drawn anew"
    items = [[(strong(_one_of(each)), f"  wins {percent(each.probability)} of the time")] for each in odds.outcomes]
    workers = f"{odds.parallelism:,} at a time"
    if odds.order is SearchOrder.LIST:
        doubts = "counted node by node"
        parallel = f"the real search tries {workers}, each {odds.chunk_size:,} in a row, so others may win too"
    else:
        doubts = "every order counts as equally likely"
        parallel = f"{workers} are tried, so a node that takes longer than others wins less often"
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
    """What part of the nodes that fit is scored."""
    if verdict.sampling is None:
        return ()
    found, fitting = verdict.sampling.nodes_to_find, len(verdict.feasible_nodes)
    return ("; ", Span(f"the scheduler scores only the first {found:,} it finds of {fitting:,}", "warn"))


def percent(probability: float) -> str:
    """In whole percent, marked where it is rounded; never 0% or 100% of what is not certain."""
    rounded = round(100 * probability)
    if abs(100 * probability - rounded) < _EXACT:
        return f"{rounded}%" if probability else "0%"
    return "less than 1%" if rounded < 1 else "more than 99%" if rounded > 99 else f"~{rounded}%"


def _by_chance(order: SearchOrder) -> str:
    return "from a random one on" if order is SearchOrder.LIST else "in an order that is drawn anew each time"


def _one_of(outcome: OddsOutcome) -> str:
    names = join_names(outcome.nodes, limit=_NODES_SHOWN)
    return names if len(outcome.nodes) < 2 else f"one of {names}"


WHY = (
    "Pods of equal priority and start time go in the order of the scheduler's cache, which nothing shows from outside; "
    "most likely the one that was updated last goes first."
)


def order_in_a_sentence(verdict: Verdict) -> str:
    """What hangs on the order of equal pods, for the headline; empty where nothing does."""
    alternatives = verdict.alternatives
    if alternatives is None:
        return ""
    outcomes = alternatives.outcomes
    nodes = list(dict.fromkeys(each.node for each in outcomes))
    sizes = sorted({each.num_victims for each in outcomes})
    if alternatives.exact and len(outcomes) == 1:
        choices = outcomes[0].choices
        if len(choices) == 1:
            return f"It is {_choice(choices[0], named=2)}; only the scheduler knows their order."
        return f"Which of {count(sum(len(each.pods) for each in choices), 'equal pod')} go, only the scheduler knows."
    parts = []
    others = [node for node in nodes if node not in verdict.nominated_nodes]
    if others:
        parts.append(f"it may be {join_names(others, limit=2).replace(' and ', ' or ', 1)} instead")
    if len(sizes) > 1:
        parts.append(f"{sizes[0]:,} to {count(sizes[-1], 'pod')} may go")
    told = "; ".join(parts) or "the victims differ"
    return f"That depends on the order of equal pods, which only the scheduler knows: {told}."


def order_in_brief(alternatives: Alternatives) -> str:
    """What hangs on the order of equal pods, where there is little room."""
    outcomes = alternatives.outcomes
    if alternatives.exact and len(outcomes) == 1 and len(outcomes[0].choices) == 1:
        return f"that is {_choice(outcomes[0].choices[0], named=2)}"
    broken = ", and so whether a budget is violated" if any(each.num_pdb_violations for each in outcomes) else ""
    return f"the victims depend on the order of equal pods{broken}"


def equal_pods_section(verdict: Verdict) -> Section:
    """``EQUAL PODS``: the outcomes that the order of equal pods can lead to."""
    alternatives = verdict.alternatives
    if alternatives is None:
        return Section("EQUAL PODS")
    return Section(
        "EQUAL PODS",
        WHY,
        [
            Listing([[line] for line in _outcome_lines(alternatives)], noun="outcome", shown=_OUTCOMES_SHOWN),
            Sentence(Span("" if alternatives.exact else INEXACT, "warn")),
        ],
        heading="What the order of equal pods leaves open",
        style="warn",
    )


def _outcome_lines(alternatives: Alternatives) -> list[Phrase]:
    untold = f"… and {count(alternatives.untold, 'more outcome')}"
    return [*map(possible_outcome, alternatives.outcomes), *([(untold,)] if alternatives.untold else [])]


INEXACT = "Not every order was followed, so others are possible."


def possible_outcome(outcome: PossibleOutcome) -> Phrase:
    """``on n1  ml/x and 1 of ml/a, ml/b``, and whether that violates a budget."""
    parts = [join_names(outcome.victims, limit=_PODS_NAMED)] if outcome.victims else []
    parts += [_choice(choice, named=_PODS_NAMED) for choice in outcome.choices]
    violations = outcome.num_pdb_violations
    broken: Phrase = (
        (Span(f"; {count(violations, 'eviction')} {agree(violations, 'violates')} a budget", "bad"),)
        if violations
        else ()
    )
    return ("on ", strong(outcome.node), f"  {'; '.join(parts)}", *broken)


def alternatives_in_lines(alternatives: Alternatives) -> list[Phrase]:
    """A line for each outcome, and what is left out."""
    return [*_outcome_lines(alternatives), *([] if alternatives.exact else [(INEXACT,)])]


def _choice(choice: PodChoice, *, named: int) -> str:
    return (
        f"{choice.count:,} of {len(choice.pods):,}: {join_names(choice.pods, limit=named).replace(' and ', ' or ', 1)}"
    )
