"""Requests about a cluster of which some kinds could be read in one namespace only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kpreempt.library.options import Request
from kpreempt.library.requests import Budgets, Explain, Selected, WhoEvicted
from kpreempt.model.cluster import SHARED, only_namespace, within

if TYPE_CHECKING:
    from kpreempt.library.schedulers import Context


def narrowed(context: Context, request: Request) -> tuple[Context, Request]:
    """Return the request for the only namespace whose pods could be read, if it is about all namespaces.

    In the context, the kinds that are complete for the request's namespace count as read.
    """
    cluster = context.loaded.cluster
    only = only_namespace(cluster)
    is_named = bool(getattr(request, "pod", None))
    if only and isinstance(request, Selected | WhoEvicted) and not request.namespace and not is_named:
        request = request.having(namespace=only)
    shared = ("Pod",) if isinstance(request, Budgets) else SHARED
    cluster = within(cluster, _namespaces_of(request), shared)
    return context._replace(loaded=msgspec.structs.replace(context.loaded, cluster=cluster)), request


def _namespaces_of(request: Request) -> set[str]:
    """Return the namespaces that the request is about; empty for all of them."""
    if isinstance(request, Explain) and request.templates:
        return {each.namespace for each in request.templates}
    named: str | None = getattr(request, "namespace", None)
    if isinstance(request, Explain | WhoEvicted) and request.pod:
        from kpreempt.library.explain import parse_pod_name

        target = parse_pod_name(request, "")
        named = target.namespace if target is not None else ""
    return {named} if named else set()
