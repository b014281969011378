"""The dry run of preemption, the candidates with their reprieves, and the victims.

Also the report on one node: every filter, the dry run on it, and its place in the choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kpreempt.model.meta import grouped
from kpreempt.report.amounts import agree, count, format_duration, format_since, plural
from kpreempt.report.blocks import (
    Block,
    Cards,
    Column,
    Listing,
    Phrase,
    Rows,
    Section,
    Sentence,
    Span,
    Table,
    Words,
    columns,
    joined,
    phrase_of,
    strong,
)
from kpreempt.report.evidence import bare_name, describe, describe_shortage, format_budgets, join_names
from kpreempt.report.explain.chance import INEXACT, possible_outcome
from kpreempt.report.explain.choice import format_value, name_of_rule, order_by_survival
from kpreempt.report.explain.headline import acted_on
from kpreempt.report.explain.rejections import (
    find_nearest,
    in_clauses,
    is_crowd,
    may_be_fixed,
    rejection_list,
    split_by_hope,
)
from kpreempt.report.options import RenderOptions, reference_time
from kpreempt.report.remedies import remedies_section
from kpreempt.scheduler_table import row_of
from kpreempt.verdict import SUCCESS, Candidate, NodeEvaluation, NodeReport, Reprieve, Status, Verdict, Victim
from kpreempt.verdict.details import AffinityConflict
from kpreempt.verdict.unread import are_budgets_unread

_STEPS_SHOWN = 5
_STEPS_SHOWN_OF_CROWD = 3
_COSTS_SHOWN = 2
_NODES_SHOWN = 2
_VICTIMS_SHOWN = 10
_VICTIMS_SHOWN_OF_CROWD = 6
_NAMES_SHOWN = 4
_BRIEF_NAMES = 3
_VICTIMS, _DRY_RUN, _OTHER_NODES = 90, 65, 60


def eligibility_section(verdict: Verdict) -> Section:
    """``2 ELIGIBLE``: whether the pod may preempt at all, and why."""
    eligibility, policy, node = verdict.eligibility, verdict.pod.preemption_policy, verdict.pod.nominated_node_name
    lead: Phrase = ()
    if eligibility is not None and not eligibility.eligible:
        lead = (Span("no", "bad"), f": {eligibility.reason}")
    elif eligibility is not None:
        # Only old schedulers let such a pod preempt.
        ignored = ", which this version ignores" if policy == "Never" else ""
        waits = f", and no terminating pod on {node} makes it wait" if node else ""
        lead = (Span("yes", "good"), f": preemptionPolicy {policy}{ignored}{waits}")
    return Section("2 ELIGIBLE", lead, heading="May the pod preempt?", is_reasoning=True)


def dry_run_sections(verdict: Verdict, options: RenderOptions) -> list[Section]:
    """``3 DRY RUN``: the candidates with the steps that select their victims, and the nodes on which evictions fail.

    On a screen: ``DRY RUN`` for a pod that lands nowhere, and ``OTHER NODES`` with the other candidates and the rest.
    """
    ordered = order_by_survival(verdict)
    is_short = len(ordered) <= 3 and sum(len(candidate.steps) for candidate in ordered) <= 2 * _STEPS_SHOWN
    in_full = len(ordered) if is_short or options.verbose else 1
    draw = partial(candidate_section, verdict=verdict, options=options)
    blocks: list[Block] = [Cards(ordered, draw, noun="candidate", shown=in_full, is_summarized=True)]
    blocks.append(Sentence(_summary(ordered[in_full:], verdict)))
    if verdict.dry_run:
        owned = "their lower-priority pods" if not verdict.eviction_rule else _evictable(verdict)
        blocks.append(Sentence(Span(f"still don't fit without {owned}:", "dim")))
        blocks.append(rejection_list(verdict.dry_run, options, causes=0 if is_crowd(verdict, options) else 3))
    is_tried = verdict.eligibility is not None and verdict.eligibility.eligible
    tried = _tried(verdict) if is_tried else ()
    nearest: Phrase = ()
    if tried and verdict.outcome.stays_pending and verdict.dry_run:
        found = find_nearest(verdict.dry_run)
        node = found[0].nodes[0] if found else next(iter(verdict.dry_run))
        nearest = (*tried, f"; nearest {node}: {describe_shortage(verdict.dry_run[node])}")
    return [
        Section(
            "3 DRY RUN",
            tried,
            blocks if tried else [],
            heading="Preemption dry run",
            is_reasoning=True,
            priority=_DRY_RUN,
            aside=2,
            short=Section("DRY RUN", nearest),
        ),
        Section(
            "OTHER NODES",
            blocks=[Listing(_other_nodes(verdict))],
            only="screen",
            priority=_OTHER_NODES,
            reserved_lines=2,
        ),
    ]


def _evictable(verdict: Verdict) -> str:
    return f"the pods it may preempt under {verdict.eviction_rule}" if verdict.eviction_rule else "lower-priority pods"


def _tried(verdict: Verdict) -> Phrase:
    """How many nodes the dry run covered, and how many are candidates."""
    tried = len(verdict.potential_nodes)
    if not tried and verdict.pre_filter is not None and may_be_fixed(verdict.pre_filter.code):
        return (Span("no node was tried: preemption ended with an error", "bad"),)
    if not tried:
        return (Span("no node to try: preemption doesn't help on any", "bad"),)
    found = len(verdict.candidates)
    return (
        f"{count(tried, 'node')} tried without {_evictable(verdict)}: ",
        Span(count(found, "candidate"), "good" if found else "bad"),
    )


def candidate_section(candidate: Candidate, verdict: Verdict, options: RenderOptions) -> Section:
    """A candidate with its cost and victims, and the steps that select the victims if they were recorded."""
    likely = "This assumes the most likely order of tied pods; the order in the scheduler's cache decides."
    now = reference_time(verdict, options)
    steps = Table(
        columns("POD", "PRIORITY", "RUNNING", "REPRIEVE ORDER", right=["PRIORITY"]),
        [
            [step.pod, f"{step.priority:,}", format_since(step.start_time, now), _reprieve(step)]
            for step in candidate.steps
        ],
        noun="pod",
        caption=f"Each pod is reprieved if {candidate.node} still has room for it",
        shown=_STEPS_SHOWN_OF_CROWD if is_crowd(verdict, options) else _STEPS_SHOWN,
    )
    nominated: Phrase = (Span("nominated", "good"), ": ") if candidate.node in verdict.nominated_nodes else ()
    victims = f" ({join_names(candidate.victims, limit=_BRIEF_NAMES)})" if candidate.victims else ""
    cost, *budgets = describe_cost(candidate, verdict)
    blocks: list[Block] = [Sentence(Span(likely if candidate.outcomes else "", "warn")), steps]
    return Section(candidate.node, (*nominated, cost, victims, *budgets), blocks)


def _reprieve(step: Reprieve) -> Phrase:
    """Whether the pod is reprieved, and why not."""
    names = [bare_name(use.budget) for use in step.budgets if use.remaining < 0]
    spent = (f"budget {' and '.join(names)}" if names else "a budget") if step.violates_budget else ""
    if step.is_reprieved:
        return (Span("reprieved", "good"), f" (tried first: {spent} allows no more disruptions)" if spent else "")
    why = describe_shortage(step.blocked_by) if step.blocked_by else "no reason reported"
    return (Span("evicted", "warn"), f": {why}", Span(f"; violates {spent}", "bad") if spent else "")


def describe_cost(candidate: Candidate, verdict: Verdict) -> Phrase:
    """How many pods would be evicted on the node, and how many evictions would violate budgets."""
    victims, violations = len(candidate.victims), candidate.num_pdb_violations
    return (
        count(victims, "victim"),
        ", ",
        Span(count(violations, "budget violation"), "bad") if violations else _no_violations(verdict),
    )


def has_budget_counts(verdict: Verdict) -> bool:
    """Whether the scheduler considers PodDisruptionBudgets, and they could be read."""
    return row_of(verdict.algorithm).reads_budgets and not are_budgets_unread(verdict.assumptions)


def _no_violations(verdict: Verdict) -> Span:
    if are_budgets_unread(verdict.assumptions):
        return Span("budgets not read", "warn")
    is_known = row_of(verdict.algorithm).reads_budgets
    return Span("no budget violated", "good") if is_known else Span("budgets not considered")


def _summary(candidates: Sequence[Candidate], verdict: Verdict) -> Words:
    """The other candidates: counted by cost if there are few costs, otherwise as ranges."""
    by_cost = grouped(candidates, lambda candidate: (len(candidate.victims), candidate.num_pdb_violations))
    if len(by_cost) > _COSTS_SHOWN:
        victims, violations = zip(*by_cost, strict=True)
        broken = f"{_range(violations, 'budget violation')} each" if any(violations) else _no_violations(verdict)
        return (f"{count(len(candidates), 'other candidate')}  {_range(victims, 'victim')}, ", broken)
    costs: list[Words] = []
    for several in by_cost.values():
        nodes = [candidate.node for candidate in several]
        which = join_names(nodes) if len(nodes) <= _NODES_SHOWN else f"{len(nodes):,}"
        costs.append((f"{which} with ", *describe_cost(several[0], verdict)))
    return ("others: ", *joined(costs, "; ")) if costs else ""


def _other_nodes(verdict: Verdict) -> list[list[Words]]:
    """The other candidates with their costs, and the nodes on which preemption does not help."""
    if not verdict.candidates or not verdict.nominated_nodes:
        return []
    lines: list[list[Words]] = []
    others = [each for each in verdict.candidates if each.node not in verdict.nominated_nodes]
    if others:
        broken = [each.num_pdb_violations for each in others]
        named = f"{others[0].node} is a candidate" if len(others) == 1 else f"{len(others):,} candidates"
        violations = f" and {_range(broken, 'budget violation')}" if any(broken) else ""
        each_one = " each" if violations and len(others) > 1 else ""
        victims = _range([len(each.victims) for each in others], "victim")
        lines.append([f"{named} with {victims}{violations}{each_one}"])
    # If no plugin rejects a node, the scheduler reports that it found no victims there.
    still = {node: status for node, status in verdict.dry_run.items() if status.plugin}
    if still:
        lines.append([f"even without lower-priority pods, {in_clauses(still)}"])
    if without := [node for node in verdict.dry_run if node not in still]:
        lines.append([f"{join_names(without)}: {_no_victims(without, verdict)}"])
    _, hopeless = split_by_hope(verdict)
    if hopeless:
        lines.append([f"preemption doesn't help: {in_clauses(hopeless)}"])
    return lines


def _no_victims(nodes: Sequence[str], verdict: Verdict) -> str:
    """Why evicting pods of these nodes does not help: pods on other nodes, or what the scheduler reports."""
    elsewhere: dict[str, str] = {}
    for node in nodes:
        status = verdict.filter.get(node)
        detail = status.detail if status is not None else None
        holders = detail.holder_nodes if isinstance(detail, AffinityConflict) else []
        if not isinstance(detail, AffinityConflict) or not holders or node in holders:
            return verdict.dry_run[nodes[0]].message or "no reason reported"
        elsewhere |= dict(zip(detail.holders, holders, strict=False))
    named = join_names([f"{pod} on {node}" for pod, node in elsewhere.items()])
    return f"preemption there can't evict {named}, which {agree(len(elsewhere), 'keeps')} it out"


def _range(numbers: Sequence[int], noun: str) -> str:
    low, high = min(numbers), max(numbers)
    if low == high:
        return count(low, noun)
    return f"{low:,} {'or' if high == low + 1 else 'to'} {high:,} {plural(noun)}"


def victims_section(verdict: Verdict, options: RenderOptions) -> Section:
    """``5 VICTIMS``: a table per nominated node, most important pod first."""
    nodes = [node for node in verdict.nominated_nodes if verdict.victims.get(node)]
    if not nodes:
        return Section("5 VICTIMS")
    blocks: list[Block]
    if len(nodes) == 1:
        lead, blocks = _title(nodes[0], verdict), [_victims(nodes[0], verdict, options)]
    else:
        lead = (f"on one of {count(len(nodes), 'tied node')}",)

        def draw(node: str) -> Section:
            return Section(node, _title(node, verdict), [_victims(node, verdict, options)])

        blocks = [Cards(nodes, draw, noun="node", shown=2)]
    return Section("5 VICTIMS", lead, blocks, reserved_lines=6, priority=_VICTIMS, short=screened_victims(verdict))


def _victims(node: str, verdict: Verdict, options: RenderOptions) -> Table:
    victims = verdict.victims[node]
    now = reference_time(verdict, options)
    titles = [*columns("POD", "PRIORITY", "OWNER", "RUNNING", right=["PRIORITY"]), Column("BUDGET (allowed→left)")]
    rows: list[list[Words]] = [
        [
            strong(victim.pod),
            f"{victim.priority:,}",
            victim.owner or "-",
            f"{format_since(victim.start_time, now)}{', terminating' if victim.terminating else ''}",
            format_budgets(victim.budgets) or "-",
        ]
        for victim in victims
    ]
    if not any(victim.budgets for victim in victims):
        titles, rows = titles[:-1], [row[:-1] for row in rows]
    limit = _VICTIMS_SHOWN_OF_CROWD if is_crowd(verdict, options) else _VICTIMS_SHOWN
    return Table(titles, rows, noun="victim", caption=f"Victims on {node}", shown=limit)


def _title(node: str, verdict: Verdict) -> Phrase:
    victims = verdict.victims[node]
    seconds = max((victim.grace_period_seconds for victim in victims if not victim.terminating), default=0)
    stop = f"; up to {format_duration(seconds)} to terminate" if seconds else ""
    budgets = f"; no budget protects {'it' if len(victims) == 1 else 'them'}"
    if are_budgets_unread(verdict.assumptions):
        budgets = "; budgets were not read"
    elif any(victim.budgets for victim in victims):
        budgets = ""
    order = ", most important first" if len(victims) > 1 else ""
    likely = ", most likely" if verdict.alternatives else ""
    return ("on ", strong(node), likely, order, stop, budgets)


def screened_victims(verdict: Verdict) -> Section:
    """The victims on the node named in the scheduler's message, with their effect on budgets."""
    nodes = nodes_with_victims(verdict)
    if not nodes:
        return Section("VICTIMS")
    blocks: list[Block] = []
    if len(nodes) > 1:
        blocks.append(Sentence(("on ", strong(nodes[0]), f", if it is picked from {len(nodes):,} tied nodes:")))
    alternatives = verdict.alternatives
    # The pods among which the order of tied pods decides, if it decides nothing else.
    is_certain = (
        alternatives is not None and alternatives.exact and not alternatives.omitted and len(alternatives.outcomes) == 1
    )
    choices = alternatives.outcomes[0].choices if alternatives is not None and is_certain else ()
    for choice in choices:
        words = f"{choice.count:,} of these {len(choice.pods):,}, tied in priority and start time: "
        blocks.append(Sentence(f"{words}{join_names(choice.pods, limit=_NAMES_SHOWN)}"))
    if alternatives is not None and not choices:
        words = "most likely; depends on the order of tied pods in the scheduler's cache:"
        blocks.append(Sentence(Span(words, "warn")))
    rows: list[list[Words]] = [
        [strong(victim.pod), f"priority {victim.priority:,}", victim.owner or "no owner", _uses(victim, verdict)]
        for victim in verdict.victims[nodes[0]]
    ]
    blocks.append(Table(columns("POD", "PRIORITY", "OWNER", "BUDGETS"), rows, noun="victim", is_untitled=True))
    if alternatives is not None and not choices:
        likely = {node: [victim.pod for victim in victims] for node, victims in verdict.victims.items()}
        outcomes = alternatives.outcomes
        others = [each for each in outcomes if not (each.node in likely and each.allows(likely[each.node]))]
        blocks.append(Listing([[("or ", *possible_outcome(each))] for each in others], noun="outcome"))
        omitted = f"… and {count(alternatives.omitted, 'more outcome')}" if alternatives.omitted else ""
        blocks += [Sentence(Span(omitted, "dim")), Sentence(Span("" if alternatives.exact else INEXACT, "warn"))]
    seconds = max((each.grace_period_seconds for each in verdict.victims[nodes[0]] if not each.terminating), default=0)
    stop = f", up to {format_duration(seconds)} to terminate" if seconds else ""
    # A single victim fits next to the label; a screen may not show all of several.
    return Section("VICTIMS", f"{count(len(rows), 'pod')}{stop}" if len(rows) > 1 else "", blocks)


