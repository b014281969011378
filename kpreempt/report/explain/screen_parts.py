"""The sections of the answer on one screen, each some lines beside its label; none where there is nothing to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kpreempt.report.amounts import agree, count, plural
from kpreempt.report.closing_section import add_absent_kinds
from kpreempt.report.durations import format_duration
from kpreempt.report.evidence import describe, describe_shortage, join_names, refusal_of
from kpreempt.report.explain.chance import chance_of_volumes, is_sampled_preemption
from kpreempt.report.explain.changes import (
    describe_answer,
    describe_changes,
    describe_one_more_node,
    join_options,
    nothing_found,
)
from kpreempt.report.explain.equal_pods import INEXACT, outcome_in_words
from kpreempt.report.explain.headline import acted_on, answer, for_many, tie_in_event
from kpreempt.report.explain.screen_frame import COLUMN, Room, Section, beside, clipped
from kpreempt.report.layout import Line, Page, Phrase, Span, plain, strong, width_of
from kpreempt.report.options import RenderOptions
from kpreempt.scheduler_table import row_of
from kpreempt.verdict import (
    Assumption,
    AssumptionKind,
    BudgetUse,
    Outcome,
    PodChoice,
    Proposal,
    ProposalSearch,
    Status,
    Verdict,
    Victim,
)
from kpreempt.verdict.unread import are_budgets_unread

_NAMES_SHOWN = 4
_BRIEF_NAMES = 3
_CLAUSES_SHOWN = 5
# So many kinds of refusal are named, as few as it takes to fit.
_KINDS_NAMED = (8, 5, 3, 2, 1, 0)
_SCORES_SHOWN = 3
_PLUGINS_SHOWN = 3
_OUTCOMES_SHOWN = 2
_CALLS_SHOWN = 2
_INDENT = 2
# With so few lines for changes there is none left for one more node, or for the option that adds it.
_NO_ROOM_FOR_NODE = 2
_NO_ROOM_FOR_OPTION = 4
_WIDEST_NAME = 28

_Row = tuple[Phrase, Phrase, Phrase, Phrase]


def sentence(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """What becomes of the pod, and an empty line."""
    is_first = verdict.workload is not None or verdict.capacity is not None
    for kinds in _KINDS_NAMED:
        page = Page(options.width)
        page.paragraph(*(Span("FIRST POD ", "heading"),) * is_first, *answer(verdict, kinds=kinds))
        if len(page.lines) <= room.sentence:
            break
    unknown = Page(options.width)
    add_absent_kinds(unknown, verdict.assumptions)
    return [*clipped(page.lines, room.sentence, options.width), *unknown.lines, ()]


def victims(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """Who goes: priority, owner, and what it takes from the budgets."""
    nodes = _nodes_with_victims(verdict)
    if not nodes:
        return []
    page = _page(options)
    gone = verdict.victims[nodes[0]]
    choices = _certain_choices(verdict)
    if len(nodes) > 1:
        page.paragraph("on ", strong(nodes[0]), f", if it is picked of {len(nodes):,} equal nodes:")
    for choice in choices:
        words = f"{choice.count:,} of these {len(choice.pods):,}, equal in priority and start time: "
        page.paragraph(words, join_names(choice.pods, limit=_NAMES_SHOWN), hanging=2)
    if verdict.alternatives is not None and not choices:
        page.paragraph(Span("most likely; the order of equal pods decides, which only the scheduler knows:", "warn"))
    rows = [_row(victim, verdict) for victim in gone[: room.victims]]
    lines: list[Line] = []
    if not page.fits(rows) and Page(options.width).fits(rows, indent=_INDENT):
        page.paragraph(*_how_many(gone))
        lines = beside("VICTIMS", page)
        page = Page(options.width)
        page.table(rows, aligns=("left",) * 4, indent=_INDENT)
        lines += page.lines
        page = _page(options)
    else:
        _add_victims(page, rows)
    if (rest := len(gone) - room.victims) > 0:
        page.paragraph(Span(f"… and {count(rest, 'more victim')} (-v)", "dim"))
    if verdict.alternatives is not None and not choices:
        _add_other_outcomes(page, verdict)
    return clipped([*lines, *beside("" if lines else "VICTIMS", page)], 2 * room.victims + 1, options.width)


def _how_many(gone: Sequence[Victim]) -> Phrase:
    seconds = max((victim.grace_period_seconds for victim in gone if not victim.terminating), default=0)
    return (count(len(gone), "pod"), f", up to {format_duration(seconds)} to stop" if seconds else "")


def _nodes_with_victims(verdict: Verdict) -> list[str]:
    """Of nodes that tie, first the one that the scheduler's message is about."""
    nodes = [node for node in verdict.nominated_nodes if verdict.victims.get(node)]
    return sorted(nodes, key=lambda node: node != acted_on(verdict))


