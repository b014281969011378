"""Answering ``kpreempt who-preempted``."""

from __future__ import annotations

import sys

import msgspec

from kpreempt.analysis.preemption_before import reconstruct
from kpreempt.analysis.subject import pod_name
from kpreempt.analysis.who_preempted import who_preempted
from kpreempt.cli.answering import time_of_snapshot, write_answer
from kpreempt.cli.clock import time_of_answer
from kpreempt.cli.clusters import DEFAULT_NAMESPACE, live_connection, load_cluster, single_use_of_stdin
from kpreempt.cli.output import parse_outputs
from kpreempt.cli.profile import Stopwatch, check_profile_path
from kpreempt.cli.schedulers import read_scheduler
from kpreempt.cli.terminal import terminal_width, wants_colour
from kpreempt.report.answers import ANSWER_FORMATS
from kpreempt.report.options import RenderOptions
from kpreempt.snapshot.live.flags import ConnectionFlags


class WhoPreemptedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the options of ``kpreempt who-preempted`` ask for."""

    pod: str
    snapshots: list[str]
    connection: ConnectionFlags
    namespace: str | None
    before: list[str]
    scheduler_config: str | None
    feature_gates: list[str]
    outputs: list[str]
    colour: str
    skip_bad_objects: bool
    now: str | None
    profile_json: str | None


def run_who_preempted(request: WhoPreemptedRequest) -> int:
    """Answer the request, and return the exit code."""
    stopwatch = Stopwatch()
    outputs = parse_outputs(request.outputs, ANSWER_FORMATS)
    check_profile_path(request.profile_json, outputs)
    colour = wants_colour(request.colour, sys.stdout)
    now = time_of_answer(request.now)
    name = pod_name(request.pod)
    single_use_of_stdin({"--snapshot": request.snapshots, "--before": request.before})
    live = live_connection(request.snapshots, request.connection)
    namespace = request.namespace or (live.namespace if live else DEFAULT_NAMESPACE)
    scheduler = read_scheduler(request.scheduler_config, request.feature_gates).scheduler
    loaded = load_cluster(
        request.snapshots,
        live=live,
        with_events=True,
        skip_bad_objects=request.skip_bad_objects,
        phases=stopwatch,
    )
    answer = who_preempted(loaded.cluster, namespace, name)
    if request.before:
        earlier = load_cluster(request.before, skip_bad_objects=request.skip_bad_objects, phases=stopwatch)
        answer = reconstruct(answer, loaded.cluster, earlier.cluster, scheduler, now=now)
    at = time_of_snapshot(loaded.cluster, now, is_given=request.now is not None)
    with stopwatch.phase("report"):
        write_answer(answer, outputs, RenderOptions(width=terminal_width(), now=at), colour=colour)
    if request.profile_json:
        stopwatch.write(request.profile_json)
    return 0
