"""Dry runs: the API server decides whether it accepts an object, but stores nothing.

A server that does not know ``dryRun`` ignores it and stores the object, as aggregated servers may do. So nothing is
sent unless the OpenAPI document of the group and version says that both requests for the kind take it, after
``k8s.io/cli-runtime`` v0.36.3 ``pkg/resource/query_param_verifier_v3.go``. That document also says where the kind's
objects are, and whether the server can merge lists (strategic merge patch), as it can for built-in kinds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from kpreempt.network.secrets import scrubbed
from kpreempt.snapshot.live.api import Api, Reply
from kpreempt.snapshot.live.failures import ClusterError, field_of, words_of
from kpreempt.snapshot.live.schemas import openapi_documents

_NOT_FOUND = 404
_LONGEST_WORDS = 2000
_MERGE_PATCH = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_NAMESPACE = "{namespace}"
# Text, or a backslash and any character.
_QUOTED = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')


class Endpoint(NamedTuple):
    """Where the objects of a kind are: a path in which ``{namespace}`` stands for their namespace."""

    path: str
    kind: str
    merges_lists: bool

    @property
    def is_namespaced(self) -> bool:
        return _NAMESPACE in self.path

    def path_in(self, namespace: str, name: str = "") -> str:
        """Return the path of an object, or without a ``name`` of all objects in the namespace."""
        path = self.path.replace(_NAMESPACE, quote(namespace, safe=""))
        return f"{path}/{quote(name, safe='')}" if name else path


class Decision(NamedTuple):
    """The server's decision about an object; if it is rejected, in its words, with the first field at fault."""

    status: int
    words: str = ""
    field: str = ""
    warnings: Sequence[str] = ()


class DryRuns:
    """Dry runs of the kinds of some groups and versions (``apps/v1``), also from several threads at once."""

    def __init__(self, api: Api, api_versions: Collection[str]) -> None:
        self._api = api
        self._endpoints = {
            (api_version, each.kind): each
            for api_version, document in openapi_documents(api, api_versions).items()
            for each in _endpoints(api_version, document)
        }

    def endpoint(self, api_version: str, kind: str) -> Endpoint | None:
        """Return where the kind's objects are, or ``None`` if it is not known that the server supports dry runs."""
        return self._endpoints.get((api_version, kind))

    def find(self, endpoint: Endpoint, namespace: str, name: str) -> dict[str, Any] | None:
        """Return the object, or ``None`` if it does not exist. Raises ``ClusterError``."""
        path = endpoint.path_in(namespace, name)
        try:
            return self._object(self._api.get(path), path, endpoint.kind)
        except ClusterError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    def create(
        self, endpoint: Endpoint, namespace: str, document: dict[str, Any], secrets: Collection[str] = ()
    ) -> Decision:
        """Return the decision about a new object. Raises ``ClusterError`` if there is none.

        The ``secrets`` are removed from what the server says.
        """
        path = endpoint.path_in(namespace)
        return self._decision(self._api.dry_run("POST", path, _encoded(document)), path, endpoint.kind, secrets)

    def patch(
        self, endpoint: Endpoint, namespace: str, name: str, changes: dict[str, Any], secrets: Collection[str] = ()
    ) -> Decision:
        """Return the decision about the ``changes`` of an object (JSON merge patch). Like ``create``."""
        path = endpoint.path_in(namespace, name)
        reply = self._api.dry_run("PATCH", path, _encoded(changes), content_type=_MERGE_PATCH)
        return self._decision(reply, path, endpoint.kind, secrets)

    def _decision(self, reply: Reply, path: str, kind: str, secrets: Collection[str]) -> Decision:
        def clean(words: str) -> str:
            words = scrubbed(words, [*secrets, *self._api.connection.secrets])
            return words if len(words) <= _LONGEST_WORDS else f"{words[: _LONGEST_WORDS - 1]}…"

        if 200 <= reply.status < 300:
            self._object(reply.body, path, kind)
            return Decision(reply.status, warnings=[clean(each) for each in _warnings(reply)])
        if reply.status < 400 or not reply.body.startswith(b"{"):
            # From a proxy, not from the API.
            source = f"{self._api.connection.server}{path}"
            problem = f"returned something other than a decision ({reply.status})"
            raise ClusterError(problem, source=source, status=reply.status)
        return Decision(reply.status, clean(words_of(reply.body)), field_of(reply.body))

    def _object(self, body: bytes, path: str, kind: str) -> dict[str, Any]:
        """Decode an object of the kind, so that no proxy's page counts as an answer."""
        try:
            document = msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            document = {}
        if document.get("kind") != kind or not isinstance(document.get("metadata"), dict):
            source = f"{self._api.connection.server}{path}"
            raise ClusterError(f"returned something other than a {kind}", source=source, status=200)
        return document


def _encoded(value: Any) -> bytes:
    # Unlike msgspec, this encodes all integers and characters that a manifest may have.
    return json.dumps(value, default=str).encode()


def _warnings(reply: Reply) -> Iterator[str]:
    """The texts of ``Warning`` headers, each once: ``k8s.io/apimachinery`` v0.36.3 ``pkg/util/net/http.go``."""
    texts = (text for header in reply.warnings for text in _QUOTED.findall(header))
    yield from dict.fromkeys(re.sub(r"\\(.)", r"\1", text) for text in texts)


class _Kind(msgspec.Struct, frozen=True):
    group: str
    version: str
    kind: str


class _Parameter(msgspec.Struct, frozen=True):
    name: str = ""
    place: str = msgspec.field(name="in", default="")


class _Body(msgspec.Struct, frozen=True):
    content: dict[str, Any] = {}


class _Operation(msgspec.Struct, frozen=True):
    kind: _Kind | None = msgspec.field(name="x-kubernetes-group-version-kind", default=None)
    parameters: list[_Parameter] = []
    body: _Body = msgspec.field(name="requestBody", default=_Body())

    def supports_dry_run(self, kind: _Kind) -> bool:
        return self.kind == kind and any((each.name, each.place) == ("dryRun", "query") for each in self.parameters)


class _Path(msgspec.Struct, frozen=True):
    post: _Operation = _Operation()
    patch: _Operation = _Operation()


class _Document(msgspec.Struct, frozen=True):
    paths: dict[str, _Path] = {}


def _endpoints(api_version: str, document: dict[str, Any]) -> Iterator[Endpoint]:
    """The kinds of an OpenAPI document that can be created and patched in a dry run."""
    try:
        paths = msgspec.convert(document, _Document).paths
    except msgspec.ValidationError:
        return
    group, _, version = api_version.rpartition("/")
    start = re.escape(f"/{'apis' if group else 'api'}/{api_version}/")
    of_objects = re.compile(rf"({start}(?:namespaces/\{{namespace\}}/)?[a-z0-9]+)/\{{name\}}")
    for path, operations in paths.items():
        match, kind = of_objects.fullmatch(path), operations.patch.kind
        if match is None or kind is None or (kind.group, kind.version) != (group, version):
            continue
        collection = paths.get(match[1], _Path())
        if collection.post.supports_dry_run(kind) and operations.patch.supports_dry_run(kind):
            yield Endpoint(match[1], kind.kind, _STRATEGIC in operations.patch.body.content)
