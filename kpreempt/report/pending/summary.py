"""The pending pods in words: a summary, why each is still pending, its outcome, and what changed.

Also how many new nodes would place pending pods, and the facts behind the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from kpreempt.report.amounts import ago, agree, count, format_duration, format_reading, format_time, so_long
from kpreempt.report.blocks import Code, Listing, Phrase, Role, Section, Sentence, Span, joined, strong
from kpreempt.report.evidence import OUTCOMES, join_names, size_facts
from kpreempt.report.explain.chance import order_in_brief
from kpreempt.report.pending.hints import gates_hint, scheduler_hint
from kpreempt.report.pending.on_nodes import more_on_nodes_in_words, only_on_nodes_in_words
from kpreempt.report.pending.served import about_runs, after_in_words, open_in_words, scheduled_parts
from kpreempt.report.rejected_nodes import nodes_in_words, rejections_in_words
from kpreempt.report.remedies import amounts_in_words, cause_in_words, join_options
from kpreempt.verdict import Outcome
from kpreempt.verdict.details import InsufficientDevices, VolumeConflict
from kpreempt.verdict.pending import (
    SHOWN_STATES,
    Agreement,
    MoreNodes,
    NodesOfKind,
    PendingChange,
    PendingChangeKind,
    PendingPod,
    PendingPods,
    QueueTimeSource,
)
from kpreempt.verdict.remedies import CauseKind
from kpreempt.verdict.served import TurnOutcome
from kpreempt.verdict.status import FOUND_PLACEMENT
from kpreempt.verdict.unread import is_absent
from kpreempt.verdict.waiting import PendingState, TerminatingPod

_CAUSES = 2
_CAUSES_IN_FULL = 8
# The maximum length of each cause or list of names in a short sentence.
_SHORT = 56
_UNLIMITED = 1_000_000
# The kinds of rejection in a short sentence.
_KINDS = 4
_KINDS_IN_DETAIL = 3
_LONGEST_CAUSE = 200
_CHANGES_LISTED = 3


def summary(pending: PendingPods, *, is_short: bool = False) -> Phrase:
    """Which pods get scheduled, which preempt, and which stay pending in the end, with the reasons.

    A short summary is cut within its parentheses, and has at most 400 characters or so.
    """
    parts = [
        *scheduled_parts(pending.items, is_short=is_short),
        *_others(pending.items, _SHORT if is_short else _UNLIMITED),
    ]
    sentences = [
        open_in_words(pending.items, pending.served),
        *after_in_words(pending.served),
        *more_on_nodes_in_words(pending.on_nodes),
    ]
    served = "served in queue order, " if any(_is_served(item) for item in pending.items) else ""
    return (
        strong(f"{count(len(pending.items), 'pod')} pending"),
        f": {served}",
        *joined(Span(*part) for part in parts),
        ".",
        "".join(f" {each}" for each in sentences if each),
    )


def _is_served(item: PendingPod) -> bool:
    return item.in_turn is not None and item.in_turn.outcome is not TurnOutcome.NOT_SERVED


def _others(items: Sequence[PendingPod], longest: int) -> Iterator[tuple[str, Role]]:
    """The pods that stay pending, and those that the scheduler does not try; each pod is counted once."""
    left = [item for item in items if item.in_turn is not None and item.in_turn.outcome is TurnOutcome.LEFT_PENDING]
    deadlocked = {item.pod: cause for item in left for cause in item.causes if cause.kind is CauseKind.ROLLOUT_DEADLOCK}
    for cause in {cause.subject: cause for cause in deadlocked.values()}.values():
        number = sum(each.subject == cause.subject for each in deadlocked.values())
        yield f"{number:,} in a {_cut(cause_in_words(cause), max(longest, _LONGEST_CAUSE))}", "bad"
    if rest := [item for item in left if item.pod not in deadlocked]:
        yield f"{len(rest):,} {agree(len(rest), 'stays')} pending{_causes(rest, longest)}", "bad"
    # If the input lacks nodes or pods, the queue is not served.
    if unknown := [item for item in items if item.in_turn is None and item.state not in SHOWN_STATES]:
        yield f"{len(unknown):,} without a verdict{_causes(unknown, longest)}", "warn"
    if gated := [item for item in items if item.state == PendingState.GATED]:
        gates = dict.fromkeys(gate for item in gated for gate in item.gates)
        yield f"{len(gated):,} gated ({_cut(join_names(list(gates), limit=_CAUSES), longest)})", ""
    if others := [item for item in items if item.state == PendingState.NO_SCHEDULER]:
        names = dict.fromkeys(item.scheduler_name for item in others)
        yield f"{len(others):,} for another scheduler ({_cut(join_names(list(names), limit=_CAUSES), longest)})", ""
    if waiting := [item for item in items if item.state == PendingState.HELD]:
        plugins = dict.fromkeys(item.held_by for item in waiting if item.held_by)
        by = f" by {_cut(join_names(list(plugins), limit=_CAUSES), longest)}" if plugins else ""
        yield f"{len(waiting):,} held{by}", ""
    if number := sum(item.state == PendingState.BEING_DELETED for item in items):
        yield f"{number:,} terminating", ""


def _causes(items: Sequence[PendingPod], longest: int) -> str:
    """``(3 Insufficient cpu)``: why pods stay pending, which may differ from why they are pending now."""
    reasons = [_reason(item, longest) for item in items]
    frequent = Counter(filter(None, reasons)).most_common(_CAUSES if longest == _SHORT else _CAUSES_IN_FULL)
    if len(frequent) == 1 and frequent[0][1] == len(items):
        return f" ({frequent[0][0]})"
    named = [f"{number:,}: {reason}" for reason, number in frequent]
    if rest := len(items) - sum(number for _, number in frequent):
        named.append(f"{rest:,} more" if named else "")
    return f" ({'; '.join(filter(None, named))})" if any(named) else ""


def _reason(item: PendingPod, longest: int) -> str:
    """Why the pod stays pending in the end: in plain words if for the same reasons as now, or in the scheduler's."""
    reasons = item.in_turn.reasons if item.in_turn is not None else {}
    if item.rejections and reasons == item.reasons:
        kinds = _KINDS if longest == _SHORT else _UNLIMITED
        return rejections_in_words(item.rejections, kinds)
    # That no node is known is not a reason of the scheduler.
    is_unknown = item.outcome is Outcome.UNCERTAIN and item.cause == item.reason
    return _cut(", ".join(reasons) or ("" if is_unknown else item.cause), longest)


