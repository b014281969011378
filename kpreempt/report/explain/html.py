"""Verdicts as a page to hand on: the answer, who goes, the nodes, and how the scheduler came to it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kpreempt.report.amounts import count
from kpreempt.report.durations import format_snapshot
from kpreempt.report.explain.dry_run import knows_budgets
from kpreempt.report.explain.headline import cluster_facts, headline, pod_facts
from kpreempt.report.explain.html_choice import choice, scores
from kpreempt.report.explain.html_closing import (
    changes,
    devices,
    effects,
    event,
    extender_calls,
    filled_in,
    node_story,
    volumes,
)
from kpreempt.report.explain.html_dry_run import dry_run, filters, possible_outcomes, victims
from kpreempt.report.explain.html_nodes import node_map
from kpreempt.report.explain.summary import name_destinations, name_subject, outcome_in_words
from kpreempt.report.html.markup import TABLE_LIMIT, Html, cut_note, fold, join, name, table, tag, within
from kpreempt.report.html.page import Count, Part, banner, footer, sections, whole_page
from kpreempt.report.html.parts import assumptions
from kpreempt.report.html.phrases import phrase
from kpreempt.report.html.simulation import budgets, displacement, stranded, waiting, workloads
from kpreempt.report.html.timeline import timeline
from kpreempt.report.layout import Phrase, plain
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import API_VERSION, Outcome, Verdict

_STORIES_LIMIT = 1_400_000
# The stories of so many pods are told at once, those of more unfold.
_STORIES_SHOWN = 2
_LINKS_SHOWN = 12
TONES = {
    Outcome.LANDS: "good",
    Outcome.PREEMPTS: "warn",
    Outcome.PREEMPTS_VIOLATING_BUDGETS: "bad",
    Outcome.NEVER_LANDS: "bad",
    Outcome.NOT_SCHEDULED: "warn",
    Outcome.UNCERTAIN: "warn",
}


def render(verdicts: Sequence[Verdict], options: RenderOptions) -> str:
    """The document, of about 2 MB at most whatever the verdicts hold: what is cut says so.

    With ``verbose`` everything is unfolded. Nodes are drawn where ``options`` know how full they are.
    """
    if len(verdicts) == 1:
        return _of_one(verdicts[0], options)
    return _of_many(verdicts, options)


def _of_one(verdict: Verdict, options: RenderOptions) -> str:
    title = f"{name_subject(verdict)} {plain(outcome_in_words(verdict))}"
    lead = phrase(_lead(verdict))
    head = banner(TONES[verdict.worst_outcome], _title(verdict), _counts(verdict), _facts(verdict, options), lead)
    end = footer("explain", API_VERSION)
    return whole_page(title, head, _parts(verdict, options, level=2), end, is_unfolded=options.verbose)


def _parts(verdict: Verdict, options: RenderOptions, *, level: int, prefix: str = "") -> list[Part]:
    """The story; of a workload its replicas first, and then the story of the first pod."""
    if verdict.workload is None:
        return story(verdict, options, level=level)
    from kpreempt.report.explain.html_workload import workload_parts  # noqa: PLC0415 - rare

    first = sections(story(verdict, options, level=level + 1), prefix=f"{prefix}first-", level=level + 1)
    lead = tag("p", phrase(headline(verdict)))
    replicas = workload_parts(verdict.workload, knows_budgets=knows_budgets(verdict))
    return [*replicas, Part("first-pod", "First pod", "The first pod", lead + first)]


def _lead(verdict: Verdict) -> Phrase:
    """The first sentences: those on all pods that are asked about, and then the pod's own."""
    lead: Phrase = ()
    if verdict.workload is not None:
        from kpreempt.report.explain.workload import headline_of  # noqa: PLC0415 - rare

        lead = (*headline_of(verdict.workload), " ")
    if verdict.capacity is not None:
        from kpreempt.report.explain.capacity import capacity_phrase  # noqa: PLC0415 - rare

        lead = (*lead, "Capacity: ", *capacity_phrase(verdict.capacity), ". ")
    return (*lead, *headline(verdict))


def _title(verdict: Verdict) -> Html:
    return join([name(name_subject(verdict)), " ", tag("span", plain(outcome_in_words(verdict)))])


def _counts(verdict: Verdict) -> list[Count]:
    fit = sum(status.is_success for status in verdict.filter.values())
    counts: list[Count] = [(f"of {count(len(verdict.filter), 'node')} fit", fit, False)] if verdict.filter else []
    if not verdict.candidates:
        return counts
    counts.append(("candidates", len(verdict.candidates), False))
    outcomes = verdict.possible_outcomes
    if not outcomes or verdict.outcome == Outcome.UNCERTAIN:
        return counts
    likely, told = outcomes[0], verdict.alternatives
    is_known = told is None or (told.exact and not told.untold)
    is_sure = is_known and len({(each.num_victims, each.num_pdb_violations) for each in outcomes}) == 1
    counts.append(("evicted" if is_sure else "evicted, most likely", likely.num_victims, False))
    # Of budgets that were not looked at, 0 would say too much.
    if knows_budgets(verdict):
        worst = max(each.num_pdb_violations for each in outcomes)
        counts.append(("against budgets" if is_sure else "against budgets, at worst", worst, worst > 0))
    return counts


def _facts(verdict: Verdict, options: RenderOptions) -> str:
    facts = [plain(pod_facts(verdict)), plain(cluster_facts(verdict, options))]
    if verdict.cluster.taken_at is not None:
        facts.append(format_snapshot(verdict.cluster.taken_at))
    facts += options.facts_of_time(options.now)
    return " · ".join(filter(None, facts))


