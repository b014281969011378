"""The table of answers: each command's answer, and the renderer for each format.

An answer is a record, which is the document that ``-o json`` prints. Its row names its parts and the functions that
render special formats; the other formats are derived from these. Answers from several clusters are printed below the
name of each context. Nothing is imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kpreempt.errors import UsageError, nearest
from kpreempt.report.document import encode_json, indented
from kpreempt.report.escape import printable
from kpreempt.report.options import Extent, RenderOptions

if TYPE_CHECKING:
    from kpreempt.verdict.contexts import BudgetAuditOfContexts, PendingPodsOfContexts

# A record that has a row.
Answer = msgspec.Struct

ANSWER_FORMATS = ("text", "json", "yaml", "jsonl", "name", "markdown")
PAGE_FORMATS = (*ANSWER_FORMATS, "html")
PENDING_FORMATS = (*PAGE_FORMATS, "wide")
# Rendered by a template from the user, for every answer that can be JSON (``jsonpath``).
TEMPLATE_FORMATS = ("jsonpath", "custom-columns")
_CHECK = {
    "junit": "check.junit:render",
    "sarif": "check.sarif:render",
    "github": "check.github:render",
    "gitlab": "check.gitlab:render",
}
_BUDGETS = {
    "junit": "budgets.systems:render_junit",
    "sarif": "budgets.systems:render_sarif",
    "github": "budgets.systems:render_github",
    "gitlab": "budgets.systems:render_gitlab",
}
_VERDICT = {"name": "explain.report:render_names", "wide": "explain.report:render_wide"}
# The renderers of reports.
_REPORT_RENDERERS = {
    "text": "terminal:render_text",
    "markdown": "markdown:render_markdown",
    "html": "html.report:render_page",
}
CHECK_FORMATS = (*PAGE_FORMATS, *_CHECK)
BUDGET_FORMATS = tuple(dict.fromkeys((*ANSWER_FORMATS, *_BUDGETS)))
VERIFY_FORMATS = (*ANSWER_FORMATS, "openmetrics")
VERDICT_FORMATS = ("text", "json", "yaml", "jsonl", "name", "wide", "markdown", "html")


def _pods(answer: Any) -> Iterable[str]:
    return [item.pod for item in answer.items]


class Row(NamedTuple):
    """An answer, by its record (``module:Class``).

    ``report`` makes its ``Report``, from which ``text``, ``markdown`` and ``html`` are rendered; ``renderers`` are
    functions by format. Both are ``module:function`` in this package. If there is neither, ``markdown`` is the ``text``
    in a code block. ``items`` are the lines of ``jsonl``. ``name`` prints the last part of each of the ``names`` after
    their ``kind``, as kubectl does. ``formats`` are all formats, the default first. If the answer ``is_list``,
    renderers and ``names`` get its items.
    """

    record: str
    renderers: Mapping[str, str] = {}
    names: Callable[[Any], Iterable[str]] = _pods
    kind: str = "pod/"
    items: Callable[[Any], Sequence[msgspec.Struct]] = attrgetter("items")
    formats: Sequence[str] = ANSWER_FORMATS
    is_list: bool = False
    report: str = ""

    @property
    def record_type(self) -> type[msgspec.Struct]:
        """The record's class."""
        found: type[msgspec.Struct] = _imported(self.record)
        return found

    def write(self, answer: Answer, format: str, options: RenderOptions) -> str:  # noqa: A002 - the option's name
        """Render the answer in a format for which ``has_renderer`` is true."""
        shown = self.items(answer) if self.is_list else answer
        if format in self.renderers:
            text: str = _imported(f"report.{self.renderers[format]}")(shown, options)
        else:
            changed = options
            if format != "text":
                # A verbose page is one that is expanded, so the content is the same.
                is_verbose = options.verbose and format != "html"
                changed = msgspec.structs.replace(options, verbose=is_verbose, extent=Extent.DOCUMENT)
            report = _imported(f"report.{self.report}")(shown, changed)
            text = _imported(f"report.{_REPORT_RENDERERS[format]}")(report, options)
        return text

    def has_renderer(self, format: str) -> bool:  # noqa: A002 - the option's name
        """Whether a renderer or the report makes this format."""
        return format in self.renderers or (bool(self.report) and format in _REPORT_RENDERERS)


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(f"kpreempt.{module}"), name)


def _itself(answer: Answer) -> Sequence[msgspec.Struct]:
    return [answer]


def _nodes_of_tasks(gangs: Sequence[Any]) -> Iterable[str]:
    """The nodes of the tasks of jobs."""
    return _once(task.node for gang in gangs for task in gang.tasks if task.status != "Evicted")


def _preempted_workloads(answers: Sequence[Any]) -> Iterable[str]:
    """The Workloads that are preempted."""
    return _once(each.workload for answer in answers for each in answer.alone.targets)


def _preemptors(items: Iterable[Any]) -> Iterable[str | None]:
    """The pods for which others were preempted."""
    preemptions = (each.preemption for each in items if each.preemption is not None)
    return (each.preemptor.pod for each in preemptions if each.preemptor is not None)


