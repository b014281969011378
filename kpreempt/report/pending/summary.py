"""The pending pods in words: in a sentence, why each still waits and what becomes of it, and what changed.

And how many new nodes would place those that wait, and what the answer rests on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from kpreempt.report.amounts import agree, count, format_duration, format_reading, format_since, format_time
from kpreempt.report.blocks import Code, Listing, Phrase, Role, Section, Sentence, Span, joined, strong
from kpreempt.report.evidence import OUTCOMES, join_names
from kpreempt.report.explain.chance import order_in_brief
from kpreempt.report.explain.changes import amounts_of, join_options
from kpreempt.verdict import Outcome
from kpreempt.verdict.pending import (
    TELLING_STATES,
    Agreement,
    Leaving,
    MoreNodes,
    PendingChange,
    PendingChangeKind,
    PendingPod,
    PendingPods,
    PendingState,
    QueueTimeSource,
)
from kpreempt.verdict.status import FOUND_PLACEMENT
from kpreempt.verdict.unread import is_absent

_CAUSES = 2
_CAUSES_IN_FULL = 8
# How long each cause or list of names may be where a sentence is to be short.
_SHORT = 56
_WHOLE = 1_000_000
_CHANGES_NAMED = 3
_EVICTING = (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS)


def summary(pending: PendingPods, *, is_short: bool = False) -> Phrase:
    """How many pods are pending, and in numbers what becomes of them, with the reasons of those that cannot land.

    A short one is cut within its brackets, and has 400 characters at most.
    """
    parts = joined(Span(*part) for part in _parts(pending.items, _SHORT if is_short else _WHOLE))
    return (strong(f"{count(len(pending.items), 'pod')} pending"), ": ", *parts, ".")


def _parts(items: Sequence[PendingPod], longest: int) -> Iterator[tuple[str, Role]]:
    """Each pod is counted once, so the numbers add up."""
    held = Counter(item.state for item in items if item.state in TELLING_STATES)
    free = [item for item in items if item.state not in TELLING_STATES]
    fates = Counter(item.outcome for item in free)
    if number := fates[Outcome.LANDS]:
        yield f"{number:,} {agree(number, 'lands')} now", "good"
    if evicting := [item for item in free if item.outcome in _EVICTING]:
        yield _evictions(evicting)
    if number := held[PendingState.WAITS_FOR_VICTIMS]:
        yield f"{number:,} {agree(number, 'waits')} for {'its' if number == 1 else 'their'} victims", "warn"
    if unschedulable := [item for item in free if item.outcome == Outcome.NEVER_LANDS]:
        yield f"{len(unschedulable):,} unschedulable{_causes(unschedulable, longest)}", "bad"
    if number := fates[Outcome.UNCERTAIN]:
        yield f"{number:,} uncertain", "warn"
    if gated := [item for item in items if item.state == PendingState.GATED]:
        gates = dict.fromkeys(gate for item in gated for gate in item.gates)
        yield f"{len(gated):,} gated ({_cut(join_names(list(gates), limit=_CAUSES), longest)})", ""
    if others := [item for item in items if item.state == PendingState.NO_SCHEDULER]:
        names = dict.fromkeys(item.scheduler_name for item in others)
        yield f"{len(others):,} of another scheduler ({_cut(join_names(list(names), limit=_CAUSES), longest)})", ""
    if waiting := [item for item in items if item.state == PendingState.HELD]:
        plugins = dict.fromkeys(item.held_by for item in waiting if item.held_by)
        by = f" by {_cut(join_names(list(plugins), limit=_CAUSES), longest)}" if plugins else ""
        yield f"{len(waiting):,} held{by}", ""
    if number := held[PendingState.BEING_DELETED]:
        yield f"{number:,} terminating", ""


def _evictions(items: Sequence[PendingPod]) -> tuple[str, Role]:
    """How many evict how many; each is judged alone, so they may evict the same."""
    sets = [{victim.pod for each in item.victims.values() for victim in each} for item in items]
    victims = set().union(*sets)
    number = len(items)
    are_leaving = all(victim.terminating for item in items for each in item.victims.values() for victim in each)
    is_open = any(_is_open(item) for item in items)
    if are_leaving:
        whom = "only pods that are terminating"
    elif len(victims) < sum(map(len, sets)):
        same = "the same " if all(each == victims for each in sets) else ""
        whom = f"{'up to ' if is_open else ''}{same}{count(len(victims), 'pod')}{'' if same else ', some the same'}"
    else:
        whom = f"{'up to ' if is_open else ''}{count(len(victims), 'pod')}"
    violating = sum(item.outcome == Outcome.PREEMPTS_VIOLATING_BUDGETS for item in items)
    budgets = f" ({violating:,} {agree(violating, 'violates')} budgets)" if violating else ""
    return f"{number:,} {agree(number, 'preempts')} {whom}{budgets}", "bad" if violating else "warn"


def _is_open(item: PendingPod) -> bool:
    """Whether the number of its victims hangs on chance, or on the order of equal pods."""
    numbers = {len(each) for each in item.victims.values()}
    told = item.alternatives
    if told is not None:
        numbers |= {each.num_victims for each in told.outcomes}
    return len(item.victims) > 1 or len(numbers) > 1 or (told is not None and bool(told.untold or not told.exact))


def _causes(items: Sequence[PendingPod], longest: int) -> str:
    causes = Counter(item.cause for item in items if item.cause)
    # The reasons of most nodes first.
    words = {item.cause: ", ".join(item.reasons) or item.cause for item in reversed(items)}
    frequent = causes.most_common(_CAUSES if longest == _SHORT else _CAUSES_IN_FULL)
    named = [f"{number:,} {_cut(words[cause], longest)}" for cause, number in frequent]
    if rest := len(items) - sum(number for _, number in frequent):
        named.append(f"{rest:,} more" if named else "")
    return f" ({'; '.join(filter(None, named))})" if any(named) else ""


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def changes_in_words(pending: PendingPods) -> Phrase:
    """What changed since the look before; empty where there was none."""
    changes = pending.changes
    if not changes:
        return ()
    since = f"Since {format_time(changes.since)[11:19]}: " if changes.since is not None else "Since the last look: "
    if not changes.items:
        return (Span(f"{since}no change.", "dim"),)
    items = {item.pod: item for item in pending.items}
    landed = [each for each in changes.items if each.change is PendingChangeKind.LANDED]
    gone = [each for each in changes.items if each.change is PendingChangeKind.GONE]
    new = [each for each in changes.items if each.change is PendingChangeKind.NEW]
    changed = [each for each in changes.items if each.change is PendingChangeKind.CHANGED]
    told: list[Phrase] = []
    if landed:
        told.append((Span("landed", "good"), f" {_named([f'{each.pod} on {each.node}' for each in landed])}"))
    if new:
        told.append((Span("newly pending", "warn"), f" {_named([each.pod for each in new])}"))
    if changed:
        told.append((Span("changed", "warn"), f" {_named([_changed(each, items[each.pod]) for each in changed])}"))
    if gone:
        told.append((f"gone {_named([each.pod for each in gone])}",))
    return (strong(since), *joined(told, "; "), ".")


def _named(names: Sequence[str]) -> str:
    return join_names(names, limit=_CHANGES_NAMED)


def _changed(change: PendingChange, item: PendingPod) -> str:
    before = outcome_in_brief(change.outcome, change.state)[0] if change.outcome is not None else ""
    now, nodes = brief_fate(item)
    where = f" on {nodes}" if nodes else ""
    return f"{item.pod} {now.text}{where} (was {before})" if before != now.text else f"{item.pod} {now.text}{where}"


def facts_in_words(pending: PendingPods, *, has_time: bool = True) -> str:
    """What the answer rests on: the scheduler, the cluster, and when it was read."""
    cluster = pending.cluster
    facts = [pending.algorithm, f"{count(cluster.nodes, 'node')}, {count(cluster.pods, 'pod')}"]
    if pending.at is not None and has_time:
        age = f" ({format_reading(cluster.age_seconds)})" if cluster.age_seconds is not None else ""
        facts.append(f"{format_time(pending.at)}{age}")
    return " · ".join(filter(None, facts))


def notes_in_words(pending: PendingPods) -> str:
    """What the places and the verdicts do not say; empty if no pod is pending."""
    if not pending.items:
        return ""
    meaning = "# is the place in the scheduling queue; each pod is judged alone, as if it came next."
    return f"{meaning} {unknown_in_words(pending)}".rstrip()


def unknown_in_words(pending: PendingPods) -> str:
    """Of how many pods the order is not sure, and how many others are in the queue; empty if there are none."""
    notes = []
    unsure = sum(
        item.queue_time_source in (QueueTimeSource.CONDITION, QueueTimeSource.CREATION)
        and item.state not in (PendingState.NEVER_TRIED, *TELLING_STATES)
        for item in pending.items
    )
    if unsure:
        notes.append(f"Last attempt of {count(unsure, 'pod')} unknown: order within a priority may vary.")
    outside = pending.in_queue - sum(item.position is not None for item in pending.items)
    if outside:
        notes.append(f"{count(outside, 'more pod')} in the queue {agree(outside, 'was')} not asked about.")
    return " ".join(notes)


_VICTIMS_NAMED = 3
_NODES_NAMED = 3
# What begins the scheduler's words on preemption. It has none where an attempt has just evicted somebody
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
    """Why the pod is still pending, with the times that are known."""
    state, since = item.state, _ago(item.since, at)
    backoff = again = ""
    if item.until is not None and at is not None:
        left = format_duration(int((item.until - at).total_seconds()))
        backoff = f" for at most {left} more"
        again = f"; tried again within {left}" if item.until >= at else ""
    if state == PendingState.WAITS_FOR_VICTIMS:
        return (f"nominated to {item.nominated_node_name}, where it waits for {count(len(item.waiting_for), 'pod')}",)
    words = {
        PendingState.BEING_DELETED: f"being deleted{since}; the scheduler skips it",
        PendingState.NO_SCHEDULER: f'no profile for scheduler "{item.scheduler_name}"; created{since}',
        PendingState.GATED: f"{'gate' if len(item.gates) == 1 else 'gates'} {join_names(item.gates)}; created{since}",
        PendingState.HELD: f"held{f' by {item.held_by}' if item.held_by else ''}: {item.reason}",
        PendingState.NOMINATED: f"nominated to {item.nominated_node_name}, where no victim is terminating yet",
        PendingState.STALE_NOMINATION: f"nominated to {item.nominated_node_name}, where preemption no longer helps",
        PendingState.NEVER_TRIED: f"not tried yet; created{since}",
        PendingState.BACKING_OFF: f"last tried{since}; in backoff{backoff}",
        PendingState.FITS_NOW: f"unschedulable{_for(item.since, at)}, but fits now{again}",
        PendingState.WAITS_FOR_CHANGE: f"unschedulable{_for(item.since, at)}{again}",
    }
    return (words[state],)


def leaving_in_words(leaving: Leaving, at: datetime | None) -> Phrase:
    """A terminating pod: since when, until when, and what holds it."""
    since = f"terminating{_for(leaving.since, at)}"
    if leaving.until is None:
        until = ""
    elif at is None:
        until = f", until {format_time(leaving.until)}"
    elif (rest := int((leaving.until - at).total_seconds())) >= 0:
        until = f", at most {format_duration(rest)} more"
    else:
        until = f", {format_duration(-rest)} beyond its grace period"
    held = f"; finalizer {join_names(leaving.finalizers)}" if leaving.finalizers else ""
    other = "" if leaving.is_preempted else "; not preempted: the scheduler does not wait for it"
    return (strong(leaving.pod), f" {since}{until}", Span(held, "warn"), other)


def fate_in_words(item: PendingPod) -> Phrase:
    """What becomes of the pod: the node, and whom it evicts; empty where it stays pending."""
    nodes = join_names(item.nodes, limit=_NODES_NAMED).replace(" and ", " or ", 1)
    if item.outcome == Outcome.LANDS:
        return (Span("lands", "good"), f" on {nodes}")
    if not item.victims:
        return ()
    victims = list(dict.fromkeys(victim.pod for each in item.victims.values() for victim in each))
    sizes = sorted({len(each) for each in item.victims.values()})
    number = count(sizes[0], "pod") if len(sizes) == 1 else f"{sizes[0]:,} to {count(sizes[-1], 'pod')}"
    verb = "waits for" if _are_leaving(item) else "preempts"
    named = f": {join_names(victims, limit=_VICTIMS_NAMED)}" if len(item.victims) == 1 else ""
    order = f"; {order_in_brief(item.alternatives)}" if item.alternatives else ""
    return (Span(f"{verb} {number}", "warn"), f" on {nodes}{named}{order}", *_violations(item))


def agreement_in_words(item: PendingPod) -> str:
    """How the scheduler's last message compares with what is expected now; empty where it says nothing."""
    if not item.scheduler_message:
        return ""
    if item.agreement == Agreement.SAME:
        return "last message of the scheduler: the same"
    if item.agreement == Agreement.COUNTS:
        return "last message of the scheduler: the same reasons, other numbers of nodes"
    has_evicted = (
        f"{_PREEMPTION}{FOUND_PLACEMENT}" in item.scheduler_message or _PREEMPTION not in item.scheduler_message
    )
    if item.state == PendingState.WAITS_FOR_VICTIMS and has_evicted:
        return f"message of the scheduler when it preempted: {item.scheduler_message}"
    expected = f"; expected now: {item.message}" if item.message else ""
    return f"last message of the scheduler: {item.scheduler_message}{expected}"


