"""Requests to an API server, with limited time and size and with retries.

Only two kinds of requests are ever sent: GET, and dry runs (``dryRun=All``), which change nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import partial
from threading import Lock
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
import urllib3
from urllib3 import exceptions as http

from kpreempt.errors import InputError
from kpreempt.network.deadlines import DeadlineError, pool_manager, within
from kpreempt.snapshot.archives import check_density, check_ratio
from kpreempt.snapshot.live.connection import Connection
from kpreempt.snapshot.live.failures import ClusterError, failure, is_dropped, rejection
from kpreempt.version import __version__

JSON = "application/json"

_CONNECT_SECONDS = 30.0
_RETRIES = 4
_FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 30.0
_MAX_BYTES = 2 * 2**30
# Objects in etcd have at most a few megabytes.
_MAX_LINE = 32 * 2**20
_MAX_ERROR_BYTES = 64 * 2**10
_CHUNK = 2**18
_CONNECTIONS = 8
# Statuses that are retried: the server asks for it, or they are usually temporary.
_BUSY = (429, 503)
_GOOD = (200, 201)
# What a dry run is: the server decides as for a real request, but stores nothing. Like kubectl, it is strict.
_DRY_RUN = {"dryRun": "All", "fieldManager": "kubectl-client-side-apply", "fieldValidation": "Strict"}


class Reply(NamedTuple):
    """The answer to a dry run: its HTTP status, body, and ``Warning`` headers."""

    status: int
    body: bytes
    warnings: list[str]


class _Sent(NamedTuple):
    """A request without its URL; GET has no ``content``."""

    accept: str = JSON
    method: Literal["GET", "POST", "PATCH"] = "GET"
    content: bytes | None = None
    content_type: str = ""


class Api:
    """An API server to read from, also from several threads at once.

    ``retries`` is how often a request is repeated that was dropped or met a busy server; ``sleep`` is like
    ``time.sleep``.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        retries: int = _RETRIES,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.connection = connection
        # The results of ``get_once``, which is called from several threads.
        self._once: dict[str, bytes | ClusterError] = {}
        self._lock = Lock()
        self._retries = retries
        self._sleep = sleep
        self._pool = pool_manager(
            connection.proxy, connection.tls, connection.tls_server_name, connections=_CONNECTIONS
        )

    def close(self) -> None:
        self._pool.clear()

    def get(self, path: str, query: Mapping[str, str] | None = None, *, accept: str = JSON) -> bytes:
        """Return the body of the answer to ``GET path?query``; ``path`` begins with a slash.

        Raises ``ClusterError``, which has the HTTP status if there is one.
        """
        with self._scrubbed():
            return self._get(path, query, accept)

    def get_once(self, path: str) -> bytes:
        """Return the same as ``get``, from an earlier answer if there is one. Raises ``ClusterError``."""
        with self._lock:
            if path not in self._once:
                try:
                    self._once[path] = self.get(path)
                except ClusterError as error:
                    self._once[path] = error
            found = self._once[path]
        if isinstance(found, ClusterError):
            raise found
        return found

    @contextmanager
    def _scrubbed(self) -> Iterator[None]:
        """Remove credentials that the server repeats from errors."""
        try:
            yield
        except ClusterError as error:
            raise error.without(self.connection.secrets) from None

    def dry_run(
        self, method: Literal["POST", "PATCH"], path: str, content: bytes, *, content_type: str = JSON
    ) -> Reply:
        """Let the server decide about ``method path``, which has this ``content``, without storing anything.

        Nothing is stored by a server that supports ``dryRun``, which the caller has to know. Any answer is returned.
        Raises ``ClusterError`` without one, and for a server that stays busy.
        """
        url = f"{self.connection.server}{path}"
        with self._scrubbed():
            answer, body = self._exchange(
                url, f"{url}?{urlencode(_DRY_RUN)}", _Sent(method=method, content=content, content_type=content_type)
            )
        return Reply(answer.status, body, answer.headers.getlist("warning"))

    def _get(self, path: str, query: Mapping[str, str] | None, accept: str) -> bytes:
        source = f"{self.connection.server}{path}"
        answer, body = self._exchange(source, f"{source}?{urlencode(query)}" if query else source, _Sent(accept))
        if answer.status != 200:
            raise rejection(answer.status, answer.headers, body, source, self.connection.user)
        # The body must have the requested type.
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if "json" in accept and "json" not in kind and body[:1] not in (b"{", b"["):
            raise ClusterError(
                f"returned {kind or 'something'}, not JSON like the Kubernetes API",
                source=source,
                status=answer.status,
                hint="check --server and the proxy: there may be a login page in front of the API",
            )
        return body

    def _exchange(self, source: str, url: str, sent: _Sent) -> tuple[urllib3.BaseHTTPResponse, bytes]:
        """Return the first answer of a server that is not busy."""
        tried = 0
        while True:
            wait = _FIRST_WAIT_SECONDS * 2**tried
            try:
                answer, body = within(self.connection.timeout, partial(self._request, url, sent))
            except (DeadlineError, http.HTTPError) as error:
                if tried >= self._retries or not is_dropped(error):
                    raise failure(error, self.connection.server, self.connection.timeout) from None
            else:
                if answer.status not in _BUSY:
                    return answer, body
                retry_after = _retry_after_seconds(answer)
                wait = wait if retry_after is None else retry_after
                if tried >= self._retries or wait > _LONGEST_WAIT_SECONDS:
                    raise rejection(answer.status, answer.headers, body, source, self.connection.user, retry_after)
            self._sleep(wait)
            tried += 1

    def lines(self, path: str, query: Mapping[str, str], *, seconds: float) -> Iterator[bytes]:
        """Yield the non-empty lines of the answer to ``GET path?query`` as they arrive, without retries.

        Gives up if nothing arrives for ``seconds``. Raises ``ClusterError``, also if the connection breaks.
        """
        source = f"{self.connection.server}{path}"
        with self._scrubbed():
            try:
                response = self._open(f"{source}?{urlencode(query)}", _Sent(), seconds)
                try:
                    if response.status != 200:
                        body = self._body(response, _MAX_ERROR_BYTES)
                        raise rejection(response.status, response.headers, body, source, self.connection.user)
                    # Anything after the last line break was cut off.
                    rest = bytearray()
                    while chunk := response.read1(_CHUNK, decode_content=True):
                        rest += chunk
                        if b"\n" in chunk:
                            *lines, last = rest.split(b"\n")
                            rest = bytearray(last)
                            yield from (bytes(line) for line in lines if line.strip())
                        if len(rest) > _MAX_LINE:
                            raise ClusterError("returned an endless line", source=self.connection.server)
                finally:
                    response.close()
            except http.HTTPError as error:
                raise failure(error, self.connection.server, seconds) from None

    def _request(self, url: str, sent: _Sent) -> tuple[urllib3.BaseHTTPResponse, bytes]:
        """Return the answer with its complete body."""
        # Slightly longer than any caller waits, so that a thread that was still resolving a name ends.
        timeout = None if self.connection.timeout is None else self.connection.timeout + 1
        response = self._open(url, sent, timeout)
        is_done = False
        try:
            body = self._body(response, _MAX_BYTES if response.status in _GOOD else _MAX_ERROR_BYTES)
            is_done = True
        finally:
            if is_done:
                response.release_conn()
            else:
                response.close()
        return response, body

    def _open(self, url: str, sent: _Sent, timeout: float | None) -> urllib3.BaseHTTPResponse:
        """Return the answer before its body is read; ``timeout`` (seconds) applies to each wait."""
        connect = _CONNECT_SECONDS if timeout is None else min(timeout, _CONNECT_SECONDS)
        headers = urllib3.HTTPHeaderDict(self.connection.headers)
        headers.extend({"Accept": sent.accept, "Accept-Encoding": "gzip", "User-Agent": f"kpreempt/{__version__}"})
        if sent.content is not None:
            headers["Content-Type"] = sent.content_type
        return self._pool.request(
            sent.method,
            url,
            body=sent.content,
            headers=headers,
            redirect=False,
            retries=False,
            preload_content=False,
            timeout=urllib3.Timeout(connect=connect, read=timeout),
        )

    def _body(self, response: urllib3.BaseHTTPResponse, limit: int) -> bytes:
        """Return the complete body, or as much of it as an error message needs."""
        chunks, size = [], 0
        for chunk in response.stream(_CHUNK, decode_content=True):
            chunks.append(chunk)
            size += len(chunk)
            check_ratio(response.tell(), size, self.connection.server)
            if size > limit:
                if response.status in _GOOD:
                    raise ClusterError("returned an endless answer", source=self.connection.server)
                break
        body = b"".join(chunks)
        check_density(body, self.connection.server)
        return body


def _retry_after_seconds(answer: urllib3.BaseHTTPResponse) -> float | None:
    """Return the value of ``Retry-After``, given in seconds or as a date."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time()) if text else None
    except (ValueError, TypeError, OverflowError):
        return None


def read_config_map(connection: Connection, namespace: str, name: str) -> dict[str, Any]:
    """Read the ConfigMap as plain data. Raises ``ClusterError`` and ``InputError``."""
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps/{quote(name, safe='')}"
    api = Api(connection)
    try:
        body = api.get(path)
    finally:
        api.close()
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise InputError("server returned a non-object", source=f"{connection.server}{path}") from None
