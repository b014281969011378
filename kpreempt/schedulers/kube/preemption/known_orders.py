"""Whether the pods of a node stand in the order of the scheduler's cache, which a recording knows of some."""

from __future__ import annotations

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.kube.framework.node_info import NodeInfo

# The one whose lease a recording watches. Others may run on their own, with caches that began at another time.
_SCHEDULER = "default-scheduler"


def stand_in_order(
    cluster: ClusterSnapshot, node_info: NodeInfo, priority: int | None, *, scheduler: str = _SCHEDULER
) -> bool:
    """Whether those of the node's pods that are below ``priority`` (``None``: all) stand in their order.

    Not where a what-if has changed which pods are on the node.
    """
    if cluster.has_scheduler_order:
        return True
    order = cluster.pod_orders.get(node_info.name)
    if order is None or scheduler != _SCHEDULER:
        return False
    keys = [info.key for info in node_info.pods]
    if set(keys) != {*filter(None, order.places), *order.unplaced}:
        return False
    counted = {info.key for info in node_info.pods if priority is None or info.priority < priority}
    in_order = [key for key in order.places if key in counted]
    return not counted & order.unplaced and in_order == [key for key in keys if key in counted]
