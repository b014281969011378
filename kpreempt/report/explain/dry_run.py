"""What the dry run of preemption tried, and which pods go: each candidate with its reprieves, and the victims.

And one node's whole story: every filter on it, what the dry run tried there, and its place in the choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kpreempt.model.meta import grouped
from kpreempt.report.amounts import count, format_duration, format_since, plural
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
from kpreempt.report.explain.changes import proposals_section
from kpreempt.report.explain.choice import format_value, name_of_rule, order_by_survival
from kpreempt.report.explain.headline import acted_on
from kpreempt.report.explain.refusals import (
    find_nearest,
    in_clauses,
    is_crowd,
    may_be_mended,
    refusal_list,
    split_by_hope,
)
from kpreempt.report.options import RenderOptions, reference_time
from kpreempt.scheduler_table import row_of
from kpreempt.verdict import SUCCESS, Candidate, NodeEvaluation, NodeStory, Outcome, Reprieve, Status, Verdict, Victim
from kpreempt.verdict.unread import are_budgets_unread

_STEPS_SHOWN = 5
_STEPS_SHOWN_OF_CROWD = 3
_COSTS_SHOWN = 2
_NODES_SHOWN = 2
_VICTIMS_SHOWN = 10
_VICTIMS_SHOWN_OF_CROWD = 6
_NAMES_SHOWN = 4
_BRIEF_NAMES = 3
_VICTIMS, _DRY_RUN, _ELSEWHERE = 90, 65, 60


def eligibility_section(verdict: Verdict) -> Section:
    """``2 ELIGIBLE``: whether the pod may evict at all, and why."""
    eligibility, policy, node = verdict.eligibility, verdict.pod.preemption_policy, verdict.pod.nominated_node_name
    lead: Phrase = ()
    if eligibility is not None and not eligibility.eligible:
        lead = (Span("no", "bad"), f": {eligibility.reason}")
    elif eligibility is not None:
        # Only an old scheduler lets such a pod evict others.
        passed_over = ", which does not count here" if policy == "Never" else ""
        held = f", and nothing terminating on {node} holds it back" if node else ""
        lead = (Span("yes", "good"), f": preemptionPolicy {policy}{passed_over}{held}")
    return Section("2 ELIGIBLE", lead, heading="May the pod preempt?", is_reasoning=True)


def dry_run_sections(verdict: Verdict, options: RenderOptions) -> list[Section]:
    """``3 DRY RUN``: the candidates with the steps of choosing their victims, and the nodes where no eviction helps.

    On a screen ``DRY RUN`` of a pod that lands nowhere, and ``ELSEWHERE``: the other candidates, and the nodes out.
    """
    ordered = order_by_survival(verdict)
    is_short = len(ordered) <= 3 and sum(len(candidate.steps) for candidate in ordered) <= 2 * _STEPS_SHOWN
    in_full = len(ordered) if is_short or options.verbose else 1
    draw = partial(candidate_section, verdict=verdict, options=options)
    blocks: list[Block] = [Cards(ordered, draw, noun="candidate", shown=in_full, is_summarized=True)]
    blocks.append(Sentence(_summary(ordered[in_full:], verdict)))
    if verdict.dry_run:
        owned = "their lower-priority pods" if not verdict.eviction_rule else _evictable(verdict)
        blocks.append(Sentence(Span(f"still refused without {owned}:", "dim")))
        blocks.append(refusal_list(verdict.dry_run, options, causes=0 if is_crowd(verdict, options) else 3))
    is_tried = verdict.eligibility is not None and verdict.eligibility.eligible
    tried = _tried(verdict) if is_tried else ()
    nearest: Phrase = ()
    if tried and verdict.outcome == Outcome.NEVER_LANDS and verdict.dry_run:
        found = find_nearest(verdict.dry_run)
        node = found[0].nodes[0] if found else next(iter(verdict.dry_run))
        nearest = (*tried, f"; nearest {node}: {describe_shortage(verdict.dry_run[node])}")
    return [
        Section(
            "3 DRY RUN",
            tried,
            blocks if tried else [],
            heading="The dry run of preemption",
            is_reasoning=True,
            priority=_DRY_RUN,
            short=Section("DRY RUN", nearest),
        ),
        Section("ELSEWHERE", blocks=[Listing(_elsewhere(verdict))], only="screen", priority=_ELSEWHERE),
    ]


def _evictable(verdict: Verdict) -> str:
    return f"the pods that {verdict.eviction_rule} lets it preempt" if verdict.eviction_rule else "lower-priority pods"


def _tried(verdict: Verdict) -> Phrase:
    """How many nodes were tried, and how many are candidates."""
    tried = len(verdict.potential_nodes)
    if not tried and verdict.pre_filter is not None and may_be_mended(verdict.pre_filter.code):
        return (Span("no node is tried: the preemption ends in an error", "bad"),)
    if not tried:
        return (Span("no node to try: preemption helps on none", "bad"),)
    found = len(verdict.candidates)
    return (
        f"{count(tried, 'node')} tried without {_evictable(verdict)}: ",
        Span(count(found, "candidate"), "good" if found else "bad"),
    )


def candidate_section(candidate: Candidate, verdict: Verdict, options: RenderOptions) -> Section:
    """A candidate with its cost and victims, and the steps of choosing them if they were recorded."""
    likely = "That is so in the likely order of equal pods, which only the scheduler knows."
    now = reference_time(verdict, options)
    steps = Table(
        columns("POD", "PRIORITY", "RUNNING", "REPRIEVE ORDER", right=["PRIORITY"]),
        [
            [step.pod, f"{step.priority:,}", format_since(step.start_time, now), _reprieve(step)]
            for step in candidate.steps
        ],
        noun="pod",
        caption=f"Each pod is put back if there is room for it on {candidate.node}",
        shown=_STEPS_SHOWN_OF_CROWD if is_crowd(verdict, options) else _STEPS_SHOWN,
    )
    nominated: Phrase = (Span("nominated", "good"), ": ") if candidate.node in verdict.nominated_nodes else ()
    victims = f" ({join_names(candidate.victims, limit=_BRIEF_NAMES)})" if candidate.victims else ""
    cost, *budgets = describe_cost(candidate, verdict)
    blocks: list[Block] = [Sentence(Span(likely if candidate.outcomes else "", "warn")), steps]
    return Section(candidate.node, (*nominated, cost, victims, *budgets), blocks)


def _reprieve(step: Reprieve) -> Phrase:
    """Whether the pod stays, and why not."""
    names = [bare_name(use.budget) for use in step.budgets if use.left < 0]
    spent = (f"budget {' and '.join(names)}" if names else "a budget") if step.violates_budget else ""
    if step.kept:
        return (Span("reprieved", "good"), f" (tried first: {spent} allows no more)" if spent else "")
    why = describe_shortage(step.blocked_by) if step.blocked_by else "no reason given"
    return (Span("evicted", "warn"), f": {why}", Span(f"; violates {spent}", "bad") if spent else "")


def describe_cost(candidate: Candidate, verdict: Verdict) -> Phrase:
    """How many pods would be evicted there, and how many evictions would violate budgets."""
    victims, violations = len(candidate.victims), candidate.num_pdb_violations
    return (
        count(victims, "victim"),
        ", ",
        Span(count(violations, "budget violation"), "bad") if violations else _no_violations(verdict),
    )


def knows_budgets(verdict: Verdict) -> bool:
    """Whether the scheduler asks for budgets, and they could be read."""
    return row_of(verdict.algorithm).reads_budgets and not are_budgets_unread(verdict.assumptions)


def _no_violations(verdict: Verdict) -> Span:
    if are_budgets_unread(verdict.assumptions):
        return Span("budgets not read", "warn")
    return Span("no budget violated", "good") if row_of(verdict.algorithm).reads_budgets else Span("budgets not asked")


def _summary(candidates: Sequence[Candidate], verdict: Verdict) -> Words:
    """The other candidates: how many there are for each cost if the costs are few, otherwise as ranges."""
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
    return joined(costs, "; ")


def _elsewhere(verdict: Verdict) -> list[list[Words]]:
    """The other candidates with what they cost, and the nodes on which preemption does not help."""
    if not verdict.candidates or not verdict.nominated_nodes:
        return []
    lines: list[list[Words]] = []
    others = [each for each in verdict.candidates if each.node not in verdict.nominated_nodes]
    if others:
        broken = [each.num_pdb_violations for each in others]
        named = f"{others[0].node} is a candidate" if len(others) == 1 else f"{len(others):,} candidates"
        violations = f", {_range(broken, 'budget violation')}" if any(broken) else ""
        lines.append([f"{named} with {_range([len(each.victims) for each in others], 'victim')}{violations}"])
    # Of a node that no plugin refuses the scheduler says that it has no pod to preempt.
    still = {node: status for node, status in verdict.dry_run.items() if status.plugin}
    if still:
        lines.append([f"{in_clauses(still)} even without lower-priority pods"])
    if without := [node for node in verdict.dry_run if node not in still]:
        lines.append([f"{join_names(without)}: {verdict.dry_run[without[0]].message or 'no reason given'}"])
    _, hopeless = split_by_hope(verdict)
    if hopeless:
        lines.append([f"preemption doesn't help: {in_clauses(hopeless)}"])
    return lines


def _range(numbers: Sequence[int], noun: str) -> str:
    low, high = min(numbers), max(numbers)
    return count(low, noun) if low == high else f"{low:,} to {high:,} {plural(noun)}"


def victims_section(verdict: Verdict, options: RenderOptions) -> Section:
    """``5 VICTIMS``: a table for each nominated node, the most important pod first."""
    nodes = [node for node in verdict.nominated_nodes if verdict.victims.get(node)]
    if not nodes:
        return Section("5 VICTIMS")
    blocks: list[Block]
    if len(nodes) == 1:
        lead, blocks = _title(nodes[0], verdict), [_victims(nodes[0], verdict, options)]
    else:
        lead = (f"on one of {count(len(nodes), 'node')} that tie",)

        def draw(node: str) -> Section:
            return Section(node, _title(node, verdict), [_victims(node, verdict, options)])

        blocks = [Cards(nodes, draw, noun="node", shown=2)]
    return Section("5 VICTIMS", lead, blocks, keeps=3, priority=_VICTIMS, short=screened_victims(verdict))


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
    stop = f"; up to {format_duration(seconds)} to stop" if seconds else ""
    budgets = f"; no budget protects {'it' if len(victims) == 1 else 'them'}"
    if are_budgets_unread(verdict.assumptions):
        budgets = "; budgets were not read"
    elif any(victim.budgets for victim in victims):
        budgets = ""
    order = ", most important first" if len(victims) > 1 else ""
    likely = ", most likely" if verdict.alternatives else ""
    return ("on ", strong(node), likely, order, stop, budgets)


def screened_victims(verdict: Verdict) -> Section:
    """The victims on the node that the scheduler's message is about, with what they take from their budgets."""
    nodes = nodes_with_victims(verdict)
    if not nodes:
        return Section("VICTIMS")
    blocks: list[Block] = []
    if len(nodes) > 1:
        blocks.append(Sentence(("on ", strong(nodes[0]), f", if it is picked of {len(nodes):,} equal nodes:")))
    told = verdict.alternatives
    # Among which pods the order of equal ones decides, if it decides nothing else.
    is_certain = told is not None and told.exact and not told.untold and len(told.outcomes) == 1
    choices = told.outcomes[0].choices if told is not None and is_certain else ()
    for choice in choices:
        words = f"{choice.count:,} of these {len(choice.pods):,}, equal in priority and start time: "
        blocks.append(Sentence(f"{words}{join_names(choice.pods, limit=_NAMES_SHOWN)}"))
    if told is not None and not choices:
        words = "most likely; the order of equal pods decides, which only the scheduler knows:"
        blocks.append(Sentence(Span(words, "warn")))
    rows: list[list[Words]] = [
        [strong(victim.pod), f"priority {victim.priority:,}", victim.owner or "no owner", _uses(victim, verdict)]
        for victim in verdict.victims[nodes[0]]
    ]
    blocks.append(Table(columns("POD", "PRIORITY", "OWNER", "BUDGETS"), rows, noun="victim", is_untitled=True))
    if told is not None and not choices:
        likely = {node: [victim.pod for victim in gone] for node, gone in verdict.victims.items()}
        others = [each for each in told.outcomes if not (each.node in likely and each.allows(likely[each.node]))]
        blocks.append(Listing([[("or ", *possible_outcome(each))] for each in others], noun="outcome"))
        untold = f"… and {count(told.untold, 'more outcome')}" if told.untold else ""
        blocks += [Sentence(Span(untold, "dim")), Sentence(Span("" if told.exact else INEXACT, "warn"))]
    seconds = max((each.grace_period_seconds for each in verdict.victims[nodes[0]] if not each.terminating), default=0)
    stop = f", up to {format_duration(seconds)} to stop" if seconds else ""
    # One stands beside the label; of several a screen may not show all.
    return Section("VICTIMS", f"{count(len(rows), 'pod')}{stop}" if len(rows) > 1 else "", blocks)


