"""Answering ``kpreempt pending``, once or again and again."""

from __future__ import annotations

import sys
import time

import msgspec

from kpreempt.analysis.pending import explain_pending
from kpreempt.analysis.pending_states import max_backoff_of
from kpreempt.analysis.pod_selection import PodSelection
from kpreempt.cli.answering import select_pods, time_of_snapshot, write_answer
from kpreempt.cli.clock import time_of_answer
from kpreempt.cli.clusters import live_connection, load_cluster, single_use_of_stdin
from kpreempt.cli.output import Output, parse_outputs
from kpreempt.cli.process import EXIT_GATE
from kpreempt.cli.profile import Stopwatch, check_profile_path
from kpreempt.cli.schedulers import ConfiguredScheduler, read_scheduler
from kpreempt.cli.strictness import rests_on
from kpreempt.cli.terminal import terminal_width, wants_colour
from kpreempt.cli.watch import Wait, begin_page, watch
from kpreempt.cli.workers import Spread
from kpreempt.errors import UsageError
from kpreempt.report.answers import ANSWER_FORMATS
from kpreempt.report.options import RenderOptions
from kpreempt.snapshot.live.connection import Connection
from kpreempt.snapshot.live.flags import ConnectionFlags
from kpreempt.verdict import PendingPods


class PendingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the options of ``kpreempt pending`` ask for."""

    snapshots: list[str]
    connection: ConnectionFlags
    namespace: str | None
    all_namespaces: bool
    selector: str | None
    watch: bool
    interval: float
    scheduler_config: str | None
    feature_gates: list[str]
    outputs: list[str]
    verbose: bool
    colour: str
    strict: bool
    skip_bad_objects: bool
    now: str | None
    jobs: int | None
    profile_json: str | None


class _Asked(msgspec.Struct, frozen=True):
    """A request, understood."""

    request: PendingRequest
    outputs: list[Output]
    selection: PodSelection
    scheduler: ConfiguredScheduler
    live: Connection | None
    colour: bool


def run_pending(request: PendingRequest, *, wait: Wait = time.sleep) -> int:
    """Answer the request, and return the exit code; with ``watch`` only an interrupt or a closed pipe ends it."""
    asked = _understood(request)
    if not request.watch:
        stopwatch = Stopwatch()
        answer = _look(asked, stopwatch)
        with stopwatch.phase("report"):
            _write(asked, answer)
        if request.profile_json:
            stopwatch.write(request.profile_json)
        return EXIT_GATE if request.strict and rests_on(answer.assumptions) else 0

    def look_again(is_first: bool) -> bool:
        answer = _look(asked, Stopwatch())
        return begin_page(is_first=is_first) and _write(asked, answer)

    watch(look_again, request.interval, wait=wait)
    return 0


def _understood(request: PendingRequest) -> _Asked:
    outputs = parse_outputs(request.outputs, ANSWER_FORMATS)
    check_profile_path(request.profile_json, outputs)
    colour = wants_colour(request.colour, sys.stdout)
    time_of_answer(request.now)
    selection = select_pods(request.namespace, request.selector, is_everywhere=request.all_namespaces)
    _check(request)
    scheduler = read_scheduler(request.scheduler_config, request.feature_gates)
    live = live_connection(request.snapshots, request.connection)
    return _Asked(request, outputs, selection, scheduler, live, colour)


def _check(request: PendingRequest) -> None:
    """Raise ``UsageError`` where the options contradict each other or leave out what is needed."""
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


def _look(asked: _Asked, stopwatch: Stopwatch) -> PendingPods:
    request = asked.request
    now = time_of_answer(request.now)
    loaded = load_cluster(
        request.snapshots,
        live=asked.live,
        with_events=True,
        skip_bad_objects=request.skip_bad_objects,
        phases=stopwatch,
    )
    return explain_pending(
        loaded.cluster,
        asked.scheduler.scheduler,
        now=now,
        at=time_of_snapshot(loaded.cluster, now, is_given=request.now is not None),
        is_asked=asked.selection.has,
        assumptions=loaded.assumptions,
        max_backoff=max_backoff_of(asked.scheduler.configuration),
        spread=Spread(stopwatch, request.jobs),
        phases=stopwatch,
    )


def _write(asked: _Asked, answer: PendingPods) -> bool:
    options = RenderOptions(width=terminal_width(), verbose=asked.request.verbose, now=answer.at)
    return write_answer(answer, asked.outputs, options, colour=asked.colour)
