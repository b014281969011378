"""NodeVolumeLimits as limits: the volumes of each CSI driver against what it takes on a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.bulk.limits import ALWAYS, Excess, Limit, PluginLimits
from kpreempt.schedulers.kube.bulk.pod_table import PodTable
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.verdict import Status, details


class RoomForVolumes(NamedTuple):
    """What drivers say of a node: volumes by unique name with their drivers, and how many each driver takes.

    ``new`` are those of the pod, ``attached`` those that are attached there, with a pod or without.
    """

    new: Mapping[str, str]
    attached: Mapping[str, str]
    limits: Mapping[str, int]


def volume_limits(
    plugin: str,
    rooms: Sequence[RoomForVolumes | None],
    volumes_of: Callable[[Pod, NodeInfo], Mapping[str, str] | None],
    may_have: Callable[[Pod], bool],
    refusal: Callable[[details.VolumeLimitExceeded], Status],
    table: PodTable,
    nodes: Sequence[NodeInfo],
) -> PluginLimits:
    """One limit per driver of the pod's volumes.

    ``rooms`` are those of each node of the question, ``None`` for one to leave out. So are nodes of whose pods two have
    one volume, or one has a volume of the incoming pod's: it counts once. ``volumes_of`` gives the volumes of a pod on
    a node (``None``: not to be said) if it ``may_have`` any.
    """
    drivers = list(dict.fromkeys(driver for room in rooms if room for driver in room.new.values()))
    is_left_out = np.array([room is None for room in rooms], dtype=np.bool_)
    amounts = {driver: np.zeros(len(table.pods), dtype=np.int64) for driver in drivers}
    used = {driver: np.zeros(len(nodes), dtype=np.int64) for driver in drivers}
    most = {driver: np.full(len(nodes), ALWAYS, dtype=np.int64) for driver in drivers}
    holders: dict[int, list[int]] = {}
    for place in [place for place, pod in enumerate(table.pods) if may_have(pod)]:
        holders.setdefault(int(table.node[place]), []).append(place)
    wanted: list[Mapping[str, int]] = []
    for index, (room, node_info) in enumerate(zip(rooms, nodes, strict=True)):
        asked = list(room.new.values()) if room else []
        wanted.append({driver: asked.count(driver) for driver in dict.fromkeys(asked)})
        limited = [driver for driver in wanted[-1] if room and driver in room.limits]
        if room is None or not limited:
            continue
        for driver in limited:
            most[driver][index] = room.limits[driver] - wanted[-1][driver]
            used[driver][index] = sum(each == driver for each in room.attached.values())
        seen = set(room.new)
        for place in holders.get(table.cluster.position[node_info.name], ()):
            volumes = volumes_of(table.pods[place], node_info)
            if volumes is None or not seen.isdisjoint(volumes):
                is_left_out[index] = True
                break
            seen |= volumes.keys()
            for name, driver in volumes.items():
                if driver in limited and name not in room.attached:
                    amounts[driver][place] += 1
                    used[driver][index] += 1

    def refuse(excess: Excess) -> Status:
        room = rooms[excess.node]
        assert room is not None
        driver = next(
            driver for driver in wanted[excess.node] if driver in room.limits and excess.exceeded[drivers.index(driver)]
        )
        count = excess.sums[drivers.index(driver)]
        return refusal(details.VolumeLimitExceeded(driver, count, wanted[excess.node][driver], room.limits[driver]))

    def adds(info: PodInfo) -> list[int] | None:
        return None if may_have(info.pod) else [0] * len(drivers)

    limits = [Limit(used[driver], most[driver], amounts[driver]) for driver in drivers]
    return PluginLimits(plugin, limits, refuse, is_left_out, tells_detail=True, adds=adds)
