"""A verdict for a ticket or a pull request: the answer, the victims, and the reasoning folded away."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.report.amounts import count, plural
from kpreempt.report.durations import format_duration
from kpreempt.report.evidence import describe
from kpreempt.report.explain.changes import describe_answer, describe_changes, describe_one_more_node, join_options
from kpreempt.report.explain.choice import describe_choice
from kpreempt.report.explain.equal_pods import WHY, alternatives_in_lines
from kpreempt.report.explain.extenders import describe_call
from kpreempt.report.explain.failures import group_by_reasons, name_some
from kpreempt.report.explain.headline import headline, pod_facts, pod_name, tie_in_event
from kpreempt.report.explain.node import describe_standing
from kpreempt.report.explain.summary import SUMMARY_ALIGNS, SUMMARY_COLUMNS, summary_row
from kpreempt.report.explain.victims import format_budgets, format_running, longest_grace_seconds
from kpreempt.report.markdown import code, emphasised, escaped, fenced, table
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import NodeEvaluation, Outcome, Proposal, Status, Verdict
from kpreempt.verdict.unread import are_budgets_unread

_GROUPS_SHOWN = 20
_CAUSES_SHOWN = 3
_VICTIM_COLUMNS = ("Victim", "Priority", "Owner", "Running", "Budget (allowed→left)")
_VICTIM_ALIGNS = ("left", "right", "left", "left", "left")


def render(verdicts: Sequence[Verdict], options: RenderOptions) -> str:
    """A section for each verdict; several start with a table of all."""
    blocks = [block for verdict in verdicts for block in _blocks(verdict, options)]
    if len(verdicts) > 1:
        rows = [[code(cell) for cell in summary_row(verdict)] for verdict in verdicts]
        blocks.insert(0, table(SUMMARY_COLUMNS, rows, SUMMARY_ALIGNS))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _blocks(verdict: Verdict, options: RenderOptions) -> list[str]:
    blocks = [f"### {code(pod_name(verdict))}: {verdict.outcome}", emphasised(headline(verdict))]
    blocks = [*_workload(verdict), *blocks]
    blocks += [_victims(verdict, node, options) for node in verdict.nominated_nodes if verdict.victims.get(node)]
    if verdict.alternatives is not None:
        lines = [f"- {emphasised(line)}" for line in alternatives_in_lines(verdict.alternatives)]
        blocks.append("\n".join([WHY, "", *lines]))
    if verdict.message:
        blocks.append(fenced(verdict.message))
        blocks += filter(None, [tie_in_event(verdict)])
    goal = "it lands" if verdict.outcome == Outcome.NEVER_LANDS else "nobody is evicted"
    blocks += _changes(f"Changes with which {goal}", verdict.proposals, verdict)
    if (more := verdict.one_more_node) is not None and more.kinds:
        blocks.append(f"Or {emphasised(describe_one_more_node(more))} ({code(join_options(more.options))}).")
    if verdict.node_story is not None:
        story = verdict.node_story
        blocks.append(f"{emphasised(describe_standing(story, verdict))}.")
        blocks += _filters(story.evaluation)
        blocks += _changes(f"Changes with which {code(story.node)} is chosen", story.proposals, verdict)
    if verdict.extender_calls:
        calls = [f"- {emphasised(describe_call(each))}" for each in verdict.extender_calls]
        blocks.append("\n".join(["**Extenders:**", "", *calls]))
    if verdict.assumptions:
        blocks.append(
            "\n".join(
                ["**Not evaluated:**", ""]
                + [
                    f"- {escaped(f'{each.subject} {each.field}'.strip())}: {escaped(each.message)}"
                    for each in verdict.assumptions
                ]
            )
        )
    return [*blocks, _details(verdict, options)]


def _workload(verdict: Verdict) -> list[str]:
    """What is asked about more than this pod: a paragraph and a table of nodes each."""
    blocks = []
    if (workload := verdict.workload) is not None:
        from kpreempt.report.explain.workload import headline_of  # noqa: PLC0415 - rare

        rows = [[code(each.node), f"{each.replicas:,}", f"{each.evictions:,}"] for each in workload.nodes]
        blocks += [f"### {escaped(workload.workload)}", emphasised(headline_of(workload))]
        blocks += [table(("Node", "Replicas", "Evictions"), rows, ("left", "right", "right"))] if rows else []
        blocks += [fenced(f"{each.replicas} without a node: {each.message}") for each in workload.pending]
    if (capacity := verdict.capacity) is not None:
        from kpreempt.report.explain.capacity import capacity_phrase  # noqa: PLC0415 - rare

        room = [[code(each.node), f"{each.pods:,}"] for each in capacity.nodes]
        blocks.append(f"Capacity: {emphasised(capacity_phrase(capacity))}.")
        blocks += [table(("Node", "More pods"), room, ("left", "right"))] if room else []
    return blocks


def _victims(verdict: Verdict, node: str, options: RenderOptions) -> str:
    victims = verdict.victims[node]
    rows = [
        [
            code(victim.pod),
            f"{victim.priority:,}",
            code(victim.owner) if victim.owner else "",
            format_running(victim, verdict, options),
            emphasised(format_budgets(victim.budgets)),
        ]
        for victim in victims
    ]
    seconds = longest_grace_seconds(victims)
    stop = f", up to {format_duration(seconds)} to stop" if seconds else ""
    title = f"{count(len(victims), 'victim')} on {code(node)}{stop}:"
    return f"{title}\n\n{table(_VICTIM_COLUMNS, rows, _VICTIM_ALIGNS)}"


def _filters(evaluation: NodeEvaluation) -> list[str]:
    """What every filter says of the node, which is more than the scheduler looks at."""
    if not evaluation.filters:
        return []
    without = {status.plugin: _answer(status) for status in evaluation.without_lower}
    rows = [[escaped(each.plugin), _answer(each), without.get(each.plugin, "")] for each in evaluation.filters]
    headers = ["Filter", "The node as it is", "Without its lower-priority pods"]
    if not without:
        headers, rows = headers[:2], [row[:2] for row in rows]
    return [table(headers, rows, ("left",) * len(headers))]


def _answer(status: Status) -> str:
    if status.is_success:
        return "passes"
    evidence = describe(status.detail)
    return code(status.message or str(status.code)) + (f"<br>{code(evidence)}" if evidence else "")


def _changes(title: str, proposals: Sequence[Proposal], verdict: Verdict) -> list[str]:
    """A list of changes with what they bring and the options that try them."""
    lacks = are_budgets_unread(verdict.assumptions)
    lines = [
        f"- {emphasised(describe_changes(proposal.changes))}: "
        f"{emphasised(describe_answer(proposal, lacks_budgets=lacks))}"
        f" ({code(join_options(proposal.options))})"
        for proposal in proposals
    ]
    return ["\n".join([f"{title}:", "", *lines])] if lines else []


def _details(verdict: Verdict, options: RenderOptions) -> str:
    """What the filters said, and how the node was chosen; folded until it is clicked on."""
    lines = [emphasised(pod_facts(verdict))]
    groups = group_by_reasons(verdict.filter)
    if groups:
        rows = [
            [
                f"{len(group.nodes):,}",
                code(group.reasons),
                escaped(group.plugin),
                "<br>".join(
                    code(f"{name_some(cause.nodes, options)}: {cause.phrase}")
                    for cause in group.causes[:_CAUSES_SHOWN]
                    if cause.phrase
                ),
            ]
            for group in groups[:_GROUPS_SHOWN]
        ]
        lines.append(table(("Nodes", "Reason", "Plugin", "Nearest"), rows, ("right", "left", "left", "left")))
    if rest := len(groups) - _GROUPS_SHOWN if len(groups) > _GROUPS_SHOWN else 0:
        lines.append(f"… and {count(rest, 'more group')}")
    if verdict.selection is not None and verdict.candidates:
        number = len(verdict.candidates)
        among = f"Of {count(number, 'candidate')}: " if number > 1 else ""
        lines.append(emphasised((among, *describe_choice(verdict), ".")))
    total = len(verdict.filter)
    summary = f"{len(verdict.feasible_nodes):,} of {total:,} {plural('node')} fit" if total else "the reasoning"
    return "\n\n".join([f"<details><summary>{summary}</summary>", *lines, "</details>"])
