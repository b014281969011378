"""What would have to be different: each change in words, what it brings, and the options that try it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec

from kpreempt.report.amounts import count, format_amount
from kpreempt.report.blocks import Block, Listing, Phrase, Section, Sentence, Span, Words, strong
from kpreempt.report.evidence import join_names
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Change, ChangeKind, Outcome, Proposal, ProposalSearch, Verdict
from kpreempt.verdict.story import NodeKind, OneMoreNode
from kpreempt.verdict.unread import are_budgets_unread

_PROPOSALS_SHOWN = 4
_NODES_SHOWN = 3
_VICTIMS_SHOWN = 3
_AMOUNTS_SHOWN = 4
_WIDEST_NAME = 28
# What is beside an option on a screen.
_AROUND_OPTION = 14
_INSTEAD = 40
# What hardly tells kinds of nodes apart.
_NOT_TOLD = ("pods", "ephemeral-storage")
_SKIPPED = "not sought on a cluster of this size; --node NAME seeks those for one node"

_WORDS = {
    ChangeKind.TOLERATION: "tolerate the taint {subject}",
    ChangeKind.PREFERENCE: "drop its {subject}",
    ChangeKind.NODE_SELECTOR: "drop the node selector {subject}",
    ChangeKind.NODE_AFFINITY: "drop the required node affinity {subject}",
    ChangeKind.POD_AFFINITY: "drop the required pod affinity to {subject}",
    ChangeKind.POD_ANTI_AFFINITY: "drop the required anti-affinity to {subject}",
    ChangeKind.SPREAD: "drop the spread constraint of {subject}",
    ChangeKind.HOST_PORT: "do without host port {subject}",
    ChangeKind.PREEMPTION_POLICY: "let it preempt others (preemptionPolicy {subject})",
    ChangeKind.UNCORDON: "uncordon {subject}",
    ChangeKind.WITHOUT_POD: "remove pod {subject}",
    ChangeKind.CORDON: "cordon {subject}",
    ChangeKind.PIN: "select the node by {subject}",
}


def changes_section(verdict: Verdict, options: RenderOptions) -> Section:
    """``CHANGES``: those with which a pod lands that is unschedulable, or one that preempts without that."""
    more = verdict.one_more_node
    is_sought = verdict.proposal_search is not None or bool(verdict.proposals)
    section = Section("CHANGES")
    if is_sought:
        goal = "it lands" if verdict.outcome == Outcome.NEVER_LANDS else "nobody is evicted"
        lacks_budgets = are_budgets_unread(verdict.assumptions)
        search = verdict.proposal_search or ProposalSearch()
        section = proposals_section(verdict.proposals, search, goal, options, lacks_budgets=lacks_budgets)
    if more is None:
        return section
    line = ("or " if is_sought and more.kinds else "", *describe_one_more_node(more))
    tried = [Span(join_options(more.options), "code")] if more.kinds else []
    others = [f"also like {join_names([each.like for each in more.kinds[1:]])}"] if more.kinds[1:] else []
    assumed = [Span(f"assumed: {each}", "warn") for each in more.assumed]
    node = Listing([[line, *tried, *others, *assumed]])
    short = section.short or Section("INSTEAD")
    if more.kinds or more.not_sought:
        brief = ("or " if not short.is_empty and more.kinds else "", *describe_one_more_node(more, widest=_WIDEST_NAME))
        fits = tried if len(join_options(more.options)) < options.width - _AROUND_OPTION else []
        short = Section("INSTEAD", short.lead, [*short.blocks, Listing([[brief, *fits]], noun="change")])
    if not is_sought:
        return msgspec.structs.replace(section, blocks=[node], is_beside=True, priority=_INSTEAD, short=short)
    return msgspec.structs.replace(section, blocks=[*section.blocks, node], short=short)


def describe_one_more_node(more: OneMoreNode, *, widest: int = 0) -> Phrase:
    """With a new node of which kind the pod lands, or that there is none, or that none was sought.

    Names are shortened to ``widest`` cells where that is given.
    """
    if more.not_sought:
        return (f"1 more node: {more.not_sought}",)
    if not more.kinds:
        untried = f", and {more.untried:,} were not tried" if more.untried else ""
        kinds = count(more.num_kinds - more.untried, "kind")
        return (f"1 more node like those of the cluster would not place it ({kinds} tried{untried})",)
    nodes = join_names(more.nodes, limit=_NODES_SHOWN)
    where = "there" if more.nodes == [more.node] else f"on {nodes if len(more.nodes) == 1 else f'one of {nodes}'}"
    like = more.kinds[0].like
    if widest and len(like) > widest:
        like = f"{like[: widest // 2]}…{like[1 - widest // 2 :]}"
    kind = (strong(f"1 more node like {like}"), f" ({amounts_of(more.kinds[0])}): ")
    return (*kind, Span("lands", "good"), f" {where}")


def amounts_of(kind: NodeKind) -> str:
    """What a node of the kind has for pods: ``4 cpu, 15Gi memory, 1 nvidia.com/gpu``."""
    names = [name for name, amount in kind.allocatable.items() if amount and name not in _NOT_TOLD]
    names.sort(key=lambda name: (name != "cpu", name != "memory"))
    return ", ".join(f"{format_amount(name, kind.allocatable[name])} {name}" for name in names[:_AMOUNTS_SHOWN])


def proposals_section(
    proposals: Sequence[Proposal],
    search: ProposalSearch,
    goal: str,
    options: RenderOptions,
    *,
    lacks_budgets: bool,
) -> Section:
    """The changes that bring about the ``goal``, numbered, and how far they were sought.

    ``lacks_budgets`` says that none could be read.
    """
    if not proposals:
        said = nothing_found(search)
        return Section("CHANGES", said, priority=_INSTEAD, short=Section("INSTEAD", said))
    is_pair = all(len({change.kind for change in proposal.changes}) > 1 for proposal in proposals)
    these = "this" if len(proposals) == 1 else "any one of these, the least intrusive first,"
    only = "no single change is enough; " if is_pair else ""
    items: list[list[Words]] = []
    brief: list[list[Words]] = []
    for proposal in proposals:
        # What becomes of the pod with the changes.
        names = join_names(proposal.nodes, limit=_NODES_SHOWN)
        nodes = names if len(proposal.nodes) == 1 else f"one of {names}"
        if proposal.outcome == Outcome.LANDS:
            brings: Phrase = (Span("lands", "good"), f" on {nodes}; nothing is evicted")
        else:
            victims = join_names(proposal.victims, limit=_VICTIMS_SHOWN)
            violations = proposal.num_pdb_violations
            kept = Span("budgets were not read", "warn") if lacks_budgets else Span("no budget is violated", "good")
            broken = Span(count(violations, "budget violation"), "bad") if violations else kept
            if len(proposal.nodes) == 1:
                brings = (Span("preempts", "warn"), f" {victims} on {nodes}; ", broken)
            else:
                example = proposal.node if proposal.node in proposal.nodes else "".join(proposal.nodes[:1])
                brings = (Span("preempts", "warn"), f" pods on {nodes}; on {example} {victims}, ", broken)
        line = (*describe_changes(proposal.changes), ": ", *brings)
        tried = join_options(proposal.options)
        items.append([line, Span(tried, "code")])
        # Half an option helps no one.
        fits = not brief and len(tried) < options.width - _AROUND_OPTION
        brief.append([("or " if brief else "", *line), *([Span(tried, "code")] if fits else [])])
    blocks: list[Block] = [Listing(items, noun="change", shown=_PROPOSALS_SHOWN, is_numbered=True)]
    if search.is_skipped:
        blocks.append(Sentence(Span(f"others are {_SKIPPED}", "dim")))
    elif not search.is_complete:
        blocks.append(Sentence(Span(f"the search gave up after {count(search.verdicts, 'verdict')}", "dim")))
    if search.extender_calls:
        blocks.append(Sentence(Span(_asked_again(search), "dim")))
    return Section(
        "CHANGES",
        f"{only}with {these} {goal}:",
        blocks,
        priority=_INSTEAD,
        short=Section("INSTEAD", blocks=[Listing(brief, noun="change")]),
    )


def describe_changes(changes: Sequence[Change]) -> Phrase:
    """The changes in words, as a request to whoever can make them."""
    parts: list[str | Span] = []
    for number, change in enumerate(changes):
        parts += [", and " if number else "", strong(_in_words(change))]
    return tuple(parts)


def join_options(options: Sequence[str]) -> str:
    """The options as a shell takes them; no option breaks at a space, so that it can be copied from a narrow page."""
    split = [option.partition("=") for option in options]
    return " ".join(f"{name}{equals}{shlex.quote(value) if equals else ''}" for name, equals, value in split)


def nothing_found(search: ProposalSearch) -> str:
    """That no change was found, and how far it was sought."""
    asked_again = f"; {_asked_again(search)}" if search.extender_calls else ""
    if search.failing_extender:
        return f"not sought: extender {search.failing_extender} fails, which no change helps"
    if search.is_skipped:
        return f"no priority is enough; others are {_SKIPPED}"
    if not search.is_complete:
        return f"none found; the search gave up after {count(search.verdicts, 'verdict')}{asked_again}"
    return f"none found among those that are tried, alone and in pairs{asked_again}"


def _asked_again(search: ProposalSearch) -> str:
    return f"extenders were called {count(search.extender_calls or 0, 'more time')} for this"


def _in_words(change: Change) -> str:
    before, after, subject = change.before or 0, change.after or 0, change.subject
    if change.kind == ChangeKind.REQUEST:
        wanted = format_amount(subject, after, exact=True) if after else "no"
        return f"request {wanted} {subject} instead of {format_amount(subject, before, exact=True)}"
    if change.kind == ChangeKind.MAX_SKEW:
        return f"allow a skew of {after:,} instead of {before:,} for {subject}"
    if change.kind == ChangeKind.PRIORITY:
        return f"raise its priority from {before:,} to {after:,}"
    if change.kind == ChangeKind.BUDGET:
        return f"let budget {subject} allow {count(after, 'disruption')} instead of {before:,}"
    return _WORDS[change.kind].format(subject=subject)
