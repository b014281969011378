"""The report on pods: the answer first, then the scheduler's steps in order, each with its evidence.

For several pods also a table; ``-o wide`` prints one row per pod.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial

import msgspec

from kpreempt.report.amounts import count, format_reading, format_snapshot
from kpreempt.report.blocks import (
    Block,
    Code,
    Count,
    Fold,
    Listing,
    Phrase,
    Picture,
    Report,
    Section,
    Sentence,
    Span,
    Table,
    Timeline,
    Tree,
    Words,
    columns,
    name,
    strong,
    text_of,
)
from kpreempt.report.escape import printable
from kpreempt.report.evidence import OUTCOMES, assumption_sections, in_plural, join_names, size_facts
from kpreempt.report.explain.attached import devices_section, extenders_section, volumes_section
from kpreempt.report.explain.chance import chance_of_volumes, equal_pods_section
from kpreempt.report.explain.choice import choice_section, score_section
from kpreempt.report.explain.dry_run import (
    LOWEST_PRIORITY,
    dry_run_sections,
    eligibility_section,
    has_budget_counts,
    node_sections,
    victims_in_brief,
    victims_section,
)
from kpreempt.report.explain.headline import (
    acted_on,
    answer,
    cluster_facts,
    destinations,
    headline,
    pod_facts,
    pod_name,
    unknown_sentence,
)
from kpreempt.report.explain.rejections import filter_section, nearest_section
from kpreempt.report.explain.workload import (
    capacity_phrase,
    capacity_section,
    creates_none,
    headline_of,
    replica_sections,
    totals_in_words,
    workload_name,
)
from kpreempt.report.options import Extent, RenderOptions, reference_time
from kpreempt.report.remedies import causes_section, remedies_section
from kpreempt.verdict import Effect, Outcome, Verdict
from kpreempt.verdict.details import UntoleratedTaint
from kpreempt.verdict.remedies import CauseKind
from kpreempt.verdict.status import FOUND_PLACEMENT
from kpreempt.verdict.unread import are_budgets_unread, why_no_nodes
from kpreempt.verdict.workload import Workload

# With more pods than this, a page folds the details of each.
_UNFOLDED_PODS = 2
_DELETIONS_SHOWN = 5
_FIELDS_SHOWN = 4
_STEPS_SHOWN = 12
# The number of kinds of rejection listed on a screen: the first of these that fits into the given lines.
_KINDS_LISTED = (8, 5, 3, 2, 1, 0)
_LINES_OF_SENTENCE = 5
_NODE_HEALTH, _FIRST_POD, _STILL_PENDING, _IN_TURN, _AFTERMATH, _EVENT, _AUTOSCALER = 98, 97, 96, 95, 85, 50, 44
# After the scheduler's message, before what its parts mean.
_AUTOSCALER_ALONE = 93
# A name that needs no quoting in a shell.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")
# For each action, the words before the object, and those between the object and the text.
_SHORT = {
    "nominate": ("nominates ", ": "),
    "clearNomination": ("clears the nomination of ", ": "),
    "keepNomination": ("keeps the nomination of ", ": "),
    "rejectWaiting": ("rejects the waiting ", ": "),
    "bind": ("binds ", " to "),
    "deallocate": ("deallocates the devices of ", ""),
    "deleteClaim": ("deletes ", ""),
}
# Also the actions that are shown only in the list of every write.
_EVERY = _SHORT | {
    "delete": ("deletes ", ", "),
    "setCondition": ("sets a condition on ", ": "),
    "event": ("records an event on ", ": "),
}


def report(verdicts: Sequence[Verdict], options: RenderOptions) -> Report:
    """One pod in full, or a table of several with the details of each."""
    if options.extent is Extent.LINE:
        return Report(lead="", sections=[Section("", _in_one_line(verdict)) for verdict in verdicts])
    if len(verdicts) != 1:
        return _of_many(verdicts, options)
    [verdict] = verdicts
    cluster = verdict.cluster
    assumed = any(each.kind.is_assumed for each in verdict.assumptions)
    facts = [*_cluster(verdict), *([] if assumed else ["nothing assumed"])]
    # The outcome, with as many kinds of rejection as fit.
    unknown = unknown_sentence(verdict)
    lead = short_lead = _lead(verdict)
    if verdict.workload is None:
        limit = _LINES_OF_SENTENCE * options.width
        leads = (answer(verdict, kinds=kinds) for kinds in _KINDS_LISTED)
        short_lead = next((words for words in leads if len(text_of(words)) <= limit), answer(verdict, kinds=0))
        short_lead = (*short_lead, *((" ", Span(unknown, "warn")) if unknown else ()))
    return Report(
        title=(name(name_subject(verdict)), " ", *outcome_in_words(verdict)),
        tone=OUTCOMES[verdict.worst_outcome].style,
        lead=lead,
        short_lead=short_lead,
        facts=[*([pod_facts(verdict)] if verdict.workload is None else []), cluster_facts(verdict, options)],
        short_facts=" · ".join(facts),
        page_facts=[format_snapshot(cluster.taken_at)] if cluster.taken_at is not None else [],
        counts=_counts(verdict),
        sections=_sections(verdict, options),
        more=_more(verdict),
        hint="-v -v",
        command="explain",
        is_compact=True,
    )


def _in_one_line(verdict: Verdict) -> Phrase:
    """The headline, the victims if there are few, and the facts behind the answer."""
    unknown = unknown_sentence(verdict)
    words: Phrase = (*answer(verdict), f"{victims_in_brief(verdict)}{f' {unknown}' if unknown else ''}")
    if verdict.workload is not None:
        words = headline_of(verdict.workload) if verdict.known is None else _lead(verdict)
    assumed = sum(each.kind.is_assumed for each in verdict.assumptions)
    facts = [*_cluster(verdict), *([count(assumed, "assumption")] if assumed else [])]
    return (text_of(words), f" [{', '.join(facts)}]")


def _lead(verdict: Verdict) -> Phrase:
    """The first sentences, on the pod or on all pods of the workload."""
    if verdict.workload is not None and verdict.known is not None:
        from kpreempt.report.explain.known import no_verdict  # noqa: PLC0415 - rarely needed

        unknown = unknown_sentence(verdict)
        return (*no_verdict(verdict, verdict.workload.workload), *((" ", Span(unknown, "warn")) if unknown else ()))
    if verdict.workload is not None:
        unknown = unknown_sentence(verdict)
        return (*headline_of(verdict.workload), *((" ", Span(unknown, "warn")) if unknown else ()))
    if verdict.capacity is not None:
        return (*headline(verdict), " Capacity: ", *capacity_phrase(verdict.capacity), ".")
    return headline(verdict)


def _cluster(verdict: Verdict) -> tuple[str, str]:
    """The scheduler, and the size, age and version of the cluster; the version only if it is not the scheduler's."""
    cluster = verdict.cluster
    facts = size_facts(cluster, verdict.assumptions)
    if cluster.version and not cluster.version.startswith(f"v{verdict.algorithm.removeprefix('kube-')}."):
        facts.append(cluster.version)
    if cluster.age_seconds is not None:
        facts.append(format_reading(cluster.age_seconds))
    return verdict.algorithm, ", ".join(facts)


