"""Answering ``kpreempt at-risk``."""

from __future__ import annotations

from kpreempt.analysis.at_risk import pods_at_risk
from kpreempt.cli.answering import AnswerRequest, select_pods, understand
from kpreempt.cli.clusters import live_connection, single_use_of_stdin, usual_namespace
from kpreempt.cli.profile import Stopwatch
from kpreempt.cli.strictness import strict_exit_code


class AtRiskRequest(AnswerRequest, frozen=True, kw_only=True):
    """What the options of ``kpreempt at-risk`` ask for."""

    all_namespaces: bool
    selector: str | None
    limit: int
    strict: bool


def run_at_risk(request: AtRiskRequest) -> int:
    """Answer the request, and return the exit code."""
    stopwatch = Stopwatch()
    selection = select_pods(request.namespace, request.selector, is_everywhere=request.all_namespaces)
    single_use_of_stdin({"--snapshot": request.snapshots})
    asked = understand(request)
    now = asked.now()
    live = live_connection(request.snapshots, request.connection)
    if not request.namespace and not request.all_namespaces:
        selection = selection._replace(namespace=usual_namespace(live))
    loaded = asked.load(live, stopwatch, asked.wanted)
    answer = pods_at_risk(
        loaded.cluster,
        asked.scheduler.scheduler,
        now=now,
        at=asked.time_of(loaded.cluster, now),
        is_asked=selection.has,
        limit=request.limit,
        assumptions=loaded.assumptions,
        phases=stopwatch,
    )
    asked.write_once(answer, now, stopwatch)
    return strict_exit_code(answer.assumptions, is_strict=request.strict)