def nodes_with_victims(verdict: Verdict) -> list[str]:
    """The nodes with victims; among tied nodes, the one named in the scheduler's message comes first."""
    nodes = [node for node in verdict.nominated_nodes if verdict.victims.get(node)]
    return sorted(nodes, key=lambda node: node != acted_on(verdict))


def victims_in_brief(verdict: Verdict) -> str:
    """The victims, as a sentence to append."""
    nodes = nodes_with_victims(verdict)
    if not nodes:
        return ""
    likely = "most likely " if verdict.alternatives is not None else ""
    location = f" (on {nodes[0]})" if len(nodes) > 1 else ""
    names = join_names([victim.pod for victim in verdict.victims[nodes[0]]], limit=_BRIEF_NAMES)
    return f" Victims: {likely}{names}{location}."


def _uses(victim: Victim, verdict: Verdict) -> Phrase:
    """``shop/web allows 2→1``: the victim's budgets before and after, and other facts about it."""
    if are_budgets_unread(verdict.assumptions):
        budgets: Phrase = (Span("budgets not read", "warn"),)
    elif not victim.budgets:
        budgets = ("no budget" if row_of(verdict.algorithm).reads_budgets else "budgets not considered",)
    else:
        texts = [
            (f"{use.budget} allows {use.allowed:,}→{use.remaining:,}", use.remaining < 0) for use in victim.budgets
        ]
        budgets = joined(Span(f"{text} VIOLATED", "bad") if is_broken else Span(text) for text, is_broken in texts)
    is_likely = verdict.alternatives is not None and not verdict.surely_evicts(victim.pod)
    terminating = ", terminating" if victim.terminating else ""
    return (*budgets, terminating, Span(" (most likely)", "warn") if is_likely else "")