def _counts(verdict: Verdict) -> list[Count]:
    fit = sum(status.is_success for status in verdict.filter.values())
    counts = [Count(f"of {count(len(verdict.filter), 'node')} fit", fit)] if verdict.filter else []
    if not verdict.candidates:
        return counts
    counts.append(Count("candidates", len(verdict.candidates)))
    outcomes = verdict.possible_outcomes
    if not outcomes or verdict.outcome == Outcome.UNCERTAIN:
        return counts
    likely, alternatives = outcomes[0], verdict.alternatives
    is_known = alternatives is None or (alternatives.exact and not alternatives.omitted)
    is_sure = is_known and len({(each.num_victims, each.num_pdb_violations) for each in outcomes}) == 1
    counts.append(Count("evicted" if is_sure else "evicted, most likely", likely.num_victims))
    # A 0 for budgets that were not considered would claim too much.
    if has_budget_counts(verdict):
        worst = max(each.num_pdb_violations for each in outcomes)
        label = "violate budgets" if is_sure else "violate budgets, at worst"
        counts.append(Count(label, worst, worst > 0))
    return counts


def _sections(verdict: Verdict, options: RenderOptions) -> list[Section]:
    """All sections on a pod, after those on its workload."""
    if verdict.known is not None:
        return _known(verdict, options)
    sections = replica_sections(verdict.workload) if verdict.workload is not None else []
    if verdict.cluster.unhealthy:
        from kpreempt.report.node_health import health_section  # noqa: PLC0415 - most clusters have no such node

        node = verdict.node_report.node if verdict.node_report is not None else ""
        tainted = {
            name for name, status in verdict.filter.items() if not node and isinstance(status.detail, UntoleratedTaint)
        }
        sections.append(health_section(verdict.cluster, options.now, priority=_NODE_HEALTH, node=node, known=tainted))
    if verdict.workload is not None and (verdict.workload.replaces or verdict.workload.preemptions):
        from kpreempt.report.preemptions import preemptions_section  # noqa: PLC0415 - few workloads have any

        workload = verdict.workload
        sections.append(preemptions_section(workload.preemptions, workload.at, _NODE_HEALTH, workload.replaces.items()))
    if verdict.capacity is not None:
        sections.append(capacity_section(verdict.capacity))
    is_created = verdict.outcome not in (Outcome.NOT_SCHEDULED, Outcome.REJECTED)
    if verdict.workload is not None and is_created:
        facts = Sentence(Span(text_of(pod_facts(verdict)), "dim"))
        when = _first_pod(verdict.workload)
        short = Section("FIRST POD", (when, *answer(verdict, kinds=3)))
        sections.append(Section("FIRST POD", (when, *headline(verdict)), [facts], priority=_FIRST_POD, short=short))
    if is_created and options.occupancy is not None and options.occupancy.nodes:
        from kpreempt.report.explain.node_map import node_map  # noqa: PLC0415 - only pages draw nodes

        draw = partial(node_map, verdict, options.occupancy, 3)
        sections.append(Section("NODES", blocks=[Picture(draw)], only="page", is_reasoning=True))
    if verdict.still_pending is not None or verdict.on_node is not None:
        from kpreempt.report.explain.still_pending import pending_section  # noqa: PLC0415 - only for existing pods

        sections.append(pending_section(verdict, _STILL_PENDING))
    if verdict.resize is not None:
        from kpreempt.report.pending.resizes import resize_section  # noqa: PLC0415 - only for running pods

        sections.append(resize_section(verdict.resize, _STILL_PENDING))
    if verdict.in_turn is not None:
        from kpreempt.report.pending.served import turn_section  # noqa: PLC0415 - only for existing pods

        sections.append(turn_section(verdict.in_turn, verdict, _IN_TURN))
    if is_created:
        steps = [
            filter_section(verdict, options),
            volumes_section(verdict),
            devices_section(verdict, options),
            score_section(verdict),
            eligibility_section(verdict),
            *dry_run_sections(verdict, options),
            choice_section(verdict),
            extenders_section(verdict),
            victims_section(verdict, options),
            equal_pods_section(verdict),
            nearest_section(verdict, options),
            causes_section([each for each in verdict.causes if each.kind is not CauseKind.ROLLOUT_DEADLOCK]),
            _autoscaling(verdict, options),
            remedies_section(
                "FIX",
                verdict.remedies,
                verdict.remedy_search,
                options,
                lacks_budgets=are_budgets_unread(verdict.assumptions),
                is_scheduled=not verdict.outcome.stays_pending,
            ),
            *node_sections(verdict, options),
        ]
        if verdict.node_report is not None:
            # A screen about one node shows nothing else.
            steps = [
                each if each.priority >= LOWEST_PRIORITY else msgspec.structs.replace(each, priority=0)
                for each in steps
            ]
        sections += steps
    elif verdict.remedies:
        sections.append(remedies_section("FIX", verdict.remedies, None, options, lacks_budgets=False))
    # The fields that the API server sets before the scheduler sees the pod, and the source of each.
    defaulted = [[(f"{each.path} = {each.value}", Span(f"  ({each.reason})", "dim"))] for each in verdict.admission]
    return [
        *sections,
        _event(verdict),
        *_effects(verdict, options),
        *_aftermath(verdict, options),
        Section(
            "DEFAULTED",
            blocks=[Listing(defaulted, noun="field", shown=_FIELDS_SHOWN)],
            heading="Set by the API server",
            is_inline=True,
        ),
        *assumption_sections(verdict.assumptions),
    ]


