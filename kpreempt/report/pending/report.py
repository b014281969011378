"""The pending pods: the summary, then all pods by cause in queue order, each with its details.

``-o wide`` is a table at full width, with nodes by reason and the first remedy for each pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

import msgspec

from kpreempt.report.amounts import agree, count, format_amount, format_since, format_time
from kpreempt.report.autoscaling import autoscaling_section
from kpreempt.report.blocks import (
    Block,
    Cards,
    Count,
    Fold,
    Listing,
    Phrase,
    Report,
    Role,
    Rows,
    Section,
    Sentence,
    Span,
    Table,
    Words,
    columns,
    joined,
    name,
    phrase_of,
    strong,
    text_of,
)
from kpreempt.report.escape import printable
from kpreempt.report.evidence import absent_facts, assumption_sections, format_budgets, join_names
from kpreempt.report.explain.chance import alternatives_in_lines
from kpreempt.report.missing_pods import in_a_line, missing_section, summarize
from kpreempt.report.node_health import health_section
from kpreempt.report.options import RenderOptions
from kpreempt.report.pending.on_nodes import on_nodes_section, table_on_nodes
from kpreempt.report.pending.resizes import resizes_section
from kpreempt.report.pending.served import turn_in_brief, turn_in_words
from kpreempt.report.pending.summary import (
    NO_NODE_FITS,
    agreement_in_words,
    changes_in_words,
    describe_outcome,
    details_in_words,
    facts_in_words,
    format_outcome,
    leaving_in_words,
    more_nodes_in_words,
    more_nodes_section,
    notes_in_words,
    nothing_pending,
    outcome_in_brief,
    state_in_words,
    summary,
)
from kpreempt.report.preemptions import preemptions_section
from kpreempt.report.remedies import (
    FIRST_LINES,
    action,
    cause_in_words,
    commands,
    line,
    not_tried,
    nothing_found,
    result,
)
from kpreempt.scheduler_table import KUEUE
from kpreempt.verdict import Outcome, Victim
from kpreempt.verdict.pending import SHOWN_STATES, Agreement, PendingGroup, PendingPod, PendingPods
from kpreempt.verdict.remedies import CauseKind
from kpreempt.verdict.served import TurnOutcome
from kpreempt.verdict.unread import absent_sentence, are_budgets_unread
from kpreempt.verdict.waiting import PendingState
from kpreempt.verdict.workload import MissingReason

_PODS_SHOWN = 40
_VICTIMS_SHOWN = 12
_NODES_SHOWN = 4
_OUTCOMES_SHOWN = 12
# Priorities on a screen.
_CHANGES, _PREEMPTIONS, _NODE_HEALTH, _NOT_CREATED, _FIXES = 60, 59, 59, 58, 55
_AUTOSCALER, _MORE_NODES, _ON_NODES, _PODS, _NOTES = 52, 50, 45, 40, 20
_ABOUT_ROWS = "# = queue position; ALONE = as if it were next"
_MIN_ROWS = 10
# The length of a cause in a heading, if several causes have the same label.
_CAUSE_LENGTH = 60
_WORDS: dict[Outcome, str] = {
    Outcome.LANDS: "{} would land; nothing is evicted",
    Outcome.PREEMPTS: "{} would preempt other pods; no budget is violated",
    Outcome.PREEMPTS_VIOLATING_BUDGETS: "{} would preempt other pods and violate budgets",
    Outcome.UNSCHEDULABLE: "{} unschedulable now; preemption doesn't help",
    Outcome.WAITS_FOR_VICTIMS: "{} waiting for victims to terminate",
    Outcome.UNCERTAIN: "{} whose outcome is uncertain",
}
_STATE_WORDS: dict[PendingState, str] = {
    PendingState.BEING_DELETED: "{} being deleted",
    PendingState.NO_SCHEDULER: "{} whose schedulerName is not in the configuration",
    PendingState.GATED: "{} with scheduling gates",
    PendingState.HELD: "{} held out of the queue",
    PendingState.WAITS_FOR_VICTIMS: "{} nominated, waiting for victims to terminate",
}


def render_html(pending: PendingPods, options: RenderOptions) -> str:
    """The page, without the clock's time, so that equal input makes equal pages."""
    from kpreempt.report.html.report import render_page  # noqa: PLC0415 - only pages need it

    page_options = msgspec.structs.replace(options, verbose=False)
    return render_page(report(pending, page_options, has_time=not options.is_clock), options)


