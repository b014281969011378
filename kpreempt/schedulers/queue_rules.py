"""What a queue asks of the scheduler: what out-of-tree plugins make of it, and whether a pod fits on a node.

The queue and the scheduler know nothing of each other; whoever has both hands these rules from the one to the other.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple, Protocol

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod


class QueuedPodInfo(Protocol):
    """A pod that waits: ``timestamp`` is when it came into the queue or was last given back."""

    @property
    def pod(self) -> Pod: ...

    @property
    def timestamp(self) -> datetime:
        """Since when it waits."""

    @property
    def attempts(self) -> int:
        """How often it was tried, as far as is known: a cluster does not tell of attempts before it was looked at."""


class WaitingPod(NamedTuple):
    """A ``QueuedPodInfo`` that nobody can change."""

    pod: Pod
    timestamp: datetime
    attempts: int = 0


# Whether the first pod is tried before the second. May raise ``PluginFailedError``.
Less = Callable[[QueuedPodInfo, QueuedPodInfo], bool]


class QueueRules(NamedTuple):
    """How a queue differs from one without out-of-tree plugins; the defaults are that it does not.

    ``fits_on`` is asked about a node that came or changed by queues without queueing hints.

    ``comes_first`` takes the place of PrioritySort. ``held_back`` names the plugin that keeps a pod out of the queue,
    with an empty text for a pod that none does; scheduling gates are the queue's own matter. ``awaits_everything`` says
    that a plugin, or an extender, that may refuse pods does not say which events it waits for: none is passed over.
    """

    comes_first: Less | None = None
    held_back: Callable[[Pod], str] | None = None
    awaits_everything: bool = False
    fits_on: Callable[[Pod, Node], bool] | None = None


NO_RULES = QueueRules()
