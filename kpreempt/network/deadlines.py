"""Requests that end at a time of the wall clock, whatever the other end does.

A timeout of a socket bounds one read only: a server that drips a byte now and then, into headers, body or trailers, is
waited for without end, and the look-up of a name has no timeout at all.
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
    """A request has taken longer than it may."""


class Request(Generic[T]):
    """Work over connections of a ``pool_manager``, in a thread of its own."""

    def __init__(self, work: Callable[[], T]) -> None:
        """Begin."""
        self._result: Future[T] = Future()
        self._connections: list[Any] = []
        self._sockets: list[socket.socket] = []
        self._is_abandoned = False
        threading.Thread(target=self._run, args=(work,), daemon=True).start()

    def result(self, seconds: float | None) -> T:
        """What the work returns, or raises. Raises ``DeadlineError`` where that takes longer."""
        try:
            return self._result.result(seconds)
        except TimeoutError:
            if self._result.done():
                raise
            raise DeadlineError from None

    def abandon(self) -> None:
        """End the connections, and with them the thread, for which nobody waits any more."""
        self._is_abandoned = True
        # A connection has its socket from before TLS is spoken, and gives it away to an answer without a length.
        held = [each for connected in self._connections if (each := connected.sock) is not None]
        for each in (*held, *self._sockets):
            with suppress(OSError):
                # TLS would say goodbye first.
                socket.socket.shutdown(each, socket.SHUT_RDWR)

    def _run(self, work: Callable[[], T]) -> None:
        _HERE.request = self
        try:
            self._result.set_result(work())
        except BaseException as error:
            self._result.set_exception(error)

    def uses(self, connected: Any) -> None:
        """Note a connection that the work goes on with. Raises ``OSError`` where nobody waits for it any more."""
        if self._is_abandoned:
            raise ConnectionAbortedError
        self._connections.append(connected)
        if connected.sock is not None:
            self._sockets.append(connected.sock)


# The request that a thread is for.
_HERE = threading.local()


def within(seconds: float | None, work: Callable[[], T]) -> T:
    """What ``work`` returns or raises. Once it takes longer it is cut off, and ``DeadlineError`` is raised."""
    if seconds is None:
        return work()
    request = Request(work)
    try:
        return request.result(seconds)
    except BaseException:
        request.abandon()
        raise


class _Noted:
    """A connection that tells the request of its thread that it is used."""

    def connect(self) -> None:
        self._note()
        super().connect()  # type: ignore[misc]
        self._note()

    def request(self, *arguments: Any, **options: Any) -> None:
        self._note()
        super().request(*arguments, **options)  # type: ignore[misc]

    def _note(self) -> None:
        request = getattr(_HERE, "request", None)
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
    """A manager of connections, through the ``proxy`` if there is one, that the request which uses one can cut off.

    ``server_name`` is the one that the server's certificate has, if that is not its host's.
    """
    settings: dict[str, Any] = {"maxsize": connections}
    if tls is not None:
        settings["ssl_context"] = tls
        if server_name:
            settings["server_hostname"] = server_name
        if tls.verify_mode == ssl.CERT_NONE:
            # Somebody asked for it, and need not be told at every request.
            urllib3.disable_warnings(exceptions.InsecureRequestWarning)
    if proxy:
        auth = urllib3.util.parse_url(proxy).auth
        headers = urllib3.make_headers(proxy_basic_auth=auth) if auth else None
        manager: urllib3.PoolManager = urllib3.ProxyManager(proxy, 1, proxy_headers=headers, **settings)
    else:
        manager = urllib3.PoolManager(1, **settings)
    manager.pool_classes_by_scheme = {"http": _PlainPool, "https": _SecurePool}
    return manager
