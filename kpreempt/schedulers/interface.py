"""What schedulers, queues, controllers and their callers hand to each other, none of which knows the others.

``QueueRules`` are what out-of-tree plugins make of a queue, ``PodChanges`` how the pods of a cluster differ from those
of the one before it, and ``Settings`` what of a scheduler's settings counts besides its decisions: for its queue, the
API server and the controllers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
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

    ``is_before`` takes the place of PrioritySort. ``blocked_pods`` names the plugin that keeps a pod out of the queue,
    with an empty text for a pod that none does; scheduling gates are the queue's own matter. ``awaits_everything`` says
    that a plugin, or an extender, that may refuse pods does not say which events it waits for: none is passed over.
    """

    is_before: Less | None = None
    blocked_pods: Callable[[Pod], str] | None = None
    awaits_everything: bool = False
    fits_on: Callable[[Pod, Node], bool] | None = None


NO_RULES = QueueRules()


class PodChanges(NamedTuple):
    """The pods that are other objects now: each as it was and as it is, ``None`` where it was not there, or is not.

    ``rank`` has for the key of every pod that is there its place among all pods: the lower comes first.
    """

    pods: Sequence[tuple[Pod | None, Pod | None]]
    rank: Mapping[str, int]


class Settings(NamedTuple):
    """Feature gates by their names, where they are set or known, and how long a pod backs off; ``None`` is as usual.

    The gates are assumed to be the same for all components of a cluster. ``facts`` are all that is known to hold in the
    version under them, by the names of ``kube/versions.py``; none of versions from before its tables.
    """

    gates: Mapping[str, bool] = {}
    initial_backoff: timedelta | None = None
    max_backoff: timedelta | None = None
    facts: Mapping[str, object] = {}
