"""What an answer of ``drain`` tells beyond that of a check, section by section."""

from __future__ import annotations

import msgspec

from kpreempt.report.amounts import count
from kpreempt.report.blocks import Listing, Phrase, Role, Section, Span, Words
from kpreempt.report.drain.summary import node_phrase
from kpreempt.report.drain.words import blocked_phrase, order_phrase, removal_phrase, unblock_phrase
from kpreempt.report.quoting import message, name
from kpreempt.verdict.check import Check
from kpreempt.verdict.drain import Drain

_SHOWN = 8
# On a screen: the findings of the gate are between what is blocked and the others.
_BLOCKED, _OTHERS = 110, 60
_KEPT = 5


def sections(check: Check) -> list[Section]:
    """The order, which nodes can go, what is blocked and what helps, how nodes end, and what is lost; of a drain."""
    if not isinstance(check, Drain):
        return []
    losses: list[Phrase] = [(name(pod), " loses the data in its emptyDir") for pod in check.deletes_data_of]
    losses += [
        (name(each.pod), " is gone for good: no controller makes it again")
        for each in check.simulation.displaced
        if each.lost
    ]
    blocked = [(blocked_phrase(each), list(map(unblock_phrase, each.remedies))) for each in check.blocked]
    helps = Span("what helps: ", "good")
    shorter: list[list[Words]] = [
        [(*why, "; " if helped else "", *((helps, *helped[0]) if helped else ()))] for why, helped in blocked
    ]
    ends = [(name(node.node), ": ", *node_phrase(check, index)) for index, node in enumerate(check.drained)]
    return [
        _section(
            "ORDER OF THE NODES",
            Listing([] if check.order is None else [[order_phrase(check.order)]], "order"),
            "a greedy search: another might displace fewer",
        ),
        _section(
            "CAN GO",
            Listing([[(name(each.node), ": ", *removal_phrase(each))] for each in check.removals], "node", _SHOWN),
            "as Cluster Autoscaler and Karpenter may move pods",
        ),
        msgspec.structs.replace(
            _section(
                "BLOCKED",
                Listing(
                    [[why, *((helps, *each) for each in helped)] for why, helped in blocked], "blocked eviction", _SHOWN
                ),
                f"what would help was not looked for {count(check.untried, 'time')}" if check.untried else "",
                "bad",
            ),
            priority=_BLOCKED,
            keeps=_KEPT,
            least=_KEPT,
            short=Section("BLOCKED", blocks=[Listing(shorter, "blocked eviction")], style="bad"),
        ),
        msgspec.structs.replace(
            _section(
                "NODES DRAINED",
                Listing(
                    [[end, *map(message, node.warnings)] for end, node in zip(ends, check.drained, strict=True)],
                    "node",
                    _SHOWN,
                ),
                check.command,
            ),
            short=Section("NODES DRAINED", blocks=[Listing([[end] for end in ends], "node")]),
        ),
        _section("LOST", Listing([[each] for each in losses], "loss", _SHOWN), tone="warn"),
    ]


def _section(label: str, items: Listing, words: str = "", tone: Role = "heading") -> Section:
    """Items below a label, if there are some."""
    return Section(label, words if items.items else "", [items], style=tone, priority=_OTHERS)