def report(pending: PendingPods, options: RenderOptions, *, has_time: bool = True) -> Report:
    """The summary, then a section per cause that lists similar pods once; a screen shows these as a table."""
    items = {item.pod: item for item in pending.items}
    absent = absent_facts(pending.assumptions)
    facts = [*absent, *([facts_in_words(pending, has_time=has_time)] if items else [])]
    labels = Counter(_label(group)[0] for group in pending.groups)
    numbers: Counter[str] = Counter()
    for group in pending.groups:
        numbers[_label(group)[0]] += len(group.pods)
    bad = {label for label, style in map(_label, pending.groups) if style == "bad"}
    page_facts = [f"Kubernetes {pending.cluster.version}"] if pending.cluster.version else []
    page_facts.append(f"{count(pending.in_queue, 'pod')} in the queue")
    page_facts += [f"namespace {pending.namespace}"] if pending.namespace else []
    # Without pods, little can be concluded.
    is_known = not (items or pending.missing_pods or pending.assumptions) and (
        pending.has_namespace or not pending.namespace
    )
    unknown = Section("NOTES", notes_in_words(pending, is_short=True))
    missing = summarize(pending.missing_pods)
    is_bad = any(each.reason is MissingReason.FAILED_CREATE for each in pending.missing_pods) or any(
        item.in_turn is not None
        and (item.in_turn.violated or item.in_turn.outcome in (TurnOutcome.LEFT_PENDING, TurnOutcome.REMOVED))
        for item in pending.items
    )
    return Report(
        title=("Pending pods: ", Span(f"{len(items) + len(pending.on_nodes):,}", "strong")),
        tone="bad" if is_bad else "good" if is_known else "warn",
        lead=_lead(summary(pending) if items else nothing_pending(pending), missing),
        short_lead=joined(
            [
                _lead(summary(pending, is_short=True) if items else nothing_pending(pending), missing),
                *absent,
            ],
            " ",
        ),
        facts=facts,
        short_facts=facts_in_words(pending) if items else "",
        counts=[Count(label.lower(), number, label in bad) for label, number in numbers.items()],
        page_facts=page_facts,
        sections=[
            Section("CHANGES", changes_in_words(pending), priority=_CHANGES),
            health_section(pending.cluster, pending.at, priority=_NODE_HEALTH),
            preemptions_section(
                pending.preemptions,
                pending.at,
                _PREEMPTIONS,
                [(each.pod, each.replaces) for each in pending.items if each.replaces is not None],
            ),
            missing_section(pending.missing_pods, () if items else pending.unread_owners, pending.at, _NOT_CREATED),
            *(
                [autoscaling_section(pending.autoscaling, pending.at, priority=_AUTOSCALER, names_pods=True)]
                if pending.autoscaling
                else []
            ),
            more_nodes_section(pending, _MORE_NODES),
            _fixes(pending),
            _table(pending),
            *(
                _group(group, number, [items[pod] for pod in group.pods], pending, options, labels)
                for number, group in enumerate(pending.groups, 1)
            ),
            _workloads(pending),
            on_nodes_section(pending.on_nodes, pending.at, _ON_NODES, is_alone=not items),
            resizes_section(pending.resizes, _ON_NODES),
            *assumption_sections(pending.assumptions),
            Section("NOTES", notes_in_words(pending), priority=_NOTES, aside=2, short=unknown),
        ],
        more=[("-v", "every pod in full"), ("-o wide", "nodes by reason, first remedies")] if items else [],
        command="pending",
        is_compact=True,
    )


def _lead(words: Words, missing: str) -> Phrase:
    """The pending pods, and the pods that were not created."""
    return (*phrase_of(words), *((" ", Span(missing, "bad")) if missing else ()))


def _workloads(pending: PendingPods) -> Section:
    """How many Workloads of Kueue wait, and how to see them."""
    counts = pending.workloads
    if not counts:
        return Section("KUEUE")
    waiting = f"{count(counts.pending, 'Workload')} {agree(counts.pending, 'is')} pending, {counts.admitted:,} admitted"
    command = f"kpreempt pending --algorithm {KUEUE} shows them"
    return Section("KUEUE", f"{waiting}; {command}", priority=_ON_NODES, is_inline=True)


