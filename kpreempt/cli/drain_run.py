"""Answering ``kpreempt drain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.explain.overrides import changed
from kpreempt.cli.answering import Run, write_baseline
from kpreempt.cli.clusters import single_use_of_stdin
from kpreempt.cli.terminal import EXIT_GATE
from kpreempt.cli.workers import Spread
from kpreempt.library.drain import NodeDrain, drain
from kpreempt.library.gate.settings import gate_settings
from kpreempt.report.answers import CHECK_FORMATS

if TYPE_CHECKING:
    from kpreempt.cli.drain import DrainRequest


def run_drain(request: DrainRequest) -> int:
    """Answer the request, and return the exit code."""
    asked = NodeDrain(**{name: getattr(request, name) for name in NodeDrain.__struct_fields__})
    # Most mistakes are in the options: they are told before a cluster is read.
    asked.command()
    request.refuse_contradictions()
    single_use_of_stdin(
        {"--snapshot": request.snapshots, "--with": request.additions, "--add-node": request.node_changes.files}
    )
    run = Run(request, CHECK_FORMATS)
    now = run.now()
    gate = gate_settings(request.gate, now, command="drain")
    live = run.connect()
    scheduler = run.read_scheduler()
    loaded = run.load(live, scheduler.wanted, additions=request.additions, with_events=False)
    cluster = changed(loaded.cluster, removed=request.without)
    ground = run.ground(msgspec.structs.replace(loaded, cluster=cluster), scheduler, now)
    answer = drain(ground, asked, gate, is_live=live is not None, spread=Spread(run.stopwatch, request.jobs))
    write_baseline(gate, answer.findings)
    run.write_once(answer, answer.at)
    return 0 if answer.passed else EXIT_GATE
