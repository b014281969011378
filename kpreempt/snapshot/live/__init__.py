"""The live cluster as a source: a connection as kubectl makes it, and lists read raw, in pages, several at once.

Nothing is ever sent but GET. Tokens, keys and passwords reach headers and TLS only, never a message or a file.
What sends requests is imported when it is first asked for: ``urllib3`` takes as long as a small cluster does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kpreempt.snapshot.live.api import Api
    from kpreempt.snapshot.live.connection import Connection, connect
    from kpreempt.snapshot.live.failures import ClusterError
    from kpreempt.snapshot.live.flags import ConnectionFlags, NoClusterError
    from kpreempt.snapshot.live.lists import Reading, read_cluster, read_version

__all__ = [
    "Api",
    "ClusterError",
    "Connection",
    "ConnectionFlags",
    "NoClusterError",
    "Reading",
    "connect",
    "read_cluster",
    "read_version",
]

_MODULES = {
    "Api": "api",
    "ClusterError": "failures",
    "Connection": "connection",
    "ConnectionFlags": "flags",
    "NoClusterError": "flags",
    "Reading": "lists",
    "connect": "connection",
    "read_cluster": "lists",
    "read_version": "lists",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
