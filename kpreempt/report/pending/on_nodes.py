"""Pods that have a node and are still pending: a sentence that counts them, and what each waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from kpreempt.report.amounts import ago, agree, count, so_long
from kpreempt.report.blocks import Listing, Phrase, Section, Span, Table, Words, columns, strong
from kpreempt.report.escape import printable
from kpreempt.report.evidence import join_names
from kpreempt.verdict.waiting import ClaimState, OnNodeCause, PendingOnNode

_LONGEST_MESSAGE = 160
_HOST_NAME = "kubernetes.io/hostname"
# For each cause, what a number of pods do; ``{}`` is the number.
_COUNTED: dict[OnNodeCause, Callable[[int], str]] = {
    OnNodeCause.TERMINATING: lambda number: f"{number:,} {agree(number, 'is')} terminating",
    OnNodeCause.NODE_MISSING: lambda number: f"{number:,} {agree(number, 'has')} a node that does not exist",
    OnNodeCause.NODE_NOT_READY: lambda number: f"{number:,} {agree(number, 'is')} on a node that is not ready",
    OnNodeCause.UNBOUND_CLAIM: lambda number: f"{number:,} {agree(number, 'waits')} for a claim that is not bound",
    OnNodeCause.VOLUME: lambda number: f"{number:,} {agree(number, 'waits')} for a volume",
    OnNodeCause.SANDBOX: lambda number: f"{number:,} {agree(number, 'gets')} no sandbox",
    OnNodeCause.IMAGE: lambda number: f"{number:,} can't pull an image",
    OnNodeCause.CONTAINER: lambda number: f"{number:,} can't start a container",
    OnNodeCause.FAILING_CONTAINER: lambda number: f"{number:,} {agree(number, 'has')} a container that fails",
    OnNodeCause.INIT_CONTAINER: lambda number: f"{number:,} {agree(number, 'runs')} an init container",
    OnNodeCause.STARTING: lambda number: f"{number:,} {agree(number, 'is')} starting",
    OnNodeCause.NOT_ACCEPTED: lambda number: f"{number:,} {agree(number, 'is')} not accepted by the kubelet yet",
}


def only_on_nodes_in_words(items: Sequence[PendingOnNode], at: datetime | None) -> str:
    """How many pods are pending on their nodes, and why, if no pod waits for the scheduler; it has no period."""
    if len(items) == 1:
        return f"{items[0].pod} is pending on its node {items[0].node}: {describe(items[0], at)}"
    return f"{count(len(items), 'pod')} are pending on their nodes: {_counted(items)}"


def more_on_nodes_in_words(items: Sequence[PendingOnNode]) -> Iterator[str]:
    """A sentence on the pods that are pending on their nodes, if any, after one on those that wait for a scheduler."""
    if not items:
        return
    own = "its node" if len(items) == 1 else "their nodes"
    yield f"{len(items):,} more {agree(len(items), 'is')} pending on {own}: {_counted(items)}."


def _counted(items: Sequence[PendingOnNode]) -> str:
    causes = Counter(each.cause for each in items)
    return ", ".join(_COUNTED[cause](number) for cause, number in causes.most_common())


def on_nodes_section(items: Sequence[PendingOnNode], at: datetime | None, priority: int, *, is_alone: bool) -> Section:
    """A row per kind of pod that is pending on its node, with what it waits for.

    If no other pod is pending (``is_alone``), the first sentence says all about a single one, except what helps.
    """
    if is_alone and len(items) == 1:
        return Section("FIX", fix_in_words(items[0]), priority=priority, anchor="fix-on-node")
    rows: list[list[Words]] = []
    lines: list[list[Words]] = []
    numbers = []
    for first, *others in _alike(items):
        named: Phrase = (strong(first.pod), Span(f" +{len(others):,}" if others else "", "dim"))
        lines.append([(*named, f" on {first.node}: {describe(first, at)}")])
        rows.append(
            [
                named,
                first.node,
                Span(first.status, "warn"),
                "; ".join(filter(None, (describe(first, at), fix_in_words(first)))),
            ]
        )
        numbers.append(1 + len(others))
    table = Table(columns("POD", "NODE", "STATUS", "DETAILS"), rows, noun="pod", has_details=True, numbers=numbers)
    return Section(
        "ON NODES",
        "the scheduler is done with these pods, or never saw them" if rows else "",
        [table],
        heading="Pending on their nodes",
        priority=priority,
        short=Section("ON NODES", blocks=[Listing(lines, noun="pod kind")], is_inline=True),
    )


def table_on_nodes(items: Sequence[PendingOnNode], at: datetime | None) -> list[str]:
    """The lines of a table with a row per pod, at full width."""
    from tabulate import tabulate  # noqa: PLC0415 - slow to import

    rows = [[printable(cell) for cell in (each.pod, each.node, each.status, describe(each, at))] for each in items]
    table = tabulate(rows, headers=("POD", "NODE", "STATUS", "DETAILS"), tablefmt="plain", disable_numparse=True)
    return [line.rstrip() for line in table.splitlines()]


def _alike(items: Sequence[PendingOnNode]) -> list[list[PendingOnNode]]:
    """Group the pods of an owner that wait for the same thing."""
    rows: dict[tuple[object, ...], list[PendingOnNode]] = {}
    for item in items:
        by_node = item.node if item.cause in (OnNodeCause.NODE_NOT_READY, OnNodeCause.NODE_MISSING) else ""
        key = (item.owner or item.pod, item.cause, by_node, item.container, item.reason, item.claim)
        rows.setdefault(key, []).append(item)
    return list(rows.values())


def describe(item: PendingOnNode, at: datetime | None) -> str:
    """What the pod waits for, in the kubelet's words if it has reported any."""
    return _DESCRIPTIONS[item.cause](item, at)


