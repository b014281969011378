"""What a drain does, in one plain sentence."""

from __future__ import annotations

from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Phrase
from kpreempt.report.quoting import name, names
from kpreempt.report.simulation_words import clock
from kpreempt.verdict.drain import Drain


def summary_phrase(drain: Drain) -> Phrase:
    """``the drain of n1 never finishes: 2 of 14 pods are not evicted``."""
    if drain.removals:
        return _removals(drain)
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
    ending = _ending(drain)
    left = sum(len(each.left) for each in drain.drained)
    kept = f"{count(left, 'pod')} {agree(left, 'stays')}" if left else ""
    return (*which, f" {ending}: {', '.join(filter(None, (kept, moves)))}{more}")


def _removals(drain: Drain) -> Phrase:
    """``2 of 3 nodes can go: n2 and n3; 5 pods move``."""
    going = [each.node for each in drain.removals if each.goes]
    of_all = f"{len(going):,} of {count(len(drain.removals), 'node')} can go" if going else "none of the nodes can go"
    if not going:
        return (of_all,)
    sure = "" if drain.finishes else ", but not in every run"
    return (f"{of_all}{sure}: ", *names(going), f"; {count(drain.moved, 'pod')} {agree(drain.moved, 'moves')}")


def _ending(drain: Drain) -> str:
    """How a drain ends that does not finish."""
    if any(not each.drained and each.errors for each in drain.drained):
        return "fails"
    if drain.runs > drain.failing_runs > 0:
        return "may never finish"
    return "never finishes" if any(not each.drained for each in drain.drained) else "may not finish"


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
