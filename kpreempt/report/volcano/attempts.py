"""Scheduling attempts of Volcano's tasks: the nodes in order, with each plugin's answer.

Grouped into turns: what a job tried until its statement ended. Also the jobs that are enqueued or rejected, and words
for Volcano sessions: amounts in its units, runs of numbered tasks, and its reasons without redundant names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kpreempt.report.amounts import agree, count, format_amount
from kpreempt.report.blocks import Listing, Node, Phrase, Role, Span, Words
from kpreempt.report.evidence import by_text, join_names
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.volcano import (
    ActionEvidence,
    Amounts,
    Attempt,
    AttemptOutcome,
    NodeAttempt,
    NodeOutcome,
    Purpose,
    SessionVerdict,
    StatementEnd,
    StatementOutcome,
    Vote,
    VoteEffect,
)

_LOCATIONS_SHOWN = 4
_NODES_SHOWN = 2
_NODES_TIED = 3
_REASONS_SHOWN = 3

# Purposes that may evict other tasks.
EVICTING = (Purpose.PREEMPT_BETWEEN_JOBS, Purpose.PREEMPT_WITHIN_JOB, Purpose.RECLAIM)
# The meaning of a rejection by overcommit or proportion (``overcommit.go``, ``proportion.go`` of Volcano v1.8.0).
_VETOES = {
    "overcommit": (
        "resource in cluster is overused",
        "with this job, the minResources of Inqueue jobs would exceed the allocatable resources times the overcommit"
        " factor, minus the resources in use",
    ),
    "proportion": ("queue resource quota insufficient", "its queue would exceed its capability"),
}


def alike(attempts: Sequence[Attempt]) -> list[list[Attempt]]:
    """Group attempts with the same result. Attempts that evict are never grouped."""
    groups: dict[tuple[object, ...], list[Attempt]] = {}
    for attempt in attempts:
        if any(node.evicted for node in attempt.nodes):
            key: tuple[object, ...] = (id(attempt),)
        elif attempt.outcome == AttemptOutcome.NO_VOLUMES:
            key = (attempt.outcome, masked(attempt.reason, attempt.task), tuple(node.node for node in attempt.nodes))
        elif attempt.purpose not in EVICTING and attempt.nodes:
            key = (attempt.outcome,)
        else:
            patterns = tuple((node.node, _votes_pattern(node)) for node in attempt.nodes)
            key = (attempt.outcome, masked(attempt.reason, attempt.task), patterns, _rejections(attempt))
        groups.setdefault(key, []).append(attempt)
    return list(groups.values())


def _rejections(attempt: Attempt) -> tuple[tuple[str, str], ...]:
    """Why each node was rejected: the predicates' own reason if known."""
    because = attempt.explanations
    return tuple((node, because.get(node) or describe_rejection(reason)) for node, reason in attempt.rejected.items())


def attempts_nodes(group: Sequence[Attempt], printed: set[tuple[object, ...]], options: RenderOptions) -> list[Node]:
    """The results of similar tasks; ``printed`` are the votes that were already printed."""
    attempt = group[0]
    if attempt.purpose not in EVICTING and attempt.nodes and attempt.outcome != AttemptOutcome.NO_VOLUMES:
        return [Node(line) for line in placements(group, options)]
    tasks = tasks_in_words([each.task for each in group], home=attempt.job, limit=_limit(options))
    if attempt.outcome == AttemptOutcome.NO_VOLUMES:
        return [Node((tasks, *_attempt_in_words(attempt, len(group))))]
    rejections = by_text(dict(_rejections(attempt)))
    nodes: Sequence[NodeAttempt] = attempt.nodes
    # The nodes to show: the one that fits in the end, and others only if they had candidates for eviction.
    if not options.verbose and attempt.outcome == AttemptOutcome.PIPELINED and attempt.nodes:
        nodes = [*(node for node in attempt.nodes[:-1] if node.candidates), attempt.nodes[-1]]
    if len(nodes) == 1 and not (rejections and attempt.outcome == AttemptOutcome.NO_NODE):
        node = nodes[0]
        outcome = _outcome_in_words(node, attempt.job, attempt.purpose, options)
        words = (tasks, f", on {_scored(node)}: ", *outcome)
        return [Node(words, _votes_once(node, attempt, printed, options))]
    below: list[Node] = []
    if attempt.outcome == AttemptOutcome.NO_NODE or options.verbose:
        for reason, refusing in rejections.items():
            below.append(Node((Span(f"on {_nodes_in_words(refusing, options)}: ", "dim"), reason)))
        if attempt.nearest is not None and attempt.nearest.missing:
            missing = amounts_in_words(attempt.nearest.missing)
            below.append(Node(Span(f"nearest {attempt.nearest.node}: lacks {missing}", "dim")))
    below += _nodes_tried(attempt, nodes, printed, options)
    return [Node((tasks, *_attempt_in_words(attempt, len(group))), below)]


