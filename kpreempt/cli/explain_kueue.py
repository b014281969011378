"""Answering ``kpreempt explain --algorithm kueue-0.19``: what becomes of the Workloads that are queued."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.explain.overrides import changed
from kpreempt.analysis.kueue.explaining import explain_workload
from kpreempt.analysis.kueue.manifest import QUEUE_LABEL, workload_document
from kpreempt.analysis.kueue.objects import KUEUE_WANTED, kueue_objects
from kpreempt.cli.answering import Run, is_unfounded
from kpreempt.cli.clusters import usual_namespace
from kpreempt.cli.kueue_configuration import read_kueue_configuration
from kpreempt.cli.manifests import manifest_objects
from kpreempt.errors import InputError, UsageError
from kpreempt.library.schedulers import AskedScheduler
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import Workload
from kpreempt.model.meta import DEFAULT_NAMESPACE
from kpreempt.schedulers.kueue import KueueObjects
from kpreempt.snapshot import decode_document
from kpreempt.verdict.kueue import KueueAnswer, KueueAnswers

if TYPE_CHECKING:
    from kpreempt.cli.explain import ExplainRequest

_KINDS = ("workload", "workloads", "wl")
_UNSCHEDULABLE = 12
_PREEMPTS = 10
_UNCERTAIN = 13


def run_queueing(request: ExplainRequest) -> int:
    """Answer what becomes of the Workloads of a request, and return the exit code."""
    run = Run(request)
    now = run.now()
    live = run.connect()
    config, said = read_kueue_configuration(request.scheduler_config, live)
    asked = AskedScheduler(None, scheduler_for)
    namespace = request.namespace or usual_namespace(live) or DEFAULT_NAMESPACE
    loaded = run.load(live, asked.wanted | KUEUE_WANTED, additions=request.additions, with_events=False)
    cluster = changed(
        loaded.cluster, namespace, removed=request.without, cordons=request.cordons, uncordons=request.uncordons
    )
    now = run.time_of(cluster, now)
    with run.stopwatch.phase("decode"):
        objects = kueue_objects(cluster, decode_document)
    workloads = _asked(request, cluster, objects, namespace)
    configured = asked.on(cluster)
    with run.stopwatch.phase("session"):
        answers = [
            explain_workload(each, objects, config, configured.scheduler, now=now, origin=origin)
            for each, origin in workloads
        ]
    more = [*loaded.assumptions, *configured.assumptions, *said]
    answers = [msgspec.structs.replace(each, assumptions=[*each.assumptions, *more]) for each in answers]
    run.write_once(answers[0] if len(answers) == 1 else KueueAnswers(items=answers), now)
    assumptions = {assumption for each in answers for assumption in each.assumptions}
    outcome = max(map(_exit_code, answers), default=0) if request.exit_code else 0
    if request.exit_code and is_unfounded(assumptions, "--exit-code"):
        outcome = _UNCERTAIN
    return run.exit_code(assumptions, outcome)


def _asked(
    request: ExplainRequest, cluster: ClusterSnapshot, objects: KueueObjects, namespace: str
) -> list[tuple[Workload, str]]:
    if request.pod:
        return [(_named(request, objects, namespace), "")]
    found = []
    for path in request.files:
        for each in manifest_objects(path, request.intake):
            document = workload_document(each.document, namespace, cluster, source=each.source)
            if document is not None:
                workload = decode_document("Workload", Workload, document, source=each.source)
                found.append((workload, f"{each.document.get('kind')} in {each.source}"))
    if not found:
        source = ", ".join(request.files)
        if not source:
            raise UsageError(
                "a manifest (-f) or the name of a Workload is missing", hint="-f job.yaml, or workload/NAME"
            )
        raise InputError(f"no Workload, and nothing with the label {QUEUE_LABEL}", source=source)
    return found


def _named(request: ExplainRequest, objects: KueueObjects, namespace: str) -> Workload:
    kind, _, name = (request.pod or "").rpartition("/")
    if request.name:
        kind, name = request.pod or "", request.name
    if kind.lower() in ("", *_KINDS):
        for each in objects.workloads:
            if each.metadata.name == name and each.metadata.namespace == namespace:
                return each
    raise InputError(f"there is no Workload {name} in namespace {namespace}", source="the cluster")


def _exit_code(answer: KueueAnswer) -> int:
    if not answer.alone.admitted_in:
        return _UNSCHEDULABLE
    if any(each.placed < each.tried for each in answer.landing):
        return _UNSCHEDULABLE
    differs = answer.alone.outcome is not answer.together.outcome
    if differs or answer.alone.other_outcomes or answer.together.other_outcomes:
        return _UNCERTAIN
    if answer.alone.waits_for_checks or any(each.tried < each.pods for each in answer.landing):
        return _UNCERTAIN
    return _PREEMPTS if answer.alone.targets else 0