def victims_in_brief(verdict: Verdict) -> str:
    """The pods that go, after the sentence."""
    nodes = _nodes_with_victims(verdict)
    if not nodes:
        return ""
    likely = "most likely " if verdict.alternatives is not None else ""
    where = f" (on {nodes[0]})" if len(nodes) > 1 else ""
    names = join_names([victim.pod for victim in verdict.victims[nodes[0]]], limit=_BRIEF_NAMES)
    return plain((f" Victims: {likely}{names}{where}.",))


def _certain_choices(verdict: Verdict) -> Sequence[PodChoice]:
    """Among which pods the order of equal ones decides, where it decides nothing else."""
    told = verdict.alternatives
    if told is None or not told.exact or told.untold or len(told.outcomes) != 1:
        return ()
    return told.outcomes[0].choices


def _add_victims(page: Page, rows: Sequence[_Row]) -> None:
    without_owner = [(*row[:2], row[3]) for row in rows]
    if page.fits(rows):
        page.table(rows, aligns=("left",) * 4)
    elif page.fits(without_owner):
        page.table(without_owner, aligns=("left",) * 3)
    else:
        for pod, priority, owner, budgets in rows:
            page.paragraph(*pod)
            page.paragraph(*priority, " · ", *owner, " · ", *budgets, indent=2, hanging=2)


def _row(victim: Victim, verdict: Verdict) -> _Row:
    budgets = _budgets(victim, verdict)
    if victim.terminating:
        budgets = (*budgets, ", terminating")
    if verdict.alternatives is not None and not verdict.surely_evicts(victim.pod):
        budgets = (*budgets, Span(" (most likely)", "warn"))
    return (strong(victim.pod),), (f"priority {victim.priority:,}",), (victim.owner or "no owner",), budgets


def _budgets(victim: Victim, verdict: Verdict) -> Phrase:
    if are_budgets_unread(verdict.assumptions):
        return (Span("budgets not read", "warn"),)
    if not victim.budgets:
        return ("no budget" if row_of(verdict.algorithm).reads_budgets else "budgets not asked",)
    return tuple(part for number, use in enumerate(victim.budgets) for part in _use(use, number))


def _use(use: BudgetUse, number: int) -> Phrase:
    """``shop/web allows 2→1``: a budget's allowed disruptions before and after."""
    text = f"{use.budget} allows {use.allowed:,}→{use.left:,}"
    return (", " if number else "", Span(f"{text} VIOLATED", "bad") if use.left < 0 else Span(text))


def _add_other_outcomes(page: Page, verdict: Verdict) -> None:
    told = verdict.alternatives
    if told is None:
        return
    likely = {node: [victim.pod for victim in gone] for node, gone in verdict.victims.items()}
    others = [each for each in told.outcomes if not (each.node in likely and each.allows(likely[each.node]))]
    for other in others[:_OUTCOMES_SHOWN]:
        page.paragraph("or ", *outcome_in_words(other), hanging=3)
    if (rest := max(len(others) - _OUTCOMES_SHOWN, 0) + told.untold) > 0:
        page.paragraph(Span(f"… and {count(rest, 'more outcome')} (-v)", "dim"))
    if not told.exact:
        page.paragraph(Span(INEXACT, "warn"))