def _cut(text: str, longest: int) -> str:
    """The text, cut between two words."""
    return text if len(text) <= longest else f"{text[:longest].rpartition(' ')[0].rstrip(' ,;:')} …"


def changes_in_words(pending: PendingPods) -> Phrase:
    """The changes since the previous poll; empty if there was none."""
    changes = pending.changes
    if not changes:
        return ()
    since = f"Since {format_time(changes.since)[11:19]}: " if changes.since is not None else "Since the last poll: "
    if not changes.items:
        return (Span(f"{since}no change.", "dim"),)
    items = {item.pod: item for item in pending.items}
    landed = [each for each in changes.items if each.change is PendingChangeKind.LANDED]
    deleted = [each for each in changes.items if each.change is PendingChangeKind.REMOVED]
    new = [each for each in changes.items if each.change is PendingChangeKind.NEW]
    changed = [each for each in changes.items if each.change is PendingChangeKind.CHANGED]
    parts: list[Phrase] = []
    if landed:
        parts.append((Span("landed", "good"), f" {_named([f'{each.pod} on {each.node}' for each in landed])}"))
    if new:
        parts.append((Span("newly pending", "warn"), f" {_named([each.pod for each in new])}"))
    if changed:
        parts.append((Span("changed", "warn"), f" {_named([_changed(each, items[each.pod]) for each in changed])}"))
    if deleted:
        parts.append((f"gone {_named([each.pod for each in deleted])}",))
    return (strong(since), *joined(parts, "; "), ".")


def _named(names: Sequence[str]) -> str:
    return join_names(names, limit=_CHANGES_LISTED)


