"""Answering ``kpreempt pending``, once or again and again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kpreempt.analysis.pending import explain_pending
from kpreempt.analysis.pending_states import max_backoff_of
from kpreempt.analysis.pod_selection import PodSelection
from kpreempt.cli.answering import AnswerRequest, Asked, select_pods, understand
from kpreempt.cli.clusters import live_connection, single_use_of_stdin
from kpreempt.cli.profile import Stopwatch
from kpreempt.cli.strictness import strict_exit_code
from kpreempt.cli.watch import Wait, begin_page, watch
from kpreempt.cli.workers import Spread
from kpreempt.errors import KpreemptError, UsageError
from kpreempt.verdict import PendingPods

if TYPE_CHECKING:
    from kpreempt.snapshot.live.connection import Connection


class PendingRequest(AnswerRequest, frozen=True, kw_only=True):
    """What the options of ``kpreempt pending`` ask for."""

    all_namespaces: bool
    selector: str | None
    watch: bool
    interval: float
    strict: bool
    jobs: int | None


def run_pending(request: PendingRequest, *, wait: Wait = time.sleep) -> int:
    """Answer the request, and return the exit code; with ``watch`` only an interrupt or a closed pipe ends it."""
    stopwatch = Stopwatch()
    selection = select_pods(request.namespace, request.selector, is_everywhere=request.all_namespaces)
    _check(request)
    looker = _Looker(request, understand(request), selection)
    if request.watch:
        watch(looker.show_again, request.interval, wait=wait)
        return 0
    answer = looker.look(stopwatch)
    looker.asked.write_once(answer, answer.at, stopwatch)
    return strict_exit_code(answer.assumptions, is_strict=request.strict)


def _check(request: PendingRequest) -> None:
    """Raise ``UsageError`` where the options contradict each other."""
    single_use_of_stdin({"--snapshot": request.snapshots})
    if not request.watch:
        return
    if "-" in request.snapshots:
        raise UsageError("-w reads the snapshot again and again, and standard input can be read once only")
    if not request.interval > 0:
        raise UsageError(f"--interval {request.interval:g}: expected a number of seconds above 0", hint="--interval 5")
    for option, is_given in (("--strict", request.strict), ("--profile-json", request.profile_json is not None)):
        if is_given:
            raise UsageError(f"{option} is for one answer, and -w gives many")


class _Looker:
    """Looks at the cluster, once or again and again. The connection is kept until a look fails."""

    def __init__(self, request: PendingRequest, asked: Asked, selection: PodSelection) -> None:
        self.asked = asked
        self._request = request
        self._selection = selection
        self._live: Connection | None = None

    def look(self, stopwatch: Stopwatch) -> PendingPods:
        """What is pending now."""
        if self._live is None:
            self._live = live_connection(self._request.snapshots, self._request.connection)
        now = self.asked.now()
        loaded = self.asked.load(self._live, stopwatch, self.asked.wanted)
        return explain_pending(
            loaded.cluster,
            self.asked.scheduler.scheduler,
            now=now,
            at=self.asked.time_of(loaded.cluster, now),
            is_asked=self._selection.has,
            namespace=self._selection.namespace,
            assumptions=loaded.assumptions,
            max_backoff=max_backoff_of(self.asked.scheduler.configuration),
            spread=Spread(stopwatch, self._request.jobs),
            phases=stopwatch,
        )

    def show_again(self, is_first: bool) -> bool:
        """Look, and show it on a page of its own. False where nobody reads."""
        try:
            answer = self.look(Stopwatch())
        except KpreemptError:
            # Credentials may have expired; others can be had then.
            self._live = None
            raise
        return begin_page(is_first=is_first) and self.asked.write(answer, answer.at)
