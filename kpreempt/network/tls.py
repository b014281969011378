"""Trust and client certificates, and what an error of TLS was raised for.

Private keys reach OpenSSL without a file on the disk.
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
    """Which servers are believed: those whose certificate ``authority`` (PEM) signed, or the system's; or all."""

    authority: str = ""
    is_insecure: bool = False
    source: str = ""


class ClientCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate and its key as PEM, and whose they are."""

    certificate: bytes
    key: bytes
    source: str

    def __repr__(self) -> str:
        return f"ClientCertificate({self.source})"


def tls_context(trust: Trust, client: ClientCertificate | None) -> ssl.SSLContext:
    """The context for a server. Raises ``InputError`` for certificates and keys that cannot be used."""
    try:
        context = ssl.create_default_context(cadata=trust.authority or None)
    except ssl.SSLError:
        raise InputError(
            "the certificate authority holds no certificate in PEM", source=trust.source, hint="-----BEGIN CERTIFICATE"
        ) from None
    # Python 3.13 refuses the authorities that kubeadm and others made without key identifiers; kubectl takes them.
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
            # Of what comes through a pipe OpenSSL only says that it cannot go back in it.
            raise InputError(
                "the client certificate or the client key cannot be used",
                source=client.source,
                hint="client-certificate and client-key have to be PEM, and to belong together",
            ) from None
    return context


def _no_password() -> str:
    raise UsageError("the client key is encrypted", hint="openssl pkey -in KEY -out PLAIN_KEY, as for kubectl")


@contextmanager
def _as_path(content: bytes) -> Iterator[str]:
    """A path that gives the content once: a pipe, or a file that only the user may read where pipes have no path."""
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
    """Write what a pipe may be too small for; a reader that has had enough is no failure."""
    try:
        with os.fdopen(writer, "wb") as stream:
            stream.write(content)
    except OSError:
        return


def causes(error: BaseException) -> list[BaseException]:
    """The error and what it was raised for, from the outside in."""
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in found:
        found.append(each)
        each = each.__cause__ or each.__context__
    return found


def tls_error(error: BaseException) -> ssl.SSLError | None:
    """The failure of TLS behind an error; 1.3 tells a refused client certificate only with the first answer."""
    return next((each for each in causes(error) if isinstance(each, ssl.SSLError)), None)
