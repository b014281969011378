"""Which events each plugin waits for after it refused a pod; the plugins in the tree state theirs themselves.

Of hints that look at volumes, claims, device classes or inferred features only the event is known: it is taken to help,
so that a pod may be tried where the real scheduler would leave it. ``Awaited.is_modelled`` tells them.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.schedulers.kube.framework.events import Action, Awaited, ClusterEvent
from kpreempt.schedulers.kube.plugin_table import REGISTRY

_AWAITED = {name: awaited for name, each in REGISTRY.items() if (awaited := each.awaits())}
# What a plugin that says nothing waits for: everything.
_EVERYTHING = tuple(
    Awaited(ClusterEvent(resource, Action.ALL))
    for resource in (
        "Pod",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "CSINode",
        "CSIDriver",
        "CSIStorageCapacity",
        "StorageClass",
        "ResourceClaim",
        "DeviceClass",
    )
)


def awaited_by(plugin: str) -> Sequence[Awaited]:
    """The events that a plugin waits for; one that is not in the tree is taken to wait for everything."""
    return _AWAITED.get(plugin, _EVERYTHING)


def is_of_interest(event: ClusterEvent, *, with_others: bool = False) -> bool:
    """Whether any plugin waits for the event; ``with_others``: there are plugins that wait for everything."""
    waiting = [*_AWAITED.values(), *([_EVERYTHING] if with_others else [])]
    return event.is_wild_card or any(each.event.awaits(event) for plugin in waiting for each in plugin)
