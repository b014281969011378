"""The complete live cluster: every kind that schedulers read, all at one version; and single objects.

Resource versions count the changes of the whole store, so a list of any kind can be requested at the version of another
(``resourceVersionMatch=Exact``; upstream ``apiserver/pkg/storage/etcd3/store.go``, v1.36.3). All kinds are read at the
version of the first page of pods, so no pod is lost or duplicated, and nothing changes meanwhile. If a server cannot
provide that version of a kind, or drops it while it is read, the kind's current state is read instead, with an
assumption.

Single objects have kinds that no snapshot has: custom resources in a change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from kpreempt.errors import InputError
from kpreempt.model.cluster import FORBIDDEN, ClusterSnapshot, Unread
from kpreempt.model.event import AUTOSCALER_SELECTORS, COMPONENTS, EVENT_SELECTORS, EVICTION_SELECTORS
from kpreempt.model.kinds import AUTOSCALER_KINDS, KINDS
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.snapshot.batches import Batch, ServerVersion, fixed_line
from kpreempt.snapshot.collect import NOTHING_MORE, Collector, Needs, Packs
from kpreempt.snapshot.kinds import COMPARED_KINDS, RECORDED, resource_of
from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.connection import Connection
from kpreempt.snapshot.live.failures import ClusterError
from kpreempt.snapshot.live.listing import (
    EVENTS,
    Listing,
    Page,
    Resource,
    is_not_served,
    kinds_of_plugins,
    kinds_to_read,
    label_of,
    resources_of,
)
from kpreempt.snapshot.load import without_collection
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.unread import LIST, consequence_without, unreadable

_REQUESTS_AT_ONCE = 6
_NAMES_SHOWN = 3
_SERVER_ERROR = 500

Progress = Callable[[str, float], None]
T = TypeVar("T")


class LiveSnapshot(msgspec.Struct, frozen=True):
    """A live cluster, the invalid objects that were skipped, and what is unknown about it.

    The cluster itself records which kinds could not be read; the assumptions are about kinds that only plugins read.
    ``documents`` are the requested plain objects. ``starts`` has the ``apiVersion`` and resource version at which each
    kind (and for events, each selector) was listed.
    """

    cluster: ClusterSnapshot
    skipped_objects: list[InputError]
    assumptions: list[Assumption]
    documents: list[Any] = []
    starts: dict[tuple[str, str], tuple[str, str]] = {}


def read_cluster(
    api: Api,
    *,
    taken_at: datetime,
    skip_bad_objects: bool = False,
    progress: Progress | None = None,
    phases: Phases = NO_PHASES,
    needs: Needs = NOTHING_MORE,
    packs: Packs | None = None,
) -> LiveSnapshot:
    """Read everything that schedulers read, in all namespaces, and what the request ``needs`` in addition.

    A namespaced kind that may not be listed in all namespaces is listed in the connection's namespace; if that kind is
    Pod, so are all others. Kinds of which not all objects may be listed are ``unread``.

    ``packs`` returns the part of each document to keep. If plugins want a kind that the server does not have, there are
    no objects. ``taken_at`` is the current time. ``progress`` gets how much has been read, ``phases`` gets ``read`` and
    ``decode``. Raises ``ClusterError`` if the cluster is unreachable or no pods may be listed, and ``InputError`` for
    an invalid object, unless those are skipped.
    """
    collector = Collector(
        defaults_namespace=False,
        skips_bad_objects=skip_bad_objects,
        keep_document=needs.keep_document,
        packs=packs,
        extra_fields=needs.extra_fields,
    )
    reader = _Reader(api, collector, progress, phases)
    with without_collection():
        reader.read(taken_at, needs)
    cluster = collector.cluster()
    # In the order of a single list; each selector was read separately, and they were read in parallel.
    events = sorted(cluster.events, key=lambda each: f"{each.metadata.namespace}/{each.metadata.name}")
    cluster = msgspec.structs.replace(cluster, events=events)
    unlisted = [
        Assumption(
            key,
            LIST,
            f"the plugin that reads them states no version, so they are not listed: {consequence_without(key)}",
            AssumptionKind.UNREADABLE,
        )
        for key in kinds_of_plugins(needs.extra_fields)[1]
    ]
    assumptions = [*reader.assumptions, *unlisted, *_inconsistencies(reader.versions, cluster)]
    return LiveSnapshot(cluster, collector.skipped_objects, assumptions, collector.documents(), reader.starts)


class _Reader:
    """One read of a cluster: pods first, then everything else at the version of their first page."""

    def __init__(self, api: Api, collector: Collector, progress: Progress | None, phases: Phases) -> None:
        self.assumptions: list[Assumption] = []
        # By kind, in order of completion.
        self.versions: dict[str, str] = {}
        self.starts: dict[tuple[str, str], tuple[str, str]] = {}
        self._api = api
        self._collector = collector
        self._progress = progress
        self._phases = phases
        self._workers: Workers[tuple[Listing, Page] | ServerVersion] = Workers(_REQUESTS_AT_ONCE)
        self._under_way = 0
        # The only namespace whose objects are read, if any.
        self._namespace = ""
        self._done = 0
        self._remaining: dict[str, int] = {}

    def read(self, taken_at: datetime, needs: Needs) -> None:
        """Read everything. Raises like ``read_cluster``."""
        pods, *others = kinds_to_read(needs.skip_kinds, with_autoscalers=needs.with_autoscalers)
        of_plugins, _ = kinds_of_plugins(needs.extra_fields)
        others += [
            kind for name, kind in COMPARED_KINDS.items() if name in needs.compare_kinds and kind not in of_plugins
        ]
        others += of_plugins
        selectors: list[str] = []
        if needs.with_events:
            selectors += EVICTION_SELECTORS if needs.with_evictions else EVENT_SELECTORS
        # Those about ends of pods include what autoscalers report.
        if needs.with_autoscalers and not needs.with_evictions:
            selectors += AUTOSCALER_SELECTORS
        try:
            self._begin(Listing(pods, ""))
            self._begin(None)
            while self._under_way:
                with self._phases.phase("read"):
                    found = self._workers.result()
                self._under_way -= 1
                if isinstance(found, ServerVersion):
                    if not found.git_version:
                        message = "the server does not report its version"
                        self.assumptions.append(Assumption("cluster", "version", message, AssumptionKind.INFORMATIONAL))
                    source = self._api.connection.server
                    batch = Batch(source, [], fixed_line(0), version=found.git_version, taken_at=taken_at.isoformat())
                    self._collector.add(batch)
                    continue
                listing, page = found
                if page.rejection is not None and (narrower := self._narrower(listing, page.rejection)) is not None:
                    self._begin(narrower)
                    continue
                if not page.ends:
                    self._begin(listing)
                if page.begins:
                    for kind in others:
                        self._begin(Listing(kind, listing.version, namespace=self._namespace))
                    for selector in selectors:
                        self._begin(Listing(EVENTS, "", selector=selector, namespace=self._namespace))
                    others, selectors = [], []
                self._take(listing, page)
        finally:
            self._workers.end()

    def _narrower(self, listing: Listing, error: ClusterError) -> Listing | None:
        """Return the same list in one namespace, if it may not be read in all and was not tried there yet.

        If that is so for pods, only one namespace is read. Raises ``ClusterError`` if pods may not be read there.
        """
        namespace = self._api.connection.namespace
        narrower = Listing(listing.kind, listing.exact, selector=listing.selector, namespace=namespace)
        if not listing.namespace and narrower.namespace and error.status == FORBIDDEN and not listing.has_begun:
            if listing.kind.name == "Pod":
                self._namespace = namespace
            return narrower
        if listing.kind.name == "Pod":
            raise _no_pods(error, namespace)
        return None

    def _begin(self, listing: Listing | None) -> None:
        """Request the next page of a list, or without one the server's version."""
        self._under_way += 1
        if listing is None:
            self._workers.submit(lambda: _server_version(self._api))
        else:
            self._workers.submit(lambda: (listing, listing.next_page(self._api)))

    def _take(self, listing: Listing, page: Page) -> None:
        """Keep the relevant parts of a page."""
        label = label_of(listing.kind)
        if page.rejection is not None:
            if listing.kind == RECORDED.get(label):
                self._collector.leave_out(label, page.rejection.status, page.source)
            else:
                self.assumptions.append(unreadable(label, Unread(page.rejection.status, resource_of(listing.kind))))
            return
        if page.begins:
            self._collector.forget(page.kind, page.api_version)
        batch = Batch(page.source, page.items, fixed_line(0), kind=page.kind, api_version=page.api_version)
        with self._phases.phase("decode"):
            self._collector.add(batch)
        if page.ends and listing.namespace and page.api_version:
            self._note_only(listing, label)
        elif page.ends and listing.kind == RECORDED.get(label):
            self._collector.note_listed([label])
        if page.ends and page.api_version:
            self.starts[label, listing.selector] = page.api_version, listing.version
            if not listing.selector:
                self.versions[label] = listing.version
        self._done += len(page.items)
        self._remaining[label] = page.remaining
        if self._progress is not None:
            share = self._done / max(1, self._done + sum(self._remaining.values()))
            self._progress(f"{self._api.connection.label}: {self._done:,} objects", share)

    def _note_only(self, listing: Listing, label: str) -> None:
        """Record that only the objects of one namespace were read."""
        if listing.kind == RECORDED.get(label):
            self._collector.leave_out(label, FORBIDDEN, self._api.connection.server, listing.namespace)
        else:
            unread = Unread(FORBIDDEN, resource_of(listing.kind), listing.namespace)
            self.assumptions.append(unreadable(label, unread))


