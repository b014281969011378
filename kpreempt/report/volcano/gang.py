"""The outcome of jobs that are submitted to Volcano."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.meta import grouped
from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import (
    Listing,
    Node,
    Phrase,
    Report,
    Role,
    Section,
    Sentence,
    Span,
    Table,
    Tree,
    Words,
    columns,
    strong,
)
from kpreempt.report.evidence import assumption_sections, join_names
from kpreempt.report.options import RenderOptions
from kpreempt.report.remedies import commands, line, not_tried
from kpreempt.report.volcano.attempts import (
    amounts_in_words,
    describe_queue_capacity,
    masked,
    tasks_in_words,
    veto_in_words,
)
from kpreempt.report.volcano.session import (
    action_section,
    facts,
    no_eviction_section,
    panic_section,
    sample_section,
    session_sections,
)
from kpreempt.verdict.remedies import Remedy
from kpreempt.verdict.volcano import GangAnswer, GangOutcome, SessionVerdict

_WAITING = (GangOutcome.NOT_ENQUEUED, GangOutcome.NOT_PLACED)
_NODES_SHOWN = 3
_PLACED = ("Bound", "Running")
_WORDS: dict[GangOutcome, tuple[str, Role]] = {
    GangOutcome.REJECTED: ("rejected", "bad"),
    GangOutcome.NOT_ENQUEUED: ("not enqueued", "bad"),
    GangOutcome.INVALID: ("not valid", "bad"),
    GangOutcome.IGNORED: ("ignored", "bad"),
    GangOutcome.BOUND: ("bound", "good"),
    GangOutcome.PIPELINED: ("pipelined", "warn"),
    GangOutcome.NOT_PLACED: ("unschedulable", "bad"),
    GangOutcome.PANIC: ("the scheduler panics", "bad"),
}


def report(answers: Sequence[GangAnswer], options: RenderOptions) -> Report:
    """Each job; several jobs are separate reports, followed by a table of all."""
    if not answers:
        return Report(lead="No job matches.", sections=[], is_complete=True)
    if len(answers) == 1:
        [answer] = answers
        return Report(
            title=f"Job {answer.job}",
            lead=_headline(answer),
            facts=_facts(answer),
            sections=_sections(answer, options),
            is_complete=True,
        )
    jobs = [
        Section(
            "",
            _headline(answer),
            [*(Sentence(Span(fact, "dim")) for fact in _facts(answer)), *_sections(answer, options)],
            heading=f"Job {answer.job}",
        )
        for answer in answers
    ]
    rows = [
        (
            strong(answer.job),
            answer.queue,
            f"{len(answer.tasks):,}",
            f"{len(answer.victims):,}",
            Span(*_WORDS[answer.outcome]),
        )
        for answer in answers
    ]
    titles = columns("JOB", "QUEUE", "TASKS", "VICTIMS", "OUTCOME", right=["TASKS", "VICTIMS"])
    return Report(
        lead="", sections=[*jobs, Section("", blocks=[Table(titles, rows)], heading="All jobs")], is_complete=True
    )


def _facts(answer: GangAnswer) -> list[str]:
    kind, _, name = answer.origin.partition(" ")
    origin = f"a {kind}" if name == answer.job else f"from {answer.origin}" if answer.origin else ""
    needs = f"needs {count(answer.min_available, 'task')}{' at the same time' if answer.min_available > 1 else ''}"
    summary = " · ".join(part for part in (f"queue {answer.queue}", needs, origin) if part)
    return [summary, *([facts(answer.sessions[-1])] if answer.sessions else [])]


def _sections(answer: GangAnswer, options: RenderOptions) -> list[Section]:
    """The tasks, the victims, what is missing, what happens next, and the sessions in short."""
    sections = []
    missing = ""
    if answer.missing:
        task = tasks_in_words([answer.missing_for], home=answer.job)
        missing = f"{amounts_in_words(answer.missing)} on {answer.missing_on}"
        missing = f"{missing}, the node closest to fitting {task}{_even_then(answer)}"
    if answer.sessions:
        sections.append(panic_section(answer.sessions[-1]))
        if answer.outcome in _WAITING:
            sections.append(no_eviction_section(answer.sessions[-1]))
    return [
        *sections,
        _tasks(answer, options),
        *([_veto(answer)] if answer.outcome == GangOutcome.NOT_ENQUEUED else []),
        _victims(answer, options),
        Section("MISSING", missing),
        Section("THEN", _afterwards(answer)),
        _remedies(answer, options),
        *(
            section
            for number, session in enumerate(answer.sessions, 1)
            for section in _session(answer, session, number, options)
        ),
        sample_section(answer.sample, options),
        *assumption_sections(answer.assumptions),
    ]


def _headline(answer: GangAnswer) -> Phrase:
    """The outcome in one sentence."""
    job, why = strong(answer.job), f": {answer.reason}" if answer.reason else ""
    total, victims = len(answer.tasks), len(answer.victims)
    if answer.outcome == GangOutcome.REJECTED:
        return (job, " would be ", Span("rejected", "bad"), f"{why}.")
    if answer.outcome == GangOutcome.NOT_ENQUEUED:
        return (job, " would ", Span("not be enqueued", "bad"), f": rejected by {answer.reason or 'a plugin'}.")
    if answer.outcome == GangOutcome.INVALID:
        return (job, " would ", Span("not be valid", "bad"), f"{why}.")
    if answer.outcome == GangOutcome.IGNORED:
        return (job, " would be ", Span("ignored", "bad"), f" by Volcano{why}.")
    if answer.outcome == GangOutcome.PANIC:
        return ("The scheduler would ", Span("panic", "bad"), " before ", job, " is allocated.")
    if answer.outcome == GangOutcome.BOUND:
        bound = sum(task.status in _PLACED for task in answer.tasks)
        evicted = f"{count(victims, 'task')} {agree(victims, 'is')} evicted nonetheless"
        effect = evicted if victims else "no task is evicted"
        return (job, " would be ", Span("bound immediately", "good"), f" with {_part(bound, total)}; {effect}.")
    if answer.outcome == GangOutcome.PIPELINED:
        promised = sum(task.status == "Pipelined" for task in answer.tasks)
        effect = (
            f"{count(victims, 'other task')} {agree(victims, 'is')} evicted for it"
            if victims
            else "other tasks are already terminating"
        )
        return (job, " would be ", Span("pipelined", "warn"), f" with {_part(promised, total)}; {effect}.")
    evicts = f", although {count(victims, 'task')} {agree(victims, 'is')} evicted for it" if victims else ""
    unschedulable = Span("unschedulable", "bad")
    return (job, " would be enqueued but is ", unschedulable, f": too few of its tasks fit{evicts}{why}.")


def _remedies(answer: GangAnswer, options: RenderOptions) -> Section:
    """``FIX``: what would get the job bound, each with its result and how to apply it."""
    items: list[list[Words]] = []
    for each in answer.remedies:
        # A manifest is changed before it is submitted.
        is_manifest = any(edit.object == answer.origin for edit in each.edits)
        typed = [] if is_manifest else commands(each)
        items.append([(*line(each), ": ", *_result(each, options)), *(Span(command, "dim") for command in typed)])
    untried = not_tried(answer.search) if answer.search is not None else ""
    rest = [Sentence(Span(untried, "dim"))] if untried else []
    return Section("FIX", "any one of these" if len(items) > 1 else "", [Listing(items, noun="fix"), *rest])


def _result(remedy: Remedy, options: RenderOptions) -> Phrase:
    """What the remedy brings: ``binds both tasks on node-a; no task is evicted``."""
    where = f" on {join_names(remedy.nodes, limit=_NODES_SHOWN)}"
    binds = (Span("binds", "good"), f" {_part(remedy.scheduled, remedy.pods)}{where}; ")
    if not remedy.evicted:
        return (*binds, "no task is evicted")
    evicted = tasks_in_words(remedy.evicted, limit=None if options.verbose else 4)
    return (*binds, Span("evicts", "warn"), f" {evicted}")


def _part(number: int, total: int) -> str:
    """The number of its tasks, in words."""
    if total == 1:
        return "its only task"
    if number == total:
        return "both tasks" if total == 2 else f"all {total:,} tasks"
    return f"{number:,} of {total:,} tasks"


def _tasks(answer: GangAnswer, options: RenderOptions) -> Section:
    """Each task's status, node, and pod condition."""
    groups = grouped(answer.tasks, lambda task: (task.status, task.node, masked(task.message, task.task)))
    items: list[list[Words]] = []
    for (status, node, message), tasks in groups.items():
        named = tasks_in_words([each.task for each in tasks], home=answer.job, limit=None if options.verbose else 4)
        style: Role = "good" if status in _PLACED else "bad" if status in ("Pending", "Evicted") else "warn"
        state = (Span(status, style), f" on {node}" if node else "")
        details = [Span(message, "dim")] if message and status not in _PLACED else []
        items.append([(strong(named), "  ", *state), *details])
    return Section("TASKS", f"{len(answer.tasks):,}" if items else "", [Listing(items, noun="task")])


