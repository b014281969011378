"""Several schedulers compared, and the versions before and after an upgrade."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kpreempt.analysis.algorithms import (
    AUTO,
    algorithm_for,
    api_server_of,
    api_server_rules,
    assume_of_gates,
    pending_pods,
)
from kpreempt.analysis.compare.differences import compare_pods
from kpreempt.analysis.explain.pods import ExplainInput
from kpreempt.analysis.pod_inputs import ExplainInputs, input_in_cluster, inputs_of, named_pod
from kpreempt.analysis.what_if import Overrides
from kpreempt.library.schedulers import Answered, Context, SchedulerFactory
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.extra_fields import ExtraFields, all_extras
from kpreempt.snapshot.decode import object_decoder
from kpreempt.verdict import Assumption
from kpreempt.verdict.unread import require

if TYPE_CHECKING:
    from kpreempt.analysis.algorithms import Scheduler
    from kpreempt.library.requests import Compare, Upgrade
    from kpreempt.schedulers.interface import Settings

_OF_AUTO = re.compile(rf"^{AUTO}(?=[@:]|$)")


def compare(context: Context, request: Compare) -> Answered:
    """Compare where schedulers place the same pods: a named one, those of templates, or every pending one."""
    loaded = context.loaded
    schedulers, assumed = schedulers_on(request.schedulers, loaded.cluster)
    if request.admitted is not None:
        cluster, inputs = loaded.cluster, [ExplainInput(pod=request.admitted)]
    else:
        with context.phases.phase("admission"):
            extra_fields = all_extras(each.extra_fields for each in request.schedulers.values())
            cluster, inputs = _compared_pods(context, request, extra_fields)
    # The schedulers by label; the version replaces ``auto``, unless another scheduler has that label.
    named: dict[str, Scheduler] = {}
    for label, scheduler in schedulers.items():
        shown = _OF_AUTO.sub(scheduler.algorithm, label)
        named[label if shown in schedulers or shown in named else shown] = scheduler
    found = compare_pods(
        cluster,
        inputs,
        named,
        now=context.at,
        is_queued=request.is_queued,
        prepare=request.prepare,
        assumptions=[*assumed, *loaded.assumptions],
        phases=context.phases,
    )
    return Answered(found, cluster)


def schedulers_on(
    factories: Mapping[str, SchedulerFactory], cluster: ClusterSnapshot
) -> tuple[dict[str, Scheduler], list[Assumption]]:
    """Build the schedulers for a cluster, with the assumptions about its version if one of them depends on it."""
    configured = {label: each.on(cluster) for label, each in factories.items()}
    assumptions = [
        assumption
        for label, each in configured.items()
        if factories[label].algorithm == AUTO
        for assumption in each.assumptions
    ]
    return {label: each.scheduler for label, each in configured.items()}, list(dict.fromkeys(assumptions))


def _compared_pods(
    context: Context, request: Compare, extra_fields: ExtraFields
) -> tuple[ClusterSnapshot, list[ExplainInput]]:
    cluster, decode = context.loaded.cluster, object_decoder(extra_fields)
    require(cluster, "Node")
    if request.pod:
        pod = named_pod(cluster, request.pod, request.namespace, context.namespace)
        found = input_in_cluster(pod, Overrides(), decode)
    elif request.templates:
        found = inputs_of(cluster, request.templates, Overrides(), decode, api_server_of(cluster))
    else:
        require(cluster, "Pod")
        pods = [each for each in pending_pods(cluster) if request.namespace in (None, "", each.metadata.namespace)]
        return cluster, [ExplainInput(pod=each) for each in pods]
    return found.cluster, list(found.inputs)


def upgrade(context: Context, request: Upgrade) -> Answered:
    """Compare what the newer of two versions changes for pods. Raises ``UsageError`` and ``ConfigurationError``."""
    from kpreempt.analysis.compare.upgrade import compare_upgrade

    loaded = context.loaded
    base, assumptions = algorithm_for(request.base, loaded.cluster)
    versions = request.versions_from(base)
    with context.phases.phase("admission"):
        groups, omitted = _pods_of_upgrade(context, request, versions.base.settings)
    gates_off = [
        each for version in (versions.base, versions.target) for each in assume_of_gates(version, loaded.cluster)
    ]
    assumptions = [*assumptions, *gates_off, *loaded.assumptions, *omitted]
    return Answered(
        compare_upgrade(groups, versions, now=context.at, assumptions=assumptions, phases=context.phases),
        loaded.cluster,
    )


def _pods_of_upgrade(
    context: Context, request: Upgrade, settings: Settings
) -> tuple[list[ExplainInputs], list[Assumption]]:
    """Return the named pod, or every pending pod and those of manifests and workloads."""
    from kpreempt.analysis.compare.upgrade import next_pods

    loaded = context.loaded
    cluster, decode = loaded.cluster, object_decoder(loaded.extra_fields)
    require(cluster, "Node")
    if request.pod:
        pod = named_pod(cluster, request.pod, request.namespace, context.namespace)
        named = input_in_cluster(pod, Overrides(), decode)
        return [ExplainInputs(named.cluster, named.inputs)], []

    def is_selected(namespace: str) -> bool:
        return request.namespace in (None, "", namespace)

    pending = [ExplainInput(pod=pod) for pod in pending_pods(cluster) if is_selected(pod.metadata.namespace)]
    groups = [ExplainInputs(cluster, pending)]
    omitted: list[Assumption] = []
    if request.templates:
        found = inputs_of(cluster, request.templates, Overrides(), decode, api_server_rules(settings))
        groups.append(ExplainInputs(found.cluster, found.inputs))
    if request.workloads:
        more, omitted = next_pods(
            cluster, loaded.documents, decode, now=context.at, settings=settings, is_selected=is_selected
        )
        groups += more
    return groups, omitted