def nodes_with_victims(verdict: Verdict) -> list[str]:
    """Of nodes that tie, first the one that the scheduler's message is about."""
    nodes = [node for node in verdict.nominated_nodes if verdict.victims.get(node)]
    return sorted(nodes, key=lambda node: node != acted_on(verdict))


def victims_in_brief(verdict: Verdict) -> str:
    """The pods that go, after the sentence."""
    nodes = nodes_with_victims(verdict)
    if not nodes:
        return ""
    likely = "most likely " if verdict.alternatives is not None else ""
    where = f" (on {nodes[0]})" if len(nodes) > 1 else ""
    names = join_names([victim.pod for victim in verdict.victims[nodes[0]]], limit=_BRIEF_NAMES)
    return f" Victims: {likely}{names}{where}."


def _uses(victim: Victim, verdict: Verdict) -> Phrase:
    """``shop/web allows 2→1``: the victim's budgets before and after, and what else there is to know of it."""
    if are_budgets_unread(verdict.assumptions):
        budgets: Phrase = (Span("budgets not read", "warn"),)
    elif not victim.budgets:
        budgets = ("no budget" if row_of(verdict.algorithm).reads_budgets else "budgets not asked",)
    else:
        texts = [(f"{use.budget} allows {use.allowed:,}→{use.left:,}", use.left < 0) for use in victim.budgets]
        budgets = joined(Span(f"{text} VIOLATED", "bad") if is_broken else Span(text) for text, is_broken in texts)
    is_likely = verdict.alternatives is not None and not verdict.surely_evicts(victim.pod)
    terminating = ", terminating" if victim.terminating else ""
    return (*budgets, terminating, Span(" (most likely)", "warn") if is_likely else "")