def _no_pods(error: ClusterError, namespace: str) -> ClusterError:
    """Return the error if pods may not even be listed in the namespace."""
    least = f"or at least pods in namespace {namespace}"
    problem = f"{error.problem}; missing permission: list pods and nodes (cluster-wide), {least}"
    hint = f"-n selects another namespace; {error.hint}"
    return ClusterError(problem, source=error.source, status=error.status, hint=hint)


def read_autoscalers(api: Api, namespace: str = "") -> ClusterSnapshot:
    """Read only what autoscalers report: their events, and the kinds that no scheduler reads.

    With a ``namespace``, namespaced objects are only read there. What cannot be read, for whatever reason, is
    ``unread`` in the result; invalid objects are left out.
    """
    collector = Collector(defaults_namespace=False, skips_bad_objects=True)
    listings = [
        *(Listing(KINDS[name], "", namespace=namespace) for name in AUTOSCALER_KINDS),
        *(Listing(EVENTS, "", selector=f"source={component}", namespace=namespace) for component in COMPONENTS),
    ]
    workers: Workers[tuple[Listing, list[Page] | ClusterError]] = Workers(len(listings))
    try:
        for listing in listings:
            workers.submit(partial(_all_pages, api, listing))
        for _ in listings:
            listing, pages = workers.result()
            name = listing.kind.name
            if isinstance(pages, ClusterError):
                collector.leave_out(name, pages.status or _SERVER_ERROR, pages.source)
                continue
            for page in pages:
                if page.rejection is not None:
                    collector.leave_out(name, page.rejection.status, page.source)
                items = Batch(page.source, page.items, fixed_line(0), kind=page.kind, api_version=page.api_version)
                collector.add(items)
    finally:
        workers.end()
    return collector.cluster()


