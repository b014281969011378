"""Answers about many pods, or about what was, in the formats of verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

import msgspec

from kpreempt.errors import UsageError
from kpreempt.report.document import encode_json
from kpreempt.report.escape import printable
from kpreempt.report.options import RenderOptions
from kpreempt.verdict import Comparison, PendingPods, PodsAtRisk, PreemptionsOfPod, SchedulingQueueState
from kpreempt.verdict.budget_audit import BudgetAudit
from kpreempt.verdict.check import Check
from kpreempt.verdict.plugin_list import SchedulerPlugins
from kpreempt.verdict.volcano import GangAnswer, GangAnswers, SessionAnswer

Answer = (
    PendingPods
    | PodsAtRisk
    | BudgetAudit
    | PreemptionsOfPod
    | SchedulingQueueState
    | Comparison
    | SessionAnswer
    | GangAnswer
    | GangAnswers
    | Check
    | SchedulerPlugins
)
ANSWER_FORMATS = ("text", "json", "yaml", "jsonl", "name", "markdown")
# What only the answer of check has a module of its own for.
_CHECK_MODULES = {
    "text": "kpreempt.report.check.text",
    "markdown": "kpreempt.report.check.markdown",
    "html": "kpreempt.report.check.html",
    "junit": "kpreempt.report.check.junit",
    "sarif": "kpreempt.report.check.sarif",
    "github": "kpreempt.report.check.github",
    "gitlab": "kpreempt.report.check.gitlab",
}
CHECK_FORMATS = tuple(dict.fromkeys((*ANSWER_FORMATS, *_CHECK_MODULES)))


class _CheckFormat(Protocol):
    def render(self, check: Check, options: RenderOptions, /) -> str: ...


def render_answer(answer: Answer, format: str, options: RenderOptions) -> str:  # noqa: A002 - the option's name
    """The answer in one of ``ANSWER_FORMATS``, or of ``CHECK_FORMATS`` where it is that of ``check``.

    ``jsonl`` has a line for each of the answer's items, or for each step where events were played, and one for a whole
    session of Volcano or a job; ``name`` has the pods as kubectl prints them: those that are pending, at risk, the
    preemptors, on which algorithms differ, or whom a session evicts; of a job it has the nodes on which its tasks
    end, of an audit the budgets about which there is something to say; its ``jsonl`` ends with the
    workloads without a budget. Of ``check``, ``jsonl`` has the findings and ``name`` the victims; of a list of plugins
    they have the profiles, and the bare names of the plugins that run.
    Raises ``UsageError`` for a format that there is not.
    """
    if format == "json":
        from kpreempt.report.format_json import indented  # noqa: PLC0415 - loaded when it is asked for

        return indented(answer)
    if format == "yaml":
        from kpreempt.report.format_yaml import block_style  # noqa: PLC0415 - YAML is slow to load

        return block_style(answer)
    if format == "jsonl":
        return "".join(f"{encode_json(item)}\n" for item in _items(answer))
    if format == "name":
        kind = _kind_of_names(answer)
        return "".join(f"{kind}{printable(name.rpartition('/')[2])}\n" for name in _names(answer))
    formats = CHECK_FORMATS if isinstance(answer, Check) else ANSWER_FORMATS
    if format not in formats:
        raise UsageError(f"there is no output format {format!r}", hint=", ".join(formats))
    if isinstance(answer, Check):
        return _of_check(answer, format, options)
    if format == "markdown":
        from kpreempt.report.markdown import fenced_report  # noqa: PLC0415 - loaded when it is asked for

        return fenced_report(_text(answer, msgspec.structs.replace(options, colour=False))) + "\n"
    return _text(answer, options)


def _of_check(check: Check, format: str, options: RenderOptions) -> str:  # noqa: A002 - the option's name
    return cast(_CheckFormat, import_module(_CHECK_MODULES[format])).render(check, options)


def _text(answer: Answer, options: RenderOptions) -> str:
    if isinstance(answer, Check):
        return _of_check(answer, "text", options)
    if isinstance(answer, PendingPods):
        from kpreempt.report.pending_text import render_pending  # noqa: PLC0415 - loaded when it is asked for

        return render_pending(answer, options)
    if isinstance(answer, PodsAtRisk):
        from kpreempt.report.risk_text import render_risk  # noqa: PLC0415 - loaded when it is asked for

        return render_risk(answer, options)
    if isinstance(answer, BudgetAudit):
        from kpreempt.report.budgets_text import render_budgets  # noqa: PLC0415 - loaded when it is asked for

        return render_budgets(answer, options)
    if isinstance(answer, SchedulerPlugins):
        from kpreempt.report.plugins_text import render_plugins  # noqa: PLC0415 - loaded when it is asked for

        return render_plugins(answer, options)
    if isinstance(answer, Comparison):
        from kpreempt.report.compare_text import render_comparison  # noqa: PLC0415 - loaded when it is asked for

        return render_comparison(answer, options)
    if isinstance(answer, SessionAnswer):
        from kpreempt.report.volcano_text import render_session  # noqa: PLC0415 - loaded when it is asked for

        return render_session(answer, options)
    if isinstance(answer, GangAnswer | GangAnswers):
        from kpreempt.report.volcano_gang import render_gangs  # noqa: PLC0415 - loaded when it is asked for

        return render_gangs(_gangs(answer), options)
    if isinstance(answer, SchedulingQueueState):
        from kpreempt.report.queue_text import render_queue  # noqa: PLC0415 - loaded when it is asked for

        return render_queue(answer, options)
    from kpreempt.report.preempted_text import render_preempted  # noqa: PLC0415 - loaded when it is asked for

    return render_preempted(answer, options)


def _kind_of_names(answer: Answer) -> str:
    """What stands before a name; nothing before what is no object."""
    if isinstance(answer, SchedulerPlugins):
        return ""
    if isinstance(answer, BudgetAudit):
        return "poddisruptionbudget.policy/"
    return "node/" if isinstance(answer, GangAnswer | GangAnswers) else "pod/"


def _items(answer: Answer) -> Sequence[msgspec.Struct]:
    if isinstance(answer, Check):
        return answer.findings
    if isinstance(answer, SchedulingQueueState) and answer.steps:
        return answer.steps
    if isinstance(answer, SessionAnswer | GangAnswer):
        return [answer]
    if isinstance(answer, BudgetAudit):
        return [*answer.items, *answer.unprotected]
    if isinstance(answer, SchedulerPlugins):
        return answer.profiles
    return answer.preemptions if isinstance(answer, PreemptionsOfPod) else answer.items


def _names(answer: Answer) -> list[str]:
    if isinstance(answer, SchedulerPlugins):
        return list(dict.fromkeys(name for profile in answer.profiles for name in profile.names))
    if isinstance(answer, Check):
        return list(dict.fromkeys(victim.pod for victim in answer.play.displaced))
    if isinstance(answer, PreemptionsOfPod):
        keys = [each.preemptor.pod for each in answer.preemptions if each.preemptor is not None]
        return list(dict.fromkeys(filter(None, keys)))
    if isinstance(answer, Comparison):
        return [item.pod for item in answer.items if not item.is_same]
    if isinstance(answer, BudgetAudit):
        return [item.budget for item in answer.items if item.findings]
    if isinstance(answer, SessionAnswer):
        evicted = [each.task for action in answer.session.actions for each in action.evictions]
        return list(dict.fromkeys(evicted))
    if isinstance(answer, GangAnswer | GangAnswers):
        placed = [task for each in _gangs(answer) for task in each.tasks if task.status != "Evicted"]
        return list(dict.fromkeys(task.node for task in placed if task.node))
    return [item.pod for item in answer.items]


def _gangs(answer: GangAnswer | GangAnswers) -> Sequence[GangAnswer]:
    return answer.items if isinstance(answer, GangAnswers) else [answer]