_PODS_SHOWN = 4
_NODE, _FILTERS, _DRY_RUN_THERE, _INSTEAD = 95, 94, 93, 92
# Of what is on a screen about a node.
LEAST_PRIORITY = _INSTEAD


def node_sections(verdict: Verdict, options: RenderOptions) -> list[Section]:
    """``NODE``: the story of the node that was asked about, and what would make it the chosen one."""
    story = verdict.node_story
    if story is None:
        return []
    sections = [
        Section(
            "NODE",
            describe_standing(story, verdict),
            _evaluation(story.evaluation),
            heading="The node that was asked about",
            is_reasoning=True,
            priority=_NODE,
            short=Section("NODE", describe_standing(story, verdict)),
        ),
        Section("FILTERS", blocks=_screened(story, verdict), only="screen", priority=_FILTERS),
        _dry_run(story, verdict, options),
    ]
    if not story.is_chosen:
        lacks_budgets = are_budgets_unread(verdict.assumptions)
        goal = f"{story.node} is chosen"
        changes = proposals_section(story.proposals, story.search, goal, options, lacks_budgets=lacks_budgets)
        sections.append(
            Section(
                "CHANGES",
                changes.lead,
                changes.blocks,
                heading=f"With what {story.node} is chosen",
                anchor="node-changes",
                is_reasoning=True,
                priority=_INSTEAD,
                short=changes.short,
            )
        )
    return sections


