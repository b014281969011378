"""Calls of HTTP extenders over the network, the only package other than ``snapshot`` and ``cli`` with side effects.

Calls are POST requests, each limited in total time and size, and never retried.

Differences from Go's ``http.Client``: redirects are not followed, because they would send the pod elsewhere, and every
call uses a new connection, which also isolates forked processes. TLS is configured by the extender's settings
(``makeTransport``, ``pkg/scheduler/extender.go``, v1.36.3).

Errors are worded like those of Go's ``net/http``, which the real scheduler puts in its events, but not identically:
local ports and resolved addresses are omitted.
"""

from __future__ import annotations

import errno
import http.client
import socket
import ssl
from collections.abc import Mapping
from functools import partial
from urllib.parse import SplitResult, unquote, urlsplit

import urllib3
from urllib3 import exceptions as urllib3_errors

from kpreempt.errors import ConfigurationError, InputError
from kpreempt.files import read_file
from kpreempt.model.urls import without_secrets
from kpreempt.network.deadlines import DeadlineError, Request, pool_manager
from kpreempt.network.proxies import proxy_for
from kpreempt.network.secrets import scrubbed
from kpreempt.network.tls import ClientCertificate, Trust, causes, tls_context, tls_error
from kpreempt.schedulers.extender_protocol import (
    Call,
    ExtenderError,
    ExtenderSettings,
    ExtenderStatusError,
    TlsSettings,
    is_complete,
)
from kpreempt.version import __version__

MAX_BYTES = 64 * 2**20
_CHUNK = 2**16
_LONGEST_SECONDS = 366 * 24 * 3600.0
_PORTS = {"http": 80, "https": 443}
_REDIRECTS = (301, 302, 303, 307, 308)
_FAILURES = (urllib3_errors.HTTPError, http.client.HTTPException, OSError, ValueError)


def connect(settings: ExtenderSettings, *, environment: Mapping[str, str], max_bytes: int = MAX_BYTES) -> Call:
    """Prepare the calls of an extender. Nothing is sent yet; certificates are read from their files now.

    ``environment`` may set proxies (``HTTPS_PROXY``, ``HTTP_PROXY``, ``NO_PROXY``). Raises ``ConfigurationError``,
    ``InputError`` and ``UsageError`` for settings and proxies that cannot be used.
    """
    parts = _split(settings.url_prefix)
    # Loading the system's certificate authorities is slow.
    context = context_of(settings) if parts.scheme == "https" or settings.tls is not None else None
    is_reachable = parts.scheme in _PORTS and bool(parts.hostname)
    proxy = proxy_for(parts.geturl(), "", environment) if is_reachable else ""
    server_name = settings.tls.server_name if settings.tls else ""
    return _Transport(context, server_name, proxy, settings.http_timeout, max_bytes)


class _Transport:
    """Makes the calls; ``seconds`` limits each one, and a value that is not positive means no limit, as in Go."""

    def __init__(
        self, context: ssl.SSLContext | None, server_name: str, proxy: str, seconds: float, max_bytes: int
    ) -> None:
        # Every call uses a new connection.
        self._connect = partial(pool_manager, proxy, context, server_name)
        self._seconds = min(seconds, _LONGEST_SECONDS) if seconds > 0 else None
        self._max_bytes = max_bytes

    def __call__(self, url: str, body: bytes, /) -> bytes:
        """POST the body and return the response body. Raises ``ExtenderError``."""
        shown, parts = f'Post "{without_secrets(url)}"', _split(url)
        if parts.scheme not in _PORTS:
            # Without slashes, the part before the colon may be a user name instead of a scheme.
            scheme = parts.scheme if "://" in url or "@" not in url else ""
            raise ExtenderError(f'{shown}: unsupported protocol scheme "{scheme}"')
        if not parts.hostname:
            raise ExtenderError(f"{shown}: http: no Host in request URL")
        exchange = _Exchange(shown, parts, body, self._seconds, self._max_bytes, self._connect())
        request = Request(exchange.run)
        try:
            return _scrubbed(request.result(self._seconds), parts)
        except DeadlineError:
            words, received = NO_BODY if exchange.has_headers else f"{shown}: {NO_HEADERS}", bytes(exchange.received)
            request.abandon()
        if is_complete(received):
            return _scrubbed(received, parts)
        raise ExtenderError(words)


