"""Types that schedulers, queues, controllers and their callers share without importing each other.

``QueueRules`` describes how out-of-tree plugins change a queue, ``PodChanges`` how the pods of a cluster differ from
those of the previous one, and ``Settings`` the scheduler settings that matter beyond its decisions: to its queue, the
API server and the controllers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod


class QueuedPodInfo(Protocol):
    """A pending pod; ``timestamp`` is when it was queued or last returned to the queue."""

    @property
    def pod(self) -> Pod: ...

    @property
    def timestamp(self) -> datetime:
        """When it was last queued."""

    @property
    def attempts(self) -> int:
        """The number of known attempts: a cluster does not report attempts made before it was observed."""


class WaitingPod(NamedTuple):
    """An immutable ``QueuedPodInfo``."""

    pod: Pod
    timestamp: datetime
    attempts: int = 0


# Whether the first pod is tried before the second. May raise ``PluginFailedError``.
Less = Callable[[QueuedPodInfo, QueuedPodInfo], bool]


class QueueRules(NamedTuple):
    """How out-of-tree plugins change a queue; the defaults change nothing.

    ``fits_on`` checks an added or updated node, for queues without queueing hints.

    ``is_before`` replaces PrioritySort. ``blocked_pods`` returns the name of the plugin that gates a pod, or an empty
    text; the queue handles scheduling gates itself. ``awaits_everything`` means that a plugin or extender that may
    reject pods does not register the events it waits for, so no event is skipped.
    """

    is_before: Less | None = None
    blocked_pods: Callable[[Pod], str] | None = None
    awaits_everything: bool = False
    fits_on: Callable[[Pod, Node], bool] | None = None


NO_RULES = QueueRules()


class PodChanges(NamedTuple):
    """The pods that changed: each with its old and new version, ``None`` if it was added or deleted.

    ``rank`` has the position of every existing pod among all pods, by key; lower comes first.
    """

    pods: Sequence[tuple[Pod | None, Pod | None]]
    rank: Mapping[str, int]


class Settings(NamedTuple):
    """Feature gates by name, if they are set or known, and a pod's backoff; ``None`` means the default.

    All components of a cluster are assumed to have the same gates. ``facts`` are all facts of the version under these
    gates, by the names in ``kube/versions.py``; empty for versions before its tables.
    """

    gates: Mapping[str, bool] = {}
    initial_backoff: timedelta | None = None
    max_backoff: timedelta | None = None
    facts: Mapping[str, object] = {}
