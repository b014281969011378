"""``kpreempt at-risk``: which running pods would be evicted, and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpreempt.cli.clusters import usual_namespace
from kpreempt.cli.runner import Run, check_selection
from kpreempt.library.questions import answer
from kpreempt.snapshot.collect import Needs

if TYPE_CHECKING:
    from kpreempt.cli.requests import AtRiskRequest


def at_risk(request: AtRiskRequest) -> int:
    """Answer the request, and return the exit code."""
    check_selection(request)
    run = Run(request)
    asked = run.read_scheduler()
    now = run.now()
    live = run.connect()
    if not request.namespace and not request.all_namespaces:
        request = request.having(namespace=usual_namespace(live))
    loaded = run.load(live, Needs(wanted=asked.wanted, with_events=True))
    found = answer(run.context(loaded, asked, now, live), request).record
    run.write_once(found, found.at)
    return run.exit_code(found.assumptions)
