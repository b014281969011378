"""Answers of several clusters for a terminal, each below the name of its context."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kpreempt.report.answers import render_answer
from kpreempt.report.escape import printable
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.contexts import BudgetAuditOfContexts, PendingPodsOfContexts


def render_contexts(answers: PendingPodsOfContexts | BudgetAuditOfContexts, options: RenderOptions) -> str:
    """Each answer as it would be printed alone."""
    return "\n".join(_sections(answers, options))


def _sections(answers: PendingPodsOfContexts | BudgetAuditOfContexts, options: RenderOptions) -> Iterable[str]:
    for item in answers.items:
        head = f"CONTEXT {printable(item.context)}\n"
        if item.answer is None:
            yield f"{head}not known: {printable(item.error)}\n"
            continue
        # Ages count to the time of each.
        yield head + render_answer(item.answer, "text", msgspec.structs.replace(options, now=item.answer.at))
