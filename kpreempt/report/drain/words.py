"""Blocked evictions and what helps, in the sentences that all formats of ``drain`` share."""

from __future__ import annotations

from collections.abc import Callable

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Part, Phrase
from kpreempt.report.quoting import message, name, names
from kpreempt.verdict.drain import (
    BlockedEviction,
    BlockReason,
    DrainOrder,
    KeepRule,
    NodeRemoval,
    NotGoing,
    Unblock,
    UnblockAction,
)


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