def aftermath(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """What follows, where that was asked for."""
    simulation = verdict.aftermath
    if simulation is None:
        return []
    from kpreempt.report.simulation_words import simulation_summary, tell_in_short  # noqa: PLC0415 - few questions go on

    page = _page(options)
    page.paragraph(*simulation_summary(simulation))
    lines = tell_in_short(simulation.steps)
    width = max((len(line.clock) for line in lines), default=0) + 2
    for line in lines[: room.steps]:
        page.labelled(Span(line.clock, "dim"), *line.words, column=max(width, 3), hanging=2)
    if rest := max(len(lines) - room.steps, 0):
        page.paragraph(Span(f"… and {count(rest, 'more step')} (-v)", "dim"))
    return clipped(beside("AFTERMATH", page), 2 * room.steps + 2, options.width)


def why_here(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """Which rule of the choice, or which scores, decide for the node."""
    page = _page(options)
    if verdict.candidates and verdict.nominated_nodes:
        page.paragraph(*_rule(verdict))
    elif verdict.feasible_nodes or verdict.scores:
        from kpreempt.report.explain.choice import describe_scores  # noqa: PLC0415 - most questions preempt

        page.paragraph(*describe_scores(verdict))
        if len(verdict.scores) > 1 and verdict.plugin_scores and verdict.chosen_nodes:
            _add_scores(page, verdict)
    else:
        return []
    return clipped(beside("WHY HERE", page), room.elsewhere + 1, options.width)


def devices(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """The devices that the pod gets for its claims, on the first of nodes that tie."""
    if not verdict.devices:
        return []
    from kpreempt.report.explain.devices import describe_devices, told_nodes  # noqa: PLC0415 - few pods have devices

    nodes = told_nodes(verdict)
    if not nodes:
        return []
    page = _page(options)
    if len(nodes) > 1:
        page.paragraph("on ", strong(nodes[0]), f", if it is picked of {len(nodes):,} equal nodes:")
    for line in describe_devices(verdict.devices[nodes[0]]):
        page.paragraph(*line, hanging=2)
    return clipped(beside("DEVICES", page), room.elsewhere, options.width)


def _rule(verdict: Verdict) -> Phrase:
    """The candidate, and the rule that leaves it alone: ``lowest sum of priorities (rule 3 of 5)``."""
    from kpreempt.report.explain.choice import describe_choice, name_of_rule  # noqa: PLC0415 - not of pods that land

    tied = (verdict.selection.tied if verdict.selection else None) or verdict.nominated_nodes
    rounds = verdict.selection.rounds if verdict.selection else []
    among = f" of {count(len(verdict.candidates), 'candidate')}: "
    rules = row_of(verdict.algorithm).choice_rules
    if len(verdict.candidates) == 1 or not rounds:
        return describe_choice(verdict)
    if len(tied) > 1:
        equal = f"equal by all {rules} rules; "
        return (
            strong(join_names(tied)),
            among,
            equal,
            Span("the scheduler picks one at random", "warn"),
        )
    by_chance = tuple(Span(f"; {words}", "warn") for words in _doubts(verdict))
    return (strong(tied[0]), among, f"{name_of_rule(rounds[-1].criterion)} (rule {len(rounds)} of {rules})", *by_chance)


def _doubts(verdict: Verdict) -> list[str]:
    """What the choice of one candidate hangs on, besides the rules."""
    doubts = ["if the search reaches it"] if is_sampled_preemption(verdict) else []
    if verdict.alternatives is not None and len({each.node for each in verdict.alternatives.outcomes}) > 1:
        doubts.append("in the likely order of equal pods")
    return doubts + (["in this order of equal volumes"] if chance_of_volumes(verdict) else [])


def _add_scores(page: Page, verdict: Verdict) -> None:
    """The best totals, and the plugins that set the first node off from the next."""
    ranked = sorted(verdict.scores, key=lambda node: (node not in verdict.chosen_nodes, -verdict.scores[node]))
    page.paragraph(", ".join(f"{node} {verdict.scores[node]:,}" for node in ranked[:_SCORES_SHOWN]))
    best, rest = ranked[0], [node for node in ranked if node not in verdict.chosen_nodes]
    if not rest:
        return
    mine, next_best = (verdict.plugin_scores.get(node, {}) for node in (best, rest[0]))
    lead = {plugin: mine.get(plugin, 0) - next_best.get(plugin, 0) for plugin in (*mine, *next_best)}
    decisive = sorted((plugin for plugin in lead if lead[plugin]), key=lambda plugin: -abs(lead[plugin]))
    if decisive:
        told = ", ".join(f"{plugin} {lead[plugin]:+,}" for plugin in decisive[:_PLUGINS_SHOWN])
        page.paragraph(f"against {rest[0]}: {told}", hanging=2)


def refused(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """For a pod that lands nowhere: the refusals by reason, with what the nearest node lacks."""
    if verdict.outcome not in (Outcome.NEVER_LANDS, Outcome.UNCERTAIN) or verdict.candidates or verdict.feasible_nodes:
        return []
    page = _page(options)
    if verdict.pre_filter is not None:
        status = verdict.pre_filter
        page.paragraph(strong(status.message), Span(f"  {status.plugin}", "dim"))
        if seen := describe(status.detail):
            page.paragraph(seen, indent=2, hanging=2)
        return clipped(beside("REFUSED", page), room.groups, options.width)
    from kpreempt.report.explain.failures import group_by_reasons, in_reasons  # noqa: PLC0415 - others are told by clauses

    groups = group_by_reasons(verdict.filter)
    if not groups:
        return []
    digits = len(f"{max(len(group.nodes) for group in groups):,}")
    rows = []
    for group in groups[: room.groups]:
        cause = group.causes[0]
        row = _page(options)
        seen = f"  {cause.nodes[0]}{f': {cause.phrase}' if cause.phrase else ''}"
        reasons = strong(group.reasons or str(group.code) or group.plugin)
        row.labelled(f"{len(group.nodes):,}".rjust(digits), reasons, seen, column=digits + 2, hanging=2)
        rows.append(row.lines)
    # Each reason counts for more than all that was seen of one.
    each = len(max(rows, key=len)) if sum(map(len, rows)) <= room.groups + 1 else 1
    page.lines = [line for row in rows for line in clipped(row, each, page.width)]
    if rest := groups[room.groups :]:
        told = [f"{in_reasons(rest, kinds)} (-v)" for kinds in _KINDS_NAMED]
        page.paragraph(Span(next((words for words in told if width_of(words) <= page.width), told[-1]), "dim"))
    return clipped(beside("REFUSED", page), room.groups + 2, options.width)


def dry_run(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """For a pod that lands nowhere: that preemption was tried, and what was still missing where it was nearest."""
    if verdict.outcome != Outcome.NEVER_LANDS or verdict.eligibility is None or not verdict.eligibility.eligible:
        return []
    if not verdict.dry_run:
        return []
    from kpreempt.report.explain.dry_run import describe_dry_run  # noqa: PLC0415 - not of pods that land
    from kpreempt.report.explain.failures import find_nearest  # noqa: PLC0415

    page = _page(options)
    nearest = find_nearest(verdict.dry_run)
    node = nearest[0].nodes[0] if nearest else next(iter(verdict.dry_run))
    told = f"; nearest {node}: {describe_shortage(verdict.dry_run[node])}"
    page.paragraph(*describe_dry_run(verdict), told)
    return clipped(beside("DRY RUN", page), room.elsewhere, options.width)


def elsewhere(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """The other candidates, and the nodes that are out with why."""
    page = _page(options)
    if verdict.candidates and verdict.nominated_nodes:
        _add_candidates(page, verdict)
        from kpreempt.report.explain.failures import split_by_hope  # noqa: PLC0415 - where candidates are

        _, hopeless = split_by_hope(verdict)
        if hopeless:
            page.paragraph(f"preemption doesn't help: {in_clauses(hopeless)}", hanging=2)
    elif verdict.feasible_nodes:
        failed = {node: status for node, status in verdict.filter.items() if not status.is_success}
        if failed:
            eliminated = f"{len(failed):,} of {count(len(verdict.filter), 'node')} eliminated"
            clauses = {refusal_of(status) for status in failed.values()}
            is_one = len(clauses) == 1 and len(failed) > 1
            why = f", which {for_many(*clauses)}" if is_one else f": {in_clauses(failed)}"
            page.paragraph(eliminated, why, hanging=2)
    return clipped(beside("ELSEWHERE", page), room.elsewhere, options.width)


def _add_candidates(page: Page, verdict: Verdict) -> None:
    others = [each for each in verdict.candidates if each.node not in verdict.nominated_nodes]
    if others:
        sizes = sorted({len(each.victims) for each in others})
        broken = sorted({each.num_pdb_violations for each in others})
        named = f"{others[0].node} is a candidate" if len(others) == 1 else f"{len(others):,} candidates"
        violations = f", {_range(broken, 'budget violation')}" if any(broken) else ""
        page.paragraph(f"{named} with {_range(sizes, 'victim')}{violations}", hanging=2)
    # Of a node that no plugin refuses the scheduler says that it has nobody to preempt.
    still = {node: status for node, status in verdict.dry_run.items() if status.plugin}
    if still:
        page.paragraph(f"{in_clauses(still)} even without lower-priority pods", hanging=2)
    if nobody := [node for node in verdict.dry_run if node not in still]:
        page.paragraph(f"{join_names(nobody)}: {verdict.dry_run[nobody[0]].message or 'no reason given'}", hanging=2)


def in_clauses(statuses: Mapping[str, Status]) -> str:
    """What nodes do or are that refuse the pod, the most frequent first: ``node-f is cordoned, 2 are too full``."""
    nodes: dict[str, list[str]] = {}
    for node, status in statuses.items():
        nodes.setdefault(refusal_of(status), []).append(node)
    ranked = sorted(nodes.items(), key=lambda each: -len(each[1]))
    told = [
        f"{named[0]} {clause}" if len(named) == 1 else f"{len(named):,} {for_many(clause)}"
        for clause, named in ranked[:_CLAUSES_SHOWN]
    ]
    if rest := sum(len(named) for _, named in ranked[_CLAUSES_SHOWN:]):
        told.append(f"{rest:,} more {agree(rest, 'refuses')} it")
    return ", ".join(told)


def _range(numbers: Sequence[int], noun: str) -> str:
    low, high = numbers[0], numbers[-1]
    return count(low, noun) if low == high else f"{low:,} to {high:,} {plural(noun)}"


def extenders(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """What extenders said: those that fail, else the first."""
    if not verdict.extender_calls:
        return []
    from kpreempt.report.explain.extenders import describe_call  # noqa: PLC0415 - few schedulers have them

    page = _page(options)
    calls = sorted(verdict.extender_calls, key=lambda call: not call.error)
    for call in calls[:_CALLS_SHOWN]:
        page.paragraph(*describe_call(call), hanging=2)
    if rest := len(calls[_CALLS_SHOWN:]):
        page.paragraph(Span(f"… and {count(rest, 'more call')} (-v)", "dim"))
    return clipped(beside("EXTENDERS", page), room.elsewhere, options.width)


def event(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """The scheduler's message, word for word."""
    if not verdict.message:
        return []
    page = _page(options)
    page.paragraph(verdict.message)
    if said := tie_in_event(verdict):
        page.paragraph(Span(said, "dim"))
    return clipped(beside("EVENT", page), room.event, options.width)


def instead(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """The changes with which the pod lands, or with which it preempts nobody, and one more node where there is room."""
    changes = proposed(verdict.proposals, verdict.proposal_search, verdict, options, room)
    more = verdict.one_more_node
    if more is None or not (more.kinds or more.not_sought) or (changes and room.changes <= _NO_ROOM_FOR_NODE):
        return changes
    page = _page(options)
    page.paragraph("or " if changes and more.kinds else "", *describe_one_more_node(more, widest=_WIDEST_NAME))
    told = clipped(page.lines, 1, options.width - COLUMN)
    tried = Page(page.width)
    tried.paragraph(Span(join_options(more.options), "dim"), indent=2)
    if more.options and len(tried.lines) == 1 and room.changes > _NO_ROOM_FOR_OPTION:
        told += tried.lines
    page.lines = told
    return [*changes, *beside("" if changes else "INSTEAD", page)]


def proposed(
    proposals: Sequence[Proposal],
    search: ProposalSearch | None,
    verdict: Verdict,
    options: RenderOptions,
    room: Room,
) -> list[Line]:
    """The first of the changes with the options that try it, and the next as far as there is room."""
    page = _page(options)
    if not proposals:
        if search is None:
            return []
        page.paragraph(nothing_found(search))
        return clipped(beside("INSTEAD", page), 2, options.width)
    lacks_budgets = are_budgets_unread(verdict.assumptions)
    shown = 0
    for proposal in proposals:
        brings = describe_answer(proposal, lacks_budgets=lacks_budgets)
        lines = Page(page.width)
        lines.paragraph("or " if shown else "", *describe_changes(proposal.changes), ": ", *brings, hanging=2)
        if shown and len(page.lines) + len(lines.lines) > room.changes:
            break
        page.lines += lines.lines if shown else clipped(lines.lines, room.changes, page.width)
        tried = Page(page.width)
        tried.paragraph(Span(join_options(proposal.options), "dim"), indent=2, hanging=2)
        # Half an option helps nobody.
        is_whole = all(width_of(plain(line)) <= page.width for line in tried.lines)
        if not shown and is_whole and len(page.lines) + len(tried.lines) <= room.changes:
            page.lines += tried.lines
        shown += 1
    if rest := len(proposals) - shown:
        page.paragraph(Span(f"… and {count(rest, 'more change')} (-v)", "dim"))
    return beside("INSTEAD", page)


def assumed(verdict: Verdict, options: RenderOptions, room: Room) -> list[Line]:
    """What the answer rests on without evaluating it: how much, and the weightiest of it; and files without objects."""
    others = [each for each in verdict.assumptions if not each.lists_files]
    lines: list[Line] = []
    if others:
        first = min(others, key=_weight)
        subject = " ".join(part for part in (first.subject, first.field) if part)
        several = f"{len(others):,} things (-v); the first: " if len(others) > 1 else ""
        page = _page(options)
        page.paragraph(several, f"{subject}: " if subject else "", first.message)
        lines = clipped(beside("ASSUMED", page, "warn"), room.assumed, options.width)
    if listed := [each for each in verdict.assumptions if each.lists_files]:
        page = _page(options)
        for each in listed:
            page.paragraph(f"{each.subject}: {each.message}", most=2)
        lines += clipped(beside("FILES", page), room.assumed, options.width)
    return lines


def _weight(assumption: Assumption) -> bool:
    """What only informs, or stands above, comes last."""
    return assumption.kind in (AssumptionKind.TOLD, AssumptionKind.NOTE, AssumptionKind.ABSENT)


def _page(options: RenderOptions) -> Page:
    return Page(options.width - COLUMN)


# All that may be told of a verdict, in order; around them stand the sentence, the event and what the answer rests on.
SENTENCE: Section = ("sentence", sentence)
SECTIONS: tuple[Section, ...] = (
    ("victims", victims),
    ("steps", aftermath),
    ("elsewhere", devices),
    ("elsewhere", why_here),
    ("groups", refused),
    ("elsewhere", dry_run),
    ("elsewhere", elsewhere),
    ("elsewhere", extenders),
)
EVENT: Section = ("event", event)
INSTEAD: Section = ("changes", instead)
ASSUMED: Section = ("assumed", assumed)