def _table(pending: PendingPods) -> Section:
    """A row per kind of pod; repeated details are not repeated."""
    rows: list[list[Words]] = []
    pods = _alike(pending.items, is_brief=True)
    last: Phrase = ()
    for item, *others in pods:
        (outcome, nodes), (alone, node_alone) = turn_in_brief(item), format_outcome(item)
        node = node_alone if item.in_turn is None or item.in_turn.outcome is TurnOutcome.NOT_SERVED else nodes
        place = f"{item.position:,}" if item.position is not None else "-"
        named = (strong(item.pod), Span(f" +{len(others):,}" if others else "", "dim"))
        details = details_in_words(item, pending.at)
        is_repeated = bool(text_of(details)) and details == last
        shown = Span("as above", "dim") if is_repeated else details
        rows.append([place, named, f"{item.priority:,}", outcome, node, alone, shown])
        last = details
    titles = columns("#", "POD", "PRIO", "IN TURN", "NODE", "ALONE", "DETAILS", right=["#", "PRIO"])
    table = Table(titles, rows, noun="pod", has_details=True, numbers=[len(each) for each in pods])
    return Section(
        "PENDING", _ABOUT_ROWS if rows else "", [table], only="screen", priority=_PODS, reserved_lines=_MIN_ROWS
    )


def _fixes(pending: PendingPods) -> Section:
    """The first remedies, each with the pods that it helps, and the fact behind their rejection."""
    lacks_budgets = are_budgets_unread(pending.assumptions)
    groups: dict[str, list[PendingPod]] = {}
    for item in pending.items:
        if item.remedy_search is not None and item.outcome.stays_pending and item.state not in SHOWN_STATES:
            key = action(item.remedies[0]) if item.remedies else nothing_found(item.remedy_search)
            groups.setdefault(key, []).append(item)
    lines: list[list[Words]] = []
    for key, items in sorted(groups.items(), key=lambda group: -len(group[1])):
        remedies = items[0].remedies
        named: Phrase = (strong(items[0].pod), f" and {len(items) - 1:,} more" if items[1:] else "", ": ")
        words: Phrase = (*named, key)
        if remedies:
            each = " (each pod alone)" if len(items) > max(remedies[0].pods, 1) else ""
            words = (
                *named,
                *line(remedies[0]),
                ": ",
                *result(remedies[0], lacks_budgets=lacks_budgets, is_brief=True),
                each,
            )
        facts = (cause for cause in items[0].causes if cause.kind is not CauseKind.ROLLOUT_DEADLOCK)
        lines.append([words, *[cause_in_words(each) for each in facts][:1]])
    return Section(
        "FIX",
        blocks=[Listing(lines, noun="pod kind", is_whole=True)],
        only="screen",
        priority=_FIXES,
        is_inline=True,
        reserved_lines=FIRST_LINES,
        min_lines=FIRST_LINES,
    )


def _label(group: PendingGroup) -> tuple[str, Role]:
    words, style = outcome_in_brief(group.outcome, group.state)
    return words.upper(), style


def _with_cause(words: str, cause: str) -> str:
    """``3 pods unschedulable now (Insufficient cpu); preemption doesn't help``."""
    first, semicolon, rest = words.partition("; ")
    if not cause:
        return words
    return f"{first} ({cause}); {rest}" if semicolon else f"{words}: {cause}"


def _group(
    group: PendingGroup,
    number: int,
    items: Sequence[PendingPod],
    pending: PendingPods,
    options: RenderOptions,
    labels: Counter[str],
) -> Section:
    """The pods of a group, with what they have in common."""
    label, style = _label(group)
    words = _WORDS.get(group.outcome, "{} not scheduled")
    if group.outcome is Outcome.PREEMPTS and are_budgets_unread(pending.assumptions):
        words = "{} would preempt other pods; budgets were not read"
    if group.state is not None:
        words = _STATE_WORDS[group.state]
    elif group.permanently_unschedulable:
        words = f"{words}; {NO_NODE_FITS}"
    cause = group.cause if len(group.cause) <= _CAUSE_LENGTH else f"{group.cause[: _CAUSE_LENGTH - 1]}…"
    return Section(
        label,
        _with_cause(words.format(count(len(items), "pod")), group.cause),
        [Cards(_alike(items), partial(_card, pending=pending, options=options), noun="pod kind", is_main=True)],
        heading=f"{label.capitalize()}{f': {cause}' if cause and labels[label] > 1 else ''}",
        anchor=f"outcome-{number}",
        style=style,
        noun="cause",
    )


