"""What is told of a cycle, as plain data: quota trees, assignments, targets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from kpreempt.schedulers.kueue.amounts import FlavorResource, amount_text
from kpreempt.schedulers.kueue.assignment import Assignment, Attempt, PodSetAssignment
from kpreempt.schedulers.kueue.preemption import Target
from kpreempt.schedulers.kueue.quota import Node
from kpreempt.schedulers.kueue.shares import share_of
from kpreempt.schedulers.kueue.topology import written

Json = dict[str, Any]


def share_text(share: float) -> str:
    """A share as Go writes a float."""
    if math.isinf(share):
        return "+Inf"
    return format(Decimal(repr(share)), "f").removesuffix(".0")


def amounts_told(amounts: Mapping[FlavorResource, int]) -> dict[str, str]:
    """Amounts by ``flavor/resource``."""
    return {f"{flavor}/{resource}": amount_text(resource, each) for (flavor, resource), each in sorted(amounts.items())}


def tree_told(queues: Iterable[tuple[Node, Iterable[str]]], cohorts: Iterable[Node]) -> list[Json]:
    """ClusterQueues with the keys of their Workloads, then cohorts, each by name."""
    told = [
        {**_node(node, "ClusterQueue"), "workloads": sorted(workloads)}
        for node, workloads in sorted(queues, key=lambda each: each[0].name)
    ]
    return [*told, *(_node(node, "Cohort") for node in sorted(cohorts, key=lambda each: each.name))]


def _node(node: Node, kind: str) -> Json:
    share = share_of(node)
    frs = list(node.subtree)
    return {
        "kind": kind,
        "name": node.name,
        "parent": node.parent.name if node.parent else "",
        "fairWeight": int(node.weight) if node.weight.is_integer() else node.weight,
        "share": share_text(share.weighted),
        "roundedShare": share.rounded,
        "dominant": share.resource,
        "borrowing": share.is_borrowing,
        "subtreeQuota": amounts_told(node.subtree),
        "usage": amounts_told(node.usage),
        "available": amounts_told({fr: node.available(fr) for fr in frs}),
        "potential": amounts_told({fr: node.potential(fr) for fr in frs}),
    }


def described(assignment: Assignment, targets: list[Target], *, observes: bool) -> Json:
    """An assignment with whom it preempts."""
    told: Json = {
        "mode": str(assignment.mode),
        "borrowing": assignment.borrowing,
        "message": assignment.message,
        "considered": assignment.considered,
        "usage": amounts_told(assignment.usage),
        "podSets": [_pod_set(each) for each in assignment.pod_sets],
        "targets": [
            {"workload": each.info.key, "clusterQueue": each.info.cluster_queue, "reason": each.reason}
            for each in targets
        ],
    }
    if observes:
        told["noFitReason"] = assignment.no_fit_reason
    return told


def _pod_set(given: PodSetAssignment) -> Json:
    return {
        "name": given.name,
        "count": given.count,
        "mode": str(given.mode),
        "flavors": {
            resource: {"name": each.name, "mode": str(each.mode), "triedFlavorIdx": each.tried}
            for resource, each in sorted(given.flavors.items())
        },
        "api": written_pod_set(given),
        "message": given.message,
        "attempts": [_attempt(each) for each in given.attempts],
    }


def _attempt(attempt: Attempt) -> Json:
    return {
        "flavor": attempt.flavor,
        "mode": str(attempt.mode),
        "borrow": attempt.borrow,
        "preemption": attempt.possibility.word if attempt.possibility is not None else "",
        "reasons": attempt.reasons,
        "noFitReason": attempt.no_fit_reason,
    }


def written_pod_set(given: PodSetAssignment) -> Json:
    """What a pod set gets, as in a Workload's admission."""
    told: Json = {
        "name": given.name,
        "flavors": {resource: each.name for resource, each in sorted(given.flavors.items())},
        "resourceUsage": {
            resource: amount_text(resource, given.requests.get(resource, 0)) for resource in sorted(given.flavors)
        },
        "count": given.count,
    }
    if given.placed is not None:
        told["topologyAssignment"] = written(given.levels, given.placed)
    if given.is_delayed:
        told["delayedTopologyRequest"] = "Pending"
    return told
