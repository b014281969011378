"""The text of a FailedScheduling event (``FitError``, ``pkg/scheduler/framework/types.go``, v1.36.3)."""

from __future__ import annotations

from kpreempt.schedulers.kube.framework.interface import NodeToStatus

NO_NODES = "no nodes available to schedule pods"


def no_node_message(num_nodes: int, statuses: NodeToStatus, *, pre_filter: str = "", post_filter: str = "") -> str:
    """``0/N nodes are available: …``.

    Reasons are counted over the nodes, written as ``count reason`` and sorted as text. Where PreFilter refused the pod,
    its message stands in their place. ``post_filter`` is appended as it is.
    """
    message = f"0/{num_nodes} nodes are available:"
    if pre_filter:
        message += f" {pre_filter}."
    else:
        counts = statuses.reasons
        absent = num_nodes - statuses.num_refused
        if absent > 0:
            for reason in statuses.absent.reasons:
                counts[reason] += absent
        # Go sorts by bytes; UTF-8 keeps the order of code points, which is Python's.
        reasons = sorted(f"{count} {reason}" for reason, count in counts.items())
        if reasons:
            message += f" {', '.join(reasons)}."
    return f"{message} {post_filter}" if post_filter else message
