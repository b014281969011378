"""``kpreempt batch``: reads scenarios and writes verdicts, as JSON lines; each line selects its scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.cli.clusters import live_connection, load_cluster, single_use_of_stdin, snapshot_source
from kpreempt.cli.extensions import Extensions
from kpreempt.cli.families import family_of
from kpreempt.cli.output import Output, Stopwatch, atomic_file, check_profile_path, parse_outputs, write_stdout
from kpreempt.cli.runner import time_of_answer
from kpreempt.cli.scenarios import (
    Scenario,
    SchedulerCache,
    configuration_of,
    decode_scenario,
    name_of,
    opened,
    read_lines,
    situation_of,
    source_of,
    unread_of,
)
from kpreempt.cli.terminal import EXIT_BUG, EXIT_GATE, EXIT_INPUT, bug_report, write_to_stderr
from kpreempt.cli.workers import Spread
from kpreempt.errors import InputError, KpreemptError, within_calendar
from kpreempt.library.handlers import answer
from kpreempt.library.reading import LoadedCluster
from kpreempt.library.requests import Decide
from kpreempt.library.schedulers import Context, SchedulerFactory
from kpreempt.phases import Phases
from kpreempt.report.batch_lines import encode_line
from kpreempt.report.document import with_kind
from kpreempt.report.escape import printable, printable_json
from kpreempt.scheduler_table import DEFAULT_ALGORITHM
from kpreempt.snapshot.collect import Needs
from kpreempt.verdict import Verdict

if TYPE_CHECKING:
    from kpreempt.cli.requests import BatchRequest


def batch(request: BatchRequest) -> int:
    """Answer every line of the request's file and return the exit code."""
    stopwatch = Stopwatch()
    outputs = parse_outputs(request.outputs, ("jsonl",))
    check_profile_path(request.profile_json, outputs)
    single_use_of_stdin(request)
    now = time_of_answer(request.now)
    source = source_of(request.file)
    with opened(request.file) as stream:
        base = None
        if request.snapshots or request.connection.as_arguments():
            live = live_connection(request.snapshots, request.connection)
            # The configurations in the lines are not known yet.
            needs = Needs(extra_fields=request.extensions.extra_fields)
            base = load_cluster(msgspec.structs.replace(snapshot_source(request, stopwatch), live=live), needs)
            # As in a line, keep the order in which a scheduler would have received the objects.
            known = msgspec.structs.replace(base.cluster, has_scheduler_order=True)
            assumptions = [each for each in base.assumptions if not each.lists_files]
            base = msgspec.structs.replace(base, cluster=known, assumptions=assumptions)
        answerer = Answerer(base, now, source, stopwatch, request.extensions)
        spread = Spread(stopwatch, request.jobs)
        has_bugs = has_errors = has_assumptions = False
        with writing(outputs) as write:
            for answer in spread(read_lines(stream, source), answerer.answer):
                has_bugs |= answer.is_bug
                has_errors |= answer.is_error
                has_assumptions |= answer.has_assumptions
                if not write(answer.line):
                    break
    if request.profile_json:
        stopwatch.write(request.profile_json)
    if has_bugs:
        return EXIT_BUG
    if has_errors:
        return EXIT_INPUT
    return EXIT_GATE if request.strict and has_assumptions else 0


@contextmanager
def writing(outputs: list[Output]) -> Iterator[Callable[[str], bool]]:
    """Yield a function that writes a line to all outputs and returns whether anyone still reads them."""
    with ExitStack() as stack:
        files = [stack.enter_context(atomic_file(output.path)) for output in outputs if output.path]
        to_stdout = len(files) < len(outputs)

        def write(line: str) -> bool:
            nonlocal to_stdout
            for file in files:
                file.write(line)
            if to_stdout:
                to_stdout = write_stdout(line)
            return to_stdout or bool(files)

        yield write


