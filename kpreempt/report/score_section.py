"""How the nodes that fit were scored, plugin by plugin."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import agree, count
from kpreempt.report.chance import describe_sampling
from kpreempt.report.comparison import Row, add_comparison
from kpreempt.report.evidence import join_names
from kpreempt.report.layout import LABEL_COLUMN, Page, Phrase, Span, strong
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Verdict

_NODES_SHOWN = 4
_TIED_SHOWN = 2


def add_score_section(page: Page, verdict: Verdict, options: RenderOptions) -> None:
    """``2 SCORES``: a row for each plugin, a column for each of the best nodes, weights applied."""
    if not verdict.feasible_nodes and not verdict.scores:
        return
    page.blank()
    page.labelled(Span("2 SCORES", "heading"), *_summary(verdict), column=LABEL_COLUMN)
    if len(verdict.scores) < 2 or (_is_taken_unscored(verdict) and not options.verbose):
        return
    ranked = sorted(verdict.scores, key=lambda node: -verdict.scores[node])
    others = [node for node in ranked if node not in verdict.chosen_nodes]
    tied = verdict.chosen_nodes[: max(_TIED_SHOWN, _NODES_SHOWN - len(others))]
    nodes = ranked if options.verbose else [*tied, *others][:_NODES_SHOWN]
    _add_table(page, verdict, nodes)
    silent = _silent_plugins(verdict)
    if silent:
        page.paragraph(Span(f"0 everywhere: {', '.join(silent)}", "dim"), indent=2, hanging=2)
    if rest := len(ranked) - len(nodes):
        page.paragraph(Span(f"… and {count(rest, 'more node')} with the same or less", "dim"), indent=2)


def _is_taken_unscored(verdict: Verdict) -> bool:
    """Whether the pod lands on its nominated node, which the scheduler looks at before all others."""
    return verdict.lands_on == [verdict.pod.nominated_node_name]


def _summary(verdict: Verdict) -> Phrase:
    chosen = verdict.chosen_nodes
    if _is_taken_unscored(verdict):
        return (
            strong(verdict.pod.nominated_node_name),
            " is nominated and fits: the scheduler takes it without scoring",
        )
    if not chosen:
        return (f"{count(len(verdict.feasible_nodes), 'node')} {agree(len(verdict.feasible_nodes), 'fits')}",)
    if len(verdict.scores) < 2 and len(chosen) > 1:
        return (Span(f"not computed for {verdict.algorithm}", "warn"), f": any of {count(len(chosen), 'node')}")
    if len(verdict.scores) < 2:
        return (strong(chosen[0]), " is the only node that fits; it is not scored")
    best = verdict.scores.get(chosen[0], 0)
    if len(chosen) > 1:
        equal = f" have the best score, {best:,}: "
        return (
            strong(join_names(chosen)),
            equal,
            Span("the scheduler picks one at random", "warn"),
            *describe_sampling(verdict),
        )
    scored = f" has the best score, {best:,}"
    return (strong(chosen[0]), scored, *(describe_sampling(verdict) or (" (weights applied)",)))


def _add_table(page: Page, verdict: Verdict, nodes: Sequence[str]) -> None:
    silent = set(_silent_plugins(verdict))
    rows: list[Row] = [
        (plugin, [(f"{verdict.plugin_scores.get(node, {}).get(plugin, 0):,}",) for node in nodes])
        for plugin in _plugins(verdict)
        if plugin not in silent
    ]
    rows.append(("total", [(strong(f"{verdict.scores.get(node, 0):,}"),) for node in nodes]))
    add_comparison(page, nodes, rows)


def _plugins(verdict: Verdict) -> list[str]:
    return list(dict.fromkeys(plugin for scores in verdict.plugin_scores.values() for plugin in scores))


def _silent_plugins(verdict: Verdict) -> list[str]:
    """The plugins that rate every node 0."""
    return [
        plugin
        for plugin in _plugins(verdict)
        if not any(scores.get(plugin) for scores in verdict.plugin_scores.values())
    ]
