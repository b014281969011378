"""What the plugins said of the tasks on a node, tier by tier, and what their votes came to."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.layout import Page, Phrase, Span
from kpreempt.report.options import RenderOptions
from kpreempt.report.volcano_words import amounts_in_words, by_text, tasks_in_words
from kpreempt.verdict.volcano import NodeOutcome, NodeTried, Purpose, Vote, VoteEffect

_REASONS_SHOWN = 3


def add_node(page: Page, tried: NodeTried, *, home: str, purpose: Purpose, indent: int, options: RenderOptions) -> None:
    """A node that was tried: who could be asked to leave, every vote, and how it ended."""
    score = "" if tried.score is None else f" (score {tried.score:,.4g})"
    page.paragraph(
        *(f"on {tried.node}{score}: ", *outcome_in_words(tried, home, purpose, options)), indent=indent, hanging=2
    )
    if not tried.candidates:
        return
    number = len(tried.candidates)
    page.paragraph(
        Span(f"of {number:,} that may be asked: " if number > 1 else "may be asked: ", "dim"),
        tasks_in_words(tried.candidates, home=home, limit=_limit(options)),
        indent=indent + 2,
        hanging=2,
    )
    add_votes(page, tried, home=home, indent=indent + 2, options=options)


def add_votes(page: Page, tried: NodeTried, *, home: str, indent: int, options: RenderOptions) -> None:
    """A line for each plugin, and the one that says how the votes combine."""
    rows: list[tuple[Phrase, ...]] = []
    tier = 0
    for vote in tried.votes:
        label = "" if vote.tier == tier else f"tier {vote.tier}"
        tier = vote.tier
        rows.append(((Span(label, "dim"),), (vote.plugin,), _vote(vote, tried, home, options)))
    if rows:
        page.table(rows, aligns=("left", "left", "left"), indent=indent)
    page.paragraph(*_combined(tried, home, options), indent=indent, hanging=2)


def outcome_in_words(tried: NodeTried, home: str, purpose: Purpose, options: RenderOptions) -> Phrase:
    """How it ended on the node."""
    evicted = tasks_in_words(tried.evicted, home=home, limit=_limit(options))
    missing = amounts_in_words(tried.missing)
    if tried.outcome == NodeOutcome.NO_CANDIDATES:
        return ("nobody to ask", f"; short of {missing}" if tried.missing else "")
    if tried.outcome == NodeOutcome.NOT_ENOUGH:
        who = "without all of them" if tried.victims else "and nobody may go:"
        return (Span("not enough", "warn"), f": {who} it is short of {missing}" if tried.victims else _alone(missing))
    if tried.outcome == NodeOutcome.STILL_OVERUSED:
        whom = f"evicts {evicted}" if tried.evicted else "evicts nobody"
        return (Span(whom, "bad"), ", and nobody gets the room: the queue has all that it deserves still")
    if tried.outcome == NodeOutcome.WASTED:
        why = f": they free too little, short of {missing}" if tried.missing else ": it does not fit still"
        if purpose == Purpose.RECLAIM:
            why = f": reclaim counts only what the evicted free, and is short of {missing}"
        return (Span(f"evicts {evicted}", "bad"), ", and nobody gets the room", why)
    verb = "goes there" if tried.outcome == NodeOutcome.ALLOCATED else "is promised the room"
    if not tried.evicted:
        return (Span(verb, "good"), ", and nobody has to go")
    return (Span(f"evicts {evicted}", "bad"), f", and {verb}")


def _alone(missing: str) -> str:
    return f": nobody may go, and it is short of {missing}"


def _vote(vote: Vote, tried: NodeTried, home: str, options: RenderOptions) -> Phrase:
    """What the plugin says of the candidates, and what is left of the list after it."""
    everyone = len(vote.victims) == len(tried.candidates)
    if vote.effect == VoteEffect.EMPTIED:
        words: Phrase = (Span("lets nobody go", "bad"),)
    elif everyone:
        words = ("lets all go",) if len(tried.candidates) > 1 else ("lets it go",)
    else:
        words = (f"lets {tasks_in_words(vote.victims, home=home, limit=_limit(options))} go",)
    reasons = by_text({refusal.task: refusal.reason for refusal in vote.refused})
    shown = list(reasons.items()) if options.verbose else list(reasons.items())[:_REASONS_SHOWN]
    parts = []
    for reason, tasks in shown:
        is_all = len(tasks) == len(tried.candidates)
        named = "" if is_all else f"not {tasks_in_words(tasks, home=home, limit=_limit(options))}: "
        parts.append(f"{named}{reason}")
    rest = f"; and {len(reasons) - len(shown):,} other reasons" if len(shown) < len(reasons) else ""
    why = f": {'; '.join(parts)}{rest}" if vote.effect == VoteEffect.EMPTIED else f"; {'; '.join(parts)}{rest}"
    left = ""
    if vote.effect == VoteEffect.KEPT and vote.left != vote.victims:
        left = f"; both lists name {tasks_in_words(vote.left, home=home)}" if vote.left else "; no list names the same"
    return (*words, Span(why if parts else "", "dim"), left)


def _combined(tried: NodeTried, home: str, options: RenderOptions) -> Phrase:
    """How the votes came to the victims: tiers that were skipped, the one that decided."""
    if not tried.votes:
        return (Span("no plugin has a say, so nobody may go", "dim"),)
    sentences = []
    emptied = [vote for vote in tried.votes if vote.effect == VoteEffect.EMPTIED]
    for vote in emptied:
        undone = ", clears the list" if _had_names(tried.votes, vote) else ""
        sentences.append(f"{vote.plugin} names none{undone} and ends tier {vote.tier}")
    decided = tried.deciding_tier
    if decided:
        alone = " alone" if emptied else ""
        sentences.append(
            f"tier {decided} decides{alone}: {tasks_in_words(tried.victims, home=home, limit=_limit(options))} may go"
        )
    elif any(vote.effect == VoteEffect.FIRST for vote in tried.votes):
        sentences.append("a list that was made and emptied is never filled again: nobody may go")
    else:
        sentences.append("no tier names anybody: nobody may go")
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


def refuse(number: int) -> str:
    """The verb for so many nodes."""
    return agree(number, "refuses")


def _limit(options: RenderOptions) -> int | None:
    return None if options.verbose else 4
