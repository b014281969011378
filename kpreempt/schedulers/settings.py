"""What of a scheduler's settings counts beside its decisions: for its queue, the API server and the controllers.

Whoever has a scheduler hands these on; none of those knows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple


class Settings(NamedTuple):
    """Feature gates by their names, where they are set or known, and how long a pod backs off; ``None`` is as usual.

    The gates are assumed to be the same for all components of a cluster. ``facts`` are all that is known to hold in the
    version under them, by the names of ``kube/versions.py``; none of versions from before its tables.
    """

    gates: Mapping[str, bool] = {}
    initial_backoff: timedelta | None = None
    max_backoff: timedelta | None = None
    facts: Mapping[str, object] = {}
