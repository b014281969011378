"""The parts of a ``drain`` answer that a check does not have: its summary, its sections, and their sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from kpreempt.gate_rules import RuleId
from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Listing, Part, Phrase, Role, Section, Span, Words
from kpreempt.report.check.effects import effect_of
from kpreempt.report.quoting import message, name, names
from kpreempt.report.remedies import commands, interruptions, line, losses, not_tried
from kpreempt.report.simulation_words import clock
from kpreempt.verdict.check import Check
from kpreempt.verdict.drain import (
    AutoscalerRule,
    BlockedEviction,
    BlockReason,
    Drain,
    DrainOrder,
    NodeRemoval,
    RemovalBlocker,
)
from kpreempt.verdict.remedies import Remedy

_SHOWN = 8
# Priorities on a screen; the findings of the gate are between these.
_BLOCKED, _FIX, _OTHERS = 110, 105, 60
_MAX_LISTED, _FIX_LINES = 5, 3


def sections(check: Check) -> list[Section]:
    """The sections of a drain: order, removable nodes, blocked evictions with fixes, drained nodes, and losses."""
    if not isinstance(check, Drain):
        return []
    losses: list[Phrase] = [(name(pod), " loses the data in its emptyDir") for pod in check.pods_losing_data]
    losses += [
        (name(each.pod), " is lost: no controller recreates it") for each in check.simulation.displaced if each.lost
    ]
    shared = _shared_remedies(check)
    blocked = [(blocked_phrase(each), _of_blocked(each, check, shared)) for each in check.blocked]
    shorter: list[list[Words]] = [[(*why, *(("; ", *remedies[0]) if remedies else ()))] for why, remedies in blocked]
    untried = not_tried(check.search)
    fixes = [
        (remedy_phrase(each), [Span(text, "code") for text in commands(msgspec.structs.replace(each, options=[]))])
        for each in (*check.remedies, *shared)
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
                Listing([[why, *remedies] for why, remedies in blocked], "blocked eviction", _SHOWN),
                "",
                "bad",
            ),
            priority=_BLOCKED,
            reserved_lines=_MAX_LISTED,
            min_lines=_MAX_LISTED,
            short=Section("BLOCKED", blocks=[Listing(shorter, "blocked eviction")], style="bad"),
        ),
        Section(
            "FIX",
            untried,
            [Listing([[words, *more] for words, more in fixes], "remedy", _SHOWN)] if fixes else [],
            style="good",
            priority=_FIX,
            reserved_lines=_FIX_LINES,
            min_lines=_FIX_LINES,
            short=Section("FIX", untried, [Listing([[words] for words, _ in fixes], "remedy")], style="good"),
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
    ahead = " (not reached yet)" if blocked.is_ahead else ""
    pods: Phrase = (*names(blocked.pods), " on ", name(blocked.node), ahead)
    return (*pods, ": ", *_WHY[blocked.reason](blocked))


def _shared_remedies(drain: Drain) -> list[Remedy]:
    """The remedies of several blocked evictions that all have the same, if nothing lets the whole drain finish."""
    found = [each.remedies for each in drain.blocked if each.remedies]
    return found[0] if not drain.remedies and found[1:] and all(each == found[0] for each in found) else []


def _of_blocked(blocked: BlockedEviction, drain: Drain, shared: Sequence[Remedy]) -> list[Phrase]:
    """What helps with this alone, if nothing lets the whole drain finish, and what its operator may do."""
    of_all = bool(drain.remedies or shared)
    found: list[Phrase] = [] if of_all else [(Span("fix: ", "good"), *remedy_phrase(each)) for each in blocked.remedies]
    if blocked.advice:
        found.append((Span("operator: ", "good"), message(blocked.advice.rstrip("."))))
    return found


def remedy_phrase(remedy: Remedy) -> Phrase:
    """The remedy, and what it brings: ``scale Deployment shop/web to 2 replicas; the drain then finishes``."""
    ends = "; the drain then finishes" if remedy.solves else "; this alone does not let the drain finish"
    left = f", with {count(remedy.pending, 'pod')} pending" if remedy.pending else ""
    return (*line(remedy), f"{ends}{left}{_price(remedy)}")


def _price(remedy: Remedy) -> str:
    """What is lost with the remedy: ``; no controller recreates a/bare``."""
    return "".join(f"; {each}" for each in (*losses(remedy), *interruptions(remedy)))


def removal_phrase(removal: NodeRemoval) -> Phrase:
    """Whether a node can be removed, and otherwise the rule that prevents it."""
    if removal.is_removable:
        return (f"yes, {count(removal.moved, 'pod')} {agree(removal.moved, 'moves')}",)
    if removal.blocker is not None:
        return ("no, ", *_NOT_REMOVED[removal.blocker](removal))
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


def _budget(blocked: BlockedEviction) -> Phrase:
    return ("budget ", *names(blocked.budgets))


def _too_few(blocked: BlockedEviction) -> Phrase:
    return (
        *_budget(blocked),
        f" requires {count(blocked.desired_healthy, 'healthy pod')} and has {blocked.current_healthy:,}",
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


def _option_required(blocked: BlockedEviction) -> Phrase:
    if " not found" in blocked.message:
        return ("its DaemonSet does not exist, so nothing recreates the pod (use --force to override)",)
    return _message(blocked)


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
    BlockReason.OPTION_REQUIRED: _option_required,
    BlockReason.TIMED_OUT: _late,
    BlockReason.OTHER: _message,
}


def _kept_by_budget(removal: NodeRemoval) -> Phrase:
    if not removal.budgets:
        return ("the eviction of ", *names(removal.pods), " is blocked")
    verb = agree(len(removal.budgets), "blocks")
    return (f"{agree(len(removal.budgets), 'PDB')} ", *names(removal.budgets), f" {verb} ", *names(removal.pods))


_NOT_REMOVED: dict[RemovalBlocker, Callable[[NodeRemoval], Phrase]] = {
    RemovalBlocker.BLOCKED: _kept_by_budget,
    RemovalBlocker.PENDING: lambda each: (*names(each.pods), " would stay pending"),
    RemovalBlocker.PREEMPTS: lambda each: (*names(each.pods), " would be preempted"),
    RemovalBlocker.BUDGETS: lambda each: ("PDB ", *names(each.budgets), " would be violated"),
    RemovalBlocker.NOT_TRIED: lambda _: ("or unknown: not tried, because the cluster has many nodes",),
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
    more, effect = "", effect_of(drain)
    if preempted := sum(not each.drained for each in effect.displaced):
        more += f", {count(preempted, 'other pod')} {agree(preempted, 'is')} preempted"
    if waiting := sum(each.was_running for each in effect.pending):
        more += f", {count(waiting, 'pod')} {agree(waiting, 'stays')} pending"
    gaps = sum(each.rule is RuleId.BRIEF_INTERRUPTION and each.status.counts for each in drain.findings)
    if gaps:
        more += f", {count(gaps, 'Service')} {agree(gaps, 'is')} briefly interrupted"
    if drain.finishes:
        took = f" in at least {clock(drain.min_seconds)}" if drain.min_seconds else " immediately"
        return (*which, f" finishes{took}: {moves}{more}")
    # The outcome of a drain that does not finish.
    managed = [each for each in drain.blocked if each.manager and not each.is_ahead]
    if any(not each.drained and each.errors for each in drain.drained):
        ending: Phrase = (" fails",)
    elif managed and drain.failing_runs == drain.runs:
        manager, pods = managed[0].manager, [pod for each in managed for pod in each.pods]
        ending = (" does not finish unless the operator of ", name(manager), " moves ", *names(pods))
    elif drain.runs > drain.failing_runs > 0:
        ending = (" may never finish",)
    else:
        ending = (" never finishes" if any(not each.drained for each in drain.drained) else " may not finish",)
    left = sum(len(each.remaining) for each in drain.drained)
    remaining = f"{count(left, 'pod')} {agree(left, 'stays')}" if left else ""
    helps: Phrase = ()
    if drain.remedies:
        best = drain.remedies[0]
        helps = (". It finishes if you ", *line(best), _price(best))
    return (*which, *ending, f": {', '.join(filter(None, (remaining, moves)))}{more}", *helps)


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
    manager = next((each.manager for each in drain.blocked if each.node == node.node and each.manager), "")
    waits: Phrase = ("waits for the operator of ", name(manager)) if manager else ("waits forever",)
    return (*waits, f", {pods}{stays}", *left)
