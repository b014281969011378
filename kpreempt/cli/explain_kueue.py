"""Answering ``kpreempt explain --algorithm kueue-0.19``: what becomes of the Workloads that are queued."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.explain.overrides import changed
from kpreempt.analysis.kueue.explaining import explain_workloads
from kpreempt.analysis.kueue.manifest import workload_documents
from kpreempt.cli.answering import Run, is_unfounded
from kpreempt.cli.kueue_ground import KueueGround, read_ground
from kpreempt.cli.manifests import accepted_objects
from kpreempt.errors import InputError, UsageError
from kpreempt.library.schedulers import AskedScheduler
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import QUEUE_LABEL, Workload
from kpreempt.snapshot import decode_document
from kpreempt.verdict.kueue import KueueAnswer, KueueAnswers

if TYPE_CHECKING:
    from kpreempt.cli.explain import ExplainRequest
    from kpreempt.snapshot.archives import Intake

_KINDS = ("workload", "workloads", "wl")
_UNSCHEDULABLE = 12
_PREEMPTS = 10
_UNCERTAIN = 13


def run_queueing(request: ExplainRequest) -> int:
    """Answer what becomes of the Workloads of a request, and return the exit code."""
    run = Run(request)
    asked = AskedScheduler(None, scheduler_for)

    def change(cluster: ClusterSnapshot, namespace: str) -> ClusterSnapshot:
        changes = {"removed": request.without, "cordons": request.cordons, "uncordons": request.uncordons}
        return changed(cluster, namespace, **changes)

    ground = read_ground(run, wanted=asked.wanted, additions=request.additions, change=change)
    objects, config, now = ground.objects, ground.config, ground.now
    named = f"{request.pod}/{request.name}" if request.name else request.pod or ""
    workloads = workloads_in(request.files, named, request.intake, ground)
    configured = asked.on(objects.cluster)
    with run.stopwatch.phase("session"):
        answers = explain_workloads(workloads, objects, config, configured.scheduler, now=now)
    more = [*ground.assumptions, *configured.assumptions]
    answers = [msgspec.structs.replace(each, assumptions=[*each.assumptions, *more]) for each in answers]
    run.write_once(answers[0] if len(answers) == 1 else KueueAnswers(items=answers), now)
    assumptions = {assumption for each in answers for assumption in each.assumptions}
    outcome = max(map(_exit_code, answers), default=0) if request.exit_code else 0
    if request.exit_code and is_unfounded(assumptions, "--exit-code"):
        outcome = _UNCERTAIN
    return run.exit_code(assumptions, outcome)


def workloads_in(files: Sequence[str], named: str, intake: Intake, ground: KueueGround) -> list[tuple[Workload, str]]:
    """The Workload of that name, or those of manifests, each with what it was made from.

    Raises ``InputError`` and ``UsageError``.
    """
    if named:
        return [(workload_named(named, ground), "")]
    found = []
    for path in files:
        objects = [(each.document, each.source) for each in accepted_objects(path, intake)]
        for document, kind, source in workload_documents(objects, ground.namespace, ground.objects.cluster):
            workload = decode_document("Workload", Workload, document, source=source)
            found.append((workload, f"{kind} in {source}"))
    if not found:
        source = ", ".join(files)
        if not source:
            raise UsageError(
                "a manifest (-f) or the name of a Workload is missing", hint="-f job.yaml, or workload/NAME"
            )
        raise InputError(f"no Workload, and nothing with the label {QUEUE_LABEL}", source=source)
    return found


def workload_named(named: str, ground: KueueGround) -> Workload:
    """The Workload ``[workload/]NAME``. Raises ``InputError``."""
    kind, _, name = named.rpartition("/")
    if kind.lower() in ("", *_KINDS):
        for each in ground.objects.workloads:
            if each.metadata.name == name and each.metadata.namespace == ground.namespace:
                return each
    raise InputError(f"there is no Workload {name} in namespace {ground.namespace}", source="the cluster")


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
