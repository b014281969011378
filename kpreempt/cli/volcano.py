"""Volcano's answers: a whole session of its scheduler, and what becomes of jobs that are submitted to it.

Its configuration is a file, the ConfigMap that holds it, or the default of 1.8.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler, api_server_of
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.questions import (
    in_namespace,
    pod_in_cluster,
    question_in_cluster,
    questions_of,
    select,
    subjects_of,
)
from kpreempt.analysis.volcano.jobs import MAX_PODS, VolcanoJob, read_volcano_job
from kpreempt.analysis.volcano.sessions import (
    Submission,
    Volcano,
    VolcanoOfPods,
    answer_session,
    explain_submission,
    submit,
)
from kpreempt.analysis.what_if import Overrides
from kpreempt.analysis.workload_pods import PodTemplate, is_volcano_job, pods_of
from kpreempt.cli.clusters import usual_namespace
from kpreempt.cli.manifests import accepted_objects, check_pod, pod_of_amounts, tell_ignored
from kpreempt.cli.output import WHOLE_FORMATS
from kpreempt.cli.requests import VolcanoRequest
from kpreempt.cli.runner import Run
from kpreempt.cli.scenarios import Scenario, situation_of
from kpreempt.cli.scheduler_configs import read_own_config
from kpreempt.cli.terminal import EXIT_UNCERTAIN
from kpreempt.errors import ConfigurationError, InputError, UsageError
from kpreempt.library.reading import LoadedCluster
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.volcano import SCHEDULING_VERSION, PodGroup, Queue
from kpreempt.phases import Phases
from kpreempt.schedulers.volcano import VolcanoConfiguration, configuration_of, run_session
from kpreempt.snapshot.decode import decode_object
from kpreempt.snapshot.documents import parse_document
from kpreempt.verdict.volcano import GangAnswer, GangAnswers, GangOutcome, SessionVerdict

if TYPE_CHECKING:
    from kpreempt.cli.requests import ExplainRequest
    from kpreempt.snapshot.live.connection import Connection


def volcano(request: VolcanoRequest) -> int:
    """Answer the request, and return the exit code."""
    run = Run(request)
    live = run.connect()
    scheduler = volcano_for(request, run, live)
    loaded = run.load(live)
    with run.stopwatch.phase("session"):
        answer = answer_session(loaded.cluster, scheduler, loaded.assumptions)
    run.write_once(answer, scheduler.now)
    return run.exit_code(set(answer.session.assumptions))


_CONFIG_KEY = "volcano-scheduler.conf"
_USUAL_NAMESPACE = "volcano-system"


def scheduler_of_pods(document: Mapping[str, Any] | None, source: str) -> Scheduler:
    """Volcano, asked about one pod after the other. Raises ``InputError`` and ``ConfigurationError``."""
    return VolcanoOfPods(volcano_configuration_in(document, source), decode_object)


def read_scheduler_of_pods(path: str | None, live: Connection | None) -> Scheduler:
    """The same with the configuration of a file, or of the live cluster."""
    return VolcanoOfPods(read_volcano_configuration(path, None, live), decode_object)


def volcano_for(request: ExplainRequest | VolcanoRequest, run: Run, live: Connection | None) -> Volcano:
    """Volcano, with chance for as many sessions as are asked for; raises as ``read_volcano_configuration``."""
    if request.runs < 0:
        raise UsageError("--runs is a number of sessions, 0 or more")
    now = run.now()
    configuration = read_volcano_configuration(request.scheduler_config, request.actions, live)
    with_scores = any(output.format in WHOLE_FORMATS for output in run.outputs)
    return Volcano(configuration, now, request.runs, request.seed, random.Random, with_scores)


def read_volcano_configuration(
    path: str | None, actions: str | None, live: Connection | None = None
) -> VolcanoConfiguration:
    """The configuration in a file or in a ConfigMap of the ``live`` cluster (``configmap/[NAMESPACE/]NAME``).

    Without ``path`` it is the default; ``actions`` take the place of its own. Raises ``UsageError``, ``ClusterError``,
    ``InputError`` and ``ConfigurationError``, which say where the mistake is.
    """
    if path is None:
        return volcano_configuration_in(None, "", actions)
    return volcano_configuration_in(read_own_config(path, live, _USUAL_NAMESPACE), path, actions)


def volcano_configuration_in(
    document: Mapping[str, Any] | None, source: str, actions: str | None = None
) -> VolcanoConfiguration:
    """The configuration that a document is, or that holds it as a ConfigMap; raises as the other one."""
    if document is not None and document.get("kind") == "ConfigMap":
        data = document.get("data")
        data = data if isinstance(data, dict) else {}
        names = [name for name, text in data.items() if name.endswith(".conf") and isinstance(text, str)]
        name = _CONFIG_KEY if _CONFIG_KEY in names else names[0] if len(names) == 1 else ""
        if not name:
            found = f"; it has {', '.join(sorted(names))}" if names else ""
            raise InputError(f"the ConfigMap has no {_CONFIG_KEY}{found}", source=source, path="data")
        document = parse_document(data[name], f"{source}: {name}")
    try:
        return configuration_of(document, actions)
    except ConfigurationError as error:
        where = source if actions is None else "--actions"
        raise ConfigurationError(f"{where}: {error.message}" if where else error.message, hint=error.hint) from None


SCENARIO = Scenario


def answer_scenario(
    scenario: Scenario, source: str, base: LoadedCluster | None, now: datetime, phases: Phases
) -> SessionVerdict:
    """The session on the cluster of a line of ``batch``, to which its pod is added if there is one."""
    configuration = configuration_of(parse_document(scenario.conf, "conf") if scenario.conf else None)
    with phases.phase("decode"):
        situation = situation_of(scenario, source, base)
        cluster = situation.cluster
        if situation.pod is not None:
            cluster = msgspec.structs.replace(cluster, pods=[*cluster.pods, situation.pod])
    with phases.phase("session"):
        verdict = run_session(cluster, configuration, now=now)
    return msgspec.structs.replace(verdict, assumptions=[*verdict.assumptions, *situation.assumptions])


_EXIT_CODES = {
    GangOutcome.BOUND: 0,
    GangOutcome.PIPELINED: 10,
    GangOutcome.REFUSED: 12,
    GangOutcome.NOT_ENQUEUED: 12,
    GangOutcome.INVALID: 12,
    GangOutcome.IGNORED: 12,
    GangOutcome.NOT_PLACED: 12,
    GangOutcome.PANIC: 12,
}
_JOB_KINDS = ("job", "jobs", "vcjob", "vj")


def explain_jobs(request: ExplainRequest) -> int:
    """Answer what becomes of the jobs of a request, and return the exit code."""
    check_pod(request)
    amounts = None if request.pod or request.files else pod_of_amounts(request)
    run = Run(request, "GangAnswer")
    live = run.connect()
    volcano = volcano_for(request, run, live)
    namespace = request.namespace or usual_namespace(live)
    manifest = _read_manifest(request, amounts, namespace)
    loaded = run.load(live)
    with run.stopwatch.phase("admission"):
        submission = _submission(request, manifest, loaded.cluster, namespace, volcano.now)
    with run.stopwatch.phase("session"):
        answers = explain_submission(submission, volcano, decode_object, loaded.assumptions)
    run.write_once(answers[0] if len(answers) == 1 else GangAnswers(items=answers), volcano.now)
    assumptions = {assumption for each in answers for assumption in each.assumptions}
    return run.exit_code_by_outcome(assumptions, map(_exit_code, answers))


class _Manifest(msgspec.Struct, frozen=True):
    queues: list[Queue] = []
    jobs: list[VolcanoJob] = []
    groups: list[PodGroup] = []
    templates: list[PodTemplate] = []


def _read_manifest(request: ExplainRequest, amounts: PodTemplate | None, namespace: str) -> _Manifest:
    """The jobs, groups and pods of the manifests, in ``namespace`` if they say none."""
    if amounts is not None:
        return _Manifest(templates=[in_namespace(amounts, namespace)])
    found = _Manifest([], [], [], [])
    others: list[tuple[Document, str, int]] = []
    for path in request.files:
        for each in accepted_objects(path, request.intake):
            document, metadata = each.document, each.document.get("metadata")
            if isinstance(metadata, dict) and not (metadata.get("namespace") and request.namespace is None):
                document = {**document, "metadata": {**metadata, "namespace": namespace}}
            kind = document.get("kind") if document.get("apiVersion") == SCHEDULING_VERSION else None
            if is_volcano_job(document):
                found.jobs.append(read_volcano_job(document, namespace, source=each.source, line=each.line))
            elif kind in ("PodGroup", "Queue"):
                record = decode_object(kind, document, source=each.source, line=each.line)
                if isinstance(record, PodGroup):
                    found.groups.append(record)
                elif isinstance(record, Queue):
                    found.queues.append(record)
            else:
                others.append((document, each.source, each.line))
    if found.jobs or found.groups:
        others = [each for each in others if pods_of(each[0], source=each[1], line=each[2])]
    if others:
        subjects = subjects_of(others, namespace)
        tell_ignored(subjects.notes, verbose=request.verbose > 0)
        found.templates.extend(subjects.templates)
    if request.files and not (found.jobs or found.groups or found.templates):
        raise InputError("no job, pod group or pod in it", source=", ".join(request.files))
    return _selected(found, request.select)


def _selected(manifest: _Manifest, wanted: list[str]) -> _Manifest:
    if not wanted:
        return manifest
    jobs: list[VolcanoJob] = []
    templates: list[PodTemplate] = []
    for text in wanted:
        kind, _, name = text.partition("/")
        found = [job for job in manifest.jobs if job.name == name and kind.lower() in _JOB_KINDS]
        jobs += found
        if not found:
            templates += select(manifest.templates, text)
    return _Manifest(manifest.queues, jobs, manifest.groups, templates)


def _submission(
    request: ExplainRequest, manifest: _Manifest, cluster: ClusterSnapshot, namespace: str, now: datetime
) -> Submission:
    if request.pod:
        asked = question_in_cluster(pod_in_cluster(cluster, request.pod, namespace), Overrides(), decode_object)
        pods = [(question.pod, "") for question in asked.questions]
        return submit(asked.cluster, now=now, decode=decode_object, pods=pods)
    if sum(template.replicas for template in manifest.templates) > MAX_PODS:
        raise InputError(f"asks for more than {MAX_PODS} pods", source=", ".join(request.files))
    # The cluster with these queues, in the place of those of their names.
    names = {queue.metadata.name for queue in manifest.queues}
    kept = [queue for queue in cluster.queues if queue.metadata.name not in names]
    cluster = msgspec.structs.replace(cluster, queues=[*kept, *manifest.queues])
    replicas = [copy for template in manifest.templates for copy in _replicas(template)]
    asked = questions_of(cluster, replicas, Overrides(), decode_object, api_server_of(cluster))
    pods = [(question.pod, question.origin) for question in asked.questions]
    said = [assumption for question in asked.questions for assumption in question.assumptions]
    submission = submit(
        asked.cluster, now=now, decode=decode_object, jobs=manifest.jobs, groups=manifest.groups, pods=pods
    )
    return msgspec.structs.replace(submission, assumptions=[*submission.assumptions, *said])


def _replicas(template: PodTemplate) -> list[PodTemplate]:
    """The template once for each pod that its object asks for, numbered."""
    if template.replicas <= 1:
        return [template]
    metadata = template.document["metadata"]
    # A StatefulSet's first pod is numbered already.
    name = metadata["name"].removesuffix("-0")
    return [
        msgspec.structs.replace(
            template, document={**template.document, "metadata": {**metadata, "name": f"{name}-{index}"}}
        )
        for index in range(template.replicas)
    ]


def _exit_code(answer: GangAnswer) -> int:
    if answer.sample is not None and len(answer.sample.outcomes) > 1:
        return EXIT_UNCERTAIN
    return _EXIT_CODES[answer.outcome]