def _veto(answer: GangAnswer) -> Section:
    """``REJECTED``: the reasons of the plugins, and what happens to the pods."""
    lines = []
    for plugin in filter(None, map(str.strip, answer.reason.split(","))) if answer.sessions else []:
        session = answer.sessions[-1]
        lines.append(f"by {veto_in_words(plugin, answer.job, session)}")
        enqueues = [action for action in session.actions if action.action == "enqueue"]
        lines += filter(None, (describe_queue_capacity(plugin, answer.queue, action) for action in enqueues))
    pods = "Its pods stay Pending" if answer.tasks else "Its pods are not created"
    lines.append(f"{pods}; every later session tries again.")
    return Section("REJECTED", blocks=[Sentence(each) for each in lines], is_inline=True, style="bad")


def _victims(answer: GangAnswer, options: RenderOptions) -> Section:
    """The victims by queue and job, with the task that each is evicted for."""
    groups: dict[tuple[str, str, str], dict[tuple[str, str], list[str]]] = {}
    for victim in answer.victims:
        group = groups.setdefault((victim.queue, victim.job, victim.action), {})
        group.setdefault((victim.node, victim.by), []).append(victim.task)
    limit = None if options.verbose else 4
    items = []
    for (queue, job, action), nodes in groups.items():
        below = [
            Node(
                (
                    Span(tasks_in_words(tasks, home=job, limit=limit), "bad"),
                    f" on {node}, for {tasks_in_words([by], home=answer.job)}",
                )
            )
            for (node, by), tasks in nodes.items()
        ]
        origin = Span(f"{f'  queue {queue}' if queue else ''}, by {action}", "dim")
        items.append(Node((strong(job or "without a job"), origin), below))
    return Section("VICTIMS", f"{len(answer.victims):,}" if items else "", [Tree(items, noun="job")])


