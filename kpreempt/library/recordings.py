"""Requests about the past: what evicted a pod, an object's recorded history, and whether it was predicted."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from kpreempt.errors import ConfigurationError, InputError, NotFoundError, UsageError
from kpreempt.files import name_of
from kpreempt.library.schedulers import Answered, Context, SchedulerFactory
from kpreempt.model.meta import DEFAULT_NAMESPACE, ObjectName
from kpreempt.verdict.who_evicted import EvictionsOfPod

if TYPE_CHECKING:
    from kpreempt.analysis.verification import PreparedScheduler
    from kpreempt.library.requests import History, Verify, WhoEvicted
    from kpreempt.model.cluster import ClusterSnapshot

_KINDS = {
    "Pod": ("pod", "pods", "po"),
    "Node": ("node", "nodes", "no"),
    "PodDisruptionBudget": ("poddisruptionbudget", "poddisruptionbudgets", "pdb"),
}


def who_evicted(context: Context, request: WhoEvicted) -> Answered:
    """Return what ended a pod, or pods, and why a scheduler preempted it if the earlier cluster is known.

    Raises ``UsageError`` for two namespaces, and ``NotFoundError`` for a pod about which nothing is known.
    """
    from kpreempt.analysis.evictions import queries
    from kpreempt.analysis.pod_inputs import pod_name
    from kpreempt.analysis.targets import check_kind
    from kpreempt.library.explain import PodName, located, parse_pod_name

    cluster, audit, documents = context.loaded.cluster, request.audit, context.loaded.documents
    target = parse_pod_name(request, "")
    if target is None:
        return Answered(queries.all_evictions(cluster, request.namespace or "", audit, documents), cluster)
    if not isinstance(target, PodName):
        target = target._replace(namespace=located(context, request).namespace or "")
        return Answered(queries.evictions_of_workload(cluster, target, audit, documents), cluster)
    name = pod_name(target.name)
    if not target.namespace:
        found = queries.evictions_everywhere(cluster, name, audit, documents)
    elif request.namespace in (None, target.namespace):
        try:
            found = queries.evictions_of_pod(cluster, target.namespace, name, audit, documents)
        except NotFoundError:
            check_kind(cluster, target.namespace, name)
            raise
    else:
        check_kind(cluster, target.namespace, name, request.namespace)
        raise UsageError(f"two namespaces given: {target.namespace} and -n {request.namespace}")
    if isinstance(found, EvictionsOfPod):
        found = _reconstructed(context, request, found)
    return Answered(found, cluster)


def _reconstructed(context: Context, request: WhoEvicted, found: EvictionsOfPod) -> EvictionsOfPod:
    """Return the answer with each preemption explained by the earlier cluster, if that is known."""
    preemptions = [each.preemption for each in found.items if each.preemption is not None]
    preemptors = [each.preemptor.pod for each in preemptions if each.preemptor is not None and each.preemptor.pod]
    if not request.read_before or not (earlier := request.read_before(preemptors)):
        return found
    from kpreempt.analysis.preempted_by import reconstruct
    from kpreempt.model.cluster import cannot_simulate
    from kpreempt.verdict.unread import unread_of

    if cannot_simulate(earlier.cluster):
        unread = unread_of(earlier.cluster, ("Node", "Pod"))
        return msgspec.structs.replace(found, assumptions=list(dict.fromkeys([*found.assumptions, *unread])))
    # The scheduler had that cluster's version.
    factory = context.scheduler
    configured = factory.on(earlier.cluster)
    return reconstruct(
        found,
        context.loaded.cluster,
        earlier.cluster,
        configured.scheduler,
        now=context.now,
        version=configured.assumptions,
        # Data that plugins miss in a dump is part of the answer.
        assumptions=earlier.assumptions if factory.extra_fields else (),
    )


def subject_of(request: History) -> tuple[str, str, str]:
    """Return the kind, namespace and name of the requested object. Raises ``UsageError``."""
    kind_word, slash, name = request.subject.rpartition("/")
    kind = next((kind for kind, words in _KINDS.items() if kind_word.partition(".")[0].lower() in words), "")
    if slash and not kind:
        raise UsageError(
            f'"{request.subject[:100]}" is not a pod, node or budget', hint="pod/NAME, node/NAME, pdb/NAME"
        )
    kind = kind or "Pod"
    return kind, request.namespace or "", name


def history(context: Context, request: History) -> Answered:
    """Return an object's recorded history, attempt by attempt."""
    from kpreempt.snapshot.recording.journal import history_of

    kind, namespace, name = subject_of(request)
    if kind == "Node":
        namespace = ""
    elif not namespace:
        from kpreempt.analysis.targets import only_namespace
        from kpreempt.snapshot.recording.as_of import namespaces_in

        found = namespaces_in(request.recording, kind, name)
        namespace = only_namespace(found, f'{kind} "{name}"', DEFAULT_NAMESPACE)
    return Answered(history_of(request.recording, ObjectName(kind, namespace, name)), context.loaded.cluster)


def verify(context: Context, request: Verify) -> Answered:
    """Compare each decision in a recording with its prediction.

    Raises ``InputError`` if there is none, or if it has no nodes or not all pods.
    """
    from kpreempt.admission import apply_object_defaults
    from kpreempt.analysis.verification import Judge, Tally
    from kpreempt.snapshot.recording.replay import Replay
    from kpreempt.snapshot.recording.runs import runs_of
    from kpreempt.verdict.unread import require

    judge = Judge(partial(_scheduler_on, context.scheduler), is_configured=request.is_configured)
    tally, times, done, total = Tally(), list[datetime](), 0, 0
    for run in runs_of(request.recording):
        require(run.segments[0].header_cluster()[0], "Node", "prediction")
        times += run.begins, run.ends
        total += len(run.traces)
        for situation in Replay(run, request.input_limits, apply_object_defaults).situations():
            decision = situation.trace.decision
            tally.count(decision, request.file_difference(judge.judge(decision, situation)))
            done += 1
            request.report_progress(done, total)
    if not times:
        raise InputError(
            "not a recording", source=name_of(request.recording), hint="kpreempt record --to DIR makes one"
        )
    return Answered(tally.verification(times[0], times[-1]), context.loaded.cluster)


def _scheduler_on(
    factory: SchedulerFactory, cluster: ClusterSnapshot, algorithm: str | None
) -> PreparedScheduler | None:
    """Return the scheduler for a cluster, or for another version; ``None`` if that rejects the options."""
    from kpreempt.analysis.verification import PreparedScheduler

    if algorithm is None:
        configured = factory.on(cluster)
        return PreparedScheduler(configured.scheduler, configured.assumptions)
    try:
        return PreparedScheduler(factory.of(algorithm), [])
    except (UsageError, ConfigurationError):
        return None