def _known(verdict: Verdict, options: RenderOptions) -> list[Section]:
    """The sections on a pod, or on the first pod of a workload, without a verdict."""
    from kpreempt.report.explain.known import known_sections  # noqa: PLC0415 - rarely needed
    from kpreempt.report.explain.still_pending import pending_section  # noqa: PLC0415

    is_waiting = verdict.still_pending is not None or verdict.on_node is not None
    pending = [pending_section(verdict, _STILL_PENDING)] if is_waiting else []
    # Without a verdict, why no node is added is among the most important facts.
    autoscaling = msgspec.structs.replace(_autoscaling(verdict, options), priority=_AUTOSCALER_ALONE)
    return [*pending, *known_sections(verdict), autoscaling, *assumption_sections(verdict.assumptions)]


def _autoscaling(verdict: Verdict, options: RenderOptions) -> Section:
    """``AUTOSCALER``: why no node is added."""
    if verdict.autoscaling is None:
        return Section("AUTOSCALER")
    from kpreempt.report.autoscaling import autoscaling_section  # noqa: PLC0415 - few clusters show an autoscaler

    return autoscaling_section(verdict.autoscaling, reference_time(verdict, options), priority=_AUTOSCALER)


def _first_pod(workload: Workload) -> str:
    """When the verdict on the first pod holds, if it is not created, or lands after others in the end."""
    first = workload.items[0] if workload.items else None
    if first is not None and first.is_tried_again:
        return "when tried first: "
    return "if created: " if creates_none(workload) else ""


