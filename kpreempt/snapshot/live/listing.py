"""The path of each kind, and its list page by page, at one version; restarted if the server drops that version.

Every authenticated user may see what an API server serves (groups, versions, and their resources):
``k8s.io/apimachinery`` v0.36.3 ``pkg/apis/meta/v1/types.go`` (``APIGroupList``, ``APIResourceList``).
"""

from __future__ import annotations

from collections.abc import Container
from typing import TypeVar
from urllib.parse import quote

import msgspec

from kpreempt.model.cluster import FORBIDDEN
from kpreempt.model.extra_fields import ExtraFields
from kpreempt.model.kinds import KINDS, Kind
from kpreempt.model.kueue import KUEUE_GROUP
from kpreempt.model.meta import ObjectMeta
from kpreempt.model.node import KARPENTER_GROUP
from kpreempt.snapshot.kinds import COMPARED_KINDS, plural_of
from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.failures import ClusterError
from kpreempt.snapshot.object_store import is_always_kept

# Events describe the past, which few requests are about, and there are many of them.
EVENTS = KINDS["Event"]
CRON_JOBS = COMPARED_KINDS["CronJob"]
# No decision can be predicted without these.
INDISPENSABLE = ("Pod", "Node")
# If the API server does not know these kinds, Volcano or Karpenter is not installed, and there are none.
CUSTOM = ("PodGroup", "Queue", "NodePool", "NodeClaim")
# Kinds that only say what autoscalers do.
_ON_REQUEST = ("NodeClaim", "ConfigMap")

# The versions of a group that recent clusters serve, the best first; everything else has been v1 since 1.24.
_VERSIONS = {
    "resource.k8s.io": ("v1", "v1beta2", "v1beta1", "v1alpha3"),
    "policy": ("v1", "v1beta1"),
    "autoscaling": ("v2", "v1"),
    KARPENTER_GROUP: ("v1", "v1beta1"),
    "admissionregistration.k8s.io": ("v1", "v1beta1", "v1alpha1"),
}
# Older versions that servers may have instead of the one in which a plugin wants a kind.
_OLDER = {KUEUE_GROUP: ("v1beta1",)}
# Like kubectl; a page of pods has a few megabytes.
PAGE_SIZE = 500
_MAX_RESTARTS = 3
_NOT_FOUND = 404
# The statuses that servers return for an exact version that they do not have (any more, or yet), or do not support.
_NOT_AT_THAT_VERSION = (400, 410, 500, 504)


def label_of(kind: Kind) -> str:
    """Return the name of a kind for messages; with its group, if only plugins read it."""
    return f"{kind.name}.{kind.groups[0]}" if _is_of_plugins(kind) and kind.groups[0] else kind.name


def is_custom(kind: Kind) -> bool:
    """Return whether there are simply no objects if the API server does not know the kind."""
    return kind.name in CUSTOM or _is_of_plugins(kind)


def _is_of_plugins(kind: Kind) -> bool:
    return KINDS.get(kind.name) is not kind and COMPARED_KINDS.get(kind.name) is not kind


def kinds_of_plugins(extra_fields: ExtraFields) -> tuple[list[Kind], list[str]]:
    """Return the kinds that only plugins read, as they are listed, and the keys of those that cannot be listed.

    They cannot be listed if no plugin states the version; the core group only has one version.
    """
    kinds, without_location = [], []
    for each in extra_fields.kinds:
        if is_always_kept(each):
            continue
        if (each.kind, (each.group,)) == (CRON_JOBS.name, CRON_JOBS.groups):
            kinds.append(CRON_JOBS)
        elif each.version or not each.group:
            groups = (each.group,)
            kinds.append(Kind(each.kind, each.resource, ObjectMeta, groups, each.is_namespaced, each.version))
        else:
            without_location.append(each.key)
    return kinds, without_location


def api_versions_of(kind: Kind) -> list[str]:
    """Return the ``apiVersion`` values to try for the kind, the best first."""
    group = kind.groups[0]
    versions = (kind.version, *_OLDER.get(group, ())) if kind.version else _VERSIONS.get(group, ("v1",))
    return [f"{group}/{version}" if group else version for version in versions]


def path_of(kind: Kind, api_version: str, namespace: str = "") -> str:
    """Return the path of all objects of the kind, in all namespaces or in one."""
    place = f"namespaces/{quote(namespace, safe='')}/" if namespace else ""
    return f"/{'apis' if '/' in api_version else 'api'}/{api_version}/{place}{plural_of(kind)}"


def kinds_to_read(skip_kinds: Container[str] = (), *, with_autoscalers: bool = False) -> list[Kind]:
    """Return all kinds that affect scheduling, those with the most objects first, so that they don't finish last.

    Kinds in ``skip_kinds``, by name, are left out; those about what autoscalers do are included ``with_autoscalers``.
    """
    separate = ("Pod", EVENTS.name, *(() if with_autoscalers else _ON_REQUEST))
    return [
        KINDS["Pod"],
        *(each for each in KINDS.values() if each.name not in separate and each.name not in skip_kinds),
    ]


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    api_version: str = ""
    metadata: _ListMeta = _ListMeta()
    items: list[msgspec.Raw] | None = None


