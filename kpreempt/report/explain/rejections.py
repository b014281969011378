"""The filter results: the nodes that fit, and the others in groups with the numbers behind them.

Nodes that fail in the same way form one group, so that a thousand of them take a few lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple

from kpreempt.model.meta import grouped
from kpreempt.report.amounts import agree, count, name_all
from kpreempt.report.blocks import Block, Listing, Phrase, Section, Sentence, Span, Words, name, strong
from kpreempt.report.evidence import by_text, describe, in_plural, join_names, rejection_of
from kpreempt.report.explain.headline import no_nodes
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Code, Outcome, Status, Verdict
from kpreempt.verdict.details import InsufficientResources, UntoleratedTaint, missing_share

# With more nodes than this, the findings on each node are not shown.
_CROWD = 12
_GROUPS_SHOWN = 6
_CAUSES_SHOWN = 3
_NAMES_SHOWN = 3
_NEAREST_SHOWN = 3
_CLAUSES_SHOWN = 5
_REJECTED = 70
_RESERVED, _MIN_LINES = 8, 3
# On a screen: the width of a list of nodes, of which one is always shown, and the number of taints that are never cut.
_NAMES_WIDTH = 40
_TAINTS_SHOWN = 9
_TAINTS = "TaintToleration"
_UNTOLERATED = "node(s) had untolerated taint(s)"
_CORDON = "taint node.kubernetes.io/unschedulable:"


def filter_section(verdict: Verdict, options: RenderOptions) -> Section:
    """``1 FILTER``: how many nodes fit, and why the others don't. On a screen, only the reasons if no node fits."""
    return Section(
        "1 FILTER",
        describe_fitting(verdict),
        _rejections(verdict, options),
        heading="Filter results",
        anchor="filter",
        is_reasoning=True,
        priority=_REJECTED,
        reserved_lines=_RESERVED,
        min_lines=_MIN_LINES,
        short=_screened(verdict),
    )


def _rejections(verdict: Verdict, options: RenderOptions) -> list[Block]:
    if (status := verdict.pre_filter) is not None:
        seen = describe(status.detail)
        helps = "may help" if may_be_fixed(status.code) else "doesn't help"
        reason = (strong(status.message), Span(f"  {status.plugin}", "dim"))
        return [Listing([[reason, *([seen] if seen else []), f"preemption {helps}"]])]
    failures = {node: status for node, status in verdict.filter.items() if not status.is_success}
    causes = 1 if is_crowd(verdict, options) else _CAUSES_SHOWN
    # Without status codes, only the nodes that were tried show where preemption may help.
    is_tried = verdict.eligibility is not None and verdict.eligibility.eligible
    is_hope_unknown = not is_tried and any(status.code == Code.NONE for status in verdict.filter.values())
    if len(failures) < len(verdict.filter) or is_hope_unknown:
        return [rejection_list(failures, options, causes=causes)]
    hopeful, hopeless = split_by_hope(verdict)
    blocks: list[Block] = []
    if hopeful:
        blocks.append(Sentence((strong(count(len(hopeful), "node")), " where preemption could help:")))
        blocks.append(rejection_list(hopeful, options, causes=causes))
    if hopeless:
        helps = f" where {'it' if hopeful else 'preemption'} doesn't help:"
        blocks.append(Sentence((strong(count(len(hopeless), "node")), helps)))
        # The findings on the hopeless nodes matter only if there is nothing better.
        is_aside = causes == 1 and verdict.candidates
        blocks.append(rejection_list(hopeless, options, causes=0 if is_aside else causes))
    return blocks


