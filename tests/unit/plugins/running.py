"""Runs a plugin in a separate scheduler, or calls it alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.plugins import CycleState, Plugin
from kpreempt.schedulers.kube.configuration import FoundPlugin, scheduler_from_configuration
from kpreempt.schedulers.kube.framework.out_of_tree import OutOfTreePlugin
from kpreempt.schedulers.kube.framework.runner import Framework
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import Status, Verdict
from tests.factories import NOW


def scheduler_with(plugin: type[Plugin], args: Mapping[str, Any] | None = None) -> KubeScheduler:
    """The default scheduler with a plugin, which takes DefaultPreemption's place if it preempts."""
    found = [FoundPlugin(plugin, "a test", is_requested=True)]
    if args is None:
        return scheduler_from_configuration(plugins=found)
    disabled = [{"name": "*"}] if hasattr(plugin, "post_filter") else []
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": plugin.name}]}, "postFilter": {"disabled": disabled}},
        "pluginConfig": [{"name": plugin.name, "args": dict(args)}],
    }
    if disabled:
        profile["plugins"]["postFilter"]["enabled"] = [{"name": plugin.name}]  # type: ignore[index]  # plain data
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    return scheduler_from_configuration(configuration, plugins=found)


def cluster_of(
    nodes: Sequence[Node] = (), pods: Sequence[Pod] = (), *, documents: Mapping[str, Any] | None = None, **kinds: Any
) -> ClusterSnapshot:
    """A cluster of these objects; ``documents`` are by kind."""
    return ClusterSnapshot(nodes=list(nodes), pods=list(pods), documents=dict(documents or {}), **kinds)


def decide_with(
    plugin: type[Plugin], cluster: ClusterSnapshot, pod: Pod, args: Mapping[str, Any] | None = None
) -> Verdict:
    """The whole verdict."""
    scheduler = scheduler_with(plugin, args)
    return scheduler.decide(scheduler.prepare(cluster, now=NOW), pod)


class PluginRun:
    """A plugin on a cluster, after PreFilter has run for a pod; ``pre_filter`` is what that came to."""

    def __init__(
        self, plugin: type[Plugin], cluster: ClusterSnapshot, pod: Pod, args: Mapping[str, Any] | None = None
    ) -> None:
        scheduler = scheduler_with(plugin, args)
        self.framework: Framework = scheduler.prepare(cluster, now=NOW).frameworks["default-scheduler"]
        self.state = CycleState()
        self.pre_filter: Status = self.framework.run_pre_filter(self.state, pod)[1]
        plugins = (*self.framework.plugins.pre_filters, *self.framework.plugins.post_filters)
        self.plugin: Any = next(
            each.plugin for each in plugins if isinstance(each, OutOfTreePlugin) and each.name == plugin.name
        )


def victims_of(verdict: Verdict) -> dict[str, list[str]]:
    """The names of the victims on each node that is nominated."""
    return {node: [victim.pod.rpartition("/")[2] for victim in victims] for node, victims in verdict.victims.items()}
