"""The single path from a request to its answer, for commands, programs, sweeps and assistants.

``answer`` calls the function that a request names (``answered_by``), importing it on demand. Simple requests are
answered here.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

from kpreempt.errors import UsageError
from kpreempt.library.options import Request
from kpreempt.library.requests import AtRisk, Budgets, Pending, Plugins, Selected
from kpreempt.library.schedulers import Answered, Context
from kpreempt.scheduler_table import KUBE_ALGORITHMS

if TYPE_CHECKING:
    from kpreempt.analysis.pod_selection import PodSelection


def answer(context: Context, request: Request) -> Answered:
    """Answer a request. Raises ``KpreemptError`` if it is invalid or its subject is missing."""
    if any(each.namespace for each in context.loaded.cluster.unread.values()):
        from kpreempt.library.scope import narrowed

        context, request = narrowed(context, request)
    answered: Answered = _function_of(request)(context, request)
    return answered


def _function_of(request: Request) -> Callable[[Context, Request], Answered]:
    """Import the function that answers a request."""
    module, _, function = request.answered_by.partition(":")
    found: Callable[[Context, Request], Answered] = getattr(import_module(f"kpreempt.library.{module}"), function)
    return found


def selection_of(request: Selected) -> PodSelection:
    """Return the selection of pods of a request. Raises ``UsageError``."""
    from kpreempt.analysis.pod_selection import PodSelection, parse_selector

    return PodSelection(request.namespace or "", parse_selector(request.selector or ""))


def pending(context: Context, request: Pending) -> Answered:
    """Predict what happens to each pending pod."""
    from kpreempt.analysis.algorithms import one_by_one
    from kpreempt.analysis.missing_pods import with_missing_pods
    from kpreempt.analysis.pending.pods import explain_pending
    from kpreempt.analysis.pending.states import max_backoff_of
    from kpreempt.library.draws import DRAWS
    from kpreempt.library.time_limits import time_limit

    cluster, selection = context.loaded.cluster, selection_of(request)
    found = explain_pending(
        context.of(cluster),
        is_selected=selection.has,
        namespace=selection.namespace,
        max_backoff=max_backoff_of(context.configured.configuration),
        spread=context.spread or one_by_one,
        has_time=time_limit(request.seconds_of_search) if request.seconds_of_search is not None else None,
        seeks_nodes=True,
        draws=DRAWS,
    )
    if found.items:
        from kpreempt.library.autoscaling import pending_with_reports

        found = pending_with_reports(context, cluster, found)
    # A selector is for the labels of pods.
    return Answered(found if request.selector else with_missing_pods(found, cluster), cluster)


def budgets(context: Context, request: Budgets) -> Answered:
    """Find problems with PodDisruptionBudgets, and the pods that would violate them."""
    from kpreempt.analysis.algorithms import one_by_one
    from kpreempt.analysis.budgets.audit import audit_budgets
    from kpreempt.library.time_limits import time_for_remedies

    cluster = context.loaded.cluster
    found = audit_budgets(
        context.of(cluster),
        selection=selection_of(request),
        documents=context.loaded.documents,
        spread=context.spread or one_by_one,
        has_time=time_for_remedies(),
    )
    return Answered(found, cluster)


def at_risk(context: Context, request: AtRisk) -> Answered:
    """Find the running pods that would be preempted, and by which pods."""
    from kpreempt.analysis.at_risk import pods_at_risk
    from kpreempt.library.draws import DRAWS

    cluster = context.loaded.cluster
    found = pods_at_risk(
        context.of(cluster),
        is_selected=selection_of(request).has,
        limit=request.limit,
        draws=DRAWS,
    )
    return Answered(found, cluster)


def plugins(context: Context, request: Plugins) -> Answered:
    """List the plugins that would run, by extension point, and the extenders. Raises ``UsageError``."""
    from kpreempt.schedulers.kube.plugin_list import list_plugins
    from kpreempt.schedulers.kube.scheduler import KubeScheduler

    configured, cluster = context.configured, context.loaded.cluster
    scheduler = configured.scheduler
    if not isinstance(scheduler, KubeScheduler):
        raise UsageError(
            f"--algorithm {scheduler.algorithm}: plugins can only be listed for {KUBE_ALGORITHMS[0]} and later",
            hint="kpreempt algorithms shows how the others differ",
        )
    found = list_plugins(scheduler, request.installed)
    assumptions = [*configured.assumptions, *found.assumptions]
    return Answered(msgspec.structs.replace(found, assumptions=assumptions), cluster)