def _alike(items: Sequence[PendingPod], *, is_brief: bool = False) -> list[list[PendingPod]]:
    """Group pods of one owner that have the same state, outcome and victims."""
    rows: dict[tuple[object, ...], list[PendingPod]] = {}
    for item in items:
        what: tuple[object, ...] = (item.state, item.outcome, item.agreement, item.message)
        if is_brief:
            turn = item.in_turn
            became = (turn.outcome, *turn.nodes, *turn.victims) if turn is not None else ()
            what = (item.state if item.state in SHOWN_STATES else item.outcome, item.cause, became)
        key = (
            what,
            item.owner or item.pod,
            item.pod.partition("/")[0],
            item.priority,
            item.nominated_node_name,
            *item.nodes,
            *(victim.pod for each in item.victims.values() for victim in each),
        )
        rows.setdefault(key, []).append(item)
    return list(rows.values())


def _card(row: Sequence[PendingPod], pending: PendingPods, options: RenderOptions) -> Section:
    """The first of several similar pods: its position and priority, its outcome, and its details."""
    item = row[0]
    places = [each.position for each in row if each.position is not None]
    place = "" if not places else f"#{places[0]:,}, " if len(places) == 1 else f"#{places[0]:,} to {places[-1]:,}, "
    class_name = f' "{item.priority_class_name}"' if item.priority_class_name else ""
    more = f" and {len(row) - 1:,} more of {item.owner}" if len(row) > 1 else ""
    claims = join_names(item.claims, limit=len(item.claims) if options.verbose else _PODS_SHOWN)
    details = list(_details(row, pending, options))
    return Section(
        item.pod,
        (Span(f"{place}priority {item.priority:,}{class_name}", "dim"), more),
        [
            Sentence(describe_outcome(item) if item.state != PendingState.WAITS_FOR_VICTIMS else ()),
            Sentence(state_in_words(item, pending.at)),
            Sentence(
                ("in its turn, it ", *turn_in_words(item.in_turn, pending.served.runs))
                if item.in_turn is not None
                else ()
            ),
            Listing([[leaving_in_words(each, pending.at)] for each in item.waiting_for], noun="pod"),
            Sentence(f"claims: {claims}" if item.claims else ""),
            *_facts_and_remedies(item, pending),
            Sentence(Span(agreement_in_words(item), "dim")),
            *([Fold("Details", [Rows(details)])] if details else []),
        ],
    )


def _facts_and_remedies(item: PendingPod, pending: PendingPods) -> list[Block]:
    """Facts behind the rejections, and the remedies, each with how to try it."""
    if item.remedy_search is None or item.state in SHOWN_STATES:
        return []
    lacks_budgets = are_budgets_unread(pending.assumptions)
    facts: list[list[Words]] = [[f"why: {cause_in_words(each)}"] for each in item.causes]
    lines: list[list[Words]] = [
        [
            ("fix: " if not number else "or ", *line(each), ": ", *result(each, lacks_budgets=lacks_budgets)),
            *(Span(command, "code") for command in commands(each)),
        ]
        for number, each in enumerate(item.remedies)
    ]
    rest = not_tried(item.remedy_search) if lines else f"fix: {nothing_found(item.remedy_search)}"
    return [Listing(facts, noun="fact"), Listing(lines, noun="remedy"), Sentence(Span(rest, "dim"))]


def _details(row: Sequence[PendingPod], pending: PendingPods, options: RenderOptions) -> Iterable[tuple[str, Words]]:
    """Other facts as terms with their values; ages count up to the time of the answer."""
    item, at = row[0], pending.at
    if len(row) > 1:
        shown = len(row) if options.verbose else _PODS_SHOWN
        yield "pods", join_names([each.pod for each in row], limit=shown)
    if item.owner:
        yield "owner", name(item.owner)
    if item.created is not None:
        age = f" ({format_since(item.created, at)} ago)" if at is not None and at >= item.created else ""
        yield "created", f"{format_time(item.created)}{age}"
    if any(item.requests.values()):
        amounts = (f"{what} {format_amount(what, amount)}" for what, amount in item.requests.items() if amount)
        yield "requests", ", ".join(amounts)
    if item.last_attempt is not None:
        yield "last attempt", format_time(item.last_attempt)
    if len(item.nodes) > 1:
        yield "nodes", join_names(item.nodes, limit=len(item.nodes) if options.verbose else _NODES_SHOWN)
    nodes = len(item.victims) if options.verbose else _NODES_SHOWN
    for node, pods in list(item.victims.items())[:nodes]:
        victims = len(pods) if options.verbose else _VICTIMS_SHOWN
        more = f"; and {count(len(pods) - victims, 'more pod')}" if len(pods) > victims else ""
        yield "victims", ("on ", name(node), ": ", *joined(map(_victim, pods[:victims]), "; "), more)
    if len(item.victims) > nodes:
        yield "victims", f"… and the victims on {count(len(item.victims) - nodes, 'more node')}"
    if item.alternatives is not None:
        lines = alternatives_in_lines(item.alternatives)
        for number, line in enumerate(lines if options.verbose else lines[:_OUTCOMES_SHOWN]):
            yield "" if number else "tied pods", line
    if item.reason:
        yield "reason", item.reason
    agreement = agreement_in_words(item)
    if item.scheduler_message and item.scheduler_message not in agreement:
        yield "scheduler message", item.scheduler_message
    if item.message and item.message not in agreement and item.agreement != Agreement.SAME:
        yield "expected now", item.message