def _scored(node: NodeAttempt) -> str:
    return node.node if node.score is None else f"{node.node} (score {node.score:,.4g})"


def _votes_once(
    node: NodeAttempt, attempt: Attempt, printed: set[tuple[object, ...]], options: RenderOptions
) -> list[Node]:
    """The votes on a node; in short if the plugins gave the same answer before."""
    if not node.candidates:
        return []
    # If a plugin distinguishes between tasks, the same reasons on another node apply to other tasks.
    is_divided = any(vote.victims and vote.rejected for vote in node.votes)
    pattern = (*_votes_pattern(node)[-1:], node.node if is_divided else "")
    if pattern in printed and not options.verbose:
        named = tasks_in_words(node.candidates, home=attempt.job)
        noun = "candidate" if len(node.candidates) == 1 else "candidates"
        return [Node(Span(f"{noun}: {named}; same plugin results", "dim"))]
    if node.votes:
        printed.add(pattern)
    return votes_on(node, home=attempt.job, options=options)


def _attempt_in_words(attempt: Attempt, number: int) -> Phrase:
    node = attempt.nodes[-1].node if attempt.nodes else ""
    words: dict[AttemptOutcome, tuple[str, Role]] = {
        AttemptOutcome.NOT_ALLOCATABLE: (
            f"{agree(number, 'requests')} more than the remaining deserved resources of queue {attempt.queue}",
            "warn",
        ),
        AttemptOutcome.PRE_PREDICATE_FAILED: (f"{agree(number, 'fails')} prePredicates: {attempt.reason}", "bad"),
        AttemptOutcome.NO_NODE: (f"{agree(number, 'fits')} no node", "bad"),
        AttemptOutcome.NO_VOLUMES: (
            f"{agree(number, 'gets')} no volumes on {node}: {attempt.reason}",
            "bad",
        ),
        AttemptOutcome.PIPELINED: (f"pipelined to {node}", "warn"),
    }
    text, style = words.get(attempt.outcome, (str(attempt.outcome), ""))
    return (": ", Span(text, style))


def _nodes_tried(
    attempt: Attempt, nodes: Sequence[NodeAttempt], printed: set[tuple[object, ...]], options: RenderOptions
) -> Iterable[Node]:
    """The nodes in order: in full if tasks are evicted there, others grouped by the plugins' answers."""
    groups: dict[tuple[object, ...], list[NodeAttempt]] = {}
    for node in nodes:
        key = (node.node,) if node.evicted or options.verbose else _votes_pattern(node)
        groups.setdefault(key, []).append(node)
    others = 0
    for group in groups.values():
        first = group[0]
        if not first.evicted and not options.verbose and first.outcome != NodeOutcome.PIPELINED:
            others += 1
            if others > _NODES_SHOWN:
                continue
        rest = [node.node for node in group[1:]]
        named = _scored(first) if not rest or first.candidates else _nodes_in_words([first.node, *rest], options)
        outcome = _outcome_in_words(first, attempt.job, attempt.purpose, options)
        yield Node((f"on {named}: ", *outcome), _votes_once(first, attempt, printed, options))
        if rest and first.candidates:
            yield Node(Span(f"the same on {_nodes_in_words(rest, options)}", "dim"))
    if others > _NODES_SHOWN:
        yield Node(Span("… and more nodes that do not fit (-v)", "dim"))


