"""The one way from a question to its answer, for commands, programs, sweeps and assistants alike.

``answer`` puts a request to a context. How pods are explained, a change is checked and nodes are drained is in modules
of their own, which are imported when they are asked.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from kpreempt.analysis.algorithms import AUTO
from kpreempt.library.options import Request
from kpreempt.library.requests import AtRisk, Budgets, Check, Compare, Drain, Explain, Pending, Selected
from kpreempt.library.schedulers import Answered, AskedScheduler, Context
from kpreempt.verdict import Assumption

if TYPE_CHECKING:
    from kpreempt.analysis.algorithms import Scheduler
    from kpreempt.analysis.explain.pods import Question
    from kpreempt.analysis.pod_selection import PodSelection
    from kpreempt.model.cluster import ClusterSnapshot
    from kpreempt.model.wanted import Wanted

_ANSWERS: Mapping[type[Request], str] = {
    Explain: "explain:explain",
    Pending: "questions:pending",
    Budgets: "questions:budgets",
    AtRisk: "questions:at_risk",
    Check: "check:check",
    Drain: "drain:drain",
    Compare: "questions:compare",
}
_OF_AUTO = re.compile(rf"^{AUTO}(?=[@:]|$)")


def answer(context: Context, request: Request) -> Answered:
    """The answer to a question. Raises ``KpreemptError`` where it makes no sense, or lacks what it is about."""
    module, _, function = next(_ANSWERS[kind] for kind in type(request).__mro__ if kind in _ANSWERS).partition(":")
    answered: Answered = getattr(import_module(f"kpreempt.library.{module}"), function)(context, request)
    return answered


def selection_of(request: Selected) -> PodSelection:
    """The pods that a question is about. Raises ``UsageError``."""
    from kpreempt.analysis.pod_selection import PodSelection, parse_selector

    return PodSelection(request.namespace or "", parse_selector(request.selector or ""))


def pending(context: Context, request: Pending) -> Answered:
    """What becomes of each pending pod."""
    from kpreempt.analysis.algorithms import one_by_one
    from kpreempt.analysis.pending.pods import explain_pending
    from kpreempt.analysis.pending.states import max_backoff_of

    cluster, selection = context.loaded.cluster, selection_of(request)
    found = explain_pending(
        context.of(cluster),
        is_asked=selection.has,
        namespace=selection.namespace,
        max_backoff=max_backoff_of(context.configured.configuration),
        spread=context.spread or one_by_one,
        has_time=_lasting(request.seconds_of_search) if request.seconds_of_search is not None else None,
        seeks_nodes=True,
    )
    return Answered(found, cluster)


def _lasting(seconds: float) -> Callable[[], bool]:
    """Whether less than this time has passed since it was first asked."""
    ends: list[float] = []

    def has_time() -> bool:
        if not ends:
            ends.append(time.monotonic() + seconds)
        return time.monotonic() < ends[0]

    return has_time


def budgets(context: Context, request: Budgets) -> Answered:
    """What is wrong with PodDisruptionBudgets, and which pods would violate them."""
    from kpreempt.analysis.algorithms import one_by_one
    from kpreempt.analysis.budgets.audit import audit_budgets
    from kpreempt.analysis.check.rollout.autoscalers import minimum_sizes

    cluster = context.loaded.cluster
    found = audit_budgets(
        context.of(cluster),
        selection=selection_of(request),
        minimum_sizes=minimum_sizes(context.loaded.documents),
        spread=context.spread or one_by_one,
    )
    return Answered(found, cluster)


def at_risk(context: Context, request: AtRisk) -> Answered:
    """Which running pods would be evicted, and by which pods."""
    from kpreempt.analysis.at_risk import pods_at_risk

    cluster = context.loaded.cluster
    found = pods_at_risk(
        context.of(cluster),
        is_asked=selection_of(request).has,
        limit=request.limit,
    )
    return Answered(found, cluster)


def compare(context: Context, request: Compare) -> Answered:
    """Where several schedulers put the same pods: one that is named, those of templates, or every pending one."""
    from kpreempt.analysis.compare.differences import compare_pods
    from kpreempt.model.wanted import all_wanted

    loaded = context.loaded
    schedulers, assumed = schedulers_on(request.schedulers, loaded.cluster)
    with context.phases.phase("admission"):
        wanted = all_wanted(each.wanted for each in request.schedulers.values())
        cluster, questions = _compared_pods(context, request, wanted)
    # The schedulers by their labels, in which the version stands for ``auto``, unless another has that label.
    named: dict[str, Scheduler] = {}
    for label, scheduler in schedulers.items():
        shown = _OF_AUTO.sub(scheduler.algorithm, label)
        named[label if shown in schedulers or shown in named else shown] = scheduler
    found = compare_pods(
        cluster,
        questions,
        named,
        now=context.at,
        assumptions=[*assumed, *loaded.assumptions],
        phases=context.phases,
    )
    return Answered(found, cluster)


def schedulers_on(
    asked: Mapping[str, AskedScheduler], cluster: ClusterSnapshot
) -> tuple[dict[str, Scheduler], list[Assumption]]:
    """The schedulers for a cluster, and what is assumed of its version where one of them goes by that."""
    configured = {label: each.on(cluster) for label, each in asked.items()}
    assumed = [said for label, each in configured.items() if asked[label].named == AUTO for said in each.assumptions]
    return {label: each.scheduler for label, each in configured.items()}, list(dict.fromkeys(assumed))


def _compared_pods(context: Context, request: Compare, wanted: Wanted) -> tuple[ClusterSnapshot, list[Question]]:
    from kpreempt.analysis.algorithms import api_server_of, pending_pods
    from kpreempt.analysis.explain.pods import Question
    from kpreempt.analysis.questions import pod_in_cluster, question_in_cluster, questions_of
    from kpreempt.analysis.what_if import Overrides
    from kpreempt.snapshot.decode import object_decoder
    from kpreempt.verdict.unread import require

    cluster, decode = context.loaded.cluster, object_decoder(wanted)
    require(cluster, "Node")
    if request.pod:
        pod = pod_in_cluster(cluster, request.pod, request.namespace or context.namespace)
        found = question_in_cluster(pod, Overrides(), decode)
    elif request.templates:
        found = questions_of(cluster, request.templates, Overrides(), decode, api_server_of(cluster))
    else:
        require(cluster, "Pod")
        pods = [each for each in pending_pods(cluster) if request.namespace in (None, "", each.metadata.namespace)]
        return cluster, [Question(pod=each) for each in pods]
    return found.cluster, list(found.questions)
