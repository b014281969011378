"""A test API server on loopback: returns prepared answers over HTTP or TLS, and records requests."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Condition, Thread
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from kpreempt.model.kinds import KINDS
from kpreempt.snapshot.kinds import COMPARED_KINDS
from kpreempt.snapshot.live.listing import api_versions_of, path_of

TLS = Path(__file__).parent.parent / "fixtures" / "tls"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
_LISTS = frozenset(
    path_of(kind, version) for kind in (*KINDS.values(), *COMPARED_KINDS.values()) for version in api_versions_of(kind)
)
# What the built-in ClusterRole ``view`` may list, of what kpreempt reads; ``edit`` has these in a namespace.
VIEW = frozenset(
    (
        *("pods", "events", "limitranges", "resourcequotas", "persistentvolumeclaims", "services", "serviceaccounts"),
        *("namespaces", "replicationcontrollers", "replicasets", "statefulsets", "deployments", "daemonsets"),
        *("jobs", "cronjobs", "horizontalpodautoscalers", "poddisruptionbudgets", "configmaps"),
        *("resourceclaims", "resourceclaimtemplates"),
    )
)
VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.3"}


class ReceivedRequest(NamedTuple):
    """One request; ``headers`` has all values of a name, in lower case. ``content`` is the decoded body."""

    path: str
    query: dict[str, str]
    headers: dict[str, list[str]]
    method: str = "GET"
    content: Any = None


class Answer(NamedTuple):
    """An answer; ``cut`` bytes of the body are sent before the connection is dropped, ``None`` for all.

    A ``stream`` is sent instead of a body, piece by piece, until it ends.
    """

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = {"Content-Type": "application/json"}
    cut: int | None = None
    stream: Iterable[bytes] | None = None


Answering = Callable[[ReceivedRequest], Answer]


def refused(status: int, message: str, **headers: str) -> Answer:
    """A ``Status`` as API servers send it."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status}
    return Answer(status, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})


def good(value: Any) -> Answer:
    """A value as JSON."""
    return Answer(body=json.dumps(value).encode())


