"""Requests with a wall-clock deadline that holds no matter what the server does.

A socket timeout limits only a single read: a server that sends a byte now and then, in headers, body or trailers, can
delay a request forever, and name lookups have no timeout at all.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

import urllib3
from urllib3 import connection, connectionpool, exceptions

T = TypeVar("T")


class DeadlineError(Exception):
    """A request exceeded its deadline."""


class Request(Generic[T]):
    """Work that uses connections of a ``pool_manager``, in a separate thread."""

    def __init__(self, work: Callable[[], T]) -> None:
        """Start the work."""
        self._result: Future[T] = Future()
        self._connections: list[Any] = []
        self._sockets: list[socket.socket] = []
        self._is_abandoned = False
        threading.Thread(target=self._run, args=(work,), daemon=True).start()

    def result(self, seconds: float | None) -> T:
        """Return or raise what the work does. Raises ``DeadlineError`` if that takes longer than ``seconds``."""
        try:
            return self._result.result(seconds)
        except TimeoutError:
            if self._result.done():
                raise
            raise DeadlineError from None

    def abandon(self) -> None:
        """Close the connections, which ends the abandoned thread."""
        self._is_abandoned = True
        # A connection has its socket before the TLS handshake, and hands it over to a response without a length.
        held = [each for connected in self._connections if (each := connected.sock) is not None]
        for each in (*held, *self._sockets):
            with suppress(OSError):
                # Closing TLS properly would send a final message first.
                socket.socket.shutdown(each, socket.SHUT_RDWR)

    def _run(self, work: Callable[[], T]) -> None:
        _THREAD_LOCAL.request = self
        try:
            self._result.set_result(work())
        except BaseException as error:
            self._result.set_exception(error)

    def uses(self, connected: Any) -> None:
        """Register a connection that the work uses. Raises ``OSError`` if the request was abandoned."""
        if self._is_abandoned:
            raise ConnectionAbortedError
        self._connections.append(connected)
        if connected.sock is not None:
            self._sockets.append(connected.sock)


# The request that a thread works for.
_THREAD_LOCAL = threading.local()


def within(seconds: float | None, work: Callable[[], T]) -> T:
    """Run ``work`` and return its result. Raises ``DeadlineError`` once it takes longer than ``seconds``."""
    if seconds is None:
        return work()
    request = Request(work)
    try:
        return request.result(seconds)
    except BaseException:
        request.abandon()
        raise


class _Noted:
    """A connection that registers itself with the request of its thread."""

    def connect(self) -> None:
        self._note()
        super().connect()  # type: ignore[misc]
        self._note()

    def request(self, *arguments: Any, **options: Any) -> None:
        self._note()
        super().request(*arguments, **options)  # type: ignore[misc]

    def _note(self) -> None:
        request = getattr(_THREAD_LOCAL, "request", None)
        if request is not None:
            request.uses(self)


class _Plain(_Noted, connection.HTTPConnection):
    pass


class _Secure(_Noted, connection.HTTPSConnection):
    pass


class _PlainPool(connectionpool.HTTPConnectionPool):
    ConnectionCls = _Plain


class _SecurePool(connectionpool.HTTPSConnectionPool):
    ConnectionCls = _Secure


def pool_manager(
    proxy: str, tls: ssl.SSLContext | None, server_name: str = "", *, connections: int = 1
) -> urllib3.PoolManager:
    """Return a connection manager, using ``proxy`` if set, whose connections a request can close.

    ``server_name`` is the name in the server's certificate if it differs from the host.
    """
    settings: dict[str, Any] = {"maxsize": connections}
    if tls is not None:
        settings["ssl_context"] = tls
        if server_name:
            settings["server_hostname"] = server_name
        if tls.verify_mode == ssl.CERT_NONE:
            # The user disabled verification explicitly, and needs no warning for every request.
            urllib3.disable_warnings(exceptions.InsecureRequestWarning)
    if proxy:
        auth = urllib3.util.parse_url(proxy).auth
        headers = urllib3.make_headers(proxy_basic_auth=auth) if auth else None
        manager: urllib3.PoolManager = urllib3.ProxyManager(proxy, 1, proxy_headers=headers, **settings)
    else:
        manager = urllib3.PoolManager(1, **settings)
    manager.pool_classes_by_scheme = {"http": _PlainPool, "https": _SecurePool}
    return manager