def _screened(verdict: Verdict) -> Section:
    """For a pod that lands nowhere, the reasons with the nearest node of each; otherwise the nodes that are out."""
    nothing = Section("REJECTED")
    if verdict.feasible_nodes and not verdict.nominated_nodes:
        failed = {node: status for node, status in verdict.filter.items() if not status.is_success}
        if not failed:
            return nothing
        clauses = {rejection_of(status) for status in failed.values()}
        is_one = len(clauses) == 1 and len(failed) > 1
        why = f", which {in_plural(*clauses)}" if is_one else f": {in_clauses(failed)}"
        return Section("OTHER NODES", f"{len(failed):,} of {count(len(verdict.filter), 'node')} eliminated{why}")
    is_pending = verdict.outcome.stays_pending or verdict.outcome == Outcome.UNCERTAIN
    if not is_pending or verdict.candidates or verdict.feasible_nodes:
        return nothing
    if (status := verdict.pre_filter) is not None:
        reason = (strong(status.message), Span(f"  {status.plugin}", "dim"))
        return Section("REJECTED", reason, [Sentence(describe(status.detail))])
    groups = group_by_reasons(verdict.filter, in_short=True)
    digits = max((len(f"{len(group.nodes):,}") for group in groups), default=0)
    items: list[list[Words]] = []
    numbers: list[list[int]] = []
    whole: list[int] = []
    for group in groups:
        excluded = rejection_of(Status(group.code), verdict.restricted_by)
        reasons = strong(group.reasons or (excluded if verdict.restricted_by else str(group.code) or group.plugin))
        first: Phrase = (f"{len(group.nodes):,}".rjust(digits), "  ", reasons)
        causes = group.causes[:_NEAREST_SHOWN] if find_nearest(verdict.filter, group.nodes) else group.causes
        lines = [_named(cause) for cause in causes]
        if len(group.causes) == 1:
            items.append([(*first, "  ", *lines[0])])
            numbers.append([])
            continue
        sizes = [len(cause.nodes) for cause in causes]
        if rest := len(group.nodes) - sum(sizes):
            lines.append((f"… and {count(rest, 'more node')} (-v)",))
            sizes.append(rest)
        if group.plugin == _TAINTS and len(lines) <= _TAINTS_SHOWN:
            whole.append(len(items))
        items.append([first, *lines])
        numbers.append(sizes)
    listing = Listing(items, noun="reason", parts="node", numbers=numbers, whole_items=whole)
    return Section("REJECTED", blocks=[listing])


def _named(cause: Cause) -> Phrase:
    """The first nodes with their finding; that it is a taint, or that of a cordon, is in the reason."""
    phrase = "" if cause.phrase.startswith(_CORDON) else cause.phrase.removeprefix("taint ")
    first, sizes = cause.nodes[0], accumulate(map(len, cause.nodes[:_NAMES_SHOWN]))
    others = join_names(cause.nodes, limit=max(sum(size <= _NAMES_WIDTH for size in sizes), 1)).removeprefix(first)
    return (name(first), others, *((": ", phrase) if phrase else ()))


def describe_fitting(verdict: Verdict) -> Phrase:
    """How many nodes fit, or why no node was checked."""
    total = len(verdict.filter)
    fitting = sum(status.is_success for status in verdict.filter.values())
    if not total:
        ended = "the scheduler fails before it has checked all nodes"
        return (Span(ended if verdict.cluster.nodes else no_nodes(verdict), "bad"),)
    if verdict.pre_filter is not None:
        return (Span("the pod is rejected before any node is checked", "bad"),)
    if not fitting:
        none = {1: "the only node doesn't fit", 2: "neither node fits"}
        return (Span(none.get(total, f"none of the {total:,} nodes fits"), "bad"),)
    if fitting == total:
        return (Span("the only node fits" if total == 1 else f"{name_all(total)} fit", "good"),)
    return (Span(f"{fitting:,} of {total:,} nodes {agree(fitting, 'fits')}", "good"),)


def nearest_section(verdict: Verdict, options: RenderOptions) -> Section:
    """``NEAREST``: for a pod that lands nowhere, the nodes that lack the least."""
    after_evictions = find_nearest(verdict.dry_run)
    nearest = after_evictions or find_nearest(verdict.filter)
    if not nearest or not verdict.outcome.stays_pending:
        return Section("NEAREST")
    when = "closest to fitting without their lower-priority pods:" if after_evictions else "closest to fitting:"
    items = [[_cause(cause, options)] for cause in nearest[:_NEAREST_SHOWN]]
    return Section("NEAREST", when, [Listing(items)], is_reasoning=True)


def is_crowd(verdict: Verdict, options: RenderOptions) -> bool:
    """Whether there are too many nodes to show the findings on each."""
    return len(verdict.filter) > _CROWD and not options.verbose


def rejection_list(statuses: Mapping[str, Status], options: RenderOptions, *, causes: int) -> Listing:
    """Rejected nodes grouped by reasons, the largest group first, each with up to ``causes`` causes."""
    groups = group_by_reasons(statuses)
    digits = max((len(f"{len(group.nodes):,}") for group in groups), default=0)
    items: list[list[Words]] = []
    for group in groups:
        is_rejection = group.code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        reasons = group.reasons or ("rejected without a reason" if is_rejection else str(group.code))
        plugin = Span(f"  {group.plugin}" if group.plugin else "", "dim")
        shown = group.causes if options.verbose else group.causes[:causes]
        lines = [_cause(cause, options, _NAMES_SHOWN if causes > 1 else 1) for cause in shown]
        left = sum(len(cause.nodes) for cause in group.causes[len(shown) :])
        rest = [Span(f"… and {count(left, 'more node')}", "dim")] if left and shown else []
        items.append([(f"{len(group.nodes):,}".rjust(digits), "  ", strong(reasons), plugin), *lines, *rest])
    return Listing(items, noun="reason", shown=_GROUPS_SHOWN)


