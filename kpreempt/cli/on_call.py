"""On-call requests about a whole cluster: ``kpreempt pending``, ``at-risk`` and ``budgets``.

``pending`` and ``budgets`` can cover several clusters, and ``pending --watch`` refreshes its list.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.check.rollout.autoscalers import KIND
from kpreempt.cli.clusters import answers_of, contexts_of
from kpreempt.cli.output import write_stdout
from kpreempt.cli.runner import CommandRun, check_selection, is_inconclusive
from kpreempt.cli.terminal import EXIT_GATE, EXIT_INPUT, SCREEN_HEIGHT, complain, complain_of_error, terminal_height
from kpreempt.cli.workers import Spread
from kpreempt.errors import KpreemptError, UsageError, nearest
from kpreempt.library.handlers import answer
from kpreempt.report.escape import printable
from kpreempt.snapshot.collect import Needs
from kpreempt.snapshot.live.connection import Connection
from kpreempt.snapshot.live.flags import ConnectionFlags
from kpreempt.verdict.budgets import BudgetAudit, Severity
from kpreempt.verdict.contexts import (
    BudgetAuditOfContext,
    BudgetAuditOfContexts,
    PendingPodsOfContext,
    PendingPodsOfContexts,
)
from kpreempt.verdict.pending import PendingPods

if TYPE_CHECKING:
    from kpreempt.cli.requests import AtRiskRequest, BudgetsRequest, PendingRequest


_WIDE = "wide"
# A day, in seconds.
_LONGEST_INTERVAL = 86_400


def pending(request: PendingRequest, *, wait: Wait | None = None) -> int:
    """Answer the request and return the exit code."""
    check_selection(request)
    _check(request)
    run = CommandRun(request)
    looks = _PendingPoller(request, run)
    if request.watch:
        screen = Screen(as_blocks=any(not each.path and each.format not in ("text", _WIDE) for each in run.outputs))

        def show_again() -> bool:
            poll = looks.poll()
            return run.write(
                poll, getattr(poll, "at", None), to_stdout=screen.show, height=screen.height or SCREEN_HEIGHT
            )

        watch(show_again, request.interval, fail=screen.fail, **({"wait": wait} if wait else {}))
        return 0
    poll = looks.poll()
    # With several answers, each has its own time.
    run.write_once(poll, getattr(poll, "at", None))
    if isinstance(poll, PendingPods):
        return run.exit_code(poll.assumptions)
    assumptions = [each for item in poll.items if item.answer for each in item.answer.assumptions]
    return run.exit_code(assumptions, EXIT_INPUT if any(item.error for item in poll.items) else 0)


def _check(request: PendingRequest) -> None:
    """Raise ``UsageError`` if the options contradict each other."""
    if not request.watch:
        return
    if "-" in [*request.snapshots, *request.additions, *request.node_changes.files]:
        raise UsageError("-w cannot be used with standard input, which can be read only once")
    if not 0 < request.interval <= _LONGEST_INTERVAL:
        problem = f"expected a number of seconds above 0 and at most {_LONGEST_INTERVAL:,}"
        raise UsageError(f"--interval {request.interval:g}: {problem}", hint="--interval 5")
    for option, is_given in (("--strict", request.strict), ("--profile-json", request.profile_json is not None)):
        if is_given:
            raise UsageError(f"{option} cannot be used with -w")


class _PendingPoller:
    """Polls the pending pods, reusing each connection until it fails."""

    def __init__(self, request: PendingRequest, run: CommandRun) -> None:
        self._request, self._run = request, run
        self._factory = run.read_scheduler()
        self._contexts = contexts_of(request.connection)
        self._is_wide = any(output.format == _WIDE for output in run.outputs)
        # Keyed by context, like the previous result.
        self._live: dict[str, Connection | None] = {}
        self._seen: dict[str, PendingPods] = {}

    def poll(self) -> PendingPods | PendingPodsOfContexts:
        """Return the pods that are pending now, in each context if there are several."""
        self._request.input_limits.restart()
        if self._contexts:
            items = answers_of(self._contexts, self._request.connection, self._poll_context, PendingPodsOfContext)
            for each in items:
                if each.error:
                    self._live.pop(each.context, None)
            return PendingPodsOfContexts(items=items)
        try:
            return self._poll_context(self._request.connection)
        except KpreemptError:
            # Credentials may have expired, and new ones may be available then.
            self._live.clear()
            raise

    def _poll_context(self, flags: ConnectionFlags) -> PendingPods:
        run = self._run
        if flags.context not in self._live:
            self._live[flags.context] = run.connect(flags)
        from kpreempt.library.workload_counts import WORKLOADS, with_optional_workloads, with_workload_counts

        needs = Needs(extra_fields=self._factory.extra_fields | WORKLOADS, with_events=True)
        loaded = with_optional_workloads(run.load(self._live[flags.context], needs))
        context = run.context(loaded, self._factory, run.now(), self._live[flags.context])
        context = context._replace(spread=Spread(run.stopwatch, self._request.jobs))
        # A watch repeats the answer every few seconds; only the wide table has the time for a search.
        is_brief = self._request.watch and not self._is_wide
        request = self._request.having(seconds_of_search=None) if is_brief else self._request
        found: PendingPods = with_workload_counts(answer(context, request).record, loaded)
        if not self._request.watch:
            return found
        from kpreempt.analysis.pending.pods import changes_since

        if before := self._seen.get(flags.context):
            found = msgspec.structs.replace(found, changes=changes_since(before, found, loaded.cluster))
        self._seen[flags.context] = found
        return found


Wait = Callable[[float], None]

# Move to the top and turn off line wrapping.
_BEGIN = "\x1b[H\x1b[?7l"
_CLEAR_LINE = "\x1b[K"
_END = "\x1b[J\x1b[?7h"
_MIN_HEIGHT = 5


class Screen:
    """Standard output that shows one result after another.

    A terminal is redrawn in place, and lines that do not fit are left out, so that nothing scrolls. Elsewhere, or with
    ``as_blocks``, the results follow each other with a line in between.
    """

    def __init__(self, *, as_blocks: bool = False) -> None:
        self.is_drawn = not as_blocks and sys.stdout is not None and sys.stdout.isatty()
        self._is_first = True
        self._text = ""

    @property
    def height(self) -> int | None:
        """The number of lines that fit, or ``None`` if there is no limit."""
        return max(terminal_height(), _MIN_HEIGHT) if self.is_drawn else None

    def show(self, text: str) -> bool:
        """Show a result; return ``False`` if no one reads the output."""
        before = "" if self._is_first else "\n"
        if self.is_drawn:
            # Move what the terminal showed before into its scrollback.
            before = "\n" * terminal_height() if self._is_first else ""
            self._text, text = text, self._frame(text)
        self._is_first = False
        return write_stdout(before + text)

    def fail(self, error: KpreemptError) -> None:
        """Show why polling failed, below the last result."""
        if not self.is_drawn or not sys.stderr.isatty():
            complain_of_error(error.message, error.hint)
        if self.is_drawn:
            write_stdout(self._frame(self._text, f"last refresh failed: {printable(error.message)}"))

    def _frame(self, text: str, note: str = "") -> str:
        """Return the text with a note below it, cut to what fits; the cursor needs the last line."""
        height = max(terminal_height(), _MIN_HEIGHT) - 1 - bool(note)
        lines = text.splitlines()
        if len(lines) > height:
            lines = [
                *lines[: height - 1],
                f"… {len(lines) - height + 1:,} more lines; enlarge the terminal to see them",
            ]
        return _BEGIN + "".join(f"{_CLEAR_LINE}{line}\n" for line in [*lines, *([note] if note else [])]) + _END


def watch(
    poll: Callable[[], bool], seconds: float, *, fail: Callable[[KpreemptError], None], wait: Wait = time.sleep
) -> None:
    """Call ``poll`` now and every ``seconds`` after, until it returns that no one reads, or Ctrl-C is pressed.

    If the first call fails, the watch ends. Later failures, as when a cluster is temporarily unreachable, go to
    ``fail``, and polling continues.
    """
    is_first = True
    while True:
        try:
            if not poll():
                return
        except KpreemptError as error:
            if is_first:
                raise
            fail(error)
        is_first = False
        wait(seconds)


def at_risk(request: AtRiskRequest) -> int:
    """Answer the request and return the exit code."""
    check_selection(request)
    run = CommandRun(request)
    factory = run.read_scheduler()
    now = run.now()
    live = run.connect()
    loaded = run.load(live, Needs(extra_fields=factory.extra_fields, with_events=True))
    found = answer(run.context(loaded, factory, now, live), request).record
    run.write_once(found, found.at)
    return run.exit_code(found.assumptions)


def budgets(request: BudgetsRequest) -> int:
    """Answer the request and return the exit code."""
    check_selection(request)
    fail_on = request.fail_on
    if fail_on is not None and fail_on not in list(Severity):
        raise UsageError(f"--fail-on {fail_on}: unknown severity", hint=nearest(fail_on, Severity))
    worst = None if fail_on is None else Severity(fail_on)
    contexts = contexts_of(request.connection)
    # CI formats cover one cluster each.
    run = CommandRun(request, "BudgetAuditOfContexts" if contexts else "")
    factory = run.read_scheduler()
    needs = Needs(
        extra_fields=factory.extra_fields,
        with_events=True,
        keep_document=lambda kind, _: kind == KIND,
        compare_kinds=[KIND],
    )

    def audit(flags: ConnectionFlags) -> BudgetAudit:
        """Audit the budgets of one cluster."""
        live = run.connect(flags)
        context = run.context(run.load(live, needs), factory, run.now(), live)
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
        any(_is_as_bad(each, worst) for each in answers) or is_inconclusive(assumptions, f"--fail-on {worst}")
    ):
        return EXIT_GATE
    return run.exit_code(assumptions, EXIT_INPUT if len(answers) < len(contexts) else 0)


def _is_as_bad(answer: BudgetAudit, worst: Severity) -> bool:
    """Return whether any finding is at least that severe, and report the first one on standard error."""
    found = [each for each in answer.findings if each.severity.rank <= worst.rank]
    if not found:
        return False
    first = found[0]
    others = f", and {len(found) - 1} more" if len(found) > 1 else ""
    complain(f"--fail-on {worst}: {first.severity} {first.id}: {first.namespace}: {first.subject}{others}")
    return True