_PODS_SHOWN = 4
_NODE, _FILTERS, _DRY_RUN_THERE, _INSTEAD = 95, 94, 93, 92
# The lowest priority among the sections of a screen about one node.
LOWEST_PRIORITY = _INSTEAD


def node_sections(verdict: Verdict, options: RenderOptions) -> list[Section]:
    """``NODE``: the report on the requested node, and what would make the scheduler choose it."""
    node_report = verdict.node_report
    if node_report is None:
        return []
    sections = [
        Section(
            "NODE",
            describe_rank(node_report, verdict),
            _evaluation(node_report.evaluation),
            heading="The requested node",
            is_reasoning=True,
            priority=_NODE,
            short=Section("NODE", describe_rank(node_report, verdict)),
        ),
        Section("FILTERS", blocks=_screened(node_report, verdict), only="screen", priority=_FILTERS),
        _dry_run(node_report, verdict, options),
    ]
    if not node_report.is_chosen:
        lacks_budgets = are_budgets_unread(verdict.assumptions)
        changes = remedies_section(
            "CHANGES", node_report.remedies, node_report.search, options, lacks_budgets=lacks_budgets
        )
        which = "any of these changes" if node_report.remedies[1:] else "this change"
        sections.append(
            Section(
                "CHANGES",
                f"with {which}, {node_report.node} is chosen:" if node_report.remedies else changes.lead,
                changes.blocks,
                heading=f"Changes that make the scheduler choose {node_report.node}",
                anchor="node-changes",
                is_reasoning=True,
                priority=_INSTEAD,
                short=changes.short,
            )
        )
    return sections