def placements(group: Sequence[Attempt], options: RenderOptions) -> list[Phrase]:
    """The tasks that found a node, grouped by node; nodes with the same score are mentioned."""
    is_promised = group[0].outcome == AttemptOutcome.PIPELINED
    by_node: dict[tuple[str, str], list[str]] = {}
    for attempt in group:
        others = [node for node in attempt.tied if node != attempt.nodes[-1].node]
        is_short = options.verbose or len(others) <= _NODES_TIED
        either = " or ".join(others) if is_short else f"one of {len(others):,} others"
        tied = f" (or {either}, at random)" if others else ""
        by_node.setdefault((attempt.nodes[-1].node, tied), []).append(attempt.task)
    words = Span("pipelined to ", "warn") if is_promised else Span("allocated to ", "good")
    if len(by_node) > _LOCATIONS_SHOWN and not options.verbose:
        tasks = tasks_in_words([attempt.task for attempt in group], home=group[0].job)
        nodes = list(dict.fromkeys(node for node, _ in by_node))
        ties = sum(len(attempt.tied) > 1 for attempt in group)
        random = f" ({ties:,} of them at random)" if ties else ""
        return [(f"{tasks}: ", words, _nodes_in_words(nodes, options), Span(random, "dim"))]
    once = " once resources are free" if is_promised else ""
    return [
        (
            f"{tasks_in_words(tasks, home=group[0].job, limit=_limit(options))}: ",
            words,
            f"{node}{once}",
            Span(tied, "dim"),
        )
        for (node, tied), tasks in by_node.items()
    ]


def votes_on(tried: NodeAttempt, *, home: str, options: RenderOptions) -> list[Node]:
    """The candidates for eviction on a node, each plugin's answer, and how these combine unless it is obvious."""
    if not tried.candidates:
        return []
    number = len(tried.candidates)
    noun = Span(f"{number:,} candidates: " if number > 1 else "candidate: ", "dim")
    lines = [Node((noun, tasks_in_words(tried.candidates, home=home, limit=_limit(options))))]
    # Plugins of a tier with the same answer are merged.
    answers: list[tuple[int, Phrase, list[str]]] = []
    for vote in tried.votes:
        phrase = _vote(vote, tried, home, options)
        if answers and answers[-1][:2] == (vote.tier, phrase):
            answers[-1][2].append(vote.plugin)
        else:
            answers.append((vote.tier, phrase, [vote.plugin]))
    for tier, phrase, plugins in answers:
        subject = f"{join_names(plugins, limit=len(plugins))} {agree(len(plugins), 'selects')} "
        lines.append(Node((Span(f"tier {tier}: ", "dim"), subject, *phrase)))
    # Votes of one tier that end with the final list need no explanation.
    emptied = any(vote.effect == VoteEffect.EMPTIED for vote in tried.votes)
    if not tried.deciding_tier or emptied or len({vote.tier for vote in tried.votes}) != 1:
        lines.append(Node(_combined(tried, home, options)))
    return lines


def _outcome_in_words(tried: NodeAttempt, home: str, purpose: Purpose, options: RenderOptions) -> Phrase:
    """The result on the node."""
    evicted = tasks_in_words(tried.evicted, home=home, limit=_limit(options))
    missing = amounts_in_words(tried.missing)
    if tried.outcome == NodeOutcome.NO_CANDIDATES:
        return ("no candidates", f"; lacks {missing}" if tried.missing else "")
    if tried.outcome == NodeOutcome.NOT_ENOUGH:
        result = "not enough victims" if tried.victims else "no victims"
        suffix = " even without them" if tried.victims else ""
        return (Span(result, "warn"), f": lacks {missing}{suffix}")
    if tried.outcome == NodeOutcome.STILL_OVERUSED:
        action: Phrase = (Span(f"evicts {evicted}", "bad"), ", but ") if tried.evicted else ()
        return (*action, Span("is not pipelined", "bad"), ": the queue is still overused")
    if tried.outcome == NodeOutcome.WASTED:
        why = f": still lacks {missing}" if tried.missing else ": it still does not fit"
        if purpose == Purpose.RECLAIM:
            why = f": reclaim counts only the resources of the victims and still lacks {missing}"
        return (Span(f"evicts {evicted}", "bad"), ", but is not pipelined", why)
    verb = "is allocated" if tried.outcome == NodeOutcome.ALLOCATED else "is pipelined"
    if not tried.evicted:
        return (Span(verb, "good"), " without evictions")
    return (Span(f"evicts {evicted}", "bad"), f" and {verb}")