def _cause(cause: Cause, options: RenderOptions, named: int = _NAMES_SHOWN) -> Words:
    """The first few nodes and the number of others, or all of them if ``verbose``, and the finding they share."""
    shown = cause.nodes if options.verbose else cause.nodes[:named]
    rest = len(cause.nodes) - len(shown)
    more = f" and {rest:,} more" if rest else ""
    return f"{', '.join(shown)}{more}{f'  {cause.phrase}' if cause.phrase else ''}"


def in_clauses(statuses: Mapping[str, Status]) -> str:
    """Why nodes reject the pod, most frequent reason first: ``node-f is cordoned, 2 are too full``."""
    ranked = list(by_text({node: rejection_of(status) for node, status in statuses.items()}).items())
    clauses = [
        f"{named[0]} {clause}" if len(named) == 1 else f"{len(named):,} {in_plural(clause)}"
        for clause, named in ranked[:_CLAUSES_SHOWN]
    ]
    if rest := sum(len(named) for _, named in ranked[_CLAUSES_SHOWN:]):
        clauses.append(f"{rest:,} more {agree(rest, 'rejects')} it")
    return ", ".join(clauses)


class Cause(NamedTuple):
    """Nodes of one group for which the plugin reports the same finding, in words."""

    nodes: list[str]
    phrase: str


class FailureGroup(NamedTuple):
    """Nodes that were rejected for the same reasons, nearest misses first; ``reasons`` is the scheduler's text."""

    code: Code
    plugin: str
    reasons: str
    nodes: list[str]
    causes: list[Cause]


def group_by_reasons(statuses: Mapping[str, Status], *, in_short: bool = False) -> list[FailureGroup]:
    """Group the rejected nodes by code, plugin and reasons, the largest group first.

    Within a group, nodes that lack resources are ordered by how much they lack, others as in the snapshot. Versions
    before 1.34 name the taint in the reason: ``in_short``, nodes with different taints form one group.
    """
    rejected = {node: (each.code, each.plugin, each.message) for node, each in statuses.items() if not each.is_success}
    tainted = [node for node in rejected if isinstance(statuses[node].detail, UntoleratedTaint)]
    tainted = [node for node in tainted if rejected[node][1] == _TAINTS]
    if in_short and len({rejected[node] for node in tainted}) > 1:
        rejected |= {node: (rejected[node][0], _TAINTS, _UNTOLERATED) for node in tainted}
    members = grouped(rejected, rejected.__getitem__)
    groups = [FailureGroup(*key, nodes, _group_causes(nodes, statuses)) for key, nodes in members.items()]
    return sorted(groups, key=lambda group: -len(group.nodes))


def may_be_fixed(code: Code) -> bool:
    """Whether evictions could make a node with this status fit; without codes, that cannot be ruled out."""
    return code in (Code.UNSCHEDULABLE, Code.NONE)


def split_by_hope(verdict: Verdict) -> tuple[dict[str, Status], dict[str, Status]]:
    """The rejected nodes on which evictions could help, and the others."""
    tried = set(verdict.potential_nodes)
    hopeful = {
        node: status
        for node, status in verdict.filter.items()
        if (node in tried if status.code == Code.NONE else may_be_fixed(status.code))
    }
    return hopeful, {node: status for node, status in verdict.filter.items() if node not in hopeful}


def find_nearest(statuses: Mapping[str, Status], nodes: Iterable[str] | None = None) -> list[Cause]:
    """The nodes that lack resources, by the share of the request that they lack, smallest first."""
    nodes = statuses if nodes is None else nodes
    short = [node for node in nodes if isinstance(statuses[node].detail, InsufficientResources)]
    return _group_causes(short, statuses)


def _group_causes(nodes: list[str], statuses: Mapping[str, Status]) -> list[Cause]:
    causes: dict[str, Cause] = {}
    for node in sorted(nodes, key=lambda name: missing_share(statuses[name].detail)):
        phrase = describe(statuses[node].detail)
        causes.setdefault(phrase, Cause([], phrase)).nodes.append(node)
    if any(isinstance(statuses[node].detail, InsufficientResources) for node in nodes):
        return list(causes.values())
    return sorted(causes.values(), key=lambda cause: -len(cause.nodes))
