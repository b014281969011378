"""What can go wrong on the way to an extender and back, in words like those of Go's ``net/http``.

They are like what the real scheduler puts in its events, and not the same to the letter: local ports and the address
that a name leads to are left out.
"""

from __future__ import annotations

import errno
import http.client
import socket
import ssl

from urllib3 import exceptions as urllib3_errors

from kpreempt.network.tls import causes, tls_error

NO_HEADERS = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
NO_BODY = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
# OpenSSL's codes of what is wrong with a certificate (``X509_V_ERR_…``).
_NOT_YET_VALID, _EXPIRED, _HOST_MISMATCH, _ADDRESS_MISMATCH = 9, 10, 62, 64


def words_for(error: BaseException, host: str) -> str:
    """Why there is no answer; ``host`` is ``name:port`` of the extender."""
    if isinstance(error, urllib3_errors.ProxyError):
        return f"proxyconnect: {_without_proxy(error.original_error, host)}"
    return _without_proxy(error, host)


def _without_proxy(error: BaseException, host: str) -> str:
    tls = tls_error(error)
    if tls is not None:
        return _tls_words(tls)
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
    """The system's words; those that are met most, as Linux has them everywhere."""
    code = cause.errno if cause is not None else None
    known = {errno.ECONNREFUSED: "connection refused", errno.ECONNRESET: "connection reset by peer"}
    strerror = cause.strerror if cause is not None else ""
    return known.get(code or 0) or (strerror or "it is not reached").lower()


def _tls_words(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {_certificate_words(error)}"
    reason = error.reason or ""
    if "ALERT" in reason:
        return f"remote error: tls: {reason.partition('ALERT_')[2].replace('_', ' ').lower()}"
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "http: server gave HTTP response to HTTPS client"
    return f"tls: {reason.replace('_', ' ').lower() or 'the connection is broken off'}"


def _certificate_words(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        return "certificate has expired or is not yet valid"
    if error.verify_code in (_HOST_MISMATCH, _ADDRESS_MISMATCH):
        return f"certificate is valid for other names: {error.verify_message.rstrip('.')}"
    return "certificate signed by unknown authority"
