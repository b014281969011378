"""Kueue's answers: what happens to Workloads that wait for quota, which are at risk, and what preempted them.

The context's cluster has Kueue's objects, and each request has the settings of Kueue's manager.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from kpreempt.analysis.document_reader import describe
from kpreempt.analysis.kueue import explaining, readings
from kpreempt.analysis.kueue.explaining import SelectedWorkload, with_workloads
from kpreempt.analysis.kueue.manifest import workload_documents
from kpreempt.analysis.kueue.objects import (
    assumed_of,
    assumed_of_chance,
    assumed_of_made,
    document_of,
    kueue_objects,
    with_objects,
)
from kpreempt.analysis.kueue.requester import Requester, requester_in_cluster
from kpreempt.analysis.targets import in_namespace, only_namespace
from kpreempt.errors import InputError, NotFoundError, nearest
from kpreempt.library.schedulers import Answered, Context
from kpreempt.library.time_limits import SECONDS_OF_SEARCH, time_limit
from kpreempt.model.kueue import QUEUE_LABEL, Workload
from kpreempt.schedulers.kueue import KueueObjects, run_cycles
from kpreempt.snapshot.decode import decode_document
from kpreempt.verdict import Assumption
from kpreempt.verdict.kueue import KueueAnswers

if TYPE_CHECKING:
    from kpreempt.library.requests import (
        CompareWorkloads,
        ExplainWorkloads,
        KueueScenario,
        NamedWorkloads,
        PendingWorkloads,
        WhoEvictedWorkload,
        WorkloadsAtRisk,
    )

_KINDS = ("workload", "workloads", "wl")


class CyclesVerdict(msgspec.Struct, frozen=True, rename="camel"):
    """What Kueue's scheduler does on the cluster of a scenario, with assumptions."""

    cycles: list[Any]
    outcomes: int
    other_outcomes: list[Any]
    assumptions: list[Assumption]


def explain_workloads(context: Context, request: ExplainWorkloads) -> Answered:
    """Explain each Workload of a request."""
    objects = _objects(context)
    workloads = _workloads(context, request, objects)
    configured = context.configured
    with context.phases.phase("session"):
        answers = explaining.explain_workloads(
            workloads,
            objects,
            request.settings.config,
            configured.scheduler,
            now=context.at,
            decode=decode_document,
            has_time=time_limit(SECONDS_OF_SEARCH),
        )
    more = [*context.loaded.assumptions, *request.settings.assumptions, *configured.assumptions]
    answers = [msgspec.structs.replace(each, assumptions=[*each.assumptions, *more]) for each in answers]
    return Answered(answers[0] if len(answers) == 1 else KueueAnswers(items=answers), objects.cluster)


def pending_workloads(context: Context, request: PendingWorkloads) -> Answered:
    """Predict what happens to each Workload that waits for quota, in the order in which Kueue decides."""
    objects = _objects(context)
    with context.phases.phase("session"):
        found = readings.pending_workloads(
            objects,
            request.settings.config,
            now=context.at,
            is_selected=request.is_selected,
            assumptions=[*context.loaded.assumptions, *request.settings.assumptions],
        )
    return Answered(found, objects.cluster)


def workloads_at_risk(context: Context, request: WorkloadsAtRisk) -> Answered:
    """Find Workloads with quota that would be preempted, and by which others."""
    objects = _objects(context)
    with context.phases.phase("session"):
        found = readings.workloads_at_risk(
            objects,
            request.settings.config,
            now=context.at,
            is_selected=request.is_selected,
            limit=request.limit,
            assumptions=[*context.loaded.assumptions, *request.settings.assumptions],
        )
    return Answered(found, objects.cluster)


def who_evicted_workload(context: Context, request: WhoEvictedWorkload) -> Answered:
    """Find for which Workload Kueue preempted another one."""
    objects = _objects(context)
    workload = _find_workload(request, context, objects)
    return Answered(readings.who_evicted_workload(workload, objects), objects.cluster)


