"""Server trust, client certificates, and TLS errors.

Private keys reach OpenSSL without a file on disk.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

import msgspec

from kpreempt.errors import InputError, UsageError


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """Which servers are trusted: those with a certificate from ``authority`` (PEM) or the system's CAs, or all."""

    authority: str = ""
    is_insecure: bool = False
    source: str = ""


class ClientCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate and its key in PEM, and the name of their source."""

    certificate: bytes
    key: bytes
    source: str

    def __repr__(self) -> str:
        return f"ClientCertificate({self.source})"


def tls_context(trust: Trust, client: ClientCertificate | None) -> ssl.SSLContext:
    """Return the TLS context for a server. Raises ``InputError`` for certificates and keys that cannot be used."""
    try:
        context = ssl.create_default_context(cadata=trust.authority or None)
    except ssl.SSLError:
        raise InputError(
            "the certificate authority contains no PEM certificate", source=trust.source, hint="-----BEGIN CERTIFICATE"
        ) from None
    # Python 3.13 rejects CAs without key identifiers, such as those of older kubeadm releases; kubectl accepts them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if trust.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if client is not None:
        try:
            with _as_path(client.certificate) as certificate, _as_path(client.key) as key:
                context.load_cert_chain(certificate, key, password=_no_password)
        except UsageError as error:
            raise InputError(error.message, source=client.source, hint=error.hint) from None
        except OSError:
            # For a pipe, OpenSSL only reports that it cannot seek.
            raise InputError(
                "the client certificate or key cannot be used",
                source=client.source,
                hint="client-certificate and client-key must be PEM and match each other",
            ) from None
    return context


def _no_password() -> str:
    raise UsageError("the client key is encrypted", hint="openssl pkey -in KEY -out PLAIN_KEY, as for kubectl")


@contextmanager
def _as_path(content: bytes) -> Iterator[str]:
    """Yield a path from which the content can be read once: a pipe, or a private file if pipes have no path."""
    if not Path("/dev/fd").is_dir():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "pem")
            path.write_bytes(content)
            yield str(path)
        return
    reader, writer = os.pipe()
    with ExitStack() as stack:
        stack.callback(os.close, reader)
        Thread(target=_feed, args=(writer, content), daemon=True).start()
        yield f"/dev/fd/{reader}"


def _feed(writer: int, content: bytes) -> None:
    """Write content that may exceed the pipe's buffer; a reader that stops early is not an error."""
    try:
        with os.fdopen(writer, "wb") as stream:
            stream.write(content)
    except OSError:
        return


def causes(error: BaseException) -> list[BaseException]:
    """Return the error and its causes, outermost first."""
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in found:
        found.append(each)
        each = each.__cause__ or each.__context__
    return found


def tls_error(error: BaseException) -> ssl.SSLError | None:
    """Return the TLS error behind an error; TLS 1.3 reports a rejected client certificate with the first response."""
    return next((each for each in causes(error) if isinstance(each, ssl.SSLError)), None)
