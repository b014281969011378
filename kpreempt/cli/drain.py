"""``kpreempt drain``: whether nodes get empty, and what their pods do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpreempt.cli.runner import Run, write_gated
from kpreempt.cli.workers import Spread
from kpreempt.library.drain import drain_options
from kpreempt.library.gate.settings import gate_settings
from kpreempt.library.questions import answer
from kpreempt.snapshot.collect import Needs

if TYPE_CHECKING:
    from kpreempt.cli.gate_options import DrainRequest


def drain(request: DrainRequest) -> int:
    """Answer the request, and return the exit code."""
    # Most mistakes are in the options: they are told before a cluster is read.
    drain_options(request)
    request.refuse_contradictions()
    run = Run(request)
    now = run.now()
    request = request.having(rules=gate_settings(request.gate, now, command="drain"))
    live = run.connect()
    asked = run.read_scheduler()
    context = run.context(run.load(live, Needs(wanted=asked.wanted)), asked, now, live)
    found = answer(context._replace(spread=Spread(run.stopwatch, request.jobs)), request).record
    return write_gated(run, request.rules, found)