def _event(verdict: Verdict) -> Section:
    """``EVENT``: the scheduler's message, verbatim."""
    if not verdict.message:
        return Section("EVENT")
    number = len(verdict.nominated_nodes)
    is_one = number > 1 and FOUND_PLACEMENT in verdict.message
    tie = f"The event names one of {number:,} tied nodes; the scheduler picks one at random." if is_one else ""
    blocks: list[Block] = [Code(verdict.message), Sentence(Span(tie, "dim"))]
    return Section("EVENT", blocks=blocks, heading="The scheduler's message", is_inline=True, priority=_EVENT, aside=1)


def _effects(verdict: Verdict, options: RenderOptions) -> list[Section]:
    """``THEN``: what the scheduler does, in order; every write if ``verbose`` and on a page."""
    every = [_write(effect, _EVERY) for effect in verdict.effects]
    lines = every if options.verbose else _in_short(verdict)
    nodes = destinations(verdict)
    lead = f"if {acted_on(verdict) or nodes[0]} is picked:" if lines and len(nodes) > 1 else ""
    items = [[line] for line in lines]
    writes = Listing([[line] for line in every], noun="write", is_numbered=True)
    return [
        Section(
            "THEN", lead, [Listing(items, is_numbered=True)], heading="What the scheduler does next", is_inline=True
        ),
        Section("WRITES", blocks=[writes], heading="Every write", only="page"),
    ]


def _write(effect: Effect, words: dict[str, tuple[str, str]]) -> Phrase:
    """The write, with the object it applies to."""
    before, between = words.get(effect.action, (f"{effect.action} ", ": "))
    return (before, strong(effect.target), f"{between}{effect.text}" if effect.text else "")


def _in_short(verdict: Verdict) -> list[Phrase]:
    """The effects without the accompanying conditions and events; deletions are combined."""
    lines: list[Phrase] = []
    deleted = [effect.target.removeprefix("pod ") for effect in verdict.effects if effect.action == "delete"]
    for effect in verdict.effects:
        if effect.action == "delete" and deleted:
            # The scheduler deletes the last victim only after all others.
            *first, last = deleted
            named = join_names(first, limit=_DELETIONS_SHOWN)
            others: Phrase = (strong(named), ", and then ") if first else ()
            lines.append((f"deletes {'pods' if len(first) > 1 else 'pod'} ", *others, strong(last)))
            deleted = []
        elif effect.action in _SHORT:
            lines.append(_write(effect, _SHORT))
    return lines


