"""The changes that would help: each in words, with its outcome and the options that try it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec

from kpreempt.report.amounts import count, format_amount
from kpreempt.report.blocks import Block, Listing, Phrase, Section, Sentence, Span, Words, strong
from kpreempt.report.evidence import join_names
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Change, ChangeKind, Outcome, Proposal, ProposalSearch, Verdict
from kpreempt.verdict.node_report import NodeKind, OneMoreNode
from kpreempt.verdict.unread import are_budgets_unread

_PROPOSALS_SHOWN = 4
_NODES_SHOWN = 3
_VICTIMS_SHOWN = 3
_AMOUNTS_SHOWN = 4
_WIDEST_NAME = 28
# The width of what surrounds an option on a screen.
_AROUND_OPTION = 14
_INSTEAD = 40
# Resources that hardly distinguish kinds of nodes.
_OMITTED_RESOURCES = ("pods", "ephemeral-storage")
_SKIPPED = "not searched on a cluster of this size; --node NAME searches them for one node"

_WORDS = {
    ChangeKind.TOLERATION: "tolerate the taint {subject}",
    ChangeKind.PREFERENCE: "drop the pod's {subject}",
    ChangeKind.NODE_SELECTOR: "drop the node selector {subject}",
    ChangeKind.NODE_AFFINITY: "drop the required node affinity {subject}",
    ChangeKind.POD_AFFINITY: "drop the required pod affinity to {subject}",
    ChangeKind.POD_ANTI_AFFINITY: "drop the required anti-affinity to {subject}",
    ChangeKind.SPREAD: "drop the topology spread constraint {subject}",
    ChangeKind.HOST_PORT: "drop the host port {subject}",
    ChangeKind.PREEMPTION_POLICY: "let the pod preempt other pods (preemptionPolicy {subject})",
    ChangeKind.UNCORDON: "uncordon {subject}",
    ChangeKind.WITHOUT_POD: "remove pod {subject}",
    ChangeKind.CORDON: "cordon {subject}",
    ChangeKind.PIN: "select the node by {subject}",
}


def changes_section(verdict: Verdict, options: RenderOptions) -> Section:
    """``CHANGES``: changes that let an unschedulable pod schedule, or a preempting pod schedule without evictions."""
    more = verdict.one_more_node
    is_sought = verdict.proposal_search is not None or bool(verdict.proposals)
    section = Section("CHANGES")
    if is_sought:
        goal = "the pod lands" if verdict.outcome.stays_pending else "no pod is evicted"
        lacks_budgets = are_budgets_unread(verdict.assumptions)
        search = verdict.proposal_search or ProposalSearch()
        has_node = more is not None and bool(more.kinds)
        section = proposals_section(
            verdict.proposals, search, goal, options, lacks_budgets=lacks_budgets, has_node=has_node
        )
    if more is None:
        return section
    line = ("or " if is_sought and more.kinds else "", *describe_one_more_node(more))
    tried = [Span(join_options(more.options), "code")] if more.kinds else []
    alternatives = join_names([each.like for each in more.kinds[1:]]).replace(" and ", " or ")
    others = [f"a node like {alternatives} works, too"] if more.kinds[1:] else []
    assumed = [Span(f"assumed: {each}", "warn") for each in more.assumed]
    node = Listing([[line, *tried, *others, *assumed]])
    short = section.short or Section("FIX")
    if more.kinds or more.not_searched:
        brief = ("or " if not short.is_empty and more.kinds else "", *describe_one_more_node(more, widest=_WIDEST_NAME))
        fits = tried if len(join_options(more.options)) < options.width - _AROUND_OPTION else []
        short = Section("FIX", short.lead, [*short.blocks, Listing([[brief, *fits]], noun="change")])
    if not is_sought:
        return msgspec.structs.replace(section, blocks=[node], is_inline=True, priority=_INSTEAD, short=short)
    return msgspec.structs.replace(section, blocks=[*section.blocks, node], short=short)


def describe_one_more_node(more: OneMoreNode, *, widest: int = 0) -> Phrase:
    """The kind of new node that the pod lands on, or a note that none was found or searched for.

    Names are shortened to ``widest`` cells if that is given.
    """
    if more.not_searched:
        return (f"1 more node: {more.not_searched}",)
    if not more.kinds:
        untried = f"; {more.untried:,} not tried" if more.untried else ""
        kinds = count(more.num_kinds - more.untried, "kind")
        return (f"adding 1 node like those in the cluster would not help ({kinds} tried{untried})",)
    destination = "there" if more.nodes == [more.node] else f"on {_any_of(more.nodes)}"
    like = more.kinds[0].like
    if widest and len(like) > widest:
        like = f"{like[: widest // 2]}…{like[1 - widest // 2 :]}"
    kind = (strong(f"add 1 node like {like}"), f" ({amounts_of(more.kinds[0])}): the pod ")
    return (*kind, Span("lands", "good"), f" {destination}")


def _any_of(nodes: Sequence[str]) -> str:
    """The nodes that the scheduler picks from: ``a``, ``a or b``, ``one of a, b, c and 4 more``."""
    names = join_names(nodes, limit=_NODES_SHOWN)
    return names.replace(" and ", " or ") if len(nodes) <= _NODES_SHOWN else f"one of {names}"


def amounts_of(kind: NodeKind) -> str:
    """The allocatable resources of the kind: ``4 cpu, 15Gi memory, 1 nvidia.com/gpu``."""
    names = [name for name, amount in kind.allocatable.items() if amount and name not in _OMITTED_RESOURCES]
    names.sort(key=lambda name: (name != "cpu", name != "memory"))
    return ", ".join(f"{format_amount(name, kind.allocatable[name])} {name}" for name in names[:_AMOUNTS_SHOWN])


def proposals_section(
    proposals: Sequence[Proposal],
    search: ProposalSearch,
    goal: str,
    options: RenderOptions,
    *,
    lacks_budgets: bool,
    has_node: bool = False,
) -> Section:
    """The changes that achieve the ``goal``, numbered, and how thorough the search was.

    ``lacks_budgets``: no PodDisruptionBudgets could be read. ``has_node``: adding a node achieves the goal as well.
    """
    if not proposals:
        text = nothing_found(search)
        return Section("CHANGES", text, priority=_INSTEAD, short=Section("FIX", text))
    is_pair = all(len({change.kind for change in proposal.changes}) > 1 for proposal in proposals)
    number = len(proposals) + has_node
    order = " (least intrusive first)" if len(proposals) > 1 else ""
    these = {1: "this change", 2: f"either change{order}"}.get(number, f"any of these changes{order}")
    only = "no single change is enough; " if is_pair else ""
    items: list[list[Words]] = []
    brief: list[list[Words]] = []
    for proposal in proposals:
        # The pod's outcome with the changes.
        nodes = _any_of(proposal.nodes)
        if proposal.outcome == Outcome.LANDS:
            brings: Phrase = (Span("lands", "good"), f" on {nodes}; nothing is evicted")
        else:
            victims = join_names(proposal.victims, limit=_VICTIMS_SHOWN)
            violations = proposal.num_pdb_violations
            none = Span("budgets were not read", "warn") if lacks_budgets else Span("no budget is violated", "good")
            broken = Span(count(violations, "budget violation"), "bad") if violations else none
            if len(proposal.nodes) == 1:
                brings = (Span("preempts", "warn"), f" {victims} on {nodes}; ", broken)
            else:
                example = proposal.node if proposal.node in proposal.nodes else "".join(proposal.nodes[:1])
                brings = (Span("preempts", "warn"), f" pods on {nodes} (on {example}: {victims}); ", broken)
        line = (*describe_changes(proposal.changes), ": ", *brings)
        tried = join_options(proposal.options)
        items.append([line, Span(tried, "code")])
        # Half an option helps no one.
        fits = not brief and len(tried) < options.width - _AROUND_OPTION
        brief.append([("or " if brief else "", *line), *([Span(tried, "code")] if fits else [])])
    blocks: list[Block] = [Listing(items, noun="change", shown=_PROPOSALS_SHOWN, is_numbered=True)]
    if search.is_skipped:
        blocks.append(Sentence(Span(f"other changes were {_SKIPPED}", "dim")))
    elif not search.is_complete:
        blocks.append(Sentence(Span(f"the search stopped after {count(search.verdicts, 'verdict')}", "dim")))
    if search.extender_calls:
        blocks.append(Sentence(Span(_extra_calls(search), "dim")))
    return Section(
        "CHANGES",
        f"{only}with {these}, {goal}:",
        blocks,
        priority=_INSTEAD,
        short=Section("FIX", blocks=[Listing(brief, noun="change")]),
    )


def describe_changes(changes: Sequence[Change]) -> Phrase:
    """The changes in words, in the imperative."""
    removed = [change.subject for change in changes if change.kind is ChangeKind.WITHOUT_POD]
    if len(removed) > 1:
        changes = [change for change in changes if change.kind is not ChangeKind.WITHOUT_POD]
    words = [_in_words(change) for change in changes]
    if len(removed) > 1:
        words.append(f"remove pods {join_names(removed, limit=len(removed))}")
    parts: list[str | Span] = []
    for number, each in enumerate(words):
        parts += [", and " if number else "", strong(each)]
    return tuple(parts)


def join_options(options: Sequence[str]) -> str:
    """The options as typed in a shell, without breaks at spaces, so that they can be copied from a narrow page."""
    split = [option.partition("=") for option in options]
    return " ".join(f"{name}{equals}{shlex.quote(value) if equals else ''}" for name, equals, value in split)


def nothing_found(search: ProposalSearch) -> str:
    """A sentence saying that no change was found, and how thorough the search was."""
    extra_calls = f"; {_extra_calls(search)}" if search.extender_calls else ""
    if search.failing_extender:
        return f"not searched: extender {search.failing_extender} fails, which no change can fix"
    if search.is_skipped:
        return f"no priority is high enough; other changes were {_SKIPPED}"
    if not search.is_complete:
        return f"none found; the search stopped after {count(search.verdicts, 'verdict')}{extra_calls}"
    return f"none found (tried single changes and pairs){extra_calls}"


def _extra_calls(search: ProposalSearch) -> str:
    return f"extenders were called {count(search.extender_calls or 0, 'more time')} for this"


def _in_words(change: Change) -> str:
    before, after, subject = change.before or 0, change.after or 0, change.subject
    if change.kind == ChangeKind.REQUEST:
        amount = format_amount(subject, after, exact=True) if after else "no"
        return f"request {amount} {subject} instead of {format_amount(subject, before, exact=True)}"
    if change.kind == ChangeKind.MAX_SKEW:
        return f"allow a skew of {after:,} instead of {before:,} for {subject}"
    if change.kind == ChangeKind.PRIORITY:
        return f"raise the pod's priority from {before:,} to {after:,}"
    if change.kind == ChangeKind.BUDGET:
        return f"let budget {subject} allow {count(after, 'disruption')} instead of {before:,}"
    return _WORDS[change.kind].format(subject=subject)