class _Exchange:
    """One request and its response. ``received`` is the part of the body read so far."""

    def __init__(
        self,
        shown: str,
        parts: SplitResult,
        body: bytes,
        seconds: float | None,
        max_bytes: int,
        manager: urllib3.PoolManager,
    ) -> None:
        self.has_headers = False
        self.received = bytearray()
        self._shown = shown
        self._parts = parts
        self._body = body
        # Slightly longer than the caller waits, so that a thread stuck in a name lookup ends, too.
        self._timeout = None if seconds is None else seconds + 1
        self._max_bytes = max_bytes
        self._manager = manager

    def run(self) -> bytes:
        """Send the request and read the response. Raises ``ExtenderError``."""
        try:
            return self._exchange()
        except _FAILURES as error:
            words = words_for(error, f"{self._parts.hostname}:{self._parts.port or _PORTS[self._parts.scheme]}")
            raise ExtenderError(words if self.has_headers else f"{self._shown}: {words}") from error
        finally:
            self._manager.clear()

    def _exchange(self) -> bytes:
        url = self._parts._replace(netloc=self._parts.netloc.rpartition("@")[2], fragment="").geturl()
        headers = {
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"kpreempt/{__version__}",
        }
        if self._parts.username is not None or self._parts.password is not None:
            user, password = unquote(self._parts.username or ""), unquote(self._parts.password or "")
            headers |= urllib3.make_headers(basic_auth=f"{user}:{password}")
        response = self._manager.request(
            "POST",
            url,
            body=self._body,
            headers=headers,
            redirect=False,
            retries=False,
            preload_content=False,
            timeout=self._timeout,
        )
        try:
            self.has_headers = True
            if response.status in _REDIRECTS:
                raise ExtenderError(f"{self._shown}: redirected (code {response.status}), which is not followed")
            if response.status != 200:
                raise ExtenderStatusError(response.status)
            return self._read(response)
        finally:
            response.close()

    def _read(self, response: urllib3.BaseHTTPResponse) -> bytes:
        """Read the body. Anything after the first complete value is ignored, like Go's decoder does."""
        try:
            while chunk := response.read1(_CHUNK, decode_content=False):
                self.received += chunk
                if len(self.received) > self._max_bytes:
                    raise ExtenderError(f"{self._shown}: response is larger than {self._max_bytes:,} bytes")
        except (urllib3_errors.ProtocolError, urllib3_errors.SSLError) as error:
            # The decoder decides whether a partial body is enough.
            is_cut_short = any(isinstance(each, http.client.IncompleteRead) for each in causes(error))
            if not is_cut_short and not is_complete(bytes(self.received)):
                raise
        return bytes(self.received)


def _scrubbed(answer: bytes, parts: SplitResult) -> bytes:
    """Remove the password sent to the extender from its response, because the response is shown."""
    if not parts.password:
        return answer
    secrets = (unquote(parts.password), parts.password)
    # Work on bytes, since the response need not be UTF-8.
    return scrubbed(answer.decode("latin-1"), (each.encode().decode("latin-1") for each in secrets)).encode("latin-1")