def _dry_run(story: NodeStory, verdict: Verdict, options: RenderOptions) -> Section:
    """Which pods would go there, or why that does not help; of the node that is chosen, which go."""
    candidate = _candidate(verdict, story.node)
    tried = verdict.dry_run.get(story.node)
    if candidate is not None:
        section = candidate_section(candidate, verdict, options)
        lead: Words = ("the dry run there: ", *phrase_of(section.lead))
        blocks: Sequence[Block | Section] = section.blocks
    else:
        lead, blocks = f"the dry run there: {describe_shortage(tried)}" if tried is not None else "", []
    short = Section("DRY RUN")
    if story.node in verdict.nominated_nodes[:1]:
        short = screened_victims(verdict)
    elif candidate is not None:
        priorities = {step.pod: step.priority for step in candidate.steps}
        rows: list[list[Words]] = [
            [strong(pod), f"priority {priorities[pod]:,}" if pod in priorities else ""] for pod in candidate.victims
        ]
        table = Table(columns("POD", "PRIORITY"), rows, noun="victim", is_untitled=True)
        short = Section("DRY RUN", (*describe_cost(candidate, verdict), ":"), [table])
    elif tried is not None:
        short = Section("DRY RUN", f"without its {_lower(story.evaluation)}: {describe_shortage(tried)}")
    return Section(
        "DRY RUN", lead, blocks, anchor="node-dry-run", is_reasoning=True, priority=_DRY_RUN_THERE, short=short
    )