class Answer(NamedTuple):
    """The answer to a line, ending with a newline, and messages about it."""

    line: str
    is_error: bool = False
    is_bug: bool = False
    has_assumptions: bool = False


class Answerer:
    """Answers lines, preparing a base cluster once per scheduler."""

    def __init__(
        self,
        base: LoadedCluster | None,
        now: datetime,
        source: str,
        phases: Phases,
        extensions: Extensions = Extensions(),
    ) -> None:
        self._base = base
        self._extensions = extensions
        self._now = now
        self._source = source
        self._phases = phases
        self._schedulers = SchedulerCache(base, self._scheduler_of)

    def answer(self, numbered: tuple[int, bytes | InputError]) -> Answer:
        """Answer a numbered line; never raises."""
        number, line = numbered
        try:
            if isinstance(line, InputError):
                raise line
            source = f"{self._source}:{number}"
            with self._phases.phase("read"):
                scenario = decode_scenario(line, self._source, number)
            family = family_of(scenario.algorithm)
            with within_calendar(self._source, number):
                if family.answers_scenarios:
                    verdict = family.module().answer_scenario(scenario, source, self._base, self._now, self._phases)
                else:
                    verdict = with_kind(self._verdict(scenario, source))
        except KpreemptError as error:
            return self._failed(line, error.message)
        except RecursionError:
            return self._failed(line, f"{self._source}:{number}: nested too deeply")
        except Exception as error:
            report = bug_report(error)
            write_to_stderr(f"{printable(self._source)}:{number}: {report}")
            return self._failed(line, report.partition("\n")[0], is_bug=True)
        name = printable_json(msgspec.json.encode(scenario.name).decode())
        with self._phases.phase("report"):
            body = encode_line(verdict)
            # If the scheduler's attempt ends in an error, that is an answer too, printed next to the verdict.
            failure = getattr(verdict, "error", "")
            error_member = (
                f',"error":{{"message":{printable_json(msgspec.json.encode(failure).decode())}}}' if failure else ""
            )
            text = f'{{"name":{name},"verdict":{body}{error_member}}}\n'
        return Answer(text, has_assumptions=bool(verdict.assumptions))

    def _failed(self, line: bytes | InputError, message: str, *, is_bug: bool = False) -> Answer:
        name = name_of(line) if isinstance(line, bytes) else ""
        return Answer(_line({"name": name, "error": {"message": message}}), is_error=not is_bug, is_bug=is_bug)

    def _verdict(self, scenario: Scenario, source: str) -> Verdict:
        factory = self._schedulers.get(scenario)
        with self._phases.phase("decode"):
            situation = situation_of(scenario, source, self._base, factory.extra_fields)
        configured = factory.on(situation.cluster)
        # Unless a scenario says otherwise, its scheduler received exactly these objects and has no queue.
        with self._phases.phase("prepare"):
            prepared = self._schedulers.prepare(
                configured.scheduler, situation.cluster, now=self._now, is_queued=scenario.queued
            )
        loaded = LoadedCluster(
            situation.cluster, [*situation.assumptions, *unread_of(factory.extra_fields, self._base)]
        )
        context = Context(loaded, factory, self._now, phases=self._phases)
        found: Verdict = answer(context, Decide(admitted=situation.pod_to_schedule, prepared=prepared)).record
        return found

    def _scheduler_of(self, scenario: Scenario) -> SchedulerFactory:
        configuration = configuration_of(scenario)
        make = partial(
            scheduler_for,
            configuration=configuration,
            feature_gates=scenario.feature_gates,
            plugins=self._extensions.found(configuration),
            connect=self._extensions.connect,
        )
        return SchedulerFactory(scenario.algorithm or DEFAULT_ALGORITHM, make)


def _line(answer: dict[str, Any]) -> str:
    """Format an answer as a line of JSON without characters that a terminal or pipeline would interpret."""
    return printable_json(msgspec.json.encode(answer).decode()) + "\n"
