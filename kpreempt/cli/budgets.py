"""``kpreempt budgets``: what is wrong with PodDisruptionBudgets, and who would break them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from kpreempt.cli.options import After, AnswerRequest

if TYPE_CHECKING:
    from kpreempt.snapshot.live.flags import ConnectionFlags
    from kpreempt.verdict.budgets import BudgetAudit, Severity
    from kpreempt.verdict.contexts import BudgetAuditOfContext


class BudgetsRequest(AnswerRequest):
    """What the options of ``kpreempt budgets`` ask for."""

    namespace: Annotated[
        str | None, Option("-n", "--namespace", metavar="NS", help="Only budgets of this namespace.")
    ] = None
    outputs: Annotated[
        list[str],
        Option(
            "-o",
            "--output",
            metavar="FORMAT[=FILE]",
            help="text (default), json, yaml, jsonl, name, markdown, junit, sarif, github or gitlab, into FILE if "
            "given. Repeatable. Or, as kubectl has them, jsonpath=TEMPLATE and custom-columns=HEADER:PATH,...",
        ),
    ] = []
    fail_on: Annotated[
        str | None,
        After("colour"),
        Option(metavar="error|warning|note", help="Exit 1 if a finding is as severe as this, or more."),
    ] = None


def budgets(request: BudgetsRequest) -> int:
    """Audit PodDisruptionBudgets: which block drains, protect nothing, or are violated, and by which pod.

    Budgets of all namespaces, unless -n says otherwise; with -l those that protect such pods. The scheduler prefers
    victims whose budgets allow it, and takes others where nothing else helps: every pending pod is tried for that, and
    of budgets that allow no disruption the lowest priority of a new pod is sought that would. One screen; -v has each
    finding with its fix, these priorities, and every budget.
    """
    from kpreempt.analysis.budgets.audit import audit_budgets
    from kpreempt.analysis.check.rollout.autoscalers import KIND, minimum_sizes
    from kpreempt.cli.answering import Run, is_unfounded, select_pods
    from kpreempt.cli.clusters import single_use_of_stdin
    from kpreempt.cli.contexts import answers_of, contexts_of
    from kpreempt.cli.terminal import EXIT_GATE, EXIT_INPUT
    from kpreempt.cli.workers import Spread
    from kpreempt.report.answers import ANSWER_FORMATS, BUDGET_FORMATS
    from kpreempt.verdict.contexts import BudgetAuditOfContexts

    selection = select_pods(request)
    worst = _severity(request.fail_on)
    single_use_of_stdin({"--snapshot": request.snapshots})
    contexts = contexts_of(request.connection)
    # Systems of CI are told of one cluster each.
    run = Run(request, ANSWER_FORMATS if contexts else BUDGET_FORMATS)
    asked = run.read_scheduler()

    def audit(flags: ConnectionFlags) -> BudgetAudit:
        """The budgets of a cluster."""
        now = run.now()
        loaded = run.load(run.connect(flags), asked.wanted, keeps=lambda kind, _: kind == KIND, compared=[KIND])
        configured = asked.on(loaded.cluster)
        return audit_budgets(
            loaded.cluster,
            configured.scheduler,
            now=now,
            at=run.time_of(loaded.cluster, now),
            selection=selection,
            minimum_sizes=minimum_sizes(loaded.documents),
            assumptions=[*configured.assumptions, *loaded.assumptions],
            spread=Spread(run.stopwatch, request.jobs),
            phases=run.stopwatch,
        )

    if contexts:
        items = answers_of(contexts, request.connection, audit, _of_context)
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


def _of_context(context: str, answer: BudgetAudit | None, error: str) -> BudgetAuditOfContext:
    from kpreempt.verdict.contexts import BudgetAuditOfContext

    return BudgetAuditOfContext(context=context, answer=answer, error=error)


def _severity(text: str | None) -> Severity | None:
    """What ``--fail-on`` asks for. Raises ``UsageError`` for anything but a severity."""
    from kpreempt.errors import UsageError, nearest
    from kpreempt.verdict.budgets import Severity

    if text is None:
        return None
    if text not in list(Severity):
        raise UsageError(f"--fail-on {text}: there is no such severity", hint=nearest(text, Severity))
    return Severity(text)


def _is_as_bad(answer: BudgetAudit, worst: Severity) -> bool:
    """Whether a finding is that severe at least; says on standard error which is the first."""
    from kpreempt.cli.terminal import complain

    found = [each for each in answer.findings if each.severity.rank <= worst.rank]
    if not found:
        return False
    first = found[0]
    others = f", and {len(found) - 1} more" if len(found) > 1 else ""
    complain(f"--fail-on {worst}: {first.severity} {first.id}: {first.namespace}: {first.subject}{others}")
    return True