def _changed(change: PendingChange, item: PendingPod) -> str:
    before = outcome_in_brief(change.outcome, change.state)[0] if change.outcome is not None else ""
    now, nodes = format_outcome(item)
    node = f" on {nodes}" if nodes else ""
    return f"{item.pod} {now.text}{node} (was: {before})" if before != now.text else f"{item.pod} {now.text}{node}"


def facts_in_words(pending: PendingPods, *, has_time: bool = True) -> str:
    """The facts behind the answer: the scheduler, the cluster, and when it was read."""
    cluster = pending.cluster
    facts = [pending.algorithm, ", ".join(size_facts(cluster, pending.assumptions))]
    if pending.at is not None and has_time:
        age = f" ({format_reading(cluster.age_seconds)})" if cluster.age_seconds is not None else ""
        facts.append(f"{format_time(pending.at)}{age}")
    return " · ".join(filter(None, facts))


def notes_in_words(pending: PendingPods, *, is_short: bool = False) -> str:
    """How to read positions and verdicts, and what was not simulated; empty if no pod is pending."""
    if not pending.items:
        return ""
    about = about_runs(pending.served, is_short=is_short) if any(map(_is_served, pending.items)) else ""
    if is_short:
        return f"{unknown_in_words(pending)} {about}".strip()
    meaning = "# is the position in the scheduling queue; ALONE is the verdict on each pod as if it were next."
    return " ".join(filter(None, (meaning, unknown_in_words(pending), about)))


def unknown_in_words(pending: PendingPods) -> str:
    """The number of pods whose order is uncertain, and of other pods in the queue; empty if there are none."""
    notes = []
    unsure = sum(
        item.queue_time_source in (QueueTimeSource.CONDITION, QueueTimeSource.CREATION)
        and item.state not in (PendingState.NEVER_ATTEMPTED, *SHOWN_STATES)
        for item in pending.items
    )
    if unsure:
        notes.append(
            f"It is unknown when {count(unsure, 'pod')} {agree(unsure, 'was')} last tried;"
            f" {agree(unsure, 'its')} order may vary."
        )
    outside = pending.in_queue - sum(item.position is not None for item in pending.items)
    if outside:
        notes.append(f"{count(outside, 'more pod')} in the queue {agree(outside, 'is')} not shown.")
    return " ".join(notes)


_VICTIMS_LISTED = 3
_NODES_LISTED = 3
# The start of the scheduler's words on preemption. Its message has none if the attempt has just evicted pods
# (``schedulingAlgorithm`` in ``schedule_one.go``, v1.36.3).
_PREEMPTION = " preemption: "
NO_NODE_FITS = "no node fits, even empty"
_STATES: dict[PendingState, tuple[str, Role]] = {
    PendingState.BEING_DELETED: ("terminating", "dim"),
    PendingState.NO_SCHEDULER: ("other scheduler", "dim"),
    PendingState.GATED: ("gated", "warn"),
    PendingState.HELD: ("held", "warn"),
    PendingState.WAITS_FOR_VICTIMS: ("waits", "warn"),
}


def state_in_words(item: PendingPod, at: datetime | None) -> Phrase:
    """Why the pod is still pending, with the known times."""
    state, since = item.state, ago(item.since, at)
    backoff = again = ""
    if item.until is not None and at is not None:
        left = format_duration(int((item.until - at).total_seconds()))
        backoff = f" for at most {left} more"
        again = f"; will be retried within {left}" if item.until >= at else ""
    if state == PendingState.WAITS_FOR_VICTIMS:
        return (
            f"nominated to {item.nominated_node_name}, waiting for {count(len(item.waiting_for), 'pod')} to terminate",
        )
    words = {
        PendingState.BEING_DELETED: f"being deleted{since}; the scheduler skips it",
        PendingState.NO_SCHEDULER: f'no profile for scheduler "{item.scheduler_name}"; created{since}',
        PendingState.GATED: f"{'gate' if len(item.gates) == 1 else 'gates'} {join_names(item.gates)}; created{since}",
        PendingState.HELD: f"held{f' by {item.held_by}' if item.held_by else ''}: {item.reason}",
        PendingState.NOMINATED: f"nominated to {item.nominated_node_name}, but no victim is terminating yet",
        PendingState.STALE_NOMINATION: f"nominated to {item.nominated_node_name}, but preemption no longer helps there",
        PendingState.NEVER_ATTEMPTED: f"not attempted yet; created{since}",
        PendingState.BACKING_OFF: f"last attempt{since}; in backoff{backoff}",
        PendingState.FITS_NOW: f"unschedulable{so_long(item.since, at)}, but fits now{again}",
        PendingState.WAITS_FOR_CHANGE: f"unschedulable{so_long(item.since, at)}{again}",
    }
    return (words[state],)