def _budgets_with_findings(audit: Any) -> Iterable[str]:
    return [item.budget for item in audit.items if item.findings]


def _of_contexts(names: Callable[[Any], Iterable[str]]) -> Callable[[Any], Iterable[str]]:
    """The names in the answers of all contexts."""
    return lambda answers: [name for each in answers.items if each.answer is not None for name in names(each.answer)]


def _once(names: Iterable[str | None]) -> Iterable[str]:
    return dict.fromkeys(filter(None, names))


# In the order of the JSON Schema.
ROWS = (
    Row(
        "verdict.records:Verdict",
        _VERDICT,
        items=_itself,
        formats=VERDICT_FORMATS,
        is_list=True,
        report="explain.report:report",
    ),
    Row(
        "verdict.records:VerdictList",
        _VERDICT,
        formats=VERDICT_FORMATS,
        is_list=True,
        report="explain.report:report",
    ),
    Row(
        "verdict.pending:PendingPods",
        {"html": "pending.report:render_html", "wide": "pending.report:render_wide"},
        formats=PENDING_FORMATS,
        report="pending.report:report",
    ),
    Row(
        "verdict.who_evicted:EvictionsOfPod",
        names=lambda answer: _once(_preemptors(answer.items)),
        formats=PAGE_FORMATS,
        report="who_evicted:report",
    ),
    Row(
        "verdict.who_evicted:EvictedPods",
        names=lambda answer: [each.victim.pod for each in answer.items],
        formats=PAGE_FORMATS,
        report="evicted_pods:report",
    ),
    Row(
        "verdict.messages:ExplainedEvents",
        names=lambda answer: [each.name for each in answer.items if each.kind == "Pod" and each.name],
        formats=PAGE_FORMATS,
        report="explained_events:report",
    ),
    Row("verdict.at_risk:PodsAtRisk", report="at_risk:report"),
    # The names are those of budgets with findings; the lines end with workloads that have no budget.
    Row(
        "verdict.budgets:BudgetAudit",
        _BUDGETS,
        _budgets_with_findings,
        "poddisruptionbudget.policy/",
        lambda audit: [*audit.items, *audit.unprotected],
        BUDGET_FORMATS,
        report="budgets.text:report",
    ),
    Row(
        "verdict.contexts:PendingPodsOfContexts",
        {"text": "answers:render_contexts", "wide": "answers:render_contexts_wide"},
        _of_contexts(_pods),
        formats=(*ANSWER_FORMATS, "wide"),
    ),
    Row(
        "verdict.contexts:BudgetAuditOfContexts",
        {"text": "answers:render_contexts"},
        _of_contexts(_budgets_with_findings),
        "poddisruptionbudget.policy/",
    ),
    Row(
        "verdict.check:Check",
        _CHECK,
        lambda check: _once(victim.pod for victim in check.simulation.displaced),
        items=attrgetter("findings"),
        formats=CHECK_FORMATS,
        report="check.report:report",
    ),
    Row(
        "verdict.drain:Drain",
        _CHECK,
        lambda drain: _once(victim.pod for victim in drain.simulation.displaced),
        items=attrgetter("findings"),
        formats=CHECK_FORMATS,
        report="check.report:report",
    ),
    Row(
        "verdict.queue:SchedulingQueueState",
        items=lambda queue: queue.steps or queue.items,
        report="queue:report",
    ),
    Row(
        "verdict.compare:Comparison",
        names=lambda comparison: [item.pod for item in comparison.items if not item.is_same],
        formats=PAGE_FORMATS,
        report="compare:comparison_report",
    ),
    Row("verdict.compare:UpgradeComparison", report="compare:upgrade_report"),
    Row(
        "verdict.verify:Verification",
        {"openmetrics": "verify:render_openmetrics"},
        lambda answer: [each.decision.pod for each in answer.items],
        formats=VERIFY_FORMATS,
        report="verify:report",
    ),
    Row(
        "verdict.sweep:Sweep",
        names=lambda answer: [each.cluster for each in answer.items],
        kind="cluster/",
        formats=PAGE_FORMATS,
        report="sweep:report",
    ),
    Row(
        "verdict.history:History",
        names=lambda answer: _once(each.pod for each in answer.items),
        report="history:report",
    ),
    Row(
        "verdict.plugins:SchedulerPlugins",
        names=lambda plugins: _once(name for profile in plugins.profiles for name in profile.names),
        kind="",
        items=attrgetter("profiles"),
        report="plugins:report",
    ),
    # One line of batch.
    Row("verdict.volcano:SessionVerdict", items=_itself, formats=("jsonl",)),
    Row(
        "verdict.volcano:SessionAnswer",
        names=lambda answer: _once(each.task for action in answer.session.actions for each in action.evictions),
        items=_itself,
        report="volcano.session:report",
    ),
    Row(
        "verdict.volcano:GangAnswer",
        names=_nodes_of_tasks,
        kind="node/",
        items=_itself,
        is_list=True,
        report="volcano.gang:report",
    ),
    Row(
        "verdict.volcano:GangAnswers",
        names=_nodes_of_tasks,
        kind="node/",
        is_list=True,
        report="volcano.gang:report",
    ),
    Row(
        "verdict.kueue:KueueAnswer",
        names=_preempted_workloads,
        kind="workload/",
        items=_itself,
        is_list=True,
        report="kueue:report_workloads",
    ),
    Row(
        "verdict.kueue:KueueAnswers",
        names=_preempted_workloads,
        kind="workload/",
        is_list=True,
        report="kueue:report_workloads",
    ),
    Row(
        "verdict.kueue:PendingWorkloads",
        names=lambda answer: [each.workload for each in answer.items],
        kind="workload/",
        report="kueue:report_pending",
    ),
    Row(
        "verdict.kueue:KueueComparison",
        names=lambda answer: [each.workload for each in answer.items if not each.is_same],
        kind="workload/",
        report="kueue:report_comparison",
    ),
    Row(
        "verdict.kueue:WorkloadsAtRisk",
        names=lambda answer: [each.workload for each in answer.items if each.threats],
        kind="workload/",
        report="kueue:report_at_risk",
    ),
    Row(
        "verdict.kueue:PreemptionsOfWorkload",
        names=lambda answer: _once(each.preemptor for each in answer.preemptions),
        kind="workload/",
        items=attrgetter("preemptions"),
        report="kueue:report_preemptions",
    ),
    # About kpreempt itself; not in the schema.
    Row(
        "report.algorithms:Algorithms",
        {"text": "algorithms:render_algorithms"},
        lambda algorithms: [each.name for each in algorithms.items],
        kind="",
        formats=("text", "json", "yaml", "name"),
    ),
    Row(
        "report.rules:GateRuleList",
        names=lambda rules: [each.name for each in rules.items],
        kind="",
        formats=("text", "json", "yaml", "name"),
        report="rules:report",
    ),
    Row(
        "report.algorithms:Versions",
        {"text": "algorithms:render_versions"},
        lambda versions: [each.name for each in versions.schedulers],
        kind="",
        formats=("text", "json", "yaml", "name"),
    ),
)
_BY_NAME = {row.record.rpartition(":")[2]: row for row in ROWS}