def story(verdict: Verdict, options: RenderOptions, *, level: int) -> list[Part]:
    """All parts of one verdict, under headings of that ``level``; those of which there is nothing are empty."""
    below = level + 1
    parts = [
        Part("victims", "Victims", "Victims", victims(verdict, options, below)),
        Part("equal-pods", "Equal pods", "What the order of equal pods leaves open", possible_outcomes(verdict)),
        Part("changes", "Changes", "Changes that would help", changes(verdict)),
        Part("event", "Event", "What the scheduler says", event(verdict)),
    ]
    if verdict.outcome != Outcome.NOT_SCHEDULED:
        parts += [
            Part("nodes", "Nodes", "Nodes", node_map(verdict, options.occupancy, below)),
            Part("choice", "Choice", "How the node was chosen", choice(verdict)),
            Part("scores", "Scores", "Scores", scores(verdict)),
            Part("dry-run", "Dry run", "The dry run of preemption", dry_run(verdict, options, below)),
            Part("filter", "Filters", "What the filters say", filters(verdict)),
            Part("volumes", "Volumes", "Equal volumes", volumes(verdict)),
            Part("devices", "Devices", "Devices for its claims", devices(verdict)),
            Part("extenders", "Extenders", "Extenders", extender_calls(verdict)),
            Part("node", "The node", "The node that was asked about", node_story(verdict)),
        ]
    parts.append(Part("writes", "Writes", "What the scheduler then writes", effects(verdict)))
    return [
        *parts,
        *_aftermath(verdict),
        Part("filled-in", "Filled in", "Filled in by the API server", filled_in(verdict)),
        Part("assumptions", "Assumptions", "What is assumed", assumptions(verdict.assumptions)),
    ]


def _aftermath(verdict: Verdict) -> list[Part]:
    """What happens then, where that was asked for."""
    simulation = verdict.aftermath
    if simulation is None:
        return []
    return [
        Part("timeline", "Aftermath", "Aftermath", timeline(simulation)),
        Part("displaced", "Who has to go", "Who has to go", displacement(simulation)),
        Part("budgets", "Budgets", "Disruption budgets", budgets(simulation)),
        Part("workloads", "Workloads", "Workloads", workloads(simulation)),
        Part("waiting", "Waiting", "What waits in the end", waiting(simulation)),
        Part("stranded", "Stranded", "What is stranded", stranded(simulation)),
    ]


def _of_many(verdicts: Sequence[Verdict], options: RenderOptions) -> str:
    numbered = list(enumerate(verdicts, 1))
    show = partial(_told, options=options, is_folded=len(verdicts) > _STORIES_SHOWN)
    stories, cut = within(show, numbered, _STORIES_LIMIT)
    row = partial(_row, told=len(stories))
    columns = ("Pod", "Priority", "Outcome", "Node")
    overview = table("Each pod against the same cluster", columns, row, numbered, limit=TABLE_LIMIT, what="pods")
    parts = [Part("pods", "All pods", "Pods", overview + cut_note(cut, "stories of pods"))]
    parts += [
        Part(_anchor(number), name_subject(verdict), name_subject(verdict), told)
        for (number, verdict), told in zip(numbered, stories, strict=False)
    ]
    worst = max(
        (TONES[verdict.worst_outcome] for verdict in verdicts), key=("good", "warn", "bad").index, default="good"
    )
    head = banner(
        worst, f"kpreempt explain: {count(len(verdicts), 'pod')}", _outcomes(verdicts), _common(verdicts, options)
    )
    end = footer("explain", API_VERSION)
    title = f"kpreempt explain: {count(len(verdicts), 'pod')}"
    return whole_page(title, head, parts, end, is_unfolded=options.verbose, links=_LINKS_SHOWN)


def _anchor(number: int) -> str:
    return f"pod-{number}"


def _told(item: tuple[int, Verdict], options: RenderOptions, is_folded: bool) -> Html:
    number, verdict = item
    lead = tag("p", phrase(_lead(verdict))) + tag("p", plain(pod_facts(verdict)), class_="dim")
    prefix = f"{_anchor(number)}-"
    whole = sections(_parts(verdict, options, level=3, prefix=prefix), prefix=prefix, level=3)
    return lead + (fold("The whole story", whole) if is_folded else whole)


def _row(item: tuple[int, Verdict], told: int) -> list[str]:
    number, verdict = item
    shown = name(name_subject(verdict))
    linked = tag("a", shown, href=f"#{_anchor(number)}") if number <= told else shown
    outcome = tag("span", plain(outcome_in_words(verdict)), class_=TONES[verdict.worst_outcome])
    return [linked, f"{verdict.pod.priority:,}", outcome, name(name_destinations(verdict))]


def _outcomes(verdicts: Sequence[Verdict]) -> list[Count]:
    numbers: dict[str, int] = {}
    for verdict in verdicts:
        numbers[_WORDS[verdict.worst_outcome]] = numbers.get(_WORDS[verdict.worst_outcome], 0) + 1
    bad = {_WORDS[outcome] for outcome, tone in TONES.items() if tone == "bad"}
    return [(words, number, words in bad) for words, number in numbers.items()]


def _common(verdicts: Sequence[Verdict], options: RenderOptions) -> str:
    """What is the same for all."""
    if not verdicts:
        return "no pod matches"
    first = verdicts[0]
    return plain(cluster_facts(first, options))


_WORDS = {
    Outcome.LANDS: "land",
    Outcome.PREEMPTS: "preempt",
    Outcome.PREEMPTS_VIOLATING_BUDGETS: "preempt against budgets",
    Outcome.NEVER_LANDS: "unschedulable",
    Outcome.NOT_SCHEDULED: "not scheduled",
    Outcome.UNCERTAIN: "uncertain",
}
