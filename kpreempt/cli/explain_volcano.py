"""Answering ``kpreempt explain --algorithm volcano-1.8``: what becomes of the jobs that are submitted."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.explain.overrides import changed
from kpreempt.analysis.questions import question_in_cluster, questions_of
from kpreempt.analysis.subject import (
    PodTemplate,
    in_namespace,
    pod_in_cluster,
    pods_of,
    select,
    subjects_of,
)
from kpreempt.analysis.version_rules import api_server_of
from kpreempt.analysis.volcano.jobs import MAX_PODS, VolcanoJob, read_volcano_job
from kpreempt.analysis.volcano.sessions import Submission, explain_submission, submit
from kpreempt.analysis.what_if import Overrides
from kpreempt.analysis.workload_pods import is_volcano_job
from kpreempt.cli.answering import Run, is_unfounded
from kpreempt.cli.clusters import usual_namespace
from kpreempt.cli.manifests import accepted_objects, tell_ignored
from kpreempt.cli.volcano_configuration import volcano_for
from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.volcano import SCHEDULING_VERSION, PodGroup, Queue
from kpreempt.snapshot import decode_object
from kpreempt.verdict.volcano import GangAnswer, GangAnswers, GangOutcome

if TYPE_CHECKING:
    from kpreempt.cli.explain import ExplainRequest

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
_UNCERTAIN = 13
_JOB_KINDS = ("job", "jobs", "vcjob", "vj")


def run_submission(request: ExplainRequest, amounts: PodTemplate | None) -> int:
    """Answer what becomes of the jobs of a request, and return the exit code.

    ``amounts`` is the pod that is made from options, if there is one.
    """
    run = Run(request)
    live = run.connect()
    volcano = volcano_for(request, run, live)
    namespace = request.namespace or usual_namespace(live)
    manifest = _read_manifest(request, amounts, namespace)
    loaded = run.load(live, additions=request.additions, with_events=False)
    cluster = changed(
        loaded.cluster, namespace, removed=request.without, cordons=request.cordons, uncordons=request.uncordons
    )
    with run.stopwatch.phase("admission"):
        submission = _submission(request, manifest, cluster, namespace, volcano.now)
    with run.stopwatch.phase("session"):
        answers = explain_submission(submission, volcano, decode_object, loaded.assumptions)
    run.write_once(answers[0] if len(answers) == 1 else GangAnswers(items=answers), volcano.now)
    assumptions = {assumption for each in answers for assumption in each.assumptions}
    outcome = max(map(_exit_code, answers), default=0) if request.exit_code else 0
    if request.exit_code and is_unfounded(assumptions, "--exit-code"):
        outcome = _UNCERTAIN
    return run.exit_code(assumptions, outcome)


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
            document = _moved(each.document, namespace, is_forced=request.namespace is not None)
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


def _moved(document: Document, namespace: str, *, is_forced: bool) -> Document:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or (metadata.get("namespace") and not is_forced):
        return document
    return {**document, "metadata": {**metadata, "namespace": namespace}}


def _submission(
    request: ExplainRequest, manifest: _Manifest, cluster: ClusterSnapshot, namespace: str, now: datetime
) -> Submission:
    if request.pod:
        asked = question_in_cluster(pod_in_cluster(cluster, request.pod, namespace), Overrides(), decode_object)
        pods = [(question.pod, "") for question in asked.questions]
        return submit(asked.cluster, now=now, decode=decode_object, pods=pods)
    if sum(template.replicas for template in manifest.templates) > MAX_PODS:
        raise InputError(f"asks for more than {MAX_PODS} pods", source=", ".join(request.files))
    cluster = _with_queues(cluster, manifest.queues)
    replicas = [copy for template in manifest.templates for copy in _replicas(template)]
    asked = questions_of(cluster, replicas, Overrides(), decode_object, api_server_of(cluster))
    pods = [(question.pod, question.origin) for question in asked.questions]
    said = [assumption for question in asked.questions for assumption in question.assumptions]
    submission = submit(
        asked.cluster, now=now, decode=decode_object, jobs=manifest.jobs, groups=manifest.groups, pods=pods
    )
    return msgspec.structs.replace(submission, assumptions=[*submission.assumptions, *said])


def _with_queues(cluster: ClusterSnapshot, queues: list[Queue]) -> ClusterSnapshot:
    """The cluster with these queues, in the place of those of their names."""
    names = {queue.metadata.name for queue in queues}
    kept = [queue for queue in cluster.queues if queue.metadata.name not in names]
    return msgspec.structs.replace(cluster, queues=[*kept, *queues])


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
        return _UNCERTAIN
    return _EXIT_CODES[answer.outcome]