def _aftermath(verdict: Verdict, options: RenderOptions) -> list[Section]:
    """``AFTERMATH``: the timeline, the displaced pods, and the effect on budgets."""
    simulation = verdict.aftermath
    if simulation is None:
        return []
    from kpreempt.report import simulations  # noqa: PLC0415 - rarely requested
    from kpreempt.report.html.lanes import lanes  # noqa: PLC0415
    from kpreempt.report.simulation_words import (  # noqa: PLC0415
        displaced_phrase,
        list_steps,
        simulation_summary,
        summarize,
    )

    steps = Timeline([(line.clock, line.words) for line in list_steps(simulation.steps)], shown=_STEPS_SHOWN)
    brief = Timeline([(line.clock, line.words) for line in summarize(simulation.steps)])
    summary = simulation_summary(simulation)
    victims = simulations.displacement_tree(simulation.displaced, displaced_phrase)
    page_only = (
        simulations.workloads(simulation, options),
        simulations.pending(simulation, options),
        simulations.broken_dependencies(simulation),
    )
    return [
        Section(
            "AFTERMATH",
            summary,
            [Picture(partial(lanes, simulation)), steps],
            anchor="timeline",
            priority=_AFTERMATH,
            short=Section("AFTERMATH", summary, [brief]),
        ),
        Section(
            "DISPLACED",
            "in sequence" if victims else "",
            [Tree(victims, noun="victim", shown=_STEPS_SHOWN, is_alike=True)],
        ),
        msgspec.structs.replace(simulations.budgets(simulation), is_reasoning=False),
        *(msgspec.structs.replace(each, only="page", is_reasoning=False) for each in page_only),
    ]


def _more(verdict: Verdict) -> list[tuple[str, str]]:
    """The options that show more of this answer, most useful first."""
    if verdict.node_report is not None:
        return [("-v", "every filter, the dry run, all changes")]
    if verdict.outcome == Outcome.REJECTED:
        return []
    if verdict.outcome == Outcome.NOT_SCHEDULED or verdict.known is not None:
        return [("-v", "")]
    what = "dry run, choice" if verdict.candidates else "scores" if verdict.feasible_nodes else "every rejection"
    hints = [("-v", what)]
    ends = {*verdict.nominated_nodes, *verdict.lands_on}
    near = [
        *(candidate.node for candidate in verdict.candidates),
        *sorted(verdict.scores, key=lambda node: -verdict.scores[node]),
        *verdict.dry_run,
        *verdict.filter,
    ]
    if other := next((node for node in near if node and node not in ends), ""):
        hints.append((f"--node {other if _PLAIN_NAME.fullmatch(other) else 'NODE'}", "why not this one"))
    if verdict.victims and verdict.aftermath is None:
        hints.append(("--aftermath", "what happens next"))
    return hints


def _of_many(verdicts: Sequence[Verdict], options: RenderOptions) -> Report:
    """The details of each pod, and a table of all."""
    numbers = Counter(OUTCOMES[verdict.worst_outcome] for verdict in verdicts)
    rows: list[list[Words]] = []
    details = []
    for number, verdict in enumerate(verdicts, 1):
        subject = name_subject(verdict)
        anchor = f"pod-{number}"
        rows.append([Span(subject, "name", f"#{anchor}"), name_destinations(verdict), outcome_in_words(verdict)])
        facts = [Sentence(Span(text_of(pod_facts(verdict)), "dim")), Sentence(cluster_facts(verdict, options))]
        sections: list[Block | Section] = list(_sections(verdict, options))
        content = [Fold("Details", sections)] if len(verdicts) > _UNFOLDED_PODS else sections
        section = Section(
            "", _lead(verdict), [*facts, *content], heading=subject, anchor=anchor, is_reasoning=True, noun="pod"
        )
        details.append(section)
    table = Table(
        columns("POD", "NODE", "OUTCOME"),
        rows,
        noun="pod",
        caption="Each pod is evaluated against the same cluster",
        is_dense=True,
    )
    counts = [
        Count(in_plural(words) if number > 1 and words.split()[0].endswith("s") else words, number, style == "bad")
        for (_, style, words, _), number in numbers.items()
    ]
    summary = ", ".join(f"{each.number:,} {each.words}" for each in counts)
    return Report(
        title=f"kpreempt explain: {count(len(verdicts), 'pod')}",
        tone=max((each.style for each in numbers), key=("good", "warn", "bad").index, default="good"),
        lead="" if options.extent is Extent.REPORT else f"{count(len(verdicts), 'pod')}: {summary}.",
        facts=[cluster_facts(verdicts[0], options)] if verdicts else ["no pod matches"],
        short_facts=" · ".join(_cluster(verdicts[0])) if verdicts else "",
        counts=counts,
        sections=[*details, Section("PODS", blocks=[table], priority=1), _rejected(verdicts)],
        more=[("--select KIND/NAME", "only this one"), ("-v", "each in full"), ("-o wide", "")],
        hint="-v -v",
        command="explain",
        is_compact=True,
    )


