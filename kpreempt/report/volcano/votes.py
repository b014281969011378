"""What the plugins said: of the tasks on a node, tier by tier, and of who is let into a queue and who is kept out."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import Page, Phrase, Span
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano.words import amounts_in_words, by_text, tasks_in_words
from kpreempt.verdict.volcano import (
    ActionEvidence,
    Attempt,
    AttemptOutcome,
    NodeOutcome,
    NodeTried,
    Purpose,
    SessionVerdict,
    Vote,
    VoteEffect,
)

_REASONS_SHOWN = 3

_INDENT = 2
# What overcommit and proportion mean when they keep a job out (``overcommit.go``, ``proportion.go`` of Volcano v1.8.0).
_VETOES = {
    "overcommit": (
        "resource in cluster is overused",
        "with it, the minResources of Inqueue jobs would exceed what is idle, times the overcommit factor",
    ),
    "proportion": ("queue resource quota insufficient", "with it, its queue would exceed its capability"),
}


def add_votes(page: Page, tried: NodeTried, *, home: str, indent: int, options: RenderOptions) -> None:
    """The candidates for eviction on a node, what each plugin said, and how that combines where it is not plain."""
    if not tried.candidates:
        return
    number = len(tried.candidates)
    page.paragraph(
        Span(f"{number:,} candidates: " if number > 1 else "candidate: ", "dim"),
        tasks_in_words(tried.candidates, home=home, limit=_limit(options)),
        indent=indent,
        hanging=2,
    )
    rows: list[tuple[int, list[str], Phrase]] = []
    for vote in tried.votes:
        phrase = _vote(vote, tried, home, options)
        # Plugins of a tier that say the same stand together.
        if rows and rows[-1][0] == vote.tier and rows[-1][2] == phrase:
            rows[-1][1].append(vote.plugin)
        else:
            rows.append((vote.tier, [vote.plugin], phrase))
    table: list[tuple[Phrase, ...]] = []
    for index, (tier, plugins, phrase) in enumerate(rows):
        label = f"tier {tier}" if not index or rows[index - 1][0] != tier else ""
        table.append(((Span(label, "dim"),), (", ".join(plugins),), phrase))
    if table:
        page.table(table, aligns=("left", "left", "left"), indent=indent)
    if not _is_plain(tried):
        page.paragraph(*_combined(tried, home, options), indent=indent, hanging=2)


def _is_plain(tried: NodeTried) -> bool:
    """Whether the votes are of one tier, and end with the list that counts."""
    effects = {vote.effect for vote in tried.votes}
    return bool(tried.deciding_tier) and VoteEffect.EMPTIED not in effects and len({v.tier for v in tried.votes}) == 1


def outcome_in_words(tried: NodeTried, home: str, purpose: Purpose, options: RenderOptions) -> Phrase:
    """How it ended on the node."""
    evicted = tasks_in_words(tried.evicted, home=home, limit=_limit(options))
    missing = amounts_in_words(tried.missing)
    if tried.outcome == NodeOutcome.NO_CANDIDATES:
        return ("no candidates", f"; short of {missing}" if tried.missing else "")
    if tried.outcome == NodeOutcome.NOT_ENOUGH:
        who = "not enough victims" if tried.victims else "no victims"
        even = " even without them" if tried.victims else ""
        return (Span(who, "warn"), f": short of {missing}{even}")
    if tried.outcome == NodeOutcome.STILL_OVERUSED:
        whom = f"evicts {evicted}" if tried.evicted else "evicts no task"
        return (Span(whom, "bad"), ", and pipelines none: the queue is overused still")
    if tried.outcome == NodeOutcome.WASTED:
        why = f": short of {missing} even then" if tried.missing else ": it does not fit even then"
        if purpose == Purpose.RECLAIM:
            why = f": reclaim counts only what its victims free, short of {missing}"
        return (Span(f"evicts {evicted}", "bad"), ", and pipelines none", why)
    verb = "is allocated" if tried.outcome == NodeOutcome.ALLOCATED else "is pipelined"
    if not tried.evicted:
        return (Span(verb, "good"), " without evictions")
    return (Span(f"evicts {evicted}", "bad"), f", and {verb}")


def _vote(vote: Vote, tried: NodeTried, home: str, options: RenderOptions) -> Phrase:
    """What the plugin says of the candidates, and what is left of the list after it."""
    everyone = len(vote.victims) == len(tried.candidates)
    if vote.effect == VoteEffect.EMPTIED:
        words: Phrase = (Span("names none", "bad"),)
    elif everyone:
        words = ("names all",) if len(tried.candidates) > 1 else ("names it",)
    else:
        words = (f"names {tasks_in_words(vote.victims, home=home, limit=_limit(options))}",)
    reasons = by_text({refusal.task: refusal.reason for refusal in vote.refused})
    shown = list(reasons.items()) if options.verbose else list(reasons.items())[:_REASONS_SHOWN]
    parts = []
    for reason, tasks in shown:
        is_all = len(tasks) == len(tried.candidates)
        named = "" if is_all else f"not {tasks_in_words(tasks, home=home, limit=_limit(options))}: "
        parts.append(f"{named}{reason}")
    others = len(reasons) - len(shown)
    rest = f"; and {count(others, 'more reason')} (-v)" if others else ""
    why = f": {'; '.join(parts)}{rest}" if vote.effect == VoteEffect.EMPTIED else f"; {'; '.join(parts)}{rest}"
    left = ""
    if vote.effect == VoteEffect.KEPT and vote.left != vote.victims:
        left = (
            f"; left of both lists: {tasks_in_words(vote.left, home=home)}" if vote.left else "; none is on both lists"
        )
    return (*words, Span(why if parts else "", "dim"), left)


def _combined(tried: NodeTried, home: str, options: RenderOptions) -> Phrase:
    """How the votes came to the victims: tiers that were skipped, the one that decided."""
    if not tried.votes:
        return (Span("no plugin decides on victims: none", "dim"),)
    if all(vote.effect == VoteEffect.EMPTIED for vote in tried.votes):
        return ("→ ", Span("no tier names a victim" if len(tried.votes) > 1 else "no victims", "warn"))
    sentences = []
    emptied = [vote for vote in tried.votes if vote.effect == VoteEffect.EMPTIED]
    for vote in emptied:
        undone = ", clears the list" if _had_names(tried.votes, vote) else ""
        sentences.append(f"{vote.plugin} names none{undone} and ends tier {vote.tier}")
    decided = tried.deciding_tier
    if decided:
        alone = " alone" if emptied else ""
        sentences.append(
            f"tier {decided} decides{alone}: {tasks_in_words(tried.victims, home=home, limit=_limit(options))}"
        )
    elif any(vote.effect == VoteEffect.KEPT and vote.victims and not vote.left for vote in tried.votes):
        sentences.append("once emptied, the list is never filled again: no victims")
    else:
        sentences.append("no victims")
    return ("→ ", Span("; ".join(sentences), "" if decided else "warn"))


def _had_names(votes: Sequence[Vote], last: Vote) -> bool:
    """Whether there was a list when the vote emptied it."""
    before = votes[: votes.index(last)]
    return bool(before) and before[-1].tier == last.tier and bool(before[-1].left)


def votes_pattern(tried: NodeTried) -> tuple[object, ...]:
    """What nodes must share to be told together."""
    votes = tuple(
        (vote.tier, vote.plugin, vote.effect, tuple(sorted({refusal.reason for refusal in vote.refused})))
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


def nodes_in_words(nodes: Sequence[str], options: RenderOptions, *, limit: int = 3) -> str:
    """``n1, n2 and 5 more nodes``."""
    if options.verbose or len(nodes) <= limit:
        return ", ".join(nodes)
    return f"{', '.join(nodes[:limit])} and {count(len(nodes) - limit, 'more node')}"


def _limit(options: RenderOptions) -> int | None:
    return None if options.verbose else 4


def veto_in_words(plugin: str, job: str, session: SessionVerdict) -> str:
    """Which plugin rejects a job, with the event that says so, and what that means."""
    said, meaning = _VETOES.get(plugin, ("", ""))
    events = session.final.events if session.final else []
    quoted = f' ("{said}")' if any(event.subject == job and event.message == said for event in events) else ""
    return f"{plugin}{quoted}" + (f": {meaning}" if meaning else "")


def add_enqueued(
    page: Page, attempts: Sequence[Attempt], action: ActionEvidence, session: SessionVerdict, options: RenderOptions
) -> None:
    """The jobs that are enqueued, by queue, and those that are rejected, by plugin."""
    let_in: dict[str, list[str]] = {}
    for attempt in attempts:
        if attempt.outcome == AttemptOutcome.ENQUEUED:
            let_in.setdefault(attempt.queue, []).append(attempt.job)
    for queue, jobs in let_in.items():
        page.paragraph(
            Span("enqueued", "good"),
            f"  {tasks_in_words(jobs, limit=None if options.verbose else 4)} in queue {queue}",
            indent=_INDENT,
            hanging=4,
        )
    out: dict[tuple[str, str], list[str]] = {}
    for attempt in attempts:
        if attempt.outcome == AttemptOutcome.NOT_ENQUEUED:
            out.setdefault((attempt.queue, join_names(attempt.vetoes)), []).append(attempt.job)
    for (queue, plugins), jobs in out.items():
        page.paragraph(
            Span("rejected", "bad"),
            f"  {tasks_in_words(jobs, limit=None if options.verbose else 4)} of queue {queue}, by "
            f"{veto_in_words(plugins, jobs[0], session)}",
            indent=_INDENT,
            hanging=4,
        )
        if room := queue_room_in_words(plugins, queue, action):
            page.paragraph(Span(room, "dim"), indent=_INDENT + 4, hanging=2)


def queue_room_in_words(plugin: str, queue: str, action: ActionEvidence) -> str:
    """A queue's capability, and what counts against it, where that is why a job was rejected; else an empty text."""
    state = action.queues.get(queue)
    if plugin != "proportion" or state is None:
        return ""
    holds, has, let_in = map(amounts_in_words, (state.capability, state.allocated, state.inqueue))
    return f"capability {holds}; allocated {has}; reserved for Inqueue jobs {let_in}"