def describe_standing(story: NodeStory, verdict: Verdict) -> Phrase:
    """Whether the pod ends on the node, and otherwise where it drops out."""
    name = strong(story.node)
    nodes = verdict.nominated_nodes or verdict.lands_on
    if story.is_chosen:
        tie = f", one of {count(len(nodes), 'node')} that tie" if len(nodes) > 1 else ""
        return (name, Span(" is chosen", "good"), tie)
    score = verdict.scores.get(story.node)
    if score is not None and story.rank is not None:
        best = max(verdict.scores.values())
        return (
            name,
            f" fits and is number {story.rank:,} of {len(verdict.scores):,}: {score:,}, the best has {best:,}",
        )
    if story.lost_at and story.value is not None and story.best is not None:
        mine, best_value = _values(story, verdict)
        rule = name_of_rule(story.lost_at)
        return (
            name,
            " is a candidate, ",
            Span("eliminated", "bad"),
            f" by {rule}: {mine}, the best has {best_value}",
        )
    if by_extender := _said_by_extender(story.node, verdict):
        return (name, *by_extender)
    refusals = [status for status in story.evaluation.filters if not status.is_success]
    if story.evaluation.pre_filter is not None or refusals:
        return (name, Span(" refuses the pod", "bad"))
    return (name, " passes all filters, and is not chosen")


def _said_by_extender(node: str, verdict: Verdict) -> Phrase:
    """How an extender puts the node out, if one does."""
    for call in verdict.extender_calls:
        if node in call.dropped:
            return (f" is a candidate, which extender {call.extender} ", Span("drops", "bad"))
        if node in call.refused and not verdict.filter.get(node, SUCCESS).is_success:
            reason = f": {call.refused[node]}" if call.refused[node] else " without a reason"
            return (f" passes all filters, and extender {call.extender} ", Span("refuses", "bad"), f" it{reason}")
    return ()


def _values(story: NodeStory, verdict: Verdict) -> tuple[str, str]:
    """The node's value at the rule that put it out, and the best one."""
    mine = _candidate(verdict, story.node)
    best = _candidate(verdict, verdict.nominated_nodes[0]) if verdict.nominated_nodes else None
    return (
        format_value(story.lost_at, story.value or 0, len(mine.victims) if mine else 0),
        format_value(story.lost_at, story.best or 0, len(best.victims) if best else 0),
    )


