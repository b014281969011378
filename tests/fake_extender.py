"""A test extender on loopback that sends raw bytes: it can answer correctly, badly, slowly or not at all."""

from __future__ import annotations

import json
import socket
import ssl
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any, NamedTuple

TLS = Path(__file__).parent.parent / "fixtures" / "tls"


class ReceivedRequest(NamedTuple):
    """One request; ``headers`` has names in lower case, ``body`` is decoded JSON."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Dripping(NamedTuple):
    """Bytes that are sent repeatedly, until the client disconnects or the server ends."""

    start: bytes
    drop: bytes


class Reset(NamedTuple):
    """Some bytes, and then a connection reset."""

    start: bytes = b""


class Silent(NamedTuple):
    """Some bytes, and then nothing more."""

    start: bytes = b""


# Plain bytes are sent before the connection is closed.
Reply = bytes | Dripping | Reset | Silent
Answering = Callable[[ReceivedRequest], Reply]


def good(value: Any, status: str = "200 OK", *headers: str) -> bytes:
    """A value as JSON."""
    return raw(json.dumps(value).encode(), status, *headers)


def raw(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """A response with this body."""
    return head(status, f"Content-Length: {len(body)}", *headers) + body


def head(status: str = "200 OK", *headers: str) -> bytes:
    """The response head before a body."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


class FakeExtender:
    """The server, in separate threads within the block. ``certificate`` makes it use TLS.

    If it does not listen, it answers to the first bytes, whatever they are.
    """

    def __init__(
        self,
        answering: Answering | Reply,
        *,
        certificate: str = "",
        wants_client: bool = False,
        tls: str = "1.2",
        listens: bool = True,
    ) -> None:
        self.requested: list[ReceivedRequest] = []
        self.closed = Event()
        self._answering = answering
        self._listens = listens
        self._ended = Event()
        self._context: ssl.SSLContext | None = None
        if certificate:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(TLS / certificate)
            if tls == "1.2":
                self._context.maximum_version = ssl.TLSVersion.TLSv1_2
            if wants_client:
                self._context.verify_mode = ssl.CERT_REQUIRED
                self._context.load_verify_locations(TLS / "ca.crt")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"
        self._threads = [Thread(target=self._accept)]

    def __enter__(self) -> FakeExtender:
        self._threads[0].start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._ended.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._ended.is_set():
                connection, _ = self._listener.accept()
                thread = Thread(target=self._serve, args=(connection,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.settimeout(10)
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            requested = _read(connection) if self._listens else ReceivedRequest("", "", {}, connection.recv(65536))
            if requested is not None:
                self.requested.append(requested)
                self._send(connection, self._answering(requested) if callable(self._answering) else self._answering)
        with suppress(OSError):
            connection.close()
        self.closed.set()

    def _send(self, connection: socket.socket, reply: Reply) -> None:
        if isinstance(reply, bytes):
            connection.sendall(reply)
            return
        connection.sendall(reply.start)
        if isinstance(reply, Reset):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif isinstance(reply, Silent):
            # Ends with the client or with the test.
            connection.recv(1)
        else:
            while not self._ended.wait(0.005):
                connection.sendall(reply.drop)


def _read(connection: socket.socket) -> ReceivedRequest | None:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65536)
        if not chunk:
            return None
        data += chunk
    top, _, body = data.partition(b"\r\n\r\n")
    first, *lines = top.decode().split("\r\n")
    headers = dict(_header(lines))
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    method, path, _ = first.split(" ")
    return ReceivedRequest(method, path, headers, json.loads(body) if body else None)


def _header(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    for line in lines:
        name, _, value = line.partition(":")
        yield name.lower(), value.strip()
