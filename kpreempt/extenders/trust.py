"""TLS for an extender, as its settings state it (``makeTransport``, ``pkg/scheduler/extender.go``, v1.36.3)."""

from __future__ import annotations

import ssl
from pathlib import Path

from kpreempt.errors import ConfigurationError, InputError
from kpreempt.network.tls import ClientCertificate, Trust, tls_context
from kpreempt.schedulers.extender_protocol import ExtenderSettings, TlsSettings


def context_of(settings: ExtenderSettings) -> ssl.SSLContext:
    """The context for ``https`` addresses. With ``enableHTTPS`` and no authority, any certificate will do.

    Raises ``ConfigurationError`` for what contradicts itself, and ``InputError`` for files and certificates that cannot
    be used, which name the field and never what it holds.
    """
    tls, where = settings.tls or TlsSettings(), f"extenders[{settings.index}].tlsConfig"
    is_insecure = tls.insecure or (settings.enable_https and not tls.has_authority)
    if is_insecure and tls.has_authority:
        raise ConfigurationError(
            "specifying a root certificates file with the insecure flag is not allowed", hint=f"{where}.insecure"
        )
    authority = _content(tls.ca_data, tls.ca_file, f"{where}.caFile").decode(errors="replace")
    trust = Trust(authority=authority, is_insecure=is_insecure, source=f"{where}.caData")
    client = None
    if tls.has_certificate:
        certificate = _content(tls.cert_data, tls.cert_file, f"{where}.certFile")
        key = _content(tls.key_data, tls.key_file, f"{where}.keyFile")
        client = ClientCertificate(certificate=certificate, key=key, source=where)
    return tls_context(trust, client)


def _content(data: bytes, path: str, field: str) -> bytes:
    if data or not path:
        return data
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot be read: {words}", source=path, hint=field) from error
