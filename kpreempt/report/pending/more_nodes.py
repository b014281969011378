"""How many new nodes would place the pods that wait, in words."""

from __future__ import annotations

from kpreempt.report.amounts import count
from kpreempt.report.blocks import Code, Listing, Phrase, Section, Sentence, Span, strong
from kpreempt.report.evidence import join_names
from kpreempt.report.explain.changes import amounts_of, join_options
from kpreempt.verdict.pending import MoreNodes, PendingPods

_KINDS_SHOWN = 4
_KINDS_IN_BRIEF = 2
_PODS_SHOWN = 3


def more_nodes_in_words(pending: PendingPods, *, is_short: bool = False) -> Phrase:
    """How many of which kind place how many pods; that nothing was found or sought; empty where no pod waits."""
    more = pending.more_nodes
    if not more:
        return ()
    if more.not_sought:
        return (Span(f"More nodes: {more.not_sought}.", "dim"),)
    if not more.nodes:
        untried = f", {more.untried:,} not tried" if more.untried else ""
        tried = count(more.num_kinds - more.untried, "kind")
        return (Span(f"No new node like those of the cluster takes a pod that waits ({tried} tried{untried}).", "dim"),)
    if is_short and len(more.nodes) > _KINDS_IN_BRIEF:
        number = sum(each.count for each in more.nodes)
        return (strong(f"{number:,} of {len(more.nodes):,} kinds"), f" would place {_pods(more)} (-v).")
    # ``2 more nodes like node-a and 1 like gpu-1``.
    first, *others = more.nodes
    words = [f"{first.count:,} more {'node' if first.count == 1 else 'nodes'} like {first.kind.like}"]
    words += [f"{each.count:,} like {each.kind.like}" for each in others]
    return (strong(join_names(words, limit=_KINDS_SHOWN)), f" would place {_pods(more)}.")


def _pods(more: MoreNodes) -> str:
    placed, left = len(more.pods), len(more.unplaced)
    if left:
        return f"{placed:,} of {count(placed + left, 'pod')} that wait for room"
    if placed == 1:
        return "the pod that waits for room"
    return f"{'both' if placed == 2 else f'all {placed:,}'} pods that wait for room"


def more_nodes_section(pending: PendingPods, priority: int) -> Section:
    """The same in full: what the nodes have, the options that add them, which pods they do not help."""
    more = pending.more_nodes
    if not more:
        return Section("MORE NODES")
    left = f"no new node takes {join_names(more.unplaced, limit=_PODS_SHOWN)}" if more.unplaced and more.nodes else ""
    return Section(
        "MORE NODES",
        more_nodes_in_words(pending),
        [
            Listing([[f"{each.count:,} like {each.kind.like}: {amounts_of(each.kind)}"] for each in more.nodes]),
            *([Code(join_options(more.options), is_command=True)] if more.options else []),
            Sentence(left),
            Listing([[Span(f"assumed: {words}", "warn")] for words in more.assumed]),
        ],
        priority=priority,
        short=Section("MORE NODES", more_nodes_in_words(pending, is_short=True)),
    )
