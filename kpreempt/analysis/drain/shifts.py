"""Which nodes are worked on together: all of a plain drain, a few at a time of an upgrade."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kpreempt.analysis.drain.kubectl import Shift
from kpreempt.analysis.drain.nodes import NewNode, node_like, with_storage_limits
from kpreempt.model.cluster import ClusterSnapshot


class Upgrade(msgspec.Struct, frozen=True, kw_only=True):
    """How nodes are replaced: so many at a time, of which ``surge`` new ones come before the old are drained.

    A node that did not come before comes when the old one is gone, empty, like it and open to pods;
    ``kubelet_version`` is that of the new ones where it is given.
    """

    at_once: int = 1
    surge: int = 0
    kubelet_version: str = ""


def plain_drain(nodes: Sequence[str]) -> list[Shift]:
    """All nodes are cordoned first, then drained one after the other."""
    return [Shift(nodes=list(nodes))]


def upgraded(cluster: ClusterSnapshot, nodes: Sequence[str], upgrade: Upgrade) -> tuple[ClusterSnapshot, list[Shift]]:
    """The shifts of an upgrade, and the cluster with what is known of the nodes to come."""
    by_name = {each.name: each for each in cluster.nodes}
    taken = set(by_name)
    made: dict[str, str] = {}

    def new(like: str) -> NewNode:
        name = next(name for number in range(1, len(taken) + 2) if (name := f"{like}-new-{number}") not in taken)
        taken.add(name)
        made[name] = like
        return node_like(by_name[like], name, cluster, upgrade.kubelet_version)

    def shift(own: Sequence[str]) -> Shift:
        first = [new(name) for name in own[: upgrade.surge]]
        return Shift(
            nodes=own,
            is_parallel=len(own) > 1,
            coming=first,
            fresh=[new(name) for name in own[upgrade.surge :]],
            are_deleted=True,
        )

    shifts = [shift(own) for own in _batches(nodes, max(upgrade.at_once, upgrade.surge, 1))]
    return with_storage_limits(cluster, made), shifts


def _batches(nodes: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(nodes), size):
        yield list(nodes[start : start + size])
