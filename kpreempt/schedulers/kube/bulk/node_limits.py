"""A filter that looks at a node without its pods, as a limit: whoever goes, it lets a pod pass, or it does not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpreempt.schedulers.kube.bulk.limits import ALWAYS, NEVER, Limit, PluginLimits
from kpreempt.schedulers.kube.bulk.pod_table import PodTable
from kpreempt.verdict import Code, Status


def node_limits(plugin: str, statuses: Sequence[Status], table: PodTable) -> PluginLimits:
    """What the filter says of each node of the question. Errors are left to the plain path."""
    most = [ALWAYS if status.is_success else NEVER for status in statuses]
    nothing = np.zeros(len(table.pods), dtype=np.int64)
    limit = Limit(np.zeros(len(statuses), dtype=np.int64), np.array(most, dtype=np.int64), nothing)
    return PluginLimits(
        plugin,
        [limit],
        lambda excess: statuses[excess.node],
        np.array([status.code == Code.ERROR for status in statuses], dtype=np.bool_),
        tells_detail=True,
        adds=lambda _: [0],
    )
