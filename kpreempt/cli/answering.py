"""What the commands about many pods share: their options understood, the cluster, and writing the answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.pod_selection import PodSelection, parse_selector
from kpreempt.cli.clock import time_of_answer
from kpreempt.cli.clusters import LoadedCluster, load_cluster
from kpreempt.cli.extensions import Extensions
from kpreempt.cli.output import Output, parse_outputs, whole_file, write_stdout
from kpreempt.cli.profile import Stopwatch, check_profile_path
from kpreempt.cli.schedulers import ConfiguredScheduler, read_scheduler
from kpreempt.cli.terminal import terminal_width, wants_colour
from kpreempt.errors import UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.wanted import NOTHING_WANTED, Wanted
from kpreempt.report.answers import ANSWER_FORMATS, Answer, render_answer
from kpreempt.report.options import RenderOptions
from kpreempt.snapshot.live.flags import ConnectionFlags

if TYPE_CHECKING:
    from kpreempt.snapshot.live.connection import Connection


class AnswerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the options that these commands share ask for."""

    snapshots: list[str]
    connection: ConnectionFlags
    namespace: str | None
    scheduler_config: str | None
    feature_gates: list[str]
    outputs: list[str]
    colour: str
    skip_bad_objects: bool
    now: str | None
    profile_json: str | None
    verbose: bool = False
    algorithm: str | None = None
    policy_config: str | None = None
    extensions: Extensions = Extensions()


class Understood(msgspec.Struct, frozen=True):
    """The shared options, understood, but for the scheduler."""

    request: AnswerRequest
    outputs: list[Output]
    colour: bool

    def now(self) -> datetime:
        """The time of an answer that is given now."""
        return time_of_answer(self.request.now)

    def time_of(self, cluster: ClusterSnapshot, now: datetime) -> datetime:
        """What ages count to: ``now`` where it is given or nothing else is known, else the time of the dump."""
        return now if self.request.now is not None or cluster.taken_at is None else cluster.taken_at

    def load(self, live: Connection | None, stopwatch: Stopwatch, wanted: Wanted = NOTHING_WANTED) -> LoadedCluster:
        """The cluster, with the events of the scheduler, and what plugins have ``wanted``."""
        return load_cluster(
            self.request.snapshots,
            live=live,
            with_events=True,
            skip_bad_objects=self.request.skip_bad_objects,
            phases=stopwatch,
            wanted=wanted,
        )

    def write(self, answer: Answer, at: datetime | None) -> bool:
        """Write the files, then standard output, which alone has colour. False where its reader has gone away.

        Ages in the answer count to ``at``, where it is known.
        """
        options = RenderOptions(width=terminal_width(), verbose=self.request.verbose, now=at)
        with ExitStack() as stack:
            for output in self.outputs:
                if output.path:
                    stack.enter_context(whole_file(output.path)).write(render_answer(answer, output.format, options))
        on_stdout = msgspec.structs.replace(options, colour=self.colour)
        texts = (render_answer(answer, output.format, on_stdout) for output in self.outputs if not output.path)
        return all(write_stdout(text) for text in texts)

    def write_once(self, answer: Answer, at: datetime | None, stopwatch: Stopwatch) -> None:
        """Write the only answer, and where the time went if that is wanted."""
        with stopwatch.phase("report"):
            self.write(answer, at)
        if self.request.profile_json:
            stopwatch.write(self.request.profile_json)


class Asked(Understood, frozen=True):
    """The shared options, understood."""

    scheduler: ConfiguredScheduler

    @property
    def wanted(self) -> Wanted:
        """What the scheduler's plugins read beyond what every snapshot has."""
        return self.scheduler.scheduler.wanted


def understand(request: AnswerRequest) -> Asked:
    """Make sense of the shared options. Raises ``UsageError`` and what ``read_scheduler`` raises."""
    understood = understand_outputs(request)
    scheduler = read_scheduler(
        request.scheduler_config,
        request.feature_gates,
        request.algorithm,
        request.policy_config,
        request.extensions,
    )
    return Asked(request, understood.outputs, understood.colour, scheduler)


def understand_outputs(request: AnswerRequest, formats: Sequence[str] = ANSWER_FORMATS) -> Understood:
    """Make sense of the shared options without reading a scheduler. Raises ``UsageError``."""
    outputs = parse_outputs(request.outputs, formats)
    check_profile_path(request.profile_json, outputs)
    colour = wants_colour(request.colour, sys.stdout)
    time_of_answer(request.now)
    return Understood(request, outputs, colour)


def select_pods(namespace: str | None, selector: str | None, *, is_everywhere: bool) -> PodSelection:
    """The pods that ``-n``, ``-A`` and ``-l`` ask for; without any of them, all. Raises ``UsageError``."""
    if namespace and is_everywhere:
        raise UsageError("-n and -A contradict each other")
    return PodSelection(namespace or "", parse_selector(selector or ""))
