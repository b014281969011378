"""What can go wrong between here and an API server, each as one message that says what to do about it."""

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
# OpenSSL's codes of what is wrong with a certificate (``X509_V_ERR_…``).
_NOT_YET_VALID, _EXPIRED, _HOST_MISMATCH, _ADDRESS_MISMATCH = 9, 10, 62, 64

_TRY_KUBECTL = "kubectl get nodes with the same options tells whether it is the cluster or kpreempt"


class ClusterError(InputError):
    """The cluster cannot be read: not reached, or it refuses. ``status`` is HTTP's, 0 where there was no answer."""

    def __init__(self, problem: str, *, source: str, status: int = 0, hint: str = "") -> None:
        super().__init__(problem, source=source, hint=hint)
        self.status = status

    def without(self, secrets: Collection[str]) -> ClusterError:
        """The same error, whose words, which may be the server's, repeat none of the secrets."""
        problem = scrubbed(self.problem, secrets)
        return ClusterError(problem, source=self.source, status=self.status, hint=self.hint)


class _Status(msgspec.Struct, frozen=True):
    """The API server's own words on why it refuses."""

    message: str = ""


def rejection(
    status: int, headers: urllib3.HTTPHeaderDict, body: bytes, source: str, user: str, seconds: float | None = None
) -> ClusterError:
    """The error for an answer that is not 200.

    ``user`` says who asked (``user admin``), and ``seconds`` how long a busy server wants to be left alone.
    """
    # The message of a ``Status``, or the text itself where that is short and plain; cut to one short line.
    try:
        text = msgspec.json.decode(body, type=_Status).message
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body[: 2 * _LONGEST_MESSAGE].decode(errors="replace")
        text = "" if "<" in text else text
    text = " ".join(text.split())
    words = text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"
    because = f": {words}" if words else ""
    if 300 <= status < 400:
        place = headers.get("location", "").partition("?")[0]
        return ClusterError(
            f"answers with a redirect{' to ' if place else ''}{place}, not with the Kubernetes API",
            source=source,
            status=status,
            hint="check --server and the proxy: a login page often stands before the API",
        )
    again = "try again later" if seconds is None else f"try again later; it asks to be left alone for {seconds:g}s"
    problem, hint = {
        400: (f"the API server does not understand the request{because}", "check --server: https:// or http://"),
        401: (
            f"the API server does not know {user or 'the user'} (401){because}",
            "the token or client certificate may have expired: log in again, or kubectl get nodes renews it",
        ),
        403: (
            f"not allowed (403){because}",
            "deploy/cluster-role.yaml has the rights that are needed; --as and --context choose another user",
        ),
        404: (f"there is no such API (404){because}", "check --server: is it a Kubernetes API server?"),
        410: (f"the list expired while it was read, again and again (410){because}", "try again"),
        429: (f"the API server is too busy (429){because}", again),
        503: (f"the API server is not available (503){because}", again),
    }.get(status, (f"the API server fails ({status}){because}", _TRY_KUBECTL))
    return ClusterError(problem, source=source, status=status, hint=hint)


def failure(error: http.HTTPError | DeadlineError, source: str, timeout: float | None) -> ClusterError:
    """The error for a request that got no answer; ``timeout`` is how many seconds it had."""
    if isinstance(error, http.ProxyError):
        cause = error.original_error
        inner = _failure(cause, timeout) if isinstance(cause, http.HTTPError) else (str(cause), "")
        return ClusterError(
            f"the proxy does not connect: {inner[0]}", source=source, hint="check proxy-url, HTTPS_PROXY and NO_PROXY"
        )
    problem, hint = _failure(error, timeout)
    return ClusterError(problem, source=source, hint=hint)


def _failure(error: http.HTTPError | DeadlineError, timeout: float | None) -> tuple[str, str]:
    if isinstance(error, http.NameResolutionError):
        return "the host is not known", "check the server of the context, the network and the VPN"
    # Before the timeouts, of which urllib3 has it be one.
    if isinstance(error, http.NewConnectionError):
        reason = error.__cause__
        if isinstance(reason, socket.gaierror):
            return "the host is not known", "check the server of the context, the network and the VPN"
        if isinstance(reason, OSError) and reason.errno == errno.ECONNREFUSED:
            hint = "is the API server running, and is it the right one? kubectl config view"
            return "the connection is refused", hint
        words = (isinstance(reason, OSError) and reason.strerror) or "it is not reached"
        return words[:1].lower() + words[1:], "check the network and the VPN"
    if isinstance(error, http.TimeoutError | DeadlineError):
        waited = f" within {timeout:g}s" if timeout is not None else ""
        return f"no answer{waited}", "check the network and the VPN; --request-timeout 5m waits longer"
    if isinstance(error, http.SSLError):
        return tls_problem(error.args[0] if error.args else error)
    if isinstance(error, http.DecodeError):
        return "the answer is packed in a way that cannot be read", _TRY_KUBECTL
    cause = tls_error(error)
    if cause is not None:
        return tls_problem(cause)
    return "the connection breaks off, again and again", _TRY_KUBECTL


def is_dropped(error: Exception) -> bool:
    """Whether a connection broke off on its way, which the next one may not."""
    return isinstance(error, http.ProtocolError) and tls_error(error) is None


def tls_problem(error: object) -> tuple[str, str]:
    """What is wrong between two ends of TLS, and what to do about it."""
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
                "--tls-server-name NAME, with a name that the certificate has",
            )
        return (
            f"the server's certificate is not trusted: {words}",
            "--certificate-authority FILE, or check certificate-authority in the kubeconfig",
        )
    reason = (error.reason if isinstance(error, ssl.SSLError) else "") or ""
    if "ALERT_CERTIFICATE_EXPIRED" in reason:
        return "the server refuses the client certificate: it has expired", "renew it, or log in again"
    if "ALERT" in reason:
        alert = reason.partition("ALERT_")[2].replace("_", " ").lower()
        return f"the server refuses the client's TLS: {alert}", "check the client certificate of the user"
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "the server does not speak TLS", "http:// instead of https://?"
    return f"TLS fails: {reason.replace('_', ' ').lower() or 'the connection is broken off'}", _TRY_KUBECTL