def _vote(vote: Vote, tried: NodeAttempt, home: str, options: RenderOptions) -> Phrase:
    """The plugin's answer about the candidates, and what remains of the list."""
    words: str | Span = tasks_in_words(vote.victims, home=home, limit=_limit(options))
    if vote.effect == VoteEffect.EMPTIED:
        words = Span("no victims", "bad")
    elif len(vote.victims) == len(tried.candidates):
        words = "all" if len(tried.candidates) > 1 else "it"
    reasons = by_text({rejection.task: rejection.reason for rejection in vote.rejected})
    shown = list(reasons.items()) if options.verbose else list(reasons.items())[:_REASONS_SHOWN]
    parts = []
    for reason, tasks in shown:
        named = tasks_in_words(tasks, home=home, limit=_limit(options))
        if len(tasks) == len(tried.candidates):
            parts.append(reason)
        else:
            parts.append(f"{reason} ({named})" if vote.effect == VoteEffect.EMPTIED else f"not {named}: {reason}")
    others = len(reasons) - len(shown)
    rest = f"; and {count(others, 'more reason')} (-v)" if others else ""
    why = f"{':' if vote.effect == VoteEffect.EMPTIED else ', but'} {'; '.join(parts)}{rest}"
    remaining = ""
    if vote.effect == VoteEffect.INTERSECTED and vote.remaining != vote.victims:
        left = tasks_in_words(vote.remaining, home=home) if vote.remaining else "none"
        remaining = f"; victims left: {left}"
    return (words, Span(why if parts else "", "dim"), remaining)


def _combined(tried: NodeAttempt, home: str, options: RenderOptions) -> Phrase:
    """How the votes resulted in the victims: the tiers that were skipped, and the one that decided."""
    if not tried.votes:
        return (Span("no plugin selects victims", "dim"),)
    if all(vote.effect == VoteEffect.EMPTIED for vote in tried.votes):
        return ("→ ", Span("no tier selects victims" if len(tried.votes) > 1 else "no victims", "warn"))
    sentences = []
    emptied = [vote for vote in tried.votes if vote.effect == VoteEffect.EMPTIED]
    for vote in emptied:
        before = tried.votes[: tried.votes.index(vote)]
        clears = bool(before) and before[-1].tier == vote.tier and bool(before[-1].remaining)
        ends = f"clears the list and ends tier {vote.tier}" if clears else f"ends tier {vote.tier} without victims"
        sentences.append(f"{vote.plugin} {ends}")
    decided = tried.deciding_tier
    if decided:
        victims = tasks_in_words(tried.victims, home=home, limit=_limit(options))
        sentences.append(f"tier {decided}{' alone' if emptied else ''} decides: {victims}")
    elif any(vote.effect == VoteEffect.INTERSECTED and vote.victims and not vote.remaining for vote in tried.votes):
        sentences.append("once emptied, the list stays empty: no victims")
    else:
        sentences.append("no victims")
    return ("→ ", Span("; ".join(sentences), "" if decided else "warn"))


def _votes_pattern(tried: NodeAttempt) -> tuple[object, ...]:
    """The properties that nodes must share to be grouped."""
    votes = tuple(
        (vote.tier, vote.plugin, vote.effect, tuple(sorted({rejection.reason for rejection in vote.rejected})))
        for vote in tried.votes
    )
    return (
        tried.outcome,
        bool(tried.candidates),
        bool(tried.victims),
        tried.deciding_tier,
        tuple(tried.missing),
        votes,
    )


def _nodes_in_words(nodes: Sequence[str], options: RenderOptions, *, limit: int = 3) -> str:
    """``n1, n2 and 5 more nodes``."""
    if options.verbose or len(nodes) <= limit:
        return ", ".join(nodes)
    return f"{', '.join(nodes[:limit])} and {count(len(nodes) - limit, 'more node')}"


def _limit(options: RenderOptions) -> int | None:
    return None if options.verbose else 4


def enqueued(
    attempts: Sequence[Attempt], action: ActionEvidence, session: SessionVerdict, options: RenderOptions
) -> Listing:
    """The enqueued jobs by queue, and the rejected jobs by plugin."""
    accepted: dict[str, list[str]] = {}
    rejected: dict[tuple[str, str], list[str]] = {}
    for attempt in attempts:
        if attempt.outcome == AttemptOutcome.ENQUEUED:
            accepted.setdefault(attempt.queue, []).append(attempt.job)
        elif attempt.outcome == AttemptOutcome.NOT_ENQUEUED:
            rejected.setdefault((attempt.queue, join_names(attempt.vetoes)), []).append(attempt.job)
    items: list[list[Words]] = [
        [(Span("enqueued", "good"), f"  {tasks_in_words(jobs, limit=_limit(options))} in queue {queue}")]
        for queue, jobs in accepted.items()
    ]
    for (queue, plugins), jobs in rejected.items():
        named = tasks_in_words(jobs, limit=_limit(options))
        words = f"  {named} in queue {queue}, by {veto_in_words(plugins, jobs[0], session)}"
        capacity = describe_queue_capacity(plugins, queue, action)
        items.append([(Span("rejected", "bad"), words), *([Span(capacity, "dim")] if capacity else [])])
    return Listing(items, noun="job")