_LIST = msgspec.json.Decoder(_List)


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Some objects of a list. ``begins`` means that they are the first of the kind, replacing any earlier ones.

    Instead of objects there is a ``rejection`` if the kind may not be listed (403), or is not found (404) although its
    group is served. A kind that the server does not have has no objects and no ``api_version``.
    """

    source: str
    kind: str
    api_version: str
    items: list[msgspec.Raw] = []
    begins: bool = False
    ends: bool = False
    remaining: int = 0
    rejection: ClusterError | None = None


class Listing:
    """The list of one kind while it is read. Only one thread at a time may request a page."""

    def __init__(self, kind: Kind, version: str, *, selector: str = "", namespace: str = "") -> None:
        """Read at the exact ``version``, or at the latest if that is empty or not available.

        With a ``selector`` of fields, only the objects that it selects are read; with a ``namespace``, only its own.
        """
        self.kind = kind
        # An object that has a usual name is in a namespace of the system.
        self.namespace = namespace if kind.is_namespaced and not kind.usual_name else ""
        self.selector = selector or (f"metadata.name={kind.usual_name}" if kind.usual_name else "")
        self.version = ""
        self.exact = self._exact = version
        self._token = ""
        self._begins = True
        self._restarts = 0
        self._api_versions = api_versions_of(kind)

    @property
    def has_begun(self) -> bool:
        """Whether a part of the list has been read."""
        return not self._begins

    def next_page(self, api: Api) -> Page:
        """Return the next objects, or the rejection of a request that is not allowed. Raises ``ClusterError``."""
        while True:
            path = path_of(self.kind, self._api_versions[0], self.namespace)
            try:
                query = {"limit": str(PAGE_SIZE)}
                if self.selector:
                    query["fieldSelector"] = self.selector
                if self._token:
                    query["continue"] = self._token
                elif self._exact:
                    query |= {"resourceVersion": self._exact, "resourceVersionMatch": "Exact"}
                denied = api.connection.denied
                if path in denied:
                    raise denied[path]
                body = api.get(path, query)
            except ClusterError as error:
                if error.status == FORBIDDEN and not self.selector:
                    api.connection.denied[path] = error
                # The objects may be available under another version.
                if self._token and error.status == 410:
                    self._restarts += 1
                    self._token, self._exact, self._begins = "", "", True
                    if self._restarts <= _MAX_RESTARTS:
                        continue
                elif self._exact and self._begins and error.status in _NOT_AT_THAT_VERSION:
                    self._exact = ""
                    continue
                elif self._begins and error.status == 404 and len(self._api_versions) > 1:
                    del self._api_versions[0]
                    continue
                if error.status != FORBIDDEN and (error.status != _NOT_FOUND or self.kind.name in INDISPENSABLE):
                    raise
                rejection = None if self._is_absent(api, error) else error
                return Page(source=error.source, kind=self.kind.name, api_version="", ends=True, rejection=rejection)
            return self._page(body, f"{api.connection.server}{path}")

    def _is_absent(self, api: Api, error: ClusterError) -> bool:
        """Return whether the server does not have the kind, so that there can be no objects.

        Permissions are checked before the path, so a user without them gets 403 even for a missing kind; but every user
        may see what the server serves. A kind that is not found may exist in another version.
        """
        if is_custom(self.kind):
            return error.status == _NOT_FOUND or all(_is_missing(api, f"/apis/{each}") for each in self._api_versions)
        group = self.kind.groups[0]
        if not group:
            return False
        is_group_missing = error.status == _NOT_FOUND and _is_missing(api, f"/apis/{group}")
        return is_group_missing or is_not_served(api, group, self.kind.name)

    def _page(self, body: bytes, source: str) -> Page:
        try:
            found = _LIST.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = None
        if found is None or found.kind != f"{self.kind.name}List":
            raise ClusterError(f"returned something other than a list of {self.kind.name} objects", source=source)
        meta, begins = found.metadata, self._begins
        if meta.continue_ and meta.continue_ == self._token:
            raise ClusterError("the list repeats the same page forever", source=source)
        if begins:
            self.version = meta.resource_version
        self._token, self._begins = meta.continue_, False
        return Page(
            source=source,
            kind=self.kind.name,
            api_version=found.api_version or self._api_versions[0],
            items=found.items or [],
            begins=begins and not self.selector,
            ends=not meta.continue_,
            remaining=max(0, meta.remaining_item_count or 0),
        )


def _is_missing(api: Api, path: str) -> bool:
    try:
        api.get_once(path)
    except ClusterError as error:
        return error.status == _NOT_FOUND
    return False


_T = TypeVar("_T")


class Resource(msgspec.Struct, frozen=True):
    """A resource of a group and version: its name in paths, its kind, and whether it is namespaced."""

    name: str
    kind: str
    namespaced: bool = False


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, frozen=True):
    name: str
    versions: list[_Version]


class _Groups(msgspec.Struct, frozen=True):
    groups: list[_Group]


class _Resources(msgspec.Struct, frozen=True):
    resources: list[Resource]


def is_not_served(api: Api, group: str, kind: str) -> bool:
    """Return whether the server serves the kind in no version, so that there can be no objects of it.

    ``False`` if unknown. Never raises.
    """
    groups = _answer(api, "/apis", _Groups)
    if groups is None:
        return False
    versions = [version.group_version for each in groups.groups if each.name == group for version in each.versions]
    served = [resources_of(api, version) for version in versions]
    return all(each is not None and all(resource.kind != kind for resource in each) for each in served)


def resources_of(api: Api, api_version: str) -> list[Resource] | None:
    """Return the resources of a group and version, without subresources (``pods/log``); ``None`` if unknown."""
    path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    found = _answer(api, path, _Resources)
    return None if found is None else [each for each in found.resources if "/" not in each.name]


def _answer(api: Api, path: str, kind: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(api.get_once(path), type=kind)
    except (ClusterError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