def _dry_run(node_report: NodeReport, verdict: Verdict, options: RenderOptions) -> Section:
    """The victims there, or why evicting pods does not help; for the chosen node, the pods it evicts."""
    candidate = _candidate(verdict, node_report.node)
    tried = verdict.dry_run.get(node_report.node)
    if candidate is not None:
        section = candidate_section(candidate, verdict, options)
        lead: Words = (f"on {node_report.node}: ", *phrase_of(section.lead))
        blocks: Sequence[Block | Section] = section.blocks
    else:
        lead, blocks = f"on {node_report.node}: {describe_shortage(tried)}" if tried is not None else "", []
    short = Section("DRY RUN")
    if node_report.node in verdict.nominated_nodes[:1]:
        short = screened_victims(verdict)
    elif candidate is not None:
        priorities = {step.pod: step.priority for step in candidate.steps}
        rows: list[list[Words]] = [
            [strong(pod), f"priority {priorities[pod]:,}" if pod in priorities else ""] for pod in candidate.victims
        ]
        table = Table(columns("POD", "PRIORITY"), rows, noun="victim", is_untitled=True)
        short = Section("DRY RUN", (*describe_cost(candidate, verdict), ":"), [table])
    elif tried is not None:
        short = Section("DRY RUN", f"without its {_lower(node_report.evaluation)}: {describe_shortage(tried)}")
    return Section(
        "DRY RUN", lead, blocks, anchor="node-dry-run", is_reasoning=True, priority=_DRY_RUN_THERE, short=short
    )