def veto_in_words(plugin: str, job: str, session: SessionVerdict) -> str:
    """The plugin that rejects a job, with its event and the meaning."""
    text, meaning = _VETOES.get(plugin, ("", ""))
    events = session.final.events if session.final else []
    quoted = f' ("{text}")' if any(event.subject == job and event.message == text for event in events) else ""
    return f"{plugin}{quoted}" + (f": {meaning}" if meaning else "")


def describe_queue_capacity(plugin: str, queue: str, action: ActionEvidence) -> str:
    """A queue's capability and its usage if proportion rejected a job, else an empty text."""
    state = action.queues.get(queue)
    if plugin != "proportion" or state is None:
        return ""
    capability, allocated, inqueue = map(amounts_in_words, (state.capability, state.allocated, state.inqueue))
    return f"capability {capability}; allocated {allocated}; reserved for Inqueue jobs {inqueue}"


class Turn(NamedTuple):
    """The attempts of a job until its statement ended; no statement if the action makes none."""

    job: str
    queue: str
    purpose: Purpose
    attempts: list[Attempt]
    statement: StatementEnd | None


def turns_of(action: ActionEvidence) -> list[Turn]:
    """The attempts by turn, including those before the attempt that the statement records."""
    attempts = [attempt for attempt in action.attempts if attempt.purpose != Purpose.ENQUEUE]
    statements = list(action.statements)
    turns: list[Turn] = []
    at = 0
    for index, end in enumerate(statements):
        following = statements[index + 1] if index + 1 < len(statements) else None
        own: list[Attempt] = []
        while at < len(attempts) and _is_of(attempts[at], end, following, len(own)):
            own.append(attempts[at])
            at += 1
        # Attempts of a turn without a statement may precede those of this one.
        while not own and (end.job, end.purpose) in ((each.job, each.purpose) for each in attempts[at + 1 :]):
            turns.append(_alone(attempts[at]))
            at += 1
            while at < len(attempts) and _is_of(attempts[at], end, following, len(own)):
                own.append(attempts[at])
                at += 1
        # A job's turn within its queue is empty if its tasks already preempted among themselves. That happens if
        # another queue was served first: after each queue, all starving jobs try their own tasks.
        has_no_remaining_task = end.purpose == Purpose.PREEMPT_BETWEEN_JOBS and any(
            (turn.job, turn.purpose) == (end.job, Purpose.PREEMPT_WITHIN_JOB) for turn in turns
        )
        if own or end.operations or has_no_remaining_task:
            turns.append(Turn(end.job, own[0].queue if own else "", end.purpose, own, end))
    turns += [_alone(attempt) for attempt in attempts[at:]]
    # Merge the turns of a job that ended alike: allocate and reclaim take one turn per task.
    joined: dict[tuple[object, ...], Turn] = {}
    for turn in turns:
        is_alone, last = turn.statement is None, turn.statement
        is_kept = last is not None and last.outcome == StatementOutcome.COMMITTED and turn.purpose not in EVICTING
        key = (turn.job, turn.purpose, is_alone) if is_alone or is_kept else (id(turn),)
        before = joined[key].attempts if key in joined else []
        joined[key] = turn._replace(attempts=[*before, *turn.attempts])
    return list(joined.values())


def _is_of(attempt: Attempt, end: StatementEnd, following: StatementEnd | None, taken: int) -> bool:
    if (attempt.job, attempt.purpose) != (end.job, end.purpose):
        return False
    if end.purpose == Purpose.PREEMPT_WITHIN_JOB:
        return taken == 0
    if following is None or (following.job, following.purpose) != (end.job, end.purpose):
        return True
    return attempt.task not in {by for _, _, _, by in following.operations}


def _alone(attempt: Attempt) -> Turn:
    return Turn(attempt.job, attempt.queue, attempt.purpose, [attempt], None)


