"""Kinds of object of which a cluster may have some, and a snapshot has none because they could not be read."""

from __future__ import annotations

import msgspec

FORBIDDEN = 403


class Unread(msgspec.Struct, frozen=True):
    """Why a kind was not read: the HTTP ``status`` of the refusal, 403 where a right is missing.

    ``resource`` is what would have been listed, with its group, as ``kubectl auth can-i list`` takes it:
    ``poddisruptionbudgets.policy``.
    """

    status: int = FORBIDDEN
    resource: str = ""