def _rejected(verdicts: Sequence[Verdict]) -> Section:
    """``REJECTED``: the manifests that the API server rejects, each with the reason."""
    items = [
        [(strong(verdict.pod.origin or pod_name(verdict)), f": {verdict.reason}")]
        for verdict in verdicts
        if verdict.outcome is Outcome.REJECTED
    ]
    return Section("REJECTED", blocks=[Listing(items, noun="manifest")], heading="Rejected manifests", priority=1)


def render_wide(verdicts: Sequence[Verdict], _options: RenderOptions) -> str:
    """A table with columns as in kubectl's wide output, at full width whatever the terminal."""
    from tabulate import tabulate  # noqa: PLC0415 - slow to import

    rows = [[printable(cell) for cell in row] for verdict in verdicts for row in _rows(verdict)]
    titles = ("POD", "PRIORITY", "OUTCOME", "NODE", "VICTIMS", "VIOLATIONS", "REASON")
    aligns = ("left", "right", "left", "left", "right", "right", "left") if rows else None
    table = tabulate(rows, headers=titles, tablefmt="plain", colalign=aligns, disable_numparse=True)
    return "\n".join(line.rstrip() for line in table.splitlines()) + "\n"


def render_names(verdicts: Sequence[Verdict], _options: RenderOptions) -> str:
    """Every node that a pod can end up on, or is nominated to, one per line in the form of ``kubectl -o name``."""
    nodes = (
        [each.node for each in verdict.workload.nodes] if verdict.workload is not None else destinations(verdict)
        for verdict in verdicts
    )
    return "".join(f"node/{printable(node)}\n" for each in nodes for node in each)


def _rows(verdict: Verdict) -> list[tuple[str, ...]]:
    """The row of the pod, or one per replica for a workload; one for a workload of which no pod is created."""
    if verdict.workload is None or not verdict.workload.items:
        # A tie shows its nodes, and its numbers as a range.
        is_stuck = verdict.outcome.stays_pending or verdict.outcome in (
            *(Outcome.NOT_SCHEDULED, Outcome.UNCERTAIN, Outcome.REJECTED),
        )
        reason = chance_of_volumes(verdict) or verdict.reason or (is_stuck and verdict.message) or "-"
        if verdict.known is not None and verdict.outcome is Outcome.UNCERTAIN:
            reason = why_no_nodes(verdict.assumptions) or "no node is in the input"
        return [
            (
                name_subject(verdict),
                f"{verdict.pod.priority:,}",
                str(verdict.outcome),
                name_destinations(verdict),
                *_costs(verdict),
                reason,
            )
        ]
    return [
        (
            each.pod,
            f"{verdict.pod.priority:,}",
            str(each.outcome),
            each.node or "-",
            f"{len(each.victims):,}",
            f"{len(each.violating):,}",
            each.message or "-",
        )
        for each in verdict.workload.items
    ]


def name_subject(verdict: Verdict) -> str:
    """The pod, or the workload if the answer covers all of its pods."""
    return pod_name(verdict) if verdict.workload is None else workload_name(verdict.workload)


def name_destinations(verdict: Verdict) -> str:
    """The node, or tied nodes, that the pod ends up on, or a dash; for a workload, the number of nodes."""
    if verdict.workload is not None and len(verdict.workload.nodes) > 1:
        return f"{len(verdict.workload.nodes):,} nodes"
    nodes = destinations(verdict)
    return join_names(nodes).replace(" and ", " or ", 1) if nodes else "-"


def outcome_in_words(verdict: Verdict) -> Phrase:
    """The outcome in a few words, with its cost."""
    if verdict.workload is not None:
        return totals_in_words(verdict.workload)
    words, style, *_ = OUTCOMES[verdict.outcome]
    if verdict.outcome not in (Outcome.PREEMPTS, Outcome.PREEMPTS_VIOLATING_BUDGETS):
        return (Span(words, style),)
    victims, violations = _costs(verdict)
    pods = f"{victims} {'pod' if victims == '1' else 'pods'}"
    broken = f", budget violations: {violations}" if violations != "0" else ""
    return (Span(f"{words} {pods}{broken}", style),)


def _costs(verdict: Verdict) -> list[str]:
    """The numbers of victims and budget violations, as ranges if they are not certain."""
    outcomes = [(each.num_victims, each.num_pdb_violations) for each in verdict.possible_outcomes]
    ends = [(min(numbers), max(numbers)) for numbers in zip(*outcomes, strict=True)] or [(0, 0)] * 2
    return [f"{low:,}" if low == high else f"{low:,}-{high:,}" for low, high in ends]
