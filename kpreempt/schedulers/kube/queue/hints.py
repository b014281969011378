"""Which events each plugin waits for after it refused a pod; the plugins in the tree state theirs themselves.

Of hints that look at volumes, claims, device classes or inferred features only the event is known: it is taken to help,
so that a pod may be tried where the real scheduler would leave it. ``Awaited.is_modelled`` tells them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from kpreempt.schedulers.kube.framework.events import NODE, Action, Awaited, ClusterEvent
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


# Those that wait for any update of a node where they are not asked for hints (v1.31.14); others for these.
_AWAIT_ANY_UPDATE = frozenset(
    ("NodeAffinity", "NodeName", "NodePorts", "NodeResourcesFit", "NodeUnschedulable", "TaintToleration")
)
_INSTEAD_OF_ADD = Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
_ANY_UPDATE = (
    _INSTEAD_OF_ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_CONDITION | Action.UPDATE_NODE_ANNOTATION
)


@cache
def awaited_by(plugin: str, *, asks_hints: bool = True) -> Sequence[Awaited]:
    """The events that a plugin waits for; one that is not in the tree is taken to wait for everything.

    Those that are not asked for hints wait for more of a node's updates: what comes is looked at by the queue itself.
    """
    awaited = _AWAITED.get(plugin, _EVERYTHING)
    return awaited if asks_hints else tuple(_without_hint(plugin, each) for each in awaited)


class Awaiting(dict[str, Sequence[Awaited]]):
    """By plugin, what it waits for that one event is; found out when it is first asked for."""

    def __init__(self, event: ClusterEvent, *, asks_hints: bool) -> None:
        self._event = event
        self._asks_hints = asks_hints

    def __missing__(self, plugin: str) -> Sequence[Awaited]:
        found = tuple(
            each for each in awaited_by(plugin, asks_hints=self._asks_hints) if each.event.awaits(self._event)
        )
        self[plugin] = found
        return found


@cache
def awaiting(event: ClusterEvent, *, asks_hints: bool = True) -> Awaiting:
    """What each plugin waits for that ``event`` is, in the order in which it states it."""
    return Awaiting(event, asks_hints=asks_hints)


@cache
def is_of_interest(event: ClusterEvent, *, with_others: bool = False, asks_hints: bool = True) -> bool:
    """Whether any plugin waits for the event; ``with_others``: there are plugins that wait for everything."""
    waiting = [*(awaited_by(each, asks_hints=asks_hints) for each in _AWAITED), *([_EVERYTHING] if with_others else [])]
    return event.is_wild_card or any(each.event.awaits(event) for plugin in waiting for each in plugin)


def _without_hint(plugin: str, awaited: Awaited) -> Awaited:
    resource, action, _ = awaited.event
    if resource != NODE:
        return awaited._replace(hint=None)
    more = _ANY_UPDATE if plugin in _AWAIT_ANY_UPDATE else _INSTEAD_OF_ADD
    return Awaited(ClusterEvent(NODE, action | more), is_modelled=awaited.is_modelled)
