"""What of a scheduler's settings counts beside its decisions: for its queue, and for the controllers around it.

Whoever has a scheduler hands these on; neither queues nor controllers know it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

MAX_UNAVAILABLE_STATEFUL_SET = "MaxUnavailableStatefulSet"


class Settings(NamedTuple):
    """Feature gates by their names, where they are set or known, and how long a pod backs off; ``None`` is as usual.

    The gates are taken to be the same for all components of a cluster.
    """

    gates: Mapping[str, bool] = {}
    initial_backoff: timedelta | None = None
    max_backoff: timedelta | None = None


AS_USUAL = Settings()