def fix_in_words(item: PendingOnNode) -> str:
    """What helps, if it follows from the cause."""
    if item.claim_state is ClaimState.NO_NODE_SELECTED:
        return f"create the pod without nodeName and with nodeSelector {_HOST_NAME}: {item.node}"
    return ""


def _terminating(item: PendingOnNode, at: datetime | None) -> str:
    held = f"; finalizer {join_names(item.finalizers)}" if item.finalizers else ""
    return f"it is terminating{so_long(item.since, at)}{held}"


def _node_missing(item: PendingOnNode, _at: datetime | None) -> str:
    return f"the cluster has no node {item.node}, so nothing starts the pod"


def _not_ready(item: PendingOnNode, at: datetime | None) -> str:
    reason = _cut(item.message.rstrip(".")) or item.reason
    said = f" ({reason})" if reason else ""
    return f"node {item.node} has not been ready{so_long(item.since, at)}{said}; nothing starts there until it is"


def _unbound(item: PendingOnNode, at: datetime | None) -> str:
    claim = f"PersistentVolumeClaim {item.claim}"
    if item.claim_state is ClaimState.MISSING:
        return f"{claim} does not exist"
    if item.claim_state is ClaimState.LOST:
        return f"{claim} has lost its volume"
    if item.claim_state is ClaimState.NO_NODE_SELECTED:
        return (
            "the scheduler never sees it, because spec.nodeName is set, so it selects no node for"
            f" {claim} (class {item.storage_class}: WaitForFirstConsumer)"
        )
    in_class = f" (class {item.storage_class})" if item.storage_class else ""
    return f"{claim}{in_class} is not bound{_reported(item, at)}"


def _event(item: PendingOnNode, at: datetime | None) -> str:
    return _reported(item, at).removeprefix("; ")


def _reported(item: PendingOnNode, at: datetime | None) -> str:
    """The last event, with its age."""
    if not item.reason:
        return ""
    age = ago(item.reported, at)
    message = f": {_cut(item.message)}" if item.message else ""
    return f"; {item.reason}{age}{message}"


def _in_container(item: PendingOnNode, _at: datetime | None) -> str:
    message = _cut(item.message)
    is_named = item.cause is not OnNodeCause.IMAGE or not item.image or item.image in message
    image = "" if is_named else f", image {item.image}"
    return f"{item.reason} ({_container(item)}{image}){f': {message}' if message else ''}"


def _failing(item: PendingOnNode, at: datetime | None) -> str:
    code = f" with exit code {item.exit_code}" if item.exit_code is not None else ""
    ended = ago(item.since, at)
    restarts = f", {count(item.restarts, 'restart')}" if item.restarts else ""
    message = f": {_cut(item.message)}" if item.message else ""
    return f"{_container(item)} failed{code}{ended}{restarts}{message}"


def _init_container(item: PendingOnNode, at: datetime | None) -> str:
    return f"{_container(item)} has been running{so_long(item.since, at)}; the others start after it"


def _starting(item: PendingOnNode, at: datetime | None) -> str:
    why = "no event in the input says what it waits for" if item.has_events else "the input has no events that say why"
    return f"the kubelet has been starting it{so_long(item.since, at)}; {why}"


def _not_accepted(item: PendingOnNode, at: datetime | None) -> str:
    return f"created{ago(item.since, at)}, and the kubelet of {item.node} has not reported on it"


def _container(item: PendingOnNode) -> str:
    return f"{'init container' if item.is_init_container else 'container'} {item.container}"


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[: _LONGEST_MESSAGE - 1]}…"


_DESCRIPTIONS: dict[OnNodeCause, Callable[[PendingOnNode, datetime | None], str]] = {
    OnNodeCause.TERMINATING: _terminating,
    OnNodeCause.NODE_MISSING: _node_missing,
    OnNodeCause.NODE_NOT_READY: _not_ready,
    OnNodeCause.UNBOUND_CLAIM: _unbound,
    OnNodeCause.VOLUME: _event,
    OnNodeCause.SANDBOX: _event,
    OnNodeCause.IMAGE: _in_container,
    OnNodeCause.CONTAINER: _in_container,
    OnNodeCause.FAILING_CONTAINER: _failing,
    OnNodeCause.INIT_CONTAINER: _init_container,
    OnNodeCause.STARTING: _starting,
    OnNodeCause.NOT_ACCEPTED: _not_accepted,
}