def _violations(item: PendingPod) -> Phrase:
    overdrawn = sorted(
        {use.budget for each in item.victims.values() for victim in each for use in victim.budgets if use.left < 0}
    )
    if overdrawn:
        return ("; ", Span(f"violates {join_names(overdrawn)}", "bad"))
    if item.num_pdb_violations:
        return ("; ", Span(f"{count(item.num_pdb_violations, 'budget violation')} counted", "warn"))
    return ()


def _ago(time: datetime | None, at: datetime | None) -> str:
    if time is None:
        return ""
    since = format_since(time, at)
    return f" {since}" if since.startswith("since") else f" {since} ago"


def _for(time: datetime | None, at: datetime | None) -> str:
    if time is None:
        return ""
    since = format_since(time, at)
    return f" {since}" if since.startswith("since") else f" for {since}"


def nothing_pending(pending: PendingPods) -> str:
    """That no pod is pending of those asked about, and where others are."""
    namespace, others = pending.namespace, dict(pending.not_asked)
    where = f" in namespace {namespace}" if namespace else ""
    unmatched = others.pop(namespace, 0) if namespace else sum(others.values())
    said = f"No pod is pending{where}."
    if is_absent(pending.assumptions, "Pod"):
        said = "No pending pod in the snapshot, which has no pods at all."
    elif pending.has_namespace is False:
        said = f'There is no namespace "{namespace}".'
    elif unmatched:
        there = f"{count(unmatched, 'other pod')} {agree(unmatched, 'is')} pending"
        said = f"No pending pod{where} matches the selector; {there}."
    elif namespace and pending.has_namespace is None:
        said = f"No pod is pending{where}, and nothing that was read is in it: there may be no such namespace."
    if not namespace or not others:
        return said
    number = sum(others.values())
    named = join_names([f"{name} ({each:,})" for name, each in others.items()])
    elsewhere = "another" if len(others) == 1 else "others"
    return f"{said} {count(number, 'pod')} {agree(number, 'is')} pending in {elsewhere}: {named}."


