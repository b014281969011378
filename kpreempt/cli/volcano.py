"""Volcano's answers: a full session of its scheduler, and what happens to jobs that are submitted to it.

Its configuration is a file, a ConfigMap, or the default of 1.8.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.pod_inputs import in_namespace, select, subjects_of
from kpreempt.analysis.volcano.jobs import VolcanoJob, read_volcano_job
from kpreempt.analysis.volcano.sessions import Volcano, VolcanoManifest, VolcanoOfPods
from kpreempt.analysis.workload_pods import PodTemplate, is_volcano_job, pods_of
from kpreempt.cli.clusters import default_namespace
from kpreempt.cli.manifests import accepted_objects, check_pod, pod_of_amounts, warn_of_ignored
from kpreempt.cli.output import COMPLETE_FORMATS
from kpreempt.cli.requests import VolcanoRequest
from kpreempt.cli.runner import CommandRun
from kpreempt.cli.scenarios import Scenario, situation_of
from kpreempt.cli.scheduler_configs import read_own_config
from kpreempt.cli.terminal import EXIT_UNCERTAIN
from kpreempt.errors import ConfigurationError, InputError, UsageError
from kpreempt.library.handlers import answer
from kpreempt.library.reading import LoadedCluster
from kpreempt.library.requests import ExplainJobs, VolcanoScenario, VolcanoSession
from kpreempt.library.schedulers import Context, default_scheduler
from kpreempt.model.meta import slashed
from kpreempt.model.volcano import SCHEDULING_VERSION, PodGroup, Queue
from kpreempt.phases import Phases
from kpreempt.schedulers.volcano import VolcanoConfiguration, configuration_of
from kpreempt.snapshot.decode import decode_object
from kpreempt.snapshot.documents import parse_document
from kpreempt.verdict.volcano import GangAnswer, GangAnswers, GangOutcome, SessionVerdict

if TYPE_CHECKING:
    from kpreempt.cli.requests import ExplainRequest
    from kpreempt.snapshot.live.connection import Connection


def volcano(request: VolcanoRequest) -> int:
    """Answer the request and return the exit code."""
    run = CommandRun(request)
    live = run.connect()
    scheduler = volcano_for(request, run, live)
    context = run.context(run.load(live), default_scheduler(), scheduler.now, live)
    found = answer(context, VolcanoSession(volcano=scheduler)).record
    run.write_once(found, scheduler.now)
    return run.exit_code(set(found.session.assumptions))


_CONFIG_KEY = "volcano-scheduler.conf"
_DEFAULT_NAMESPACE = "volcano-system"


def scheduler_of_pods(document: Mapping[str, Any] | None, source: str) -> Scheduler:
    """Build a Volcano scheduler for requests about single pods. Raises ``InputError`` and ``ConfigurationError``."""
    return VolcanoOfPods(volcano_configuration_in(document, source), decode_object)


def read_scheduler_of_pods(path: str | None, live: Connection | None) -> Scheduler:
    """Build the same scheduler with the configuration from a file or from the live cluster."""
    return VolcanoOfPods(read_volcano_configuration(path, None, live), decode_object)


def volcano_for(request: ExplainRequest | VolcanoRequest, run: CommandRun, live: Connection | None) -> Volcano:
    """Build Volcano with as many random sessions as requested; raises like ``read_volcano_configuration``."""
    if request.runs < 0:
        raise UsageError("--runs must be 0 or more")
    now = run.now()
    configuration = read_volcano_configuration(request.scheduler_config, request.actions, live)
    with_scores = any(output.format in COMPLETE_FORMATS for output in run.outputs)
    return Volcano(configuration, now, request.runs, request.seed, random.Random, with_scores)


def read_volcano_configuration(
    path: str | None, actions: str | None, live: Connection | None = None
) -> VolcanoConfiguration:
    """Read the configuration from a file or from a ConfigMap of the ``live`` cluster (``configmap/[NAMESPACE/]NAME``).

    Without ``path``, returns the default. ``actions`` replaces the configured ones. Raises ``UsageError``,
    ``ClusterError``, ``InputError`` and ``ConfigurationError`` with the location of the mistake.
    """
    if path is None:
        return volcano_configuration_in(None, "", actions)
    return volcano_configuration_in(read_own_config(path, live, _DEFAULT_NAMESPACE), path, actions)


def volcano_configuration_in(
    document: Mapping[str, Any] | None, source: str, actions: str | None = None
) -> VolcanoConfiguration:
    """Read the configuration from a document or from a ConfigMap; raises like ``read_volcano_configuration``."""
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
    """Run a session on the cluster of a ``batch`` line, including its pod if there is one."""
    configuration = configuration_of(parse_document(scenario.conf, "conf") if scenario.conf else None)
    with phases.phase("decode"):
        situation = situation_of(scenario, source, base)
    loaded = LoadedCluster(situation.cluster, situation.assumptions)
    context = Context(loaded, default_scheduler(), now, phases=phases)
    found: SessionVerdict = answer(context, VolcanoScenario(configuration=configuration, admitted=situation.pod)).record
    return found


_EXIT_CODES = {
    GangOutcome.BOUND: 0,
    GangOutcome.PIPELINED: 10,
    GangOutcome.REJECTED: 12,
    GangOutcome.NOT_ENQUEUED: 12,
    GangOutcome.INVALID: 12,
    GangOutcome.IGNORED: 12,
    GangOutcome.NOT_PLACED: 12,
    GangOutcome.PANIC: 12,
}
_JOB_KINDS = ("job", "jobs", "vcjob", "vj")


def explain_jobs(request: ExplainRequest) -> int:
    """Answer what happens to the request's jobs and return the exit code."""
    check_pod(request)
    amounts = None if request.pod or request.files else pod_of_amounts(request)
    run = CommandRun(request, "GangAnswer")
    live = run.connect()
    volcano = volcano_for(request, run, live)
    namespace = request.namespace or default_namespace(live)
    manifest = _read_manifest(request, amounts, namespace)
    context = run.context(run.load(live), default_scheduler(), volcano.now, live)
    pod = slashed(request.pod, request.name)
    query = ExplainJobs(pod=pod, namespace=request.namespace, manifest=manifest, volcano=volcano)
    found = answer(context._replace(namespace=namespace), query).record
    run.write_once(found, volcano.now)
    answers = found.items if isinstance(found, GangAnswers) else [found]
    assumptions = {assumption for each in answers for assumption in each.assumptions}
    return run.exit_code_by_outcome(assumptions, map(_exit_code, answers))