# A run of at least this many numbered tasks is shortened to its first and last.
_SHORTEST_RUN = 3
_PARTS_LISTED = 4
_NUMBERED = re.compile(r"(?P<stem>.*\D)(?P<number>0|[1-9]\d{0,8})", re.DOTALL)
_THOUSANDTHS = 1000
_PREDICATES = re.compile(
    r"(?:preempt |reclaim )?predicates failed (?:in \w+ )?for task <[^>]*> on node <[^>]*>(?P<rest>.*)", re.DOTALL
)
_STATUS = re.compile(r", status is not success(?: or unschedulable)?")
_SUBTRACTION = re.compile(r"<(?P<have>[^>]*)> sub <(?P<take>[^>]*)>")
_QUANTITY = re.compile(r"(?P<name>\S+) (?P<amount>-?\d+(?:\.\d+)?)")


def volcano_amount(resource: str, amount: float) -> str:
    """An amount as a quantity; memory is in bytes, all others in thousandths; -1 is no limit."""
    if amount == -1:
        return "no limit"
    if resource in ("cpu", "memory"):
        nearest = round(amount)
        shown = format_amount(resource, nearest)
        return shown if nearest == amount or shown.startswith("~") else f"~{shown}"
    whole, rest = divmod(amount, _THOUSANDTHS)
    return format_amount(resource, int(whole)) if not rest else f"{amount / _THOUSANDTHS:,.3f}".rstrip("0")


def amounts_in_words(amounts: Amounts) -> str:
    """``cpu 2, memory 1Gi``; zeros are omitted."""
    parts = [f"{name} {volcano_amount(name, amount)}" for name, amount in amounts.items() if amount]
    return ", ".join(parts) or "nothing"


def change(before: str, after: str) -> str:
    """``2 → 4``, or a single value if both are the same."""
    return after if before == after else f"{before} → {after}"


def tasks_in_words(tasks: Iterable[str], *, home: str = "", limit: int | None = _PARTS_LISTED) -> str:
    """Task names, with runs of numbered tasks shortened: ``ml/train-0 … train-7 (8)``.

    The namespace of the job ``home`` is omitted; ``limit`` is the maximum number of names and runs.
    """
    prefix = f"{home.partition('/')[0]}/" if home else ""
    runs = _runs(tasks)
    shown = []
    for first, *others in runs if limit is None else runs[:limit]:
        ends = f" … {others[-1].rpartition('/')[2]} ({len(others) + 1:,})" if others else ""
        shown.append(f"{first.removeprefix(prefix)}{ends}")
    if rest := sum(map(len, runs[len(shown) :])):
        return f"{', '.join(shown)} and {rest:,} more"
    return join_names(shown, limit=max(len(shown), 1))


def _runs(tasks: Iterable[str]) -> list[list[str]]:
    """The tasks with consecutive numbers merged into runs, in the order of the first of each name."""
    stems: dict[str, dict[int, str]] = {}
    for task in dict.fromkeys(tasks):
        match = _NUMBERED.fullmatch(task)
        stem, number = (match["stem"], int(match["number"])) if match else (f"{task}\0", 0)
        stems.setdefault(stem, {})[number] = task
    runs: list[list[str]] = []
    for numbered in stems.values():
        groups: list[list[int]] = []
        for number in sorted(numbered):
            if groups and number == groups[-1][-1] + 1:
                groups[-1].append(number)
            else:
                groups.append([number])
        for run in groups:
            names = [numbered[number] for number in run]
            runs += [names] if len(names) >= _SHORTEST_RUN else [[name] for name in names]
    return runs


def describe_rejection(reason: str) -> str:
    """Why a node was rejected, without the names of the task and the node, which are shown next to it."""
    match = _PREDICATES.fullmatch(reason)
    if match is None:
        return reason
    return match["rest"].removeprefix(": ") if not _STATUS.fullmatch(match["rest"]) else "its predicates failed"


def subtraction_in_words(message: str) -> str:
    """The subtraction in a panic message: ``cpu 6 from cpu 4``; empty if the panic is about something else."""
    match = _SUBTRACTION.search(message)
    if match is None:
        return ""
    have, take = (
        {found["name"]: float(found["amount"]) for found in _QUANTITY.finditer(match[side])}
        for side in ("have", "take")
    )
    parts = []
    for name, amount in take.items():
        available = have.get(name, 0.0)
        if amount > available:
            sign = "-" if available < 0 else ""
            parts.append(
                f"{name} {volcano_amount(name, amount)} from {name} {sign}{volcano_amount(name, abs(available))}"
            )
    return ", ".join(parts)


def masked(text: str, name: str) -> str:
    """A message without the name of its subject, so that equal messages can be merged."""
    return text.replace(name, "…") if name else text
