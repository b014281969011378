"""What an answer of ``drain`` tells beyond that of a check: its summary, its sections, and their sentences."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Listing, Part, Phrase, Role, Section, Span, Words
from kpreempt.report.quoting import message, name, names
from kpreempt.report.simulation_words import clock
from kpreempt.verdict.check import Check
from kpreempt.verdict.drain import (
    BlockedEviction,
    BlockReason,
    Drain,
    DrainOrder,
    KeepRule,
    NodeRemoval,
    NotGoing,
    Unblock,
    UnblockAction,
)

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


def blocked_phrase(blocked: BlockedEviction) -> Phrase:
    """Who is not evicted, and why."""
    who: Phrase = (*names(blocked.pods), " on ", name(blocked.node))
    return (*who, ": ", *_WHY[blocked.reason](blocked))


def unblock_phrase(unblock: Unblock) -> Phrase:
    """What to do, and whether the whole drain finishes then."""
    ends = "; the drain finishes then" if unblock.finishes else "; the drain does not finish by that alone"
    pending = unblock.left_pending
    left = f", with {count(pending, 'pod')} left pending" if pending else ""
    return (*_deed(unblock), f"{ends}{left}")


def removal_phrase(removal: NodeRemoval) -> Phrase:
    """Whether a node can go, and by which rule it is kept where it cannot."""
    if removal.goes:
        return (f"yes, {count(removal.moves, 'pod')} {agree(removal.moves, 'moves')}",)
    if removal.why is not None:
        return (f"no, {_NOT_GOING[removal.why]}",)
    parts: list[Part] = ["no"]
    for rule in dict.fromkeys(each.rule for each in removal.keeps):
        pods = [each.pod for each in removal.keeps if each.rule is rule]
        parts += [", ", _KEEPS[rule], ": ", *names(pods)]
    return tuple(parts)


def order_phrase(order: DrainOrder) -> Phrase:
    """The order, and how many pods it displaces beside the one that was given."""
    saved = order.displaced_as_given - order.displaced
    given = f", {count(saved, 'pod')} fewer than in the order given" if saved > 0 else ""
    if saved < 0:
        given = f", {count(-saved, 'pod')} more than in the order given, which leaves nodes to drain or pods pending"
    if not saved:
        given = ", as many as in the order given"
    more = f"; the last {order.unsearched:,} are as given: there are many nodes" if order.unsearched else ""
    moved = f"{count(order.displaced, 'pod')} {agree(order.displaced, 'is')} displaced in one run"
    return (*names(order.nodes), f": {moved}{given}{more}")


def _deed(unblock: Unblock) -> Phrase:
    target = name(unblock.target)
    if unblock.action is UnblockAction.SET:
        return ("set ", name(f"{unblock.field}: {unblock.value}"), " on ", target)
    if unblock.action is UnblockAction.SCALE:
        return ("scale ", target, f" to {unblock.value} replicas first")
    if unblock.action is UnblockAction.DELETE:
        return ("delete ", target)
    if unblock.action is UnblockAction.ADD_NODE:
        return ("add a node like ", name(unblock.target.removeprefix("Node ")), " first")
    return ("give ", target)


def _budget(blocked: BlockedEviction) -> Phrase:
    return ("budget ", *names(blocked.budgets))


def _wants(blocked: BlockedEviction) -> Phrase:
    return (*_budget(blocked), f" wants {blocked.desired:,} healthy pods and has {blocked.healthy:,}")


def _never(blocked: BlockedEviction) -> Phrase:
    pods = "its only pod" if blocked.expected == 1 else f"all {blocked.expected:,} of its pods"
    return (*_budget(blocked), f" wants {pods} healthy: it never allows a disruption")


def _no_room(blocked: BlockedEviction) -> Phrase:
    pending = len(blocked.pending)
    parts: list[Part] = [*_wants(blocked), f"; {count(pending, 'pod')} of it {agree(pending, 'is')} pending"]
    if blocked.pending_message:
        parts += [": ", message(blocked.pending_message.rstrip("."))]
    return tuple(parts)


def _not_ready(blocked: BlockedEviction) -> Phrase:
    return (*_wants(blocked), "; not ready: ", *names(blocked.unready))


def _several(blocked: BlockedEviction) -> Phrase:
    return ("budgets ", *names(blocked.budgets), " both select it, and the API server evicts no such pod")


def _said(blocked: BlockedEviction) -> Phrase:
    return (message((blocked.cause or blocked.message).rstrip(".")),)


def _no_scale(blocked: BlockedEviction) -> Phrase:
    owners: Phrase = (" of ", *names(blocked.workloads)) if blocked.workloads else ()
    return (*_budget(blocked), " cannot be computed: its pods", *owners, " have no scale, and it allows nothing")


def _late(_: BlockedEviction) -> Phrase:
    return ("told to go, and still there when the time was over",)


_WHY: dict[BlockReason, Callable[[BlockedEviction], Phrase]] = {
    BlockReason.NEVER_ALLOWS: _never,
    BlockReason.SINGLE_REPLICA: _never,
    BlockReason.NO_ROOM: _no_room,
    BlockReason.NOT_READY: _not_ready,
    BlockReason.TOO_FEW: _wants,
    BlockReason.SEVERAL_BUDGETS: _several,
    BlockReason.NO_SCALE: _no_scale,
    BlockReason.TERMINATING: _said,
    BlockReason.NOT_CHOSEN: _said,
    BlockReason.TIMED_OUT: _late,
    BlockReason.OTHER: _said,
}

_NOT_GOING: dict[NotGoing, str] = {
    NotGoing.BLOCKED: "a budget keeps a pod on it",
    NotGoing.PENDING: "a pod would be left pending",
    NotGoing.PREEMPTS: "other pods would be preempted",
    NotGoing.BUDGETS: "a budget would be violated",
    NotGoing.NOT_TRIED: "as far as is known: it was not tried, for there are many nodes",
}
_KEEPS: dict[KeepRule, str] = {
    KeepRule.NOT_SAFE_TO_EVICT: "safe-to-evict is false (Cluster Autoscaler)",
    KeepRule.NO_CONTROLLER: "no controller makes it again (Cluster Autoscaler)",
    KeepRule.SYSTEM_POD: "of kube-system without a budget (Cluster Autoscaler)",
    KeepRule.LOCAL_STORAGE: "local storage (Cluster Autoscaler)",
    KeepRule.DO_NOT_DISRUPT: "do-not-disrupt (Karpenter)",
}


def summary_phrase(drain: Drain) -> Phrase:
    """``the drain of n1 never finishes: 2 of 14 pods are not evicted``."""
    if drain.removals:
        # ``2 of 3 nodes can go: n2 and n3; 5 pods move``.
        going = [each.node for each in drain.removals if each.goes]
        of_all = (
            f"{len(going):,} of {count(len(drain.removals), 'node')} can go" if going else "none of the nodes can go"
        )
        if not going:
            return (of_all,)
        sure = "" if drain.finishes else ", but not in every run"
        return (f"{of_all}{sure}: ", *names(going), f"; {count(drain.moved, 'pod')} {agree(drain.moved, 'moves')}")
    nodes = [each.node for each in drain.drained]
    which: Phrase = ("the drain of ", *(names(nodes) if len(nodes) <= 2 else (count(len(nodes), "node"),)))
    moves = f"{count(drain.moved, 'pod')} {agree(drain.moved, 'is')} evicted" if drain.moved else "nobody is evicted"
    more = ""
    if drain.preempted:
        more += f", {count(drain.preempted, 'other pod')} {agree(drain.preempted, 'is')} preempted"
    if drain.left_pending:
        more += f", {count(drain.left_pending, 'pod')} that ran {agree(drain.left_pending, 'ends')} pending"
    if drain.finishes:
        took = f" in {clock(drain.at_least)} at least" if drain.at_least else " at once"
        return (*which, f" finishes{took}: {moves}{more}")
    # How a drain ends that does not finish.
    if any(not each.drained and each.errors for each in drain.drained):
        ending = "fails"
    elif drain.runs > drain.failing_runs > 0:
        ending = "may never finish"
    else:
        ending = "never finishes" if any(not each.drained for each in drain.drained) else "may not finish"
    left = sum(len(each.left) for each in drain.drained)
    kept = f"{count(left, 'pod')} {agree(left, 'stays')}" if left else ""
    return (*which, f" {ending}: {', '.join(filter(None, (kept, moves)))}{more}")


def node_phrase(drain: Drain, index: int) -> Phrase:
    """How one of the nodes ends."""
    node = drain.drained[index]
    if node.began is None:
        return ("never come to",)
    pods = f"{count(node.evicted, 'pod')} evicted"
    stays = f", {node.stays:,} left alone" if node.stays else ""
    left: Phrase = (f"; {len(node.left):,} not: ", *names(node.left)) if node.left else ()
    if node.drained:
        return (f"drained at {clock(node.ended or 0.0)}, {pods}{stays}",)
    if node.errors:
        return ("fails: ", name(node.errors[0]), f"; {pods}{stays}", *left)
    return (f"waits for ever, {pods}{stays}", *left)
