"""The protocol between a scheduler and an HTTP extender: what is sent, and how responses are interpreted.

Nothing here uses the network: a ``Call`` is passed in (``kpreempt.extenders`` makes real ones).
"""

from kpreempt.schedulers.extender_protocol.answers import ExtenderError, ExtenderStatusError, HostPriority, is_complete
from kpreempt.schedulers.extender_protocol.http_extender import (
    CURRENT,
    V1_8,
    V1_13,
    V1_18,
    Call,
    Connect,
    Dialect,
    FilterAnswer,
    FilteredNode,
    HttpExtender,
    NodeVictims,
    uid_of,
)
from kpreempt.schedulers.extender_protocol.settings import (
    ExtenderSettings,
    TlsSettings,
    read_settings,
    with_ignorable_last,
)

__all__ = [
    "CURRENT",
    "V1_8",
    "V1_13",
    "V1_18",
    "Call",
    "Connect",
    "Dialect",
    "ExtenderError",
    "ExtenderSettings",
    "ExtenderStatusError",
    "FilterAnswer",
    "FilteredNode",
    "HostPriority",
    "HttpExtender",
    "NodeVictims",
    "TlsSettings",
    "is_complete",
    "read_settings",
    "uid_of",
    "with_ignorable_last",
]