def leaving_in_words(leaving: TerminatingPod, at: datetime | None) -> Phrase:
    """A terminating pod: since when, until when, and what delays it."""
    since = f"terminating{so_long(leaving.since, at)}"
    if leaving.until is None:
        until = ""
    elif at is None:
        until = f", until {format_time(leaving.until)}"
    elif (rest := int((leaving.until - at).total_seconds())) >= 0:
        until = f", at most {format_duration(rest)} more"
    else:
        until = f", {format_duration(-rest)} past its grace period"
    held = f"; finalizer {join_names(leaving.finalizers)}" if leaving.finalizers else ""
    other = "" if leaving.is_preempted else "; not preempted: the scheduler does not wait for it"
    return (strong(leaving.pod), f" {since}{until}", Span(held, "warn"), other)


def describe_outcome(item: PendingPod) -> Phrase:
    """The pod's outcome: the node, and the pods it evicts; empty if it stays pending."""
    nodes = join_names(item.nodes, limit=_NODES_LISTED).replace(" and ", " or ", 1)
    if item.outcome == Outcome.LANDS:
        return (Span("lands", "good"), f" on {nodes}")
    if not item.victims:
        return ()
    victims = list(dict.fromkeys(victim.pod for each in item.victims.values() for victim in each))
    sizes = sorted({len(each) for each in item.victims.values()})
    number = count(sizes[0], "pod") if len(sizes) == 1 else f"{sizes[0]:,} to {count(sizes[-1], 'pod')}"
    verb = "waits for" if _are_leaving(item) else "preempts"
    named = f": {join_names(victims, limit=_VICTIMS_LISTED)}" if len(item.victims) == 1 else ""
    order = f"; {order_in_brief(item.alternatives)}" if item.alternatives else ""
    return (Span(f"{verb} {number}", "warn"), f" on {nodes}{named}{order}", *_violations(item))


def agreement_in_words(item: PendingPod) -> str:
    """How the scheduler's last message compares with the prediction; empty if there is no message."""
    if not item.scheduler_message:
        return ""
    if item.agreement == Agreement.SAME:
        return "last scheduler message: the same"
    if item.agreement == Agreement.SAME_REASONS_DIFFERENT_COUNTS:
        return "last scheduler message: same reasons, different node counts"
    has_evicted = (
        f"{_PREEMPTION}{FOUND_PLACEMENT}" in item.scheduler_message or _PREEMPTION not in item.scheduler_message
    )
    if item.state == PendingState.WAITS_FOR_VICTIMS and has_evicted:
        return f"scheduler message when it preempted: {item.scheduler_message}"
    expected = f"; expected now: {item.message}" if item.message else ""
    return f"last scheduler message: {item.scheduler_message}{expected}"


def _violations(item: PendingPod) -> Phrase:
    overdrawn = sorted(
        {use.budget for each in item.victims.values() for victim in each for use in victim.budgets if use.remaining < 0}
    )
    if overdrawn:
        return ("; ", Span(f"violates {join_names(overdrawn)}", "bad"))
    if item.num_pdb_violations:
        return ("; ", Span(f"{count(item.num_pdb_violations, 'budget violation')} counted", "warn"))
    return ()


