"""Single objects of a live cluster, of kinds that no snapshot holds: custom resources that a change is about."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from kpreempt.errors import InputError
from kpreempt.model.unread import FORBIDDEN, Unread
from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.discovery import Resource, is_not_served, resources_of
from kpreempt.snapshot.live.failures import ClusterError

_NOT_FOUND = 404
_LONGEST = 320
# All that an API server can serve; no path is made of anything else that a manifest says.
_API_VERSION = re.compile(r"(?:[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/)?[a-z0-9]+")


class Named(Protocol):
    """An object by its names; those of kinds without namespaces may say one."""

    api_version: str
    kind: str
    namespace: str
    name: str


class Objects(msgspec.Struct, frozen=True):
    """The ``documents`` of those that there are.

    Of the kinds that are ``known`` (``Prometheus.monitoring.coreos.com``) all others are not there; ``unread`` are
    those that may not be read, or that the server serves in another version than was asked for.
    """

    documents: list[dict[str, Any]]
    known: list[str]
    unread: dict[str, Unread]


def read_objects(api: Api, wanted: Iterable[Named]) -> Objects:
    """Read the objects one by one. Raises ``ClusterError`` and ``InputError``."""
    documents: list[dict[str, Any]] = []
    known: dict[str, None] = {}
    unread: dict[str, Unread] = {}
    resources: dict[tuple[str, str], Resource | None] = {}
    for each in wanted:
        group = each.api_version.rpartition("/")[0]
        label = ".".join(filter(None, (each.kind, group)))
        place = (each.api_version, each.kind)
        if not _can_be_there(each):
            unread[label] = Unread(_NOT_FOUND)
            continue
        if place not in resources:
            resources[place] = _resource(api, *place)
        resource = resources[place]
        if resource is None:
            if group and is_not_served(api, group, each.kind):
                known[label] = None
            else:
                unread[label] = Unread(_NOT_FOUND)
            continue
        try:
            documents += _document(api, each, resource)
            known[label] = None
        except ClusterError as error:
            if error.status != FORBIDDEN:
                raise
            unread[label] = Unread(FORBIDDEN, ".".join(filter(None, (resource.name, group))))
    return Objects(documents, [each for each in known if each not in unread], unread)


def _can_be_there(wanted: Named) -> bool:
    is_name = not {wanted.name, wanted.namespace} & {".", ".."}
    return is_name and len(wanted.api_version) < _LONGEST and _API_VERSION.fullmatch(wanted.api_version) is not None


def _resource(api: Api, api_version: str, kind: str) -> Resource | None:
    return next((each for each in resources_of(api, api_version) or () if each.kind == kind), None)


def _document(api: Api, wanted: Named, resource: Resource) -> list[dict[str, Any]]:
    """The object, or nothing where it is not there."""
    place = f"namespaces/{quote(wanted.namespace, safe='')}/" if resource.namespaced else ""
    start = "apis" if "/" in wanted.api_version else "api"
    path = f"/{start}/{wanted.api_version}/{place}{resource.name}/{quote(wanted.name, safe='')}"
    try:
        body = api.get(path)
    except ClusterError as error:
        if error.status == _NOT_FOUND:
            return []
        raise
    try:
        document = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        document = {}
    if not isinstance(document.get("metadata"), dict):
        raise InputError("the server's answer is no object", source=f"{api.connection.server}{path}")
    return [{**document, "apiVersion": wanted.api_version, "kind": wanted.kind}]
