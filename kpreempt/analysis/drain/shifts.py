"""Which nodes are worked on together: all of a plain drain, a few at a time of an upgrade."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from kpreempt.analysis.drain.kubectl import Shift
from kpreempt.analysis.nodes.copies import Added, Copier, with_nodes
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.verdict import Assumption


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


class Upgraded(msgspec.Struct, frozen=True):
    """The shifts of an upgrade, the cluster with what is known of the nodes to come, and what is assumed of them."""

    cluster: ClusterSnapshot
    shifts: list[Shift]
    assumptions: list[Assumption] = []


def upgraded(cluster: ClusterSnapshot, nodes: Sequence[str], upgrade: Upgrade, *, now: datetime) -> Upgraded:
    """How these nodes of the cluster are upgraded, in this order; the new ones come ``now`` or later."""
    by_name = {each.name: each for each in cluster.nodes}
    copier = Copier(cluster, now=now)
    beside = Added()
    shifts: list[Shift] = []
    for own in _batches(nodes, max(upgrade.at_once, upgrade.surge, 1)):
        made = [_with_kubelet(copier.like(by_name[name], 1), upgrade.kubelet_version) for name in own]
        for each in made:
            beside += each
        shifts.append(_shift(own, made, upgrade.surge))
    # What belongs to a node that is not there yet counts for nobody.
    known = with_nodes(cluster, msgspec.structs.replace(beside, nodes=[], pods=[]))
    return Upgraded(known, shifts, list(dict.fromkeys(beside.assumptions)))


def in_order(shifts: Sequence[Shift], nodes: Sequence[str]) -> list[Shift]:
    """The same upgrade of these of its nodes, in this order."""
    made = {
        name: added for shift in shifts for name, added in zip(shift.nodes, (*shift.coming, *shift.fresh), strict=True)
    }
    size, surge = len(shifts[0].nodes), len(shifts[0].coming)
    return [_shift(own, [made[name] for name in own], surge) for own in _batches(nodes, size)]


def _shift(nodes: Sequence[str], made: Sequence[Added], surge: int) -> Shift:
    """The nodes are worked on together, and take the new ones that are ``made`` for each."""
    return Shift(nodes=nodes, is_parallel=len(nodes) > 1, coming=made[:surge], fresh=made[surge:], are_deleted=True)


def _with_kubelet(added: Added, version: str) -> Added:
    """The nodes with a kubelet of this version, where one is given."""
    if not version:
        return added
    nodes = [
        msgspec.structs.replace(
            each,
            status=msgspec.structs.replace(
                each.status, node_info=msgspec.structs.replace(each.status.node_info, kubelet_version=version)
            ),
        )
        for each in added.nodes
    ]
    return msgspec.structs.replace(added, nodes=nodes)


def _batches(nodes: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(nodes), size):
        yield list(nodes[start : start + size])
