"""Answers of several clusters for a terminal, each below the name of its context."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kpreempt.report.answers import render_answer
from kpreempt.report.escape import printable
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.contexts import BudgetAuditOfContexts, PendingPodsOfContexts

# A few rows of a table and what stands around it.
_LEAST_HEIGHT = 15


def render_contexts(answers: PendingPodsOfContexts | BudgetAuditOfContexts, options: RenderOptions) -> str:
    """Each answer as it would be printed alone; answers that keep to a screen share it."""
    height = max(options.height // max(len(answers.items), 1) - 1, _LEAST_HEIGHT)
    return "\n".join(_sections(answers, "text", msgspec.structs.replace(options, height=height)))


def render_contexts_wide(answers: PendingPodsOfContexts, options: RenderOptions) -> str:
    """The wide table of each."""
    return "\n".join(_sections(answers, "wide", options))


def _sections(
    answers: PendingPodsOfContexts | BudgetAuditOfContexts,
    format: str,  # noqa: A002 - the option's name
    options: RenderOptions,
) -> Iterable[str]:
    for item in answers.items:
        head = f"CONTEXT {printable(item.context)}\n"
        if item.answer is None:
            yield f"{head}not known: {printable(item.error)}\n"
            continue
        # Ages count to the time of each.
        yield head + render_answer(item.answer, format, msgspec.structs.replace(options, now=item.answer.at))