def compare_workloads(context: Context, request: CompareWorkloads) -> Answered:
    """Compare what happens to Workloads under several settings; by default, to all that wait."""
    objects, made = _objects(context), list[SelectedWorkload]()
    if request.workload or request.manifests:
        made = _workloads(context, request, objects)
        objects = with_workloads([each.workload for each in made], objects, context.at)
    made_assumptions = (assumption for each in made for assumption in assumed_of_made(each.workload, each.origin))
    assumptions = [*context.loaded.assumptions, *made_assumptions]
    assumptions += [assumption for each in request.compared.values() for assumption in each.assumptions]
    keys = {each.workload.key for each in made}
    with context.phases.phase("session"):
        found = explaining.compare_configurations(
            {name: (with_objects(objects, each.queues), each.config) for name, each in request.compared.items()},
            now=context.at,
            is_selected=(lambda workload: workload.key in keys) if keys else request.is_selected,
            assumptions=assumptions,
        )
    return Answered(found, objects.cluster)


def scenario(context: Context, request: KueueScenario) -> Answered:
    """Run the cycles of Kueue's scheduler."""
    with context.phases.phase("session"):
        objects = kueue_objects(context.loaded.cluster, decode_document, source=request.source)
        found = run_cycles(objects, request.config, now=request.starts, cycles=request.cycles, only=request.only)
    assumptions = [
        *context.loaded.assumptions,
        *assumed_of(objects, request.config),
        *assumed_of_chance(found),
    ]
    return Answered(
        CyclesVerdict(found.cycles, 1 + len(found.alternatives), found.alternatives, assumptions), objects.cluster
    )


def _objects(context: Context) -> KueueObjects:
    with context.phases.phase("decode"):
        return kueue_objects(context.loaded.cluster, decode_document)


def _workloads(context: Context, request: NamedWorkloads, objects: KueueObjects) -> list[SelectedWorkload]:
    """Return the Workloads of a request, each with the object that Kueue creates it for. Raises ``InputError``."""
    if request.workload:
        workload = _find_workload(request, context, objects)
        document = document_of(objects, f"Workload {workload.key}")
        requester = requester_in_cluster(workload, document, partial(_create, context=context, objects=objects))
        return [SelectedWorkload(workload, "", requester)]
    found = []
    for manifest in request.manifests:
        plain = [(each.document, each.source) for each in manifest]
        for made in workload_documents(plain, context.namespace, objects.cluster):
            workload = decode_document("Workload", Workload, made.document, source=made.source)
            owner = describe(made.owner) if made.owner is not None else f"Workload {workload.key}"
            create = partial(_create, context=context, objects=objects)
            requester = Requester(object=owner, document=made.owner, create=create)
            found.append(SelectedWorkload(workload, f"{made.kind} in {made.source}", requester))
    if not found:
        sources: Iterable[str] = dict.fromkeys(each.source for manifest in request.manifests for each in manifest)
        raise InputError(f"contains no Workload and no object with the label {QUEUE_LABEL}", source=", ".join(sources))
    return found


def _create(document: dict[str, Any], *, context: Context, objects: KueueObjects) -> Workload:
    """Create the Workload for an object. Raises ``InputError``."""
    [made] = workload_documents([(document, "")], context.namespace, objects.cluster)
    found: Workload = decode_document("Workload", Workload, made.document)
    return found


def _find_workload(request: NamedWorkloads | WhoEvictedWorkload, context: Context, objects: KueueObjects) -> Workload:
    """Find the Workload ``[workload/]NAME``. Raises ``NotFoundError``."""
    kind, _, name = request.workload.rpartition("/")
    found = {each.metadata.namespace: each for each in objects.workloads if each.metadata.name == name}
    namespace = request.namespace or only_namespace(found, f'Workload "{name}"', context.namespace)
    if kind.lower() in ("", *_KINDS) and namespace in found:
        return found[namespace]
    names = {each.metadata.name for each in objects.workloads}
    raise NotFoundError(
        f'Workload "{name}"{in_namespace(namespace)} not found', hint=nearest(name, names) if names else ""
    )
