"""Answering a batch: one scenario after the other, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from kpreempt.admission import apply_api_defaults, apply_cluster_defaults
from kpreempt.analysis.algorithms import Scheduler, scheduler_for
from kpreempt.analysis.explain import Question, explain_pod
from kpreempt.cli.clock import time_of_answer
from kpreempt.cli.clusters import LoadedCluster, live_connection, load_cluster, single_use_of_stdin, standard_input
from kpreempt.cli.output import Output, parse_outputs, whole_file, write_stdout
from kpreempt.cli.process import EXIT_BUG, EXIT_GATE, EXIT_INPUT, bug_report, write_to_stderr
from kpreempt.cli.profile import Stopwatch, check_profile_path
from kpreempt.cli.scenarios import Scenario, decode_scenario, name_of, read_lines
from kpreempt.errors import InputError, KpreemptError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.phases import Phases
from kpreempt.report import render
from kpreempt.snapshot import cluster_from_json, decode_object, merge_clusters, parse_document
from kpreempt.snapshot.live.flags import ConnectionFlags
from kpreempt.verdict import Verdict


class BatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the options of ``kpreempt batch`` ask for."""

    file: str
    snapshots: list[str]
    connection: ConnectionFlags
    outputs: list[str]
    skip_bad_objects: bool
    strict: bool
    now: str | None
    profile_json: str | None


def run_batch(request: BatchRequest) -> int:
    """Answer every line of the request's file, and return the exit code."""
    stopwatch = Stopwatch()
    outputs = parse_outputs(request.outputs, ("jsonl",))
    check_profile_path(request.profile_json, outputs)
    single_use_of_stdin({"FILE": [request.file], "--snapshot": request.snapshots})
    now = time_of_answer(request.now)
    source = "standard input" if request.file == "-" else request.file
    with _opened(request.file) as stream:
        base = None
        if request.snapshots or request.connection.given():
            live = live_connection(request.snapshots, request.connection)
            skips = request.skip_bad_objects
            base = load_cluster(request.snapshots, live=live, skip_bad_objects=skips, phases=stopwatch)
        answers = Answers(base, now, stopwatch)
        with _writing(outputs) as write:
            for number, line in read_lines(stream, source):
                if not write(answers.to_line(line, source, number)):
                    break
    if request.profile_json:
        stopwatch.write(request.profile_json)
    return answers.exit_code(strict=request.strict)


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        yield standard_input()
        return
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(Path(path).open("rb"))
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", source=path) from error
        yield stream


@contextmanager
def _writing(outputs: list[Output]) -> Iterator[Callable[[str], bool]]:
    """What writes a line to all outputs, and says whether anyone is left to read the next."""
    with ExitStack() as stack:
        files = [stack.enter_context(whole_file(output.path)) for output in outputs if output.path]
        to_stdout = len(files) < len(outputs)

        def write(line: str) -> bool:
            nonlocal to_stdout
            for file in files:
                file.write(line)
            if to_stdout:
                to_stdout = write_stdout(line)
            return to_stdout or bool(files)

        yield write


class Answers:
    """Answers to lines, and what their exit code is. A base cluster is prepared once for each scheduler."""

    def __init__(self, base: LoadedCluster | None, now: datetime, phases: Phases) -> None:
        self._base = base
        self._now = now
        self._phases = phases
        self._prepared_for = b""
        self._prepared: tuple[Scheduler, Any] | None = None
        self._has_errors = False
        self._has_bugs = False
        self._has_assumptions = False

    def to_line(self, line: bytes | InputError, source: str, number: int) -> str:
        """The answer to one line, ending with a newline."""
        try:
            if isinstance(line, InputError):
                raise line
            with self._phases.phase("read"):
                scenario = decode_scenario(line, source, number)
            verdict = self._verdict(scenario, f"{source}:{number}")
        except KpreemptError as error:
            self._has_errors = True
            return _error_line(line, error.message)
        except RecursionError:
            self._has_errors = True
            return _error_line(line, f"{source}:{number}: nested too deeply")
        except Exception as error:
            self._has_bugs = True
            report = bug_report(error)
            write_to_stderr(f"{source}:{number}: {report}")
            return _error_line(line, report.partition("\n")[0])
        self._has_assumptions |= bool(verdict.assumptions)
        name = msgspec.json.encode(scenario.name).decode()
        with self._phases.phase("report"):
            return f'{{"name":{name},"verdict":{render([verdict], "jsonl").rstrip()}}}\n'

    def exit_code(self, *, strict: bool) -> int:
        """The code for all the lines so far."""
        if self._has_bugs:
            return EXIT_BUG
        if self._has_errors:
            return EXIT_INPUT
        return EXIT_GATE if strict and self._has_assumptions else 0

    def _verdict(self, scenario: Scenario, source: str) -> Verdict:
        with self._phases.phase("decode"):
            own = apply_cluster_defaults(cluster_from_json(scenario.objects or [], source))
            pod = decode_object("Pod", msgspec.json.decode(scenario.pod), source=source)
        question = Question(pod=apply_api_defaults(pod))
        if self._base is None:
            cluster, assumptions = own, []
            scheduler, prepared = self._prepare(own, scenario)
        elif scenario.objects:
            cluster, assumptions = merge_clusters(self._base.cluster, own), self._base.assumptions
            scheduler, prepared = self._prepare(cluster, scenario)
        else:
            cluster, assumptions = self._base.cluster, self._base.assumptions
            scheduler, prepared = self._prepare_once(cluster, scenario)
        return explain_pod(
            cluster, question, scheduler, prepared, now=self._now, assumptions=assumptions, phases=self._phases
        )

    def _prepare(self, cluster: ClusterSnapshot, scenario: Scenario) -> tuple[Scheduler, Any]:
        configuration = parse_document(scenario.config, "config") if scenario.config else None
        scheduler = scheduler_for(scenario.algorithm or "", configuration, scenario.feature_gates)
        # A scenario is put to a scheduler that was handed these objects and has no queue, unless it says otherwise.
        with self._phases.phase("prepare"):
            return scheduler, scheduler.prepare(cluster, now=self._now, is_queued=scenario.queued)

    def _prepare_once(self, cluster: ClusterSnapshot, scenario: Scenario) -> tuple[Scheduler, Any]:
        """The base cluster as it was prepared for the line before, if that asked for the same scheduler."""
        wanted = msgspec.json.encode((scenario.algorithm, scenario.config, scenario.feature_gates, scenario.queued))
        if self._prepared is None or wanted != self._prepared_for:
            self._prepared, self._prepared_for = self._prepare(cluster, scenario), wanted
        return self._prepared


def _error_line(line: bytes | InputError, message: str) -> str:
    name = name_of(line) if isinstance(line, bytes) else ""
    return msgspec.json.encode({"name": name, "error": {"message": message}}).decode() + "\n"
