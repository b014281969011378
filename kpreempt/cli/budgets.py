"""``kpreempt budgets``: what is wrong with PodDisruptionBudgets, and who would break them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpreempt.analysis.check.rollout.autoscalers import KIND
from kpreempt.cli.clusters import answers_of, contexts_of
from kpreempt.cli.runner import Run, check_selection, is_unfounded
from kpreempt.cli.terminal import EXIT_GATE, EXIT_INPUT, complain
from kpreempt.cli.workers import Spread
from kpreempt.errors import UsageError, nearest
from kpreempt.library.questions import answer
from kpreempt.snapshot.collect import Needs
from kpreempt.verdict.budgets import BudgetAudit, Severity
from kpreempt.verdict.contexts import BudgetAuditOfContext, BudgetAuditOfContexts

if TYPE_CHECKING:
    from kpreempt.cli.requests import BudgetsRequest
    from kpreempt.snapshot.live.flags import ConnectionFlags


def budgets(request: BudgetsRequest) -> int:
    """Answer the request, and return the exit code."""
    check_selection(request)
    fail_on = request.fail_on
    if fail_on is not None and fail_on not in list(Severity):
        raise UsageError(f"--fail-on {fail_on}: there is no such severity", hint=nearest(fail_on, Severity))
    worst = None if fail_on is None else Severity(fail_on)
    contexts = contexts_of(request.connection)
    # Systems of CI are told of one cluster each.
    run = Run(request, "BudgetAuditOfContexts" if contexts else "")
    asked = run.read_scheduler()
    needs = Needs(wanted=asked.wanted, with_events=True, keeps=lambda kind, _: kind == KIND, compared=[KIND])

    def audit(flags: ConnectionFlags) -> BudgetAudit:
        """The budgets of a cluster."""
        live = run.connect(flags)
        context = run.context(run.load(live, needs), asked, run.now(), live)
        found: BudgetAudit = answer(context._replace(spread=Spread(run.stopwatch, request.jobs)), request).record
        return found

    if contexts:
        items = answers_of(contexts, request.connection, audit, BudgetAuditOfContext)
        run.write_once(BudgetAuditOfContexts(items=items), None)
        answers = [each.answer for each in items if each.answer is not None]
    else:
        answers = [audit(request.connection)]
        run.write_once(answers[0], answers[0].at)
    assumptions = [each for answer in answers for each in answer.assumptions]
    if worst is not None and (
        any(_is_as_bad(each, worst) for each in answers) or is_unfounded(assumptions, f"--fail-on {worst}")
    ):
        return EXIT_GATE
    return run.exit_code(assumptions, EXIT_INPUT if len(answers) < len(contexts) else 0)


def _is_as_bad(answer: BudgetAudit, worst: Severity) -> bool:
    """Whether a finding is that severe at least; says on standard error which is the first."""
    found = [each for each in answer.findings if each.severity.rank <= worst.rank]
    if not found:
        return False
    first = found[0]
    others = f", and {len(found) - 1} more" if len(found) > 1 else ""
    complain(f"--fail-on {worst}: {first.severity} {first.id}: {first.namespace}: {first.subject}{others}")
    return True