def describe_rank(node_report: NodeReport, verdict: Verdict) -> Phrase:
    """Whether the pod ends up on the node, and otherwise the step that eliminates it."""
    name = strong(node_report.node)
    nodes = verdict.nominated_nodes or verdict.lands_on
    if node_report.is_chosen:
        tie = f", one of {count(len(nodes), 'tied node')}" if len(nodes) > 1 else ""
        return (name, Span(" is chosen", "good"), tie)
    score = verdict.scores.get(node_report.node)
    if score is not None and node_report.rank is not None:
        best = max(verdict.scores.values())
        return (
            name,
            f" fits and ranks {node_report.rank:,} of {len(verdict.scores):,}: score {score:,} (best: {best:,})",
        )
    if node_report.eliminated_at and node_report.value is not None and node_report.best is not None:
        mine, best_value = _values(node_report, verdict)
        rule = name_of_rule(node_report.eliminated_at)
        return (
            name,
            " is a candidate, ",
            Span("eliminated", "bad"),
            f" by {rule}: {mine} (best: {best_value})",
        )
    if by_extender := _by_extender(node_report.node, verdict):
        return (name, *by_extender)
    rejections = [status for status in node_report.evaluation.filters if not status.is_success]
    if node_report.evaluation.pre_filter is not None or rejections:
        return (name, Span(" rejects the pod", "bad"))
    return (name, " passes all filters but is not chosen")


