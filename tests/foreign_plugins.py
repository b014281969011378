"""The current scheduler with out-of-tree plugins, as enabled by ``--plugin``."""

from __future__ import annotations

from typing import Any

from kpreempt.analysis.algorithms import Scheduler, scheduler_for
from kpreempt.plugins import Plugin, QueuedPodInfo, QueueSortPlugin
from kpreempt.schedulers.kube.configuration import FoundPlugin


def scheduler_with(*plugins: type[Plugin], configuration: dict[str, Any] | None = None) -> Scheduler:
    """A scheduler that runs these plugins, in a custom configuration or in the default profile."""
    found = [FoundPlugin(plugin, "a test", is_requested=configuration is None) for plugin in plugins]
    return scheduler_for(configuration=configuration, plugins=found)


class LowestFirst(QueueSortPlugin):
    def less(self, one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
        return one.pod.priority < other.pod.priority


class Fails(QueueSortPlugin):
    def less(self, one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
        raise ValueError("no rank")