def formats_of(answer: Answer) -> Sequence[str]:
    """The formats of an answer, the default first."""
    return _BY_NAME[type(answer).__name__].formats


def format_names(record: str) -> Sequence[str]:
    """The formats of an answer, by the name of its record."""
    return _BY_NAME[record].formats


def render_answer(answer: Answer, format: str, options: RenderOptions) -> str:  # noqa: A002 - the option's name
    """Render the answer in one of its row's formats, ending with a newline unless empty.

    Raises ``UsageError`` if there is no such format.
    """
    row = _BY_NAME[type(answer).__name__]
    if format not in row.formats:
        raise UsageError(f"unknown output format {format!r}", hint=nearest(format, row.formats))
    if row.has_renderer(format):
        return row.write(answer, format, options)
    return _COMMON[format](row, answer, options)


def _yaml(_row: Row, answer: Answer, _options: RenderOptions) -> str:
    from kpreempt.report.format_yaml import block_style  # noqa: PLC0415 - YAML is slow to load

    return block_style(answer)


def _lines(row: Row, answer: Answer, _options: RenderOptions) -> str:
    return "".join(f"{encode_json(item)}\n" for item in row.items(answer))


def _names(row: Row, answer: Answer, _options: RenderOptions) -> str:
    names = row.names(row.items(answer) if row.is_list else answer)
    return "".join(f"{row.kind}{printable(name.rpartition('/')[2])}\n" for name in names)


def _block(row: Row, answer: Answer, options: RenderOptions) -> str:
    from kpreempt.report.markdown import fenced_report  # noqa: PLC0415 - only Markdown needs it

    full = msgspec.structs.replace(options, color=False, extent=Extent.REPORT)
    return fenced_report(row.write(answer, "text", full)) + "\n"


# The formats that every answer has without a renderer.
_COMMON: Mapping[str, Callable[[Row, Answer, RenderOptions], str]] = {
    "json": lambda _row, answer, _options: indented(answer),
    "yaml": _yaml,
    "jsonl": _lines,
    "name": _names,
    "markdown": _block,
}


# Enough lines for a few rows of a table and its surroundings.
_MIN_HEIGHT = 15


def render_contexts(
    answers: PendingPodsOfContexts | BudgetAuditOfContexts,
    options: RenderOptions,
    format: str = "text",  # noqa: A002 - the option's name
) -> str:
    """Each answer as if printed alone; answers that are limited to a screen share its lines."""
    height = max(options.height // max(len(answers.items), 1) - 1, _MIN_HEIGHT)
    shown = []
    for item in answers.items:
        text = f"error: {printable(item.error)}\n"
        if item.answer is not None:
            # Ages count up to the time of each answer.
            text = render_answer(
                item.answer, format, msgspec.structs.replace(options, height=height, now=item.answer.at)
            )
        shown.append(f"CONTEXT {printable(item.context)}\n{text}")
    return "\n".join(shown)


def render_contexts_wide(answers: PendingPodsOfContexts, options: RenderOptions) -> str:
    """The wide table of each context."""
    return render_contexts(answers, options, "wide")