def _even_then(answer: GangAnswer) -> str:
    """Whether tasks could have been evicted on the node where resources are missing."""
    for action in reversed(answer.sessions[-1].actions if answer.sessions else []):
        for attempt in action.attempts:
            for node in attempt.nodes if attempt.task == answer.missing_for else []:
                if node.node == answer.missing_on and node.missing == answer.missing and node.candidates:
                    return (
                        ", even if all possible victims are evicted"
                        if node.victims
                        else "; no task on it can be evicted"
                    )
    return ""


def _afterwards(answer: GangAnswer) -> Words:
    """The next session's result for pipelined tasks, once the victims are gone."""
    if answer.next_session is None or all(task.status != "Pipelined" for task in answer.tasks):
        return ""
    when = "once the Releasing tasks are gone, the next session "
    if answer.next_session.panics:
        return (when, Span("panics", "bad"))
    if answer.bound_in_next_session:
        return (when, Span(f"binds {count(answer.bound_in_next_session, 'task')}", "good"), " of this job")
    others = dict.fromkeys(bind.task for action in answer.next_session.actions for bind in action.binds)
    effect = f", but binds {tasks_in_words(others)}" if others else ""
    return (when, Span("binds none of this job's tasks", "bad"), f"{effect}. A task is pipelined for one session only.")


def _session(answer: GangAnswer, session: SessionVerdict, number: int, options: RenderOptions) -> list[Section]:
    """The parts of the session that concern the job, or all of it if ``verbose``."""
    sections = []
    if len(answer.sessions) > 1:
        summary = "enqueues the job; its pods are created" if number == 1 else "schedules the pods"
        sections.append(Section(f"SESSION {number}", summary, heading=f"Session {number}"))
    if options.verbose:
        return [*sections, *session_sections(session, options)]
    if answer.outcome == GangOutcome.NOT_ENQUEUED:
        return sections
    sections += [
        action_section(action, session, options, only=answer.job)
        for action in session.actions
        if any(attempt.job == answer.job for attempt in action.attempts)
    ]
    if number < len(answer.sessions):
        return sections
    active = {
        action.action
        for each in answer.sessions
        for action in each.actions
        if any(attempt.job == answer.job for attempt in action.attempts)
    }
    if silent := [action.action for action in session.actions if action.action not in active]:
        words = f"{join_names(silent)} {agree(len(silent), 'does')} nothing for this job"
        sections.append(Section("OTHERS", Span(words, "dim")))
    return sections