def outcome_in_brief(outcome: Outcome, state: PendingState | None) -> tuple[str, Role]:
    """A word or two on what becomes of a pod."""
    return _STATES[state] if state is not None and state in TELLING_STATES else OUTCOMES[outcome][:2]


def brief_fate(item: PendingPod) -> tuple[Span, str]:
    """``preempts 2``, and the node; of several nodes the first."""
    words, style = outcome_in_brief(item.outcome, item.state)
    if item.state in TELLING_STATES:
        return Span(words, style), item.nominated_node_name
    if item.victims:
        victims = list(item.victims.values())
        sizes = sorted({len(each) for each in victims})
        number = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,}-{sizes[-1]:,}"
        words = f"{'waits for' if _are_leaving(item) else words} {number}"
    others = f" or {len(item.nodes) - 1:,} more" if len(item.nodes) > 1 else ""
    return Span(words, style), "".join(item.nodes[:1]) + others


def details_in_words(item: PendingPod, at: datetime | None) -> Phrase:
    """What somebody would look up next: who has to go, what is missing, which gate or claim."""
    if item.state == PendingState.WAITS_FOR_VICTIMS:
        first, *others = item.waiting_for
        more = f" and {count(len(others), 'more pod')}" if others else ""
        return (*leaving_in_words(first, at), more)
    if item.state in TELLING_STATES:
        return {
            PendingState.BEING_DELETED: ("the scheduler skips it",),
            PendingState.NO_SCHEDULER: (f"schedulerName {item.scheduler_name}",),
            PendingState.GATED: (join_names(item.gates),),
            PendingState.HELD: (f"{f'by {item.held_by}: ' if item.held_by else ''}{item.reason}",),
        }[item.state]
    if item.outcome == Outcome.LANDS:
        return state_in_words(item, at)
    if item.victims:
        # Who is evicted, where that is known, after the budgets that breaks.
        order = f"; {order_in_brief(item.alternatives)}" if item.alternatives else ""
        violations = _violations(item)
        if len(item.victims) > 1:
            named = f"on one of {count(len(item.victims), 'node')} that tie"
        else:
            named = join_names([victim.pod for each in item.victims.values() for victim in each], limit=_VICTIMS_NAMED)
        return (named, *violations, order)
    # The reasons with their numbers of nodes, the claims, and what else keeps preemption from helping.
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in item.reasons.items()) or item.cause or item.reason
    own = [part for part in item.cause.split(", ") if part.startswith("not eligible") and part not in reasons]
    told = [f"{join_names(item.claims)}: {reasons}" if item.claims else reasons, *own]
    if item.state == PendingState.STALE_NOMINATION:
        told.append(f"nominated to {item.nominated_node_name}, where preemption no longer helps")
    if item.refused_for_good:
        told.append(NO_NODE_FITS)
    return ("; ".join(filter(None, told)),)


def _are_leaving(item: PendingPod) -> bool:
    return all(victim.terminating for each in item.victims.values() for victim in each)


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
