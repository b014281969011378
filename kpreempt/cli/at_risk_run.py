"""Answering ``kpreempt at-risk``."""

from __future__ import annotations

import sys

import msgspec

from kpreempt.analysis.at_risk import pods_at_risk
from kpreempt.cli.answering import select_pods, write_answer
from kpreempt.cli.clock import time_of_answer
from kpreempt.cli.clusters import DEFAULT_NAMESPACE, live_connection, load_cluster, single_use_of_stdin
from kpreempt.cli.output import parse_outputs
from kpreempt.cli.process import EXIT_GATE
from kpreempt.cli.profile import Stopwatch, check_profile_path
from kpreempt.cli.schedulers import read_scheduler
from kpreempt.cli.strictness import rests_on
from kpreempt.cli.terminal import terminal_width, wants_colour
from kpreempt.report.answers import ANSWER_FORMATS
from kpreempt.report.options import RenderOptions
from kpreempt.snapshot.live.flags import ConnectionFlags


class AtRiskRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the options of ``kpreempt at-risk`` ask for."""

    snapshots: list[str]
    connection: ConnectionFlags
    namespace: str | None
    all_namespaces: bool
    selector: str | None
    limit: int
    scheduler_config: str | None
    feature_gates: list[str]
    outputs: list[str]
    verbose: bool
    colour: str
    strict: bool
    skip_bad_objects: bool
    now: str | None
    profile_json: str | None


def run_at_risk(request: AtRiskRequest) -> int:
    """Answer the request, and return the exit code."""
    stopwatch = Stopwatch()
    outputs = parse_outputs(request.outputs, ANSWER_FORMATS)
    check_profile_path(request.profile_json, outputs)
    colour = wants_colour(request.colour, sys.stdout)
    now = time_of_answer(request.now)
    selection = select_pods(request.namespace, request.selector, is_everywhere=request.all_namespaces)
    single_use_of_stdin({"--snapshot": request.snapshots})
    live = live_connection(request.snapshots, request.connection)
    if not request.namespace and not request.all_namespaces:
        selection = selection._replace(namespace=live.namespace if live else DEFAULT_NAMESPACE)
    scheduler = read_scheduler(request.scheduler_config, request.feature_gates).scheduler
    loaded = load_cluster(
        request.snapshots,
        live=live,
        with_events=True,
        skip_bad_objects=request.skip_bad_objects,
        phases=stopwatch,
    )
    answer = pods_at_risk(
        loaded.cluster,
        scheduler,
        now=now,
        is_asked=selection.has,
        limit=request.limit,
        assumptions=loaded.assumptions,
        phases=stopwatch,
    )
    options = RenderOptions(width=terminal_width(), verbose=request.verbose, now=now)
    with stopwatch.phase("report"):
        write_answer(answer, outputs, options, colour=colour)
    if request.profile_json:
        stopwatch.write(request.profile_json)
    return EXIT_GATE if request.strict and rests_on(answer.assumptions) else 0
