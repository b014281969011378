"""What an answer of ``drain`` tells beyond that of a check, section by section, for every format."""

from __future__ import annotations

from typing import NamedTuple

from kpreempt.gate_rules import RuleId
from kpreempt.report.amounts import count
from kpreempt.report.drain.summary import node_phrase
from kpreempt.report.drain.words import blocked_phrase, order_phrase, removal_phrase, unblock_phrase
from kpreempt.report.layout import Phrase, Style
from kpreempt.report.quoting import message, name
from kpreempt.verdict.check import Check
from kpreempt.verdict.drain import Drain


class Item(NamedTuple):
    """One of a section, what else there is to say of it, and what helps."""

    phrase: Phrase
    details: list[Phrase] = []
    helps: list[Phrase] = []


class Section(NamedTuple):
    """Items under a title; ``noun`` is what one is called that is left out, ``tone`` how bad they are.

    ``rule`` is the one whose findings it tells in full, if it does.
    """

    title: str
    noun: str
    items: list[Item]
    words: str = ""
    tone: Style = "heading"
    rule: RuleId | None = None


def sections(check: Check) -> list[Section]:
    """What there is, the worst first; nothing of a check."""
    if not isinstance(check, Drain):
        return []
    found = [_order(check), _removals(check), _blocked(check), _nodes(check), _losses(check)]
    return [each for each in found if each.items]


def _blocked(drain: Drain) -> Section:
    items = [
        Item(blocked_phrase(each), [], [unblock_phrase(remedy) for remedy in each.remedies]) for each in drain.blocked
    ]
    untried = f"what would help was not looked for {count(drain.untried, 'time')}" if drain.untried else ""
    return Section("blocked", "blocked eviction", items, untried, "bad", RuleId.DRAIN_BLOCKED)


def _removals(drain: Drain) -> Section:
    items = [Item((name(each.node), ": ", *removal_phrase(each))) for each in drain.removals]
    return Section("can go", "node", items, "as Cluster Autoscaler and Karpenter may move pods")


def _order(drain: Drain) -> Section:
    items = [] if drain.order is None else [Item(order_phrase(drain.order))]
    return Section("order of the nodes", "order", items, "a greedy search: another might displace fewer")


def _nodes(drain: Drain) -> Section:
    items = [
        Item((name(node.node), ": ", *node_phrase(drain, index)), [(message(each),) for each in node.warnings])
        for index, node in enumerate(drain.drained)
    ]
    return Section("nodes drained", "node", items, drain.command)


def _losses(drain: Drain) -> Section:
    items = [Item((name(pod), " loses the data in its emptyDir")) for pod in drain.deletes_data_of]
    items += [
        Item((name(each.pod), " is gone for good: no controller makes it again"))
        for each in drain.simulation.displaced
        if each.lost
    ]
    return Section("lost", "loss", items, tone="warn")