class FakeApi:
    """The server, in separate threads within the block. ``certificate`` makes it use TLS."""

    def __init__(self, answering: Answering, *, certificate: str = "", wants_client: bool = False) -> None:
        self.requested: list[ReceivedRequest] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def receive(self) -> None:
                parts = urlsplit(self.path)
                headers = {name.lower(): self.headers.get_all(name) or [] for name in self.headers}
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                content = json.loads(body) if body else None
                request = ReceivedRequest(parts.path, dict(parse_qsl(parts.query)), headers, self.command, content)
                fake.requested.append(request)
                self._send(answering(request))

            def do_CONNECT(self) -> None:
                fake.requested.append(
                    ReceivedRequest(self.path, {}, {name.lower(): [text] for name, text in self.headers.items()})
                )
                self._send(answering(fake.requested[-1]))

            def _send(self, answer: Answer) -> None:
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                if answer.stream is not None:
                    self.send_header("Connection", "close")
                    self.end_headers()
                    for piece in answer.stream:
                        self.wfile.write(piece)
                        self.wfile.flush()
                    return
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body if answer.cut is None else answer.body[: answer.cut])
                self.close_connection |= answer.cut is not None

            def log_message(self, *_: Any) -> None:
                return

        # Whatever a client sends is recorded.
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            setattr(Handler, f"do_{method}", Handler.receive)

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                """Clients that disconnect are what many tests are about."""

        self._server = Server(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(TLS / certificate)
            if wants_client:
                context.verify_mode = ssl.CERT_REQUIRED
                # With 1.3 a client may see the connection closed before the reason.
                context.maximum_version = ssl.TLSVersion.TLSv1_2
                context.load_verify_locations(TLS / "ca.crt")
            # Each connection's handshake is in a separate thread.
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self._server.server_address[1]
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> FakeApi:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class FakeCluster:
    """Answers lists of objects by kind in pages of ``page`` objects, all at resource version ``version``.

    ``special`` is called first, and may answer a request; with ``None`` the default applies.
    """

    def __init__(
        self,
        objects: Mapping[str, list[dict[str, Any]]],
        *,
        page: int = 500,
        version: int = 100,
        special: Callable[[ReceivedRequest], Answer | None] = lambda _: None,
        holder: str = "",
    ) -> None:
        self.objects = objects
        self.version = version
        self.special = special
        self.holder = holder
        self.changes: list[tuple[int, str, str, dict[str, Any]]] = []
        self._news = Condition()
        self._is_over = False
        self._page = page
        self._kinds = {
            path_of(kind, version): (kind.name, version)
            for kind in (*KINDS.values(), *COMPARED_KINDS.values())
            for version in api_versions_of(kind)
        }

    def __call__(self, request: ReceivedRequest) -> Answer:
        answer = self.special(request)
        if answer is not None:
            return answer
        if request.path == "/version":
            return good(VERSION)
        if request.path == LEASES:
            return self._lease(request)
        path, namespace = split_namespace(request.path)
        if path not in self._kinds:
            return refused(404, "the server could not find the requested resource")
        kind, api_version = self._kinds[path]
        if request.query.get("watch"):
            return self._watch(kind, request)
        version, _, start = request.query.get("continue", f"{self.version}:0").partition(":")
        selector = request.query.get("fieldSelector", "")
        items = [
            item
            for item in self.objects.get(kind, [])
            if _is_selected(item, selector) and namespace in ("", item["metadata"].get("namespace"))
        ]
        shown, rest = items[int(start) : int(start) + self._page], len(items) - int(start) - self._page
        metadata: dict[str, Any] = {"resourceVersion": request.query.get("resourceVersion", version)}
        if rest > 0:
            metadata |= {"continue": f"{version}:{int(start) + self._page}", "remainingItemCount": rest}
        return good({"kind": f"{kind}List", "apiVersion": api_version, "metadata": metadata, "items": shown})

    def change(self, what: str, kind: str, document: dict[str, Any]) -> int:
        """Change an object at the next version, notify watches, and return that version."""
        with self._news:
            self.version += 1
            metadata = {**document["metadata"], "resourceVersion": str(self.version)}
            document = {**document, "metadata": metadata}
            key = metadata.get("namespace", ""), metadata["name"]
            others = [
                each
                for each in self.objects.get(kind, [])
                if (each["metadata"].get("namespace", ""), each["metadata"]["name"]) != key
            ]
            kept = others if what == "DELETED" else [*others, document]
            kept.sort(key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"]))
            self.objects = {**self.objects, kind: kept}
            self.changes.append((self.version, what, kind, document))
            self._news.notify_all()
            return self.version

    def forget(self) -> None:
        """Drop all changes so far, so that no watch can continue from before them; all watches end."""
        with self._news:
            self.changes = []
            self._forgotten = self.version
            self._news.notify_all()

    def end(self) -> None:
        """End all watches."""
        with self._news:
            self._is_over = True
            self._news.notify_all()

    _forgotten = 0

    def _lease(self, request: ReceivedRequest) -> Answer:
        if request.query.get("watch"):
            return self._watch("Lease", request)
        items = [{"spec": {"holderIdentity": self.holder}}] if self.holder else []
        return good({"kind": "LeaseList", "metadata": {"resourceVersion": str(self.version)}, "items": items})

    def _watch(self, kind: str, request: ReceivedRequest) -> Answer:
        version, selector = int(request.query["resourceVersion"]), request.query.get("fieldSelector", "")
        if version < self._forgotten:
            return refused(410, "too old resource version")
        return Answer(stream=self._reported(kind, version, selector))

    def _reported(self, kind: str, version: int, selector: str) -> Iterator[bytes]:
        begun = self._forgotten
        while True:
            with self._news:
                news = [each for each in self.changes if each[0] > version]
                if not news:
                    if self._is_over or self._forgotten != begun:
                        return
                    self._news.wait()
                    continue
            for number, what, of, document in news:
                version = number
                if of == kind and (kind == "Lease" or _is_selected(document, selector)):
                    yield json.dumps({"type": what, "object": document}).encode() + b"\n"


def split_namespace(path: str) -> tuple[str, str]:
    """The path of a list in all namespaces, and the namespace of the given one, if it has one."""
    start, found, rest = path.partition("/namespaces/")
    namespace, _, plural = rest.partition("/")
    return (f"{start}/{plural}", namespace) if found else (path, "")


class Rights:
    """Special answers of an API server with RBAC: only some resources may be listed, everywhere or in one namespace."""

    def __init__(self, everywhere: Iterable[str] = (), *, namespace: str = "", there: Iterable[str] = ()) -> None:
        self._everywhere, self._namespace, self._there = frozenset(everywhere), namespace, frozenset(there)

    def __call__(self, request: ReceivedRequest) -> Answer | None:
        path, namespace = split_namespace(request.path)
        plural = path.rpartition("/")[2]
        if request.path == "/version" or path not in _LISTS or plural in self._everywhere:
            return None
        if namespace and namespace == self._namespace and plural in self._there:
            return None
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        return refused(403, f'{plural} is forbidden: User "dev" cannot list resource "{plural}" {where}')


def _is_selected(document: dict[str, Any], selector: str) -> bool:
    """Whether a field selector (``reason=Preempted,type!=Warning``, ``metadata.name=a``) selects an object."""
    reporter = document.get("source", {}).get("component") if isinstance(document.get("source"), dict) else ""
    fields = {**document, "source": reporter, "metadata.name": document["metadata"]["name"]} if selector else {}
    for term in filter(None, selector.split(",")):
        field, _, value = term.partition("=")
        if (fields.get(field.rstrip("!"), "") == value) is field.endswith("!"):
            return False
    return True


def objects_by_kind(documents: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The objects as an API server has them: sorted by namespace and name, and without their kind."""
    found: dict[str, list[dict[str, Any]]] = {}
    for document in documents:
        found.setdefault(document["kind"], []).append(
            {key: value for key, value in document.items() if key not in ("kind", "apiVersion")}
        )
    for each in found.values():
        each.sort(key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"]))
    return found