def _read_manifest(request: ExplainRequest, amounts: PodTemplate | None, namespace: str) -> VolcanoManifest:
    """Read the jobs, groups and pods in the manifests; ``namespace`` applies to those without one."""
    if amounts is not None:
        return VolcanoManifest(templates=[in_namespace(amounts, namespace)])
    found = VolcanoManifest([], [], [], [], ", ".join(request.files))
    others: list[tuple[Document, str, int, bytes]] = []
    for path in request.files:
        for each in accepted_objects(path, request.input_limits):
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
                others.append((document, each.source, each.line, each.text))
    if found.jobs or found.groups:
        others = [each for each in others if pods_of(each[0], source=each[1], line=each[2])]
    if others:
        subjects = subjects_of(others, namespace)
        warn_of_ignored(subjects.notes, verbose=request.verbose > 0)
        found.templates.extend(subjects.templates)
    if request.files and not (found.jobs or found.groups or found.templates):
        raise InputError("contains no job, pod group or pod", source=found.source)
    return _selected(found, request.select)


def _selected(manifest: VolcanoManifest, names: list[str]) -> VolcanoManifest:
    if not names:
        return manifest
    jobs: list[VolcanoJob] = []
    templates: list[PodTemplate] = []
    for text in names:
        kind, _, name = text.partition("/")
        found = [job for job in manifest.jobs if job.name == name and kind.lower() in _JOB_KINDS]
        jobs += found
        if not found:
            templates += select(manifest.templates, text)
    return msgspec.structs.replace(manifest, jobs=jobs, templates=templates)


def _exit_code(answer: GangAnswer) -> int:
    if answer.sample is not None and len(answer.sample.outcomes) > 1:
        return EXIT_UNCERTAIN
    return _EXIT_CODES[answer.outcome]
