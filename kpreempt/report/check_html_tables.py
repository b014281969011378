"""The parts of a check's page that are tables: changes, budgets, workloads, what waits, outcomes, assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from kpreempt.report.amounts import count
from kpreempt.report.check_html_markup import Html, badge, join, message, name, names, section, table, tag, text
from kpreempt.report.check_html_words import CHANGES, ENDS, STRANDED, clock, place
from kpreempt.verdict.check import Change, Check, OutcomeShare
from kpreempt.verdict.play import BudgetLow, Play, Stranded, Waiting, WorkloadPlay
from kpreempt.verdict.records import Assumption

_LIMIT = 75_000
_NODES_SHOWN = 8
_NAMES_SHOWN = 6
_FIELDS_SHOWN = 6


def changes(check: Check) -> Html:
    """What the change does to each object."""
    if not check.changes:
        return section("changes", "What changes", tag("p", "Nothing changes."))
    columns = ("Object", "Change", "Replicas", "Written in")
    return section(
        "changes",
        "What changes",
        table("Objects of the change", columns, _change, check.changes, limit=_LIMIT, what="objects"),
    )


def _change(change: Change) -> list[str]:
    how = [text(CHANGES[change.kind])]
    if change.strategy:
        how.append(text(f" by {change.strategy}"))
    if change.fields:
        how.append(tag("div", names(change.fields, limit=_FIELDS_SHOWN), class_="dim"))
    written = place(change.source, change.line, change.origin)
    sizes = _from_to(change.replicas_before, change.replicas)
    return [name(change.object), join(how), sizes, name(written) if written else ""]


def _from_to(before: int | None, after: int | None) -> str:
    if before is None or before == after:
        return "" if after is None else f"{after:,}"
    return f"{before:,} → {'none' if after is None else f'{after:,}'}"


def budgets(play: Play) -> Html:
    """Each budget that the play touches; nothing where there is none."""
    if not play.budgets:
        return Html("")
    columns = ("Budget", "Before", "At least", "In the end", "Victims against it")
    caption = "Disruptions that each budget allows, those that are touched"
    found = table(caption, columns, _budget, play.budgets, limit=_LIMIT, what="budgets")
    return section("budgets", "Disruption budgets", found)


def _budget(budget: BudgetLow) -> list[str]:
    broken = badge(f"✗ {budget.violations:,}", "bad") if budget.violations else Html("none")
    return [name(budget.budget), f"{budget.before:,}", f"{budget.least:,}", f"{budget.after:,}", broken]


def workloads(play: Play) -> Html:
    """Each workload that is changed or loses pods; nothing where there is none."""
    if not play.workloads:
        return Html("")
    columns = (
        "Workload",
        "Size",
        "Ready before",
        "Ready at least",
        "Ready in the end",
        "Had to go",
        "Waiting",
        "Nodes",
    )
    caption = "Workloads that are changed, or of which pods have to go"
    found = table(caption, columns, _workload, play.workloads, limit=_LIMIT, what="workloads")
    return section("workloads", "Workloads", found)


def _workload(workload: WorkloadPlay) -> list[str]:
    title = [name(workload.workload)]
    if workload.is_changed:
        title.append(badge("changed", "dim"))
    if not workload.is_done:
        title.append(badge("✗ not done", "bad"))
    waits = badge(f"✗ {workload.pending_after:,}", "bad") if workload.pending_after else Html("0")
    return [
        join(title, " "),
        _from_to(workload.wanted_before, workload.wanted_after),
        f"{workload.ready_before:,}",
        f"{workload.ready_least:,} at {clock(workload.least_at)}",
        f"{workload.ready_after:,}",
        f"{workload.victims:,}",
        waits,
        _nodes(workload.nodes_before, workload.nodes_after),
    ]


def _nodes(before: Mapping[str, int], after: Mapping[str, int]) -> Html:
    """The pods of each node, those first that change."""
    every = dict.fromkeys((*before, *after))
    order = sorted(every, key=lambda node: before.get(node, 0) == after.get(node, 0))
    told = [join([name(node), " ", _from_to(before.get(node, 0), after.get(node, 0))]) for node in order[:_NODES_SHOWN]]
    if len(order) > _NODES_SHOWN:
        told.append(text(f"{len(order) - _NODES_SHOWN:,} more"))
    return join(told, ", ")


def waiting(play: Play) -> Html:
    """The pods that have no node in the end, those that ran first; nothing where there is none."""
    if not play.waiting:
        return Html("")
    ranked = sorted(play.waiting, key=lambda pod: (not pod.was_running, pod.waited_before))
    columns = ("Pod", "Priority", "Before", "The scheduler says")
    caption = f"{count(len(ranked), 'pod')} without a node in the end"
    found = table(caption, columns, _waits, ranked, limit=_LIMIT, what="pods")
    return section("waiting", "What waits in the end", found)


def _waits(pod: Waiting) -> list[str]:
    of = pod.workload or pod.owner
    about = join([name(pod.pod), tag("div", name(of), class_="dim") if of else ""])
    before = "waited already" if pod.waited_before else "was not there"
    return [about, f"{pod.priority:,}", badge("ran", "bad") if pod.was_running else before, message(pod.message)]


def stranded(play: Play) -> Html:
    """What is left without something that it needs; nothing where there is none."""
    if not play.stranded:
        return Html("")
    columns = ("What", "Why", "Missing", "When")
    caption = "Worse off than before, without having been evicted"
    found = table(caption, columns, _stranded, play.stranded, limit=_LIMIT, what="of these")
    return section("stranded", "What is stranded", found)


def _stranded(each: Stranded) -> list[str]:
    where = tag("div", "on ", name(each.node), class_="dim") if each.node else Html("")
    when = f"from {clock(each.since)} on" if each.until is None else f"{clock(each.since)} to {clock(each.until)}"
    shown = badge(when, "bad") if each.until is None else text(when)
    missing = names(each.missing, limit=_NAMES_SHOWN)
    return [join([name(each.subject), where]), STRANDED[each.kind], missing, shown]


def outcomes(check: Check) -> Html:
    """What came up in several runs; nothing where there was one."""
    if not check.outcomes:
        return Html("")
    columns = ("Runs", "Gate", "How it ends", "Victims", "Against budgets", "Waiting", "Longest chain", "First seed")
    told = "These are all that can come up." if check.explored_all else "Others may come up, too."
    runs = f"{count(check.runs, 'run')}, each with other choices where the scheduler draws a node."
    note = tag("p", f"{runs} {told} The rest of this page is about the run with seed {check.seed:,}.")
    caption = "Outcomes, by how often they come up"
    row = partial(_outcome, runs=check.runs)
    found = table(caption, columns, row, check.outcomes, limit=_LIMIT, what="outcomes")
    return section("outcomes", "What may come up", note, found)


def _outcome(outcome: OutcomeShare, runs: int) -> list[str]:
    share = f"{round(1000 * outcome.count / max(runs, 1)) / 10:g}%"
    bar = Html(
        '<svg class="share" width="100%" height="6" aria-hidden="true"><rect class="track" width="100%" height="6"/>'
        f'<rect class="after" width="{share}" height="6"/></svg>'
    )
    return [
        join([f"{outcome.count:,} of {runs:,}", bar]),
        badge("✗ fails", "bad") if outcome.fails else badge("✓ passes", "good"),
        _end(outcome.end),
        _by_subject(outcome.victims),
        _by_subject(outcome.violations),
        _by_subject(outcome.pending),
        f"{outcome.depth:,}",
        f"{outcome.seed:,}",
    ]


def _end(end: str) -> str:
    return next((words for known, words in ENDS.items() if known.value == end), message(end))


def _by_subject(numbers: Mapping[str, int]) -> Html:
    if not numbers:
        return Html("none")
    listed: Sequence[str] = list(numbers)
    told = [join([f"{numbers[each]:,} of ", name(each)]) for each in listed[:_NAMES_SHOWN]]
    if len(listed) > _NAMES_SHOWN:
        rest = sum(numbers[each] for each in listed[_NAMES_SHOWN:])
        told.append(text(f"{rest:,} of {count(len(listed) - _NAMES_SHOWN, 'other')}"))
    return join(told, ", ")


def assumptions(listed: Sequence[Assumption]) -> Html:
    """What this answer does not evaluate; nothing where there is nothing."""
    if not listed:
        return Html("")
    columns = ("Object", "Field", "What this means")
    caption = "In the input, and not evaluated here"
    found = table(caption, columns, _assumption, listed, limit=_LIMIT, what="assumptions")
    return section("assumptions", "Assumptions", found)


def _assumption(each: Assumption) -> list[str]:
    return [name(each.subject), name(each.field), message(each.message)]