def nothing_pending(pending: PendingPods) -> str:
    """A sentence saying that no requested pod is pending, and where others are."""
    namespace, others = pending.namespace, dict(pending.other_namespaces)
    scope = f" in namespace {namespace}" if namespace else ""
    unmatched = others.pop(namespace, 0) if namespace else sum(others.values())
    text = f"No pod is pending{scope}."
    if pending.workloads and pending.workloads.pending:
        number = pending.workloads.pending
        text = f"No pod is pending{scope}, but {count(number, 'Workload')} of Kueue {agree(number, 'is')}."
    if pending.on_nodes:
        return f"No pod{scope} waits for the scheduler; {only_on_nodes_in_words(pending.on_nodes, pending.at)}."
    if is_absent(pending.assumptions, "Pod"):
        text = "No pending pod in the snapshot, which has no pods at all."
    elif pending.has_namespace is False:
        text = f'Namespace "{namespace}" does not exist.'
    elif unmatched:
        rest = f"{count(unmatched, 'other pod')} {agree(unmatched, 'is')} pending"
        text = f"No pending pod{scope} matches the selector; {rest}."
    elif namespace and pending.has_namespace is None:
        text = f"No pod is pending{scope}. The input has no objects in this namespace, which may not exist."
    if not namespace or not others:
        return text
    number = sum(others.values())
    named = join_names([f"{name} ({each:,})" for name, each in others.items()])
    elsewhere = "another namespace" if len(others) == 1 else "other namespaces"
    return f"{text} {count(number, 'pod')} {agree(number, 'is')} pending in {elsewhere}: {named}."


def outcome_in_brief(outcome: Outcome, state: PendingState | None) -> tuple[str, Role]:
    """The outcome of a pod in a word or two."""
    return _STATES[state] if state is not None and state in SHOWN_STATES else OUTCOMES[outcome][:2]


def format_outcome(item: PendingPod) -> tuple[Span, str]:
    """``preempts 2``, and the node; if there are several nodes, the first."""
    words, style = outcome_in_brief(item.outcome, item.state)
    if item.state in SHOWN_STATES:
        return Span(words, style), item.nominated_node_name
    words = OUTCOMES[item.outcome].short
    if item.victims:
        victims = list(item.victims.values())
        sizes = sorted({len(each) for each in victims})
        number = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,}-{sizes[-1]:,}"
        words = f"{'waits for' if _are_leaving(item) else words} {number}"
    others = f" +{len(item.nodes) - 1:,}" if len(item.nodes) > 1 else ""
    return Span(words, style), "".join(item.nodes[:1]) + others


def details_in_words(item: PendingPod, at: datetime | None) -> Phrase:
    """The details to look up next: the victims, the missing resources, the gate or the claim."""
    if item.state == PendingState.WAITS_FOR_VICTIMS:
        first, *others = item.waiting_for
        more = f" and {count(len(others), 'more pod')}" if others else ""
        return (*leaving_in_words(first, at), more)
    if item.state in SHOWN_STATES:
        return {
            PendingState.BEING_DELETED: ("the scheduler skips it",),
            PendingState.NO_SCHEDULER: (f"schedulerName {item.scheduler_name}; {scheduler_hint(item.scheduler_name)}",),
            PendingState.GATED: (f"{join_names(item.gates)}: {gates_hint(item.gates)}",),
            PendingState.HELD: (f"{f'by {item.held_by}: ' if item.held_by else ''}{item.reason}",),
        }[item.state]
    turn = item.in_turn
    if turn is not None and turn.outcome is TurnOutcome.LEFT_PENDING and not item.outcome.stays_pending:
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in turn.reasons.items()) or turn.message
        return (f"other pods are first; then {reasons}",)
    if item.outcome == Outcome.LANDS:
        return state_in_words(item, at)
    if item.victims:
        # The victims, if they are known, with the budgets they violate.
        order = f"; {order_in_brief(item.alternatives)}" if item.alternatives else ""
        violations = _violations(item)
        if len(item.victims) > 1:
            named = f"on one of {count(len(item.victims), 'tied node')}"
        else:
            named = join_names([victim.pod for each in item.victims.values() for victim in each], limit=_VICTIMS_LISTED)
        return (named, *violations, order)
    if item.outcome is Outcome.UNCERTAIN and not item.message and item.scheduler_message:
        return (f"scheduler{ago(item.last_attempt or item.since, at)}: {item.cause}",)
    # The reasons with their node counts, the claims, and what else keeps preemption from helping.
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in item.reasons.items()) or item.cause or item.reason
    ineligible = [part for part in item.cause.split(", ") if part.startswith("not eligible") and part not in reasons]
    details = {type(each.status.detail) for each in item.rejections}
    if item.rejections:
        reasons = "; ".join(nodes_in_words(item.rejections, _KINDS_IN_DETAIL))
    names_claims = not details.isdisjoint((VolumeConflict, InsufficientDevices))
    parts = [f"{join_names(item.claims)}: {reasons}" if item.claims and not names_claims else reasons, *ineligible]
    if item.state == PendingState.STALE_NOMINATION:
        parts.append(f"nominated to {item.nominated_node_name}, but preemption no longer helps there")
    if item.permanently_unschedulable:
        parts.append(NO_NODE_FITS)
    return ("; ".join(filter(None, parts)),)