def _by_extender(node: str, verdict: Verdict) -> Phrase:
    """How an extender eliminates the node, if one does."""
    for call in verdict.extender_calls:
        if node in call.removed:
            return (f" is a candidate, but extender {call.extender} ", Span("drops", "bad"), " it")
        if node in call.rejected and not verdict.filter.get(node, SUCCESS).is_success:
            reason = f": {call.rejected[node]}" if call.rejected[node] else " without a reason"
            return (f" passes all filters, but extender {call.extender} ", Span("rejects", "bad"), f" it{reason}")
    return ()


def _values(node_report: NodeReport, verdict: Verdict) -> tuple[str, str]:
    """The node's value under the rule that eliminates it, and the best value."""
    mine = _candidate(verdict, node_report.node)
    best = _candidate(verdict, verdict.nominated_nodes[0]) if verdict.nominated_nodes else None
    return (
        format_value(node_report.eliminated_at, node_report.value or 0, len(mine.victims) if mine else 0),
        format_value(node_report.eliminated_at, node_report.best or 0, len(best.victims) if best else 0),
    )


def _evaluation(evaluation: NodeEvaluation) -> list[Block]:
    if evaluation.pre_filter is not None:
        return [Sentence(f"rejected on every node before any filter runs: {evaluation.pre_filter.message}")]
    excluded_by = join_names(evaluation.excluded_by, limit=len(evaluation.excluded_by))
    nominated = join_names(evaluation.nominated_pods, limit=_PODS_SHOWN)
    blocks: list[Block] = [
        Sentence(f"excluded before any filter runs by {excluded_by}" if evaluation.excluded_by else ""),
        Sentence(Span("every filter (the scheduler stops at the first that rejects the pod):", "dim")),
        _filters(evaluation.filters),
        Sentence(f"counting {nominated}, nominated to this node" if evaluation.nominated_pods else ""),
    ]
    if evaluation.lower_priority_pods:
        blocks.append(Sentence(Span(f"every filter without its {_lower(evaluation)}:", "dim")))
        blocks.append(_filters(evaluation.without_lower))
    return blocks


