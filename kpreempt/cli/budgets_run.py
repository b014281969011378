"""Answering ``kpreempt budgets``."""

from __future__ import annotations

from kpreempt.analysis.budget_audit import audit_budgets
from kpreempt.cli.answering import AnswerRequest, select_pods, understand
from kpreempt.cli.clusters import live_connection, single_use_of_stdin
from kpreempt.cli.process import EXIT_GATE, complain
from kpreempt.cli.profile import Stopwatch
from kpreempt.cli.strictness import is_unfounded, strict_exit_code
from kpreempt.cli.workers import Spread
from kpreempt.errors import UsageError
from kpreempt.verdict.budget_audit import BudgetAudit, Severity


class BudgetsRequest(AnswerRequest, frozen=True, kw_only=True):
    """What the options of ``kpreempt budgets`` ask for."""

    all_namespaces: bool
    selector: str | None
    fail_on: str | None
    strict: bool
    jobs: int | None


def run_budgets(request: BudgetsRequest) -> int:
    """Answer the request, and return the exit code."""
    stopwatch = Stopwatch()
    selection = select_pods(request.namespace, request.selector, is_everywhere=request.all_namespaces)
    worst = _severity(request.fail_on)
    single_use_of_stdin({"--snapshot": request.snapshots})
    asked = understand(request)
    now = asked.now()
    live = live_connection(request.snapshots, request.connection)
    loaded = asked.load(live, stopwatch, asked.wanted)
    answer = audit_budgets(
        loaded.cluster,
        asked.scheduler.scheduler,
        now=now,
        at=asked.time_of(loaded.cluster, now),
        selection=selection,
        assumptions=loaded.assumptions,
        spread=Spread(stopwatch, request.jobs),
        phases=stopwatch,
    )
    asked.write_once(answer, answer.at, stopwatch)
    if worst is not None and (_is_as_bad(answer, worst) or is_unfounded(answer.assumptions, f"--fail-on {worst}")):
        return EXIT_GATE
    return strict_exit_code(answer.assumptions, is_strict=request.strict)


def _severity(text: str | None) -> Severity | None:
    """What ``--fail-on`` asks for. Raises ``UsageError`` for anything but a severity."""
    if text is None:
        return None
    if text not in list(Severity):
        raise UsageError(f"--fail-on {text}: there is no such severity", hint=", ".join(Severity))
    return Severity(text)


def _is_as_bad(answer: BudgetAudit, worst: Severity) -> bool:
    """Whether a finding is that severe at least; says on standard error which is the first."""
    found = [each for each in answer.findings if each.severity.rank <= worst.rank]
    if not found:
        return False
    first = found[0]
    others = f", and {len(found) - 1} more" if len(found) > 1 else ""
    complain(f"--fail-on {worst}: {first.severity} {first.id}: {first.namespace}: {first.subject}{others}")
    return True
