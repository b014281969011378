"""Answering ``kpreempt compare``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import DEFAULT_ALGORITHM, Scheduler
from kpreempt.analysis.compare import compare_pods, comparison_of, prepare_anew
from kpreempt.analysis.explain import Question
from kpreempt.analysis.pending_verdicts import pending_pods
from kpreempt.analysis.questions import Decode, question_in_cluster, questions_of
from kpreempt.analysis.subject import PodTemplate, pod_in_cluster
from kpreempt.analysis.what_if import Overrides
from kpreempt.cli.answering import AnswerRequest, Asked, understand
from kpreempt.cli.clusters import LoadedCluster, live_connection, single_use_of_stdin, usual_namespace
from kpreempt.cli.compared import Compared, parse_compared, wanted_of
from kpreempt.cli.manifests import picked, read_subjects
from kpreempt.cli.process import EXIT_GATE, EXIT_INPUT
from kpreempt.cli.profile import Stopwatch
from kpreempt.cli.scenarios import (
    Scenario,
    configuration_of,
    decode_scenario,
    name_of,
    opened,
    read_lines,
    situation_of,
    source_of,
    unread_of,
)
from kpreempt.cli.strictness import is_unfounded, strict_exit_code
from kpreempt.errors import InputError, KpreemptError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.wanted import all_wanted
from kpreempt.snapshot import object_decoder
from kpreempt.verdict import Assumption, ComparedPod, Comparison


class CompareRequest(AnswerRequest, frozen=True, kw_only=True):
    """What the options of ``kpreempt compare`` ask for."""

    pod: str | None
    algorithms: str
    files: list[str]
    select: list[str]
    batch: str | None
    fail_on_difference: bool
    strict: bool


def run_compare(request: CompareRequest) -> int:
    """Answer the request, and return the exit code."""
    stopwatch = Stopwatch()
    _check(request)
    asked = understand(request)
    compared = parse_compared(request.algorithms, request.extensions)
    now = asked.now()
    answer = (_compare_scenarios if request.batch else _compare_pods)(request, asked, compared, now, stopwatch)
    asked.write_once(answer, now, stopwatch)
    if any(item.error for item in answer.items):
        return EXIT_INPUT
    if request.fail_on_difference and (answer.differing or is_unfounded(answer.assumptions, "--fail-on-difference")):
        return EXIT_GATE
    return strict_exit_code(answer.assumptions, is_strict=request.strict)


def _check(request: CompareRequest) -> None:
    """Raise ``UsageError`` where the options contradict each other."""
    ways = {"by name": request.pod, "by -f": request.files, "by --batch": request.batch}
    given = [way for way, value in ways.items() if value]
    if len(given) > 1:
        raise UsageError(f"the pods are given twice: {given[0]} and {given[1]}")
    if request.select and not request.files:
        raise UsageError("--select picks from a manifest, and none is given", hint="-f FILE")
    batch = [request.batch] if request.batch else []
    single_use_of_stdin({"-f": request.files, "--batch": batch, "--snapshot": request.snapshots})


def _compare_pods(
    request: CompareRequest, asked: Asked, compared: list[Compared], now: datetime, stopwatch: Stopwatch
) -> Comparison:
    request.extensions.check_enabled([each.configuration for each in compared if each.configuration is not None])
    live = live_connection(request.snapshots, request.connection)
    namespace = request.namespace or usual_namespace(live)
    templates = picked(read_subjects(request.files, namespace).templates, request.select, request.namespace)
    schedulers = {each.label: each.scheduler() for each in compared}
    wanted = all_wanted(each.wanted for each in schedulers.values())
    loaded = asked.load(live, stopwatch, wanted)
    with stopwatch.phase("admission"):
        cluster, questions = _questions(request, loaded.cluster, templates, namespace, object_decoder(wanted))
    at = asked.time_of(cluster, now)
    return compare_pods(cluster, questions, schedulers, now=at, assumptions=loaded.assumptions, phases=stopwatch)


def _questions(
    request: CompareRequest,
    cluster: ClusterSnapshot,
    templates: list[PodTemplate],
    namespace: str,
    decode: Decode,
) -> tuple[ClusterSnapshot, list[Question]]:
    """The pod that is named, those of the manifests, or every pending one."""
    if request.pod:
        found = question_in_cluster(pod_in_cluster(cluster, request.pod, namespace), Overrides(), decode)
    elif request.files:
        found = questions_of(cluster, templates, Overrides(), decode)
    else:
        pods = [pod for pod in pending_pods(cluster) if request.namespace in (None, "", pod.metadata.namespace)]
        return cluster, [Question(pod=pod) for pod in pods]
    return found.cluster, list(found.questions)


def _compare_scenarios(
    request: CompareRequest, asked: Asked, compared: list[Compared], now: datetime, stopwatch: Stopwatch
) -> Comparison:
    """Each scenario in its own cluster, laid over the snapshot if there is one. Bad lines are items with an error."""
    base: LoadedCluster | None = None
    if request.snapshots or request.connection.given():
        live = live_connection(request.snapshots, request.connection)
        base = asked.load(live, stopwatch, wanted_of(compared))
    ready = _Ready(compared, base)
    items: list[ComparedPod] = []
    assumptions: list[Assumption] = list(base.assumptions) if base else []
    path = request.batch or ""
    source = source_of(path)
    with opened(path) as stream:
        lines = list(read_lines(stream, source))
    for number, line in lines:
        try:
            if isinstance(line, InputError):
                raise line
            scenario = decode_scenario(line, source, number)
            one = _compare_scenario(scenario, ready, f"{source}:{number}", now, stopwatch)
        except KpreemptError as error:
            name = name_of(line) if isinstance(line, bytes) else ""
            items.append(ComparedPod(name=name or f"{source}:{number}", is_same=False, error=error.message))
            continue
        items += [msgspec.structs.replace(item, name=scenario.name) for item in one.items]
        assumptions += one.assumptions
    return comparison_of([each.label for each in compared], items, assumptions)


def _compare_scenario(
    scenario: Scenario, ready: _Ready, source: str, now: datetime, stopwatch: Stopwatch
) -> Comparison:
    schedulers = ready.schedulers(scenario)
    wanted = all_wanted(each.wanted for each in schedulers.values())
    situation = situation_of(scenario, source, ready.loaded, wanted)
    return compare_pods(
        situation.cluster,
        [Question(pod=situation.asked)],
        schedulers,
        now=now,
        is_queued=scenario.queued,
        assumptions=[*situation.assumptions, *unread_of(wanted, ready.loaded)],
        prepare=ready.prepare,
        phases=stopwatch,
    )


class _Ready:
    """The schedulers for scenarios, and the base cluster made ready for them: kept while scenarios ask for the same."""

    def __init__(self, compared: list[Compared], loaded: LoadedCluster | None) -> None:
        self.loaded = loaded
        self.base = loaded.cluster if loaded else None
        self._compared = compared
        self._kept_for = b""
        self._schedulers: dict[str, Scheduler] = {}
        self._prepared: dict[int, Any] = {}

    def schedulers(self, scenario: Scenario) -> dict[str, Scheduler]:
        """Those to compare; a scenario's own configuration and gates are for the algorithm that it names."""
        asked_for = msgspec.json.encode((scenario.algorithm, scenario.config, scenario.feature_gates, scenario.queued))
        if asked_for != self._kept_for:
            configuration = configuration_of(scenario)
            self._schedulers = {
                each.label: each.scheduler(configuration, scenario.feature_gates)
                if each.algorithm == (scenario.algorithm or DEFAULT_ALGORITHM)
                else each.scheduler()
                for each in self._compared
            }
            self._kept_for, self._prepared = asked_for, {}
        return self._schedulers

    def prepare(self, scheduler: Scheduler, cluster: ClusterSnapshot, /, *, now: datetime, is_queued: bool) -> Any:
        """The cluster made ready for one of the schedulers."""
        if cluster is not self.base:
            return prepare_anew(scheduler, cluster, now=now, is_queued=is_queued)
        if id(scheduler) not in self._prepared:
            self._prepared[id(scheduler)] = prepare_anew(scheduler, cluster, now=now, is_queued=is_queued)
        return self._prepared[id(scheduler)]