def _evaluation(evaluation: NodeEvaluation) -> list[Block]:
    if evaluation.pre_filter is not None:
        return [Sentence(f"refused on all nodes before any filter: {evaluation.pre_filter.message}")]
    left_out = join_names(evaluation.left_out_by, limit=len(evaluation.left_out_by))
    nominated = join_names(evaluation.nominated_pods, limit=_PODS_SHOWN)
    blocks: list[Block] = [
        Sentence(f"left out before any filter by {left_out}" if evaluation.left_out_by else ""),
        Sentence(Span("every filter, where the scheduler stops at the first that refuses:", "dim")),
        _filters(evaluation.filters),
        Sentence(f"with room kept for {nominated}, nominated there" if evaluation.nominated_pods else ""),
    ]
    if evaluation.lower_priority_pods:
        blocks.append(Sentence(Span(f"the same without its {_lower(evaluation)}:", "dim")))
        blocks.append(_filters(evaluation.without_lower))
    return blocks


def _filters(statuses: Sequence[Status]) -> Rows:
    """The filters that refuse the pod with what they saw, and those that let it pass."""
    rows: list[tuple[Words, Words]] = []
    for status in statuses:
        if not status.is_success:
            seen = describe(status.detail)
            reason = strong(status.message or str(status.code))
            plugin = Span(f"  {status.plugin}", "dim")
            rows.append((Span("refuses", "bad"), (reason, plugin, f"  {seen}" if seen else "")))
    passing = [status.plugin for status in statuses if status.is_success]
    if passing or not statuses:
        rows.append((Span("passes", "good"), ", ".join(passing) or "nothing to check"))
    return Rows(rows)


def _screened(story: NodeStory, verdict: Verdict) -> list[Block]:
    """What refuses the pod there; with how many filters pass."""
    evaluation = story.evaluation
    blocks: list[Block] = []
    if evaluation.pre_filter is not None:
        blocks.append(Sentence(f"refused on all nodes before any filter: {evaluation.pre_filter.message}"))
    elif evaluation.left_out_by:
        blocks.append(Sentence(f"left out before any filter by {join_names(evaluation.left_out_by)}"))
    refusals = [status for status in evaluation.filters if not status.is_success]
    items: list[list[Words]] = []
    for status in refusals:
        reason = strong(status.message or str(status.code))
        items.append([(Span("refuses ", "bad"), reason, f"  {describe(status.detail) or status.plugin}")])
    blocks.append(Listing(items, noun="refusal"))
    passing = len(evaluation.filters) - len(refusals)
    if passing and refusals:
        words = f"{count(passing, 'other filter')} {'pass' if passing > 1 else 'passes'}"
        blocks.append(Sentence(Span(words, "dim")))
    elif evaluation.filters and not refusals:
        blocks.append(Sentence(f"all {count(passing, 'filter')} pass" if passing > 1 else "the only filter passes"))
    is_tried = story.node in verdict.dry_run or _candidate(verdict, story.node) is not None
    if evaluation.lower_priority_pods and refusals and not is_tried:
        still = [status.message or status.plugin for status in evaluation.without_lower if not status.is_success]
        told = f"still {join_names(still)}" if still else "all pass"
        blocks.append(Sentence(f"without its {_lower(evaluation)}: {told}"))
    if evaluation.nominated_pods:
        names = join_names(evaluation.nominated_pods, limit=_PODS_SHOWN)
        blocks.append(Sentence(f"room is kept for {names}, nominated there"))
    return blocks


def _lower(evaluation: NodeEvaluation) -> str:
    number = len(evaluation.lower_priority_pods)
    return "only lower-priority pod" if number == 1 else count(number, "lower-priority pod")


def _candidate(verdict: Verdict, node: str) -> Candidate | None:
    return next((candidate for candidate in verdict.candidates if candidate.node == node), None)
