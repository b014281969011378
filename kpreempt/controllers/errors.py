"""What stops a controller."""

from __future__ import annotations

from kpreempt.errors import KpreemptError


class SyncError(KpreemptError):
    """A controller cannot go on with an object, and upstream's would try again and again; the message says why."""