def _all_pages(api: Api, listing: Listing) -> tuple[Listing, list[Page] | ClusterError]:
    pages: list[Page] = []
    try:
        while not (pages and pages[-1].ends):
            page = listing.next_page(api)
            # A list that is restarted begins again.
            pages = [page] if page.begins else [*pages, page]
    except ClusterError as error:
        return listing, error
    return listing, pages


def read_version(connection: Connection) -> str:
    """Read the version of the cluster's server, empty if it is not public. Raises ``ClusterError``."""
    api = Api(connection)
    try:
        return _server_version(api).git_version
    finally:
        api.close()


def _server_version(api: Api) -> ServerVersion:
    """Return the server's version information, empty if it is not public."""
    try:
        return msgspec.json.decode(api.get("/version"), type=ServerVersion)
    except ClusterError as error:
        if error.status in (403, 404):
            return ServerVersion()
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ClusterError(
            "returned something other than a version", source=f"{api.connection.server}/version"
        ) from None


def _inconsistencies(versions: dict[str, str], cluster: ClusterSnapshot) -> list[Assumption]:
    """Report what may be inconsistent, because kinds were not all read at one version."""
    counts = Counter(versions.values())
    if len(counts) <= 1:
        return []
    usual = counts.most_common(1)[0][0]
    others = {kind: version for kind, version in versions.items() if version != usual}
    read = ", ".join(f"{kind} at {version}" for kind, version in sorted(others.items()))
    found = [
        Assumption(
            "cluster",
            "resourceVersion",
            f"not all kinds were read at the same time: {read}, the rest at {usual}; they may be inconsistent",
            AssumptionKind.UNCERTAIN,
        )
    ]
    known = {node.metadata.name for node in cluster.nodes}
    strays = [pod.spec.node_name for pod in cluster.pods if pod.spec.node_name and pod.spec.node_name not in known]
    if strays:
        names = sorted(set(strays))
        shown = ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
        subject = "1 pod is on a node that was" if len(strays) == 1 else f"{len(strays)} pods are on nodes that were"
        message = f"{subject} not listed: {shown}"
        found.append(Assumption("cluster", "nodes", message, AssumptionKind.UNCERTAIN))
    return found