def _are_leaving(item: PendingPod) -> bool:
    return all(victim.terminating for each in item.victims.values() for victim in each)


_KINDS_SHOWN = 4
_KINDS_IN_BRIEF = 2
_PODS_SHOWN = 3


def more_nodes_in_words(pending: PendingPods, *, is_short: bool = False) -> Phrase:
    """The numbers and kinds of new nodes with the pods they place; empty if no pod is pending."""
    more = pending.more_nodes
    if not more:
        return ()
    if more.not_searched:
        return (Span(f"More nodes: {more.not_searched}.", "dim"),)
    if not more.nodes:
        if more.untried:
            text = f"No new node was found that would help a pending pod; {more.untried:,} kinds were not tried."
        else:
            text = f"No new node like those in the cluster would help a pending pod ({count(more.num_kinds, 'kind')})."
        return (Span(text, "dim"),)
    if is_short and len(more.nodes) > _KINDS_IN_BRIEF:
        number = sum(each.count for each in more.nodes)
        return (strong(f"{number:,} nodes of {len(more.nodes):,} kinds"), f" would be enough for {_pods(more)} (-v).")
    # ``2 more nodes like node-a and 1 like gpu-1``.
    first, *others = more.nodes
    words = [f"{first.count:,} more {'node' if first.count == 1 else 'nodes'} like {first.kind.like}"]
    words += [f"{each.count:,} like {each.kind.like}" for each in others]
    return (strong(join_names(words, limit=_KINDS_SHOWN)), f" would be enough for {_pods(more)}.")


def _pods(more: MoreNodes) -> str:
    placed, left = len(more.pods), len(more.unplaced)
    if left:
        return f"{placed:,} of {count(placed + left, 'pod')} waiting for capacity"
    if placed == 1:
        return "the pod waiting for capacity"
    return f"{'both' if placed == 2 else f'all {placed:,}'} pods waiting for capacity"


def _of_kind(nodes: NodesOfKind) -> str:
    return f"{nodes.count:,} like {nodes.kind.like}: {amounts_in_words(nodes.kind.allocatable)}"


def more_nodes_section(pending: PendingPods, priority: int) -> Section:
    """The new nodes in full: their resources, the options that add them, and the pods they don't help."""
    more = pending.more_nodes
    if not more:
        return Section("MORE NODES")
    left = f"no new node fits {join_names(more.unplaced, limit=_PODS_SHOWN)}" if more.unplaced and more.nodes else ""
    return Section(
        "MORE NODES",
        more_nodes_in_words(pending),
        [
            Listing(
                [
                    [f"{each.count:,} like {each.kind.like}: {amounts_in_words(each.kind.allocatable)}"]
                    for each in more.nodes
                ]
            ),
            *([Code(join_options(more.options), is_command=True)] if more.options else []),
            Sentence(left),
            Listing([[Span(f"assumed: {words}", "warn")] for words in more.assumed]),
        ],
        priority=priority,
        aside=0 if more.nodes else 3,
        short=Section("MORE NODES", more_nodes_in_words(pending, is_short=True)),
    )
