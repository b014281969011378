"""Where chance decides besides ties: on big clusters the scheduler looks at a part of the nodes, from somewhere.

Verdicts are over all nodes; this says how far the real search may miss their answer.
"""

from __future__ import annotations

from kpreempt.report.amounts import agree, count
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Odds, OddsGroup, Outcome, Verdict
from kpreempt.verdict.volume_choices import VolumeOutcome

_GROUPS_SHOWN = 3
_NODES_SHOWN = 3
_ENDS_SHOWN = 3


def is_sampled_preemption(verdict: Verdict) -> bool:
    """Whether the start of the search decides between the candidates."""
    return verdict.odds is not None and len(verdict.odds.groups) != 1


def chance_of_preemption(verdict: Verdict) -> str:
    """A sentence on how often the nominated nodes win, or an empty text where they always do."""
    odds = verdict.odds
    if odds is None or not is_sampled_preemption(verdict):
        return ""
    if not odds.groups:
        return "But its configuration lets the scheduler keep no candidate, so it would not preempt at all."
    own = next((group for group in odds.groups if set(group.nodes) & set(verdict.nominated_nodes)), None)
    others = [group for group in odds.groups if group is not own]
    share = _share(own, odds) if own else "none"
    rest = ", on others from the rest" if len(others) > 1 else ""
    return (
        f"The scheduler searches only a part of so many nodes, from a random start: it ends on this node from {share} "
        f"of the starts, on {_one_of(others[0])} from {_share(others[0], odds)}{rest}."
    )


def chance_of_landing(verdict: Verdict) -> str:
    """A sentence that says where nodes that fit are left out of the scores, or an empty text."""
    if verdict.sampling is None:
        return ""
    return (
        f"The scheduler stops looking once {count(verdict.sampling.nodes_to_find, 'node')} "
        f"{agree(verdict.sampling.nodes_to_find, 'fits')}, so it may take another one."
    )


def chance_of_volumes(verdict: Verdict) -> str:
    """A sentence on what becomes of the pod in other orders of equal volumes, or an empty text where it is the same."""
    choices = verdict.volume_choices
    if choices is None or not choices.uncertain:
        return ""
    ends = list(dict.fromkeys(_end(each) for each in choices.outcomes if _end(each) != _own_end(verdict)))
    if not ends:
        return "But equal volumes are taken in a random order, and not all orders were gone through."
    others = "; and not all orders were gone through" if not choices.complete else ""
    return (
        "But that is so in one order of equal volumes, which is random: in another it would"
        f" {join_names(ends, limit=_ENDS_SHOWN).replace(' and ', ' or ')}{others}."
    )


def _own_end(verdict: Verdict) -> str:
    victims = {node: sorted(each.pod for each in victims) for node, victims in verdict.victims.items()}
    nodes = sorted(verdict.nominated_nodes or verdict.lands_on)
    return _end(VolumeOutcome(verdict.outcome, nodes, victims))


def _end(outcome: VolumeOutcome) -> str:
    """What the pod would do."""
    if not outcome.nodes:
        return "stay pending"
    where = join_names(outcome.nodes, limit=_NODES_SHOWN).replace(" and ", " or ")
    if not outcome.victims:
        return f"land on {where}"
    pods = list(dict.fromkeys(pod for victims in outcome.victims.values() for pod in victims))
    violation = ", violating budgets" if outcome.outcome is Outcome.PREEMPTS_VIOLATING_BUDGETS else ""
    return f"evict {join_names(pods, limit=_NODES_SHOWN)} from {where}{violation}"


def add_odds(page: Page, odds: Odds, options: RenderOptions) -> None:
    """The nodes that win by the start of the search, the likeliest first, and what the counts leave out."""
    stop = f"stops at {count(odds.num_candidates, 'candidate')}"
    page.paragraph(
        f"the search starts at a random one of {count(odds.starts, 'node')} and {stop}:", indent=2, hanging=2
    )
    shown = odds.groups if options.verbose else odds.groups[:_GROUPS_SHOWN]
    for group in shown:
        page.paragraph(strong(_one_of(group)), f"  wins from {_share(group, odds)} of the starts", indent=4, hanging=2)
    if rest := odds.groups[len(shown) :]:
        starts = sum(group.starts for group in rest)
        others = f"{count(len(rest), 'other')} {agree(len(rest), 'shares')} {_percent(starts, odds.starts)}"
        page.paragraph(Span(f"… {others} (--verbose lists them)", "dim"), indent=4)
    page.paragraph(Span(_race(odds), "dim"), indent=2, hanging=2)


def describe_sampling(verdict: Verdict) -> Phrase:
    """What part of the nodes that fit is scored."""
    if verdict.sampling is None:
        return ()
    found, fitting = verdict.sampling.nodes_to_find, len(verdict.feasible_nodes)
    return ("; ", Span(f"the scheduler scores only the first {found:,} it finds of {fitting:,}", "warn"))


def _race(odds: Odds) -> str:
    if odds.parallelism <= 1:
        return "counted node by node"
    return (
        f"counted node by node; the real search runs {odds.parallelism:,} at a time, each {odds.chunk_size:,} nodes in "
        f"a row, and may look at up to {odds.parallelism - 1:,} more"
    )


def _one_of(group: OddsGroup) -> str:
    nodes = list(group.nodes)
    return (
        join_names(nodes, limit=_NODES_SHOWN) if len(nodes) < 2 else f"one of {join_names(nodes, limit=_NODES_SHOWN)}"
    )


def _share(group: OddsGroup, odds: Odds) -> str:
    return _percent(group.starts, odds.starts)


def _percent(part: int, whole: int) -> str:
    """A share in whole percent, marked where it is rounded; small ones as a fraction."""
    if not whole:
        return f"{part:,}"
    percent = round(100 * part / whole)
    if not 1 <= percent <= 99:
        return f"{part:,} of {whole:,}" if part != whole else "100%"
    return f"{'' if percent * whole == 100 * part else '~'}{percent}%"