def _filters(statuses: Sequence[Status]) -> Rows:
    """The filters that reject the pod with what they saw, and the filters that pass."""
    rows: list[tuple[Words, Words]] = []
    for status in statuses:
        if not status.is_success:
            seen = describe(status.detail)
            reason = strong(status.message or str(status.code))
            plugin = Span(f"  {status.plugin}", "dim")
            rows.append((Span("rejects", "bad"), (reason, plugin, f"  {seen}" if seen else "")))
    passing = [status.plugin for status in statuses if status.is_success]
    if passing or not statuses:
        rows.append((Span("passes", "good"), ", ".join(passing) or "nothing to check"))
    return Rows(rows)


def _screened(node_report: NodeReport, verdict: Verdict) -> list[Block]:
    """The filters that reject the pod on the node, and how many filters pass."""
    evaluation = node_report.evaluation
    blocks: list[Block] = []
    if evaluation.pre_filter is not None:
        blocks.append(Sentence(f"rejected on every node before any filter runs: {evaluation.pre_filter.message}"))
    elif evaluation.excluded_by:
        blocks.append(Sentence(f"excluded before any filter runs by {join_names(evaluation.excluded_by)}"))
    rejections = [status for status in evaluation.filters if not status.is_success]
    items: list[list[Words]] = []
    for status in rejections:
        reason = strong(status.message or str(status.code))
        items.append([(Span("rejects ", "bad"), reason, f"  {describe(status.detail) or status.plugin}")])
    blocks.append(Listing(items, noun="rejection"))
    passing = len(evaluation.filters) - len(rejections)
    if passing and rejections:
        words = f"{count(passing, 'other filter')} {'pass' if passing > 1 else 'passes'}"
        blocks.append(Sentence(Span(words, "dim")))
    elif evaluation.filters and not rejections:
        blocks.append(Sentence(f"all {count(passing, 'filter')} pass" if passing > 1 else "the only filter passes"))
    is_tried = node_report.node in verdict.dry_run or _candidate(verdict, node_report.node) is not None
    if evaluation.lower_priority_pods and rejections and not is_tried:
        still = [status.message or status.plugin for status in evaluation.without_lower if not status.is_success]
        result = f"still {join_names(still)}" if still else "all pass"
        blocks.append(Sentence(f"without its {_lower(evaluation)}: {result}"))
    if evaluation.nominated_pods:
        names = join_names(evaluation.nominated_pods, limit=_PODS_SHOWN)
        blocks.append(Sentence(f"counting {names}, nominated to this node"))
    return blocks


def _lower(evaluation: NodeEvaluation) -> str:
    number = len(evaluation.lower_priority_pods)
    return "only lower-priority pod" if number == 1 else count(number, "lower-priority pod")


def _candidate(verdict: Verdict, node: str) -> Candidate | None:
    return next((candidate for candidate in verdict.candidates if candidate.node == node), None)
