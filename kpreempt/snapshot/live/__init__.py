"""The live cluster as a source: a connection as kubectl makes it, and lists read raw, in pages, several at once.

Nothing is ever sent but GET. Tokens, keys and passwords reach headers and TLS only, never a message or a file.
"""

from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.connection import Connection, connect
from kpreempt.snapshot.live.failures import ClusterError
from kpreempt.snapshot.live.flags import ConnectionFlags, NoClusterError

__all__ = ["Api", "ClusterError", "Connection", "ConnectionFlags", "NoClusterError", "connect"]