def _split(url: str) -> SplitResult:
    """Split a URL; an invalid URL has no parts."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return SplitResult("", "", "", "", "")
    return parts


def context_of(settings: ExtenderSettings) -> ssl.SSLContext:
    """Return the TLS context for ``https`` addresses. With ``enableHTTPS`` and no CA, any certificate is accepted.

    Raises ``ConfigurationError`` for contradicting settings, and ``InputError`` for files and certificates that cannot
    be used. Errors name the field, never its content.
    """
    tls, tls_path = settings.tls or TlsSettings(), f"extenders[{settings.index}].tlsConfig"
    is_insecure = tls.insecure or (settings.enable_https and not tls.has_authority)
    if is_insecure and tls.has_authority:
        raise ConfigurationError(
            "specifying a root certificates file with the insecure flag is not allowed", hint=f"{tls_path}.insecure"
        )
    authority = _content(tls.ca_data, tls.ca_file, f"{tls_path}.caFile").decode(errors="replace")
    trust = Trust(authority=authority, is_insecure=is_insecure, source=f"{tls_path}.caData")
    client = None
    if tls.has_certificate:
        certificate = _content(tls.cert_data, tls.cert_file, f"{tls_path}.certFile")
        key = _content(tls.key_data, tls.key_file, f"{tls_path}.keyFile")
        client = ClientCertificate(certificate=certificate, key=key, source=tls_path)
    return tls_context(trust, client)


def _content(data: bytes, path: str, field: str) -> bytes:
    if data or not path:
        return data
    try:
        return read_file(path)
    except InputError as error:
        raise InputError(error.problem, source=error.source, hint=field) from None


NO_HEADERS = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
NO_BODY = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
# OpenSSL's codes for certificate errors (``X509_V_ERR_…``).
_NOT_YET_VALID, _EXPIRED, _HOST_MISMATCH, _ADDRESS_MISMATCH = 9, 10, 62, 64


def words_for(error: BaseException, host: str) -> str:
    """Describe why there is no response; ``host`` is ``name:port`` of the extender."""
    if isinstance(error, urllib3_errors.ProxyError):
        return f"proxyconnect: {words_for(error.original_error, host)}"
    tls = tls_error(error)
    if tls is not None:
        if isinstance(tls, ssl.SSLCertVerificationError):
            return f"tls: failed to verify certificate: x509: {_certificate_words(tls)}"
        reason = tls.reason or ""
        if "ALERT" in reason:
            return f"remote error: tls: {reason.partition('ALERT_')[2].replace('_', ' ').lower()}"
        if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
            return "http: server gave HTTP response to HTTPS client"
        return f"tls: {reason.replace('_', ' ').lower() or 'connection closed'}"
    chain = causes(error)
    if any(isinstance(each, socket.gaierror) for each in chain):
        return f"dial tcp: lookup {host.rpartition(':')[0]}: no such host"
    cause = next((each for each in chain if isinstance(each, OSError) and each.errno), None)
    if any(isinstance(each, urllib3_errors.NewConnectionError) for each in chain):
        return f"dial tcp {host}: connect: {_system_words(cause)}"
    if any(isinstance(each, (http.client.RemoteDisconnected, BrokenPipeError)) for each in chain):
        return "EOF"
    if cause is not None:
        return f"read: {_system_words(cause)}"
    if any(isinstance(each, urllib3_errors.TimeoutError) for each in chain):
        return NO_HEADERS
    if any(isinstance(each, http.client.BadStatusLine) for each in chain):
        return "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
    return "net/http: HTTP/1.x transport connection broken"


def _system_words(cause: OSError | None) -> str:
    """Return the system's error text; the most common ones read the same on all platforms."""
    code = cause.errno if cause is not None else None
    known = {errno.ECONNREFUSED: "connection refused", errno.ECONNRESET: "connection reset by peer"}
    strerror = cause.strerror if cause is not None else ""
    return known.get(code or 0) or (strerror or "unreachable").lower()


def _certificate_words(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        return "certificate has expired or is not yet valid"
    if error.verify_code in (_HOST_MISMATCH, _ADDRESS_MISMATCH):
        return f"certificate is valid for other names: {error.verify_message.rstrip('.')}"
    return "certificate signed by unknown authority"


__all__ = ["connect"]