def _victim(victim: Victim) -> Phrase:
    leaving = ", terminating" if victim.terminating else ""
    budgets: Phrase = (", budget ", *format_budgets(victim.budgets)) if victim.budgets else ()
    return (name(victim.pod), f" priority {victim.priority:,}{leaving}", *budgets)


_COLUMNS = ("#", "POD", "PRIORITY", "OUTCOME", "NODE", "VICTIMS OR CAUSE", "NODES BY REASON", "FIRST REMEDY")
_ALIGNS = ("right", "left", "right", "left", "left", "left", "left", "left")
_NONE = "-"


def render_wide(pending: PendingPods, _options: RenderOptions) -> str:
    """The summary, a row per pod, and the facts behind the answer."""
    unknown = filter(None, [absent_sentence(pending.assumptions)])
    missing = list(filter(None, [summarize(pending.missing_pods)]))
    missing += [text_of(in_a_line(each, pending.at)) for each in pending.missing_pods]
    if not pending.items:
        answer = [
            nothing_pending(pending),
            *missing,
            *unknown,
            *(["", *table_on_nodes(pending.on_nodes, pending.at)] if pending.on_nodes else []),
        ]
        return "".join(f"{printable(each)}\n" for each in answer)
    from tabulate import tabulate  # noqa: PLC0415 - slow to import

    rows = [[printable(cell) or _NONE for cell in _cells(item, pending)] for item in pending.items]
    table = tabulate(rows, headers=_COLUMNS, tablefmt="plain", colalign=_ALIGNS, disable_numparse=True)
    notes = f"{facts_in_words(pending)} · each pod is evaluated as if it were next"
    if pending.assumptions:
        notes += f" · {count(len(pending.assumptions), 'assumption')} (-v)"
    lines = (line.rstrip() for line in table.splitlines())
    heading = [text_of(summary(pending)), *missing, *unknown, *filter(None, [text_of(more_nodes_in_words(pending))])]
    on_nodes = ["", *table_on_nodes(pending.on_nodes, pending.at)] if pending.on_nodes else []
    return "\n".join([*map(printable, heading), "", *lines, *on_nodes, "", printable(notes)]) + "\n"


def _cells(item: PendingPod, pending: PendingPods) -> tuple[str, ...]:
    outcome, node = format_outcome(item)
    is_rejected = item.state not in SHOWN_STATES and not item.victims and item.outcome != Outcome.LANDS
    cause = text_of(details_in_words(item, pending.at))
    if is_rejected and item.reasons:
        # The reasons have their own column.
        cause = join_names(item.claims) if item.claims else NO_NODE_FITS if item.permanently_unschedulable else ""
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in item.reasons.items())
    return (
        f"{item.position:,}" if item.position is not None else "",
        item.pod,
        f"{item.priority:,}",
        outcome.text,
        node,
        cause,
        reasons,
        _first_remedy(item),
    )


def _first_remedy(item: PendingPod) -> str:
    """The first remedy and what it brings, or why there is none."""
    if item.state == PendingState.GATED:
        return f"remove {'gate' if len(item.gates) == 1 else 'gates'} {join_names(item.gates)}"
    if not item.outcome.stays_pending or item.state in SHOWN_STATES:
        return ""
    search = item.remedy_search
    if search is None:
        return "not searched: time limit reached"
    if not item.remedies:
        return nothing_found(search)
    first = item.remedies[0]
    return f"{action(first)}: {text_of(result(first))}"
