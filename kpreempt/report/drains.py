"""The parts of a ``drain`` answer that a check does not have: its summary, its sections, and their sentences."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Listing, Part, Phrase, Role, Section, Span, Words
from kpreempt.report.quoting import message, name, names
from kpreempt.report.simulation_words import clock
from kpreempt.verdict.check import Check
from kpreempt.verdict.drain import (
    AutoscalerRule,
    BlockedEviction,
    BlockReason,
    Drain,
    DrainOrder,
    DrainRemedy,
    DrainRemedyAction,
    NodeRemoval,
    RemovalBlocker,
)

_SHOWN = 8
# Priorities on a screen; the findings of the gate are between these.
_BLOCKED, _OTHERS = 110, 60
_MAX_LISTED = 5


def sections(check: Check) -> list[Section]:
    """The sections of a drain: order, removable nodes, blocked evictions with fixes, drained nodes, and losses."""
    if not isinstance(check, Drain):
        return []
    losses: list[Phrase] = [(name(pod), " loses the data in its emptyDir") for pod in check.pods_losing_data]
    losses += [
        (name(each.pod), " is lost: no controller recreates it") for each in check.simulation.displaced if each.lost
    ]
    blocked = [(blocked_phrase(each), list(map(unblock_phrase, each.remedies))) for each in check.blocked]
    fix = Span("fix: ", "good")
    shorter: list[list[Words]] = [
        [(*why, "; " if fixes else "", *((fix, *fixes[0]) if fixes else ()))] for why, fixes in blocked
    ]
    ends = [(name(node.node), ": ", *node_phrase(check, index)) for index, node in enumerate(check.drained)]
    return [
        _section(
            "DRAIN ORDER",
            Listing([] if check.order is None else [[order_phrase(check.order)]], "order"),
            "from a greedy search; another order might displace fewer pods",
        ),
        _section(
            "REMOVABLE",
            Listing([[(name(each.node), ": ", *removal_phrase(each))] for each in check.removals], "node", _SHOWN),
            "by the rules of Cluster Autoscaler and Karpenter",
        ),
        msgspec.structs.replace(
            _section(
                "BLOCKED",
                Listing(
                    [[why, *((fix, *each) for each in fixes)] for why, fixes in blocked], "blocked eviction", _SHOWN
                ),
                f"fixes were not tried for {count(check.untried, 'blocked eviction')}" if check.untried else "",
                "bad",
            ),
            priority=_BLOCKED,
            reserved_lines=_MAX_LISTED,
            min_lines=_MAX_LISTED,
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
    """Items below a label, or an empty section."""
    return Section(label, words if items.items else "", [items], style=tone, priority=_OTHERS)


def blocked_phrase(blocked: BlockedEviction) -> Phrase:
    """The pods that cannot be evicted, and why."""
    pods: Phrase = (*names(blocked.pods), " on ", name(blocked.node))
    return (*pods, ": ", *_WHY[blocked.reason](blocked))


def unblock_phrase(unblock: DrainRemedy) -> Phrase:
    """The fix, and whether it lets the whole drain finish."""
    ends = "; the drain then finishes" if unblock.finishes else "; this alone does not let the drain finish"
    pending = unblock.pending_after
    left = f", with {count(pending, 'pod')} pending" if pending else ""
    return (*_action(unblock), f"{ends}{left}")


def removal_phrase(removal: NodeRemoval) -> Phrase:
    """Whether a node can be removed, and otherwise the rule that prevents it."""
    if removal.is_removable:
        return (f"yes, {count(removal.moved, 'pod')} {agree(removal.moved, 'moves')}",)
    if removal.blocker is not None:
        return (f"no, {_NOT_GOING[removal.blocker]}",)
    parts: list[Part] = ["no"]
    for rule in dict.fromkeys(each.rule for each in removal.blocking_pods):
        pods = [each.pod for each in removal.blocking_pods if each.rule is rule]
        parts += [", ", _KEEPS[rule], ": ", *names(pods)]
    return tuple(parts)


def order_phrase(order: DrainOrder) -> Phrase:
    """The order, and how many pods it displaces compared with the given order."""
    saved = order.displaced_in_given_order - order.displaced
    given = f", {saved:,} fewer than in the given order" if saved > 0 else ""
    if saved < 0:
        given = f", {-saved:,} more than in the given order, but that order leaves nodes undrained or pods pending"
    if not saved:
        given = ", as many as in the given order"
    more = (
        f"; the last {order.unsearched:,} nodes keep the given order, because there are too many to search"
        if order.unsearched
        else ""
    )
    moved = f"{count(order.displaced, 'pod')} {agree(order.displaced, 'is')} displaced in one simulation run"
    return (*names(order.nodes), f": {moved}{given}{more}")


def _action(unblock: DrainRemedy) -> Phrase:
    target = name(unblock.target)
    if unblock.action is DrainRemedyAction.SET:
        return ("set ", name(f"{unblock.field}: {unblock.value}"), " on ", target)
    if unblock.action is DrainRemedyAction.SCALE:
        return ("scale ", target, f" to {unblock.value} replicas first")
    if unblock.action is DrainRemedyAction.DELETE:
        return ("delete ", target)
    if unblock.action is DrainRemedyAction.ADD_NODE:
        return ("add a node like ", name(unblock.target.removeprefix("Node ")), " first")
    return ("give ", target)


def _budget(blocked: BlockedEviction) -> Phrase:
    return ("budget ", *names(blocked.budgets))


def _too_few(blocked: BlockedEviction) -> Phrase:
    return (
        *_budget(blocked),
        f" requires {blocked.desired_healthy:,} healthy pods and has {blocked.current_healthy:,}",
    )


def _never(blocked: BlockedEviction) -> Phrase:
    pods = "its only pod" if blocked.expected_pods == 1 else f"all {blocked.expected_pods:,} of its pods"
    return (*_budget(blocked), f" requires {pods} to be healthy, so it never allows a disruption")


def _pods_pending(blocked: BlockedEviction) -> Phrase:
    pending = len(blocked.pending)
    parts: list[Part] = [*_too_few(blocked), f"; {pending:,} of its pods {agree(pending, 'is')} pending"]
    if blocked.pending_message:
        parts += [": ", message(blocked.pending_message.rstrip("."))]
    return tuple(parts)


def _not_ready(blocked: BlockedEviction) -> Phrase:
    return (*_too_few(blocked), "; not ready: ", *names(blocked.unready))


def _several(blocked: BlockedEviction) -> Phrase:
    both = "both" if len(blocked.budgets) == 2 else "all"
    return ("budgets ", *names(blocked.budgets), f" {both} select the pod, which the eviction API does not support")


def _message(blocked: BlockedEviction) -> Phrase:
    return (message((blocked.cause or blocked.message).rstrip(".")),)


def _no_scale(blocked: BlockedEviction) -> Phrase:
    owners: Phrase = (" (", *names(blocked.workloads), ")") if blocked.workloads else ()
    return (
        *_budget(blocked),
        " allows no disruptions, because the controllers of its pods",
        *owners,
        " have no scale subresource",
    )


def _late(_: BlockedEviction) -> Phrase:
    return ("evicted, but still terminating when the drain timed out",)


_WHY: dict[BlockReason, Callable[[BlockedEviction], Phrase]] = {
    BlockReason.NEVER_ALLOWS: _never,
    BlockReason.SINGLE_REPLICA: _never,
    BlockReason.PODS_PENDING: _pods_pending,
    BlockReason.PODS_NOT_READY: _not_ready,
    BlockReason.TOO_FEW_PODS: _too_few,
    BlockReason.MULTIPLE_BUDGETS: _several,
    BlockReason.NO_SCALE: _no_scale,
    BlockReason.TERMINATING: _message,
    BlockReason.OPTION_REQUIRED: _message,
    BlockReason.TIMED_OUT: _late,
    BlockReason.OTHER: _message,
}

_NOT_GOING: dict[RemovalBlocker, str] = {
    RemovalBlocker.BLOCKED: "a budget blocks an eviction",
    RemovalBlocker.PENDING: "a pod would stay pending",
    RemovalBlocker.PREEMPTS: "other pods would be preempted",
    RemovalBlocker.BUDGETS: "a budget would be violated",
    RemovalBlocker.NOT_TRIED: "or unknown: not tried, because the cluster has many nodes",
}
_KEEPS: dict[AutoscalerRule, str] = {
    AutoscalerRule.NOT_SAFE_TO_EVICT: "safe-to-evict is false (Cluster Autoscaler)",
    AutoscalerRule.NO_CONTROLLER: "no controller recreates it (Cluster Autoscaler)",
    AutoscalerRule.SYSTEM_POD: "in kube-system without a budget (Cluster Autoscaler)",
    AutoscalerRule.LOCAL_STORAGE: "local storage (Cluster Autoscaler)",
    AutoscalerRule.DO_NOT_DISRUPT: "do-not-disrupt (Karpenter)",
}


def summary_phrase(drain: Drain) -> Phrase:
    """``the drain of n1 never finishes: 2 pods stay, 12 pods are evicted``."""
    if drain.removals:
        # ``2 of 3 nodes can be removed: n2 and n3; 5 pods move``.
        removable = [each.node for each in drain.removals if each.is_removable]
        of_all = (
            f"{len(removable):,} of {count(len(drain.removals), 'node')} can be removed"
            if removable
            else "none of the nodes can be removed"
        )
        if not removable:
            return (of_all,)
        sure = "" if drain.finishes else ", but not in every run"
        return (f"{of_all}{sure}: ", *names(removable), f"; {count(drain.moved, 'pod')} {agree(drain.moved, 'moves')}")
    nodes = [each.node for each in drain.drained]
    which: Phrase = ("the drain of ", *(names(nodes) if len(nodes) <= 2 else (count(len(nodes), "node"),)))
    moves = f"{count(drain.moved, 'pod')} {agree(drain.moved, 'is')} evicted" if drain.moved else "no pod is evicted"
    more = ""
    if drain.preempted:
        more += f", {count(drain.preempted, 'other pod')} {agree(drain.preempted, 'is')} preempted"
    if drain.pending_after:
        more += f", {count(drain.pending_after, 'pod')} {agree(drain.pending_after, 'stays')} pending"
    if drain.finishes:
        took = f" in at least {clock(drain.min_seconds)}" if drain.min_seconds else " immediately"
        return (*which, f" finishes{took}: {moves}{more}")
    # The outcome of a drain that does not finish.
    if any(not each.drained and each.errors for each in drain.drained):
        ending = "fails"
    elif drain.runs > drain.failing_runs > 0:
        ending = "may never finish"
    else:
        ending = "never finishes" if any(not each.drained for each in drain.drained) else "may not finish"
    left = sum(len(each.remaining) for each in drain.drained)
    remaining = f"{count(left, 'pod')} {agree(left, 'stays')}" if left else ""
    return (*which, f" {ending}: {', '.join(filter(None, (remaining, moves)))}{more}")


def node_phrase(drain: Drain, index: int) -> Phrase:
    """The outcome for one node."""
    node = drain.drained[index]
    if node.began is None:
        return ("not reached",)
    pods = f"{count(node.evicted, 'pod')} evicted"
    stays = f", {node.ignored:,} ignored" if node.ignored else ""
    left: Phrase = (f"; {len(node.remaining):,} remaining: ", *names(node.remaining)) if node.remaining else ()
    if node.drained:
        return (f"drained at {clock(node.ended or 0.0)}, {pods}{stays}",)
    if node.errors:
        return ("fails: ", name(node.errors[0]), f"; {pods}{stays}", *left)
    return (f"waits forever, {pods}{stays}", *left)
