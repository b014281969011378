"""Errors between here and an API server, each as one message that says what to do about it."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Collection

import msgspec
import urllib3
from urllib3 import exceptions as http

from kpreempt.errors import InputError
from kpreempt.network.deadlines import DeadlineError
from kpreempt.network.secrets import scrubbed
from kpreempt.network.tls import tls_error

_LONGEST_MESSAGE = 300
# OpenSSL's codes for certificate errors (``X509_V_ERR_…``).
_NOT_YET_VALID, _EXPIRED, _HOST_MISMATCH, _ADDRESS_MISMATCH = 9, 10, 62, 64

_TRY_KUBECTL = "check whether kubectl get nodes works with the same options"


class ClusterError(InputError):
    """The cluster cannot be read: unreachable, or access denied.

    ``status`` is the HTTP status, or 0 without an answer.
    """

    def __init__(self, problem: str, *, source: str, status: int = 0, hint: str = "") -> None:
        super().__init__(problem, source=source, hint=hint)
        self.status = status

    def without(self, secrets: Collection[str]) -> ClusterError:
        """Return the same error with all secrets removed from its text, which may be the server's."""
        problem = scrubbed(self.problem, secrets)
        return ClusterError(problem, source=self.source, status=self.status, hint=self.hint)


class _Cause(msgspec.Struct, frozen=True):
    field: str = ""


class _Details(msgspec.Struct, frozen=True):
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct, frozen=True):
    """The API server's own reason for an error."""

    message: str = ""
    details: _Details | None = None


def field_of(body: bytes) -> str:
    """Return the field of the first cause in a ``Status``, such as ``spec.replicas``; empty if there is none."""
    status = _status_of(body)
    details = None if status is None else status.details
    return details.causes[0].field if details is not None and details.causes else ""


def words_of(body: bytes) -> str:
    """Return the message of a ``Status``, or the text itself if it is short and plain, in one line."""
    status = _status_of(body)
    text = body[: 2 * _LONGEST_MESSAGE].decode(errors="replace") if status is None else status.message
    is_page = status is None and "<" in text
    return "" if is_page else " ".join(text.split())


def _status_of(body: bytes) -> _Status | None:
    try:
        return msgspec.json.decode(body, type=_Status)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def rejection(
    status: int, headers: urllib3.HTTPHeaderDict, body: bytes, source: str, user: str, seconds: float | None = None
) -> ClusterError:
    """Build the error for an answer other than 200.

    ``user`` names the user (``user admin``), and ``seconds`` is the wait that a busy server requests.
    """
    text = words_of(body)
    words = text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"
    because = f": {words}" if words else ""
    if 300 <= status < 400:
        place = headers.get("location", "").partition("?")[0]
        return ClusterError(
            f"returned a redirect{' to ' if place else ''}{place}, not a Kubernetes API response",
            source=source,
            status=status,
            hint="check --server and the proxy: there may be a login page in front of the API",
        )
    again = "try again later" if seconds is None else f"try again in {seconds:g}s"
    problem, hint = {
        400: (f"the API server does not understand the request{because}", "check --server: https:// or http://"),
        401: (
            f"authentication failed for {user or 'the user'} (401){because}",
            "the token or client certificate may have expired: log in again, or kubectl get nodes renews it",
        ),
        403: (
            f"not allowed (403){because}",
            "deploy/cluster-role.yaml has the required permissions; --as and --context select another user",
        ),
        404: (f"API not found (404){because}", "check --server: is it a Kubernetes API server?"),
        410: (f"the list kept expiring while it was read (410){because}", "try again"),
        429: (f"the API server is too busy (429){because}", again),
        503: (f"the API server is not available (503){because}", again),
    }.get(status, (f"API server error ({status}){because}", _TRY_KUBECTL))
    return ClusterError(problem, source=source, status=status, hint=hint)


def failure(error: http.HTTPError | DeadlineError, source: str, timeout: float | None) -> ClusterError:
    """Build the error for a request without an answer; ``timeout`` is its timeout in seconds."""
    if isinstance(error, http.ProxyError):
        cause = error.original_error
        inner = _failure(cause, timeout) if isinstance(cause, http.HTTPError) else (str(cause), "")
        return ClusterError(
            f"cannot connect through the proxy: {inner[0]}",
            source=source,
            hint="check proxy-url, HTTPS_PROXY and NO_PROXY",
        )
    problem, hint = _failure(error, timeout)
    return ClusterError(problem, source=source, hint=hint)


def _failure(error: http.HTTPError | DeadlineError, timeout: float | None) -> tuple[str, str]:
    if isinstance(error, http.NameResolutionError):
        return "unknown host", "check the server of the context, the network and the VPN"
    # Before the timeouts, because urllib3 classifies it as one.
    if isinstance(error, http.NewConnectionError):
        reason = error.__cause__
        if isinstance(reason, socket.gaierror):
            return "unknown host", "check the server of the context, the network and the VPN"
        if isinstance(reason, OSError) and reason.errno == errno.ECONNREFUSED:
            hint = "is the API server running, and is it the right one? kubectl config view"
            return "connection refused", hint
        words = (isinstance(reason, OSError) and reason.strerror) or "not reachable"
        return words[:1].lower() + words[1:], "check the network and the VPN"
    if isinstance(error, http.TimeoutError | DeadlineError):
        waited = f" within {timeout:g}s" if timeout is not None else ""
        return f"no answer{waited}", "check the network and the VPN, or use --request-timeout 5m"
    if isinstance(error, http.SSLError):
        return tls_problem(error.args[0] if error.args else error)
    if isinstance(error, http.DecodeError):
        return "the answer has an unsupported encoding", _TRY_KUBECTL
    cause = tls_error(error)
    if cause is not None:
        return tls_problem(cause)
    return "the connection keeps breaking", _TRY_KUBECTL


def is_dropped(error: Exception) -> bool:
    """Return whether a connection was dropped, so that a retry may succeed."""
    return isinstance(error, http.ProtocolError) and tls_error(error) is None


def tls_problem(error: object) -> tuple[str, str]:
    """Describe a TLS problem, and what to do about it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        code, words = error.verify_code, error.verify_message
        if code == _EXPIRED:
            return (
                "the server's certificate has expired",
                "renew it (kubeadm certs renew), or check this machine's clock",
            )
        if code == _NOT_YET_VALID:
            return "the server's certificate is not valid yet", "check this machine's clock"
        if code in (_HOST_MISMATCH, _ADDRESS_MISMATCH):
            return (
                f"the server's certificate is for another name: {words.rstrip('.')}",
                "--tls-server-name NAME, with a name in the certificate",
            )
        return (
            f"the server's certificate is not trusted: {words}",
            "--certificate-authority FILE, or check certificate-authority in the kubeconfig",
        )
    reason = (error.reason if isinstance(error, ssl.SSLError) else "") or ""
    if "ALERT_CERTIFICATE_EXPIRED" in reason:
        return "the server rejected the client certificate: it has expired", "renew it, or log in again"
    if "ALERT" in reason:
        alert = reason.partition("ALERT_")[2].replace("_", " ").lower()
        return f"the server rejected the TLS connection: {alert}", "check the client certificate of the user"
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "the server does not speak TLS", "http:// instead of https://?"
    return f"TLS fails: {reason.replace('_', ' ').lower() or 'the connection was closed'}", _TRY_KUBECTL