class Workers(Generic[T]):
    """Threads that run tasks in the order of submission; results arrive as they complete.

    Unlike threads of ``concurrent.futures``, they do not keep the process from ending: after an interrupt, or after one
    request fails, others may still hang in the network.
    """

    def __init__(self, count: int) -> None:
        self._tasks: SimpleQueue[Callable[[], T] | None] = SimpleQueue()
        self._results: SimpleQueue[T | BaseException] = SimpleQueue()
        self._count = count
        for _ in range(count):
            Thread(target=self._work, daemon=True).start()

    def submit(self, task: Callable[[], T]) -> None:
        self._tasks.put(task)

    def result(self) -> T:
        """Return the next result, or raise its task's error. There must be a task whose result was not returned yet."""
        result = self._results.get()
        if isinstance(result, BaseException):
            raise result
        return result

    def end(self) -> None:
        """Let the threads end after their current tasks."""
        for _ in range(self._count):
            self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                self._results.put(task())
            except BaseException as error:
                self._results.put(error)


_NOT_FOUND = 404
_LONGEST = 320
# Any path that an API server can serve; nothing else from a manifest becomes part of a path.
_API_VERSION = re.compile(r"(?:[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/)?[a-z0-9]+")


class ObjectNames(Protocol):
    """An object by its names; a kind without namespaces may still have one."""

    @property
    def api_version(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


class Objects(msgspec.Struct, frozen=True):
    """The ``documents`` of the objects that exist.

    All other objects of ``known`` kinds (``Prometheus.monitoring.coreos.com``) don't exist; ``unread`` has those that
    may not be read, or that the server serves in another version.
    """

    documents: list[dict[str, Any]]
    known: list[str]
    unread: dict[str, Unread]


def read_objects(api: Api, names: Iterable[ObjectNames]) -> Objects:
    """Read the objects one by one. Raises ``ClusterError`` and ``InputError``."""
    documents: list[dict[str, Any]] = []
    known: dict[str, None] = {}
    unread: dict[str, Unread] = {}
    resources: dict[tuple[str, str], Resource | None] = {}
    for each in names:
        group = each.api_version.rpartition("/")[0]
        label = ".".join(filter(None, (each.kind, group)))
        place = (each.api_version, each.kind)
        is_name = not {each.name, each.namespace} & {".", ".."}
        is_version = len(each.api_version) < _LONGEST and _API_VERSION.fullmatch(each.api_version) is not None
        if not is_name or not is_version:
            unread[label] = Unread(_NOT_FOUND)
            continue
        if place not in resources:
            served = resources_of(api, each.api_version) or ()
            resources[place] = next((resource for resource in served if resource.kind == each.kind), None)
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


def _document(api: Api, target: ObjectNames, resource: Resource) -> list[dict[str, Any]]:
    """Return the object, or nothing if it doesn't exist."""
    place = f"namespaces/{quote(target.namespace, safe='')}/" if resource.namespaced else ""
    start = "apis" if "/" in target.api_version else "api"
    path = f"/{start}/{target.api_version}/{place}{resource.name}/{quote(target.name, safe='')}"
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
        raise InputError("server returned a non-object", source=f"{api.connection.server}{path}")
    return [{**document, "apiVersion": target.api_version, "kind": target.kind}]
